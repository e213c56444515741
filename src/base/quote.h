/*
 * Text that a client chose, in explanations, logs and JSON.
 *
 * Such text may hold any byte: NUL, control characters, what is not UTF-8. A reason that shows it
 * uses QUOTE_SHOW(); whatever writes a reason as JSON uses quote_json(). So every refusal is valid
 * JSON, whatever the request was. Plain functions, for any thread.
 */
#ifndef FROND_BASE_QUOTE_H
#define FROND_BASE_QUOTE_H

#include "base/buf.h"

enum {
	QUOTE_SHOWN_BYTES = 288, /* of shown text, with the NUL behind it */
};

/*
 * Writes `s` into `room` as a C string that is valid UTF-8: bytes below a space, DEL and bytes that
 * are not UTF-8 become \xNN. What does not fit is cut and ends in "...". Returns `room`.
 */
const char *quote_show(struct str s, char room[QUOTE_SHOWN_BYTES]);

/* The same as an argument of printf for "%s"; the text lasts until the end of the block. */
#define QUOTE_SHOW(s) quote_show((s), (char[QUOTE_SHOWN_BYTES]){ "" })

/*
 * Appends `s` in a form that stays one word of one log line, also between quotes: bytes that are
 * not visible ASCII, quotes and backslashes are written as %XX. If that takes more than `most`
 * bytes, it is cut there and "..." is added.
 */
void quote_word(struct buf *out, struct str s, size_t most);

/* Writes `s` into `room` in that form, as a value of the log. Returns `room`. */
const char *quote_value(struct str s, char room[QUOTE_SHOWN_BYTES]);

/* The same as an argument of printf for "%s", as QUOTE_SHOW(). */
#define QUOTE_VALUE(s) quote_value((s), (char[QUOTE_SHOWN_BYTES]){ "" })

/* Appends `s` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void quote_json(struct buf *out, struct str s);

#endif

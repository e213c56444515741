/*
 * Cuts a stream of JSON text into documents, without reading it as a whole: memory is bounded by
 * INPUT_VALUE_BYTES, whatever the length of the stream. The cutting only follows strings and
 * brackets. Whether a document's text is JSON is for the caller to find out. One thread's.
 *
 * Formats:
 *   lines     a document a line; blank lines are skipped, so one broken line spoils no other
 *   array     [document, ...]
 *   map       {"id": document, ...}
 *   document  one document
 *   rows      {..., "rows": [row, ...], ...}: what a CouchDB answers; the member's name is given
 *   csv       a record a line, or several lines inside of quotes (csv.h); no documents
 *
 * INPUT_AUTO tells them apart by this rule, in this order:
 *   1. The first character that is not white space is '[': an array.
 *   2. It is not '{': lines (which will then be refused one by one).
 *   3. The object that begins there ends within INPUT_VALUE_BYTES and something other than white
 *      space follows it, or the input ends inside it: lines.
 *   4. It does not end within INPUT_VALUE_BYTES, which no document may: a map.
 *   5. It is all there is: a map if it has members, each one an object, and none named "_id";
 *      otherwise a document.
 */
#ifndef FROND_CLI_INPUT_H
#define FROND_CLI_INPUT_H

#include "base/status.h"
#include "base/str.h"
#include "doc/doc.h"

enum {
	/* The longest text of a document with its attachments: a server takes it in one request. */
	INPUT_VALUE_BYTES = 64 * 1024 * 1024,
};

enum input_format {
	INPUT_AUTO,
	INPUT_LINES,
	INPUT_ARRAY,
	INPUT_MAP,
	INPUT_DOCUMENT,
	INPUT_ROWS,
	INPUT_CSV,
};

/* False if there is no format of that name; INPUT_ROWS has none. */
bool input_format_parse(struct str name, enum input_format *ret);
const char *input_format_name(enum input_format format);

/* Reads up to `n` bytes, and tells how many, 0 at the end. STATUS_IO and the like, explained. */
typedef enum status input_reader(void *arg, char *to, size_t n, size_t *ret, struct err *err);

/* An input_reader over a file descriptor that `arg` points to. */
MUST_USE enum status input_read_fd(void *arg, char *to, size_t n, size_t *ret, struct err *err);

struct input;

/* `rows_member`: for INPUT_ROWS, borrowed. NULL when out of memory. */
struct input *input_new(input_reader *read, void *arg, enum input_format format,
			const char *rows_member);
void input_free(struct input *in);

struct input_item {
	struct str text; /* of a record with its end, if it has one */
	struct str id;   /* map: the member's name, escapes undone; ptr NULL otherwise */
	uint64_t line;   /* where `text` begins, from 1 */
	bool too_large;  /* over INPUT_VALUE_BYTES: skipped, `text` is empty */
};

/*
 * The next document; valid until the next call. STATUS_NOT_FOUND at the end. Everything else ends
 * the input: STATUS_JSON_SYNTAX when its brackets do not fit the format, the reader's failures,
 * STATUS_NOMEM. The explanation does not name the line: input_line() does.
 */
MUST_USE enum status input_next(struct input *in, struct input_item *ret, struct err *err);

/* The format, once a document has been asked for. */
enum input_format input_format(const struct input *in);
uint64_t input_bytes(const struct input *in); /* used so far */
uint64_t input_line(const struct input *in);  /* of what comes next */

#endif

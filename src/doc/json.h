/*
 * JSON text, read token by token and written piece by piece; no tree anywhere.
 *
 * Strict: RFC 8259, valid UTF-8, no lone surrogates in escapes, a depth limit, one value and
 * nothing behind it. Exact: a number stays its text.
 */
#ifndef FROND_DOC_JSON_H
#define FROND_DOC_JSON_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

enum {
	JSON_DEPTH_LIMIT = 512, /* containers inside each other */
	JSON_WRAP_LIMIT = 8,    /* … and around a document of that depth */
};

enum json_token {
	JSON_OBJECT_BEGIN,
	JSON_OBJECT_END,
	JSON_ARRAY_BEGIN,
	JSON_ARRAY_END,
	JSON_KEY, /* of an object's member; its value's token follows */
	JSON_STRING,
	JSON_NUMBER,
	JSON_TRUE,
	JSON_FALSE,
	JSON_NULL,
	JSON_END, /* the text is over */
};

/*
 * Reads tokens. The text is the caller's and outlives the reader. A failure is final: every later
 * call gives it again. Failures: STATUS_JSON_SYNTAX, STATUS_JSON_UTF8, STATUS_JSON_DEPTH,
 * STATUS_NOMEM; the explanation names the line and the column.
 */
struct json_reader {
	const char *begin;
	const char *at;
	const char *end;
	/* The current token. STRING, KEY: the content, escapes undone, valid until the next token;
	 * NUMBER: its text. */
	struct str text;
	const char *token_begin; /* where the token starts in the text */
	bool is_integer;         /* NUMBER: has neither fraction nor exponent */
	unsigned depth;
	/* Levels around what is of interest, JSON_WRAP_LIMIT at most, which may lie so much deeper.
	 * 0 from json_reader_init(); the caller's to set before the first token. */
	unsigned wrapped;
	enum status failed;
	struct err *err;
	struct buf scratch; /* strings with escapes */
	uint8_t expect;     /* private: what may come next */
	/* Private: a bit a level, 1 for an object. */
	uint8_t stack[(JSON_DEPTH_LIMIT + JSON_WRAP_LIMIT) / 8];
};

void json_reader_init(struct json_reader *r, struct str text, struct err *err);
void json_reader_release(struct json_reader *r);

MUST_USE enum status json_next(struct json_reader *r, enum json_token *ret);

/* Goes back to where the reader was when it was copied to `*at`, which has not failed. */
void json_rewind(struct json_reader *r, const struct json_reader *at);

/*
 * Reads the value that comes next (after a KEY, or as an array's element) whole, checking it, and
 * returns its text. `first` is its first token, read already. The rest of the value is skipped.
 */
MUST_USE enum status json_skip(struct json_reader *r, enum json_token first, struct str *ret_text);

/* Appends `s` (valid UTF-8) as a JSON string, quotes included; escapes only what RFC 8259 demands.
 */
void json_write_str(struct buf *b, struct str s);

/*
 * The shortest text that reads back as the same double, as ECMAScript writes it, with ".0" where it
 * would pass for an integer: "1.0", "0.1", "1e+300". Finite only.
 */
void json_write_double(struct buf *b, double d);

#endif

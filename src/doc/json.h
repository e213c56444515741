/*
 * Reads JSON text token by token, and writes values as JSON text. No tree is built.
 *
 * The reader is strict: RFC 8259, valid UTF-8, no lone surrogates in escapes, a limit of depth, one
 * value and nothing behind it. It is exact: a number is its text. A reader borrows the text, owns
 * its scratch buffer, and is used by one thread at a time.
 *
 * Reading counts steps (loop/step.h), so other fibers of the loop may run during json_next() and
 * json_skip() once a text is longer than JSON_STEP_BYTES.
 */
#ifndef FROND_DOC_JSON_H
#define FROND_DOC_JSON_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

enum {
	JSON_DEPTH_LIMIT = 512, /* containers inside each other */
	JSON_WRAP_LIMIT = 8,    /* containers around a document of that depth */
	JSON_STEP_BYTES = 2048, /* that are read before their steps are counted */
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
 * Reads tokens of a text that outlives the reader. After a failure every later call returns the
 * same status. Failures: STATUS_JSON_SYNTAX, STATUS_JSON_UTF8, STATUS_JSON_DEPTH, STATUS_NOMEM;
 * the explanation names the line and the column. Also those of step_count(), without explanation.
 */
struct json_reader {
	const char *begin;
	const char *at;
	const char *end;
	/*
	 * The current token. STRING, KEY: the content, without escapes, valid until the next token;
	 * NUMBER: its text.
	 */
	struct str text;
	const char *token_begin; /* where the token starts in the text */
	bool is_integer;         /* NUMBER: has neither fraction nor exponent */
	unsigned depth;
	/*
	 * Containers around the value that JSON_DEPTH_LIMIT is meant for, JSON_WRAP_LIMIT at most.
	 * json_reader_init() sets 0; the caller may set another number before the first token.
	 */
	unsigned wrapped;
	enum status failed;
	struct err *err;
	/* Private: how far the text may be read until steps are counted; 0 after a failure. */
	size_t count_at;
	struct buf scratch; /* strings with escapes */
	uint8_t expect;     /* private: what may come next */
	/* Private: a bit a level, 1 for an object. */
	uint8_t stack[(JSON_DEPTH_LIMIT + JSON_WRAP_LIMIT) / 8];
};

void json_reader_init(struct json_reader *r, struct str text, struct err *err);
/*
 * Begins in the middle of an array's text, which starts with its bracket: `offset` is right behind
 * the bracket or right behind an element.
 */
void json_reader_init_within(struct json_reader *r, struct str array, size_t offset,
			     struct err *err);
void json_reader_release(struct json_reader *r);

MUST_USE enum status json_next(struct json_reader *r, enum json_token *ret);

/* Goes back to where the reader was when `*at` was copied from it. `*at` must not have failed. */
void json_rewind(struct json_reader *r, const struct json_reader *at);

/*
 * Passes over the value whose first token `first` has just been read, checks it, and returns its
 * whole text.
 */
MUST_USE enum status json_skip(struct json_reader *r, enum json_token first, struct str *ret_text);

/*
 * Appends `s` (valid UTF-8) as a JSON string with its quotes; escapes only what RFC 8259 demands.
 */
void json_write_str(struct buf *b, struct str s);

/*
 * Appends the shortest text that reads back as the same double, as ECMAScript writes it, with ".0"
 * behind what would look like an integer: "1.0", "0.1", "1e+300". Finite doubles only.
 */
void json_write_double(struct buf *b, double d);

#endif

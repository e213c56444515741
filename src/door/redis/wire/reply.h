/*
 * Answers, in RESP2 or RESP3. Appends to a buffer; a failure of the buffer stays in it, and its
 * owner looks at buf_status() when the answer is complete.
 */
#ifndef FROND_DOOR_REDIS_WIRE_REPLY_H
#define FROND_DOOR_REDIS_WIRE_REPLY_H

#include "base/buf.h"

enum {
	REPLY_MOVE_BYTES = 64,
};

struct reply {
	struct buf *out;
	int version; /* 2 or 3 */
};

/* "OK" becomes "+OK". */
void reply_simple(struct reply *r, const char *text);
void reply_ok(struct reply *r);

/*
 * `text` begins with its code: "ERR no such key". Line ends in it become spaces. The second one is
 * printf's.
 */
void reply_error(struct reply *r, struct str text);
void reply_errorf(struct reply *r, const char *fmt, ...) PRINTF(2, 3);

void reply_int(struct reply *r, int64_t n);
void reply_bulk(struct reply *r, struct str s);
/* The same in parts: what is appended to r->out in between are the `len` bytes. */
void reply_bulk_begin(struct reply *r, size_t len);
void reply_bulk_end(struct reply *r);
void reply_bulk_cstr(struct reply *r, const char *s);
void reply_bulk_int(struct reply *r, int64_t n);
/* A text with a format: "txt". In RESP2 a bulk. */
void reply_verbatim(struct reply *r, struct str s);
/* The bytes, or null. */
void reply_bulk_if(struct reply *r, bool there, struct str s);
void reply_null(struct reply *r);
void reply_null_array(struct reply *r);
void reply_bool(struct reply *r, bool b); /* RESP2: 1 or 0 */
/* RESP2: a bulk. The shortest text that is read back as the same number. */
void reply_double(struct reply *r, double d);
/* The same with 17 digits behind the point at most (number_write_long_double()). */
void reply_human_double(struct reply *r, double d);

/* What follows are `n` elements; of a map, `n` pairs, which are 2n elements in RESP2. */
void reply_array(struct reply *r, size_t n);
void reply_map(struct reply *r, size_t n);
void reply_set(struct reply *r, size_t n);
/* Out of band: in RESP2 an array. */
void reply_push(struct reply *r, size_t n);

/*
 * An array whose length is not known yet: reply_later() marks its place, reply_later_end() puts
 * the header in front of what has been appended since.
 */
size_t reply_later(const struct reply *r);
void reply_later_end(struct reply *r, size_t at, char type, size_t n);
/*
 * Puts what has been appended since `from`, REPLY_MOVE_BYTES at most, in front of what has been
 * appended since `at`. Both are of reply_later().
 */
void reply_move_before(struct reply *r, size_t at, size_t from);

#endif

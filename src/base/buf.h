/*
 * A growing byte buffer with a hard maximum.
 *
 * Appending cannot be checked call by call without drowning the code, so a failure is remembered
 * instead: after the first one nothing more is appended, and buf_status() tells. Whoever uses the
 * bytes asks it first. Not thread-safe; owns its bytes.
 */
#ifndef FROND_BASE_BUF_H
#define FROND_BASE_BUF_H

#include "base/status.h"
#include "base/str.h"

struct budget_part;

struct buf {
	char *ptr;
	size_t len;
	size_t cap;
	size_t max_bytes;
	enum status
		failed; /* STATUS_OK, STATUS_NOMEM, or STATUS_LIMIT past max_bytes or the budget */
	struct budget_part *part; /* what its memory is used of; NULL: of none */
};

#define BUF_INIT(max) ((struct buf){ .max_bytes = (max) })

/* One whose memory counts as used of a part of a budget, which outlives it. */
#define BUF_INIT_OF(max, of) ((struct buf){ .max_bytes = (max), .part = (of) })

void buf_init(struct buf *b, size_t max_bytes);

/* Frees the bytes; the buffer is empty and usable again. NULL is fine. */
void buf_release(struct buf *b);

/* Forgets content and failure, keeps the memory. */
static inline void
buf_clear(struct buf *b)
{
	b->len = 0;
	b->failed = STATUS_OK;
}

/* Room for `n` more bytes, or the failure is remembered and false comes back. */
bool buf_grow(struct buf *b, size_t n);

static inline bool
buf_reserve(struct buf *b, size_t n)
{
	return (b->failed == STATUS_OK && b->cap - b->len >= n) || buf_grow(b, n);
}

static inline void
buf_append(struct buf *b, const void *ptr, size_t n)
{
	if (n && buf_reserve(b, n)) {
		memcpy(b->ptr + b->len, ptr, n);
		b->len += n;
	}
}

static inline void
buf_append_str(struct buf *b, struct str s)
{
	buf_append(b, s.ptr, s.len);
}

static inline void
buf_append_byte(struct buf *b, uint8_t c)
{
	if (buf_reserve(b, 1))
		b->ptr[b->len++] = (char)c;
}

/* Inline, so that a literal's length is known where it is appended. */
static inline void
buf_append_cstr(struct buf *b, const char *cstr)
{
	buf_append(b, cstr, strlen(cstr));
}

void buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
void buf_append_u64(struct buf *b, uint64_t n); /* decimal */

/* Lower-case hexadecimal digits of `s`. */
void buf_append_hex(struct buf *b, struct str s);

/* Removes the first `n` bytes, n <= len. */
void buf_consume(struct buf *b, size_t n);

static inline struct str
buf_str(const struct buf *b)
{
	return (struct str){ b->ptr, b->len };
}

/* STATUS_OK if everything appended since the last clear is there. */
static inline MUST_USE enum status
buf_status(const struct buf *b)
{
	return b->failed;
}

#endif

/*
 * A growing byte buffer with a hard maximum.
 *
 * A check after each append would drown the code, so the buffer remembers a failure instead: it
 * appends nothing after the first failure, and buf_status() returns that failure. A caller checks
 * buf_status() before it uses the bytes. Not thread-safe. The buffer owns its bytes.
 */
#ifndef FROND_BASE_BUF_H
#define FROND_BASE_BUF_H

#include "base/arena.h"
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
	struct budget_part *part; /* the part of a budget that counts the memory as used, or NULL */
};

#define BUF_INIT(max) ((struct buf){ .max_bytes = (max) })

enum {
	BUF_SHORT_BYTES = 192 * 1024,
};

/*
 * Starts a buffer that stays short, so that its memory need not be counted: the maximum is a
 * constant of BUF_SHORT_BYTES at most, or the compiler refuses it.
 */
#define BUF_SHORT(max)                                                                             \
	BUF_INIT((max) + 0 * sizeof(char[(size_t)(max) <= (size_t)BUF_SHORT_BYTES ? 1 : -1]))

/*
 * Starts a buffer whose memory counts as used by a part of a budget. The part outlives the buffer.
 */
#define BUF_INIT_OF(max, of) ((struct buf){ .max_bytes = (max), .part = (of) })

void buf_init(struct buf *b, size_t max_bytes);

/* Frees the bytes. The buffer is then empty and can be used again. NULL is allowed. */
void buf_release(struct buf *b);

/* Forgets the content and a failure, but keeps the memory. */
static inline void
buf_clear(struct buf *b)
{
	b->len = 0;
	b->failed = STATUS_OK;
}

/*
 * Makes room for `n` more bytes. On failure the buffer remembers the failure and this returns
 * false.
 */
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

/*
 * Appends what `from` has. If `from` has failed, `b` has failed likewise: so a key that begins with
 * another one is never complete where that one is not.
 */
static inline void
buf_append_buf(struct buf *b, const struct buf *from)
{
	if (from->failed != STATUS_OK && b->failed == STATUS_OK)
		b->failed = from->failed;
	buf_append(b, from->ptr, from->len);
}

static inline void
buf_append_byte(struct buf *b, uint8_t c)
{
	if (buf_reserve(b, 1))
		b->ptr[b->len++] = (char)c;
}

/* This is inline so that the compiler knows a literal's length at the place of the call. */
static inline void
buf_append_cstr(struct buf *b, const char *cstr)
{
	buf_append(b, cstr, strlen(cstr));
}

void buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
void buf_append_u64(struct buf *b, uint64_t n); /* decimal */

/* Appends the bytes of `s` as lower-case hexadecimal digits. */
void buf_append_hex(struct buf *b, struct str s);

/* Removes the first `n` bytes, n <= len. */
void buf_consume(struct buf *b, size_t n);

static inline struct str
buf_str(const struct buf *b)
{
	return (struct str){ b->ptr, b->len };
}

/* Returns STATUS_OK if every append since the last clear succeeded, else the first failure. */
static inline MUST_USE enum status
buf_status(const struct buf *b)
{
	return b->failed;
}

/* Replaces what is in the buffer by a copy of `s`, which lies elsewhere. */
void buf_set(struct buf *b, struct str s);

/* The same with what another buffer has, and with its failure, as buf_append_buf(). */
static inline void
buf_set_buf(struct buf *b, const struct buf *from)
{
	buf_clear(b);
	buf_append_buf(b, from);
}

/*
 * A copy of the bytes in the arena, with a NUL that the length does not count. As buf_status().
 * Inline, since the program of JavaScript workers has buffers and no arenas.
 */
static inline MUST_USE enum status
buf_copy(const struct buf *b, struct arena *arena, struct str *ret)
{
	TRY(buf_status(b));
	return arena_copy(arena, buf_str(b), ret);
}

/* As arena_dup() of the bytes, which is NULL where the buffer has failed as well. */
static inline struct str
buf_dup(const struct buf *b, struct arena *arena)
{
	return b->failed == STATUS_OK ? arena_dup(arena, buf_str(b)) : (struct str){ 0 };
}

#endif

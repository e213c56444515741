/*
 * frond-rows: what its files share. Bytes of requests, which grow, and of answers, which are read;
 * a connection. It is private.
 */
#ifndef FROND_ROWS_BYTES_H
#define FROND_ROWS_BYTES_H

#include "frond_rows.h"

#include <openssl/ssl.h>

#include <stdlib.h>
#include <string.h>

enum {
	FIRST_BYTES = 4096,        /* of a buffer that grows */
	AHEAD_BYTES = 4096,        /* that are taken from the socket at once, more than is wanted */
	HEADER_BYTES = 8,          /* of a request, and of an answer */
	FROWS_FLAG_DESCENDING = 1, /* of a column */
	FROWS_FLAG_ORDERED = 2,
};

/* Bytes that grow. `failed`: memory was short; nothing is appended after that. */
struct bytes {
	uint8_t *ptr;
	size_t len, cap;
	bool failed;
};

/* Bytes that are read from the front. `bad`: there were fewer than were asked for. */
struct reader {
	const uint8_t *at;
	size_t left;
	bool bad;
};

static inline bool
bytes_grow(struct bytes *b, size_t n)
{
	size_t cap = b->cap ? b->cap : FIRST_BYTES;
	uint8_t *ptr;

	if (b->failed)
		return false;
	while (cap - b->len < n && cap < FROWS_ANSWER_BYTES)
		cap *= 2;
	ptr = cap - b->len < n ? NULL : realloc(b->ptr, cap);
	if (!ptr) {
		b->failed = true;
		return false;
	}
	b->ptr = ptr;
	b->cap = cap;
	return true;
}

static inline void
put(struct bytes *b, const void *ptr, size_t n)
{
	if (!n || (b->cap - b->len < n && !bytes_grow(b, n)) || b->failed)
		return;
	memcpy(b->ptr + b->len, ptr, n);
	b->len += n;
}

static inline void
put_int(struct bytes *b, uint64_t n, size_t bytes)
{
	uint8_t room[8];

	frows_put_int(room, (int64_t)n, bytes);
	put(b, room, bytes);
}

static inline void
put_text(struct bytes *b, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	/* A name that is too long is none; the server says so. */
	if (len > UINT16_MAX)
		len = UINT16_MAX;
	put_int(b, len, 2);
	put(b, text, len);
}

static inline void
put_value(struct bytes *b, struct frows_value v)
{
	put_int(b, (uint32_t)v.len, 4);
	if (v.len > 0)
		put(b, v.ptr, (size_t)v.len);
}

static inline void
put_values(struct bytes *b, const struct frows_value *values, size_t count)
{
	put_int(b, count, 1);
	for (size_t i = 0; i < count; i++)
		put_value(b, values[i]);
}

static inline void
set_u32(struct bytes *b, size_t at, uint32_t n)
{
	if (!b->failed)
		frows_put_int(b->ptr + at, n, 4);
}

static inline const uint8_t *
take(struct reader *r, size_t n)
{
	const uint8_t *at = r->at;

	if (r->bad || r->left < n) {
		r->bad = true;
		r->left = 0;
		return NULL;
	}
	r->at += n;
	r->left -= n;
	return at;
}

static inline uint64_t
take_int(struct reader *r, size_t bytes)
{
	const uint8_t *at = take(r, bytes);
	uint64_t n = 0;

	for (size_t i = 0; at && i < bytes; i++)
		n = n << 8 | at[i];
	return n;
}

static inline struct frows_text
take_text(struct reader *r)
{
	size_t len = take_int(r, 2);
	const uint8_t *at = take(r, len);

	return (struct frows_text){ at ? (const char *)at : "", at ? len : 0 };
}

static inline struct frows_value
take_value(struct reader *r)
{
	int32_t len = (int32_t)take_int(r, 4);

	if (len < 0)
		return (struct frows_value){ NULL, FROWS_NULL };
	return (struct frows_value){ take(r, (size_t)len), r->bad ? FROWS_NULL : len };
}

/* ---- Connections ---- */

struct frows {
	int fd;          /* -1: the connection is lost */
	bool polls;      /* at a Unix socket: receive_blocks() tells why */
	bool was_closed; /* that it is lost was told by the socket */
	SSL *ssl;
	SSL_CTX *ssl_context;
	int timeout_ms;
	bool (*interrupted)(void *arg);
	void *interrupted_arg;
	uint16_t number;   /* of the last request */
	uint16_t answered; /* of the last answer: those behind it are still to come */
	uint16_t owed;     /* of these, the last ones, whose failure is told */
	bool commits;      /* a COMMIT is among them */
	unsigned version;  /* that the server speaks */
	uint32_t most;     /* bytes that a request may have */
	struct frows_failure failure;

	uint8_t ahead[AHEAD_BYTES]; /* that came with others, and were not wanted yet */
	size_t ahead_at, ahead_len;

	struct bytes front;   /* requests that go with the next one; what was sent is none */
	uint16_t front_count; /* of these */
	bool front_begins;    /* the first one is BEGIN */
	bool front_refreshes; /* REFRESH is among them, and nothing that reads behind it */
	uint16_t refresh;     /* the number of the last REFRESH that went so */
	bool refreshed;       /* what it was answered */
	struct bytes out;     /* the request that is made */
	size_t count_at;      /* of the number of keys or rows in it */
	uint32_t count;       /* so far */
	size_t columns;       /* that each of them has, or gives */
	struct bytes in;      /* the last answer's body */
	struct reader read;   /* what was not taken of it */
	uint32_t left;        /* rows, names or results that were not taken */

	struct bytes place; /* where the scan goes on */
	bool more;
};

/* Fails with 53200, as what its result is returned for. */
bool frows_fail_memory(struct frows *c);
/* Begins a request; what follows goes to c->out. */
void frows_make_request(struct frows *c, unsigned code);
/* Sends it, and waits for the answer. */
bool frows_run(struct frows *c);
/* Has a request wait for the next one, and go with it. False: no memory; nothing is connected. */
bool frows_front_put(struct frows *c, unsigned code, const void *body, size_t len);
/*
 * Sends it: its answer is owed from here on, together with those of requests that have waited for
 * it. So many answers are in `*ret_sent`.
 */
bool frows_owed_send(struct frows *c, uint16_t *ret_sent);
/* Takes answers that are owed, but for the last `keep`. False if one of them was a failure. */
bool frows_owed_take(struct frows *c, uint16_t keep);
/* Makes and runs a request of one name, or of `both`. */
bool frows_run_names(struct frows *c, unsigned code, const char *schema, const char *table,
		     bool both);
/* Whether what was to be in the answer was there. */
bool frows_taken(struct frows *c);
void frows_put_of(struct bytes *b, const struct frows_of *of);

#endif

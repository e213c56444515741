/*
 * Requests of RESP: arrays of bulk strings, and inline commands as people type them into telnet.
 *
 * The parser reads one request from the bytes that have come so far. It keeps its place, so bytes
 * that it has seen are not looked at again when more come, wherever the caller has moved them: what
 * it keeps are offsets from the request's first byte. A plain value; belongs to one connection.
 */
#ifndef FROND_DOOR_REDIS_WIRE_REQUEST_H
#define FROND_DOOR_REDIS_WIRE_REQUEST_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

enum {
	REQUEST_INLINE_BYTES = 64 * 1024,       /* a line, in any kind of request */
	REQUEST_ARGS = 1024 * 1024,             /* of an array */
	REQUEST_BULK_BYTES = 512 * 1024 * 1024, /* of one argument: proto-max-bulk-len's default */
	/* The same for a client that has not authenticated where it has to. */
	REQUEST_STRANGER_ARGS = 10,
	REQUEST_STRANGER_BULK_BYTES = 16 * 1024,
};

struct request_arg {
	size_t from; /* of the request's first byte */
	size_t len;
};

struct request {
	bool stranger;            /* the limits of clients that have not authenticated hold */
	size_t bulk_bytes;        /* the longest argument */
	size_t at;                /* how far the request has been read */
	bool in_array;            /* its first line has been read */
	bool in_bulk;             /* the length of the next argument is known */
	size_t expected;          /* arguments of the array */
	size_t bulk_len;          /* of the argument that is being read */
	struct buf room;          /* the array of the arguments, as much as there is of it */
	struct request_arg *args; /* in `room` */
	size_t count;
	size_t cap;
};

/* The memory of its array counts in `part`, which outlives it; NULL: nowhere. */
void request_init(struct request *r, struct budget_part *part);
void request_fini(struct request *r);

/* Forgets what was read, for the next request. */
void request_clear(struct request *r);

/*
 * Reads on. `in` begins with the request's first byte, and has at least what it had before.
 * STATUS_OK: the request is complete, `r->at` bytes long; without arguments if it was an empty line
 * or array. STATUS_NOT_FOUND: more bytes are needed, `*ret_need` of them in all at least.
 * STATUS_INVALID, with the text that Redis has for it: what follows cannot be read. STATUS_LIMIT,
 * explained: there is no memory for so many arguments. STATUS_NOMEM.
 */
MUST_USE enum status request_read(struct request *r, struct str in, struct arena *arena,
				  size_t *ret_need, struct err *err);

/* The arguments of a complete request, in the arena, pointing into `in` or the arena. */
MUST_USE enum status request_args(const struct request *r, struct str in, struct arena *arena,
				  struct str **ret);

#endif

/*
 * Frames of the protocol for rows, and what their bodies are made of. Numbers are big-endian.
 *
 *     length of the body (4) · code (1) · 0 (1) · number of the request (2) · body
 *
 * The client chooses the number; the answer has the same. docs/ROWS.md has all bodies.
 *
 * Threading: none.
 */
#ifndef FROND_DOOR_ROWS_WIRE_FRAME_H
#define FROND_DOOR_ROWS_WIRE_FRAME_H

#include "base/buf.h"

enum {
	ROWS_VERSION = 4,       /* of the protocol */
	ROWS_VERSION_LEAST = 1, /* that is still served: without indexes */
	ROWS_VERSION_BINDS = 4, /* behind a BEGIN that has failed nothing is done */
	ROWS_MAGIC = 0x46524f57,
	ROWS_HEADER_BYTES = 8,
	ROWS_FRAME_BYTES = 16 * 1024 * 1024, /* of a request's body */
	ROWS_STATE_BYTES = 5,                /* of an SQLSTATE */
	ROWS_NOWHERE = -1,                   /* an error that is about no row of the request */
};

/* Codes of requests and answers: never renumber. */
enum rows_code {
	ROWS_HELLO = 1,
	ROWS_LOGIN = 2,
	ROWS_PING = 3,
	ROWS_BEGIN = 4,
	ROWS_COMMIT = 5,
	ROWS_ROLLBACK = 6,
	ROWS_SAVEPOINT = 7,
	ROWS_RELEASE = 8,
	ROWS_ROLLBACK_TO = 9,
	ROWS_SCHEMAS = 10,
	ROWS_SCHEMA_CREATE = 11,
	ROWS_SCHEMA_DROP = 12,
	ROWS_TABLES = 13,
	ROWS_TABLE = 14,
	ROWS_TABLE_CREATE = 15,
	ROWS_TABLE_ALTER = 16,
	ROWS_TABLE_DROP = 17,
	ROWS_TABLE_EMPTY = 18,
	ROWS_SCAN = 19,
	ROWS_GET = 20,
	ROWS_WRITE = 21,
	ROWS_INDEXES = 22,
	ROWS_INDEX_CREATE = 23,
	ROWS_INDEX_BUILD = 24,
	ROWS_INDEX_DROP = 25,
	ROWS_INDEX_FIND = 26,
	ROWS_ESTIMATE = 27,
	ROWS_REFRESH = 28,
	ROWS_REQUESTS,

	ROWS_DONE = 128,
	ROWS_ERROR = 129,
};

struct rows_header {
	size_t length; /* of the body */
	unsigned code;
	unsigned reserved; /* 0 in this version */
	uint16_t number;
};

/* `bytes` has ROWS_HEADER_BYTES. */
struct rows_header rows_header_read(struct str bytes);

/* ---- Reading a body ---- */

/*
 * Bytes that are read from the front. What is not there reads as zero or empty and sets `bad`,
 * which stays set: the caller looks at it once, behind everything that it has read. Texts and
 * values are borrowed from the body.
 */
struct rows_in {
	struct str rest;
	bool bad;
};

enum rows_presence {
	ROWS_VALUE,  /* length, bytes */
	ROWS_NULL,   /* a length of -1 */
	ROWS_ABSENT, /* of -2: the column stays as it is */
};

struct rows_value {
	enum rows_presence presence;
	struct str bytes; /* ROWS_VALUE */
};

uint8_t rows_in_u8(struct rows_in *in);
uint16_t rows_in_u16(struct rows_in *in);
uint32_t rows_in_u32(struct rows_in *in);
struct str rows_in_bytes(struct rows_in *in, size_t n);
/* A length in 2 bytes and a text. */
struct str rows_in_str(struct rows_in *in);
/* A length in 4 bytes and bytes. */
struct str rows_in_long(struct rows_in *in);
struct rows_value rows_in_value(struct rows_in *in);
/* A number that says how many things follow, each of `least` bytes at least: 0 and `bad` if they
 * cannot be there, or are more than `most`. */
uint32_t rows_in_count(struct rows_in *in, uint32_t count, uint32_t most, size_t least);

/* ---- Writing ---- */

void rows_put_u8(struct buf *out, unsigned n);
void rows_put_u16(struct buf *out, unsigned n);
void rows_put_u32(struct buf *out, uint32_t n);
void rows_put_u64(struct buf *out, uint64_t n);
void rows_put_str(struct buf *out, struct str s); /* what is beyond 65,535 bytes is cut */
void rows_put_long(struct buf *out, struct str s);
void rows_put_value(struct buf *out, struct str bytes);
void rows_put_null(struct buf *out);
/* Overwrites four bytes at `at` that are there. */
void rows_set_u32(struct buf *out, size_t at, uint32_t n);

/* Begins the answer to a request, and returns where. rows_frame_end() writes its length. */
size_t rows_frame_begin(struct buf *out, uint16_t number, enum rows_code code);
void rows_frame_end(struct buf *out, size_t from);
/* The code of a frame that was begun. */
void rows_frame_set_code(struct buf *out, size_t from, enum rows_code code);

#endif

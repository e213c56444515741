/*
 * Frames of the native protocol, and the notations that their bodies are made of. Numbers are
 * big-endian.
 *
 *     version (0x80: an answer) · flags · stream (2) · opcode · length (4) · body
 *
 * Threading: none.
 */
#ifndef FROND_DOOR_CQL_WIRE_FRAME_H
#define FROND_DOOR_CQL_WIRE_FRAME_H

#include "base/buf.h"

enum {
	FRAME_HEADER_BYTES = 9,
	FRAME_VERSION_LEAST = 3,
	FRAME_VERSION_MOST = 5,
	FRAME_BYTES = 16 * 1024 * 1024,           /* of a request's body */
	FRAME_PROTOCOL_BYTES = 256 * 1024 * 1024, /* what the protocol lets a body have */
	FRAME_ANSWER = 0x80,                      /* a bit of the version */
	FRAME_EVENT_STREAM = -1,
};

/* Bits of `flags`. What they say comes at the beginning of the body, in the order of the bits. */
enum frame_flag {
	FRAME_COMPRESSED = 1 << 0, /* the body; never in version 5, whose segments are compressed */
	FRAME_TRACING = 1 << 1,
	FRAME_PAYLOAD = 1 << 2,
	FRAME_WARNING = 1 << 3,
	FRAME_BETA = 1 << 4,
};

enum frame_opcode {
	FRAME_ERROR = 0x00,
	FRAME_STARTUP = 0x01,
	FRAME_READY = 0x02,
	FRAME_AUTHENTICATE = 0x03,
	FRAME_OPTIONS = 0x05,
	FRAME_SUPPORTED = 0x06,
	FRAME_QUERY = 0x07,
	FRAME_RESULT = 0x08,
	FRAME_PREPARE = 0x09,
	FRAME_EXECUTE = 0x0a,
	FRAME_REGISTER = 0x0b,
	FRAME_EVENT = 0x0c,
	FRAME_BATCH = 0x0d,
	FRAME_AUTH_CHALLENGE = 0x0e,
	FRAME_AUTH_RESPONSE = 0x0f,
	FRAME_AUTH_SUCCESS = 0x10,
};

struct frame_header {
	unsigned version; /* without FRAME_ANSWER */
	bool is_answer;
	unsigned flags;
	int16_t stream;
	unsigned opcode;
	size_t length; /* of the body */
};

/* `bytes` has FRAME_HEADER_BYTES. */
struct frame_header frame_header_read(struct str bytes);

/* ---- Reading a body ---- */

/*
 * Bytes that are read from the front. What is not there reads as zero or empty and sets `bad`,
 * which stays set: the caller looks at it once, behind everything that it has read. Texts are
 * borrowed from the body.
 */
struct frame_in {
	struct str rest;
	bool bad;
};

static inline struct frame_in
frame_in_of(struct str body)
{
	return (struct frame_in){ .rest = body };
}

enum frame_bytes {
	FRAME_BYTES_VALUE,
	FRAME_BYTES_NULL,  /* a length of -1 */
	FRAME_BYTES_UNSET, /* of -2 */
};

uint8_t frame_u8(struct frame_in *in);
uint16_t frame_u16(struct frame_in *in);
int32_t frame_i32(struct frame_in *in);
int64_t frame_i64(struct frame_in *in);
/* Exactly `n` bytes. */
struct str frame_take(struct frame_in *in, size_t n);
/* [string] and [short bytes]. */
struct str frame_short(struct frame_in *in);
/* [long string]. */
struct str frame_long(struct frame_in *in);
/* [bytes] and [value]. A length below -2 is bad. */
enum frame_bytes frame_value(struct frame_in *in, struct str *ret);

/* ---- Writing ---- */

void frame_put_u16(struct buf *out, unsigned n);
void frame_put_i32(struct buf *out, int32_t n);
void frame_put_i64(struct buf *out, int64_t n);
/* [string] and [short bytes]; what is longer than 65,535 bytes is cut. */
void frame_put_short(struct buf *out, struct str s);
/* [long string], and [bytes] that are not null. */
void frame_put_long(struct buf *out, struct str s);
/* [bytes] without a value. */
void frame_put_null(struct buf *out);

/*
 * Begins a frame that answers `stream`, and returns where it begins in the buffer. frame_end()
 * writes its length, once the body is there.
 */
size_t frame_begin(struct buf *out, unsigned version, int16_t stream, enum frame_opcode opcode);
/* A failure of the buffer stays in it. */
void frame_end(struct buf *out, size_t from);
/* The flags and the opcode of a frame that was begun. */
void frame_set_flags(struct buf *out, size_t from, unsigned flags);
void frame_set_opcode(struct buf *out, size_t from, enum frame_opcode opcode);

#endif

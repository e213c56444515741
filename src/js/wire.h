/*
 * What a server and its workers say to each other over a socket: frames, each a fixed head and a
 * payload of numbers and texts. The worker that runs a design document's functions may be hostile,
 * since the functions may have taken it over, so everything that is read is checked here.
 *
 * Both sides run on one machine and come from one build, so numbers are in the machine's byte
 * order. A text is its length, its bytes and a NUL that the length does not count. One call at a
 * time is under way with a worker.
 *
 *     server → worker    HELLO   version, limits          once, first
 *     worker → server    HELLO   version                  once it is ready
 *     server → worker    LOAD    context, language, design document
 *     server → worker    UNLOAD  context
 *     server → worker    a call: MAP … SCRIPT, whose payload begins with the context
 *     worker → server    LOG     any number, during a call
 *     worker → server    DONE or ERROR, which ends the call
 *
 * A batch may be long. The worker answers when its time slice or the room for an answer is used up;
 * DONE then says how many elements of the batch it covers, and the server asks for the rest.
 */
#ifndef FROND_JS_WIRE_H
#define FROND_JS_WIRE_H

#include "base/buf.h"

enum {
	WIRE_VERSION = 1,
	WIRE_MAGIC = 0x6a736672,
	WIRE_HEAD_BYTES = 16,
	WIRE_PAYLOAD_BYTES = 256 * 1024 * 1024, /* the most that a frame may have */
	WIRE_TEXT_OVERHEAD = 5,                 /* of a text's length: its own, and the NUL */
	WIRE_FAILED = -1, /* instead of a count of rows: the error of that function follows */
	WIRE_BATCH_MOST = 65536, /* elements of one batch, and functions of one call */
};

enum wire_kind {
	WIRE_HELLO = 1,
	WIRE_LOAD,
	WIRE_UNLOAD,
	/* context, names of views…; documents… → count; for each document and view: its rows */
	WIRE_MAP,
	/* context, rereduce, limit, names of views…; (keys, values)… → count; results… */
	WIRE_REDUCE,
	/* context, userCtx, secObj; (new, old)…     → count; (verdict, name, reason)… */
	WIRE_VALIDATE,
	/* context, is a view, name, request; documents… → count; a byte for each */
	WIRE_FILTER,
	/* context, name, document, request          → document, response */
	WIRE_UPDATE,
	/* context, how; values…                     → count; (verdict, result)… as of REDUCE */
	WIRE_SCRIPT,

	WIRE_DONE = 64,
	WIRE_ERROR, /* name, reason as JSON text */
	WIRE_LOG,   /* text */
};

enum wire_verdict {
	WIRE_ALLOWED,
	WIRE_FORBIDDEN,    /* with a reason as JSON text */
	WIRE_UNAUTHORIZED, /* likewise */
	WIRE_FAULTY,       /* the function failed: a name, and a reason as JSON text */
};

/* What a server asks of a worker for as long as it lives. */
struct wire_limits {
	uint32_t slice_ms;     /* a batch is answered in part after that */
	uint64_t output_bytes; /* of one document */
	uint64_t answer_bytes; /* a batch is answered in part when its answer has so many */
};

struct wire_head {
	uint32_t kind;
	uint32_t number; /* of the call */
	uint32_t bytes;  /* of the payload */
};

/* ---- Writing: a failure is the buffer's ---- */

/* Begins a frame, and returns where it begins, for wire_end(). */
size_t wire_begin(struct buf *out, enum wire_kind kind, uint32_t number);
/* The payload is complete. A frame that is too large makes the buffer's failure STATUS_LIMIT. */
void wire_end(struct buf *out, size_t begin);

void wire_put_u8(struct buf *out, uint8_t n);
void wire_put_u32(struct buf *out, uint32_t n);
void wire_put_u64(struct buf *out, uint64_t n);
void wire_put_text(struct buf *out, struct str text);

/* Replaces a number that was put at `at`. */
void wire_patch_u32(struct buf *out, size_t at, uint32_t n);

/* ---- Reading ---- */

/*
 * STATUS_OK, with the head of the frame that `bytes` begins with; STATUS_NOT_FOUND: there are too
 * few bytes for a head; STATUS_CORRUPT: this is no head, or announces more than a frame may have.
 */
MUST_USE enum status wire_read_head(struct str bytes, struct wire_head *ret);

/*
 * What is left of a payload. The first read that fails makes all later ones fail; what they then
 * return is zero or empty. Texts point into the payload and have a NUL behind them.
 */
struct wire_reader {
	struct str rest;
	bool bad;
};

uint8_t wire_u8(struct wire_reader *r);
uint32_t wire_u32(struct wire_reader *r);
uint64_t wire_u64(struct wire_reader *r);
struct str wire_text(struct wire_reader *r);

/* A count of elements that take at least `least_bytes` each: 0 and a failure if they cannot fit. */
uint32_t wire_count(struct wire_reader *r, size_t least_bytes);

/* True if everything was read and nothing failed. */
bool wire_at_end(const struct wire_reader *r);

#endif

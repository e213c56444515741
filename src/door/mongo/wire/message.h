/*
 * Messages of MongoDB's wire protocol: a header of 16 bytes, and behind it what its operation code
 * says. All numbers are little-endian.
 *
 *     OP_MSG    flags · sections · [CRC-32C]     a command, or the answer to one
 *     OP_QUERY  flags · name · skip · return · document     only the hello of old drivers
 *     OP_REPLY  flags · cursor · from · count · documents   only the answer to that
 *
 * The functions here find where documents begin and end. They do not look into documents: whoever
 * reads one validates it before. Everything that they give lies in the message.
 *
 * Threading: none.
 */
#ifndef FROND_DOOR_MONGO_WIRE_MESSAGE_H
#define FROND_DOOR_MONGO_WIRE_MESSAGE_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

enum {
	WIRE_HEADER_BYTES = 16,
	WIRE_MESSAGE_BYTES = 48000000, /* of a message, its header included: maxMessageSizeBytes */
	WIRE_SEQUENCES = 2,            /* of documents, in one OP_MSG */
	WIRE_ERROR_BYTES = 256,
	WIRE_CHECKSUM_BYTES = 4,
	WIRE_DOCUMENT_BYTES_LEAST = 5,
};

enum wire_op {
	WIRE_OP_REPLY = 1,
	WIRE_OP_QUERY = 2004,
	WIRE_OP_COMPRESSED = 2012,
	WIRE_OP_MSG = 2013,
};

enum wire_flag {
	WIRE_CHECKSUM_PRESENT = 1 << 0,
	WIRE_MORE_TO_COME = 1 << 1,
	WIRE_EXHAUST_ALLOWED = 1 << 16,
};

/* Flags of an OP_REPLY. */
enum wire_reply_flag {
	WIRE_REPLY_QUERY_FAILURE = 1 << 1,
	WIRE_REPLY_AWAIT_CAPABLE = 1 << 3,
};

/* MongoDB's codes for messages that cannot be read. */
enum wire_code {
	WIRE_ILLEGAL_FLAG = 223,
	WIRE_TOO_MANY_SEQUENCES = 233,
	WIRE_CHECKSUM_MISMATCH = 288,
	WIRE_TWO_BODIES = 40430,
	WIRE_DUPLICATE_SEQUENCE = 40431,
	WIRE_UNKNOWN_SECTION = 40432,
	WIRE_NO_BODY = 40587,
	WIRE_INVALID_BSON = 22,
};

struct wire_header {
	uint32_t length; /* of the message, this header included */
	int32_t request_id;
	int32_t response_to;
	int32_t op;
};

/* Documents of a section of kind 1, one behind the other. */
struct wire_sequence {
	struct str name;
	struct str docs;
};

struct wire_msg {
	uint32_t flags;
	struct str body;
	struct wire_sequence sequences[WIRE_SEQUENCES];
	size_t count;
};

struct wire_query {
	uint32_t flags;
	struct str name; /* "admin.$cmd" */
	struct str body;
};

/* Why a message is refused: MongoDB's code and text. */
struct wire_error {
	int code;
	char text[WIRE_ERROR_BYTES];
};

/* ---- Numbers ---- */

static inline uint32_t
wire_u32(const void *p)
{
	const uint8_t *b = p;

	return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static inline void
wire_put_u32(void *p, uint32_t n)
{
	uint8_t *b = p;

	for (int i = 0; i < 4; i++)
		b[i] = (uint8_t)(n >> 8 * i);
}

/* ---- Reading ---- */

/* `in` has WIRE_HEADER_BYTES at least. */
struct wire_header wire_header_read(struct str in);

/*
 * Cuts a document off the beginning of `*rest`, by the length that it says itself. False: that
 * length cannot be.
 */
bool wire_document_cut(struct str *rest, struct str *ret);

/* A whole OP_MSG, header included. STATUS_INVALID: `error` says why. */
MUST_USE enum status wire_msg_read(struct str message, struct wire_msg *ret,
				   struct wire_error *error);

/* A whole OP_QUERY, header included. STATUS_INVALID. */
MUST_USE enum status wire_query_read(struct str message, struct wire_query *ret);

/* ---- Writing ---- */

/*
 * Begins a message behind what `out` has: the header, and what is in front of the document that the
 * caller then appends. Returns where the message begins, for wire_finish().
 */
size_t wire_begin_msg(struct buf *out, int32_t response_to, uint32_t flags);
size_t wire_begin_reply(struct buf *out, int32_t response_to, uint32_t flags);

/* Ends it: appends a checksum if its flags say so, and fills in its length and id. */
void wire_finish(struct buf *out, size_t from, int32_t request_id);

#endif

#include "door/mongo/wire/message.h"

#include <assert.h>
#include <stdio.h>

#include "door/mongo/wire/crc32c.h"

enum {
	KNOWN_FLAGS = WIRE_CHECKSUM_PRESENT | WIRE_MORE_TO_COME,
	REQUIRED_FLAGS = 0xffff, /* the others may be ignored by those who do not know them */
	SECTION_BODY = 0,
	SECTION_SEQUENCE = 1,
	FLAGS_BYTES = 4,
	QUERY_NUMBERS_BYTES = 8,
};

#define wire_fail(error, code_, ...)                                                               \
	({                                                                                         \
		(error)->code = (code_);                                                           \
		snprintf((error)->text, sizeof((error)->text), __VA_ARGS__);                       \
		STATUS_INVALID;                                                                    \
	})

struct wire_header
wire_header_read(struct str in)
{
	assert(in.len >= WIRE_HEADER_BYTES);
	return (struct wire_header){ .length = wire_u32(in.ptr),
				     .request_id = (int32_t)wire_u32(in.ptr + 4),
				     .response_to = (int32_t)wire_u32(in.ptr + 8),
				     .op = (int32_t)wire_u32(in.ptr + 12) };
}

bool
wire_document_cut(struct str *rest, struct str *ret)
{
	uint32_t len;

	if (rest->len < WIRE_DOCUMENT_BYTES_LEAST)
		return false;
	len = wire_u32(rest->ptr);
	if (len < WIRE_DOCUMENT_BYTES_LEAST || len > rest->len || rest->ptr[len - 1] != '\0')
		return false;
	*ret = str_of(rest->ptr, len);
	*rest = str_skip(*rest, len);
	return true;
}

/* Cuts a text that ends in NUL off the beginning of `*rest`. */
static bool
cut_cstring(struct str *rest, struct str *ret)
{
	const char *end = rest->len ? memchr(rest->ptr, '\0', rest->len) : NULL;

	if (!end)
		return false;
	*ret = str_of(rest->ptr, (size_t)(end - rest->ptr));
	*rest = str_skip(*rest, ret->len + 1);
	return true;
}

static enum status
bad_bson(struct wire_error *error)
{
	return wire_fail(error, WIRE_INVALID_BSON,
			 "a document of the message says a length that it cannot have");
}

static enum status
read_body(struct str *rest, struct wire_msg *ret, struct wire_error *error)
{
	if (ret->body.ptr)
		return wire_fail(error, WIRE_TWO_BODIES, "Multiple body sections in message");
	if (!wire_document_cut(rest, &ret->body))
		return bad_bson(error);
	return STATUS_OK;
}

static enum status
read_sequence(struct str *rest, struct wire_msg *ret, struct wire_error *error)
{
	struct wire_sequence seq;
	struct str in, doc;
	uint32_t len;

	if (ret->count == WIRE_SEQUENCES)
		return wire_fail(error, WIRE_TOO_MANY_SEQUENCES,
				 "Too many document sequences in OP_MSG");
	len = rest->len >= FLAGS_BYTES ? wire_u32(rest->ptr) : 0;
	if (len < FLAGS_BYTES || len > rest->len)
		return bad_bson(error);
	in = str_of(rest->ptr + FLAGS_BYTES, len - FLAGS_BYTES);
	*rest = str_skip(*rest, len);
	if (!cut_cstring(&in, &seq.name))
		return bad_bson(error);
	for (size_t i = 0; i < ret->count; i++)
		if (str_eq(ret->sequences[i].name, seq.name))
			return wire_fail(
				error, WIRE_DUPLICATE_SEQUENCE, "Duplicate document sequence: %.*s",
				(int)(seq.name.len < 100 ? seq.name.len : 100), seq.name.ptr);
	seq.docs = in;
	while (in.len)
		if (!wire_document_cut(&in, &doc))
			return bad_bson(error);
	ret->sequences[ret->count++] = seq;
	return STATUS_OK;
}

static enum status
check_flags(uint32_t flags, struct wire_error *error)
{
	char bits[33] = "";

	if (!(flags & REQUIRED_FLAGS & ~(uint32_t)KNOWN_FLAGS))
		return STATUS_OK;
	for (int i = 0; i < 32; i++)
		bits[i] = flags >> (31 - i) & 1 ? '1' : '0';
	return wire_fail(error, WIRE_ILLEGAL_FLAG, "Message contains illegal flags value: Ob%s",
			 bits);
}

static enum status
check_checksum(struct str message, struct wire_error *error)
{
	struct str covered = str_of(message.ptr, message.len - WIRE_CHECKSUM_BYTES);

	if (crc32c(0, covered) == wire_u32(covered.ptr + covered.len))
		return STATUS_OK;
	return wire_fail(error, WIRE_CHECKSUM_MISMATCH, "OP_MSG checksum does not match contents");
}

enum status
wire_msg_read(struct str message, struct wire_msg *ret, struct wire_error *error)
{
	struct str rest = str_skip(message, WIRE_HEADER_BYTES);

	*ret = (struct wire_msg){ 0 };
	if (rest.len < FLAGS_BYTES)
		return wire_fail(error, WIRE_NO_BODY, "OP_MSG messages must have a body");
	ret->flags = wire_u32(rest.ptr);
	rest = str_skip(rest, FLAGS_BYTES);
	TRY(check_flags(ret->flags, error));
	if (ret->flags & WIRE_CHECKSUM_PRESENT) {
		if (rest.len < WIRE_CHECKSUM_BYTES)
			return wire_fail(error, WIRE_NO_BODY, "OP_MSG messages must have a body");
		rest.len -= WIRE_CHECKSUM_BYTES;
		TRY(check_checksum(message, error));
	}
	while (rest.len) {
		uint8_t kind = (uint8_t)rest.ptr[0];

		rest = str_skip(rest, 1);
		if (kind == SECTION_BODY)
			TRY(read_body(&rest, ret, error));
		else if (kind == SECTION_SEQUENCE)
			TRY(read_sequence(&rest, ret, error));
		else
			return wire_fail(error, WIRE_UNKNOWN_SECTION, "Unknown section kind %u",
					 (unsigned)kind);
	}
	if (!ret->body.ptr)
		return wire_fail(error, WIRE_NO_BODY, "OP_MSG messages must have a body");
	return STATUS_OK;
}

enum status
wire_query_read(struct str message, struct wire_query *ret)
{
	struct str rest = str_skip(message, WIRE_HEADER_BYTES);

	if (rest.len < FLAGS_BYTES)
		return STATUS_INVALID;
	ret->flags = wire_u32(rest.ptr);
	rest = str_skip(rest, FLAGS_BYTES);
	if (!cut_cstring(&rest, &ret->name) || rest.len < QUERY_NUMBERS_BYTES)
		return STATUS_INVALID;
	rest = str_skip(rest, QUERY_NUMBERS_BYTES);
	return wire_document_cut(&rest, &ret->body) ? STATUS_OK : STATUS_INVALID;
}

/* ---- Writing ---- */

static void
append_u32(struct buf *out, uint32_t n)
{
	uint8_t bytes[4];

	wire_put_u32(bytes, n);
	buf_append(out, bytes, sizeof(bytes));
}

static size_t
begin(struct buf *out, int32_t response_to, enum wire_op op, uint32_t flags)
{
	size_t from = out->len;

	append_u32(out, 0);
	append_u32(out, 0);
	append_u32(out, (uint32_t)response_to);
	append_u32(out, op);
	append_u32(out, flags);
	return from;
}

size_t
wire_begin_msg(struct buf *out, int32_t response_to, uint32_t flags)
{
	size_t from = begin(out, response_to, WIRE_OP_MSG, flags);

	buf_append_byte(out, SECTION_BODY);
	return from;
}

size_t
wire_begin_reply(struct buf *out, int32_t response_to, uint32_t flags)
{
	size_t from = begin(out, response_to, WIRE_OP_REPLY, flags);

	for (int i = 0; i < 3; i++)
		append_u32(out, 0); /* cursor, and the number of documents before these */
	append_u32(out, 1);
	return from;
}

void
wire_finish(struct buf *out, size_t from, int32_t request_id)
{
	bool summed;
	size_t len;

	if (buf_status(out) != STATUS_OK)
		return;
	summed = wire_u32(out->ptr + from + 12) == WIRE_OP_MSG &&
		 wire_u32(out->ptr + from + WIRE_HEADER_BYTES) & WIRE_CHECKSUM_PRESENT;
	len = out->len - from + (summed ? WIRE_CHECKSUM_BYTES : 0);
	wire_put_u32(out->ptr + from, (uint32_t)len);
	wire_put_u32(out->ptr + from + 4, (uint32_t)request_id);
	if (summed)
		append_u32(out, crc32c(0, str_of(out->ptr + from, out->len - from)));
}

/*
 * Any bytes as messages of MongoDB's protocol: what is read of one lies inside it, its documents
 * follow each other without a gap, and a message that was compressed again comes back as it was.
 */
#include <stdlib.h>

#include "bson/bson.h"
#include "door/mongo/wire/compress.h"
#include "look.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	MOST_BYTES = 1024 * 1024,
};

static void
read_documents(struct str docs, struct str message)
{
	struct bson_element e;
	struct bson_iter i;
	struct str doc;

	while (docs.len) {
		if (!wire_document_cut(&docs, &doc))
			abort();
		expect_inside(doc, message);
		for (bson_iter_begin(&i, doc); bson_iter_read(&i, &e);)
			expect_inside(e.bytes, doc);
		(void)!bson_check(doc, NULL);
	}
}

static void
read_msg(struct str message)
{
	struct wire_error error = { 0 };
	struct wire_msg msg;

	if (wire_msg_read(message, &msg, &error) != STATUS_OK) {
		if (!error.code || !error.text[0])
			abort();
		return;
	}
	read_documents(msg.body, message);
	for (size_t i = 0; i < msg.count; i++) {
		expect_inside(msg.sequences[i].name, message);
		read_documents(msg.sequences[i].docs, message);
	}
}

/* Compresses the message by each compressor, and unpacks it. */
static void
pack_and_unpack(struct str message)
{
	for (int by = COMPRESSOR_SNAPPY; by < COMPRESSORS; by++) {
		struct buf packed = BUF_INIT(MOST_BYTES);
		struct buf plain = BUF_INIT(MOST_BYTES);
		enum compressor found;

		buf_append_str(&packed, message);
		wire_put_u32(packed.ptr, (uint32_t)packed.len);
		compress_pack(&packed, 0, (enum compressor)by);
		if (wire_header_read(buf_str(&packed)).op == WIRE_OP_COMPRESSED &&
		    packed.len < message.len) {
			if (compress_unpack(buf_str(&packed), MOST_BYTES, &plain, &found, NULL) !=
				    STATUS_OK ||
			    (int)found != by || plain.len != message.len ||
			    memcmp(plain.ptr + 4, message.ptr + 4, message.len - 4) != 0)
				abort();
		}
		buf_release(&packed);
		buf_release(&plain);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str message = str_of(data, size);
	struct buf plain = BUF_INIT(MOST_BYTES);
	struct wire_query query;
	enum compressor by;

	if (size < WIRE_HEADER_BYTES)
		return 0;
	switch (wire_header_read(message).op) {
	case WIRE_OP_COMPRESSED:
		if (compress_unpack(message, MOST_BYTES, &plain, &by, NULL) == STATUS_OK)
			read_msg(buf_str(&plain));
		break;
	case WIRE_OP_QUERY:
		if (wire_query_read(message, &query) == STATUS_OK)
			read_documents(query.body, message);
		break;
	default:
		read_msg(message);
		pack_and_unpack(message);
		break;
	}
	buf_release(&plain);
	return 0;
}

/*
 * Any bytes as bodies of Cassandra's protocol: the parameters of statements and batches that are
 * read lie inside them, and a body that was compressed comes back as it was.
 */
#include <stdlib.h>

#include "door/cql/wire/compress.h"
#include "door/cql/wire/params.h"
#include "look.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	MOST_BYTES = 1024 * 1024,
};

static void
expect_values(const struct params_value *values, size_t count, struct str body)
{
	for (size_t i = 0; i < count; i++) {
		expect_inside(values[i].name, body);
		expect_inside(values[i].bytes, body);
		if (values[i].kind != FRAME_BYTES_VALUE && values[i].bytes.len)
			abort();
	}
}

static void
read_params(struct str body, unsigned version, struct arena *arena)
{
	struct frame_in in = frame_in_of(body);
	struct err err = { 0 };
	struct params p;
	struct batch b;
	enum status status = params_read(&in, version, arena, &p, &err);

	if (status == STATUS_OK) {
		expect_values(p.values, p.value_count, body);
		expect_inside(p.paging_state, body);
		expect_inside(p.keyspace, body);
	} else if (status == STATUS_INVALID && !err.text[0]) {
		abort();
	}
	in = frame_in_of(body);
	if (batch_read(&in, version, arena, &b, &err) != STATUS_OK)
		return;
	for (size_t i = 0; i < b.count; i++) {
		expect_inside(b.statements[i].text, body);
		expect_values(b.statements[i].values, b.statements[i].value_count, body);
	}
}

/* Unpacks the bytes, if a compressor has made them, and packs and unpacks them. */
static void
pack_and_unpack(struct str body, enum cql_compressor by)
{
	struct buf plain = BUF_INIT(MOST_BYTES), frame = BUF_INIT(MOST_BYTES);
	size_t from, len;

	if (cql_body_length(by, body, &len) == STATUS_OK &&
	    cql_body_unpack(by, body, &plain) == STATUS_OK && plain.len != len)
		abort();
	buf_clear(&plain);
	from = frame_begin(&frame, 4, 0, FRAME_RESULT);
	buf_append_str(&frame, body);
	cql_body_pack(by, &frame, from);
	frame_end(&frame, from);
	if (frame_header_read(buf_str(&frame)).flags & FRAME_COMPRESSED) {
		if (cql_body_unpack(by, str_skip(buf_str(&frame), FRAME_HEADER_BYTES), &plain) !=
			    STATUS_OK ||
		    !str_eq(buf_str(&plain), body))
			abort();
	}
	buf_release(&plain);
	buf_release(&frame);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str body = str_of(data, size);
	struct arena *arena = arena_new(MOST_BYTES);

	if (!arena)
		return 0;
	for (unsigned version = FRAME_VERSION_LEAST; version <= FRAME_VERSION_MOST; version++)
		read_params(body, version, arena);
	pack_and_unpack(body, CQL_COMPRESSOR_LZ4);
	pack_and_unpack(body, CQL_COMPRESSOR_SNAPPY);
	arena_free(arena);
	return 0;
}

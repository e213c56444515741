/* Cassandra's protocol: frames, segments, compression, parameters, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "door/cql/wire/compress.h"
#include "door/cql/wire/error.h"
#include "door/cql/wire/params.h"
#include "door/cql/wire/segment.h"

enum {
	MOST_BYTES = 4 * 1024 * 1024,
	ARENA_BYTES = 1024 * 1024,
	LONG_BYTES = 300 * 1000, /* a frame of three segments */
};

static void
expect_bytes(struct str got, const void *want, size_t len)
{
	assert_int_equal(got.len, len);
	assert_memory_equal(got.ptr, want, len);
}

/* ---- Frames ---- */

static void
a_header_is_read_as_it_was_written(void **state)
{
	struct buf out = BUF_INIT(MOST_BYTES);
	size_t from = frame_begin(&out, 4, -2, FRAME_RESULT);
	struct frame_header h;

	(void)state;
	frame_put_i32(&out, 1);
	frame_set_flags(&out, from, FRAME_WARNING);
	frame_end(&out, from);
	h = frame_header_read(buf_str(&out));
	assert_int_equal(h.version, 4);
	assert_true(h.is_answer);
	assert_int_equal(h.flags, FRAME_WARNING);
	assert_int_equal(h.stream, -2);
	assert_int_equal(h.opcode, FRAME_RESULT);
	assert_int_equal(h.length, 4);
	buf_release(&out);
}

static void
what_is_not_there_reads_as_nothing_and_is_remembered(void **state)
{
	static const char bytes[] = "\0\5ab";
	struct frame_in in = frame_in_of(str_of(bytes, 4));
	struct str value;

	(void)state;
	assert_int_equal(frame_short(&in).len, 0);
	assert_true(in.bad);
	assert_int_equal(frame_i64(&in), 0);
	assert_int_equal(frame_u8(&in), 0);
	in = frame_in_of(str_of("\xff\xff\xff\xfe", 4));
	assert_int_equal(frame_value(&in, &value), FRAME_BYTES_UNSET);
	assert_false(in.bad);
	in = frame_in_of(str_of("\xff\xff\xff\xfd", 4));
	(void)frame_value(&in, &value);
	assert_true(in.bad);
}

/* ---- Segments ---- */

/* An OPTIONS of version 5, as it was seen on the wire. */
static const uint8_t options_segment[] = { 0x09, 0x00, 0x02, 0xa4, 0xc8, 0xc1, 0x04,
					   0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00,
					   0x00, 0x53, 0x92, 0x53, 0x5a };

static void
a_segment_has_the_checksums_of_the_protocol(void **state)
{
	struct buf out = BUF_INIT(MOST_BYTES);
	static const uint8_t frame[] = { 4, 0, 0, 0, 5, 0, 0, 0, 0 };

	(void)state;
	segment_write(&out, str_of(frame, sizeof(frame)), false);
	expect_bytes(buf_str(&out), options_segment, sizeof(options_segment));
	buf_release(&out);
}

/* Reads all segments, and returns how many they were. */
static size_t
read_segments(struct str in, bool compressed, struct buf *frames)
{
	size_t n = segment_header_bytes(compressed), count = 0;
	struct segment_header h;

	for (; in.len; count++) {
		assert_true(in.len >= n);
		assert_int_equal(segment_header_read(in, compressed, &h), STATUS_OK);
		in = str_skip(in, n);
		assert_true(in.len >= h.length + SEGMENT_TRAILER_BYTES);
		assert_int_equal(segment_payload_read(&h, in, frames), STATUS_OK);
		in = str_skip(in, h.length + SEGMENT_TRAILER_BYTES);
	}
	return count;
}

static void
append_frame(struct buf *out, size_t body, bool random)
{
	size_t from = frame_begin(out, 5, 1, FRAME_RESULT);
	uint32_t n = 1;

	for (size_t i = 0; i < body; i++) {
		n = n * 1664525 + 1013904223;
		buf_append_byte(out, random ? (uint8_t)(n >> 24) : (uint8_t)'a');
	}
	frame_end(out, from);
}

static void
frames_of_any_length_pass_through_segments(void **state)
{
	static const size_t bodies[] = { 0,     100,  LONG_BYTES, 3, SEGMENT_PAYLOAD_BYTES - 9,
					 70000, 70000 };
	struct buf frames = BUF_INIT(MOST_BYTES), segments = BUF_INIT(MOST_BYTES);
	struct buf back = BUF_INIT(MOST_BYTES);

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
		append_frame(&frames, bodies[i], i % 2);
	for (int compressed = 0; compressed < 2; compressed++) {
		buf_clear(&segments);
		buf_clear(&back);
		segment_write(&segments, buf_str(&frames), compressed);
		assert_int_equal(read_segments(buf_str(&segments), compressed, &back), 8);
		expect_bytes(buf_str(&back), frames.ptr, frames.len);
	}
	assert_true(segments.len < frames.len);
	buf_release(&frames);
	buf_release(&segments);
	buf_release(&back);
}

static void
each_byte_of_a_segment_that_changes_is_found(void **state)
{
	char bytes[sizeof(options_segment)];
	struct buf frames = BUF_INIT(MOST_BYTES);
	struct segment_header h;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		enum status status;

		memcpy(bytes, options_segment, sizeof(bytes));
		bytes[i] ^= 1;
		status = segment_header_read(str_of(bytes, 6), false, &h);
		if (status == STATUS_OK)
			status = segment_payload_read(&h, str_of(bytes + 6, sizeof(bytes) - 6),
						      &frames);
		assert_int_equal(status, STATUS_CORRUPT);
	}
	buf_release(&frames);
}

/* ---- Compression ---- */

static void
a_body_that_was_compressed_is_what_it_was(void **state)
{
	(void)state;
	for (int by = CQL_COMPRESSOR_LZ4; by <= CQL_COMPRESSOR_SNAPPY; by++) {
		struct buf out = BUF_INIT(MOST_BYTES), back = BUF_INIT(MOST_BYTES);
		struct frame_header h;
		size_t len;
		struct str body;

		append_frame(&out, LONG_BYTES, false);
		cql_body_pack((enum cql_compressor)by, &out, 0);
		frame_end(&out, 0);
		h = frame_header_read(buf_str(&out));
		assert_int_equal(h.flags, FRAME_COMPRESSED);
		assert_true(h.length < LONG_BYTES / 2);
		body = str_skip(buf_str(&out), FRAME_HEADER_BYTES);
		assert_int_equal(cql_body_length((enum cql_compressor)by, body, &len), STATUS_OK);
		assert_int_equal(len, LONG_BYTES);
		assert_int_equal(cql_body_unpack((enum cql_compressor)by, body, &back), STATUS_OK);
		assert_int_equal(back.len, LONG_BYTES);
		for (size_t i = 0; i < back.len; i++)
			assert_int_equal(back.ptr[i], 'a');
		/* One that lies about its length is none. */
		out.ptr[FRAME_HEADER_BYTES + 3] ^= 1;
		buf_clear(&back);
		assert_int_not_equal(cql_body_unpack((enum cql_compressor)by,
						     str_skip(buf_str(&out), FRAME_HEADER_BYTES),
						     &back),
				     STATUS_OK);
		buf_release(&out);
		buf_release(&back);
	}
}

static void
a_short_body_goes_as_it_is(void **state)
{
	struct buf out = BUF_INIT(MOST_BYTES);

	(void)state;
	append_frame(&out, 8, true);
	cql_body_pack(CQL_COMPRESSOR_LZ4, &out, 0);
	frame_end(&out, 0);
	assert_int_equal(frame_header_read(buf_str(&out)).flags, 0);
	assert_int_equal(out.len, FRAME_HEADER_BYTES + 8);
	buf_release(&out);
}

/* ---- Parameters ---- */

static void
parameters_are_read_with_all_that_flags_say(void **state)
{
	static const char body[] = "\0\1" /* ONE */
				   "\x7d"
				   "\0\2\0\1a\0\0\0\2xy\0\1b\xff\xff\xff\xff"
				   "\0\0\0\5"
				   "\0\0\0\3abc"
				   "\0\x08"
				   "\0\0\0\0\0\0\0\7";
	struct arena *arena = arena_new(ARENA_BYTES);
	struct frame_in in = frame_in_of(str_of(body, sizeof(body) - 1));
	struct params p;
	struct err err;

	(void)state;
	assert_int_equal(params_read(&in, 4, arena, &p, &err), STATUS_OK);
	assert_int_equal(in.rest.len, 0);
	assert_int_equal(p.consistency, PARAMS_ONE);
	assert_int_equal(p.value_count, 2);
	assert_true(str_eq(p.values[0].name, STR("a")));
	assert_true(str_eq(p.values[0].bytes, STR("xy")));
	assert_int_equal(p.values[1].kind, FRAME_BYTES_NULL);
	assert_int_equal(p.page_size, 5);
	assert_true(str_eq(p.paging_state, STR("abc")));
	assert_int_equal(p.serial_consistency, PARAMS_SERIAL);
	assert_int_equal(p.timestamp, 7);
	/* Cut anywhere, they are refused. */
	for (size_t n = 0; n < sizeof(body) - 1; n++) {
		in = frame_in_of(str_of(body, n));
		assert_int_equal(params_read(&in, 4, arena, &p, &err), STATUS_INVALID);
	}
	arena_free(arena);
}

static void
a_level_that_is_none_is_refused(void **state)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	struct frame_in in = frame_in_of(str_of("\0\x0b\0", 3));
	struct params p;
	struct err err;

	(void)state;
	assert_int_equal(params_read(&in, 4, arena, &p, &err), STATUS_INVALID);
	assert_string_equal(err.text, "Unknown code 11 for a consistency level");
	arena_free(arena);
}

static void
a_batch_is_read_statement_by_statement(void **state)
{
	static const char body[] = "\1\0\2"
				   "\0\0\0\0\1A\0\0"
				   "\1\0\2id\0\1\0\0\0\1v"
				   "\0\6\0";
	struct arena *arena = arena_new(ARENA_BYTES);
	struct frame_in in = frame_in_of(str_of(body, sizeof(body) - 1));
	struct batch b;
	struct err err;

	(void)state;
	assert_int_equal(batch_read(&in, 4, arena, &b, &err), STATUS_OK);
	assert_int_equal(b.type, BATCH_UNLOGGED);
	assert_int_equal(b.count, 2);
	assert_false(b.statements[0].is_prepared);
	assert_true(str_eq(b.statements[0].text, STR("A")));
	assert_true(b.statements[1].is_prepared);
	assert_true(str_eq(b.statements[1].text, STR("id")));
	assert_int_equal(b.statements[1].value_count, 1);
	for (size_t n = 0; n < sizeof(body) - 1; n++) {
		in = frame_in_of(str_of(body, n));
		assert_int_equal(batch_read(&in, 4, arena, &b, &err), STATUS_INVALID);
	}
	arena_free(arena);
}

/* ---- Errors ---- */

static void
an_error_has_behind_its_text_what_its_code_wants(void **state)
{
	const struct error_more more = { .consistency = PARAMS_QUORUM,
					 .write = ERROR_WRITE_CAS,
					 .keyspace = STR("ks"),
					 .table = STR("t"),
					 .id = STR("id") };
	struct buf out = BUF_INIT(MOST_BYTES);

	(void)state;
	error_put(&out, CQL_CODE_WRITE_TIMEOUT, STR("x"), &more);
	expect_bytes(buf_str(&out), "\0\0\x11\0\0\1x\0\4\0\0\0\0\0\0\0\1\0\3CAS", 22);
	buf_clear(&out);
	error_put(&out, CQL_CODE_EXISTS, STR(""), &more);
	expect_bytes(buf_str(&out), "\0\0\x24\0\0\0\0\2ks\0\1t", 13);
	buf_clear(&out);
	error_put(&out, CQL_CODE_UNPREPARED, STR(""), &more);
	expect_bytes(buf_str(&out), "\0\0\x25\0\0\0\0\2id", 10);
	buf_clear(&out);
	error_put(&out, CQL_CODE_SYNTAX,
		  STR("a\xff"
		      "b"),
		  &more);
	expect_bytes(buf_str(&out), "\0\0\x20\0\0\2ab", 8);
	buf_release(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_is_read_as_it_was_written),
		cmocka_unit_test(what_is_not_there_reads_as_nothing_and_is_remembered),
		cmocka_unit_test(a_segment_has_the_checksums_of_the_protocol),
		cmocka_unit_test(frames_of_any_length_pass_through_segments),
		cmocka_unit_test(each_byte_of_a_segment_that_changes_is_found),
		cmocka_unit_test(a_body_that_was_compressed_is_what_it_was),
		cmocka_unit_test(a_short_body_goes_as_it_is),
		cmocka_unit_test(parameters_are_read_with_all_that_flags_say),
		cmocka_unit_test(a_level_that_is_none_is_refused),
		cmocka_unit_test(a_batch_is_read_statement_by_statement),
		cmocka_unit_test(an_error_has_behind_its_text_what_its_code_wants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

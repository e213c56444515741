/* Values, files and payloads of RDB: what Redis writes, in all its forms, and what is damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rdb/crc64.h"
#include "rdb/rdb.h"

enum {
	ARENA_BYTES = 1024 * 1024,
	TEXT_BYTES = 64 * 1024,
};

static struct arena *arena;

static int
setup(void **state)
{
	(void)state;
	arena = arena_new(ARENA_BYTES);
	return arena ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	arena_free(arena);
	return 0;
}

/* A part as text: "name", "name=value", "name:score", … */
static void
part_write(const struct rdb_value *v, const struct rdb_part *p, struct buf *out)
{
	/* Nothing of what came before it. */
	assert_true(p->kind == RDB_PART_ENTRY || !p->count);
	switch (p->kind) {
	case RDB_PART_ELEMENT:
		buf_append_str(out, p->name);
		if (v->type == RDB_HASH)
			buf_printf(out, "=%.*s", STR_ARG(p->value));
		if (v->type == RDB_ZSET)
			buf_printf(out, ":%g", p->score);
		if (p->expires_ms)
			buf_printf(out, "@%llu", (unsigned long long)p->expires_ms);
		break;
	case RDB_PART_ENTRY:
		buf_printf(out, "%llu-%llu", (unsigned long long)p->id.ms,
			   (unsigned long long)p->id.seq);
		for (size_t i = 0; i < p->count; i++)
			buf_printf(out, "/%.*s", STR_ARG(p->fields[i]));
		break;
	case RDB_PART_STREAM:
		buf_printf(out, "last %llu-%llu deleted %llu-%llu added %llu",
			   (unsigned long long)p->id.ms, (unsigned long long)p->id.seq,
			   (unsigned long long)p->deleted.ms, (unsigned long long)p->deleted.seq,
			   (unsigned long long)p->added);
		break;
	case RDB_PART_GROUP:
		buf_printf(out, "group %.*s %llu-%llu read %lld", STR_ARG(p->name),
			   (unsigned long long)p->id.ms, (unsigned long long)p->id.seq,
			   (long long)p->read);
		break;
	case RDB_PART_CONSUMER:
		buf_printf(out, "%.*s.%.*s", STR_ARG(p->group), STR_ARG(p->name));
		break;
	case RDB_PART_PENDING:
		buf_printf(out, "%.*s.%.*s %llu-%llu x%llu", STR_ARG(p->group), STR_ARG(p->name),
			   (unsigned long long)p->id.ms, (unsigned long long)p->id.seq,
			   (unsigned long long)p->times);
		break;
	}
}

/* Reads a value, whose type's code comes first. */
static enum status
value_read(struct str bytes, struct buf *out, struct err *err)
{
	struct rdb_input in = { .rest = str_skip(bytes, 1), .arena = arena, .err = err };
	struct rdb_part part;
	struct rdb_value v;
	enum status status;

	arena_clear(arena);
	TRY(rdb_value_begin(&in, (uint8_t)bytes.ptr[0], &v));
	while ((status = rdb_value_next(&v, &part)) == STATUS_OK) {
		if (out->len)
			buf_append_byte(out, ' ');
		part_write(&v, &part, out);
	}
	if (status == STATUS_NOT_FOUND && in.rest.len)
		return STATUS_INVALID;
	return status;
}

static void
expect_parts(struct str bytes, const char *text)
{
	struct buf out = BUF_INIT(TEXT_BYTES);
	struct err err = { 0 };

	assert_int_equal(value_read(bytes, &out, &err), STATUS_NOT_FOUND);
	buf_append_byte(&out, '\0');
	assert_string_equal(out.ptr, text);
	buf_release(&out);
}

/* All that is shorter is none, whatever is cut off, and says why. */
static void
expect_each_cut_is_refused(struct str bytes)
{
	for (size_t len = 1; len < bytes.len; len++) {
		struct buf out = BUF_INIT(TEXT_BYTES);
		struct err err = { 0 };

		assert_int_equal(value_read(str_of(bytes.ptr, len), &out, &err), STATUS_INVALID);
		assert_true(err.text[0]);
		buf_release(&out);
	}
}

static void
checksums_are_those_of_redis(void **state)
{
	(void)state;
	assert_true(rdb_crc64(0, STR("123456789")) == UINT64_C(0xe9c6d914c4b8d9ca));
	assert_true(rdb_crc64(rdb_crc64(0, STR("1234")), STR("56789")) ==
		    UINT64_C(0xe9c6d914c4b8d9ca));
	assert_true(rdb_crc64(0, STR("")) == 0);
}

static void
strings_have_several_forms(void **state)
{
	(void)state;
	expect_parts(STR("\x00\x05hello"), "hello");
	expect_parts(STR("\x00\x00"), "");
	expect_parts(STR("\x00\x40\x03"
			 "abc"),
		     "abc");
	expect_parts(STR("\x00\x80\x00\x00\x00\x02hi"), "hi");
	expect_parts(STR("\x00\x81\x00\x00\x00\x00\x00\x00\x00\x02hi"), "hi");
	expect_parts(STR("\x00\xc0\xff"), "-1");
	expect_parts(STR("\x00\xc1\x00\x80"), "-32768");
	expect_parts(STR("\x00\xc2\xff\xff\xff\x7f"), "2147483647");
	/* "ab", and eight bytes from two before. */
	expect_parts(STR("\x00\xc3\x05\x0a\x01"
			 "ab\xc0\x01"),
		     "ababababab");
	expect_each_cut_is_refused(STR("\x00\xc3\x05\x0a\x01"
				       "ab\xc0\x01"));
}

static void
what_is_compressed_cannot_become_anything(void **state)
{
	struct buf out = BUF_INIT(TEXT_BYTES);
	struct err err = { 0 };

	(void)state;
	/* From before its beginning; more than it says; less than it says; far more than can be. */
	assert_int_equal(value_read(STR("\x00\xc3\x05\x0a\x01"
					"ab\xc0\x02"),
				    &out, &err),
			 STATUS_INVALID);
	assert_int_equal(value_read(STR("\x00\xc3\x05\x09\x01"
					"ab\xc0\x01"),
				    &out, &err),
			 STATUS_INVALID);
	assert_int_equal(value_read(STR("\x00\xc3\x05\x0b\x01"
					"ab\xc0\x01"),
				    &out, &err),
			 STATUS_INVALID);
	assert_int_equal(value_read(STR("\x00\xc3\x05\x80\x20\x00\x00\x00\x01"
					"ab\xc0\x01"),
				    &out, &err),
			 STATUS_INVALID);
	buf_release(&out);
}

static void
collections_have_several_forms(void **state)
{
	(void)state;
	expect_parts(STR("\x01\x02\x01"
			 "a\xc0\x05"),
		     "a 5");
	expect_parts(STR("\x04\x01\x01"
			 "f\x01v"),
		     "f=v");
	expect_parts(STR("\x03\x03\x01"
			 "a\x03"
			 "1.5\x01"
			 "b\xfe\x01"
			 "c\xff"),
		     "a:1.5 b:inf c:-inf");
	expect_parts(STR("\x05\x01\x01"
			 "a\x00\x00\x00\x00\x00\x00\xf8\x3f"),
		     "a:1.5");
	/* A zipmap; "v" has two bytes to spare. */
	expect_parts(STR("\x09\x09\x01\x01"
			 "f\x01\x02v..\xff"),
		     "f=v");
	/* An intset of two bytes each. */
	expect_parts(STR("\x0b\x0c\x02\x00\x00\x00\x02\x00\x00\x00\xfe\xff\x07\x00"), "-2 7");
	/* A ziplist: a text, numbers of each form. */
	expect_parts(STR("\x0a\x24\x24\x00\x00\x00\x1d\x00\x00\x00\x07\x00"
			 "\x00\x01"
			 "a\x03\xf1\x02\xfd\x02\xfe\x80\x03\xc0\x00\x80\x04\xf0\x00\x00\x80"
			 "\x05\xd0\x00\x00\x00\x80\xff"),
		     "a 0 12 -128 -32768 -8388608 -2147483648");
	/* Nodes of a list: packed, and one element alone. */
	expect_parts(STR("\x12\x02\x02\x0a\x0a\x00\x00\x00\x01\x00\x81"
			 "a\x02\xff\x01\x01"
			 "b"),
		     "a b");
	/* Fields that expire: at 1000, and not at all. */
	expect_parts(STR("\x18\xe8\x03\x00\x00\x00\x00\x00\x00\x02\x01\x01"
			 "f\x01v\x00\x01g\x01w"),
		     "f=v@1000 g=w");
}

static void
listpacks_have_numbers_of_each_size(void **state)
{
	struct buf node = BUF_INIT(TEXT_BYTES), value = BUF_INIT(TEXT_BYTES);
	static const int64_t numbers[] = { 0,         127,       128,       -1,        INT16_MIN,
					   INT16_MAX, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX };

	(void)state;
	rdb_listpack_begin(&node);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		rdb_listpack_number(&node, numbers[i]);
	rdb_listpack_end(&node, sizeof(numbers) / sizeof(*numbers));
	buf_append_byte(&value, 20);
	rdb_put_string(&value, buf_str(&node));
	expect_parts(buf_str(&value),
		     "0 127 128 -1 -32768 32767 -2147483648 2147483647 -9223372036854775808 "
		     "9223372036854775807");
	/* What Redis writes and frond does not: 13 and 24 bits. */
	expect_parts(STR("\x14\x0f\x0f\x00\x00\x00\x02\x00\xdf\xff\x02\xf2\x00\x00\x80\x04\xff"),
		     "-1 -8388608");
	buf_release(&node);
	buf_release(&value);
}

/* Texts around the lengths at which the form of an entry changes, and what stands behind it. */
static void
listpacks_have_texts_of_each_length(void **state)
{
	static const size_t lengths[] = { 0,    63,    64,    125,   126,  4095,
					  4096, 16377, 16378, 16379, 20000 };
	static char text[20000];

	(void)state;
	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct buf node = BUF_INIT(TEXT_BYTES);
		struct rdb_entry entry;
		struct rdb_pack pack;

		rdb_listpack_begin(&node);
		rdb_listpack_text(&node, str_of(text, lengths[i]));
		rdb_listpack_number(&node, 5);
		rdb_listpack_end(&node, 2);
		assert_int_equal(rdb_pack_begin(RDB_LISTPACK, buf_str(&node), &pack), STATUS_OK);
		assert_int_equal(rdb_pack_next(&pack, &entry), STATUS_OK);
		assert_int_equal(entry.text.len, lengths[i]);
		assert_int_equal(rdb_pack_next(&pack, &entry), STATUS_OK);
		assert_int_equal(entry.number, 5);
		assert_int_equal(rdb_pack_next(&pack, &entry), STATUS_NOT_FOUND);
		buf_release(&node);
	}
}

/* A stream of two entries, each before a deleted one, a group, two consumers, two pending. */
static void
stream_write(struct buf *out)
{
	struct buf node = BUF_INIT(TEXT_BYTES);

	rdb_listpack_begin(&node);
	rdb_listpack_number(&node, 2); /* entries, deleted ones, fields, their names, 0 */
	rdb_listpack_number(&node, 2);
	rdb_listpack_number(&node, 1);
	rdb_listpack_text(&node, STR("f"));
	rdb_listpack_number(&node, 0);
	for (int64_t i = 0; i < 4; i++) {
		rdb_listpack_number(&node, i % 2 ? 3 : 2); /* each other one is deleted */
		rdb_listpack_number(&node, i);
		rdb_listpack_number(&node, 0);
		rdb_listpack_number(&node, 10 + i);
		rdb_listpack_number(&node, 4);
	}
	rdb_listpack_end(&node, 25);
	buf_append_byte(out, RDB_CODE_STREAM);
	rdb_put_length(out, 1);
	rdb_put_length(out, 16);
	rdb_put_id(out, (struct rdb_id){ 5, 1 });
	rdb_put_string(out, buf_str(&node));
	for (uint64_t i = 0; i < 8; i++) /* 2, 9-1, 5-1, 6-1, 3 */
		rdb_put_length(out, (const uint64_t[]){ 2, 9, 1, 5, 1, 6, 1, 3 }[i]);
	rdb_put_length(out, 1);
	rdb_put_string(out, STR("g"));
	rdb_put_length(out, 7);
	rdb_put_length(out, 1);
	rdb_put_length(out, UINT64_MAX); /* nobody knows how many it has read */
	rdb_put_length(out, 2);
	for (uint64_t i = 0; i < 2; i++) {
		rdb_put_id(out, (struct rdb_id){ 5 + 2 * i, 1 });
		rdb_put_number(out, 8, 1000);
		rdb_put_length(out, i + 1);
	}
	rdb_put_length(out, 2);
	for (uint64_t i = 0; i < 2; i++) {
		rdb_put_string(out, i ? STR("bob") : STR("ann"));
		rdb_put_number(out, 8, 2000);
		rdb_put_length(out, 1);
		rdb_put_id(out, (struct rdb_id){ 7 - 2 * i, 1 });
	}
	buf_release(&node);
}

static void
streams_come_with_their_groups(void **state)
{
	struct buf out = BUF_INIT(TEXT_BYTES);

	(void)state;
	stream_write(&out);
	expect_parts(buf_str(&out), "5-1/f/10 7-1/f/12 last 9-1 deleted 6-1 added 3 "
				    "group g 7-1 read -1 g.ann g.ann 7-1 x2 g.bob g.bob 5-1 x1");
	expect_each_cut_is_refused(buf_str(&out));
	buf_release(&out);
}

/* Whatever byte is another one, reading ends, and within what there is. */
static void
damaged_streams_end(void **state)
{
	struct buf out = BUF_INIT(TEXT_BYTES), text = BUF_INIT(TEXT_BYTES);

	(void)state;
	stream_write(&out);
	for (size_t i = 1; i < out.len; i++)
		for (int change = 1; change < 256; change += 7) {
			struct err err = { 0 };
			enum status status;

			out.ptr[i] = (char)(out.ptr[i] ^ change);
			buf_clear(&text);
			status = value_read(buf_str(&out), &text, &err);
			assert_true(status == STATUS_NOT_FOUND || status == STATUS_INVALID);
			out.ptr[i] = (char)(out.ptr[i] ^ change);
		}
	buf_release(&out);
	buf_release(&text);
}

static void
what_is_pending_belongs_to_somebody(void **state)
{
	struct buf out = BUF_INIT(TEXT_BYTES), text = BUF_INIT(TEXT_BYTES);
	struct err err = { 0 };

	(void)state;
	stream_write(&out);
	/* Both consumers have the same entry: the last byte of the last id but one. */
	out.ptr[out.len - 9] = 7;
	assert_int_equal(value_read(buf_str(&out), &text, &err), STATUS_INVALID);
	assert_string_equal(err.text, "an entry is pending for a consumer, and not in its group");
	buf_release(&out);
	buf_release(&text);
}

static void
payloads_end_in_a_version_and_a_checksum(void **state)
{
	struct buf out = BUF_INIT(TEXT_BYTES);
	struct str value;

	(void)state;
	buf_append_cstr(&out, "noise");
	buf_append(&out, "\x00\x03", 2);
	buf_append_cstr(&out, "abc");
	rdb_put_footer(&out, 5, RDB_VERSION);
	assert_true(rdb_payload_is_sound(str_skip(buf_str(&out), 5), &value));
	assert_int_equal(value.len, 5);
	for (size_t i = 5; i < out.len; i++) {
		out.ptr[i] ^= 1;
		assert_false(rdb_payload_is_sound(str_skip(buf_str(&out), 5), &value));
		out.ptr[i] ^= 1;
	}
	assert_false(rdb_payload_is_sound(STR(""), &value));
	out.len = 5;
	buf_append(&out, "\x00\x00", 2);
	rdb_put_footer(&out, 5, RDB_VERSION_FIELDS + 1);
	assert_false(rdb_payload_is_sound(str_skip(buf_str(&out), 5), &value));
	buf_release(&out);
}

/* ---- Files ---- */

#define FILE_BODY                                                                                  \
	"REDIS0010\xfa\x09redis-ver\x06"                                                           \
	"7.0.15\xfe\x02\xfb\x02\x01\xfc\xe8\x03\x00\x00\x00\x00\x00\x00\x00\x01k\x01v\xf5\x03lib"  \
	"\xf8\x05\x00\x01n\xc0\x07\xff"

/* The keys as text; NULL: it is refused, and why is in `err`. */
static enum status
file_read(struct str file, struct buf *out, struct err *err)
{
	struct rdb_file_entry entry;
	struct rdb_file f;
	enum status status;

	arena_clear(arena);
	TRY(rdb_file_begin(file, arena, err, &f));
	while ((status = rdb_file_next(&f, &entry)) == STATUS_OK) {
		struct rdb_part part;
		struct rdb_value v;

		if (entry.kind != RDB_FILE_KEY) {
			buf_append_cstr(out, "other ");
			continue;
		}
		TRY(rdb_value_begin(&f.in, entry.code, &v));
		TRY(rdb_value_next(&v, &part));
		buf_printf(out, "%llu:%.*s=%.*s@%llu ", (unsigned long long)entry.db,
			   STR_ARG(entry.key), STR_ARG(part.name),
			   (unsigned long long)entry.expires_ms);
	}
	return status;
}

static void
files_have_databases_and_expiry(void **state)
{
	struct buf file = BUF_INIT(TEXT_BYTES), out = BUF_INIT(TEXT_BYTES);
	struct err err = { 0 };

	(void)state;
	buf_append_str(&file, STR(FILE_BODY));
	rdb_put_number(&file, 8, rdb_crc64(0, buf_str(&file)));
	assert_int_equal(file_read(buf_str(&file), &out, &err), STATUS_NOT_FOUND);
	buf_append_byte(&out, '\0');
	assert_string_equal(out.ptr, "2:k=v@1000 other 2:n=7@0 ");
	/* Any byte that is another one is found, by the checksum or by the file's beginning. */
	for (size_t i = 0; i < file.len; i++) {
		enum status status;

		file.ptr[i] ^= 1;
		status = file_read(buf_str(&file), &out, &err);
		assert_true(status == STATUS_CORRUPT || status == STATUS_INVALID ||
			    status == STATUS_NEWER);
		file.ptr[i] ^= 1;
	}
	/* Redis may have been told to write none. */
	memset(file.ptr + file.len - 8, 0, 8);
	assert_int_equal(file_read(buf_str(&file), &out, &err), STATUS_NOT_FOUND);
	buf_release(&file);
	buf_release(&out);
}

static void
files_of_unknown_versions_are_refused(void **state)
{
	struct buf out = BUF_INIT(TEXT_BYTES);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(file_read(STR("REDIS0003\x00\x01k\x01v\xff"), &out, &err),
			 STATUS_NOT_FOUND);
	assert_int_equal(file_read(STR("REDIS0013\xff........"), &out, &err), STATUS_NEWER);
	assert_int_equal(file_read(STR("REDIS"), &out, &err), STATUS_INVALID);
	assert_int_equal(file_read(STR("VALKEY080\xff........"), &out, &err), STATUS_INVALID);
	assert_int_equal(file_read(STR(""), &out, &err), STATUS_INVALID);
	buf_release(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksums_are_those_of_redis),
		cmocka_unit_test(strings_have_several_forms),
		cmocka_unit_test(what_is_compressed_cannot_become_anything),
		cmocka_unit_test(collections_have_several_forms),
		cmocka_unit_test(listpacks_have_numbers_of_each_size),
		cmocka_unit_test(listpacks_have_texts_of_each_length),
		cmocka_unit_test(streams_come_with_their_groups),
		cmocka_unit_test(damaged_streams_end),
		cmocka_unit_test(what_is_pending_belongs_to_somebody),
		cmocka_unit_test(payloads_end_in_a_version_and_a_checksum),
		cmocka_unit_test(files_have_databases_and_expiry),
		cmocka_unit_test(files_of_unknown_versions_are_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

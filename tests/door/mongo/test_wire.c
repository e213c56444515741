/* Messages of MongoDB's protocol, their checksums, compression, and what roles allow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "door/mongo/txn/command.h"
#include "door/mongo/txn/rights.h"
#include "door/mongo/wire/compress.h"
#include "door/mongo/wire/crc32c.h"

enum {
	MOST_BYTES = 4 * 1024 * 1024,
	ARENA_BYTES = 64 * 1024,
};

#define EMPTY STR("\x05\0\0\0") /* a document, with the literal's own NUL */

static void
put_section(struct buf *b, uint8_t kind, struct str bytes)
{
	buf_append_byte(b, kind);
	buf_append_str(b, bytes);
}

static struct str
empty_document(void)
{
	return str_of(EMPTY.ptr, EMPTY.len + 1);
}

/* A header and flags; the length follows in finish(). */
static void
begin(struct buf *b, uint32_t flags)
{
	static const char header[16] = { 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, (char)0xdd, 7, 0, 0 };
	char text[4];

	buf_append(b, header, sizeof(header));
	wire_put_u32(text, flags);
	buf_append(b, text, sizeof(text));
}

static void
put_sequence(struct buf *b, const char *name, size_t docs)
{
	char len[4];

	wire_put_u32(len, (uint32_t)(4 + strlen(name) + 1 + docs * 5));
	put_section(b, 1, str_of(len, 4));
	buf_append(b, name, strlen(name) + 1);
	for (size_t i = 0; i < docs; i++)
		buf_append_str(b, empty_document());
}

static void
expect_refusal(struct buf *b, int code, const char *text)
{
	struct wire_error error = { 0 };
	struct wire_msg msg;

	wire_put_u32(b->ptr, (uint32_t)b->len);
	assert_int_equal(wire_msg_read(buf_str(b), &msg, &error), STATUS_INVALID);
	assert_int_equal(error.code, code);
	assert_string_equal(error.text, text);
	buf_release(b);
}

static void
the_checksum_is_that_of_the_standard(void **state)
{
	(void)state;
	assert_int_equal(crc32c(0, STR("123456789")), 0xe3069283);
	assert_int_equal(crc32c(crc32c(0, STR("1234")), STR("56789")), 0xe3069283);
	assert_int_equal(crc32c(0, STR("")), 0);
}

static void
a_message_with_sequences_is_read_in_any_order(void **state)
{
	(void)state;
	for (int body_first = 0; body_first < 2; body_first++) {
		struct buf b = BUF_INIT(MOST_BYTES);
		struct wire_error error;
		struct wire_msg msg;

		begin(&b, WIRE_MORE_TO_COME | WIRE_EXHAUST_ALLOWED);
		if (body_first)
			put_section(&b, 0, empty_document());
		put_sequence(&b, "documents", 3);
		put_sequence(&b, "more", 0);
		if (!body_first)
			put_section(&b, 0, empty_document());
		assert_int_equal(wire_msg_read(buf_str(&b), &msg, &error), STATUS_OK);
		assert_int_equal(msg.body.len, 5);
		assert_int_equal(msg.count, 2);
		assert_true(str_eq(msg.sequences[0].name, STR("documents")));
		assert_int_equal(msg.sequences[0].docs.len, 15);
		assert_int_equal(msg.sequences[1].docs.len, 0);
		assert_true(msg.flags & WIRE_EXHAUST_ALLOWED);
		buf_release(&b);
	}
}

static void
what_is_no_message_is_refused_with_the_code_of_mongodb(void **state)
{
	struct buf b = BUF_INIT(MOST_BYTES);

	(void)state;
	begin(&b, 0);
	expect_refusal(&b, 40587, "OP_MSG messages must have a body");
	begin(&b, 1 << 4);
	expect_refusal(&b, 223,
		       "Message contains illegal flags value: Ob00000000000000000000000000010000");
	begin(&b, 0);
	put_section(&b, 0, empty_document());
	put_section(&b, 0, empty_document());
	expect_refusal(&b, 40430, "Multiple body sections in message");
	begin(&b, 0);
	put_section(&b, 2, STR("x"));
	expect_refusal(&b, 40432, "Unknown section kind 2");
	begin(&b, 0);
	put_sequence(&b, "a", 1);
	put_sequence(&b, "a", 1);
	expect_refusal(&b, 40431, "Duplicate document sequence: a");
	begin(&b, 0);
	put_sequence(&b, "a", 1);
	put_sequence(&b, "b", 1);
	put_sequence(&b, "c", 1);
	expect_refusal(&b, 233, "Too many document sequences in OP_MSG");
	begin(&b, 0);
	put_section(&b, 0, STR("\x06\0\0\0\0"));
	expect_refusal(&b, 22, "a document of the message says a length that it cannot have");
	begin(&b, WIRE_CHECKSUM_PRESENT);
	put_section(&b, 0, empty_document());
	buf_append_cstr(&b, "abcd");
	expect_refusal(&b, 288, "OP_MSG checksum does not match contents");
}

static void
an_answer_is_read_with_its_checksum(void **state)
{
	struct buf b = BUF_INIT(MOST_BYTES);
	struct wire_header header;
	struct wire_error error;
	struct wire_msg msg;
	size_t from;

	(void)state;
	buf_append_cstr(&b, "before");
	from = wire_begin_msg(&b, 41, WIRE_CHECKSUM_PRESENT);
	buf_append_str(&b, empty_document());
	wire_finish(&b, from, 42);
	header = wire_header_read(str_skip(buf_str(&b), from));
	assert_int_equal(header.length, b.len - from);
	assert_int_equal(header.request_id, 42);
	assert_int_equal(header.response_to, 41);
	assert_int_equal(wire_msg_read(str_skip(buf_str(&b), from), &msg, &error), STATUS_OK);
	b.ptr[from + 21] ^= 1;
	assert_int_equal(wire_msg_read(str_skip(buf_str(&b), from), &msg, &error), STATUS_INVALID);
	buf_release(&b);
}

static void
a_message_comes_out_of_each_compressor_as_it_went_in(void **state)
{
	(void)state;
	for (int by = COMPRESSOR_SNAPPY; by < COMPRESSORS; by++) {
		struct buf b = BUF_INIT(MOST_BYTES);
		struct buf plain = BUF_INIT(MOST_BYTES);
		enum compressor found;
		size_t from, len;

		buf_append_cstr(&b, "before");
		from = wire_begin_msg(&b, 1, 0);
		for (int i = 0; i < 200000; i++)
			buf_append_byte(&b, (uint8_t)(i % 100));
		wire_finish(&b, from, 2);
		len = b.len - from;
		compress_pack(&b, from, (enum compressor)by);
		assert_true(b.len - from < len / 2);
		assert_int_equal(wire_header_read(str_skip(buf_str(&b), from)).length,
				 b.len - from);
		assert_int_equal(compress_unpack(str_skip(buf_str(&b), from), MOST_BYTES, &plain,
						 &found, NULL),
				 STATUS_OK);
		assert_int_equal(found, by);
		assert_int_equal(plain.len, len);
		assert_int_equal(wire_header_read(buf_str(&plain)).op, WIRE_OP_MSG);
		assert_int_equal(wire_header_read(buf_str(&plain)).request_id, 2);
		for (int i = 0; i < 200000; i++)
			assert_int_equal(plain.ptr[21 + i], i % 100);
		buf_release(&b);
		buf_release(&plain);
	}
}

static void
a_compressed_message_that_says_a_wrong_length_is_refused(void **state)
{
	(void)state;
	for (int by = COMPRESSOR_SNAPPY; by < COMPRESSORS; by++) {
		static const uint32_t said[] = { 0, 1, 1004, 1006, 100000, UINT32_MAX };

		for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
			struct buf b = BUF_INIT(MOST_BYTES);
			struct buf plain = BUF_INIT(MOST_BYTES);
			enum compressor found;
			size_t from = wire_begin_msg(&b, 1, 0);
			enum status status;

			for (int k = 0; k < 1000; k++)
				buf_append_byte(&b, 'x');
			wire_finish(&b, from, 2);
			compress_pack(&b, from, (enum compressor)by);
			wire_put_u32(b.ptr + WIRE_HEADER_BYTES + 4, said[i]);
			status = compress_unpack(buf_str(&b), MOST_BYTES, &plain, &found, NULL);
			assert_int_equal(status,
					 said[i] == UINT32_MAX ? STATUS_LIMIT : STATUS_INVALID);
			assert_int_equal(plain.len, 0);
			buf_release(&b);
			buf_release(&plain);
		}
	}
}

static void
roles_give_rights_on_their_databases(void **state)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	const struct str roles[] = { STR("mongo:read@shop"),    STR("mongo:readWrite@log"),
				     STR("mongo:dbAdmin@shop"), STR("mongo:clusterMonitor"),
				     STR("mongo:root@shop"),    STR("mongo:nosuch"),
				     STR("redis:+@all") };
	const struct str root = STR("mongo:root");
	struct rights r;

	(void)state;
	rights_of_roles(&r, roles, sizeof(roles) / sizeof(roles[0]), false, arena);
	assert_int_equal(rights_on(&r, STR("shop")), RIGHT_READ | RIGHT_ADMIN | RIGHT_MONITOR);
	assert_int_equal(rights_on(&r, STR("log")), RIGHT_READ | RIGHT_WRITE | RIGHT_MONITOR);
	assert_int_equal(rights_on(&r, STR("other")), RIGHT_MONITOR);
	assert_int_equal(r.role_count, 4);
	rights_of_roles(&r, &root, 1, false, arena);
	assert_int_equal(rights_on(&r, STR("any")), RIGHT_ALL);
	rights_of_roles(&r, NULL, 0, false, arena);
	assert_int_equal(rights_on(&r, STR("any")), 0);
	rights_of_roles(&r, NULL, 0, true, arena);
	assert_int_equal(rights_on(&r, STR("any")), RIGHT_ALL);
	arena_free(arena);
}

/* mongo_command_find() relies on the order of the table. */
static void
commands_are_found_by_their_names_and_older_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < mongo_command_count; i++) {
		const struct command *command = &mongo_commands[i];

		assert_ptr_equal(mongo_command_find(str_from_cstr(command->name)), command);
		for (size_t k = 0; k < 2 && command->aliases[k]; k++)
			assert_ptr_equal(mongo_command_find(str_from_cstr(command->aliases[k])),
					 command);
	}
	assert_null(mongo_command_find(STR("")));
	assert_null(mongo_command_find(STR("Find")));
	assert_null(mongo_command_find(STR("whatsmyuriagain")));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_are_found_by_their_names_and_older_names),
		cmocka_unit_test(the_checksum_is_that_of_the_standard),
		cmocka_unit_test(a_message_with_sequences_is_read_in_any_order),
		cmocka_unit_test(what_is_no_message_is_refused_with_the_code_of_mongodb),
		cmocka_unit_test(an_answer_is_read_with_its_checksum),
		cmocka_unit_test(a_message_comes_out_of_each_compressor_as_it_went_in),
		cmocka_unit_test(a_compressed_message_that_says_a_wrong_length_is_refused),
		cmocka_unit_test(roles_give_rights_on_their_databases),
	};

	return cmocka_run_group_tests_name("MongoDB's wire", tests, NULL, NULL);
}

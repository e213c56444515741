/*
 * Records of items that are damaged: headers, members, runs, packs, groups of consumers and leaves
 * of documents. Each kind is cut at every length, made longer, and given each member that it cannot
 * have; the parser refuses all of that, and writes what it accepts as the same bytes.
 */
#include "../records.h"

#include "model/timed/items/item_int.h"
#include "model/timed/items/json.h"
#include "model/timed/items/pack.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void
are_refused(record_parse *parse, const char *const *records, size_t count)
{
	for (size_t i = 0; i < count; i++)
		record_is(parse, records[i], STATUS_CORRUPT);
}

#define ARE_REFUSED(parse, ...)                                                                    \
	are_refused(parse, (const char *const[]){ __VA_ARGS__ },                                   \
		    COUNT(((const char *const[]){ __VA_ARGS__ })))

/* ---- Headers ---- */

static enum status
header_parse(struct str value, struct buf *ret_again)
{
	struct err err = { 0 };
	struct timed_header h;

	TRY(timed_header_parse(value, &h, &err));
	timed_header_put(&h, ret_again);
	return STATUS_OK;
}

/* (format, type, write time, expiry, length of the key, id, length), the key, the value. */
static void
a_header_that_cannot_be_is_refused(void **state)
{
	(void)state;
	/* Values and documents with their text, and those that have a body. */
	record_is_good(header_parse, "1 2 7 9 0 b: 3 =abc", 0);
	record_is_good(header_parse, "1 8 7 9 0 b: 3 =abc", 0);
	record_is_good(header_parse, "1 2 7 9 0 b: 0", 0);
	record_is_good(header_parse, "1 2 70000 9000000000000 3 b: 2 =keyab", 0);
	record_is_good(header_parse, "1 2 7 9 0 id 300", 0);
	record_is_good(header_parse, "1 8 7 9 0 id 0", 0);
	for (unsigned type = TIMED_HASH; type < TIMED_JSON; type++) {
		char text[RECORD_WORD_BYTES];

		(void)snprintf(text, sizeof(text), "1 %u 7 0 3 id 1 =key", type);
		record_is_good(header_parse, text, 0);
	}
	/* The id may have zeros. */
	record_is_good(header_parse, "1 3 7 0 0 x01 =i*14 x00ff00 1", 0);
	ARE_REFUSED(header_parse, "0 2 7 9 0 b: 3 =abc", "-1 2 7 9 0 b: 3 =abc",
		    /* types that no item has */
		    "1 0 7 9 0 b: 3 =abc", "1 1 7 9 0 b: 3 =abc", "1 9 7 9 0 b: 3 =abc",
		    "1 1 7 9 0 id 3", "1 9 7 9 0 id 3",
		    /* times */
		    "1 2 -7 9 0 b: 3 =abc", "1 2 7 -9 0 b: 3 =abc", "1 2 7 n 0 b: 3 =abc",
		    /* a key that is longer than the record */
		    "1 3 7 9 4 id 1 =key", "1 2 7 9 4 b: 0 =key",
		    /* ids of other lengths and kinds */
		    "1 3 7 9 0 b:iiiiiiiiiiiiii 1", "1 3 7 9 0 b:iiiiiiiiiiiiiiii 1",
		    "1 3 7 9 0 b:i 1", "1 3 7 9 0 s:iiiiiiiiiiiiiii 1", "1 2 7 9 0 s: 3 =abc",
		    "1 2 7 9 0 5 3 =abc", "1 2 7 9 0 n 3 =abc",
		    /* a body and a value, or neither */
		    "1 2 7 9 0 id 3 =abc", "1 3 7 9 0 b: 0", "1 6 7 9 0 b: 0",
		    "1 7 7 9 0 b: 3 =abc",
		    /* a length that is not the value's */
		    "1 2 7 9 0 b: 2 =abc", "1 2 7 9 0 b: 4 =abc", "1 8 7 9 0 b: 2 =abc",
		    "1 2 7 9 3 b: 3 =abc");
	record_is(header_parse, "3 2 7 9 0 b: 3 =abc", STATUS_NEWER);
}

/* (2, type, write time, expiry, length of the key, b"", members), the key, the pack. */
static void
a_header_of_a_pack_that_cannot_be_is_refused(void **state)
{
	(void)state;
	record_is_good(header_parse, "2 3 7 9 0 b: 1 =pack", 4);
	record_is_good(header_parse, "2 4 7 9 3 b: 64 =keypack", 4);
	record_is(header_parse, "2 5 7 9 0 b: 1 =p*2048", STATUS_OK);
	ARE_REFUSED(header_parse, "2 5 7 9 0 b: 1 =p*2049", "2 3 7 9 0 b: 0 =pack",
		    "2 3 7 9 0 b: 65 =pack", "2 3 7 9 0 id 1", "2 3 7 9 0 id 1 =pack",
		    "2 2 7 9 0 b: 4 =pack", "2 6 7 9 0 b: 1 =pack", "2 8 7 9 0 b: 4 =pack",
		    "2 3 7 9 5 b: 1 =pack");
}

/* ---- Members ---- */

static enum status
leaf_parse(struct str value, struct buf *ret_again)
{
	struct timed_leaf_record leaf;
	struct err err = { 0 };

	TRY(timed_leaf_parse(value, &leaf, &err));
	timed_leaf_put(&leaf, ret_again);
	return STATUS_OK;
}

/* (1, write time, expiry, length of the name), the name, the value. */
static void
a_member_that_cannot_be_is_refused(void **state)
{
	(void)state;
	record_is_good(leaf_parse, "1 7 9 0 =value", 5);
	record_is_good(leaf_parse, "1 70000 0 4 =namevalue", 5);
	record_is(leaf_parse, "1 7 9 4 =name", STATUS_OK);
	ARE_REFUSED(leaf_parse, "0 7 9 0 =value", "1 -7 9 0 =value", "1 7 -9 0 =value",
		    "1 n 9 0 =value", "1 7 n 0 =value", "1 7 9 6 =value", "1 7 9 -1 =value",
		    "1 7 9 f =value", "3 7 9 0 =value");
	record_is(leaf_parse, "4 7 9 0 =value", STATUS_NEWER);
}

/* (2, write time, expiry, length of the name, of the value, id of the pieces), short values. */
static void
a_member_in_pieces_that_cannot_be_is_refused(void **state)
{
	/* Zeros are two bytes: at each end of an id, and beside each other. */
	static const char *const ids[] = { "id", "x01 x00ff =i*14 x00", "x01 =i*14 x00ff x00",
					   "x01 =i*6 x00ff00ff =i*7 x00", "x01 =i*14 xff00" };
	char text[RECORD_WORD_BYTES];

	(void)state;
	for (size_t i = 0; i < COUNT(ids); i++) {
		(void)snprintf(text, sizeof(text), "2 7 9 4 300 %s", ids[i]);
		record_is_good(leaf_parse, text, 0);
		/* A score may begin with the byte that stands behind a zero. */
		(void)snprintf(text, sizeof(text), "2 7 9 4000 0 %s xff01020304050607", ids[i]);
		record_is_good(leaf_parse, text, 8);
	}
	record_is(leaf_parse, "2 7 9 536870912 536870912 id", STATUS_OK);
	ARE_REFUSED(leaf_parse, "2 7 9 536870913 1 id", "2 7 9 1 536870913 id", "2 7 9 4 1 id =v",
		    "2 7 9 -4 1 id", "2 7 9 4 -1 id",
		    /* ids of other lengths and kinds, and a zero that is one byte */
		    "2 7 9 4 1 b:iiiiiiiiiiiiii", "2 7 9 4 1 b:iiiiiiiiiiiiiiii",
		    "2 7 9 4 1 b:", "2 7 9 4 1 s:iiiiiiiiiiiiiii", "2 7 9 4 1 15", "2 7 9 4 1 n",
		    "2 7 9 4 0 x01 =i*14 x0000 =v", "2 7 9 4 0 x01 x0000 =i*14 =v",
		    "2 7 9 4 0 x01 x0001 =i*14 x00", "2 7 9 4 0 x01 =i*15 x01 =v");
}

/* ---- Runs ---- */

static enum status
run_parse(struct str value, struct buf *ret_again)
{
	struct timed_run run;

	TRY(timed_run_parse(value, &run));
	assert_true(timed_is_run(value));
	timed_run_put_header(run.write_us, run.leftwards, ret_again);
	for (unsigned i = 0; i < run.count; i++)
		timed_run_put_value(run.values[i], ret_again);
	return STATUS_OK;
}

/* (3, write time, whether elements go to the left); the length of an element, the element, … */
static void
a_run_that_cannot_be_is_refused(void **state)
{
	AUTO(buf_release) struct buf record = BUF_INIT(RECORD_BYTES);

	(void)state;
	/* A byte of zero behind it is one more element. */
	record_is(run_parse, "3 7 0 x01 =a x02 =bc", STATUS_OK);
	record_is(run_parse, "3 7 1 x00 x00", STATUS_OK);
	record_is(run_parse, "3 7 1 x01 =a x02 =bc x00", STATUS_OK);
	record_is(run_parse, "3 7 1 xff =a*255 xff =b*255", STATUS_OK);
	ARE_REFUSED(run_parse, "1 7 0 x01 =a x02 =bc", "2 7 0 x01 =a x02 =bc",
		    "4 7 0 x01 =a x02 =bc", "3 -7 0 x01 =a x02 =bc", "3 7 2 x01 =a x02 =bc",
		    "3 7 f x01 =a x02 =bc", "3 7 0 x01 =a x02 =b", "3 7 0 x01 =a x02",
		    "3 7 0 x01 =a x01", "3 7 0", "3 7 0 x00", "3 7 0 x03 =abc", "3 7", "3", "");
	record_put("3 7 1", &record);
	for (unsigned i = 1; i <= TIMED_RUN_ELEMENTS + 1; i++) {
		enum status expected = i == 1 || i > TIMED_RUN_ELEMENTS ? STATUS_CORRUPT
									: STATUS_OK;

		timed_run_put_value(STR("ab"), &record);
		assert_int_equal(record_status(run_parse, buf_str(&record)), expected);
		/* Its last element is cut. */
		for (size_t cut = 1; cut <= 2; cut++)
			assert_int_equal(
				record_status(run_parse, str_of(record.ptr, record.len - cut)),
				STATUS_CORRUPT);
	}
	assert_false(timed_is_run(STR("")));
	assert_false(timed_is_run(STR("\x15\x01\x15\x07")));
	assert_false(timed_is_run(STR("\x02"
				      "3")));
}

/* ---- Packs ---- */

static enum status
pack_parse(enum timed_type type, struct str value, struct buf *ret_again)
{
	struct timed_pack pack;

	TRY(timed_pack_parse(type, value, &pack));
	timed_pack_put(&pack, ret_again);
	return STATUS_OK;
}

static enum status
pack_of_hash(struct str value, struct buf *ret_again)
{
	return pack_parse(TIMED_HASH, value, ret_again);
}

static enum status
pack_of_set(struct str value, struct buf *ret_again)
{
	return pack_parse(TIMED_SET, value, ret_again);
}

static enum status
pack_of_zset(struct str value, struct buf *ret_again)
{
	return pack_parse(TIMED_ZSET, value, ret_again);
}

static enum status
pack_of_list(struct str value, struct buf *ret_again)
{
	return pack_parse(TIMED_LIST, value, ret_again);
}

#define SEVEN "x0000000000000007 "
#define ONE   "x3ff0000000000000 "

/* The least write time; hash or score, age, length of the name, of the value, both; … */
static void
a_pack_that_cannot_be_is_refused(void **state)
{
	(void)state;
	record_is_good(pack_of_hash, SEVEN "x0001 x00 x01 x03 =nval", 0);
	record_is_good(pack_of_set, SEVEN "x0001 x00 x04 =name", 0);
	record_is_good(pack_of_zset, SEVEN ONE "x00 x04 =name", 0);
	record_is(pack_of_set, SEVEN "x0001 x00 x01 =a x0002 x05 x01 =b", STATUS_OK);
	record_is(pack_of_set, SEVEN "x0001 x8001 x01 =a x0001 x00 x01 =b", STATUS_OK);
	record_is(pack_of_zset, SEVEN ONE "x00 x01 =a " ONE "x00 x01 =b", STATUS_OK);
	ARE_REFUSED(pack_of_list, SEVEN "x0001 x00 x04 =name", SEVEN ONE "x00 x04 =name");
	/* None is as old as the least write time. */
	ARE_REFUSED(pack_of_set, SEVEN, SEVEN "x0001 x01 x01 =a");
	/* The same, or one that belongs in front. */
	ARE_REFUSED(pack_of_set, SEVEN "x0001 x00 x01 =a x0001 x00 x01 =a",
		    SEVEN "x0002 x00 x01 =a x0001 x00 x01 =b",
		    SEVEN "x0001 x00 x01 =b x0001 x00 x01 =a");
	ARE_REFUSED(pack_of_zset, SEVEN ONE "x00 x01 =a " ONE "x00 x01 =a",
		    SEVEN ONE "x00 x01 =a x3fe0000000000000 x00 x01 =b",
		    SEVEN "x7ff8000000000000 x00 x01 =a", SEVEN "xfff8000000000001 x00 x01 =a");
	record_is(pack_of_zset, SEVEN "xfff0000000000000 x00 x01 =b x7ff0000000000000 x00 x01 =a",
		  STATUS_OK);
	/* Names have 1000 bytes, packs 2048. */
	record_is(pack_of_set, SEVEN "x0001 x00 xe807 =a*1000", STATUS_OK);
	record_is(pack_of_set, SEVEN "x0001 x00 xe907 =a*1001", STATUS_CORRUPT);
	record_is(pack_of_hash, SEVEN "x0001 x00 x01 xf10f =n =v*2033", STATUS_OK);
	record_is(pack_of_hash, SEVEN "x0001 x00 x01 xf20f =n =v*2034", STATUS_CORRUPT);
}

/* Numbers have one form, and are of 64 bits; the write time of a member is, too. */
static void
a_number_of_a_pack_that_cannot_be_is_refused(void **state)
{
	(void)state;
	record_is(pack_of_set, SEVEN "x0001 x00 x00 x0002 xffffffff0f x00", STATUS_OK);
	record_is(pack_of_set, SEVEN "x0001 x00 x00 x0002 xf8ffffffffffffffff01 x00", STATUS_OK);
	ARE_REFUSED(pack_of_set, SEVEN "x0001 x00 x00 x0002 xf9ffffffffffffffff01 x00",
		    SEVEN "x0001 x00 x00 x0002 x80ffffffffffffffff02 x00",
		    SEVEN "x0001 x00 x00 x0002 x8080808080808080808001 x00",
		    SEVEN "x0001 x8000 x01 =a", SEVEN "x0001 x00 x8100 =a",
		    SEVEN "x0001 x00 xffffffffffffffffff01 =a");
	record_is(pack_of_set, "xffffffffffffffff x0001 x00 x00", STATUS_OK);
	record_is(pack_of_set, "xffffffffffffffff x0001 x00 x00 x0002 x01 x00", STATUS_CORRUPT);
	record_is(pack_of_hash, SEVEN "x0001 x00 x01 x8000 =n", STATUS_CORRUPT);
}

static void
a_pack_has_bounded_members(void **state)
{
	AUTO(buf_release) struct buf record = BUF_INIT(RECORD_BYTES);

	(void)state;
	record_put(SEVEN, &record);
	for (unsigned i = 1; i <= TIMED_PACK_MEMBERS + 1; i++) {
		enum status expected = i > TIMED_PACK_MEMBERS ? STATUS_CORRUPT : STATUS_OK;

		buf_append_byte(&record, 1);
		buf_append_byte(&record, (uint8_t)i);
		buf_append(&record, "\0\1n", 3);
		assert_int_equal(record_status(pack_of_set, buf_str(&record)), expected);
	}
}

/* ---- Groups of consumers ---- */

static enum status
group_parse(struct str value, struct buf *ret_again)
{
	struct timed_group group = { .name = STR("") };
	struct err err = { 0 };

	TRY(timed_group_record_parse(value, &group, &err));
	timed_group_record_put(&group, ret_again);
	return STATUS_OK;
}

static enum status
consumer_parse(struct str value, struct buf *ret_again)
{
	struct timed_consumer consumer = { .name = STR("") };
	struct err err = { 0 };

	TRY(timed_consumer_record_parse(value, &consumer, &err));
	timed_consumer_record_put(&consumer, ret_again);
	return STATUS_OK;
}

static enum status
pending_parse(struct str value, struct buf *ret_again)
{
	struct timed_pending pending = { 0 };
	struct err err = { 0 };

	TRY(timed_pending_record_parse(value, &pending, &err));
	timed_pending_record_put(&pending, pending.consumer, ret_again);
	return STATUS_OK;
}

/* (1, id, ms, seq, entries read + 1), and the name if keys have not all of it. */
static void
a_group_that_cannot_be_is_refused(void **state)
{
	(void)state;
	record_is_good(group_parse, "1 id 7 0 0", 0);
	record_is_good(group_parse, "1 x01 =i*14 x00ff00 1700000000000 5 300", 0);
	record_is(group_parse, "1 id 7 0 1 =n*1001", STATUS_OK);
	ARE_REFUSED(group_parse, "0 id 7 0 1", "1 s:iiiiiiiiiiiiiii 7 0 1", "1 15 7 0 1",
		    "1 n 7 0 1", "1 b: 7 0 1", "1 b:iiiiiiiiiiiiii 7 0 1",
		    "1 b:iiiiiiiiiiiiiiii 7 0 1", "1 id -7 0 1", "1 id 7 -1 1", "1 id 7 0 -1",
		    "1 id 7 0 n", "1 id 7 0 1 =n*1000");
	record_is(group_parse, "2 id 7 0 1", STATUS_NEWER);
}

/* (1, ms), and the name if keys have not all of it. */
static void
a_consumer_that_cannot_be_is_refused(void **state)
{
	(void)state;
	record_is_good(consumer_parse, "1 7", 0);
	record_is_good(consumer_parse, "1 1700000000000", 0);
	record_is(consumer_parse, "1 7 =n*1001", STATUS_OK);
	ARE_REFUSED(consumer_parse, "0 7", "1 -7", "1 n", "1 b:7", "1 7 =n*1000");
	record_is(consumer_parse, "2 7", STATUS_NEWER);
}

/* (1, ms, how often), and whose it is. */
static void
a_pending_entry_that_cannot_be_is_refused(void **state)
{
	(void)state;
	record_is_good(pending_parse, "1 1700000000000 3 =consumer", 8);
	ARE_REFUSED(pending_parse, "0 7 3 =c", "1 -7 3 =c", "1 7 -3 =c", "1 n 3 =c", "1 7 n =c");
	record_is(pending_parse, "2 7 3 =c", STATUS_NEWER);
}

/* ---- Leaves of documents ---- */

static enum status
part_parse(struct str value, struct buf *ret_again)
{
	AUTO(buf_release) struct buf scratch = BUF_INIT(RECORD_BYTES);
	struct timed_json_leaf leaf;
	struct err err = { 0 };

	TRY(timed_json_leaf_parse(value, &scratch, &leaf, &err));
	timed_json_leaf_put(&leaf, ret_again);
	return STATUS_OK;
}

/* (1, ordinal, scalar) */
static void
a_scalar_of_a_document_that_cannot_be_is_refused(void **state)
{
	(void)state;
	record_is_good(part_parse, "1 0 n", 0);
	record_is_good(part_parse, "1 300 t", 0);
	record_is_good(part_parse, "1 3 -70000", 0);
	record_is_good(part_parse, "1 3 x21bff0000000000000", 0); /* 1.0 */
	record_is_good(part_parse, "1 3 18446744073709551615", 0);
	record_is_good(part_parse, "1 3 s:text", 0);
	record_is(part_parse, "1 3 x02 =te x00ff =xt x00", STATUS_OK);
	ARE_REFUSED(part_parse, "0 3 n", "1 -3 n", "1 n n", "1 3 n n",
		    /* not a number, beyond all, and negative or longer beyond 64 bits */
		    "1 3 x21fff8000000000000", "1 3 x21fff0000000000000", "1 3 x0c7ffffffffffffffe",
		    "1 3 x1d09010000000000000000",
		    /* no UTF-8, and what JSON does not have */
		    "1 3 x02ff00", "1 3 b:text", "1 3 uuid", "1 3 ( )", "1 3 ( ( ) )",
		    "1 3 x20bf800000");
	record_is(part_parse, "5 3 n", STATUS_NEWER);
}

/* (2, ordinal, bytes), (3, ordinal, members, next ordinal), (4, ordinal, elements, first place) */
static void
a_container_of_a_document_that_cannot_be_is_refused(void **state)
{
	(void)state;
	record_is_good(part_parse, "2 3 70000", 0);
	record_is_good(part_parse, "3 3 2 5", 0);
	record_is_good(part_parse, "3 0 0 0", 0);
	record_is_good(part_parse, "4 3 300 -70000", 0);
	record_is(part_parse, "2 3 536870912", STATUS_OK);
	record_is(part_parse, "3 3 1099511627776 1152921504606846976", STATUS_OK);
	record_is(part_parse, "4 3 1099511627776 -1152921504606846976", STATUS_OK);
	ARE_REFUSED(part_parse, "2 3 0", "2 3 536870913", "2 3 5 5", "2 -3 5", "2 3 -5",
		    "3 3 1099511627777 5", "4 3 1099511627777 5", "3 3 2 1152921504606846977",
		    "4 3 2 1152921504606846977", "4 3 2 -1152921504606846977", "3 3 -2 5",
		    "3 3 2 n", "4 n 2 5", "4 3 2 18446744073709551615");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_that_cannot_be_is_refused),
		cmocka_unit_test(a_header_of_a_pack_that_cannot_be_is_refused),
		cmocka_unit_test(a_member_that_cannot_be_is_refused),
		cmocka_unit_test(a_member_in_pieces_that_cannot_be_is_refused),
		cmocka_unit_test(a_run_that_cannot_be_is_refused),
		cmocka_unit_test(a_pack_that_cannot_be_is_refused),
		cmocka_unit_test(a_number_of_a_pack_that_cannot_be_is_refused),
		cmocka_unit_test(a_pack_has_bounded_members),
		cmocka_unit_test(a_group_that_cannot_be_is_refused),
		cmocka_unit_test(a_consumer_that_cannot_be_is_refused),
		cmocka_unit_test(a_pending_entry_that_cannot_be_is_refused),
		cmocka_unit_test(a_scalar_of_a_document_that_cannot_be_is_refused),
		cmocka_unit_test(a_container_of_a_document_that_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Records of tables that are damaged: schemas of every format, keyspaces and types, marks of
 * deletions, what is packed in a row, counters, pieces of values. Each is cut at every length, made
 * longer, and given each member that it cannot have; all of that is refused, and what is accepted
 * is written as the same bytes.
 */
#include "../records.h"

#include "catalog/store_format.h"
#include "kv/keyspace.h"
#include "model/timed/tables/keyspaces.h"
#include "model/timed/tables/packed.h"
#include "store.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
	ARENA_BYTES = 4 * 1024 * 1024,
};

static void
are_refused(record_parse *parse, const char *const *records, size_t count)
{
	for (size_t i = 0; i < count; i++)
		record_is(parse, records[i], STATUS_CORRUPT);
}

#define ARE_REFUSED(parse, ...)                                                                    \
	are_refused(parse, (const char *const[]){ __VA_ARGS__ },                                   \
		    COUNT(((const char *const[]){ __VA_ARGS__ })))

/* ---- Schemas ---- */

static enum status
schema_again(struct str value, struct arena *arena, struct buf *ret_again)
{
	struct table_schema schema;
	struct err err = { 0 };

	TRY(table_schema_parse(value, arena, &schema, &err));
	table_schema_put(&schema, ret_again);
	return STATUS_OK;
}

static enum status
schema_parse(struct str value, struct buf *ret_again)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	enum status status;

	assert_non_null(arena);
	status = schema_again(value, arena, ret_again);
	arena_free(arena);
	return status;
}

/* Columns: id, kind, storage, whether it descends, name, type. */
#define HASH    "( 1 1 0 f s:h s:int ) "
#define RANGE   "( 2 2 0 t s:r s:int ) "
#define REGULAR "( 3 4 0 f s:a s:text ) "
#define STATIC  "( 4 3 0 f s:s s:text ) "
#define LIST    "( 5 4 3 f s:l s:list ) "
#define COUNTER "( 3 4 4 f s:n s:counter ) "
/* One hash and one range component; nothing was dropped; INSERT packs rows, or not. */
#define HEAD    "uuid 6 1 2 f ( " HASH RANGE
#define PLAIN   HEAD REGULAR STATIC LIST ") ( ) ( ) "
#define WIDE    HEAD REGULAR ") ( ) ( ) "
#define PACKS   HEAD REGULAR ") ( ) ( ( s:packed s:true ) ) "
#define STATICS HEAD REGULAR STATIC ") ( ) ( ( s:packed s:true ) ) "
#define NUMBERS "uuid 6 1 2 t ( " HASH RANGE COUNTER ") ( ) ( ( s:packed s:true ) ) "

static void
each_format_of_a_schema_has_its_members(void **state)
{
	(void)state;
	record_is_good(schema_parse, "1 " PLAIN, 0);
	record_is_good(schema_parse, "1 " NUMBERS, 0);
	record_is_good(schema_parse, "1 uuid 2 1 1 f ( " HASH ") ( ) ( )", 0);
	record_is_good(schema_parse,
		       "1 " HEAD ") ( ( 3 4 2 f s:x s:set 70000 ) ( 4 3 0 f s:y s:int 0 ) ) "
		       "( ( s:a s:b ) ( s:c s: ) )",
		       0);
	record_is_good(schema_parse, "2 " PLAIN "( 3 5 )", 0);
	record_is_good(schema_parse, "2 " PLAIN "( 4 )", 0);
	record_is_good(schema_parse, "3 " PLAIN "( )", 0);
	record_is_good(schema_parse, "3 " PLAIN "( 3 4 5 )", 0);
	record_is_good(schema_parse, "4 " PLAIN "( ) f", 0);
	record_is_good(schema_parse, "4 " PACKS "( 3 ) t", 0);
	record_is_good(schema_parse, "5 " PLAIN "( ) f f f", 0);
	record_is_good(schema_parse, "5 " PACKS "( 3 ) t t t", 0);
	record_is_good(schema_parse, "5 " PACKS "( ) f f t", 0);
	record_is_good(schema_parse, "6 " PACKS "( 3 ) f", 0);
	record_is_good(schema_parse, "6 " PACKS "( ) f", 0);
	record_is_good(schema_parse, "7 " PACKS "( 3 ) f t t", 0);
	record_is_good(schema_parse, "7 " PACKS "( ) f t f", 0);
	record_is(schema_parse, "8 " PACKS "( ) f", STATUS_NEWER);
	ARE_REFUSED(schema_parse, "0 " PLAIN, "-1 " PLAIN, "b:1 " PLAIN,
		    /* members of a later format, or others in their place */
		    "1 " PLAIN "( )", "2 " PLAIN "( 3 ) f", "3 " PLAIN "( ) f",
		    "4 " PLAIN "( ) f f", "5 " PLAIN "( ) f f", "6 " PACKS "( ) f f",
		    "2 " PLAIN "3", "4 " PLAIN "( ) 0", "5 " PLAIN "( ) 0 f f",
		    "5 " PLAIN "( ) f 0 f", "5 " PLAIN "( ) f f n", "7 " PACKS "( ) f",
		    "7 " PACKS "( ) f t", "7 " PACKS "( ) f t t t",
		    /* rows that are whole are packed, and no stamps count */
		    "7 " PACKS "( ) f f t", "7 " PACKS "( ) t t t", "7 " PLAIN "( ) f t t",
		    "7 " STATICS "( ) f t t");
}

static void
members_of_a_schema_fit_together(void **state)
{
	(void)state;
	ARE_REFUSED(
		schema_parse,
		/* the id, the next column's, how many components, counters */
		"1 b:uuuuuuuuuuuuuuuu 2 1 1 f ( " HASH ") ( ) ( )",
		"1 5 2 1 1 f ( " HASH ") ( ) ( )", "1 uuid -2 1 1 f ( " HASH ") ( ) ( )",
		"1 uuid 2 0 1 f ( " HASH ") ( ) ( )", "1 uuid 2 0 0 f ( " HASH ") ( ) ( )",
		"1 uuid 2 2 1 f ( " HASH ") ( ) ( )", "1 uuid 2 1 2 f ( " HASH ") ( ) ( )",
		"1 uuid 2 1 0 f ( " HASH ") ( ) ( )", "1 uuid 2 -1 1 f ( " HASH ") ( ) ( )",
		"1 uuid 2 1 -1 f ( " HASH ") ( ) ( )", "1 uuid 2 1 1 0 ( " HASH ") ( ) ( )",
		"1 uuid 2 1 1 f ( ) ( ) ( )",
		/* a column's id is below the next one */
		"1 uuid 1 1 1 f ( " HASH ") ( ) ( )",
		"1 uuid 5 1 2 f ( " HASH RANGE REGULAR LIST ") ( ) ( )",
		/* kinds at other places */
		"1 uuid 6 2 2 f ( " HASH RANGE ") ( ) ( )",
		"1 uuid 6 1 2 f ( " HASH REGULAR ") ( ) ( )",
		"1 uuid 6 1 1 f ( " HASH RANGE ") ( ) ( )", "1 uuid 6 1 1 f ( " RANGE ") ( ) ( )",
		"1 uuid 6 1 2 f ( " RANGE HASH ") ( ) ( )",
		"1 uuid 6 1 2 f ( " HASH RANGE "( 3 1 0 f s:a s:b ) ) ( ) ( )",
		"1 uuid 6 1 2 f ( " HASH RANGE "( 3 2 0 f s:a s:b ) ) ( ) ( )",
		/* those outside of the key are in the order of their ids */
		"1 " HEAD STATIC REGULAR ") ( ) ( )", "1 " HEAD REGULAR REGULAR ") ( ) ( )",
		"1 " HEAD "( 3 4 0 f s:a s:b ) ( 5 4 0 f s:c s:d ) ( 4 4 0 f s:e s:f ) ) ( ) ( )",
		/* pieces of the key's columns, and of none */
		"2 " PLAIN "( 1 )", "2 " PLAIN "( 2 )", "2 " PLAIN "( 6 )", "2 " PLAIN "( 0 )",
		"2 " PLAIN "( 3 9 )", "2 " PLAIN "( f )",
		/* counters are neither packed nor in rows that are counted */
		"4 " NUMBERS "( ) f", "5 " NUMBERS "( ) f t t", "5 " NUMBERS "( ) f f f",
		"6 " NUMBERS "( ) f",
		/* whole rows: all of an INSERT's, no stamps, no static columns */
		"6 " WIDE "( ) f", "6 " PACKS "( ) t", "6 " STATICS "( ) f");
	record_is(schema_parse, "4 " STATICS "( ) f", STATUS_OK);
}

static void
a_column_that_cannot_be_is_refused(void **state)
{
	static const char *const columns[] = {
		"( 0 4 0 f s:a s:b )",
		"( 3 0 0 f s:a s:b )",
		"( 3 5 0 f s:a s:b )",
		"( 3 4 5 f s:a s:b )",
		"( 3 4 0 0 s:a s:b )",
		"( 3 4 0 f b:a s:b )",
		"( 3 4 0 f s:a b:b )",
		"( -3 4 0 f s:a s:b )",
		"( 3 -4 0 f s:a s:b )",
		"( 3 4 -1 f s:a s:b )",
		"( 3 4 0 f s:a )",
		"( 3 4 0 f )",
		"( 3 4 0 )",
		"( 3 4 )",
		"( 3 )",
		"( )",
		"3",
		"s:a",
		"( 3 4 0 f s:a s:b 5 )",
	};
	char text[2 * RECORD_WORD_BYTES];

	(void)state;
	record_is(schema_parse, "1 " HEAD "( 3 4 4 f s:a s:b ) ) ( ) ( )", STATUS_OK);
	for (size_t i = 0; i < COUNT(columns); i++) {
		(void)snprintf(text, sizeof(text), "1 " HEAD "%s ) ( ) ( )", columns[i]);
		record_is(schema_parse, text, STATUS_CORRUPT);
	}
	/* The same of one that was dropped, behind which is when. */
	for (size_t i = 0; i < COUNT(columns); i++) {
		(void)snprintf(text, sizeof(text), "1 " HEAD ") ( %.*s 7 ) ) ( )",
			       (int)(strlen(columns[i]) - 1), columns[i]);
		record_is(schema_parse, text, STATUS_CORRUPT);
	}
	ARE_REFUSED(schema_parse, "1 " HEAD ") ( ( 3 4 0 f s:a s:b ) ) ( )",
		    "1 " HEAD ") ( ( 3 4 0 f s:a s:b -7 ) ) ( )",
		    "1 " HEAD ") ( ( 3 4 0 f s:a s:b 7 7 ) ) ( )",
		    /* properties */
		    "1 " HEAD ") ( ) ( s:a s:b )", "1 " HEAD ") ( ) ( ( ) )",
		    "1 " HEAD ") ( ) ( ( s:a ) )", "1 " HEAD ") ( ) ( ( s:a b:b ) )",
		    "1 " HEAD ") ( ) ( ( b:a s:b ) )", "1 " HEAD ") ( ) ( ( s:a s:b s:c ) )");
}

/* So many columns: `hash` of them are the key. */
static void
columns_are(size_t hash, size_t count, enum status expected)
{
	AUTO(buf_release) struct buf record = BUF_INIT(RECORD_BYTES);
	enum status status;

	record_put("1 uuid 70000", &record);
	tuple_put_u64(&record, hash);
	tuple_put_u64(&record, hash);
	record_put("f (", &record);
	for (size_t i = 0; i < count; i++) {
		tuple_open(&record);
		tuple_put_u64(&record, i + 1);
		tuple_put_u64(&record, i < hash ? TABLE_HASH : TABLE_REGULAR);
		record_put("0 f s:a s:b )", &record);
	}
	record_put(") ( ) ( )", &record);
	status = record_status(schema_parse, buf_str(&record));
	assert_int_equal(status, expected);
}

static void
a_schema_has_bounded_columns(void **state)
{
	(void)state;
	columns_are(TABLE_KEY_COLUMNS, TABLE_KEY_COLUMNS, STATUS_OK);
	columns_are(TABLE_KEY_COLUMNS + 1, TABLE_KEY_COLUMNS + 1, STATUS_CORRUPT);
	columns_are(1, TABLE_COLUMNS, STATUS_OK);
	columns_are(1, TABLE_COLUMNS + 1, STATUS_CORRUPT);
}

/* ---- Keyspaces and types ---- */

/* Records that are read through a store: cmocka has no other way to hand it to the parsers. */
static struct kv_tx *now;

static enum status
root_put(const char *type, struct str value)
{
	AUTO(buf_release) struct buf key = BUF_INIT(100);

	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_KEYSPACES);
	tuple_put_str(&key, STR("ks"));
	if (type)
		tuple_put_str(&key, str_from_cstr(type));
	TRY(buf_status(&key));
	return kv_set(now, buf_str(&key), value);
}

static enum status
keyspace_again(struct str value, struct arena *arena, struct buf *ret_again)
{
	struct table_keyspaces all;
	struct table_keyspace ks;
	struct err err = { 0 };
	enum status status, listed;

	TRY(root_put(NULL, value));
	status = table_keyspace_read(now, STR("ks"), arena, &ks, &err);
	listed = table_keyspace_list(now, arena, &all, &err);
	assert_int_equal(listed, status);
	TRY(status);
	assert_int_equal(all.count, 1);
	assert_int_equal(all.keyspaces[0].property_count, ks.property_count);
	tuple_put_u64(ret_again, 1);
	table_properties_put(ks.properties, ks.property_count, ret_again);
	return STATUS_OK;
}

static enum status
type_again(struct str value, struct arena *arena, struct buf *ret_again)
{
	struct table_types all;
	struct table_type type;
	struct err err = { 0 };
	enum status status, listed;

	TRY(root_put("ty", value));
	status = table_type_read(now, STR("ks"), STR("ty"), arena, &type, &err);
	listed = table_type_list(now, STR("ks"), arena, &all, &err);
	assert_int_equal(listed, status);
	TRY(status);
	assert_int_equal(all.count, 1);
	assert_int_equal(all.types[0].field_count, type.field_count);
	tuple_put_u64(ret_again, 1);
	tuple_open(ret_again);
	for (size_t i = 0; i < type.field_count; i++) {
		tuple_open(ret_again);
		tuple_put_str(ret_again, type.fields[i].name);
		tuple_put_str(ret_again, type.fields[i].type);
		tuple_close(ret_again);
	}
	tuple_close(ret_again);
	return STATUS_OK;
}

static enum status
in_an_arena(enum status (*again)(struct str value, struct arena *arena, struct buf *ret_again),
	    struct str value, struct buf *ret_again)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	enum status status;

	assert_non_null(arena);
	status = again(value, arena, ret_again);
	arena_free(arena);
	return status;
}

static enum status
keyspace_parse(struct str value, struct buf *ret_again)
{
	return in_an_arena(keyspace_again, value, ret_again);
}

static enum status
type_parse(struct str value, struct buf *ret_again)
{
	return in_an_arena(type_again, value, ret_again);
}

/* Pairs of texts, behind the format. */
static void
pairs_are_read(record_parse *parse)
{
	record_is_good(parse, "1 ( )", 0);
	record_is_good(parse, "1 ( ( s:a s:b ) )", 0);
	record_is_good(parse, "1 ( ( s:a s: ) ( s:b s:int ) ( s:c s:text ) ( s:d s:d ) )", 0);
	ARE_REFUSED(parse, "0 ( )", "1 ( ) ( )", "1 s:a", "1 ( s:a s:b )", "1 ( ( s:a ) )",
		    "1 ( ( ) )", "1 ( ( s:a b:b ) )", "1 ( ( 5 s:b ) )", "1 ( ( s:a s:b s:c ) )",
		    "1 ( n )");
	record_is(parse, "2 ( )", STATUS_NEWER);
}

static enum status
pairs_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	now = tx;
	pairs_are_read(keyspace_parse);
	/* A type is in a keyspace that can be read. */
	record_is(keyspace_parse, "1 ( )", STATUS_OK);
	pairs_are_read(type_parse);
	return STATUS_OK;
}

static void
keyspaces_and_types_that_cannot_be_are_refused(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct kv_store *store;
	struct err err = { 0 };
	char dir[64], url[256];

	(void)state;
	test_make_dir("records", dir, sizeof(dir));
	test_store_url(dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &store, &err), STATUS_OK);
	assert_int_equal(kv_run(store, pairs_body, NULL, NULL, &err), STATUS_OK);
	kv_close(store);
	test_remove_tree(dir);
}

/* ---- Marks of deletions ---- */

static enum status
mark_parse(struct str value, struct buf *ret_again)
{
	struct table_mark mark;
	struct err err = { 0 };

	TRY(table_mark_parse(value, &mark, &err));
	table_mark_encode(&mark, false, ret_again);
	return STATUS_OK;
}

static enum status
range_mark_again(struct str value, struct arena *arena, struct buf *ret_again)
{
	struct table_mark mark;
	struct err err = { 0 };

	TRY(table_mark_parse_range(value, arena, &mark, &err));
	table_mark_encode(&mark, true, ret_again);
	return STATUS_OK;
}

static enum status
range_mark_parse(struct str value, struct buf *ret_again)
{
	return in_an_arena(range_mark_again, value, ret_again);
}

/* (1, stamp, moment), and of a range its bounds */
static void
a_mark_that_cannot_be_is_refused(void **state)
{
	(void)state;
	record_is_good(mark_parse, "1 -70000 300", 0);
	record_is_good(mark_parse, "1 9223372036854775807 0", 0);
	ARE_REFUSED(mark_parse, "0 5 7", "1 5 -7", "1 n 7", "1 5 n", "1 9223372036854775808 7",
		    "1 5 7 b:a b:b");
	record_is(mark_parse, "2 5 7", STATUS_NEWER);
	record_is_good(range_mark_parse, "1 5 7 b:begin b:end", 0);
	record_is(range_mark_parse, "1 5 7 x01 =a x00ff =b x00 b:", STATUS_OK);
	ARE_REFUSED(range_mark_parse, "0 5 7 b:a b:b", "1 5 7", "1 5 -7 b:a b:b", "1 n 7 b:a b:b",
		    "1 5 7 s:a b:b", "1 5 7 b:a s:b", "1 5 7 b:a 5", "1 5 7 n b:b",
		    "1 5 7 b:a b:b n");
	record_is(range_mark_parse, "2 5 7 b:a b:b", STATUS_NEWER);
}

/* ---- What is packed in a row ---- */

static enum status
packed_parse(struct str value, struct buf *ret_again)
{
	const struct timed_cell own = { .packed = value };
	struct table_packed p = table_packed_of(&own);
	uint64_t column;
	enum status status;
	struct str scalar;

	while ((status = table_packed_next(&p, &column, &scalar)) == STATUS_OK)
		table_packed_put(column, scalar, ret_again);
	/* The end is where nothing is left. */
	return status == STATUS_NOT_FOUND && !p.rest.len ? STATUS_OK : status;
}

/* Column, length, scalar, … */
static void
what_cannot_be_packed_is_refused(void **state)
{
	(void)state;
	record_is(packed_parse, "", STATUS_OK);
	record_is(packed_parse, "3 2 =ab", STATUS_OK);
	record_is(packed_parse, "3 2 =ab 4 1 =c 300 1 =d", STATUS_OK);
	ARE_REFUSED(packed_parse, "3 2 =a", "3 2", "3", "3 0", "3 0 4 1 =a", "0 1 =a",
		    "3 1 =a 3 1 =b", "3 1 =a 2 1 =b", "-3 1 =a", "3 -1 =a", "n 1 =a", "3 n =a",
		    "3 1 =a 4 2 =b", "3 1 =a 4 1", "3 1 =a 4");
}

/* ---- Keys ---- */

/* What a key has behind the row's: it is not written again from what was read. */
static enum status
place_again(struct str value, struct arena *arena, struct buf *ret_again)
{
	struct table_place place;
	enum status status = table_place_cell(value, arena, &place);
	uint64_t column;

	if (status == STATUS_OK) {
		assert_int_equal(table_place_column(value, &column), STATUS_OK);
		assert_int_equal(column, place.column);
	}
	buf_append_str(ret_again, value);
	return status;
}

static enum status
place_parse(struct str value, struct buf *ret_again)
{
	return in_an_arena(place_again, value, ret_again);
}

#define ELEMENT "x01 =0a x00ff x01 x00 " /* the bytes of a key of the text "a" */

/* (column[, b"element"][, number of a piece]) */
static void
a_place_that_cannot_be_is_refused(void **state)
{
	static const char *const no_columns[] = { "0", "-3", "n", "s:a", "b:a", "0 5" };
	uint64_t column;

	(void)state;
	for (size_t i = 0; i < COUNT(no_columns); i++) {
		AUTO(buf_release) struct buf key = BUF_INIT(100);

		record_is(place_parse, no_columns[i], STATUS_CORRUPT);
		record_put(no_columns[i], &key);
		assert_int_equal(table_place_column(buf_str(&key), &column), STATUS_CORRUPT);
	}
	record_is(place_parse, "", STATUS_OK);
	record_is(place_parse, "3", STATUS_OK);
	record_is(place_parse, "3 0", STATUS_OK);
	record_is(place_parse, "300 70000", STATUS_OK);
	record_is(place_parse, "3 " ELEMENT, STATUS_OK);
	record_is(place_parse, "3 " ELEMENT "5", STATUS_OK);
	ARE_REFUSED(place_parse, "0 " ELEMENT, "-3 " ELEMENT, "3 5 5", "3 -5", "3 n", "3 s:a",
		    "3 " ELEMENT "5 5", "3 " ELEMENT "-5", "3 " ELEMENT "s:a", "3 " ELEMENT ELEMENT,
		    "3 b:", "3 b:xyz", "3 x01 =0a x00ff x01 =0 x00", "3 x01 =0a x00ff x00",
		    "3 x01 =0");
}

/* ---- Counters ---- */

/* 8 bytes, and no number that rows cannot have. */
static void
a_count_has_eight_bytes(void **state)
{
	static const char bytes[] = "\7\0\0\0\0\0\0\0\0";
	uint64_t rows = 0;

	(void)state;
	for (size_t len = 0; len < sizeof(bytes); len++)
		assert_int_equal(table_count_parse(str_of(bytes, len), &rows), len == 8);
	assert_int_equal(rows, 7);
}

/* Those of which pieces can be put together: texts and bytes. */
static void
a_value_in_pieces_has_a_kind_that_can_be(void **state)
{
	(void)state;
	for (enum doc_kind kind = DOC_NULL; kind <= DOC_DURATION; kind++) {
		AUTO(buf_release) struct buf value = BUF_INIT(64);
		const struct timed_cell cell = {
			.type = TIMED_LEAF, .write_us = 1, .piece_bytes = 7, .piece_kind = kind
		};
		struct timed_cell got;

		timed_cell_put(&cell, &value);
		assert_int_equal(timed_cell_parse(buf_str(&value), &got, NULL),
				 kind == DOC_TEXT || kind == DOC_BYTES ? STATUS_OK
								       : STATUS_CORRUPT);
	}
}

static void
a_key_ends_behind_the_number_of_a_piece(void **state)
{
	AUTO(buf_release) struct buf rest = BUF_INIT(64);
	struct arena *arena = arena_new(4096);
	struct table_place place;

	(void)state;
	tuple_put_u64(&rest, 3);
	tuple_put_u64(&rest, 1);
	assert_int_equal(table_place_cell(buf_str(&rest), arena, &place), STATUS_OK);
	assert_int_equal(place.column, 3);
	assert_true(place.is_piece);
	assert_int_equal(place.piece, 1);
	tuple_put_u64(&rest, 1);
	assert_int_equal(table_place_cell(buf_str(&rest), arena, &place), STATUS_CORRUPT);
	arena_free(arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_format_of_a_schema_has_its_members),
		cmocka_unit_test(members_of_a_schema_fit_together),
		cmocka_unit_test(a_column_that_cannot_be_is_refused),
		cmocka_unit_test(a_schema_has_bounded_columns),
		cmocka_unit_test(keyspaces_and_types_that_cannot_be_are_refused),
		cmocka_unit_test(a_mark_that_cannot_be_is_refused),
		cmocka_unit_test(what_cannot_be_packed_is_refused),
		cmocka_unit_test(a_place_that_cannot_be_is_refused),
		cmocka_unit_test(a_count_has_eight_bytes),
		cmocka_unit_test(a_value_in_pieces_has_a_kind_that_can_be),
		cmocka_unit_test(a_key_ends_behind_the_number_of_a_piece),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

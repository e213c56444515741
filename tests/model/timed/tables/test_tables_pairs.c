/* What inspect draws of each kind of pair of a table, and of values of each kind, in keys, too. */
#include "limits_world.h"

#include <math.h>

#include "index/engine/def.h"
#include "kv/tuple.h"
#include "model/timed/tables/deletions.h"
#include "model/timed/tables/index.h"
#include "model/timed/tables/packed.h"
#include "model/timed/tables/stamps.h"
#include "test_tables.h"

enum {
	DRAWN_BYTES = 1024 * 1024,
	SPACES = 80,
	LONG_BYTES = 120000, /* of a value in pieces */
};

#define AT "2023-11-14T22:13:20.00000"

/* ---- Values ---- */

static void
values_are_drawn_by_their_kinds(void **state)
{
	static const char uuid[] =
		"\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef";
	static const struct {
		struct doc_scalar s;
		const char *drawn;
	} cases[] = {
		{ { .kind = DOC_NULL }, "[NULL]" },
		{ { .kind = DOC_BOOL, .truth = true }, "true" },
		{ { .kind = DOC_BOOL }, "false" },
		{ { .kind = DOC_TEXT, .text = TEXT("it's") }, "'it''s'" },
		{ { .kind = DOC_BYTES, .text = TEXT("\x01\xff") }, "0x01ff" },
		{ { .kind = DOC_BYTES }, "0x" },
		{ { .kind = DOC_INT64, .n = INT64_MIN }, "-9223372036854775808" },
		{ { .kind = DOC_INT8, .n = -1 }, "-1" },
		{ { .kind = DOC_DATE, .n = 5 }, "5" },
		{ { .kind = DOC_INTEGER, .text = TEXT("\x01\x00") }, "256" },
		{ { .kind = DOC_INTEGER, .negative = true, .text = TEXT("\x01\x00") }, "-256" },
		{ { .kind = DOC_DECIMAL, .n = 2, .text = TEXT("\x0f") }, "15E-2" },
		{ { .kind = DOC_DECIMAL, .n = -2, .negative = true, .text = TEXT("\x0f") },
		  "-15E2" },
		{ { .kind = DOC_DOUBLE, .d = 1.5 }, "1.5" },
		{ { .kind = DOC_DOUBLE, .d = INFINITY }, "Infinity" },
		{ { .kind = DOC_DOUBLE, .d = -INFINITY }, "-Infinity" },
		{ { .kind = DOC_DOUBLE, .d = NAN }, "NaN" },
		{ { .kind = DOC_FLOAT, .f = 0.5F }, "0.5" },
		{ { .kind = DOC_UUID, .text = { uuid, 16 } },
		  "01234567-89ab-cdef-0123-456789abcdef" },
		{ { .kind = DOC_TIMEUUID, .text = { uuid, 16 } },
		  "01234567-89ab-cdef-0123-456789abcdef" },
		{ { .kind = DOC_INET, .text = TEXT("\x7f\x00\x00\x01") }, "127.0.0.1" },
		{ { .kind = DOC_INET, .text = { "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16 } }, "::1" },
		{ { .kind = DOC_DECIMAL128, .high = 1, .low = 2 },
		  "decimal128 00000000000000010000000000000002" },
		{ { .kind = DOC_DURATION, .months = 14, .days = 3, .n = 5000 }, "14mo3d5000ns" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(buf_release) struct buf drawn = BUF_INIT(1000);

		timed_draw_scalar(&cases[i].s, &drawn);
		if (!str_eq(buf_str(&drawn), str_from_cstr(cases[i].drawn)))
			fail_msg("%zu: %.*s, not %s", i, STR_ARG(buf_str(&drawn)), cases[i].drawn);
	}
}

/* An integer of more bytes than a tuple's are drawn in digits. */
static void
long_integers_are_drawn_as_their_bytes(void **state)
{
	static const char many[] = "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a";

	(void)state;
	for (size_t len = 7; len < sizeof(many); len++) {
		const struct doc_scalar s = { .kind = DOC_INTEGER, .text = { many, len } };
		AUTO(buf_release) struct buf drawn = BUF_INIT(1000);

		timed_draw_scalar(&s, &drawn);
		assert_int_equal(str_starts_with(buf_str(&drawn), STR("0x01")),
				 len > TUPLE_INT_MAX_BYTES);
	}
}

static void
times_are_drawn_to_the_microsecond(void **state)
{
	static const struct {
		uint64_t us;
		const char *drawn;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00.000000Z" },
		{ 1000001, "1970-01-01T00:00:01.000001Z" },
		{ 999999, "1970-01-01T00:00:00.999999Z" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(buf_release) struct buf drawn = BUF_INIT(1000);

		timed_draw_time(cases[i].us, &drawn);
		assert_true(str_eq(buf_str(&drawn), str_from_cstr(cases[i].drawn)));
	}
}

static void
each_space_has_its_name(void **state)
{
	static const char *const names[SPACES] = {
		[INDEX_SPACE_DEFS] = "indexes",
		[INDEX_SPACE_ENTRIES] = "entries",
		[TIMED_SPACE_SCHEMA] = "schema",
		[TIMED_SPACE_ROWS] = "rows",
		[TIMED_SPACE_EXPIRY] = "expiry",
		[TIMED_SPACE_CLOCK] = "clock",
		[TIMED_SPACE_CHANGED] = "changed",
		[TIMED_SPACE_BODY] = "bodies",
		[TIMED_SPACE_GONE] = "bodies to be cleared",
		[TIMED_SPACE_COUNT] = "count",
		[TIMED_SPACE_UNDO] = "undo",
		[TIMED_SPACE_HISTORY] = "history",
		[TIMED_SPACE_RETIME] = "entries to be written",
		[TIMED_SPACE_COUNTER] = "counters",
		[TIMED_SPACE_MARKS] = "marks of deletions",
		[TIMED_SPACE_TABLE] = "table",
		[TIMED_SPACE_DROPPED] = "dropped columns",
		[TIMED_SPACE_HELD] = "history bytes",
		[TIMED_SPACE_WEIGH] = "bodies to be weighed",
		[TIMED_SPACE_VERSIONS] = "versions",
		[TIMED_SPACE_TRIM] = "versions to be removed",
		[TIMED_SPACE_RETRIM] = "versions to be counted",
		[TIMED_SPACE_STATS] = "counts",
		[TIMED_SPACE_TALLIES] = "counts of ranges",
	};

	(void)state;
	for (uint64_t space = 0; space < SPACES; space++) {
		const char *name = table_kind.space_name(space);

		if (!names[space])
			assert_null(name);
		else if (!name || strcmp(name, names[space]) != 0)
			fail_msg("%llu: %s", (unsigned long long)space, name ? name : "none");
	}
}

/* ---- Pairs ---- */

struct drawing {
	uint64_t space;
	struct buf out; /* lines */
};

static enum status
draw_body(struct timed *t, void *arg)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT, end = CATALOG_KEY_INIT;
	struct drawing *d = arg;
	struct kv_scan scan;
	struct kv_pair pair;
	enum status status;

	buf_clear(&d->out);
	timed_key_space(&begin, t->db, (enum timed_space)d->space);
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(kv_scan_init(&scan, t->tx, buf_str(&begin), buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct str tail = str_skip(pair.key, begin.len);
		size_t len;

		assert_true(table_kind.draw_pair(t->db, d->space, tail, pair.value, &d->out));
		buf_append_byte(&d->out, '\n');
		len = d->out.len;
		/* What is not a pair of that space is left to others to draw. */
		assert_false(
			table_kind.draw_pair(t->db, d->space, STR("\xff"), STR("\xff"), &d->out));
		assert_int_equal(d->out.len, len);
	}
	kv_scan_release(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static void
expect_drawn(struct fixture *f, const char *table, uint64_t space, const char *wanted)
{
	struct drawing d = { .space = space, .out = BUF_INIT(DRAWN_BYTES) };

	expect(f, table, draw_body, &d, NULL);
	buf_append_byte(&d.out, 0);
	if (strcmp(d.out.ptr, wanted) != 0)
		fail_msg("space %llu of %s:\n%s\nin place of\n%s", (unsigned long long)space, table,
			 d.out.ptr, wanted);
	buf_release(&d.out);
}

/* One change of a row of "a", or of its partition. */
struct writing {
	int64_t id; /* -1: of the partition */
	struct table_change change;
	bool inserts;
	struct timed_expiry expiry;
	int64_t stamp; /* 0: none */
};

static enum status
write_body(struct timed *t, void *arg)
{
	const struct writing *w = arg;
	const struct doc_scalar key[] = { text("a"), number(w->id) };
	const struct table_write write = { .key = { 97, key, w->id < 0 ? 1 : 2 },
					   .inserts = w->inserts,
					   .expiry = w->expiry,
					   .changes = &w->change,
					   .change_count = w->change.column > 0 };
	enum status status;

	if (w->stamp)
		TRY(table_stamp_set(t, w->stamp));
	status = table_write(t, &write);
	table_stamp_unset(t);
	return status;
}

static void
put(struct fixture *f, const char *table, struct writing w)
{
	expect(f, table, write_body, &w, NULL);
}

#define SET(column_, value_)                                                                       \
	{                                                                                          \
		.column = (column_), .value = (value_)                                             \
	}

static enum status
alter_body(struct timed *t, void *arg)
{
	return table_alter(t, arg);
}

static void
cells_are_drawn_with_what_they_have(void **state)
{
	struct fixture *f = *state;
	const struct str tags[] = { STR("msg_props") };
	struct table_alteration drop = { .drop = tags, .drop_count = 1 };

	put(f, "ks.msgs",
	    (struct writing){ .id = 1,
			      .change = { .kind = TABLE_CHANGE_PUT_ELEMENT,
					  .column = MSG_PROPS,
					  .element = text("k"),
					  .value = text("v") } });
	put(f, "ks.msgs",
	    (struct writing){ .id = 1, .inserts = true, .expiry = { TIMED_EXPIRY_AFTER, 1500 } });
	put(f, "ks.msgs", (struct writing){ .id = -1, .change = SET(OWNER, text("o")) });
	expect_drawn(f, "ks.msgs", TIMED_SPACE_ROWS,
		     "(0x8000, 'a'), owner_column_id, " AT "2Z -> 'o'\n"
		     "(0x8000, 'a', 1), liveness_column_id, " AT "1Z -> (TTL = 1.500) [NULL]\n"
		     "(0x8000, 'a', 1), msg_props_column_id, 'k', " AT "0Z -> 'v'\n");
	expect_drawn(f, "ks.msgs", TIMED_SPACE_EXPIRY,
		     "2023-11-14T22:13:21.500000Z, (0x8000, 'a', 1)\n");
	expect_drawn(f, "ks.msgs", TIMED_SPACE_CLOCK, "the latest write: " AT "2Z\n");
	expect(f, "ks.msgs", alter_body, &drop, NULL);
	/* A dropped column keeps its name as long as the schema remembers it. */
	expect_drawn(f, "ks.msgs", TIMED_SPACE_ROWS,
		     "(0x8000, 'a'), owner_column_id, " AT "2Z -> 'o'\n"
		     "(0x8000, 'a', 1), liveness_column_id, " AT "1Z -> (TTL = 1.500) [NULL]\n"
		     "(0x8000, 'a', 1), msg_props_column_id, 'k', " AT "0Z -> 'v'\n");
}

static void
a_value_in_pieces_is_drawn_by_its_length(void **state)
{
	struct fixture *f = *state;
	struct drawing d = { .space = TIMED_SPACE_ROWS, .out = BUF_INIT(DRAWN_BYTES) };
	char *bytes = arena_bytes(f->arena, LONG_BYTES);
	size_t lines = 0, pieces = 0;

	assert_non_null(bytes);
	memset(bytes, 'x', LONG_BYTES);
	put(f, "ks.msgs",
	    (struct writing){
		    .id = 2,
		    .change = SET(MSG, ((struct doc_scalar){ .kind = DOC_TEXT,
							     .text = { bytes, LONG_BYTES } })) });
	expect(f, "ks.msgs", draw_body, &d, NULL);
	buf_append_byte(&d.out, 0);
	assert_non_null(strstr(d.out.ptr, "(0x8000, 'a', 2), msg_column_id, " AT
					  "0Z -> [120000 bytes in pieces]\n"));
	for (const char *at = d.out.ptr; (at = strstr(at, ", piece ")); at++) {
		unsigned long n, len;

		assert_int_equal(sscanf(at, ", piece %lu -> [%lu bytes]", &n, &len), 2);
		assert_int_equal(n, lines++);
		pieces += len;
	}
	assert_true(lines > 1);
	assert_int_equal(pieces, LONG_BYTES);
	buf_release(&d.out);
}

static enum status
delete_body(struct timed *t, void *arg)
{
	const struct doc_scalar key[] = { text("a"), number(1) };
	struct table_deletion d = *(const struct table_deletion *)arg;

	d.key = (struct table_key){ 97, key, d.kind == TABLE_DELETION_RANGE ? 1 : 2 };
	return table_deletion_restore(t, &d);
}

static void
marks_are_drawn_with_what_they_are_of(void **state)
{
	struct fixture *f = *state;
	struct table_deletion deletions[] = {
		{ .kind = TABLE_DELETION_ROW, .stamp = 5 },
		{ .kind = TABLE_DELETION_INSERTED, .stamp = 6 },
		{ .kind = TABLE_DELETION_COLUMN, .column = MSG, .stamp = 7 },
		{ .kind = TABLE_DELETION_COLUMN,
		  .column = MSG_PROPS,
		  .has_element = true,
		  .element = text("k"),
		  .stamp = 8 },
		{ .kind = TABLE_DELETION_RANGE,
		  .from = STR("\x01"),
		  .to = STR("\x02\xff"),
		  .stamp = 1700000001000000 }, /* a second ahead of the clock */
	};

	for (size_t i = 0; i < COUNT(deletions); i++)
		expect(f, "ks.msgs", delete_body, &deletions[i], NULL);
	expect_drawn(
		f, "ks.msgs", TIMED_SPACE_MARKS,
		"(0x8000, 'a', 1), " AT "0Z (TIMESTAMP = 5) -> deleted\n"
		"(0x8000, 'a', 1), liveness_column_id, " AT "1Z (TIMESTAMP = 6) -> deleted\n"
		"(0x8000, 'a', 1), msg_column_id, " AT "2Z (TIMESTAMP = 7) -> deleted\n"
		"(0x8000, 'a', 1), msg_props_column_id, 'k', " AT "3Z (TIMESTAMP = 8) -> deleted\n"
		"(0x8000, 'a'), rows 0 from 0x01 to 0x02ff, " AT
		"4Z (TIMESTAMP = 1700000001000000) -> deleted\n" AT "0Z, (0x8000, 'a', 1)\n" AT
		"1Z, (0x8000, 'a', 1), liveness_column_id\n" AT
		"2Z, (0x8000, 'a', 1), msg_column_id\n" AT
		"3Z, (0x8000, 'a', 1), msg_props_column_id, 'k'\n" AT "4Z, (0x8000, 'a'), rows 0\n"
		"highest TIMESTAMP = 1700000001000000\n");
	put(f, "ks.msgs", (struct writing){ .id = 7, .inserts = true, .stamp = 1700000002000000 });
	expect_drawn(f, "ks.msgs", TIMED_SPACE_ROWS,
		     "(0x8000, 'a', 7), liveness_column_id, " AT
		     "5Z (TIMESTAMP = 1700000002000000) -> [NULL]\n");
}

static enum status
make_body(struct timed *t, void *arg)
{
	const struct table_schema *schema = arg;

	return table_create(t->tx, STR("ks.t"), schema, 0, t->err);
}

static enum status
told_body(struct timed *t, void *arg)
{
	const struct doc_scalar key[] = { text("a"), number(1) };
	const struct table_write write = {
		.key = { 97, key, 2 }, .inserts = true, .is_new = true, .tells_count = true
	};

	(void)arg;
	TRY(table_write(t, &write));
	return table_count_add(t, 1);
}

static void
schemas_and_counts_are_drawn(void **state)
{
	static const struct table_property packs[] = { { TEXT(TABLE_PROPERTY_PACKED),
							 TEXT("true") } };
	struct fixture *f = *state;
	const struct table_schema counted = { .columns = hits_columns,
					      .column_count = 2,
					      .properties = packs,
					      .property_count = 1,
					      .counts = true };
	const struct str tags[] = { STR("tags"), STR("msg_props") };
	const struct table_property set[] = { { STR("comment"), STR("it's") },
					      { STR("b"), STR("") } };
	struct table_alteration a = {
		.drop = tags, .drop_count = 2, .properties = set, .property_count = 2
	};

	expect_drawn(f, "ks.hits", TIMED_SPACE_TABLE,
		     "columns: 'page' 'text' hash 1, 'day' 'int' range descending 2, 'n' 'counter' "
		     "regular 3\n");
	expect(f, "ks.msgs", alter_body, &a, NULL);
	expect_drawn(
		f, "ks.msgs", TIMED_SPACE_TABLE,
		"columns: 'user_id' 'text' hash 1, 'msg_id' 'int' range 2, 'msg' 'text' regular "
		"3, 'owner' 'text' static 5; dropped: 'tags' 'list<text>' regular 6 " AT
		"0Z, 'msg_props' 'map<text, text>' regular 4 " AT
		"0Z; properties: 'b' = '', 'comment' = 'it''s'\n");
	expect(f, NULL, make_body, (void *)(uintptr_t)&counted, NULL);
	expect_drawn(f, "ks.t", TIMED_SPACE_TABLE,
		     "columns: 'page' 'text' hash 1, 'day' 'int' range descending 2; properties: "
		     "'packed' = 'true'; rows are whole; rows are counted\n");
	expect_drawn(f, "ks.t", TIMED_SPACE_COUNT, "");
	expect(f, "ks.t", told_body, NULL, NULL);
	expect_drawn(f, "ks.t", TIMED_SPACE_COUNT, "rows -> 1\n");
	put(f, "ks.t", (struct writing){ .id = 2, .inserts = true, .stamp = 5 });
	expect_drawn(
		f, "ks.t", TIMED_SPACE_TABLE,
		"columns: 'page' 'text' hash 1, 'day' 'int' range descending 2; properties: "
		"'packed' = 'true'; clients' timestamps count; rows may be packed; rows are no "
		"longer counted\n");
}

/* ---- Rows by what is drawn of their keys ---- */

struct looking {
	const char *id;
	struct buf out;
	const struct catalog_db *db;
	struct kv_tx *tx;
};

static enum status
look_at(void *arg, struct str prefix)
{
	struct looking *l = arg;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	size_t skip = l->db->prefix.len + TIMED_SPACE_BYTES;
	struct kv_scan scan;
	struct kv_pair pair;
	enum status status;

	buf_append_str(&end, prefix);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(kv_scan_init(&scan, l->tx, prefix, buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		assert_true(table_kind.draw_pair(l->db, TIMED_SPACE_ROWS, str_skip(pair.key, skip),
						 pair.value, &l->out));
		buf_append_byte(&l->out, '\n');
	}
	kv_scan_release(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
look_body(struct timed *t, void *arg)
{
	struct looking *l = arg;

	buf_clear(&l->out);
	l->db = t->db;
	l->tx = t->tx;
	return table_kind.inspect(t->tx, t->db, str_from_cstr(l->id), NULL, look_at, l);
}

static size_t
lines_of(struct fixture *f, const char *id)
{
	struct looking l = { .id = id, .out = BUF_INIT(DRAWN_BYTES) };
	size_t lines = 0;

	expect(f, "ks.msgs", look_body, &l, NULL);
	for (size_t i = 0; i < l.out.len; i++)
		lines += l.out.ptr[i] == '\n';
	buf_release(&l.out);
	return lines;
}

struct keyed {
	const char *partition;
	struct doc_scalar part;
};

static enum status
keyed_body(struct timed *t, void *arg)
{
	const struct keyed *k = arg;
	const struct doc_scalar key[] = { text(k->partition), k->part };
	const struct table_write write = { .key = { 97, key, 2 }, .inserts = true };

	return table_write(t, &write);
}

static void
rows_are_found_by_keys_of_each_kind(void **state)
{
	static const char uuid[] =
		"\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef";
	static const struct {
		struct doc_scalar part;
		const char *drawn;
		const char *not_drawn; /* the same, or nearly, drawn otherwise */
	} cases[] = {
		{ { .kind = DOC_TEXT, .text = TEXT("it's, ok)") }, "'it''s, ok)'", "'it's, ok)'" },
		{ { .kind = DOC_TEXT }, "''", "'" },
		{ { .kind = DOC_TEXT, .text = TEXT("'") }, "''''", "'''" },
		{ { .kind = DOC_BOOL, .truth = true }, "true", "yes" },
		{ { .kind = DOC_BOOL }, "false", "False" },
		{ { .kind = DOC_BYTES, .text = TEXT("\x01\xff") }, "0x01ff", "0x01f" },
		{ { .kind = DOC_BYTES, .text = TEXT("\x01") }, "0x01", "01" },
		{ { .kind = DOC_INT8, .n = -1 }, "-1", "-01" },
		{ { .kind = DOC_INT16, .n = 300 }, "300", "+300" },
		{ { .kind = DOC_INT32, .n = 70000 }, "70000", "70000.0" },
		{ { .kind = DOC_INT64, .n = INT64_MIN },
		  "-9223372036854775808",
		  "-9223372036854775809" },
		{ { .kind = DOC_DATE, .n = 5 }, "5", "5x" },
		{ { .kind = DOC_DAY, .n = 19000 }, "19000", "019000" },
		{ { .kind = DOC_TIME, .n = 1 }, "1", "x" },
		{ { .kind = DOC_DOUBLE, .d = 1.5 }, "1.5", "1.50" },
		{ { .kind = DOC_FLOAT, .f = 0.1F }, "0.10000000149011612", "0.1" },
		{ { .kind = DOC_UUID, .text = { uuid, 16 } },
		  "01234567-89ab-cdef-0123-456789abcdef",
		  "0123456789abcdef0123456789abcdef" },
		{ { .kind = DOC_UUID, .text = { uuid, 16 } },
		  "01234567-89ab-cdef-0123-456789abcdef",
		  "01234567-89ab-cdef-0123-456789abcd" },
		{ { .kind = DOC_INET, .text = TEXT("\x7f\x00\x00\x01") },
		  "127.0.0.1",
		  "127.0.0.01" },
		{ { .kind = DOC_INET, .text = { "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16 } },
		  "::1",
		  "0::1" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct str name = arena_printf(f->arena, "p%zu", i);
		struct keyed k = { name.ptr, cases[i].part };

		expect(f, "ks.msgs", keyed_body, &k, NULL);
		if (lines_of(f,
			     arena_printf(f->arena, "(0x8000, '%s', %s)", name.ptr, cases[i].drawn)
				     .ptr) != 1)
			fail_msg("%s is not found", cases[i].drawn);
		if (lines_of(f, arena_printf(f->arena, "(0x8000, '%s', %s)", name.ptr,
					     cases[i].not_drawn)
					.ptr) != 0)
			fail_msg("%s is found", cases[i].not_drawn);
	}
	assert_int_equal(lines_of(f, "(0x8000"), COUNT(cases));
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_drawn_by_their_kinds),
		cmocka_unit_test(long_integers_are_drawn_as_their_bytes),
		cmocka_unit_test(times_are_drawn_to_the_microsecond),
		cmocka_unit_test(each_space_has_its_name),
		TEST(cells_are_drawn_with_what_they_have),
		TEST(a_value_in_pieces_is_drawn_by_its_length),
		TEST(marks_are_drawn_with_what_they_are_of),
		TEST(schemas_and_counts_are_drawn),
		TEST(rows_are_found_by_keys_of_each_kind),
	};

	return cmocka_run_group_tests_name("tables_pairs", tests, NULL, NULL);
}

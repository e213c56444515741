/*
 * Reading one row: each choice of columns gives what the whole row has of them, and so many reads;
 * keys and values that no row can have are damage, which reads and scans of all kinds tell.
 */
#include "../records.h"

#include "catalog/store_format.h"
#include "model/timed/tables/keyspaces.h"
#include "model/timed/tables/tables_int.h"
#include "store.h"
#include "test_tables.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
	ARENA_BYTES = 4 * 1024 * 1024,
	DRAWN_BYTES = 10 * 1000,
	START_MS = 1000 * 1000,
	NO_COLUMN = 99, /* that was there once, or never */
};

static const char *const names[] = { "ks.leaves", "ks.packed" };

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct timed_clock clock;
	struct err err;
};

static uint64_t
fixture_now(void *arg)
{
	(void)arg;
	return START_MS;
}

/* ---- Transactions ---- */

typedef enum status work_body(struct timed *t, void *arg);

struct work {
	struct fixture *f;
	const char *table;
	work_body *body;
	void *arg;
};

static enum status
work_run(struct kv_tx *tx, void *arg)
{
	struct work *w = arg;
	struct catalog_db *db;
	enum status status;
	struct timed t;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, str_from_cstr(w->table), &db, &w->f->err));
	timed_init(&t, tx, db, &w->f->clock, &w->f->err);
	status = w->body(&t, w->arg);
	catalog_db_unref(db);
	return status;
}

static enum status
run(struct fixture *f, const char *table, work_body *body, void *arg)
{
	struct work w = { .f = f, .table = table, .body = body, .arg = arg };

	return kv_run(f->store, work_run, &w, NULL, &f->err);
}

/* The row ("u", 1), or the static columns of its partition. */
static struct table_key
key_of(bool statics, struct doc_scalar parts[2])
{
	parts[0] = text("u");
	parts[1] = number(1);
	return (struct table_key){ .token = 7, .parts = parts, .count = statics ? 1 : 2 };
}

static enum status
fill_body(struct timed *t, void *arg)
{
	const struct table_change owner = { .kind = TABLE_CHANGE_PUT,
					    .column = OWNER,
					    .value = text("o") };
	const struct table_change changes[] = {
		{ .kind = TABLE_CHANGE_PUT, .column = MSG, .value = text("m") },
		{ .kind = TABLE_CHANGE_PUT_ELEMENT,
		  .column = MSG_PROPS,
		  .element = text("p"),
		  .value = text("1") },
		{ .kind = TABLE_CHANGE_PUT_ELEMENT,
		  .column = MSG_PROPS,
		  .element = text("q"),
		  .value = text("2") },
		{ .kind = TABLE_CHANGE_APPEND, .column = TAGS, .value = text("t") },
	};
	struct doc_scalar parts[2];
	struct table_write write = { .key = key_of(false, parts),
				     .inserts = true,
				     .changes = changes,
				     .change_count = COUNT(changes) };

	(void)arg;
	TRY(table_write(t, &write));
	write = (struct table_write){ .key = key_of(true, parts),
				      .changes = &owner,
				      .change_count = 1 };
	return table_write(t, &write);
}

/* ---- Some columns ---- */

struct reading {
	struct table_wanted wanted;
	bool statics;
	uint64_t reads;
	struct buf drawn;
};

static enum status
read_body(struct timed *t, void *arg)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	uint64_t before = kv_tx_stats(t->tx).reads;
	struct reading *r = arg;
	struct doc_scalar parts[2];
	const struct table_key key = key_of(false, parts);
	struct table_row row;
	enum status status;

	assert_non_null(arena);
	buf_clear(&r->drawn);
	status = table_read(t, &key, r->statics, &r->wanted, arena, &row);
	r->reads = kv_tx_stats(t->tx).reads - before;
	if (status == STATUS_OK)
		draw_row(&row, &r->drawn);
	arena_free(arena);
	return status;
}

/* Reads the columns of which `chosen` has a bit, in the order of their ids. */
static uint64_t
read_chosen(struct fixture *f, const char *table, unsigned chosen, bool statics)
{
	static const uint64_t ids[] = { MSG, MSG_PROPS, OWNER, TAGS, NO_COLUMN };
	static const char *const drawn[] = { " msg=m", " msg_props[p]=1 msg_props[q]=2", " owner=o",
					     " tags=t", "" };
	AUTO(buf_release) struct buf expected = BUF_INIT(DRAWN_BYTES);
	struct reading r = { .wanted = { .some = true }, .statics = statics };
	uint64_t wanted[COUNT(ids)];

	r.drawn = BUF_INIT(DRAWN_BYTES);
	buf_append_cstr(&expected, "(u/1*");
	for (size_t i = 0; i < COUNT(ids); i++) {
		if (!(chosen & 1U << i))
			continue;
		wanted[r.wanted.count++] = ids[i];
		if (ids[i] != OWNER)
			buf_append_cstr(&expected, drawn[i]);
	}
	if (statics && chosen & 1U << 2)
		buf_append_cstr(&expected, drawn[2]);
	buf_append_cstr(&expected, ")");
	r.wanted.ids = wanted;
	assert_int_equal(run(f, table, read_body, &r), STATUS_OK);
	if (!str_eq(buf_str(&r.drawn), buf_str(&expected)))
		fail_msg("%.*s, not %.*s", STR_ARG(buf_str(&r.drawn)), STR_ARG(buf_str(&expected)));
	buf_release(&r.drawn);
	return r.reads;
}

static void
each_choice_of_columns_has_its_values(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(names); i++)
		for (unsigned chosen = 0; chosen < 1U << 5; chosen++)
			for (int statics = 0; statics < 2; statics++)
				(void)read_chosen(f, names[i], chosen, statics);
	/* Beside the clock: the row's own pair, and a pair of each column. */
	assert_int_equal(read_chosen(f, names[0], 0, false), 2);
	assert_int_equal(read_chosen(f, names[0], 1, false), 3);
	/* Of what may be more than one pair, or is no column of a row, a range. */
	for (unsigned i = 1; i < 5; i++)
		assert_int_equal(read_chosen(f, names[0], 1U << i, false), 2);
}

/* ---- Damage ---- */

enum reader {
	READ_ROW,
	READ_STATICS,
	SCAN,
	SCAN_BACKWARD,
	SCAN_BORROWING,
	READERS_END,
};

struct damage {
	bool statics;      /* in the row of the static columns */
	const char *key;   /* behind the key of the row: a record (records.h) */
	const char *value; /* likewise */
	enum reader reader;
};

static enum status
scan_all(struct timed *t, struct arena *arena, enum reader reader)
{
	const struct table_scan_options options = { .statics = true,
						    .reverse = reader == SCAN_BACKWARD,
						    .borrows = reader == SCAN_BORROWING };
	struct table_scan *scan;
	struct table_row row;
	enum status status;

	TRY(table_scan_open(t, &options, &scan));
	while ((status = table_scan_next(scan, arena, &row)) == STATUS_OK)
		continue;
	table_scan_close(scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
read_damaged(struct timed *t, struct arena *arena, enum reader reader)
{
	struct doc_scalar parts[2];
	const struct table_key key = key_of(reader == READ_STATICS, parts);
	struct table_row row;

	if (reader >= SCAN)
		return scan_all(t, arena, reader);
	return table_read(t, &key, true, NULL, arena, &row);
}

/* What is damaged is not committed: it ends with the status of the read, or as one that exists. */
static enum status
damage_body(struct timed *t, void *arg)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(RECORD_BYTES);
	struct arena *arena = arena_new(ARENA_BYTES);
	const struct damage *d = arg;
	struct doc_scalar parts[2];
	const struct table_key row = key_of(d->statics, parts);
	enum status status;

	assert_non_null(arena);
	assert_int_equal(table_key_row(t, &row, &key), STATUS_OK);
	record_put(d->key, &key);
	record_put(d->value, &value);
	assert_int_equal(kv_set(t->tx, buf_str(&key), buf_str(&value)), STATUS_OK);
	status = read_damaged(t, arena, d->reader);
	arena_free(arena);
	return status == STATUS_OK ? STATUS_EXISTS : status;
}

/* Whoever reads the pair tells; a read of the partition alone does not look at rows. */
static void
reads_are(struct fixture *f, const char *table, struct damage d, enum status expected)
{
	for (d.reader = READ_ROW; d.reader < READERS_END; d.reader++) {
		bool is_met = d.reader != READ_STATICS || d.statics;
		enum status status = run(f, table, damage_body, &d);

		if (status != (is_met ? expected : STATUS_EXISTS))
			fail_msg("%s: %s = %s, read by %d: %s", table, d.key, d.value,
				 (int)d.reader, status_name(status));
	}
}

/* A leaf: the format, its type, write time, expiry (never), scalar. */
#define LEAF "1 0 1 0 s:x"

static void
a_pair_that_no_row_has_is_damage(void **state)
{
	static const struct damage good[] = {
		{ false, "3", LEAF, 0 },
		{ false, "99", LEAF, 0 },
		{ true, "5", LEAF, 0 },
		{ true, "99", LEAF, 0 },
	};
	static const struct damage bad[] = {
		/* columns: no number, none of this row's */
		{ false, "0", LEAF, 0 },
		{ false, "-3", LEAF, 0 },
		{ false, "s:a", LEAF, 0 },
		{ false, "b:a", LEAF, 0 },
		{ false, "n", LEAF, 0 },
		{ false, "1", LEAF, 0 },
		{ false, "2", LEAF, 0 },
		{ false, "5", LEAF, 0 },
		{ true, "3", LEAF, 0 },
		{ true, "4", LEAF, 0 },
		{ true, "0", LEAF, 0 },
		{ true, "", "1 1 1 0", 0 },
		/* elements where there are none, and none where there are some */
		{ false, "3 b:a", LEAF, 0 },
		{ false, "4", LEAF, 0 },
		{ false, "6", LEAF, 0 },
		{ false, "4 b:", LEAF, 0 },
		{ false, "4 b:xyz", LEAF, 0 },
		/* keys that end behind no number of a piece */
		{ false, "3 s:a", "x00 =a", 0 },
		{ false, "3 0 0", "x00 =a", 0 },
		/* values: no cells, cells of rows, without a scalar, with two */
		{ false, "3", "", 0 },
		{ false, "3", "1 1 1 0", 0 },
		{ false, "3", "1 2 1 0 s:x", 0 },
		{ false, "3", "1 0 1 0", 0 },
		{ false, "3", "1 0 1 0 s:x s:y", 0 },
		{ false, "3", "0 0 1 0 s:x", 0 },
		{ false, "", "1 0 1 0 s:x", 0 },
		{ false, "", "1 2 1 0 s:x", 0 },
		{ false, "", "1 3 1 0", 0 },
		{ true, "5", "1 1 1 0", 0 },
	};
	static const struct damage packed = { false, "", "5 1 1 0 3 3 s:x", 0 };
	struct fixture *f = *state;

	reads_are(f, names[0], packed, STATUS_CORRUPT);
	reads_are(f, names[1], packed, STATUS_EXISTS);
	for (size_t i = 0; i < COUNT(names); i++) {
		for (size_t j = 0; j < COUNT(good); j++)
			reads_are(f, names[i], good[j], STATUS_EXISTS);
		for (size_t j = 0; j < COUNT(bad); j++)
			reads_are(f, names[i], bad[j], STATUS_CORRUPT);
	}
}

/* ---- All of them ---- */

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	const struct table_keyspace ks = { .name = STR("ks") };
	const struct table_property packed = { STR(TABLE_PROPERTY_PACKED), STR("true") };
	struct table_schema schema = { .columns = msgs_columns,
				       .column_count = COUNT(msgs_columns) };

	(void)arg;
	TRY(table_keyspace_create(tx, &ks, NULL));
	TRY(table_create(tx, str_from_cstr(names[0]), &schema, 0, NULL));
	schema.properties = &packed;
	schema.property_count = 1;
	return table_create(tx, str_from_cstr(names[1]), &schema, 0, NULL);
}

static int
fixture_setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char url[256];

	test_show_failures();
	tables_register();
	test_make_dir("reads", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, &f->err), STATUS_OK);
	f->clock = (struct timed_clock){ .now_ms = fixture_now, .arg = f };
	assert_int_equal(kv_run(f->store, create_body, NULL, NULL, &f->err), STATUS_OK);
	for (size_t i = 0; i < COUNT(names); i++)
		assert_int_equal(run(f, names[i], fill_body, NULL), STATUS_OK);
	*state = f;
	return 0;
}

static int
fixture_teardown(void **state)
{
	struct fixture *f = *state;

	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

/* ---- Terms of indexes ---- */

/* One that could be made is not: STATUS_EXISTS. */
static enum status
create_index_body(struct timed *t, void *arg)
{
	uint64_t number;

	TRY(table_index_create(t, arg, &number));
	return STATUS_EXISTS;
}

#define COLUMN(id)                                                                                 \
	{                                                                                          \
		.column = (id)                                                                     \
	}
#define PART(id, the_part)                                                                         \
	{                                                                                          \
		.column = (id), .part = INDEX_TYPED_##the_part                                     \
	}
#define WHERE(id)                                                                                  \
	{                                                                                          \
		.column = (id), .op = INDEX_TYPED_NOT_NULL                                         \
	}

enum {
	LIST_MOST = 17, /* one more than any list of terms may have */
};

struct terms {
	const char *refusal; /* what it begins with; NULL: there is none */
	bool is_unique;
	struct table_index_column columns[LIST_MOST];
	uint64_t carried[LIST_MOST];
	struct index_typed_condition conditions[LIST_MOST];
	size_t column_count, carried_count, condition_count; /* 0: as many as have an id */
};

static struct table_index
index_of(const struct terms *c)
{
	struct table_index terms = { .name = STR("i"),
				     .is_unique = c->is_unique,
				     .columns = c->columns,
				     .column_count = c->column_count,
				     .carried = c->carried,
				     .carried_count = c->carried_count,
				     .conditions = c->conditions,
				     .condition_count = c->condition_count };

	while (!c->column_count && terms.column_count < LIST_MOST &&
	       c->columns[terms.column_count].column)
		terms.column_count++;
	while (!c->carried_count && terms.carried_count < LIST_MOST &&
	       c->carried[terms.carried_count])
		terms.carried_count++;
	while (!c->condition_count && terms.condition_count < LIST_MOST &&
	       c->conditions[terms.condition_count].column)
		terms.condition_count++;
	return terms;
}

static void
terms_that_no_index_can_have_are_refused(void **state)
{
	static const char *const single = "rows of an index are chosen by single values";
	static const char *const way = "the column";
	static const char *const carries = "an index includes single values in the row";
	static const struct terms good[] = {
		{ .columns = { COLUMN(MSG) } },
		{ .columns = { COLUMN(MSG), COLUMN(MSG_ID) }, .is_unique = true },
		{ .columns = { PART(MSG_PROPS, KEYS) } },
		{ .columns = { PART(MSG_PROPS, VALUES) } },
		{ .columns = { PART(MSG_PROPS, ENTRIES) } },
		{ .columns = { PART(TAGS, VALUES) } },
		{ .columns = { COLUMN(OWNER) } },
		{ .columns = { COLUMN(MSG_ID) }, .carried = { MSG } },
		{ .columns = { COLUMN(MSG) }, .conditions = { WHERE(MSG_ID) } },
	};
	const struct terms bad[] = {
		{ .refusal = "an index has 1 to 16 columns" },
		{ .refusal = "an index has 1 to 16 columns", .column_count = 17 },
		{ .refusal = "no column of the table", .columns = { COLUMN(NO_COLUMN) } },
		{ .refusal = way, .columns = { COLUMN(MSG_PROPS) } },
		{ .refusal = way, .columns = { COLUMN(TAGS) } },
		{ .refusal = way, .columns = { PART(MSG, KEYS) } },
		{ .refusal = way, .columns = { PART(MSG, VALUES) } },
		{ .refusal = way, .columns = { PART(MSG, ENTRIES) } },
		{ .refusal = way, .columns = { PART(TAGS, KEYS) } },
		{ .refusal = way, .columns = { PART(TAGS, ENTRIES) } },
		{ .refusal = "an index of parts of the column",
		  .columns = { PART(TAGS, VALUES) },
		  .is_unique = true },
		{ .refusal = way, .columns = { PART(TAGS, VALUES), COLUMN(MSG) } },
		{ .refusal = way, .columns = { COLUMN(MSG), COLUMN(OWNER) } },
		{ .refusal = way, .columns = { COLUMN(MSG), COLUMN(MSG_ID), COLUMN(MSG) } },
		{ .refusal = "an index includes 16 columns at most",
		  .columns = { COLUMN(MSG_ID) },
		  .carried = { MSG },
		  .carried_count = 17 },
		{ .refusal = "an index of parts of collections",
		  .columns = { PART(TAGS, VALUES) },
		  .carried = { MSG } },
		{ .refusal = "an index of parts of collections",
		  .columns = { COLUMN(OWNER) },
		  .carried = { MSG } },
		{ .refusal = carries, .columns = { COLUMN(MSG) }, .carried = { NO_COLUMN } },
		{ .refusal = carries, .columns = { COLUMN(MSG) }, .carried = { MSG_ID } },
		{ .refusal = carries, .columns = { COLUMN(MSG) }, .carried = { MSG_PROPS } },
		{ .refusal = carries, .columns = { COLUMN(MSG) }, .carried = { OWNER } },
		{ .refusal = way, .columns = { COLUMN(MSG_ID) }, .carried = { MSG, MSG } },
		{ .refusal = way, .columns = { COLUMN(MSG) }, .carried = { MSG } },
		{ .refusal = "an index has 16 conditions at most",
		  .columns = { COLUMN(MSG) },
		  .conditions = { WHERE(MSG) },
		  .condition_count = 17 },
		{ .refusal = single,
		  .columns = { COLUMN(MSG) },
		  .conditions = { WHERE(NO_COLUMN) } },
		{ .refusal = single, .columns = { COLUMN(MSG) }, .conditions = { WHERE(TAGS) } },
		{ .refusal = single, .columns = { COLUMN(MSG) }, .conditions = { WHERE(OWNER) } },
		{ .refusal = single, .columns = { COLUMN(OWNER) }, .conditions = { WHERE(MSG) } },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(good); i++) {
		struct table_index terms = index_of(&good[i]);

		f->err = (struct err){ 0 };
		if (run(f, names[0], create_index_body, &terms) != STATUS_EXISTS)
			fail_msg("terms %zu: %s", i, f->err.text);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct table_index terms = index_of(&bad[i]);

		f->err = (struct err){ 0 };
		assert_int_equal(run(f, names[0], create_index_body, &terms), STATUS_INVALID);
		if (strncmp(f->err.text, bad[i].refusal, strlen(bad[i].refusal)) != 0)
			fail_msg("bad terms %zu: %s", i, f->err.text);
	}
}

/* ---- What a table needs besides itself ---- */

static enum status
put_type(struct kv_tx *tx, const char *keyspace, const char *name, const char *type, bool replaces)
{
	const struct table_field fields[] = { { STR("x"), str_from_cstr(type) },
					      { STR("y"), STR("int") } };
	const struct table_type all = { .keyspace = str_from_cstr(keyspace),
					.name = str_from_cstr(name),
					.fields = fields,
					.field_count = COUNT(fields) };

	return table_type_put(tx, &all, replaces, NULL);
}

/* A table that names "outer", which names "inner"; "out", "er" and "others" nobody names. */
static enum status
create_needy_body(struct kv_tx *tx, void *arg)
{
	static const struct table_column columns[] = {
		{ .name = TEXT("k"), .type = TEXT("int"), .kind = TABLE_HASH },
		{ .name = TEXT("v"),
		  .type = TEXT("list<frozen<outer>>"),
		  .kind = TABLE_REGULAR,
		  .storage = TABLE_LIST },
	};
	const struct table_schema schema = { .columns = columns, .column_count = COUNT(columns) };

	(void)arg;
	TRY(put_type(tx, "ks", "er", "int", false));
	TRY(put_type(tx, "ks", "inner", "text", false));
	TRY(put_type(tx, "ks", "others", "outer", false));
	TRY(put_type(tx, "ks", "out", "int", false));
	TRY(put_type(tx, "ks", "outer", "map<int, inner>", false));
	return table_create(tx, STR("ks.needy"), &schema, 0, NULL);
}

static enum status
ensure_needs_body(struct timed *t, void *arg)
{
	struct arena *arena = arg;
	struct table_needs needs;
	struct table_types all;

	TRY(table_needs_read(t->tx, t->db, arena, &needs, t->err));
	assert_true(str_eq(needs.keyspace.name, STR("ks")));
	assert_int_equal(needs.type_count, 2);
	assert_true(str_eq(needs.types[0].name, STR("inner")));
	assert_true(str_eq(needs.types[1].name, STR("outer")));
	TRY(table_needs_ensure(t->tx, STR("to"), &needs, arena, t->err));
	TRY(table_type_list(t->tx, STR("to"), arena, &all, t->err));
	assert_int_equal(all.count, 2);
	assert_true(str_eq(all.types[1].fields[0].type, STR("map<int, inner>")));
	return STATUS_OK;
}

static enum status
change_type_body(struct kv_tx *tx, void *arg)
{
	return put_type(tx, "to", "inner", arg, true);
}

/* With one field less than the table's. */
static enum status
shorten_type_body(struct kv_tx *tx, void *arg)
{
	const struct table_field field = { STR("x"), STR("text") };
	const struct table_type type = {
		.keyspace = STR("to"), .name = STR("inner"), .fields = &field, .field_count = 1
	};

	(void)arg;
	return table_type_put(tx, &type, true, NULL);
}

static void
what_a_table_needs_is_made_or_is_the_same(void **state)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	char text_type[] = "text", number_type[] = "int";
	struct fixture *f = *state;

	assert_int_equal(kv_run(f->store, create_needy_body, NULL, NULL, &f->err), STATUS_OK);
	assert_int_equal(run(f, "ks.needy", ensure_needs_body, arena), STATUS_OK);
	assert_int_equal(run(f, "ks.needy", ensure_needs_body, arena), STATUS_OK);
	assert_int_equal(kv_run(f->store, change_type_body, number_type, NULL, &f->err), STATUS_OK);
	f->err = (struct err){ 0 };
	assert_int_equal(run(f, "ks.needy", ensure_needs_body, arena), STATUS_INVALID);
	assert_string_equal(f->err.text,
			    "the type \"inner\" of the keyspace \"to\" has other fields there");
	assert_int_equal(kv_run(f->store, change_type_body, text_type, NULL, &f->err), STATUS_OK);
	assert_int_equal(run(f, "ks.needy", ensure_needs_body, arena), STATUS_OK);
	assert_int_equal(kv_run(f->store, shorten_type_body, NULL, NULL, &f->err), STATUS_OK);
	assert_int_equal(run(f, "ks.needy", ensure_needs_body, arena), STATUS_INVALID);
	arena_free(arena);
}

/* A caller whose scan could not be opened has none to close. */
static void
closing_no_scan_does_nothing(void **state)
{
	(void)state;
	table_scan_close(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closing_no_scan_does_nothing),
		TEST(each_choice_of_columns_has_its_values),
		TEST(a_pair_that_no_row_has_is_damage),
		TEST(terms_that_no_index_can_have_are_refused),
		TEST(what_a_table_needs_is_made_or_is_the_same),
	};

	return cmocka_run_group_tests_name("table_reads", tests, NULL, NULL);
}

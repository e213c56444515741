/*
 * Rows at their limits, and one beyond: schemas, names, keys, paths, the bounds of a history; and
 * what of the past cannot be read or changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/store_format.h"
#include "kv/tuple.h"
#include "history/history.h"
#include "model/timed/renew.h"
#include "model/timed/rows/rows.h"
#include "model/timed/timed_int.h"
#include "store.h"

enum {
	ARENA_BYTES = 16 * 1024 * 1024,
	START_MS = 1000 * 1000,
};

#define TABLE "table" /* (a, b, c) with the columns x, y, of which a is the hash component */
#define KEYS  "keys"  /* (a), without columns */

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	struct arena_mark mark;
	struct timed_clock clock;
	uint64_t now_ms;
	struct err err;
	const char *db;
	enum status (*body)(struct timed *t, struct fixture *f);
	uint64_t n; /* of the step */
	const struct timed_schema *schema;
	uint64_t until_us;
};

static uint64_t
fixture_now(void *arg)
{
	const struct fixture *f = arg;

	return f->now_ms;
}

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	struct timed_key_column key[] = { { .name = STR("a") },
					  { .name = STR("b") },
					  { .name = STR("c"), .descending = true } };
	struct str columns[] = { STR("x"), STR("y") };
	const struct timed_schema table = { key, 1, 3, columns, 2 };
	const struct timed_schema keys = { key, 1, 1, NULL, 0 };

	(void)arg;
	TRY(timed_create(tx, STR(TABLE), &table, 0, NULL));
	return timed_create(tx, STR(KEYS), &keys, 0, NULL);
}

static int
fixture_setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char url[256];

	test_show_failures();
	timed_rows_register();
	test_make_dir("limits", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, &f->err), STATUS_OK);
	f->arena = arena_new(ARENA_BYTES);
	f->mark = arena_mark(f->arena);
	f->clock = (struct timed_clock){ .now_ms = fixture_now, .arg = f };
	f->now_ms = START_MS;
	assert_int_equal(kv_run(f->store, create_body, NULL, NULL, &f->err), STATUS_OK);
	*state = f;
	return 0;
}

static int
fixture_teardown(void **state)
{
	struct fixture *f = *state;

	arena_free(f->arena);
	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

static enum status
work_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	struct catalog_db *db;
	enum status status;
	struct timed t;

	arena_reset(f->arena, f->mark);
	f->err.text[0] = '\0';
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_ROWS, str_from_cstr(f->db), &db, &f->err));
	timed_init(&t, tx, db, &f->clock, &f->err);
	status = f->body(&t, f);
	catalog_db_unref(db);
	return status;
}

static enum status
work(struct fixture *f, const char *db, enum status (*body)(struct timed *t, struct fixture *f))
{
	f->db = db;
	f->body = body;
	return kv_run(f->store, work_body, f, NULL, &f->err);
}

/* A refusal, and what is said of it. */
static void
refused(struct fixture *f, enum status status, enum status want, const char *said)
{
	assert_int_equal(status, want);
	if (!strstr(f->err.text, said))
		fail_msg("\"%s\" instead of \"%s\"", f->err.text, said);
}

static struct doc_scalar
text_of(struct fixture *f, size_t bytes)
{
	char *copy = arena_bytes(f->arena, bytes);

	assert_non_null(copy);
	memset(copy, 'k', bytes);
	return (struct doc_scalar){ .kind = DOC_TEXT, .text = str_of(copy, bytes) };
}

/* ---- Schemas ---- */

static enum status
schema_run(struct kv_tx *tx, void *arg)
{
	static unsigned made;
	struct fixture *f = arg;
	char name[16];

	(void)snprintf(name, sizeof(name), "made%u", made++);
	return timed_create(tx, str_from_cstr(name), f->schema, 0, &f->err);
}

static enum status
schema_try(struct fixture *f, const struct timed_schema *schema)
{
	f->schema = schema;
	return kv_run(f->store, schema_run, f, NULL, &f->err);
}

static void
a_schema_has_as_many_columns_as_it_may(void **state)
{
	static struct timed_key_column key[TIMED_KEY_COLUMNS + 1];
	static char key_names[TIMED_KEY_COLUMNS + 1][8];
	static struct str columns[TIMED_COLUMNS + 1];
	static char names[TIMED_COLUMNS + 1][TIMED_NAME_BYTES + 1];
	struct timed_schema schema = { key, 1, TIMED_KEY_COLUMNS, columns, TIMED_COLUMNS };
	struct fixture *f = *state;

	for (size_t i = 0; i <= TIMED_KEY_COLUMNS; i++) {
		(void)snprintf(key_names[i], sizeof(key_names[i]), "k%zu", i);
		key[i].name = str_from_cstr(key_names[i]);
		key[i].descending = i;
	}
	for (size_t i = 0; i <= TIMED_COLUMNS; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "%0*zu", TIMED_NAME_BYTES, i);
		columns[i] = str_of(names[i] + TIMED_NAME_BYTES - 6, 6);
	}
	assert_int_equal(schema_try(f, &schema), STATUS_OK);
	schema.key_count++;
	refused(f, schema_try(f, &schema), STATUS_INVALID, "TIMED_KEY_COLUMNS");
	schema.key_count = schema.hash_count = TIMED_KEY_COLUMNS;
	refused(f, schema_try(f, &schema), STATUS_INVALID, "\"k1\" cannot be descending");
	schema.key_count = 2;
	refused(f, schema_try(f, &schema), STATUS_INVALID, "one hash component");
	schema.hash_count = 0;
	refused(f, schema_try(f, &schema), STATUS_INVALID, "one hash component");
	schema.hash_count = 1;
	schema.column_count++;
	refused(f, schema_try(f, &schema), STATUS_INVALID, "TIMED_COLUMNS");
	schema.column_count = TIMED_COLUMNS;
	for (size_t i = 0; i < TIMED_COLUMNS; i++)
		columns[i] = str_from_cstr(names[i]);
	refused(f, schema_try(f, &schema), STATUS_INVALID, "names of the columns are too long");
	schema.column_count = 900;
	assert_int_equal(schema_try(f, &schema), STATUS_OK);
	schema.hash_count = 2;
	key[1].descending = false;
	assert_int_equal(schema_try(f, &schema), STATUS_OK);
}

static void
columns_have_names_of_their_own(void **state)
{
	static const char longest[] = "0123456789012345678901234567890123456789012345678901234567"
				      "890123456789012345678901234567890123456789+";
	struct timed_key_column key[] = { { .name = STR("a") }, { .name = STR("b") } };
	const struct {
		struct str name;
		const char *said; /* NULL: it is fine */
	} cases[] = {
		{ STR("a"), "two columns are called \"a\"" },
		{ STR("b"), "two columns are called \"b\"" },
		{ STR("x"), "two columns are called \"x\"" },
		{ STR("xx"), NULL },
		{ STR(""), "1 to 100 bytes" },
		{ STR("y\xff"), "1 to 100 bytes" },
		{ STR("y\xc3"), "1 to 100 bytes" },
		{ STR("y\xc3\xa4"), NULL },
		{ { longest, TIMED_NAME_BYTES }, NULL },
		{ { longest, TIMED_NAME_BYTES + 1 }, "1 to 100 bytes" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct str columns[] = { STR("x"), cases[i].name };
		const struct timed_schema schema = { key, 1, 2, columns, 2 };
		enum status status = schema_try(f, &schema);

		if (cases[i].said)
			refused(f, status, STATUS_INVALID, cases[i].said);
		else
			assert_int_equal(status, STATUS_OK);
		assert_int_equal(timed_column_find(&schema, cases[i].name), i == 2 ? 1 : 2);
		assert_int_equal(timed_column_find(&schema, STR("x")), 1);
		assert_int_equal(timed_column_find(&schema, STR("X")), 0);
	}
	{
		struct timed_key_column twice[] = { { .name = STR("a") }, { .name = STR("a") } };
		const struct timed_schema schema = { twice, 1, 2, NULL, 0 };

		refused(f, schema_try(f, &schema), STATUS_INVALID, "two columns are called");
	}
}

/* Adds as many columns as the step says, with long names. */
static enum status
columns_run(struct timed *t, struct fixture *f)
{
	struct str *names = arena_alloc(f->arena, f->n * sizeof(*names));
	size_t old = timed_schema_of(t->db)->column_count;

	for (size_t i = 0; i < f->n; i++)
		names[i] = arena_printf(f->arena, "c%0*zu", f->until_us ? 99 : 4, old + i);
	return timed_columns_add(t, names, f->n);
}

static enum status
two_columns_run(struct timed *t, struct fixture *f)
{
	static const char *const twos[][2] = { { "z", "z" }, { "y", "z" }, { "z", "a" } };
	const struct str names[] = { str_from_cstr(twos[f->n][0]), str_from_cstr(twos[f->n][1]) };

	return timed_columns_add(t, names, 2);
}

static enum status
schema_is_run(struct timed *t, struct fixture *f)
{
	const struct timed_schema *schema = timed_schema_of(t->db);

	assert_int_equal(schema->column_count, f->n);
	assert_true(str_eq(schema->columns[0], STR("x")));
	assert_true(str_eq(schema->columns[1], STR("y")));
	for (size_t i = 2; i < f->n; i++)
		assert_true(str_eq(schema->columns[i], arena_printf(f->arena, "c%04zu", i)));
	assert_int_equal(schema->key_count, 3);
	assert_int_equal(schema->hash_count, 1);
	assert_false(schema->key[1].descending);
	assert_true(schema->key[2].descending);
	return STATUS_OK;
}

static void
columns_are_added_until_there_are_enough(void **state)
{
	struct fixture *f = *state;

	f->n = 1;
	refused(f, work(f, KEYS, columns_run), STATUS_INVALID, "no columns");
	for (f->n = 0; f->n < 3; f->n++)
		refused(f, work(f, TABLE, two_columns_run), STATUS_INVALID, "two columns are");
	f->n = TIMED_COLUMNS - 2;
	f->until_us = 1;
	refused(f, work(f, TABLE, columns_run), STATUS_INVALID, "too long");
	f->until_us = 0;
	f->n = TIMED_COLUMNS - 1;
	refused(f, work(f, TABLE, columns_run), STATUS_INVALID, "TIMED_COLUMNS");
	f->n = 2;
	assert_int_equal(work(f, TABLE, schema_is_run), STATUS_OK);
	f->n = 500;
	assert_int_equal(work(f, TABLE, columns_run), STATUS_OK);
	f->n = TIMED_COLUMNS - 502;
	assert_int_equal(work(f, TABLE, columns_run), STATUS_OK);
	f->n = TIMED_COLUMNS;
	assert_int_equal(work(f, TABLE, schema_is_run), STATUS_OK);
	f->n = 1;
	refused(f, work(f, TABLE, columns_run), STATUS_INVALID, "TIMED_COLUMNS");
}

static void
a_database_of_rows_has_a_name(void **state)
{
	static const char name[] = "0123456789012345678901234567890123456789012345678901234567890"
				   "12345678901234567890123456789012345678-+";
	static const char *const good[] = { "a", "z", "A", "Z", "0", "9", "_", "-", "." };
	static const char *const bad[] = {
		"", "`", "{", "@", "[", "/", ":", "a b", "\xc3\xa4", ","
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(timed_rows_kind.check_name(str_from_cstr(good[i]), &err),
				 STATUS_OK);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(timed_rows_kind.check_name(str_from_cstr(bad[i]), &err),
				 STATUS_INVALID);
	assert_int_equal(timed_rows_kind.check_name(str_of(name, TIMED_DB_NAME_BYTES), &err),
			 STATUS_OK);
	assert_int_equal(timed_rows_kind.check_name(
				 str_of("0123456789012345678901234567890123456789012345678901234567"
					"8901234567890123456789012345678901234567890",
					TIMED_DB_NAME_BYTES + 1),
				 &err),
			 STATUS_INVALID);
}

/* ---- Keys ---- */

static enum status
components_run(struct timed *t, struct fixture *f)
{
	const struct doc_scalar parts[4] = { text_of(f, 1), text_of(f, 2), text_of(f, 3),
					     text_of(f, 4) };

	return timed_insert(t, &(struct timed_key){ parts, f->n }, (struct timed_expiry){ 0 });
}

static enum status
kind_run(struct timed *t, struct fixture *f)
{
	const struct doc_scalar part = { .kind = (enum doc_kind)f->n, .text = STR("") };

	return timed_set(t, &(struct timed_key){ &part, 1 }, &part, (struct timed_expiry){ 0 });
}

static enum status
edge_run(struct timed *t, struct fixture *f)
{
	const struct doc_scalar parts[4] = { text_of(f, 1), text_of(f, 2), text_of(f, 3),
					     text_of(f, 4) };
	const struct timed_key hash = { parts, f->until_us };
	struct timed_rows rows = { .hash = &hash };
	bool more;

	rows.from = (struct timed_edge){ TIMED_BOUND_INCLUSIVE, parts, f->n };
	rows.to.kind = TIMED_BOUND_END;
	return timed_clear_rows(t, &rows, &more);
}

static void
a_key_has_the_components_of_its_schema(void **state)
{
	struct fixture *f = *state;

	for (f->n = 1; f->n <= 4; f->n++) {
		if (f->n == 3)
			assert_int_equal(work(f, TABLE, components_run), STATUS_OK);
		else
			refused(f, work(f, TABLE, components_run), STATUS_INVALID,
				"a row's key has 3 components here");
	}
	f->until_us = 1;
	for (f->n = 1; f->n <= 2; f->n++)
		assert_int_equal(work(f, TABLE, edge_run), STATUS_OK);
	refused(f, work(f, TABLE, edge_run), STATUS_INVALID, "2 range components here");
	f->until_us = 0;
	f->n = 1;
	refused(f, work(f, TABLE, edge_run), STATUS_INVALID, "a hash component of the key");
	f->n = DOC_ARRAY;
	refused(f, work(f, KEYS, kind_run), STATUS_INVALID, "cannot be part of a key");
	f->n = DOC_TEXT;
	assert_int_equal(work(f, KEYS, kind_run), STATUS_OK);
}

/* Writes a value below a path of a text. */
static enum status
long_run(struct timed *t, struct fixture *f)
{
	const struct doc_scalar part = text_of(f, f->n);

	return timed_set(t, &(struct timed_key){ &part, 1 }, &part, (struct timed_expiry){ 0 });
}

static enum status
longest_run(struct timed *t, struct fixture *f)
{
	AUTO(buf_release) struct buf begin = BUF_INIT(100), end = BUF_INIT(100);
	struct kv_scan scan;
	struct kv_pair pair;
	size_t count = 0;

	(void)f;
	timed_key_space(&begin, t->db, TIMED_SPACE_ROWS);
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(kv_scan_init(&scan, t->tx, buf_str(&begin), buf_str(&end), NULL));
	while (kv_scan_next(&scan, &pair) == STATUS_OK) {
		assert_int_equal(pair.key.len - begin.len, TIMED_KEY_BYTES);
		count++;
	}
	kv_scan_release(&scan);
	assert_int_equal(count, 1);
	return STATUS_OK;
}

static void
a_key_has_as_many_bytes_as_it_may(void **state)
{
	struct fixture *f = *state;

	/* One beyond, and at the limit. What is around the text takes less than this. */
	for (f->n = TIMED_KEY_BYTES; f->n > TIMED_KEY_BYTES - 50; f->n--) {
		enum status status = work(f, KEYS, long_run);

		if (status == STATUS_OK)
			break;
		assert_int_equal(status, STATUS_KEY_TOO_LARGE);
	}
	assert_int_equal(work(f, KEYS, longest_run), STATUS_OK);
}

static enum status
path_run(struct timed *t, struct fixture *f)
{
	const struct doc_scalar parts[3] = { text_of(f, 1), text_of(f, 2), text_of(f, 3) };
	const struct timed_key key = { parts, 3 };
	const struct doc_scalar value = { .kind = DOC_INT64, .n = 7 };
	struct timed_step steps[TIMED_PATH_STEPS + 1] = { { .column = 1 } };
	const struct timed_value put = { { NULL, 0 }, value };
	const struct timed_path path = { steps, f->n };
	struct timed_row row;

	for (size_t i = 1; i <= TIMED_PATH_STEPS; i++)
		steps[i].key = (struct doc_scalar){ .kind = DOC_INT8, .n = (int64_t)i };
	TRY(timed_put(t, &key, &path, &put, 1, (struct timed_expiry){ 0 }));
	TRY(timed_read(t, &key, &(struct timed_path){ 0 }, f->arena, &row));
	assert_int_equal(row.leaf_count, 1);
	assert_int_equal(row.leaves[0].path.count, f->n);
	assert_int_equal(row.leaves[0].path.steps[0].column, 1);
	for (size_t i = 1; i < f->n; i++)
		assert_int_equal(row.leaves[0].path.steps[i].key.n, i);
	assert_int_equal(row.leaves[0].value.n, 7);
	return STATUS_OK;
}

static void
a_path_has_as_many_steps_as_it_may(void **state)
{
	struct fixture *f = *state;

	f->n = TIMED_PATH_STEPS;
	assert_int_equal(work(f, TABLE, path_run), STATUS_OK);
	f->n++;
	refused(f, work(f, TABLE, path_run), STATUS_INVALID, "TIMED_PATH_STEPS");
}

/* ---- The past ---- */

static const struct {
	struct timed_history_bounds bounds;
	const char *said; /* NULL: it is fine */
} histories[] = {
	{ { .seconds = TIMED_HISTORY_SECONDS }, NULL },
	{ { .seconds = TIMED_HISTORY_SECONDS + 1 }, "TIMED_HISTORY_SECONDS" },
	{ { .seconds = 1, .bytes = INT64_MAX }, NULL },
	{ { .seconds = 1, .bytes = (uint64_t)INT64_MAX + 1 }, "bytes at most" },
	{ { .seconds = 1, .versions = 1 }, "cannot bound versions" },
	{ { .seconds = 1, .versions = TIMED_HISTORY_VERSIONS }, "cannot bound versions" },
	{ { .seconds = 1, .versions = TIMED_HISTORY_VERSIONS + 1 }, "TIMED_HISTORY_VERSIONS" },
	{ { .bytes = 1 }, "0 seconds has no bytes" },
	{ { .seconds = 0 }, NULL },
};

static enum status
history_run(struct timed *t, struct fixture *f)
{
	return timed_history_set(t, histories[f->n].bounds);
}

static enum status
bounds_run(struct timed *t, struct fixture *f)
{
	struct timed_history_bounds got;

	TRY(timed_history_bounds_get(t, &got));
	assert_int_equal(got.seconds, histories[f->n].bounds.seconds);
	assert_int_equal(got.bytes, histories[f->n].bounds.bytes);
	assert_int_equal(got.versions, 0);
	return STATUS_OK;
}

static void
a_history_has_bounds(void **state)
{
	struct fixture *f = *state;

	for (f->n = 0; f->n < sizeof(histories) / sizeof(histories[0]); f->n++) {
		enum status status = work(f, TABLE, history_run);

		if (histories[f->n].said)
			refused(f, status, STATUS_INVALID, histories[f->n].said);
		else
			assert_int_equal(status, STATUS_OK);
		if (!histories[f->n].said && histories[f->n].bounds.seconds)
			assert_int_equal(work(f, TABLE, bounds_run), STATUS_OK);
	}
}

static enum status
keep_run(struct timed *t, struct fixture *f)
{
	(void)f;
	return timed_history_set(t, (struct timed_history_bounds){ .seconds = 1000 });
}

static enum status
begin_run(struct timed *t, struct fixture *f)
{
	(void)f;
	return timed_history_begin(t);
}

static enum status
oldest_run(struct timed *t, struct fixture *f)
{
	TRY(timed_now(t));
	f->until_us = history_oldest_us(&t->state);
	return STATUS_OK;
}

static enum status
at_run(struct timed *t, struct fixture *f)
{
	timed_at_us(t, f->n);
	TRY(timed_now(t));
	assert_int_equal(t->now_us, f->n ? f->n : 1);
	return STATUS_OK;
}

static enum status
at_date_run(struct timed *t, struct fixture *f)
{
	timed_at_date_us(t, f->n);
	TRY(timed_now(t));
	assert_int_equal(t->now_us, f->n + (uint64_t)timed_ahead_ms(t) * TIMED_US_PER_MS);
	assert_int_equal(t->at_us, t->now_us);
	return STATUS_OK;
}

static enum status
change_run(struct timed *t, struct fixture *f)
{
	timed_at_us(t, f->until_us);
	return components_run(t, f);
}

static void
the_past_begins_and_is_not_changed(void **state)
{
	struct fixture *f = *state;

	f->n = 1;
	refused(f, work(f, TABLE, at_run), STATUS_INVALID, "\"table\" keeps no history");
	assert_int_equal(work(f, TABLE, keep_run), STATUS_OK);
	refused(f, work(f, TABLE, at_run), STATUS_INVALID, "has not begun yet");
	f->now_ms += 5;
	assert_int_equal(work(f, TABLE, begin_run), STATUS_OK);
	assert_int_equal(work(f, TABLE, oldest_run), STATUS_OK);
	assert_true(f->until_us > 1);
	f->n = f->until_us;
	assert_int_equal(work(f, TABLE, at_run), STATUS_OK);
	assert_int_equal(work(f, TABLE, at_date_run), STATUS_OK);
	f->n--;
	refused(f, work(f, TABLE, at_run), STATUS_INVALID, "\"table\" begins at ");
	f->n = 0;
	refused(f, work(f, TABLE, at_run), STATUS_INVALID, "\"table\" begins at ");
	f->n = 3;
	refused(f, work(f, TABLE, change_run), STATUS_INVALID, "the past cannot be changed");
}

static enum status
renew_run(struct timed *t, struct fixture *f)
{
	const bool has_history = f->n;
	uint64_t first;

	assert_int_equal(timed_can_renew(t), !has_history);
	TRY(timed_ask(t));
	assert_false(timed_can_renew(t));
	TRY(timed_now(t));
	first = t->now_us;
	assert_int_equal(timed_can_renew(t), !has_history);
	f->now_ms += 9;
	TRY(timed_now(t));
	assert_int_equal(t->now_us, first);
	if (!has_history) {
		timed_renew(t);
		TRY(timed_now(t));
		assert_int_equal(t->now_us, first + 9 * TIMED_US_PER_MS);
	}
	/* What is put back as it was written has a moment of its own. */
	TRY(timed_written_at(t, first - 1));
	assert_false(timed_can_renew(t));
	assert_int_equal(timed_write_us(t), first - 1);
	assert_true(t->now_us >= first);
	TRY(timed_written_at(t, t->now_us + 5));
	assert_int_equal(timed_write_us(t), t->now_us);
	f->until_us = t->now_us;
	TRY(timed_written_at(t, 0));
	assert_int_equal(timed_write_us(t), t->now_us);
	assert_int_equal(timed_can_renew(t), !has_history);
	return STATUS_OK;
}

static enum status
later_run(struct timed *t, struct fixture *f)
{
	TRY(timed_now(t));
	assert_true(t->now_us > f->until_us);
	return STATUS_OK;
}

static void
a_transaction_has_one_moment_until_it_is_renewed(void **state)
{
	struct fixture *f = *state;

	f->n = 0;
	assert_int_equal(work(f, TABLE, renew_run), STATUS_OK);
	assert_int_equal(work(f, TABLE, later_run), STATUS_OK);
	assert_int_equal(work(f, TABLE, keep_run), STATUS_OK);
	f->n = 1;
	assert_int_equal(work(f, TABLE, renew_run), STATUS_OK);
	assert_int_equal(work(f, TABLE, later_run), STATUS_OK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_STORE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
		WITH_STORE(a_schema_has_as_many_columns_as_it_may),
		WITH_STORE(columns_have_names_of_their_own),
		WITH_STORE(columns_are_added_until_there_are_enough),
		cmocka_unit_test(a_database_of_rows_has_a_name),
		WITH_STORE(a_key_has_the_components_of_its_schema),
		WITH_STORE(a_key_has_as_many_bytes_as_it_may),
		WITH_STORE(a_path_has_as_many_steps_as_it_may),
		WITH_STORE(a_history_has_bounds),
		WITH_STORE(the_past_begins_and_is_not_changed),
		WITH_STORE(a_transaction_has_one_moment_until_it_is_renewed),
	};

	return cmocka_run_group_tests_name("row limits", tests, NULL, NULL);
}

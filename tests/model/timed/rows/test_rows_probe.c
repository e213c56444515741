/*
 * What operations on rows answer when a call of the store fails, when their memory ends and when
 * what they read is damaged; by what they conflict; and what a check finds (probe.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/store_format.h"
#include "model/timed/rows/rows.h"
#include "probe.h"
#include "store.h"
#include "../sweep_probe.h"

enum {
	START_MS = 1000 * 1000,
	LATER_MS = START_MS + 5000, /* when operations run */
	DUE_MS = START_MS + 100000, /* when all has expired that does */
};

#define TABLE  "table"
#define KEYS   "keys"
#define KEEPER "keeper" /* with a history */

struct world {
	char dir[64];
	struct kv_store *store;
	struct timed_clock clock;
	uint64_t now_ms;
};

static uint64_t
world_now(void *arg)
{
	return ((const struct world *)arg)->now_ms;
}

/* ---- Rows in the transaction of a probe ---- */

static struct doc_scalar
text(const char *s)
{
	return (struct doc_scalar){ .kind = DOC_TEXT, .text = str_from_cstr(s) };
}

static struct doc_scalar
number(int64_t n)
{
	return (struct doc_scalar){ .kind = DOC_INT64, .n = n };
}

static void
say_scalar(struct probe *p, const struct doc_scalar *v)
{
	if (v->kind == DOC_TEXT)
		buf_append_str(&p->said, v->text);
	else
		buf_printf(&p->said, "%d:%lld", v->kind, (long long)v->n);
	buf_append_byte(&p->said, ' ');
}

static void
say_path(struct probe *p, const struct timed_path *path)
{
	for (size_t i = 0; i < path->count; i++) {
		buf_printf(&p->said, ".%llu", (unsigned long long)path->steps[i].column);
		if (!path->steps[i].column)
			say_scalar(p, &path->steps[i].key);
	}
}

static void
say_times(struct probe *p, uint64_t write_us, uint64_t expires_ms)
{
	buf_printf(&p->said, "@%llu-%llu|", (unsigned long long)write_us,
		   (unsigned long long)expires_ms);
}

static void
say_row(struct probe *p, const struct timed *t, const struct timed_row *row)
{
	for (size_t i = 0; i < timed_schema_of(t->db)->key_count; i++)
		say_scalar(p, &row->key[i]);
	buf_printf(&p->said, "%d ", row->type);
	if (row->type == TIMED_VALUE)
		say_scalar(p, &row->value);
	say_times(p, row->write_us, row->expires_ms);
	for (size_t i = 0; i < row->leaf_count; i++) {
		say_path(p, &row->leaves[i].path);
		say_scalar(p, &row->leaves[i].value);
		say_times(p, row->leaves[i].write_us, row->leaves[i].expires_ms);
	}
}

typedef enum status rows_body(struct probe *p, struct timed *t);

static enum status
in_rows(struct probe *p, const char *name, rows_body *body)
{
	struct world *w = p->world;
	struct catalog_db *db = NULL;
	enum status status;
	struct timed t;

	TRY(catalog_open(p->tx, NULL, CATALOG_SPACE_ROWS, str_from_cstr(name), &db, &p->err));
	timed_init(&t, p->tx, db, &w->clock, &p->err);
	probe_begin(p);
	status = body(p, &t);
	catalog_db_unref(db);
	return status;
}

#define IN(db, name)                                                                               \
	static enum status name##_in_##db(struct probe *p)                                         \
	{                                                                                          \
		return in_rows(p, #db, name);                                                      \
	}

#define KEY(...)                                                                                   \
	(struct timed_key)                                                                         \
	{                                                                                          \
		.parts = (struct doc_scalar[]){ __VA_ARGS__ },                                     \
		.count = sizeof((struct doc_scalar[]){ __VA_ARGS__ }) / sizeof(struct doc_scalar)  \
	}

static const struct timed_expiry never = { TIMED_EXPIRY_NEVER, 0 };
static const struct timed_expiry later = { TIMED_EXPIRY_AFTER, 9000 };
static const struct timed_expiry by_default = { TIMED_EXPIRY_DEFAULT, 0 };
static const struct timed_path whole = { NULL, 0 };

/* ---- Writing ---- */

static enum status
insert(struct probe *p, struct timed *t)
{
	const struct timed_key key = KEY(text("new"), number(1));

	(void)p;
	return timed_insert(t, &key, later);
}
IN(table, insert)
IN(keeper, insert)

static enum status
put_one(struct probe *p, struct timed *t)
{
	const struct timed_key key = KEY(text("a"), number(1));
	const struct timed_step column = { .column = 1 };
	const struct timed_path place = { &column, 1 };
	const struct timed_value value = { whole, number(7) };

	(void)p;
	return timed_put(t, &key, &place, &value, 1, never);
}
IN(table, put_one)
IN(keeper, put_one)

static enum status
put_map(struct probe *p, struct timed *t)
{
	const struct timed_key key = KEY(text("a"), number(1));
	const struct timed_step steps[] = { { .column = 2 }, { .key = text("deep") } };
	const struct timed_path place = { steps, 2 };
	const struct timed_step names[] = { { .key = text("x") }, { .key = number(5) } };
	const struct timed_value values[] = { { { &names[0], 1 }, text("one") },
					      { { &names[1], 1 }, number(2) } };

	(void)p;
	return timed_put(t, &key, &place, values, 2, later);
}
IN(table, put_map)
IN(keeper, put_map)

static enum status
clear_place(struct probe *p, struct timed *t)
{
	const struct timed_key key = KEY(text("a"), number(1));
	const struct timed_step column = { .column = 2 };

	(void)p;
	return timed_clear(t, &key, &(struct timed_path){ &column, 1 });
}
IN(table, clear_place)
IN(keeper, clear_place)

static enum status
clear_row(struct probe *p, struct timed *t)
{
	const struct timed_key key = KEY(text("a"), number(1));

	(void)p;
	return timed_clear(t, &key, &whole);
}
IN(table, clear_row)
IN(keeper, clear_row)

static enum status
clear_range(struct probe *p, struct timed *t)
{
	const struct timed_key hash = KEY(text("a"));
	const struct doc_scalar from = number(2), to = number(1);
	const struct timed_rows rows = { .hash = &hash,
					 .from = { TIMED_BOUND_INCLUSIVE, &from, 1 },
					 .to = { TIMED_BOUND_INCLUSIVE, &to, 1 } };
	bool more;

	TRY(timed_clear_rows(t, &rows, &more));
	buf_append_byte(&p->said, more ? 'm' : 'd');
	return STATUS_OK;
}
IN(table, clear_range)
IN(keeper, clear_range)

static enum status
set(struct probe *p, struct timed *t)
{
	const struct timed_key key = KEY(text("value"));
	const struct doc_scalar value = text("other");

	(void)p;
	return timed_set(t, &key, &value, later);
}
IN(keys, set)

static enum status
add_to(struct probe *p, struct timed *t, const char *name, enum timed_type type)
{
	const struct timed_key key = KEY(text(name));
	const struct timed_step member = { .key = text("more") };
	const struct timed_value value = { { &member, 1 },
					   type == TIMED_SET
						   ? (struct doc_scalar){ .kind = DOC_NULL }
						   : text("said") };

	(void)p;
	return timed_add(t, &key, type, &value, 1, never);
}

static enum status
add_to_hash(struct probe *p, struct timed *t)
{
	return add_to(p, t, "hash", TIMED_HASH);
}
IN(keys, add_to_hash)

static enum status
add_to_new(struct probe *p, struct timed *t)
{
	return add_to(p, t, "fresh", TIMED_SET);
}
IN(keys, add_to_new)

static enum status
add_to_other(struct probe *p, struct timed *t)
{
	return add_to(p, t, "hash", TIMED_SET);
}
IN(keys, add_to_other)

static enum status
add_columns(struct probe *p, struct timed *t)
{
	const struct str names[] = { STR("f"), STR("g") };

	(void)p;
	return timed_columns_add(t, names, 2);
}
IN(table, add_columns)

static enum status
add_columns_again(struct probe *p, struct timed *t)
{
	const struct str name = STR("d");

	(void)p;
	return timed_columns_add(t, &name, 1);
}
IN(table, add_columns_again)

static enum status
set_ttl(struct probe *p, struct timed *t)
{
	(void)p;
	return timed_ttl_set(t, 7000);
}
IN(table, set_ttl)

static const struct probe_op writing[] = {
	{ "insert", insert_in_table, "ok, conflicts 0 0+0; 1: C/O" },
	{ "insert, with a history", insert_in_keeper, "ok, conflicts 2 0+0; 1: C/O 2: C/CNCOC" },
	{ "put a column", put_one_in_table, "ok, conflicts 0 0+0; 1: C/O" },
	{ "put a column, with a history", put_one_in_keeper,
	  "ok, conflicts 2 0+0; 1: C/O 2: C/CNCOC 3-4: O/O" },
	{ "put a map", put_map_in_table, "ok, conflicts 0 0+0; 1: C/O" },
	{ "put a map, with a history", put_map_in_keeper,
	  "ok, conflicts 5 0+0; 1: C/O 2: C/CNCOC" },
	{ "clear a place", clear_place_in_table, "ok, conflicts 0 0+0" },
	{ "clear a place, with a history", clear_place_in_keeper,
	  "ok, conflicts 2 0+0; 1: C/O 2: C/CNCOC 3: O/O" },
	{ "clear a row", clear_row_in_table, "ok, conflicts 0 0+0" },
	{ "clear a row, with a history", clear_row_in_keeper,
	  "ok, conflicts 2 0+0; 1: C/O 2: C/CNCOC 3-5: O/O" },
	{ "clear a range", clear_range_in_table, "ok, conflicts 0 0+0" },
	{ "clear a range, with a history", clear_range_in_keeper,
	  "ok, conflicts 2 0+0; 1: C/O 2: C/CNCOC 3-12: O/O" },
	{ "set", set_in_keys, "ok, conflicts 0 0+0; 1: C/O" },
	{ "add to a hash", add_to_hash_in_keys, "ok, conflicts 1 0+0; 1: C/O 2: C/CNCOCO" },
	{ "add to what is not there", add_to_new_in_keys, "ok, conflicts 1 0+0; 1: C/O" },
	{ "add to another type", add_to_other_in_keys,
	  "invalid, conflicts 1 0+0; 1: C/O~ 2: C/CNCOCO" },
	{ "add columns", add_columns_in_table, "ok, conflicts 1 0+0; 1: C/O 2: C/CNCICICICICIC" },
	{ "add a column that is there", add_columns_again_in_table,
	  "invalid, conflicts 1 0+0; 1: C/O 2: C/CNCOCOCOCOCOC" },
	{ "set the default expiry", set_ttl_in_table,
	  "ok, conflicts 1 0+0; 1: C/O 2: C/CNCNC0COCOCOC" },
};

/* ---- Reading ---- */

static enum status
read_at(struct probe *p, struct timed *t, const struct timed_key *key,
	const struct timed_path *place)
{
	struct timed_row row;

	TRY(timed_read(t, key, place, p->arena, &row));
	say_row(p, t, &row);
	return STATUS_OK;
}

static enum status
read_row(struct probe *p, struct timed *t)
{
	const struct timed_key key = KEY(text("a"), number(1));

	return read_at(p, t, &key, &whole);
}
IN(table, read_row)

static enum status
read_place(struct probe *p, struct timed *t)
{
	const struct timed_key key = KEY(text("a"), number(1));
	const struct timed_step steps[] = { { .column = 2 }, { .key = text("x") } };

	return read_at(p, t, &key, &(struct timed_path){ steps, 2 });
}
IN(table, read_place)

static enum status
read_none(struct probe *p, struct timed *t)
{
	const struct timed_key key = KEY(text("none"), number(1));

	return read_at(p, t, &key, &whole);
}
IN(table, read_none)

static enum status
read_hash(struct probe *p, struct timed *t)
{
	const struct timed_key key = KEY(text("hash"));

	return read_at(p, t, &key, &whole);
}
IN(keys, read_hash)

static enum status
read_member(struct probe *p, struct timed *t)
{
	const struct timed_key key = KEY(text("hash"));
	const struct timed_step member = { .key = text("m") };

	return read_at(p, t, &key, &(struct timed_path){ &member, 1 });
}
IN(keys, read_member)

static enum status
read_value(struct probe *p, struct timed *t)
{
	const struct timed_key key = KEY(text("value"));

	return read_at(p, t, &key, &whole);
}
IN(keys, read_value)

static enum status
scan_through(struct probe *p, struct timed *t, struct timed_scan *scan, enum status status)
{
	struct timed_row row;

	while (status == STATUS_OK) {
		status = timed_scan_next(scan, p->arena, &row);
		if (status == STATUS_OK)
			say_row(p, t, &row);
	}
	timed_scan_close(scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
scan_all(struct probe *p, struct timed *t)
{
	struct timed_scan scan = { 0 };

	return scan_through(p, t, &scan, timed_scan_open(&scan, t, NULL));
}
IN(table, scan_all)
IN(keys, scan_all)

static enum status
scan_hash(struct probe *p, struct timed *t)
{
	const struct timed_key hash = KEY(text("a"));
	struct timed_scan scan = { 0 };

	return scan_through(p, t, &scan, timed_scan_open(&scan, t, &hash));
}
IN(table, scan_hash)

static enum status
scan_range(struct probe *p, struct timed *t)
{
	const struct timed_key hash = KEY(text("a"));
	const struct doc_scalar from = number(3), to = number(1);
	const struct timed_rows rows = { .hash = &hash,
					 .from = { TIMED_BOUND_INCLUSIVE, &from, 1 },
					 .to = { TIMED_BOUND_EXCLUSIVE, &to, 1 } };
	struct timed_scan scan = { 0 };

	return scan_through(p, t, &scan, timed_scan_open_rows(&scan, t, &rows));
}
IN(table, scan_range)

static enum status
say_cell(void *arg, const struct timed_cell_seen *cell)
{
	struct probe *p = arg;

	buf_append_byte(&p->said, cell->begins ? '+' : ' ');
	for (size_t i = 0; i < cell->key.count; i++)
		say_scalar(p, &cell->key.parts[i]);
	say_path(p, &cell->path);
	buf_printf(&p->said, "%d ", cell->type);
	say_scalar(p, &cell->value);
	buf_printf(&p->said, "%d", cell->expiry.kind);
	say_times(p, cell->write_us, cell->expiry.ms);
	return STATUS_OK;
}

static enum status
cells(struct probe *p, struct timed *t)
{
	return timed_cells(t, p->arena, say_cell, p);
}
IN(table, cells)
IN(keys, cells)

static const struct probe_op reading[] = {
	{ "read a row", read_row_in_table,
	  "ok, conflicts 1 0+0; 1: C/O0 2: C/CNC~C 3: C/CNC~C~ 4: C/CNC~C~C~" },
	{ "read a place", read_place_in_table, "ok, conflicts 1 0+0; 1: C/O0 2: C/CNC~C~C~" },
	{ "read none", read_none_in_table, "not_found, conflicts 1 0+0; 1: C/O" },
	{ "read a hash", read_hash_in_keys, "ok, conflicts 1 0+0; 1: C/O0 2: C/CNC~C~ 3: C/CNC~C" },
	{ "read a member", read_member_in_keys,
	  "ok, conflicts 2 0+0; 1: C/O0 2: C/CNC~C~ 3: C/CNC~C" },
	{ "read a value", read_value_in_keys, "ok, conflicts 1 0+0; 1: C/O0 2: C/CNC~C~C" },
	{ "scan a table", scan_all_in_table,
	  "ok, conflicts 1 0+0; 1: C/O~ 2: C/CNC~C 3: C/CNC~C~ 4: C/CNC~C~C~ 5: "
	  "C/CNC~C 6: C/CNC~C~ 7: C/CNC~C~C~ 8: C/CNC~C 9: C/CNC~C~ 10: C/CNC~C~C~ "
	  "11: C/CNC~C~" },
	{ "scan keys", scan_all_in_keys,
	  "ok, conflicts 1 0+0; 1: C/O~ 2-3: C/CNC~C 4: C/CNC~C~ 5: C/CNC~C 6: "
	  "C/CNC~C~C" },
	{ "scan rows of a hash", scan_hash_in_table,
	  "ok, conflicts 1 0+0; 1: C/O~ 2: C/CNC~C 3: C/CNC~C~ 4: C/CNC~C~C~ 5: "
	  "C/CNC~C 6: C/CNC~C~ 7: C/CNC~C~C~ 8: C/CNC~C 9: C/CNC~C~ 10: C/CNC~C~C~" },
	{ "scan a range", scan_range_in_table,
	  "ok, conflicts 1 0+0; 1: C/O~ 2: C/CNC~C 3: C/CNC~C~ 4: C/CNC~C~C~ 5: "
	  "C/CNC~C 6: C/CNC~C~ 7: C/CNC~C~C~" },
	{ "cells of a table", cells_in_table,
	  "ok, conflicts 1 0+0; 1: C/O~ 2: C/CNC~C 3: C/CNC~C~ 4: C/CNC~C~C~ 5: "
	  "C/CNC~C 6: C/CNC~C~ 7: C/CNC~C~C~ 8: C/CNC~C 9: C/CNC~C~ 10: C/CNC~C~C~ "
	  "11: C/CNC~C~" },
	{ "cells of keys", cells_in_keys,
	  "ok, conflicts 1 0+0; 1: C/O~ 2-3: C/CNC~C 4: C/CNC~C~ 5: C/CNC~C 6: "
	  "C/CNC~C~C" },
};

static const struct probe_op checks[] = {
	{ "verify", probe_verify,
	  "ok, conflicts 0 0+0; 1: ~/~O 2: ~/~O~O~O 3-4: ~/~O~O~ 5: ~/~O 6: ~/O 7-9: "
	  "~/~O~O 10-16: ~O~/~O~O~O 17: ~/~O~O~O~O~O~ 18: ~/~O~ 19-20: ~/~O~O 21: "
	  "~/~O~ 22-23: ~/~O~O 24: ~/~O~ 25-27: ~/~O~O 28-33: O/ 34: ~O/O 35-36: ~/O "
	  "37: ~/~O~ 38-50: O/ 51-56: ~/~O~ 57-60: O/ 61: ~O/O 62-63: ~/O 64: "
	  "~/~O~O~O~O~O~ 65: ~/~O~ 66-67: ~/~O~O 68: ~/~O~ 69-70: ~/~O~O 71: ~/~O~ "
	  "72-74: ~/~O~O 75-90: O/ 91: ~O/O 92-93: ~/O 94-97: O/O" },
};

/* ---- Sweeping ---- */

IN(table, sweep_dues)
IN(keeper, sweep_dues)
IN(keys, sweep_dues)

static const struct probe_op sweeping[] = {
	{ "sweep a table", sweep_dues_in_table,
	  "ok, conflicts 8 0+0; 1: C/O 2-9: O/ 10-12: CO/CNCOC~O" },
	{ "sweep, with a history", sweep_dues_in_keeper,
	  "ok, conflicts 7 0+0; 1: C/O 2: C/CNCOC 3-5: O/ 6: CO/CNCOC~O 7: O/O 8: "
	  "CO/CNCOC~O 9: O/O 10: CO/CNCOC~O 11: O/O" },
	{ "sweep collections", sweep_dues_in_keys,
	  "ok, conflicts 2 0+0; 1: C/O 2-3: O/ 4: C/CNCOC~ 5: O/O 6: CO/CNCOC~O" },
};

/* ---- The world ---- */

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	struct timed_key_column key[] = { { .name = STR("a") },
					  { .name = STR("b"), .descending = true } };
	struct str columns[] = { STR("c"), STR("d"), STR("e") };
	const struct timed_schema table = { key, 1, 2, columns, 3 };
	const struct timed_schema keys = { key, 1, 1, NULL, 0 };

	(void)arg;
	TRY(timed_create(tx, STR(TABLE), &table, 60000, NULL));
	TRY(timed_create(tx, STR(KEEPER), &table, 0, NULL));
	return timed_create(tx, STR(KEYS), &keys, 0, NULL);
}

struct filling {
	struct world *w;
	const char *db;
	rows_body *body;
};

static enum status
fill_body(struct kv_tx *tx, void *arg)
{
	struct filling *g = arg;
	struct catalog_db *db = NULL;
	struct err err = { 0 };
	enum status status;
	struct timed t;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_ROWS, str_from_cstr(g->db), &db, NULL));
	timed_init(&t, tx, db, &g->w->clock, &err);
	status = g->body(NULL, &t);
	catalog_db_unref(db);
	return status;
}

static enum status
keep_history(struct probe *p, struct timed *t)
{
	(void)p;
	return timed_history_set(t, (struct timed_history_bounds){ .seconds = 3600 });
}

static enum status
fill_table(struct probe *p, struct timed *t)
{
	const struct timed_step c = { .column = 1 };
	const struct timed_step dx[] = { { .column = 2 }, { .key = text("x") } };
	const struct timed_value one = { whole, number(1) };

	(void)p;
	for (int64_t b = 1; b <= 3; b++) {
		const struct timed_key key = KEY(text("a"), number(b));

		TRY(timed_insert(t, &key, b == 2 ? never : by_default));
		TRY(timed_put(t, &key, &(struct timed_path){ &c, 1 }, &one, 1, by_default));
		TRY(timed_put(t, &key, &(struct timed_path){ dx, 2 }, &one, 1, later));
	}
	return timed_put(t, &KEY(text("updated"), number(1)), &(struct timed_path){ &c, 1 }, &one,
			 1, never);
}

static enum status
fill_keys(struct probe *p, struct timed *t)
{
	const struct timed_step m = { .key = text("m") };
	const struct timed_value member = { { &m, 1 }, text("said") };
	const struct timed_value of_set = { { &m, 1 }, { .kind = DOC_NULL } };
	const struct doc_scalar value = text("value of it");

	(void)p;
	TRY(timed_set(t, &KEY(text("value")), &value, later));
	TRY(timed_add(t, &KEY(text("hash")), TIMED_HASH, &member, 1, later));
	return timed_add(t, &KEY(text("set")), TIMED_SET, &of_set, 1, never);
}

static int
setup(void **state)
{
	static const struct filling fillings[] = {
		{ .db = KEEPER, .body = keep_history },
		{ .db = TABLE, .body = fill_table },
		{ .db = KEEPER, .body = fill_table },
		{ .db = KEYS, .body = fill_keys },
	};
	const struct kv_options options = { .create = true, .no_sync = true };
	struct world *w = calloc(1, sizeof(*w));
	struct err err = { 0 };
	char url[256];

	test_show_failures();
	timed_rows_register();
	test_make_dir("probe", w->dir, sizeof(w->dir));
	probe_store_url(w->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &w->store, &err), STATUS_OK);
	w->clock = (struct timed_clock){ .now_ms = world_now, .arg = w };
	w->now_ms = START_MS;
	assert_int_equal(kv_run(w->store, create_body, NULL, NULL, &err), STATUS_OK);
	for (size_t i = 0; i < sizeof(fillings) / sizeof(fillings[0]); i++) {
		struct filling g = fillings[i];

		g.w = w;
		if (kv_run(w->store, fill_body, &g, NULL, &err) != STATUS_OK)
			fail_msg("%s", err.text);
	}
	w->now_ms = LATER_MS;
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	kv_close(w->store);
	test_remove_tree(w->dir);
	free(w);
	return 0;
}

#define COUNT(ops) (sizeof(ops) / sizeof((ops)[0]))

static void
writers_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, writing, COUNT(writing));
}

static void
the_sweep_hands_failures_on(void **state)
{
	struct world *w = *state;

	w->now_ms = DUE_MS;
	probe_each(w->store, w, sweeping, COUNT(sweeping));
}

static void
readers_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each_throughout(w->store, w, reading, COUNT(reading));
}

static void
checks_find_what_is_damaged(void **state)
{
	struct world *w = *state;

	probe_each_throughout(w->store, w, checks, COUNT(checks));
}

/* Of a pair that is lost some are missed: what nothing refers to, and what may be there or not. */
static void
checks_find_what_is_lost_or_foreign(void **state)
{
	struct world *w = *state;

	probe_pairs(w->store, w, &checks[0],
		    "1: O 2-5: ~ 6-16: O 17: ~ 18-27: O 28-35: ~ 36-37: O 38: ~ 39-48: O 49-51:"
		    " ~ 52-67: O 68: ~ 69-73: O 74-75: ~ 76-77: O",
		    "1-27: ~ 28-35: O 36-48: ~ 49-51: O 52-73: ~ 74-75: O 76-77: ~");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(writers_hand_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(the_sweep_hands_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(readers_hand_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(checks_find_what_is_damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(checks_find_what_is_lost_or_foreign, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

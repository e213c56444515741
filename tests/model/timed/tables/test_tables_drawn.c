/* What inspect draws of tables, and of rows asked for by what it draws of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/store_format.h"
#include "model/timed/tables/keyspaces.h"
#include "model/timed/tables/tables_int.h"
#include "store.h"
#include "test_tables.h"

enum {
	START_MS = 1000 * 1000,
	ARENA_BYTES = 1024 * 1024,
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TABLE        "ks.msgs"

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	struct timed_clock clock;
};

static uint64_t
fixture_now(void *arg)
{
	(void)arg;
	return START_MS;
}

/* ---- Filling ---- */

static enum status
put(struct timed *t, const char *user, int64_t id, uint64_t column, const char *value)
{
	const struct table_change change = { .kind = TABLE_CHANGE_PUT,
					     .column = column,
					     .value = text(value) };
	const struct doc_scalar parts[] = { text(user), number(id) };
	const struct table_write write = { .key = { .token = (int8_t)user[0],
						    .parts = parts,
						    .count = column == OWNER ? 1 : 2 },
					   .inserts = column != OWNER,
					   .changes = &change,
					   .change_count = 1 };

	return table_write(t, &write);
}

/* A partition with rows, one that has what it has once, and one with both. */
static enum status
fill_body(struct kv_tx *tx, void *arg)
{
	const struct fixture *f = arg;
	const struct table_keyspace ks = { .name = STR("ks") };
	const struct table_schema msgs = { .columns = msgs_columns,
					   .column_count = COUNT(msgs_columns) };
	struct catalog_db *db;
	enum status status;
	struct timed t;

	TRY(table_keyspace_create(tx, &ks, NULL));
	TRY(table_create(tx, STR(TABLE), &msgs, 0, NULL));
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR(TABLE), &db, NULL));
	timed_init(&t, tx, db, &f->clock, NULL);
	status = put(&t, "once", 0, OWNER, "me");
	if (status == STATUS_OK)
		status = put(&t, "both", 0, OWNER, "it's me");
	for (int64_t id = 1; status == STATUS_OK && id <= 2; id++)
		status = put(&t, "both", id, MSG, "text");
	if (status == STATUS_OK)
		status = put(&t, "rows", -7, MSG, "text");
	catalog_db_unref(db);
	return status;
}

/* ---- Drawing ---- */

struct drawing {
	const char *id; /* NULL: of all rows */
	struct buf out;
	struct catalog_db *db;
	struct kv_tx *tx;
};

static enum status
draw_prefix(void *arg, struct str prefix)
{
	struct drawing *d = arg;
	AUTO(buf_release) struct buf end = BUF_INIT(TIMED_KEY_BYTES);
	size_t space_len = d->db->prefix.len + TIMED_SPACE_BYTES;
	struct kv_scan scan;
	struct kv_pair pair;
	enum status status;

	buf_append_str(&end, prefix);
	buf_append_byte(&end, 0xff);
	TRY(kv_scan_init(&scan, d->tx, prefix, buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		assert_true(d->db->kind->draw_pair(d->db, TIMED_SPACE_ROWS,
						   str_skip(pair.key, space_len), pair.value,
						   &d->out));
		buf_append_byte(&d->out, '\n');
	}
	kv_scan_release(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
drawing_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf all = BUF_INIT(TIMED_KEY_BYTES);
	struct drawing *d = arg;
	enum status status;

	buf_clear(&d->out);
	d->tx = tx;
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR(TABLE), &d->db, NULL));
	timed_key_space(&all, d->db, TIMED_SPACE_ROWS);
	status = d->id ? d->db->kind->inspect(tx, d->db, str_from_cstr(d->id), NULL, draw_prefix, d)
		       : draw_prefix(d, buf_str(&all));
	catalog_db_unref(d->db);
	return status;
}

static const char *
inspected(struct fixture *f, const char *id)
{
	struct drawing d = { .id = id, .out = BUF_INIT(ARENA_BYTES) };
	enum status status = kv_run_read(f->store, drawing_body, &d, NULL);
	struct str ret;

	if (status != STATUS_OK)
		fail_msg("%s: %s", id ? id : "all", status_name(status));
	ret = arena_dup(f->arena, buf_str(&d.out));
	buf_release(&d.out);
	return ret.ptr;
}

/* ---- Tests ---- */

#define AT "1970-01-01T00:16:40.000000Z"

static void
cells_are_drawn_in_the_order_of_their_keys(void **state)
{
	assert_string_equal(inspected(*state, NULL),
			    "(0x8000, 'both'), owner_column_id, " AT " -> 'it''s me'\n"
			    "(0x8000, 'both', 1), liveness_column_id, " AT " -> [NULL]\n"
			    "(0x8000, 'both', 1), msg_column_id, " AT " -> 'text'\n"
			    "(0x8000, 'both', 2), liveness_column_id, " AT " -> [NULL]\n"
			    "(0x8000, 'both', 2), msg_column_id, " AT " -> 'text'\n"
			    "(0x8000, 'once'), owner_column_id, " AT " -> 'me'\n"
			    "(0x8000, 'rows', -7), liveness_column_id, " AT " -> [NULL]\n"
			    "(0x8000, 'rows', -7), msg_column_id, " AT " -> 'text'\n");
}

static void
rows_are_found_by_what_is_drawn_of_them(void **state)
{
	static const struct {
		const char *id;
		size_t cells;
	} cases[] = {
		{ "(0x8000", 8 },
		{ "(0x7000", 0 },
		{ "(0x8000, 'both'", 5 },
		{ "(0x8000, 'both')", 5 },
		{ "(0x8000, 'both', 1", 2 },
		{ "(0x8000, 'both', 1)", 2 },
		{ "(0x8000, 'both', 3)", 0 },
		{ "(0x8000, 'both', 01)", 0 },
		{ "(0x8000, 'both', 1, 1)", 0 },
		{ "(0x8000, 'bot', 1)", 0 },
		{ "(0x8000, 'once'", 1 },
		/* It has no rows, by which the types of keys are known. */
		{ "(0x8000, 'once', 1)", 0 },
		{ "(0x8000, 'rows')", 2 },
		{ "(0x8000, 'rows', -7)", 2 },
		{ "(0x8000, 'rows', 7)", 0 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *drawn = inspected(*state, cases[i].id);
		size_t lines = 0;

		for (const char *c = drawn; *c; c++)
			lines += *c == '\n';
		if (lines != cases[i].cells)
			fail_msg("%s: %s", cases[i].id, drawn);
	}
}

/* ---- All of them ---- */

static int
fixture_setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err = { 0 };
	char url[256];

	assert_non_null(f);
	test_show_failures();
	tables_register();
	test_make_dir("drawn", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, &err), STATUS_OK);
	f->arena = arena_new(ARENA_BYTES);
	f->clock = (struct timed_clock){ .now_ms = fixture_now, .arg = f };
	if (kv_run(f->store, fill_body, f, NULL, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	*state = f;
	return 0;
}

static int
fixture_teardown(void **state)
{
	struct fixture *f = *state;

	kv_close(f->store);
	arena_free(f->arena);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(cells_are_drawn_in_the_order_of_their_keys,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(rows_are_found_by_what_is_drawn_of_them,
						fixture_setup, fixture_teardown),
	};

	return cmocka_run_group_tests_name("tables_drawn", tests, NULL, NULL);
}

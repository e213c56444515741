/*
 * What a dump is told of rows: which cells, in which order, where rows begin, when cells expire;
 * what inspect draws of their pairs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/store_format.h"
#include "kv/tuple.h"
#include "model/timed/rows/rows.h"
#include "store.h"

enum {
	ARENA_BYTES = 1024 * 1024,
	START_MS = 1000 * 1000,
};

#define TABLE "table" /* (a, b), a column c */
#define KEYS  "keys"  /* (a): values and collections, which expire after 9 seconds */

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	struct timed_clock clock;
	uint64_t now_ms;
	struct err err;
	const char *db; /* of the transaction that runs */
	enum status (*body)(struct timed *t, struct fixture *f);
	struct buf said;
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
	struct timed_key_column columns[] = { { .name = STR("a") }, { .name = STR("b") } };
	const struct timed_schema table = { columns, 1, 2, (struct str[]){ STR("c") }, 1 };
	const struct timed_schema keys = { columns, 1, 1, NULL, 0 };

	(void)arg;
	TRY(timed_create(tx, STR(TABLE), &table, 0, NULL));
	return timed_create(tx, STR(KEYS), &keys, 9000, NULL);
}

static int
fixture_setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char url[256];

	test_show_failures();
	timed_rows_register();
	test_make_dir("cells", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, &f->err), STATUS_OK);
	f->arena = arena_new(ARENA_BYTES);
	f->clock = (struct timed_clock){ .now_ms = fixture_now, .arg = f };
	f->now_ms = START_MS;
	f->said = (struct buf)BUF_INIT(ARENA_BYTES);
	assert_int_equal(kv_run(f->store, create_body, NULL, NULL, &f->err), STATUS_OK);
	*state = f;
	return 0;
}

static int
fixture_teardown(void **state)
{
	struct fixture *f = *state;

	buf_release(&f->said);
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

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_ROWS, str_from_cstr(f->db), &db, &f->err));
	timed_init(&t, tx, db, &f->clock, &f->err);
	status = f->body(&t, f);
	catalog_db_unref(db);
	return status;
}

static void
work(struct fixture *f, const char *db, enum status (*body)(struct timed *t, struct fixture *f))
{
	f->db = db;
	f->body = body;
	assert_int_equal(kv_run(f->store, work_body, f, NULL, &f->err), STATUS_OK);
}

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

/* ---- What is said of a cell ---- */

static void
say_scalar(struct fixture *f, const struct doc_scalar *s)
{
	if (s->kind == DOC_TEXT)
		buf_append_str(&f->said, s->text);
	else
		buf_printf(&f->said, "%lld", (long long)s->n);
}

/* "+u/1 inserted", " u/1.c=2 until 5": + where a row begins. */
static enum status
say_cell(void *arg, const struct timed_cell_seen *cell)
{
	static const char *const types[] = { "", " inserted", " value", " hash", " set" };
	struct fixture *f = arg;

	buf_append_byte(&f->said, cell->begins ? '+' : ' ');
	for (size_t i = 0; i < cell->key.count; i++) {
		if (i)
			buf_append_byte(&f->said, '/');
		say_scalar(f, &cell->key.parts[i]);
	}
	for (size_t i = 0; i < cell->path.count; i++) {
		buf_append_byte(&f->said, '.');
		if (cell->path.steps[i].column)
			buf_append_byte(&f->said, (uint8_t)('b' + cell->path.steps[i].column));
		else
			say_scalar(f, &cell->path.steps[i].key);
	}
	buf_append_cstr(&f->said, types[cell->type]);
	if (cell->type == TIMED_LEAF || cell->type == TIMED_VALUE) {
		buf_append_byte(&f->said, '=');
		say_scalar(f, &cell->value);
	}
	if (cell->expiry.kind == TIMED_EXPIRY_AT)
		buf_printf(&f->said, " until %llu", (unsigned long long)cell->expiry.ms);
	else if (cell->expiry.kind == TIMED_EXPIRY_NEVER)
		buf_append_cstr(&f->said, " for ever");
	buf_append_byte(&f->said, '\n');
	assert_true(cell->write_us >= (uint64_t)START_MS * 1000);
	return STATUS_OK;
}

static enum status
cells_body(struct timed *t, struct fixture *f)
{
	buf_clear(&f->said);
	return timed_cells(t, f->arena, say_cell, f);
}

static void
expect_cells(struct fixture *f, const char *db, const char *wanted)
{
	work(f, db, cells_body);
	buf_append_byte(&f->said, 0);
	assert_string_equal(f->said.ptr, wanted);
}

/* ---- Tests ---- */

static enum status
fill_table(struct timed *t, struct fixture *f)
{
	struct timed_step c[] = { { .column = 1 } };
	struct timed_step member[] = { { .key = text("x") } };
	const struct timed_path whole = { c, 1 };
	const struct timed_value one = { .value = number(1) };
	const struct timed_value map[] = { { { member, 1 }, number(2) } };
	const struct timed_expiry soon = { TIMED_EXPIRY_AFTER, 1000 };
	const struct timed_expiry later = { TIMED_EXPIRY_AFTER, 5000 };
	struct doc_scalar parts[] = { text("u"), number(1) };
	const struct timed_key key = { parts, 2 };

	(void)f;
	TRY(timed_insert(t, &key, (struct timed_expiry){ 0 }));
	TRY(timed_put(t, &key, &whole, &one, 1, later));
	parts[1].n = 2; /* there by its column alone */
	TRY(timed_put(t, &key, &whole, map, 1, (struct timed_expiry){ TIMED_EXPIRY_NEVER, 0 }));
	parts[1].n = 3; /* what is left of it when its own cell has expired */
	TRY(timed_insert(t, &key, soon));
	TRY(timed_put(t, &key, &whole, &one, 1, later));
	parts[1].n = 4; /* nothing is left of it */
	TRY(timed_insert(t, &key, soon));
	parts[1].n = 5;
	return timed_insert(t, &key, later);
}

static void
the_cells_of_a_table_are_told_row_by_row(void **state)
{
	struct fixture *f = *state;

	work(f, TABLE, fill_table);
	expect_cells(f, TABLE,
		     "+u/1 inserted\n u/1.c=1 until 1005000\n"
		     "+u/2.c.x=2 for ever\n"
		     "+u/3 inserted until 1001000\n u/3.c=1 until 1005000\n"
		     "+u/4 inserted until 1001000\n"
		     "+u/5 inserted until 1005000\n");
	f->now_ms += 1000;
	expect_cells(f, TABLE,
		     "+u/1 inserted\n u/1.c=1 until 1005000\n"
		     "+u/2.c.x=2 for ever\n"
		     "+u/3.c=1 until 1005000\n"
		     "+u/5 inserted until 1005000\n");
	f->now_ms += 4000;
	expect_cells(f, TABLE, "+u/1 inserted\n+u/2.c.x=2 for ever\n");
}

static enum status
fill_hash(struct timed *t, struct fixture *f)
{
	struct timed_step x[] = { { .key = text("x") } }, y[] = { { .key = text("y") } };
	const struct timed_value members[] = { { { x, 1 }, number(1) }, { { y, 1 }, number(2) } };
	struct doc_scalar part = text("h");
	const struct timed_key key = { &part, 1 };

	(void)f;
	return timed_add(t, &key, TIMED_HASH, members, 2, (struct timed_expiry){ 0 });
}

static enum status
add_to_hash(struct timed *t, struct fixture *f)
{
	struct timed_step z[] = { { .key = text("z") } };
	const struct timed_value member = { { z, 1 }, number(3) };
	struct doc_scalar part = text("h");
	const struct timed_key key = { &part, 1 };

	(void)f;
	return timed_add(t, &key, TIMED_HASH, &member, 1, (struct timed_expiry){ 0 });
}

static enum status
set_value(struct timed *t, struct fixture *f)
{
	const struct doc_scalar value = text("v");
	struct doc_scalar part = text("h");
	const struct timed_key key = { &part, 1 };

	(void)f;
	return timed_set(t, &key, &value, (struct timed_expiry){ TIMED_EXPIRY_AFTER, 2000 });
}

/* Members have no expiry of their own. */
static void
members_are_told_while_their_collection_is_there(void **state)
{
	struct fixture *f = *state;

	work(f, KEYS, fill_hash);
	expect_cells(f, KEYS, "+h hash\n h.x=1 for ever\n h.y=2 for ever\n");
	f->now_ms += 4000;
	work(f, KEYS, add_to_hash);
	expect_cells(f, KEYS, "+h hash\n h.x=1 for ever\n h.y=2 for ever\n h.z=3 for ever\n");
	f->now_ms += 4999;
	expect_cells(f, KEYS, "+h hash\n h.x=1 for ever\n h.y=2 for ever\n h.z=3 for ever\n");
	f->now_ms += 1;
	expect_cells(f, KEYS, "");
	work(f, KEYS, set_value);
	expect_cells(f, KEYS, "+h value=v until 1011000\n");
	f->now_ms += 2000;
	expect_cells(f, KEYS, "");
}

/* ---- What inspect draws ---- */

enum {
	SPACE_ROWS = 33, /* as they are stored */
	SPACE_EXPIRY = 34,
	SPACE_CLOCK = 35,
};

static enum status
draw_space(struct timed *t, struct fixture *f, uint64_t space)
{
	AUTO(buf_release) struct buf begin = BUF_INIT(100), end = BUF_INIT(100);
	const struct catalog_kind *kind = t->db->kind;
	struct kv_scan scan;
	struct kv_pair pair;
	enum status status;

	buf_append_str(&begin, t->db->prefix);
	tuple_put_u64(&begin, space);
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, 0xff);
	TRY(kv_scan_init(&scan, t->tx, buf_str(&begin), buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		size_t len;

		assert_true(kind->draw_pair(t->db, space, str_skip(pair.key, begin.len), pair.value,
					    &f->said));
		buf_append_byte(&f->said, '\n');
		len = f->said.len;
		assert_false(kind->draw_pair(t->db, space, STR("\xff"), STR("\xff"), &f->said));
		assert_int_equal(f->said.len, len);
	}
	kv_scan_release(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
draw_all(struct timed *t, struct fixture *f)
{
	buf_clear(&f->said);
	TRY(draw_space(t, f, SPACE_ROWS));
	TRY(draw_space(t, f, SPACE_EXPIRY));
	return draw_space(t, f, SPACE_CLOCK);
}

static void
expect_drawn(struct fixture *f, const char *db, const char *wanted)
{
	work(f, db, draw_all);
	buf_append_byte(&f->said, 0);
	assert_string_equal(f->said.ptr, wanted);
}

static enum status
fill_set(struct timed *t, struct fixture *f)
{
	struct timed_step x[] = { { .key = text("x") } };
	const struct timed_value member = { { x, 1 }, { .kind = DOC_NULL } };
	struct doc_scalar part = text("h");
	const struct timed_key key = { &part, 1 };

	(void)f;
	TRY(timed_clear(t, &key, &(struct timed_path){ NULL, 0 }));
	return timed_add(t, &key, TIMED_SET, &member, 1,
			 (struct timed_expiry){ TIMED_EXPIRY_NEVER, 0 });
}

static void
pairs_are_drawn_by_what_they_are(void **state)
{
	struct fixture *f = *state;
	const char *hash;

	work(f, KEYS, fill_hash);
	/* The hash of the key comes first in each line. */
	work(f, KEYS, draw_all);
	hash = arena_printf(f->arena, "%.7s", f->said.ptr).ptr;
	expect_drawn(f, KEYS,
		     arena_printf(f->arena,
				  "%s, 'h'), 1970-01-01T00:16:40.000000Z -> [Redis-Hash-Type]\n"
				  "%s, 'h'), 'x', 1970-01-01T00:16:40.000000Z -> (TTL = 0) 1\n"
				  "%s, 'h'), 'y', 1970-01-01T00:16:40.000000Z -> (TTL = 0) 2\n"
				  "1970-01-01T00:16:49.000000Z, %s, 'h')\n"
				  "the latest write: 1970-01-01T00:16:40.000000Z\n",
				  hash, hash, hash, hash)
			     .ptr);
	work(f, KEYS, set_value);
	/* The sweep takes what is said of the hash's expiry when that has come. */
	expect_drawn(f, KEYS,
		     arena_printf(f->arena,
				  "%s, 'h'), 1970-01-01T00:16:40.000001Z -> (TTL = 2) 'v'\n"
				  "1970-01-01T00:16:42.000000Z, %s, 'h')\n"
				  "1970-01-01T00:16:49.000000Z, %s, 'h')\n"
				  "the latest write: 1970-01-01T00:16:40.000001Z\n",
				  hash, hash, hash)
			     .ptr);
	work(f, KEYS, fill_set);
	expect_drawn(f, KEYS,
		     arena_printf(f->arena,
				  "%s, 'h'), 1970-01-01T00:16:40.000002Z -> (TTL = 0) "
				  "[Redis-Set-Type]\n"
				  "%s, 'h'), 'x', 1970-01-01T00:16:40.000002Z -> (TTL = 0) [NULL]\n"
				  "1970-01-01T00:16:42.000000Z, %s, 'h')\n"
				  "1970-01-01T00:16:49.000000Z, %s, 'h')\n"
				  "the latest write: 1970-01-01T00:16:40.000002Z\n",
				  hash, hash, hash, hash)
			     .ptr);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_cells_of_a_table_are_told_row_by_row,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(pairs_are_drawn_by_what_they_are, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(members_are_told_while_their_collection_is_there,
						fixture_setup, fixture_teardown),
	};

	return cmocka_run_group_tests_name("rows_cells", tests, NULL, NULL);
}

/*
 * Tables: schemas and their changes, keyspaces and types, what each operation leaves and reads,
 * static columns, collections, counters, scans.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/draw.h"
#include "catalog/store_format.h"
#include "kv/faulty/faulty.h"
#include "kv/keyspace.h"
#include "model/timed/tables/keyspaces.h"
#include "model/timed/tables/row.h"
#include "store.h"
#include "test_tables.h"
#include "verified.h"

enum {
	ARENA_BYTES = 64 * 1024 * 1024,
	START_MS = 1000 * 1000,
	SPACE_ROWS = 33, /* as they are stored */
	SPACE_EXPIRY = 34,
	SPACE_COUNTER = 43,
};

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	struct timed_clock clock;
	uint64_t now_ms;
	struct err err;
};

static uint64_t
fixture_now(void *arg)
{
	const struct fixture *f = arg;

	return f->now_ms;
}

/* ---- Transactions ---- */

typedef enum status work_body(struct timed *t, void *arg);

struct work {
	struct fixture *f;
	const char *table; /* NULL: none is opened */
	work_body *body;
	void *arg;
	uint64_t at_us;
	uint64_t now_us;
	struct kv_tx_stats cost;
	enum status status; /* of the body, which is not tried again */
};

static enum status
work_run(struct kv_tx *tx, void *arg)
{
	struct work *w = arg;
	struct catalog_db *db = NULL;
	struct timed t;

	if (w->table)
		TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, str_from_cstr(w->table), &db,
				 &w->f->err));
	timed_init(&t, tx, db, &w->f->clock, &w->f->err);
	if (w->at_us)
		timed_at_us(&t, w->at_us);
	w->cost = kv_tx_stats(tx);
	w->status = w->body(&t, w->arg);
	w->now_us = t.now_us;
	{
		const struct kv_tx_stats after = kv_tx_stats(tx);

		w->cost.reads = after.reads - w->cost.reads;
		w->cost.clears = after.clears - w->cost.clears;
		w->cost.sets = after.sets - w->cost.sets;
	}
	catalog_db_unref(db);
	return w->status;
}

static enum status
run(struct fixture *f, const char *table, work_body *body, void *arg)
{
	struct work w = { .f = f, .table = table, .body = body, .arg = arg };

	return kv_run(f->store, work_run, &w, NULL, &f->err);
}

/* ---- Setup ---- */

static enum status
create_all(struct timed *t, void *arg)
{
	const struct table_property replication[] = { { STR("replication"), STR("{}") } };
	const struct table_property comment[] = { { STR("comment"), STR("messages") } };
	const struct table_keyspace ks = { .name = STR("ks"),
					   .properties = replication,
					   .property_count = 1 };
	const struct table_schema msgs = { .columns = msgs_columns,
					   .column_count = 6,
					   .properties = comment,
					   .property_count = 1 };
	const struct table_schema hits = { .columns = hits_columns, .column_count = 3 };
	const struct table_schema keys = { .columns = hits_columns, .column_count = 2 };

	(void)arg;
	TRY(table_keyspace_create(t->tx, &ks, t->err));
	TRY(table_create(t->tx, STR("ks.msgs"), &msgs, 0, t->err));
	TRY(table_create(t->tx, STR("ks.short"), &msgs, 5000, t->err));
	TRY(table_create(t->tx, STR("ks.keys"), &keys, 0, t->err));
	return table_create(t->tx, STR("ks.hits"), &hits, 0, t->err);
}

static int
fixture_setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char url[256];

	test_show_failures();
	tables_register();
	test_make_dir("tables", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, &f->err), STATUS_OK);
	f->arena = arena_new(ARENA_BYTES);
	f->clock = (struct timed_clock){ .now_ms = fixture_now, .arg = f };
	f->now_ms = START_MS;
	assert_int_equal(run(f, NULL, create_all, NULL), STATUS_OK);
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

/* ---- Rows ---- */

/* A write to one row; `id` -1: to the partition. */
struct put {
	const char *user;
	int64_t id;
	bool inserts;
	struct timed_expiry expiry;
	struct table_change changes[6];
	size_t count;
};

/* The hash component and the range component; tokens are the first byte. */
static struct table_key
key_of(const char *user, int64_t id, struct doc_scalar parts[2])
{
	parts[0] = text(user);
	parts[1] = number(id);
	return (struct table_key){ .token = (int8_t)user[0],
				   .parts = parts,
				   .count = id < 0 ? 1 : 2 };
}

static enum status
put_body(struct timed *t, void *arg)
{
	const struct put *p = arg;
	struct doc_scalar parts[2];
	const struct table_write write = { .key = key_of(p->user, p->id, parts),
					   .inserts = p->inserts,
					   .expiry = p->expiry,
					   .changes = p->changes,
					   .change_count = p->count };

	return table_write(t, &write);
}

static void
put(struct fixture *f, const char *table, struct put p)
{
	while (p.count < 6 && p.changes[p.count].column)
		p.count++;
	assert_int_equal(run(f, table, put_body, &p), STATUS_OK);
}

struct place_of_row {
	const char *user;
	int64_t id;
	bool statics;
	struct table_wanted *wanted;
	struct table_row row;
	struct arena *arena;
	struct buf drawn;
};

static enum status
clear_body(struct timed *t, void *arg)
{
	struct place_of_row *p = arg;
	struct doc_scalar parts[2];
	const struct table_key key = key_of(p->user, p->id, parts);

	return table_clear_row(t, &key);
}

static enum status
read_body(struct timed *t, void *arg)
{
	struct place_of_row *p = arg;
	struct doc_scalar parts[2];
	const struct table_key key = key_of(p->user, p->id, parts);

	buf_clear(&p->drawn);
	TRY(table_read(t, &key, p->statics, p->wanted, p->arena, &p->row));
	/* What a cell has of its column lasts as long as the description. */
	draw_row(&p->row, &p->drawn);
	return STATUS_OK;
}

static void
expect_row(struct fixture *f, const char *table, const char *user, int64_t id, bool statics,
	   const char *wanted)
{
	struct place_of_row p = { .user = user,
				  .id = id,
				  .statics = statics,
				  .arena = f->arena,
				  .drawn = BUF_INIT(10000) };
	enum status status = run(f, table, read_body, &p);

	assert_int_equal(status, *wanted ? STATUS_OK : STATUS_NOT_FOUND);
	buf_append_byte(&p.drawn, 0);
	assert_string_equal(p.drawn.ptr, wanted);
	buf_release(&p.drawn);
}

/* ---- Scans ---- */

struct scan {
	struct table_scan_options options;
	size_t page;   /* rows, each in a scan of its own; 0: all in one */
	bool distinct; /* only one row of each partition */
	struct buf out;
	struct buf place;
	struct arena *arena;
	bool more;
	unsigned pages;
};

static enum status
scan_page(struct timed *t, void *arg)
{
	struct scan *s = arg;
	struct table_scan *scan;
	enum status status;
	struct table_row row;
	size_t rows = 0, len = s->out.len;

	s->options.after = buf_str(&s->place);
	TRY(table_scan_open(t, &s->options, &scan));
	while ((status = table_scan_next(scan, s->arena, &row)) == STATUS_OK) {
		draw_row(&row, &s->out);
		if (s->distinct)
			TRY(table_scan_skip_partition(scan));
		if (++rows == s->page)
			break;
	}
	s->more = status == STATUS_OK || table_scan_paused(scan);
	if (s->more) {
		buf_clear(&s->place);
		if (table_scan_place(scan, &s->place) != STATUS_OK)
			status = STATUS_NOMEM;
	}
	table_scan_close(scan);
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		s->out.len = len;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static void
expect_scan(struct fixture *f, const char *table, struct scan s, const char *wanted)
{
	s.out = (struct buf)BUF_INIT(100000);
	s.place = (struct buf)BUF_INIT(TABLE_PLACE_BYTES);
	s.arena = f->arena;
	do {
		assert_int_equal(run(f, table, scan_page, &s), STATUS_OK);
		assert_true(++s.pages < 100);
	} while (s.more);
	buf_append_byte(&s.out, 0);
	assert_string_equal(s.out.ptr, wanted);
	buf_release(&s.out);
	buf_release(&s.place);
}

/* ---- Pairs as they lie ---- */

static void
expect_drawn(struct fixture *f, const char *table, uint64_t space, const char *wanted)
{
	AUTO(buf_release) struct buf drawn = BUF_INIT(100000);
	AUTO(buf_release) struct buf begin = BUF_INIT(100), end = BUF_INIT(100);
	struct catalog_db *db;
	struct kv_tx *tx;
	struct kv_scan scan;
	struct kv_pair pair;

	assert_int_equal(kv_begin(kv_faulty_inner(f->store), KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(
		catalog_open(tx, NULL, CATALOG_SPACE_TABLE, str_from_cstr(table), &db, &f->err),
		STATUS_OK);
	buf_append_str(&begin, db->prefix);
	tuple_put_u64(&begin, space);
	buf_append_str(&end, buf_str(&begin));
	buf_append_byte(&end, 0xff);
	assert_int_equal(kv_scan_init(&scan, tx, buf_str(&begin), buf_str(&end), NULL), STATUS_OK);
	while (kv_scan_next(&scan, &pair) == STATUS_OK) {
		assert_true(db->kind->draw_pair(db, space, str_skip(pair.key, begin.len),
						pair.value, &drawn));
		buf_append_byte(&drawn, '\n');
	}
	buf_append_byte(&drawn, 0);
	assert_string_equal(drawn.ptr, wanted);
	kv_scan_release(&scan);
	catalog_db_unref(db);
	kv_tx_free(tx);
}

/* ---- Tests: rows ---- */

#define PUT(id_, value_)                                                                           \
	{                                                                                          \
		.kind = TABLE_CHANGE_PUT, .column = (id_), .value = value_                         \
	}
#define ELEMENT(id_, k_, v_)                                                                       \
	{                                                                                          \
		.kind = TABLE_CHANGE_PUT_ELEMENT, .column = (id_), .element = k_, .value = v_      \
	}
#define LISTED(kind_, id_, v_)                                                                     \
	{                                                                                          \
		.kind = (kind_), .column = (id_), .value = v_                                      \
	}

/* The listing of the text that the layout follows. */
static void
rows_lie_as_the_text_has_them(void **state)
{
	struct fixture *f = *state;

	put(f, "ks.msgs",
	    (struct put){ .user = "user1",
			  .id = 10,
			  .inserts = true,
			  .changes = { PUT(MSG, text("msg1")),
				       ELEMENT(MSG_PROPS, text("from"), text("a@b.com")),
				       ELEMENT(MSG_PROPS, text("subject"), text("hello")) } });
	f->now_ms++;
	put(f, "ks.msgs",
	    (struct put){ .user = "user1",
			  .id = 10,
			  .changes = { ELEMENT(MSG_PROPS, text("read_status"), text("true")) } });
	f->now_ms++;
	put(f, "ks.msgs",
	    (struct put){ .user = "user1",
			  .id = 20,
			  .inserts = true,
			  .expiry = { TIMED_EXPIRY_AFTER, 86400 * 1000 },
			  .changes = { PUT(MSG, text("msg2")) } });
	expect_drawn(f, "ks.msgs", SPACE_ROWS,
		     "(0x8000, 'user1', 10), liveness_column_id, 1970-01-01T00:16:40.000000Z -> "
		     "[NULL]\n"
		     "(0x8000, 'user1', 10), msg_column_id, 1970-01-01T00:16:40.000000Z -> 'msg1'\n"
		     "(0x8000, 'user1', 10), msg_props_column_id, 'from', "
		     "1970-01-01T00:16:40.000000Z -> 'a@b.com'\n"
		     "(0x8000, 'user1', 10), msg_props_column_id, 'read_status', "
		     "1970-01-01T00:16:40.001000Z -> 'true'\n"
		     "(0x8000, 'user1', 10), msg_props_column_id, 'subject', "
		     "1970-01-01T00:16:40.000000Z -> 'hello'\n"
		     "(0x8000, 'user1', 20), liveness_column_id, 1970-01-01T00:16:40.002000Z -> "
		     "(TTL = 86400) [NULL]\n"
		     "(0x8000, 'user1', 20), msg_column_id, 1970-01-01T00:16:40.002000Z -> "
		     "'msg2'\n");
	verified_none(f->store);
}

static void
a_row_that_was_updated_is_there_while_a_column_is(void **state)
{
	struct fixture *f = *state;
	struct place_of_row of_row = { .user = "b", .id = 1 };

	put(f, "ks.msgs", (struct put){ .user = "a", .id = 1, .inserts = true });
	put(f, "ks.msgs", (struct put){ .user = "b", .id = 1, .changes = { PUT(MSG, text("x")) } });
	expect_row(f, "ks.msgs", "a", 1, false, "(a/1*)");
	expect_row(f, "ks.msgs", "b", 1, false, "(b/1 msg=x)");
	put(f, "ks.msgs",
	    (struct put){ .user = "b",
			  .id = 1,
			  .changes = { PUT(MSG, ((struct doc_scalar){ .kind = DOC_NULL })) } });
	expect_row(f, "ks.msgs", "b", 1, false, "");
	put(f, "ks.msgs", (struct put){ .user = "b", .id = 1, .changes = { PUT(MSG, text("y")) } });
	assert_int_equal(run(f, "ks.msgs", clear_body, &of_row), STATUS_OK);
	expect_row(f, "ks.msgs", "b", 1, false, "");
	/* A table of key columns alone. */
	put(f, "ks.keys", (struct put){ .user = "a", .id = 3, .inserts = true });
	put(f, "ks.keys", (struct put){ .user = "a", .id = 4, .inserts = true });
	expect_scan(f, "ks.keys", (struct scan){ 0 }, "(a/4*)(a/3*)");
	verified_none(f->store);
}

static void
writing_scalars_reads_the_clock_and_clears_nothing(void **state)
{
	struct fixture *f = *state;
	struct put p = { .user = "a",
			 .id = 1,
			 .inserts = true,
			 .changes = { PUT(MSG, text("x")), ELEMENT(MSG_PROPS, text("k"), text("v")),
				      LISTED(TABLE_CHANGE_APPEND, TAGS, text("t")) },
			 .count = 3 };
	struct work w = { .f = f, .table = "ks.msgs", .body = put_body, .arg = &p };

	assert_int_equal(kv_run(f->store, work_run, &w, NULL, &f->err), STATUS_OK);
	/* Faults cost reads of their own. */
	if (getenv("FROND_TEST_FAULTS"))
		return;
	assert_int_equal(w.cost.clears, 0);
	assert_int_equal(w.cost.reads, 1);
	/* The marker, three cells, the clock, the key that is watched. */
	assert_int_equal(w.cost.sets, 6);
}

static void
lists_keep_their_order(void **state)
{
	struct fixture *f = *state;
	struct place_of_row p = {
		.user = "a", .id = 1, .arena = f->arena, .drawn = BUF_INIT(10000)
	};

	put(f, "ks.msgs",
	    (struct put){ .user = "a",
			  .id = 1,
			  .changes = { LISTED(TABLE_CHANGE_APPEND, TAGS, text("c")),
				       LISTED(TABLE_CHANGE_APPEND, TAGS, text("d")),
				       LISTED(TABLE_CHANGE_PREPEND, TAGS, text("b")),
				       LISTED(TABLE_CHANGE_PREPEND, TAGS, text("a")) } });
	/* In the same millisecond, and later. */
	put(f, "ks.msgs",
	    (struct put){ .user = "a",
			  .id = 1,
			  .changes = { LISTED(TABLE_CHANGE_APPEND, TAGS, text("e")),
				       LISTED(TABLE_CHANGE_PREPEND, TAGS, text("0")) } });
	expect_row(f, "ks.msgs", "a", 1, false, "(a/1 tags=0 tags=a tags=b tags=c tags=d tags=e)");
	assert_int_equal(run(f, "ks.msgs", read_body, &p), STATUS_OK);
	put(f, "ks.msgs",
	    (struct put){ .user = "a",
			  .id = 1,
			  .changes = { { .kind = TABLE_CHANGE_PUT_PLACE,
					 .column = TAGS,
					 .element = p.row.cells[1].element,
					 .value = text("A") },
				       { .kind = TABLE_CHANGE_CLEAR_ELEMENT,
					 .column = TAGS,
					 .element = p.row.cells[3].element } } });
	buf_release(&p.drawn);
	expect_row(f, "ks.msgs", "a", 1, false, "(a/1 tags=0 tags=A tags=b tags=d tags=e)");
	put(f, "ks.msgs",
	    (struct put){ .user = "a",
			  .id = 1,
			  .changes = { { .kind = TABLE_CHANGE_CLEAR, .column = TAGS },
				       LISTED(TABLE_CHANGE_APPEND, TAGS, text("z")) } });
	expect_row(f, "ks.msgs", "a", 1, false, "(a/1 tags=z)");
}

static void
static_columns_are_beside_every_row_of_their_partition(void **state)
{
	struct fixture *f = *state;
	struct doc_scalar a[2], ten = number(10);
	const struct table_key partition = key_of("a", -1, a);

	put(f, "ks.msgs",
	    (struct put){ .user = "a", .id = -1, .changes = { PUT(OWNER, text("o")) } });
	expect_row(f, "ks.msgs", "a", -1, false, "(a owner=o)");
	expect_row(f, "ks.msgs", "a", 1, true, "(a owner=o)");
	expect_row(f, "ks.msgs", "a", 1, false, "");
	put(f, "ks.msgs",
	    (struct put){ .user = "c", .id = -1, .changes = { PUT(OWNER, text("p")) } });
	for (int64_t id = 9; id < 12; id++) {
		put(f, "ks.msgs", (struct put){ .user = "a", .id = id, .inserts = true });
		put(f, "ks.msgs", (struct put){ .user = "b", .id = id, .inserts = true });
	}
	expect_row(f, "ks.msgs", "a", 9, true, "(a/9* owner=o)");
	for (size_t page = 0; page < 4; page++)
		for (size_t pairs = 0; pairs < 4; pairs++) {
			const struct table_scan_options all = { .statics = true,
								.static_alone = true,
								.borrows = pairs % 2,
								.pairs_most = pairs };
			struct scan s = { .options = all, .page = page };

			expect_scan(f, "ks.msgs", s,
				    "(a/9* owner=o)(a/10* owner=o)(a/11* owner=o)"
				    "(b/9*)(b/10*)(b/11*)(c owner=p)");
			s.options.reverse = true;
			expect_scan(f, "ks.msgs", s,
				    "(c owner=p)(b/11*)(b/10*)(b/9*)"
				    "(a/11* owner=o)(a/10* owner=o)(a/9* owner=o)");
			s.options.static_alone = false;
			s.distinct = true;
			expect_scan(f, "ks.msgs", s, "(b/11*)(a/11* owner=o)");
			s.options.reverse = false;
			expect_scan(f, "ks.msgs", s, "(a/9* owner=o)(b/9*)");
			s.distinct = false;
			s.options.partition = &partition;
			s.options.from = (struct table_edge){ TIMED_BOUND_INCLUSIVE, &ten, 1 };
			expect_scan(f, "ks.msgs", s, "(a/10* owner=o)(a/11* owner=o)");
			s.options.from.kind = TIMED_BOUND_EXCLUSIVE;
			s.options.reverse = true;
			expect_scan(f, "ks.msgs", s, "(a/11* owner=o)");
			s.options.to = s.options.from;
			s.options.from.kind = TIMED_BOUND_END;
			expect_scan(f, "ks.msgs", s, "(a/9* owner=o)");
		}
	verified_none(f->store);
}

static void
tokens_order_partitions(void **state)
{
	struct fixture *f = *state;
	const struct table_scan_options middle = {
		.from_token = { TIMED_BOUND_EXCLUSIVE, 'a' },
		.to_token = { TIMED_BOUND_INCLUSIVE, 'c' },
	};
	const struct table_scan_options low = { .to_token = { TIMED_BOUND_EXCLUSIVE, 'a' } };

	/* A byte above 127 is a negative token. */
	put(f, "ks.keys", (struct put){ .user = "\xc3\xa9", .id = 1, .inserts = true });
	put(f, "ks.keys", (struct put){ .user = "a", .id = 1, .inserts = true });
	put(f, "ks.keys", (struct put){ .user = "b", .id = 1, .inserts = true });
	put(f, "ks.keys", (struct put){ .user = "c", .id = 1, .inserts = true });
	put(f, "ks.keys", (struct put){ .user = "d", .id = 1, .inserts = true });
	expect_scan(f, "ks.keys", (struct scan){ 0 }, "(\xc3\xa9/1*)(a/1*)(b/1*)(c/1*)(d/1*)");
	expect_scan(f, "ks.keys", (struct scan){ .options = middle }, "(b/1*)(c/1*)");
	expect_scan(f, "ks.keys", (struct scan){ .options = low }, "(\xc3\xa9/1*)");
}

static void
only_wanted_columns_are_read(void **state)
{
	struct fixture *f = *state;
	const uint64_t ids[] = { MSG, OWNER };
	struct table_wanted wanted = { true, ids, 2 };
	struct scan s = { .options = { .statics = true, .wanted = &wanted } };

	put(f, "ks.msgs",
	    (struct put){ .user = "a", .id = -1, .changes = { PUT(OWNER, text("o")) } });
	put(f, "ks.msgs",
	    (struct put){ .user = "a",
			  .id = 1,
			  .changes = { PUT(MSG, text("x")),
				       LISTED(TABLE_CHANGE_APPEND, TAGS, text("t")) } });
	/* It is there by a column that is not wanted. */
	put(f, "ks.msgs",
	    (struct put){ .user = "a",
			  .id = 2,
			  .changes = { LISTED(TABLE_CHANGE_APPEND, TAGS, text("t")) } });
	expect_scan(f, "ks.msgs", s, "(a/1 msg=x owner=o)(a/2 owner=o)");
	wanted.count = 0;
	expect_scan(f, "ks.msgs", s, "(a/1)(a/2)");
}

struct clear_range {
	struct table_edge from, to;
	bool partition;
	bool more;
};

static enum status
clear_range_body(struct timed *t, void *arg)
{
	struct clear_range *c = arg;
	struct doc_scalar parts[2];
	const struct table_key key = key_of("a", -1, parts);

	return c->partition ? table_clear_partition(t, &key, &c->more)
			    : table_clear_range(t, &key, &c->from, &c->to, &c->more);
}

static void
ranges_of_a_partition_are_cleared(void **state)
{
	struct fixture *f = *state;
	struct doc_scalar four = number(4), seven = number(7);
	struct clear_range c = { .from = { TIMED_BOUND_EXCLUSIVE, &four, 1 },
				 .to = { TIMED_BOUND_INCLUSIVE, &seven, 1 } };

	put(f, "ks.msgs",
	    (struct put){ .user = "a", .id = -1, .changes = { PUT(OWNER, text("o")) } });
	for (int64_t id = 3; id < 10; id++)
		put(f, "ks.msgs", (struct put){ .user = "a", .id = id, .inserts = true });
	assert_int_equal(run(f, "ks.msgs", clear_range_body, &c), STATUS_OK);
	assert_false(c.more);
	expect_scan(f, "ks.msgs", (struct scan){ .options = { .statics = true } },
		    "(a/3* owner=o)(a/4* owner=o)(a/8* owner=o)(a/9* owner=o)");
	c = (struct clear_range){ .to = { TIMED_BOUND_EXCLUSIVE, &four, 1 } };
	assert_int_equal(run(f, "ks.msgs", clear_range_body, &c), STATUS_OK);
	expect_scan(f, "ks.msgs", (struct scan){ .options = { .statics = true } },
		    "(a/4* owner=o)(a/8* owner=o)(a/9* owner=o)");
	c = (struct clear_range){ 0 };
	assert_int_equal(run(f, "ks.msgs", clear_range_body, &c), STATUS_OK);
	expect_scan(f, "ks.msgs", (struct scan){ .options = { .static_alone = true } },
		    "(a owner=o)");
	c.partition = true;
	assert_int_equal(run(f, "ks.msgs", clear_range_body, &c), STATUS_OK);
	expect_drawn(f, "ks.msgs", SPACE_ROWS, "");
}

static void
counters_are_added_to_blindly(void **state)
{
	struct fixture *f = *state;
	struct put p = { .user = "a",
			 .id = 1,
			 .changes = { LISTED(TABLE_CHANGE_ADD, HITS_N, number(5)) },
			 .count = 1 };
	struct place_of_row of_row = { .user = "a", .id = 1 };

	put(f, "ks.hits", p);
	p.changes[0].value = number(-7);
	put(f, "ks.hits", p);
	p.id = 2;
	put(f, "ks.hits", p);
	expect_scan(f, "ks.hits", (struct scan){ 0 }, "(a/2 n=-7)(a/1 n=-2)");
	expect_drawn(f, "ks.hits", SPACE_COUNTER,
		     "(0x8000, 'a', 2), n_column_id -> -7\n(0x8000, 'a', 1), n_column_id -> -2\n");
	assert_int_equal(run(f, "ks.hits", clear_body, &of_row), STATUS_OK);
	expect_row(f, "ks.hits", "a", 1, false, "");
	p.inserts = true;
	assert_int_equal(run(f, "ks.hits", put_body, &p), STATUS_INVALID);
	verified_none(f->store);
}

static void
what_expires_is_hidden_and_swept(void **state)
{
	struct fixture *f = *state;
	uint64_t done;
	bool more;

	/* By the default of the table, but for what says something else. */
	put(f, "ks.short",
	    (struct put){ .user = "a",
			  .id = 1,
			  .inserts = true,
			  .expiry = { TIMED_EXPIRY_AFTER, 1000 },
			  .changes = { PUT(MSG, text("x")),
				       { .kind = TABLE_CHANGE_PUT_ELEMENT,
					 .column = MSG_PROPS,
					 .element = text("k"),
					 .value = text("v"),
					 .expiry = { TIMED_EXPIRY_NEVER, 0 } } } });
	f->now_ms += 1000;
	expect_row(f, "ks.short", "a", 1, false, "(a/1 msg=x msg_props[k]=v)");
	f->now_ms += 4000;
	expect_row(f, "ks.short", "a", 1, false, "(a/1 msg_props[k]=v)");
	assert_int_equal(timed_sweep(f->store, &f->clock, 10, &done, &more, &f->err), STATUS_OK);
	assert_int_equal(done, 2);
	expect_drawn(f, "ks.short", SPACE_ROWS,
		     "(0x8000, 'a', 1), msg_props_column_id, 'k', 1970-01-01T00:16:40.000000Z -> "
		     "(TTL = 0) 'v'\n");
	verified_none(f->store);
}

static void
what_does_not_fit_is_refused(void **state)
{
	static char big[TABLE_VALUE_BYTES + 2];
	struct fixture *f = *state;
	struct put p = { .user = "a", .id = 1, .count = 1 };

	memset(big, 'x', sizeof(big) - 1);
	p.changes[0] = (struct table_change)PUT(OWNER, text("x"));
	assert_int_equal(run(f, "ks.msgs", put_body, &p), STATUS_INVALID);
	p.changes[0] = (struct table_change)PUT(MSG_PROPS, text("x"));
	assert_int_equal(run(f, "ks.msgs", put_body, &p), STATUS_INVALID);
	p.changes[0] = (struct table_change)PUT(99, text("x"));
	assert_int_equal(run(f, "ks.msgs", put_body, &p), STATUS_INVALID);
	p.changes[0] = (struct table_change)LISTED(TABLE_CHANGE_ADD, MSG, number(1));
	assert_int_equal(run(f, "ks.msgs", put_body, &p), STATUS_INVALID);
	p.changes[0] = (struct table_change)PUT(MSG, text(big));
	assert_int_equal(run(f, "ks.msgs", put_body, &p), STATUS_VALUE_TOO_LARGE);
	assert_non_null(strstr(f->err.text, "TABLE_VALUE_BYTES"));
	p.changes[0] = (struct table_change)PUT(MSG, text("x"));
	big[9900] = 0;
	p.user = big;
	assert_int_equal(run(f, "ks.msgs", put_body, &p), STATUS_KEY_TOO_LARGE);
	assert_non_null(strstr(f->err.text, "TIMED_KEY_BYTES"));
	p.user = "a";
	p.id = -1;
	p.inserts = true;
	assert_int_equal(run(f, "ks.msgs", put_body, &p), STATUS_INVALID);
}

/* ---- Tests: schemas ---- */

struct seen_schema {
	uint8_t id[TABLE_ID_BYTES];
	uint64_t msg_id; /* of the column "msg"; 0: there is none */
	size_t columns, dropped, properties;
	char comment[50];
	char first[50];
	uint64_t ttl_ms;
	uint8_t stamp[TABLE_STAMP_BYTES];
};

static enum status
schema_body(struct timed *t, void *arg)
{
	const struct table_schema *s = table_schema_of(t->db);
	const struct table_column *msg = table_column_named(s, STR("msg"));
	struct str comment = table_property_of(s, STR("comment"));
	struct seen_schema *ret = arg;

	memcpy(ret->id, s->id, sizeof(ret->id));
	ret->msg_id = msg ? msg->id : 0;
	ret->columns = s->column_count;
	ret->dropped = s->dropped_count;
	ret->properties = s->property_count;
	ret->ttl_ms = timed_ttl_ms(t->db);
	(void)snprintf(ret->comment, sizeof(ret->comment), "%.*s", STR_ARG(comment));
	(void)snprintf(ret->first, sizeof(ret->first), "%.*s", STR_ARG(s->columns[0].name));
	return table_schemas_stamp(t->tx, ret->stamp);
}

static enum status
alter_body(struct timed *t, void *arg)
{
	return table_alter(t, arg);
}

static void
a_column_that_is_dropped_and_added_is_another_one(void **state)
{
	struct fixture *f = *state;
	const struct str msg[] = { STR("msg") };
	const struct table_column again[] = {
		{ .name = STR("msg"), .type = STR("int"), .kind = TABLE_REGULAR },
	};
	struct table_alteration drop = { .drop = msg, .drop_count = 1 };
	struct table_alteration add = { .add = again, .add_count = 1 };
	struct seen_schema before, after;
	uint64_t done;
	bool more;

	assert_int_equal(run(f, "ks.msgs", schema_body, &before), STATUS_OK);
	assert_int_equal(before.msg_id, MSG);
	put(f, "ks.msgs", (struct put){ .user = "a", .id = 1, .changes = { PUT(MSG, text("x")) } });
	put(f, "ks.msgs",
	    (struct put){
		    .user = "a", .id = 2, .inserts = true, .changes = { PUT(MSG, text("y")) } });
	assert_int_equal(run(f, "ks.msgs", alter_body, &drop), STATUS_OK);
	/* What was only ever there by that column is no longer. */
	expect_scan(f, "ks.msgs", (struct scan){ 0 }, "(a/2*)");
	verified_none(f->store);
	assert_int_equal(run(f, "ks.msgs", alter_body, &add), STATUS_OK);
	expect_scan(f, "ks.msgs", (struct scan){ 0 }, "(a/2*)");
	assert_int_equal(run(f, "ks.msgs", schema_body, &after), STATUS_OK);
	assert_true(after.msg_id > TAGS);
	assert_int_equal(after.dropped, 1);
	assert_memory_not_equal(before.stamp, after.stamp, TABLE_STAMP_BYTES);
	assert_memory_equal(before.id, after.id, TABLE_ID_BYTES);
	put(f, "ks.msgs",
	    (struct put){ .user = "a", .id = 2, .changes = { PUT(after.msg_id, number(7)) } });
	expect_scan(f, "ks.msgs", (struct scan){ 0 }, "(a/2* msg=7)");
	assert_int_equal(timed_sweep(f->store, &f->clock, 10, &done, &more, &f->err), STATUS_OK);
	expect_drawn(f, "ks.msgs", SPACE_ROWS,
		     "(0x8000, 'a', 2), liveness_column_id, 1970-01-01T00:16:40.000001Z -> [NULL]\n"
		     "(0x8000, 'a', 2), msg_column_id, 1970-01-01T00:16:40.000004Z -> 7\n");
	verified_none(f->store);
}

static void
tables_are_altered(void **state)
{
	struct fixture *f = *state;
	const struct str key[] = { STR("user_id") };
	const struct table_rename rename[] = { { STR("user_id"), STR("who") } };
	const struct table_rename bad[] = { { STR("msg"), STR("other") } };
	const struct table_property set[] = { { STR("comment"), STR("other") },
					      { STR("gc_grace_seconds"), STR("10") } };
	const struct table_column counter[] = {
		{ .name = STR("k"), .kind = TABLE_REGULAR, .storage = TABLE_COUNTER }
	};
	struct seen_schema seen;
	struct table_alteration a = { .rename = rename,
				      .rename_count = 1,
				      .properties = set,
				      .property_count = 2,
				      .sets_ttl = true,
				      .ttl_ms = 3000 };

	assert_int_equal(run(f, "ks.msgs", alter_body, &a), STATUS_OK);
	assert_int_equal(run(f, "ks.msgs", schema_body, &seen), STATUS_OK);
	assert_string_equal(seen.comment, "other");
	assert_string_equal(seen.first, "who");
	assert_int_equal(seen.properties, 2);
	assert_int_equal(seen.ttl_ms, 3000);
	a = (struct table_alteration){ .rename = bad, .rename_count = 1 };
	assert_int_equal(run(f, "ks.msgs", alter_body, &a), STATUS_INVALID);
	a = (struct table_alteration){ .drop = key, .drop_count = 1 };
	assert_int_equal(run(f, "ks.msgs", alter_body, &a), STATUS_INVALID);
	a = (struct table_alteration){ .add = counter, .add_count = 1 };
	assert_int_equal(run(f, "ks.msgs", alter_body, &a), STATUS_INVALID);
}

/* STATUS_OK if it is what is expected; a fault is handed on. */
static enum status
expect(enum status status, enum status wanted)
{
	if (status == wanted)
		return STATUS_OK;
	return status == STATUS_OK ? STATUS_CORRUPT : status;
}

/* Whatever is called without a table. */
static enum status
ddl_body(struct timed *t, void *arg)
{
	static const struct table_field fields[] = { { TEXT("street"), TEXT("text") },
						     { TEXT("zip"), TEXT("int") } };
	const struct table_type address = { STR("ks"), STR("address"), fields, 2 };
	struct table_type read;
	struct table_types types;
	struct table_keyspace ks;
	struct table_keyspaces all;
	struct name_page page;
	struct fixture *f = arg;

	TRY(expect(table_type_put(t->tx, &address, true, t->err), STATUS_NOT_FOUND));
	TRY(table_type_put(t->tx, &address, false, t->err));
	TRY(expect(table_type_put(t->tx, &address, false, t->err), STATUS_EXISTS));
	TRY(table_type_read(t->tx, STR("ks"), STR("address"), f->arena, &read, t->err));
	assert_int_equal(read.field_count, 2);
	assert_true(str_eq(read.fields[1].type, STR("int")));
	TRY(table_type_list(t->tx, STR("ks"), f->arena, &types, t->err));
	assert_int_equal(types.count, 1);
	assert_true(str_eq(types.types[0].keyspace, STR("ks")));
	TRY(table_keyspace_read(t->tx, STR("ks"), f->arena, &ks, t->err));
	assert_int_equal(ks.property_count, 1);
	TRY(table_keyspace_list(t->tx, f->arena, &all, t->err));
	assert_int_equal(all.count, 1);
	TRY(table_list(t->tx, STR("ks"), STR(""), 3, f->arena, &page));
	assert_int_equal(page.count, 3);
	assert_true(page.more);
	TRY(table_list(t->tx, STR("ks"), page.names[2], 3, f->arena, &page));
	assert_int_equal(page.count, 1);
	assert_true(str_eq(page.names[0], STR("ks.short")));
	TRY(expect(table_keyspace_create(t->tx, &ks, t->err), STATUS_EXISTS));
	TRY(expect(table_keyspace_drop(t->tx, STR("k"), t->err), STATUS_NOT_FOUND));
	return STATUS_OK;
}

static enum status
drop_body(struct timed *t, void *arg)
{
	(void)arg;
	return table_keyspace_drop(t->tx, STR("ks"), t->err);
}

static enum status
nothing_is_left_body(struct timed *t, void *arg)
{
	const struct table_schema keys = { .columns = hits_columns, .column_count = 2 };
	struct fixture *f = arg;
	struct table_keyspaces all;
	struct table_types types;
	struct name_page page;

	TRY(table_keyspace_list(t->tx, f->arena, &all, t->err));
	assert_int_equal(all.count, 0);
	TRY(table_type_list(t->tx, STR(""), f->arena, &types, t->err));
	assert_int_equal(types.count, 0);
	TRY(table_list(t->tx, STR(""), STR(""), 10, f->arena, &page));
	assert_int_equal(page.count, 0);
	TRY(expect(table_create(t->tx, STR("ks.keys"), &keys, 0, t->err), STATUS_NOT_FOUND));
	return STATUS_OK;
}

static void
keyspaces_have_types_and_tables(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(run(f, NULL, ddl_body, f), STATUS_OK);
	verified_none(f->store);
	assert_int_equal(run(f, NULL, drop_body, NULL), STATUS_OK);
	assert_int_equal(run(f, NULL, nothing_is_left_body, f), STATUS_OK);
	verified_none(f->store);
}

static enum status
truncate_body(struct timed *t, void *name)
{
	return table_truncate(t->tx, str_from_cstr(name), t->clock, t->err);
}

static void
a_truncated_table_keeps_what_it_is(void **state)
{
	struct fixture *f = *state;
	struct seen_schema before, after;
	char name[] = "ks.short";

	put(f, "ks.short", (struct put){ .user = "a", .id = 1, .inserts = true });
	assert_int_equal(run(f, "ks.short", schema_body, &before), STATUS_OK);
	assert_int_equal(run(f, NULL, truncate_body, name), STATUS_OK);
	assert_int_equal(run(f, "ks.short", schema_body, &after), STATUS_OK);
	expect_scan(f, "ks.short", (struct scan){ 0 }, "");
	assert_memory_equal(before.id, after.id, TABLE_ID_BYTES);
	assert_int_equal(after.ttl_ms, 5000);
	assert_int_equal(after.columns, before.columns);
	verified_none(f->store);
}

/* One column that cannot be in a schema. */
static enum status
create_bad_body(struct timed *t, void *arg)
{
	const struct table_schema *schema = arg;

	return table_create(t->tx, STR("ks.bad"), schema, 0, t->err);
}

static void
bad_schemas_are_refused(void **state)
{
	struct fixture *f = *state;
	struct table_column columns[3] = {
		{ .name = STR("a"), .kind = TABLE_HASH },
		{ .name = STR("b"), .kind = TABLE_REGULAR },
		{ .name = STR("c"), .kind = TABLE_REGULAR, .storage = TABLE_COUNTER },
	};
	struct table_schema schema = { .columns = columns, .column_count = 3 };

	assert_int_equal(run(f, NULL, create_bad_body, &schema), STATUS_INVALID);
	columns[2] = (struct table_column){ .name = STR("b"), .kind = TABLE_REGULAR };
	assert_int_equal(run(f, NULL, create_bad_body, &schema), STATUS_INVALID);
	columns[2] = (struct table_column){ .name = STR("c"), .kind = TABLE_STATIC };
	assert_int_equal(run(f, NULL, create_bad_body, &schema), STATUS_INVALID);
	columns[2] = (struct table_column){ .name = STR("c"),
					    .kind = TABLE_REGULAR,
					    .descending = true };
	assert_int_equal(run(f, NULL, create_bad_body, &schema), STATUS_INVALID);
	columns[0].kind = TABLE_RANGE;
	schema.column_count = 2;
	assert_int_equal(run(f, NULL, create_bad_body, &schema), STATUS_INVALID);
	columns[0].kind = TABLE_HASH;
	assert_int_equal(run(f, NULL, create_bad_body, &schema), STATUS_OK);
	assert_int_equal(run(f, NULL, create_bad_body, &schema), STATUS_EXISTS);
}

/* ---- Tests: the past ---- */

static enum status
history_body(struct timed *t, void *arg)
{
	(void)arg;
	return timed_history_set(t, (struct timed_history_bounds){ .seconds = 1000 });
}

static enum status
past_body(struct timed *t, void *arg)
{
	timed_at(t, t->clock->now_ms(t->clock->arg) - 1000);
	return read_body(t, arg);
}

static void
a_truncated_table_begins_another_past(void **state)
{
	struct fixture *f = *state;
	struct place_of_row p = {
		.user = "a", .id = 1, .arena = f->arena, .drawn = BUF_INIT(10000)
	};
	char name[] = "ks.msgs";
	uint64_t done;
	bool more;

	assert_int_equal(run(f, "ks.msgs", history_body, NULL), STATUS_OK);
	assert_int_equal(timed_sweep(f->store, &f->clock, 10, &done, &more, &f->err), STATUS_OK);
	f->now_ms += 1000;
	put(f, "ks.msgs", (struct put){ .user = "a", .id = 1, .changes = { PUT(MSG, text("x")) } });
	f->now_ms += 2000;
	assert_int_equal(run(f, "ks.msgs", past_body, &p), STATUS_OK);
	assert_int_equal(run(f, NULL, truncate_body, name), STATUS_OK);
	assert_int_equal(run(f, "ks.msgs", past_body, &p), STATUS_INVALID);
	for (int i = 0; i < 2; i++, f->now_ms += 1000)
		assert_int_equal(timed_sweep(f->store, &f->clock, 10, &done, &more, &f->err),
				 STATUS_OK);
	assert_int_equal(run(f, "ks.msgs", past_body, &p), STATUS_NOT_FOUND);
	buf_release(&p.drawn);
	verified_none(f->store);
}

/* A listing of all that a table held. */
struct listed {
	const struct catalog_db *db;
	struct buf *out;
};

static enum status
list_line(void *arg, const struct timed_line *line)
{
	struct listed *l = arg;
	size_t skip = l->db->prefix.len + 2;

	if (line->kind == TIMED_LISTED_DELETION) {
		assert_true(timed_draw_deletion(l->db, line, l->out));
	} else {
		buf_append_cstr(l->out, line->kind == TIMED_LISTED_STRUCK ? "- " : "+ ");
		assert_true(l->db->kind->draw_pair(l->db, SPACE_ROWS,
						   str_skip(line->pair.key, skip), line->pair.value,
						   l->out));
	}
	buf_append_byte(l->out, '\n');
	return STATUS_OK;
}

static enum status
list_body(struct timed *t, void *arg)
{
	struct listed l = { t->db, arg };

	buf_clear(l.out);
	timed_at(t, START_MS + 3000);
	return timed_list(t, list_line, &l);
}

static void
the_past_tells_what_was_deleted_and_what_expired(void **state)
{
	AUTO(buf_release) struct buf drawn = BUF_INIT(10000);
	struct fixture *f = *state;
	uint64_t done;
	bool more;

	assert_int_equal(run(f, "ks.msgs", history_body, NULL), STATUS_OK);
	for (int i = 0; i < 2; i++, f->now_ms += 1000)
		assert_int_equal(timed_sweep(f->store, &f->clock, 10, &done, &more, &f->err),
				 STATUS_OK);
	put(f, "ks.msgs",
	    (struct put){
		    .user = "a",
		    .id = 1,
		    .inserts = true,
		    .expiry = { TIMED_EXPIRY_AFTER, 500 },
		    .changes = { PUT(MSG, text("x")), ELEMENT(MSG_PROPS, text("k"), text("v")) } });
	f->now_ms += 1000;
	put(f, "ks.msgs",
	    (struct put){ .user = "a",
			  .id = 1,
			  .changes = { { .kind = TABLE_CHANGE_CLEAR, .column = MSG_PROPS } } });
	f->now_ms += 1000;
	assert_int_equal(run(f, "ks.msgs", list_body, &drawn), STATUS_OK);
	buf_append_byte(&drawn, 0);
	/* The row's own cell has expired, and hides nothing. */
	assert_string_equal(drawn.ptr,
			    "- (0x8000, 'a', 1), liveness_column_id, 1970-01-01T00:16:42.000000Z "
			    "-> (TTL = 0.500) [NULL]\n"
			    "+ (0x8000, 'a', 1), msg_column_id, 1970-01-01T00:16:42.000000Z -> "
			    "'x'\n"
			    "(0x8000, 'a', 1), msg_props_column_id, 1970-01-01T00:16:43.000000Z -> "
			    "[DELETE]\n"
			    "- (0x8000, 'a', 1), msg_props_column_id, 'k', "
			    "1970-01-01T00:16:42.000000Z -> 'v'\n");
	verified_none(f->store);
}

/* ---- Tests: the check ---- */

/* Something that is wrong with the table "ks.short". */
enum damage {
	DAMAGE_COLUMN,   /* a cell of a column that never was */
	DAMAGE_ELEMENT,  /* an element in a column of single values */
	DAMAGE_ENTRIES,  /* entries of what expires are gone */
	DAMAGE_KEYSPACE, /* the keyspace is */
};

static enum status
damage_body(struct timed *t, void *arg)
{
	AUTO(buf_release) struct buf key = BUF_INIT(1000);
	AUTO(buf_release) struct buf end = BUF_INIT(1000);
	const struct kv_range_options first = { .limit = 1 };
	const enum damage *damage = arg;
	struct kv_future *f;

	if (*damage == DAMAGE_KEYSPACE) {
		tuple_put_u64(&key, KV_ROOT);
		tuple_put_u64(&key, KV_ROOT_KEYSPACES);
		tuple_put_str(&key, STR("ks"));
		return kv_clear(t->tx, buf_str(&key));
	}
	buf_append_str(&key, t->db->prefix);
	tuple_put_u64(&key, *damage == DAMAGE_ENTRIES ? SPACE_EXPIRY : SPACE_ROWS);
	if (*damage == DAMAGE_ENTRIES) {
		buf_append_str(&end, buf_str(&key));
		buf_append_byte(&end, 0xff);
		return kv_clear_range(t->tx, buf_str(&key), buf_str(&end));
	}
	buf_append_str(&end, buf_str(&key));
	buf_append_byte(&end, 0xff);
	f = kv_get_range(t->tx, buf_str(&key), buf_str(&end), &first);
	TRY(kv_future_wait(f));
	/* A row's own cell has the key that all others of it begin with. */
	buf_clear(&key);
	buf_append_str(&key, kv_future_range(f).pairs[0].key);
	tuple_put_u64(&key, *damage == DAMAGE_COLUMN ? 99 : MSG);
	if (*damage == DAMAGE_ELEMENT)
		tuple_put_bytes(&key, STR("\x30\x61\x00\x01"));
	/* (format, type, write time, never, null) */
	return kv_set(t->tx, buf_str(&key), STR("\x15\x01\x14\x15\x01\x14\x00"));
}

static void
verify_finds_what_is_wrong(void **state)
{
	static const struct {
		enum damage damage;
		const char *found;
	} kinds[] = {
		{ DAMAGE_COLUMN, "table_cell: there was never such a column" },
		{ DAMAGE_ELEMENT, "table_cell: the values of its column do not lie so" },
		{ DAMAGE_ENTRIES, "table_expiry: it expires, and no entry says so" },
		{ DAMAGE_KEYSPACE, "table_keyspace: the table is in a keyspace that is not there" },
	};
	struct fixture *f = *state;
	struct verified v;

	put(f, "ks.short", (struct put){ .user = "a", .id = 1, .inserts = true });
	verified_none(f->store);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		enum damage damage = kinds[i].damage;

		assert_int_equal(run(f, "ks.short", damage_body, &damage), STATUS_OK);
		verified_read(f->store, &v);
		assert_int_not_equal(v.count, 0);
		if (!strstr(v.all, kinds[i].found))
			print_error("%s is not in:\n%s\n", kinds[i].found, v.all);
		assert_non_null(strstr(v.all, kinds[i].found));
	}
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(rows_lie_as_the_text_has_them),
		TEST(a_row_that_was_updated_is_there_while_a_column_is),
		TEST(writing_scalars_reads_the_clock_and_clears_nothing),
		TEST(lists_keep_their_order),
		TEST(static_columns_are_beside_every_row_of_their_partition),
		TEST(tokens_order_partitions),
		TEST(only_wanted_columns_are_read),
		TEST(ranges_of_a_partition_are_cleared),
		TEST(counters_are_added_to_blindly),
		TEST(what_expires_is_hidden_and_swept),
		TEST(what_does_not_fit_is_refused),
		TEST(a_column_that_is_dropped_and_added_is_another_one),
		TEST(tables_are_altered),
		TEST(keyspaces_have_types_and_tables),
		TEST(a_truncated_table_keeps_what_it_is),
		TEST(a_truncated_table_begins_another_past),
		TEST(bad_schemas_are_refused),
		TEST(the_past_tells_what_was_deleted_and_what_expired),
		TEST(verify_finds_what_is_wrong),
	};

	return cmocka_run_group_tests_name("tables", tests, NULL, NULL);
}

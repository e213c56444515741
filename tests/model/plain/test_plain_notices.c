/* What becomes of collections, as it is read and cleared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "catalog/keys.h"
#include "fixture.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "model/plain/plain.h"
#include "verified.h"

enum {
	HOUR_MS = 60 * 60 * 1000,
	NOTICES = 5,
	DETAIL_BYTES = 255,
	MANY = 500,
	TEXT_BYTES = 3000000,
};

/* ---- Notices ---- */

/* A document whose first byte is 0xff, as behind a text a tuple's reader takes for more of it. */
static struct str
detail_make(char bytes[DETAIL_BYTES])
{
	static const char head[] = { (char)DETAIL_BYTES,       0, 0, 0, 2, 's', 0,
				     (char)(DETAIL_BYTES - 12) };

	memset(bytes, 'x', DETAIL_BYTES);
	memcpy(bytes, head, sizeof(head));
	memset(bytes + sizeof(head), 0, 3);
	memset(bytes + DETAIL_BYTES - 2, 0, 2);
	return str_of(bytes, DETAIL_BYTES);
}

static enum status
notices_write_body(struct kv_tx *tx, void *arg)
{
	struct catalog_db *db;
	unsigned events = 0;
	enum status status = STATUS_OK;
	char bytes[DETAIL_BYTES];

	(void)arg;
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, STR(PACKED), &db, NULL));
	for (int i = 0; i < NOTICES && status == STATUS_OK; i++)
		status = plain_notice_put(tx, db, PLAIN_NOTICE_RENAMED, STR(PACKED), STR(EXPLODED),
					  detail_make(bytes), &events, NULL);
	catalog_db_unref(db);
	return status;
}

static bool
any_notice(void *arg, const struct plain_notice *notice)
{
	(void)arg;
	return notice->kind == PLAIN_NOTICE_RENAMED;
}

struct noticing {
	struct fixture *f;
	struct catalog_seq from;
	struct plain_notice *notices;
	size_t count;
};

static enum status
notices_read_body(struct kv_tx *tx, void *arg)
{
	struct noticing *n = arg;

	return plain_notices_read(tx, &n->from, NOTICES, any_notice, NULL, n->f->arena, &n->notices,
				  &n->count, &n->f->err);
}

static void
notices_are_read_from_a_place_on_and_cleared(void **state)
{
	struct fixture *f = *state;
	struct noticing n = { .f = f };
	AUTO(buf_release) struct buf place = CATALOG_KEY_INIT;
	uint64_t now_ms = clock_wall_ms();
	bool more;

	assert_int_equal(kv_run(f->store, notices_write_body, f, NULL, &f->err), STATUS_OK);
	assert_int_equal(kv_run_read(f->store, notices_read_body, &n, &f->err), STATUS_OK);
	assert_int_equal(n.count, NOTICES);
	assert_true(str_eq(n.notices[0].name, STR(PACKED)));
	assert_true(str_eq(n.notices[0].to, STR(EXPLODED)));
	assert_int_equal(n.notices[0].detail.len, DETAIL_BYTES);
	n.from = n.notices[2].seq;
	assert_int_equal(kv_run_read(f->store, notices_read_body, &n, &f->err), STATUS_OK);
	assert_int_equal(n.count, NOTICES - 2);
	assert_int_equal(catalog_seq_cmp(&n.notices[0].seq, &n.from), 0);
	verified_none(f->store);

	/* They are kept for a day, and the last one for ever. */
	n.from = (struct catalog_seq){ 0 };
	assert_int_equal(plain_sweep(f->store, now_ms + 23 * HOUR_MS, &place, &more, &f->err),
			 STATUS_OK);
	assert_int_equal(kv_run_read(f->store, notices_read_body, &n, &f->err), STATUS_OK);
	assert_int_equal(n.count, NOTICES);
	assert_int_equal(plain_sweep(f->store, now_ms + 25 * HOUR_MS, &place, &more, &f->err),
			 STATUS_OK);
	assert_int_equal(kv_run_read(f->store, notices_read_body, &n, &f->err), STATUS_OK);
	assert_int_equal(n.count, 1);
	verified_none(f->store);
}

struct clearing {
	uint64_t before_ms;
	bool more;
};

static enum status
notices_clear_body(struct kv_tx *tx, void *arg)
{
	struct clearing *c = arg;

	return plain_notices_clear(tx, c->before_ms, &c->more, NULL);
}

/* The newest of those that are older stays, so of two of them one goes. */
static void
a_notice_of_the_very_millisecond_is_not_cleared(void **state)
{
	struct fixture *f = *state;
	struct noticing n = { .f = f };
	struct clearing c;

	assert_int_equal(kv_run(f->store, notices_write_body, f, NULL, &f->err), STATUS_OK);
	assert_int_equal(kv_run_read(f->store, notices_read_body, &n, &f->err), STATUS_OK);
	c.before_ms = n.notices[1].ms;
	assert_true(n.notices[0].ms <= c.before_ms);
	assert_int_equal(kv_run(f->store, notices_clear_body, &c, NULL, &f->err), STATUS_OK);
	assert_false(c.more);
	assert_int_equal(kv_run_read(f->store, notices_read_body, &n, &f->err), STATUS_OK);
	assert_int_equal(n.count, NOTICES);
	c.before_ms = n.notices[NOTICES - 1].ms + 1;
	assert_int_equal(kv_run(f->store, notices_clear_body, &c, NULL, &f->err), STATUS_OK);
	assert_int_equal(kv_run_read(f->store, notices_read_body, &n, &f->err), STATUS_OK);
	assert_int_equal(n.count, 1);
}

/* ---- The log of a dropped collection ---- */

struct dropping {
	struct fixture *f;
	struct catalog_db *db; /* as it was opened */
	size_t count;
	struct plain_event *events;
};

static enum status
drop_fill_body(struct kv_tx *tx, void *arg)
{
	/* {_id: n}, a 32-bit integer */
	char bytes[] = "\x0e\0\0\0\x10_id\0\0\0\0\0";
	struct dropping *d = arg;
	enum status status = STATUS_OK;
	struct plain p;

	catalog_db_unref(d->db);
	d->db = NULL;
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, STR(PACKED), &d->db, &d->f->err));
	plain_init(&p, tx, d->db, 0, &d->f->err);
	for (char n = 0; n < NOTICES && status == STATUS_OK; n++) {
		bytes[9] = n;
		status = plain_insert(&p,
				      &(struct plain_doc){ .bytes = str_of(bytes, sizeof(bytes)) },
				      d->f->arena);
	}
	return status;
}

static enum status
drop_body(struct kv_tx *tx, void *arg)
{
	struct dropping *d = arg;

	return catalog_delete(tx, CATALOG_SPACE_MONGO, STR(PACKED), &d->f->err);
}

static enum status
drop_look_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	static const struct catalog_seq start;
	struct dropping *d = arg;
	struct kv_range range;
	struct kv_future *f;
	struct plain p;
	size_t count;

	plain_init(&p, tx, d->db, 0, &d->f->err);
	TRY(plain_log_read(&p, &start, 1000, d->f->arena, &d->events, &count));
	TRY(tuple_prefix_end(d->db->prefix, &end));
	f = kv_get_range(tx, d->db->prefix, buf_str(&end), NULL);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	d->count = range.count;
	/* Nothing else is left, as soon as a sweep has been here. */
	return count == range.count || count == NOTICES ? STATUS_OK : STATUS_CORRUPT;
}

static size_t
drop_sweep(struct dropping *d, uint64_t now_ms)
{
	struct fixture *f = d->f;
	bool more = true;

	while (more)
		assert_int_equal(catalog_drop_sweep(&(struct catalog_sweeping){ .store = f->store },
						    now_ms, 10, &more, &f->err),
				 STATUS_OK);
	assert_int_equal(kv_run_read(f->store, drop_look_body, d, &f->err), STATUS_OK);
	verified_none(f->store);
	return d->count;
}

/* Until when something is kept of the first dropped collection. */
static enum status
kept_until_body(struct kv_tx *tx, void *arg)
{
	const struct kv_range_options options = { .limit = 1 };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct tuple_reader tail;
	struct kv_range range;
	struct kv_future *f;

	tuple_put_u64(&begin, KV_ROOT);
	tuple_put_u64(&begin, KV_ROOT_KEPT);
	TRY(tuple_prefix_end(buf_str(&begin), &end));
	f = kv_get_range(tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	assert_int_equal(range.count, 1);
	tail = tuple_reader(str_skip(range.pairs[0].key, begin.len));
	return tuple_next_u64(&tail, arg);
}

static void
events_of_a_dropped_collection_are_kept_as_long_as_others(void **state)
{
	struct fixture *f = *state;
	struct dropping d = { .f = f };
	uint64_t now_ms = clock_wall_ms(), until_ms;

	assert_int_equal(kv_run(f->store, drop_fill_body, &d, NULL, &f->err), STATUS_OK);
	assert_int_equal(kv_run_read(f->store, drop_look_body, &d, &f->err), STATUS_OK);
	assert_true(d.count > NOTICES);
	assert_int_equal(kv_run(f->store, drop_body, &d, NULL, &f->err), STATUS_OK);
	assert_int_equal(drop_sweep(&d, now_ms), NOTICES);
	assert_int_equal(bson_count(d.events[0].detail), 1);
	assert_int_equal(drop_sweep(&d, now_ms + 24 * HOUR_MS), NOTICES);
	assert_int_equal(kv_run_read(f->store, kept_until_body, &until_ms, &f->err), STATUS_OK);
	assert_in_range(until_ms, now_ms + 24 * HOUR_MS, now_ms + 26 * HOUR_MS);
	assert_int_equal(drop_sweep(&d, until_ms - 1), NOTICES);
	assert_int_equal(drop_sweep(&d, until_ms), 0);
	catalog_db_unref(d.db);
}

/* ---- Many collections ---- */

static const char *
many_name(unsigned n)
{
	static char name[32];

	(void)snprintf(name, sizeof(name), "many.%04u", n);
	return name;
}

static enum status
many_create_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < MANY; i++)
		TRY(plain_create(tx, str_from_cstr(many_name(i)), PLAIN_PACKED, BSON_EMPTY, NULL));
	return STATUS_OK;
}

/* How many keys the last one has, at most two. */
struct many {
	struct catalog_db *db;
	size_t keys;
	struct err *err;
};

static enum status
many_last_body(struct kv_tx *tx, void *arg)
{
	const struct kv_range_options options = { .limit = 2 };
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct many *m = arg;
	struct kv_future *f;

	if (!m->db)
		TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(many_name(MANY - 1)),
				 &m->db, m->err));
	TRY(tuple_prefix_end(m->db->prefix, &end));
	f = kv_get_range(tx, m->db->prefix, buf_str(&end), &options);
	TRY(kv_future_wait(f));
	m->keys = kv_future_range(f).count;
	return STATUS_OK;
}

static void
many_collections_are_swept_in_several_turns(void **state)
{
	AUTO(buf_release) struct buf place = CATALOG_KEY_INIT;
	struct fixture *f = *state;
	struct many m = { .err = &f->err };
	char *text = calloc(1, TEXT_BYTES);
	struct buf doc = BUF_INIT(2 * TEXT_BYTES);
	struct bson_builder b;
	struct plain_doc staged;
	unsigned turns = 0;
	bool more = true;

	memset(text, 'x', TEXT_BYTES);
	bson_builder_init(&b, &doc);
	bson_begin(&b);
	bson_put(&b, STR("_id"), &BSON_OF_INT32(1));
	bson_put(&b, STR("text"), &BSON_OF_STRING(str_of(text, TEXT_BYTES)));
	bson_end(&b);
	assert_int_equal(kv_run(f->store, many_create_body, NULL, NULL, &f->err), STATUS_OK);
	assert_int_equal(kv_run_read(f->store, many_last_body, &m, &f->err), STATUS_OK);
	assert_int_equal(m.keys, 0);
	assert_int_equal(plain_stage(f->store, m.db, buf_str(&doc), &staged, &f->err), STATUS_OK);
	assert_int_equal(kv_run_read(f->store, many_last_body, &m, &f->err), STATUS_OK);
	assert_int_equal(m.keys, 2);

	for (; more; turns++)
		assert_int_equal(plain_sweep(f->store, clock_wall_ms() + 2 * HOUR_MS, &place, &more,
					     &f->err),
				 STATUS_OK);
	assert_int_equal(turns, MANY / 100 + 1);
	assert_int_equal(place.len, 0);
	assert_int_equal(kv_run_read(f->store, many_last_body, &m, &f->err), STATUS_OK);
	assert_int_equal(m.keys, 0);
	catalog_db_unref(m.db);
	buf_release(&doc);
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			events_of_a_dropped_collection_are_kept_as_long_as_others, fixture_setup,
			fixture_teardown),
		cmocka_unit_test_setup_teardown(notices_are_read_from_a_place_on_and_cleared,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(a_notice_of_the_very_millisecond_is_not_cleared,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(many_collections_are_swept_in_several_turns,
						fixture_setup, fixture_teardown),
	};

	return cmocka_run_group_tests_name("plain_notices", tests, NULL, NULL);
}

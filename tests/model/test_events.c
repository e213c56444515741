/* What happens to databases, and the changes of some documents. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

#include "catalog/events.h"
#include "base/clock.h"

static const struct catalog_seq beginning;

static struct kv_tx *
begin(struct fixture *f)
{
	struct kv_tx *tx;

	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	return tx;
}

struct events {
	struct catalog_event *list;
	size_t count;
};

static struct events
events_since(struct fixture *f, const struct catalog_seq *since)
{
	struct kv_tx *tx = begin(f);
	struct catalog_view catalog;
	struct events e;

	assert_int_equal(catalog_view_read(tx, CATALOG_SPACE_COUCH, f->arena, &catalog, NULL),
			 STATUS_OK);
	assert_int_equal(catalog_events_read(tx, &catalog, since, f->arena, &e.list, &e.count),
			 STATUS_OK);
	kv_tx_free(tx);
	for (size_t i = 1; i < e.count; i++)
		assert_true(catalog_seq_cmp(&e.list[i - 1].seq, &e.list[i].seq) < 0);
	return e;
}

/* "a+ b- c~": created, deleted, updated; the fixture's own database left out. */
static const char *
drawn(struct fixture *f, struct events e)
{
	static const char marks[] = { 0, '+', '-', '~' };
	struct buf text = BUF_INIT(1 << 16);
	const char *ret;

	for (size_t i = 0; i < e.count; i++) {
		if (str_eq(e.list[i].name, f->db->name))
			continue;
		buf_printf(&text, "%s%.*s%c", text.len ? " " : "", STR_ARG(e.list[i].name),
			   marks[e.list[i].kind]);
	}
	ret = arena_dup(f->arena, buf_str(&text)).ptr;
	assert_non_null(ret);
	buf_release(&text);
	return ret;
}

struct call {
	struct str name;
	bool remove;
};

static enum status
create_or_delete(struct kv_tx *tx, void *arg)
{
	const struct call *call = arg;

	return call->remove ? catalog_delete(tx, CATALOG_SPACE_COUCH, call->name, NULL)
			    : rev_db_create(tx, call->name, fixture_scheme(), NULL);
}

static void
create(struct fixture *f, const char *name)
{
	struct call call = { str_from_cstr(name), false };

	assert_int_equal(kv_run(f->store, create_or_delete, &call, NULL, NULL), STATUS_OK);
}

static void
remove_db(struct fixture *f, const char *name)
{
	struct call call = { str_from_cstr(name), true };

	assert_int_equal(kv_run(f->store, create_or_delete, &call, NULL, NULL), STATUS_OK);
}

/* Puts a document into another database than the fixture's. */
static void
put_into(struct fixture *f, const char *name, const char *id)
{
	struct catalog_db *own = f->db;
	struct kv_tx *tx = begin(f);

	assert_int_equal(rev_db_open(tx, NULL, str_from_cstr(name), &f->db, NULL), STATUS_OK);
	kv_tx_free(tx);
	fixture_put(f, id, NULL, "{}");
	catalog_db_unref(f->db);
	f->db = own;
}

static void
databases_are_created_updated_and_deleted(void **state)
{
	struct fixture *f = *state;
	struct events e;

	assert_string_equal(drawn(f, events_since(f, &beginning)), "");
	create(f, "a");
	create(f, "b");
	assert_string_equal(drawn(f, events_since(f, &beginning)), "a+ b+");
	put_into(f, "a", "x");
	assert_string_equal(drawn(f, events_since(f, &beginning)), "a+ b+ a~");
	put_into(f, "b", "x");
	put_into(f, "a", "y");
	e = events_since(f, &beginning);
	/* One update a database: the newest. */
	assert_string_equal(drawn(f, e), "a+ b+ b~ a~");
	assert_string_equal(drawn(f, events_since(f, &e.list[e.count - 2].seq)), "a~");
	assert_string_equal(drawn(f, events_since(f, &e.list[e.count - 1].seq)), "");
	remove_db(f, "a");
	assert_string_equal(drawn(f, events_since(f, &beginning)), "b+ b~ a-");
	create(f, "a");
	assert_string_equal(drawn(f, events_since(f, &beginning)), "b+ b~ a+");
	fixture_check(f);
}

static void
an_update_has_the_sequence_of_the_newest_change(void **state)
{
	struct fixture *f = *state;
	struct kv_tx *tx;
	struct rev_db_info info;
	struct events e;

	fixture_put(f, "x", NULL, "{}");
	fixture_put(f, "y", NULL, "{}");
	tx = begin(f);
	assert_int_equal(rev_db_info(tx, f->db, &info), STATUS_OK);
	kv_tx_free(tx);
	e = events_since(f, &beginning);
	assert_int_equal(e.list[e.count - 1].kind, CATALOG_EVENT_UPDATED);
	assert_int_equal(catalog_seq_cmp(&e.list[e.count - 1].seq, &info.update_seq), 0);
}

/* Whatever a reader has seen where the store was before, what happens now comes after it. */
static void
a_store_that_went_on_elsewhere_raises_its_events(void **state)
{
	struct fixture *f = *state;
	struct catalog_seq seen;

	memset(&seen, 0xff, sizeof(seen));
	seen.bytes[0] = 0;
	create(f, "old");
	put_into(f, "old", "x");
	assert_int_equal(catalog_incarnations_raise(f->store, NULL, NULL), STATUS_OK);
	assert_string_equal(drawn(f, events_since(f, &seen)), "");
	create(f, "new");
	put_into(f, "new", "x");
	put_into(f, "old", "y");
	remove_db(f, "new");
	assert_string_equal(drawn(f, events_since(f, &seen)), "old~ new-");
	/* Raised, and then raised again: still the store comes first. */
	seen.bytes[0] = 1;
	assert_int_equal(catalog_incarnations_raise(f->store, NULL, NULL), STATUS_OK);
	create(f, "newer");
	put_into(f, "newer", "x");
	put_into(f, "old", "z");
	assert_string_equal(drawn(f, events_since(f, &seen)), "newer+ newer~ old~");
	fixture_check(f);
}

/* True if the watch fires within a moment. */
static bool
fires(struct kv_future *watch)
{
	struct event *e = kv_future_event(watch);

	return !e || event_wait(e, clock_after_ms(200));
}

static void
watches_tell_of_each_kind(void **state)
{
	struct fixture *f = *state;
	struct catalog_view catalog;
	struct kv_future *any, *one;
	struct kv_tx *tx = begin(f);

	assert_int_equal(catalog_view_read(tx, CATALOG_SPACE_COUCH, f->arena, &catalog, NULL),
			 STATUS_OK);
	assert_int_equal(catalog.dbs_count, 1);
	assert_int_equal(catalog_watch(tx, &any), STATUS_OK);
	assert_int_equal(catalog_watch_db(tx, &catalog.dbs[0], &one), STATUS_OK);
	assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_OK);
	kv_tx_free(tx);
	fixture_put(f, "x", NULL, "{}");
	assert_true(fires(one));
	assert_false(fires(any));
	create(f, "a");
	assert_true(fires(any));
	kv_future_free(any);
	kv_future_free(one);
}

static void
a_full_arena_is_told(void **state)
{
	struct fixture *f = *state;
	struct arena *small = arena_new(2000);
	struct catalog_view catalog;
	struct kv_tx *tx;
	char name[32];

	assert_non_null(small);
	for (int i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), "database_%d", i);
		create(f, name);
	}
	tx = begin(f);
	assert_int_equal(catalog_view_read(tx, CATALOG_SPACE_COUCH, small, &catalog, NULL),
			 STATUS_LIMIT);
	kv_tx_free(tx);
	arena_free(small);
}

/* ---- Changes of some documents ---- */

static const char *
changes_of(struct fixture *f, const struct rev_change_range *range, const struct str *ids,
	   size_t count, struct rev_change_page *page)
{
	struct buf text = BUF_INIT(1 << 12);
	struct kv_tx *tx = begin(f);
	const char *ret;

	assert_int_equal(rev_changes_of(tx, f->db, range, ids, count, f->arena, page), STATUS_OK);
	assert_int_equal(kv_tx_stats(tx).round_trips, 1);
	assert_true(kv_tx_stats(tx).keys_read <= count);
	kv_tx_free(tx);
	for (size_t i = 0; i < page->count; i++)
		buf_printf(&text, "%s%.*s %s%s", i ? ", " : "", STR_ARG(page->changes[i].id),
			   fixture_text(f, page->changes[i].rev),
			   page->changes[i].deleted ? "#" : "");
	ret = arena_dup(f->arena, buf_str(&text)).ptr;
	assert_non_null(ret);
	buf_release(&text);
	return ret;
}

static void
changes_of_some_documents_cost_a_key_each(void **state)
{
	struct fixture *f = *state;
	const struct str ids[] = { STR("a"), STR("a"), STR("b"), STR("c"), STR("none"), STR("t") };
	struct rev_change_range range = { 0 };
	struct rev_change_page page;

	memset(&range.until, 0xff, sizeof(range.until));
	fixture_replicate(f, "c", "1-c", false, "{}");
	fixture_replicate(f, "other", "1-o", false, "{}");
	fixture_replicate(f, "t", "2-t s", true, "{}");
	fixture_replicate(f, "a", "1-a", false, "{}");
	fixture_replicate(f, "b", "1-b", false, "{}");
	fixture_replicate(f, "a", "1-z", false, "{}");
	assert_string_equal(changes_of(f, &range, ids, 6, &page), "c 1-c, t 2-t#, b 1-b, a 1-z");
	assert_int_equal(page.changes[3].branch_count, 2);
	range.descending = true;
	assert_string_equal(changes_of(f, &range, ids, 6, &page), "a 1-z, b 1-b, t 2-t#, c 1-c");
	range.until = page.changes[1].seq;
	assert_string_equal(changes_of(f, &range, ids, 6, &page), "b 1-b, t 2-t#, c 1-c");
	range.exclusive_until = true;
	range.since = page.changes[2].seq;
	assert_string_equal(changes_of(f, &range, ids, 6, &page), "t 2-t#");
	range.descending = false;
	assert_string_equal(changes_of(f, &range, ids, 1, &page), "");
}

#define EVENT_TEST(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		EVENT_TEST(databases_are_created_updated_and_deleted),
		EVENT_TEST(an_update_has_the_sequence_of_the_newest_change),
		EVENT_TEST(a_store_that_went_on_elsewhere_raises_its_events),
		EVENT_TEST(watches_tell_of_each_kind),
		EVENT_TEST(a_full_arena_is_told),
		EVENT_TEST(changes_of_some_documents_cost_a_key_each),
	};

	return cmocka_run_group_tests_name("events of databases", tests, NULL, NULL);
}

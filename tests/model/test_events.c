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

typedef void between_pages(struct fixture *f);

/* All pages of a search, each in a transaction of its own; `between` (or NULL) runs after each. */
static struct events
search(struct fixture *f, const struct catalog_events_wanted *wanted, between_pages *between,
       bool *ret_left_out)
{
	struct catalog_events s;
	struct events e;

	catalog_events_init(&s, wanted, f->arena, NULL);
	while (!s.done) {
		struct kv_tx *tx = begin(f);

		assert_int_equal(catalog_events_page(tx, &s, NULL), STATUS_OK);
		kv_tx_free(tx);
		if (between)
			between(f);
	}
	catalog_events_sort(&s);
	e.count = s.count;
	e.list = arena_alloc(f->arena, (s.count + 1) * sizeof(*e.list));
	assert_non_null(e.list);
	for (size_t i = 0; i < s.count; i++) {
		e.list[i] = catalog_events_at(&s, i);
		e.list[i].name = arena_dup(f->arena, e.list[i].name);
	}
	if (ret_left_out)
		*ret_left_out = s.left_out;
	catalog_events_release(&s);
	return e;
}

static struct events
events_since(struct fixture *f, const struct catalog_seq *since)
{
	struct catalog_events_wanted wanted = {
		.space = CATALOG_SPACE_COUCH,
		.after = *since,
		.most = CATALOG_EVENTS_MOST,
	};
	struct events e;

	memset(&wanted.before, 0xff, sizeof(wanted.before));
	e = search(f, &wanted, NULL, NULL);
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
	const struct catalog_events_wanted wanted = { .space = CATALOG_SPACE_COUCH, .most = 1 };
	struct catalog_watched watched[CATALOG_EVENTS_WATCHED];
	struct catalog_events s;
	struct kv_future *any, *one;
	struct kv_tx *tx = begin(f);

	catalog_events_init(&s, &wanted, f->arena, NULL);
	s.watched = watched;
	assert_int_equal(catalog_events_page(tx, &s, NULL), STATUS_OK);
	assert_int_equal(s.dbs_count, 1);
	catalog_events_release(&s);
	assert_int_equal(catalog_watch(tx, &any), STATUS_OK);
	assert_int_equal(catalog_watch_db(tx, &watched[0], &one), STATUS_OK);
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

enum {
	MANY = 2 * CATALOG_EVENTS_PAGE + 50,
};

static void
make_many(struct fixture *f)
{
	char name[32];

	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "many%05u", i);
		create(f, name);
	}
	put_into(f, "many00003", "x");
	put_into(f, "many02049", "x");
	put_into(f, "many01500", "x");
}

/* The last databases that were told of. */
static void
expect_last(struct events e, size_t count, const char *const *names)
{
	assert_true(e.count >= count);
	for (size_t i = 0; i < count; i++)
		assert_true(str_eq(e.list[e.count - count + i].name, str_from_cstr(names[i])));
}

static void
a_search_has_pages_and_finds_everything_once(void **state)
{
	static const char *const last[] = { "many00003", "many02049", "many01500" };
	static const char *const newest[] = { "many01500", "many02049" };
	struct catalog_events_wanted wanted = { .space = CATALOG_SPACE_COUCH, .most = 2 };
	struct fixture *f = *state;
	struct events e;
	bool left_out;
	size_t seen = 0;

	make_many(f);
	e = events_since(f, &beginning);
	assert_int_equal(e.count, 1 + MANY + 3); /* the fixture's own */
	expect_last(e, 3, last);
	/* The newest first, and a few at a time. */
	memset(&wanted.before, 0xff, sizeof(wanted.before));
	wanted.newest_first = true;
	e = search(f, &wanted, NULL, &left_out);
	assert_true(left_out);
	assert_int_equal(e.count, 2);
	expect_last(e, 2, newest);
	wanted.newest_first = false;
	wanted.most = 700;
	do {
		e = search(f, &wanted, NULL, &left_out);
		seen += e.count;
		wanted.after = e.list[e.count - 1].seq;
	} while (left_out);
	assert_int_equal(seen, 1 + MANY + 3);
}

static void
databases_are_watched_as_far_as_there_is_room(void **state)
{
	const struct catalog_events_wanted wanted = { .space = CATALOG_SPACE_COUCH, .most = 1 };
	struct catalog_watched watched[CATALOG_EVENTS_WATCHED + 1];
	struct catalog_watched *beyond = &watched[CATALOG_EVENTS_WATCHED];
	struct fixture *f = *state;
	struct catalog_events s;

	make_many(f);
	memset(watched, 0, sizeof(watched));
	catalog_events_init(&s, &wanted, f->arena, NULL);
	s.watched = watched;
	while (!s.done) {
		struct kv_tx *tx = begin(f);

		assert_int_equal(catalog_events_page(tx, &s, NULL), STATUS_OK);
		kv_tx_free(tx);
	}
	assert_int_equal(s.dbs_count, 1 + MANY);
	catalog_events_release(&s);
	assert_non_null(beyond[-1].kind);
	assert_true(!beyond->kind && !beyond->number);
}

static void
write_to_first_and_last(struct fixture *f)
{
	static unsigned writes;
	char id[16];

	(void)snprintf(id, sizeof(id), "w%u", writes++);
	put_into(f, "many00001", id);
	put_into(f, "many02048", id);
}

/* Otherwise a reader that goes on behind the last event would miss the first database's. */
static void
what_happens_during_a_search_is_left_to_the_next(void **state)
{
	struct catalog_events_wanted wanted = { .space = CATALOG_SPACE_COUCH,
						.most = CATALOG_EVENTS_MOST };
	struct fixture *f = *state;
	struct events e;

	make_many(f);
	memset(&wanted.before, 0xff, sizeof(wanted.before));
	e = events_since(f, &beginning);
	wanted.after = e.list[e.count - 1].seq;
	e = search(f, &wanted, write_to_first_and_last, NULL);
	assert_int_equal(e.count, 0);
	e = search(f, &wanted, NULL, NULL);
	assert_string_equal(drawn(f, e), "many00001~ many02048~");
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
		EVENT_TEST(a_search_has_pages_and_finds_everything_once),
		EVENT_TEST(databases_are_watched_as_far_as_there_is_room),
		EVENT_TEST(what_happens_during_a_search_is_left_to_the_next),
		EVENT_TEST(changes_of_some_documents_cost_a_key_each),
	};

	return cmocka_run_group_tests_name("events of databases", tests, NULL, NULL);
}

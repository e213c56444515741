/* Watches. */
#include "fixture.h"

#include "base/clock.h"

enum {
	SOON_MS = 20,   /* long enough for a wrong completion to show */
	LONG_MS = 5000, /* … for the right one to come */
};

static struct kv_future *
watch_now(struct kv_store *store, const char *key)
{
	struct kv_tx *tx = begin_read(store);
	struct kv_future *f = kv_watch(tx, str_from_cstr(key));

	commit(tx);
	return f;
}

static void
assert_waiting(struct kv_future *f)
{
	struct event *e = kv_future_event(f);

	assert_non_null(e);
	assert_false(event_wait(e, clock_after_ms(SOON_MS)));
	assert_false(kv_future_ready(f));
}

static void
write_completes_a_watch(void **state)
{
	struct kv_future *f = watch_now(store_of(state), "t/a");

	assert_waiting(f);
	put_now(store_of(state), "t/b", "1");
	assert_waiting(f);
	assert_int_equal(kv_store_stats(store_of(state)).watches, 1);
	put_now(store_of(state), "t/a", "1");
	assert_ok(kv_future_wait(f));
	assert_ok(kv_future_wait(f));
	assert_null(kv_future_event(f));
	assert_int_equal(kv_store_stats(store_of(state)).watches, 0);
	kv_future_free(f);
}

static void
clears_complete_watches(void **state)
{
	struct kv_future *by_clear;
	struct kv_future *by_range;
	struct kv_tx *tx;

	put_now(store_of(state), "t/a", "1");
	put_now(store_of(state), "t/b", "1");
	by_clear = watch_now(store_of(state), "t/a");
	by_range = watch_now(store_of(state), "t/b");
	tx = begin(store_of(state));
	assert_ok(kv_clear(tx, STR("t/a")));
	commit(tx);
	assert_ok(kv_future_wait(by_clear));
	assert_waiting(by_range);
	tx = begin(store_of(state));
	assert_ok(kv_clear_range(tx, STR("t/aa"), STR("t/z")));
	commit(tx);
	assert_ok(kv_future_wait(by_range));
	kv_future_free(by_clear);
	kv_future_free(by_range);
}

static void
stamped_key_completes_a_range_of_watchers(void **state)
{
	struct kv_future *f[10];

	for (int i = 0; i < 10; i++)
		f[i] = watch_now(store_of(state), "t/seq");
	{
		struct kv_tx *tx = begin(store_of(state));

		assert_ok(kv_set_versionstamped_value(tx, STR("t/seq"), STR(".........."), 0));
		commit(tx);
	}
	for (int i = 0; i < 10; i++) {
		assert_ok(kv_future_wait(f[i]));
		kv_future_free(f[i]);
	}
}

/* On a cluster a watch is a read, which conflicts with the change. */
static void
change_before_the_commit_completes_the_watch(void **state)
{
	struct kv_tx *reader = begin_read(store_of(state));
	struct kv_tx *writer = begin(store_of(state));
	struct kv_future *read;
	struct kv_future *write;
	struct kv_future *other;

	assert_get(reader, "t/a", NULL);
	read = kv_watch(reader, STR("t/a"));
	other = kv_watch(reader, STR("t/b"));
	write = kv_watch(writer, STR("t/a"));
	put(writer, "t/x", "1");
	put_now(store_of(state), "t/a", "1");
	commit(reader);
	commit(writer);
	assert_ok(kv_future_wait(read));
	assert_ok(kv_future_wait(write));
	/* The rest of the store has moved on, and this key has not. */
	assert_waiting(other);
	kv_future_free(read);
	kv_future_free(write);
	kv_future_free(other);
}

/*
 * Of thousands of watches on a cluster, those that are not there yet when their transaction's
 * version has grown too old are lost. A machine that is busy takes that long.
 */
static bool
watch_is_lost(struct kv_future *f)
{
	enum status status = kv_future_wait(f);

	return test_store_is_cluster() &&
	       (status == STATUS_CANCELLED || status == STATUS_UNAVAILABLE);
}

/* A cluster's engine has one watch for those who have seen the same, and no other. */
static void
readers_watch_what_each_has_seen(void **state)
{
	struct kv_tx *early = begin_read(store_of(state));
	struct kv_future *late, *later, *missed;

	assert_get(early, "t/a", NULL);
	put_now(store_of(state), "t/a", "1");
	late = watch_now(store_of(state), "t/a");
	assert_waiting(late);
	later = watch_now(store_of(state), "t/a");
	missed = kv_watch(early, STR("t/a"));
	commit(early);
	/* The stand-in for a cluster keeps no version but the newest. */
	if (!watch_is_lost(missed))
		assert_ok(kv_future_wait(missed));
	assert_waiting(late);
	assert_int_equal(kv_store_stats(store_of(state)).watches, 2);
	/* The one that others may have joined goes, and they stay. */
	kv_future_free(late);
	assert_waiting(later);
	put_now(store_of(state), "t/a", "2");
	assert_ok(kv_future_wait(later));
	assert_int_equal(kv_store_stats(store_of(state)).watches, 0);
	kv_future_free(later);
	kv_future_free(missed);
}

static void
one_who_does_not_commit_leaves_those_who_watch_the_same(void **state)
{
	struct kv_tx *first = begin_read(store_of(state));
	struct kv_tx *second = begin_read(store_of(state));
	struct kv_future *lost, *stays;

	assert_get(first, "t/a", NULL);
	assert_get(second, "t/a", NULL);
	lost = kv_watch(first, STR("t/a"));
	stays = kv_watch(second, STR("t/a"));
	commit(second);
	kv_tx_reset(first);
	assert_int_equal(kv_future_wait(lost), STATUS_CANCELLED);
	assert_waiting(stays);
	put_now(store_of(state), "t/a", "1");
	assert_ok(kv_future_wait(stays));
	kv_future_free(lost);
	kv_future_free(stays);
	kv_tx_free(first);
}

/* On a cluster it completes: what is watched there is the value before the write. */
static void
own_write_does_not_complete_the_watch(void **state)
{
	struct kv_tx *tx = begin(store_of(state));
	struct kv_future *f = kv_watch(tx, STR("t/a"));

	put(tx, "t/a", "1");
	commit(tx);
	assert_waiting(f);
	put_now(store_of(state), "t/a", "2");
	assert_ok(kv_future_wait(f));
	kv_future_free(f);
}

static void
watch_of_an_abandoned_transaction_is_cancelled(void **state)
{
	struct kv_tx *tx = begin(store_of(state));
	struct kv_future *freed = kv_watch(tx, STR("t/a"));
	struct kv_future *reset = kv_watch(tx, STR("t/b"));

	kv_future_free(freed);
	kv_tx_reset(tx);
	assert_int_equal(kv_future_wait(reset), STATUS_CANCELLED);
	kv_future_free(reset);
	reset = kv_watch(tx, STR("t/b"));
	kv_tx_free(tx);
	assert_int_equal(kv_future_wait(reset), STATUS_CANCELLED);
	kv_future_free(reset);
	assert_int_equal(kv_store_stats(store_of(state)).watches, 0);
}

/* Also one that has seen its key already, and waits for nothing but a commit. */
static void
watch_of_a_cancelled_transaction_is_cancelled(void **state)
{
	struct kv_tx *tx = begin(store_of(state));
	struct kv_future *f = kv_watch(tx, STR("t/a"));
	struct event *e;

	assert_get(tx, "t/a", NULL);
	assert_waiting(f);
	kv_cancel(tx);
	e = kv_future_event(f);
	assert_true(!e || event_wait(e, clock_after_ms(LONG_MS)));
	assert_int_equal(kv_future_wait(f), STATUS_CANCELLED);
	kv_future_free(f);
	kv_tx_free(tx);
	assert_int_equal(kv_store_stats(store_of(state)).watches, 0);
}

static void
freeing_a_watch_lets_go_of_it(void **state)
{
	struct kv_future *first = watch_now(store_of(state), "t/a");
	struct kv_future *middle = watch_now(store_of(state), "t/a");
	struct kv_future *last = watch_now(store_of(state), "t/a");

	kv_future_free(middle);
	assert_int_equal(kv_store_stats(store_of(state)).watches, 2);
	put_now(store_of(state), "t/a", "1");
	assert_ok(kv_future_wait(first));
	assert_ok(kv_future_wait(last));
	kv_future_free(first);
	kv_future_free(last);
}

static void
closing_the_store_cancels_watches(void **state)
{
	struct fixture *f = *state;
	struct kv_future *watch = watch_now(f->store, "t/a");

	kv_close(f->store);
	assert_int_equal(kv_future_wait(watch), STATUS_CANCELLED);
	kv_future_free(watch);
	f->store = fixture_open(f->url, (struct kv_options){ .no_sync = true });
}

static void
watches_are_limited(void **state)
{
	static struct kv_future *f[KV_LIMIT_WATCHES];
	struct kv_tx *tx = begin_read(store_of(state));
	struct kv_future *over;

	for (int i = 0; i < KV_LIMIT_WATCHES; i++)
		f[i] = kv_watch(tx, STR("t/a"));
	over = kv_watch(tx, STR("t/a"));
	assert_int_equal(kv_future_wait(over), STATUS_BUSY);
	kv_future_free(over);
	kv_future_free(f[0]);
	f[0] = kv_watch(tx, STR("t/b"));
	assert_false(kv_future_ready(f[0]));
	commit(tx);
	put_now(store_of(state), "t/a", "1");
	for (int i = 1; i < KV_LIMIT_WATCHES; i++)
		if (!watch_is_lost(f[i]))
			assert_ok(kv_future_wait(f[i]));
	assert_true(!kv_future_ready(f[0]) || watch_is_lost(f[0]));
	for (int i = 0; i < KV_LIMIT_WATCHES; i++)
		kv_future_free(f[i]);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(write_completes_a_watch),
		T(clears_complete_watches),
		T(stamped_key_completes_a_range_of_watchers),
		T(readers_watch_what_each_has_seen),
		T(one_who_does_not_commit_leaves_those_who_watch_the_same),
		T(watch_of_an_abandoned_transaction_is_cancelled),
		T(watch_of_a_cancelled_transaction_is_cancelled),
		T(freeing_a_watch_lets_go_of_it),
		T(closing_the_store_cancels_watches),
		T(watches_are_limited),
		/* Not on a cluster. */
		T(change_before_the_commit_completes_the_watch),
		T(own_write_does_not_complete_the_watch),
	};

	return _cmocka_run_group_tests("tests", tests,
				       test_store_cases(tests, sizeof(tests) / sizeof(tests[0]), 2),
				       NULL, NULL);
}

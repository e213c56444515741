/* Records of processes whose clients keep what they read: what writers know, and their end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "door/redis/txn/messages.h"
#include "door/redis/txn/trackers.h"
#include "store.h"

enum {
	PATH_BYTES = 256,
	ARENA_BYTES = 16 * 1024 * 1024,
	ID = 7,
	OTHER = 8,
};

static struct kv_store *store;
static char directory[PATH_BYTES];
static struct trackers_known known;

static int
setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	char url[2 * PATH_BYTES];
	struct err err = { 0 };

	(void)state;
	test_make_dir("redis_trackers", directory, sizeof(directory));
	test_store_url(directory, url, sizeof(url));
	assert_int_equal(kv_open(url, &options, &store, &err), STATUS_OK);
	trackers_known_init(&known);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	trackers_known_fini(&known);
	kv_close(store);
	test_remove_tree(directory);
	return 0;
}

static struct kv_tx *
begin(void)
{
	struct kv_tx *tx;

	assert_int_equal(kv_begin(store, KV_TX_READ_WRITE, &tx), STATUS_OK);
	return tx;
}

static enum status
commit(struct kv_tx *tx)
{
	struct kv_future *f = kv_commit(tx);
	enum status status = kv_future_wait(f);

	kv_future_free(f);
	kv_tx_free(tx);
	return status;
}

static enum status
put_body(struct kv_tx *tx, void *id)
{
	return trackers_put(tx, *(const uint64_t *)id);
}

static enum status
remove_body(struct kv_tx *tx, void *id)
{
	return trackers_remove(tx, *(const uint64_t *)id);
}

static enum status
beat_body(struct kv_tx *tx, void *id)
{
	return trackers_beat(tx, *(const uint64_t *)id);
}

static enum status
list_body(struct kv_tx *tx, void *listed)
{
	return trackers_list(tx, listed);
}

static enum status
dead_body(struct kv_tx *tx, void *dead)
{
	return trackers_remove_dead(tx, dead);
}

static enum status
run(kv_body *body, uint64_t id)
{
	return kv_run(store, body, &id, NULL, NULL);
}

/* What a new transaction is told. */
static bool
any(void)
{
	struct kv_tx *tx = begin();
	bool found;

	assert_int_equal(trackers_any(tx, &known, &found), STATUS_OK);
	kv_tx_free(tx);
	return found;
}

static void
who_puts_a_record_is_known_to_all_who_commit_after_it(void **state)
{
	struct kv_tx *writer, *later;
	bool found;

	(void)state;
	assert_false(any());
	assert_false(trackers_were_any(&known));
	/* It goes by what it knows, so it reads no record, and yet it cannot commit. */
	writer = begin();
	assert_int_equal(trackers_any(writer, &known, &found), STATUS_OK);
	assert_false(found);
	assert_int_equal(kv_set(writer, STR("\x05key"), STR("value")), STATUS_OK);
	assert_int_equal(run(put_body, ID), STATUS_OK);
	assert_int_equal(commit(writer), STATUS_TX_CONFLICT);
	assert_true(any());
	assert_true(trackers_were_any(&known));
	/* One that counts up disturbs nobody. */
	later = begin();
	assert_int_equal(trackers_any(later, &known, &found), STATUS_OK);
	assert_true(found);
	assert_int_equal(kv_set(later, STR("\x05key"), STR("value")), STATUS_OK);
	assert_int_equal(run(beat_body, ID), STATUS_OK);
	assert_int_equal(commit(later), STATUS_OK);
	assert_int_equal(run(put_body, OTHER), STATUS_OK);
	assert_int_equal(run(remove_body, ID), STATUS_OK);
	assert_true(any());
	assert_int_equal(run(remove_body, OTHER), STATUS_OK);
	assert_false(any());
	assert_int_equal(run(beat_body, ID), STATUS_NOT_FOUND);
}

static void
list(struct trackers_seen *seen, uint64_t now_ns)
{
	struct trackers_seen listed;

	assert_int_equal(kv_run_read(store, list_body, &listed, NULL), STATUS_OK);
	trackers_look(seen, &listed, now_ns);
}

static void
a_record_that_stands_still_is_removed_and_one_that_counts_stays(void **state)
{
	const uint64_t lease_ns = TRACKERS_LEASE_MS * CLOCK_NS_PER_MS, start_ns = 5 * lease_ns;
	struct trackers_seen seen = { .count = 0 };
	struct trackers_record dead, late;

	(void)state;
	assert_int_equal(run(put_body, ID), STATUS_OK);
	assert_int_equal(run(put_body, OTHER), STATUS_OK);
	list(&seen, start_ns);
	assert_int_equal(seen.count, 2);
	assert_int_equal(run(beat_body, OTHER), STATUS_OK);
	list(&seen, start_ns + lease_ns - 1);
	assert_false(trackers_next_dead(&seen, start_ns + lease_ns - 1, &dead));
	assert_true(trackers_next_dead(&seen, start_ns + lease_ns, &dead));
	assert_int_equal(dead.id, ID);
	assert_false(trackers_next_dead(&seen, start_ns + lease_ns, &late));
	/* It has counted meanwhile. */
	assert_int_equal(run(beat_body, ID), STATUS_OK);
	assert_int_equal(kv_run(store, dead_body, &dead, NULL, NULL), STATUS_OK);
	assert_int_equal(run(beat_body, ID), STATUS_OK);
	dead.count += 2;
	assert_int_equal(kv_run(store, dead_body, &dead, NULL, NULL), STATUS_OK);
	assert_int_equal(run(beat_body, ID), STATUS_NOT_FOUND);
	assert_int_equal(kv_run(store, dead_body, &dead, NULL, NULL), STATUS_OK);
	assert_true(any());
	assert_int_equal(run(remove_body, OTHER), STATUS_OK);
	list(&seen, start_ns + 2 * lease_ns);
	assert_int_equal(seen.count, 0);
	assert_false(any());
}

struct told {
	const struct messages_keys *keys;
	struct arena *arena;
	struct messages_page page;
	struct str *found[2]; /* the keys of its messages */
	size_t counts[2];
};

static enum status
tell_body(struct kv_tx *tx, void *arg)
{
	struct messages_writer writer = { 0 };
	const struct told *t = arg;

	return messages_put_keys(tx, &writer, ID, t->keys);
}

static enum status
read_body(struct kv_tx *tx, void *arg)
{
	const struct messages_place start = { 0 };
	struct told *t = arg;
	struct err err = { 0 };

	TRY(messages_read(tx, &start, t->arena, &t->page, &err));
	for (size_t i = 0; i < t->page.count && i < 2; i++)
		TRY(messages_read_keys(&t->page.messages[i], t->arena, &t->found[i],
				       &t->counts[i]));
	return STATUS_OK;
}

static void
keys_are_read_as_they_were_told_and_too_many_are_all(void **state)
{
	const struct str keys[] = { STR("a"), STR(""), STR("with\0nul"), STR("z") };
	struct messages_keys told[3];
	struct told t = { .arena = arena_new(ARENA_BYTES) };

	(void)state;
	assert_non_null(t.arena);
	for (size_t i = 0; i < 3; i++)
		messages_keys_init(&told[i]);
	for (size_t i = 0; i < 4; i++)
		messages_keys_add(&told[0], keys[i]);
	for (size_t i = 0; i < MESSAGES_BYTES / 4; i++)
		messages_keys_add(&told[1], STR("key"));
	for (size_t i = 0; i < 3; i++) { /* the last one has none, and writes nothing */
		t.keys = &told[i];
		assert_int_equal(kv_run(store, tell_body, &t, NULL, NULL), STATUS_OK);
		messages_keys_release(&told[i]);
	}
	assert_int_equal(kv_run_read(store, read_body, &t, NULL), STATUS_OK);
	assert_int_equal(t.page.count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(t.page.messages[i].kind, MESSAGES_KEYS);
		assert_int_equal(t.page.messages[i].origin, ID);
	}
	assert_int_equal(t.counts[0], 4);
	for (size_t i = 0; i < 4; i++)
		assert_true(str_eq(t.found[0][i], keys[i]));
	assert_int_equal(t.counts[1], 0);
	arena_free(t.arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_puts_a_record_is_known_to_all_who_commit_after_it),
		cmocka_unit_test(a_record_that_stands_still_is_removed_and_one_that_counts_stays),
		cmocka_unit_test(keys_are_read_as_they_were_told_and_too_many_are_all),
	};

	test_show_failures();
	return cmocka_run_group_tests(tests, setup, teardown);
}

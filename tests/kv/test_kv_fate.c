/*
 * Commits that a cluster leaves without an answer: who is told what and when, that they are made
 * once, and what they hold until they have an answer. Over the library that stands in for
 * FoundationDB's (stand_in.c), which is silent as long as a file says so.
 */
#include "fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "kv/fate.h"
#include "kv/txid.h"
#include "loop/lanes.h"

enum {
	WAIT_MS = 100,
	LOOK_MS = 10,
	PATIENCE_MS = 30000,
	HOLD_LOOKED_MS = 100, /* until the library has seen that its file has changed */
};

static struct kv_store *store;
static char url[512];
static char hold_path[512];
static unsigned bodies; /* how often one was run */

static void
sleep_ms(uint64_t ms)
{
	struct event never;

	event_init(&never);
	event_wait(&never, clock_after_ms(ms));
}

static void
hold(const char *what)
{
	FILE *file = fopen(hold_path, "w");

	assert_non_null(file);
	assert_true(fputs(what, file) >= 0);
	assert_int_equal(fclose(file), 0);
	sleep_ms(HOLD_LOOKED_MS);
}

static void
hold_nothing(void)
{
	(void)unlink(hold_path);
	sleep_ms(HOLD_LOOKED_MS);
}

static int
setup(void **state)
{
	const char *cluster = getenv("FROND_TEST_FDB");
	struct err err = { 0 };

	(void)state;
	assert_non_null(cluster);
	(void)snprintf(hold_path, sizeof(hold_path), "%s.hold", cluster);
	(void)snprintf(url, sizeof(url), "fdb:%s", cluster);
	(void)unlink(hold_path);
	kv_set_commit_wait(WAIT_MS);
	assert_ok(kv_open(url, NULL, &store, &err));
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	hold_nothing();
	kv_set_commit_wait(PATIENCE_MS);
	kv_close(store);
	return 0;
}

static enum status
add_body(struct kv_tx *tx, void *arg)
{
	static const uint8_t one[8] = { 1 };

	bodies++;
	return kv_atomic(tx, KV_ADD, str_from_cstr(arg), str_of(one, sizeof(one)));
}

static uint64_t
number_of(const char *key)
{
	struct kv_tx *tx = begin_read(store);
	struct kv_future *f = kv_get(tx, str_from_cstr(key), KV_READ);
	struct str value;
	uint64_t n = 0;

	assert_ok(kv_future_wait(f));
	if (kv_future_value(f, &value))
		memcpy(&n, value.ptr, sizeof(n));
	kv_tx_free(tx);
	return n;
}

static size_t
count_ids(void)
{
	struct kv_tx *tx = begin_read(store);
	struct txid_range range;
	struct kv_future *ids;
	size_t n;

	assert_ok(txid_range_init(&range));
	ids = kv_get_range(tx, range.begin, range.end, NULL);
	assert_ok(kv_future_wait(ids));
	n = kv_future_range(ids).count;
	kv_tx_free(tx);
	return n;
}

static void
until_settled(void)
{
	uint64_t until_ns = clock_after_ms(PATIENCE_MS);

	while (kv_fates(store)) {
		assert_true(clock_mono_ns() < until_ns);
		sleep_ms(LOOK_MS);
		assert_ok(kv_txids_clear(store, NULL));
	}
}

/* Runs it, and asserts that its client is told in time that the outcome is not known. */
static void
run_left(char *key)
{
	uint64_t begun_ns = clock_mono_ns();
	struct err err = { 0 };

	assert_int_equal(kv_run(store, add_body, key, NULL, &err), STATUS_TX_UNKNOWN);
	assert_true(strstr(err.text, "has not answered in time") != NULL);
	assert_in_range(clock_mono_ns() - begun_ns, 0, 5000 * CLOCK_NS_PER_MS);
}

static void
a_commit_without_an_answer_is_left_and_takes_place_once(void **state)
{
	char key[] = "t/a";

	(void)state;
	bodies = 0;
	hold("commits");
	run_left(key);
	assert_int_equal(kv_fates(store), 1);
	assert_int_equal(bodies, 1);
	/* Reads go on, and nothing that the commit has left is cleared under it. */
	sleep_ms(TXIDS_SPAN_MS + 50);
	assert_ok(kv_txids_clear(store, NULL));
	assert_int_equal(kv_fates(store), 1);
	assert_int_equal(count_ids(), 1);
	hold_nothing();
	until_settled();
	assert_int_equal(number_of(key), 1);
	assert_int_equal(bodies, 1);
	assert_ok(kv_txids_clear(store, NULL));
	assert_int_equal(count_ids(), 0);
}

static void
a_commit_that_was_lost_is_not_made_again(void **state)
{
	char key[] = "t/b";

	(void)state;
	bodies = 0;
	hold("lost");
	run_left(key);
	hold_nothing();
	until_settled();
	assert_int_equal(number_of(key), 0);
	assert_int_equal(bodies, 1);
	/* The same client asks once more. */
	assert_ok(kv_run(store, add_body, key, NULL, NULL));
	assert_int_equal(number_of(key), 1);
}

static void
the_second_half_of_a_run_is_left_too(void **state)
{
	char key[] = "t/c";
	struct kv_running *running;
	struct err err = { 0 };

	(void)state;
	hold("commits");
	assert_ok(kv_run_begin(store, add_body, key, &running, &err));
	assert_int_equal(kv_run_end(running, &err), STATUS_TX_UNKNOWN);
	assert_int_equal(kv_fates(store), 1);
	hold_nothing();
	until_settled();
	assert_int_equal(number_of(key), 1);
}

static void
a_transaction_of_several_calls_is_left_too(void **state)
{
	char key[] = "t/d";
	struct kv_tx *tx = begin(store);
	bool left;

	(void)state;
	hold("commits");
	assert_ok(add_body(tx, key));
	assert_int_equal(kv_commit_in_time(tx, &left), STATUS_TX_UNKNOWN);
	assert_true(left);
	hold_nothing();
	until_settled();
	assert_int_equal(number_of(key), 1);
	tx = begin(store);
	assert_ok(add_body(tx, key));
	assert_ok(kv_commit_in_time(tx, &left));
	assert_false(left);
	kv_tx_free(tx);
	assert_int_equal(number_of(key), 2);
}

static void
no_commit_begins_while_too_many_are_left(void **state)
{
	char key[] = "t/e";
	struct err err = { 0 };

	(void)state;
	hold("commits");
	kv_set_commit_wait(1);
	for (int i = 0; i < KV_LIMIT_FATES; i++)
		assert_int_equal(kv_run(store, add_body, key, NULL, NULL), STATUS_TX_UNKNOWN);
	assert_int_equal(kv_fates(store), KV_LIMIT_FATES);
	assert_int_equal(kv_run(store, add_body, key, NULL, &err), STATUS_UNAVAILABLE);
	assert_true(strstr(err.text, "KV_LIMIT_FATES") != NULL);
	assert_int_equal(kv_fates(store), KV_LIMIT_FATES);
	hold_nothing();
	kv_set_commit_wait(PATIENCE_MS);
	until_settled();
	assert_int_equal(number_of(key), KV_LIMIT_FATES);
	assert_ok(kv_run(store, add_body, key, NULL, &err));
}

static enum status
set_body(struct kv_tx *tx, void *arg)
{
	return kv_set(tx, STR("t/g"), str_from_cstr(arg));
}

/* Runs a write that reads nothing, in the lane of its key. False: it was refused. */
static bool
set_in_lane(struct lanes *q, char *value, enum status *ret, bool *ret_left)
{
	struct lanes_job job = { .lanes = lanes_of(7), .patience_ms = WAIT_MS };
	struct kv_lanes lanes = { .of = q, .which = job.lanes };

	if (!lanes_enter(q, &job))
		return false;
	*ret = kv_run_in_lanes(store, set_body, value, &lanes, NULL);
	*ret_left = lanes.ret_left;
	lanes_leave(q, &job, job.lanes);
	return true;
}

/*
 * The commit that was left is made when the file is gone. A later write of the same key would be
 * committed before it, and be overwritten: none of them reads the key.
 */
static void
what_comes_later_in_a_lane_is_not_overwritten(void **state)
{
	char first[] = "first", second[] = "second", elsewhere[] = "t/h";
	enum status status;
	struct lanes lanes;
	struct kv_tx *tx;
	bool left;

	(void)state;
	lanes_init(&lanes, 10);
	hold("key t/g");
	assert_true(set_in_lane(&lanes, first, &status, &left));
	assert_int_equal(status, STATUS_TX_UNKNOWN);
	assert_true(left);
	assert_false(set_in_lane(&lanes, second, &status, &left));
	/* Other keys are written meanwhile. */
	assert_ok(kv_run(store, add_body, elsewhere, NULL, NULL));
	hold_nothing();
	until_settled();
	assert_true(set_in_lane(&lanes, second, &status, &left));
	assert_ok(status);
	assert_false(left);
	tx = begin_read(store);
	assert_get(tx, "t/g", "second");
	kv_tx_free(tx);
	lanes_fini(&lanes);
}

/* Whoever has the lanes may end before the cluster has answered. */
static void
lanes_may_end_before_a_commit_does(void **state)
{
	char value[] = "any";
	struct lanes *lanes = malloc(sizeof(*lanes));
	enum status status;
	bool left;

	(void)state;
	assert_non_null(lanes);
	lanes_init(lanes, 10);
	hold("commits");
	assert_true(set_in_lane(lanes, value, &status, &left));
	assert_true(left);
	kv_lanes_forget(store, lanes);
	lanes_fini(lanes);
	free(lanes);
	hold_nothing();
	until_settled();
}

static void *
let_go(void *arg)
{
	(void)arg;
	sleep_ms(WAIT_MS);
	hold_nothing();
	return NULL;
}

static void
closing_a_store_waits_for_what_was_left(void **state)
{
	char key[] = "t/f";
	struct err err = { 0 };
	pthread_t thread;

	(void)state;
	hold("commits");
	run_left(key);
	kv_set_commit_wait(PATIENCE_MS);
	assert_int_equal(pthread_create(&thread, NULL, let_go, NULL), 0);
	kv_close(store);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_ok(kv_open(url, NULL, &store, &err));
	assert_int_equal(number_of(key), 1);
	assert_int_equal(count_ids(), 0);
}

/* ---- Commits that wait for others' ---- */

static struct kv_future *
commit_of_a_request(const char *key, struct kv_tx **ret)
{
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];

	*ret = begin(store);
	assert_ok(kv_get_metadata_version(*ret, metadata));
	put(*ret, key, "1");
	return kv_commit(*ret);
}

/* So many that the next one waits to be committed with others (kv/fdb/joint.h). */
static void
commits_without_an_answer_hold_up_no_other(void **state)
{
	const char *const keys[] = { "t/held/1", "t/held/2", "t/held/3", "t/held/4" };
	enum {
		HELD = sizeof(keys) / sizeof(keys[0]),
	};
	struct kv_future *held[HELD], *free;
	struct kv_tx *tx[HELD], *last;

	(void)state;
	hold("key t/held");
	for (size_t i = 0; i < HELD; i++)
		held[i] = commit_of_a_request(keys[i], &tx[i]);
	free = commit_of_a_request("t/free", &last);
	assert_true(event_wait(kv_future_event(free), clock_after_ms(PATIENCE_MS)));
	assert_ok(kv_future_wait(free));
	kv_tx_free(last);
	for (size_t i = 0; i < HELD; i++)
		assert_false(kv_future_ready(held[i]));
	hold_nothing();
	for (size_t i = 0; i < HELD; i++) {
		assert_ok(kv_future_wait(held[i]));
		kv_tx_free(tx[i]);
		assert_stored(store, keys[i], "1");
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_commit_without_an_answer_is_left_and_takes_place_once, setup, teardown),
		cmocka_unit_test_setup_teardown(a_commit_that_was_lost_is_not_made_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_second_half_of_a_run_is_left_too, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_transaction_of_several_calls_is_left_too, setup,
						teardown),
		cmocka_unit_test_setup_teardown(no_commit_begins_while_too_many_are_left, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_comes_later_in_a_lane_is_not_overwritten,
						setup, teardown),
		cmocka_unit_test_setup_teardown(lanes_may_end_before_a_commit_does, setup,
						teardown),
		cmocka_unit_test_setup_teardown(closing_a_store_waits_for_what_was_left, setup,
						teardown),
		cmocka_unit_test_setup_teardown(commits_without_an_answer_hold_up_no_other, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

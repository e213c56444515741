/*
 * The retry loop. Commits that end without anybody knowing how come from an engine that is the
 * embedded one with another commit: an unknown result every so often, applied or not.
 */
#include "fixture.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kv/engine.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "loop/step.h"

/* ---- An engine with unknown results ---- */

static struct kv_engine flaky;
static int unknown_commits; /* so many more end unknown */
static bool unknown_applies;

static struct kv_future *
flaky_commit(struct kv_tx *tx)
{
	struct kv_future *f;

	if (unknown_commits == 0 || (!tx->stats.sets && !tx->stats.clears))
		return kv_engine_embedded.commit(tx);
	unknown_commits--;
	if (unknown_applies) {
		f = kv_engine_embedded.commit(tx);
		assert_ok(kv_future_wait(f));
	}
	return kv_future_failed(STATUS_TX_UNKNOWN);
}

static void
make_flaky(struct kv_store *store, int commits, bool applies)
{
	flaky = kv_engine_embedded;
	flaky.commit = flaky_commit;
	flaky.unknown_results = true;
	store->engine = &flaky;
	unknown_commits = commits;
	unknown_applies = applies;
}

static size_t
count_txids(struct kv_store *store)
{
	struct buf begin_key = BUF_INIT(64);
	struct buf end_key = BUF_INIT(64);
	struct kv_tx *tx = begin_read(store);
	struct kv_future *f;
	size_t n;

	tuple_put_u64(&begin_key, KV_ROOT);
	tuple_put_u64(&begin_key, KV_ROOT_TXIDS);
	assert_ok(tuple_prefix_end(buf_str(&begin_key), &end_key));
	f = kv_get_range(tx, buf_str(&begin_key), buf_str(&end_key), NULL);
	assert_ok(kv_future_wait(f));
	n = kv_future_range(f).count;
	kv_tx_free(tx);
	buf_release(&begin_key);
	buf_release(&end_key);
	return n;
}

/* ---- Bodies ---- */

struct body {
	int runs;
	int conflicts; /* so many runs are interfered with */
	enum status status;
	struct err *err;
};

static enum status
increment(struct kv_tx *tx, void *arg)
{
	struct body *body = arg;
	struct kv_future *f = kv_get(tx, STR("t/n"), KV_READ);
	char digit = '0';
	struct str value;

	body->runs++;
	TRY(kv_future_wait(f));
	if (kv_future_value(f, &value))
		digit = value.ptr[0];
	digit++;
	TRY(kv_set(tx, STR("t/n"), str_of(&digit, 1)));
	if (body->conflicts) {
		struct kv_store *store = kv_tx_store(tx);
		const struct kv_engine *engine = store->engine;

		body->conflicts--;
		store->engine = &kv_engine_embedded;
		put_now(store, "t/n", "5");
		store->engine = engine;
	}
	if (body->status != STATUS_OK)
		return err_set(body->err, body->status, "the body says no");
	return STATUS_OK;
}

static enum status
read_only_body(struct kv_tx *tx, void *arg)
{
	assert_int_equal(kv_set(tx, STR("t/n"), STR("")), STATUS_FORBIDDEN);
	*(bool *)arg = true;
	return kv_future_wait(kv_get(tx, STR("t/n"), KV_READ));
}

static enum status
read_and_commit(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return kv_future_wait(kv_get(tx, STR("t/n"), KV_READ));
}

static enum status
clear_nothing(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return kv_clear_range(tx, STR("t/b"), STR("t/a"));
}

/* ---- Tests ---- */

static void
body_is_committed_once_when_nothing_interferes(void **state)
{
	uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES] = { 0 };
	static const uint8_t zero[KV_VERSIONSTAMP_TX_BYTES];
	struct body body = { 0 };
	bool ran = false;

	assert_ok(kv_run(store_of(state), increment, &body, stamp, NULL));
	assert_int_equal(body.runs, 1);
	assert_memory_not_equal(stamp, zero, sizeof(stamp));
	assert_stored(store_of(state), "t/n", "1");
	assert_ok(kv_run(store_of(state), read_and_commit, NULL, stamp, NULL));
	assert_memory_equal(stamp, zero, sizeof(stamp));
	assert_ok(kv_run(store_of(state), clear_nothing, NULL, stamp, NULL));
	assert_memory_equal(stamp, zero, sizeof(stamp));
	assert_ok(kv_run_read(store_of(state), read_only_body, &ran, NULL));
	assert_true(ran);
	assert_int_equal(count_txids(store_of(state)), 0);
}

static void
conflicting_body_runs_again(void **state)
{
	struct body body = { .conflicts = 3 };

	assert_ok(kv_run(store_of(state), increment, &body, NULL, NULL));
	assert_int_equal(body.runs, 4);
	assert_stored(store_of(state), "t/n", "6");
}

struct versions {
	uint64_t read[2]; /* of each run */
	int runs;
};

static enum status
note_version(struct kv_tx *tx, void *arg)
{
	struct versions *v = arg;
	struct body body = { 0 };

	assert_in_range(v->runs, 0, 1);
	TRY(kv_get_read_version(tx, &v->read[v->runs++]));
	return increment(tx, &body);
}

static void
run_goes_on_in_a_transaction_that_has_begun(void **state)
{
	struct kv_store *store = store_of(state);
	struct kv_tx *tx = begin(store);
	struct versions v = { .runs = 0 };
	uint64_t version;

	assert_ok(kv_get_read_version(tx, &version));
	assert_get(tx, "t/n", NULL);
	assert_ok(kv_run_in(store, tx, note_version, &v, NULL));
	assert_int_equal(v.runs, 1);
	assert_true(v.read[0] == version);
	assert_stored(store, "t/n", "1");
	/* What has changed since it began makes it run again, as new as any other. */
	tx = begin(store);
	assert_ok(kv_get_read_version(tx, &version));
	put_now(store, "t/n", "5");
	v.runs = 0;
	assert_ok(kv_run_in(store, tx, note_version, &v, NULL));
	assert_int_equal(v.runs, 2);
	assert_true(v.read[0] == version && v.read[1] > version);
	assert_stored(store, "t/n", "6");
	v.runs = 0;
	assert_ok(kv_run_in(store, NULL, note_version, &v, NULL));
	assert_stored(store, "t/n", "7");
}

static enum status
append_letter(struct kv_tx *tx, void *arg)
{
	static const uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES];
	char key[2 + KV_VERSIONSTAMP_TX_BYTES] = "t/";

	memcpy(key + 2, stamp, sizeof(stamp));
	return kv_set_versionstamped_key(tx, str_of(key, sizeof(key)), 2,
					 str_from_cstr((const char *)arg));
}

static void
runs_that_overlap_commit_in_the_order_they_began(void **state)
{
	static char letters[][2] = { "a", "b", "c", "d", "e", "f" };
	enum {
		RUNS = sizeof(letters) / sizeof(letters[0])
	};
	struct kv_running *runs[RUNS];
	struct kv_tx *tx;
	struct kv_future *f;
	struct kv_range range;

	for (int i = 0; i < RUNS; i++)
		assert_ok(kv_run_begin(store_of(state), append_letter, letters[i], &runs[i], NULL));
	/* It does not matter in which order they are waited for. */
	for (int i = RUNS; i-- > 0;)
		assert_ok(kv_run_end(runs[i], NULL));
	tx = begin_read(store_of(state));
	f = kv_get_range(tx, STR("t/"), STR("t0"), NULL);
	assert_ok(kv_future_wait(f));
	range = kv_future_range(f);
	assert_int_equal(range.count, RUNS);
	for (int i = 0; i < RUNS; i++)
		assert_true(str_eq(range.pairs[i].value, str_from_cstr(letters[i])));
	kv_tx_free(tx);
}

static void
second_half_tries_again_what_has_conflicted(void **state)
{
	struct body body = { .conflicts = 1 };
	struct kv_running *runs[2];
	char letter[] = "a";

	assert_ok(kv_run_begin(store_of(state), increment, &body, &runs[0], NULL));
	assert_ok(kv_run_begin(store_of(state), append_letter, letter, &runs[1], NULL));
	assert_int_equal(body.runs, 1);
	assert_ok(kv_run_end(runs[0], NULL));
	assert_int_equal(body.runs, 2);
	assert_ok(kv_run_end(runs[1], NULL));
	assert_stored(store_of(state), "t/n", "6");
}

static void
second_half_tells_how_the_first_one_failed(void **state)
{
	struct err err = { 0 };
	struct body body = { .status = STATUS_DOC_CONFLICT, .err = &err };
	struct kv_running *run;

	assert_ok(kv_run_begin(store_of(state), increment, &body, &run, &err));
	assert_int_equal(kv_run_end(run, &err), STATUS_DOC_CONFLICT);
	assert_int_equal(body.runs, 1);
	assert_string_equal(err.text, "the body says no");
	make_flaky(store_of(state), 1, true);
	body = (struct body){ 0 };
	assert_ok(kv_run_begin(store_of(state), increment, &body, &run, &err));
	assert_ok(kv_run_end(run, &err));
	assert_int_equal(body.runs, 1);
	assert_stored(store_of(state), "t/n", "1");
}

static void
endless_conflicts_are_given_up(void **state)
{
	struct body body = { .conflicts = 2 * KV_RETRY_LIMIT };
	struct err err = { 0 };

	assert_int_equal(kv_run(store_of(state), increment, &body, NULL, &err), STATUS_TX_CONFLICT);
	assert_int_equal(body.runs, KV_RETRY_LIMIT);
	assert_non_null(strstr(err.text, "100"));
}

static int keys_asked;

static enum status
asked_key(struct kv_tx *tx, struct buf *key)
{
	(void)tx;
	keys_asked++;
	buf_append_str(key, STR("t/n"));
	return STATUS_OK;
}

/* A cluster takes time to say at which key, and who has conflicted once waits for nobody. */
static void
only_a_second_conflict_is_looked_into(void **state)
{
	for (int conflicts = 1; conflicts <= 2; conflicts++) {
		struct body body = { .conflicts = conflicts };

		make_flaky(store_of(state), 0, false);
		flaky.conflicting_key = asked_key;
		keys_asked = 0;
		assert_ok(kv_run(store_of(state), increment, &body, NULL, NULL));
		assert_int_equal(body.runs, conflicts + 1);
		assert_int_equal(keys_asked, conflicts - 1);
	}
}

struct asked {
	enum status answer;
	int times;
};

static enum status
nobody_waits(void *arg)
{
	struct asked *asked = arg;

	asked->times++;
	return asked->answer;
}

/*
 * As of a fiber whose client has gone, or whose command's time is over. An attempt of unknown
 * outcome is settled all the same.
 */
static void
what_nobody_waits_for_is_not_tried_again(void **state)
{
	static const enum status answers[] = { STATUS_CANCELLED, STATUS_TIMEOUT };
	struct kv_store *store = store_of(state);
	struct asked asked = { 0 };
	struct step_meter meter;
	struct err err = { 0 };
	struct body body;

	step_init(&meter);
	step_enter(&meter);
	(void)step_set_owner((struct step_owner){ .ask = nobody_waits, .arg = &asked });
	for (size_t i = 0; i < 2; i++) {
		body = (struct body){ .conflicts = 2 * KV_RETRY_LIMIT };
		asked = (struct asked){ .answer = answers[i] };
		assert_int_equal(kv_run(store, increment, &body, NULL, &err), answers[i]);
		assert_int_equal(body.runs, 1);
		assert_true(asked.times > 0);
		assert_non_null(strstr(err.text, "nobody waits"));
	}
	make_flaky(store, 1, false);
	body = (struct body){ 0 };
	assert_ok(kv_run(store, increment, &body, NULL, &err));
	assert_int_equal(body.runs, 2);
	step_leave();
}

static void
body_that_gives_up_leaves_no_trace(void **state)
{
	struct err err = { 0 };
	struct body body = { .status = STATUS_DOC_CONFLICT, .err = &err };

	assert_int_equal(kv_run(store_of(state), increment, &body, NULL, &err),
			 STATUS_DOC_CONFLICT);
	assert_int_equal(body.runs, 1);
	/* Its own explanation stays. */
	assert_string_equal(err.text, "the body says no");
	assert_stored(store_of(state), "t/n", NULL);
}

static void
failure_without_explanation_gets_one(void **state)
{
	struct err err = { 0 };
	struct body body = { .status = STATUS_NOT_FOUND };

	assert_int_equal(kv_run(store_of(state), increment, &body, NULL, &err), STATUS_NOT_FOUND);
	assert_int_equal(err.status, STATUS_NOT_FOUND);
	assert_string_equal(err.text, "not_found");
}

static void
unknown_commit_that_happened_is_not_repeated(void **state)
{
	uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES] = { 0 };
	struct body body = { 0 };
	uint64_t version = 0;
	uint64_t read;
	struct kv_tx *tx;

	make_flaky(store_of(state), 1, true);
	assert_ok(kv_run(store_of(state), increment, &body, stamp, NULL));
	assert_int_equal(body.runs, 1);
	assert_stored(store_of(state), "t/n", "1");
	assert_int_equal(count_txids(store_of(state)), 1);
	/* The stamp of the attempt that counted. */
	for (int i = 0; i < 8; i++)
		version = version << 8 | stamp[i];
	tx = begin_read(store_of(state));
	assert_ok(kv_get_read_version(tx, &read));
	assert_int_equal(version, read);
	kv_tx_free(tx);
}

static void
unknown_commit_that_did_not_happen_is_repeated(void **state)
{
	struct body body = { 0 };

	make_flaky(store_of(state), 3, false);
	assert_ok(kv_run(store_of(state), increment, &body, NULL, NULL));
	assert_int_equal(body.runs, 4);
	assert_stored(store_of(state), "t/n", "1");
}

/* The doubt outlasts failures of other kinds. */
static void
unknown_result_is_sticky(void **state)
{
	struct body body = { 0 };
	struct body again = { .conflicts = 2 };

	make_flaky(store_of(state), 1, false);
	assert_ok(kv_run(store_of(state), increment, &body, NULL, NULL));
	make_flaky(store_of(state), 1, false);
	assert_ok(kv_run(store_of(state), increment, &again, NULL, NULL));
	assert_int_equal(again.runs, 3);
	assert_stored(store_of(state), "t/n", "6");
}

static void
unknown_results_without_end_stay_unknown(void **state)
{
	struct body body = { 0 };
	struct err err = { 0 };

	make_flaky(store_of(state), 2 * KV_RETRY_LIMIT, false);
	assert_int_equal(kv_run(store_of(state), increment, &body, NULL, &err), STATUS_TX_UNKNOWN);
	assert_int_equal(err.status, STATUS_TX_UNKNOWN);
	assert_stored(store_of(state), "t/n", NULL);
}

static void
reading_leaves_no_transaction_id(void **state)
{
	make_flaky(store_of(state), 0, false);
	assert_ok(kv_run(store_of(state), read_and_commit, NULL, NULL, NULL));
	assert_int_equal(count_txids(store_of(state)), 0);
}

/* Without its id nobody could tell later whether it took place. */
static void
what_memory_has_no_id_for_is_not_committed(void **state)
{
	struct kv_store *store = store_of(state);
	size_t failed = 0;

	make_flaky(store, 0, false);
	for (uint64_t nth = 1;; nth++) {
		struct body body = { 0 };
		enum status status;

		(void)mem_fail_only(nth);
		status = kv_run(store, increment, &body, NULL, NULL);
		(void)mem_fail_only(0);
		if (status == STATUS_OK)
			break;
		assert_int_equal(status, STATUS_NOMEM);
		failed++;
	}
	assert_true(failed > 0);
	assert_int_equal(count_txids(store), 1);
}

static void
sweep_removes_old_transaction_ids_only(void **state)
{
	struct body body = { 0 };
	struct event never;
	bool more;

	make_flaky(store_of(state), 0, false);
	for (int i = 0; i < 5; i++)
		assert_ok(kv_run(store_of(state), increment, &body, NULL, NULL));
	assert_int_equal(count_txids(store_of(state)), 5);
	assert_ok(kv_txids_sweep(store_of(state), 60 * 1000, &more, NULL));
	assert_int_equal(count_txids(store_of(state)), 5);
	event_init(&never);
	event_wait(&never, clock_after_ms(5));
	store_of(state)->engine = &kv_engine_embedded;
	assert_ok(kv_txids_sweep(store_of(state), 1, &more, NULL));
	assert_false(more);
	assert_int_equal(count_txids(store_of(state)), 0);
}

static void
on_error_keeps_what_cannot_be_retried(void **state)
{
	struct kv_tx *tx = begin(store_of(state));

	put(tx, "t/a", "1");
	assert_int_equal(kv_on_error(tx, STATUS_IO), STATUS_IO);
	assert_int_equal(kv_on_error(tx, STATUS_CANCELLED), STATUS_CANCELLED);
	assert_get(tx, "t/a", "1");
	assert_ok(kv_on_error(tx, STATUS_TX_CONFLICT));
	assert_get(tx, "t/a", NULL);
	assert_ok(kv_on_error(tx, STATUS_TX_TOO_OLD));
	kv_tx_free(tx);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(body_is_committed_once_when_nothing_interferes),
		T(conflicting_body_runs_again),
		T(run_goes_on_in_a_transaction_that_has_begun),
		T(runs_that_overlap_commit_in_the_order_they_began),
		T(second_half_tries_again_what_has_conflicted),
		T(second_half_tells_how_the_first_one_failed),
		T(endless_conflicts_are_given_up),
		T(only_a_second_conflict_is_looked_into),
		T(what_nobody_waits_for_is_not_tried_again),
		T(body_that_gives_up_leaves_no_trace),
		T(failure_without_explanation_gets_one),
		T(unknown_commit_that_happened_is_not_repeated),
		T(unknown_commit_that_did_not_happen_is_repeated),
		T(unknown_result_is_sticky),
		T(unknown_results_without_end_stay_unknown),
		T(reading_leaves_no_transaction_id),
		T(what_memory_has_no_id_for_is_not_committed),
		T(sweep_removes_old_transaction_ids_only),
		T(on_error_keeps_what_cannot_be_retried),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

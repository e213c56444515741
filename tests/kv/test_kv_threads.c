/* Many threads at once. */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "kv/prefix.h"

enum {
	THREADS = 8,
	ACCOUNTS = 16,
	TRANSFERS = 60, /* of each thread */
	START = 1000,
	TAKEN = 40, /* numbers of databases, by each thread */
	TAKING_ROUNDS = 8,
};

struct bank {
	struct kv_store *store;
	atomic_bool done;
	_Atomic int failures;
	_Atomic int audits;
};

struct transfer {
	int from;
	int to;
	int64_t amount;
};

struct clerk {
	struct bank *bank;
	struct rand_seq rand;
	bool alone; /* may commit on its own thread */
};

static struct str
account_key(int i, char ret[16])
{
	return str_of(ret, (size_t)snprintf(ret, 16, "t/acct/%02d", i));
}

static enum status
read_account(struct kv_tx *tx, int i, int64_t *ret)
{
	struct kv_future *f;
	struct str value;
	char key[16];

	f = kv_get(tx, account_key(i, key), KV_READ);
	TRY(kv_future_wait(f));
	*ret = START;
	if (kv_future_value(f, &value))
		memcpy(ret, value.ptr, sizeof(*ret));
	return STATUS_OK;
}

static enum status
write_account(struct kv_tx *tx, int i, int64_t amount)
{
	char key[16];

	return kv_set(tx, account_key(i, key), str_of(&amount, sizeof(amount)));
}

static enum status
transfer_body(struct kv_tx *tx, void *arg)
{
	const struct transfer *t = arg;
	int64_t from;
	int64_t to;

	TRY(read_account(tx, t->from, &from));
	TRY(read_account(tx, t->to, &to));
	TRY(write_account(tx, t->from, from - t->amount));
	TRY(write_account(tx, t->to, to + t->amount));
	TRY(kv_set_versionstamped_key(tx, STR("t/log/.........."), 6, STR("")));
	return kv_atomic(tx, KV_ADD, STR("t/count"), STR("\1\0\0\0"));
}

static void *
clerk_main(void *arg)
{
	struct clerk *c = arg;

	if (c->alone)
		be_alone_begin();
	for (int i = 0; i < TRANSFERS; i++) {
		struct transfer t = {
			.from = (int)rand_seq_below(&c->rand, ACCOUNTS),
			.amount = (int64_t)rand_seq_below(&c->rand, 10),
		};

		t.to = (t.from + 1 + (int)rand_seq_below(&c->rand, ACCOUNTS - 1)) % ACCOUNTS;
		if (kv_run(c->bank->store, transfer_body, &t, NULL, NULL) != STATUS_OK)
			atomic_fetch_add(&c->bank->failures, 1);
	}
	if (c->alone)
		be_alone_end();
	return NULL;
}

static enum status
audit_body(struct kv_tx *tx, void *arg)
{
	int64_t sum = 0;

	for (int i = 0; i < ACCOUNTS; i++) {
		int64_t amount;

		TRY(read_account(tx, i, &amount));
		sum += amount;
	}
	*(int64_t *)arg = sum;
	return STATUS_OK;
}

static void *
auditor_main(void *arg)
{
	struct bank *bank = arg;

	while (!atomic_load(&bank->done)) {
		int64_t sum = 0;

		if (kv_run_read(bank->store, audit_body, &sum, NULL) != STATUS_OK ||
		    sum != (int64_t)ACCOUNTS * START)
			atomic_fetch_add(&bank->failures, 1);
		atomic_fetch_add(&bank->audits, 1);
	}
	return NULL;
}

struct tally {
	uint32_t count;
	size_t stamps;
};

static enum status
tally_body(struct kv_tx *tx, void *arg)
{
	struct tally *tally = arg;
	struct kv_future *f = kv_get(tx, STR("t/count"), KV_READ);
	struct str count;

	TRY(kv_future_wait(f));
	assert_true(kv_future_value(f, &count));
	memcpy(&tally->count, count.ptr, sizeof(tally->count));
	f = kv_get_range(tx, STR("t/log/"), STR("t/log0"), NULL);
	TRY(kv_future_wait(f));
	tally->stamps = kv_future_range(f).count;
	return STATUS_OK;
}

static void
transfers_of_many_threads_keep_the_sum(void **state)
{
	struct bank bank = { .store = store_of(state) };
	struct clerk clerks[THREADS];
	pthread_t threads[THREADS];
	pthread_t auditor;
	struct tally tally;
	int64_t sum = 0;

	assert_int_equal(pthread_create(&auditor, NULL, auditor_main, &bank), 0);
	for (int i = 0; i < THREADS; i++) {
		clerks[i] = (struct clerk){ &bank, { test_seed() + (uint64_t)i }, i % 2 };
		assert_int_equal(pthread_create(&threads[i], NULL, clerk_main, &clerks[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&bank.done, true);
	pthread_join(auditor, NULL);
	assert_int_equal(bank.failures, 0);
	assert_true(bank.audits > 0);
	assert_ok(kv_run_read(bank.store, audit_body, &sum, NULL));
	assert_int_equal(sum, ACCOUNTS * START);

	/* Each transfer is counted once and has a stamp of its own. */
	assert_ok(kv_run_read(bank.store, tally_body, &tally, NULL));
	assert_int_equal(tally.count, THREADS * TRANSFERS);
	assert_int_equal(tally.stamps, THREADS * TRANSFERS);
}

/* ---- Watches and cancels from other threads ---- */

enum {
	TURNS = 100,
};

/* Two threads hand a number to and fro, each waiting for the other by a watch. */
struct player {
	struct kv_store *store;
	uint32_t parity;
	int failures;
};

/*
 * A store with faults may answer this at any time; playing on is right, as each turn reads first.
 */
static bool
is_fault(enum status status)
{
	return test_store_fails() && (status == STATUS_TX_CONFLICT || status == STATUS_TX_TOO_OLD ||
				      status == STATUS_TX_UNKNOWN || status == STATUS_UNAVAILABLE);
}

static enum status
play_turn(struct player *p, bool *ret_done)
{
	struct kv_future *watch = NULL;
	struct kv_future *f;
	struct kv_tx *tx;
	struct str value;
	uint32_t n = 0;
	enum status status;

	TRY(kv_begin(p->store, KV_TX_READ_WRITE, &tx));
	f = kv_get(tx, STR("t/ball"), KV_READ);
	status = kv_future_wait(f);
	if (status == STATUS_OK && kv_future_value(f, &value))
		memcpy(&n, value.ptr, sizeof(n));
	*ret_done = status == STATUS_OK && n >= TURNS;
	if (status == STATUS_OK && n % 2 == p->parity) {
		n++;
		status = kv_set(tx, STR("t/ball"), str_of(&n, sizeof(n)));
	} else if (status == STATUS_OK && !*ret_done) {
		watch = kv_watch(tx, STR("t/ball"));
	}
	if (status == STATUS_OK)
		status = kv_future_wait(kv_commit(tx));
	kv_tx_free(tx);
	if (status == STATUS_OK && watch)
		status = kv_future_wait(watch);
	kv_future_free(watch);
	return status;
}

static void *
player_main(void *arg)
{
	struct player *p = arg;
	bool done = false;

	while (!done) {
		enum status status = play_turn(p, &done);

		if (status != STATUS_OK && !is_fault(status))
			p->failures++;
	}
	return NULL;
}

static void
watches_wake_other_threads(void **state)
{
	struct player players[2] = { { store_of(state), 0, 0 }, { store_of(state), 1, 0 } };
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, player_main, &players[i]), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(players[i].failures, 0);
	}
}

static void *
cancel_main(void *arg)
{
	kv_cancel(arg);
	return NULL;
}

static void
cancel_comes_from_any_thread(void **state)
{
	for (int i = 0; i < 50; i++) {
		struct kv_tx *tx = begin(store_of(state));
		struct kv_future *watch = kv_watch(tx, STR("t/w"));
		struct kv_future *f;
		enum status status;
		pthread_t t;

		put(tx, "t/a", "1");
		assert_int_equal(pthread_create(&t, NULL, cancel_main, tx), 0);
		f = kv_commit(tx);
		status = kv_future_wait(f);
		pthread_join(t, NULL);
		assert_true(status == STATUS_OK || status == STATUS_CANCELLED || is_fault(status));
		assert_int_equal(get_status(tx, STR("t/a")), STATUS_CANCELLED);
		if (status == STATUS_CANCELLED)
			assert_int_equal(kv_future_wait(watch), STATUS_CANCELLED);
		kv_tx_free(tx);
		kv_future_free(watch);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

/* ---- Numbers of databases ---- */

struct taker {
	struct kv_store *store;
	pthread_barrier_t *start;
	uint64_t taken[TAKEN];
	enum status status;
};

static void *
taker_main(void *arg)
{
	struct taker *t = arg;

	pthread_barrier_wait(t->start);
	for (int i = 0; i < TAKEN && t->status == STATUS_OK; i++)
		t->status = kv_prefix_take(t->store, &t->taken[i], NULL);
	return NULL;
}

static int
compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* A store that was just opened takes blocks of few numbers, so threads often want one at once. */
static void
no_number_is_taken_twice(void **state)
{
	static uint64_t all[TAKING_ROUNDS * THREADS * TAKEN];
	struct fixture *f = *state;
	pthread_barrier_t start;
	size_t count = 0;

	assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
	for (int round = 0; round < TAKING_ROUNDS; round++) {
		struct taker takers[THREADS];
		pthread_t threads[THREADS];

		kv_close(f->store);
		f->store = fixture_open(f->url,
					(struct kv_options){ .create = true, .no_sync = true });
		for (int i = 0; i < THREADS; i++) {
			takers[i] = (struct taker){ .store = f->store, .start = &start };
			assert_int_equal(pthread_create(&threads[i], NULL, taker_main, &takers[i]),
					 0);
		}
		for (int i = 0; i < THREADS; i++) {
			pthread_join(threads[i], NULL);
			assert_int_equal(takers[i].status, STATUS_OK);
			memcpy(&all[count], takers[i].taken, sizeof(takers[i].taken));
			count += TAKEN;
		}
	}
	pthread_barrier_destroy(&start);
	qsort(all, count, sizeof(*all), compare_numbers);
	for (size_t i = 1; i < count; i++)
		assert_true(all[i - 1] < all[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(transfers_of_many_threads_keep_the_sum),
		T(watches_wake_other_threads),
		T(cancel_comes_from_any_thread),
		T(no_number_is_taken_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Turns at keys that many change together, by themselves and in kv_run(). */
#include "fixture.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "kv/turns.h"

enum {
	THREADS = 12,
	ROUNDS = 40,
	/* Of one transaction at a cluster: 4 and 3 in two runs, and 14 and 18 without turns. */
	ATTEMPTS = 9,
};

/* ---- By themselves ---- */

struct crowd {
	struct kv_turns *turns;
	_Atomic uint32_t inside;
	_Atomic uint32_t together; /* that ever were inside at the same time */
	_Atomic uint32_t order;
	uint32_t came[THREADS]; /* in which order they were given their turn */
	_Atomic uint32_t waiting;
};

struct one {
	struct crowd *crowd;
	uint32_t number;
};

static void *
go_in(void *arg)
{
	struct one *one = arg;
	struct crowd *c = one->crowd;
	struct kv_turn turn = { 0 };

	for (unsigned i = 0; i < ROUNDS; i++) {
		if (!kv_turn_take(c->turns, STR("key"), &turn))
			return arg; /* it has failed */
		if (atomic_fetch_add(&c->inside, 1))
			atomic_fetch_add(&c->together, 1);
		if (!kv_turns_is_taken(c->turns, STR("key")))
			return arg; /* it has failed */
		atomic_fetch_sub(&c->inside, 1);
		kv_turn_end(c->turns, &turn);
	}
	return NULL;
}

static void
turns_of_one_key_come_one_after_the_other(void **state)
{
	struct crowd c = { .turns = kv_turns_new() };
	struct one ones[THREADS];
	pthread_t threads[THREADS];
	void *failed;

	(void)state;
	assert_non_null(c.turns);
	for (uint32_t i = 0; i < THREADS; i++) {
		ones[i] = (struct one){ &c, i };
		assert_int_equal(pthread_create(&threads[i], NULL, go_in, &ones[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_int_equal(atomic_load(&c.together), 0);
	assert_false(kv_turns_is_taken(c.turns, STR("key")));
	kv_turns_free(c.turns);
}

static void *
wait_once(void *arg)
{
	struct one *one = arg;
	struct crowd *c = one->crowd;
	struct kv_turn turn = { 0 };

	atomic_fetch_add(&c->waiting, 1);
	if (!kv_turn_take(c->turns, STR("key"), &turn))
		return arg; /* it has failed */
	c->came[atomic_fetch_add(&c->order, 1)] = one->number;
	kv_turn_end(c->turns, &turn);
	return NULL;
}

static void
turns_are_given_in_the_order_of_asking(void **state)
{
	struct crowd c = { .turns = kv_turns_new() };
	struct kv_turn mine = { 0 };
	struct one ones[THREADS];
	pthread_t threads[THREADS];
	void *failed;

	(void)state;
	assert_non_null(c.turns);
	assert_true(kv_turn_take(c.turns, STR("key"), &mine));
	for (uint32_t i = 0; i < THREADS; i++) {
		ones[i] = (struct one){ &c, i };
		assert_int_equal(pthread_create(&threads[i], NULL, wait_once, &ones[i]), 0);
		while (atomic_load(&c.waiting) == i)
			usleep(100);
		/* It has said so right before it asked. */
		usleep(20000);
	}
	kv_turn_end(c.turns, &mine);
	for (uint32_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(c.came[i], i);
	kv_turns_free(c.turns);
}

static void
whoever_waits_in_vain_goes_on_without(void **state)
{
	struct kv_turns *turns = kv_turns_new();
	struct kv_turn mine = { 0 }, other = { 0 }, third = { 0 };
	uint64_t begun = clock_mono_ns();

	(void)state;
	assert_non_null(turns);
	assert_true(kv_turn_take(turns, STR("key"), &mine));
	assert_false(kv_turn_take(turns, STR("key"), &other));
	assert_true(clock_mono_ns() - begun >= KV_TURN_WAIT_MS * CLOCK_NS_PER_MS);
	kv_turn_end(turns, &other); /* of one that is not held */
	assert_true(kv_turns_is_taken(turns, STR("key")));
	kv_turn_end(turns, &mine);
	assert_false(kv_turns_is_taken(turns, STR("key")));
	assert_true(kv_turn_take(turns, STR("key"), &third));
	kv_turn_end(turns, &third);
	kv_turns_free(turns);
}

/* ---- In kv_run() ---- */

struct counting {
	struct kv_store *store;
	uint32_t attempts; /* of the transaction under way */
	uint32_t most;     /* of any so far */
	uint32_t all;
};

static enum status
count_body(struct kv_tx *tx, void *arg)
{
	struct counting *c = arg;
	struct kv_future *f = kv_get(tx, STR("counter"), KV_READ);
	struct str value;
	uint64_t n = 0;

	c->attempts++;
	TRY(kv_future_wait(f));
	if (kv_future_value(f, &value)) {
		assert_int_equal(value.len, sizeof(n));
		memcpy(&n, value.ptr, sizeof(n));
	}
	n++;
	return kv_set(tx, STR("counter"), str_of((char *)&n, sizeof(n)));
}

static void *
count_up(void *arg)
{
	struct counting *c = arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		c->attempts = 0;
		if (kv_run(c->store, count_body, c, NULL, NULL) != STATUS_OK)
			return arg; /* it was given up */
		c->most = c->attempts > c->most ? c->attempts : c->most;
		c->all += c->attempts;
	}
	return NULL;
}

static void
those_who_change_one_key_succeed_with_few_attempts(void **state)
{
	struct kv_store *store = store_of(state);
	struct counting countings[THREADS] = { 0 };
	uint32_t all = 0, most = 0;
	pthread_t threads[THREADS];
	struct kv_tx *tx;
	struct kv_future *f;
	struct str value;
	uint64_t n;
	void *failed;

	for (unsigned i = 0; i < THREADS; i++) {
		countings[i].store = store;
		assert_int_equal(pthread_create(&threads[i], NULL, count_up, &countings[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
		all += countings[i].all;
		most = countings[i].most > most ? countings[i].most : most;
	}
	assert_int_equal(kv_begin(store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	f = kv_get(tx, STR("counter"), KV_READ);
	assert_int_equal(kv_future_wait(f), STATUS_OK);
	assert_true(kv_future_value(f, &value));
	assert_int_equal(value.len, sizeof(n));
	memcpy(&n, value.ptr, sizeof(n));
	kv_tx_free(tx);
	assert_int_equal(n, THREADS * ROUNDS);
	if (kv_is_shared(store) && most > ATTEMPTS)
		fail_msg("%u attempts in all, %u of one", all, most);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_of_one_key_come_one_after_the_other),
		cmocka_unit_test(turns_are_given_in_the_order_of_asking),
		cmocka_unit_test(whoever_waits_in_vain_goes_on_without),
		cmocka_unit_test_setup_teardown(those_who_change_one_key_succeed_with_few_attempts,
						fixture_setup, fixture_teardown),
	};

	return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}

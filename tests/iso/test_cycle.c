/*
 * A ring of keys, each with the number of the next one. Threads swap neighbours in it; whatever is
 * serializable keeps it one ring, at every version. The workload is FoundationDB's Cycle.
 */
#include "../kv/fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"

enum {
	NODES = 24,
	THREADS = 8,
	SWAPS = 120, /* of each thread */
	KEY_BYTES = 16,
};

struct ring {
	struct kv_store *store;
	atomic_bool done;
	_Atomic int failures;
	_Atomic int broken;
	_Atomic int looks;
};

struct swapper {
	struct ring *ring;
	struct rand_seq rand;
	uint32_t node; /* where it begins this time */
	uint32_t how;  /* it reads */
};

static struct str
node_key(uint32_t node, char ret[KEY_BYTES])
{
	return str_of(ret, (size_t)snprintf(ret, KEY_BYTES, "t/ring/%02u", node));
}

static enum status
write_next(struct kv_tx *tx, uint32_t node, uint32_t next)
{
	char key[KEY_BYTES];

	return kv_set(tx, node_key(node, key), str_of(&next, sizeof(next)));
}

/* Three ways to read a key with a conflict; they have to come to the same. */
static enum status
read_next(struct kv_tx *tx, uint32_t how, uint32_t node, uint32_t *ret)
{
	const struct kv_range_options one = { .limit = 1 };
	struct kv_future *f;
	struct str value;
	char key_bytes[KEY_BYTES];
	char end_bytes[KEY_BYTES];
	struct str key = node_key(node, key_bytes);
	struct str end = node_key(node + 1, end_bytes);

	switch (how % 3) {
	case 0:
		f = kv_get(tx, key, KV_READ);
		TRY(kv_future_wait(f));
		if (!kv_future_value(f, &value))
			return STATUS_CORRUPT;
		break;
	case 1:
		f = kv_get(tx, key, KV_SNAPSHOT);
		TRY(kv_future_wait(f));
		if (!kv_future_value(f, &value))
			return STATUS_CORRUPT;
		TRY(kv_add_read_conflict_range(tx, key, end));
		break;
	default:
		f = kv_get_range(tx, key, end, &one);
		TRY(kv_future_wait(f));
		if (kv_future_range(f).count != 1)
			return STATUS_CORRUPT;
		value = kv_future_range(f).pairs[0].value;
	}
	memcpy(ret, value.ptr, sizeof(*ret));
	return STATUS_OK;
}

/* a → b → c → d becomes a → c → b → d. */
static enum status
swap_body(struct kv_tx *tx, void *arg)
{
	const struct swapper *s = arg;
	uint32_t a = s->node;
	uint32_t b;
	uint32_t c;
	uint32_t d;

	TRY(read_next(tx, s->how, a, &b));
	TRY(read_next(tx, s->how / 3, b, &c));
	TRY(read_next(tx, s->how / 9, c, &d));
	TRY(write_next(tx, a, c));
	TRY(write_next(tx, c, b));
	TRY(write_next(tx, b, d));
	return kv_atomic(tx, KV_ADD, STR("t/swaps"), STR("\1\0\0\0"));
}

static void *
swapper_main(void *arg)
{
	struct swapper *s = arg;

	for (int i = 0; i < SWAPS; i++) {
		s->node = (uint32_t)rand_seq_below(&s->rand, NODES);
		s->how = (uint32_t)rand_seq_below(&s->rand, 27);
		if (kv_run(s->ring->store, swap_body, s, NULL, NULL) != STATUS_OK)
			atomic_fetch_add(&s->ring->failures, 1);
	}
	return NULL;
}

/* How many nodes are passed until the first one is met again. */
static uint32_t
length_of(const uint32_t next[NODES])
{
	uint32_t at = 0;
	uint32_t length = 0;

	do {
		at = next[at];
		length++;
	} while (at != 0 && at < NODES && length <= NODES);
	return length;
}

struct look {
	uint32_t length;
	bool one_by_one;
};

static enum status
look_body(struct kv_tx *tx, void *arg)
{
	struct look *look = arg;
	uint32_t next[NODES] = { 0 };
	struct kv_range range;
	struct kv_future *f;

	if (look->one_by_one) {
		for (uint32_t i = 0; i < NODES; i++)
			TRY(read_next(tx, i, i, &next[i]));
	} else {
		f = kv_get_range(tx, STR("t/ring/"), STR("t/ring0"), NULL);
		TRY(kv_future_wait(f));
		range = kv_future_range(f);
		for (size_t i = 0; i < range.count && i < NODES; i++)
			memcpy(&next[i], range.pairs[i].value.ptr, sizeof(next[i]));
	}
	look->length = length_of(next);
	return STATUS_OK;
}

/* Looks, and writes so that the look has to be judged. */
static enum status
look_and_write_body(struct kv_tx *tx, void *arg)
{
	TRY(look_body(tx, arg));
	return kv_atomic(tx, KV_ADD, STR("t/looks"), STR("\1\0\0\0"));
}

static void *
looker_main(void *arg)
{
	struct ring *ring = arg;

	for (int i = 0; !atomic_load(&ring->done); i++) {
		struct look look = { .one_by_one = i % 2 };
		enum status status;

		if (i % 16 == 15)
			status = kv_run(ring->store, look_and_write_body, &look, NULL, NULL);
		else
			status = kv_run_read(ring->store, look_body, &look, NULL);
		/* One that writes may never win against so many; what it saw is one version. */
		if (status != STATUS_OK && status != STATUS_TX_CONFLICT)
			atomic_fetch_add(&ring->failures, 1);
		if (look.length != NODES)
			atomic_fetch_add(&ring->broken, 1);
		atomic_fetch_add(&ring->looks, 1);
	}
	return NULL;
}

static void
ring_stays_one_ring_whatever_many_threads_do(void **state)
{
	struct ring ring = { .store = store_of(state) };
	struct kv_tx *tx = begin(ring.store);
	struct swapper swappers[THREADS];
	pthread_t threads[THREADS];
	struct look look = { 0 };
	struct kv_future *f;
	struct str value;
	pthread_t looker;
	uint32_t swaps;

	for (uint32_t i = 0; i < NODES; i++)
		assert_ok(write_next(tx, i, (i + 1) % NODES));
	commit(tx);
	assert_int_equal(pthread_create(&looker, NULL, looker_main, &ring), 0);
	for (int i = 0; i < THREADS; i++) {
		swappers[i] = (struct swapper){ .ring = &ring,
						.rand = { test_seed() + (uint64_t)i } };
		assert_int_equal(pthread_create(&threads[i], NULL, swapper_main, &swappers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&ring.done, true);
	pthread_join(looker, NULL);
	assert_int_equal(ring.failures, 0);
	assert_int_equal(ring.broken, 0);
	assert_true(ring.looks > 0);
	assert_ok(kv_run_read(ring.store, look_body, &look, NULL));
	assert_int_equal(look.length, NODES);
	tx = begin_read(ring.store);
	f = kv_get(tx, STR("t/swaps"), KV_READ);
	assert_ok(kv_future_wait(f));
	assert_true(kv_future_value(f, &value));
	memcpy(&swaps, value.ptr, sizeof(swaps));
	assert_int_equal(swaps, THREADS * SWAPS);
	kv_tx_free(tx);
	/* Otherwise nothing has been shown. */
	assert_true(kv_store_stats(ring.store).conflicts > 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(ring_stays_one_ring_whatever_many_threads_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

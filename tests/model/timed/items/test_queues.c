/* Lists and sorted sets as queues: what pops read, and that they step over nothing that is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <rocksdb/c.h>

#include "items_model.h"
#include "store.h"

enum {
	QUEUE_ELEMENTS = 10,
	QUEUE_ROUNDS = 200,
	QUEUE_TURNS = 8,
	QUEUE_TURNS_CLUSTER = 1, /* what is counted is the embedded engine's alone */
	QUEUE_STEPS = 80,        /* in each round, at most */
	COUNT_ALL = 2,           /* rocksdb/perf_level.h */
};

static unsigned queue_runs; /* of these two, those that were tried again included */

struct queue {
	bool sorted; /* a sorted set, whose least member is taken; else a list */
	bool left;   /* of a list: what is pushed at its left is taken at its right */
	unsigned pushed;
};

static enum status
queue_push_run(struct timed *t, struct arena *arena, void *arg)
{
	struct queue *q = arg;
	struct timed_member member = { .name = arena_printf(arena, "job%u", q->pushed),
				       .score = q->pushed };
	struct timed_item item;

	queue_runs++;
	TRY(timed_item_open(t, STR("queue"), arena, &item));
	return q->sorted ? timed_members_put(&item, TIMED_ZSET, &member, 1)
			 : timed_list_push(&item, q->left, &STR("job"), 1);
}

static void
queue_push(struct items *f, struct queue *q)
{
	items_must(f, queue_push_run, q);
	q->pushed++;
}

static enum status
queue_pop_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct queue *q = arg;
	struct timed_elements elements = { 0 };
	struct timed_members members = { 0 };
	struct timed_item item;

	queue_runs++;
	TRY(timed_item_open(t, STR("queue"), arena, &item));
	if (q->sorted)
		TRY(timed_zset_pop(&item, false, 1, &members));
	else
		TRY(timed_list_pop(&item, !q->left, 1, &elements));
	assert_int_equal(elements.count + members.count, 1);
	return STATUS_OK;
}

/* Keys, deleted ones mostly, that RocksDB has stepped over on this thread since the last call. */
static uint64_t
keys_stepped_over(void)
{
	rocksdb_perfcontext_t *context = rocksdb_perfcontext_create();
	uint64_t keys = rocksdb_perfcontext_metric(context, rocksdb_internal_key_skipped_count) +
			rocksdb_perfcontext_metric(context, rocksdb_internal_delete_skipped_count);

	rocksdb_perfcontext_reset(context);
	rocksdb_perfcontext_destroy(context);
	return keys;
}

/*
 * How many keys are stepped over by each round of a push at one end and a pop at the other. Where
 * transactions fail, each attempt steps, so a round counts as often as it was tried.
 */
static uint64_t
queue_rounds(struct items *f, struct queue *q)
{
	queue_runs = 0;
	(void)keys_stepped_over();
	for (unsigned i = 0; i < QUEUE_ROUNDS; i++) {
		queue_push(f, q);
		items_must(f, queue_pop_run, q);
	}
	return keys_stepped_over() * 2 / queue_runs;
}

static void
a_queue_does_not_step_over_what_has_gone(void **state)
{
	struct queue queues[] = { { .left = false }, { .left = true }, { .sorted = true } };
	unsigned turns = test_store_is_cluster() ? QUEUE_TURNS_CLUSTER : QUEUE_TURNS;
	struct items *f = *state;

	for (size_t n = 0; n < sizeof(queues) / sizeof(queues[0]); n++) {
		for (unsigned i = 0; i < QUEUE_ELEMENTS; i++)
			queue_push(f, &queues[n]);
		rocksdb_set_perf_level(COUNT_ALL);
		for (unsigned i = 0; i < turns; i++)
			assert_in_range(queue_rounds(f, &queues[n]), 0, QUEUE_STEPS);
		for (unsigned i = 0; i < QUEUE_ELEMENTS; i++)
			items_must(f, queue_pop_run, &queues[n]);
	}
	items_verify(f);
}

enum {
	POPS = 100,
	POPS_READ = 5, /* each, at most: an element, and where blocks begin */
};

struct pops {
	struct queue queue;
	bool all; /* of what is there */
};

/* Many of them in one transaction. */
static enum status
pops_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct pops *p = arg;
	struct timed_elements elements;
	struct timed_members members;
	struct timed_item item;

	TRY(timed_item_open(t, STR("queue"), arena, &item));
	for (unsigned i = 0; i < (p->all ? 2 * POPS : POPS); i++)
		if (p->queue.sorted)
			TRY(timed_zset_pop(&item, p->queue.left, 1, &members));
		else
			TRY(timed_list_pop(&item, p->queue.left, 1, &elements));
	assert_int_equal(item.type == TIMED_LEAF, p->all);
	return STATUS_OK;
}

static void
pops_of_one_transaction_look_once_whether_anything_is_left(void **state)
{
	struct items *f = *state;

	for (unsigned way = 0; way < 4; way++) {
		struct pops p = { .queue = { .sorted = way / 2, .left = way % 2 } };

		for (unsigned i = 0; i < 3 * POPS; i++)
			queue_push(f, &p.queue);
		items_must(f, pops_run, &p);
		assert_in_range(f->cost.keys_read, POPS, POPS * POPS_READ);
		items_verify(f);
		p.all = true;
		items_must(f, pops_run, &p);
		items_verify(f);
		items_sweep(f);
		assert_int_equal(items_pairs(f, SPACE_BODY), 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_STORE(name) cmocka_unit_test_setup_teardown(name, items_setup, items_teardown)
		WITH_STORE(a_queue_does_not_step_over_what_has_gone),
		WITH_STORE(pops_of_one_transaction_look_once_whether_anything_is_left),
	};

	return cmocka_run_group_tests_name("queues", tests, NULL, NULL);
}

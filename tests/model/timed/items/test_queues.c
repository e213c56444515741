/*
 * Lists and sorted sets as queues: what pops read, and that they step over nothing that is gone.
 * What draws, pages and parts of values read.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rocksdb/c.h>

#include "items_model.h"
#include "model/timed/items/item_int.h"
#include "store.h"
#include "verified.h"

enum {
	QUEUE_ELEMENTS = 10,
	QUEUE_ROUNDS = 200,
	QUEUE_TURNS = 8,
	QUEUE_TURNS_CLUSTER = 1, /* what is counted is the embedded engine's alone */
	QUEUE_STEPS = 80,        /* in each round, at most */
	COUNT_ALL = 2,           /* rocksdb/perf_level.h */
	LONG_ELEMENTS = 6000,    /* some of which begin blocks of level 2 */
	LONG_STEP = 150,
	STREAM_LENGTH = 300,
	STREAM_ROUNDS = 5,
	STREAM_TRIMS = 40,
	STREAM_TRIM_READ = 3, /* keys for each, at most */
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

enum {
	RUNS = 20,          /* transactions that push */
	RUN_PUSHES = 40,    /* elements of each */
	RUN_POPS = 90,      /* of one transaction */
	RUN_POPS_READ = 90, /* pairs, some of them twice, where a page of pops ends in a run */
	LONG_BYTES = TIMED_RECORD_BYTES + 1,
};

/* A list of numbers, from `first` up to but without `end`; some are too long for a record. */
struct numbers {
	unsigned first;
	unsigned end;
	bool left; /* where what comes next is pushed or popped */
	bool with_long;
	bool looks; /* at both ends of what is left, now and then */
};

static struct str
number_text(struct arena *arena, const struct numbers *l, unsigned n)
{
	int bytes = l->with_long && n % 50 == 7 ? LONG_BYTES : 1;

	return arena_printf(arena, "%*u", bytes, n);
}

static enum status
numbers_push_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct numbers *l = arg;
	struct timed_item item;

	TRY(timed_item_open(t, STR("numbers"), arena, &item));
	for (unsigned i = 0; i < RUN_PUSHES; i++) {
		struct str text = number_text(arena, l, l->left ? l->first - i - 1 : l->end + i);

		TRY(timed_list_push(&item, l->left, &text, 1));
	}
	return STATUS_OK;
}

/* Pops one, two or three at a time. */
static enum status
numbers_pop_run(struct timed *t, struct arena *arena, void *arg)
{
	struct numbers l = *(const struct numbers *)arg; /* a transaction may run again */
	struct timed_elements got;
	struct timed_item item;
	unsigned popped = 0;

	TRY(timed_item_open(t, STR("numbers"), arena, &item));
	for (unsigned n = 1; popped < RUN_POPS; n = n % 3 + 1) {
		TRY(timed_list_pop(&item, l.left, n, &got));
		assert_int_equal(got.count, n);
		for (size_t i = 0; i < got.count; i++)
			assert_true(str_eq(got.elements[i].value,
					   number_text(arena, &l, l.left ? l.first++ : --l.end)));
		popped += n;
		if (!l.looks || popped % 10)
			continue;
		TRY(timed_list_range(&item, 0, 1, &got));
		assert_true(str_eq(got.elements[0].value, number_text(arena, &l, l.first)));
		TRY(timed_list_range(&item, l.end - l.first - 1, 2, &got));
		assert_int_equal(got.count, 1);
		assert_true(str_eq(got.elements[0].value, number_text(arena, &l, l.end - 1)));
	}
	return STATUS_OK;
}

static enum status
numbers_drop_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("numbers"), arena, &item));
	assert_int_equal(item.type, TIMED_LIST);
	return timed_item_delete(&item);
}

/* At one end, at the other, or at both in turns, of runs that were pushed at both. */
static void
pops_of_one_transaction_read_a_run_once(void **state)
{
	struct items *f = *state;

	for (unsigned way = 0; way < 4; way++) {
		struct numbers l = {
			.first = 1000000, .end = 1000000, .with_long = way == 3, .looks = way == 3
		};

		for (unsigned i = 0; i < RUNS; i++) {
			l.left = i % 2;
			items_must(f, numbers_push_run, &l);
			*(l.left ? &l.first : &l.end) += l.left ? -(unsigned)RUN_PUSHES
								: RUN_PUSHES;
		}
		items_verify(f);
		while (l.end - l.first > 2 * RUN_POPS) {
			l.left = way < 2 ? way == 1 : !l.left;
			items_must(f, numbers_pop_run, &l);
			if (!l.looks)
				assert_in_range(f->cost.keys_read, 1, RUN_POPS_READ);
			*(l.left ? &l.first : &l.end) += l.left ? RUN_POPS : -(unsigned)RUN_POPS;
			items_verify(f);
		}
		items_must(f, numbers_drop_run, NULL);
	}
}

enum {
	SET_MEMBERS = 500,
	SET_POPS = 400,
	SET_POPS_READ = 10, /* members for each of them */
};

static enum status
set_fill_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;
	uint64_t count;

	(void)arg;
	TRY(timed_item_open(t, STR("set"), arena, &item));
	for (unsigned i = 0; i < SET_MEMBERS; i++) {
		/* `found` is what an earlier call has left, unless `known` is set. */
		struct timed_member m = { .name = arena_printf(arena, "%u", i), .found = true };

		TRY(timed_members_put(&item, TIMED_SET, &m, 1));
	}
	TRY(timed_count(&item, &count));
	assert_int_equal(count, SET_MEMBERS);
	return STATUS_OK;
}

/* Draws a member and removes it, again and again; puts one back now and then. */
static enum status
set_pop_run(struct timed *t, struct arena *arena, void *arg)
{
	unsigned *times = arg; /* for each member, in which pop it went + 1; 0: it is there */
	struct timed_members drawn;
	struct timed_item item;
	uint64_t number;

	memset(times, 0, SET_MEMBERS * sizeof(*times));
	TRY(timed_item_open(t, STR("set"), arena, &item));
	for (unsigned i = 0; i < SET_POPS; i++) {
		TRY(timed_members_draw(&item, 1, false, &drawn));
		assert_int_equal(drawn.count, 1);
		TRY(timed_members_delete(&item, drawn.members, 1));
		assert_true(drawn.members[0].found);
		assert_true(str_to_u64(drawn.members[0].name, &number) && number < SET_MEMBERS);
		assert_int_equal(times[number], 0);
		times[number] = i + 1;
		if (i % 150 != 149)
			continue;
		TRY(timed_members_put(&item, TIMED_SET,
				      &(struct timed_member){ .name = drawn.members[0].name }, 1));
		times[number] = 0;
	}
	return STATUS_OK;
}

static void
members_that_one_transaction_draws_are_read_once(void **state)
{
	unsigned times[SET_MEMBERS], there = 0, early = 0, late = 0;
	struct items *f = *state;

	items_must(f, set_fill_run, NULL);
	items_must(f, set_pop_run, times);
	assert_in_range(f->cost.keys_read, SET_POPS, SET_POPS * SET_POPS_READ);
	for (unsigned i = 0; i < SET_MEMBERS; i++) {
		there += !times[i];
		early += times[i] && i < SET_MEMBERS / 2;
		late += times[i] && i >= SET_MEMBERS / 2;
	}
	assert_int_equal(there, SET_MEMBERS - SET_POPS + SET_POPS / 150);
	/* Drawn alike: 200 of either half, with a deviation of 4.5. */
	assert_in_range(early, 150, 250);
	assert_in_range(late, 150, 250);
	items_verify(f);
}

enum {
	LARGE_MEMBERS = 16400, /* more than a transaction keeps the names of */
	LARGE_PUT = 2050,      /* by one transaction */
	LARGE_DRAWS = 200,     /* for which it would read all names of a smaller set */
	LARGE_DRAW_READ = 75,  /* pairs, at most, for each of them */
};

static enum status
large_fill_run(struct timed *t, struct arena *arena, void *arg)
{
	const unsigned *first = arg;
	struct timed_member *members = arena_zalloc(arena, LARGE_PUT * sizeof(*members));
	struct timed_item item;

	for (unsigned i = 0; i < LARGE_PUT; i++)
		members[i].name = arena_printf(arena, "%u", *first + i);
	TRY(timed_item_open(t, STR("large"), arena, &item));
	return timed_members_put(&item, TIMED_SET, members, LARGE_PUT);
}

static enum status
large_draw_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_members drawn;
	struct timed_item item;
	uint64_t number;

	(void)arg;
	TRY(timed_item_open(t, STR("large"), arena, &item));
	for (unsigned i = 0; i < LARGE_DRAWS; i++) {
		TRY(timed_members_draw(&item, 1, false, &drawn));
		assert_int_equal(drawn.count, 1);
		assert_true(str_to_u64(drawn.members[0].name, &number) && number < LARGE_MEMBERS);
	}
	return STATUS_OK;
}

static void
of_a_large_set_a_transaction_reads_what_it_draws(void **state)
{
	struct items *f = *state;

	for (unsigned first = 0; first < LARGE_MEMBERS; first += LARGE_PUT)
		items_must(f, large_fill_run, &first);
	f->steps = 0; /* without maps */
	items_must(f, large_draw_run, NULL);
	assert_in_range(f->cost.keys_read, LARGE_DRAWS, LARGE_DRAWS * LARGE_DRAW_READ);
}

enum {
	WIDE_MEMBERS = 40,
	WIDE_BYTES = 32 * 1024, /* of each, its name included */
	WIDE_NAME_BYTES = 4,
};

static enum status
wide_fill_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_member *members = arena_zalloc(arena, WIDE_MEMBERS * sizeof(*members));
	char *bytes = arena_zalloc(arena, WIDE_BYTES);
	struct timed_item item;

	(void)arg;
	for (unsigned i = 0; i < WIDE_MEMBERS; i++) {
		members[i].name = arena_printf(arena, "m%03u", i);
		members[i].value = str_of(bytes, WIDE_BYTES - WIDE_NAME_BYTES);
	}
	TRY(timed_item_open(t, STR("wide"), arena, &item));
	return timed_members_put(&item, TIMED_HASH, members, WIDE_MEMBERS);
}

static enum status
wide_page_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_members page;
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("wide"), arena, &item));
	TRY(timed_members_page(&item, 0, WIDE_MEMBERS, &page));
	assert_int_equal(page.count, TIMED_PAGE_BYTES / WIDE_BYTES);
	TRY(timed_members_page(&item, page.next, WIDE_MEMBERS, &page));
	assert_int_equal(page.count, WIDE_MEMBERS - TIMED_PAGE_BYTES / WIDE_BYTES);
	assert_int_equal(page.next, 0);
	return STATUS_OK;
}

static void
a_page_ends_as_soon_as_it_has_its_bytes(void **state)
{
	struct items *f = *state;

	items_must(f, wide_fill_run, NULL);
	items_must(f, wide_page_run, NULL);
}

enum {
	CHUNKS = 4,
};

static enum status
chunks_fill_run(struct timed *t, struct arena *arena, void *arg)
{
	char *bytes = arena_zalloc(arena, CHUNKS * TIMED_CHUNK_BYTES);
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("chunks"), arena, &item));
	return timed_value_set(&item, str_of(bytes, CHUNKS * TIMED_CHUNK_BYTES),
			       (struct timed_expiry){ 0 });
}

static enum status
chunks_get_run(struct timed *t, struct arena *arena, void *arg)
{
	const uint64_t *len = arg;
	struct timed_item item;
	struct str got;

	TRY(timed_item_open(t, STR("chunks"), arena, &item));
	TRY(timed_value_get(&item, TIMED_CHUNK_BYTES, *len, &got));
	assert_int_equal(got.len, *len);
	return STATUS_OK;
}

static void
a_part_of_a_value_reads_the_chunks_that_it_lies_in(void **state)
{
	struct items *f = *state;
	uint64_t len = TIMED_CHUNK_BYTES, read;

	items_must(f, chunks_fill_run, NULL);
	items_must(f, chunks_get_run, &len);
	read = f->cost.keys_read;
	len++;
	items_must(f, chunks_get_run, &len);
	/* Faults cost reads of their own. */
	if (!getenv("FROND_TEST_FAULTS"))
		assert_int_equal(f->cost.keys_read, read + 1);
}

/* Some of the elements of a list with blocks of several levels, one by one in one transaction. */
struct long_step {
	bool left;
	unsigned from;
	unsigned count;
};

static enum status
long_push_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct long_step *q = arg;
	struct timed_item item;

	TRY(timed_item_open(t, STR("long"), arena, &item));
	for (unsigned i = 0; i < q->count; i++) {
		struct str value = arena_printf(arena, "%u", q->from + i);

		TRY(timed_list_push(&item, q->left, &value, 1));
	}
	return STATUS_OK;
}

static enum status
long_pop_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct long_step *q = arg;
	struct timed_elements got;
	struct timed_item item;

	TRY(timed_item_open(t, STR("long"), arena, &item));
	for (unsigned i = 0; i < q->count; i++) {
		TRY(timed_list_pop(&item, q->left, 1, &got));
		assert_int_equal(got.count, 1);
		assert_true(str_eq(got.elements[0].value, arena_printf(arena, "%u", q->from + i)));
	}
	return STATUS_OK;
}

/* From either end, pops take away the blocks of all levels, several in one transaction. */
static void
a_long_queue_is_emptied_with_its_blocks(void **state)
{
	struct items *f = *state;
	const size_t before = items_pairs(f, SPACE_BODY);

	for (unsigned left = 0; left < 2; left++) {
		for (unsigned i = 0; i < LONG_ELEMENTS; i += LONG_STEP)
			items_must(f, long_push_run, &(struct long_step){ !left, i, LONG_STEP });
		for (unsigned i = 0; i < LONG_ELEMENTS; i += LONG_STEP) {
			items_must(f, long_pop_run, &(struct long_step){ left, i, LONG_STEP });
			items_verify(f);
		}
		items_sweep(f);
		assert_int_equal(items_pairs(f, SPACE_BODY), before);
	}
}

/* Has one block of level 1 count an entry more, and the next one an entry less. */
static enum status
miscount_run(struct timed *t, struct arena *arena, void *arg)
{
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct timed_item item;
	struct str begin, end;
	struct kv_pair pair;

	(void)arg;
	TRY(timed_item_open(t, STR("long"), arena, &item));
	TRY(timed_block_key(&item, 1, STR(""), &begin));
	TRY(timed_block_key(&item, 2, STR(""), &end));
	TRY(kv_scan_init(&scan, t->tx, begin, end, NULL));
	for (int change = 1; change >= -1; change -= 2) {
		const uint64_t by = htole64((uint64_t)change);

		TRY(kv_scan_next(&scan, &pair));
		TRY(kv_atomic(t->tx, KV_ADD, pair.key, str_of(&by, sizeof(by))));
	}
	return STATUS_OK;
}

/* Though all blocks of the level count as many entries as there are. */
static void
a_block_that_counts_what_another_one_has_is_found(void **state)
{
	struct items *f = *state;
	struct verified found;

	items_must(f, long_push_run, &(struct long_step){ false, 0, LONG_STEP });
	items_verify(f);
	items_must(f, miscount_run, NULL);
	verified_read(f->store, &found);
	assert_int_equal(found.count, 1);
	assert_memory_equal(found.last, "item_count: a block of level 1 counts ",
			    strlen("item_count: a block of level 1 counts "));
}

/* ---- Streams ---- */

/* Adds entries to a stream; with `trims` each makes room for itself, as XADD with MAXLEN does. */
struct stream_step {
	uint64_t from;
	unsigned count;
	bool trims;
};

static enum status
stream_step_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct stream_step *step = arg;
	struct str field[] = { STR("field"), STR("value") };
	struct timed_stream stream;
	struct timed_item item;

	TRY(timed_item_open(t, STR("stream"), arena, &item));
	TRY(timed_stream_get(&item, &stream));
	for (unsigned i = 0; i < step->count; i++) {
		const struct timed_entry entry = { .id = { .ms = step->from + i },
						   .fields = field,
						   .count = 2 };
		const struct timed_stream_trim trim = { .by_length = true,
							.length = STREAM_LENGTH };
		uint64_t deleted;

		TRY(timed_stream_add(&item, &stream, &entry));
		if (!step->trims)
			continue;
		TRY(timed_stream_trim(&item, &trim, &deleted));
		assert_int_equal(deleted, 1);
	}
	return STATUS_OK;
}

static void
a_stream_that_is_trimmed_reads_what_goes(void **state)
{
	struct items *f = *state;
	uint64_t next = 1;

	items_must(f, stream_step_run,
		   &(struct stream_step){ .from = next, .count = STREAM_LENGTH });
	next += STREAM_LENGTH;
	for (unsigned i = 0; i < STREAM_ROUNDS; i++) {
		items_must(f, stream_step_run, &(struct stream_step){ next, STREAM_TRIMS, true });
		next += STREAM_TRIMS;
		/* Faults cost reads of their own. */
		if (!getenv("FROND_TEST_FAULTS"))
			assert_in_range(f->cost.keys_read, STREAM_TRIMS,
					STREAM_TRIMS * STREAM_TRIM_READ);
	}
	items_verify(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_STORE(name) cmocka_unit_test_setup_teardown(name, items_setup, items_teardown)
		WITH_STORE(a_queue_does_not_step_over_what_has_gone),
		WITH_STORE(pops_of_one_transaction_look_once_whether_anything_is_left),
		WITH_STORE(pops_of_one_transaction_read_a_run_once),
		WITH_STORE(members_that_one_transaction_draws_are_read_once),
		WITH_STORE(of_a_large_set_a_transaction_reads_what_it_draws),
		WITH_STORE(a_part_of_a_value_reads_the_chunks_that_it_lies_in),
		WITH_STORE(a_page_ends_as_soon_as_it_has_its_bytes),
		WITH_STORE(a_stream_that_is_trimmed_reads_what_goes),
		WITH_STORE(a_long_queue_is_emptied_with_its_blocks),
		WITH_STORE(a_block_that_counts_what_another_one_has_is_found),
	};

	return cmocka_run_group_tests_name("queues", tests, NULL, NULL);
}

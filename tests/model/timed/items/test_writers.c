/*
 * Several writers of one sorted set and of one list: threads that write as they like, and every way
 * for two transactions to meet at a block of the order.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "items_model.h"
#include "store.h"
#include "verified.h"

/* ---- Threads that write as they like ---- */

enum {
	WRITERS = 4,
	WRITER_ROUNDS = 60,
	WRITER_ROUNDS_CLUSTER = 20, /* each conflicts with the others, and is begun again */
	WRITER_MEMBERS = 400,
	CHECKS_MOST = 100, /* beside them */
};

/* A thread that changes a sorted set and a list which the others change, too. */
struct writer {
	struct items f; /* with an arena of its own */
	struct rand_seq r;
	unsigned number;
	int64_t pushed; /* elements in the list, by what this one has done */
	_Atomic bool ended;
	bool there[WRITER_MEMBERS];
};

/* Members that only this writer has, at scores between those of the others. */
static enum status
writer_zset_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct writer *w = arg;
	struct rand_seq r = w->r;
	struct timed_member members[20] = { 0 };
	struct timed_item item;
	bool remove = rand_seq_below(&r, 3) == 0;

	TRY(timed_item_open(t, STR("zset"), arena, &item));
	for (size_t i = 0; i < 20; i++) {
		unsigned n = (unsigned)rand_seq_below(&r, WRITER_MEMBERS);

		members[i].name = arena_printf(arena, "w%u-%u", w->number, n);
		members[i].score = n;
	}
	return remove ? timed_members_delete(&item, members, 20)
		      : timed_members_put(&item, TIMED_ZSET, members, 20);
}

static void
writer_zset_note(struct writer *w)
{
	bool remove = rand_seq_below(&w->r, 3) == 0;

	for (size_t i = 0; i < 20; i++)
		w->there[rand_seq_below(&w->r, WRITER_MEMBERS)] = !remove;
}

static enum status
writer_list_run(struct timed *t, struct arena *arena, void *arg)
{
	struct writer *w = arg;
	struct rand_seq r = w->r;
	struct timed_elements got;
	struct str value = arena_printf(arena, "%u", w->number);
	struct str values[9] = { value, value, value, value, value, value, value, value, value };
	size_t count = 1 + rand_seq_below(&r, 9);
	struct timed_item item;
	bool left = rand_seq_below(&r, 2);

	TRY(timed_item_open(t, STR("list"), arena, &item));
	w->pushed = (int64_t)count;
	if (rand_seq_below(&r, 3))
		return timed_list_push(&item, left, values, count);
	TRY(timed_list_pop(&item, left, count, &got));
	w->pushed = -(int64_t)got.count;
	return STATUS_OK;
}

static void *
writer_main(void *arg)
{
	struct writer *w = arg;
	int rounds = test_store_is_cluster() ? WRITER_ROUNDS_CLUSTER : WRITER_ROUNDS;
	int64_t pushed = 0;

	for (int i = 0; i < rounds; i++) {
		items_must(&w->f, writer_zset_run, w);
		writer_zset_note(w);
		items_must(&w->f, writer_list_run, w);
		pushed += w->pushed;
		(void)rand_seq_next(&w->r);
	}
	w->pushed = pushed;
	atomic_store(&w->ended, true);
	return NULL;
}

struct totals {
	uint64_t members;
	uint64_t elements;
};

static enum status
totals_run(struct timed *t, struct arena *arena, void *arg)
{
	struct totals *ret = arg;
	struct timed_item item;

	TRY(timed_item_open(t, STR("zset"), arena, &item));
	TRY(timed_count(&item, &ret->members));
	TRY(timed_item_open(t, STR("list"), arena, &item));
	return timed_count(&item, &ret->elements);
}

static void
writers_of_one_collection_keep_its_counts_right(void **state)
{
	struct items *f = *state;
	struct writer *writers = calloc(WRITERS, sizeof(*writers));
	pthread_t threads[WRITERS];
	unsigned checks = 0;
	struct totals totals;
	uint64_t members = 0;
	int64_t elements = 0;

	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){
			.f = *f,
			.r = { test_seed() + i },
			.number = i,
		};
		writers[i].f.arena = arena_new(ITEMS_ARENA_BYTES);
		writers[i].f.clock.arg = &writers[i].f;
		/* Processes that know nothing of each other. */
		writers[i].f.maps = i % 2 ? timed_maps_new() : f->maps;
		assert_non_null(writers[i].f.maps);
		/* Processes whose clocks differ. */
		writers[i].f.now_ms += 10 * (uint64_t)i;
		assert_int_equal(pthread_create(&threads[i], NULL, writer_main, &writers[i]), 0);
	}
	/* Where a check takes long the writers would be waited for by checks that find the same. */
	do
		verified_beside_writers(f->store);
	while (++checks < CHECKS_MOST && !atomic_load(&writers[0].ended));
	for (unsigned i = 0; i < WRITERS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		arena_free(writers[i].f.arena);
		if (writers[i].f.maps != f->maps)
			timed_maps_free(writers[i].f.maps);
		elements += writers[i].pushed;
		for (size_t n = 0; n < WRITER_MEMBERS; n++)
			members += writers[i].there[n];
	}
	items_must(f, totals_run, &totals);
	assert_int_equal(totals.members, members);
	assert_int_equal(totals.elements, elements);
	items_verify(f);
	free(writers);
}

/* ---- Two transactions at one block ---- */

enum {
	MET = 400,         /* entries, of which one in 32 begins a block */
	MET_CLUSTER = 300, /* where each meeting waits for commits: some nine begin one */
};

static unsigned
met(void)
{
	return test_store_is_cluster() ? MET_CLUSTER : MET;
}

/* Two transactions that see the same state, and of which either may commit first. */
struct meeting {
	items_step *steps[2];
	unsigned entries[2]; /* what the steps are about */
	bool has_maps;
	items_step *undo; /* of either step, with the meeting as its argument; NULL: need not be */
};

/*
 * Runs both steps side by side, commits that step first, then the other. STATUS_TX_CONFLICT: that
 * conflicts. STATUS_TX_TOO_OLD: a cluster that is short of processors no longer kept what one had
 * read, and nothing is known.
 */
static enum status
meeting_try(struct items *f, const struct meeting *m, unsigned first)
{
	struct kv_tx *txs[2];
	enum status status;

	arena_clear(f->arena);
	for (unsigned step = 0; step < 2; step++) {
		unsigned entry = m->entries[step];

		txs[step] = items_open(f, m->has_maps, m->steps[step], &entry);
	}
	status = items_commit(txs[first]);
	if (status != STATUS_OK) {
		assert_int_equal(status, STATUS_TX_TOO_OLD);
		kv_tx_free(txs[!first]);
		return status;
	}
	status = items_commit(txs[!first]);
	if (status == STATUS_TX_TOO_OLD && m->undo)
		items_must(f, m->undo, (void *)(uintptr_t)m);
	return status;
}

static bool
meeting_conflicts(struct items *f, const struct meeting *m, unsigned first)
{
	enum status status;

	do
		status = meeting_try(f, m, first);
	while (status == STATUS_TX_TOO_OLD && test_store_is_cluster());
	assert_true(status == STATUS_OK || status == STATUS_TX_CONFLICT);
	return status != STATUS_OK;
}

static enum status
zset_fill(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_member *members = arena_zalloc(arena, MET * sizeof(*members));
	struct timed_item item;

	(void)arg;
	for (unsigned i = 0; i < MET; i++) {
		members[i].name = arena_printf(arena, "member%u", i);
		members[i].score = i;
	}
	TRY(timed_item_open(t, STR("many"), arena, &item));
	return timed_members_put(&item, TIMED_ZSET, members, MET);
}

static enum status
zset_add(struct timed *t, struct arena *arena, struct str name, double score)
{
	struct timed_member m = { .name = name, .score = score };
	struct timed_item item;

	TRY(timed_item_open(t, STR("many"), arena, &item));
	return timed_members_put(&item, TIMED_ZSET, &m, 1);
}

static enum status
zset_add_far(struct timed *t, struct arena *arena, void *arg)
{
	return zset_add(t, arena, STR("far"), *(const unsigned *)arg + 0.75);
}

/* Between the entry and what zset_add_far() adds. */
static enum status
zset_add_near(struct timed *t, struct arena *arena, void *arg)
{
	return zset_add(t, arena, STR("near"), *(const unsigned *)arg + 0.5);
}

static enum status
zset_remove(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_member m = { .name = arena_printf(arena, "member%u", *(const unsigned *)arg) };
	struct timed_item item;

	TRY(timed_item_open(t, STR("many"), arena, &item));
	return timed_members_delete(&item, &m, 1);
}

/* The members are those of zset_fill() again, and blocks begin where they did. */
static enum status
zset_restore(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_member added[2] = { { .name = STR("far") }, { .name = STR("near") } };
	struct timed_member removed[2] = { 0 };
	const struct meeting *m = arg;
	struct timed_item item;

	for (unsigned i = 0; i < 2; i++) {
		removed[i].name = arena_printf(arena, "member%u", m->entries[i]);
		removed[i].score = m->entries[i];
	}
	TRY(timed_item_open(t, STR("many"), arena, &item));
	TRY(timed_members_delete(&item, added, 2));
	return timed_members_put(&item, TIMED_ZSET, removed, 2);
}

/* The rank of what zset_add_far() has added is as many as are before it; and there it is found. */
static enum status
zset_ranks_agree(struct timed *t, struct arena *arena, void *arg)
{
	const struct meeting *m = arg;
	struct timed_member before[3] = { { .name = STR("far") }, { .name = STR("near") } };
	struct timed_zset_range range = { .limit = SIZE_MAX };
	struct timed_members found;
	struct timed_item item;
	uint64_t rank;
	double score;

	before[2].name = arena_printf(arena, "member%u", m->entries[0]);
	TRY(timed_item_open(t, STR("many"), arena, &item));
	TRY(timed_members_get(&item, before, 3));
	if (!before[0].found)
		return STATUS_OK;
	TRY(timed_zset_rank(&item, before[0].name, false, &rank, &score));
	assert_int_equal(rank, m->entries[0] + before[1].found + before[2].found);
	range.from = rank;
	range.to = rank + 1;
	TRY(timed_zset_range(&item, &range, &found));
	assert_int_equal(found.count, 1);
	assert_true(str_eq(found.members[0].name, before[0].name));
	return STATUS_OK;
}

static enum status
list_push(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("list"), arena, &item));
	return timed_list_push(&item, false, &STR("x"), 1);
}

/* The last element but one: whoever pushes reads the last one. */
static enum status
list_last_but_one(struct timed *t, struct arena *arena, struct timed_item *item,
		  struct timed_elements *ret)
{
	uint64_t count;

	TRY(timed_item_open(t, STR("list"), arena, item));
	TRY(timed_count(item, &count));
	return timed_list_range(item, count - 2, 1, ret);
}

static enum status
list_remove(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_elements got;
	struct timed_item item;

	(void)arg;
	TRY(list_last_but_one(t, arena, &item, &got));
	return timed_list_remove(&item, got.elements, got.count);
}

static enum status
list_insert(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_elements got;
	struct timed_item item;

	(void)arg;
	TRY(list_last_but_one(t, arena, &item, &got));
	return timed_list_insert(&item, &got.elements[0], true, STR("y"));
}

/* The last element is where the count of all has it. */
static enum status
list_end_agrees(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_elements got;
	struct timed_item item;
	uint64_t count;

	(void)arg;
	TRY(timed_item_open(t, STR("list"), arena, &item));
	TRY(timed_count(&item, &count));
	TRY(timed_list_range(&item, count - 1, 2, &got));
	assert_int_equal(got.count, 1);
	return STATUS_OK;
}

/* In one transaction, of which the first half reads what both have left. */
static enum status
zset_agree_and_restore(struct timed *t, struct arena *arena, void *arg)
{
	TRY(zset_ranks_agree(t, arena, arg));
	return zset_restore(t, arena, arg);
}

/*
 * Both orders of commits, for each entry. `begins`, or NULL: set where both have conflicted without
 * maps: with one a transaction conflicts with whoever begins or ends any block.
 */
static void
meetings_of_zset(struct items *f, struct meeting *m, bool *begins)
{
	unsigned conflicts[2] = { 0 };

	for (unsigned i = 0; i < met(); i++) {
		bool conflict[2];

		m->entries[0] = m->entries[1] = i;
		for (unsigned first = 0; first < 2; first++) {
			m->has_maps = !begins && (i + first) % 2;
			conflict[first] = meeting_conflicts(f, m, first);
			conflicts[first] += conflict[first];
			items_must(f, zset_agree_and_restore, m);
		}
		if (!begins)
			continue;
		begins[i] = conflict[0] && conflict[1];
		m->has_maps = true;
		(void)meeting_conflicts(f, m, i % 2);
		items_must(f, zset_agree_and_restore, m);
	}
	/* Where an entry begins a block, which is rare. */
	assert_in_range(conflicts[0], 1, MET / 4);
	assert_in_range(conflicts[1], 1, MET / 4);
	items_verify(f);
}

/*
 * An entry takes the block with it that it begins, and brings one. Whoever has found a block for
 * another entry meanwhile would count that in a block that is gone, or that ends before it.
 */
static void
an_entry_is_counted_in_the_block_that_it_is_in(void **state)
{
	struct items *f = *state;
	bool begins[MET];
	unsigned last = met();

	items_must(f, zset_fill, NULL);
	meetings_of_zset(
		f,
		&(struct meeting){ .steps = { zset_add_far, zset_add_near }, .undo = zset_restore },
		NULL);
	meetings_of_zset(
		f,
		&(struct meeting){ .steps = { zset_add_far, zset_remove }, .undo = zset_restore },
		begins);
	/* Two blocks, one behind the other, that both end. */
	for (unsigned i = 0; i < met(); i++) {
		struct meeting m = { .steps = { zset_remove, zset_remove },
				     .entries = { last, i },
				     .undo = zset_restore };

		for (unsigned first = 0; begins[i] && last < met() && first < 2; first++) {
			m.has_maps = first;
			assert_true(meeting_conflicts(f, &m, first));
			items_must(f, zset_restore, &m);
		}
		if (begins[i])
			last = i;
	}
	items_verify(f);
}

static void
an_element_is_counted_in_the_block_that_it_is_in(void **state)
{
	const struct meeting meetings[2] = {
		{ .steps = { list_push, list_remove } },
		{ .steps = { list_push, list_insert } },
	};
	unsigned conflicts[2] = { 0 };
	struct items *f = *state;

	items_must(f, list_push, NULL);
	items_must(f, list_push, NULL);
	for (unsigned i = 0; i < 2 * met(); i++) {
		conflicts[i % 2] += meeting_conflicts(f, &meetings[i % 2], i / 2 % 2);
		items_must(f, list_end_agrees, NULL);
		/* So that another one is the last but one. */
		items_must(f, list_push, NULL);
	}
	for (unsigned i = 0; i < 2; i++)
		assert_in_range(conflicts[i], 1, MET - 1);
	items_verify(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_STORE(name) cmocka_unit_test_setup_teardown(name, items_setup, items_teardown)
		WITH_STORE(writers_of_one_collection_keep_its_counts_right),
		WITH_STORE(an_entry_is_counted_in_the_block_that_it_is_in),
		WITH_STORE(an_element_is_counted_in_the_block_that_it_is_in),
	};

	return cmocka_run_group_tests_name("writers", tests, NULL, NULL);
}

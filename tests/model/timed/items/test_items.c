/*
 * Items: what each operation reads, and random operations against a model that keeps arrays, with
 * all ways to read an item compared after each of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/move.h"
#include "catalog/store_format.h"
#include "items_model.h"
#include "model/timed/items/item_int.h"
#include "store.h"

static void
random_operations_agree_with_a_model(void **state)
{
	struct items *f = *state;
	struct rand_seq r = { test_seed() };
	struct items_model model = { 0 };
	int rounds = test_rounds(750);

	f->packed = 0;
	for (int i = 0; i < rounds; i++) {
		struct items_compare compare = { .f = f, .random = rand_seq_next(&r) };
		struct items_change c = items_change(f, &model, &r);

		for (unsigned k = 0; k < ITEMS_KEYS; k++) {
			if (k != c.key && k != c.other)
				continue;
			compare.key = k;
			compare.m = &model.items[k];
			items_must(f, items_compare, &compare);
		}
		if (rand_seq_below(&r, 20) == 0)
			f->now_ms += 2000;
		if (rand_seq_below(&r, 50) == 0)
			items_sweep(f);
	}
	items_verify(f);
	assert_in_range(f->packed, rounds / 50, 2 * rounds);
	f->now_ms += 1000 * 1000;
	items_sweep(f);
	items_verify(f);
	for (int i = 0; i < ITEMS_KEYS; i++)
		items_model_clear(&model.items[i]);
}

/* ---- What is read ---- */

/*
 * What one transaction does is little enough for a cluster that keeps a moment to read for five
 * seconds, also where each answer takes ten milliseconds.
 */
enum {
	MANY = 5000, /* members of the sorted set "many" */
	MANY_A_TX = 100,
};

static enum status
many_run(struct timed *t, struct arena *arena, void *arg)
{
	const unsigned *first = arg;
	struct timed_member *members = arena_zalloc(arena, MANY_A_TX * sizeof(*members));
	struct timed_item item;

	for (unsigned i = 0; i < MANY_A_TX; i++) {
		members[i].name = arena_printf(arena, "member%u", *first + i);
		members[i].score = *first + i;
	}
	TRY(timed_item_open(t, STR("many"), arena, &item));
	return timed_members_put(&item, TIMED_ZSET, members, MANY_A_TX);
}

static void
many_fill(struct items *f)
{
	for (unsigned first = 0; first < MANY; first += MANY_A_TX)
		items_must(f, many_run, &first);
}

static enum status
delete_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;

	TRY(timed_item_open(t, str_from_cstr(arg), arena, &item));
	return timed_item_delete(&item);
}

static enum status
rename_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item, to;

	(void)arg;
	TRY(timed_item_ask(t, STR("many"), arena, &item));
	TRY(timed_item_ask(t, STR("moved"), arena, &to));
	TRY(timed_item_wait(&item));
	TRY(timed_item_wait(&to));
	return timed_item_rename(&item, &to);
}

static enum status
rank_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;
	uint64_t rank;
	double score;

	(void)arg;
	TRY(timed_item_open(t, STR("many"), arena, &item));
	TRY(timed_zset_rank(&item, STR("member3777"), false, &rank, &score));
	assert_int_equal(rank, 3777);
	return STATUS_OK;
}

static enum status
select_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct timed_zset_range range = { .from = 2999, .to = 3000, .limit = SIZE_MAX };
	struct timed_members got;
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("many"), arena, &item));
	TRY(timed_zset_range(&item, &range, &got));
	assert_int_equal(got.count, 1);
	assert_true(str_eq(got.members[0].name, STR("member2999")));
	return STATUS_OK;
}

static void
a_collection_is_deleted_renamed_and_counted_without_reading_it(void **state)
{
	struct items *f = *state;

	many_fill(f);
	items_must(f, rank_run, NULL);
	assert_in_range(f->cost.keys_read, 5, 500);
	items_must(f, select_run, NULL);
	assert_in_range(f->cost.keys_read, 5, 500);
	items_must(f, rename_run, NULL);
	assert_int_equal(f->cost.keys_read, 2); /* the header, the clock */
	assert_true(f->cost.sets < 10);
	items_must(f, delete_run, (char[]){ "moved" });
	assert_int_equal(f->cost.keys_read, 2);
	assert_int_equal(items_pairs(f, SPACE_ROWS), 0);
	items_verify(f);
	items_sweep(f);
	assert_int_equal(items_pairs(f, SPACE_BODY), 0);
	assert_int_equal(items_pairs(f, SPACE_GONE), 0);
}

enum {
	PAGED = MANY, /* in pages of */
	PAGE = 256,
	DRAWS = 20000,
	/* On a cluster, where a read takes long: what draws is the same code. */
	DRAWS_CLUSTER = PAGED,
	DRAWS_A_CALL = 50,
	CHI_SQUARE_MOST = 5600, /* of 4,999 degrees of freedom: six deviations above the mean */
};

static enum status
pages_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_members page = { 0 };
	struct timed_item item;
	size_t seen = 0;

	(void)arg;
	TRY(timed_item_open(t, STR("many"), arena, &item));
	do {
		TRY(timed_members_page(&item, page.next, PAGE, &page));
		seen += page.count;
	} while (page.next);
	assert_int_equal(seen, PAGED);
	return STATUS_OK;
}

static enum status
short_page_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_members page;
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("many"), arena, &item));
	TRY(timed_members_page(&item, 0, 10, &page));
	assert_in_range(page.count, 10, 20);
	return STATUS_OK;
}

static enum status
elements_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_elements e;
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("list"), arena, &item));
	for (uint64_t from = 0; from < PAGED; from += PAGE) {
		TRY(timed_list_range(&item, from, PAGE, &e));
		assert_int_equal(e.count, PAGED - from < PAGE ? PAGED - from : PAGE);
	}
	return STATUS_OK;
}

enum {
	PUSHES = 250, /* calls in one transaction */
	PUSHES_READ =
		50, /* keys, also if the list gets one more level: then its blocks are added up */
	LOWERED = 250, /* members that get other scores in one transaction */
};

static enum status pushes_run(struct timed *t, struct arena *arena, void *arg);

static void
a_page_reads_what_it_answers(void **state)
{
	struct items *f = *state;

	many_fill(f);
	for (unsigned first = 0; first < PAGED; first += PUSHES)
		items_must(f, pushes_run, &(bool){ false });
	items_must(f, pages_run, NULL);
	assert_in_range(f->cost.keys_read, PAGED, PAGED + PAGED / 4);
	items_must(f, short_page_run, NULL);
	assert_in_range(f->cost.keys_read, 10, 30);
	/* A sixteenth of them: there are 32 in a pair. Besides, blocks of each level. */
	items_must(f, elements_run, NULL);
	assert_in_range(f->cost.keys_read, PAGED / 32, PAGED);
}

struct drawing {
	unsigned seen[PAGED];
	bool again;
};

static enum status
draw_run(struct timed *t, struct arena *arena, void *arg)
{
	struct drawing *d = arg;
	struct timed_members drawn;
	struct timed_item item;

	TRY(timed_item_open(t, STR("many"), arena, &item));
	TRY(timed_members_draw(&item, DRAWS_A_CALL, d->again, &drawn));
	assert_int_equal(drawn.count, DRAWS_A_CALL);
	for (size_t i = 0; i < drawn.count; i++) {
		struct timed_member m = { .name = drawn.members[i].name };
		uint64_t number;

		assert_true(str_to_u64(str_skip(m.name, strlen("member")), &number));
		assert_in_range(number, 0, PAGED - 1);
		assert_true(drawn.members[i].score == (double)number);
		d->seen[number]++;
	}
	return STATUS_OK;
}

static enum status
draw_too_many_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_members drawn;
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("many"), arena, &item));
	return timed_members_draw(&item, PAGED / 4, false, &drawn);
}

static void
members_are_drawn_alike_and_few_are_read(void **state)
{
	struct items *f = *state;
	struct drawing d = { .again = true };
	unsigned draws = test_store_is_cluster() ? DRAWS_CLUSTER : DRAWS;
	double chi_square = 0, expected = (double)draws / PAGED;

	many_fill(f);
	for (unsigned i = 0; i < draws / DRAWS_A_CALL; i++)
		items_must(f, draw_run, &d);
	/* Some fifty for each; ten deviations are far below twice as many. */
	assert_in_range(f->cost.keys_read, DRAWS_A_CALL, DRAWS_A_CALL * 100);
	for (unsigned i = 0; i < PAGED; i++)
		chi_square += (d.seen[i] - expected) * (d.seen[i] - expected) / expected;
	if (chi_square > CHI_SQUARE_MOST)
		fail_msg("chi square is %f", chi_square);
	d = (struct drawing){ .again = false };
	items_must(f, draw_run, &d);
	for (unsigned i = 0; i < PAGED; i++)
		assert_true(d.seen[i] <= 1);
	assert_int_equal(items_try(f, "0", draw_too_many_run, NULL), STATUS_NOT_FOUND);
}

/* Pushes one by one, and asks after each how long the list is, as a client's pipeline does. */
static enum status
pushes_run(struct timed *t, struct arena *arena, void *arg)
{
	const bool *left = arg;
	struct timed_item item;
	uint64_t before, count;

	TRY(timed_item_open(t, STR("list"), arena, &item));
	TRY(timed_count(&item, &before));
	for (unsigned i = 0; i < PUSHES; i++) {
		TRY(timed_list_push(&item, *left, &STR("x"), 1));
		TRY(timed_count(&item, &count));
		assert_int_equal(count, before + i + 1);
	}
	return STATUS_OK;
}

/* Gives members that are there lower scores, looking at each before. */
static enum status
lower_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("many"), arena, &item));
	for (unsigned i = MANY; i-- > MANY - LOWERED;) {
		struct timed_member m = { .name = arena_printf(arena, "member%u", i) };

		TRY(timed_members_get(&item, &m, 1));
		assert_true(m.found && m.score == i);
		m.known = true;
		m.old_score = m.score;
		m.score -= 0.5;
		TRY(timed_members_put(&item, TIMED_ZSET, &m, 1));
	}
	return STATUS_OK;
}

static void
changes_of_one_transaction_look_for_ends_and_blocks_once(void **state)
{
	struct items *f = *state;

	for (int round = 0; round < 6; round++)
		items_must(f, pushes_run, &(bool){ round % 2 });
	/* At the left: the count of the first block that is divided, on each level. */
	items_must(f, pushes_run, &(bool){ true });
	assert_in_range(f->cost.keys_read, 4, PUSHES_READ);
	/* At the right: the last block of each level. */
	items_must(f, pushes_run, &(bool){ false });
	assert_in_range(f->cost.keys_read, 4, PUSHES_READ);
	many_fill(f);
	items_must(f, lower_run, NULL);
	/* The member, its block at the old score, and what it takes to divide blocks. */
	assert_in_range(f->cost.keys_read, LOWERED, 6 * LOWERED);
	items_verify(f);
}

static void
member_is(struct timed_item *item, bool found, double score)
{
	struct timed_member m = { .name = STR("member") };

	assert_int_equal(timed_members_get(item, &m, 1), STATUS_OK);
	assert_int_equal(m.found, found);
	assert_true(!found || m.score == score);
}

static enum status
member_put(struct timed_item *item, double score)
{
	struct timed_member m = { .name = STR("member"), .score = score };

	return timed_members_put(item, TIMED_ZSET, &m, 1);
}

/* Looks at one member again and again, between changes of it and of the whole item. */
static enum status
member_again_run(struct timed *t, struct arena *arena, void *arg)
{
	static char too_long[TIMED_WHOLE_BYTES + 1]; /* so that the set lies in a body */
	struct timed_member other = { .score = 7 };
	struct timed_member m = { .name = STR("member") };
	struct timed_item item;

	(void)arg;
	memset(too_long, 'o', sizeof(too_long));
	other.name = str_of(too_long, sizeof(too_long));
	TRY(timed_item_open(t, STR("again"), arena, &item));
	TRY(timed_members_put(&item, TIMED_ZSET, &other, 1));
	member_is(&item, false, 0);
	member_is(&item, false, 0);
	TRY(member_put(&item, 1));
	member_is(&item, true, 1);
	member_is(&item, true, 1);
	TRY(member_put(&item, 2));
	member_is(&item, true, 2);
	TRY(timed_members_delete(&item, &m, 1));
	member_is(&item, false, 0);
	TRY(member_put(&item, 3));
	member_is(&item, true, 3);
	TRY(timed_item_delete(&item));
	member_is(&item, false, 0);
	TRY(timed_members_put(&item, TIMED_ZSET, &other, 1));
	return member_put(&item, 4);
}

static enum status
member_often_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("again"), arena, &item));
	for (unsigned i = 0; i < 100; i++)
		member_is(&item, true, 4);
	return STATUS_OK;
}

static void
a_member_is_read_again_only_after_a_change(void **state)
{
	struct items *f = *state;

	items_must(f, member_again_run, NULL);
	items_verify(f);
	items_must(f, member_often_run, NULL);
	/* The header, the clock, the member. */
	assert_int_equal(f->cost.keys_read, 3);
}

enum {
	RUN_ELEMENTS = 640, /* pushed by one transaction */
	/* About one in 32 begins a pair; besides, blocks, the count and the stamp. */
	RUN_PAIRS = RUN_ELEMENTS / 4,
	RUN_POPS_CLUSTER = 16,
	LONG_PUSH = 50000,
};

static enum status
run_push_run(struct timed *t, struct arena *arena, void *arg)
{
	const bool *left = arg;
	struct timed_item item;

	TRY(timed_item_open(t, STR("run"), arena, &item));
	for (unsigned i = 0; i < RUN_ELEMENTS; i++) {
		struct str value = arena_printf(arena, "%u", i);

		TRY(timed_list_push(&item, *left, &value, 1));
	}
	return STATUS_OK;
}

/* More than a transaction has room for if each element is a pair of its own. */
static enum status
long_push_run(struct timed *t, struct arena *arena, void *arg)
{
	struct str *values = arena_alloc(arena, LONG_PUSH * sizeof(*values));
	struct timed_item item;
	uint64_t count;

	for (size_t i = 0; i < LONG_PUSH; i++)
		values[i] = STR("x");
	TRY(timed_item_open(t, STR("long"), arena, &item));
	TRY(timed_list_push(&item, *(const bool *)arg, values, LONG_PUSH));
	TRY(timed_count(&item, &count));
	assert_int_equal(count, LONG_PUSH);
	return timed_item_delete(&item);
}

/* `count` elements, one by one in one transaction; each is below the one before, or above it. */
struct run_pop {
	bool left;
	bool falls;
	unsigned expected; /* the first */
	unsigned count;
};

static enum status
run_pop_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct run_pop *p = arg;
	struct timed_elements got;
	struct timed_item item;

	TRY(timed_item_open(t, STR("run"), arena, &item));
	for (unsigned i = 0; i < p->count; i++) {
		unsigned expected = p->falls ? p->expected - i : p->expected + i;

		TRY(timed_list_pop(&item, p->left, 1, &got));
		assert_int_equal(got.count, 1);
		assert_true(str_eq(got.elements[0].value, arena_printf(arena, "%u", expected)));
	}
	return STATUS_OK;
}

static void
elements_of_one_transaction_share_pairs(void **state)
{
	/* A transaction for each element is much waiting on a cluster, and no other code. */
	unsigned step = test_store_is_cluster() ? RUN_POPS_CLUSTER : 1;
	struct items *f = *state;
	size_t before;

	for (unsigned way = 0; way < 4; way++) {
		bool left = way % 2, from_left = way / 2;

		before = items_pairs(f, SPACE_BODY);
		items_must(f, run_push_run, &left);
		assert_in_range(items_pairs(f, SPACE_BODY) - before, RUN_ELEMENTS / 32, RUN_PAIRS);
		items_verify(f);
		for (unsigned i = 0; i < RUN_ELEMENTS; i += step) {
			bool falls = left == from_left;
			unsigned n = falls ? RUN_ELEMENTS - 1 - i : i;

			items_must(f, run_pop_run, &(struct run_pop){ from_left, falls, n, step });
			if (i % 128 == 64)
				items_verify(f);
		}
		items_verify(f);
		items_sweep(f);
		assert_int_equal(items_pairs(f, SPACE_BODY), before);
		items_must(f, long_push_run, &left);
		items_sweep(f);
	}
}

/* Steps in one transaction, each of which waits for several reads. */
static unsigned
mix_steps(void)
{
	return test_store_is_cluster() ? 15 : 100;
}

/* A list, in one transaction: every kind of change after every other one. */
static enum status
list_mix_run(struct timed *t, struct arena *arena, void *arg)
{
	struct rand_seq *r = arg;
	struct str values[40];
	struct timed_elements got;
	struct timed_item item;
	uint64_t count;

	for (size_t i = 0; i < 40; i++)
		values[i] = STR("x");
	TRY(timed_item_open(t, STR("list"), arena, &item));
	for (unsigned i = 0; i < mix_steps(); i++) {
		bool left = rand_seq_below(r, 2);
		size_t n = rand_seq_below(r, 40);

		TRY(timed_count(&item, &count));
		switch (rand_seq_below(r, 4)) {
		case 0:
			TRY(timed_list_pop(&item, left, n, &got));
			count -= got.count;
			break;
		case 1:
			TRY(timed_list_range(&item, rand_seq_below(r, count + 1), 1, &got));
			if (got.count)
				TRY(timed_list_insert(&item, &got.elements[0], left, STR("y")));
			count += got.count;
			break;
		default:
			TRY(timed_list_push(&item, left, values, n));
			count += n;
		}
		TRY(timed_list_range(&item, count ? count - 1 : 0, 2, &got));
		assert_int_equal(got.count, count > 0);
	}
	return STATUS_OK;
}

/* The same with a sorted set. */
static enum status
zset_mix_run(struct timed *t, struct arena *arena, void *arg)
{
	struct rand_seq *r = arg;
	struct timed_item item;

	TRY(timed_item_open(t, STR("zset"), arena, &item));
	for (unsigned i = 0; i < mix_steps(); i++) {
		struct timed_member members[30] = { 0 };

		for (size_t k = 0; k < 30; k++) {
			members[k].name = arena_printf(arena, "%d", (int)rand_seq_below(r, 3000));
			members[k].score = (double)rand_seq_below(r, 3000);
		}
		if (rand_seq_below(r, 3))
			TRY(timed_members_put(&item, TIMED_ZSET, members, 30));
		else
			TRY(timed_members_delete(&item, members, 30));
	}
	return STATUS_OK;
}

static void
changes_of_one_transaction_keep_blocks_right(void **state)
{
	struct items *f = *state;
	struct rand_seq r = { test_seed() };

	for (int round = 0; round < 5; round++) {
		items_must(f, list_mix_run, &r);
		items_must(f, zset_mix_run, &r);
		items_verify(f);
	}
}

/* Gives a few members of a large sorted set other scores, in the middle of a level's blocks. */
static enum status
moves_run(struct timed *t, struct arena *arena, void *arg)
{
	struct rand_seq *r = arg;
	struct timed_item item;

	TRY(timed_item_open(t, STR("many"), arena, &item));
	for (unsigned i = 0; i < 20; i++) {
		struct timed_member m = {
			.name = arena_printf(arena, "member%u", (unsigned)rand_seq_below(r, 5000)),
			.score = (double)rand_seq_below(r, 5000) + 0.25,
		};

		TRY(timed_members_put(&item, TIMED_ZSET, &m, 1));
	}
	return STATUS_OK;
}

/* Two maps, as of two processes, and now and then a transaction without one (step_body()). */
static void
a_map_tells_where_blocks_of_a_sorted_set_begin(void **state)
{
	struct items *f = *state;
	struct timed_maps *mine = f->maps, *other = timed_maps_new();
	struct rand_seq r = { test_seed() };
	uint64_t reads;

	assert_non_null(other);
	many_fill(f);
	for (unsigned round = 0; round < 90; round++) {
		f->maps = round / 10 % 2 ? other : mine;
		items_must(f, moves_run, &r);
	}
	items_verify(f);
	/* What a map has learned, while nobody else changes where blocks begin. */
	f->maps = mine;
	for (unsigned round = 0; round < 60; round++) {
		f->steps = 1;
		items_must(f, moves_run, &r);
	}
	reads = f->cost.reads;
	f->steps = 0;
	items_must(f, moves_run, &r);
	/* Without it, most of what is changed has two levels looked for, at both scores. */
	assert_in_range(reads, 20, f->cost.reads - 30);
	items_verify(f);
	timed_maps_free(other);
}

static enum status
put_and_copy_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_member member = { .name = STR("m"), .value = STR("v") };
	struct timed_item item, to;
	uint64_t count;

	(void)arg;
	TRY(timed_item_open(t, STR("from"), arena, &item));
	TRY(timed_item_open(t, STR("to"), arena, &to));
	TRY(timed_members_put(&item, TIMED_HASH, &member, 1));
	TRY(timed_item_copy(&item, &to));
	TRY(timed_members_get(&to, &member, 1));
	assert_true(member.found);
	TRY(timed_count(&to, &count));
	assert_int_equal(count, 1);
	TRY(timed_item_delete(&item));
	return timed_item_rename(&to, &item);
}

static void
a_transaction_uses_what_it_has_written(void **state)
{
	struct items *f = *state;

	items_must(f, put_and_copy_run, NULL);
	assert_int_equal(items_pairs(f, SPACE_ROWS), 1);
	items_verify(f);
}

/* ---- Members that expire ---- */

static enum status
fields_run(struct timed *t, struct arena *arena, void *arg)
{
	const uint64_t *expires_ms = arg;
	struct timed_member members[2] = { { .name = STR("x"), .value = STR("1") },
					   { .name = STR("y"), .value = STR("2") } };
	struct timed_item item;

	TRY(timed_item_open(t, STR("h"), arena, &item));
	TRY(timed_members_put(&item, TIMED_HASH, members, 2));
	TRY(timed_member_expire(&item, STR("x"), *expires_ms));
	return timed_member_expire(&item, STR("y"), *expires_ms + 1000);
}

static enum status
fields_found(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_member members[2] = { { .name = STR("x") }, { .name = STR("y") } };
	struct timed_item item;
	int *ret = arg;

	TRY(timed_item_open(t, STR("h"), arena, &item));
	TRY(timed_members_get(&item, members, 2));
	*ret = members[0].found + 2 * members[1].found + 4 * (item.type == TIMED_HASH);
	return STATUS_OK;
}

static void
fields_expire_and_the_hash_goes_with_the_last(void **state)
{
	struct items *f = *state;
	uint64_t expires_ms = f->now_ms + 1000;
	int there;

	items_must(f, fields_run, &expires_ms);
	items_must(f, fields_found, &there);
	assert_int_equal(there, 7);
	f->now_ms += 1000;
	items_must(f, fields_found, &there);
	assert_int_equal(there, 6);
	items_sweep(f);
	items_verify(f);
	items_must(f, fields_found, &there);
	assert_int_equal(there, 6);
	f->now_ms += 1000;
	items_sweep(f);
	items_must(f, fields_found, &there);
	assert_int_equal(there, 0);
	assert_int_equal(items_pairs(f, SPACE_ROWS), 0);
	assert_int_equal(items_pairs(f, SPACE_BODY), 0);
	assert_int_equal(items_pairs(f, SPACE_EXPIRY), 0);
	items_verify(f);
}

/* ---- Values of more than one transaction ---- */

enum {
	STAGED_BYTES = 9 * 1000 * 1000,
	STAGED_OFFSET = 5 * 1000 * 1000 + 7,
};

struct staging {
	struct timed_stages stages;
	struct timed_stage stage, next;
	struct str bytes;
	uint64_t offset;
	bool patches;
	enum status status;
	struct str read; /* what the item has; malloc'd */
};

static enum status
staged_write(struct timed *t, struct arena *arena, void *arg)
{
	struct staging *s = arg;
	struct timed_item item;

	t->stages = &s->stages;
	s->stages = (struct timed_stages){ .allowed = true,
					   .first = s->stage.complete ? &s->stage : NULL };
	TRY(timed_item_open(t, STR("big"), arena, &item));
	if (s->patches)
		s->status = timed_value_write(&item, s->offset, s->bytes);
	else
		s->status = timed_value_set(&item, s->bytes,
					    (struct timed_expiry){ .kind = TIMED_EXPIRY_NEVER });
	return s->stages.is_wanted ? STATUS_OK : s->status;
}

static enum status
staged_part(struct timed *t, struct arena *arena, void *arg)
{
	struct staging *s = arg;

	s->next = s->stage;
	return timed_stage_write(t, &s->next, arena);
}

static enum status
staged_read(struct timed *t, struct arena *arena, void *arg)
{
	struct staging *s = arg;
	struct timed_item item;
	struct str value;
	char *copy;

	free((char *)(uintptr_t)s->read.ptr);
	s->read = (struct str){ NULL, 0 };
	TRY(timed_item_open(t, STR("big"), arena, &item));
	TRY(timed_value_get(&item, 0, item.length, &value));
	copy = malloc(value.len + 1);
	assert_non_null(copy);
	if (value.len)
		memcpy(copy, value.ptr, value.len);
	s->read = str_of(copy, value.len);
	return STATUS_OK;
}

/* Asks for the write, and stages a part of what it wants. */
static void
staging_begin(struct items *f, struct staging *s)
{
	s->stage = (struct timed_stage){ 0 };
	items_must(f, staged_write, s);
	assert_int_equal(s->status, STATUS_VALUE_TOO_LARGE);
	assert_true(s->stages.is_wanted);
	s->stage = s->stages.wanted;
	items_must(f, staged_part, s);
	s->stage = s->next;
	assert_false(s->stage.complete || s->stage.stale);
}

static void
staging_finish(struct items *f, struct staging *s)
{
	while (!s->stage.complete && !s->stage.stale) {
		items_must(f, staged_part, s);
		s->stage = s->next;
	}
	items_must(f, staged_write, s);
}

static enum status
append_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("big"), arena, &item));
	return timed_value_write(&item, item.length, STR("tail"));
}

static void
a_value_of_many_transactions_is_there_as_a_whole_or_not_at_all(void **state)
{
	struct items *f = *state;
	struct staging s = { 0 };
	char *bytes = malloc(STAGED_BYTES);

	assert_non_null(bytes);
	for (size_t i = 0; i < STAGED_BYTES; i++)
		bytes[i] = (char)(i * 2654435761U >> 11);
	s.bytes = str_of(bytes, STAGED_BYTES);

	/* Abandoned: it goes when its time has come, and who comes back later is told so. */
	staging_begin(f, &s);
	items_verify(f);
	items_sweep(f);
	assert_true(items_pairs(f, SPACE_BODY) > 0);
	f->now_ms += TIMED_STAGE_MS + 1;
	items_sweep(f);
	assert_int_equal(items_pairs(f, SPACE_BODY), 0);
	assert_int_equal(items_pairs(f, SPACE_EXPIRY), 0);
	staging_finish(f, &s);
	assert_true(s.stage.stale && s.stages.is_wanted);

	staging_begin(f, &s);
	staging_finish(f, &s);
	assert_int_equal(s.status, STATUS_OK);
	items_must(f, staged_read, &s);
	assert_true(str_eq(s.read, s.bytes));
	assert_int_equal(items_pairs(f, SPACE_EXPIRY), 0);
	items_verify(f);

	/* A part of it: only of the value as it was when that was asked for. */
	s.patches = true;
	s.offset = STAGED_OFFSET;
	staging_begin(f, &s);
	items_must(f, append_run, NULL);
	staging_finish(f, &s);
	assert_true(s.stage.stale && s.stages.is_wanted);
	staging_begin(f, &s);
	staging_finish(f, &s);
	assert_int_equal(s.status, STATUS_OK);
	items_must(f, staged_read, &s);
	assert_int_equal(s.read.len, STAGED_OFFSET + STAGED_BYTES);
	assert_memory_equal(s.read.ptr, bytes, STAGED_OFFSET);
	assert_memory_equal(s.read.ptr + STAGED_OFFSET, bytes, STAGED_BYTES);
	items_verify(f);
	f->now_ms += TIMED_STAGE_MS + 1;
	items_sweep(f);
	items_verify(f);
	assert_int_equal(items_pairs(f, SPACE_GONE), 0);
	free((char *)(uintptr_t)s.read.ptr);
	free(bytes);
}

static enum status
other_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	TRY(timed_items_create(tx, STR("14"), NULL));
	return timed_items_create(tx, STR("15"), NULL);
}

/* A database gets another number by a move; a body then still knows which header it belongs to. */
static void
fields_expire_also_after_a_move(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct items *f = *state;
	uint64_t expires_ms = f->now_ms + 1000;
	struct catalog_move_options move = {
		.from = f->store,
		.from_url = "here",
		.to_url = "there",
		.space = CATALOG_SPACE_REDIS,
		.name = STR("0"),
	};
	struct catalog_move_sum sum;
	char url[128];
	int there;

	items_must(f, fields_run, &expires_ms);
	(void)snprintf(url, sizeof(url), "embedded:%s/target", f->dir);
	assert_int_equal(catalog_store_open(url, &options, &move.to, &f->err), STATUS_OK);
	/* The first database of a store has the number that the other one had at its source. */
	assert_int_equal(kv_run(move.to, other_body, NULL, NULL, &f->err), STATUS_OK);
	if (catalog_move(&move, &sum, &f->err) != STATUS_OK)
		fail_msg("%s", f->err.text);
	kv_close(f->store);
	f->store = move.to;
	items_must(f, fields_found, &there);
	assert_int_equal(there, 7);
	f->now_ms += 1000;
	items_sweep(f);
	items_verify(f);
	f->now_ms += 1000;
	items_sweep(f);
	items_must(f, fields_found, &there);
	assert_int_equal(there, 0);
	assert_int_equal(items_pairs(f, SPACE_BODY), 0);
	items_verify(f);
}

/* ---- Databases ---- */

static enum status
page_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_items page;
	uint64_t from = 0, count;
	size_t *ret = arg;

	*ret = 0;
	do {
		TRY(timed_items_page(t, from, 7, arena, &page));
		for (size_t i = 0; i < page.count; i++)
			assert_true(str_starts_with(page.items[i].key, STR("key")));
		*ret += page.count;
		from = page.next;
	} while (from);
	TRY(timed_items_count(t, &count));
	assert_int_equal(count, *ret);
	return STATUS_OK;
}

static enum status
keys_run(struct timed *t, struct arena *arena, void *arg)
{
	(void)arg;
	for (int i = 0; i < 100; i++) {
		struct timed_item item;

		TRY(timed_item_open(t, arena_printf(arena, "key%d", i), arena, &item));
		TRY(timed_value_set(&item, STR("v"), (struct timed_expiry){ 0 }));
	}
	return STATUS_OK;
}

static enum status
flush_run(struct timed *t, struct arena *arena, void *arg)
{
	(void)arena;
	(void)arg;
	return timed_items_flush(t);
}

static void
pages_count_and_flush_are_of_one_database(void **state)
{
	struct items *f = *state;
	size_t count;

	items_must(f, keys_run, NULL);
	items_must(f, page_run, &count);
	assert_int_equal(count, 100);
	assert_int_equal(items_try(f, "15", page_run, &count), STATUS_OK);
	assert_int_equal(count, 0);
	assert_int_equal(items_try(f, "15", keys_run, NULL), STATUS_OK);
	items_must(f, flush_run, NULL);
	items_must(f, page_run, &count);
	assert_int_equal(count, 0);
	assert_int_equal(items_try(f, "15", page_run, &count), STATUS_OK);
	assert_int_equal(count, 100);
	items_verify(f);
}

/* ---- Those who wait to be told of what expires ---- */

struct told {
	bool waits;
	char text[256];      /* "key key.field …", of each sweep */
	struct str removing; /* the first, of an attempt */
};

static bool
told_waits(void *arg)
{
	const struct told *told = arg;

	return told->waits;
}

static void
told_before(void *arg, const struct timed_expired *first)
{
	struct told *told = arg;

	told->removing = first->key;
}

static void
told_of(void *arg, const struct timed_expired *first)
{
	struct told *told = arg;
	size_t len = strlen(told->text);

	/* Of what it was told before the commit. */
	assert_true(!first || str_eq(first->key, told->removing));
	for (const struct timed_expired *what = first; what; what = what->next)
		len += (size_t)snprintf(told->text + len, sizeof(told->text) - len, "%s%.*s:%.*s%s",
					len ? " " : "", (int)what->db.len, what->db.ptr,
					(int)what->key.len, what->key.ptr,
					what->member ? ".field" : "");
}

/* Writes a key that expires in so many milliseconds. */
static enum status
expiring_run(struct timed *t, struct arena *arena, void *arg)
{
	const unsigned *ms = arg;
	struct timed_item item;

	TRY(timed_item_open(t, arena_printf(arena, "in%u", *ms), arena, &item));
	TRY(timed_value_set(&item, STR("v"), (struct timed_expiry){ TIMED_EXPIRY_AFTER, *ms }));
	assert_int_equal(t->soonest_ms, t->now_us / 1000 + *ms);
	/* The soonest of several. */
	TRY(timed_item_open(t, arena_printf(arena, "later than in%u", *ms), arena, &item));
	TRY(timed_value_set(&item, STR("v"), (struct timed_expiry){ TIMED_EXPIRY_AFTER, 900000 }));
	assert_int_equal(t->soonest_ms, t->now_us / 1000 + *ms);
	return STATUS_OK;
}

/* A sweep when so many milliseconds have passed; returns when it wants the next one. */
static uint64_t
sweep_in(struct items *f, struct told *told, uint64_t ms)
{
	const struct timed_listener listener = { told_waits, told_before, told_of, told };
	const struct timed_sweeping s = { f->store, &f->clock, &listener };
	struct timed_swept_all swept = { .more = true };

	f->now_ms += ms;
	told->text[0] = '\0';
	while (swept.more)
		assert_int_equal(timed_sweep_telling(&s, 10, &swept, &f->err), STATUS_OK);
	return swept.soon_ms;
}

static void
a_sweep_tells_what_has_gone_and_when_the_next_expires(void **state)
{
	struct items *f = *state;
	struct told told = { .waits = true };

	assert_int_equal(sweep_in(f, &told, 0), TIMED_SOON_MS);
	items_must(f, expiring_run, &(unsigned){ 5000 });
	items_must(f, expiring_run, &(unsigned){ 700 });
	assert_int_equal(items_try(f, "15", expiring_run, &(unsigned){ 720 }), STATUS_OK);
	/* Nothing has to be done, and nothing expires within the pause but these. */
	assert_int_equal(sweep_in(f, &told, 0), 701);
	assert_string_equal(told.text, "");
	assert_int_equal(sweep_in(f, &told, 699), 2);
	assert_string_equal(told.text, "");
	assert_int_equal(sweep_in(f, &told, 2), 20);
	assert_string_equal(told.text, "0:in700");
	assert_int_equal(sweep_in(f, &told, 20), TIMED_SOON_MS);
	assert_string_equal(told.text, "15:in720");
	assert_int_equal(sweep_in(f, &told, 3500), 780);
	/* While nobody waits nothing is asked. */
	told.waits = false;
	assert_int_equal(sweep_in(f, &told, 0), TIMED_SOON_MS);
	assert_int_equal(sweep_in(f, &told, 780), TIMED_SOON_MS);
	assert_string_equal(told.text, "0:in5000");
	items_verify(f);
}

/* A list of one element, at a position of so many bytes, and what reading it says. */
struct position {
	size_t bytes;
	bool push; /* reads it to push something behind it */
	enum status status;
};

static enum status
position_make(struct timed *t, struct arena *arena, void *arg)
{
	const struct position *p = arg;
	char place[TIMED_PLACE_BYTES + 8] = { '\x80' };
	struct timed_elements got;
	struct str key, value;
	struct timed_item item;

	TRY(timed_item_open(t, STR("list"), arena, &item));
	TRY(timed_list_push(&item, false, &STR("x"), 1));
	TRY(timed_list_range(&item, 0, 1, &got));
	TRY(timed_list_set(&item, &got.elements[0], STR("alone in its pair")));
	TRY(timed_order_key(&item, got.elements[0].place, &key));
	TRY(timed_data_get(t, key, KV_READ, arena, &value));
	TRY(timed_data_clear(t, key));
	TRY(timed_order_key(&item, str_of(place, p->bytes), &key));
	return timed_data_set(t, key, value);
}

static enum status
position_read(struct timed *t, struct arena *arena, void *arg)
{
	struct position *p = arg;
	struct timed_elements got;
	struct timed_item item;

	TRY(timed_item_open(t, STR("list"), arena, &item));
	p->status = p->push ? timed_list_push(&item, false, &STR("x"), 1)
			    : timed_list_range(&item, 0, 1, &got);
	return p->status == STATUS_CORRUPT ? STATUS_OK : p->status;
}

static void
a_position_of_a_list_has_whole_numbers_and_a_limit(void **state)
{
	static const size_t good[] = { 8, 12, TIMED_PLACE_BYTES };
	static const size_t bad[] = { 4, 9, 10, TIMED_PLACE_BYTES + 4 };
	struct items *f = *state;

	for (unsigned i = 0; i < 2 * (sizeof(good) + sizeof(bad)) / sizeof(*good); i++) {
		bool is_good = i / 2 < sizeof(good) / sizeof(*good);
		struct position p = {
			.bytes = is_good ? good[i / 2] : bad[i / 2 - sizeof(good) / sizeof(*good)],
			.push = i % 2,
		};

		items_must(f, position_make, &p);
		items_must(f, position_read, &p);
		assert_int_equal(p.status, is_good ? STATUS_OK : STATUS_CORRUPT);
		items_must(f, delete_run, (char[]){ "list" });
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_STORE(name) cmocka_unit_test_setup_teardown(name, items_setup, items_teardown)
		WITH_STORE(a_collection_is_deleted_renamed_and_counted_without_reading_it),
		WITH_STORE(a_page_reads_what_it_answers),
		WITH_STORE(members_are_drawn_alike_and_few_are_read),
		WITH_STORE(changes_of_one_transaction_look_for_ends_and_blocks_once),
		WITH_STORE(elements_of_one_transaction_share_pairs),
		WITH_STORE(a_member_is_read_again_only_after_a_change),
		WITH_STORE(changes_of_one_transaction_keep_blocks_right),
		WITH_STORE(a_map_tells_where_blocks_of_a_sorted_set_begin),
		WITH_STORE(a_transaction_uses_what_it_has_written),
		WITH_STORE(fields_expire_and_the_hash_goes_with_the_last),
		WITH_STORE(a_value_of_many_transactions_is_there_as_a_whole_or_not_at_all),
		WITH_STORE(fields_expire_also_after_a_move),
		WITH_STORE(pages_count_and_flush_are_of_one_database),
		WITH_STORE(a_sweep_tells_what_has_gone_and_when_the_next_expires),
		WITH_STORE(a_position_of_a_list_has_whole_numbers_and_a_limit),
		WITH_STORE(random_operations_agree_with_a_model),
	};

	return cmocka_run_group_tests_name("items", tests, NULL, NULL);
}

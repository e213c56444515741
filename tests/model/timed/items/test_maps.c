/*
 * Which sorted sets a process keeps maps of (blocks_map.c): those that it has changed last. A set
 * that has a map is changed with fewer reads. The same of sets that it draws from (names_map.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "items_model.h"
#include "store.h"

enum {
	MAPS = 8, /* that a process keeps */
	SETS = MAPS + 1,
	MEMBERS = 3000, /* of each, so that its blocks have two levels */
	CHANGED = 20,   /* members, over all of it: few begin blocks, for which maps spare less */
	CHANGES = 20,   /* of both kinds: then a set has a map that knows their blocks */
};

static enum status
fill(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_member *members = arena_zalloc(arena, MEMBERS * sizeof(*members));
	struct timed_item item;

	assert_non_null(members);
	for (unsigned i = 0; i < MEMBERS; i++) {
		members[i].name = arena_printf(arena, "member%u", i);
		members[i].score = i;
	}
	TRY(timed_item_open(t, arena_printf(arena, "set%u", *(const unsigned *)arg), arena, &item));
	return timed_members_put(&item, TIMED_ZSET, members, MEMBERS);
}

/* Members all over the set are added, or removed if they are there. */
static enum status
change(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_member members[CHANGED] = { 0 };
	struct timed_item item;

	for (unsigned i = 0; i < CHANGED; i++) {
		members[i].name = arena_printf(arena, "changed%u", i);
		members[i].score = i * (MEMBERS / CHANGED) + 0.5;
	}
	TRY(timed_item_open(t, arena_printf(arena, "set%u", *(const unsigned *)arg), arena, &item));
	TRY(timed_members_get(&item, members, CHANGED));
	if (members[0].found)
		return timed_members_delete(&item, members, CHANGED);
	return timed_members_put(&item, TIMED_ZSET, members, CHANGED);
}

/* How many reads adding and removing take; fewer by a map, if one is kept of the set. */
static uint64_t
reads_of(struct items *f, unsigned set)
{
	uint64_t reads = 0;

	for (int i = 0; i < 2; i++) {
		f->steps = 1; /* with maps */
		items_must(f, change, &set);
		reads += f->cost.reads;
	}
	return reads;
}

static void
the_map_that_was_used_longest_ago_makes_room(void **state)
{
	struct items *f = *state;
	uint64_t bare[SETS], known[SETS]; /* by where blocks begin, which is drawn for each */

	for (unsigned set = 0; set < SETS; set++) {
		f->steps = 0; /* without maps */
		items_must(f, fill, &set);
		/* When the last one comes, the first is not the one that was used longest ago. */
		if (set == SETS - 1)
			assert_int_equal(reads_of(f, 0), known[0]);
		bare[set] = reads_of(f, set);
		for (unsigned i = 0; i < CHANGES; i++)
			known[set] = reads_of(f, set);
		assert_true(known[set] < bare[set]);
	}
	for (unsigned set = 0; set < SETS; set++)
		if (set != 1)
			assert_int_equal(reads_of(f, set), known[set]);
	assert_int_equal(reads_of(f, 1), bare[1]);
	items_verify(f);
}

/* ---- Names of sets ---- */

enum {
	NUMBERS = 600, /* the names that there may be */
	NAMED = 400,   /* of them at first */
	DRAWS = 20,    /* of one transaction */
	WARM = 2 * NAMED / 128 * DRAWS,
	KNOWN_READ = 6, /* keys of a transaction that has a map, at most */
	STEPS = 600,
	CHANGES_EACH = 6, /* of one step, at most */
};

/* What is done to a set, and what it has by that. */
struct named {
	struct rand_seq rand;
	bool there[NUMBERS], next[NUMBERS];
};

static enum status
name_put(struct timed_item *item, struct arena *arena, struct named *n, unsigned number)
{
	struct timed_member m = { .name = arena_printf(arena, "%u", number) };

	TRY(timed_members_put(item, TIMED_SET, &m, 1));
	assert_int_equal(m.found, n->next[number]);
	n->next[number] = true;
	return STATUS_OK;
}

static enum status
name_delete(struct timed_item *item, struct named *n, struct str name, unsigned number)
{
	struct timed_member m = { .name = name };

	TRY(timed_members_delete(item, &m, 1));
	assert_int_equal(m.found, n->next[number]);
	n->next[number] = false;
	return STATUS_OK;
}

/* Draws a member, and removes it if it is to be popped. */
static enum status
name_draw(struct timed_item *item, struct named *n, bool pops)
{
	struct timed_members drawn;
	uint64_t number;

	TRY(timed_members_draw(item, 1, false, &drawn));
	assert_int_equal(drawn.count, 1);
	assert_true(str_to_u64(drawn.members[0].name, &number) && number < NUMBERS);
	assert_true(n->next[number]);
	return pops ? name_delete(item, n, drawn.members[0].name, (unsigned)number) : STATUS_OK;
}

static enum status
names_fill(struct timed *t, struct arena *arena, void *arg)
{
	struct named *n = arg;
	struct timed_item item;

	memcpy(n->next, n->there, sizeof(n->next));
	TRY(timed_item_open(t, STR("names"), arena, &item));
	for (unsigned i = 0; i < NAMED; i++)
		TRY(name_put(&item, arena, n, i));
	return STATUS_OK;
}

static enum status
names_draw(struct timed *t, struct arena *arena, void *arg)
{
	struct named *n = arg;
	struct timed_item item;

	memcpy(n->next, n->there, sizeof(n->next));
	TRY(timed_item_open(t, STR("names"), arena, &item));
	for (unsigned i = 0; i < DRAWS; i++)
		TRY(name_draw(&item, n, false));
	return STATUS_OK;
}

static enum status
names_change(struct timed *t, struct arena *arena, void *arg)
{
	struct named *n = arg;
	struct rand_seq rand = n->rand; /* the same in each attempt */
	unsigned count = 1 + (unsigned)rand_seq_below(&rand, CHANGES_EACH);
	struct timed_item item;

	memcpy(n->next, n->there, sizeof(n->next));
	TRY(timed_item_open(t, STR("names"), arena, &item));
	for (unsigned i = 0; i < count; i++) {
		unsigned number = (unsigned)rand_seq_below(&rand, NUMBERS);

		switch (rand_seq_below(&rand, 8)) {
		case 0:
			TRY(name_delete(&item, n, arena_printf(arena, "%u", number), number));
			break;
		case 1:
		case 2:
		case 3:
			TRY(name_put(&item, arena, n, number));
			break;
		case 4:
			TRY(name_draw(&item, n, true));
			break;
		default:
			TRY(name_draw(&item, n, false));
		}
	}
	return STATUS_OK;
}

static void
names_must(struct items *f, items_step *run, struct named *n)
{
	items_must(f, run, n);
	memcpy(n->there, n->next, sizeof(n->there));
	(void)rand_seq_below(&n->rand, 2);
}

static void
a_set_that_is_drawn_from_often_is_known(void **state)
{
	struct named n = { .rand = { test_seed() } };
	struct items *f = *state;

	names_must(f, names_fill, &n);
	for (unsigned i = 0; i < WARM / DRAWS + 2; i++) {
		f->steps = 1; /* with maps */
		names_must(f, names_draw, &n);
	}
	/* Faults cost reads of their own, and maps. */
	if (!getenv("FROND_TEST_FAULTS"))
		assert_in_range(f->cost.keys_read, 1, KNOWN_READ);
	f->steps = 0;
	names_must(f, names_draw, &n);
	assert_in_range(f->cost.keys_read, DRAWS, UINT32_MAX);
	items_verify(f);
}

/* Two maps, as of two processes, and now and then a transaction without one. */
static void
draws_by_maps_agree_with_what_is_there(void **state)
{
	struct timed_maps *mine, *other = timed_maps_new();
	struct named n = { .rand = { test_seed() } };
	struct items *f = *state;

	assert_non_null(other);
	mine = f->maps;
	names_must(f, names_fill, &n);
	for (unsigned i = 0; i < STEPS; i++) {
		f->maps = i / 60 % 2 && i % 3 ? other : mine;
		f->steps = i % 10 != 0;
		names_must(f, names_change, &n);
	}
	f->maps = mine;
	timed_maps_free(other);
	items_verify(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_map_that_was_used_longest_ago_makes_room,
						items_setup, items_teardown),
		cmocka_unit_test_setup_teardown(a_set_that_is_drawn_from_often_is_known,
						items_setup, items_teardown),
		cmocka_unit_test_setup_teardown(draws_by_maps_agree_with_what_is_there, items_setup,
						items_teardown),
	};

	return cmocka_run_group_tests_name("maps", tests, NULL, NULL);
}

/*
 * Which sorted sets a process keeps maps of (blocks_map.c): those that it has changed last. A set
 * that has a map is changed with fewer reads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "items_model.h"

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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_map_that_was_used_longest_ago_makes_room,
						items_setup, items_teardown),
	};

	return cmocka_run_group_tests_name("maps", tests, NULL, NULL);
}

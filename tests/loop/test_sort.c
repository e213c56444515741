/* Sorting that counts its steps: orders as qsort() would, keeps what is equal, and can be ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "loop/sort.h"
#include "loop/step.h"

enum {
	ARENA_BYTES = 16 << 20,
	MOST = 3000,
	LONG_BYTES = 64 * 1024,
};

/* Twelve bytes: neither a pointer's size nor a multiple of it. */
struct item {
	uint32_t key;
	uint32_t place; /* before the sorting */
	uint32_t check;
};

static enum status
compare_keys(const void *arg, const void *a, const void *b, int *ret)
{
	uint32_t x = ((const struct item *)a)->key, y = ((const struct item *)b)->key;

	(void)arg;
	*ret = (x > y) - (x < y);
	return STATUS_OK;
}

static void
make_items(struct item *items, size_t n, unsigned keys)
{
	for (uint32_t i = 0; i < n; i++) {
		items[i].key = (uint32_t)rand() % keys;
		items[i].place = i;
		items[i].check = items[i].key ^ i;
	}
}

static void
check_items(const struct item *items, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(items[i].check, items[i].key ^ items[i].place);
		if (i) {
			assert_true(items[i - 1].key <= items[i].key);
			if (items[i - 1].key == items[i].key)
				assert_true(items[i - 1].place < items[i].place);
		}
	}
}

static void
items_are_in_order_and_equal_ones_stay_as_they_were(void **state)
{
	static struct item items[MOST];
	struct arena *arena = arena_new(ARENA_BYTES);

	(void)state;
	srand(1);
	for (size_t n = 0; n < MOST; n = n < 70 ? n + 1 : n * 3 / 2) {
		for (unsigned keys = 1; keys <= MOST; keys *= 7) {
			make_items(items, n, keys);
			assert_int_equal(
				sort_items(items, n, sizeof(*items), compare_keys, NULL, arena),
				STATUS_OK);
			check_items(items, n);
		}
	}
	arena_free(arena);
}

static void
texts_are_in_the_order_of_their_bytes(void **state)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	struct str texts[] = { STR("b"), STR(""), STR("\xff"), STR("ab"), STR("a"), STR("B") };
	static const char *const ordered[] = { "", "B", "a", "ab", "b", "\xff" };

	(void)state;
	assert_int_equal(sort_strs(texts, 6, arena), STATUS_OK);
	for (size_t i = 0; i < 6; i++)
		assert_true(str_eq(texts[i], str_from_cstr(ordered[i])));
	arena_free(arena);
}

static enum status
count_steps(struct str *texts, size_t n, uint64_t limit, uint64_t *ret_steps)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	struct step_meter meter;
	enum status status;

	step_init(&meter);
	meter.limit = limit;
	step_enter(&meter);
	status = sort_strs(texts, n, arena);
	step_leave();
	*ret_steps = meter.used;
	arena_free(arena);
	return status;
}

static void
steps_follow_what_is_compared(void **state)
{
	static char numbers[MOST][8];
	static char bytes[LONG_BYTES];
	struct str texts[MOST];
	uint64_t steps;

	(void)state;
	for (size_t i = 0; i < MOST; i++) {
		snprintf(numbers[i], sizeof(numbers[i]), "%zu", i * 7919 % MOST);
		texts[i] = str_from_cstr(numbers[i]);
	}
	assert_int_equal(count_steps(texts, MOST, 0, &steps), STATUS_OK);
	assert_true(steps > MOST * 8 && steps < MOST * 16);

	/* The same bytes, so each comparison goes through all of them. */
	for (size_t i = 0; i < 16; i++)
		texts[i] = str_of(bytes, sizeof(bytes) - i);
	assert_int_equal(count_steps(texts, 16, 0, &steps), STATUS_OK);
	assert_true(steps > 32 * LONG_BYTES / 64);
}

static void
a_sorting_ends_where_its_steps_or_its_memory_end(void **state)
{
	static struct item items[MOST];
	static char numbers[MOST][8];
	struct arena *small = arena_new(MOST);
	struct str texts[MOST];
	uint64_t steps;

	(void)state;
	for (size_t i = 0; i < MOST; i++) {
		snprintf(numbers[i], sizeof(numbers[i]), "%zu", i * 7919 % MOST);
		texts[i] = str_from_cstr(numbers[i]);
	}
	assert_int_equal(count_steps(texts, MOST, MOST, &steps), STATUS_STEPS);
	assert_true(steps < 2 * MOST);
	assert_int_equal(sort_items(items, MOST, sizeof(*items), compare_keys, NULL, small),
			 STATUS_LIMIT);
	arena_free(small);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_are_in_order_and_equal_ones_stay_as_they_were),
		cmocka_unit_test(texts_are_in_the_order_of_their_bytes),
		cmocka_unit_test(steps_follow_what_is_compared),
		cmocka_unit_test(a_sorting_ends_where_its_steps_or_its_memory_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

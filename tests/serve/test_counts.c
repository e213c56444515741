/* Counters by key: what is counted, what is forgotten, and where the limit is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/mem.h"
#include "serve/counts.h"

enum {
	FIGURES = 3,
	MOST = 1024,
	KEYS = 300, /* so many that every stripe grows several times */
	THREADS = 4,
	ROUNDS = 5000,
	NAME_BYTES = 32,
};

static struct counts counts;

static int
setup(void **state)
{
	(void)state;
	counts_init(&counts, FIGURES, MOST);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	counts_fini(&counts);
	return 0;
}

static void
add(const char *key, size_t at, uint64_t by)
{
	counts_add(&counts, str_from_cstr(key), at, &by, 1);
}

static void
expect(const char *key, uint64_t first, uint64_t second, uint64_t third)
{
	uint64_t figures[FIGURES];

	assert_true(counts_read(&counts, str_from_cstr(key), figures));
	assert_int_equal(figures[0], first);
	assert_int_equal(figures[1], second);
	assert_int_equal(figures[2], third);
}

static void
key_of(size_t n, char ret[static NAME_BYTES])
{
	snprintf(ret, NAME_BYTES, "db%zu.c%zu", n % 7, n);
}

struct seen {
	size_t count;
	uint64_t sum;
};

static void
see(void *arg, struct str key, const uint64_t *figures)
{
	struct seen *seen = arg;

	assert_true(key.len > 0);
	seen->count++;
	for (size_t i = 0; i < FIGURES; i++)
		seen->sum += figures[i];
}

static struct seen
look(void)
{
	struct seen seen = { 0 };

	counts_each(&counts, see, &seen);
	return seen;
}

static void
figures_of_a_key_are_added_up(void **state)
{
	const uint64_t both[] = { 5, 7 };

	(void)state;
	add("a", 0, 1);
	add("a", 0, 2);
	counts_add(&counts, STR("a"), 1, both, 2);
	add("b", 2, 9);
	expect("a", 3, 5, 7);
	expect("b", 0, 0, 9);
	expect("c", 0, 0, 0); /* it could be counted */
	assert_int_equal(look().count, 2);
	assert_int_equal(look().sum, 24);
}

static void
many_keys_are_kept_apart(void **state)
{
	char key[NAME_BYTES];

	(void)state;
	for (size_t round = 0; round < 2; round++)
		for (size_t i = 0; i < KEYS; i++) {
			key_of(i, key);
			add(key, i % FIGURES, i + 1);
		}
	assert_int_equal(look().count, KEYS);
	for (size_t i = 0; i < KEYS; i++) {
		key_of(i, key);
		expect(key, i % FIGURES == 0 ? 2 * (i + 1) : 0, i % FIGURES == 1 ? 2 * (i + 1) : 0,
		       i % FIGURES == 2 ? 2 * (i + 1) : 0);
	}
}

static void
a_key_is_forgotten_or_all_that_begin_so(void **state)
{
	(void)state;
	add("x.a", 0, 1);
	add("x.b", 0, 1);
	add("xy.a", 0, 1);
	counts_forget(&counts, STR("x.a"), false);
	expect("x.a", 0, 0, 0);
	expect("x.b", 1, 0, 0);
	counts_forget(&counts, STR("x."), true);
	expect("x.b", 0, 0, 0);
	expect("xy.a", 1, 0, 0);
	assert_int_equal(look().count, 1);
	add("x.b", 1, 4); /* it is there again, without what it had */
	expect("x.b", 0, 4, 0);
}

/* Names that come and go for ever need no more room than those that are there at once. */
static void
room_of_forgotten_keys_is_used_again(void **state)
{
	char key[NAME_BYTES];

	(void)state;
	for (size_t i = 0; i < 20 * MOST; i++) {
		key_of(i, key);
		add(key, 0, 1);
		expect(key, 1, 0, 0);
		counts_forget(&counts, str_from_cstr(key), false);
	}
	assert_int_equal(look().count, 0);
	for (size_t i = 0; i < COUNTS_STRIPES; i++)
		assert_in_range(counts.stripes[i].size, 1, 64);
}

static void
beyond_the_limit_nothing_is_known(void **state)
{
	uint64_t figures[FIGURES];
	char key[NAME_BYTES];
	size_t counted;

	(void)state;
	for (size_t i = 0; i < 4 * MOST; i++) {
		key_of(i, key);
		add(key, 0, 1);
	}
	counted = look().count;
	assert_in_range(counted, MOST / 2 + 1, MOST);
	assert_int_equal(look().sum, counted);
	key_of(0, key);
	expect(key, 1, 0, 0);
	assert_false(counts_read(&counts, STR("one more"), figures));
	assert_int_equal(figures[0], 0);
}

static void
without_memory_nothing_is_counted(void **state)
{
	uint64_t figures[FIGURES];

	(void)state;
	mem_fail_after(1);
	add("a", 0, 1);
	assert_false(counts_read(&counts, STR("a"), figures));
	mem_fail_after(0);
	add("a", 0, 1);
	expect("a", 1, 0, 0);
}

static void *
count_and_look(void *arg)
{
	size_t n = *(size_t *)arg;
	char key[NAME_BYTES];

	for (size_t i = 0; i < ROUNDS; i++) {
		key_of(i % KEYS, key);
		add(key, 1, 1);
		if (i % 1000 == n)
			(void)look();
	}
	return NULL;
}

static void
threads_count_every_use(void **state)
{
	pthread_t threads[THREADS];
	size_t numbers[THREADS];

	(void)state;
	for (size_t i = 0; i < THREADS; i++) {
		numbers[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, count_and_look, &numbers[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(look().count, KEYS);
	assert_int_equal(look().sum, THREADS * ROUNDS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(figures_of_a_key_are_added_up, setup, teardown),
		cmocka_unit_test_setup_teardown(many_keys_are_kept_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(a_key_is_forgotten_or_all_that_begin_so, setup,
						teardown),
		cmocka_unit_test_setup_teardown(room_of_forgotten_keys_is_used_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(beyond_the_limit_nothing_is_known, setup, teardown),
		cmocka_unit_test_setup_teardown(without_memory_nothing_is_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(threads_count_every_use, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

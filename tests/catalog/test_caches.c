/* Caches that fibers share one after the other: never two at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "catalog/caches.h"

enum {
	THREADS = 4,
	ROUNDS = 2000,
};

static struct catalog_caches caches;

static int
setup(void **state)
{
	(void)state;
	catalog_caches_init(&caches);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	catalog_caches_fini(&caches);
	return 0;
}

static void
the_cache_that_was_given_last_is_taken_next(void **state)
{
	struct catalog_cache *first = catalog_caches_take(&caches);
	struct catalog_cache *second = catalog_caches_take(&caches);

	(void)state;
	assert_non_null(first);
	assert_non_null(second);
	assert_ptr_not_equal(first, second);
	catalog_caches_give(&caches, first);
	catalog_caches_give(&caches, second);
	assert_ptr_equal(catalog_caches_take(&caches), second);
	assert_ptr_equal(catalog_caches_take(&caches), first);
	catalog_caches_give(&caches, first);
	catalog_caches_give(&caches, second);
}

/* The sanitizer tells of those that are neither kept nor freed. */
static void
no_more_are_kept_than_the_limit(void **state)
{
	struct catalog_cache *taken[CATALOG_CACHES + 3];
	size_t count = sizeof(taken) / sizeof(taken[0]);

	(void)state;
	for (size_t i = 0; i < count; i++)
		assert_non_null(taken[i] = catalog_caches_take(&caches));
	for (size_t i = 0; i < count; i++)
		catalog_caches_give(&caches, taken[i]);
	assert_int_equal(caches.count, CATALOG_CACHES);
}

static void
without_memory_there_is_none_and_that_can_be_given_back(void **state)
{
	struct catalog_cache *none;

	(void)state;
	mem_fail_after(1);
	none = catalog_caches_take(&caches);
	mem_fail_after(0);
	assert_null(none);
	catalog_caches_give(&caches, none);
	assert_int_equal(caches.count, 0);
}

/* Writes into the cache: the thread sanitizer would see two that have the same one. */
static void *
take_and_give(void *arg)
{
	(void)arg;
	for (size_t i = 0; i < ROUNDS; i++) {
		struct catalog_cache *cache = catalog_caches_take(&caches);

		catalog_cache_share(cache, NULL);
		catalog_caches_give(&caches, cache);
	}
	return NULL;
}

static void
a_cache_belongs_to_one_thread_at_a_time(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, NULL), 0);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_in_range(caches.count, 1, THREADS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_cache_that_was_given_last_is_taken_next, setup,
						teardown),
		cmocka_unit_test_setup_teardown(no_more_are_kept_than_the_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(
			without_memory_there_is_none_and_that_can_be_given_back, setup, teardown),
		cmocka_unit_test_setup_teardown(a_cache_belongs_to_one_thread_at_a_time, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

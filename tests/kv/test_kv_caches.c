/* What the embedded engine keeps in memory: by the memory there is, or as it was told. */
#include "fixture.h"

#include <stdio.h>
#include <unistd.h>

#include "base/machine.h"
#include "base/metric.h"

static uint64_t
metric_now(const char *name)
{
	int64_t value;

	metric_hold();
	assert_true(metric_value(metric_find(name), 0, &value));
	metric_release();
	return (uint64_t)value;
}

static void
caches_grow_with_the_memory_that_there_is(void **state)
{
	const uint64_t cache_least = 40 << 20, recent_least = 16 << 20;
	const uint64_t memory = machine_memory_bytes();
	const uint64_t cache = memory / 32 > cache_least ? memory / 32 : cache_least;
	const uint64_t recent = memory / 128 > recent_least ? memory / 128 : recent_least;
	struct kv_options options = { .create = true, .recent_bytes = KV_RECENT_BY_MEMORY };
	struct kv_store *store = fixture_open(url_of(state), options);

	assert_int_equal(metric_now("frond_store_block_cache_capacity_bytes"), cache);
	/* Its index has a power of two of buckets: half of its part, or more. */
	assert_in_range(metric_now("frond_store_recent_capacity_bytes"), recent / 8 * 7,
			recent + recent / 100);
	kv_close(store);

	options.cache_bytes = 1 << 20;
	options.recent_bytes = 1 << 21;
	store = fixture_open(url_of(state), options);
	assert_int_equal(metric_now("frond_store_block_cache_capacity_bytes"), 1 << 20);
	assert_in_range(metric_now("frond_store_recent_capacity_bytes"), 7 << 18,
			(1 << 21) + (1 << 16));
	kv_close(store);
}

/* Whether so many bytes become a table, beside what opening has made. Closes the store. */
static bool
has_table_of(struct kv_store *store, size_t bytes)
{
	static char value[64 * 1024];
	/* The small one that opening has made may be written once more. */
	const uint64_t few = metric_now("frond_store_tables_bytes") + sizeof(value) / 4;
	uint64_t tables = 0;
	char key[16];

	for (size_t i = 0; i < bytes / sizeof(value); i++) {
		struct kv_tx *tx = begin(store);

		snprintf(key, sizeof(key), "%05zu", i);
		assert_ok(kv_set(tx, str_from_cstr(key), str_of(value, sizeof(value))));
		commit(tx);
	}
	for (int i = 0; i < 100 && tables < few; i++) {
		usleep(10 * 1000);
		tables = metric_now("frond_store_tables_bytes");
	}
	kv_close(store);
	return tables >= few;
}

static void
what_is_written_becomes_a_table_when_there_is_enough_of_it(void **state)
{
	const uint64_t memory = machine_memory_bytes() / 128, least = 16 << 20, most = 64 << 20;
	const uint64_t usual = memory < least ? least : memory > most ? most : memory;
	struct kv_options options = { .create = true, .no_sync = true };
	struct kv_store *store = fixture_open(url_of(state), options);

	/* It is cut into as many buffers as there are whole ones of 8 MB, up to eight. */
	assert_in_range(metric_now("frond_store_write_buffer_bytes"), usual - 8, usual);
	kv_close(store);
	options.write_buffer_bytes = 40 << 20;
	store = fixture_open(url_of(state), options);
	assert_int_equal(metric_now("frond_store_write_buffer_bytes"), 40 << 20);
	assert_false(has_table_of(store, 20 << 20));
	options.write_buffer_bytes = least;
	store = fixture_open(url_of(state), options);
	assert_int_equal(metric_now("frond_store_write_buffer_bytes"), least);
	assert_true(has_table_of(store, 20 << 20));
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_dir_setup, fixture_dir_teardown)
	const struct CMUnitTest tests[] = {
		T(caches_grow_with_the_memory_that_there_is),
		T(what_is_written_becomes_a_table_when_there_is_enough_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

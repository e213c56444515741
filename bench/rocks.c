#include "rocks.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	CACHE_BYTES = 40 * 1024 * 1024,
	BLOCK_BYTES = 8 * 1024,
	BLOOM_BITS = 10,
	TABLE_FORMAT = 5,
	WRITE_BUFFER_BYTES = 16 * 1024 * 1024,
	WRITE_BUFFERS = 3,
	LEVEL_BASE_BYTES = 32 * 1024 * 1024,
	LEVEL_BASE_TABLE_BYTES = 8 * 1024 * 1024,
	LEVEL_TABLE_GROWTH = 2,
	BACKGROUND_JOBS = 2,
	SYNC_EVERY_BYTES = 1024 * 1024,
};

void
rocks_must(const char *error, const char *what)
{
	if (error) {
		fprintf(stderr, "rocksdb: %s: %s\n", what, error);
		exit(1);
	}
}

rocksdb_options_t *
rocks_options(void)
{
	rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
	rocksdb_cache_t *cache = rocksdb_cache_create_lru(CACHE_BYTES);
	rocksdb_options_t *o = rocksdb_options_create();

	rocksdb_block_based_options_set_block_size(table, BLOCK_BYTES);
	rocksdb_block_based_options_set_format_version(table, TABLE_FORMAT);
	rocksdb_block_based_options_set_filter_policy(
		table, rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS));
	rocksdb_block_based_options_set_block_cache(table, cache);
	rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
	rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(table, 1);
	rocksdb_block_based_options_set_index_type(
		table, rocksdb_block_based_table_index_type_two_level_index_search);
	rocksdb_block_based_options_set_partition_filters(table, 1);
	rocksdb_block_based_options_set_pin_top_level_index_and_filter(table, 1);
	rocksdb_options_set_block_based_table_factory(o, table);
	rocksdb_block_based_options_destroy(table);
	rocksdb_cache_destroy(cache);
	rocksdb_options_set_create_if_missing(o, 1);
	rocksdb_options_set_compression(o, rocksdb_lz4_compression);
	rocksdb_options_set_level_compaction_dynamic_level_bytes(o, 1);
	rocksdb_options_set_max_bytes_for_level_base(o, LEVEL_BASE_BYTES);
	rocksdb_options_set_target_file_size_base(o, LEVEL_BASE_TABLE_BYTES);
	rocksdb_options_set_target_file_size_multiplier(o, LEVEL_TABLE_GROWTH);
	rocksdb_options_set_write_buffer_size(o, WRITE_BUFFER_BYTES);
	rocksdb_options_set_max_write_buffer_number(o, WRITE_BUFFERS);
	rocksdb_options_set_max_background_jobs(o, BACKGROUND_JOBS);
	rocksdb_options_set_bytes_per_sync(o, SYNC_EVERY_BYTES);
	return o;
}

/* RocksDB's options. The README says what was measured of them. */
#include "kv/embedded/options.h"

#include <limits.h>
#include <sys/resource.h>

#include "base/machine.h"
#include "kv/embedded/embedded_int.h"

enum {
	BLOCK_BYTES = 8 * 1024,
	BLOOM_BITS_A_KEY = 10, /* and an entity */
	/*
	 * Small, since a key in no order finds its place the sooner, the more of the buffer is in
	 * the processor's cache. Several of them become one table. The larger a table is, the less
	 * often the level below is written again, and the more old versions of pairs that change
	 * often are dropped before they reach a table. At most eight, since a read searches each.
	 */
	WRITE_BUFFER_BYTES = 8 * 1024 * 1024,
	WRITE_BUFFERS_A_TABLE_LEAST = 2,
	WRITE_BUFFERS_A_TABLE_MOST = 8,
	/* RocksDB slows writers down once the buffers of two tables and so many more are full. */
	WRITE_BUFFERS_SPARE = 2,
	/*
	 * A table of level 0 has keys of every subspace, so merging level 0 rewrites all of the
	 * level below, in whatever order documents come. So that level is to be no larger than what
	 * is merged into it at a time. That is four tables, each about half as large as its pairs
	 * were in memory: together twice what is gathered in memory for one table.
	 */
	LEVEL_BASE_TIMES = 2,
	/*
	 * Small, so that those in the middle of what comes in order overlap nothing below and are
	 * moved there as they are; and twice as large each level down, which bounds their number.
	 */
	LEVEL_BASE_PARTS = 8,
	LEVEL_BASE_TABLE_LEAST_BYTES = 8 * 1024 * 1024,
	LEVEL_TABLE_GROWTH = 2,
	BACKGROUND_JOBS = 2,
	/*
	 * Several threads open the tables of a store, since each waits for the disk. RocksDB would
	 * always start 16 of them, which takes a small store longer than all else of its opening.
	 */
	TABLES_A_THREAD = 16,
	OPENING_THREADS = 16,
	SYNC_EVERY_BYTES = 1024 * 1024,   /* background writes, so that a sync finds little to do */
	MANIFEST_AHEAD_BYTES = 64 * 1024, /* set aside; RocksDB's default is 4 MB of every store */
	TABLE_FORMAT = 5,
	/*
	 * RocksDB's log of its own doings, the file LOG, stays empty. RocksDB 7.8 ends the process
	 * by an assertion when it writes to that file once more after a write to it has failed, as
	 * on a full disk, at the latest when it closes. The file can be neither left out nor put
	 * where there is always room. What RocksDB would tell there of failures comes with the
	 * errors of its calls.
	 */
	INFO_LOGS = 2,
	INFO_LOG_FATAL = 4,
	/*
	 * The log may end in half a record, which was never acknowledged; damage anywhere else must
	 * not pass for its end, or acknowledged transactions would vanish in silence.
	 */
	WAL_TOLERATE_TORN_TAIL = 0,
	/*
	 * Stops at the first record that is not whole, and takes that for the end. For logs of
	 * which logs.c has found everything whole but an unfinished write at the end of the newest.
	 */
	WAL_STOP_AT_TORN = 2,
	/*
	 * How many old versions of a key an iterator steps over before it searches for the next
	 * key. In what is in memory each step backwards is a search, too, and counters have a
	 * version for each transaction; RocksDB's default is 8.
	 */
	ITERATOR_SKIPS = 2,
	/*
	 * To find a pair in the cache in front of RocksDB takes a third of the time that it takes
	 * in the block cache. Where the block is not there, the kernel's cache mostly has it, and
	 * reading it from there takes ten times as long as to find it in the block cache.
	 * So both caches grow with the memory that the process may use: the block cache is a 32nd
	 * of it, and the cache in front a 128th. Where that is less, they have the bytes below.
	 */
	CACHE_SHARE = 32,
	CACHE_LEAST_BYTES = 40 * 1024 * 1024,
	RECENT_SHARE = 128,
	RECENT_LEAST_BYTES = 16 * 1024 * 1024,
	/*
	 * What is gathered in memory before it becomes a table has a 128th as well, but at most 64
	 * MB: as much of the log is replayed when a store is opened, which takes a second.
	 */
	WRITE_BUFFER_SHARE = 128,
	WRITE_BUFFER_LEAST_BYTES = 16 * 1024 * 1024,
	WRITE_BUFFER_MOST_BYTES = 64 * 1024 * 1024,
};

/* The share of a write buffer that is its bloom filter. */
static const double WRITE_BUFFER_BLOOM = 0.02;

/* The part of the memory that there is for this process, but not less than `least`. */
static uint64_t
share_of_memory(unsigned share, uint64_t least)
{
	uint64_t bytes = machine_memory_bytes() / share;

	return bytes > least ? bytes : least;
}

uint64_t
emb_cache_bytes(void)
{
	return share_of_memory(CACHE_SHARE, CACHE_LEAST_BYTES);
}

uint64_t
emb_recent_bytes(void)
{
	return share_of_memory(RECENT_SHARE, RECENT_LEAST_BYTES);
}

uint64_t
emb_write_buffer_bytes(void)
{
	uint64_t bytes = share_of_memory(WRITE_BUFFER_SHARE, WRITE_BUFFER_LEAST_BYTES);

	return bytes < WRITE_BUFFER_MOST_BYTES ? bytes : WRITE_BUFFER_MOST_BYTES;
}

/* How what is written becomes tables; `bytes` is what is gathered for one, as in kv_options. */
static void
options_set_sizes(rocksdb_options_t *o, uint64_t bytes)
{
	uint64_t buffers = bytes / WRITE_BUFFER_BYTES;
	uint64_t base = LEVEL_BASE_TIMES * bytes;
	uint64_t table = base / LEVEL_BASE_PARTS;

	if (buffers < WRITE_BUFFERS_A_TABLE_LEAST)
		buffers = WRITE_BUFFERS_A_TABLE_LEAST;
	if (buffers > WRITE_BUFFERS_A_TABLE_MOST)
		buffers = WRITE_BUFFERS_A_TABLE_MOST;
	if (table < LEVEL_BASE_TABLE_LEAST_BYTES)
		table = LEVEL_BASE_TABLE_LEAST_BYTES;
	rocksdb_options_set_write_buffer_size(o, (size_t)(bytes / buffers));
	rocksdb_options_set_min_write_buffer_number_to_merge(o, (int)buffers);
	rocksdb_options_set_max_write_buffer_number(o,
						    (int)(2 * buffers + WRITE_BUFFERS_SPARE + 1));
	rocksdb_options_set_max_bytes_for_level_base(o, base);
	rocksdb_options_set_target_file_size_base(o, table);
	rocksdb_options_set_target_file_size_multiplier(o, LEVEL_TABLE_GROWTH);
}

/*
 * How many tables may be open at a time: a quarter of the process's descriptors, since most of them
 * are needed for connections, and a table that is not open is only slower to read. -1: no limit.
 */
static int
options_open_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= INT_MAX)
		return -1;
	return (int)(limit.rlim_cur / 4);
}

static int
options_opening_threads(size_t tables)
{
	size_t threads = 1 + tables / TABLES_A_THREAD;

	return (int)(threads < OPENING_THREADS ? threads : OPENING_THREADS);
}

rocksdb_options_t *
emb_options(rocksdb_cache_t *cache, const struct emb_entities *entities, size_t tables,
	    uint64_t write_buffer_bytes, bool create)
{
	rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
	rocksdb_options_t *o = rocksdb_options_create();

	rocksdb_block_based_options_set_block_size(table, BLOCK_BYTES);
	rocksdb_block_based_options_set_format_version(table, TABLE_FORMAT);
	rocksdb_block_based_options_set_filter_policy(
		table, rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS_A_KEY));
	rocksdb_block_based_options_set_block_cache(table, cache);
	/*
	 * Within the cache, so that memory has one bound; and in pieces, since the cache has 64
	 * shards: the filter of a full-grown table would not fit into one, and each read would
	 * fetch it from the file again.
	 */
	rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
	rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(table, 1);
	rocksdb_block_based_options_set_index_type(
		table, rocksdb_block_based_table_index_type_two_level_index_search);
	rocksdb_block_based_options_set_partition_filters(table, 1);
	rocksdb_block_based_options_set_pin_top_level_index_and_filter(table, 1);
	rocksdb_options_set_block_based_table_factory(o, table);
	rocksdb_block_based_options_destroy(table);

	rocksdb_options_set_create_if_missing(o, create);
	rocksdb_options_set_compression(o, rocksdb_lz4_compression);
	rocksdb_options_set_level_compaction_dynamic_level_bytes(o, 1);
	rocksdb_options_set_prefix_extractor(o, emb_entities_extractor(entities));
	rocksdb_options_set_memtable_prefix_bloom_size_ratio(o, WRITE_BUFFER_BLOOM);
	rocksdb_options_set_memtable_whole_key_filtering(o, 1);
	options_set_sizes(o, write_buffer_bytes ? write_buffer_bytes : emb_write_buffer_bytes());
	rocksdb_options_set_max_background_jobs(o, BACKGROUND_JOBS);
	rocksdb_options_set_max_open_files(o, options_open_files());
	rocksdb_options_set_max_file_opening_threads(o, options_opening_threads(tables));
	rocksdb_options_set_bytes_per_sync(o, SYNC_EVERY_BYTES);
	rocksdb_options_set_manifest_preallocation_size(o, MANIFEST_AHEAD_BYTES);
	rocksdb_options_set_wal_recovery_mode(o, WAL_TOLERATE_TORN_TAIL);
	rocksdb_options_set_max_sequential_skip_in_iterations(o, ITERATOR_SKIPS);
	rocksdb_options_set_keep_log_file_num(o, INFO_LOGS);
	rocksdb_options_set_info_log_level(o, INFO_LOG_FATAL);
	rocksdb_options_set_stats_dump_period_sec(o, 0);
	rocksdb_options_set_stats_persist_period_sec(o, 0);
	return o;
}

uint64_t
emb_options_write_buffer_bytes(rocksdb_options_t *o)
{
	return rocksdb_options_get_write_buffer_size(o) *
	       (uint64_t)rocksdb_options_get_min_write_buffer_number_to_merge(o);
}

void
emb_options_expect_torn(rocksdb_options_t *o, bool torn)
{
	rocksdb_options_set_wal_recovery_mode(o, torn ? WAL_STOP_AT_TORN : WAL_TOLERATE_TORN_TAIL);
}

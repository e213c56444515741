#include "kv/embedded/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "base/metric.h"
#include "kv/embedded/gate.h"
#include "kv/embedded/options.h"
#include "kv/embedded/watch_int.h"
#include "kv/log.h"

enum memory_kind {
	MEMORY_MEMTABLES,
	MEMORY_BLOCK_CACHE,
	MEMORY_TABLE_READERS,
	MEMORY_HISTORY,
	MEMORY_RECENT,
	MEMORY_KINDS,
};

static const char *const memory_kinds[MEMORY_KINDS] = {
	[MEMORY_MEMTABLES] = "memtables",
	[MEMORY_BLOCK_CACHE] = "block_cache",
	[MEMORY_TABLE_READERS] = "table_readers",
	[MEMORY_HISTORY] = "history",
	[MEMORY_RECENT] = "recent",
};

static const char *const levels[] = { "0", "1", "2", "3", "4", "5", "6" };

METRIC_COLLECTED_BY(memory, METRIC_KIND_GAUGE, "frond_store_memory_bytes", METRIC_BYTES,
		    "Memory of the embedded engine by kind: what is not in tables yet, cached "
		    "blocks with filters and indexes, open tables, the keys that recent "
		    "transactions have written, and single pairs that were read or written "
		    "lately.",
		    "kind", memory_kinds);
METRIC_COLLECTED(recent_hits, METRIC_KIND_COUNTER, "frond_store_recent_hits_total", METRIC_NUMBER,
		 "Reads of single keys that were answered from the pairs that were read or written "
		 "lately.");
METRIC_COLLECTED(recent_misses, METRIC_KIND_COUNTER, "frond_store_recent_misses_total",
		 METRIC_NUMBER, "Reads of single keys that had to ask RocksDB instead.");
METRIC_COLLECTED(recent_capacity, METRIC_KIND_GAUGE, "frond_store_recent_capacity_bytes",
		 METRIC_BYTES,
		 "What the pairs that were read or written lately may take: the setting "
		 "recent_bytes.");
METRIC_COLLECTED(write_buffer, METRIC_KIND_GAUGE, "frond_store_write_buffer_bytes", METRIC_BYTES,
		 "What is gathered in memory of what was written before it becomes a table: the "
		 "setting write_buffer_bytes.");
METRIC_COLLECTED(behind, METRIC_KIND_GAUGE, "frond_follow_behind_versions", METRIC_NUMBER,
		 "How many versions of the store that it follows a standby has not got, as of the "
		 "last answer.");
METRIC_COLLECTED(behind_time, METRIC_KIND_GAUGE, "frond_follow_behind_seconds", METRIC_SECONDS,
		 "How long ago a standby was last known to have all that the store has which it "
		 "follows. It asks at least once a second.");
METRIC_COLLECTED(cache_pinned, METRIC_KIND_GAUGE, "frond_store_block_cache_pinned_bytes",
		 METRIC_BYTES, "Cached blocks that are in use and cannot be given up.");
METRIC_COLLECTED(cache_capacity, METRIC_KIND_GAUGE, "frond_store_block_cache_capacity_bytes",
		 METRIC_BYTES, "What the block cache may hold: the setting cache_bytes.");
METRIC_COLLECTED_BY(files, METRIC_KIND_GAUGE, "frond_store_files", METRIC_NUMBER,
		    "Tables on disk by level. From 20 in level 0 on RocksDB slows writers down.",
		    "level", levels);
METRIC_COLLECTED(table_bytes, METRIC_KIND_GAUGE, "frond_store_tables_bytes", METRIC_BYTES,
		 "Tables on disk, those that nobody needs any more included.");
METRIC_COLLECTED(live_bytes, METRIC_KIND_GAUGE, "frond_store_live_data_bytes", METRIC_BYTES,
		 "Estimate of the data that would be left after a compaction of everything.");
METRIC_COLLECTED(pending_bytes, METRIC_KIND_GAUGE, "frond_store_pending_compaction_bytes",
		 METRIC_BYTES, "Estimate of what compactions have to rewrite to catch up.");
METRIC_COLLECTED(compactions, METRIC_KIND_GAUGE, "frond_store_compactions_running", METRIC_NUMBER,
		 "Compactions that run now.");
METRIC_COLLECTED(flushes, METRIC_KIND_GAUGE, "frond_store_flushes_running", METRIC_NUMBER,
		 "Memtables that are being written to tables now.");
METRIC_COLLECTED(stopped, METRIC_KIND_GAUGE, "frond_store_writes_stopped", METRIC_NUMBER,
		 "1 while RocksDB makes all writers wait until it has caught up.");
METRIC_COLLECTED(delayed, METRIC_KIND_GAUGE, "frond_store_writes_limit_bytes", METRIC_BYTES,
		 "Bytes a second to which RocksDB slows writers down; 0: it does not.");
METRIC_COLLECTED(errors, METRIC_KIND_COUNTER, "frond_store_background_errors_total", METRIC_NUMBER,
		 "Flushes and compactions that have failed since the store was opened.");
METRIC_COLLECTED(damaged, METRIC_KIND_GAUGE, "frond_store_damaged_files", METRIC_NUMBER,
		 "Files of the store in which reads have met bytes that do not match their "
		 "checksums, since the store was opened. The log names each.");
METRIC_COLLECTED(disk_free, METRIC_KIND_GAUGE, "frond_store_disk_free_bytes", METRIC_BYTES,
		 "Room on the file system of the store that the process may still use.");
METRIC_COLLECTED(disk_size, METRIC_KIND_GAUGE, "frond_store_disk_size_bytes", METRIC_BYTES,
		 "How large that file system is.");
METRIC_COLLECTED(snapshots, METRIC_KIND_GAUGE, "frond_store_snapshots", METRIC_NUMBER,
		 "Snapshots that readers hold: what they see cannot be compacted away.");
METRIC_COLLECTED(watches, METRIC_KIND_GAUGE, "frond_store_watches", METRIC_NUMBER,
		 "Keys that feeds and caches wait for to change.");
METRIC_COLLECTED(queued_txs, METRIC_KIND_GAUGE, "frond_store_commit_queue_length", METRIC_NUMBER,
		 "Transactions that wait for the committer.");
METRIC_COLLECTED(queued_bytes, METRIC_KIND_GAUGE, "frond_store_commit_queue_bytes", METRIC_BYTES,
		 "Bytes of the transactions that wait for the committer.");

/* Reports a property of RocksDB, unless it does not know it. In the gate. */
static void
metrics_report_property(struct emb_store *store, const struct metric *m, size_t series,
			const char *name)
{
	uint64_t value;

	if (rocksdb_property_int(store->db, name, &value) == 0)
		metric_report(m, series, value);
}

/* The number of files of a level is a property that comes as text only. */
static void
metrics_report_files(struct emb_store *store)
{
	for (size_t i = 0; i < METRIC_COUNT_OF(levels); i++) {
		char name[64];
		char *text;

		(void)snprintf(name, sizeof(name), "rocksdb.num-files-at-level%zu", i);
		text = rocksdb_property_value(store->db, name);
		if (text)
			metric_report(&files, i, strtoull(text, NULL, 10));
		rocksdb_free(text);
	}
}

static void
metrics_report_rocksdb(struct emb_store *store)
{
	static const struct {
		const struct metric *metric;
		size_t series;
		const char *name;
	} properties[] = {
		{ &memory, MEMORY_MEMTABLES, "rocksdb.size-all-mem-tables" },
		{ &memory, MEMORY_TABLE_READERS, "rocksdb.estimate-table-readers-mem" },
		{ &table_bytes, 0, "rocksdb.total-sst-files-size" },
		{ &live_bytes, 0, "rocksdb.estimate-live-data-size" },
		{ &pending_bytes, 0, "rocksdb.estimate-pending-compaction-bytes" },
		{ &compactions, 0, "rocksdb.num-running-compactions" },
		{ &flushes, 0, "rocksdb.num-running-flushes" },
		{ &stopped, 0, "rocksdb.is-write-stopped" },
		{ &delayed, 0, "rocksdb.actual-delayed-write-rate" },
		{ &errors, 0, "rocksdb.background-errors" },
		{ &snapshots, 0, "rocksdb.num-snapshots" },
	};

	for (size_t i = 0; i < METRIC_COUNT_OF(properties); i++)
		metrics_report_property(store, properties[i].metric, properties[i].series,
					properties[i].name);
	metrics_report_files(store);
}

static void
metrics_report_disk(const struct emb_store *store)
{
	struct statvfs vfs;

	if (statvfs(store->path, &vfs) != 0)
		return;
	metric_report(&disk_free, 0, (uint64_t)vfs.f_bavail * vfs.f_frsize);
	metric_report(&disk_size, 0, (uint64_t)vfs.f_blocks * vfs.f_frsize);
}

static void
metrics_collect(void *arg)
{
	struct emb_store *store = arg;
	struct recent_stats recent = recent_stats(store->recent);
	struct gate_pass pass;

	/* Nothing of RocksDB's while the store is being opened again. */
	if (gate_enter(&store->gate, &pass)) {
		if (store->db)
			metrics_report_rocksdb(store);
		gate_leave(pass);
	}
	metrics_report_disk(store);
	if (store->base.follows) {
		const struct kv_log_behind b = kv_log_behind(&store->base);

		metric_report(&behind, 0, b.versions);
		metric_report(&behind_time, 0, b.ns);
	}
	metric_report(&memory, MEMORY_BLOCK_CACHE, rocksdb_cache_get_usage(store->cache));
	metric_report(&memory, MEMORY_HISTORY,
		      atomic_load_explicit(&store->history_bytes, memory_order_relaxed));
	metric_report(&memory, MEMORY_RECENT, recent.bytes);
	metric_report(&recent_hits, 0, recent.hits);
	metric_report(&recent_misses, 0, recent.misses);
	metric_report(&recent_capacity, 0, recent.most_bytes);
	metric_report(&cache_pinned, 0, rocksdb_cache_get_pinned_usage(store->cache));
	metric_report(&cache_capacity, 0, rocksdb_cache_get_capacity(store->cache));
	metric_report(&write_buffer, 0, emb_options_write_buffer_bytes(store->options));
	metric_report(&damaged, 0, emb_damages_list(&store->base, 0, NULL, 0));
	metric_report(&watches, 0, watches_count(store->watches));
	pthread_mutex_lock(&store->queue.lock);
	metric_report(&queued_txs, 0, store->queue.txs);
	metric_report(&queued_bytes, 0, store->queue.bytes);
	pthread_mutex_unlock(&store->queue.lock);
}

void
emb_metrics_begin(struct emb_store *store)
{
	store->collector = (struct metric_collector){ .collect = metrics_collect, .arg = store };
	metric_collector_add(&store->collector);
}

void
emb_metrics_end(struct emb_store *store)
{
	metric_collector_remove(&store->collector);
}

/* RocksDB's options, and the sizes of what the engine keeps in memory. */
#ifndef FROND_KV_EMBEDDED_OPTIONS_H
#define FROND_KV_EMBEDDED_OPTIONS_H

#include <rocksdb/c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct emb_entities;

/*
 * What the block cache, the pairs in front of it, and what is gathered for a table have by default,
 * by the memory there is.
 */
uint64_t emb_cache_bytes(void);
uint64_t emb_recent_bytes(void);
uint64_t emb_write_buffer_bytes(void);

/*
 * Makes the options of a store that caches its blocks in `cache` and has about `tables` tables.
 * `write_buffer_bytes` as in kv_options. Free with rocksdb_options_destroy(). Iterators need
 * `total_order_seek`: see emb_entities_extractor(). `entities` must outlive the store.
 */
rocksdb_options_t *emb_options(rocksdb_cache_t *cache, const struct emb_entities *entities,
			       size_t tables, uint64_t write_buffer_bytes, bool create);

/* What is gathered for a table with these options. */
uint64_t emb_options_write_buffer_bytes(rocksdb_options_t *o);

/*
 * Whether the logs of the next opening end in an unfinished write that RocksDB is to stop at; see
 * emb_logs_check(). Otherwise it refuses any record that is not whole, but for a short last one.
 */
void emb_options_expect_torn(rocksdb_options_t *o, bool torn);

#endif

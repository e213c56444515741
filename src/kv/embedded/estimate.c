/*
 * Estimates of how large a range is. RocksDB estimates by its files and in whole blocks, which
 * small databases share, and its C API leaves out what is in memory. So a small range is counted
 * pair by pair, and to the estimate of a large one what is in memory is added.
 */
#include "kv/embedded/handle.h"
#include "kv/embedded/upkeep.h"

enum {
	ESTIMATE_PAIRS = 5000,            /* counted one by one: a millisecond or two */
	ESTIMATE_SKIPS = 5000,            /* overwritten and deleted ones in a row, passed over */
	ESTIMATE_SMALL_BYTES = 64 * 1024, /* in files; less is counted */
	MEMTABLES_ONLY = 3,               /* rocksdb::ReadTier */
};

struct counting {
	struct emb_store *store;
	struct str begin;
	struct str end;
	bool memory; /* only what has not been flushed */
	uint64_t bytes;
	bool whole; /* nothing was left */
	enum status status;
};

static void
counting_run(void *arg)
{
	struct counting *c = arg;
	rocksdb_readoptions_t *options;
	rocksdb_iterator_t *it;
	struct gate_pass pass;
	char *error = NULL;
	int pairs = 0;

	c->status = emb_handle_use(c->store, &pass, NULL);
	if (c->status != STATUS_OK)
		return;
	options = rocksdb_readoptions_create();
	if (c->memory)
		rocksdb_readoptions_set_read_tier(options, MEMTABLES_ONLY);
	rocksdb_readoptions_set_total_order_seek(options, 1);
	rocksdb_readoptions_set_iterate_upper_bound(options, c->end.ptr, c->end.len);
	rocksdb_readoptions_set_max_skippable_internal_keys(options, ESTIMATE_SKIPS);
	it = rocksdb_create_iterator(c->store->db, options);
	rocksdb_iter_seek(it, c->begin.ptr, c->begin.len);
	for (; pairs < ESTIMATE_PAIRS && rocksdb_iter_valid(it); pairs++) {
		size_t key;
		size_t value;

		(void)rocksdb_iter_key(it, &key);
		(void)rocksdb_iter_value(it, &value);
		c->bytes += key + value;
		rocksdb_iter_next(it);
	}
	rocksdb_iter_get_error(it, &error);
	c->whole = !error && pairs < ESTIMATE_PAIRS;
	rocksdb_free(error);
	rocksdb_iter_destroy(it);
	gate_leave(pass);
	rocksdb_readoptions_destroy(options);
}

enum status
emb_estimate_bytes(struct kv_store *base, struct str begin, struct str end, uint64_t *ret)
{
	struct emb_store *store = (struct emb_store *)base;
	struct counting all = { .store = store, .begin = begin, .end = end };
	struct counting memory = { .store = store, .begin = begin, .end = end, .memory = true };
	char *error = NULL;
	struct gate_pass pass;
	uint64_t in_files = 0;

	*ret = 0;
	if (str_cmp(begin, end) >= 0)
		return STATUS_OK;
	TRY(emb_handle_use(store, &pass, NULL));
	rocksdb_approximate_sizes(store->db, 1, &begin.ptr, &begin.len, &end.ptr, &end.len,
				  &in_files, &error);
	gate_leave(pass);
	if (error)
		return emb_error(error, "estimating a size", NULL);
	if (in_files < ESTIMATE_SMALL_BYTES)
		emb_disk_run_on_pool(counting_run, &all); /* it may have to read the files */
	TRY(all.status);
	if (all.whole) {
		*ret = all.bytes;
		return STATUS_OK;
	}
	/* What is not counted is at most the memory of RocksDB's write buffers. */
	counting_run(&memory);
	TRY(memory.status);
	*ret = in_files + memory.bytes;
	return STATUS_OK;
}

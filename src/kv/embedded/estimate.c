/*
 * How large a range is, about. RocksDB's estimate is of its files, in whole blocks, which small
 * databases share, and its C API does not count what is in memory: both is counted here.
 */
#include "base/wait.h"
#include "kv/embedded/embedded_int.h"

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
};

static void
count_pairs(void *arg)
{
	struct counting *c = arg;
	rocksdb_readoptions_t *options = rocksdb_readoptions_create();
	rocksdb_iterator_t *it;
	char *error = NULL;
	int pairs = 0;

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
	rocksdb_readoptions_destroy(options);
}

enum status
emb_estimate_bytes(struct kv_store *base, struct str begin, struct str end, uint64_t *ret)
{
	struct emb_store *store = (struct emb_store *)base;
	struct counting all = { .store = store, .begin = begin, .end = end };
	struct counting memory = { .store = store, .begin = begin, .end = end, .memory = true };
	char *error = NULL;
	uint64_t in_files = 0;

	*ret = 0;
	if (str_cmp(begin, end) >= 0)
		return STATUS_OK;
	rocksdb_approximate_sizes(store->db, 1, &begin.ptr, &begin.len, &end.ptr, &end.len,
				  &in_files, &error);
	if (error)
		return emb_error(error, "estimating a size", NULL);
	if (in_files < ESTIMATE_SMALL_BYTES)
		wait_offload(count_pairs, &all); /* it may have to read the files */
	if (all.whole) {
		*ret = all.bytes;
		return STATUS_OK;
	}
	/* What is not counted is at most the memory of RocksDB's write buffers. */
	count_pairs(&memory);
	*ret = in_files + memory.bytes;
	return STATUS_OK;
}

/* Compaction on demand: every file anew, without what has been overwritten or deleted. */
#include "kv/embedded/embedded_int.h"

enum {
	/* kForceOptimized: files of the last level too, but none that this compaction has made. */
	BOTTOMMOST_FORCE_OPTIMIZED = 3,
};

static enum status
flush(struct emb_store *store, struct err *err)
{
	rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
	char *error = NULL;

	rocksdb_flushoptions_set_wait(options, 1);
	rocksdb_flush(store->db, options, &error);
	rocksdb_flushoptions_destroy(options);
	return error ? emb_error(error, "writing what is in memory", err) : STATUS_OK;
}

/* How often a background write has failed: the C API does not say how a compaction has ended. */
static uint64_t
background_errors(struct emb_store *store)
{
	uint64_t errors;

	return rocksdb_property_int(store->db, "rocksdb.background-errors", &errors) == 0 ? errors
											  : 0;
}

enum status
emb_compact(struct kv_store *base, struct err *err)
{
	struct emb_store *store = (struct emb_store *)base;
	uint64_t errors = background_errors(store);
	rocksdb_compactoptions_t *options;

	if (base->read_only)
		return err_set(err, STATUS_FORBIDDEN, "the store is open for reading only");
	TRY(flush(store, err));
	options = rocksdb_compactoptions_create();
	rocksdb_compactoptions_set_bottommost_level_compaction(options, BOTTOMMOST_FORCE_OPTIMIZED);
	/* The store goes on tidying what is being written meanwhile. */
	rocksdb_compactoptions_set_exclusive_manual_compaction(options, 0);
	rocksdb_compact_range_opt(store->db, options, NULL, 0, NULL, 0);
	rocksdb_compactoptions_destroy(options);
	if (background_errors(store) != errors)
		return err_set(err, STATUS_IO,
			       "compacting failed: a file could not be written; see the file LOG "
			       "in the store's directory");
	return STATUS_OK;
}

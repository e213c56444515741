/* Compaction on demand: every file anew, without what has been overwritten or deleted. */
#include "kv/embedded/handle.h"
#include "kv/embedded/reopen.h"
#include "kv/embedded/upkeep.h"

enum {
	/* kForceOptimized: files of the last level too, but none that this compaction has made. */
	BOTTOMMOST_FORCE_OPTIMIZED = 3,
};

enum status
emb_compact_flush(struct emb_store *store, struct err *err)
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
compact_background_errors(struct emb_store *store)
{
	uint64_t errors;

	return rocksdb_property_int(store->db, "rocksdb.background-errors", &errors) == 0 ? errors
											  : 0;
}

/* Inside the gate. */
static enum status
compact_all(struct emb_store *store, struct err *err)
{
	uint64_t errors = compact_background_errors(store);
	rocksdb_compactoptions_t *options;

	TRY(emb_compact_flush(store, err));
	options = rocksdb_compactoptions_create();
	rocksdb_compactoptions_set_bottommost_level_compaction(options, BOTTOMMOST_FORCE_OPTIMIZED);
	/* The store goes on tidying what is being written meanwhile. */
	rocksdb_compactoptions_set_exclusive_manual_compaction(options, 0);
	rocksdb_compact_range_opt(store->db, options, NULL, 0, NULL, 0);
	rocksdb_compactoptions_destroy(options);
	if (compact_background_errors(store) != errors)
		return err_set(err, STATUS_IO,
			       "compacting failed: a file could not be read or written");
	return STATUS_OK;
}

enum status
emb_compact(struct kv_store *base, struct err *err)
{
	struct emb_store *store = (struct emb_store *)base;
	struct gate_pass pass;
	enum status status;

	if (base->read_only)
		return err_set(err, STATUS_FORBIDDEN, "the store is open for reading only");
	TRY(emb_reopen_refuse_disk(store, err));
	TRY(emb_handle_use_long(store, &pass, err));
	status = compact_all(store, err);
	emb_handle_leave_long(store, pass);
	return status;
}

/* Reading single keys. */
#include "base/clock.h"
#include "base/wait.h"
#include "kv/embedded/embedded_int.h"

struct get_job {
	rocksdb_t *db;
	const rocksdb_readoptions_t *options;
	struct str key;
	rocksdb_pinnableslice_t *slice;
	char *error;
};

static void
get_run(void *arg)
{
	struct get_job *job = arg;

	emb_count_nothing();
	job->slice = rocksdb_get_pinned(job->db, job->options, job->key.ptr, job->key.len,
					&job->error);
}

/*
 * True if a read from memory only cannot tell: a block is not there; or a whole table is not open,
 * for which RocksDB gives an empty value without an error, whether the table has the key or not.
 */
static bool
needs_disk(const struct get_job *job)
{
	size_t len = 0;

	if (job->error)
		return emb_is_incomplete(job->error);
	if (job->slice)
		(void)rocksdb_pinnableslice_value(job->slice, &len);
	return job->slice && len == 0;
}

/* On a loop's thread while reads have been quick lately, or else from memory if it is there. */
static void
get_on_loop(struct emb_disk *disk, const struct emb_snapshot *s, struct get_job *job)
{
	uint64_t begin_ns = clock_mono_ns();
	uint64_t took_ns;

	if (emb_disk_is_quick(disk, begin_ns)) {
		get_run(job);
		took_ns = clock_mono_ns() - begin_ns;
		if (emb_disk_was_slow(disk, took_ns, 1, 0))
			emb_disk_pause(disk, begin_ns + took_ns, took_ns);
		return;
	}
	job->options = s->read_cached;
	get_run(job);
	if (needs_disk(job)) {
		rocksdb_free(job->error);
		job->error = NULL;
		rocksdb_pinnableslice_destroy(job->slice);
		job->slice = NULL;
		job->options = s->read;
		wait_offload(get_run, job);
	}
}

enum status
emb_read_key(struct emb_tx *tx, const struct emb_snapshot *s, struct str key,
	     rocksdb_pinnableslice_t **ret, struct cell *ret_cell)
{
	struct get_job job = {
		.db = tx->store->db,
		.options = s->read,
		.key = key.ptr ? key : STR(""),
	};

	if (wait_on_fiber())
		get_on_loop(&tx->store->disk, s, &job);
	else
		get_run(&job);
	if (job.error)
		return emb_error(job.error, "reading a key", &tx->base.err);
	*ret = job.slice;
	*ret_cell = (struct cell){ .present = job.slice };
	if (job.slice)
		ret_cell->value.ptr = rocksdb_pinnableslice_value(job.slice, &ret_cell->value.len);
	return STATUS_OK;
}

enum status
emb_tx_enter_writes(struct emb_tx *tx)
{
	uint64_t version = tx->snapshot ? tx->snapshot->version : 0;

	while (tx->unentered) {
		if (overlay_enter(&tx->overlay, tx->arena, tx->unentered, version) != STATUS_OK)
			return emb_tx_no_room(tx);
		tx->unentered = tx->unentered->next;
	}
	return STATUS_OK;
}

/* Copies the cell into a new future. */
static enum status
answer(struct emb_tx *tx, struct cell cell, struct kv_future **ret)
{
	struct emb_future *f;
	char *room;

	f = emb_future_new(tx, KV_FUTURE_VALUE, cell.value.len, &room);
	if (!f)
		return emb_tx_no_room(tx);
	if (cell.value.len)
		memcpy(room, cell.value.ptr, cell.value.len);
	f->base.present = cell.present;
	f->base.value = str_of(room, cell.value.len);
	*ret = &f->base;
	return STATUS_OK;
}

/* The snapshot has a say: reads it, and applies what the overlay has for the key. */
static enum status
get_from_snapshot(struct emb_tx *tx, struct str key, const struct overlay_entry *entry,
		  struct kv_future **ret)
{
	rocksdb_pinnableslice_t *slice = NULL;
	struct cell cell = { 0 };
	enum status status;

	TRY(emb_read_key(tx, tx->snapshot, key, &slice, &cell));
	status = STATUS_OK;
	if (entry && overlay_resolve(entry, cell, tx->arena, &cell) != STATUS_OK)
		status = emb_tx_no_room(tx);
	if (status == STATUS_OK)
		status = answer(tx, cell, ret);
	rocksdb_pinnableslice_destroy(slice);
	return status;
}

static enum status
get(struct emb_tx *tx, struct str key, enum kv_read mode, struct kv_future **ret)
{
	const struct overlay_entry *entry = NULL;
	enum overlay_kind kind = OVERLAY_NONE;
	struct emb_snapshot *snapshot;

	TRY(emb_tx_check(tx));
	TRY(emb_tx_check_age(tx));
	TRY(emb_tx_snapshot(tx, &snapshot));
	TRY(emb_tx_enter_writes(tx));
	if (!overlay_is_empty(&tx->overlay))
		kind = overlay_look(&tx->overlay, key, &entry);
	switch (kind) {
	case OVERLAY_UNREADABLE:
		return err_set(&tx->base.err, STATUS_TX_UNREADABLE,
			       "the key depends on a versionstamp, which the commit makes");
	case OVERLAY_SET:
		return answer(tx, (struct cell){ true, entry->value }, ret);
	case OVERLAY_CLEARED:
		return answer(tx, (struct cell){ 0 }, ret);
	case OVERLAY_NONE:
	case OVERLAY_ATOMIC:
		break;
	}
	TRY(get_from_snapshot(tx, key, entry, ret));
	if (mode == KV_READ && tx->base.kind == KV_TX_READ_WRITE)
		return emb_tx_add_key_conflict(tx, &tx->read_conflicts, key);
	return STATUS_OK;
}

struct kv_future *
emb_get(struct kv_tx *base, struct str key, enum kv_read mode)
{
	struct kv_future *f = NULL;
	enum status status = get((struct emb_tx *)base, key, mode, &f);

	return status == STATUS_OK ? f : kv_future_failed(status);
}

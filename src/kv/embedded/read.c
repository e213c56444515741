/*
 * What transactions read, keys and ranges: the checks before a read, the future of its answer, and
 * its conflict. How a range is read out of the snapshot and the overlay is in range.c.
 */
#include <assert.h>

#include "base/clear.h"
#include "kv/embedded/range_int.h"
#include "kv/head.h"
#include "kv/many.h"

enum {
	/* A larger buffer is freed after use. One that may write may be left open by its client. */
	SCRATCH_KEEP_BYTES = 64 * 1024,
	SCRATCH_KEEP_OPEN_BYTES = 8 * 1024,
	RANGE_PASSED = 8, /* cleared keys, over which the next read then passes at once */
};

/* ---- Keys ---- */

struct key_read {
	struct emb_disk_read read; /* first: disk.h */
	struct emb_store *store;
	const struct emb_snapshot *snapshot;
	struct str key;
	bool head;                      /* head.h: of a long value only the beginning is kept */
	rocksdb_pinnableslice_t *slice; /* what has been found; NULL: nothing */
	char *error;
	bool stale; /* the handle is another one than the snapshot's, or is being replaced */
};

static struct cell
cell_of_slice(rocksdb_pinnableslice_t *slice)
{
	struct cell cell = { .present = slice };

	if (slice)
		cell.value.ptr = rocksdb_pinnableslice_value(slice, &cell.value.len);
	return cell;
}

/*
 * True if a read from memory only cannot tell: a block is not there; or a whole table is not open,
 * for which RocksDB gives an empty value without an error, whether the table has the key or not.
 */
static bool
key_read_needs_disk(const struct key_read *job)
{
	if (job->error)
		return emb_is_incomplete(job->error);
	return job->slice && cell_of_slice(job->slice).value.len == 0;
}

static void
key_read_run(struct emb_disk_read *read)
{
	struct key_read *job = (struct key_read *)read;
	bool memory = read->tier == EMB_DISK_MEMORY;
	struct gate_pass pass;

	emb_count_nothing();
	job->stale = !gate_enter(&job->store->gate, &pass);
	if (job->stale)
		return;
	job->stale = !job->snapshot->snapshot;
	/*
	 * The value may lie in a block of the cache, which is the store's: it outlasts the handle,
	 * so the slice may be read and destroyed outside the gate.
	 */
	if (!job->stale)
		job->slice = rocksdb_get_pinned(
			job->store->db, memory ? job->snapshot->read_cached : job->snapshot->read,
			job->key.ptr, job->key.len, &job->error);
	read->pairs = 1;
	read->incomplete = memory && key_read_needs_disk(job);
	/* Inside the gate: recent.h. */
	if (!job->stale && !job->error && !read->incomplete)
		recent_keep(job->store->recent, job->key, cell_of_slice(job->slice),
			    job->snapshot->version, job->head);
	gate_leave(pass);
	if (!read->incomplete)
		return;
	rocksdb_free(job->error);
	job->error = NULL;
	rocksdb_pinnableslice_destroy(job->slice);
	job->slice = NULL;
}

/*
 * Looks the key up among the pairs that were read and written lately, at the transaction's
 * snapshot. Not if the handle is being replaced, or has been since the snapshot was taken: what may
 * not be read through RocksDB any more may not be read here.
 */
static bool
key_find_recent(struct emb_tx *tx, struct str key, bool head, struct recent_answer *ret)
{
	struct emb_store *store = tx->store;
	struct gate_pass pass;
	bool found;

	if (!store->recent || !gate_enter(&store->gate, &pass))
		return false;
	found = tx->snapshot->snapshot &&
		recent_find(store->recent, key, tx->snapshot->version, head, ret);
	gate_leave(pass);
	return found;
}

void
emb_found_release(struct emb_found *found)
{
	rocksdb_pinnableslice_destroy(found->slice);
}

enum status
emb_read_key(struct emb_tx *tx, struct str key, bool head, struct emb_found *ret)
{
	struct key_read job = {
		.read = { .run = key_read_run },
		.store = tx->store,
		.snapshot = tx->snapshot,
		.key = key.ptr ? key : STR(""),
		.head = head,
	};

	ret->slice = NULL;
	if (key_find_recent(tx, job.key, head, &ret->recent)) {
		ret->cell = recent_cell(&ret->recent);
		return STATUS_OK;
	}
	emb_disk_read(tx->store, &job.read);
	assert(!job.read.incomplete && !(job.error && job.slice));
	if (job.stale)
		return emb_tx_stale(&tx->base.err);
	if (job.error)
		return emb_read_error(tx->store, job.key, job.error, "reading a key",
				      &tx->base.err);
	ret->slice = job.slice;
	ret->cell = cell_of_slice(job.slice);
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
	latest_clear(&tx->latest);
	return STATUS_OK;
}

/* Makes a future of the cell, with a copy of its value. */
static enum status
key_answer(struct emb_tx *tx, struct cell cell, struct kv_future **ret)
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

/*
 * Reads the key at the snapshot and applies to it what the overlay has: nothing, or a chain of
 * atomic operations, which want all of the value.
 */
static enum status
key_get_from_snapshot(struct emb_tx *tx, struct str key, const struct overlay_entry *entry,
		      bool head, struct kv_future **ret)
{
	struct emb_found found;
	struct cell cell;
	enum status status;

	assert(!entry || entry->kind == OVERLAY_ATOMIC || entry->kind == OVERLAY_NONE);
	head = head && !entry;
	TRY(emb_read_key(tx, key, head, &found));
	cell = found.cell;
	if (head && cell.value.len > KV_HEAD_BYTES)
		cell.value.len = KV_HEAD_BYTES;
	status = STATUS_OK;
	if (entry && overlay_resolve(entry, cell, tx->arena, &cell) != STATUS_OK)
		status = emb_tx_no_room(tx);
	if (status == STATUS_OK)
		status = key_answer(tx, cell, ret);
	emb_found_release(&found);
	return status;
}

/* What the transaction itself has written to a key. */
struct key_own {
	enum overlay_kind kind;
	struct str value;                  /* of OVERLAY_SET */
	const struct overlay_entry *entry; /* of OVERLAY_ATOMIC */
};

static enum status
key_look(struct emb_tx *tx, struct str key, struct key_own *ret)
{
	const struct mutation *m = NULL;

	*ret = (struct key_own){ .kind = OVERLAY_NONE };
	if (tx->unentered && !latest_enter(&tx->latest, tx->arena))
		TRY(emb_tx_enter_writes(tx));
	if (tx->unentered)
		m = latest_find(&tx->latest, key);
	if (m && (m->kind == MUTATION_SET || m->kind == MUTATION_CLEAR)) {
		ret->kind = m->kind == MUTATION_SET ? OVERLAY_SET : OVERLAY_CLEARED;
		ret->value = m->value;
		return STATUS_OK;
	}
	/* What came before it matters, too, or the commit decides. */
	if (m)
		TRY(emb_tx_enter_writes(tx));
	if (overlay_is_empty(&tx->overlay))
		return STATUS_OK;
	ret->kind = overlay_look(&tx->overlay, key, &ret->entry);
	if (ret->kind == OVERLAY_SET)
		ret->value = ret->entry->value;
	return STATUS_OK;
}

static enum status
key_get(struct emb_tx *tx, struct str key, enum kv_read mode, bool head, struct kv_future **ret)
{
	struct emb_snapshot *snapshot;
	struct key_own own;

	TRY(emb_tx_check(tx));
	TRY(emb_tx_check_age(tx));
	/* Also if the overlay has the whole answer: the first read fixes the read version. */
	TRY(emb_tx_snapshot(tx, &snapshot));
	TRY(key_look(tx, key, &own));
	switch (own.kind) {
	case OVERLAY_UNREADABLE:
		return err_set(&tx->base.err, STATUS_TX_UNREADABLE,
			       "the key depends on a versionstamp, which the commit makes");
	case OVERLAY_SET:
		return key_answer(tx, (struct cell){ true, own.value }, ret);
	case OVERLAY_CLEARED:
		return key_answer(tx, (struct cell){ 0 }, ret);
	case OVERLAY_NONE:
	case OVERLAY_ATOMIC:
		break;
	}
	TRY(key_get_from_snapshot(tx, key, own.entry, head, ret));
	/* What the transaction itself has set or cleared depends on nobody else. */
	if (mode == KV_READ && tx->base.kind == KV_TX_READ_WRITE)
		return emb_tx_add_key_conflict(tx, &tx->read_conflicts, key);
	return STATUS_OK;
}

struct kv_future *
emb_get(struct kv_tx *base, struct str key, enum kv_read mode)
{
	struct kv_future *f = NULL;
	enum status status = key_get((struct emb_tx *)base, key, mode, false, &f);

	return status == STATUS_OK ? f : kv_future_failed(status);
}

struct kv_future *
emb_get_head(struct kv_tx *base, struct str key, enum kv_read mode)
{
	struct kv_future *f = NULL;
	enum status status = key_get((struct emb_tx *)base, key, mode, true, &f);

	return status == STATUS_OK ? f : kv_future_failed(status);
}

/*
 * ---- Many keys ----
 *
 * RocksDB looks keys that it gets together up in one table after the other, each part of a filter
 * or an index once, and waits for memory while it works on others: half of what as many lookups
 * take. What it does once for all of them is 7,000 instructions, though, as many as a lookup has.
 * So a few keys, which are mostly those of one row, are got one after the other.
 */
enum {
	KEYS_FEW = 4,
};

struct keys_read {
	struct emb_disk_read read; /* first: disk.h */
	struct emb_store *store;
	const struct emb_snapshot *snapshot;
	const char *keys[KV_MANY];
	size_t lengths[KV_MANY];
	size_t places[KV_MANY]; /* among those of the call */
	size_t count;
	bool sorted;
	rocksdb_pinnableslice_t *slices[KV_MANY]; /* NULL: nothing was found */
	char *errors[KV_MANY];
	bool stale; /* as of one key */
};

static void
keys_read_run(struct emb_disk_read *read)
{
	struct keys_read *job = (struct keys_read *)read;
	const rocksdb_readoptions_t *options = job->snapshot->read;
	bool together = job->store->family && job->count > KEYS_FEW;
	struct gate_pass pass;

	emb_count_nothing();
	read->incomplete = false;
	job->stale = !gate_enter(&job->store->gate, &pass);
	if (job->stale)
		return;
	job->stale = !job->snapshot->snapshot;
	if (!job->stale && together)
		rocksdb_batched_multi_get_cf(job->store->db, options, job->store->family,
					     job->count, job->keys, job->lengths, job->slices,
					     job->errors, job->sorted);
	for (size_t i = 0; i < job->count && !job->stale && !together; i++)
		job->slices[i] = rocksdb_get_pinned(job->store->db, options, job->keys[i],
						    job->lengths[i], &job->errors[i]);
	for (size_t i = 0; i < job->count && !job->stale; i++)
		if (!job->errors[i])
			recent_keep(job->store->recent, str_of(job->keys[i], job->lengths[i]),
				    cell_of_slice(job->slices[i]), job->snapshot->version, false);
	gate_leave(pass);
	read->pairs = job->count;
}

/* The future of one key: its answer if `status` is fine, and its conflict. */
static struct kv_future *
keys_answer_one(struct emb_tx *tx, struct str key, enum kv_read mode, enum status status,
		struct cell cell)
{
	struct kv_future *f = NULL;

	if (status == STATUS_OK && mode == KV_READ && tx->base.kind == KV_TX_READ_WRITE)
		status = emb_tx_add_key_conflict(tx, &tx->read_conflicts, key);
	if (status == STATUS_OK)
		status = key_answer(tx, cell, &f);
	return status == STATUS_OK ? f : kv_future_failed(status);
}

/* Makes futures of what RocksDB has found, and lets go of it. */
static void
keys_answer(struct emb_tx *tx, struct keys_read *job, enum kv_read mode, struct kv_future **ret)
{
	for (size_t i = 0; i < job->count; i++) {
		struct str key = str_of(job->keys[i], job->lengths[i]);
		enum status status = STATUS_OK;

		if (job->stale)
			status = emb_tx_stale(&tx->base.err);
		else if (job->errors[i])
			status = emb_read_error(tx->store, key, job->errors[i], "reading a key",
						&tx->base.err);
		ret[job->places[i]] = keys_answer_one(tx, key, mode, status,
						      cell_of_slice(job->slices[i]));
		rocksdb_pinnableslice_destroy(job->slices[i]);
	}
}

/* Answers what was read or written lately, and enters the other keys into the job. */
static void
keys_answer_recent(struct emb_tx *tx, const struct str *keys, size_t count, enum kv_read mode,
		   struct keys_read *job, struct kv_future **ret)
{
	struct recent_answer recent;

	for (size_t i = 0; i < count; i++) {
		struct str key = keys[i].ptr ? keys[i] : STR("");
		size_t n = job->count;

		if (key_find_recent(tx, key, false, &recent)) {
			ret[i] = keys_answer_one(tx, key, mode, STATUS_OK, recent_cell(&recent));
			continue;
		}
		job->sorted = job->sorted &&
			      (!n ||
			       str_cmp(str_of(job->keys[n - 1], job->lengths[n - 1]), key) < 0);
		job->keys[n] = key.ptr;
		job->lengths[n] = key.len;
		job->places[n] = i;
		job->count++;
	}
}

/*
 * True if all of it lies in RocksDB. A transaction that has written looks at its own writes for
 * each key, and one that may not read any more says so for each.
 */
static bool
keys_may_be_read(struct emb_tx *tx)
{
	struct emb_snapshot *snapshot;

	return emb_tx_check(tx) == STATUS_OK && emb_tx_check_age(tx) == STATUS_OK &&
	       !tx->unentered && overlay_is_empty(&tx->overlay) &&
	       emb_tx_snapshot(tx, &snapshot) == STATUS_OK;
}

void
emb_get_many(struct kv_tx *base, const struct str *keys, size_t count, enum kv_read mode,
	     struct kv_future **ret)
{
	struct emb_tx *tx = (struct emb_tx *)base;
	/* While the disk is slow, the pool reads them: most likely a block of one is missing. */
	struct keys_read job = {
		.read = { .run = keys_read_run, .is_range = true },
		.store = tx->store,
		.sorted = true,
	};

	_Static_assert((int)KV_MANY <= (int)RECENT_EXPECTED,
		       "all keys of a call are expected together");
	assert(count <= KV_MANY);
	recent_expect(tx->store->recent, keys, count);
	if (!keys_may_be_read(tx)) {
		for (size_t i = 0; i < count; i++)
			ret[i] = emb_get(base, keys[i], mode);
		return;
	}
	job.snapshot = tx->snapshot;
	keys_answer_recent(tx, keys, count, mode, &job, ret);
	if (!job.count)
		return;
	emb_disk_read(tx->store, &job.read);
	assert(!job.read.incomplete);
	keys_answer(tx, &job, mode, ret);
}

/*
 * ---- Ranges ----
 *
 * The answer is collected in buffers that the transaction keeps, and then copied into a future of
 * the right size.
 */

static enum status
range_read(struct range_job *job)
{
	struct emb_tx *tx = job->tx;
	struct emb_snapshot *snapshot;

	TRY(emb_tx_snapshot(tx, &snapshot));
	if (!tx->iterate)
		tx->iterate = rocksdb_readoptions_create();
	/* Of a range that is asked for from its end a lookup gives the only pair, or is in vain. */
	job->entity_len = emb_range_entity_len(&tx->store->entities, job->begin, job->end);
	job->gaps_len = job->entity_len
				? job->entity_len
				: emb_range_space_len(&tx->store->entities, job->begin, job->end);
	job->within_entity = job->entity_len &&
			     (!job->options->reverse || job->options->limit == 1);
	job->iterate = tx->iterate;
	job->bytes = &tx->scratch;
	job->lengths = &tx->scratch_pairs;
	job->err = &tx->base.err;
	job->read = (struct emb_disk_read){ .run = emb_range_run, .is_range = true };
	emb_disk_read(tx->store, &job->read);
	return job->status;
}

static enum status
range_answer(struct range_job *job, struct emb_future **ret)
{
	struct emb_tx *tx = job->tx;
	struct buf *bytes = &tx->scratch;
	size_t pairs_bytes = job->count * sizeof(struct kv_pair);
	size_t kept = tx->base.kind == KV_TX_READ_WRITE ? SCRATCH_KEEP_OPEN_BYTES
							: SCRATCH_KEEP_BYTES;
	struct emb_future *f;
	struct kv_pair *pairs;
	char *room;

	/* The pairs come first, since they need the alignment. */
	f = emb_future_new(tx, KV_FUTURE_RANGE, pairs_bytes + bytes->len, &room);
	if (!f)
		return emb_tx_no_room(tx);
	assert((uintptr_t)room % _Alignof(struct kv_pair) == 0);
	pairs = (struct kv_pair *)(void *)room;
	if (bytes->len)
		memcpy(room + pairs_bytes, bytes->ptr, bytes->len);
	emb_range_lay_out(job, pairs, room + pairs_bytes);
	f->base.range = (struct kv_range){ pairs, job->count, job->more };
	if (bytes->cap > kept)
		buf_release(bytes);
	if (tx->scratch_pairs.cap > kept)
		buf_release(&tx->scratch_pairs);
	*ret = f;
	return STATUS_OK;
}

/* Adds a read conflict of what has been read: up to the last pair, if a limit ended the answer. */
static enum status
range_add_conflict(struct emb_tx *tx, const struct range_job *job, struct kv_range range)
{
	struct str last;

	if (!range.more)
		return emb_tx_add_conflict(tx, &tx->read_conflicts, job->begin, job->end);
	assert(range.count > 0); /* a limit is reached by a pair */
	last = range.pairs[range.count - 1].key;
	if (job->options->reverse)
		return emb_tx_add_conflict(tx, &tx->read_conflicts, last, job->end);
	last = arena_dup(tx->arena, last);
	if (!last.ptr)
		return emb_tx_no_room(tx);
	last.len++; /* with the zero byte behind the copy it is the next possible key */
	return emb_tx_add_conflict(tx, &tx->read_conflicts, job->begin, last);
}

/*
 * After a read that has passed many keys which the transaction itself has cleared, notes the span
 * of them. A transaction that takes pairs from one end of a range, one after the other, would pass
 * all of them again with each read. No stamped key can come to lie in the span: the read would have
 * failed there.
 */
static enum status
range_note_passed(struct emb_tx *tx, const struct range_job *job, struct kv_range range)
{
	struct str begin = job->begin, end = job->end;

	if (job->passed < RANGE_PASSED)
		return STATUS_OK;
	if (range.count && job->options->reverse)
		begin = range.pairs[0].key;
	else if (range.count)
		end = range.pairs[0].key;
	begin = arena_dup(tx->arena, begin);
	end = arena_dup(tx->arena, end);
	if (!begin.ptr || !end.ptr)
		return emb_tx_no_room(tx);
	if (range.count && job->options->reverse)
		begin.len++; /* with the zero byte behind the copy it is the next possible key */
	return overlay_note_passed(&tx->overlay, tx->arena, begin, end) == STATUS_OK
		       ? STATUS_OK
		       : emb_tx_no_room(tx);
}

static enum status
range_get(struct emb_tx *tx, struct range_job *job, struct kv_future **ret)
{
	struct emb_snapshot *snapshot;
	struct emb_future *f = NULL;
	char *room;

	TRY(emb_tx_check(tx));
	TRY(emb_tx_check_age(tx));
	if (str_cmp(job->begin, job->end) >= 0) {
		f = emb_future_new(tx, KV_FUTURE_RANGE, 0, &room);
		if (!f)
			return emb_tx_no_room(tx);
		*ret = &f->base;
		return STATUS_OK;
	}
	TRY(emb_tx_snapshot(tx, &snapshot));
	if (job->options->ahead && emb_disk_may_read_ahead(tx, job->options->limit_bytes)) {
		*ret = emb_ahead_begin(job);
		if (*ret)
			return STATUS_OK;
	}
	TRY(emb_tx_enter_writes(tx));
	TRY(range_read(job));
	TRY(range_answer(job, &f));
	assert(f);
	*ret = &f->base;
	TRY(range_note_passed(tx, job, f->base.range));
	if (job->options->mode == KV_READ && tx->base.kind == KV_TX_READ_WRITE)
		return range_add_conflict(tx, job, f->base.range);
	return STATUS_OK;
}

struct kv_future *
emb_get_range(struct kv_tx *base, struct str begin, struct str end,
	      const struct kv_range_options *options)
{
	struct emb_tx *tx = (struct emb_tx *)base;
	struct kv_future *f = NULL;
	struct range_job job;
	enum status status;

	CLEAR_BEFORE(&job, gap);
	job.tx = tx;
	job.begin = begin;
	job.end = end;
	job.options = options;
	status = range_get(tx, &job, &f);
	return status == STATUS_OK ? f : kv_future_failed(status);
}

enum status
emb_find_keys(struct emb_tx *tx, struct mutation *m)
{
	const struct kv_range_options few = { .limit = EMB_DISK_INLINE_KEYS,
					      .limit_bytes = EMB_CLEAR_BYTES };
	const struct kv_range_options many = { .limit = SIZE_MAX, .limit_bytes = EMB_CLEAR_BYTES };
	struct range_job job = {
		.tx = tx, .begin = m->key, .end = m->value, .options = &few, .keys_only = true
	};
	const struct pair_lengths *lengths;
	struct str bytes;

	assert(m->kind == MUTATION_CLEAR_RANGE && !m->keys_known);
	TRY(range_read(&job));
	if (job.more) {
		job.options = &many;
		emb_disk_read_elsewhere(&job.read);
		if (job.status != STATUS_OK)
			return job.status;
	}
	if (job.more || tx->scratch.len > EMB_CLEAR_TX_BYTES - tx->cleared_bytes)
		return STATUS_OK;
	tx->cleared_bytes += tx->scratch.len;
	bytes = buf_dup(&tx->scratch, tx->arena);
	m->keys = arena_alloc(tx->arena, (job.count + 1) * sizeof(*m->keys));
	if (!bytes.ptr || !m->keys)
		return emb_tx_no_room(tx);
	lengths = (const struct pair_lengths *)(const void *)tx->scratch_pairs.ptr;
	for (size_t i = 0; i < job.count; i++) {
		m->keys[i] = str_of(bytes.ptr, lengths[i].key);
		bytes.ptr += lengths[i].key;
	}
	m->key_count = (uint32_t)job.count;
	m->keys_known = true;
	return STATUS_OK;
}

/*
 * Reading ranges: the snapshot's pairs and the overlay's, merged in one pass.
 *
 * The answer is collected in buffers that the transaction keeps, then copied into a future of the
 * right size.
 */
#include <assert.h>

#include "base/clock.h"
#include "base/wait.h"
#include "kv/embedded/range_int.h"

enum {
	READ_TIER_ALL = 0,
	READ_TIER_CACHE = 1,
	PATIENCE_PAIRS = 16,            /* between two looks at the clock, a power of two */
	SCRATCH_KEEP_BYTES = 64 * 1024, /* a larger buffer is freed after use */
	LOOKUP_SKIPS = 16,              /* deleted keys, side by side, that a lookup steps over */
};

/* ---- The two sources ---- */

static bool
snapshot_key(const struct range_job *job, struct str *ret)
{
	if (!rocksdb_iter_valid(job->it))
		return false;
	ret->ptr = rocksdb_iter_key(job->it, &ret->len);
	return true;
}

static void
snapshot_step(struct range_job *job)
{
	if (job->options->reverse)
		rocksdb_iter_prev(job->it);
	else
		rocksdb_iter_next(job->it);
}

static void
entry_step(struct range_job *job)
{
	const struct tree *entries = &job->tx->overlay.entries;
	struct tree_node *n;

	if (job->options->reverse) {
		n = tree_before(entries, job->entry->key);
		job->entry = n && str_cmp(n->key, job->begin) >= 0 ? n : NULL;
	} else {
		n = tree_next(job->entry);
		job->entry = n && str_cmp(n->key, job->end) < 0 ? n : NULL;
	}
}

/* Moves the snapshot's side over a span that the transaction has cleared. */
static void
skip_cleared(struct range_job *job, const struct span *cleared)
{
	struct str key;

	if (!job->options->reverse) {
		rocksdb_iter_seek(job->it, cleared->end.ptr, cleared->end.len);
		return;
	}
	rocksdb_iter_seek_for_prev(job->it, cleared->node.key.ptr, cleared->node.key.len);
	if (snapshot_key(job, &key) && str_eq(key, cleared->node.key))
		rocksdb_iter_prev(job->it);
}

/* True if going on to `key` would pass through keys that only the commit will know. */
static bool
meets_stamped(const struct range_job *job, struct str key)
{
	if (!job->stamped)
		return false;
	return job->options->reverse ? str_cmp(key, job->stamped->end) < 0
				     : str_cmp(key, job->stamped->node.key) >= 0;
}

/* ---- Collecting ---- */

/* Whether a loop's thread, which has read files so far, had to wait for them. */
static bool
is_slow(const struct range_job *job)
{
	return emb_disk_was_slow(&job->tx->store->disk, clock_mono_ns() - job->begin_ns, job->count,
				 job->bytes->len);
}

/*
 * False when this pair was the last: a limit is reached, there is no more room, or a loop's thread
 * has to leave the rest to the pool.
 */
static bool
collect(struct range_job *job, struct str key, struct str value)
{
	struct pair_lengths lengths = { (uint32_t)key.len, (uint32_t)value.len };
	struct buf *bytes = job->bytes;

	buf_append_str(bytes, key);
	buf_append_str(bytes, value);
	buf_append(job->lengths, &lengths, sizeof(lengths));
	if (buf_status(bytes) != STATUS_OK || buf_status(job->lengths) != STATUS_OK) {
		job->status = buf_status(bytes) == STATUS_LIMIT
				      ? err_set(job->err, STATUS_LIMIT,
						"a range answer exceeds %d bytes",
						EMB_RANGE_ANSWER_BYTES)
				      : STATUS_NOMEM;
		return false;
	}
	job->count++;
	job->more = job->count >= job->options->limit || bytes->len >= job->options->limit_bytes;
	if (!job->more && job->begin_ns && job->count % PATIENCE_PAIRS == 0 && is_slow(job))
		job->incomplete = true;
	return !job->more && !job->incomplete;
}

static struct str
snapshot_value(const struct range_job *job)
{
	struct str value = { 0 };

	if (!job->keys_only)
		value.ptr = rocksdb_iter_value(job->it, &value.len);
	return value;
}

static void
merge_plain(struct range_job *job)
{
	struct str key;

	for (; snapshot_key(job, &key); snapshot_step(job))
		if (!collect(job, key, snapshot_value(job)))
			return;
}

static enum status
unreadable(struct range_job *job)
{
	return err_set(&job->tx->base.err, STATUS_TX_UNREADABLE,
		       "the range meets a key or value that only the commit will know");
}

/* The pair of the overlay's next entry; `snapshot` is what the snapshot has under its key. */
static bool
collect_entry(struct range_job *job, struct cell snapshot)
{
	struct overlay_entry *e = (struct overlay_entry *)job->entry;
	struct cell cell;
	enum status status = overlay_resolve(e, snapshot, job->tx->arena, &cell);

	if (status != STATUS_OK) {
		job->status = status == STATUS_TX_UNREADABLE ? unreadable(job)
							     : emb_tx_no_room(job->tx);
		return false;
	}
	entry_step(job);
	return !cell.present || collect(job, e->node.key, cell.value);
}

/* Takes the next pair from whichever side has it. False at the end. */
static bool
merge_step(struct range_job *job)
{
	const struct span *cleared;
	bool has_entry = job->entry;
	bool has_key;
	struct str key;
	int order; /* < 0: the snapshot's pair comes first */

	has_key = snapshot_key(job, &key);
	if (has_key && (cleared = span_around(&job->tx->overlay.cleared, key))) {
		skip_cleared(job, cleared);
		return true;
	}
	if (!has_key && !has_entry)
		return false;
	order = !has_entry ? -1 : !has_key ? 1 : str_cmp(key, job->entry->key);
	if (has_entry && has_key && job->options->reverse)
		order = -order;
	if (meets_stamped(job, order <= 0 ? key : job->entry->key)) {
		job->status = unreadable(job);
		return false;
	}
	if (order < 0) {
		if (!collect(job, key, snapshot_value(job)))
			return false;
	} else if (!collect_entry(job, order == 0 ? (struct cell){ true, snapshot_value(job) }
						  : (struct cell){ 0 })) {
		return false;
	}
	if (order <= 0)
		snapshot_step(job);
	return true;
}

static void
merge(struct range_job *job)
{
	const struct overlay *o = &job->tx->overlay;

	if (job->options->reverse) {
		job->entry = tree_before(&o->entries, job->end);
		if (job->entry && str_cmp(job->entry->key, job->begin) < 0)
			job->entry = NULL;
		job->stamped = span_last_in(&o->stamped, job->begin, job->end);
	} else {
		job->entry = tree_at_or_after(&o->entries, job->begin);
		if (job->entry && str_cmp(job->entry->key, job->end) >= 0)
			job->entry = NULL;
		job->stamped = span_first_in(&o->stamped, job->begin, job->end);
	}
	while (merge_step(job))
		;
	if (job->status == STATUS_OK && !job->more && !job->incomplete && job->stamped)
		job->status = unreadable(job);
}

/* ---- Running ---- */

static void
set_bounds(const struct range_job *job)
{
	rocksdb_readoptions_t *options = job->iterate;

	rocksdb_readoptions_set_iterate_lower_bound(options, job->begin.ptr, job->begin.len);
	rocksdb_readoptions_set_iterate_upper_bound(options, job->end.ptr, job->end.len);
}

static rocksdb_iterator_t *
make_iterator(const struct range_job *job, bool within_entity)
{
	rocksdb_readoptions_t *options = job->iterate;

	rocksdb_readoptions_set_read_tier(options,
					  job->from_cache ? READ_TIER_CACHE : READ_TIER_ALL);
	rocksdb_readoptions_set_total_order_seek(options, !within_entity);
	rocksdb_readoptions_set_max_skippable_internal_keys(options,
							    within_entity ? LOOKUP_SKIPS : 0);
	return rocksdb_create_iterator(job->tx->store->db, options);
}

static void
begin_answer(struct range_job *job)
{
	buf_clear(job->bytes);
	buf_clear(job->lengths);
	job->count = 0;
	job->more = false;
	job->incomplete = false;
	job->status = STATUS_OK;
}

static void
collect_range(struct range_job *job)
{
	if (job->keys_only || overlay_is_empty(&job->tx->overlay))
		merge_plain(job);
	else
		merge(job);
}

/*
 * Goes on from the first pair of a range that is asked for from its end: mostly it is the only one,
 * or there is none. False if there are more.
 */
static bool
collect_only(struct range_job *job)
{
	struct str key;

	if (!snapshot_key(job, &key)) {
		collect_range(job);
		return true;
	}
	if (!job->keys_only && !overlay_is_empty(&job->tx->overlay))
		return false;
	(void)collect(job, key, snapshot_value(job));
	rocksdb_iter_next(job->it);
	return !rocksdb_iter_valid(job->it);
}

/*
 * Reads a range within an entity: forward, where filters tell which tables to ask. RocksDB reads
 * the bounds through its options whenever an iterator is moved, so a transaction that looks for
 * many documents takes one iterator from one to the next. False if the range has to be read the
 * other way: there is something at its end to go to, there is too much deleted to step over, or
 * something is wrong.
 */
static bool
range_look_up(struct range_job *job)
{
	struct emb_tx *tx = job->tx;
	char *error = NULL;
	bool done;

	if (tx->lookup && tx->lookup_from_cache != job->from_cache)
		emb_lookup_release(tx);
	set_bounds(job);
	if (!tx->lookup)
		tx->lookup = make_iterator(job, true);
	tx->lookup_from_cache = job->from_cache;
	job->it = tx->lookup;
	begin_answer(job);
	rocksdb_iter_seek_to_first(job->it);
	if (job->options->reverse) {
		done = collect_only(job);
	} else {
		collect_range(job);
		done = true;
	}
	rocksdb_iter_get_error(job->it, &error);
	done = done && !error;
	rocksdb_free(error);
	if (tx->base.kind != KV_TX_READ_WRITE)
		emb_lookup_release(tx);
	return done;
}

static void
range_go_through(struct range_job *job)
{
	char *error = NULL;

	set_bounds(job);
	job->it = make_iterator(job, false);
	begin_answer(job);
	if (job->options->reverse)
		rocksdb_iter_seek_to_last(job->it);
	else
		rocksdb_iter_seek_to_first(job->it);
	collect_range(job);
	rocksdb_iter_get_error(job->it, &error);
	rocksdb_iter_destroy(job->it);
	if (error && job->from_cache && emb_is_incomplete(error))
		job->incomplete = true;
	if (job->incomplete)
		rocksdb_free(error);
	else if (error)
		job->status = emb_error(error, "reading a range", job->err);
}

static void
range_run(void *arg)
{
	struct range_job *job = arg;

	emb_count_nothing();
	if (!job->within_entity || !range_look_up(job))
		range_go_through(job);
}

void
emb_lookup_release(struct emb_tx *tx)
{
	if (tx->lookup)
		rocksdb_iter_destroy(tx->lookup);
	tx->lookup = NULL;
}

void
emb_range_read(struct range_job *job)
{
	job->from_cache = false;
	job->begin_ns = 0;
	range_run(job);
}

static void
read_range_anywhere(struct range_job *job)
{
	job->from_cache = false;
	job->begin_ns = 0;
	wait_offload(range_run, job);
}

static void
read_range_from_files(struct range_job *job, uint64_t now_ns)
{
	job->begin_ns = now_ns;
	range_run(job);
	if (job->incomplete || is_slow(job))
		emb_disk_pause(&job->tx->store->disk, clock_mono_ns(), clock_mono_ns() - now_ns);
}

/*
 * RocksDB before 8.5.2 can pass over keys when an iterator meets both a deleted range and a file
 * that it cannot read, and confined to the cache that is any file. A store that has a deleted range
 * is therefore never read this way.
 */
static void
read_range_from_cache(struct range_job *job)
{
	job->from_cache = !atomic_load_explicit(&job->tx->store->has_deleted_ranges,
						memory_order_acquire);
	job->incomplete = !job->from_cache;
	if (job->from_cache)
		range_run(job);
}

/* On a loop's thread while reads have been quick lately, or else from memory if it is there. */
void
emb_range_read_on_loop(struct range_job *job)
{
	uint64_t now_ns = clock_mono_ns();

	if (emb_disk_is_quick(&job->tx->store->disk, now_ns))
		read_range_from_files(job, now_ns);
	else
		read_range_from_cache(job);
	if (job->incomplete)
		read_range_anywhere(job);
}

rocksdb_readoptions_t *
emb_range_options(const struct emb_tx *tx)
{
	rocksdb_readoptions_t *o = rocksdb_readoptions_create();

	rocksdb_readoptions_set_snapshot(o, tx->snapshot->snapshot);
	return o;
}

static enum status
read_range(struct range_job *job)
{
	struct emb_tx *tx = job->tx;
	struct emb_snapshot *snapshot;

	TRY(emb_tx_snapshot(tx, &snapshot));
	if (!tx->iterate)
		tx->iterate = emb_range_options(tx);
	job->within_entity = emb_is_within_entity(job->begin, job->end);
	job->iterate = tx->iterate;
	job->bytes = &tx->scratch;
	job->lengths = &tx->scratch_pairs;
	job->err = &tx->base.err;
	if (wait_on_fiber())
		emb_range_read_on_loop(job);
	else
		read_range_anywhere(job);
	return job->status;
}

void
emb_range_lay_out(const struct range_job *job, struct kv_pair *pairs, const char *bytes)
{
	const struct pair_lengths *lengths = (const struct pair_lengths *)(const void *)
						     job->lengths->ptr;

	for (size_t i = 0; i < job->count; i++) {
		pairs[i].key = str_of(bytes, lengths[i].key);
		bytes += lengths[i].key;
		pairs[i].value = str_of(bytes, lengths[i].value);
		bytes += lengths[i].value;
	}
}

static enum status
answer(struct range_job *job, struct emb_future **ret)
{
	struct emb_tx *tx = job->tx;
	struct buf *bytes = &tx->scratch;
	size_t pairs_bytes = job->count * sizeof(struct kv_pair);
	struct emb_future *f;
	struct kv_pair *pairs;
	char *room;

	/* The pairs come first, since they need the alignment. */
	f = emb_future_new(tx, KV_FUTURE_RANGE, pairs_bytes + bytes->len, &room);
	if (!f)
		return emb_tx_no_room(tx);
	pairs = (struct kv_pair *)(void *)room;
	if (bytes->len)
		memcpy(room + pairs_bytes, bytes->ptr, bytes->len);
	emb_range_lay_out(job, pairs, room + pairs_bytes);
	f->base.range = (struct kv_range){ pairs, job->count, job->more };
	if (bytes->cap > SCRATCH_KEEP_BYTES)
		buf_release(bytes);
	*ret = f;
	return STATUS_OK;
}

/* What has been read conflicts: up to the last pair, if a limit ended the answer there. */
static enum status
add_conflict(struct emb_tx *tx, const struct range_job *job, struct kv_range range)
{
	struct str last;

	if (!range.more)
		return emb_tx_add_conflict(tx, &tx->read_conflicts, job->begin, job->end);
	last = range.pairs[range.count - 1].key;
	if (job->options->reverse)
		return emb_tx_add_conflict(tx, &tx->read_conflicts, last, job->end);
	last = arena_dup(tx->arena, last);
	if (!last.ptr)
		return emb_tx_no_room(tx);
	last.len++; /* the zero byte behind the copy: the next key */
	return emb_tx_add_conflict(tx, &tx->read_conflicts, job->begin, last);
}

static enum status
get_range(struct emb_tx *tx, struct range_job *job, struct kv_future **ret)
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
	if (job->options->ahead && tx->base.kind == KV_TX_READ_ONLY) {
		*ret = emb_ahead_begin(job);
		if (*ret)
			return STATUS_OK;
	}
	TRY(emb_tx_enter_writes(tx));
	TRY(read_range(job));
	TRY(answer(job, &f));
	assert(f);
	*ret = &f->base;
	if (job->options->mode == KV_READ && tx->base.kind == KV_TX_READ_WRITE)
		return add_conflict(tx, job, f->base.range);
	return STATUS_OK;
}

struct kv_future *
emb_get_range(struct kv_tx *base, struct str begin, struct str end,
	      const struct kv_range_options *options)
{
	struct emb_tx *tx = (struct emb_tx *)base;
	struct range_job job = { .tx = tx, .begin = begin, .end = end, .options = options };
	struct kv_future *f = NULL;
	enum status status = get_range(tx, &job, &f);

	return status == STATUS_OK ? f : kv_future_failed(status);
}

enum status
emb_find_keys(struct emb_tx *tx, struct mutation *m)
{
	const struct kv_range_options few = { .limit = EMB_CLEAR_INLINE_KEYS,
					      .limit_bytes = EMB_CLEAR_BYTES };
	const struct kv_range_options many = { .limit = SIZE_MAX, .limit_bytes = EMB_CLEAR_BYTES };
	struct range_job job = {
		.tx = tx, .begin = m->key, .end = m->value, .options = &few, .keys_only = true
	};
	const struct pair_lengths *lengths;
	struct str bytes;

	TRY(read_range(&job));
	if (job.more) {
		job.options = &many;
		read_range_anywhere(&job);
		if (job.status != STATUS_OK)
			return job.status;
	}
	if (job.more || tx->scratch.len > EMB_CLEAR_TX_BYTES - tx->cleared_bytes)
		return STATUS_OK;
	tx->cleared_bytes += tx->scratch.len;
	bytes = arena_dup(tx->arena, buf_str(&tx->scratch));
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

/*
 * Reading a range: the pairs of the snapshot and those of the overlay, merged in one pass, and
 * collected in the buffers of the job. The functions of read.c and ahead.c call it.
 *
 * A reading may stop half way, because the disk proves slow. Then the whole range is read again
 * elsewhere (disk.h), and range_begin_answer() throws away what had been collected. Nothing but the
 * buffers and the job has changed until then.
 */
#include <assert.h>

#include "base/clock.h"
#include "kv/embedded/range_int.h"

enum {
	PATIENCE_PAIRS = 16, /* between two looks at the clock, a power of two */
	LOOKUP_SKIPS = 16,   /* deleted keys in a row that a lookup steps over */
};

/* ---- The two sources ---- */

static bool
range_snapshot_key(const struct range_job *job, struct str *ret)
{
	if (!rocksdb_iter_valid(job->it))
		return false;
	ret->ptr = rocksdb_iter_key(job->it, &ret->len);
	return true;
}

static void
range_snapshot_step(struct range_job *job)
{
	if (job->options->reverse)
		rocksdb_iter_prev(job->it);
	else
		rocksdb_iter_next(job->it);
}

static void
range_entry_step(struct range_job *job)
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

/* Moves the overlay's entry to the other side of a span that has been passed. */
static void
range_skip_entries(struct range_job *job, const struct span *passed)
{
	const struct tree *entries = &job->tx->overlay.entries;
	struct tree_node *n;

	if (job->options->reverse) {
		n = tree_before(entries, passed->node.key);
		job->entry = n && str_cmp(n->key, job->begin) >= 0 ? n : NULL;
	} else {
		n = tree_at_or_after(entries, passed->end);
		job->entry = n && str_cmp(n->key, job->end) < 0 ? n : NULL;
	}
}

/* Moves the snapshot's iterator to the other side of a span that is cleared or has been passed. */
static void
range_skip_cleared(struct range_job *job, const struct span *cleared)
{
	struct str key;

	if (!job->options->reverse) {
		rocksdb_iter_seek(job->it, cleared->end.ptr, cleared->end.len);
		return;
	}
	rocksdb_iter_seek_for_prev(job->it, cleared->node.key.ptr, cleared->node.key.len);
	if (range_snapshot_key(job, &key) && str_eq(key, cleared->node.key))
		rocksdb_iter_prev(job->it);
}

/*
 * True if there may be keys between the place that has been reached and `key` which only the commit
 * will know: a span in which a stamped key may come to lie begins before it.
 */
static bool
range_meets_stamped(const struct range_job *job, struct str key)
{
	if (!job->stamped)
		return false;
	return job->options->reverse ? str_cmp(key, job->stamped->end) < 0
				     : str_cmp(key, job->stamped->node.key) >= 0;
}

/* ---- Collecting ---- */

static void
range_tell_progress(struct range_job *job)
{
	job->read.pairs = job->count;
	job->read.bytes = job->bytes->len;
}

/* There is no memory for a pair, or the answer would be too long. Returns false. */
__attribute__((noinline, cold)) static bool
range_fail_room(struct range_job *job)
{
	job->status = buf_status(job->bytes) == STATUS_LIMIT
			      ? err_set(job->err, STATUS_LIMIT, "a range answer exceeds %d bytes",
					EMB_RANGE_ANSWER_BYTES)
			      : STATUS_NOMEM;
	return false;
}

/*
 * Adds a pair to the answer. Returns false if the reading has to stop there: a limit is reached,
 * there is no more room, or a loop's thread has to leave the range to the pool.
 */
__attribute__((always_inline)) static inline bool
range_collect(struct range_job *job, struct str key, struct str value)
{
	const struct pair_lengths lengths = { (uint32_t)key.len, (uint32_t)value.len };
	struct buf *bytes = job->bytes;
	char *to;

	if (!buf_reserve(bytes, key.len + value.len) || !buf_reserve(job->lengths, sizeof(lengths)))
		return range_fail_room(job);
	to = bytes->ptr + bytes->len;
	bytes->len += key.len + value.len;
	memcpy(to, key.ptr, key.len);
	if (value.len)
		memcpy(to + key.len, value.ptr, value.len);
	memcpy(job->lengths->ptr + job->lengths->len, &lengths, sizeof(lengths));
	job->lengths->len += sizeof(lengths);
	job->count++;
	job->more = job->count >= job->options->limit || bytes->len >= job->options->limit_bytes;
	if (!job->more && job->count % PATIENCE_PAIRS == 0) {
		range_tell_progress(job);
		job->read.incomplete = emb_disk_read_is_slow(job->tx->store, &job->read);
	}
	return !job->more && !job->read.incomplete;
}

static struct str
range_snapshot_value(const struct range_job *job)
{
	struct str value = { 0 };

	if (!job->keys_only)
		value.ptr = rocksdb_iter_value(job->it, &value.len);
	return value;
}

/*
 * range_collect() for the next PATIENCE_PAIRS pairs of the snapshot, where the overlay has nothing.
 * This loop runs for each pair that anybody reads, so it keeps in locals what is the same for all
 * of them. Returns false if the reading has to stop, or is at its end.
 */
static bool
range_collect_few(struct range_job *job)
{
	const size_t left = job->options->limit - job->count;
	const size_t limit_bytes = job->options->limit_bytes;
	const bool reverse = job->options->reverse, keys_only = job->keys_only;
	rocksdb_iterator_t *it = job->it;
	struct buf *bytes = job->bytes;
	struct pair_lengths *lengths;
	size_t count = 0;
	bool any, more = false;

	if (!buf_reserve(job->lengths, PATIENCE_PAIRS * sizeof(*lengths)))
		return range_fail_room(job);
	lengths = (struct pair_lengths *)(job->lengths->ptr + job->lengths->len);
	while ((any = rocksdb_iter_valid(it)) && count < PATIENCE_PAIRS) {
		struct str key, value = { 0 };
		char *to;

		key.ptr = rocksdb_iter_key(it, &key.len);
		if (!keys_only)
			value.ptr = rocksdb_iter_value(it, &value.len);
		if (!buf_reserve(bytes, key.len + value.len))
			return range_fail_room(job);
		to = bytes->ptr + bytes->len;
		bytes->len += key.len + value.len;
		memcpy(to, key.ptr, key.len);
		if (value.len)
			memcpy(to + key.len, value.ptr, value.len);
		lengths[count++] = (struct pair_lengths){ (uint32_t)key.len, (uint32_t)value.len };
		more = count >= left || bytes->len >= limit_bytes;
		if (more)
			break;
		if (reverse)
			rocksdb_iter_prev(it);
		else
			rocksdb_iter_next(it);
	}
	job->lengths->len += count * sizeof(*lengths);
	job->count += count;
	job->more = more;
	if (more || !any)
		return false;
	range_tell_progress(job);
	job->read.incomplete = emb_disk_read_is_slow(job->tx->store, &job->read);
	return !job->read.incomplete;
}

static void
range_merge_none(struct range_job *job)
{
	while (range_collect_few(job))
		;
}

static enum status
range_unreadable(struct range_job *job)
{
	return err_set(&job->tx->base.err, STATUS_TX_UNREADABLE,
		       "the range meets a key or value that only the commit will know");
}

/*
 * Adds the pair of the overlay's next entry, unless the entry says that the key is cleared.
 * `snapshot` is what the snapshot has under the same key. Returns false if the reading has to stop.
 */
static bool
range_collect_entry(struct range_job *job, struct cell snapshot)
{
	struct overlay_entry *e = (struct overlay_entry *)job->entry;
	struct cell cell;
	enum status status = overlay_resolve(e, snapshot, job->tx->arena, &cell);

	if (status != STATUS_OK) {
		job->status = status == STATUS_TX_UNREADABLE ? range_unreadable(job)
							     : emb_tx_no_room(job->tx);
		return false;
	}
	range_entry_step(job);
	if (cell.present)
		return range_collect(job, e->node.key, cell.value);
	if (!job->count)
		job->passed++;
	return true;
}

/*
 * Takes the next pair, from the snapshot or from the overlay, whichever comes first. If both have
 * the key, the overlay's entry decides. Returns false at the end.
 */
static bool
range_merge_step(struct range_job *job)
{
	const struct overlay *o = &job->tx->overlay;
	const struct span *absent;
	bool has_entry = job->entry;
	bool has_key;
	struct str key;
	int order; /* < 0: the snapshot's pair comes first */

	assert(!job->keys_only);
	has_key = range_snapshot_key(job, &key);
	if (has_key &&
	    ((absent = span_around(&o->passed, key)) || (absent = span_around(&o->cleared, key)))) {
		range_skip_cleared(job, absent);
		return true;
	}
	if (has_entry && (absent = span_around(&o->passed, job->entry->key))) {
		range_skip_entries(job, absent);
		return true;
	}
	if (!has_key && !has_entry)
		return false;
	order = !has_entry ? -1 : !has_key ? 1 : str_cmp(key, job->entry->key);
	if (has_entry && has_key && job->options->reverse)
		order = -order;
	if (range_meets_stamped(job, order <= 0 ? key : job->entry->key)) {
		job->status = range_unreadable(job);
		return false;
	}
	if (order < 0) {
		if (!range_collect(job, key, range_snapshot_value(job)))
			return false;
	} else if (!range_collect_entry(
			   job, order == 0 ? (struct cell){ true, range_snapshot_value(job) }
					   : (struct cell){ 0 })) {
		return false;
	}
	if (order <= 0)
		range_snapshot_step(job);
	return true;
}

static void
range_merge(struct range_job *job)
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
	while (range_merge_step(job))
		;
	if (job->status == STATUS_OK && !job->more && !job->read.incomplete && job->stamped)
		job->status = range_unreadable(job);
}

/* ---- Reading out of RocksDB ---- */

static void
range_set_bounds(const struct range_job *job)
{
	rocksdb_readoptions_t *options = job->iterate;

	rocksdb_readoptions_set_iterate_lower_bound(options, job->snapshot_begin.ptr,
						    job->snapshot_begin.len);
	rocksdb_readoptions_set_iterate_upper_bound(options, job->snapshot_end.ptr,
						    job->snapshot_end.len);
}

static rocksdb_iterator_t *
range_make_iterator(const struct range_job *job, bool within_entity)
{
	rocksdb_readoptions_t *options = job->iterate;

	rocksdb_readoptions_set_snapshot(options, job->tx->snapshot->snapshot);
	rocksdb_readoptions_set_total_order_seek(options, !within_entity);
	rocksdb_readoptions_set_max_skippable_internal_keys(options,
							    within_entity ? LOOKUP_SKIPS : 0);
	return rocksdb_create_iterator(job->tx->store->db, options);
}

static void
range_begin_answer(struct range_job *job)
{
	buf_clear(job->bytes);
	buf_clear(job->lengths);
	job->count = 0;
	job->passed = 0;
	job->more = false;
	job->read.incomplete = false;
	job->status = STATUS_OK;
}

static void
range_collect_all(struct range_job *job)
{
	if (job->keys_only || overlay_is_empty(&job->tx->overlay))
		range_merge_none(job);
	else
		range_merge(job);
}

/*
 * Reads a range that is asked for from its end, when the iterator is at its beginning: mostly there
 * is one pair, or none, and then the direction does not matter. Returns false if there are more.
 */
static bool
range_collect_only(struct range_job *job)
{
	struct str key;

	if (!range_snapshot_key(job, &key)) {
		range_collect_all(job);
		return true;
	}
	if (!job->keys_only && !overlay_is_empty(&job->tx->overlay))
		return false;
	(void)range_collect(job, key, range_snapshot_value(job));
	rocksdb_iter_next(job->it);
	return !rocksdb_iter_valid(job->it);
}

/* Inside the gate. */
static void
range_drop_lookup(struct emb_tx *tx)
{
	if (tx->lookup)
		rocksdb_iter_destroy(tx->lookup);
	if (tx->finder)
		rocksdb_iter_destroy(tx->finder);
	tx->lookup = tx->finder = NULL;
	tx->has_lookup = false;
}

/* The place of a range among those that have several pairs; what stands for it is never 0. */
static uint64_t *
range_several_slot(const struct range_job *job, uint64_t *ret_hash)
{
	*ret_hash = str_hash(job->begin) | 1;
	return &job->tx->several[(*ret_hash >> 1) % EMB_TX_SEVERAL];
}

static void
range_note_several(const struct range_job *job)
{
	uint64_t hash, *slot = range_several_slot(job, &hash);

	*slot = hash;
}

/* True if a lookup for the last pair of a range with that beginning was in vain before. */
static bool
range_has_several(const struct range_job *job)
{
	uint64_t hash;

	return job->within_entity && job->options->reverse &&
	       *range_several_slot(job, &hash) == hash;
}

/*
 * Reads a range within an entity, with an iterator that first asks the filters which tables can
 * have it. Such an iterator can only go forward. RocksDB reads the bounds through the options
 * whenever an iterator is moved, so a transaction that looks for many documents moves one iterator
 * from one to the next. Returns false if the range has to be read by an iterator of the usual
 * kind: it is asked for from its end and has several pairs, there are too many deleted keys to
 * step over, or RocksDB reports an error.
 */
static bool
range_look_up(struct range_job *job)
{
	struct emb_tx *tx = job->tx;
	char *error = NULL;
	bool done;

	range_set_bounds(job);
	if (!tx->lookup)
		tx->lookup = range_make_iterator(job, true);
	tx->has_lookup = true;
	job->it = tx->lookup;
	range_begin_answer(job);
	rocksdb_iter_seek_to_first(job->it);
	if (job->options->reverse) {
		done = range_collect_only(job);
	} else {
		range_collect_all(job);
		done = true;
	}
	rocksdb_iter_get_error(job->it, &error);
	if (!done && !error)
		range_note_several(job);
	done = done && !error;
	rocksdb_free(error);
	/* emb_versions_let_go() does not know other ones. */
	if (!tx->is_open)
		range_drop_lookup(tx);
	return done;
}

/* Where the snapshot need not be read, since it has nothing there. */
static void
range_narrow(struct range_job *job)
{
	struct gaps_found *gap = &job->gap;

	job->snapshot_begin = job->begin;
	job->snapshot_end = job->end;
	job->has_gap = false;
	if (!job->gaps_len || !gaps_find(job->tx->store->gaps, job->begin, job->end, job->gaps_len,
					 job->options->reverse, job->tx->snapshot->version, gap))
		return;
	if (job->options->reverse && str_eq(gap->end, job->end))
		job->snapshot_end = gap->begin;
	else if (!job->options->reverse && str_eq(gap->begin, job->begin))
		job->snapshot_begin = gap->end;
	else
		job->has_gap = job->options->limit == 1;
}

/* The iterator is at the first pair of the snapshot: what is in front of it is empty. */
static void
range_keep_gap(const struct range_job *job, uint64_t took_ns)
{
	bool reverse = job->options->reverse;
	struct str begin = job->begin, end = job->end, key;
	char behind[GAPS_KEY_BYTES + 1];

	if (range_snapshot_key(job, &key)) {
		if (key.len >= sizeof(behind))
			return;
		memcpy(behind, key.ptr, key.len);
		behind[key.len] = '\0';
		if (reverse)
			begin = str_of(behind, key.len + 1);
		else
			end = key;
	}
	gaps_keep(job->tx->store->gaps, begin, end, job->gaps_len, reverse,
		  job->tx->snapshot->version, took_ns);
}

static void
range_seek_end(const struct range_job *job)
{
	if (job->options->reverse)
		rocksdb_iter_seek_to_last(job->it);
	else
		rocksdb_iter_seek_to_first(job->it);
}

static bool
range_is_at_pair(const struct range_job *job)
{
	char *error = NULL;
	bool failed;

	if (rocksdb_iter_valid(job->it))
		return true;
	rocksdb_iter_get_error(job->it, &error);
	failed = error;
	rocksdb_free(error);
	return failed;
}

/*
 * Moves the iterator to the first pair where a gap lies within the range: looks in front of the
 * gap, and if nothing is there, behind it. If a pair is found in front of the gap, the bounds are
 * those of the whole range again, since more may be read from there on. The caller asks the
 * iterator whether it has failed.
 */
static void
range_seek_around(struct range_job *job)
{
	bool reverse = job->options->reverse;
	struct str begin = job->snapshot_begin, end = job->snapshot_end;

	if (reverse)
		job->snapshot_begin = job->gap.end;
	else
		job->snapshot_end = job->gap.begin;
	range_set_bounds(job);
	range_seek_end(job);
	if (range_is_at_pair(job)) {
		job->snapshot_begin = begin;
		job->snapshot_end = end;
	} else if (reverse) {
		job->snapshot_begin = begin;
		job->snapshot_end = job->gap.begin;
	} else {
		job->snapshot_begin = job->gap.end;
		job->snapshot_end = end;
	}
	range_set_bounds(job);
	range_seek_end(job);
}

/* Moves the iterator to the first pair, and remembers where it is if that takes long. */
static void
range_seek(struct range_job *job)
{
	uint64_t began_ns = job->gaps_len ? clock_mono_ns() : 0, took_ns;
	char *error = NULL;

	if (job->has_gap)
		range_seek_around(job);
	else
		range_seek_end(job);
	if (!job->gaps_len)
		return;
	took_ns = clock_mono_ns() - began_ns;
	if (took_ns < job->tx->store->search_ns)
		return;
	rocksdb_iter_get_error(job->it, &error);
	if (!error)
		range_keep_gap(job, took_ns);
	rocksdb_free(error);
}

/* A reading that was given up is done again elsewhere, so its error does not count. */
static void
range_take_error(struct range_job *job, char *error)
{
	if (job->read.incomplete)
		rocksdb_free(error);
	else if (error)
		job->status = emb_read_error(job->tx->store, job->begin, error, "reading a range",
					     job->err);
}

static void
range_go_through(struct range_job *job)
{
	char *error = NULL;

	range_set_bounds(job);
	job->it = range_make_iterator(job, false);
	/* What a lookup has collected before it gave up is forgotten. */
	range_begin_answer(job);
	range_seek(job);
	range_collect_all(job);
	rocksdb_iter_get_error(job->it, &error);
	rocksdb_iter_destroy(job->it);
	range_take_error(job, error);
}

/*
 * Reads the last pair of a range that is known to have several, so that a lookup of a single key
 * would not find it. The transaction keeps the iterator, and moves it to the next such range.
 */
static void
range_find_last(struct range_job *job)
{
	struct emb_tx *tx = job->tx;
	char *error = NULL;

	range_set_bounds(job);
	if (!tx->finder)
		tx->finder = range_make_iterator(job, false);
	tx->has_lookup = true;
	job->it = tx->finder;
	range_begin_answer(job);
	range_seek(job);
	range_collect_all(job);
	rocksdb_iter_get_error(job->it, &error);
	range_take_error(job, error);
	if (job->read.incomplete || job->status != STATUS_OK || !tx->is_open)
		range_drop_lookup(tx);
}

/*
 * A reading that was given up is done again elsewhere, and waits for its turn there, perhaps behind
 * thousands. What it has collected is of no use to it meanwhile.
 */
static void
range_drop_answer(struct range_job *job)
{
	buf_release(job->bytes);
	buf_release(job->lengths);
}

void
emb_range_run(struct emb_disk_read *read)
{
	struct range_job *job = (struct range_job *)read;
	struct emb_tx *tx = job->tx;
	struct gate_pass pass;
	bool entered = gate_enter(&tx->store->gate, &pass);

	assert(str_cmp(job->begin, job->end) < 0 && tx->snapshot);
	emb_count_nothing();
	if (entered)
		range_narrow(job);
	if (!entered || !tx->snapshot->snapshot) {
		range_begin_answer(job);
		job->status = emb_tx_stale(job->err);
	} else if (range_has_several(job)) {
		range_find_last(job);
	} else if (!job->within_entity || job->has_gap || !range_look_up(job)) {
		range_go_through(job);
	}
	if (entered)
		gate_leave(pass);
	range_tell_progress(job);
	if (read->incomplete)
		range_drop_answer(job);
}

void
emb_lookup_release(struct emb_tx *tx)
{
	struct gate_pass pass;

	if (!tx->has_lookup)
		return;
	gate_enter_when_open(&tx->store->gate, &pass);
	range_drop_lookup(tx);
	gate_leave(pass);
}

void
emb_range_lay_out(const struct range_job *job, struct kv_pair *pairs, const char *bytes)
{
	const struct pair_lengths *lengths = (const struct pair_lengths *)(const void *)
						     job->lengths->ptr;

	assert(job->lengths->len == job->count * sizeof(*lengths));
	for (size_t i = 0; i < job->count; i++) {
		pairs[i].key = str_of(bytes, lengths[i].key);
		bytes += lengths[i].key;
		pairs[i].value = str_of(bytes, lengths[i].value);
		bytes += lengths[i].value;
	}
}

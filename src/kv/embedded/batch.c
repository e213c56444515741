/*
 * One group commit: the writes of many transactions become one write batch of RocksDB.
 *
 * == Why the result is that of one transaction after another ==
 *
 * Transactions are entered in the order in which they were judged, and each replays its log. `keys`
 * has, for each key that is written, what it comes to after all of them. An atomic operation is
 * applied to what `keys` has, or else to what the store has, which is what all earlier batches have
 * left: nothing else writes while a batch is made.
 *
 * Ranges are cleared in one of two ways. If the keys in the range are known, each is deleted like a
 * single key. Otherwise RocksDB deletes the range, and it applies that before all single keys of
 * the batch. That is right for keys that are written behind the clear; those that were written
 * before it, by the same batch, are taken out of `keys` when the clear is entered; and an atomic
 * operation behind it must not see what the store still has, which is what `deleted` is for.
 */
#include <assert.h>
#include <endian.h>

#include "base/err_clear.h"
#include "kv/embedded/batch.h"
#include "kv/embedded/gaps.h"
#include "kv/embedded/kept.h"

/*
 * A key that the batch writes, and what it comes to. RocksDB gets each key once, however many
 * transactions of the batch write it or apply atomic operations to it, and it gets them in order:
 * its table in memory finds the place of a key from the place of the one before, which for
 * neighbours costs a few comparisons instead of about twenty. The tree also tells whether anything
 * has been written in a range so far.
 */
struct batch_key {
	struct tree_node node;
	struct cell cell;
};

void
batch_begin(struct batch *b, uint64_t version)
{
	assert(version > b->version);
	b->version = version;
	b->order = 0;
	err_clear(&b->err);
	memcpy(b->metadata, b->store->versions.metadata, sizeof(b->metadata));
	rocksdb_writebatch_clear(b->writes);
	arena_clear(b->arena);
	tree_init(&b->keys);
	tree_init(&b->ranges);
	tree_init(&b->deleted);
	memset(b->near, 0, sizeof(b->near));
	b->spare = NULL;
}

bool
batch_written_since(const struct batch *b, struct str begin, struct str end, uint64_t version)
{
	const struct tree_node *n;

	if (str_cmp(begin, end) >= 0)
		return false;
	n = tree_at_or_after(&b->keys, begin);
	if (n && str_cmp(n->key, end) < 0)
		return true;
	return span_first_in(&b->ranges, begin, end) ||
	       resolver_written_since(b->resolver, begin, end, version);
}

/* ---- Writes of keys ---- */

/*
 * Where to begin looking for the place of a key. Many keys come right behind one that came shortly
 * before: those of the documents of a bulk request, or of the leaves of one document, in several
 * subspaces in turn. The subspaces differ in the first bytes of their keys.
 */
static struct tree_node **
batch_near(struct batch *b, struct str key)
{
	enum {
		SUBSPACE_BYTES = 5,
		SHIFT = 64 - 3,
	};
	uint64_t start = 0;

	/* Any bytes of the subspace will do, and a load of known length is one instruction. */
	if (key.len >= sizeof(start)) {
		memcpy(&start, key.ptr, sizeof(start));
		start = le64toh(start) & ((UINT64_C(1) << 8 * SUBSPACE_BYTES) - 1);
	} else {
		memcpy(&start, key.ptr, key.len < SUBSPACE_BYTES ? key.len : SUBSPACE_BYTES);
	}
	return &b->near[(start * 0x9e3779b97f4a7c15u) >> SHIFT];
}

/* The batch's entry for the key. With `*ret_new` it has just been made, and its cell is empty. */
static enum status
batch_key_at(struct batch *b, struct str key, struct batch_key **ret, bool *ret_new)
{
	struct tree_node **near = batch_near(b, key);
	struct tree_node *n;

	if (!b->spare)
		b->spare = arena_alloc(b->arena, sizeof(*b->spare));
	if (!b->spare)
		return STATUS_NOMEM;
	/* Made before it is known whether it is needed: one search of the tree instead of two. */
	b->spare->node.key = key;
	n = tree_insert_near(&b->keys, *near, &b->spare->node);
	*ret_new = !n;
	if (!n) {
		n = &b->spare->node;
		b->spare = NULL;
	}
	*near = n;
	*ret = (struct batch_key *)n;
	return STATUS_OK;
}

static enum status
batch_write_key(struct batch *b, struct str key, struct cell cell)
{
	struct batch_key *k;
	bool is_new;

	TRY(batch_key_at(b, key, &k, &is_new));
	k->cell = cell;
	return STATUS_OK;
}

static enum status
batch_put(struct batch *b, struct str key, struct str value)
{
	return batch_write_key(b, key, (struct cell){ true, value });
}

static enum status
batch_delete_key(struct batch *b, struct str key)
{
	return batch_write_key(b, key, (struct cell){ 0 });
}

/* ---- Cleared ranges ---- */

/*
 * The keys that the transaction has found in its cleared ranges are those of its snapshot. They are
 * all there are unless somebody has written in the range since. Must run before anything of the
 * transaction is entered, or its own writes would count.
 */
static void
batch_check_found_keys(const struct batch *b, struct emb_tx *tx)
{
	for (struct mutation *m = tx->first; m; m = m->next)
		if (m->kind == MUTATION_CLEAR_RANGE && m->keys_known)
			m->keys_known = !batch_written_since(b, m->key, m->value,
							     tx->snapshot->version);
}

/*
 * Has RocksDB delete the range, whatever is in it. Single keys that the batch has in the range were
 * written before the clear, and would outlive it, so they are taken out.
 */
static enum status
batch_delete_range_unseen(struct batch *b, const struct mutation *m)
{
	struct tree_node *n;

	assert(!m->keys_known && str_cmp(m->key, m->value) < 0);
	/* The places to begin looking may be among the nodes that are removed. */
	memset(b->near, 0, sizeof(b->near));
	while ((n = tree_at_or_after(&b->keys, m->key)) && str_cmp(n->key, m->value) < 0)
		tree_remove(&b->keys, n);
	rocksdb_writebatch_delete_range(b->writes, m->key.ptr, m->key.len, m->value.ptr,
					m->value.len);
	return span_add(&b->deleted, b->arena, m->key, m->value);
}

static enum status
batch_delete_range(struct batch *b, const struct mutation *m)
{
	TRY(span_add(&b->ranges, b->arena, m->key, m->value));
	/* The snapshot's keys would not be all if the transaction had written in the range. */
	assert(!m->keys_known || !m->meets_own_write);
	if (!m->keys_known)
		return batch_delete_range_unseen(b, m);
	for (uint32_t i = 0; i < m->key_count; i++)
		TRY(batch_delete_key(b, m->keys[i]));
	return STATUS_OK;
}

/* ---- Atomic operations ---- */

static enum status
batch_copy_cell(struct batch *b, struct cell cell, struct cell *ret)
{
	*ret = (struct cell){ 0 };
	if (!cell.present)
		return STATUS_OK;
	*ret = (struct cell){ true, arena_dup(b->arena, cell.value) };
	return ret->value.ptr ? STATUS_OK : STATUS_NOMEM;
}

/*
 * What the key has without this batch, unless the batch has cleared it with a range. Nothing else
 * writes meanwhile, so the newest value is that of the published version.
 */
static enum status
batch_read_cell(struct batch *b, struct str key, struct cell *ret)
{
	uint64_t published = b->store->versions.published;
	struct recent_answer recent;
	rocksdb_pinnableslice_t *slice;
	char *error = NULL;
	struct cell cell = { 0 };
	enum status status;

	*ret = (struct cell){ 0 };
	if (span_around(&b->deleted, key))
		return STATUS_OK;
	if (recent_find(b->store->recent, key, published, false, &recent))
		return batch_copy_cell(b, recent_cell(&recent), ret);
	slice = rocksdb_get_pinned(b->store->db, b->store->read_latest, key.ptr, key.len, &error);
	if (error)
		return emb_read_error(b->store, key, error, "reading for an atomic operation",
				      &b->err);
	cell.present = slice;
	if (slice)
		cell.value.ptr = rocksdb_pinnableslice_value(slice, &cell.value.len);
	recent_keep(b->store->recent, key, cell, published, false);
	status = batch_copy_cell(b, cell, ret);
	rocksdb_pinnableslice_destroy(slice);
	return status;
}

static enum status
batch_apply_atomic(struct batch *b, const struct mutation *m)
{
	struct batch_key *k;
	bool is_new;

	TRY(batch_key_at(b, m->key, &k, &is_new));
	if (is_new)
		TRY(batch_read_cell(b, m->key, &k->cell));
	return atomic_apply(m->op, k->cell, m->value, b->arena, &k->cell);
}

/* ---- Transactions ---- */

/*
 * Puts the stamp into its place, in the transaction's own copy of the key or value. If the batch
 * cannot be written and is made again, the stamp of the later batch takes its place.
 */
static void
batch_stamp(const struct batch *b, struct str template, size_t offset)
{
	assert(offset + KV_VERSIONSTAMP_TX_BYTES <= template.len);
	stamp_write((uint8_t *)(uintptr_t) template.ptr + offset, b->version, b->order);
}

static enum status
batch_apply_mutation(struct batch *b, const struct emb_tx *tx, const struct mutation *m)
{
	switch (m->kind) {
	case MUTATION_SET:
		return batch_put(b, m->key, m->value);
	case MUTATION_CLEAR:
		return batch_delete_key(b, m->key);
	case MUTATION_CLEAR_RANGE:
		return batch_delete_range(b, m);
	case MUTATION_ATOMIC:
		return batch_apply_atomic(b, m);
	case MUTATION_STAMPED_KEY:
		batch_stamp(b, m->key, m->stamp_offset);
		return batch_put(b, m->key, m->value);
	case MUTATION_STAMPED_VALUE:
		batch_stamp(b, m->value, m->stamp_offset);
		if (tx->touched_metadata && str_eq(m->key, EMB_KEY_METADATA))
			memcpy(b->metadata, m->value.ptr, KV_VERSIONSTAMP_TX_BYTES);
		return batch_put(b, m->key, m->value);
	}
	return STATUS_OK;
}

enum status
batch_apply(struct batch *b, struct emb_tx *tx)
{
	assert(tx->committed_version == 0 || tx->committed_version < b->version);
	if (tx->has_range_clears)
		batch_check_found_keys(b, tx);
	for (const struct mutation *m = tx->first; m; m = m->next)
		TRY(batch_apply_mutation(b, tx, m));
	for (const struct emb_conflict *c = tx->write_conflicts.first; c; c = c->next)
		if (str_cmp(c->begin, c->end) < 0)
			TRY(span_add(&b->ranges, b->arena, c->begin, c->end));
	return STATUS_OK;
}

/* Keys come in order, so several of one entity or subspace come one after the other. */
struct batch_gaps {
	bool of_space;   /* the names are those of subspaces, not of entities */
	struct str name; /* the last one; empty: none yet, or the key had none */
	size_t slot;
	bool has_any; /* its slot has: each key has to be told of */
};

static void
batch_enter_gap(const struct batch *b, struct str key, struct batch_gaps *last)
{
	const struct emb_entities *entities = &b->store->entities;

	if (!last->name.len || !emb_entity_has(last->name, key)) {
		last->name = str_of(key.ptr, last->of_space ? emb_space_len(entities, key)
							    : emb_entity_len(entities, key));
		if (!last->name.len)
			return;
		last->slot = gaps_slot(key, last->name.len);
	} else if (!last->has_any) {
		return;
	}
	last->has_any = gaps_write(b->store->gaps, last->slot, key, b->version);
}

void
batch_enter_recent(const struct batch *b)
{
	struct recent *recent = b->store->recent;
	struct recent_pair pairs[RECENT_WRITES];
	struct batch_gaps entity = { .of_space = false }, space = { .of_space = true };
	bool tells = gaps_begin(b->store->gaps, b->version);
	size_t count = 0;

	/* The batch does not know which keys lay in the ranges that it has deleted. */
	if (tree_first(&b->deleted))
		recent_forget(recent, b->version);
	for (struct tree_node *n = tree_first(&b->keys); n; n = tree_next(n)) {
		const struct cell *cell = &((const struct batch_key *)n)->cell;

		if (tells && cell->present) {
			batch_enter_gap(b, n->key, &entity);
			batch_enter_gap(b, n->key, &space);
		}
		if (!recent)
			continue;
		pairs[count++] = (struct recent_pair){ n->key, *cell };
		if (count == RECENT_WRITES) {
			recent_write(recent, pairs, count, b->version);
			count = 0;
		}
	}
	recent_write(recent, pairs, count, b->version);
}

void
batch_finish(struct batch *b)
{
	struct str version_key = EMB_KEY_VERSION;
	char version[KV_VERSIONSTAMP_TX_BYTES];

	for (struct tree_node *n = tree_first(&b->keys); n; n = tree_next(n)) {
		const struct cell *cell = &((const struct batch_key *)n)->cell;

		if (cell->present)
			rocksdb_writebatch_put(b->writes, n->key.ptr, n->key.len, cell->value.ptr,
					       cell->value.len);
		else
			rocksdb_writebatch_delete(b->writes, n->key.ptr, n->key.len);
	}
	emb_kept_put_link(b->store, b->writes);
	stamp_write((uint8_t *)version, b->version, 0);
	rocksdb_writebatch_put(b->writes, version_key.ptr, version_key.len, version,
			       sizeof(uint64_t));
}

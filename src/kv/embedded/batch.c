/* One group commit: the writes of many transactions become one RocksDB batch. */
#include <assert.h>

#include "kv/embedded/embedded_int.h"

/*
 * A key that the batch writes, and what it comes to. A key is written once, however many
 * transactions of the batch write it or apply atomic operations to it, and all in the order of the
 * keys: RocksDB's table in memory finds the place of a key from the place of the one before, which
 * costs a few comparisons instead of some twenty where the two are neighbours. The tree also tells
 * whether anything has been written in a range so far.
 */
struct batch_key {
	struct tree_node node;
	struct cell cell;
};

void
batch_begin(struct batch *b, uint64_t version)
{
	b->version = version;
	b->order = 0;
	b->err = (struct err){ 0 };
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
 * Many keys come right behind one that came shortly before: of the documents of a bulk, or the
 * leaves of one, in some subspaces in turns. Those differ in the first bytes of their keys.
 */
static struct tree_node **
near_of(struct batch *b, struct str key)
{
	enum {
		SUBSPACE_BYTES = 5,
		SHIFT = 64 - 3,
	};
	uint64_t start = 0;

	memcpy(&start, key.ptr, key.len < SUBSPACE_BYTES ? key.len : SUBSPACE_BYTES);
	return &b->near[(start * 0x9e3779b97f4a7c15u) >> SHIFT];
}

/* What the batch has for the key; `*ret_new`: nothing yet. */
static enum status
key_at(struct batch *b, struct str key, struct batch_key **ret, bool *ret_new)
{
	struct tree_node **near = near_of(b, key);
	struct tree_node *n;

	if (!b->spare)
		b->spare = arena_alloc(b->arena, sizeof(*b->spare));
	if (!b->spare)
		return STATUS_NOMEM;
	b->spare->node.key = key;
	n = tree_insert_behind(&b->keys, *near, &b->spare->node);
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
write_key(struct batch *b, struct str key, struct cell cell)
{
	struct batch_key *k;
	bool is_new;

	TRY(key_at(b, key, &k, &is_new));
	k->cell = cell;
	return STATUS_OK;
}

static enum status
put(struct batch *b, struct str key, struct str value)
{
	return write_key(b, key, (struct cell){ true, value });
}

static enum status
delete_key(struct batch *b, struct str key)
{
	return write_key(b, key, (struct cell){ 0 });
}

/* ---- Cleared ranges ---- */

/* Before anything of the transaction is entered: whether the keys that it has found are all. */
static void
check_found_keys(const struct batch *b, struct emb_tx *tx)
{
	for (struct mutation *m = tx->first; m; m = m->next)
		if (m->kind == MUTATION_CLEAR_RANGE && m->keys_known)
			m->keys_known = !batch_written_since(b, m->key, m->value,
							     tx->snapshot->version);
}

/* RocksDB applies it before all single keys of the batch: those in it that are to go leave now. */
static enum status
delete_range_unseen(struct batch *b, const struct mutation *m)
{
	struct tree_node *n;

	memset(b->near, 0, sizeof(b->near));
	while ((n = tree_at_or_after(&b->keys, m->key)) && str_cmp(n->key, m->value) < 0)
		tree_remove(&b->keys, n);
	atomic_store_explicit(&b->store->has_deleted_ranges, true, memory_order_release);
	rocksdb_writebatch_delete_range(b->writes, m->key.ptr, m->key.len, m->value.ptr,
					m->value.len);
	return span_add(&b->deleted, b->arena, m->key, m->value);
}

static enum status
delete_range(struct batch *b, const struct mutation *m)
{
	TRY(span_add(&b->ranges, b->arena, m->key, m->value));
	if (!m->keys_known)
		return delete_range_unseen(b, m);
	for (uint32_t i = 0; i < m->key_count; i++)
		TRY(delete_key(b, m->keys[i]));
	return STATUS_OK;
}

/* ---- Atomic operations ---- */

/* What the store has, which is what all batches before this one have left. */
static enum status
read_cell(struct batch *b, struct str key, struct cell *ret)
{
	rocksdb_pinnableslice_t *slice;
	char *error = NULL;
	struct str value = { 0 };

	*ret = (struct cell){ 0 };
	if (span_around(&b->deleted, key))
		return STATUS_OK;
	slice = rocksdb_get_pinned(b->store->db, b->store->read_latest, key.ptr, key.len, &error);
	if (error)
		return emb_error(error, "reading for an atomic operation", &b->err);
	if (!slice)
		return STATUS_OK;
	value.ptr = rocksdb_pinnableslice_value(slice, &value.len);
	*ret = (struct cell){ true, arena_dup(b->arena, value) };
	rocksdb_pinnableslice_destroy(slice);
	return ret->value.ptr ? STATUS_OK : STATUS_NOMEM;
}

static enum status
apply_atomic(struct batch *b, const struct mutation *m)
{
	struct batch_key *k;
	bool is_new;

	TRY(key_at(b, m->key, &k, &is_new));
	if (is_new)
		TRY(read_cell(b, m->key, &k->cell));
	return atomic_apply(m->op, k->cell, m->value, b->arena, &k->cell);
}

/* ---- Transactions ---- */

/* Puts the stamp into its place, in the transaction's own copy. */
static void
stamp(const struct batch *b, struct str template, size_t offset)
{
	stamp_write((uint8_t *)(uintptr_t) template.ptr + offset, b->version, b->order);
}

static enum status
apply(struct batch *b, const struct emb_tx *tx, const struct mutation *m)
{
	switch (m->kind) {
	case MUTATION_SET:
		return put(b, m->key, m->value);
	case MUTATION_CLEAR:
		return delete_key(b, m->key);
	case MUTATION_CLEAR_RANGE:
		return delete_range(b, m);
	case MUTATION_ATOMIC:
		return apply_atomic(b, m);
	case MUTATION_STAMPED_KEY:
		stamp(b, m->key, m->stamp_offset);
		return put(b, m->key, m->value);
	case MUTATION_STAMPED_VALUE:
		stamp(b, m->value, m->stamp_offset);
		if (tx->touched_metadata && str_eq(m->key, EMB_KEY_METADATA))
			memcpy(b->metadata, m->value.ptr, KV_VERSIONSTAMP_TX_BYTES);
		return put(b, m->key, m->value);
	}
	return STATUS_OK;
}

enum status
batch_apply(struct batch *b, struct emb_tx *tx)
{
	if (tx->has_range_clears)
		check_found_keys(b, tx);
	for (const struct mutation *m = tx->first; m; m = m->next)
		TRY(apply(b, tx, m));
	for (const struct emb_conflict *c = tx->write_conflicts.first; c; c = c->next)
		if (str_cmp(c->begin, c->end) < 0)
			TRY(span_add(&b->ranges, b->arena, c->begin, c->end));
	return STATUS_OK;
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
	stamp_write((uint8_t *)version, b->version, 0);
	rocksdb_writebatch_put(b->writes, version_key.ptr, version_key.len, version,
			       sizeof(uint64_t));
}

/* One group commit: the writes of many transactions become one RocksDB batch. */
#include <assert.h>
#include <endian.h>
#include <stdlib.h>

#include "base/mem.h"
#include "kv/embedded/embedded_int.h"

enum {
	WRITES_FIRST = 256,
};

/*
 * A key that is put or deleted. They are handed to RocksDB in the order of their keys: its table in
 * memory finds the place of a key from the place of the one before, which costs a few comparisons
 * instead of some twenty where the two are neighbours. (A batch has the keys of several subspaces
 * in turns, document by document.)
 */
struct batch_write {
	uint64_t start; /* the first eight bytes of the key, for comparing */
	struct str key;
	struct str value;
	bool deleted;
};

/*
 * The value so far of a key that some transaction of the batch applies an atomic operation to. Such
 * keys are written once, at the end, however many operations the batch has on them.
 */
struct batch_cell {
	struct tree_node node;
	bool known; /* otherwise the store has the value */
	struct cell cell;
};

static struct batch_cell *
cell_of(const struct batch *b, struct str key)
{
	return b->cells.root ? (struct batch_cell *)tree_find(&b->cells, key) : NULL;
}

enum status
batch_announce(struct batch *b, struct emb_tx *tx)
{
	if (!tx->has_atomics)
		return STATUS_OK;
	for (const struct mutation *m = tx->first; m; m = m->next) {
		struct batch_cell *c;

		if (m->kind != MUTATION_ATOMIC || cell_of(b, m->key))
			continue;
		c = arena_zalloc(b->arena, sizeof(*c));
		if (!c)
			return STATUS_NOMEM;
		c->node.key = m->key;
		tree_insert(&b->cells, &c->node);
	}
	return STATUS_OK;
}

/* ---- Writes in the order of their keys ---- */

static enum status
add_write(struct batch *b, struct str key, struct cell cell)
{
	uint8_t start[sizeof(uint64_t)] = { 0 };
	struct batch_write *w;

	if (b->waiting_count == b->waiting_cap) {
		size_t cap = b->waiting_cap ? 2 * b->waiting_cap : WRITES_FIRST;
		void *more = mem_realloc(b->waiting, cap * sizeof(*w));

		if (!more)
			return STATUS_NOMEM;
		b->waiting = more;
		b->waiting_cap = cap;
	}
	w = &b->waiting[b->waiting_count++];
	*w = (struct batch_write){ .key = key, .value = cell.value, .deleted = !cell.present };
	if (key.len)
		memcpy(start, key.ptr, key.len < sizeof(start) ? key.len : sizeof(start));
	memcpy(&w->start, start, sizeof(start));
	w->start = be64toh(w->start);
	return STATUS_OK;
}

/* Of one key, in the order in which they came. */
static int
write_cmp(const void *a, const void *b)
{
	const struct batch_write *wa = *(const struct batch_write *const *)a;
	const struct batch_write *wb = *(const struct batch_write *const *)b;
	int c;

	if (wa->start != wb->start)
		return wa->start < wb->start ? -1 : 1;
	c = str_cmp(wa->key, wb->key);
	return c ? c : (wa > wb) - (wa < wb);
}

/* Hands over what has been collected. */
static enum status
flush_writes(struct batch *b)
{
	const struct batch_write **order;

	if (!b->waiting_count)
		return STATUS_OK;
	order = arena_alloc(b->arena, b->waiting_count * sizeof(*order));
	if (!order)
		return STATUS_NOMEM;
	for (size_t i = 0; i < b->waiting_count; i++)
		order[i] = &b->waiting[i];
	qsort(order, b->waiting_count, sizeof(*order), write_cmp);
	for (size_t i = 0; i < b->waiting_count; i++) {
		const struct batch_write *w = order[i];

		if (w->deleted)
			rocksdb_writebatch_delete(b->writes, w->key.ptr, w->key.len);
		else
			rocksdb_writebatch_put(b->writes, w->key.ptr, w->key.len, w->value.ptr,
					       w->value.len);
	}
	b->waiting_count = 0;
	return STATUS_OK;
}

void
batch_begin_writes(struct batch *b)
{
	rocksdb_writebatch_clear(b->writes);
	b->waiting_count = 0;
}

void
batch_release_writes(struct batch *b)
{
	mem_free(b->waiting);
	b->waiting = NULL;
	b->waiting_count = 0;
	b->waiting_cap = 0;
}

static enum status
write_key(struct batch *b, struct str key, struct cell cell)
{
	struct batch_cell *c = cell_of(b, key);

	if (!c)
		return add_write(b, key, cell);
	c->known = true;
	c->cell = cell;
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

static enum status
delete_range(struct batch *b, const struct emb_tx *tx, const struct mutation *m)
{
	struct tree_node *n = tree_at_or_after(&b->cells, m->key);

	if (m->keys_known &&
	    !resolver_written_since(b->resolver, m->key, m->value, tx->snapshot->version)) {
		for (uint32_t i = 0; i < m->key_count; i++)
			TRY(delete_key(b, m->keys[i]));
	} else {
		/* What was written before it in the range is to go, and no other write. */
		TRY(flush_writes(b));
		atomic_store_explicit(&b->store->has_deleted_ranges, true, memory_order_release);
		rocksdb_writebatch_delete_range(b->writes, m->key.ptr, m->key.len, m->value.ptr,
						m->value.len);
	}
	for (; n && str_cmp(n->key, m->value) < 0; n = tree_next(n)) {
		struct batch_cell *c = (struct batch_cell *)n;

		c->known = true;
		c->cell = (struct cell){ 0 };
	}
	return STATUS_OK;
}

/* What the store has, which is what all batches before this one have left. */
static enum status
read_cell(struct batch *b, struct batch_cell *c)
{
	rocksdb_pinnableslice_t *slice;
	char *error = NULL;
	struct str value = { 0 };

	slice = rocksdb_get_pinned(b->store->db, b->store->read_latest, c->node.key.ptr,
				   c->node.key.len, &error);
	if (error)
		return emb_error(error, "reading for an atomic operation", &b->err);
	c->cell.present = slice;
	if (slice) {
		value.ptr = rocksdb_pinnableslice_value(slice, &value.len);
		c->cell.value = arena_dup(b->arena, value);
		rocksdb_pinnableslice_destroy(slice);
		if (!c->cell.value.ptr)
			return STATUS_NOMEM;
	}
	c->known = true;
	return STATUS_OK;
}

static enum status
apply_atomic(struct batch *b, const struct mutation *m)
{
	struct batch_cell *c = cell_of(b, m->key);

	assert(c && "batch_announce() has been here");
	if (!c->known)
		TRY(read_cell(b, c));
	return atomic_apply(m->op, c->cell, m->value, b->arena, &c->cell);
}

/* A copy of `template` with the stamp in its place. */
static enum status
stamped(struct batch *b, struct str template, size_t offset, struct str *ret)
{
	char *p = arena_bytes(b->arena, template.len + 1);

	if (!p)
		return STATUS_NOMEM;
	memcpy(p, template.ptr, template.len);
	p[template.len] = '\0';
	stamp_write((uint8_t *)p + offset, b->version, b->order);
	*ret = str_of(p, template.len);
	return STATUS_OK;
}

static enum status
apply(struct batch *b, struct emb_tx *tx, struct mutation *m)
{
	struct str value;

	switch (m->kind) {
	case MUTATION_SET:
		return put(b, m->key, m->value);
	case MUTATION_CLEAR:
		return delete_key(b, m->key);
	case MUTATION_CLEAR_RANGE:
		return delete_range(b, tx, m);
	case MUTATION_ATOMIC:
		return apply_atomic(b, m);
	case MUTATION_STAMPED_KEY:
		TRY(stamped(b, m->key, m->stamp_offset, &m->key));
		return put(b, m->key, m->value);
	case MUTATION_STAMPED_VALUE:
		TRY(stamped(b, m->value, m->stamp_offset, &value));
		TRY(put(b, m->key, value));
		if (tx->touched_metadata && str_eq(m->key, EMB_KEY_METADATA))
			memcpy(b->metadata, value.ptr, KV_VERSIONSTAMP_TX_BYTES);
		break;
	}
	return STATUS_OK;
}

/* Tells the resolver. Keys inside a range that the same transaction clears need no step of their
 * own: a document's new leaves mostly lie where its old ones have just been cleared. */
static void
add_writes(struct batch *b, struct emb_tx *tx)
{
	const struct mutation *cleared = NULL;

	for (const struct mutation *m = tx->first; m; m = m->next) {
		if (m->kind == MUTATION_CLEAR_RANGE) {
			resolver_add(b->resolver, m->key, m->value, b->version);
			cleared = m;
			continue;
		}
		if (cleared && str_cmp(m->key, cleared->key) >= 0 &&
		    str_cmp(m->key, cleared->value) < 0)
			continue;
		/* Copies of keys have a zero byte behind them: the next key. */
		resolver_add(b->resolver, m->key, str_of(m->key.ptr, m->key.len + 1), b->version);
	}
	for (const struct emb_conflict *c = tx->write_conflicts.first; c; c = c->next)
		resolver_add(b->resolver, c->begin, c->end, b->version);
}

enum status
batch_apply(struct batch *b, struct emb_tx *tx)
{
	for (struct mutation *m = tx->first; m; m = m->next)
		TRY(apply(b, tx, m));
	add_writes(b, tx);
	return STATUS_OK;
}

enum status
batch_finish(struct batch *b)
{
	struct str key = EMB_KEY_VERSION;
	char version[KV_VERSIONSTAMP_TX_BYTES];

	for (struct tree_node *n = tree_first(&b->cells); n; n = tree_next(n)) {
		const struct batch_cell *c = (const struct batch_cell *)n;

		if (!c->known)
			continue; /* its transaction was refused */
		TRY(add_write(b, n->key, c->cell));
	}
	TRY(flush_writes(b));
	stamp_write((uint8_t *)version, b->version, 0);
	rocksdb_writebatch_put(b->writes, key.ptr, key.len, version, sizeof(uint64_t));
	return STATUS_OK;
}

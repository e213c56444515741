/*
 * What every call on a transaction needs, whichever file it is in: whether the transaction is still
 * usable, why its arena gives no more memory, and its lists of conflict ranges.
 */
#include <assert.h>

#include "kv/embedded/embedded_int.h"

enum status
emb_tx_check(struct emb_tx *tx)
{
	if (atomic_load_explicit(&tx->cancelled, memory_order_relaxed))
		return STATUS_CANCELLED;
	if (tx->state != EMB_TX_ACTIVE)
		return err_set(&tx->base.err, STATUS_TX_USED,
			       "the transaction has been committed; reset it first");
	return STATUS_OK;
}

enum status
emb_tx_check_age(struct emb_tx *tx)
{
	uint64_t oldest;

	if (!tx->read_conflicts.first || (!tx->first && !tx->write_conflicts.first))
		return STATUS_OK;
	assert(tx->snapshot); /* a read conflict comes from a read */
	oldest = atomic_load_explicit(&tx->store->oldest_judged, memory_order_relaxed);
	if (tx->snapshot->version >= oldest)
		return STATUS_OK;
	return err_set(&tx->base.err, STATUS_TX_TOO_OLD,
		       "too much has been written since the transaction began");
}

enum status
emb_tx_stale(struct err *err)
{
	return err_set(err, STATUS_TX_TOO_OLD,
		       "the store has been opened again since the transaction began");
}

enum status
emb_tx_no_room(struct emb_tx *tx)
{
	/*
	 * The arena does not tell why it has failed. If less than half of its limit is in use, it
	 * was not the limit but the system that had no memory.
	 */
	if (arena_used_bytes(tx->arena) < EMB_TX_ARENA_BYTES / 2)
		return STATUS_NOMEM;
	return err_set(&tx->base.err, STATUS_TX_TOO_LARGE,
		       "the transaction holds more than %d bytes of memory (EMB_TX_ARENA_BYTES)",
		       EMB_TX_ARENA_BYTES);
}

/* ---- Conflict ranges ---- */

static enum status
tx_append_conflict(struct emb_tx *tx, struct emb_conflicts *list, struct str begin, struct str end)
{
	struct emb_conflict *c = arena_alloc(tx->arena, sizeof(*c));

	if (!c)
		return emb_tx_no_room(tx);
	*c = (struct emb_conflict){ .begin = begin, .end = end };
	assert(!list->first == !list->last);
	if (list->last)
		list->last->next = c;
	else
		list->first = c;
	list->last = c;
	tx->bytes += begin.len + end.len;
	return STATUS_OK;
}

enum status
emb_tx_add_conflict(struct emb_tx *tx, struct emb_conflicts *list, struct str begin, struct str end)
{
	begin = arena_dup(tx->arena, begin);
	end = arena_dup(tx->arena, end);
	if (!begin.ptr || !end.ptr)
		return emb_tx_no_room(tx);
	return tx_append_conflict(tx, list, begin, end);
}

enum status
emb_tx_add_key_conflict(struct emb_tx *tx, struct emb_conflicts *list, struct str key)
{
	key = arena_dup(tx->arena, key);
	if (!key.ptr)
		return emb_tx_no_room(tx);
	/* The copy has a zero byte behind it; with that byte it is the next possible key. */
	return tx_append_conflict(tx, list, key, str_of(key.ptr, key.len + 1));
}

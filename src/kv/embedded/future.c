/*
 * Futures of reads, and the memory of their answers. A small answer lies behind its future, in a
 * block out of the transaction's arena. Blocks have a few sizes and are used again once they are
 * freed, so a transaction that reads for hours does not grow. A large answer is an allocation of
 * its own, and its future is in a list, so that it is freed with the transaction at the latest. The
 * answer of a read ahead lies in the read's own memory, which the transaction uses again.
 */
#include <assert.h>

#include "base/budget.h"
#include "base/mem.h"
#include "loop/wait.h"
#include "kv/embedded/range_int.h"

enum {
	COUNTED_BYTES = 16 * 1024, /* of a transaction's arena, that are counted at a time */
};

static const size_t class_bytes[EMB_FUTURE_CLASSES] = { 256, 1024, 4096 };

/* The smallest class of blocks that holds `bytes`; EMB_FUTURE_CLASSES if none does. */
static int
future_class_for(size_t bytes)
{
	int size_class = 0;

	while (size_class < EMB_FUTURE_CLASSES && class_bytes[size_class] < bytes)
		size_class++;
	return size_class;
}

/* Enters the future in the list of those that have to be freed with the transaction. */
static void
future_link_heap(struct emb_tx *tx, struct emb_future *f)
{
	f->prev = NULL;
	f->next = tx->heap_futures;
	if (f->next)
		f->next->prev = f;
	tx->heap_futures = f;
}

static void
future_unlink_heap(struct emb_tx *tx, struct emb_future *f)
{
	assert(f->prev ? f->prev->next == f : tx->heap_futures == f);
	if (f->prev)
		f->prev->next = f->next;
	else
		tx->heap_futures = f->next;
	if (f->next)
		f->next->prev = f->prev;
}

/* A model may read thousands of keys before it frees an answer, so these are counted, too. */
static void
future_count_arena(struct emb_tx *tx)
{
	size_t used = arena_used_bytes(tx->arena);

	if (used >= tx->base.held_bytes + COUNTED_BYTES)
		kv_tx_hold(&tx->base, used);
}

struct emb_future *
emb_future_new(struct emb_tx *tx, enum kv_future_kind kind, size_t bytes, char **ret_room)
{
	int size_class = future_class_for(sizeof(struct emb_future) + bytes);
	struct emb_future *f;
	void *heap = NULL;

	if (size_class == EMB_FUTURE_CLASSES) {
		heap = mem_alloc(bytes);
		if (!heap)
			return NULL;
		size_class = 0; /* for the future alone */
	}
	f = tx->free_futures[size_class];
	if (f) {
		tx->free_futures[size_class] = f->next;
	} else {
		f = arena_alloc(tx->arena, class_bytes[size_class]);
		future_count_arena(tx);
	}
	if (!f) {
		mem_free(heap);
		return NULL;
	}
	f->base = (struct kv_future){
		.engine = tx->base.engine, .tx = &tx->base, .kind = kind, .done = true
	};
	f->size_class = size_class;
	f->heap = heap;
	f->heap_bytes = heap ? bytes : 0;
	f->ahead = NULL;
	assert(f->size_class < EMB_FUTURE_CLASSES);
	if (heap)
		future_link_heap(tx, f);
	if (heap && tx->base.part)
		budget_count(tx->base.part, bytes);
	*ret_room = heap ? heap : (char *)(f + 1);
	return f;
}

struct emb_future *
emb_future_new_ahead(struct emb_tx *tx, struct emb_ahead *ahead)
{
	char *room;
	struct emb_future *f = emb_future_new(tx, KV_FUTURE_RANGE, 0, &room);

	if (!f)
		return NULL;
	f->base.done = false;
	f->ahead = ahead;
	future_link_heap(tx, f);
	return f;
}

/* Lets go of the read ahead of a future, which may still be on its way. */
static void
future_end_ahead(struct emb_future *f)
{
	struct emb_ahead *a = f->ahead;
	struct emb_tx *tx = a->job.tx;

	assert(f->base.tx == &tx->base);
	if (!f->base.done)
		wait_end(&a->work);
	/* Kept for the next part of the scan, which has two such reads at a time. */
	a->next = tx->spare_aheads;
	tx->spare_aheads = a;
}

void
emb_future_free(struct emb_future *f)
{
	struct emb_tx *tx = (struct emb_tx *)f->base.tx;

	assert(f->size_class >= 0 && f->size_class < EMB_FUTURE_CLASSES);
	if (f->heap || f->ahead)
		future_unlink_heap(tx, f);
	if (f->ahead)
		future_end_ahead(f);
	if (f->heap && tx->base.part)
		budget_unuse(tx->base.part, f->heap_bytes);
	mem_free(f->heap);
	f->next = tx->free_futures[f->size_class];
	tx->free_futures[f->size_class] = f;
}

/* ---- The memory of reads ahead ---- */

static void
ahead_count_as(struct emb_ahead *a, size_t n)
{
	struct budget_part *part = a->job.tx ? a->job.tx->base.part : NULL;

	if (!part)
		return;
	if (n > a->counted_bytes)
		budget_count(part, n - a->counted_bytes);
	else
		budget_unuse(part, a->counted_bytes - n);
	a->counted_bytes = n;
}

void
emb_ahead_count(struct emb_ahead *a, size_t more)
{
	ahead_count_as(a, sizeof(*a) + a->bounds.cap + a->bytes.cap + a->lengths.cap +
				  a->pairs.cap + more);
}

void
emb_ahead_destroy(struct emb_ahead *a)
{
	if (!a)
		return;
	if (a->job.iterate)
		rocksdb_readoptions_destroy(a->job.iterate);
	ahead_count_as(a, 0);
	buf_release(&a->bounds);
	buf_release(&a->bytes);
	buf_release(&a->lengths);
	buf_release(&a->pairs);
	mem_free(a);
}

void
emb_aheads_release(struct emb_tx *tx)
{
	while (tx->spare_aheads) {
		struct emb_ahead *a = tx->spare_aheads;

		tx->spare_aheads = a->next;
		emb_ahead_destroy(a);
	}
}

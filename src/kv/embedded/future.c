/*
 * Futures of reads. Small answers lie behind their future in the transaction's arena, in blocks of
 * a few sizes that are used again once freed, so that a transaction that reads for hours does not
 * grow; large answers are allocations of their own.
 */
#include "base/mem.h"
#include "kv/embedded/range_int.h"

static const size_t class_bytes[EMB_FUTURE_CLASSES] = { 256, 1024, 4096 };

/* The smallest class that holds `bytes`, or EMB_FUTURE_CLASSES. */
static int
class_for(size_t bytes)
{
	int size_class = 0;

	while (size_class < EMB_FUTURE_CLASSES && class_bytes[size_class] < bytes)
		size_class++;
	return size_class;
}

/* Of what has to be freed with the transaction. */
static void
link_heap(struct emb_tx *tx, struct emb_future *f)
{
	f->prev = NULL;
	f->next = tx->heap_futures;
	if (f->next)
		f->next->prev = f;
	tx->heap_futures = f;
}

static void
unlink_heap(struct emb_tx *tx, struct emb_future *f)
{
	if (f->prev)
		f->prev->next = f->next;
	else
		tx->heap_futures = f->next;
	if (f->next)
		f->next->prev = f->prev;
}

struct emb_future *
emb_future_new(struct emb_tx *tx, enum kv_future_kind kind, size_t bytes, char **ret_room)
{
	int size_class = class_for(sizeof(struct emb_future) + bytes);
	struct emb_future *f;
	void *heap = NULL;

	if (size_class == EMB_FUTURE_CLASSES) {
		heap = mem_alloc(bytes);
		if (!heap)
			return NULL;
		size_class = 0;
	}
	f = tx->free_futures[size_class];
	if (f)
		tx->free_futures[size_class] = f->next;
	else
		f = arena_alloc(tx->arena, class_bytes[size_class]);
	if (!f) {
		mem_free(heap);
		return NULL;
	}
	f->base = (struct kv_future){
		.engine = tx->base.engine, .tx = &tx->base, .kind = kind, .done = true
	};
	f->size_class = size_class;
	f->heap = heap;
	f->ahead = NULL;
	if (heap)
		link_heap(tx, f);
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
	link_heap(tx, f);
	return f;
}

void
emb_future_free(struct emb_future *f)
{
	struct emb_tx *tx = (struct emb_tx *)f->base.tx;

	if (f->heap || f->ahead)
		unlink_heap(tx, f);
	if (f->ahead)
		emb_ahead_free(f);
	mem_free(f->heap);
	f->next = tx->free_futures[f->size_class];
	tx->free_futures[f->size_class] = f;
}

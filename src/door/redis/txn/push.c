#include "door/redis/txn/push.h"

#include "base/mem.h"
#include "net/memory.h"

struct push *
push_new(const struct budget_part *of, size_t most, bool insists)
{
	size_t size = sizeof(struct push) + most;
	struct budget_part part;
	struct push *p = NULL;

	net_memory_part_init(&part, of, false);
	/* It waits for its readers, and nothing is free for it: there may be very many. */
	net_memory_part_keep(&part);
	if (net_memory_part_use(&part, size, insists))
		p = mem_alloc(size);
	if (!p) {
		budget_part_release(&part);
		return NULL;
	}
	*p = (struct push){ .refs = 1, .part = part };
	p->bytes = (struct buf){ .ptr = (char *)(p + 1), .cap = most, .max_bytes = most };
	return p;
}

struct push *
push_ref(struct push *p)
{
	atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
	return p;
}

void
push_unref(struct push *p)
{
	if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) > 1)
		return;
	budget_part_release(&p->part);
	mem_free(p);
}

#include "server/timers.h"

#include <assert.h>

#include "base/mem.h"

enum {
	TIMERS_FIRST = 64,
};

static void
place(struct timers *ts, struct timer *t, size_t slot)
{
	ts->heap[slot] = t;
	t->slot = slot;
}

static void
sift_up(struct timers *ts, struct timer *t, size_t slot)
{
	while (slot > 1 && ts->heap[slot / 2]->key_ns > t->key_ns) {
		place(ts, ts->heap[slot / 2], slot);
		slot /= 2;
	}
	place(ts, t, slot);
}

static void
sift_down(struct timers *ts, struct timer *t, size_t slot)
{
	for (;;) {
		size_t child = slot * 2;

		if (child > ts->count)
			break;
		if (child < ts->count && ts->heap[child + 1]->key_ns < ts->heap[child]->key_ns)
			child++;
		if (ts->heap[child]->key_ns >= t->key_ns)
			break;
		place(ts, ts->heap[child], slot);
		slot = child;
	}
	place(ts, t, slot);
}

static void
take_out(struct timers *ts, struct timer *t)
{
	struct timer *last = ts->heap[ts->count];
	size_t slot = t->slot;

	t->slot = 0;
	ts->count--;
	if (last == t)
		return;
	if (slot > 1 && ts->heap[slot / 2]->key_ns > last->key_ns)
		sift_up(ts, last, slot);
	else
		sift_down(ts, last, slot);
}

void
timers_fini(struct timers *ts)
{
	mem_free(ts->heap);
	*ts = (struct timers){ 0 };
}

enum status
timers_attach(struct timers *ts, struct timer *t, void (*fire)(struct timer *t))
{
	if (ts->attached + 1 >= ts->cap) {
		size_t cap = ts->cap ? ts->cap * 2 : TIMERS_FIRST;
		struct timer **heap = mem_realloc(ts->heap, cap * sizeof(struct timer *));

		if (!heap)
			return STATUS_NOMEM;
		ts->heap = heap;
		ts->cap = cap;
	}
	ts->attached++;
	*t = (struct timer){ .at_ns = WAIT_FOREVER, .fire = fire };
	return STATUS_OK;
}

void
timers_detach(struct timers *ts, struct timer *t)
{
	assert(ts->attached > 0);
	if (t->slot)
		take_out(ts, t);
	ts->attached--;
}

void
timers_set(struct timers *ts, struct timer *t, uint64_t at_ns)
{
	t->at_ns = at_ns;
	if (at_ns == WAIT_FOREVER || (t->slot && t->key_ns <= at_ns))
		return;
	t->key_ns = at_ns;
	sift_up(ts, t, t->slot ? t->slot : ++ts->count);
}

uint64_t
timers_next_ns(const struct timers *ts)
{
	return ts->count ? ts->heap[1]->key_ns : WAIT_FOREVER;
}

struct timer *
timers_pop(struct timers *ts, uint64_t now_ns)
{
	while (ts->count && ts->heap[1]->key_ns <= now_ns) {
		struct timer *t = ts->heap[1];

		take_out(ts, t);
		if (t->at_ns <= now_ns) {
			t->at_ns = WAIT_FOREVER;
			return t;
		}
		if (t->at_ns != WAIT_FOREVER)
			timers_set(ts, t, t->at_ns);
	}
	return NULL;
}

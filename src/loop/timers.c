#include "loop/timers.h"

#include <assert.h>

#include "base/mem.h"

enum {
	TIMERS_FIRST = 64,
};

static void
timers_place(struct timers *ts, struct timer *t, size_t slot)
{
	ts->heap[slot] = t;
	t->slot = slot;
}

static void
timers_sift_up(struct timers *ts, struct timer *t, size_t slot)
{
	while (slot > 1 && ts->heap[slot / 2]->key_ns > t->key_ns) {
		timers_place(ts, ts->heap[slot / 2], slot);
		slot /= 2;
	}
	timers_place(ts, t, slot);
}

static void
timers_sift_down(struct timers *ts, struct timer *t, size_t slot)
{
	for (;;) {
		size_t child = slot * 2;

		if (child > ts->count)
			break;
		if (child < ts->count && ts->heap[child + 1]->key_ns < ts->heap[child]->key_ns)
			child++;
		if (ts->heap[child]->key_ns >= t->key_ns)
			break;
		timers_place(ts, ts->heap[child], slot);
		slot = child;
	}
	timers_place(ts, t, slot);
}

static void
timers_take_out(struct timers *ts, struct timer *t)
{
	struct timer *last = ts->heap[ts->count];
	size_t slot = t->slot;

	t->slot = 0;
	ts->count--;
	if (last == t)
		return;
	if (slot > 1 && ts->heap[slot / 2]->key_ns > last->key_ns)
		timers_sift_up(ts, last, slot);
	else
		timers_sift_down(ts, last, slot);
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
		timers_take_out(ts, t);
	ts->attached--;
}

void
timers_set(struct timers *ts, struct timer *t, uint64_t at_ns)
{
	t->at_ns = at_ns;
	/*
	 * key_ns <= at_ns always holds for an entry of the heap. A later deadline keeps that true,
	 * so the entry stays; timers_pop() moves it when its old moment comes.
	 */
	if (at_ns == WAIT_FOREVER || (t->slot && t->key_ns <= at_ns))
		return;
	assert(t->slot || ts->count < ts->attached);
	t->key_ns = at_ns;
	timers_sift_up(ts, t, t->slot ? t->slot : ++ts->count);
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

		timers_take_out(ts, t);
		if (t->at_ns <= now_ns) {
			t->at_ns = WAIT_FOREVER;
			return t;
		}
		if (t->at_ns != WAIT_FOREVER)
			timers_set(ts, t, t->at_ns);
	}
	return NULL;
}

#include "base/budget.h"

#include <assert.h>

/* On the stack of who waits; in the list until it is granted or gives up. */
struct budget_waiter {
	struct budget_waiter *next;
	size_t bytes;
	bool granted;
	struct event event;
};

void
budget_init(struct budget *b, size_t limit_bytes)
{
	*b = (struct budget){ .limit_bytes = limit_bytes };
	pthread_mutex_init(&b->lock, NULL);
	b->last = &b->first;
}

void
budget_fini(struct budget *b)
{
	assert(!b->first && b->taken_bytes == 0);
	pthread_mutex_destroy(&b->lock);
}

size_t
budget_taken(struct budget *b)
{
	size_t n;

	pthread_mutex_lock(&b->lock);
	n = b->taken_bytes;
	pthread_mutex_unlock(&b->lock);
	return n;
}

size_t
budget_take_peak(struct budget *b)
{
	size_t n;

	pthread_mutex_lock(&b->lock);
	n = b->peak_bytes;
	b->peak_bytes = b->taken_bytes;
	pthread_mutex_unlock(&b->lock);
	return n;
}

static size_t
share_of_asking(const struct budget *b)
{
	return b->limit_bytes - b->limit_bytes / 4;
}

static bool
take_locked(struct budget *b, size_t n, size_t most)
{
	if (n > most || b->taken_bytes > most - n)
		return false;
	b->taken_bytes += n;
	if (b->taken_bytes > b->peak_bytes)
		b->peak_bytes = b->taken_bytes;
	return true;
}

/* In their order: a large one at the head is not overtaken for ever by small ones behind it. */
static void
grant_locked(struct budget *b)
{
	while (b->first && take_locked(b, b->first->bytes, share_of_asking(b))) {
		struct budget_waiter *w = b->first;

		b->first = w->next;
		if (!b->first)
			b->last = &b->first;
		b->waiting--;
		w->granted = true;
		event_set(&w->event);
	}
}

static void
remove_locked(struct budget *b, struct budget_waiter *w)
{
	struct budget_waiter **at = &b->first;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	if (b->last == &w->next)
		b->last = at;
	b->waiting--;
}

static void
give_back(struct budget *b, size_t n)
{
	pthread_mutex_lock(&b->lock);
	assert(b->taken_bytes >= n);
	b->taken_bytes -= n;
	grant_locked(b);
	pthread_mutex_unlock(&b->lock);
}

/* ---- Parts ---- */

void
budget_part_init(struct budget_part *p, struct budget *b)
{
	*p = (struct budget_part){ .budget = b };
}

static bool
wait_for(struct budget *b, size_t n, uint64_t deadline_ns, struct event *stop)
{
	struct budget_waiter w = { .bytes = n };
	struct event *events[] = { &w.event, stop };
	bool granted;

	pthread_mutex_lock(&b->lock);
	granted = !b->first && take_locked(b, n, share_of_asking(b));
	if (granted || b->waiting == BUDGET_WAITERS) {
		pthread_mutex_unlock(&b->lock);
		return granted;
	}
	event_init(&w.event);
	*b->last = &w;
	b->last = &w.next;
	b->waiting++;
	pthread_mutex_unlock(&b->lock);

	(void)event_wait_any(events, stop ? 2 : 1, deadline_ns);

	pthread_mutex_lock(&b->lock);
	if (!w.granted) {
		remove_locked(b, &w);
		grant_locked(b); /* what was too much for this one may do for the next */
	}
	pthread_mutex_unlock(&b->lock);
	return w.granted;
}

enum status
budget_ask(struct budget_part *p, size_t n, uint64_t deadline_ns, struct event *stop)
{
	struct budget *b = p->budget;

	if (!b)
		return STATUS_OK;
	if (n > share_of_asking(b))
		n = share_of_asking(b);
	if (!wait_for(b, n, deadline_ns, stop)) {
		if (stop && event_is_set(stop))
			return STATUS_CANCELLED;
		p->refused = true;
		return STATUS_LIMIT;
	}
	p->asked_bytes += n;
	p->taken_bytes += n;
	return STATUS_OK;
}

bool
budget_use(struct budget_part *p, size_t n)
{
	size_t used = p->used_bytes + n;
	bool taken = true;

	if (p->budget && used > BUDGET_FREE_BYTES && used > p->taken_bytes) {
		size_t more = used - p->taken_bytes;

		pthread_mutex_lock(&p->budget->lock);
		taken = take_locked(p->budget, more, p->budget->limit_bytes);
		pthread_mutex_unlock(&p->budget->lock);
		if (taken)
			p->taken_bytes += more;
	}
	if (taken)
		p->used_bytes = used;
	else if (used <= p->budget->limit_bytes)
		p->refused = true;
	else
		p->exceeded = true;
	return taken;
}

static void
give_back_unused(struct budget_part *p)
{
	size_t keep = p->asked_bytes;

	if (p->used_bytes > BUDGET_FREE_BYTES && p->used_bytes > keep)
		keep = p->used_bytes;
	if (p->taken_bytes > keep) {
		give_back(p->budget, p->taken_bytes - keep);
		p->taken_bytes = keep;
	}
}

void
budget_unuse(struct budget_part *p, size_t n)
{
	assert(p->used_bytes >= n);
	p->used_bytes -= n;
	give_back_unused(p);
}

void
budget_settle(struct budget_part *p)
{
	p->asked_bytes = 0;
	give_back_unused(p);
}

void
budget_part_release(struct budget_part *p)
{
	if (p->taken_bytes)
		give_back(p->budget, p->taken_bytes);
	budget_part_init(p, p->budget);
}

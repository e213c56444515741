#include "serve/clients.h"

#include <assert.h>
#include <stdio.h>

#include "base/clock.h"

/* ---- Life ---- */

void
clients_init(struct clients *all, unsigned ends, unsigned lasts)
{
	*all = (struct clients){ .ends = ends, .lasts = lasts };
	pthread_mutex_init(&all->lock, NULL);
}

void
clients_fini(struct clients *all)
{
	assert(!all->first && !all->count);
	pthread_mutex_destroy(&all->lock);
}

void
clients_entry_init(struct clients_entry *e, struct clients *all, struct str peer)
{
	*e = (struct clients_entry){ .clients = all, .created_ns = clock_mono_ns() };
	e->id = atomic_fetch_add(&all->next_id, 1) + 1;
	snprintf(e->peer, sizeof(e->peer), "%.*s", STR_ARG(peer));
	buf_init(&e->name, CLIENTS_TEXT_BYTES);
	pthread_mutex_init(&e->lock, NULL);
	event_init(&e->wake);
	event_init(&e->ended);
}

void
clients_entry_fini(struct clients_entry *e)
{
	assert(!e->link);
	buf_release(&e->name);
	pthread_mutex_destroy(&e->lock);
}

void
clients_add(struct clients_entry *e)
{
	struct clients *all = e->clients;

	pthread_mutex_lock(&all->lock);
	e->next = all->first;
	e->link = &all->first;
	if (e->next)
		e->next->link = &e->next;
	all->first = e;
	all->count++;
	pthread_mutex_unlock(&all->lock);
}

void
clients_remove(struct clients_entry *e)
{
	struct clients *all = e->clients;

	pthread_mutex_lock(&all->lock);
	*e->link = e->next;
	if (e->next)
		e->next->link = e->link;
	e->link = NULL;
	all->count--;
	pthread_mutex_unlock(&all->lock);
}

/* ---- The list ---- */

size_t
clients_count(struct clients *all)
{
	size_t count;

	pthread_mutex_lock(&all->lock);
	count = all->count;
	pthread_mutex_unlock(&all->lock);
	return count;
}

void
clients_each(struct clients *all, void (*see)(void *arg, struct clients_entry *e), void *arg)
{
	pthread_mutex_lock(&all->lock);
	for (struct clients_entry *e = all->first; e; e = e->next) {
		pthread_mutex_lock(&e->lock);
		see(arg, e);
		pthread_mutex_unlock(&e->lock);
	}
	pthread_mutex_unlock(&all->lock);
}

size_t
clients_signal_each(struct clients *all, unsigned signals,
		    bool (*wants)(void *arg, struct clients_entry *e), void *arg)
{
	size_t count = 0;

	pthread_mutex_lock(&all->lock);
	for (struct clients_entry *e = all->first; e; e = e->next) {
		pthread_mutex_lock(&e->lock);
		/* In one lock, so that what is signalled is still what `wants` has seen. */
		if (!wants || wants(arg, e)) {
			clients_tell(e, signals);
			count++;
		}
		pthread_mutex_unlock(&e->lock);
	}
	pthread_mutex_unlock(&all->lock);
	return count;
}

/* ---- One entry ---- */

void
clients_see(struct clients_entry *e, void (*see)(void *arg, struct clients_entry *e), void *arg)
{
	pthread_mutex_lock(&e->clients->lock);
	pthread_mutex_lock(&e->lock);
	see(arg, e);
	pthread_mutex_unlock(&e->lock);
	pthread_mutex_unlock(&e->clients->lock);
}

void
clients_tell(struct clients_entry *e, unsigned signals)
{
	atomic_fetch_or_explicit(&e->signals, signals, memory_order_relaxed);
	if (signals & e->clients->ends)
		event_set(&e->ended);
	if (e->waiting)
		event_set(&e->wake);
	e->waiting = false;
}

void
clients_signal(struct clients_entry *e, unsigned signals)
{
	pthread_mutex_lock(&e->lock);
	clients_tell(e, signals);
	pthread_mutex_unlock(&e->lock);
}

struct event *
clients_wait_begin(struct clients_entry *e)
{
	struct event *wake = NULL;

	pthread_mutex_lock(&e->lock);
	assert(!e->waiting);
	/* Whoever has signalled before now has not seen that the event is wanted. */
	if (!clients_signals(e) && !e->pending) {
		event_init(&e->wake);
		e->waiting = true;
		wake = &e->wake;
	}
	pthread_mutex_unlock(&e->lock);
	return wake;
}

unsigned
clients_wait_end(struct clients_entry *e)
{
	unsigned lasting = e->clients->ends | e->clients->lasts;
	unsigned signals;

	pthread_mutex_lock(&e->lock);
	e->waiting = false;
	signals = atomic_fetch_and_explicit(&e->signals, lasting, memory_order_relaxed);
	pthread_mutex_unlock(&e->lock);
	return signals;
}

void
clients_set_text(struct clients_entry *e, struct buf *text, struct str value)
{
	pthread_mutex_lock(&e->clients->lock);
	buf_clear(text);
	buf_append_str(text, value);
	pthread_mutex_unlock(&e->clients->lock);
}

void
clients_set_user(struct clients_entry *e, struct str name)
{
	pthread_mutex_lock(&e->clients->lock);
	snprintf(e->user, sizeof(e->user), "%.*s", STR_ARG(name));
	pthread_mutex_unlock(&e->clients->lock);
}

/* ---- Operations ---- */

/* As much of it as there is room for. */
static void
op_set_on(struct clients_op *op, struct str on, struct str more)
{
	const struct str parts[] = { on, more.len ? STR(".") : STR(""), more };
	size_t at = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		size_t room = sizeof(op->on) - 1 - at;
		size_t n = parts[i].len < room ? parts[i].len : room;

		if (n)
			memcpy(op->on + at, parts[i].ptr, n);
		at += n;
	}
	op->on[at] = '\0';
}

void
clients_op_begin(struct clients_entry *e, const char *name, struct str body, uint64_t began_ns,
		 struct str on, struct str on_more)
{
	pthread_mutex_lock(&e->lock);
	e->op.id = atomic_fetch_add(&e->clients->next_op, 1) + 1;
	e->op.began_ns = began_ns;
	e->op.name = name;
	e->op.body = body;
	op_set_on(&e->op, on, on_more);
	pthread_mutex_unlock(&e->lock);
}

void
clients_op_end(struct clients_entry *e)
{
	pthread_mutex_lock(&e->lock);
	e->op.id = 0;
	e->op.body = STR("");
	atomic_fetch_and_explicit(&e->signals, e->clients->ends, memory_order_relaxed);
	pthread_mutex_unlock(&e->lock);
}

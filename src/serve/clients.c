#include "serve/clients.h"

#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "net/memory.h"
#include "net/session.h"

/* ---- Life ---- */

void
clients_init(struct clients *all, unsigned ends, const struct visit_rules *rules)
{
	*all = (struct clients){ .ends = ends };
	if (rules)
		all->rules = *rules;
	pthread_mutex_init(&all->lock, NULL);
}

void
clients_fini(struct clients *all)
{
	assert(!all->first && !all->count);
	pthread_mutex_destroy(&all->lock);
}

void
clients_entry_init(struct clients_entry *e, struct clients *all, struct net_stream *stream)
{
	*e = (struct clients_entry){ .clients = all, .created_ns = clock_mono_ns() };
	e->id = atomic_fetch_add(&all->next_id, 1) + 1;
	e->op.peer = e->peer;
	e->op.client = e;
	buf_init(&e->name, CLIENTS_TEXT_BYTES);
	pthread_mutex_init(&e->lock, NULL);
	event_init(&e->wake);
	event_init(&e->ended);
	net_memory_part_init(&e->person, stream ? arena_part(net_stream_arena(stream)) : NULL,
			     false);
	net_memory_part_keep(&e->person);
	if (!stream)
		return;
	snprintf(e->peer, sizeof(e->peer), "%.*s", STR_ARG(net_stream_peer(stream)));
	e->stream = stream;
	e->op.session = net_stream_session(stream);
	net_stream_give_up_on(stream, (struct net_patience){ .event = &e->ended });
}

void
clients_entry_fini(struct clients_entry *e)
{
	assert(!e->link && !e->beside);
	ops_leave(&e->op);
	visitor_release(&e->who);
	budget_part_release(&e->person);
	if (e->stream)
		net_stream_give_up_on(e->stream, (struct net_patience){ 0 });
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
	if (!clients_signals(e) && !e->pending &&
	    !atomic_load_explicit(&e->op.killed, memory_order_relaxed)) {
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
	unsigned signals;

	pthread_mutex_lock(&e->lock);
	e->waiting = false;
	signals = atomic_fetch_and_explicit(&e->signals, e->clients->ends, memory_order_relaxed);
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
clients_set_user(struct clients_entry *e, struct str name, bool limited)
{
	pthread_mutex_lock(&e->clients->lock);
	snprintf(e->user, sizeof(e->user), "%.*s", STR_ARG(name));
	pthread_mutex_unlock(&e->clients->lock);
	e->limited = limited;
}

void
clients_leave(struct clients_entry *e)
{
	ops_leave(&e->op);
	if (e->op.session)
		net_session_end_requests(e->op.session);
}

/* ---- Operations ---- */

void
clients_op_begin(struct clients_entry *e, struct ops_door *door, const char *name, struct str body,
		 uint64_t began_ns, struct str on, struct str on_more)
{
	e->op.door = door;
	e->op.name = str_from_cstr(name);
	e->op.body = body;
	e->op.on = on;
	e->op.on_more = on_more;
	e->op.began_ns = began_ns;
	ops_begin(&e->op);
}

/* The texts about a connection, which only its own fiber may read without a lock. */
struct slow_texts {
	char user[CLIENTS_USER_BYTES];
	char name[CLIENTS_SHOWN_BYTES];
};

static void
slow_texts_copy(void *arg, struct clients_entry *e)
{
	struct slow_texts *t = arg;

	snprintf(t->user, sizeof(t->user), "%s", e->user);
	snprintf(t->name, sizeof(t->name), "%.*s", STR_ARG(buf_str(&e->name)));
}

void
clients_note_slow(struct clients_entry *e, const struct ops_op *op, struct ops_slow slow)
{
	struct slow_texts texts;

	clients_see(e, slow_texts_copy, &texts);
	slow.user = str_from_cstr(texts.user);
	slow.client = str_from_cstr(texts.name);
	ops_note_slow(op, &slow);
}

/* ---- Views ---- */

/* What is called with a view: one of the two. */
struct look {
	void (*see)(void *arg, const struct clients_view *v);
	bool (*may)(void *arg, const struct clients_view *v);
	void *arg;
	const struct ops_op *op; /* that is looked at */
	bool allowed;
};

static void
look_at(struct look *l, const struct clients_view *v)
{
	if (l->see)
		l->see(l->arg, v);
	else
		l->allowed = l->may(l->arg, v);
}

static void
look_at_entry(void *arg, struct clients_entry *e)
{
	struct look *l = arg;

	look_at(l, &(struct clients_view){ .op = l->op,
					   .entry = e,
					   .of = e->clients,
					   .user = str_from_cstr(e->user),
					   .peer = e->peer });
}

static void
look_at_idle(void *arg, struct clients_entry *e)
{
	if (!atomic_load_explicit(&e->op.id, memory_order_relaxed))
		look_at_entry(arg, e);
}

/* With the lock of the operation's list. */
static bool
look_at_op(void *arg, struct ops_op *op)
{
	struct look *l = arg;

	l->op = op;
	if (op->client)
		clients_see(op->client, look_at_entry, l);
	else
		look_at(l, &(struct clients_view){ .op = op, .user = op->user, .peer = op->peer });
	l->op = NULL;
	return l->allowed;
}

void
clients_each_op(struct clients *idle, void (*see)(void *arg, const struct clients_view *v),
		void *arg)
{
	struct look l = { .see = see, .arg = arg };

	ops_each(look_at_op, &l);
	if (idle)
		clients_each(idle, look_at_idle, &l);
}

void
clients_end_op_of(struct ops_op *op)
{
	clients_signal(op->client, 0);
}

void
clients_end_op(uint64_t id, bool (*may)(void *arg, const struct clients_view *v), void *arg)
{
	(void)ops_end_one(id, look_at_op, &(struct look){ .may = may, .arg = arg });
}

/*
 * Who is connected through a door, and how others tell one of them something.
 *
 * Every connection of a door that keeps state has an entry in the door's list. What operators see
 * of connections (CLIENT LIST, serverStatus, INFO) is a look at that list, and whoever ends a
 * connection or tells it something (CLIENT KILL, CLIENT UNBLOCK, a change of rights) signals
 * entries of it. What a connection does now is in the registry of serve/ops.h, where killOp finds
 * it and from where it signals the entry.
 *
 * An entry belongs to its connection's fiber. What others read or change of it belongs to one of
 * two locks. The list's lock owns which entries there are and the texts about them; the entry's,
 * taken inside the list's, owns its signals and whether its fiber waits. A door may have more that
 * belongs to the entry's lock. Both are held for a look, and never over a wait, storage or a peer.
 *
 * A signal is a bit that the door has given a meaning. It is set with the entry's lock and wakes
 * the fiber if that waits, so none is lost between a look and a wait. The fiber forgets signals
 * when it has waited, but for those that end the connection. Whether an operation was ended is not
 * among them: it is the operation's (serve/wanted.h).
 *
 * Threading: as said at each function.
 */
#ifndef FROND_SERVE_CLIENTS_H
#define FROND_SERVE_CLIENTS_H

#include <pthread.h>

#include "base/buf.h"
#include "loop/wait.h"
#include "net/stream.h"
#include "serve/ops.h"
#include "serve/visit.h"

enum {
	CLIENTS_PEER_BYTES = 64,
	CLIENTS_USER_BYTES = 257,  /* of a person's name, with the NUL */
	CLIENTS_TEXT_BYTES = 1000, /* of a name that a connection gives itself */
	CLIENTS_SHOWN_BYTES = 64,  /* of that name, beside a slow operation */
};

/* Connections of one door. */
struct clients {
	pthread_mutex_t lock;
	struct clients_entry *first; /* the newest */
	size_t count;
	unsigned ends;            /* signals that end a connection; they last as long as it does */
	struct visit_rules rules; /* of the people on them */
	_Atomic uint64_t next_id; /* how many connections there were */
};

/* The first member of a door's struct for a connection. */
struct clients_entry {
	struct clients *clients;
	uint64_t id; /* from 1 */
	uint64_t created_ns;
	char peer[CLIENTS_PEER_BYTES];
	struct event ended;       /* set by the first signal that ends the connection */
	_Atomic unsigned signals; /* written with the entry's lock */

	/* The list's lock. Its own fiber, which alone writes texts, reads them without. */
	struct clients_entry *next;
	struct clients_entry **link;
	char user[CLIENTS_USER_BYTES]; /* empty: nobody has logged in */
	struct buf name;
	bool limited; /* its fiber's: limits by person hold for `user` */

	/* Who is there (serve/visit.h): its fiber's. */
	struct visitor who;
	struct budget_part person; /* that counts what is kept of them */
	struct {
		enum status (*look)(struct clients_entry *e); /* set by serve/visit.h */
		enum status (*ask)(void *arg);
		void *arg;
	} may;                     /* what its operation may still wait for (visit_may()) */
	size_t beside;             /* operations that run beside its own (serve/beside.h) */
	_Atomic uint64_t followed; /* who.follow.seen when the connection knew what that means */

	/* The entry's lock. */
	pthread_mutex_t lock;
	struct event wake;
	bool waiting;
	bool pending; /* there is something else than signals for the fiber to do */

	struct net_stream *stream;
	struct ops_op op; /* what it does: the registry's while it runs */
};

/* `rules` NULL: nobody ever logs in, as in a test. */
void clients_init(struct clients *all, unsigned ends, const struct visit_rules *rules);
/* No connection is left. */
void clients_fini(struct clients *all);

/*
 * The connection's fiber calls these, when the connection begins and when it ends. Others find the
 * entry in lists once clients_add() has returned. What the client has asked for ends when the peer
 * of `stream` has left, and a wait for the peer ends when somebody ends the connection
 * (net_stream_give_up_on(), which a door may call with more). `stream` NULL: a test has none.
 */
void clients_entry_init(struct clients_entry *e, struct clients *all, struct net_stream *stream);
void clients_add(struct clients_entry *e);
void clients_remove(struct clients_entry *e);
/* Behind clients_remove(). */
void clients_entry_fini(struct clients_entry *e);

/* ---- The list: any thread ---- */

size_t clients_count(struct clients *all);

/* Calls `see` with each entry, the newest first, and both locks. */
void clients_each(struct clients *all, void (*see)(void *arg, struct clients_entry *e), void *arg);

/*
 * Signals the entries for which `wants`, which is called with both locks, is true; NULL: all.
 * Returns how many they were.
 */
size_t clients_signal_each(struct clients *all, unsigned signals,
			   bool (*wants)(void *arg, struct clients_entry *e), void *arg);

/* ---- One entry: any thread that knows it is there ---- */

/* Calls `see` with both locks. */
void clients_see(struct clients_entry *e, void (*see)(void *arg, struct clients_entry *e),
		 void *arg);

void clients_signal(struct clients_entry *e, unsigned signals);
/* The same for whoever has the entry's lock. No signals: only wakes the fiber. */
void clients_tell(struct clients_entry *e, unsigned signals);

/* The signals that were set and not forgotten; they may be others at once. */
static inline unsigned
clients_signals(const struct clients_entry *e)
{
	return atomic_load_explicit(&e->signals, memory_order_relaxed);
}

/* ---- On its fiber ---- */

/*
 * Returns the event that the next signal sets, until clients_wait_end(). NULL: there are signals
 * already, something is pending, or the operation was ended.
 */
struct event *clients_wait_begin(struct clients_entry *e);
/* Returns the signals. Those that do not last are forgotten. */
unsigned clients_wait_end(struct clients_entry *e);

/* A text about the connection, such as its name. Where memory is short it is empty. */
void clients_set_text(struct clients_entry *e, struct buf *text, struct str value);
/* Who it is; `limited`: somebody who has logged in and is no administrator. */
void clients_set_user(struct clients_entry *e, struct str name, bool limited);

/*
 * All commands that came together, each of which visit_admit() has admitted, are answered: ends
 * what was asked for them (ops_leave()).
 */
void clients_leave(struct clients_entry *e);

/*
 * Begins an operation, which was admitted; visit_op_end() ends it. `on` and `on_more` are what it
 * works on, "db" and "collection". All texts outlive it.
 */
void clients_op_begin(struct clients_entry *e, struct ops_door *door, const char *name,
		      struct str body, uint64_t began_ns, struct str on, struct str on_more);

/*
 * ops_note_slow() for a command of a connection, with the connection's texts, on any thread that
 * knows that the connection is there. `op` tells its door and name, and what it worked on.
 */
void clients_note_slow(struct clients_entry *e, const struct ops_op *op, struct ops_slow slow);

/* ---- Operations: any thread ---- */

/* An operation of any door, or a connection that does nothing, as others see it during a call. */
struct clients_view {
	const struct ops_op *op;           /* NULL: it does nothing */
	const struct clients_entry *entry; /* NULL: its door keeps no list of connections */
	const struct clients *of;          /* likewise */
	struct str user;
	const char *peer;
};

/*
 * Calls `see` with each operation of every door, and then with the connections of `idle` that do
 * nothing, unless that is NULL. All locks of what is seen are held.
 */
void clients_each_op(struct clients *idle, void (*see)(void *arg, const struct clients_view *v),
		     void *arg);

/* For OPS_DOOR(): wakes the connection's fiber if that waits; the connection goes on. */
void clients_end_op_of(struct ops_op *op);

/* Ends the operation of that number if there is one and `may` is true, called with all locks. */
void clients_end_op(uint64_t id, bool (*may)(void *arg, const struct clients_view *v), void *arg);

#endif

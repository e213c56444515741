/*
 * Background work of a process: a registry of chores. A chore does a bounded piece of work in each
 * turn, pauses, and is called again, sooner while it says that there is more. Whoever owns a kind
 * of work adds its chore; the program starts and stops all of them in one place.
 *
 * Where several processes serve one store, a leased chore has turns in one of them only, the one
 * that holds the lease of the chore's name (lease.h); another takes over when that process stops or
 * is lost. A turn is not broken off when its lease is lost, so that now and then two processes may
 * do the same work: that must be a waste at most. Each process runs the chores without a lease.
 *
 * Ownership: the registry copies what is added; names are static. Threading: chores_add() before
 * chores_start(). Three threads run them: one the quick chores, whose turns are short and often
 * due, one the chore that is alone, and one the rest. So a long turn delays no quick chore, and
 * nothing delays the one that is alone. A turn may block its thread. A fourth thread renews leases,
 * if there are any. chores_list(), chores_hurry() and chores_hurry_by() from any thread.
 */
#ifndef FROND_CATALOG_CHORES_H
#define FROND_CATALOG_CHORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct kv_store;

enum {
	CHORES_MAX = 24,
	CHORES_SHOWN_MS = 1000, /* one that is done sooner is not worth a line in _active_tasks */
};

/* One turn: what the chore is given, and what it says at the end. */
struct chore_turn {
	unsigned budget;  /* the chore's own: transactions, or whatever it counts in */
	bool more;        /* there was more to do than the budget allowed */
	uint64_t done;    /* what the turn has done, in the chore's own count; for _active_tasks */
	uint64_t soon_ms; /* when the next turn is wanted, if that is before pause_ms; or 0 */
};

/* Where a chore has its turns. */
enum chore_thread {
	CHORE_REST,
	CHORE_QUICK, /* its turns are short and often due */
	CHORE_ALONE, /* one chore at most; no other one runs there */
};

struct chore {
	const char *name; /* "sweep_databases": in logs and in _active_tasks */
	enum status (*run)(void *arg, struct chore_turn *turn, struct err *err);
	void *arg;
	enum chore_thread thread;
	bool leased;   /* one process at a time runs it; it writes */
	bool writes;   /* to the store, so that a standby has no use for it */
	bool unlisted; /* _active_tasks shows its work otherwise */
	unsigned budget;
	uint64_t pause_ms;  /* after a turn that has done all */
	uint64_t more_ms;   /* after one that has left more: others need the store, too */
	uint64_t failed_ms; /* after one that has failed; 0: as pause_ms */
	uint64_t least_ms;  /* before one that `soon_ms` or somebody who hurries the chore wants */
};

/* A chore as _active_tasks shows it: one that is in a turn, or has left more to do. */
struct chore_state {
	const char *name;
	unsigned number;     /* of the chore, from 1 */
	uint64_t started_ms; /* since 1970: when it began to have something to do */
	uint64_t updated_ms; /* its last turn */
	uint64_t done;       /* since it began */
	bool running;        /* in a turn now */
};

struct chores;

/*
 * The leases are in the store, which outlives the registry; NULL: the chores need none. NULL when
 * out of memory.
 */
struct chores *chores_new(struct kv_store *store);
/* After chores_stop(). NULL is fine. */
void chores_free(struct chores *chores);

/* At most CHORES_MAX. What writes, or is leased, never runs in front of a standby (kv/log.h). */
void chores_add(struct chores *chores, const struct chore *chore);

/*
 * Starts the threads. Each chore has its first turn at once, or as soon as it has its lease.
 * STATUS_LIMIT; STATUS_NOMEM.
 */
MUST_USE enum status chores_start(struct chores *chores, struct err *err);

/* Waits for the turns under way, and gives the leases back. Again is fine. */
void chores_stop(struct chores *chores);

/*
 * Tells the chore of this name that there is new work: its next turn begins at once, or right after
 * the present turn and its `least_ms`. Has no effect while another process has the chore's lease.
 */
void chores_hurry(struct chores *chores, const char *name);
/*
 * The same of work that is there in `ms`: the next turn begins then. Costs a lock if the next turn
 * is planned before that anyway.
 */
void chores_hurry_by(struct chores *chores, const char *name, uint64_t ms);

/* Those that have been active for `least_ms`, at most `max` of them; how many. */
size_t chores_list(struct chores *chores, uint64_t least_ms, struct chore_state *ret, size_t max);

#endif

/*
 * What the files of the pool share: its state, and which of them does what.
 *
 * lanes.c   calls that wait, and giving them to workers
 * lives.c   how workers begin and end
 * keeper.c  the keeper's thread: what workers say, and when it looks after them
 * pool.c    what callers see
 *
 * ---- Who does what ----
 *
 * A call is queued in its lane and given to a worker under the lock, by whichever thread finds that
 * both are free: the caller's, or the keeper. The keeper is a thread that lives for as long as
 * there are workers. It alone starts workers, reads from them, kills and frees them. It waits on
 * their sockets. While anything is under way it also looks every POOL_TICK_MS for calls that have
 * taken too long, workers that have too much memory, and killed ones that the system has cleared
 * away.
 *
 * The thread that assigned a call sends it, outside the lock and without blocking, while
 * `worker->sending` is set. If the socket is full, the keeper sends the rest. Until `sending` is
 * cleared, no other thread sends to that worker, nor closes its socket.
 */
#ifndef FROND_JS_POOL_INT_H
#define FROND_JS_POOL_INT_H

#include <limits.h>
#include <pthread.h>

#include "js/pool.h"
#include "js/worker.h"

enum {
	POOL_SLICE_MS = 200, /* after which a batch is answered in part */
	POOL_TICK_MS = 10,   /* between two looks of the keeper while anything is under way */
};

enum js_end {
	JS_END_IDLE,
	JS_END_TIMEOUT,
	JS_END_MEMORY,
	JS_END_LOST,
	JS_END_GARBAGE,
	JS_END_RETIRED,
	JS_END_STOP,
};

struct lane {
	struct js_run *first; /* those that wait, oldest first */
	struct js_run *last;
	size_t waiting;
	struct js_worker *workers; /* but for dying ones */
	unsigned count;
	bool grow; /* the keeper is to start another one */
};

struct js {
	struct js_config config;
	char path[PATH_MAX]; /* of the worker's program */

	pthread_mutex_t lock; /* guards what follows */
	struct lane lanes[JS_LANES];
	struct js_worker *dying;
	uint64_t contexts; /* so many numbers of contexts were given out */
	uint64_t busy_ns;  /* when the last call began or ended */
	uint64_t start_after_ns;
	struct err start_err;     /* why the last start failed */
	enum status start_status; /* STATUS_OK: it has not failed */
	pthread_t keeper;
	bool keeper_runs;
	bool keeper_made; /* it runs, or is to be joined */
	bool ticking;     /* the keeper looks again soon without being woken */
	bool ending;

	int epoll; /* -1: there was no keeper yet */
	int bell;  /* wakes the keeper */

	/* The keeper's. */
	uint64_t log_second;
	unsigned log_lines;
};

/* ---- lanes.c. With the lock held ---- */

void pool_lane_append(struct js *js, struct js_run *run);
void pool_lane_remove(struct js *js, struct js_run *run);
/* All that wait end with that failure. */
void pool_lane_fail_waiting(struct js *js, struct lane *lane, enum status status,
			    const struct err *why);
/* The run has its outcome. Nobody but its owner touches it from here on. */
void pool_run_finish(struct js_run *run);
/* Has the keeper look for what a worker can take or has said. */
void pool_wait_for_socket(const struct js *js, struct js_worker *w);
/* Assigns what can be assigned, and sends it. The lock is given up meanwhile. */
void pool_pump(struct js *js);
/* Wakes the keeper. The lock need not be held. */
void pool_ring(const struct js *js);

/* ---- lives.c. The keeper, with the lock held ---- */

/* Takes the call of a worker, which has its outcome now. */
void pool_worker_finish_run(struct js *js, struct js_worker *w);
/* Kills a worker that has done wrong: its call fails, or the start of it. */
void pool_worker_fail(struct js *js, struct js_worker *w, enum js_end end);
/* Starts workers where lanes want one. The lock is given up meanwhile. */
void pool_grow_lanes(struct js *js);
/* Frees killed ones that the system has cleared away. */
void pool_free_dead(struct js *js);
/* Kills those that take too long or too much memory, or are not needed. */
void pool_check_workers(struct js *js);

/* ---- keeper.c ---- */

/* Starts the keeper unless it runs. With the lock held. */
MUST_USE enum status pool_keeper_start(struct js *js, struct err *err);
/* True if there is nothing left to keep. With the lock held. */
bool pool_is_needless(const struct js *js);

#endif

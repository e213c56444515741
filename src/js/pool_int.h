/*
 * The state that the files of the pool share.
 *
 * lanes.c calls that wait, and giving them to workers lives.c how workers begin and end keeper.c
 * the keeper's thread: what workers say, and when it looks after them pool.c what callers see
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
	POOL_SLICE_MS = 200, /* after so long a worker answers the part of a batch that is done */
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
	struct js_worker *workers; /* without those that were killed and are not reaped yet */
	unsigned count;
	bool grow; /* the keeper should start another one */
};

struct js {
	struct js_config config;
	char path[PATH_MAX]; /* of the worker's program */

	pthread_mutex_t lock; /* guards what follows */
	struct lane lanes[JS_LANES];
	struct js_worker *dying;
	uint64_t contexts; /* number of context numbers that were given out */
	uint64_t busy_ns;  /* when the last call began or ended */
	uint64_t start_after_ns;
	struct err start_err;     /* why the last start failed */
	enum status start_status; /* STATUS_OK: it has not failed */
	pthread_t keeper;
	bool keeper_runs;
	bool keeper_made; /* the keeper's thread runs, or must be joined */
	bool ticking;     /* the keeper looks again soon without being woken */
	bool ending;

	int epoll; /* -1: no keeper was started yet */
	int bell;  /* wakes the keeper */

	/* Used by the keeper only. */
	uint64_t check_ns; /* when it is to look for workers that take too long or too much */
	uint64_t log_second;
	unsigned log_lines;
};

/* ---- lanes.c. With the lock held ---- */

void pool_lane_append(struct js *js, struct js_run *run);
void pool_lane_remove(struct js *js, struct js_run *run);
/* In front of those that wait: it was sent behind another call, and is to be done by itself. */
void pool_lane_put_back(struct js *js, struct js_run *run);
/* Fails all waiting calls of the lane with that status. */
void pool_lane_fail_waiting(struct js *js, struct lane *lane, enum status status,
			    const struct err *why);
/* Wakes the owner of a run that has its outcome. The run must not be touched afterwards. */
void pool_run_finish(struct js_run *run);
/* Tells epoll whether the keeper waits to read from the worker or to send to it. */
void pool_wait_for_socket(const struct js *js, struct js_worker *w);
/* Assigns waiting calls to workers and sends them. The lock is released while sending. */
void pool_pump(struct js *js);
/* Wakes the keeper. The lock need not be held. */
void pool_ring(const struct js *js);

/* ---- lives.c. The keeper's thread, with the lock held ---- */

/* Ends the call of a worker; the call has its outcome. */
void pool_worker_finish_run(struct js *js, struct js_worker *w);
/* Kills a worker that misbehaved, and fails its call or its start. */
void pool_worker_fail(struct js *js, struct js_worker *w, enum js_end end);
/* Kills a worker that has answered, and that the next call is not to have. */
void pool_worker_retire(struct js *js, struct js_worker *w);
/* Starts workers in the lanes that need one. The lock is released meanwhile. */
void pool_grow_lanes(struct js *js);
/* Frees killed workers whose processes have been reaped. */
void pool_free_dead(struct js *js);
/* Kills workers that take too long, take too much memory, or are idle for long. */
void pool_check_workers(struct js *js);

/* ---- keeper.c ---- */

/* Starts the keeper unless it runs. With the lock held. */
MUST_USE enum status pool_keeper_start(struct js *js, struct err *err);
/* True if the keeper has nothing left to do. Called with the lock held. */
bool pool_is_needless(const struct js *js);

#endif

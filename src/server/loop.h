/*
 * A loop: one thread, its connections, the fibers of their requests, and what they share. Except
 * where it says so, everything is the loop's thread's alone.
 */
#ifndef FROND_SERVER_LOOP_H
#define FROND_SERVER_LOOP_H

#include <uv.h>

#include "server/server.h"
#include "server/task.h"
#include "server/timers.h"

enum {
	LOOP_READ_BYTES = 64 * 1024, /* the read buffer that a loop's connections share */
	LOOP_IDLE_TASKS = 128,       /* fibers kept for reuse */
	LOOP_SPARE_EXCHANGES = 128,  /* exchanges kept for reuse, with their smaller buffers */
	LOOP_ABORT_GRACE_MS = 1000,  /* after an abort, for handlers to notice and return */
	LOOP_ALONE_MS = 100,         /* after this time with one connection it is the only one */
};

struct conn;
struct pool;

struct loop {
	struct server *server; /* NULL: a loop that serves no connections, only fibers */
	struct pool *pool;     /* of such a one */
	const struct server_config *config; /* with every default filled in */
	void *context;                      /* of config->loop_new() */
	uv_loop_t uv;
	uv_async_t async;
	uv_prepare_t prepare;
	uv_check_t check;
	uv_idle_t idle; /* active while tasks are ready: polling must not sleep */
	uv_timer_t clock;
	uint64_t clock_ns; /* what `clock` is set to */

	struct mailbox *mailbox;
	struct timers timers;
	struct task_queue ready;
	struct task *idle_tasks;
	unsigned idle_task_count;
	unsigned running; /* tasks that have begun and not ended */

	struct conn *conns; /* all that are open */
	size_t conn_count;
	size_t refused_count;      /* of them, those that only get their 503 */
	const struct conn *latest; /* whose requests have been the latest ones... */
	uint64_t latest_since_ns;  /* ...since then; only for comparing, it may be gone */
	struct http_exchange *spare;
	unsigned spare_count;
	char *read_buffer;

	unsigned stops_seen; /* of server_stop() */
	bool stopping;
	struct timer drain;

	uint64_t date_s; /* the second that `date` tells */
	char date[40];   /* the Date header's value */

	_Atomic uint64_t accepted;
	_Atomic uint64_t refused;
	_Atomic uint64_t requests;
	_Atomic uint64_t malformed;
	_Atomic uint64_t aborted;
};

/*
 * Before its thread runs. Without a server it needs of `config` only request_bytes, and ends by
 * uv_stop(). STATUS_NOMEM, STATUS_IO.
 */
MUST_USE enum status loop_init(struct loop *l, struct server *server,
			       const struct server_config *config, struct err *err);
/* After its thread has ended, with no connection left. Fine on a zeroed loop. */
void loop_fini(struct loop *l);

/* Serves until it is stopped; with connections left when their handlers did not return in time. */
void loop_run(struct loop *l);

/* Makes the loop look at the server's stops. Any thread, signal handlers. */
void loop_notice(struct loop *l);

/* A connection has gone. */
void loop_conn_gone(struct loop *l);

struct pool *loop_pool(struct loop *l);

void loop_set_timer(struct loop *l, struct timer *t, uint64_t at_ns);

/* A request of that connection begins. */
void loop_note_request(struct loop *l, const struct conn *c);

/* True if there is one task, and all requests of the last LOOP_ALONE_MS have been one client's. */
bool loop_is_alone(const struct loop *l);

/* Takes over a reference of the task, which some queue is going to run. */
void loop_make_ready(struct loop *l, struct task *t);

/* An idle task, NULL when out of memory; and back. */
struct task *loop_take_task(struct loop *l);
void loop_put_task(struct loop *l, struct task *t);

/* The present second as the Date header has it. */
struct str loop_date(struct loop *l);

#endif

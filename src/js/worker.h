/*
 * A worker as the server sees it: a process, what has been loaded into it, and the call that it is
 * doing. The pool (pool.c) owns it and says below which thread may call what; "locked" is with the
 * pool's lock.
 */
#ifndef FROND_JS_WORKER_H
#define FROND_JS_WORKER_H

#include "js/bounds.h"
#include "js/process.h"
#include "js/run.h"

enum {
	JS_BEHIND_MOST = 15, /* calls that are sent to a worker behind the one that it has */
	JS_BEHIND_BYTES = 64 * 1024, /* of the request of each */
};

enum js_worker_state {
	JS_WORKER_STARTING, /* it has not said that it is ready */
	JS_WORKER_IDLE,
	JS_WORKER_BUSY,
	JS_WORKER_DYING, /* killed; waits until the system has cleared it away */
};

/* A design document's version that the worker has loaded. */
struct js_loaded {
	uint64_t context;
	char *key;
	size_t key_len;
	uint64_t used; /* the larger, the later */
};

struct js_worker {
	struct js_worker *next;
	struct js_process process;
	enum js_lane lane;
	enum js_worker_state state;
	struct js_run *run;    /* while it is busy */
	struct js_run *behind; /* calls that were sent behind it, the next one first */
	unsigned behind_count;
	uint64_t since_ns;    /* in this state */
	uint64_t took_ns;     /* the last call, or its start */
	uint64_t computed_ns; /* of processors, when it got its call */
	bool gave_way;        /* its priority is lower than that of other workers, for good */
	uint32_t number;      /* of the last call that was sent */
	uint64_t uses;
	struct js_loaded loaded[JS_CONTEXTS_MOST];
	size_t loaded_count;

	/* What is being sent: the keeper's, unless another thread has set `sending`. */
	bool sending;
	/* `sending` is set, but the thread that will send still has the lock: more can be added. */
	bool to_send;
	struct js_worker *next_to_send;
	struct buf ahead;     /* what goes before the call's request */
	struct buf request;   /* the call's, which may go before it is sent */
	struct buf after;     /* the requests of calls behind it */
	size_t sent;          /* bytes of these three together */
	uint64_t sent_before; /* bytes of everything that was in them earlier */

	struct buf in; /* the keeper's */
};

/* What came from a worker. */
enum js_worker_news {
	JS_WORKER_NOTHING,
	JS_WORKER_READY,
	JS_WORKER_LOG,      /* `text` */
	JS_WORKER_ANSWERED, /* `kind` is DONE or ERROR, `text` the payload */
	JS_WORKER_LOST,     /* it has ended */
	JS_WORKER_GARBAGE,  /* it does not keep to the protocol */
};

/* Its text is valid until the next call for this worker. */
struct js_worker_letter {
	enum js_worker_news news;
	uint32_t kind;
	struct str text;
};

/* A worker that has been started, with a HELLO to be sent. NULL when out of memory. */
struct js_worker *js_worker_new(const struct js_process *process, enum js_lane lane,
				const struct wire_limits *limits);
/* After its process has been killed. */
void js_worker_free(struct js_worker *w);

/* True if it has loaded that version of a design document. Locked. */
bool js_worker_has(const struct js_worker *w, struct str key);

/*
 * Gives an idle worker a call, and takes the call's request. `context` is a number that no other
 * context of this worker has. STATUS_NOMEM: nothing has changed. Locked.
 */
MUST_USE enum status js_worker_assign(struct js_worker *w, struct js_run *run, uint64_t context);

/*
 * Gives a busy worker a further call, which it does after those that it has. It must have loaded
 * the call's design document. The call keeps its request, to be sent again if the worker is lost.
 * STATUS_NOMEM: nothing has changed. Only while no thread sends to the worker. Locked.
 */
MUST_USE enum status js_worker_follow(struct js_worker *w, struct js_run *run);

/*
 * Moves the request of the call under way from the worker back to the call, which may have to be
 * sent again. Does nothing if the call has it. Only while no thread sends to the worker. Locked.
 */
void js_worker_return_request(struct js_worker *w);

/* Ends the call under way: the next one is now under way, or the worker is idle. Locked. */
void js_worker_advance(struct js_worker *w, uint64_t now);

/*
 * Sends as much as the socket takes. True: all of it is sent. If the worker has ended, nothing
 * happens: receiving tells. On the thread that owns what is sent, not locked.
 */
bool js_worker_send(struct js_worker *w);

bool js_worker_has_sent(const struct js_worker *w);

/* True if all of the request of the call under way has been sent. */
bool js_worker_has_sent_run(const struct js_worker *w);

/*
 * Reads what has come: JS_WORKER_NOTHING, LOST or GARBAGE. js_worker_next() then returns it piece
 * by piece, `*at` being 0 first, until JS_WORKER_NOTHING. The keeper reads without the lock, and
 * asks for the pieces with it, since they depend on the worker's state.
 */
enum js_worker_news js_worker_receive(struct js_worker *w);
struct js_worker_letter js_worker_next(struct js_worker *w, size_t *at);

#endif

/*
 * frond's own replicator: the jobs of a process, run on a thread of their own.
 *
 * A job comes from POST /_replicate, and is forgotten with the process, or from a document in the
 * database _replicator, and is found there again after a restart. At most max_jobs run at a time;
 * where more wait, those that ran longest make room. README.md has the design.
 */
#ifndef FROND_REPLICATOR_REPLICATOR_H
#define FROND_REPLICATOR_REPLICATOR_H

#include "kv/kv.h"
#include "replicator/net.h"
#include "replicator/peer.h"
#include "replicator/spec.h"

enum {
	REPLICATOR_JOBS_MAX = 100000, /* known at a time, whatever their state */
	REPLICATOR_ANSWER_BYTES = 1 << 20,
	REPLICATOR_STOP_MS = 20 * 1000, /* that running jobs have to leave their checkpoints */
	REPLICATOR_HISTORY_MAX = 100,   /* events of a job that are kept, at most */
	REPLICATOR_BACKOFF_DOUBLINGS = 10,
};

struct replicator;

/* Texts are the caller's, and outlive the replicator. */
struct replicator_config {
	struct kv_store *store;
	size_t doc_bytes; /* of a document of _replicator */
	struct repl_defaults defaults;
	unsigned max_jobs;
	unsigned max_churn;   /* jobs stopped for others, at a time */
	unsigned max_history; /* events of a job that are remembered */
	uint64_t interval_ms; /* between two looks for jobs that should make room */
	uint64_t backoff_ms;  /* after a first crash; doubled with each in a row */
	uint64_t health_ms;   /* a run of so long is no crash in a row */
	bool http_allowed;
	bool https_allowed;
	struct net_config net;
};

/* STATUS_NOMEM, STATUS_IO. */
MUST_USE enum status replicator_new(const struct replicator_config *config, struct replicator **ret,
				    struct err *err);

/*
 * Begins to run jobs. `self` is this server's own URL, with a slash behind, and has to be listened
 * on by now; `cookie` is for its databases, and outlives the jobs. STATUS_NOMEM, STATUS_LIMIT.
 */
MUST_USE enum status replicator_start(struct replicator *r, const char *self,
				      replicator_cookie *cookie, void *arg, struct err *err);

/*
 * Stops all jobs; those that run leave a checkpoint, and have REPLICATOR_STOP_MS for it. Requests
 * that wait for a job are answered. Blocks until the thread has ended; while it does, the server
 * has to serve. Without a start, it does nothing.
 */
void replicator_stop(struct replicator *r);

/* After replicator_stop(). NULL is fine. */
void replicator_free(struct replicator *r);

/* ---- For doors: any thread ---- */

const struct repl_defaults *replicator_defaults(const struct replicator *r);

/* A request that waits for a job. */
struct replicator_wait {
	struct event done;
	/* Then: */
	enum status status; /* STATUS_OK; or why not, explained in `err` */
	struct err err;
	struct buf answer; /* members of the answer behind "ok" */
	_Atomic unsigned refs;
	struct replicator_wait *next; /* the replicator's */
};

void replicator_wait_unref(struct replicator_wait *w); /* NULL is fine */

/*
 * Adds a job, which takes over the spec, or joins the one that does the same already. `done` is set
 * as soon as a continuous one is known, and when any other has ended. STATUS_NOMEM, STATUS_LIMIT;
 * STATUS_UNAVAILABLE when the process is stopping. `ret_id` is what the job is called.
 */
MUST_USE enum status replicator_add(struct replicator *r, struct repl_spec *spec,
				    char ret_id[SPEC_FULL_ID_BYTES], struct replicator_wait **ret,
				    struct err *err);

/* What a job for this spec is called. The store's failures. */
MUST_USE enum status replicator_id(struct replicator *r, const struct repl_spec *spec,
				   char ret[SPEC_FULL_ID_BYTES], struct err *err);

/*
 * Stops and forgets a job; `ret` is done when it is gone. STATUS_NOT_FOUND; STATUS_UNAUTHORIZED if
 * it is another's (`any`: that does not matter).
 */
MUST_USE enum status replicator_cancel(struct replicator *r, struct str id, struct str user,
				       bool any, struct replicator_wait **ret, struct err *err);

/*
 * Appends the elements of a JSON array about each job that `skip` and `limit` leave, in the order
 * of their ids. `ret_total`: how many there are.
 */
enum replicator_view {
	REPLICATOR_VIEW_JOBS,  /* as _scheduler/jobs tells them */
	REPLICATOR_VIEW_TASKS, /* as _active_tasks does: those that run */
};
MUST_USE enum status replicator_list(struct replicator *r, enum replicator_view view, uint64_t skip,
				     uint64_t limit, struct buf *out, uint64_t *ret_total);

/*
 * The same of the documents of _replicator, in the order of their ids, as _scheduler/docs tells
 * them. STATUS_NOT_FOUND without that database; the store's failures.
 */
struct replicator_docs_query {
	uint64_t skip;
	uint64_t limit;
	struct str states; /* those wanted, with commas between; empty: all */
};
MUST_USE enum status replicator_list_docs(struct replicator *r,
					  const struct replicator_docs_query *query,
					  struct buf *out, uint64_t *ret_total, struct err *err);
/* One of them. STATUS_NOT_FOUND, STATUS_DELETED. */
MUST_USE enum status replicator_show_doc(struct replicator *r, struct str id, struct buf *out,
					 struct err *err);

/* One job, as _scheduler/jobs/ID tells it. STATUS_NOT_FOUND. */
MUST_USE enum status replicator_show(struct replicator *r, struct str id, struct buf *out);

#endif

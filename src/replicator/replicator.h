/*
 * frond's own replicator: the replications of a process, which run on a thread of its own.
 *
 * A job is made by POST /_replicate, and is forgotten when the process ends, or by a document of
 * the database _replicator, and is then found there again after a restart. At most max_jobs jobs
 * run at a time; where more wait, those that have run longest make room. README.md has the design.
 */
#ifndef FROND_REPLICATOR_REPLICATOR_H
#define FROND_REPLICATOR_REPLICATOR_H

#include "kv/kv.h"
#include "replicator/net.h"
#include "replicator/peer.h"
#include "replicator/spec.h"

enum {
	REPLICATOR_JOBS_MAX = 100000, /* at a time, in whatever state */
	REPLICATOR_ANSWER_BYTES = 1 << 20,
	REPLICATOR_STOP_MS = 20 * 1000, /* for running jobs to leave checkpoints at a stop */
	REPLICATOR_HISTORY_MAX = 100,   /* events kept of a job */
	REPLICATOR_BACKOFF_DOUBLINGS = 10,
};

struct replicator;

/* Texts are the caller's and outlive the replicator. */
struct replicator_config {
	struct kv_store *store;
	size_t doc_bytes;      /* of a document of _replicator */
	const char *node_name; /* this server's, where jobs are shown; outlives the replicator */
	struct repl_defaults defaults;
	unsigned max_jobs;
	unsigned max_churn;   /* jobs that make room for others at a time */
	unsigned max_history; /* events kept of a job, up to REPLICATOR_HISTORY_MAX */
	uint64_t interval_ms; /* how often jobs make room for others */
	uint64_t backoff_ms;  /* the rest after a first crash; doubled with each in a row */
	uint64_t health_ms;   /* after a run of this length a crash counts as the first */
	size_t job_bytes;     /* of memory that a run may take */
	bool http_allowed;
	bool https_allowed;
	struct net_config net;
};

/* STATUS_NOMEM, STATUS_IO. */
MUST_USE enum status replicator_new(const struct replicator_config *config, struct replicator **ret,
				    struct err *err);

/*
 * Begins to run jobs. `self` is the URL of this server with a slash behind; the server must listen
 * there by now. `cookie` gives access to its databases; its argument outlives the replicator's
 * thread. STATUS_NOMEM, STATUS_LIMIT.
 */
MUST_USE enum status replicator_start(struct replicator *r, const char *self,
				      replicator_cookie *cookie, void *arg, struct err *err);

/*
 * Stops all jobs. Those that run have REPLICATOR_STOP_MS to leave a checkpoint, and requests that
 * wait for a job are answered. Blocks until the thread has ended. The server must go on serving
 * meanwhile, since the jobs reach its databases through its listener. Does nothing without a start.
 */
void replicator_stop(struct replicator *r);

/* After replicator_stop(). NULL is fine. */
void replicator_free(struct replicator *r);

/* ---- For doors: any thread ---- */

const struct repl_defaults *replicator_defaults(const struct replicator *r);

/* A request that waits for a job. */
struct replicator_wait {
	struct event done;
	/* What follows is valid once `done` is set. */
	enum status status; /* a failure is explained in `err` */
	struct err err;
	struct buf answer; /* the members of the answer behind "ok" */
	_Atomic unsigned refs;
	struct replicator_wait *next; /* in the job's list; the replicator's */
};

void replicator_wait_unref(struct replicator_wait *w); /* NULL is fine */

/*
 * Adds a job or joins the one that has the same id. Takes the spec over, also when it fails. `done`
 * of `*ret` is set at once for a continuous job, or when the function that it filters by was looked
 * for; and when any other job has ended. `ret_id` is the
 * job's full id. STATUS_NOMEM; STATUS_LIMIT past REPLICATOR_JOBS_MAX; STATUS_UNAVAILABLE when the
 * process is stopping; the store's failures.
 */
MUST_USE enum status replicator_add(struct replicator *r, struct repl_spec *spec,
				    char ret_id[SPEC_FULL_ID_BYTES], struct replicator_wait **ret,
				    struct err *err);

/* The full id of a job for this spec. The store's failures. */
MUST_USE enum status replicator_id(struct replicator *r, const struct repl_spec *spec,
				   char ret[SPEC_FULL_ID_BYTES], struct err *err);

/*
 * Stops a job and forgets it; `done` of `*ret` is set when it is gone. STATUS_NOT_FOUND;
 * STATUS_UNAUTHORIZED if it belongs to another user, unless `any` is set.
 */
MUST_USE enum status replicator_cancel(struct replicator *r, struct str id, struct str user,
				       bool any, struct replicator_wait **ret, struct err *err);

/*
 * Appends one element of a JSON array for each job, in the order of their ids: `limit` of them,
 * behind the first `skip`. `ret_total` is the number of all.
 */
enum replicator_view {
	REPLICATOR_VIEW_JOBS,  /* as _scheduler/jobs shows them */
	REPLICATOR_VIEW_TASKS, /* as _active_tasks shows them: only those that run */
};
MUST_USE enum status replicator_list(struct replicator *r, enum replicator_view view, uint64_t skip,
				     uint64_t limit, struct buf *out, uint64_t *ret_total);

/*
 * The same for the documents of _replicator, as _scheduler/docs shows them. STATUS_NOT_FOUND
 * without that database; the store's failures.
 */
struct replicator_docs_query {
	uint64_t skip;
	uint64_t limit;
	struct str states; /* with commas between those that are wanted, in any case; empty: all */
};
MUST_USE enum status replicator_list_docs(struct replicator *r,
					  const struct replicator_docs_query *query,
					  struct buf *out, uint64_t *ret_total, struct err *err);
/* One document. STATUS_NOT_FOUND, STATUS_DELETED; the store's failures. */
MUST_USE enum status replicator_show_doc(struct replicator *r, struct str id, struct buf *out,
					 struct err *err);

/* One job, as _scheduler/jobs/ID shows it. STATUS_NOT_FOUND. */
MUST_USE enum status replicator_show(struct replicator *r, struct str id, struct buf *out);

#endif

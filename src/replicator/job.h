/*
 * What the files of the replicator share: the struct replicator and its jobs.
 *
 * Jobs live on the replicator's thread. The doors' threads read them and add to them as well, so
 * `lock` guards the table of jobs and everything that a door may see of a job. Nobody waits for the
 * network or the store while holding it.
 */
#ifndef FROND_REPLICATOR_JOB_H
#define FROND_REPLICATOR_JOB_H

#include "loop/loop.h"
#include "base/metric.h"
#include "replicator/replicator.h"
#include "replicator/run.h"
#include "replicator/states.h"

enum {
	JOB_BUCKETS = 1024, /* of the table of jobs */
	STORE_ID_BYTES = 16,
};

/* Which process may run a job (job_lease.h). */
enum job_lease {
	JOB_LEASE_NONE, /* not known yet, or no longer certain */
	JOB_LEASE_HELD,
	JOB_LEASE_ELSEWHERE,
};

struct leases;

enum job_past {
	JOB_PAST_ADDED,
	JOB_PAST_STARTED,
	JOB_PAST_STOPPED,
	JOB_PAST_CRASHED,
};

/* One event in the history of a job, as _scheduler/jobs shows it. */
struct job_moment {
	enum job_past what;
	uint64_t at_ms;
	char *reason; /* of a crash; owned */
};

struct job {
	struct job *next; /* in its bucket */
	struct replicator *replicator;
	struct repl_spec *spec;
	char id[SPEC_ID_BYTES + 1];
	char full_id[SPEC_FULL_ID_BYTES];
	enum job_state state;
	enum job_lease lease;
	enum job_lease lease_next;   /* what `lease` becomes if the transaction under way commits */
	bool lost;                   /* another process has taken its lease */
	bool dropped;                /* its document is gone, or asks for something else */
	char *doc_rev;               /* the revision of its document that it was made from */
	struct repl_spec *successor; /* what the document asks for instead; NULL: nothing */
	char *successor_rev;
	struct job_moment past[REPLICATOR_HISTORY_MAX]; /* newest first */
	unsigned past_count;
	unsigned crashes; /* in a row */
	uint64_t added_ms;
	uint64_t started_ns; /* when its last run began; 0: it has not run */
	uint64_t rested_ns;  /* when JOB_CRASHING ends */
	struct run_progress progress;
	struct net_scope scope;              /* of its run */
	struct net_scope settling;           /* of the checkpoint that a stopped run leaves */
	struct replicator_wait *waits;       /* of requests that wait for its end */
	struct replicator_wait *leave_waits; /* of requests that have cancelled it */
};

/* Runs a job to its end, on a fiber: run_replication(). */
typedef enum status job_run_fn(const struct run_config *config, struct buf *ret_answer,
			       struct err *err);

struct replicator {
	struct replicator_config config;
	struct loop *loop; /* the one that the fibers run on; its owner's */
	job_run_fn *run;
	struct peer_env env;
	bool started; /* jobs may be added */

	pthread_mutex_t lock; /* guards what follows, and what others see of jobs */
	struct event bell;    /* wakes the scheduler: something has changed */
	struct job *jobs[JOB_BUCKETS];
	size_t jobs_count;
	size_t running;
	bool stopping;
	bool drained;             /* stopping, and no job runs any more */
	struct verdict *verdicts; /* ends of jobs that their documents do not show yet */
	struct event verdicts_bell;
	struct event docs_stop;
	struct look *looks; /* requests whose filters are looked for before there is a job */
	unsigned fibers;    /* that follow documents, store verdicts, renew leases and look */

	bool shared;           /* other processes use the store: leases say who runs what */
	struct leases *leases; /* NULL unless shared; what is known of them is under the lock */
	struct event leases_bell;
	struct metric_collector collector;     /* counts jobs for metrics, from init to fini */
	char store_id[2 * STORE_ID_BYTES + 1]; /* part of each replication's id; empty: not read */
};

/*
 * The replicator without its thread (host.c): the loop is the caller's, who runs it between
 * replicator_begin() and the end of the loop, which follows replicator_end() when all jobs have
 * stopped. replicator_begin() starts the fibers: STATUS_NOMEM. Texts of the config and of `env` are
 * the caller's.
 */
void replicator_init(struct replicator *r, const struct replicator_config *config,
		     struct loop *loop, job_run_fn *run);
void replicator_fini(struct replicator *r);
MUST_USE enum status replicator_begin(struct replicator *r, const struct peer_env *env,
				      struct err *err);
void replicator_end(struct replicator *r); /* any thread */

/* ---- To be called under the lock ---- */

struct job *job_find(struct replicator *r, struct str full_id);
struct job *job_of_doc(struct replicator *r, struct str doc_id); /* NULL: it has none */
void job_table_add(struct replicator *r, struct job *j);
void job_table_remove(struct replicator *r, struct job *j);
/* The job after `j`, in no particular order. NULL asks for the first one and follows the last. */
struct job *job_next(struct replicator *r, struct job *j);

/* A pending job, which owns the spec. NULL when out of memory; then the spec is the caller's. */
struct job *job_new(struct replicator *r, struct repl_spec *spec);
void job_free(struct job *j);
void job_remember(struct job *j, enum job_past what, const char *reason);

/*
 * Has a request wait for the job that has the id of a spec, or for a new one, which takes the spec
 * over: NULL is left in `*spec`. A continuous one is there at once. `ret_id` is the job's full id.
 * A failure leaves `w` as it is.
 */
MUST_USE enum status job_join(struct replicator *r, struct repl_spec **spec,
			      struct replicator_wait *w, char ret_id[SPEC_FULL_ID_BYTES],
			      struct err *err);

/*
 * The state that _scheduler/docs has: "error" for a job that is to run again and lacks the function
 * that it filters by. CouchDB makes no job of such a document until that is there.
 */
#define JOB_DOC_ERROR "error"
const char *job_doc_state(const struct job *j);

/* Append JSON objects that describe a job (job_text.c). */
void job_write(const struct job *j, struct buf *out);
void job_write_stats(const struct job *j, struct buf *out);
void job_write_info(const struct job *j, struct buf *out);
void job_write_task(const struct job *j, struct buf *out);
void job_write_doc(const struct job *j, struct buf *out);
/* Appends the beginning of such an object, for a document that has no job as well. */
void job_write_doc_head(struct buf *out, struct str doc_id);

/* Gives a request its answer and drops the job's reference to the wait. */
void replicator_wait_end(struct replicator_wait *w, enum status status, const struct err *err,
			 struct str answer);

/*
 * Reads the store's id, or makes one. To be called before the first job is made, and without the
 * lock, since it waits for the store. Fails as the store does.
 */
MUST_USE enum status replicator_ensure_store_id(struct replicator *r, struct err *err);

/* One of the fibers counted by `fibers` calls this last. Takes the lock. */
void replicator_fiber_ended(struct replicator *r);

/* Wakes the scheduler. */
void replicator_ring(struct replicator *r);

/* Appends `,"name":` and the text as a JSON string, or null where it has no ptr (job_text.c). */
void job_write_text(struct buf *out, const char *name, struct str text);

#endif

/* What the files of the replicator share: its jobs. */
#ifndef FROND_REPLICATOR_JOB_H
#define FROND_REPLICATOR_JOB_H

#include "replicator/replicator.h"
#include "replicator/run.h"
#include "replicator/states.h"
#include "server/loop.h"

enum {
	JOB_BUCKETS = 1024, /* of the table of jobs */
	LEASE_PROCESS_BYTES = 16,
};

/* Which process may run a job (lease.h). */
enum job_lease {
	JOB_LEASE_NONE, /* not known yet */
	JOB_LEASE_HELD,
	JOB_LEASE_ELSEWHERE,
};

struct beat;
struct lease_entry;

enum job_past {
	JOB_PAST_ADDED,
	JOB_PAST_STARTED,
	JOB_PAST_STOPPED,
	JOB_PAST_CRASHED,
};

/* Something that happened to a job. */
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
	enum job_lease lease_next;   /* what a transaction under way makes of it */
	bool lost;                   /* another process has taken it */
	bool dropped;                /* its document has gone, or asks for something else */
	char *doc_rev;               /* of its document */
	struct repl_spec *successor; /* what that asks for instead; NULL: nothing */
	char *successor_rev;
	struct job_moment past[REPLICATOR_HISTORY_MAX]; /* newest first */
	unsigned past_count;
	unsigned crashes; /* in a row */
	uint64_t added_ms;
	uint64_t started_ns; /* the last run */
	uint64_t rested_ns;  /* when CRASHING ends */
	struct run_progress progress;
	struct net_scope scope;
	struct replicator_wait *waits; /* for its end */
	struct replicator_wait *leave_waits;
};

struct replicator {
	struct replicator_config config;
	struct loop loop;
	struct server_config loop_config;
	struct net *net;
	struct spawner *spawner;
	struct peer_env env;
	char *self;
	pthread_t thread;
	bool started;

	pthread_mutex_t lock; /* guards what follows, and what others see of jobs */
	struct event bell;    /* something is to be done */
	struct job *jobs[JOB_BUCKETS];
	size_t jobs_count;
	size_t running;
	bool stopping;
	bool drained;                  /* stopping, and no job is left */
	struct docs_verdict *verdicts; /* for documents to be told */
	struct event verdicts_bell;
	struct event docs_stop;
	unsigned fibers; /* besides the jobs' and the scheduler's */

	bool shared; /* other processes use the store: leases say who runs what */
	uint8_t process[LEASE_PROCESS_BYTES];
	uint64_t beat_count;
	struct beat *beats; /* of others; the leases' fiber's alone */
	uint64_t beaten_ns; /* when this process last did */
	const struct lease_entry *leases;
	size_t leases_count;
	struct arena *leases_arena;
	struct event leases_bell;
	char store_id[2 * 16 + 1]; /* that ids of replications are made with; empty: not known */
};

/* ---- Under the lock ---- */

struct job *job_find(struct replicator *r, struct str full_id);
void job_table_add(struct replicator *r, struct job *j);
void job_table_remove(struct replicator *r, struct job *j);
/* The job after `j`, in no order; NULL begins and ends. */
struct job *job_next(struct replicator *r, struct job *j);

/* NULL when out of memory; then the spec remains the caller's. */
struct job *job_new(struct replicator *r, struct repl_spec *spec);
void job_free(struct job *j);
void job_remember(struct job *j, enum job_past what, const char *reason);

/* Appends what is told of a job (report.c). */
void job_write(const struct job *j, struct buf *out);
void job_write_stats(const struct job *j, struct buf *out);
void job_write_info(const struct job *j, struct buf *out);
void job_write_task(const struct job *j, struct buf *out);
void job_write_doc(const struct job *j, struct buf *out); /* of a document: docs_list.c */

/* Ends a request's wait, and drops the job's reference. */
void replicator_wait_end(struct replicator_wait *w, enum status status, const struct err *err,
			 struct str answer);

/* Reads the store's id, or makes one, before the first job. The store's failures. */
MUST_USE enum status replicator_ensure_store_id(struct replicator *r, struct err *err);

/* A fiber besides the jobs' says so when it ends. */
void replicator_fiber_ended(struct replicator *r);

/* Has the replicator's thread look at everything. */
void replicator_ring(struct replicator *r);

/* Appends `,"name":` and the text as a JSON string, or null where it has no ptr (report.c). */
void job_write_text(struct buf *out, const char *name, struct str text);

#endif

/*
 * Leases of jobs: which process runs which job, where several serve one store. catalog/lease.h has
 * how leases are taken, lost and given back; here is what they mean for jobs.
 *
 * A process runs a job only while it holds the lease of the job's full id. The lease also says what
 * other processes show of the job. If somebody else clears a lease, the job has been cancelled
 * there.
 */
#ifndef FROND_REPLICATOR_JOB_LEASE_H
#define FROND_REPLICATOR_JOB_LEASE_H

#include "catalog/lease.h"
#include "replicator/job.h"

enum {
	JOB_LEASES_KNOWN_BYTES = 64 << 20, /* memory of what is known of other processes' jobs */
	JOB_LEASE_TEXT_BYTES = 24 * 1024,  /* of one text in a lease */
};

/*
 * The texts of a lease: how the job looks from other processes, but for the first one as the JSON
 * objects of the doors' answers. Stored: their order never changes.
 */
enum job_lease_text {
	JOB_LEASE_DOC_ID, /* of the job's document in _replicator; empty: it has none */
	JOB_LEASE_JOB,    /* as job_write() has it */
	JOB_LEASE_TASK,   /* as job_write_task() has it; empty: the job does not run */
	JOB_LEASE_DOC,    /* as job_write_doc() has it; empty: the job has no document */
	JOB_LEASE_TEXTS
};

/* Makes r->leases. STATUS_NOMEM. */
MUST_USE enum status job_leases_init(struct replicator *r, struct err *err);

/* A fiber of the replicator's loop: stores beats, takes leases and gives them back. */
void job_leases_renew(void *replicator);

/* The lease of a job that another process holds; NULL if there is none. Under the lock. */
const struct lease_entry *job_lease_elsewhere(struct replicator *r, struct str job);
const struct lease_entry *job_lease_elsewhere_doc(struct replicator *r, struct str doc_id);

/*
 * Clears the lease of a job that another process holds, which makes it stop the job.
 * STATUS_NOT_FOUND; the store's failures.
 */
MUST_USE enum status job_lease_cancel(struct replicator *r, struct str job, struct err *err);

#endif

/*
 * Which process runs which job, where several serve one store.
 *
 *     (ROOT, REPLICATOR, 1, process)  = beats: rewritten every LEASE_BEAT_MS by a living one
 *     (ROOT, REPLICATOR, 2, job)      = (process, what is told of the job: three texts)
 *
 * A process runs a job only while it holds the job's lease. It takes one that nobody has, or whose
 * holder has not beaten for LEASE_MS by the taker's own clock, so that clocks need not agree. One
 * that could not beat for LEASE_GIVE_UP_MS stops its jobs before others may take them. A lease that
 * is cleared by somebody else is a job that was cancelled there. A store that is one process's own
 * has no leases.
 */
#ifndef FROND_REPLICATOR_LEASE_H
#define FROND_REPLICATOR_LEASE_H

#include "replicator/job.h"

enum {
	LEASE_BEAT_MS = 2000,
	LEASE_MS = 12 * 1000,
	LEASE_GIVE_UP_MS = 7 * 1000,
	LEASE_KNOWN_BYTES = 64 << 20, /* of what is known of others' jobs */
	LEASE_TEXT_BYTES = 24 * 1024, /* of one text that is told */
};

/* A job as its lease tells of it. */
struct lease_entry {
	struct str job;
	struct str doc_id; /* empty: it came by request */
	struct str holder; /* the process that has it */
	bool mine;
	struct str texts[3]; /* as job_write(), job_write_task(), job_write_doc() have it */
};

enum lease_text {
	LEASE_TEXT_JOB,
	LEASE_TEXT_TASK, /* empty: it does not run */
	LEASE_TEXT_DOC,
};

/* A fiber of the replicator's loop: beats, takes leases and gives them back. */
void leases_keep(void *replicator);

/* Under the lock. The entry of a job that another process has; NULL: none. */
const struct lease_entry *lease_elsewhere(struct replicator *r, struct str job);
const struct lease_entry *lease_elsewhere_doc(struct replicator *r, struct str doc_id);

/* Clears the lease of a job of another process, which stops it. STATUS_NOT_FOUND. */
MUST_USE enum status lease_cancel(struct replicator *r, struct str job, struct err *err);

#endif

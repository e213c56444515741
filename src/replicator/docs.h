/*
 * The database _replicator: its documents become jobs, and learn how those ended.
 *
 * A fiber of the replicator's loop reads the database's changes, from the beginning at each start,
 * and watches for more. What is deleted or changed there ends or replaces its job.
 */
#ifndef FROND_REPLICATOR_DOCS_H
#define FROND_REPLICATOR_DOCS_H

#include "replicator/job.h"

enum {
	DOCS_PAGE = 100, /* documents read in one transaction */
	DOCS_ARENA_BYTES = 256 << 20,
	DOCS_RETRY_MS = 1000, /* after a failure of the store */
};

/* How a job has ended, on its way into its document. */
struct docs_verdict {
	struct docs_verdict *next;
	char *id;
	const char *state; /* static */
	char *detail;      /* JSON: _replication_stats, or the text of _replication_state_reason */
	bool failed;
};

/* The loop's fibers: reading, and writing. With the replicator as argument. */
void docs_follow(void *replicator);
void docs_write_verdicts(void *replicator);

/* Under the lock: the job of a document, or NULL. */
struct job *job_of_doc(struct replicator *r, struct str id);

/* Under the lock: a job is gone; the one that its document has asked for since takes its place. */
void docs_succeed(struct replicator *r, struct job *j);

/* Under the lock: remembers what a document is to be told. Without memory it is not told. */
void docs_tell(struct replicator *r, const struct job *j, const char *reason);

#endif

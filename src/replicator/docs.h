/*
 * The database _replicator: its documents become jobs.
 *
 * A fiber of the replicator's loop reads the database's changes, from the beginning at each start,
 * and watches for more. A document that is deleted ends its job; one that is changed replaces it.
 */
#ifndef FROND_REPLICATOR_DOCS_H
#define FROND_REPLICATOR_DOCS_H

#include "replicator/job.h"

enum {
	DOCS_PAGE = 100, /* documents read in one transaction */
	DOCS_ARENA_BYTES = 256 << 20,
	DOCS_RETRY_MS = 1000, /* after a failure of the store */
};

/* The fiber. `replicator` is the struct replicator. */
void docs_follow(void *replicator);

/* Adds the job that the document of `j`, which is gone, has asked for since. Under the lock. */
void docs_start_successor(struct replicator *r, struct job *j);

#endif

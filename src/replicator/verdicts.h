/*
 * How jobs ended, until their documents show it. A fiber of the replicator's loop stores each
 * verdict in its document, in a transaction of its own that reads what the document is by then.
 */
#ifndef FROND_REPLICATOR_VERDICTS_H
#define FROND_REPLICATOR_VERDICTS_H

#include "replicator/job.h"

/* Owned by the replicator's list, then by the fiber. */
struct verdict {
	struct verdict *next;
	char *id;     /* of the document */
	char *detail; /* the reason of a failure, or the JSON of the figures */
	bool failed;
};

/* The fiber. `replicator` is the struct replicator. */
void verdicts_store(void *replicator);

/*
 * Has the end of a job stored in its document: a failure if `reason` is not NULL. Under the lock.
 * Without memory for that the document does not show it, and its job runs again after a restart.
 */
void verdict_note_end(struct replicator *r, const struct job *j, const char *reason);

/* The same for a document of which no job could be made. */
void verdict_push(struct replicator *r, struct str id, struct str detail, bool failed);

#endif

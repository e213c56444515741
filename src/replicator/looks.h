/*
 * Requests for continuous jobs that filter by a function: their client is told if the function is
 * not there, and then there is no job. A fiber of its own looks for the function, and waits neither
 * for a place among the running jobs nor for a lease.
 */
#ifndef FROND_REPLICATOR_LOOKS_H
#define FROND_REPLICATOR_LOOKS_H

#include "replicator/job.h"

/* ---- To be called under the lock ---- */

/*
 * True if a request for this spec has to be looked at first. `ret_id` is the full id of its job.
 */
bool look_is_needed(struct replicator *r, const struct repl_spec *spec,
		    char ret_id[SPEC_FULL_ID_BYTES]);

/*
 * Begins to look for the filter of a replication, in the background. If it is there, the job is
 * created. Either way `w` ends, with the failure if there was one. On success this takes the spec
 * over. STATUS_NOMEM, STATUS_UNAVAILABLE.
 */
MUST_USE enum status look_add(struct replicator *r, struct repl_spec **spec,
			      struct replicator_wait *w, struct err *err);

/* On the replicator's thread: begins what was added, and ends all when the replicator stops. */
void looks_turn(struct replicator *r);

#endif

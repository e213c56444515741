/*
 * Makes indexes follow their design documents. A change of a design document, by a client, a
 * replication or a purge, creates and drops indexes in the same transaction, and notes that its
 * views have to be built.
 */
#ifndef FROND_DOOR_COUCH_QUERY_HOOK_H
#define FROND_DOOR_COUCH_QUERY_HOOK_H

#include "model/revisioned/write.h"

/* For rev_design_hook(). What is no index in the document is passed over. */
rev_design_changed query_design_changed;

#endif

/* The scheduler: a fiber of the replicator's loop that decides which jobs run when. */
#ifndef FROND_REPLICATOR_SCHEDULE_H
#define FROND_REPLICATOR_SCHEDULE_H

#include "replicator/job.h"

/* Starts the fibers of the replicator's loop; to be called before the loop runs. STATUS_NOMEM. */
MUST_USE enum status schedule_begin(struct replicator *r, struct err *err);

/* How long a job rests after that many crashes in a row. */
uint64_t schedule_backoff_ms(const struct replicator_config *config, unsigned crashes);

#endif

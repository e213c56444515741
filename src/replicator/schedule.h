/* What the replicator's own thread does: which jobs run when. */
#ifndef FROND_REPLICATOR_SCHEDULE_H
#define FROND_REPLICATOR_SCHEDULE_H

#include "replicator/job.h"

/* Before the thread runs: its first fiber is put in place. STATUS_NOMEM. */
MUST_USE enum status schedule_begin(struct replicator *r, struct err *err);

/* How long a job rests after so many crashes in a row. */
uint64_t schedule_backoff_ms(const struct replicator_config *config, unsigned crashes);

#endif

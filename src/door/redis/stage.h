/* Staging values that one transaction cannot write, for a job that has been told so. */
#ifndef FROND_DOOR_REDIS_STAGE_H
#define FROND_DOOR_REDIS_STAGE_H

#include "door/redis/run.h"

/*
 * Stages what job->wanted says, so that the job can be run again. STATUS_TX_CONFLICT, explained, if
 * that has been tried too often.
 */
MUST_USE enum status stage_value(struct redis *r, struct job *job, struct arena *arena,
				 struct err *err);

/* Has what was staged for the job and not published removed. */
void stage_drop_all(struct redis *r, struct job *job, struct arena *arena);

#endif

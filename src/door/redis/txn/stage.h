/* Staging values that one transaction cannot write, for a job that has been told so. */
#ifndef FROND_DOOR_REDIS_TXN_STAGE_H
#define FROND_DOOR_REDIS_TXN_STAGE_H

#include "door/redis/txn/run.h"

/* A value that is staged for a job. */
struct staged {
	struct timed_stage stage; /* first: `next` leads from one of the job's to another one */
	unsigned db;              /* that it is staged in */
};

/* What is staged for the job, to be published by its next attempt. */
static inline struct timed_stage *
stage_first(const struct job *job)
{
	return job->staged ? &job->staged->stage : NULL;
}

/*
 * Stages what job->wanted says, so that the job can be run again. STATUS_TX_CONFLICT, explained, if
 * that has been tried too often.
 */
MUST_USE enum status stage_value(struct redis *r, struct job *job, struct arena *arena,
				 struct err *err);

/* Has what was staged for the job and not published removed. */
void stage_drop_all(struct redis *r, struct job *job, struct arena *arena);

#endif

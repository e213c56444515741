/*
 * The life of a job as a table: for each state and event, what to do and which state follows. Only
 * schedule.c, which follows the table, changes the state of a job.
 */
#ifndef FROND_REPLICATOR_STATES_H
#define FROND_REPLICATOR_STATES_H

enum job_state {
	JOB_PENDING, /* waits for its turn */
	JOB_RUNNING,
	JOB_YIELDING, /* runs, and has been told to stop so that others have their turn */
	JOB_LEAVING,  /* runs, and has been told to stop for good */
	JOB_CRASHING, /* a run has failed; rests before the next one */
	JOB_COMPLETED,
	JOB_FAILED, /* no further run can succeed */
	JOB_GONE,
	JOB_STATES
};

enum job_event {
	JOB_TURN,      /* there is room to run */
	JOB_MAKE_ROOM, /* others wait */
	JOB_ENDED,     /* the run is complete */
	JOB_STOPPED,   /* the run has stopped because it was told to */
	JOB_CRASHED,   /* the run has failed; another one may succeed */
	JOB_REFUSED,   /* no run can ever succeed */
	JOB_RESTED,    /* the rest after a crash is over */
	JOB_CANCEL,
	JOB_EVENTS
};

enum job_action {
	JOB_IMPOSSIBLE, /* the event cannot happen in that state */
	JOB_NOTHING,
	JOB_START,
	JOB_STOP,
	JOB_PUT_BACK, /* among the jobs that wait */
	JOB_BACK_OFF, /* rest, the longer the more often it has crashed in a row */
	JOB_COMPLETE, /* answer the requests that wait, store the end in the document */
	JOB_FAIL,     /* likewise, as a failure */
	JOB_REMOVE,   /* and then answer the requests that wait */
};

struct job_step {
	enum job_action action;
	enum job_state next;
};

struct job_step job_step(enum job_state state, enum job_event event);

/* "pending", "running" …, in CouchDB's words. */
const char *job_state_name(enum job_state state);

#endif

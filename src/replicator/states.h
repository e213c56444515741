/*
 * The life of a job, as a table: what may happen to it in each state, what is done then, and which
 * state follows. Nothing else changes a job's state.
 */
#ifndef FROND_REPLICATOR_STATES_H
#define FROND_REPLICATOR_STATES_H

enum job_state {
	JOB_PENDING, /* waits for its turn */
	JOB_RUNNING,
	JOB_YIELDING, /* was told to stop, so that others have their turn */
	JOB_LEAVING,  /* was told to stop for good */
	JOB_CRASHING, /* a run has failed; waits before the next */
	JOB_COMPLETED,
	JOB_FAILED, /* for good */
	JOB_GONE,
	JOB_STATES
};

enum job_event {
	JOB_TURN,      /* there is room to run */
	JOB_MAKE_ROOM, /* others wait */
	JOB_ENDED,     /* the run is complete */
	JOB_STOPPED,   /* the run has stopped because it was told to */
	JOB_CRASHED,   /* the run has failed; another may not */
	JOB_REFUSED,   /* no run can ever succeed */
	JOB_RESTED,    /* the time of waiting is over */
	JOB_CANCEL,
	JOB_EVENTS
};

enum job_action {
	JOB_IMPOSSIBLE, /* the event cannot happen in that state */
	JOB_NOTHING,
	JOB_START,
	JOB_STOP,
	JOB_PUT_BACK, /* behind those that wait */
	JOB_BACK_OFF, /* the longer, the more often it has crashed in a row */
	JOB_COMPLETE, /* tell whoever waits, and the document */
	JOB_FAIL,     /* likewise */
	JOB_REMOVE,
};

struct job_step {
	enum job_action action;
	enum job_state next;
};

struct job_step job_step(enum job_state state, enum job_event event);

/* "pending", "running" …, as CouchDB tells it. */
const char *job_state_name(enum job_state state);

#endif

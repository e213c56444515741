/*
 * Whether the work of an operation goes on.
 *
 * An operation that begins (ops_begin()) has its fiber asked after each slice of computing
 * (loop/step.h), until it ends. So whatever a door runs ends, without a line of the door:
 *
 * - when somebody has ended the operation, or its connection (killOp, CLIENT KILL);
 * - when its time is over (`until_ns`);
 * - when its client has left (net_session_is_wanted());
 * - when a stop of the process has given up on its client.
 *
 * A wait that may take long, such as for a worker for functions, ends likewise (loop/asking.h), and
 * also when the person on the connection is gone or has no right any more to what the operation
 * waits for (serve/visit.h). That the client has left is told to such a wait by an event.
 *
 * What is done also for a client that has left, such as a write that has come as a whole, sets
 * `ends` of its operation.
 *
 * Threading: on the operation's fiber, unless a function says otherwise.
 */
#ifndef FROND_SERVE_WANTED_H
#define FROND_SERVE_WANTED_H

#include "loop/lanes.h"
#include "serve/ops.h"

/* Called by ops_begin() and ops_end(): the fiber works for the operation. */
void wanted_begin(struct ops_op *op);
void wanted_end(struct ops_op *op);

/*
 * From now on the running fiber works for this operation; NULL: for none. Databases that it creates
 * count for that client, and in a group whoever ends the operation ends what is done for it.
 * Returns the operation before, with which the caller calls it again when it is done. Only a fiber
 * that works for several clients needs it.
 */
struct ops_op *wanted_work_for(struct ops_op *op);

/* True if somebody has ended the operation or its connection. Any thread that has the operation. */
bool wanted_is_ended(const struct ops_op *op);

/*
 * Between two parts of work: STATUS_CANCELLED if somebody has ended the operation or its client has
 * left, at once, and not only after some further slices; STATUS_TIMEOUT if its time is over.
 */
MUST_USE enum status wanted_check(const struct ops_op *op);

/* The same between two looks at what others do: STATUS_CANCELLED also when the process stops. */
MUST_USE enum status wanted_check_waiting(const struct ops_op *op);

/*
 * The fiber of one job of lanes runs all of its group, for clients that wait for that. The client
 * of the first may leave meanwhile, and the others' work goes on: it ends when a stop has given up
 * on all of them. Whoever ends one of the operations ends what the fiber does for that one
 * (wanted_work_for()), and nothing else.
 */
struct wanted_group { /* private */
	const struct lanes_job *first;
	/* Whom the fiber asked, and for whom it worked, before. */
	struct step_owner before;
	struct ops_op *worked_for;
};

/* `works_for` of each job is its operation. The group stays where it is until it ends. */
void wanted_group_begin(struct wanted_group *g, const struct lanes_job *first);
void wanted_group_end(struct wanted_group *g);

#endif

/*
 * Conditional statements that meet at one partition share transactions.
 *
 * Each reads what it then writes, so two at one row, in transactions of their own, conflict, and
 * one of them begins again: of 64 clients at a row each would try until all others are done. So a
 * statement takes the lane of its partition (loop/lanes.h) first. Those that wait for a lane are
 * run as a group, one after the other on the fiber of the first, in one transaction: each sees what
 * those before it have written, and has an answer of its own.
 *
 * == What a member may do to its neighbours ==
 *
 * - A statement that fails in a group leaves it, and is run again in a transaction of its own, on
 *   its own fiber, which tells its client why. If it had written something, the group's attempt is
 *   dropped, and the others are run again without it.
 * - A client that leaves, or somebody who ends its operation, ends no other's (serve/wanted.h).
 * - If the commit fails, or nobody knows whether it took place, all of the group are told so. While
 *   a cluster has not answered it (kv/fate.h), no statement of the lane is run: one that has waited
 *   for as long as a commit may take is told that nothing was done. A conflict with another
 *   process, or with a write that has no condition, has the whole group run again.
 *
 * == Whose memory it is ==
 *
 * A member's fiber is parked while the leader runs its statement, maybe on another loop. But the
 * part of the budget that counts its connection's memory is that loop's. So in a group a statement
 * has the arena of the leader, and its answer goes into a short buffer, which its own fiber copies.
 * A statement that finds no room in these is run alone.
 *
 * Lanes are for speed: a statement whose partition is not known before it runs takes none.
 *
 * Threading: as said; a member belongs to its fiber but within lane_run().
 */
#ifndef FROND_DOOR_CQL_RUN_LANE_H
#define FROND_DOOR_CQL_RUN_LANE_H

#include "door/cql/conn/request.h"
#include "door/cql/run/context.h"
#include "loop/lanes.h"
#include "model/timed/timed.h"

/* The table of a group: its statements share the moment of its transaction. */
struct lane_table {
	struct timed timed;
	struct schema_table *table; /* NULL: none is open yet */
};

enum lane_outcome {
	LANE_WAITS, /* it was not run in a transaction that has ended */
	LANE_RAN,   /* in the attempt under way */
	LANE_DONE,  /* `status` says how it has ended */
	LANE_ALONE, /* it is to be run by its own fiber */
};

struct lane_member {
	struct lanes_job lane; /* first */
	struct cql_request *r;
	/*
	 * Runs the statement in a transaction that others share; the answer goes into `r->out`. It
	 * keeps nothing in the request's arena, and calls lane_share().
	 */
	enum status (*run)(struct lane_member *m, struct kv_tx *tx, struct lane_table *shared);
	/* Runs it in a transaction of its own, with `lanes`. */
	enum status (*alone)(struct lane_member *m);

	/* Private. */
	enum lane_outcome outcome;
	enum status status;
	struct kv_lanes *lanes; /* that `alone` has; NULL: none */
	struct buf answer;      /* of one that has run in a group */
};

/*
 * Runs a statement of a partition, whose hash this is, with those it meets; returns as `alone`
 * does. `r`, `run` and `alone` are set.
 */
MUST_USE enum status lane_run(struct lane_member *m, uint64_t hash);

/* Behind the last statement; the lanes may be owed. */
void lane_fini(struct kv_store *store, struct lanes *lanes);

/*
 * For `run`: the transaction of the table that the run has opened. The table is the group's from
 * now on if `shared->table` is it. STATUS_UNSUPPORTED: the group is about another table.
 */
MUST_USE enum status lane_share(struct lane_table *shared, struct run *run);

#endif

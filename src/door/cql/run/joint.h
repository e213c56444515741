/*
 * A transaction that several statements read in, one after the other on a fiber: SELECTs of one row
 * each that have come together on a connection (door/cql/flight.h).
 *
 * It begins when all of them have arrived, so each sees whatever was acknowledged before it was
 * sent: strict serializability is kept. They share the moment of the transaction, the table that is
 * open, and the iterator of the storage engine that goes from row to row. Everything else is a
 * statement's own: its rights, its steps, its answer, and how it fails. One that fails because of
 * the transaction, or for a reason that the store has to explain, is run again in a transaction of
 * its own.
 *
 * Threading: on that fiber.
 */
#ifndef FROND_DOOR_CQL_RUN_JOINT_H
#define FROND_DOOR_CQL_RUN_JOINT_H

#include "door/cql/run/context.h"
#include "model/timed/timed.h"

struct prepared;

/* All zero: it has not begun. */
struct joint {
	struct kv_tx *tx; /* NULL: none is open */
	size_t reads;     /* statements that were run in it */
	/* The statement that was run last, and its table; NULL: none. References. */
	struct prepared *prepared;
	struct catalog_db *db;
	/* The time of that table in this transaction; `timed.db` is NULL until it is known. */
	struct timed timed;
	struct buf rows; /* for those of the next answer (run.spare_rows) */
};

/*
 * True if the id is that of a prepared statement which may be run in such a transaction, and the
 * store answers at once, so that it gains by that.
 */
bool joint_takes(struct cql_door *door, struct str id);

/*
 * The transaction for the request's statement, which begins if none is open, or anew if the one
 * that is open has read JOINT_BYTES: it holds all that until it ends. NULL: the statement reads by
 * itself.
 */
struct kv_tx *joint_tx(struct joint *j, struct cql_request *r);

/*
 * Opens the table for a statement of this transaction: from the one before if that was the same
 * statement. Otherwise as run_open_compiled().
 */
MUST_USE enum status joint_open(struct joint *j, struct run *run, const struct cql_name *name,
				struct prepared *p);

/* The time of the run's table in this transaction, with the run's error: as timed_now(). */
MUST_USE enum status joint_timed(struct joint *j, const struct run *run, struct timed *ret);

/* The statement that was run last, with a reference, if it has this id; NULL: it is another. */
struct prepared *joint_prepared(struct joint *j, struct str id);

/* A statement has been run in it. */
void joint_ran(struct joint *j);

/* Ends the transaction; another one may begin. */
void joint_end(struct joint *j);

#endif

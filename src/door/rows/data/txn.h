/*
 * Transactions. A connection has one at most, which is one of the store's, from BEGIN to COMMIT or
 * ROLLBACK; a request outside of one has a transaction for itself, which is tried again while that
 * can help.
 *
 * What an operation works in is a struct unit: the transaction, and the tables that it has opened,
 * each with its moment.
 *
 * == Savepoints ==
 *
 * The store has none. While a savepoint is open, each row is read before it is written, and what it
 * was is noted in memory. ROLLBACK TO writes the noted rows back, the latest first, in the same
 * transaction: what was read since stays in its read conflicts. A row that comes back has its old
 * write times and expiry.
 *
 * A transaction in which a request has failed does nothing more, but for ROLLBACK and ROLLBACK TO a
 * savepoint. After a conflict only ROLLBACK is left.
 *
 * Threading: on the connection's fiber.
 */
#ifndef FROND_DOOR_ROWS_DATA_TXN_H
#define FROND_DOOR_ROWS_DATA_TXN_H

#include "door/rows/data/table.h"

struct unit_table {
	struct unit_table *next;
	struct table *table;
	struct timed timed; /* its moment, of this table, for the whole transaction */
	size_t number;      /* of the transaction's tables */
	int64_t added;      /* rows, that the count of the table is still to be told */
};

struct unit {
	struct rows_request *r; /* the one that is served now */
	struct kv_tx *tx;
	struct rows_txn *txn; /* NULL: a request outside of a transaction */
	struct arena *arena;  /* of the tables */
	struct unit_table *tables;
	size_t table_count;
};

/* Opens the table, or finds it open. Fails as rows_table_open(). */
MUST_USE enum status rows_unit_table_open(struct unit *u, const struct rows_table *wanted,
					  struct unit_table **ret);

/*
 * In a table whose rows are one pair each, for a write that does not fit into that pair: lets this
 * transaction say in the table's description that rows may have more pairs, and opens the table
 * again. Other transactions that have opened it, or any database, conflict when they commit.
 */
MUST_USE enum status rows_unit_leaves(struct unit *u, const struct rows_table *wanted,
				      struct unit_table *t);

/*
 * What is to be called before a row is written: within a savepoint it notes what the row is now.
 * Fails with 54000 where there is more to note than ROWS_UNDO_BYTES.
 */
MUST_USE enum status rows_unit_note(struct unit *u, struct unit_table *t,
				    const struct table_key *key);

/*
 * What is to be called once it is written, if by that `rows` rows have come (negative: have gone):
 * for the table's count, which rows_unit_settle() tells, and for the note, if there is one.
 */
void rows_unit_told(struct unit *u, struct unit_table *t, int rows);
/* Tells the counts of all tables: before another request reads them. */
MUST_USE enum status rows_unit_settle(struct unit *u);

/* What a request does with rows: `arg` is its own. It may be run again, with an empty answer. */
typedef enum status unit_body(struct unit *u, void *arg);

/* Runs it, in the client's transaction or in one of its own. `writes`: it may. */
MUST_USE enum status rows_unit_run(struct rows_request *r, unit_body *body, void *arg, bool writes);

/* ---- The client's transaction ---- */

/* The requests: each answers by itself. */
MUST_USE enum status rows_txn_begin(struct rows_request *r);
MUST_USE enum status rows_txn_commit(struct rows_request *r);
MUST_USE enum status rows_txn_rollback(struct rows_request *r);
MUST_USE enum status rows_txn_savepoint(struct rows_request *r);
MUST_USE enum status rows_txn_release(struct rows_request *r);
MUST_USE enum status rows_txn_rollback_to(struct rows_request *r);
MUST_USE enum status rows_txn_refresh(struct rows_request *r);

/* BEGIN has failed: clients that send requests behind it do not know that yet. */
void rows_txn_refused(struct rows_client *c);
/* Fails with 25P02 if the request belongs to a transaction that could not begin, up to its COMMIT
 * or ROLLBACK. */
MUST_USE enum status rows_txn_check_begun(struct rows_request *r);

/*
 * Runs `body`, which reads definitions of tables, or changes them if `changes` says so, in the
 * client's open transaction. After a change the unit opens its tables again. While a savepoint is
 * open a change fails with 0A000: rolling back to it could not bring definitions back.
 */
MUST_USE enum status rows_txn_define(struct rows_request *r, kv_body *body, void *arg,
				     bool changes);
/* Whether an open transaction has changed definitions. */
bool rows_txn_has_defined(const struct rows_client *c);

/* Fails with 25001 in a transaction: for what cannot be a part of one. */
MUST_USE enum status rows_txn_check_none(struct rows_request *r);

/* When an open transaction has had its time (clock_mono_ns()); 0: none is open. */
uint64_t rows_txn_until_ns(const struct rows_client *c);
/* Rolls it back if it has had its time, or if others need its memory. */
void rows_txn_expire(struct rows_client *c);
/*
 * The same for a struct net_patience of the client, while its fiber waits for the rest of a request
 * or until an answer is read: the connection itself goes on, so the result is UINT64_MAX.
 */
uint64_t rows_txn_look(void *client);
/* The connection ends: what was not committed is undone. */
void rows_txn_free(struct rows_client *c);

#endif

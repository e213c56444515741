/*
 * Rows that are locked: lock.c has how, docs/SQL.md what users see of it.
 *
 * Errors, memory and threads are as frond_pg.h says.
 */
#ifndef FROND_PG_FROND_LOCK_H
#define FROND_PG_FROND_LOCK_H

#include "frond_pg.h"

#include "storage/lockdefs.h"

extern int frond_row_locks;    /* that a transaction may have; 0: none is locked */
extern int frond_lock_timeout; /* ms, where lock_timeout says nothing */

/*
 * Locks a row for as long as the transaction, or the subtransaction, lasts. A row beyond
 * frond.row_locks stays unlocked and counts as locked. `key`: as the row has it. False: another
 * transaction has the row, and nothing has happened.
 */
bool frond_lock_take(const struct frond_table *t, const struct frows_value *key, LOCKMODE mode);
/* The same, and waits for the other transaction. Fails with 40001 if the row has changed since this
 * one has begun to read, or if transactions wait for each other; with 55P03 after the timeout. */
void frond_lock_wait(const struct frond_table *t, Oid user, const struct frows_value *key,
		     LOCKMODE mode);
/*
 * The same of a row that is read right behind it, with whose request the transaction moves on to
 * what is committed by then. True: it was waited for, and frond_lock_check() has to follow the
 * read. That fails as frond_lock_wait() does.
 */
bool frond_lock_ahead(const struct frond_table *t, Oid user, const struct frows_value *key,
		      LOCKMODE mode);
void frond_lock_check(const struct frond_table *t, Oid user, const struct frows_value *key);
/* The lock that a scan of this relation takes of keys that it knows before it reads; or NoLock. */
LOCKMODE frond_lock_beforehand(const EState *estate, Index rti);
/* A subtransaction of this level has aborted, or the transaction has ended; one has committed. */
void frond_locks_forget(int level);
void frond_locks_rise(int level);

/*
 * Lets one session of this PostgreSQL draw from a counter in frond at a time. False: there is no
 * memory for one more lock, and nothing is locked. An abort unlocks it, too.
 */
bool frond_lock_counter(const char *name);
void frond_unlock_counter(const char *name);

/* The row that has the key, as the transaction reads it, in PostgreSQL's form. False: there is
 * none, and the slot is as it was. */
bool frond_row_read(const struct frond_table *t, Oid user, Relation rel,
		    const struct frows_value *key, TupleTableSlot *ret);

/* The rows of a scan that a query locks. */
struct frond_marks;

/* Of a scan with these columns, among which the key's are. It lives as long as the query does.
 * NULL: its rows are not locked. */
struct frond_marks *frond_marks_new(EState *estate, Index rti, const struct frond_table *t,
				    Oid user, const int *attnums, int count);
/* Whether the rows are to be read beside the transaction. `m` may be NULL. */
bool frond_marks_are_beside(const struct frond_marks *m);
/* A row of the scan: the slot gets a ctid by which it can be locked. */
void frond_marks_give(struct frond_marks *m, const struct frows_value *values,
		      TupleTableSlot *slot);
/* What PostgreSQL calls to plan FOR UPDATE and its kin, and to lock a row. */
RowMarkType frond_mark_type(RangeTblEntry *rte, LockClauseStrength strength);
void frond_row_refetch(EState *estate, ExecRowMark *mark, Datum ctid, TupleTableSlot *slot,
		       bool *updated);

#endif

/*
 * Transactions of the store that clients leave open between their requests, of all doors: how many
 * there are in the process, when one is over, and what it holds of the memory of all.
 *
 * One is over when its time has passed, or when others need its memory and it was not used for
 * BUDGET_STALL_MS. A door looks now and then (open_txn_is_over()), ends it, and tells its client in
 * its protocol's words.
 *
 * Threading: whoever has the transaction; no function waits, but for what the store does in
 * open_txn_begin().
 */
#ifndef FROND_SERVE_OPEN_TXN_H
#define FROND_SERVE_OPEN_TXN_H

#include "base/budget.h"
#include "base/status.h"
#include "kv/kv.h"

enum {
	OPEN_TXN_MOST = 2000,          /* of all doors, in the process */
	OPEN_TXN_SHARED_MS = 5 * 1000, /* a cluster keeps no version for longer */
	/* What the store has of one that has done little: most of it is an arena, and a buffer. */
	OPEN_TXN_FLAT_BYTES = 28 * 1024,
};

/* Whose it is: a label of the metrics. */
enum open_txn_door {
	OPEN_TXN_MONGO,
	OPEN_TXN_ROWS,
	OPEN_TXN_DOORS,
};

/* All zero: it is not open. */
struct open_txn {
	bool open;
	enum open_txn_door door;
	struct kv_tx *tx;        /* NULL until open_txn_begin() */
	uint64_t until_ns;       /* when its time is over (clock_mono_ns()) */
	struct budget_part part; /* counts what it holds */
};

/* How long one may be open in that store, of the `seconds` that a setting says. */
uint64_t open_txn_life_ms(struct kv_store *store, uint64_t seconds);

/*
 * Opens one, which lasts `life_ms`. `of` is the part of the request that asks for it, which then
 * uses it. STATUS_LIMIT: there are OPEN_TXN_MOST. May be called with a lock.
 */
MUST_USE enum status open_txn_open(struct open_txn *o, enum open_txn_door door, uint64_t life_ms,
				   const struct budget_part *of);

/* The store's transaction begins, without a lock. Where that fails, the caller ends `o`. */
MUST_USE enum status open_txn_begin(struct open_txn *o, struct kv_store *store);

/* True of an open one that is to be ended. Any thread that nobody else writes to `o` beside. */
bool open_txn_is_over(const struct open_txn *o, uint64_t now_ns);

/* A request uses it, and does not any more. */
void open_txn_use(struct open_txn *o);
void open_txn_rest(struct open_txn *o);

/*
 * Counts what it holds now: `more` bytes beside what the store has. False: there is no room for
 * that, and the caller ends it or fails it.
 */
MUST_USE bool open_txn_count(struct open_txn *o, size_t more);

/*
 * Ends it, if it is open. Returns the store's transaction, which the caller frees, without a lock;
 * it may be NULL. What was counted is given back.
 */
MUST_USE struct kv_tx *open_txn_end(struct open_txn *o);
/* The same of one that is over: it is counted as expired. */
MUST_USE struct kv_tx *open_txn_expire(struct open_txn *o);

/* How many are open in the process. */
size_t open_txn_number(void);

#endif

/*
 * The faulty engine: another store, seen through injected faults. It is a library of its own, which
 * test programs link; the installed program does not have it. Once kv_faulty_register() has been
 * called, its stores are opened by kv_open() with the URL "faulty:SETTINGS:URL".
 *
 * SETTINGS are name=value pairs between commas, all optional:
 *
 *   seed=N        the random seed (1)
 *   rate=SHARE    of a transaction's attempts whose reads fail, and of the commits that fail (0.05)
 *   delay=SHARE   of the answers that come later, from another thread, in another order (0.2)
 *   watch=SHARE   of the watches that complete late, without a change, or with an error (0.2)
 *   shared=1      the store says that other processes use it, too, as a cluster does (0)
 *   exit=POINT@N  the process ends at the Nth passing of POINT, with no chance to tidy up (never);
 *                 POINT is read, before-commit or after-commit (which has been applied)
 *
 * With rate=0 and watch=0 no outcome differs from the inner store's.
 */
#ifndef FROND_KV_FAULTY_FAULTY_H
#define FROND_KV_FAULTY_FAULTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"

/* What a run with faults may or may not have reached. */
enum kv_faulty_event {
	KV_FAULTY_CONFLICT,
	KV_FAULTY_TOO_OLD_READ,
	KV_FAULTY_TOO_OLD_COMMIT,
	KV_FAULTY_UNKNOWN_APPLIED,
	KV_FAULTY_UNKNOWN_NOT_APPLIED,
	KV_FAULTY_UNKNOWN_THEN_RETRY, /* after an unknown result, another retryable failure */
	KV_FAULTY_UNKNOWN_TWICE,      /* … which was an unknown result, too */
	KV_FAULTY_RETRY_LIMIT,        /* a transaction failed KV_RETRY_LIMIT times */
	KV_FAULTY_READ_DELAYED,
	KV_FAULTY_COMMIT_DELAYED,
	KV_FAULTY_REORDERED, /* an answer after one that was asked for later */
	KV_FAULTY_WATCH_LATE,
	KV_FAULTY_WATCH_SPURIOUS,
	KV_FAULTY_WATCH_LOST, /* completed with STATUS_UNAVAILABLE */
	KV_FAULTY_EVENTS
};

enum {
	KV_FAULTY_EXIT_CODE = 86, /* the process's, at the point that exit= names */
};

struct kv_store;

/* Makes kv_open() know the scheme "faulty". Call it before any other thread uses kv/. */
void kv_faulty_register(void);

/* The store behind a faulty one, where nothing fails; `store` itself if it is of another kind. */
struct kv_store *kv_faulty_inner(struct kv_store *store);

/*
 * Transactions of a faulty store that begin from now on, or start over, are too old from the read
 * on that comes after so many; 0: not by that.
 */
void kv_faulty_wear_out(struct kv_store *store, uint32_t reads);

/*
 * Calls `step` between the reads and the commit of a transaction of the faulty store: of the `nth`
 * from now on that commits writes; 1 is the next one. `step` is called once, on the thread that
 * commits, and may use the store. So the commit fails if the transaction has read what `step`
 * changes. NULL takes back a step. Returns true if the step before has not been called.
 */
typedef void kv_faulty_step(void *arg);
bool kv_faulty_interrupt(struct kv_store *store, uint32_t nth, kv_faulty_step *step, void *arg);

/*
 * Counts what transactions ask of a store, and has one of the calls fail, or one of the values that
 * they read come back otherwise than it is stored. For one thread, with delay=0.
 */
struct kv_faulty_tap {
	uint32_t fail_call; /* 1 is the first one; 0: none fails */
	enum status fail_with;
	uint32_t spoil_value; /* 1 is the first value that is read; 0: none is spoiled */
	size_t cut;           /* it ends after so many bytes; SIZE_MAX: nowhere */
	size_t flip;          /* this byte of it is inverted; SIZE_MAX: none is */

	/* Counted. */
	uint32_t calls;  /* reads, writes, conflict ranges, commits */
	uint32_t values; /* that were read */
	size_t length;   /* of the value that was spoiled */
	/* Reads that conflict with a change, read conflict ranges, write conflict ranges. */
	uint32_t reads;
	uint32_t read_ranges;
	uint32_t write_ranges;
};

/* From now on all calls go through the tap, which is the caller's; NULL: through none. */
void kv_faulty_tap(struct kv_store *store, struct kv_faulty_tap *tap);

/*
 * How many transactions fibers have begun in this process, in all its faulty stores. Requests run
 * on fibers; what a server does beside them runs on threads, and is not counted.
 */
uint64_t kv_faulty_transactions(void);

/* How often these have waited for their reads (struct kv_tx_stats), of those that have ended. */
uint64_t kv_faulty_round_trips(void);

/* How often it happened in this process, in all its faulty stores. From any thread. */
uint64_t kv_faulty_count(enum kv_faulty_event event);

/* All of them, as "conflict=3 too_old_read=0 …". */
void kv_faulty_report(struct buf *out);

#endif

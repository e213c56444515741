/*
 * The faulty engine: another store, whose answers are made late, swapped, or turned into the
 * failures that the contract allows.
 *
 *   store.c    opening, and the settings
 *   tx.c       transactions: each call is handed on, some of their outcomes are changed
 *   tap.c      what is asked is counted; the Nth call fails, the Nth value comes back spoiled
 *   delay.c    the thread that completes what is late
 *   dice.c     what happens when, and the count of it
 */
#ifndef FROND_KV_FAULTY_FAULTY_INT_H
#define FROND_KV_FAULTY_FAULTY_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/rand.h"
#include "kv/engine.h"
#include "kv/faulty/faulty.h"

/* ---- Dice ---- */

enum faulty_exit {
	FAULTY_EXIT_NEVER,
	FAULTY_EXIT_READ,
	FAULTY_EXIT_BEFORE_COMMIT,
	FAULTY_EXIT_AFTER_COMMIT,
};

struct faulty_settings {
	uint64_t seed;
	double rate;
	double delay;
	double watch;
	enum faulty_exit exit;
	uint64_t exit_on; /* which passing of the point; 1 is the first */
	uint64_t shared;  /* not 0: kv_is_shared() is true */
};

struct faulty_dice {
	pthread_mutex_t lock;
	struct rand_seq rand;
	struct faulty_settings settings;
	_Atomic uint64_t passed; /* of the exit's point */
};

/* What becomes of one commit. */
enum faulty_commit {
	FAULTY_COMMIT_WELL,
	FAULTY_COMMIT_CONFLICT,
	FAULTY_COMMIT_TOO_OLD,
	FAULTY_COMMIT_UNKNOWN_APPLIED,
	FAULTY_COMMIT_UNKNOWN_NOT_APPLIED,
};

/* What becomes of one watch. */
enum faulty_watch {
	FAULTY_WATCH_WELL,
	FAULTY_WATCH_LATE,
	FAULTY_WATCH_SPURIOUS,
	FAULTY_WATCH_LOST,
};

void faulty_dice_init(struct faulty_dice *d, const struct faulty_settings *settings);
void faulty_dice_fini(struct faulty_dice *d);

/* Which read of a new attempt fails; 0: none does. */
uint32_t faulty_dice_read(struct faulty_dice *d, bool after_unknown);
enum faulty_commit faulty_dice_commit(struct faulty_dice *d, bool after_unknown);
enum faulty_watch faulty_dice_watch(struct faulty_dice *d);

/* Nanoseconds to hold an answer back; 0: not at all. */
uint64_t faulty_dice_delay(struct faulty_dice *d);
/* The same for a disturbed watch; never 0. */
uint64_t faulty_dice_watch_delay(struct faulty_dice *d);

/* Ends the process if the settings say so. */
void faulty_dice_pass(struct faulty_dice *d, enum faulty_exit point);

void faulty_count(enum kv_faulty_event event);

/* ---- Stores, transactions, futures ---- */

struct faulty_delayer;

struct faulty_store {
	struct kv_store base;
	struct kv_store *inner;
	struct faulty_dice dice;
	struct faulty_delayer *delayer;
	_Atomic uint32_t wear;          /* reads that a transaction lives for; 0: any number */
	pthread_mutex_t interrupt_lock; /* of the three below */
	kv_faulty_step *interrupt;      /* NULL: no commit is interrupted */
	void *interrupt_arg;
	uint32_t interrupt_left;   /* commits with writes up to the one that is, which counts */
	struct kv_faulty_tap *tap; /* NULL: none. Of the one thread that uses the store then */
};

/*
 * An answer on its way: that of `inner`, if there is one; but if `verdict` is a failure, then that.
 * While the future is linked, the delayer's lock guards what the delayer's thread may touch.
 */
struct faulty_future {
	struct kv_future base;
	struct kv_future *inner; /* owned but for a commit's; NULL: nothing to wait for */
	struct faulty_tx *tx;    /* NULL for a watch whose transaction has ended */
	struct faulty_delayer *delayer;
	struct faulty_future *next; /* of the transaction's reads */
	struct faulty_future *prev;
	enum status verdict;
	enum faulty_watch watch;
	uint64_t delay_ns; /* from the inner answer; of a disturbed watch from its commit */
	uint64_t due_ns;   /* 0: that moment is still to come */

	/* Of a read through a tap: copies of what it has read, each in memory of its own. */
	struct kv_pair *copies;
	size_t copies_count;

	uint64_t number; /* in the order in which they were asked for */
	bool linked;     /* the delayer has it */
	struct faulty_future *later;
	struct faulty_future *earlier;
	bool awaited;          /* the delayer is waiting for the inner future, without its lock */
	struct event *removed; /* set once it no longer does and has let go of this one */
};

struct faulty_tx {
	struct kv_tx base;
	struct faulty_store *store;
	struct kv_tx *inner;
	atomic_bool cancelled;
	bool used;  /* a commit has begun */
	bool wrote; /* something that a commit has to say something about */
	bool after_unknown;
	bool counts;         /* begun on a fiber (kv_faulty_transactions()) */
	uint32_t reads_left; /* until the one that fails; 0: none will */
	struct faulty_future *reads;
	uint64_t newest_answered;    /* the number of; under the delayer's lock */
	struct faulty_future commit; /* valid if used */
};

/* ---- Taps (tap.c) ---- */

/* Counts a call. Returns the failure that the tap has for it. */
enum status faulty_tap_call(struct faulty_tx *tx);
/* The same of a read, which conflicts with changes in that mode. */
enum status faulty_tap_read(struct faulty_tx *tx, enum kv_read mode);
/* Copies what the future, which is ready, has read, and spoils it if the tap says so. */
void faulty_tap_answer(struct faulty_tx *tx, struct faulty_future *f);
void faulty_tap_free_copies(struct faulty_future *f);

extern const struct kv_engine kv_engine_faulty;

enum status faulty_open(struct str address, const struct kv_options *options, struct kv_store **ret,
			struct err *err);
void faulty_close(struct kv_store *base);
struct kv_store_stats faulty_store_stats(struct kv_store *base);
enum status faulty_estimate_bytes(struct kv_store *base, struct str begin, struct str end,
				  uint64_t *ret);
enum status faulty_compact(struct kv_store *base, struct err *err);
/* The inner store's, without faults. */
enum status faulty_backup_create(struct kv_store *base, const char *dir, struct kv_backup *ret,
				 struct err *err);
enum status faulty_backup_restore(const char *dir, uint32_t id, struct str address,
				  const struct kv_restore *how, struct kv_backup *ret,
				  struct err *err);

/* ---- The delayer: one thread and the answers that it will give ---- */

/* NULL if there is no memory, or no thread to be had. */
struct faulty_delayer *faulty_delayer_start(struct faulty_dice *dice);

/* Ends the thread; watches that are left are cancelled. Drops the store's reference. */
void faulty_delayer_stop(struct faulty_delayer *d);

/* A watch keeps the delayer's memory after its store is closed. */
void faulty_delayer_ref(struct faulty_delayer *d);
void faulty_delayer_unref(struct faulty_delayer *d);

/* Completes `f` now if nothing is missing, otherwise as soon as nothing is. */
void faulty_delayer_add(struct faulty_delayer *d, struct faulty_future *f);

/* Lets go of `f`; its inner future is not looked at afterwards. */
void faulty_delayer_remove(struct faulty_delayer *d, struct faulty_future *f);

/* A transaction has been cancelled: what is held back of its reads is answered at once. */
void faulty_delayer_hurry(struct faulty_delayer *d);

/* The transaction ends or starts over: its watches are on their own. */
void faulty_delayer_forget(struct faulty_delayer *d, const struct faulty_tx *tx);

#endif

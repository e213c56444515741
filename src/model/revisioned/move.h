/*
 * Relocating a database from one store to another (seed 1): every key of it as it is — revisions,
 * conflicts, tombstones, local documents, attachments, settings, counters, Sequences —, below a
 * number of its own there, and with a higher Incarnation, so that a client's `since` goes on.
 *
 * It takes as many transactions as it takes, and can be ended at any moment: doing the same again
 * goes on with it. What has been done is in a record at each of the stores, and the source's
 * decides whose the database is. README.md has the states as a table.
 *
 * From the first step to the last the database can be read and not written, for all processes at
 * once (rev_db_check_writable()); never are there two that can be written.
 *
 * Threading: any thread that may wait.
 */
#ifndef FROND_MODEL_MOVE_H
#define FROND_MODEL_MOVE_H

#include "model/revisioned/revisioned.h"
#include "model/revisioned/verify.h"

enum {
	REV_MOVE_ID_BYTES = 16,
	REV_MOVE_URL_BYTES = 4096, /* of the other store, for people: longer ones are cut */
};

/* Stored by their names. */
enum rev_move_state {
	REV_MOVE_NONE, /* no record */

	/* At the source. */
	REV_MOVE_MOVING,      /* fenced; can be undone */
	REV_MOVE_HANDED_OVER, /* fenced; the target's copy is whole, and is the database now */

	/* At the target. */
	REV_MOVE_RESERVED, /* the name and a number */
	REV_MOVE_COPYING,  /* up to the cursor */
	REV_MOVE_COPIED,   /* whole, compared and checked; it has no name yet */
	REV_MOVE_LIVE,     /* it has: only the source is still to be tidied up */
	REV_MOVE_STATES
};

/* The state's name as it is stored; static. */
const char *rev_move_state_name(enum rev_move_state state);

struct rev_move_sum {
	uint64_t documents; /* with a winner, deleted or not */
	uint64_t keys;
	uint64_t bytes;
	uint64_t fingerprint; /* of all pairs; a sum, so that their order does not matter */
};

/* A record. */
struct rev_move {
	struct str name;
	enum rev_move_state state;
	uint8_t id[REV_MOVE_ID_BYTES]; /* the same at both stores */
	uint64_t begun_ms;             /* since 1970 */
	struct str other;              /* the other store's URL */

	bool keep; /* at the source: what is left there is to be kept, for reading */

	/* At the target. */
	uint64_t number;         /* that the database has there */
	struct str cursor;       /* the last key that was copied, without the database's number */
	struct rev_move_sum sum; /* of what was copied */
};

/* All records of a store, by name. In the arena. */
MUST_USE enum status rev_moves_read(struct kv_tx *tx, struct arena *arena, struct rev_move **ret,
				    size_t *ret_count);

/* What is being done. */
enum rev_move_phase {
	REV_MOVE_PHASE_BEGIN,
	REV_MOVE_PHASE_COPY,
	REV_MOVE_PHASE_COMPARE, /* the copy is read again */
	REV_MOVE_PHASE_CHECK,   /* everything that has to hold in it (verify.h) */
	REV_MOVE_PHASE_END,
};

struct rev_move_progress {
	enum rev_move_phase phase;
	enum rev_move_state source;
	enum rev_move_state target;
	struct rev_move_sum sum; /* of this phase */
	uint64_t total_bytes;    /* of this phase, estimated; 0 if nobody knows */
};

struct rev_move_options {
	struct kv_store *from;
	struct kv_store *to;
	const char *from_url; /* the same text each time, for the records */
	const char *to_url;
	struct str name;
	bool keep; /* leave the database where it was, for reading only */
	/*
	 * Or NULL. Called when something has been done, and is on disk. Anything but STATUS_OK ends
	 * it there, with that status.
	 */
	enum status (*progress)(const struct rev_move_progress *progress, void *arg);
	/* Or NULL: of what is wrong in the copy (verify.h); the same `arg`. */
	void (*found)(const struct rev_finding *finding, void *arg);
	void *arg;
};

/*
 * Moves the database, or goes on with that. `ret`: of all that was copied, also before.
 *
 * Explained in `err`: STATUS_NOT_FOUND, no such database; STATUS_EXISTS, the target has one of this
 * name; STATUS_LOCKED, another move of this name is under way at one of the stores, or another
 * process goes on with this one; STATUS_FORBIDDEN for what was left at the source of an earlier
 * move; STATUS_LIMIT when its Incarnation cannot be raised any more; STATUS_KEY_TOO_LARGE when a
 * key would be too long there; STATUS_CORRUPT when the copy is not what it should be; what either
 * store answers.
 */
MUST_USE enum status rev_move(const struct rev_move_options *options, struct rev_move_sum *ret,
			      struct err *err);

/*
 * Undoes a move that has not been handed over: the source can be written again, and the target
 * forgets what it has. STATUS_FORBIDDEN if it is too late for that; STATUS_NOT_FOUND if nothing is
 * under way.
 */
MUST_USE enum status rev_move_rollback(const struct rev_move_options *options, struct err *err);

#endif

/*
 * Moves a database from one store to another: all its keys without change — revisions, conflicts,
 * tombstones, local documents, attachments, settings, counters, Sequences —, below a new number
 * there, and with a higher Incarnation, so that a client can go on from the `since` it has.
 *
 * A move takes many transactions and can be stopped at any moment; the same call continues it
 * later. A record at each of the stores says what has been done, and the record at the source
 * decides which store owns the database. README.md has the states as a table.
 *
 * From the first step to the last every process can read the database and none can write to it
 * (catalog_db_check_writable()). There are never two copies that can be written to.
 *
 * Threading: any thread that may wait.
 */
#ifndef FROND_CATALOG_MOVE_H
#define FROND_CATALOG_MOVE_H

#include "catalog/catalog.h"
#include "catalog/verify.h"

enum {
	CATALOG_MOVE_ID_BYTES = 16,
	/* the URL of the other store, which people read; a longer one is cut */
	CATALOG_MOVE_URL_BYTES = 4096,
};

/* Stored by their names. */
enum catalog_move_state {
	CATALOG_MOVE_NONE, /* no record */

	/* At the source. */
	CATALOG_MOVE_MOVING, /* fenced; can be undone */
	/* fenced; the copy at the target is complete and is the database now */
	CATALOG_MOVE_HANDED_OVER,

	/* At the target. */
	CATALOG_MOVE_RESERVED, /* the name and a number are reserved */
	CATALOG_MOVE_COPYING,  /* the keys up to the cursor are copied */
	CATALOG_MOVE_COPIED,   /* the copy is complete, compared and checked, but has no name yet */
	/* the copy has its name; only the source is still to be cleaned up */
	CATALOG_MOVE_LIVE,
	CATALOG_MOVE_STATES
};

/* Returns the name of the state as it is stored. The text is static. */
const char *catalog_move_state_name(enum catalog_move_state state);

struct catalog_move_sum {
	uint64_t documents; /* documents with a winner, deleted or not */
	uint64_t keys;
	uint64_t bytes;
	uint64_t fingerprint; /* a sum over all pairs, so that their order does not matter */
};

/* The record of a move at one store. */
struct catalog_move {
	enum catalog_space space;
	struct str name;
	uint64_t kind; /* the number of the database's kind */
	enum catalog_move_state state;
	uint8_t id[CATALOG_MOVE_ID_BYTES]; /* the same in both records of a move */
	uint64_t begun_ms;                 /* since 1970 */
	struct str other;                  /* the other store's URL */

	bool keep; /* at the source: keep the database there, for reading only */

	/* At the target. */
	uint64_t number;             /* the number of the copy */
	struct str cursor;           /* the last copied key, without the number of the database */
	struct catalog_move_sum sum; /* the sums over what was copied */
};

/* Reads all records of a store, in the order of names, into the arena. */
MUST_USE enum status catalog_moves_read(struct kv_tx *tx, struct arena *arena,
					struct catalog_move **ret, size_t *ret_count,
					struct err *err);

/* What a move is doing. */
enum catalog_move_phase {
	CATALOG_MOVE_PHASE_BEGIN,
	CATALOG_MOVE_PHASE_COPY,
	CATALOG_MOVE_PHASE_COMPARE, /* the copy is read again and compared */
	CATALOG_MOVE_PHASE_CHECK,   /* the rules for its contents are checked (verify.h) */
	CATALOG_MOVE_PHASE_END,
};

struct catalog_move_progress {
	enum catalog_move_phase phase;
	enum catalog_move_state source;
	enum catalog_move_state target;
	struct catalog_move_sum sum; /* the sums of this phase */
	uint64_t total_bytes;        /* an estimate for this phase; 0 if unknown */
};

struct catalog_move_options {
	struct kv_store *from;
	struct kv_store *to;
	const char *from_url; /* used in the records, so it must be the same text in each call */
	const char *to_url;
	enum catalog_space space;
	struct str name;
	bool keep; /* keep the database at the source, for reading only */
	/*
	 * Called after each part of the work, when that part is on disk; may be NULL. If it returns
	 * anything but STATUS_OK, the move stops there and returns that status.
	 */
	enum status (*progress)(const struct catalog_move_progress *progress, void *arg);
	/* Called with `arg` for each thing that is wrong in the copy (verify.h); may be NULL. */
	void (*found)(const struct catalog_finding *finding, void *arg);
	void *arg;
};

/*
 * Moves the database, or continues a move. `*ret` gets the sums over all that was copied, by this
 * call and earlier ones.
 *
 * The errors, explained in `err`: STATUS_NOT_FOUND if there is no such database; STATUS_EXISTS if
 * the target has a database of this name; STATUS_LOCKED if another move of this name is under way
 * at one of the stores, or another process continues this one; STATUS_FORBIDDEN if the database is
 * what an earlier move has kept at the source; STATUS_LIMIT if its Incarnation cannot grow any
 * more; STATUS_KEY_TOO_LARGE if a key would be too long at the target; STATUS_CORRUPT if the copy
 * differs from what was copied or breaks a rule; and the errors of either store.
 */
MUST_USE enum status catalog_move(const struct catalog_move_options *options,
				  struct catalog_move_sum *ret, struct err *err);

/*
 * Undoes a move that has not been handed over: the source can be written to again, and the target
 * discards the copy. Returns STATUS_FORBIDDEN if the move has been handed over, STATUS_NOT_FOUND if
 * no move is under way.
 */
MUST_USE enum status catalog_move_rollback(const struct catalog_move_options *options,
					   struct err *err);

#endif

/* What the files of moving share. */
#ifndef FROND_CATALOG_MOVE_INT_H
#define FROND_CATALOG_MOVE_INT_H

#include "catalog/move.h"
#include "catalog/catalog_int.h"

enum {
	CATALOG_MOVE_PAGE_BYTES = 1024 * 1024, /* bytes that one transaction copies */
	CATALOG_MOVE_ARENA_BYTES = 8 * 1024 * 1024,
	CATALOG_MOVE_TOTAL_PAGES = 16, /* the total is estimated again after this many pages */
};

struct mover {
	const struct catalog_move_options *o;
	struct err *err;
	struct arena *arena;               /* memory for one reading of both records */
	struct arena *page;                /* memory for one page */
	uint8_t id[CATALOG_MOVE_ID_BYTES]; /* the id of a reservation that this run has made */
	bool reserved;
	struct catalog_move source; /* the two records as they were last read; in the arena */
	struct catalog_move target;
	struct catalog_db db; /* at the source; number 0: there is no such database */
	uint8_t incarnation;  /* the least Incarnation of the copy */
	struct catalog_move_sum sum;
};

/* ---- Records (move_record.c) ---- */

/* Reads the record of that name; `ret->state` is CATALOG_MOVE_NONE if there is no record. */
MUST_USE enum status catalog_move_get(struct kv_tx *tx, enum catalog_space space, struct str name,
				      struct arena *arena, struct catalog_move *ret,
				      struct err *err);
MUST_USE enum status catalog_move_set(struct kv_tx *tx, const struct catalog_move *move);
MUST_USE enum status catalog_move_clear(struct kv_tx *tx, enum catalog_space space,
					struct str name);

/* Encodes a record as a value. catalog_move_parse() decodes it. */
void catalog_move_put(const struct catalog_move *move, struct buf *value);
/* Returns STATUS_CORRUPT for a malformed value, and STATUS_NEWER, explained, for a newer format. */
MUST_USE enum status catalog_move_parse(struct str value, struct arena *arena,
					struct catalog_move *ret, struct err *err);

/*
 * Returns STATUS_LOCKED unless the record still has the state and the move of `move`. A transaction
 * calls this before it takes the next step. `*ret` gets the record.
 */
MUST_USE enum status catalog_move_expect(struct kv_tx *tx, const struct catalog_move *move,
					 struct arena *arena, struct catalog_move *ret,
					 struct err *err);

/* The same where the record is not needed: nothing of it stays in the mover's arena. */
MUST_USE enum status catalog_mover_expect(struct mover *m, struct kv_tx *tx,
					  const struct catalog_move *move);

/* ---- The copy (move_copy.c) ---- */

/* Reports progress to the caller of the move. Returns the status of its function. */
MUST_USE enum status catalog_move_tell(struct mover *m, enum catalog_move_phase phase,
				       const struct catalog_move_sum *sum, uint64_t total_bytes);

/* Copies the keys behind the target's cursor, then compares and checks the whole copy. */
MUST_USE enum status catalog_move_copy(struct mover *m);

#endif

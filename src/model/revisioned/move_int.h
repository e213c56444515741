/* What the files of moving share. */
#ifndef FROND_MODEL_MOVE_INT_H
#define FROND_MODEL_MOVE_INT_H

#include "model/revisioned/move.h"
#include "model/revisioned/revisioned_int.h"

enum {
	REV_MOVE_PAGE_BYTES = 1024 * 1024, /* copied in one transaction */
	REV_MOVE_ARENA_BYTES = 8 * 1024 * 1024,
	REV_MOVE_TOTAL_PAGES = 16, /* after so many of them how much there is, is asked again */
};

struct mover {
	const struct rev_move_options *o;
	struct err *err;
	struct arena *arena;           /* of one look at both stores */
	struct arena *page;            /* of one page */
	uint8_t id[REV_MOVE_ID_BYTES]; /* of a reservation made by this run */
	bool reserved;
	struct rev_move source; /* as they were when last looked at; in the arena */
	struct rev_move target;
	struct rev_db db;    /* at the source; number 0: there is none */
	uint8_t incarnation; /* that the copy has at least */
	struct rev_move_sum sum;
};

/* ---- Records (move_record.c) ---- */

/* The record of that name; `ret->state` NONE without one. */
MUST_USE enum status rev_move_get(struct kv_tx *tx, struct str name, struct arena *arena,
				  struct rev_move *ret);
MUST_USE enum status rev_move_set(struct kv_tx *tx, const struct rev_move *move);
MUST_USE enum status rev_move_clear(struct kv_tx *tx, struct str name);

/* A record's value. STATUS_CORRUPT. */
MUST_USE enum status rev_move_parse(struct str value, struct arena *arena, struct rev_move *ret);

/*
 * The record is still in that state and of that move: STATUS_LOCKED. For transactions that go on
 * from there.
 */
MUST_USE enum status rev_move_expect(struct kv_tx *tx, const struct rev_move *move,
				     struct arena *arena, struct rev_move *ret, struct err *err);

/* ---- The copy (move_copy.c) ---- */

/* Something has been done. */
MUST_USE enum status rev_move_tell(struct mover *m, enum rev_move_phase phase,
				   const struct rev_move_sum *sum, uint64_t total_bytes);

/* Copies what is behind the target's cursor, then compares and checks all of it. */
MUST_USE enum status rev_move_copy(struct mover *m);

#endif

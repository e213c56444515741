/*
 * Cells: what is at a row's key or at a path, with its times. Part of timed_int.h.
 *
 * Threading: that of the transaction.
 */
#ifndef FROND_MODEL_TIMED_CELL_H
#define FROND_MODEL_TIMED_CELL_H

#include "model/timed/timed.h"

enum {
	/* In place of a time. */
	TIMED_CELL_NEVER = 0,
};

/*
 * What is at a row's key or at a path: (format, type, write time, expiry[, scalar]). Where a value
 * lies in pieces, which is so in tables only (tables/pieces.c), its length and its kind stand in
 * place of the scalar, in a format of their own. A client's stamp, again of tables only, is behind
 * the expiry, in two more formats. One more is of a table's rows with columns packed into their own
 * cell (tables/packed.h).
 */
struct timed_cell {
	enum timed_type type;
	uint64_t write_us;
	bool by_default;          /* it expires as the database says */
	uint64_t at_ms;           /* a time of its own; else TIMED_CELL_NEVER */
	bool has_stamp;           /* a client has said what orders it: tables/stamps.h */
	int64_t stamp;            /* in microseconds, if it has */
	struct str value;         /* the scalar, encoded; empty: it has none, or lies in pieces */
	struct str packed;        /* of a row's own cell: columns with its times, or empty */
	uint64_t piece_bytes;     /* the length of a value in pieces; 0: it lies in the cell */
	enum doc_kind piece_kind; /* DOC_TEXT or DOC_BYTES, of a value in pieces */
};

/* What a piece of a value begins with, and no cell does. */
#define TIMED_PIECE_MARK '\0'

static inline bool
timed_is_piece(struct str value)
{
	return value.len && value.ptr[0] == TIMED_PIECE_MARK;
}

/* What orders a cell among writers with stamps: its own, or else when it was written. */
static inline int64_t
timed_cell_stamp(const struct timed_cell *cell)
{
	return cell->has_stamp ? cell->stamp : (int64_t)cell->write_us;
}

void timed_cell_put(const struct timed_cell *cell, struct buf *value);
/* STATUS_NEWER, explained; STATUS_CORRUPT. */
MUST_USE enum status timed_cell_parse(struct str value, struct timed_cell *ret, struct err *err);

/* The scalar of a cell that has one; its text is in the arena. */
MUST_USE enum status timed_cell_scalar(const struct timed_cell *cell, struct arena *arena,
				       struct doc_scalar *ret);
/*
 * The same, for a caller that keeps the cell's record: a text that lies there as it is is borrowed
 * from it. `*ret` is written in any case.
 */
MUST_USE enum status timed_cell_scalar_borrow(const struct timed_cell *cell, struct arena *arena,
					      struct doc_scalar *ret);
/* Copies what a scalar has borrowed into the arena. STATUS_LIMIT. */
MUST_USE enum status timed_scalar_own(struct arena *arena, struct doc_scalar *s);

/* When it expires, by what it says and the database says now; 0: never. */
uint64_t timed_cell_expires_ms(const struct catalog_db *db, const struct timed_cell *cell);

bool timed_has_expired(const struct timed *t, const struct timed_cell *cell);

/* A cell without a value as it is written now, by what the transaction says. */
void timed_cell_init(const struct timed *t, enum timed_type type, struct timed_expiry expiry,
		     struct timed_cell *ret);
/* Writes a cell, and its entry of EXPIRY, with the times that it has. */
MUST_USE enum status timed_cell_store(struct timed *t, struct str key,
				      const struct timed_cell *cell);
/*
 * Writes a cell, and the entry by which the sweep finds it when it has expired. `value` NULL: it
 * has none. timed_write_begin() has been called. STATUS_VALUE_TOO_LARGE, explained.
 */
MUST_USE enum status timed_cell_write(struct timed *t, struct str key, enum timed_type type,
				      const struct doc_scalar *value, struct timed_expiry expiry);
/* The same of a leaf whose value lies in pieces, which the caller writes. */
MUST_USE enum status timed_cell_write_pieces(struct timed *t, struct str key,
					     const struct doc_scalar *value,
					     struct timed_expiry expiry);

#endif

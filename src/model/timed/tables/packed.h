/*
 * Packed rows. In a table whose description has the flag `packed`, the row's own cell may have what
 * one INSERT has written beside it: single columns with the cell's write time and expiry. So such a
 * row is one pair. Cells of columns, the leaves, lie over it:
 *
 *     a leaf, expired or not, hides what is packed of its column;
 *     whatever takes a leaf away takes the column out of what is packed, too, so that nothing
 *     older comes back;
 *     whoever writes the row's own cell anew takes the leaves of the columns that it packs away,
 *     and keeps what else was packed, as leaves.
 *
 * Writing a column without a null therefore reads nothing, as without packing; INSERT reads the
 * row, and a null the row's own cell, with a conflict.
 *
 *     packed = column, length, scalar, column, …   by the ids of columns
 *
 * Collections, static columns, counters, values in pieces, and values with another expiry than the
 * row's are leaves, and so are those for which TABLE_PACKED_BYTES have no room. A packed cell has
 * no stamp: writers with stamps unpack a row first.
 */
#ifndef FROND_MODEL_TIMED_TABLES_PACKED_H
#define FROND_MODEL_TIMED_TABLES_PACKED_H

#include "model/timed/tables/stamps.h"

/* ---- What is packed (packed.c) ---- */

struct table_packed {
	struct str rest;
	uint64_t last; /* the column before */
};

static inline struct table_packed
table_packed_of(const struct timed_cell *own)
{
	return (struct table_packed){ .rest = own->packed };
}

/* The next column and its scalar, encoded and borrowed. STATUS_NOT_FOUND: none; STATUS_CORRUPT. */
MUST_USE enum status table_packed_next(struct table_packed *p, uint64_t *ret_column,
				       struct str *ret_value);
/* Columns come by their ids. */
void table_packed_put(uint64_t column, struct str value, struct buf *packed);

/* The scalar; its text is in the arena. STATUS_CORRUPT. */
MUST_USE enum status table_packed_scalar(struct str value, struct arena *arena,
					 struct doc_scalar *ret);

/* True of a column that may be packed, if its value is not too long. */
static inline bool
table_column_packs(const struct table_column *column)
{
	return column->kind == TABLE_REGULAR && column->storage == TABLE_SINGLE;
}

/* ---- Whole rows (whole.c) ---- */

/*
 * To be called before a leaf is written. In a table whose rows were whole they may have leaves from
 * now on; then returns STATUS_TX_CONFLICT, as table_schema_note().
 */
MUST_USE enum status table_leaf_allow(struct timed *t);

/* ---- Changing what is packed (repack.c) ---- */

/*
 * Writes a row's own cell, which was read as `value`, again without the columns of which `drops`
 * says so. Does nothing if there are none.
 */
MUST_USE enum status table_packed_filter(struct timed *t, struct str row, struct str value,
					 bool (*drops)(const void *arg, uint64_t column),
					 const void *arg);
/*
 * Takes the column of a leaf that goes, by its key, out of what is packed in its row, whose key is
 * the first `row_len` bytes. Does nothing in a table without packed rows.
 */
MUST_USE enum status table_packed_forget(struct timed *t, struct str leaf, size_t row_len);
/*
 * Makes leaves of what is packed in a row; those that are there stay. `asked`: the row's own cell,
 * with a conflict; NULL: not yet.
 */
MUST_USE enum status table_packed_unpack(struct timed *t, struct str row, struct kv_future *asked);

/* ---- Writing rows of such a table (packing.c) ---- */

/*
 * What an INSERT has asked for of its row: its own cell, and the leaves beside it. They are asked
 * for as keys where these are found in less time than a range.
 */
struct table_look {
	struct str row;           /* its key, if it was asked for before the write */
	struct table_known known; /* of some columns; has values once all has come */
	bool by_keys;
	struct kv_future *asked[KV_MANY]; /* for what is known */
	/* In place of keys: */
	struct kv_scan scan;
	size_t scanned;  /* the first column that the scan does not reach */
	struct buf copy; /* of what it has met of the columns that are known */
};

struct table_packing {
	struct table_writing *w;
	const struct table_write *write;
	bool needed;              /* the write is none of those that read nothing */
	struct table_look *look;  /* of an INSERT that reads */
	struct table_look asks;   /* it, unless it was asked for before (table_look_ask()) */
	struct table_slot *slots; /* of an INSERT, by the places of columns in the schema */
	struct kv_future *own;    /* the row's own cell, of others; or NULL */
};

/* Asks for what the write has to know; `w->row` is there. The caller ends it in any case. */
MUST_USE enum status table_packing_ask(struct table_packing *p, struct table_writing *w,
				       const struct table_write *write);
/* Waits for that. `*ret`: pairs of the row that are known now; NULL: none. */
MUST_USE enum status table_packing_wait(struct table_packing *p, const struct table_known **ret);
/*
 * Makes the changes, in a table without stamps, if `needed`. What is known becomes what is there
 * behind the write, without the row's own cell.
 */
MUST_USE enum status table_packing_write(struct table_packing *p);
void table_packing_end(struct table_packing *p);

#endif

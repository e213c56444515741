/*
 * What orders writes where clients say so (row.h, table_stamp_set()): which writers compare, the
 * marks that deletions leave, and how what is written competes with what is there.
 *
 * ROWS always has what has won, so readers know nothing of this. Only a table whose description has
 * the flag (`stamped`) has any of it.
 */
#ifndef FROND_MODEL_TIMED_TABLES_STAMPS_H
#define FROND_MODEL_TIMED_TABLES_STAMPS_H

#include "model/timed/tables/tables_int.h"

/* ---- Who compares (stamps.c) ---- */

/* What orders the writes of one call. All zero: the order of commits does. */
struct table_order {
	bool marks;    /* deletions leave marks */
	bool compares; /* what is written is compared with what is there */
	bool spares;   /* a deletion clears only values that have stamps */
	bool ties;     /* and wins where stamps are equal, since the writer has none of its own */
	int64_t stamp; /* of what is written or cleared, if `marks` or `compares` */
};

/*
 * What every function that writes or clears calls first. `writes`: something is written, and not
 * only cleared. STATUS_TX_CONFLICT: see table_stamp_set().
 */
MUST_USE enum status table_order_begin(struct timed *t, bool writes, struct table_order *ret);

/* ---- A row while it is written (change.c) ---- */

enum {
	TABLE_LIST_PLACE_BYTES = 16, /* of the place of a list's element */
};

struct table_writing {
	struct timed *t;
	const struct table_schema *schema;
	struct table_order order;
	struct buf row;  /* its key */
	struct buf cell; /* the key of a cell in it */
};

/* Makes `cell` the key of a column, or of an element in it. */
MUST_USE enum status table_writing_key(struct table_writing *w, uint64_t column,
				       const struct doc_scalar *element);
/* Makes the change, whatever is there. */
MUST_USE enum status table_writing_change(struct table_writing *w, const struct table_change *c);

/* ---- Marks (marks.c) ---- */

/* The first element behind the subspace. Stored: never renumber. */
enum table_mark_part {
	TABLE_MARK_PLACES = 0, /* of rows, columns, elements, by their keys */
	TABLE_MARK_RANGES = 1, /* of ranges of rows, by their partitions */
	TABLE_MARK_DUES = 2,   /* when marks were made */
	TABLE_MARK_HIGHEST = 3,
	TABLE_MARK_PARTS,
};

struct table_mark {
	int64_t stamp;    /* what was there before it, and with it, is deleted */
	uint64_t made_us; /* the moment of the deletion, since 1970 */
	/* Of a range: the rows whose keys are in it, behind their partition's. */
	struct str begin, end;
};

void table_mark_encode(const struct table_mark *mark, bool range, struct buf *value);
/* The value of a mark of a place. STATUS_NEWER, explained; STATUS_CORRUPT. */
MUST_USE enum status table_mark_parse(struct str value, struct table_mark *ret, struct err *err);
/* The same of a range's; what it names is in the arena. */
MUST_USE enum status table_mark_parse_range(struct str value, struct arena *arena,
					    struct table_mark *ret, struct err *err);

/*
 * The key of the mark of a place, by the place's key (P, ROWS, …). `own`: of what says that the row
 * was inserted, by the row's key.
 */
MUST_USE enum status table_mark_key(const struct catalog_db *db, struct str key, bool own,
				    struct buf *ret);
/* What the keys of all marks of ranges of a partition begin with, by a key in it (P, ROWS, …). */
MUST_USE enum status table_mark_partition_key(const struct catalog_db *db, struct str key,
					      struct buf *ret);
/* The key of the entry by which the sweep finds a mark, by the mark's key. */
MUST_USE enum status table_mark_due_key(const struct catalog_db *db, uint64_t made_us,
					struct str mark_key, struct buf *ret);

/* The latest stamp of all marks that something is under. */
struct table_cover {
	bool any;
	int64_t stamp;
};

static inline void
table_cover_raise(struct table_cover *cover, int64_t stamp)
{
	if (!cover->any || stamp > cover->stamp)
		cover->stamp = stamp;
	cover->any = true;
}

/* Asks for the mark of a place, as table_mark_key() has it. The future is the transaction's. */
MUST_USE enum status table_mark_ask(struct timed *t, struct str key, bool own,
				    struct kv_future **ret);
MUST_USE enum status table_mark_wait(struct timed *t, struct kv_future *asked,
				     struct table_cover *cover);
/* Leaves a mark, in place of the one that is there. */
MUST_USE enum status table_mark_put(struct timed *t, struct str key, bool own, int64_t stamp);
/* The same, unless the one that is there has as late a stamp; with `o->compares` it reads that. */
MUST_USE enum status table_mark_raise(struct timed *t, const struct table_order *o, struct str key,
				      bool own, int64_t stamp);

/* The marks of the ranges of a partition, one after the other. */
struct table_range_marks {
	struct timed *t;
	struct kv_scan scan;
};

/* `key`: of anything in the partition, (P, ROWS, …). The caller closes it in any case. */
MUST_USE enum status table_range_marks_open(struct table_range_marks *m, struct timed *t,
					    struct str key);
/* STATUS_NOT_FOUND behind the last one. `*ret_key` lives until the next call. */
MUST_USE enum status table_range_marks_next(struct table_range_marks *m, struct arena *arena,
					    struct str *ret_key, struct table_mark *ret);
void table_range_marks_close(struct table_range_marks *m);
/* True if the mark of a range in its partition is over the row with this key (P, ROWS, …). */
bool table_mark_is_over(const struct catalog_db *db, const struct table_mark *mark, struct str key);

/*
 * Remembers that rows of a partition between two keys (P, ROWS, …) were cleared. Clears the marks
 * that it makes needless. STATUS_INVALID, explained: TABLE_RANGE_MARKS.
 */
MUST_USE enum status table_range_mark_put(struct timed *t, struct str begin, struct str end,
					  int64_t stamp);
/* Clears all marks that are over a row or anything in it, by its key (P, ROWS, …). */
MUST_USE enum status table_marks_forget(struct timed *t, struct str row);
/* Clears marks that are older than TABLE_PROPERTY_GRACE says, TIMED_SWEEP_KEYS at most. */
MUST_USE enum status table_marks_tend(struct timed *t, uint64_t *ret_done, bool *ret_more);

/* ---- The check (verify_marks.c) ---- */

/* Checks the marks of the table that is checked. `range`: NULL for all of them. */
MUST_USE enum status table_verify_marks(struct catalog_verify *v,
					struct catalog_verify_range *range);
/* Checks that a cell with a stamp is under no mark that is as late. Clears v->scratch. */
MUST_USE enum status table_verify_stamp(struct catalog_verify *v, struct str key,
					const struct timed_cell *cell);

/* ---- What wins (contest.c) ---- */

/* Makes those of the changes that win against what is there. */
MUST_USE enum status table_contest_write(struct table_writing *w, const struct table_write *write);
/*
 * Clears what the deletion wins against between two keys (P, ROWS, …), and what indexes have of
 * that: of whole rows that together have `most` such cells, or of one that has more. `*ret_more`:
 * some are left.
 */
MUST_USE enum status table_contest_clear(struct timed *t, const struct table_order *o,
					 struct str begin, struct str end, size_t most,
					 bool *ret_more);

#endif

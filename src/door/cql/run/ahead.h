/*
 * Rows and partitions that a SELECT names one by one, asked for some at a time: what is behind the
 * one that is read now is on its way meanwhile. They are read in their order all the same, so pages
 * and limits are as if each were asked for when it comes.
 *
 * Threading: on the fiber of the statement.
 */
#ifndef FROND_DOOR_CQL_RUN_AHEAD_H
#define FROND_DOOR_CQL_RUN_AHEAD_H

#include "door/cql/run/select.h"

enum {
	SELECT_AHEAD = 16, /* rows or ranges that are asked for at once */
	AHEAD_ROWS = 100,  /* of such a range, at most */
};

/* A range of rows in a partition, or one row. */
struct ahead_one {
	struct table_asked *row;
	struct table_scan *scan;
};

/* All zero: nothing is asked for. */
struct ahead {
	struct ahead_one ones[SELECT_AHEAD]; /* by their numbers, as a ring */
	uint64_t first;                      /* number of the first one */
	size_t count;
	struct doc_scalar *keys; /* of those that are rows, in the request's arena */
	uint64_t asked;          /* how often some were */
	uint64_t reads;          /* kv_reads_mark(), behind the first of these times */
};

/*
 * What the statement names has numbers: partitions in their order, and in each the plan's ranges,
 * from the last one on if the statement reads backward. These ascend from call to call.
 *
 * The row with this number: as table_read().
 */
MUST_USE enum status ahead_read_row(struct ahead *a, struct select *s, struct timed *t,
				    uint64_t number, struct table_row *ret);
/*
 * A scan of the range with this number, which the caller closes. `after`: where it goes on, or
 * empty. `rows`: about so many rows are wanted; 0: all.
 */
MUST_USE enum status ahead_open_scan(struct ahead *a, struct select *s, struct timed *t,
				     uint64_t number, struct str after, size_t rows,
				     struct table_scan **ret);
void ahead_release(struct ahead *a);

#endif

/*
 * What a scan asks of each row: conditions on columns, and sums over those that pass. Values are
 * compared by their ordered bytes, so in PostgreSQL's order.
 *
 * Threading: none.
 */
#ifndef FROND_DOOR_ROWS_DATA_FILTER_H
#define FROND_DOOR_ROWS_DATA_FILTER_H

#include "door/rows/data/index.h"
#include "door/rows/data/pick.h"

struct filters; /* in the request's arena */

/* Finds the columns. Fails with 0A000 for an interval of a kind without an order. */
MUST_USE enum status rows_filters_make(struct rows_request *r, const struct table *t,
				       const struct rows_scan *scan, struct pick *pick,
				       struct filters **ret);
void rows_filters_free(struct filters *f); /* NULL is fine */
MUST_USE enum status rows_filters_pass(struct filters *f, struct rows_request *r,
				       const struct table_row *row, bool *ret);

struct sums; /* likewise */

/* Fails with 0A000 for a sum or a least one that the kind does not have. */
MUST_USE enum status rows_sums_make(struct rows_request *r, const struct table *t,
				    const struct rows_scan *scan, const struct pick *pick,
				    struct sums **ret);
void rows_sums_free(struct sums *s); /* NULL is fine */
MUST_USE enum status rows_sums_add(struct sums *s, struct rows_request *r,
				   const struct table_row *row);
/* Appends how many rows there were, and each sum. */
void rows_sums_put(const struct sums *s, struct buf *out);

/*
 * Sums of groups: rows that follow each other and have the first columns of the key, or of the
 * index, equal. Only the group that rows are added to is kept, and put once another one begins.
 */
struct groups; /* likewise */

/* Of `count` columns of the key, or of an index, which `pick` then wants. Fails with 0A000 where
 * such rows may not follow each other. */
MUST_USE enum status rows_groups_make(struct rows_request *r, const struct table *t,
				      const struct table_index *index, size_t count,
				      struct pick *pick, struct sums *sums, struct groups **ret);
void rows_groups_free(struct groups *g); /* NULL is fine */
/* Adds a row to its group; appends the one before, if it was another. */
MUST_USE enum status rows_groups_add(struct groups *g, struct rows_request *r,
				     const struct table_row *row);
/* Appends the last group, if there is one. Returns how many have been appended. */
uint32_t rows_groups_end(struct groups *g, struct buf *out);
/* Appends a group that one of its rows stands for, with how many there are and no sums. */
MUST_USE enum status rows_groups_put(struct groups *g, struct rows_request *r,
				     const struct table_row *row, uint64_t rows);

#endif

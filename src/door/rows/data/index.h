/*
 * Indexes of tables as this door sees them. A client can use an index whose entries it understands:
 * of plain columns outside of static ones, whose equal values have equal components. Any other one,
 * which Cassandra's clients have made, is kept like all, and told by its name alone.
 *
 * Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_DOOR_ROWS_DATA_INDEX_H
#define FROND_DOOR_ROWS_DATA_INDEX_H

#include "door/rows/data/txn.h"
#include "model/timed/tables/index.h"

/* What entries say of a column's values. */
enum index_use {
	INDEX_USE_NONE,    /* values that PostgreSQL takes for equal may have several entries */
	INDEX_USE_EQUAL,   /* which are equal */
	INDEX_USE_ORDERED, /* and which is the greater one */
};

/* Of a column by its values as they are stored. */
enum index_use rows_index_use(const struct table *t, const struct column *c);
/* The order (index/typed/order.h) by which an index has to have the column, since equal values are
 * stored in several ways; empty: as it is. Static. */
struct str rows_index_order(const struct table *t, const struct column *c);
/* Of a column of an index. */
enum index_use rows_index_column_use(const struct table *t,
				     const struct table_index_column *column);
/* Whether rows can be found by the index, once it is ready. */
bool rows_index_is_known(const struct table *t, const struct table_index *index);

/* Whether rows with equal values in its first columns lie together in it: a value that is stored in
 * several ways would make several groups. */
bool rows_index_has_groups(const struct table *t, const struct table_index *index);

/* NULL: there is none of that number. */
const struct table_index *rows_index_numbered(const struct table *t, uint64_t number);

/* A value of a column as entries have it, in the arena. Fails with 22P03 or 22003. */
MUST_USE enum status rows_index_value(struct rows_request *r, const struct table *t,
				      const struct column *c, struct rows_value value,
				      struct doc_scalar *ret);

/* ---- Scans by an index (index_scan.c) ---- */

/*
 * The index of a scan, and the interval of its entries that is read. An entry may be older than its
 * row, and long values are cut in it; so the rows are compared with the interval once more:
 * `*ret_filters` has these comparisons, and behind them the scan's own conditions. All of it is in
 * the arena. Fails with 42704 for an index that is not there or not ready, with
 * 0A000 for one that is not known, with 42P16 for more values than it has columns.
 */
MUST_USE enum status
rows_index_scan_make(struct rows_request *r, const struct table *t, const struct rows_scan *scan,
		     const struct table_index **ret, struct table_index_interval *ret_interval,
		     const struct rows_filter **ret_filters, size_t *ret_filter_count);

#endif

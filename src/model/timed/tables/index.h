/*
 * Indexes of a table: what they are, creating and dropping them, reading rows through them. Writers
 * keep entries in the transaction that changes a row (row.h), whatever they write with.
 *
 * An index knows ids of columns, so renaming one changes nothing. Its first column may be a part of
 * a collection; a row has an entry for each different value of the first column, and none where
 * that is null.
 *
 * Entries are made of the cells that are stored, also of those that have expired: the sweep removes
 * a cell and its entries in one transaction. Until then a reader who comes through an index reads
 * the row, and does not see what has expired in it. So an entry may lead to a row that no longer
 * has the entry's values: the caller compares the row with what it has asked for.
 *
 * A unique index refuses a row whose values another row has: STATUS_DUPLICATE, explained, and the
 * transaction is not to be committed. What has expired is in nobody's way. An index over rows that
 * have the same values fails. Values that are too long for a key (engine/README.md) are the same if
 * they begin alike.
 *
 * An index knows the present alone: a transaction that reads the past cannot read one.
 *
 * No function commits. Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_MODEL_TIMED_TABLES_INDEX_H
#define FROND_MODEL_TIMED_TABLES_INDEX_H

#include "index/typed/filter.h"
#include "index/typed/order.h"
#include "model/timed/tables/row.h"

enum {
	TABLE_INDEX_COLUMNS = 16, /* of one index */
	TABLE_INDEX_CARRIED = 16, /* columns that one index includes */
	TABLE_INDEXES = 64,       /* of one table, those that are being cleared included */
	TABLE_INDEX_AHEAD = 32,   /* rows that a scan asks for before the first is waited for */
};

struct index_def;

struct table_index_column {
	uint64_t column; /* its id */
	enum index_typed_part part;
	bool descending;
	const struct str *steps; /* as struct index_typed_origin has them */
	size_t step_count;
};

struct table_index {
	const struct index_def *def;
	uint64_t number; /* among the indexes that the table has ever had */
	struct str name; /* the caller's own, one among the live indexes of a table */
	struct str spec; /* a text of the caller's */
	/* Every row has its entries. One that is not ready is being built, or has failed. */
	bool is_ready;
	bool has_failed;
	bool is_unique; /* no two rows have the same values; one with a null is like no other */
	struct str failure;
	/* Its only column is static: entries stand for partitions. */
	bool of_statics;
	const struct table_index_column *columns;
	size_t column_count;
	/*
	 * Ids of columns that it includes. Most entries carry the values of these and of the
	 * index's own columns (index/typed/form.h), so readers who want no others read no row.
	 */
	const uint64_t *carried;
	size_t carried_count;
	/* Only rows that fulfil all of these have entries; none: all have. */
	const struct index_typed_condition *conditions;
	size_t condition_count;
	/*
	 * Ids of all of these columns, ascending, each once: a change of one of them may change
	 * entries. Of an opened table's index only.
	 */
	const uint64_t *used;
	size_t used_count;
};

/* Those of an opened table that were not dropped, for as long as the description lasts. */
const struct table_index *table_indexes_of(const struct catalog_db *db, size_t *ret_count);
/* NULL if there is none of that name. */
const struct table_index *table_index_named(const struct catalog_db *db, struct str name);

/*
 * Creates an index. Of `terms` name, spec, columns, carried, conditions and is_unique count.
 * `*ret_number` tells it from others of this table. It is ready at once if the table is empty;
 * otherwise it is built in the background, which table_index_build() may do sooner. STATUS_INVALID,
 * explained: there is one of that name, or no index can have these columns. STATUS_LIMIT,
 * explained: TABLE_INDEXES. Touches the metadata version; writes the stamp of the schema.
 */
MUST_USE enum status table_index_create(struct timed *t, const struct table_index *terms,
					uint64_t *ret_number);

/*
 * Drops an index, whose entries are cleared in the background. Touches the metadata version; writes
 * the stamp of the schema.
 */
MUST_USE enum status table_index_drop(struct timed *t, const struct table_index *index);

/*
 * Goes on with the build of an index, which was created in a transaction that has committed, in up
 * to `steps` transactions of its own. What is left is the background's.
 */
MUST_USE enum status table_index_build(struct kv_store *store, struct str table, uint64_t number,
				       unsigned steps, struct err *err);

/* ---- Reading ---- */

/* What is asked of an index, which is ready: values of its first columns, and then bounds. */
struct table_index_interval {
	const struct index_typed_value *equal;
	size_t equal_count;
	/* Of the column behind these: the smaller and the larger value; NULL: no bound. */
	const struct index_typed_value *low, *high;
	bool low_exclusive, high_exclusive;
};

struct table_index_options {
	struct table_index_interval interval;
	bool reverse;     /* from the last entry to the first, rows of one value likewise */
	struct str after; /* go on behind a table_index_place() of the same interval; or empty */
	bool statics;     /* read static columns beside rows */
	const struct table_wanted *wanted; /* NULL: all columns */
	/*
	 * The columns that are wanted of a row whose entry is known to match. If the entry carries
	 * all of them, the row comes from its entry and is not read: see table_index_is_carried().
	 * NULL: each row is read.
	 */
	const struct table_wanted *of_entry;
	size_t rows; /* about so many are wanted; 0: all */
};

struct table_index_scan;

/*
 * The options' values are read now, and `wanted` while the scan lasts. `*ret` is the caller's to
 * close. STATUS_INVALID, explained, in a transaction that reads the past.
 */
MUST_USE enum status table_index_open(struct timed *t, const struct table_index *index,
				      const struct table_index_options *options,
				      struct table_index_scan **ret);
/*
 * The next row that is there, in the order of the entries; rows with equal values come in the order
 * of the table. With `reverse` both orders are the opposite ones. STATUS_NOT_FOUND at the end. An
 * index that is `of_statics` gives a partition's key and its static columns.
 */
MUST_USE enum status table_index_next(struct table_index_scan *scan, struct arena *arena,
				      struct table_row *ret);
/*
 * True if the row that was returned last comes from its entry. It then matches the interval and has
 * the columns of `of_entry`, and its cells have neither write times nor stamps.
 */
bool table_index_is_carried(const struct table_index_scan *scan);
/* Appends the place behind the row that was returned last: TABLE_PLACE_BYTES at most. */
MUST_USE enum status table_index_place(const struct table_index_scan *scan, struct buf *ret);
void table_index_close(struct table_index_scan *scan); /* NULL is fine */

#endif

/*
 * Reading indexes: a cursor over the entries of a range, and how many there are.
 *
 *     TRY(index_scan_init(&scan, tx, db, def, &range, &options));
 *     while ((status = index_scan_next(&scan, w, &entry)) == STATUS_OK)
 *         …
 *     index_scan_release(&scan);
 *
 * The index must be readable (index_is_readable()). With MULTIKEY a document comes once for each of
 * its entries in the range: index_entry_is_first() tells which one counts.
 *
 * Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_INDEX_ENGINE_SCAN_H
#define FROND_INDEX_ENGINE_SCAN_H

#include "index/engine/entry.h"

struct index_scan_options {
	bool reverse;
	enum kv_read mode;
	/*
	 * Goes on behind this entry (its `key`), which need not be there any more; ptr NULL: from
	 * the beginning. A place outside of the range is moved to its nearer end.
	 */
	struct str after;
	size_t limit;       /* entries at most; 0: no such limit */
	size_t first;       /* so many are likely to be wanted (kv/few.h); 0: not known */
	size_t limit_bytes; /* of a stretch that is read at once; 0: the engine's */
	bool ahead;         /* the next stretch is asked for while this one is used */
	/*
	 * Of a covering index whose form has `find_values`: nothing is wanted of entries but `key`
	 * and `values`. Nothing else is set, nor looked at, unless an entry has no values.
	 */
	bool only_values;
};

/* All fields are private. */
struct index_scan {
	const struct index_def *def;
	struct kv_scan scan;
	size_t prefix_len;
	bool only_values;
};

MUST_USE enum status index_scan_init(struct index_scan *scan, struct kv_tx *tx,
				     const struct catalog_db *db, const struct index_def *def,
				     const struct index_range *range,
				     const struct index_scan_options *options);

/*
 * The next entry, valid until the next call, but for what is in the arena of `w`: ids and texts
 * with a NUL. STATUS_NOT_FOUND at the end.
 */
MUST_USE enum status index_scan_next(struct index_scan *scan, struct index_work *w,
				     struct index_entry *ret);
void index_scan_release(struct index_scan *scan);

/*
 * The number of entries in the range, for planning, by snapshot reads. A range of at most `few`
 * entries is counted by reading them. A larger one is estimated by what this process knows of the
 * counters of ranges, which reads nothing and is off by about a range of the database's entries; in
 * a small database the counters are read, and the number is exact.
 */
MUST_USE enum status index_range_count(struct kv_tx *tx, const struct catalog_db *db,
				       const struct index_range *range, size_t few, uint64_t *ret);

/* The exact number, by the counters of ranges: it costs no more for a large range. */
MUST_USE enum status index_range_count_exactly(struct kv_tx *tx, const struct catalog_db *db,
					       const struct index_range *range, uint64_t *ret);

enum {
	INDEX_COUNT_RANGES = 16, /* that are counted together at most */
};

/* The same for several ranges, whose first entries are asked for together: the sum. */
MUST_USE enum status index_ranges_count(struct kv_tx *tx, const struct catalog_db *db,
					const struct index_range *ranges, size_t count, size_t few,
					uint64_t *ret);

/*
 * The exact sum: of several ranges, what has at most `few` entries is read. All others are known by
 * the counters.
 */
MUST_USE enum status index_ranges_count_exactly(struct kv_tx *tx, const struct catalog_db *db,
						const struct index_range *ranges, size_t count,
						size_t few, uint64_t *ret);

/* The number of entries of all indexes of the database: one key. */
MUST_USE enum status index_total_count(struct kv_tx *tx, const struct catalog_db *db,
				       uint64_t *ret);

/*
 * The entries of one index, exactly, and the bytes of their keys and values as the engine estimates
 * them. May block, as reads do.
 */
MUST_USE enum status index_measure(struct kv_tx *tx, const struct catalog_db *db,
				   const struct index_def *def, uint64_t *ret_entries,
				   uint64_t *ret_bytes);

#endif

/*
 * How many entries of a range have the same values in their first columns: groups, one after the
 * other. Of a large group most entries are not read, since counters by range tell how many they
 * are (catalog/tally.h).
 *
 *     TRY(index_groups_open(tx, db, def, &range, &options, &groups));
 *     while ((status = index_groups_next(groups, w, &group)) == STATUS_OK)
 *         …
 *     index_groups_close(groups);
 *
 * The transaction has read all of the range that was counted: it meets whoever changes it.
 *
 * Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_INDEX_ENGINE_GROUPS_H
#define FROND_INDEX_ENGINE_GROUPS_H

#include "index/engine/entry.h"

struct index_groups_options {
	size_t columns;   /* that entries of a group have equal; 0: all are one group */
	struct str after; /* go on behind index_groups_place(); empty: from the beginning */
	size_t most;      /* entries that are read, about, before it pauses */
};

struct index_group {
	struct str id; /* of its first entry, until the next call */
	uint64_t entries;
};

struct index_groups;

/* `*ret` is the caller's to close. */
MUST_USE enum status index_groups_open(struct kv_tx *tx, const struct catalog_db *db,
				       const struct index_def *def, const struct index_range *range,
				       const struct index_groups_options *options,
				       struct index_groups **ret);
/*
 * The next group. Where it pauses within a group, this is the part of it that was counted, and
 * whoever goes on at the place gets the rest as a group of its own. STATUS_NOT_FOUND at the end,
 * and after a pause. STATUS_UNSUPPORTED: a value is too long for a key, so that other values may
 * have the same entries. STATUS_NEWER, STATUS_CORRUPT of an entry.
 */
MUST_USE enum status index_groups_next(struct index_groups *groups, struct index_work *w,
				       struct index_group *ret);
/* Whether entries are left. */
bool index_groups_paused(const struct index_groups *groups);
/* Appends the place behind what was counted so far, as index_scan_options has it. */
MUST_USE enum status index_groups_place(const struct index_groups *groups, struct buf *ret);
void index_groups_close(struct index_groups *groups); /* NULL is fine */

#endif

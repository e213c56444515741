/*
 * How many rows have the same values in the first columns of an index, without reading them: by
 * their entries (index/engine/groups.h).
 *
 * No function commits. Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_MODEL_TIMED_TABLES_GROUPS_H
#define FROND_MODEL_TIMED_TABLES_GROUPS_H

#include "model/timed/tables/index.h"

/*
 * Whether there is an entry for each row that has a value in the first column, and for no other:
 * of a table that counts its rows (count.c), an index of plain columns. Rows are counted by their
 * entries then.
 */
bool table_index_stands_for_rows(const struct timed *t, const struct table_index *index);

struct table_index_groups_options {
	struct table_index_interval interval;
	size_t columns;   /* of the index, that the rows of a group have equal; 0: all are one */
	struct str after; /* go on behind table_index_groups_place(), or table_index_place() */
	const struct table_wanted *wanted; /* of one row of each group */
	size_t most;                       /* entries that are read, about, before it pauses */
};

struct table_index_groups;

/*
 * Of an index that stands for rows. STATUS_UNSUPPORTED: a value at an end of the interval is too
 * long for an entry. Entries have only its beginning then, as other values may, so the rows have to
 * be read.
 */
MUST_USE enum status table_index_groups_open(struct timed *t, const struct table_index *index,
					     const struct table_index_groups_options *options,
					     struct table_index_groups **ret);
/*
 * The next group, in the order of the entries: one of its rows, and how many there are. Of the last
 * group before a pause only a part may be counted: whoever goes on at the place gets the rest as a
 * group of its own. STATUS_NOT_FOUND at the end, and after a pause.
 * STATUS_UNSUPPORTED, explained: a value of the group is too long for an entry.
 */
MUST_USE enum status table_index_groups_next(struct table_index_groups *groups, struct arena *arena,
					     struct table_row *ret, uint64_t *ret_rows);
bool table_index_groups_paused(const struct table_index_groups *groups);
MUST_USE enum status table_index_groups_place(const struct table_index_groups *groups,
					      struct buf *ret);
void table_index_groups_close(struct table_index_groups *groups); /* NULL is fine */

#endif

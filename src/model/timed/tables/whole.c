/*
 * Tables whose rows are whole: what INSERT has packed into a row's own cell is all that the row
 * has, since nobody has written a leaf yet. Then whoever wants the row knows its only key: INSERT
 * does not look for leaves, and a reader asks for that key in place of a range.
 *
 * The description says so. Whoever is about to write the first leaf takes the flag away by a
 * transaction of its own, which touches the metadata version: so it meets all who have opened the
 * table as one of whole rows, and whose reads and blind writes rely on that.
 */
#include "model/timed/tables/packed.h"

enum status
table_leaf_allow(struct timed *t)
{
	return table_schema_of(t->db)->whole ? table_schema_note(t, TABLE_FIRST_LEAF) : STATUS_OK;
}

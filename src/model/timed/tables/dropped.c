/*
 * Clearing what dropped columns held. Readers pass over cells of columns that the schema does not
 * have, whose ids no other column ever gets; so the cells only take room. Dropping a column leaves
 *
 *     (P, DROPPED) → (format, b"a key behind P"): cells before it have been looked at
 *
 * and the sweep goes through the rows from there, and clears the cells of columns that are not in
 * the schema. Another drop begins again.
 */
#include "model/timed/tables/tables_int.h"

enum status
table_dropped_begin(struct timed *t)
{
	return timed_walk_begin(t, TIMED_SPACE_DROPPED, table_space(table_schema_of(t->db)));
}

/* Clears the cell if its column was dropped. */
static enum status
dropped_look(struct timed *t, const struct kv_pair *pair, void *ret_cleared)
{
	const struct table_schema *schema = table_schema_of(t->db);
	struct str key = pair->key;
	bool *cleared = ret_cleared;
	uint64_t column;
	size_t len;

	TRY(timed_key_row_bytes(t->db, key, &len));
	TRY(table_place_column(str_skip(key, len), &column));
	if (!column || table_column_by_id(schema, column))
		return STATUS_OK;
	*cleared = true;
	return timed_data_clear(t, key);
}

enum status
table_dropped_tend(struct timed *t, uint64_t *ret_done, bool *ret_more)
{
	bool cleared = false;
	const struct timed_walk walk = {
		.record = TIMED_SPACE_DROPPED,
		.space = table_space(table_schema_of(t->db)),
		.look = dropped_look,
		.arg = &cleared,
	};

	TRY(timed_walk_turn(t, &walk, ret_done, ret_more));
	return cleared ? timed_now_write(t) : STATUS_OK;
}

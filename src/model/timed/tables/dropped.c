/*
 * Clearing what dropped columns held. Readers pass over cells of columns that the schema does not
 * have, whose ids no other column ever gets; so the cells only take room. Dropping a column leaves
 *
 *     (P, DROPPED) → (format, b"a key behind P"): cells before it have been looked at
 *
 * and the sweep goes through the rows from there, and clears the cells of columns that are not in
 * the schema. Another drop begins again.
 */
#include "model/timed/tables/packed.h"

enum status
table_dropped_begin(struct timed *t)
{
	return timed_walk_begin(t, TIMED_SPACE_DROPPED, table_space(table_schema_of(t->db)));
}

static bool
is_dropped(const void *schema, uint64_t column)
{
	return !table_column_by_id(schema, column);
}

/* Takes such columns out of what is packed in a row's own cell. */
static enum status
packed_look(struct timed *t, const struct kv_pair *pair, bool *ret_cleared)
{
	const struct table_schema *schema = table_schema_of(t->db);
	AUTO(buf_release) struct buf next = CATALOG_KEY_INIT;
	struct table_packed p;
	struct timed_cell own;
	enum status status;
	struct str ignored;
	uint64_t column;
	bool any = false;

	TRY(table_fail_corrupt(t, timed_cell_parse(pair->value, &own, t->err)));
	p = table_packed_of(&own);
	while ((status = table_packed_next(&p, &column, &ignored)) == STATUS_OK)
		any = any || is_dropped(schema, column);
	if (status != STATUS_NOT_FOUND)
		return table_fail_corrupt(t, status);
	if (!any)
		return STATUS_OK;
	/* The walk reads by snapshot, and what a writer puts here meanwhile must not be lost. */
	buf_append_str(&next, pair->key);
	buf_append_byte(&next, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(&next));
	TRY(kv_add_read_conflict_range(t->tx, pair->key, buf_str(&next)));
	*ret_cleared = true;
	return table_packed_filter(t, pair->key, pair->value, is_dropped, schema);
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
	if (!column)
		return schema->packed ? packed_look(t, pair, cleared) : STATUS_OK;
	if (table_column_by_id(schema, column))
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

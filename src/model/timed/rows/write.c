#include <assert.h>

#include "model/timed/rows/rows_int.h"

/* ---- Tables ---- */

static enum status
check_is_table(struct timed *t, bool table)
{
	if ((timed_schema_of(t->db)->column_count > 0) == table)
		return STATUS_OK;
	return err_set(t->err, STATUS_INVALID,
		       table ? "the database has no columns: its rows are values and collections"
			     : "the database is a table: its rows have columns");
}

enum status
timed_insert(struct timed *t, const struct timed_key *key, struct timed_expiry expiry)
{
	AUTO(buf_release) struct buf row = CATALOG_KEY_INIT;

	TRY(check_is_table(t, true));
	TRY(timed_key_row(t, key, &row));
	TRY(timed_write_begin(t));
	return timed_cell_write(t, buf_str(&row), TIMED_INSERTED, NULL, expiry);
}

/* In a table a path begins with one of its columns, and has no other. */
static enum status
check_path(struct timed *t, const struct timed_path *place)
{
	const struct timed_schema *schema = timed_schema_of(t->db);

	for (size_t i = 0; i < place->count; i++) {
		bool column = schema->column_count > 0 && i == 0;

		if (column != (place->steps[i].column > 0) ||
		    place->steps[i].column > schema->column_count)
			return err_set(t->err, STATUS_INVALID, "the path does not fit the schema");
	}
	return STATUS_OK;
}

/*
 * Clears the scalars that the row has on the way to the place, so that a map is where they were:
 * without reading whether there are any. A row's own cell is none of them.
 */
static enum status
clear_way(struct timed *t, const struct buf *row, const struct timed_path *place)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	buf_append_buf(&key, row);
	for (size_t i = 0; i + 1 < place->count; i++) {
		const struct timed_path step = { &place->steps[i], 1 };

		TRY(timed_key_path(t, &step, &key));
		TRY(timed_data_clear(t, buf_str(&key)));
	}
	return STATUS_OK;
}

static enum status
write_values(struct timed *t, const struct buf *place, const struct timed_value *values,
	     size_t count, struct timed_expiry expiry)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	for (size_t i = 0; i < count; i++) {
		buf_clear(&key);
		buf_append_buf(&key, place);
		TRY(timed_key_path(t, &values[i].path, &key));
		TRY(timed_cell_write(t, buf_str(&key), TIMED_LEAF, &values[i].value, expiry));
	}
	return STATUS_OK;
}

enum status
timed_put(struct timed *t, const struct timed_key *key, const struct timed_path *place,
	  const struct timed_value *values, size_t count, struct timed_expiry expiry)
{
	AUTO(buf_release) struct buf row = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf at = CATALOG_KEY_INIT;

	TRY(check_is_table(t, true));
	if (!place->count)
		return err_set(t->err, STATUS_INVALID, "a value needs a column");
	TRY(check_path(t, place));
	TRY(timed_key_row(t, key, &row));
	TRY(timed_write_begin(t));
	/* Before the values, whose keys both may clear: a transaction sees its writes in order. */
	TRY(clear_way(t, &row, place));
	buf_append_buf(&at, &row);
	TRY(timed_key_path(t, place, &at));
	TRY(timed_data_clear_below(t, buf_str(&at)));
	return write_values(t, &at, values, count, expiry);
}

enum status
timed_clear(struct timed *t, const struct timed_key *key, const struct timed_path *place)
{
	AUTO(buf_release) struct buf at = CATALOG_KEY_INIT;

	TRY(catalog_db_check_writable(t->db, t->err));
	if (timed_history_seconds(t->db))
		TRY(timed_write_begin(t));
	TRY(check_path(t, place));
	TRY(timed_key_row(t, key, &at));
	TRY(timed_key_path(t, place, &at));
	TRY(timed_touch(t));
	return timed_data_clear_below(t, buf_str(&at));
}

enum status
timed_clear_rows(struct timed *t, const struct timed_rows *rows, bool *ret_more)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	*ret_more = false;
	TRY(catalog_db_check_writable(t->db, t->err));
	if (timed_history_seconds(t->db))
		TRY(timed_write_begin(t));
	TRY(timed_key_rows(t, rows, &begin, &end));
	if (str_eq(buf_str(&begin), buf_str(&end)))
		return STATUS_OK;
	return timed_data_clear_rows(t, buf_str(&begin), buf_str(&end), ret_more);
}

/* ---- Rows that are one value or one collection ---- */

enum status
timed_set(struct timed *t, const struct timed_key *key, const struct doc_scalar *value,
	  struct timed_expiry expiry)
{
	AUTO(buf_release) struct buf row = CATALOG_KEY_INIT;

	TRY(check_is_table(t, false));
	TRY(timed_key_row(t, key, &row));
	TRY(timed_write_begin(t));
	TRY(timed_data_clear_below(t, buf_str(&row)));
	return timed_cell_write(t, buf_str(&row), TIMED_VALUE, value, expiry);
}

/* The type of the row that is there now; TIMED_LEAF if there is none. */
static enum status
read_type(struct timed *t, const struct buf *row, enum timed_type *ret)
{
	struct kv_future *f = kv_get(t->tx, buf_str(row), KV_READ);
	struct timed_cell cell;
	struct str value;

	TRY(timed_now(t));
	TRY(kv_future_wait(f));
	*ret = TIMED_LEAF;
	if (!kv_future_value(f, &value))
		return STATUS_OK;
	TRY(timed_cell_parse(value, &cell, t->err));
	if (!timed_has_expired(t, &cell))
		*ret = cell.type;
	return STATUS_OK;
}

enum status
timed_add(struct timed *t, const struct timed_key *key, enum timed_type type,
	  const struct timed_value *members, size_t count, struct timed_expiry expiry)
{
	static const struct timed_expiry never = { .kind = TIMED_EXPIRY_NEVER };
	AUTO(buf_release) struct buf row = CATALOG_KEY_INIT;
	enum timed_type found;

	assert(type == TIMED_HASH || type == TIMED_SET);
	TRY(check_is_table(t, false));
	for (size_t i = 0; i < count; i++)
		TRY(check_path(t, &members[i].path));
	TRY(timed_key_row(t, key, &row));
	TRY(timed_ask(t));
	TRY(read_type(t, &row, &found));
	if (found != TIMED_LEAF && found != type)
		return err_set(t->err, STATUS_INVALID, "the row holds a value of another type");
	TRY(timed_write_begin(t));
	if (found == TIMED_LEAF) {
		/* What is left of a collection that has expired must not come back. */
		TRY(timed_data_clear_below(t, buf_str(&row)));
		TRY(timed_cell_write(t, buf_str(&row), type, NULL, expiry));
	}
	return write_values(t, &row, members, count, never);
}

#include <assert.h>

#include "model/timed/rows/rows_int.h"

/* ---- Cells ---- */

static void
cell_set_expiry(const struct timed *t, struct timed_expiry expiry, struct timed_cell *cell)
{
	cell->by_default = expiry.kind == TIMED_EXPIRY_DEFAULT;
	cell->at_ms = TIMED_CELL_NEVER;
	if (expiry.kind == TIMED_EXPIRY_AFTER)
		cell->at_ms = t->now_us / TIMED_US_PER_MS + expiry.ms;
	else if (expiry.kind == TIMED_EXPIRY_AT)
		cell->at_ms = expiry.ms ? expiry.ms : 1; /* 0 is TIMED_CELL_NEVER */
}

/* The cell, and the entry by which the sweep finds it when it has expired. */
static enum status
cell_write(struct timed *t, struct str key, enum timed_type type, const struct doc_scalar *value,
	   struct timed_expiry expiry)
{
	AUTO(buf_release) struct buf encoded = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	AUTO(buf_release) struct buf scalar = BUF_INIT(TIMED_VALUE_BYTES);
	AUTO(buf_release) struct buf entry = CATALOG_KEY_INIT;
	struct timed_cell cell = { .type = type, .write_us = timed_write_us(t) };
	uint64_t expires_ms;

	cell_set_expiry(t, expiry, &cell);
	if (value)
		doc_scalar_put(&scalar, value);
	if (buf_status(&scalar) == STATUS_LIMIT)
		return err_set(t->err, STATUS_VALUE_TOO_LARGE,
			       "a value in a row may have %d bytes (TIMED_VALUE_BYTES)",
			       TIMED_VALUE_BYTES);
	TRY(buf_status(&scalar));
	cell.value = buf_str(&scalar);
	timed_cell_put(&cell, &encoded);
	TRY(buf_status(&encoded));
	TRY(timed_data_set(t, key, buf_str(&encoded)));
	expires_ms = timed_cell_expires_ms(t->db, &cell);
	if (!expires_ms)
		return STATUS_OK;
	TRY(timed_key_expiry(t->db, key, expires_ms, &entry));
	return kv_set(t->tx, buf_str(&entry), STR(""));
}

/* Clears the key itself and everything below it. */
static enum status
clear_below(struct timed *t, struct buf *key)
{
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	buf_append_str(&end, buf_str(key));
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	return timed_data_clear_range(t, buf_str(key), buf_str(&end));
}

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
	return cell_write(t, buf_str(&row), TIMED_INSERTED, NULL, expiry);
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

	buf_append_str(&key, buf_str(row));
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
		buf_append_str(&key, buf_str(place));
		TRY(timed_key_path(t, &values[i].path, &key));
		TRY(cell_write(t, buf_str(&key), TIMED_LEAF, &values[i].value, expiry));
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
	buf_append_str(&at, buf_str(&row));
	TRY(timed_key_path(t, place, &at));
	TRY(clear_below(t, &at));
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
	return clear_below(t, &at);
}

/*
 * Where one transaction stops to clear a range with a history: between two rows, unless the first
 * row alone has too many keys. `end` becomes that place; `*ret_more`: it is before the end.
 */
static enum status
clear_rows_cut(struct timed *t, struct str begin, struct buf *end, bool *ret_more)
{
	const struct kv_range_options options = { .limit = TIMED_CLEAR_KEYS, .mode = KV_SNAPSHOT };
	struct kv_future *f = kv_get_range(t->tx, begin, buf_str(end), &options);
	struct kv_range range;
	struct str last;
	size_t len, first_len;

	*ret_more = false;
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	if (!range.more)
		return STATUS_OK;
	assert(range.count); /* there is no more behind nothing */
	last = range.pairs[range.count - 1].key;
	TRY(timed_key_row_bytes(t->db, range.pairs[0].key, &first_len));
	TRY(timed_key_row_bytes(t->db, last, &len));
	*ret_more = true;
	buf_clear(end);
	buf_append(end, last.ptr, len);
	if (len == first_len && str_starts_with(range.pairs[0].key, str_of(last.ptr, len)))
		buf_append_byte(end, CATALOG_KEY_LAST);
	return catalog_key_status(end);
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
	if (t->has_history)
		TRY(clear_rows_cut(t, buf_str(&begin), &end, ret_more));
	TRY(timed_touch(t));
	return timed_data_clear_range(t, buf_str(&begin), buf_str(&end));
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
	TRY(clear_below(t, &row));
	return cell_write(t, buf_str(&row), TIMED_VALUE, value, expiry);
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
		TRY(clear_below(t, &row));
		TRY(cell_write(t, buf_str(&row), type, NULL, expiry));
	}
	return write_values(t, &row, members, count, never);
}

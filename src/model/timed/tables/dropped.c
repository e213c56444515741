/*
 * Clearing what dropped columns held. Readers pass over cells of columns that the schema does not
 * have, whose ids no other column ever gets; so the cells only take room. Dropping a column leaves
 *
 *     (P, DROPPED) → (format, b"a key behind P"): cells before it have been looked at
 *
 * and the sweep goes through the rows from there, and clears the cells of columns that are not in
 * the schema. Another drop begins again.
 */
#include <assert.h>

#include "catalog/format.h"
#include "kv/tuple.h"
#include "model/timed/tables/tables_int.h"

enum {
	DROPPED_FORMAT = 1,
	DROPPED_VALUE_BYTES = 2 * KV_LIMIT_KEY_BYTES, /* what is escaped may double */
};

enum status
table_dropped_key(const struct catalog_db *db, struct buf *key)
{
	timed_key_space(key, db, TIMED_SPACE_DROPPED);
	return catalog_key_status(key);
}

static enum status
dropped_write(struct timed *t, struct str from)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(DROPPED_VALUE_BYTES);

	TRY(table_dropped_key(t->db, &key));
	tuple_put_u64(&value, DROPPED_FORMAT);
	tuple_put_bytes(&value, str_skip(from, t->db->prefix.len));
	TRY(buf_status(&value));
	return kv_set(t->tx, buf_str(&key), buf_str(&value));
}

/* `*ret` is in the scratch buffer or in the value. */
static enum status
dropped_parse(struct str value, struct buf *scratch, struct str *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	TRY(catalog_format_next(&r, "place in a table", DROPPED_FORMAT, &format, err));
	return tuple_next_bytes(&r, scratch, ret);
}

bool
table_dropped_is_good(struct str value)
{
	AUTO(buf_release) struct buf scratch = CATALOG_KEY_INIT;
	struct str from;

	return dropped_parse(value, &scratch, &from, NULL) == STATUS_OK;
}

enum status
table_dropped_begin(struct timed *t)
{
	AUTO(buf_release) struct buf from = CATALOG_KEY_INIT;

	timed_key_space(&from, t->db, table_space(table_schema_of(t->db)));
	TRY(catalog_key_status(&from));
	return dropped_write(t, buf_str(&from));
}

/* Clears the cell if its column was dropped. */
static enum status
dropped_look(struct timed *t, struct str key, bool *ret_cleared)
{
	const struct table_schema *schema = table_schema_of(t->db);
	uint64_t column;
	size_t len;

	TRY(timed_key_row_bytes(t->db, key, &len));
	TRY(table_place_column(str_skip(key, len), &column));
	if (!column || table_column_by_id(schema, column))
		return STATUS_OK;
	*ret_cleared = true;
	return timed_data_clear(t, key);
}

static enum status
dropped_slice(struct timed *t, struct str from, bool *ret_more)
{
	const struct kv_range_options options = { .limit = TIMED_SWEEP_KEYS, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_range range;
	struct kv_future *f;
	bool cleared = false;

	timed_key_space(&end, t->db, table_space(table_schema_of(t->db)));
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	f = kv_get_range(t->tx, from, buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++)
		TRY(dropped_look(t, range.pairs[i].key, &cleared));
	if (cleared)
		TRY(timed_now_write(t));
	*ret_more = range.more;
	if (!range.more) {
		TRY(table_dropped_key(t->db, &key));
		return kv_clear(t->tx, buf_str(&key));
	}
	assert(range.count); /* there is no more behind nothing */
	buf_append_str(&key, range.pairs[range.count - 1].key);
	buf_append_byte(&key, CATALOG_KEY_NEXT);
	TRY(buf_status(&key));
	return dropped_write(t, buf_str(&key));
}

enum status
table_dropped_tend(struct timed *t, uint64_t *ret_done, bool *ret_more)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf scratch = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str value, from;
	bool more;

	TRY(table_dropped_key(t->db, &key));
	f = kv_get(t->tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_OK;
	if (dropped_parse(value, &scratch, &from, t->err) != STATUS_OK)
		return err_set(t->err, STATUS_CORRUPT, "a place in a table cannot be read");
	buf_clear(&key);
	buf_append_str(&key, t->db->prefix);
	buf_append_str(&key, from);
	TRY(buf_status(&key));
	TRY(dropped_slice(t, buf_str(&key), &more));
	++*ret_done;
	*ret_more = *ret_more || more;
	return STATUS_OK;
}

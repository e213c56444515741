/*
 * How many rows a table has, without reading them.
 *
 *     (P, COUNT) → 8 bytes, little-endian: how many rows there are; absent: none
 *
 * Whoever knows what becomes of each row adds to it blindly, so writers do not conflict over it.
 * Nothing of a row of such a table expires, and each row was inserted, so a row is there as long
 * as it has any pair, and no clock changes the count.
 *
 * A writer that does not know whether a row was there takes the flag away, for good. The counter
 * then stays as it is, and means nothing; the table that follows this one when it is emptied has
 * another prefix, and a counter of its own.
 */
#include <endian.h>

#include "model/timed/check.h"
#include "model/timed/tables/tables_int.h"

#define TABLE_FINDING_COUNT "table_count" /* a counter that does not equal the number of rows */

static enum status
count_key(const struct catalog_db *db, struct buf *ret)
{
	timed_key_space(ret, db, TIMED_SPACE_COUNT);
	return catalog_key_status(ret);
}

enum status
table_count_check(struct timed *t, bool tells)
{
	if (tells || !table_schema_of(t->db)->counted)
		return STATUS_OK;
	return table_schema_note(t, TABLE_FIRST_UNTOLD);
}

enum status
table_count_add(struct timed *t, int64_t rows)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	if (!rows || !table_schema_of(t->db)->counted)
		return STATUS_OK;
	TRY(count_key(t->db, &key));
	return timed_data_add(t, buf_str(&key), rows);
}

bool
table_count_parse(struct str value, uint64_t *ret)
{
	if (value.len != CATALOG_COUNTER_BYTES)
		return false;
	memcpy(ret, value.ptr, sizeof(*ret));
	*ret = le64toh(*ret);
	return true;
}

enum status
table_count_read(struct timed *t, enum kv_read mode, uint64_t *ret, bool *ret_known)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str value;

	*ret = 0;
	*ret_known = !t->at_us && table_schema_of(t->db)->counted;
	if (!*ret_known)
		return STATUS_OK;
	TRY(count_key(t->db, &key));
	f = kv_get(t->tx, buf_str(&key), mode);
	TRY(kv_future_wait(f));
	if (kv_future_value(f, &value) && !table_count_parse(value, ret))
		return err_set(t->err, STATUS_CORRUPT,
			       "the number of rows of the table \"%.*s\" cannot be read",
			       STR_ARG(t->db->name));
	return STATUS_OK;
}

/* ---- The check ---- */

enum status
table_verify_count(struct catalog_verify *v, const uint64_t *rows)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	const struct table_schema *schema = table_schema_of(v->db);
	uint64_t count = 0;

	TRY(catalog_verify_cursor_open(v, &c, TIMED_SPACE_COUNT));
	while (!c.done) {
		if (c.tail.len || !schema->counts)
			catalog_verify_found(v, CATALOG_FINDING_KEY, c.pair.key,
					     "nothing can be at this place");
		else if (!table_count_parse(c.pair.value, &count))
			catalog_verify_found(v, CATALOG_FINDING_VALUE, c.pair.key, "not a counter");
		TRY(catalog_verify_cursor_next(v, &c));
	}
	if (!rows || !schema->counted || count == *rows)
		return STATUS_OK;
	buf_clear(&v->key);
	TRY(count_key(v->db, &v->key));
	catalog_verify_found(v, TABLE_FINDING_COUNT, buf_str(&v->key),
			     "the counter says %llu, and there are %llu rows",
			     (unsigned long long)count, (unsigned long long)*rows);
	return STATUS_OK;
}

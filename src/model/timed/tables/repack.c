/* Taking columns out of a row's own cell, and making leaves of them. */
#include <assert.h>

#include "model/timed/tables/packed.h"

/* Reads a row's own cell, unless it was `asked` for; `*ret_packed`: it has columns. */
static enum status
own_read(struct timed *t, struct str row, struct kv_future *asked, struct timed_cell *ret,
	 struct str *ret_value, bool *ret_packed)
{
	struct kv_future *f = asked ? asked : kv_get(t->tx, row, KV_READ);

	*ret_packed = false;
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, ret_value))
		return STATUS_OK;
	TRY(table_fail_corrupt(t, timed_cell_parse(*ret_value, ret, t->err)));
	*ret_packed = ret->packed.len;
	return STATUS_OK;
}

enum status
table_packed_filter(struct timed *t, struct str row, struct str value,
		    bool (*drops)(const void *arg, uint64_t column), const void *arg)
{
	AUTO(buf_release) struct buf kept = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct table_packed p;
	struct timed_cell own;
	uint64_t column;
	enum status status;
	struct str one;

	TRY(table_fail_corrupt(t, timed_cell_parse(value, &own, t->err)));
	p = table_packed_of(&own);
	while ((status = table_packed_next(&p, &column, &one)) == STATUS_OK)
		if (!drops(arg, column))
			table_packed_put(column, one, &kept);
	if (status != STATUS_NOT_FOUND)
		return table_fail_corrupt(t, status);
	TRY(buf_status(&kept));
	if (kept.len == own.packed.len)
		return STATUS_OK;
	own.packed = buf_str(&kept);
	return timed_cell_store(t, row, &own);
}

static bool
is_column(const void *arg, uint64_t column)
{
	const uint64_t *which = arg;

	return column == *which;
}

enum status
table_packed_forget(struct timed *t, struct str leaf, size_t row_len)
{
	const struct table_schema *schema = table_schema_of(t->db);
	const struct str row = str_of(leaf.ptr, row_len);
	const struct table_column *column;
	struct timed_cell own;
	struct str value;
	uint64_t id;
	bool packed;

	if (!schema->packed)
		return STATUS_OK;
	TRY(table_fail_corrupt(t, table_place_column(str_skip(leaf, row_len), &id)));
	column = table_column_by_id(schema, id);
	if (!column || !table_column_packs(column))
		return STATUS_OK;
	TRY(own_read(t, row, NULL, &own, &value, &packed));
	return packed ? table_packed_filter(t, row, value, is_column, &id) : STATUS_OK;
}

/* Makes a leaf of a packed column, unless there is one. */
static enum status
leaf_make(struct timed *t, struct str row, const struct timed_cell *own, uint64_t column,
	  struct str value)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct timed_cell leaf = *own;
	struct kv_future *f;
	struct str ignored;

	buf_append_str(&key, row);
	TRY(table_key_cell(t, column, NULL, &key));
	f = kv_get(t->tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (kv_future_value(f, &ignored))
		return STATUS_OK;
	assert(!table_schema_of(t->db)->whole); /* stamps have ended that */
	leaf.type = TIMED_LEAF;
	leaf.packed = (struct str){ NULL, 0 };
	leaf.value = value;
	return timed_cell_store(t, buf_str(&key), &leaf);
}

enum status
table_packed_unpack(struct timed *t, struct str row, struct kv_future *asked)
{
	struct timed_cell own;
	struct table_packed p;
	uint64_t column;
	enum status status;
	struct str value;
	bool packed;

	if (!table_schema_of(t->db)->packed)
		return STATUS_OK;
	TRY(own_read(t, row, asked, &own, &value, &packed));
	if (!packed)
		return STATUS_OK;
	p = table_packed_of(&own);
	while ((status = table_packed_next(&p, &column, &value)) == STATUS_OK)
		if (table_column_by_id(table_schema_of(t->db), column))
			TRY(leaf_make(t, row, &own, column, value));
	if (status != STATUS_NOT_FOUND)
		return table_fail_corrupt(t, status);
	own.packed = (struct str){ NULL, 0 };
	return timed_cell_store(t, row, &own);
}

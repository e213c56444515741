/* Columns of a table: finding one, adding some. */
#include "model/timed/rows/rows_int.h"

uint64_t
timed_column_find(const struct timed_schema *schema, struct str name)
{
	for (size_t i = 0; i < schema->column_count; i++)
		if (str_eq(schema->columns[i], name))
			return i + 1;
	return 0;
}

/* The schema as it is stored, with room for more columns; the transaction conflicts with others. */
static enum status
schema_read(struct timed *t, struct arena *arena, size_t more, struct timed_schema *ret)
{
	AUTO(buf_release) struct buf key = BUF_INIT(TIMED_SCHEMA_KEY_BYTES);
	struct kv_future *f;
	struct str value, *columns;
	enum status status;

	TRY(timed_schema_key(t->db, &key));
	f = kv_get(t->tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	status = kv_future_value(f, &value) ? timed_schema_parse(value, arena, ret, t->err)
					    : STATUS_CORRUPT;
	if (status == STATUS_CORRUPT)
		return err_set(t->err, status, "the schema of the database cannot be read");
	TRY(status);
	if (!ret->column_count)
		return err_set(t->err, STATUS_INVALID,
			       "the database has no columns: its rows are values and collections");
	columns = arena_alloc(arena, (ret->column_count + more) * sizeof(*columns));
	if (!columns)
		return STATUS_LIMIT;
	memcpy(columns, ret->columns, ret->column_count * sizeof(*columns));
	ret->columns = columns;
	return STATUS_OK;
}

static enum status
columns_add(struct timed *t, struct arena *arena, const struct str *names, size_t count)
{
	AUTO(buf_release) struct buf key = BUF_INIT(TIMED_SCHEMA_KEY_BYTES);
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct timed_schema schema;

	TRY(schema_read(t, arena, count, &schema));
	for (size_t i = 0; i < count; i++)
		schema.columns[schema.column_count++] = names[i];
	TRY(timed_schema_check(&schema, t->err));
	timed_schema_put(&schema, &value);
	if (buf_status(&value) == STATUS_LIMIT)
		return err_set(t->err, STATUS_INVALID, "the names of the columns are too long");
	TRY(buf_status(&value));
	TRY(timed_schema_key(t->db, &key));
	TRY(kv_set(t->tx, buf_str(&key), buf_str(&value)));
	return kv_touch_metadata_version(t->tx);
}

enum status
timed_columns_add(struct timed *t, const struct str *names, size_t count)
{
	struct arena *arena;
	enum status status;

	TRY(timed_write_begin(t));
	arena = arena_new(TIMED_SCHEMA_ARENA_BYTES);
	if (!arena)
		return STATUS_NOMEM;
	status = columns_add(t, arena, names, count);
	arena_free(arena);
	return status;
}

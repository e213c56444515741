#include "base/mem.h"
#include "base/utf8.h"
#include "catalog/format.h"
#include "kv/tuple.h"
#include "model/timed/timed_int.h"

/*
 * (P, SCHEMA) → (format, hash components, ((name, descending), …), (columns…)), written in the
 * transaction that creates the database and by those that add columns. It is kept in memory with
 * the description of the database.
 */

enum {
	SCHEMA_FORMAT = 1,
};

/* What an opened database keeps: the schema, in an arena of its own. */
struct schema_extension {
	struct arena *arena;
	struct timed_schema schema;
};

/* ---- The record ---- */

void
timed_schema_put(const struct timed_schema *schema, struct buf *value)
{
	tuple_put_u64(value, SCHEMA_FORMAT);
	tuple_put_u64(value, schema->hash_count);
	tuple_open(value);
	for (size_t i = 0; i < schema->key_count; i++) {
		tuple_open(value);
		tuple_put_str(value, schema->key[i].name);
		tuple_put_bool(value, schema->key[i].descending);
		tuple_close(value);
	}
	tuple_close(value);
	tuple_open(value);
	for (size_t i = 0; i < schema->column_count; i++)
		tuple_put_str(value, schema->columns[i]);
	tuple_close(value);
}

static enum status
schema_parse_key(struct tuple_reader r, struct arena *arena, struct timed_schema *ret)
{
	size_t cap = 0;

	while (r.rest.len) {
		struct timed_key_column *column;
		struct tuple_reader pair;

		TRY(tuple_next_nested(&r, &pair));
		ret->key = arena_grow(arena, ret->key, ret->key_count, &cap, sizeof(*ret->key));
		if (!ret->key)
			return STATUS_LIMIT;
		column = &ret->key[ret->key_count++];
		TRY(catalog_next_text(&pair, TUPLE_STRING, arena, true, &column->name));
		TRY(tuple_next_bool(&pair, &column->descending));
		if (pair.rest.len)
			return STATUS_CORRUPT;
	}
	return STATUS_OK;
}

static enum status
schema_parse_columns(struct tuple_reader r, struct arena *arena, struct timed_schema *ret)
{
	size_t cap = 0;

	while (r.rest.len) {
		ret->columns = arena_grow(arena, ret->columns, ret->column_count, &cap,
					  sizeof(*ret->columns));
		if (!ret->columns)
			return STATUS_LIMIT;
		TRY(catalog_next_text(&r, TUPLE_STRING, arena, true,
				      &ret->columns[ret->column_count++]));
	}
	return STATUS_OK;
}

enum status
timed_schema_parse(struct str value, struct arena *arena, struct timed_schema *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	struct timed_schema schema = { 0 };
	struct tuple_reader key, columns;
	uint64_t format, hash_count;

	TRY(catalog_format_next(&r, "schema of rows", SCHEMA_FORMAT, &format, err));
	TRY(tuple_next_u64(&r, &hash_count));
	TRY(tuple_next_nested(&r, &key));
	TRY(tuple_next_nested(&r, &columns));
	TRY(schema_parse_key(key, arena, &schema));
	TRY(schema_parse_columns(columns, arena, &schema));
	if (r.rest.len || hash_count == 0 || hash_count > schema.key_count ||
	    schema.key_count > TIMED_KEY_COLUMNS || schema.column_count > TIMED_COLUMNS)
		return STATUS_CORRUPT;
	schema.hash_count = (size_t)hash_count;
	*ret = schema;
	return STATUS_OK;
}

/* ---- With a description ---- */

void
timed_extension_free(void *arg)
{
	struct schema_extension *extension = arg;

	if (!extension)
		return;
	arena_free(extension->arena);
	mem_free(extension);
}

static enum status
extension_new(struct str value, struct schema_extension **ret, struct err *err)
{
	struct schema_extension *extension = mem_zalloc(sizeof(*extension));
	enum status status;

	if (!extension)
		return STATUS_NOMEM;
	extension->arena = arena_new(TIMED_SCHEMA_ARENA_BYTES);
	status = extension->arena
			 ? timed_schema_parse(value, extension->arena, &extension->schema, err)
			 : STATUS_NOMEM;
	if (status == STATUS_CORRUPT)
		status = err_set(err, status, "the schema of the database cannot be read");
	if (status == STATUS_OK)
		*ret = extension;
	else
		timed_extension_free(extension);
	return status;
}

enum status
timed_schema_key(const struct catalog_db *db, struct buf *key)
{
	timed_key_space(key, db, TIMED_SPACE_SCHEMA);
	return buf_status(key);
}

enum status
timed_extend(struct kv_tx *tx, const struct catalog_db *db, void **ret, struct err *err)
{
	AUTO(buf_release) struct buf key = BUF_INIT(TIMED_SCHEMA_KEY_BYTES);
	struct schema_extension *extension = NULL;
	struct kv_future *f;
	struct str value;

	TRY(timed_schema_key(db, &key));
	f = kv_get(tx, buf_str(&key), KV_SNAPSHOT);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return err_set(err, STATUS_CORRUPT, "the database has no schema");
	TRY(extension_new(value, &extension, err));
	*ret = extension;
	return STATUS_OK;
}

const struct timed_schema *
timed_schema_of(const struct catalog_db *db)
{
	const struct schema_extension *extension = db->extension;

	return &extension->schema;
}

uint64_t
timed_history_seconds(const struct catalog_db *db)
{
	return db->options[TIMED_OPTION_HISTORY_SECONDS];
}

uint64_t
timed_ttl_ms(const struct catalog_db *db)
{
	return db->options[TIMED_OPTION_TTL_MS];
}

/* ---- Creating ---- */

static bool
name_is_known(const struct timed_schema *schema, size_t keys, size_t columns, struct str name)
{
	for (size_t i = 0; i < keys; i++)
		if (str_eq(schema->key[i].name, name))
			return true;
	for (size_t i = 0; i < columns; i++)
		if (str_eq(schema->columns[i], name))
			return true;
	return false;
}

static enum status
check_column_name(const struct timed_schema *schema, size_t keys, size_t columns, struct str name,
		  struct err *err)
{
	if (!name.len || name.len > TIMED_NAME_BYTES || utf8_valid_prefix(name) < name.len)
		return err_set(err, STATUS_INVALID,
			       "a column's name has 1 to %d bytes of UTF-8 (TIMED_NAME_BYTES)",
			       TIMED_NAME_BYTES);
	if (name_is_known(schema, keys, columns, name))
		return err_set(err, STATUS_INVALID, "two columns are called \"%.*s\"",
			       STR_ARG(name));
	return STATUS_OK;
}

enum status
timed_schema_check(const struct timed_schema *schema, struct err *err)
{
	if (schema->hash_count == 0 || schema->hash_count > schema->key_count)
		return err_set(err, STATUS_INVALID, "a key has one hash component at least");
	if (schema->key_count > TIMED_KEY_COLUMNS)
		return err_set(err, STATUS_INVALID,
			       "a key may have %d components (TIMED_KEY_COLUMNS)",
			       TIMED_KEY_COLUMNS);
	if (schema->column_count > TIMED_COLUMNS)
		return err_set(err, STATUS_INVALID, "a table may have %d columns (TIMED_COLUMNS)",
			       TIMED_COLUMNS);
	for (size_t i = 0; i < schema->key_count; i++) {
		TRY(check_column_name(schema, i, 0, schema->key[i].name, err));
		if (schema->key[i].descending && i < schema->hash_count)
			return err_set(err, STATUS_INVALID,
				       "the hash component \"%.*s\" cannot be descending",
				       STR_ARG(schema->key[i].name));
	}
	for (size_t i = 0; i < schema->column_count; i++)
		TRY(check_column_name(schema, schema->key_count, i, schema->columns[i], err));
	return STATUS_OK;
}

enum status
timed_create_of(struct kv_tx *tx, const struct catalog_kind *kind, struct str name,
		const struct timed_schema *schema, uint64_t default_ttl_ms, bool replaces,
		struct err *err)
{
	const uint64_t options[CATALOG_OPTIONS] = { [TIMED_OPTION_TTL_MS] = default_ttl_ms };
	AUTO(buf_release) struct buf key = BUF_INIT(TIMED_SCHEMA_KEY_BYTES);
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct catalog_db *db;
	enum status status;

	TRY(timed_schema_check(schema, err));
	timed_schema_put(schema, &value);
	if (buf_status(&value) == STATUS_LIMIT)
		return err_set(err, STATUS_INVALID, "the names of the columns are too long");
	TRY(buf_status(&value));
	TRY((replaces ? catalog_replace : catalog_create)(tx, kind, name, options, err));
	/* Bare: it has no schema yet. */
	TRY(catalog_open_bare(tx, NULL, kind->space, name, &db, err));
	status = timed_schema_key(db, &key);
	if (status == STATUS_OK)
		status = kv_set(tx, buf_str(&key), buf_str(&value));
	catalog_db_unref(db);
	return status;
}

/* Tables as the catalog has them: names, creating, deleting, emptying, listing. */
#include "base/rand.h"
#include "model/timed/tables/tables_int.h"

enum {
	NAME_DOT = '.',
	UUID_VERSION_AT = 6,
	UUID_VARIANT_AT = 8,
	TABLES_AT_ONCE = 500, /* names that are listed while a keyspace is dropped */
};

enum status
table_name(struct str keyspace, struct str table, struct buf *ret, struct err *err)
{
	TRY(table_check_name("a keyspace", keyspace, err));
	TRY(table_check_name("a table", table, err));
	buf_append_str(ret, keyspace);
	buf_append_byte(ret, NAME_DOT);
	buf_append_str(ret, table);
	return buf_status(ret);
}

void
table_name_split(struct str name, struct str *ret_keyspace, struct str *ret_table)
{
	const char *dot = name.len ? memchr(name.ptr, NAME_DOT, name.len) : NULL;
	size_t len = dot ? (size_t)(dot - name.ptr) : name.len;

	*ret_keyspace = str_of(name.ptr, len);
	*ret_table = dot ? str_skip(name, len + 1) : str_of(name.ptr, 0);
}

/* ---- Creating ---- */

/* A UUID of version 4. */
static void
id_make(uint8_t ret[TABLE_ID_BYTES])
{
	rand_bytes(ret, TABLE_ID_BYTES);
	ret[UUID_VERSION_AT] = (uint8_t)((ret[UUID_VERSION_AT] & 0x0f) | 0x40);
	ret[UUID_VARIANT_AT] = (uint8_t)((ret[UUID_VARIANT_AT] & 0x3f) | 0x80);
}

/* The columns of these kinds, with ids, behind those that are there. */
static void
columns_take(const struct table_schema *given, enum table_column_kind from,
	     enum table_column_kind to, struct table_column *columns, struct table_schema *ret)
{
	for (size_t i = 0; i < given->column_count; i++) {
		struct table_column *c = &columns[ret->column_count];

		if (given->columns[i].kind < from || given->columns[i].kind > to)
			continue;
		*c = given->columns[i];
		c->id = ret->next_id++;
		ret->static_count += c->kind == TABLE_STATIC;
		ret->counters = ret->counters || c->storage == TABLE_COUNTER;
		ret->column_count++;
	}
}

/* The schema that a table begins with. */
static enum status
schema_make(const struct table_schema *given, uint64_t ttl_ms, struct arena *arena,
	    struct table_schema *ret)
{
	struct table_column *columns = arena_alloc(arena,
						   given->column_count * sizeof(*columns) + 1);

	if (!columns)
		return STATUS_LIMIT;
	*ret = (struct table_schema){ .next_id = 1, .columns = columns };
	id_make(ret->id);
	columns_take(given, TABLE_HASH, TABLE_HASH, columns, ret);
	ret->hash_count = ret->column_count;
	columns_take(given, TABLE_RANGE, TABLE_RANGE, columns, ret);
	ret->key_count = ret->column_count;
	columns_take(given, TABLE_STATIC, TABLE_REGULAR, columns, ret);
	TRY(table_properties_merge(NULL, 0, given->properties, given->property_count, arena,
				   &ret->properties, &ret->property_count));
	ret->packed = table_schema_asks_to_pack(ret);
	ret->counts = given->counts && !ret->counters && !ret->static_count && !ttl_ms;
	ret->counted = ret->counts;
	ret->whole = table_schema_may_be_whole(ret);
	return STATUS_OK;
}

/* Writes the schema of a table that this transaction has created. */
static enum status
schema_write_new(struct kv_tx *tx, struct str name, const struct table_schema *schema,
		 struct err *err)
{
	struct catalog_db *db;
	enum status status;

	/* Bare: it has no schema yet. */
	TRY(catalog_open_bare(tx, NULL, CATALOG_SPACE_TABLE, name, &db, err));
	status = table_schema_write(tx, db, schema, err);
	catalog_db_unref(db);
	return status;
}

static enum status
create(struct kv_tx *tx, struct str name, const struct table_schema *given, uint64_t default_ttl_ms,
       struct arena *arena, struct err *err)
{
	const uint64_t options[CATALOG_OPTIONS] = { [TIMED_OPTION_TTL_MS] = default_ttl_ms };
	struct str keyspace, table;
	struct table_schema schema;

	if (given->column_count > TABLE_COLUMNS)
		return err_set(err, STATUS_INVALID, "a table may have %d columns (TABLE_COLUMNS)",
			       TABLE_COLUMNS);
	TRY(schema_make(given, default_ttl_ms, arena, &schema));
	TRY(table_schema_check(&schema, err));
	if (schema.counters && default_ttl_ms)
		return err_set(err, STATUS_INVALID, "counters do not expire");
	table_name_split(name, &keyspace, &table);
	TRY(table_keyspace_check(tx, keyspace, err));
	TRY(catalog_create(tx, &table_kind, name, options, err));
	TRY(schema_write_new(tx, name, &schema, err));
	return table_schemas_touch(tx);
}

enum status
table_create(struct kv_tx *tx, struct str name, const struct table_schema *schema,
	     uint64_t default_ttl_ms, struct err *err)
{
	struct arena *arena = arena_new(TABLE_RECORD_ARENA_BYTES);
	enum status status;

	if (!arena)
		return STATUS_NOMEM;
	status = create(tx, name, schema, default_ttl_ms, arena, err);
	arena_free(arena);
	return status;
}

/* ---- Deleting ---- */

enum status
table_drop(struct kv_tx *tx, struct str name, struct err *err)
{
	TRY(catalog_delete(tx, CATALOG_SPACE_TABLE, name, err));
	return table_schemas_touch(tx);
}

/* The table of that name, which has just taken the place of `from`, gets its indexes. */
static enum status
indexes_carry(struct kv_tx *tx, const struct catalog_db *from, struct err *err)
{
	struct catalog_db *to;
	enum status status;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, from->name, &to, err));
	status = table_indexes_carry(tx, from, to, err);
	catalog_db_unref(to);
	return status;
}

/* Gives the table that has taken the place of another one a history of its own. */
static enum status
history_set_new(struct kv_tx *tx, struct str name, const struct timed_clock *clock,
		struct timed_history_bounds bounds, struct err *err)
{
	struct catalog_db *db;
	enum status status;
	struct timed t;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, name, &db, err));
	timed_init(&t, tx, db, clock, err);
	status = timed_history_set(&t, bounds);
	catalog_db_unref(db);
	return status;
}

static enum status
truncate_opened(struct kv_tx *tx, const struct catalog_db *db, const struct timed_clock *clock,
		struct arena *arena, struct err *err)
{
	uint64_t options[CATALOG_OPTIONS];
	struct timed_history_bounds bounds = { 0 };
	struct table_schema schema;
	struct timed t;

	TRY(catalog_db_check_writable(db, err));
	TRY(table_schema_read(tx, db, arena, &schema, err));
	schema.whole = table_schema_may_be_whole(&schema);
	/* No row is there any more, so the count is known again. */
	schema.counted = schema.counts && !schema.stamped && !schema.static_count &&
			 !timed_ttl_ms(db);
	memcpy(options, db->options, sizeof(options));
	if (timed_history_seconds(db)) {
		timed_init(&t, tx, db, clock, err);
		TRY(timed_history_bounds_get(&t, &bounds));
		options[TIMED_OPTION_HISTORY_SECONDS] = 0;
	}
	TRY(catalog_replace(tx, &table_kind, db->name, options, err));
	TRY(schema_write_new(tx, db->name, &schema, err));
	TRY(indexes_carry(tx, db, err));
	return bounds.seconds ? history_set_new(tx, db->name, clock, bounds, err) : STATUS_OK;
}

enum status
table_truncate(struct kv_tx *tx, struct str name, const struct timed_clock *clock, struct err *err)
{
	struct arena *arena = arena_new(TABLE_RECORD_ARENA_BYTES);
	struct catalog_db *db;
	enum status status;

	if (!arena)
		return STATUS_NOMEM;
	status = catalog_open(tx, NULL, CATALOG_SPACE_TABLE, name, &db, err);
	if (status == STATUS_OK) {
		status = truncate_opened(tx, db, clock, arena, err);
		catalog_db_unref(db);
	}
	arena_free(arena);
	return status;
}

/* ---- Listing ---- */

enum status
table_list(struct kv_tx *tx, struct str keyspace, struct str after, size_t limit,
	   struct arena *arena, struct name_page *ret)
{
	AUTO(buf_release) struct buf begin = BUF_INIT(CATALOG_NAME_BYTES);
	AUTO(buf_release) struct buf end = BUF_INIT(CATALOG_NAME_BYTES);
	struct name_range range = { .limit = limit };

	if (keyspace.len) {
		buf_append_str(&begin, keyspace);
		buf_append_byte(&begin, NAME_DOT);
		buf_append_str(&end, keyspace);
		buf_append_byte(&end, NAME_DOT + 1);
		TRY(buf_status(&begin));
		TRY(buf_status(&end));
		range.begin = buf_str(&begin);
		range.end = buf_str(&end);
		range.has_begin = range.has_end = range.exclusive_end = true;
	}
	if (after.len) {
		range.begin = after;
		range.has_begin = range.exclusive_begin = true;
	}
	return catalog_list(tx, CATALOG_SPACE_TABLE, &range, arena, ret);
}

/* ---- Deleting a keyspace ---- */

static enum status
drop_tables(struct kv_tx *tx, struct str keyspace, struct arena *arena, struct err *err)
{
	struct name_page page;

	/* The first page again: the transaction sees what it has deleted. */
	do {
		arena_clear(arena);
		TRY(table_list(tx, keyspace, STR(""), TABLES_AT_ONCE, arena, &page));
		for (size_t i = 0; i < page.count; i++)
			TRY(table_drop(tx, page.names[i], err));
	} while (page.more);
	return STATUS_OK;
}

enum status
table_keyspace_drop(struct kv_tx *tx, struct str name, struct err *err)
{
	struct arena *arena;
	enum status status;

	TRY(table_keyspace_check(tx, name, err));
	arena = arena_new(TABLE_RECORD_ARENA_BYTES);
	if (!arena)
		return STATUS_NOMEM;
	status = drop_tables(tx, name, arena, err);
	arena_free(arena);
	return status == STATUS_OK ? table_keyspace_clear(tx, name) : status;
}

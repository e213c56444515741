/*
 * (P, TABLE) → (format, id, next column id, hash components, key components, counters, (column, …),
 *              ((column…, dropped), …), ((property, value), …)[, (id of a column with pieces, …)])
 *
 * In a table whose clients have ordered writes by stamps of their own the list of columns with
 * pieces is there in any case, and the format is another one, which an older frond refuses.
 * In a table whose rows may be packed that list is followed by whether clients have done so, in one
 * more format. A format with the same members says that each row is one pair so far (whole.c). In a
 * further one, of tables that count their rows, that is followed by whether rows may be packed and
 * whether the count is still kept. The last format has the same members, and says that the table
 * counts its rows and that each of them is one pair so far.
 *
 *     column = (id, kind, storage, descending, name, type)
 *
 * what a table is. It is written by the transactions that create and alter the table, and kept in
 * memory with the description of the database.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "catalog/format.h"
#include "kv/tuple.h"
#include "model/timed/tables/packed.h"

enum {
	SCHEMA_FORMAT = 1,
	SCHEMA_FORMAT_PIECES = 2,  /* with the columns whose values may lie in pieces */
	SCHEMA_FORMAT_STAMPED = 3, /* the same, and clients' stamps order writes */
	SCHEMA_FORMAT_PACKED = 4,  /* rows may be packed; whether stamps order writes is behind */
	SCHEMA_FORMAT_COUNTS = 5,  /* rows are counted; whether they may be packed is behind */
	SCHEMA_FORMAT_WHOLE = 6,   /* as SCHEMA_FORMAT_PACKED, and rows are whole */
	SCHEMA_FORMAT_COUNTS_WHOLE = 7, /* as SCHEMA_FORMAT_COUNTS, and rows are whole */
};

/* ---- Properties ---- */

void
table_properties_put(const struct table_property *properties, size_t count, struct buf *value)
{
	tuple_open(value);
	for (size_t i = 0; i < count; i++) {
		tuple_open(value);
		tuple_put_str(value, properties[i].name);
		tuple_put_str(value, properties[i].value);
		tuple_close(value);
	}
	tuple_close(value);
}

enum status
table_properties_next(struct tuple_reader *r, struct arena *arena,
		      const struct table_property **ret, size_t *ret_count)
{
	struct table_property *properties = NULL;
	struct tuple_reader list, pair;
	size_t count = 0, cap = 0;

	TRY(tuple_next_nested(r, &list));
	while (list.rest.len) {
		TRY(tuple_next_nested(&list, &pair));
		properties = arena_grow(arena, properties, count, &cap, sizeof(*properties));
		if (!properties)
			return STATUS_LIMIT;
		TRY(catalog_next_text(&pair, TUPLE_STRING, arena, true, &properties[count].name));
		TRY(catalog_next_text(&pair, TUPLE_STRING, arena, true, &properties[count].value));
		if (pair.rest.len)
			return STATUS_CORRUPT;
		count++;
	}
	*ret = properties;
	*ret_count = count;
	return STATUS_OK;
}

static int
property_compare(const void *a, const void *b)
{
	const struct table_property *x = a, *y = b;

	return str_cmp(x->name, y->name);
}

enum status
table_properties_merge(const struct table_property *old, size_t old_count,
		       const struct table_property *set, size_t set_count, struct arena *arena,
		       const struct table_property **ret, size_t *ret_count)
{
	struct table_property *all = arena_alloc(arena, (old_count + set_count) * sizeof(*all) + 1);
	size_t count = old_count;

	if (!all)
		return STATUS_LIMIT;
	if (old_count)
		memcpy(all, old, old_count * sizeof(*all));
	for (size_t i = 0; i < set_count; i++) {
		size_t at = 0;

		while (at < count && !str_eq(all[at].name, set[i].name))
			at++;
		all[at] = set[i];
		count += at == count;
	}
	qsort(all, count, sizeof(*all), property_compare);
	*ret = all;
	*ret_count = count;
	return STATUS_OK;
}

/* ---- The record ---- */

static void
column_put(const struct table_column *column, struct buf *value)
{
	tuple_put_u64(value, column->id);
	tuple_put_u64(value, column->kind);
	tuple_put_u64(value, column->storage);
	tuple_put_bool(value, column->descending);
	tuple_put_str(value, column->name);
	tuple_put_str(value, column->type);
}

static bool
has_pieces(const struct table_schema *schema)
{
	for (size_t i = 0; i < schema->column_count; i++)
		if (schema->columns[i].has_pieces)
			return true;
	return false;
}

static void
pieces_put(const struct table_schema *schema, struct buf *value)
{
	tuple_open(value);
	for (size_t i = 0; i < schema->column_count; i++)
		if (schema->columns[i].has_pieces)
			tuple_put_u64(value, schema->columns[i].id);
	tuple_close(value);
}

void
table_schema_put(const struct table_schema *schema, struct buf *value)
{
	bool both = schema->counts && schema->whole;
	uint64_t format = both                 ? SCHEMA_FORMAT_COUNTS_WHOLE
			  : schema->counts     ? SCHEMA_FORMAT_COUNTS
			  : schema->whole      ? SCHEMA_FORMAT_WHOLE
			  : schema->packed     ? SCHEMA_FORMAT_PACKED
			  : schema->stamped    ? SCHEMA_FORMAT_STAMPED
			  : has_pieces(schema) ? SCHEMA_FORMAT_PIECES
					       : SCHEMA_FORMAT;

	tuple_put_u64(value, format);
	tuple_put_uuid(value, schema->id);
	tuple_put_u64(value, schema->next_id);
	tuple_put_u64(value, schema->hash_count);
	tuple_put_u64(value, schema->key_count);
	tuple_put_bool(value, schema->counters);
	tuple_open(value);
	for (size_t i = 0; i < schema->column_count; i++) {
		tuple_open(value);
		column_put(&schema->columns[i], value);
		tuple_close(value);
	}
	tuple_close(value);
	tuple_open(value);
	for (size_t i = 0; i < schema->dropped_count; i++) {
		tuple_open(value);
		column_put(&schema->dropped[i].column, value);
		tuple_put_u64(value, schema->dropped[i].dropped_us);
		tuple_close(value);
	}
	tuple_close(value);
	table_properties_put(schema->properties, schema->property_count, value);
	if (format >= SCHEMA_FORMAT_PIECES)
		pieces_put(schema, value);
	if (format >= SCHEMA_FORMAT_PACKED)
		tuple_put_bool(value, schema->stamped);
	if (schema->counts) {
		tuple_put_bool(value, schema->packed);
		tuple_put_bool(value, schema->counted);
	}
}

static enum status
column_next(struct tuple_reader *r, struct arena *arena, struct table_column *ret)
{
	uint64_t kind, storage;

	TRY(tuple_next_u64(r, &ret->id));
	TRY(tuple_next_u64(r, &kind));
	TRY(tuple_next_u64(r, &storage));
	TRY(tuple_next_bool(r, &ret->descending));
	ret->has_pieces = false;
	if (!ret->id || kind < TABLE_HASH || kind > TABLE_REGULAR || storage > TABLE_COUNTER)
		return STATUS_CORRUPT;
	ret->kind = (enum table_column_kind)kind;
	ret->storage = (enum table_storage)storage;
	TRY(catalog_next_text(r, TUPLE_STRING, arena, true, &ret->name));
	return catalog_next_text(r, TUPLE_STRING, arena, true, &ret->type);
}

static enum status
columns_next(struct tuple_reader *r, struct arena *arena, struct table_schema *ret,
	     struct table_column **ret_columns)
{
	struct table_column *columns = NULL;
	struct tuple_reader list, one;
	size_t count = 0, cap = 0;

	TRY(tuple_next_nested(r, &list));
	while (list.rest.len) {
		TRY(tuple_next_nested(&list, &one));
		columns = arena_grow(arena, columns, count, &cap, sizeof(*columns));
		if (!columns)
			return STATUS_LIMIT;
		TRY(column_next(&one, arena, &columns[count]));
		if (one.rest.len || columns[count].id >= ret->next_id)
			return STATUS_CORRUPT;
		ret->static_count += columns[count].kind == TABLE_STATIC;
		count++;
	}
	ret->columns = *ret_columns = columns;
	ret->column_count = count;
	return STATUS_OK;
}

static enum status
dropped_next(struct tuple_reader *r, struct arena *arena, struct table_schema *ret)
{
	struct table_dropped *dropped = NULL;
	struct tuple_reader list, one;
	size_t count = 0, cap = 0;

	TRY(tuple_next_nested(r, &list));
	while (list.rest.len) {
		TRY(tuple_next_nested(&list, &one));
		dropped = arena_grow(arena, dropped, count, &cap, sizeof(*dropped));
		if (!dropped)
			return STATUS_LIMIT;
		TRY(column_next(&one, arena, &dropped[count].column));
		TRY(tuple_next_u64(&one, &dropped[count].dropped_us));
		if (one.rest.len)
			return STATUS_CORRUPT;
		count++;
	}
	ret->dropped = dropped;
	ret->dropped_count = count;
	return STATUS_OK;
}

/* The columns are in the order that struct table_schema says. */
static bool
columns_are_in_order(const struct table_schema *schema)
{
	if (!schema->hash_count || schema->hash_count > schema->key_count ||
	    schema->key_count > TABLE_KEY_COLUMNS || schema->key_count > schema->column_count ||
	    schema->column_count > TABLE_COLUMNS)
		return false;
	for (size_t i = 0; i < schema->column_count; i++) {
		enum table_column_kind kind = schema->columns[i].kind;

		if (i < schema->hash_count  ? kind != TABLE_HASH
		    : i < schema->key_count ? kind != TABLE_RANGE
					    : kind != TABLE_STATIC && kind != TABLE_REGULAR)
			return false;
		if (i > schema->key_count && schema->columns[i].id <= schema->columns[i - 1].id)
			return false;
	}
	return true;
}

static enum status
id_next(struct tuple_reader *r, uint8_t ret[TABLE_ID_BYTES])
{
	struct tuple_elem e;

	TRY(tuple_next_elem(r, &e));
	if (e.kind != TUPLE_UUID)
		return STATUS_CORRUPT;
	memcpy(ret, e.raw.ptr, TABLE_ID_BYTES);
	return STATUS_OK;
}

/* `columns` are those of the schema, which is being read. */
static enum status
pieces_next(struct tuple_reader *r, const struct table_schema *schema, struct table_column *columns)
{
	struct tuple_reader list;
	uint64_t id;

	TRY(tuple_next_nested(r, &list));
	while (list.rest.len) {
		const struct table_column *c;

		TRY(tuple_next_u64(&list, &id));
		c = table_column_by_id(schema, id);
		if (!c || (c->kind != TABLE_STATIC && c->kind != TABLE_REGULAR))
			return STATUS_CORRUPT;
		columns[c - schema->columns].has_pieces = true;
	}
	return STATUS_OK;
}

static enum status
schema_next(struct tuple_reader *r, uint64_t format, struct arena *arena, struct table_schema *ret)
{
	struct table_column *columns;
	uint64_t hash_count, key_count;

	TRY(id_next(r, ret->id));
	TRY(tuple_next_u64(r, &ret->next_id));
	TRY(tuple_next_u64(r, &hash_count));
	TRY(tuple_next_u64(r, &key_count));
	TRY(tuple_next_bool(r, &ret->counters));
	ret->hash_count = (size_t)hash_count;
	ret->key_count = (size_t)key_count;
	TRY(columns_next(r, arena, ret, &columns));
	TRY(dropped_next(r, arena, ret));
	TRY(table_properties_next(r, arena, &ret->properties, &ret->property_count));
	if (!columns_are_in_order(ret))
		return STATUS_CORRUPT;
	ret->stamped = format == SCHEMA_FORMAT_STAMPED;
	ret->whole = format == SCHEMA_FORMAT_WHOLE || format == SCHEMA_FORMAT_COUNTS_WHOLE;
	ret->packed = format == SCHEMA_FORMAT_PACKED || format == SCHEMA_FORMAT_WHOLE;
	if (format >= SCHEMA_FORMAT_PIECES)
		TRY(pieces_next(r, ret, columns));
	if (format >= SCHEMA_FORMAT_PACKED)
		TRY(tuple_next_bool(r, &ret->stamped));
	ret->counts = format == SCHEMA_FORMAT_COUNTS || format == SCHEMA_FORMAT_COUNTS_WHOLE;
	if (ret->counts) {
		TRY(tuple_next_bool(r, &ret->packed));
		TRY(tuple_next_bool(r, &ret->counted));
	}
	if ((ret->packed || ret->counts) && ret->counters)
		return STATUS_CORRUPT;
	ret->packs = ret->packed && table_schema_asks_to_pack(ret);
	if (ret->whole && (!ret->packs || ret->stamped || ret->static_count))
		return STATUS_CORRUPT;
	return r->rest.len ? STATUS_CORRUPT : STATUS_OK;
}

enum status
table_schema_parse(struct str value, struct arena *arena, struct table_schema *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	struct table_schema schema = { 0 };
	enum status status;
	uint64_t format;

	TRY(catalog_format_next(&r, "schema of a table", SCHEMA_FORMAT_COUNTS_WHOLE, &format, err));
	status = schema_next(&r, format, arena, &schema);
	if (status == STATUS_NOT_FOUND) /* an element is missing */
		status = STATUS_CORRUPT;
	if (status == STATUS_OK)
		*ret = schema;
	return status;
}

/* ---- With a description ---- */

enum status
table_schema_key(const struct catalog_db *db, struct buf *key)
{
	timed_key_space(key, db, TIMED_SPACE_TABLE);
	return buf_status(key);
}

enum status
table_schema_get(struct kv_tx *tx, const struct catalog_db *db, enum kv_read mode,
		 struct arena *arena, struct table_schema *ret, struct err *err)
{
	AUTO(buf_release) struct buf key = BUF_INIT(TIMED_SCHEMA_KEY_BYTES);
	enum status status;
	struct kv_future *f;
	struct str value;

	TRY(table_schema_key(db, &key));
	f = kv_get(tx, buf_str(&key), mode);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return err_set(err, STATUS_CORRUPT, "the table has no schema");
	status = table_schema_parse(value, arena, ret, err);
	if (status == STATUS_CORRUPT)
		return err_set(err, status, "the schema of the table cannot be read");
	return status;
}

enum status
table_schema_read(struct kv_tx *tx, const struct catalog_db *db, struct arena *arena,
		  struct table_schema *ret, struct err *err)
{
	return table_schema_get(tx, db, KV_READ, arena, ret, err);
}

const struct table_schema *
table_schema_of(const struct catalog_db *db)
{
	const struct table_extension *extension = db->extension;

	return &extension->schema;
}

/* ---- Finding ---- */

const struct table_column *
table_column_named(const struct table_schema *schema, struct str name)
{
	for (size_t i = 0; i < schema->column_count; i++)
		if (str_eq(schema->columns[i].name, name))
			return &schema->columns[i];
	return NULL;
}

const struct table_column *
table_column_by_id(const struct table_schema *schema, uint64_t id)
{
	size_t from = schema->key_count, to = schema->column_count;

	/* Ids are given in the order of columns: one tells the place, until a column is dropped. */
	if (id && id <= schema->column_count && schema->columns[id - 1].id == id)
		return &schema->columns[id - 1];
	/* Those outside of the key are in the order of their ids. */
	while (from < to) {
		size_t at = from + (to - from) / 2;

		if (schema->columns[at].id == id)
			return &schema->columns[at];
		if (schema->columns[at].id < id)
			from = at + 1;
		else
			to = at;
	}
	for (size_t i = 0; i < schema->key_count; i++)
		if (schema->columns[i].id == id)
			return &schema->columns[i];
	return NULL;
}

struct str
table_property_of(const struct table_schema *schema, struct str name)
{
	for (size_t i = 0; i < schema->property_count; i++)
		if (str_eq(schema->properties[i].name, name))
			return schema->properties[i].value;
	return (struct str){ NULL, 0 };
}

bool
table_schema_asks_to_pack(const struct table_schema *schema)
{
	return !schema->counters &&
	       str_eq(table_property_of(schema, STR(TABLE_PROPERTY_PACKED)), STR("true"));
}

bool
table_schema_may_be_whole(const struct table_schema *schema)
{
	bool whole = schema->packed && table_schema_asks_to_pack(schema) && !schema->stamped &&
		     !schema->static_count;

	for (size_t i = schema->key_count; i < schema->column_count && whole; i++)
		whole = table_column_packs(&schema->columns[i]);
	return whole;
}

/* ---- Checking ---- */

enum status
table_check_text(const char *what, struct str text, size_t least, size_t most, const char *limit,
		 struct err *err)
{
	if (text.len >= least && text.len <= most && utf8_valid_prefix(text) == text.len)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID, "%s has %zu to %zu bytes of UTF-8 (%s)", what, least,
		       most, limit);
}

enum status
table_check_name(const char *what, struct str name, struct err *err)
{
	bool good = name.len && name.len <= TABLE_NAME_BYTES;

	for (size_t i = 0; good && i < name.len; i++) {
		char c = name.ptr[i];

		good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		       c == '_';
	}
	if (good)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "the name of %s has 1 to %d letters, digits and underscores "
		       "(TABLE_NAME_BYTES)",
		       what, TABLE_NAME_BYTES);
}

enum status
table_check_properties(const struct table_property *properties, size_t count, struct err *err)
{
	if (count > TABLE_PROPERTIES)
		return err_set(err, STATUS_INVALID, "there may be %d properties (TABLE_PROPERTIES)",
			       TABLE_PROPERTIES);
	for (size_t i = 0; i < count; i++) {
		const struct table_property *p = &properties[i];

		TRY(table_check_text("the name of a property", p->name, 1, TABLE_PROPERTY_BYTES,
				     "TABLE_PROPERTY_BYTES", err));
		TRY(table_check_text("a property", p->value, 0, TABLE_PROPERTY_BYTES - p->name.len,
				     "TABLE_PROPERTY_BYTES, its name with it", err));
	}
	return STATUS_OK;
}

static enum status
check_column(const struct table_schema *schema, size_t at, struct err *err)
{
	const struct table_column *c = &schema->columns[at];

	TRY(table_check_text("the name of a column", c->name, 1, TABLE_COLUMN_BYTES,
			     "TABLE_COLUMN_BYTES", err));
	TRY(table_check_text("the type of a column", c->type, 0, TABLE_TYPE_BYTES,
			     "TABLE_TYPE_BYTES", err));
	for (size_t i = 0; i < at; i++)
		if (str_eq(schema->columns[i].name, c->name))
			return err_set(err, STATUS_INVALID, "two columns are called \"%.*s\"",
				       STR_ARG(c->name));
	if (c->descending && c->kind != TABLE_RANGE)
		return err_set(
			err, STATUS_INVALID,
			"the column \"%.*s\" cannot be descending: rows are not in its order",
			STR_ARG(c->name));
	if (at < schema->key_count && c->storage != TABLE_SINGLE)
		return err_set(err, STATUS_INVALID,
			       "a column of the key has a single value, and \"%.*s\" has not",
			       STR_ARG(c->name));
	if (at >= schema->key_count && schema->counters != (c->storage == TABLE_COUNTER))
		return err_set(err, STATUS_INVALID,
			       "counters and other columns cannot be in one table");
	if (c->kind == TABLE_STATIC && schema->key_count == schema->hash_count)
		return err_set(err, STATUS_INVALID,
			       "without range components in the key no column can be static");
	return STATUS_OK;
}

enum status
table_schema_check(const struct table_schema *schema, struct err *err)
{
	if (!schema->hash_count)
		return err_set(err, STATUS_INVALID, "a key has one hash component at least");
	if (schema->key_count > TABLE_KEY_COLUMNS)
		return err_set(err, STATUS_INVALID,
			       "a key may have %d components (TABLE_KEY_COLUMNS)",
			       TABLE_KEY_COLUMNS);
	if (schema->column_count > TABLE_COLUMNS)
		return err_set(err, STATUS_INVALID, "a table may have %d columns (TABLE_COLUMNS)",
			       TABLE_COLUMNS);
	if (!columns_are_in_order(schema))
		return err_set(err, STATUS_INVALID, "the columns of the key do not come first");
	for (size_t i = 0; i < schema->column_count; i++)
		TRY(check_column(schema, i, err));
	return table_check_properties(schema->properties, schema->property_count, err);
}

enum status
table_schema_write(struct kv_tx *tx, const struct catalog_db *db, const struct table_schema *schema,
		   struct err *err)
{
	AUTO(buf_release) struct buf key = BUF_INIT(TIMED_SCHEMA_KEY_BYTES);
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	TRY(table_schema_check(schema, err));
	table_schema_put(schema, &value);
	if (buf_status(&value) == STATUS_LIMIT)
		return err_set(err, STATUS_INVALID,
			       "the schema of a table may have %d bytes (KV_LIMIT_VALUE_BYTES)",
			       KV_LIMIT_VALUE_BYTES);
	TRY(buf_status(&value));
	TRY(table_schema_key(db, &key));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

/* Tables of a dump (dump_tables.c): each row is cleared, and then written cell by cell. */
#include "cli/load_tables.h"

#include "base/words.h"
#include "cli/rows.h"
#include "cli/tables_indexes.h"
#include "model/timed/tables/deletions.h"
#include "model/timed/tables/keyspaces.h"

static const char *const kind_names[] = {
	[TABLE_HASH] = "hash",
	[TABLE_RANGE] = "range",
	[TABLE_STATIC] = "static",
	[TABLE_REGULAR] = "regular",
};

static const char *const storage_names[] = {
	[TABLE_SINGLE] = "single", [TABLE_MAP] = "map",         [TABLE_SET] = "set",
	[TABLE_LIST] = "list",     [TABLE_COUNTER] = "counter",
};

static const char *const deletion_names[] = {
	[TABLE_DELETION_ROW] = "row",
	[TABLE_DELETION_INSERTED] = "inserted",
	[TABLE_DELETION_COLUMN] = "column",
	[TABLE_DELETION_RANGE] = "range",
};

const char *
tables_deletion_name(enum table_deletion_kind kind)
{
	return deletion_names[kind];
}

const char *
tables_kind_name(enum table_column_kind kind)
{
	return kind_names[kind];
}

const char *
tables_storage_name(enum table_storage storage)
{
	return storage_names[storage];
}

/* ---- The line that describes the table ---- */

static enum status
text_read(const struct load_line *line, const struct json_value *value, const char *what,
	  struct str *ret)
{
	if (!value || value->kind != JSON_STRING)
		return err_set(line->err, STATUS_INVALID, "%s is a text", what);
	*ret = value->string;
	return STATUS_OK;
}

static enum status
properties_read(const struct load_line *line, const char *name, const struct table_property **ret,
		size_t *ret_count)
{
	const struct json_value *value = json_value_find(line->members, line->count, name);
	struct table_property *properties;
	struct json_member *members;

	*ret = NULL;
	*ret_count = 0;
	if (!value)
		return STATUS_OK;
	TRY(json_value_members(value, line->arena, &members, ret_count, line->err));
	properties = arena_alloc(line->arena, (*ret_count + 1) * sizeof(*properties));
	if (!properties)
		return STATUS_LIMIT;
	for (size_t i = 0; i < *ret_count; i++) {
		properties[i].name = members[i].name;
		TRY(text_read(line, &members[i].value, "a property", &properties[i].value));
	}
	*ret = properties;
	return STATUS_OK;
}

/* {"name":…,"fields":[["field","type"],…]} */
static enum status
type_read(const struct load_line *line, const struct json_value *value, struct table_type *ret)
{
	struct load_line type = *line;
	struct json_value *fields, *pair;
	struct table_field *list;
	size_t n;

	TRY(json_value_members(value, type.arena, &type.members, &type.count, type.err));
	TRY(text_read(line, json_value_find(type.members, type.count, "name"), "a type's name",
		      &ret->name));
	TRY(load_line_list(&type, "fields", true, &fields, &ret->field_count));
	list = arena_alloc(line->arena, (ret->field_count + 1) * sizeof(*list));
	if (!list)
		return STATUS_LIMIT;
	for (size_t i = 0; i < ret->field_count; i++) {
		TRY(json_value_items(&fields[i], line->arena, &pair, &n, line->err));
		if (n != 2)
			return err_set(line->err, STATUS_INVALID,
				       "a field of a type has a name and a type");
		TRY(text_read(line, &pair[0], "a field's name", &list[i].name));
		TRY(text_read(line, &pair[1], "a field's type", &list[i].type));
	}
	ret->fields = list;
	return STATUS_OK;
}

static enum status
needs_read(const struct load_line *line, struct table_needs *ret)
{
	struct json_value *items;
	struct table_type *types;

	*ret = (struct table_needs){ 0 };
	TRY(properties_read(line, "keyspace", &ret->keyspace.properties,
			    &ret->keyspace.property_count));
	TRY(load_line_list(line, "types", false, &items, &ret->type_count));
	types = arena_zalloc(line->arena, (ret->type_count + 1) * sizeof(*types));
	if (!types)
		return STATUS_LIMIT;
	for (size_t i = 0; i < ret->type_count; i++)
		TRY(type_read(line, &items[i], &types[i]));
	ret->types = types;
	return STATUS_OK;
}

/* The number of the name in the table; 0 if it is none, which no caller's name has. */
static size_t
name_find(const char *const *names, size_t count, const struct json_value *value)
{
	size_t number = value && value->kind == JSON_STRING
				? words_find(value->string, names, count)
				: count;

	return number < count ? number : 0;
}

static enum status
column_read(const struct load_line *line, const struct json_value *value, struct table_column *ret)
{
	struct load_line column = *line;
	size_t kind;

	TRY(json_value_members(value, line->arena, &column.members, &column.count, line->err));
	TRY(text_read(line, json_value_find(column.members, column.count, "name"),
		      "a column's name", &ret->name));
	TRY(text_read(line, json_value_find(column.members, column.count, "type"),
		      "a column's type", &ret->type));
	kind = name_find(kind_names, WORDS_COUNT(kind_names),
			 json_value_find(column.members, column.count, "kind"));
	if (!kind)
		return err_set(line->err, STATUS_INVALID,
			       "a column's \"kind\" is hash, range, static or regular");
	ret->kind = (enum table_column_kind)kind;
	ret->storage = (enum table_storage)name_find(
		storage_names, WORDS_COUNT(storage_names),
		json_value_find(column.members, column.count, "storage"));
	ret->descending = load_line_is_true(&column, "descending");
	return STATUS_OK;
}

static enum status
schema_take(const struct load_line *line, struct table_schema *ret)
{
	struct table_column *columns;
	struct json_value *items;

	*ret = (struct table_schema){ 0 };
	TRY(load_line_list(line, "columns", true, &items, &ret->column_count));
	columns = arena_zalloc(line->arena, (ret->column_count + 1) * sizeof(*columns));
	if (!columns)
		return STATUS_LIMIT;
	for (size_t i = 0; i < ret->column_count; i++)
		TRY(column_read(line, &items[i], &columns[i]));
	ret->columns = columns;
	return properties_read(line, "properties", &ret->properties, &ret->property_count);
}

static bool
columns_equal(const struct table_column *a, const struct table_column *b)
{
	return str_eq(a->name, b->name) && str_eq(a->type, b->type) && a->kind == b->kind &&
	       a->storage == b->storage && a->descending == b->descending;
}

/* The same key in the same order, and the same other columns in any order. */
static bool
schema_is_alike(const struct table_schema *said, const struct table_schema *there)
{
	if (said->column_count != there->column_count)
		return false;
	for (size_t i = 0; i < there->column_count; i++) {
		const struct table_column *c = &there->columns[i];
		const struct table_column *other = i < there->key_count
							   ? &said->columns[i]
							   : table_column_named(said, c->name);

		if (!other || !columns_equal(c, other))
			return false;
	}
	return true;
}

/*
 * Gives a table that this transaction has created its indexes. One whose types nobody can read is
 * refused here, before anything is loaded into it.
 */
static enum status
created_finish(struct kv_tx *tx, struct str name, const struct load_line *line)
{
	struct copy_table *c;
	struct catalog_db *db;
	struct timed t;
	enum status status;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, name, &db, line->err));
	timed_init(&t, tx, db, NULL, line->err);
	status = copy_table_open(tx, db, rows_type_has, line->arena, line->err, &c);
	if (status == STATUS_OK) {
		status = tables_indexes_create(&t, c, line);
		copy_table_close(c);
	}
	catalog_db_unref(db);
	return status;
}

enum status
load_tables_header(struct kv_tx *tx, struct str name, bool create, const struct load_line *line,
		   bool *ret_created)
{
	struct table_schema schema;
	struct table_needs needs;
	struct str keyspace, table;
	struct catalog_db *db;
	uint64_t ttl_ms = 0;
	enum status status;

	*ret_created = false;
	TRY(schema_take(line, &schema));
	TRY(needs_read(line, &needs));
	TRY(load_line_u64(line, "ttl_ms", &ttl_ms));
	status = catalog_open(tx, NULL, CATALOG_SPACE_TABLE, name, &db, line->err);
	if (status == STATUS_NOT_FOUND && create) {
		*ret_created = true;
		*line->err = (struct err){ 0 };
		table_name_split(name, &keyspace, &table);
		TRY(table_needs_ensure(tx, keyspace, &needs, line->arena, line->err));
		TRY(table_create(tx, name, &schema, ttl_ms, line->err));
		return created_finish(tx, name, line);
	}
	TRY(status);
	if (!schema_is_alike(&schema, table_schema_of(db)))
		status = err_set(line->err, STATUS_INVALID,
				 "the table has other columns than the one of the dump");
	catalog_db_unref(db);
	return status;
}

/* ---- Rows ---- */

struct table_load {
	struct timed *t;
	struct copy_table *c;
	const struct table_schema *schema;
	const struct load_line *line;
	struct table_key key;
};

/* What "expires_ms" of these members says. */
static enum status
expiry_read(const struct load_line *members, struct timed_expiry *ret)
{
	*ret = (struct timed_expiry){ .kind = TIMED_EXPIRY_DEFAULT };
	if (!json_value_find(members->members, members->count, "expires_ms"))
		return STATUS_OK;
	TRY(load_line_u64(members, "expires_ms", &ret->ms));
	ret->kind = ret->ms ? TIMED_EXPIRY_AT : TIMED_EXPIRY_NEVER;
	return STATUS_OK;
}

/* When something was written, and what a client has said that orders it. */
struct times {
	uint64_t write_us;
	bool has_stamp;
	int64_t stamp;
};

static enum status
times_read(const struct load_line *members, struct times *ret)
{
	const struct json_value *said = json_value_find(members->members, members->count,
							"timestamp");

	*ret = (struct times){ .has_stamp = said != NULL };
	if (said && (said->kind != JSON_NUMBER || !str_to_i64(said->text, &ret->stamp)))
		return err_set(members->err, STATUS_INVALID, "\"timestamp\" is a whole number");
	return load_line_u64(members, "written_us", &ret->write_us);
}

static bool
times_equal(const struct times *a, const struct times *b)
{
	return a->write_us == b->write_us && a->has_stamp == b->has_stamp && a->stamp == b->stamp;
}

/* What is written next was written then. */
static enum status
times_set(struct timed *t, const struct times *times)
{
	if (times->has_stamp)
		TRY(table_stamp_set(t, times->stamp));
	else
		table_stamp_unset(t);
	return timed_written_at(t, times->write_us);
}

/* The components of the key, which its members have by the names of columns. */
static enum status
key_read(struct table_load *l)
{
	const struct load_line *line = l->line;
	const struct json_value *key = json_value_find(line->members, line->count, "key");
	const struct json_value *token = json_value_find(line->members, line->count, "token");
	struct doc_scalar parts[TABLE_KEY_COLUMNS];
	struct json_member *members;
	int64_t said;
	size_t count;

	if (!key)
		return err_set(line->err, STATUS_INVALID, "\"key\" is missing");
	TRY(json_value_members(key, line->arena, &members, &count, line->err));
	if (count != l->schema->key_count && count != l->schema->hash_count)
		return err_set(line->err, STATUS_INVALID,
			       "a key has %zu components, and a partition's %zu",
			       l->schema->key_count, l->schema->hash_count);
	for (size_t i = 0; i < count; i++) {
		if (!str_eq(members[i].name, l->schema->columns[i].name))
			return err_set(line->err, STATUS_INVALID,
				       "the component %zu of the key is \"%.*s\"", i + 1,
				       STR_ARG(l->schema->columns[i].name));
		TRY(rows_scalar_read(&members[i].value, line->arena, &parts[i], line->err));
	}
	if (token && (token->kind != JSON_NUMBER || !str_to_i64(token->text, &said)))
		return err_set(line->err, STATUS_INVALID, "\"token\" is a whole number");
	return copy_key(l->c, parts, count, token ? &said : NULL, &l->key);
}

/* The row's own cell, instead of all that there was. */
static enum status
own_load(struct table_load *l)
{
	const struct load_line *line = l->line;
	struct table_write write = { .key = l->key, .inserts = true };
	struct times times;

	TRY(table_clear_row(l->t, &l->key));
	if (!load_line_is_true(line, "inserted"))
		return STATUS_OK;
	TRY(times_read(line, &times));
	TRY(expiry_read(line, &write.expiry));
	TRY(times_set(l->t, &times));
	return table_write(l->t, &write);
}

static enum table_change_kind
change_kind(enum table_storage storage)
{
	switch (storage) {
	case TABLE_SINGLE:
		return TABLE_CHANGE_PUT;
	case TABLE_LIST:
		return TABLE_CHANGE_PUT_PLACE;
	case TABLE_COUNTER:
		return TABLE_CHANGE_ADD;
	case TABLE_MAP:
	case TABLE_SET:
		break;
	}
	return TABLE_CHANGE_PUT_ELEMENT;
}

static enum status
cell_read(struct table_load *l, const struct json_value *cell, struct table_change *ret,
	  struct times *ret_times)
{
	struct load_line fields = *l->line;
	const struct json_value *value;
	const struct table_column *column;
	struct str name;

	*ret = (struct table_change){ .element.kind = DOC_NULL, .value.kind = DOC_NULL };
	TRY(json_value_members(cell, fields.arena, &fields.members, &fields.count, fields.err));
	TRY(text_read(&fields, json_value_find(fields.members, fields.count, "column"),
		      "a cell's column", &name));
	column = table_column_named(l->schema, name);
	if (!column || column->kind == TABLE_HASH || column->kind == TABLE_RANGE)
		return err_set(fields.err, STATUS_INVALID,
			       "there is no column \"%.*s\" outside of the key", STR_ARG(name));
	ret->column = column->id;
	ret->kind = change_kind(column->storage);
	value = json_value_find(fields.members, fields.count, "element");
	if (value)
		TRY(rows_scalar_read(value, fields.arena, &ret->element, fields.err));
	value = json_value_find(fields.members, fields.count, "value");
	if (value)
		TRY(rows_scalar_read(value, fields.arena, &ret->value, fields.err));
	TRY(times_read(&fields, ret_times));
	TRY(expiry_read(&fields, &ret->expiry));
	return copy_change(l->c, ret);
}

/* Writes cells that were written at the same time. */
static enum status
cells_write(struct table_load *l, const struct table_change *changes, size_t count,
	    const struct times *times)
{
	const struct table_write write = { .key = l->key,
					   .changes = changes,
					   .change_count = count };

	if (!count)
		return STATUS_OK;
	TRY(times_set(l->t, times));
	return table_write(l->t, &write);
}

static enum status
cells_load(struct table_load *l)
{
	const struct load_line *line = l->line;
	struct table_change *changes;
	struct json_value *items;
	struct times group = { 0 };
	size_t count, from = 0;

	TRY(load_line_list(line, "cells", false, &items, &count));
	changes = arena_alloc(line->arena, (count + 1) * sizeof(*changes));
	if (!changes)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		struct times times;

		TRY(cell_read(l, &items[i], &changes[i], &times));
		if (i > from && !times_equal(&times, &group)) {
			TRY(cells_write(l, changes + from, i - from, &group));
			from = i;
		}
		group = times;
	}
	return cells_write(l, changes + from, count - from, &group);
}

/* ---- Deletions ---- */

static enum status
bound_read(const struct load_line *line, const char *name, struct str *ret)
{
	const struct json_value *value = json_value_find(line->members, line->count, name);
	struct doc_scalar s = { .kind = DOC_NULL };

	if (value)
		TRY(rows_scalar_read(value, line->arena, &s, line->err));
	if (s.kind != DOC_BYTES)
		return err_set(line->err, STATUS_INVALID, "\"%s\" of a range are bytes", name);
	*ret = s.text;
	return STATUS_OK;
}

static enum status
deleted_column_read(struct table_load *l, struct table_deletion *ret)
{
	const struct load_line *line = l->line;
	const struct table_column *column;
	const struct json_value *value;
	struct str name;

	TRY(text_read(line, json_value_find(line->members, line->count, "column"),
		      "a deleted column", &name));
	column = table_column_named(l->schema, name);
	if (!column)
		return err_set(line->err, STATUS_INVALID, "there is no column \"%.*s\"",
			       STR_ARG(name));
	ret->column = column->id;
	value = json_value_find(line->members, line->count, "element");
	if (!value)
		return STATUS_OK;
	ret->has_element = true;
	TRY(rows_scalar_read(value, line->arena, &ret->element, line->err));
	return copy_element(l->c, column->id, &ret->element);
}

static enum status
deletion_load(struct table_load *l, const struct json_value *kind)
{
	const struct load_line *line = l->line;
	struct table_deletion d = { .key = l->key };
	struct times times;
	size_t i = kind->kind == JSON_STRING
			   ? words_find(kind->string, deletion_names, WORDS_COUNT(deletion_names))
			   : WORDS_COUNT(deletion_names);

	if (i == WORDS_COUNT(deletion_names))
		return err_set(line->err, STATUS_INVALID,
			       "\"deleted\" is row, inserted, column or range");
	d.kind = (enum table_deletion_kind)i;
	TRY(times_read(line, &times));
	if (!times.has_stamp)
		return err_set(line->err, STATUS_INVALID, "\"timestamp\" is missing");
	d.stamp = times.stamp;
	if (d.kind == TABLE_DELETION_COLUMN)
		TRY(deleted_column_read(l, &d));
	if (d.kind == TABLE_DELETION_RANGE) {
		TRY(bound_read(line, "from", &d.from));
		TRY(bound_read(line, "to", &d.to));
	}
	return table_deletion_restore(l->t, &d);
}

enum status
load_tables_line(struct timed *t, struct copy_table *c, const struct load_line *line)
{
	struct table_load l = { .t = t, .c = c, .schema = table_schema_of(t->db), .line = line };
	const struct json_value *deleted = json_value_find(line->members, line->count, "deleted");
	bool more = json_value_find(line->members, line->count, "more") != NULL;
	enum status status;

	TRY(key_read(&l));
	if (deleted)
		return deletion_load(&l, deleted);
	if (more && l.schema->counters)
		return err_set(line->err, STATUS_INVALID,
			       "a row of counters is one line: what is added twice counts twice");
	table_restore_begin(t);
	status = more ? STATUS_OK : own_load(&l);
	if (status == STATUS_OK)
		status = cells_load(&l);
	table_restore_end(t);
	return status;
}

#include "door/cql/run/describe.h"

#include <math.h>

#include "door/cql/run/metadata.h"
#include "door/cql/schema/indexes.h"
#include "door/cql/schema/options.h"
#include "door/cql/schema/system.h"

enum {
	STATEMENT_BYTES = 4 * 1024 * 1024, /* of one CREATE */
	NAME_BYTES = 200,                  /* of a name in quotes */
};

/* Rows that are gathered. */
struct describing {
	struct run *run;
	struct buf rows;
	int32_t count;
	bool statements; /* rows have a fourth column */
};

/* ---- Statements ---- */

static void
put_name(struct buf *out, struct str keyspace, struct str name)
{
	cql_name_print(out, keyspace);
	buf_append_byte(out, '.');
	cql_name_print(out, name);
}

static enum status
put_keyspace(struct cql *q, const struct schema_keyspace *k, struct buf *out)
{
	struct options_keyspace o;

	TRY(options_of_keyspace(q, k->stored, &o));
	buf_append_cstr(out, "CREATE KEYSPACE ");
	cql_name_print(out, k->name);
	buf_append_cstr(out, " WITH replication = ");
	schema_map_print(out, o.replication, o.replication_count);
	buf_printf(out, " AND durable_writes = %s;", o.durable_writes ? "true" : "false");
	return STATUS_OK;
}

static void
put_type(const struct table_type *type, struct buf *out)
{
	buf_append_cstr(out, "CREATE TYPE ");
	put_name(out, type->keyspace, type->name);
	buf_append_cstr(out, " (");
	for (size_t i = 0; i < type->field_count; i++) {
		buf_append_cstr(out, i ? ",\n    " : "\n    ");
		cql_name_print(out, type->fields[i].name);
		buf_append_byte(out, ' ');
		buf_append_str(out, type->fields[i].type);
	}
	buf_append_cstr(out, "\n);");
}

static void
put_names(struct buf *out, const struct schema_column *columns, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_append_cstr(out, ", ");
		cql_name_print(out, columns[i].name);
	}
}

static void
put_columns(const struct schema_table *t, struct buf *out)
{
	bool simple = t->key_count == 1;

	for (size_t i = 0; i < t->count; i++) {
		const struct schema_column *c = &t->columns[i];

		buf_append_cstr(out, i ? ",\n    " : "\n    ");
		cql_name_print(out, c->name);
		buf_append_byte(out, ' ');
		cql_type_print(out, c->type);
		if (c->kind == SCHEMA_STATIC)
			buf_append_cstr(out, " static");
		if (simple && i == 0)
			buf_append_cstr(out, " PRIMARY KEY");
	}
	if (!simple) {
		buf_append_cstr(out, ",\n    PRIMARY KEY (");
		if (t->partition_count > 1)
			buf_append_byte(out, '(');
		put_names(out, t->columns, t->partition_count);
		if (t->partition_count > 1)
			buf_append_byte(out, ')');
		if (t->key_count > t->partition_count) {
			buf_append_cstr(out, ", ");
			put_names(out, t->columns + t->partition_count,
				  t->key_count - t->partition_count);
		}
		buf_append_byte(out, ')');
	}
	buf_append_cstr(out, "\n) WITH ");
}

static void
put_option(struct buf *out, const char *name, const struct options_value *v)
{
	buf_printf(out, "%s = ", name);
	switch (v->kind) {
	case OPTIONS_TEXT:
		cql_text_print(out, v->text);
		break;
	case OPTIONS_MAP:
		schema_map_print(out, v->pairs, v->count);
		break;
	case OPTIONS_DOUBLE:
		buf_printf(out, v->d == floor(v->d) ? "%.1f" : "%g", v->d);
		break;
	case OPTIONS_INT:
		buf_printf(out, "%lld", (long long)v->n);
		break;
	case OPTIONS_BOOL:
		buf_append_cstr(out, v->n ? "true" : "false");
		break;
	}
}

/* Options that clients are told, and that no statement may say. */
static bool
is_hidden(const char *name)
{
	struct str s = str_from_cstr(name);

	return str_eq(s, STR("extensions")) || str_eq(s, STR("read_repair_chance")) ||
	       str_eq(s, STR("dclocal_read_repair_chance"));
}

static enum status
put_table(struct cql *q, const struct schema_table *t, struct buf *out)
{
	struct options_table o;
	bool first = true;

	TRY(options_of_table(q, t, &o));
	buf_append_cstr(out, "CREATE TABLE ");
	put_name(out, t->keyspace, t->name);
	buf_append_cstr(out, " (");
	put_columns(t, out);
	if (t->compact) {
		buf_append_cstr(out, "COMPACT STORAGE");
		first = false;
	}
	if (t->key_count > t->partition_count) {
		buf_append_cstr(out, first ? "CLUSTERING ORDER BY ("
					   : "\n    AND CLUSTERING ORDER BY (");
		for (size_t i = t->partition_count; i < t->key_count; i++) {
			if (i > t->partition_count)
				buf_append_cstr(out, ", ");
			cql_name_print(out, t->columns[i].name);
			buf_append_cstr(out, t->columns[i].descending ? " DESC" : " ASC");
		}
		buf_append_byte(out, ')');
		first = false;
	}
	for (size_t i = 0; i < OPTIONS_TABLE_COUNT; i++) {
		if (is_hidden(options_table_name(i)) || !options_table_is_told(t, &o, i))
			continue;
		buf_append_cstr(out, first ? "" : "\n    AND ");
		put_option(out, options_table_name(i), &o.values[i]);
		first = false;
	}
	buf_append_byte(out, ';');
	return STATUS_OK;
}

/* ---- Rows ---- */

static void
row_add(struct describing *d, struct str keyspace, const char *type, struct str name,
	const struct buf *statement)
{
	AUTO(buf_release) struct buf quoted = BUF_SHORT(NAME_BYTES);

	cql_name_print(&quoted, keyspace);
	cql_element_put(&d->rows, CQL_VALUE(buf_str(&quoted)));
	cql_element_put(&d->rows, CQL_VALUE(str_from_cstr(type)));
	buf_clear(&quoted);
	cql_name_print(&quoted, name);
	cql_element_put(&d->rows, CQL_VALUE(buf_str(&quoted)));
	if (d->statements)
		cql_element_put(&d->rows, CQL_VALUE(buf_str(statement)));
	d->count++;
}

static enum status
add_keyspace(struct describing *d, const struct schema_keyspace *k)
{
	AUTO(buf_release) struct buf text = cql_buf(d->run->q, STATEMENT_BYTES);

	if (d->statements)
		TRY(put_keyspace(d->run->q, k, &text));
	row_add(d, k->name, "keyspace", k->name, &text);
	return buf_status(&text);
}

static enum status
add_type(struct describing *d, const struct table_type *type)
{
	AUTO(buf_release) struct buf text = cql_buf(d->run->q, STATEMENT_BYTES);

	if (d->statements)
		put_type(type, &text);
	row_add(d, type->keyspace, "type", type->name, &text);
	return buf_status(&text);
}

static enum status
add_index(struct describing *d, const struct schema_table *t, const struct table_index *index)
{
	AUTO(buf_release) struct buf text = cql_buf(d->run->q, STATEMENT_BYTES);

	schema_index_print(&text, t, index);
	row_add(d, t->keyspace, "index", index->name, &text);
	return buf_status(&text);
}

/* A table, and what makes its indexes. */
static enum status
add_table(struct describing *d, const struct schema_table *t)
{
	AUTO(buf_release) struct buf text = cql_buf(d->run->q, STATEMENT_BYTES);
	const struct table_index *indexes;
	size_t count;

	if (d->statements)
		TRY(put_table(d->run->q, t, &text));
	row_add(d, t->keyspace, "table", t->name, &text);
	TRY(buf_status(&text));
	indexes = table_indexes_of(t->db, &count);
	for (size_t i = 0; d->statements && i < count; i++)
		TRY(add_index(d, t, &indexes[i]));
	return STATUS_OK;
}

/* ---- What is described ---- */

/* Types stand before the types and tables that use them: in turns until none is left. */
static enum status
add_types(struct describing *d, const struct schema_keyspace *k)
{
	bool *done = arena_zalloc(d->run->r->arena, k->type_count + 1);
	size_t left = k->type_count, before;

	if (!done)
		return STATUS_LIMIT;
	do {
		before = left;
		for (size_t i = 0; i < k->type_count; i++) {
			const struct cql_type *type;
			bool waits = false;

			if (done[i])
				continue;
			TRY(schema_type_find(&d->run->types, d->run->q, k->name, k->types[i].name,
					     &type));
			for (size_t j = 0; j < k->type_count && type; j++)
				waits |= i != j && !done[j] &&
					 cql_type_uses(type, k->name, k->types[j].name);
			if (waits)
				continue;
			TRY(add_type(d, &k->types[i]));
			done[i] = true;
			left--;
		}
	} while (left && left < before);
	return STATUS_OK;
}

static enum status
add_all_of(struct describing *d, const struct schema_keyspace *k, bool only)
{
	TRY(add_keyspace(d, k));
	if (only)
		return STATUS_OK;
	TRY(add_types(d, k));
	for (size_t i = 0; i < k->table_count; i++)
		TRY(add_table(d, k->tables[i]));
	return STATUS_OK;
}

static enum status
fail_missing(struct describing *d, const char *what, struct str keyspace, struct str name)
{
	if (keyspace.len)
		return request_fail(d->run->r, CQL_CODE_INVALID,
				    "%s '%.*s' not found in keyspace '%.*s'", what, STR_ARG(name),
				    STR_ARG(keyspace));
	return request_fail(d->run->r, CQL_CODE_INVALID, "'%.*s' not found in keyspaces",
			    STR_ARG(name));
}

/* True if what is asked for is of that kind, or of any. */
static bool
is_any(enum cql_describe_kind kind, enum cql_describe_kind of)
{
	return kind == of || kind == CQL_DESCRIBE_ANY;
}

/* One table, index or type of a keyspace. */
static enum status
add_named(struct describing *d, const struct schema_all *all, enum cql_describe_kind kind,
	  struct str keyspace, struct str name)
{
	const struct schema_keyspace *k = all->count ? &all->keyspaces[0] : NULL;

	for (size_t i = 0; k && is_any(kind, CQL_DESCRIBE_INDEX) && i < k->table_count; i++) {
		const struct table_index *index = table_index_named(k->tables[i]->db, name);

		if (index)
			return add_index(d, k->tables[i], index);
	}
	for (size_t i = 0; k && is_any(kind, CQL_DESCRIBE_TABLE) && i < k->table_count; i++)
		if (str_eq(k->tables[i]->name, name))
			return add_table(d, k->tables[i]);
	for (size_t i = 0; k && is_any(kind, CQL_DESCRIBE_TYPE) && i < k->type_count; i++)
		if (str_eq(k->types[i].name, name))
			return add_type(d, &k->types[i]);
	return fail_missing(d,
			    kind == CQL_DESCRIBE_TYPE    ? "User defined type"
			    : kind == CQL_DESCRIBE_TABLE ? "Table"
			    : kind == CQL_DESCRIBE_INDEX ? "Index"
							 : "Object",
			    keyspace, name);
}

static enum status
describe_lists(struct describing *d, const struct schema_all *all)
{
	const struct cql_describe *s = &d->run->statement->describe;

	for (size_t i = 0; i < all->count; i++) {
		const struct schema_keyspace *k = &all->keyspaces[i];

		if (s->kind == CQL_DESCRIBE_KEYSPACES)
			TRY(add_keyspace(d, k));
		if (s->kind == CQL_DESCRIBE_SCHEMA)
			TRY(add_all_of(d, k, false));
		for (size_t j = 0; s->kind == CQL_DESCRIBE_TABLES && j < k->table_count; j++)
			TRY(add_table(d, k->tables[j]));
		for (size_t j = 0; s->kind == CQL_DESCRIBE_TYPES && j < k->type_count; j++)
			TRY(add_type(d, &k->types[j]));
	}
	return STATUS_OK;
}

static enum status
describe_one(struct describing *d)
{
	struct run *run = d->run;
	const struct cql_describe *s = &run->statement->describe;
	bool of_keyspace = s->kind == CQL_DESCRIBE_KEYSPACE;
	struct str keyspace = s->name.keyspace.ptr ? s->name.keyspace : run->keyspace;
	struct schema_all all;
	enum status status;

	if (of_keyspace)
		keyspace = s->name.name.ptr ? s->name.name : run->keyspace;
	if (!keyspace.len && s->kind != CQL_DESCRIBE_ANY)
		return request_fail(run->r, CQL_CODE_INVALID,
				    "No keyspace specified and no current keyspace");
	/* DESCRIBE name: a keyspace of that name first. */
	if (s->kind == CQL_DESCRIBE_ANY && !s->name.keyspace.ptr) {
		TRY(schema_read(run->q, &run->types, s->name.name, &all));
		if (all.count) {
			status = add_all_of(d, &all.keyspaces[0], false);
			schema_close(&all);
			return status;
		}
		if (!keyspace.len)
			return fail_missing(d, "", STR(""), s->name.name);
	}
	TRY(schema_read(run->q, &run->types, keyspace, &all));
	if (!all.count)
		return fail_missing(d, "", STR(""), keyspace);
	status = of_keyspace ? add_all_of(d, &all.keyspaces[0], s->only)
			     : add_named(d, &all, s->kind, keyspace, s->name.name);
	schema_close(&all);
	return status;
}

static enum status
describe_rows(struct describing *d)
{
	struct run *run = d->run;
	struct schema_all all;
	enum status status;

	switch (run->statement->describe.kind) {
	case CQL_DESCRIBE_FUNCTIONS:
	case CQL_DESCRIBE_AGGREGATES:
	case CQL_DESCRIBE_CLUSTER:
		return STATUS_OK;
	case CQL_DESCRIBE_SCHEMA:
	case CQL_DESCRIBE_KEYSPACES:
	case CQL_DESCRIBE_TABLES:
	case CQL_DESCRIBE_TYPES:
		TRY(schema_read(run->q, &run->types, STR(""), &all));
		status = describe_lists(d, &all);
		schema_close(&all);
		return status;
	case CQL_DESCRIBE_VIEW:
	case CQL_DESCRIBE_FUNCTION:
	case CQL_DESCRIBE_AGGREGATE:
		return fail_missing(d, "Object", run->statement->describe.name.keyspace,
				    run->statement->describe.name.name);
	case CQL_DESCRIBE_KEYSPACE:
	case CQL_DESCRIBE_TABLE:
	case CQL_DESCRIBE_TYPE:
	case CQL_DESCRIBE_INDEX:
	case CQL_DESCRIBE_ANY:
		break;
	}
	return describe_one(d);
}

static enum status
answer_cluster(struct run *run)
{
	static const struct result_column columns[] = {
		{ { "cluster", 7 }, CQL_NATIVE(TEXT) },
		{ { "partitioner", 11 }, CQL_NATIVE(TEXT) },
		{ { "snitch", 6 }, CQL_NATIVE(TEXT) },
	};
	const struct result_columns result = { STR("system"), STR("describe"), columns, 3 };
	struct buf *out = run->r->out;

	metadata_put_rows(out, run->r->header.version, &result, false, (struct str){ 0 });
	frame_put_i32(out, 1);
	cql_element_put(out, CQL_VALUE(str_from_cstr(run->r->door->config.settings->cluster)));
	cql_element_put(out, CQL_VALUE(STR("Murmur3Partitioner")));
	cql_element_put(out, CQL_VALUE(STR("SimpleSnitch")));
	return STATUS_OK;
}

enum status
describe_run(struct run *run)
{
	static const struct result_column columns[] = {
		{ { "keyspace_name", 13 }, CQL_NATIVE(TEXT) },
		{ { "type", 4 }, CQL_NATIVE(TEXT) },
		{ { "name", 4 }, CQL_NATIVE(TEXT) },
		{ { "create_statement", 16 }, CQL_NATIVE(TEXT) },
	};
	const enum cql_describe_kind kind = run->statement->describe.kind;
	struct describing d = {
		.run = run,
		.statements = kind == CQL_DESCRIBE_SCHEMA || kind >= CQL_DESCRIBE_KEYSPACE,
		.rows = cql_buf(run->q, CQL_REPLY_BYTES),
	};
	const struct result_columns result = { STR("system"), STR("describe"), columns,
					       d.statements ? 4 : 3 };
	enum status status;

	if (kind == CQL_DESCRIBE_CLUSTER)
		return answer_cluster(run);
	status = describe_rows(&d);
	if (status == STATUS_OK)
		status = buf_status(&d.rows);
	if (status == STATUS_OK) {
		metadata_put_rows(run->r->out, run->r->header.version, &result, false,
				  (struct str){ 0 });
		frame_put_i32(run->r->out, d.count);
		buf_append_buf(run->r->out, &d.rows);
	}
	buf_release(&d.rows);
	return status;
}

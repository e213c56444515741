#include "door/cql/schema/indexes.h"

static const struct schema_column *
column_of(const struct schema_table *t, uint64_t id)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->columns[i].stored && t->columns[i].stored->id == id)
			return &t->columns[i];
	return NULL;
}

/* True of what comes back the same from an int in a statement. */
static bool
is_number(struct str step)
{
	uint64_t number;

	return str_to_u64(step, &number) && number <= INT32_MAX &&
	       (step.len == 1 || step.ptr[0] != '0');
}

/* j->'a'->1->>'b'. A number is an element's, or the name of a member that looks like one. */
static void
put_path(struct buf *out, const struct table_index_column *column)
{
	for (size_t i = 0; index_typed_is_json(column->part) && i < column->step_count; i++) {
		bool is_text = i + 1 == column->step_count && column->part == INDEX_TYPED_JSON_TEXT;

		buf_append_cstr(out, is_text ? "->>" : "->");
		if (is_number(column->steps[i]))
			buf_append_str(out, column->steps[i]);
		else
			cql_text_print(out, column->steps[i]);
	}
}

static void
put_target(struct buf *out, const struct schema_column *c, const struct table_index_column *column)
{
	enum index_typed_part part = column->part;
	const char *what = NULL;

	if (cql_type_is_multicell(c->type)) {
		what = "values";
		if (part == INDEX_TYPED_ENTRIES)
			what = "entries";
		else if (part == INDEX_TYPED_KEYS && c->type->kind == CQL_TYPE_MAP)
			what = "keys";
	} else if (cql_type_is_collection(c->type)) {
		what = "full";
	}
	if (what)
		buf_printf(out, "%s(", what);
	cql_name_print(out, c->name);
	put_path(out, column);
	if (what)
		buf_append_byte(out, ')');
}

void
schema_index_targets(struct buf *out, const struct schema_table *t, const struct table_index *index)
{
	for (size_t i = 0; i < index->column_count; i++) {
		const struct schema_column *c = column_of(t, index->columns[i].column);

		if (i)
			buf_append_cstr(out, ", ");
		if (c)
			put_target(out, c, &index->columns[i]);
	}
}

/* Descending columns. */
static void
put_orders(struct buf *out, const struct schema_table *t, const struct table_index *index)
{
	const char *before = " WITH CLUSTERING ORDER BY (";
	bool any = false;

	for (size_t i = 0; i < index->column_count; i++) {
		const struct schema_column *c = column_of(t, index->columns[i].column);

		if (!index->columns[i].descending || !c)
			continue;
		buf_append_cstr(out, before);
		cql_name_print(out, c->name);
		buf_append_cstr(out, " DESC");
		before = ", ";
		any = true;
	}
	if (any)
		buf_append_byte(out, ')');
}

void
schema_index_includes(struct buf *out, const struct schema_table *t,
		      const struct table_index *index)
{
	for (size_t i = 0; i < index->carried_count; i++) {
		const struct schema_column *c = column_of(t, index->carried[i]);

		if (i)
			buf_append_cstr(out, ", ");
		if (c)
			cql_name_print(out, c->name);
	}
}

void
schema_index_print(struct buf *out, const struct schema_table *t, const struct table_index *index)
{
	buf_append_cstr(out, index->is_unique ? "CREATE UNIQUE INDEX " : "CREATE INDEX ");
	cql_name_print(out, index->name);
	buf_append_cstr(out, " ON ");
	cql_name_print(out, t->keyspace);
	buf_append_byte(out, '.');
	cql_name_print(out, t->name);
	buf_append_cstr(out, " (");
	schema_index_targets(out, t, index);
	buf_append_byte(out, ')');
	if (index->carried_count) {
		buf_append_cstr(out, " INCLUDE (");
		schema_index_includes(out, t, index);
		buf_append_byte(out, ')');
	}
	put_orders(out, t, index);
	if (index->condition_count) {
		buf_append_cstr(out, " WHERE ");
		buf_append_str(out, index->spec);
	}
	buf_append_byte(out, ';');
}

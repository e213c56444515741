#include "cli/tables_indexes.h"

#include "base/words.h"
#include "cli/rows.h"
#include "model/timed/tables/index.h"

static const char *const part_names[] = {
	[INDEX_TYPED_COLUMN] = "column", [INDEX_TYPED_KEYS] = "keys",
	[INDEX_TYPED_VALUES] = "values", [INDEX_TYPED_ENTRIES] = "entries",
	[INDEX_TYPED_JSON] = "json",     [INDEX_TYPED_JSON_TEXT] = "json text",
	[INDEX_TYPED_ORDER] = "order",
};

static const char *const operator_names[] = {
	[INDEX_TYPED_EQ] = "=",
	[INDEX_TYPED_NE] = "!=",
	[INDEX_TYPED_LT] = "<",
	[INDEX_TYPED_LE] = "<=",
	[INDEX_TYPED_GT] = ">",
	[INDEX_TYPED_GE] = ">=",
	[INDEX_TYPED_NOT_NULL] = "not null",
};

/* ---- Writing ---- */

void
tables_scalar_write(const struct doc_scalar *s, struct buf *out)
{
	struct doc_scalar plain = *s;

	if (s->kind == DOC_INT8 || s->kind == DOC_INT16 || s->kind == DOC_INT32)
		plain.kind = DOC_INT64;
	rows_scalar_write(&plain, out);
}

static void
name_write(const struct table_schema *schema, uint64_t id, struct buf *out)
{
	const struct table_column *column = table_column_by_id(schema, id);

	buf_append_cstr(out, "{\"column\":");
	json_write_str(out, column ? column->name : STR(""));
}

static void
column_write(const struct table_schema *schema, const struct table_index_column *c, struct buf *out)
{
	name_write(schema, c->column, out);
	if (c->part != INDEX_TYPED_COLUMN)
		buf_printf(out, ",\"part\":\"%s\"", part_names[c->part]);
	for (size_t i = 0; i < c->step_count; i++) {
		buf_append_cstr(out, i ? "," : ",\"path\":[");
		json_write_str(out, c->steps[i]);
	}
	if (c->step_count)
		buf_append_byte(out, ']');
	buf_append_cstr(out, c->descending ? ",\"descending\":true}" : "}");
}

static void
condition_write(const struct table_schema *schema, const struct index_typed_condition *c,
		struct buf *out)
{
	name_write(schema, c->column, out);
	buf_printf(out, ",\"operator\":\"%s\"", operator_names[c->op]);
	if (c->op != INDEX_TYPED_NOT_NULL) {
		buf_append_cstr(out, ",\"value\":");
		tables_scalar_write(&c->value, out);
	}
	buf_append_byte(out, '}');
}

static void
index_write(const struct table_schema *schema, const struct table_index *index, struct buf *out)
{
	buf_append_cstr(out, "{\"name\":");
	json_write_str(out, index->name);
	buf_append_cstr(out, ",\"spec\":");
	json_write_str(out, index->spec);
	if (index->is_unique)
		buf_append_cstr(out, ",\"unique\":true");
	buf_append_cstr(out, ",\"columns\":[");
	for (size_t i = 0; i < index->column_count; i++) {
		if (i)
			buf_append_byte(out, ',');
		column_write(schema, &index->columns[i], out);
	}
	buf_append_byte(out, ']');
	for (size_t i = 0; i < index->carried_count; i++) {
		buf_append_cstr(out, i ? "," : ",\"include\":[");
		name_write(schema, index->carried[i], out);
		buf_append_byte(out, '}');
	}
	if (index->carried_count)
		buf_append_byte(out, ']');
	buf_append_cstr(out, ",\"where\":[");
	for (size_t i = 0; i < index->condition_count; i++) {
		if (i)
			buf_append_byte(out, ',');
		condition_write(schema, &index->conditions[i], out);
	}
	buf_append_cstr(out, "]}");
}

void
tables_indexes_write(const struct catalog_db *db, struct buf *out)
{
	size_t count;
	const struct table_index *indexes = table_indexes_of(db, &count);
	bool any = false;

	buf_append_byte(out, '[');
	for (size_t i = 0; i < count; i++) {
		if (indexes[i].has_failed)
			continue;
		if (any)
			buf_append_byte(out, ',');
		any = true;
		index_write(table_schema_of(db), &indexes[i], out);
	}
	buf_append_byte(out, ']');
}

/* ---- Creating ---- */

/* What is read of one index, whose members `line` has. */
struct reading {
	struct timed *t;
	struct copy_table *c;
	struct load_line line;
};

static enum status
refuse(const struct load_line *line, const char *what)
{
	return err_set(line->err, STATUS_INVALID, "an index of the table has %s", what);
}

static enum status
column_find(const struct reading *r, const struct load_line *line, uint64_t *ret)
{
	const struct table_column *column;
	struct str name;

	TRY(load_line_text(line, "column", &name));
	column = table_column_named(table_schema_of(r->t->db), name);
	if (!column)
		return refuse(line, "a column that the table has not");
	*ret = column->id;
	return STATUS_OK;
}

/* The path of an index into documents of JSON, or the name of an order. */
static enum status
path_read(const struct load_line *line, const struct table_column *column,
	  struct table_index_column *ret)
{
	bool is_document;
	struct json_value *items;
	struct str *steps;

	TRY(load_line_list(line, "path", false, &items, &ret->step_count));
	steps = arena_alloc(line->arena, (ret->step_count + 1) * sizeof(*steps));
	if (!steps)
		return STATUS_LIMIT;
	for (size_t i = 0; i < ret->step_count; i++) {
		if (items[i].kind != JSON_STRING)
			return refuse(line, "a path of other things than texts");
		steps[i] = items[i].string;
	}
	ret->steps = steps;
	is_document = str_eq(column->type, STR("jsonb"));
	return index_typed_steps_fit(ret->part, steps, ret->step_count) &&
			       (is_document || !index_typed_is_json(ret->part))
		       ? STATUS_OK
		       : refuse(line, "a path where no document is, or none where one is");
}

static enum status
column_read(const struct reading *r, const struct json_value *value, struct table_index_column *ret)
{
	struct load_line line = r->line;
	size_t part = INDEX_TYPED_COLUMN;
	struct str name;

	TRY(json_value_members(value, line.arena, &line.members, &line.count, line.err));
	TRY(column_find(r, &line, &ret->column));
	TRY(load_line_text(&line, "part", &name));
	if (name.ptr)
		part = WORDS_FIND(part_names, name);
	if (part == WORDS_COUNT(part_names))
		return refuse(&line, "no such part of a column");
	ret->part = (enum index_typed_part)part;
	ret->descending = load_line_is_true(&line, "descending");
	return path_read(&line, table_column_by_id(table_schema_of(r->t->db), ret->column), ret);
}

static enum status
condition_read(const struct reading *r, const struct json_value *value,
	       struct index_typed_condition *ret)
{
	struct load_line line = r->line;
	const struct json_value *compared;
	struct str name;
	size_t op;

	TRY(json_value_members(value, line.arena, &line.members, &line.count, line.err));
	TRY(column_find(r, &line, &ret->column));
	TRY(load_line_text(&line, "operator", &name));
	op = WORDS_FIND(operator_names, name);
	if (op == WORDS_COUNT(operator_names))
		return refuse(&line, "no such operator");
	ret->op = (enum index_typed_operator)op;
	ret->value.kind = DOC_NULL;
	if (ret->op == INDEX_TYPED_NOT_NULL)
		return STATUS_OK;
	compared = json_value_find(line.members, line.count, "value");
	if (!compared)
		return refuse(&line, "a condition without a value");
	TRY(rows_scalar_read(compared, line.arena, &ret->value, line.err));
	return copy_condition(r->c, ret);
}

static enum status
columns_read(const struct reading *r, struct table_index *ret)
{
	struct table_index_column *columns;
	struct json_value *items;

	TRY(load_line_list(&r->line, "columns", true, &items, &ret->column_count));
	columns = arena_zalloc(r->line.arena, (ret->column_count + 1) * sizeof(*columns));
	if (!columns)
		return STATUS_LIMIT;
	for (size_t i = 0; i < ret->column_count; i++)
		TRY(column_read(r, &items[i], &columns[i]));
	ret->columns = columns;
	return STATUS_OK;
}

static enum status
includes_read(const struct reading *r, struct table_index *ret)
{
	struct load_line line = r->line;
	struct json_value *items;
	uint64_t *ids;

	TRY(load_line_list(&r->line, "include", false, &items, &ret->carried_count));
	ids = arena_alloc(line.arena, (ret->carried_count + 1) * sizeof(*ids));
	if (!ids)
		return STATUS_LIMIT;
	for (size_t i = 0; i < ret->carried_count; i++) {
		TRY(json_value_members(&items[i], line.arena, &line.members, &line.count,
				       line.err));
		TRY(column_find(r, &line, &ids[i]));
	}
	ret->carried = ids;
	return STATUS_OK;
}

static enum status
conditions_read(const struct reading *r, struct table_index *ret)
{
	struct index_typed_condition *conditions;
	struct json_value *items;

	TRY(load_line_list(&r->line, "where", false, &items, &ret->condition_count));
	conditions = arena_zalloc(r->line.arena, (ret->condition_count + 1) * sizeof(*conditions));
	if (!conditions)
		return STATUS_LIMIT;
	for (size_t i = 0; i < ret->condition_count; i++)
		TRY(condition_read(r, &items[i], &conditions[i]));
	ret->conditions = conditions;
	return STATUS_OK;
}

static enum status
create_one(struct reading *r, const struct json_value *value)
{
	struct load_line *line = &r->line;
	struct table_index terms = { 0 };
	uint64_t number;

	TRY(json_value_members(value, line->arena, &line->members, &line->count, line->err));
	TRY(load_line_text(line, "name", &terms.name));
	TRY(load_line_text(line, "spec", &terms.spec));
	if (!terms.name.ptr)
		return refuse(line, "no name");
	terms.is_unique = load_line_is_true(line, "unique");
	TRY(columns_read(r, &terms));
	TRY(includes_read(r, &terms));
	TRY(conditions_read(r, &terms));
	return table_index_create(r->t, &terms, &number);
}

enum status
tables_indexes_create(struct timed *t, struct copy_table *c, const struct load_line *line)
{
	struct json_value *items;
	size_t count;

	TRY(load_line_list(line, "indexes", false, &items, &count));
	for (size_t i = 0; i < count; i++) {
		struct reading r = { .t = t, .c = c, .line = *line };

		TRY(create_one(&r, &items[i]));
	}
	return STATUS_OK;
}

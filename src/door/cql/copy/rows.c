#include "door/cql/copy/rows.h"

#include "cql/copy.h"
#include "door/cql/copy/copy_int.h"
#include "door/cql/run/changes.h"
#include "door/cql/run/value.h"

struct copy_row {
	struct row row;
};

/* ---- Columns ---- */

static enum status
column_find(struct copy_table *c, struct str name, size_t *ret)
{
	const struct schema_column *column = schema_column_find(c->table, name);

	if (!column)
		return err_set(c->q.err, STATUS_INVALID, "the table has no column \"%.*s\"",
			       STR_ARG(name));
	*ret = schema_column_at(c->table, column);
	return STATUS_OK;
}

enum status
copy_columns(struct copy_table *c, const struct str *names, size_t count, const size_t **ret,
	     size_t *ret_count)
{
	size_t *columns;

	*ret_count = names ? count : c->table->count;
	columns = arena_alloc(c->q.arena, (*ret_count + 1) * sizeof(*columns));
	if (!columns)
		return STATUS_LIMIT;
	*ret = columns;
	for (size_t i = 0; i < *ret_count; i++) {
		columns[i] = i;
		if (!names)
			continue;
		TRY(column_find(c, names[i], &columns[i]));
		for (size_t j = 0; j < i; j++)
			if (columns[j] == columns[i])
				return err_set(c->q.err, STATUS_INVALID,
					       "the column \"%.*s\" is named twice",
					       STR_ARG(names[i]));
	}
	return STATUS_OK;
}

struct str
copy_column_name(const struct copy_table *c, size_t column)
{
	return c->table->columns[column].name;
}

/* ---- Out of the store ---- */

enum status
copy_row_read(struct copy_table *c, const struct table_row *stored, struct copy_row **ret)
{
	*ret = arena_alloc(c->q.arena, sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	TRY(row_init(&c->q, c->table, &(*ret)->row));
	return row_fill(&c->q, stored, &(*ret)->row);
}

bool
copy_row_print(const struct copy_row *row, size_t column, struct buf *out)
{
	const struct cql_value *v = &row->row.values[column];

	if (v->presence != CQL_SET)
		return false;
	cql_copy_print(out, row->row.table->columns[column].type, v->bytes);
	return true;
}

/* ---- Into the store ---- */

/* Values by the numbers of columns; CQL_UNSET of those that are not written. */
struct new_row {
	struct copy_table *c;
	struct timed *t;
	struct cql_value *values;
	struct table_key key;
};

/* What was wrong with a value, behind the name of its column. */
static enum status
tell_value(struct copy_table *c, const struct schema_column *column, enum status status)
{
	struct str said;

	if (status != STATUS_INVALID)
		return status;
	said = arena_dup(c->q.arena, str_from_cstr(c->q.err->text));
	if (!said.ptr)
		return STATUS_LIMIT;
	return err_set(c->q.err, status, "the column \"%.*s\": %s", STR_ARG(column->name),
		       said.ptr);
}

static enum status
values_read(struct new_row *n, const size_t *columns, const struct copy_text *texts, size_t count)
{
	const struct schema_table *t = n->c->table;

	n->values = arena_alloc(n->c->q.arena, (t->count + 1) * sizeof(*n->values));
	if (!n->values)
		return STATUS_LIMIT;
	for (size_t i = 0; i < t->count; i++)
		n->values[i] = CQL_VALUE_UNSET;
	for (size_t i = 0; i < count; i++) {
		const struct schema_column *column = &t->columns[columns[i]];
		struct str bytes;

		n->values[columns[i]] = CQL_VALUE_NULL;
		if (texts[i].is_null)
			continue;
		TRY(tell_value(n->c, column,
			       cql_copy_read(&n->c->q, column->type, texts[i].text, &bytes)));
		n->values[columns[i]] = CQL_VALUE(bytes);
	}
	return STATUS_OK;
}

/* The key of a row, or of a partition if no clustering column has a value. */
static enum status
key_make(struct new_row *n)
{
	const struct schema_table *t = n->c->table;
	struct str parts[TABLE_KEY_COLUMNS];
	size_t count = t->partition_count;

	for (size_t i = t->partition_count; i < t->key_count; i++)
		if (n->values[i].presence == CQL_SET)
			count = t->key_count;
	for (size_t i = 0; i < count; i++) {
		if (n->values[i].presence != CQL_SET)
			return err_set(n->c->q.err, STATUS_INVALID,
				       "the column \"%.*s\" of the key has no value",
				       STR_ARG(t->columns[i].name));
		parts[i] = n->values[i].bytes;
	}
	return copy_key_of_values(n->c, parts, count, NULL, &n->key);
}

static enum status
change_counter(struct changes *all, const struct schema_column *column, struct cql_value v)
{
	struct table_change change = changes_of(all, column, TABLE_CHANGE_ADD);

	if (v.presence != CQL_SET)
		return STATUS_OK;
	change.value = (struct doc_scalar){ .kind = DOC_INT64, .n = cql_int_read(v.bytes) };
	return changes_put(all, &change);
}

static enum status
changes_write(struct new_row *n, enum schema_kind kind, bool inserts)
{
	const struct schema_table *t = n->c->table;
	struct changes all = { .q = &n->c->q };
	struct table_write write = { .key = n->key, .inserts = inserts };

	if (kind == SCHEMA_STATIC)
		write.key.count = t->partition_count;
	for (size_t i = t->key_count; i < t->count; i++) {
		const struct schema_column *column = &t->columns[i];

		if (column->kind != kind || n->values[i].presence == CQL_UNSET)
			continue;
		if (t->counters)
			TRY(change_counter(&all, column, n->values[i]));
		else
			TRY(changes_put_value(&all, column, n->values[i], true));
	}
	if (!all.count && !inserts)
		return STATUS_OK;
	write.changes = all.list;
	write.change_count = all.count;
	return table_write(n->t, &write);
}

/* Of static columns alone: nothing else may have a value. */
static enum status
statics_check(const struct new_row *n)
{
	const struct schema_table *t = n->c->table;

	for (size_t i = t->key_count; i < t->count; i++)
		if (t->columns[i].kind == SCHEMA_REGULAR && n->values[i].presence == CQL_SET)
			return err_set(n->c->q.err, STATUS_INVALID,
				       "the clustering key has no value, and \"%.*s\", which is no "
				       "static column, has one",
				       STR_ARG(t->columns[i].name));
	if (!t->static_count)
		return err_set(n->c->q.err, STATUS_INVALID, "the clustering key has no value");
	return STATUS_OK;
}

enum status
copy_row_write(struct copy_table *c, struct timed *t, const size_t *columns,
	       const struct copy_text *texts, size_t count)
{
	const struct schema_table *table = c->table;
	struct new_row n = { .c = c, .t = t };
	/* A row of a compact table is there by its columns alone, if it can have some. */
	bool inserts = !table->counters && !(table->compact && table->count > table->key_count);

	TRY(values_read(&n, columns, texts, count));
	TRY(key_make(&n));
	if (n.key.count < table->key_count) {
		TRY(statics_check(&n));
		return changes_write(&n, SCHEMA_STATIC, false);
	}
	if (table->static_count)
		TRY(changes_write(&n, SCHEMA_STATIC, false));
	return changes_write(&n, SCHEMA_REGULAR, inserts);
}

#include "door/cql/run/value.h"

#include "doc/key.h"

enum {
	KEY_BYTES = 16 * 1024, /* of a component: the store's limit is shorter */
};

enum status
value_to_key(struct cql *q, const struct cql_type *type, struct str bytes, struct doc_scalar *ret)
{
	AUTO(buf_release) struct buf key = BUF_SHORT(KEY_BYTES);

	/* "Empty" of a type whose values have a length goes before all of these. */
	if (!bytes.len && type->kind < CQL_NATIVE_COUNT && type->kind != CQL_TYPE_TEXT &&
	    type->kind != CQL_TYPE_ASCII && type->kind != CQL_TYPE_BLOB) {
		*ret = (struct doc_scalar){ .kind = DOC_NULL };
		return STATUS_OK;
	}
	if (type->kind < CQL_NATIVE_COUNT)
		return cql_value_to_scalar(q, type, bytes, ret);
	if (type->kind == CQL_TYPE_CUSTOM)
		return cql_fail(q, CQL_E_CUSTOM_TYPE, type->name);
	TRY(cql_value_put_key(q, &key, type, bytes));
	*ret = (struct doc_scalar){ .kind = DOC_BYTES };
	if (buf_status(&key) == STATUS_LIMIT) {
		q->code = CQL_CODE_INVALID;
		return err_set(q->err, STATUS_INVALID,
			       "Key length is longer than maximum of %d (TIMED_KEY_BYTES)",
			       TIMED_KEY_BYTES);
	}
	return buf_copy(&key, q->arena, &ret->text);
}

enum status
value_of_key(struct cql *q, const struct cql_type *type, const struct doc_scalar *s,
	     struct str *ret)
{
	size_t len;

	if (type->kind < CQL_NATIVE_COUNT)
		return cql_value_of_part(q, type, s, ret);
	if (s->kind != DOC_BYTES)
		return err_set(q->err, STATUS_CORRUPT, "a key is no bytes");
	/* Of another door's types only the bytes are known. */
	if (type->kind == CQL_TYPE_CUSTOM) {
		*ret = s->text;
		return STATUS_OK;
	}
	return cql_value_of_key(q, type, s->text, false, ret, &len);
}

enum table_storage
value_storage(const struct cql_type *type, bool in_key)
{
	if (in_key)
		return TABLE_SINGLE;
	if (type->kind == CQL_TYPE_COUNTER)
		return TABLE_COUNTER;
	if (!cql_type_is_multicell(type))
		return TABLE_SINGLE;
	switch ((int)type->kind) {
	case CQL_TYPE_LIST:
		return TABLE_LIST;
	case CQL_TYPE_SET:
		return TABLE_SET;
	default:
		return TABLE_MAP; /* of a user type, whose keys are the numbers of fields */
	}
}

/* ---- Rows ---- */

enum status
row_init(struct cql *q, const struct schema_table *t, struct row *ret)
{
	*ret = (struct row){ .table = t };
	ret->values = arena_alloc(q->arena, (t->count + 1) * sizeof(*ret->values));
	ret->write_us = arena_alloc(q->arena, (t->count + 1) * sizeof(*ret->write_us));
	ret->expires_ms = arena_alloc(q->arena, (t->count + 1) * sizeof(*ret->expires_ms));
	ret->at = arena_zalloc(q->arena, (t->count + 1) * sizeof(*ret->at));
	return ret->values && ret->write_us && ret->expires_ms && ret->at ? STATUS_OK
									  : STATUS_LIMIT;
}

/* An element of a list, set or map, key and value. */
static enum status
element_put(struct cql *q, const struct cql_type *type, const struct table_cell *cell,
	    struct buf *out)
{
	struct str bytes;

	if (type->kind != CQL_TYPE_LIST) {
		TRY(value_of_key(q, type->args[0], &cell->element, &bytes));
		cql_element_put(out, CQL_VALUE(bytes));
	}
	if (type->kind == CQL_TYPE_SET)
		return STATUS_OK;
	TRY(cql_value_of_scalar(q, type->args[type->kind == CQL_TYPE_MAP], &cell->value, &bytes));
	cql_element_put(out, CQL_VALUE(bytes));
	return STATUS_OK;
}

static enum status
collection_make(struct cql *q, const struct cql_type *type, const struct table_cell *cells,
		size_t count, struct str *ret)
{
	AUTO(buf_release) struct buf out = cql_buf(q, CQL_REPLY_BYTES);

	cql_count_put(&out, count);
	for (size_t i = 0; i < count; i++)
		TRY(element_put(q, type, &cells[i], &out));
	return buf_copy(&out, q->arena, ret);
}

/* Fields that are not there are null. */
static enum status
udt_make(struct cql *q, const struct cql_type *type, const struct table_cell *cells, size_t count,
	 struct str *ret)
{
	AUTO(buf_release) struct buf out = cql_buf(q, CQL_REPLY_BYTES);
	size_t at = 0;
	struct str bytes;

	for (size_t i = 0; i < type->count; i++) {
		if (at == count || (size_t)cells[at].element.n != i) {
			cql_element_put(&out, CQL_VALUE_NULL);
			continue;
		}
		TRY(cql_value_of_scalar(q, type->args[i], &cells[at++].value, &bytes));
		cql_element_put(&out, CQL_VALUE(bytes));
	}
	return buf_copy(&out, q->arena, ret);
}

/* The latest write, and the soonest expiry, of what a column has. */
static void
times_of(const struct table_cell *cells, size_t count, int64_t *write_us, uint64_t *expires_ms)
{
	*write_us = ROW_UNWRITTEN;
	*expires_ms = 0;
	for (size_t i = 0; i < count; i++) {
		int64_t us = cells[i].has_stamp ? cells[i].stamp : (int64_t)cells[i].write_us;

		/* A counter has neither. */
		if ((us || cells[i].has_stamp) && us > *write_us)
			*write_us = us;
		if (cells[i].expires_ms && (!*expires_ms || cells[i].expires_ms < *expires_ms))
			*expires_ms = cells[i].expires_ms;
	}
}

/*
 * The cells of a column. Rows of a table are mostly alike, so they are first looked for where they
 * were in the last row.
 */
static const struct table_cell *
column_cells(const struct schema_column *c, const struct table_row *stored, size_t *at,
	     size_t *ret_count)
{
	bool is_static = c->kind == SCHEMA_STATIC;
	const struct table_cell *cells = is_static ? stored->statics : stored->cells, *found;
	size_t count = is_static ? stored->static_count : stored->cell_count;

	if (*at < count && c->stored->storage == TABLE_SINGLE &&
	    cells[*at].column->id == c->stored->id) {
		*ret_count = 1;
		return &cells[*at];
	}
	found = table_cells_of(cells, count, c->stored, ret_count);
	if (*ret_count)
		*at = (size_t)(found - cells);
	return found;
}

static enum status
column_fill(struct cql *q, const struct schema_column *c, const struct table_row *stored,
	    struct row *ret, size_t at)
{
	const struct table_cell *cells;
	size_t count;
	struct str bytes;

	cells = column_cells(c, stored, &ret->at[at], &count);
	if (!count)
		return STATUS_OK;
	times_of(cells, count, &ret->write_us[at], &ret->expires_ms[at]);
	if (c->stored->storage == TABLE_SINGLE || c->stored->storage == TABLE_COUNTER)
		TRY(cql_value_of_scalar(q, c->type, &cells[0].value, &bytes));
	else if (c->type->kind == CQL_TYPE_UDT)
		TRY(udt_make(q, c->type, cells, count, &bytes));
	else
		TRY(collection_make(q, c->type, cells, count, &bytes));
	ret->values[at] = CQL_VALUE(bytes);
	return STATUS_OK;
}

enum status
row_fill(struct cql *q, const struct table_row *stored, struct row *ret)
{
	const struct schema_table *t = ret->table;
	struct str bytes;

	ret->is_row = stored->is_row;
	ret->token = stored->token;
	for (size_t i = 0; i < t->count; i++) {
		ret->values[i] = CQL_VALUE_NULL;
		ret->write_us[i] = ROW_UNWRITTEN;
		ret->expires_ms[i] = 0;
		if (i >= t->key_count) {
			TRY(column_fill(q, &t->columns[i], stored, ret, i));
		} else if (i < stored->key_count) {
			TRY(value_of_key(q, t->columns[i].type, &stored->key[i], &bytes));
			ret->values[i] = CQL_VALUE(bytes);
		}
	}
	return STATUS_OK;
}

enum status
row_get(void *arg, struct cql *q, unsigned column, struct cql_value *ret)
{
	const struct row *row = arg;

	(void)q;
	*ret = row->values[column];
	return STATUS_OK;
}

enum status
row_cell(void *arg, struct cql *q, unsigned column, enum cql_cell_part part, struct cql_value *ret)
{
	const struct row *row = arg;
	struct str bytes;
	uint64_t left_ms;

	*ret = CQL_VALUE_NULL;
	if (row->values[column].presence != CQL_SET)
		return STATUS_OK;
	if (part == CQL_CELL_WRITETIME) {
		if (row->write_us[column] == ROW_UNWRITTEN)
			return STATUS_OK;
		TRY(cql_int_put(q, row->write_us[column], 8, &bytes));
	} else {
		if (row->expires_ms[column] <= row->now_ms)
			return STATUS_OK;
		left_ms = row->expires_ms[column] - row->now_ms;
		TRY(cql_int_put(q, (int64_t)((left_ms + 999) / 1000), 4, &bytes));
	}
	*ret = CQL_VALUE(bytes);
	return STATUS_OK;
}

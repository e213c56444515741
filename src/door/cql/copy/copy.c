#include "door/cql/copy/copy_int.h"

#include "cql/murmur3.h"
#include "door/cql/run/value.h"

enum {
	COPY_KEY_BYTES = 64 * 1024 * TABLE_KEY_COLUMNS, /* the serialized key of a partition */
};

enum status
copy_table_open(struct kv_tx *tx, struct catalog_db *db, copy_custom *custom, struct arena *arena,
		struct err *err, struct copy_table **ret)
{
	struct copy_table *c = arena_zalloc(arena, sizeof(*c));

	if (!c)
		return STATUS_LIMIT;
	c->q = (struct cql){ .arena = arena, .err = err };
	c->custom = custom;
	c->types = (struct schema_types){ .tx = tx, .arena = arena };
	TRY(schema_table_of(&c->q, &c->types, catalog_db_ref(db), &c->table));
	*ret = c;
	return STATUS_OK;
}

void
copy_table_close(struct copy_table *c)
{
	if (c)
		schema_table_close(c->table);
}

static enum status
fail_value(struct copy_table *c, const struct schema_column *column)
{
	return err_set(c->q.err, STATUS_INVALID, "the column \"%.*s\" is of the type %.*s",
		       STR_ARG(column->name), STR_ARG(cql_type_text(&c->q, column->type)));
}

/* ---- Integers ---- */

/* An integer of any width as the type has it. False if it does not fit. */
static bool
integer_fit(const struct cql_type *type, struct doc_scalar *s)
{
	static const struct {
		enum cql_type_kind type;
		enum doc_kind kind;
		unsigned bits;
	} widths[] = {
		{ CQL_TYPE_TINYINT, DOC_INT8, 8 },
		{ CQL_TYPE_SMALLINT, DOC_INT16, 16 },
		{ CQL_TYPE_INT, DOC_INT32, 32 },
		{ CQL_TYPE_BIGINT, DOC_INT64, 64 },
	};

	if (s->kind != DOC_INT8 && s->kind != DOC_INT16 && s->kind != DOC_INT32 &&
	    s->kind != DOC_INT64)
		return true;
	for (size_t i = 0; i < sizeof(widths) / sizeof(*widths); i++) {
		int64_t most = (int64_t)(UINT64_MAX >> (65 - widths[i].bits));

		if (widths[i].type != type->kind)
			continue;
		s->kind = widths[i].kind;
		return s->n <= most && s->n >= -most - 1;
	}
	return true; /* of another type, which tells */
}

/* ---- Types of other doors ---- */

/* Of their values only the bytes are known here. */
static enum status
custom_check(struct copy_table *c, const struct cql_type *type, bool in_key,
	     const struct doc_scalar *s)
{
	return s->kind == DOC_BYTES && c->custom(type->name, in_key, s->text) ? STATUS_OK
									      : STATUS_INVALID;
}

/* ---- Keys ---- */

/* A scalar that is ordered by its value: its bytes, checked. */
static enum status
ordered_bytes(struct copy_table *c, const struct cql_type *type, const struct doc_scalar *s,
	      struct str *ret)
{
	struct doc_scalar fit = *s;

	if (type->kind == CQL_TYPE_CUSTOM) {
		*ret = s->text;
		return custom_check(c, type, true, s);
	}
	if (!integer_fit(type, &fit))
		return STATUS_INVALID;
	TRY(value_of_key(&c->q, type, &fit, ret));
	return cql_value_check(&c->q, type, *ret);
}

/* The component of a key of bytes that were checked. */
static enum status
part_of_bytes(struct copy_table *c, const struct cql_type *type, struct str bytes,
	      struct doc_scalar *ret)
{
	if (type->kind != CQL_TYPE_CUSTOM)
		return value_to_key(&c->q, type, bytes, ret);
	*ret = (struct doc_scalar){ .kind = DOC_BYTES, .text = bytes };
	return STATUS_OK;
}

static enum status
ordered_normalize(struct copy_table *c, const struct cql_type *type, struct doc_scalar *s)
{
	struct str bytes;

	TRY(ordered_bytes(c, type, s, &bytes));
	return part_of_bytes(c, type, bytes, s);
}

/* What was no value of the column's is told by the column's name. */
static enum status
tell_column(struct copy_table *c, const struct schema_column *column, enum status status)
{
	return status == STATUS_CORRUPT || status == STATUS_INVALID ? fail_value(c, column)
								    : status;
}

/* True if the token can be told by the stored key alone. */
static bool
token_is_exact(const struct schema_table *t)
{
	for (size_t i = 0; i < t->partition_count; i++)
		if (cql_type_key_use(t->columns[i].type) != CQL_KEY_EXACT)
			return false;
	return true;
}

static enum status
token_choose(struct copy_table *c, struct str key, const int64_t *said, int64_t *ret)
{
	int64_t token = cql_token(key);

	*ret = said ? *said : token;
	if (*ret == token || !token_is_exact(c->table))
		return STATUS_OK;
	return err_set(c->q.err, STATUS_INVALID, "the token of this key is %lld", (long long)token);
}

enum status
copy_key_of_values(struct copy_table *c, const struct str *values, size_t count,
		   const int64_t *said, struct table_key *ret)
{
	const struct schema_table *t = c->table;
	struct doc_scalar *own = arena_alloc(c->q.arena, (count + 1) * sizeof(*own));
	AUTO(buf_release) struct buf key = cql_buf(&c->q, COPY_KEY_BYTES);

	if (!own)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		TRY(tell_column(c, &t->columns[i],
				part_of_bytes(c, t->columns[i].type, values[i], &own[i])));
	if (cql_partition_key_put(&key, values, t->partition_count) == STATUS_INVALID)
		return err_set(c->q.err, STATUS_INVALID,
			       "a column of the partition key has more than %d bytes "
			       "(CQL_KEY_PART_BYTES)",
			       CQL_KEY_PART_BYTES);
	TRY(buf_status(&key));
	*ret = (struct table_key){ .parts = own, .count = count };
	return token_choose(c, buf_str(&key), said, &ret->token);
}

enum status
copy_key(struct copy_table *c, const struct doc_scalar *parts, size_t count, const int64_t *said,
	 struct table_key *ret)
{
	const struct schema_column *columns = c->table->columns;
	struct str *values = arena_alloc(c->q.arena, (count + 1) * sizeof(*values));

	if (!values)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		TRY(tell_column(c, &columns[i],
				ordered_bytes(c, columns[i].type, &parts[i], &values[i])));
	return copy_key_of_values(c, values, count, said, ret);
}

/* ---- Cells ---- */

static const struct schema_column *
column_of(const struct copy_table *c, uint64_t id)
{
	for (size_t i = c->table->key_count; i < c->table->count; i++)
		if (c->table->columns[i].stored->id == id)
			return &c->table->columns[i];
	return NULL;
}

static enum status
value_normalize(struct copy_table *c, const struct cql_type *type, struct doc_scalar *s)
{
	struct str bytes;

	if (type->kind == CQL_TYPE_CUSTOM)
		return custom_check(c, type, false, s);
	if (s->kind == DOC_NULL || !integer_fit(type, s))
		return STATUS_INVALID;
	TRY(cql_value_of_scalar(&c->q, type, s, &bytes));
	TRY(cql_value_check(&c->q, type, bytes));
	TRY(cql_value_normalize(&c->q, type, bytes, &bytes));
	return cql_value_to_scalar(&c->q, type, bytes, s);
}

/* The number of a field of a user type. */
static enum status
field_number(const struct cql_type *type, struct doc_scalar *field)
{
	if ((field->kind != DOC_INT64 && field->kind != DOC_INT16) || field->n < 0 ||
	    (uint64_t)field->n >= type->count)
		return STATUS_INVALID;
	field->kind = DOC_INT16;
	return STATUS_OK;
}

static enum status
field_normalize(struct copy_table *c, const struct cql_type *type, struct table_change *change)
{
	TRY(field_number(type, &change->element));
	return value_normalize(c, type->args[change->element.n], &change->value);
}

static enum status
change_normalize(struct copy_table *c, const struct cql_type *type, enum table_storage storage,
		 struct table_change *change)
{
	switch (storage) {
	case TABLE_SINGLE:
		return value_normalize(c, type, &change->value);
	case TABLE_COUNTER:
		return change->value.kind == DOC_INT64 ? STATUS_OK : STATUS_INVALID;
	case TABLE_LIST:
		return value_normalize(c, type->args[0], &change->value);
	case TABLE_SET:
		return ordered_normalize(c, type->args[0], &change->element);
	case TABLE_MAP:
		break;
	}
	if (type->kind == CQL_TYPE_UDT)
		return field_normalize(c, type, change);
	TRY(ordered_normalize(c, type->args[0], &change->element));
	return value_normalize(c, type->args[1], &change->value);
}

enum status
copy_change(struct copy_table *c, struct table_change *change)
{
	const struct schema_column *column = column_of(c, change->column);

	if (!column)
		return err_set(c->q.err, STATUS_INVALID, "the table has no such column");
	return tell_column(c, column,
			   change_normalize(c, column->type, column->stored->storage, change));
}

static enum status
element_normalize(struct copy_table *c, const struct schema_column *column,
		  struct doc_scalar *element)
{
	const struct cql_type *type = column->type;

	switch (column->stored->storage) {
	case TABLE_LIST: /* a place, whose bytes the model checks */
		return element->kind == DOC_BYTES ? STATUS_OK : STATUS_INVALID;
	case TABLE_SET:
	case TABLE_MAP:
		break;
	case TABLE_SINGLE:
	case TABLE_COUNTER:
		return STATUS_INVALID;
	}
	if (type->kind == CQL_TYPE_UDT)
		return field_number(type, element);
	return ordered_normalize(c, type->args[0], element);
}

enum status
copy_element(struct copy_table *c, uint64_t column, struct doc_scalar *element)
{
	const struct schema_column *of = column_of(c, column);

	if (!of)
		return err_set(c->q.err, STATUS_INVALID, "the table has no such column");
	return tell_column(c, of, element_normalize(c, of, element));
}

enum status
copy_condition(struct copy_table *c, struct index_typed_condition *condition)
{
	for (size_t i = 0; i < c->table->count; i++) {
		const struct schema_column *column = &c->table->columns[i];
		enum status status;

		if (column->stored->id != condition->column)
			continue;
		status = i < c->table->key_count
				 ? ordered_normalize(c, column->type, &condition->value)
				 : value_normalize(c, column->type, &condition->value);
		return tell_column(c, column, status);
	}
	return err_set(c->q.err, STATUS_INVALID, "the table has no such column");
}

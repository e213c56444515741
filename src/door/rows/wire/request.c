#include "door/rows/wire/request.h"

enum {
	COLUMN_BYTES = 4,     /* of a column's number, with what follows it at least */
	NEW_COLUMN_BYTES = 5, /* of one that is made: name, kind, role, flags */
	ADDED_BYTES = 3,
	NAME_BYTES = 2,
	VALUE_BYTES = 4,
	KEY_BYTES = 1,
	OP_BYTES = 2,
	FILTER_BYTES = 15,
	INDEX_COLUMN_BYTES = 5, /* of an index: its id, flags */
	CONDITION_BYTES = 9,
	MANY_MOST = INT32_MAX,
};

static enum status
fail_malformed(struct err *err)
{
	return err_set(err, STATUS_INVALID, "the request is malformed");
}

/* What every body ends with: nothing is missing, and nothing is left. */
static enum status
check_end(const struct rows_in *in, struct err *err)
{
	return in->bad || in->rest.len ? fail_malformed(err) : STATUS_OK;
}

static struct rows_table
read_table(struct rows_in *in)
{
	static const char any[ROWS_ID_BYTES];
	struct rows_table t;

	t.schema = rows_in_str(in);
	t.name = rows_in_str(in);
	t.id = rows_in_bytes(in, ROWS_ID_BYTES);
	if (!in->bad && memcmp(t.id.ptr, any, sizeof(any)) == 0)
		t.id = STR("");
	return t;
}

static enum status
read_columns(struct rows_in *in, struct arena *arena, bool with_ops, const uint32_t **ret,
	     const uint8_t **ret_ops, size_t *ret_count)
{
	size_t count = rows_in_count(in, rows_in_u16(in), ROWS_COLUMNS, COLUMN_BYTES + with_ops);
	uint32_t *columns = arena_alloc(arena, (count + 1) * sizeof(*columns));
	uint8_t *ops = arena_alloc(arena, count + 1);

	if (!columns || !ops)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		columns[i] = rows_in_u32(in);
		ops[i] = with_ops ? rows_in_u8(in) : 0;
		if (with_ops && (ops[i] < ROWS_SUM_COUNT || ops[i] > ROWS_SUM_GREATEST))
			in->bad = true;
	}
	*ret = columns;
	*ret_ops = ops;
	*ret_count = count;
	return STATUS_OK;
}

/* ---- Schemas ---- */

static enum status
read_new_columns(struct rows_in *in, struct arena *arena, bool added,
		 const struct rows_column **ret, size_t *ret_count)
{
	size_t count = rows_in_count(in, rows_in_u16(in), ROWS_COLUMNS,
				     added ? ADDED_BYTES : NEW_COLUMN_BYTES);
	struct rows_column *columns = arena_alloc(arena, (count + 1) * sizeof(*columns));
	unsigned flags;

	if (!columns)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		columns[i] = (struct rows_column){ .role = ROWS_ROLE_REGULAR };
		columns[i].name = rows_in_str(in);
		columns[i].kind = rows_in_u8(in);
		if (added)
			continue;
		columns[i].role = rows_in_u8(in);
		flags = rows_in_u8(in);
		columns[i].descending = flags & ROWS_COLUMN_DESCENDING;
		if (flags & ~(unsigned)ROWS_COLUMN_DESCENDING)
			in->bad = true;
	}
	*ret = columns;
	*ret_count = count;
	return STATUS_OK;
}

enum status
rows_create_read(struct str body, struct arena *arena, struct rows_create *ret, struct err *err)
{
	struct rows_in in = { .rest = body };

	*ret = (struct rows_create){ 0 };
	ret->table.schema = rows_in_str(&in);
	ret->table.name = rows_in_str(&in);
	TRY(read_new_columns(&in, arena, false, &ret->columns, &ret->count));
	return check_end(&in, err);
}

enum status
rows_alter_read(struct str body, struct arena *arena, struct rows_alter *ret, struct err *err)
{
	struct rows_in in = { .rest = body };
	struct rows_rename *renames;
	struct str *drops;

	*ret = (struct rows_alter){ .table = read_table(&in) };
	TRY(read_new_columns(&in, arena, true, &ret->add, &ret->add_count));
	ret->drop_count = rows_in_count(&in, rows_in_u16(&in), ROWS_COLUMNS, NAME_BYTES);
	drops = arena_alloc(arena, (ret->drop_count + 1) * sizeof(*drops));
	if (!drops)
		return STATUS_LIMIT;
	for (size_t i = 0; i < ret->drop_count; i++)
		drops[i] = rows_in_str(&in);
	ret->drop = drops;
	ret->rename_count = rows_in_count(&in, rows_in_u16(&in), ROWS_COLUMNS, 2 * NAME_BYTES);
	renames = arena_alloc(arena, (ret->rename_count + 1) * sizeof(*renames));
	if (!renames)
		return STATUS_LIMIT;
	for (size_t i = 0; i < ret->rename_count; i++) {
		renames[i].from = rows_in_str(&in);
		renames[i].to = rows_in_str(&in);
	}
	ret->rename = renames;
	return check_end(&in, err);
}

enum status
rows_names_read(struct str body, struct str *first, struct str *second, struct err *err)
{
	struct rows_in in = { .rest = body };

	*first = rows_in_str(&in);
	if (second)
		*second = rows_in_str(&in);
	return check_end(&in, err);
}

/* ---- Indexes ---- */

static enum status
read_index_columns(struct rows_in *in, struct arena *arena, struct rows_index_create *ret)
{
	size_t count = rows_in_count(in, rows_in_u8(in), ROWS_KEY_COLUMNS, INDEX_COLUMN_BYTES);
	struct rows_index_column *columns = arena_alloc(arena, (count + 1) * sizeof(*columns));
	unsigned flags;

	if (!columns)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		columns[i].id = rows_in_u32(in);
		flags = rows_in_u8(in);
		columns[i].descending = flags & ROWS_COLUMN_DESCENDING;
		if (flags & ~(unsigned)ROWS_COLUMN_DESCENDING)
			in->bad = true;
	}
	ret->columns = columns;
	ret->count = count;
	return STATUS_OK;
}

static enum status
read_included(struct rows_in *in, struct arena *arena, struct rows_index_create *ret)
{
	size_t count = rows_in_count(in, rows_in_u8(in), ROWS_KEY_COLUMNS, COLUMN_BYTES);
	uint32_t *included = arena_alloc(arena, (count + 1) * sizeof(*included));

	if (!included)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		included[i] = rows_in_u32(in);
	ret->included = included;
	ret->included_count = count;
	return STATUS_OK;
}

static enum status
read_conditions(struct rows_in *in, struct arena *arena, struct rows_index_create *ret)
{
	size_t count = rows_in_count(in, rows_in_u8(in), ROWS_KEY_COLUMNS, CONDITION_BYTES);
	struct rows_condition *conditions = arena_alloc(arena, (count + 1) * sizeof(*conditions));

	if (!conditions)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		struct rows_condition *c = &conditions[i];
		unsigned op;

		c->column = rows_in_u32(in);
		op = rows_in_u8(in);
		c->op = (enum rows_condition_op)op;
		c->value = rows_in_value(in);
		if (op > ROWS_CONDITION_NOT_NULL ||
		    c->value.presence != (op == ROWS_CONDITION_NOT_NULL ? ROWS_NULL : ROWS_VALUE))
			in->bad = true;
	}
	ret->conditions = conditions;
	ret->condition_count = count;
	return STATUS_OK;
}

enum status
rows_index_create_read(struct str body, struct arena *arena, struct rows_index_create *ret,
		       struct err *err)
{
	struct rows_in in = { .rest = body };
	unsigned flags;

	*ret = (struct rows_index_create){ .table = read_table(&in) };
	ret->name = rows_in_str(&in);
	flags = rows_in_u8(&in);
	ret->unique = flags & ROWS_INDEX_UNIQUE;
	if (flags & ~(unsigned)ROWS_INDEX_UNIQUE)
		in.bad = true;
	TRY(read_index_columns(&in, arena, ret));
	TRY(read_included(&in, arena, ret));
	TRY(read_conditions(&in, arena, ret));
	ret->spec = rows_in_str(&in);
	return check_end(&in, err);
}

enum status
rows_index_build_read(struct str body, struct rows_table *ret, uint32_t *ret_number,
		      struct err *err)
{
	struct rows_in in = { .rest = body };

	*ret = read_table(&in);
	*ret_number = rows_in_u32(&in);
	return check_end(&in, err);
}

/* ---- Reading rows ---- */

/* `nulls`: one may be null. */
static enum status
read_values(struct rows_in *in, struct arena *arena, bool nulls, const struct rows_value **ret,
	    size_t *ret_count)
{
	size_t count = rows_in_count(in, rows_in_u8(in), ROWS_KEY_COLUMNS, VALUE_BYTES);
	struct rows_value *values = arena_alloc(arena, (count + 1) * sizeof(*values));

	if (!values)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		values[i] = rows_in_value(in);
		if (values[i].presence != ROWS_VALUE && (!nulls || values[i].presence != ROWS_NULL))
			in->bad = true;
	}
	*ret = values;
	*ret_count = count;
	return STATUS_OK;
}

static enum rows_bound
read_bound(struct rows_in *in)
{
	unsigned kind = rows_in_u8(in);

	if (kind <= ROWS_BOUND_EXCLUSIVE)
		return (enum rows_bound)kind;
	in->bad = true;
	return ROWS_BOUND_NONE;
}

/* What is not null lies beyond null: a range never includes it. */
static enum status
read_edge(struct rows_in *in, struct arena *arena, bool nulls, struct rows_edge *ret)
{
	ret->kind = read_bound(in);
	TRY(read_values(in, arena, nulls && ret->kind == ROWS_BOUND_EXCLUSIVE, &ret->values,
			&ret->count));
	if (!ret->count != (ret->kind == ROWS_BOUND_NONE))
		in->bad = true;
	return STATUS_OK;
}

/* A bound is there if and only if it has a value. */
static void
read_filter_bound(struct rows_in *in, enum rows_bound *kind, struct rows_value *value)
{
	*kind = read_bound(in);
	*value = rows_in_value(in);
	if ((value->presence == ROWS_VALUE) != (*kind != ROWS_BOUND_NONE))
		in->bad = true;
}

static enum status
read_filters(struct rows_in *in, struct arena *arena, struct rows_scan *ret)
{
	size_t count = rows_in_count(in, rows_in_u16(in), ROWS_FILTERS, FILTER_BYTES);
	struct rows_filter *filters = arena_alloc(arena, (count + 1) * sizeof(*filters));
	unsigned test;

	if (!filters)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		filters[i].column = rows_in_u32(in);
		test = rows_in_u8(in);
		if (test > ROWS_TEST_NOT_NULL)
			in->bad = true;
		filters[i].test = (enum rows_test)test;
		read_filter_bound(in, &filters[i].from_kind, &filters[i].from);
		read_filter_bound(in, &filters[i].to_kind, &filters[i].to);
		if (test != ROWS_TEST_INTERVAL && (filters[i].from_kind || filters[i].to_kind))
			in->bad = true;
	}
	ret->filters = filters;
	ret->filter_count = count;
	return STATUS_OK;
}

enum status
rows_scan_read(struct str body, struct arena *arena, struct rows_scan *ret, struct err *err)
{
	struct rows_in in = { .rest = body };
	unsigned flags;

	*ret = (struct rows_scan){ .table = read_table(&in) };
	flags = rows_in_u8(&in);
	ret->reverse = flags & ROWS_SCAN_REVERSE;
	ret->sums = flags & ROWS_SCAN_SUMS;
	if (flags &
	    ~(unsigned)(ROWS_SCAN_REVERSE | ROWS_SCAN_SUMS | ROWS_SCAN_GROUPS | ROWS_SCAN_INDEX))
		in.bad = true;
	if (flags & ROWS_SCAN_GROUPS) {
		ret->groups = rows_in_u8(&in);
		if (!ret->sums || !ret->groups || ret->groups > ROWS_KEY_COLUMNS)
			in.bad = true;
	}
	if (flags & ROWS_SCAN_INDEX) {
		ret->index = rows_in_u32(&in);
		in.bad = in.bad || !ret->index;
	}
	TRY(read_columns(&in, arena, ret->sums, &ret->columns, &ret->ops, &ret->column_count));
	TRY(read_values(&in, arena, ret->index, &ret->equal, &ret->equal_count));
	TRY(read_edge(&in, arena, ret->index, &ret->from));
	TRY(read_edge(&in, arena, ret->index, &ret->to));
	TRY(read_filters(&in, arena, ret));
	ret->rows = rows_in_u32(&in);
	ret->bytes = rows_in_u32(&in);
	ret->sample = rows_in_u32(&in);
	ret->place = rows_in_long(&in);
	return check_end(&in, err);
}

void
rows_key_next(struct rows_in *keys, struct rows_key *ret)
{
	ret->count = rows_in_count(keys, rows_in_u8(keys), ROWS_KEY_COLUMNS, VALUE_BYTES);
	for (size_t i = 0; i < ret->count; i++) {
		ret->values[i] = rows_in_value(keys);
		if (ret->values[i].presence != ROWS_VALUE)
			keys->bad = true;
	}
}

enum status
rows_get_read(struct str body, struct arena *arena, struct rows_get *ret, struct err *err)
{
	struct rows_in in = { .rest = body }, look;
	struct rows_key key;
	const uint8_t *ops;

	*ret = (struct rows_get){ .table = read_table(&in) };
	if (rows_in_u8(&in)) /* flags: none yet */
		in.bad = true;
	TRY(read_columns(&in, arena, false, &ret->columns, &ops, &ret->column_count));
	ret->key_count = rows_in_count(&in, rows_in_u32(&in), MANY_MOST, KEY_BYTES);
	ret->keys = look = in;
	for (uint32_t i = 0; i < ret->key_count && !look.bad; i++)
		rows_key_next(&look, &key);
	return check_end(&look, err);
}

/* ---- Writing rows ---- */

void
rows_write_next(struct rows_in *ops, size_t column_count, enum rows_op *ret_op,
		struct rows_key *ret_key, struct rows_value *values)
{
	unsigned op = rows_in_u8(ops);

	if (op < ROWS_OP_INSERT || op >= ROWS_OPS_END) {
		ops->bad = true;
		op = ROWS_OP_DELETE;
	}
	*ret_op = (enum rows_op)op;
	rows_key_next(ops, ret_key);
	for (size_t i = 0; i < column_count && rows_op_has_values(*ret_op); i++)
		values[i] = rows_in_value(ops);
}

enum status
rows_write_read(struct str body, struct arena *arena, struct rows_write *ret, struct err *err)
{
	struct rows_in in = { .rest = body }, look;
	struct rows_value *values;
	struct rows_key key;
	const uint8_t *none;
	enum rows_op op;

	*ret = (struct rows_write){ .table = read_table(&in) };
	if (rows_in_u8(&in)) /* flags: none yet */
		in.bad = true;
	TRY(read_columns(&in, arena, false, &ret->columns, &none, &ret->column_count));
	ret->count = rows_in_count(&in, rows_in_u32(&in), MANY_MOST, OP_BYTES);
	ret->ops = look = in;
	values = arena_alloc(arena, (ret->column_count + 1) * sizeof(*values));
	if (!values)
		return STATUS_LIMIT;
	for (uint32_t i = 0; i < ret->count && !look.bad; i++)
		rows_write_next(&look, ret->column_count, &op, &key, values);
	return check_end(&look, err);
}

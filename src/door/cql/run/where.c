#include "door/cql/run/where.h"

#include "loop/step.h"

enum {
	NAME_SHOWN_BYTES = 4096, /* of a receiver's name: "in(column)", "(a, b)" */
};

/* "value(c)" in the arena. */
static enum status
receiver_name(struct run *run, const char *what, struct str column, struct str *ret)
{
	*ret = arena_printf(run->r->arena, "%s(%.*s)", what, STR_ARG(column));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
fail_column(struct run *run, const char *before, struct str name, const char *after)
{
	return request_fail(run->r, CQL_CODE_INVALID, "%s%.*s%s", before, STR_ARG(name), after);
}

bool
where_term_is(const struct where_term *term, const struct schema_column *c)
{
	return term->relation->left == CQL_LEFT_COLUMN && term->columns[0] == c;
}

/* ---- Compiling ---- */

/* The columns of `(a, b)`, which are clustering columns in their order. */
static enum status
check_tuple(struct run *run, struct where_term *t)
{
	for (size_t i = 0; i < t->column_count; i++) {
		if (t->columns[i]->kind != SCHEMA_CLUSTERING)
			return fail_column(run,
					   "Multi-column relations can only be applied to "
					   "clustering columns but was applied to: ",
					   t->columns[i]->name, "");
		if (i && t->columns[i]->position != t->columns[i - 1]->position + 1)
			return fail_column(
				run,
				"Clustering columns must appear in the PRIMARY KEY order "
				"in multi-column relations: ",
				t->columns[i]->name, "");
	}
	return STATUS_OK;
}

static enum status
check_token(struct run *run, struct where_term *t)
{
	bool right = t->column_count == run->table->partition_count;

	for (size_t i = 0; right && i < t->column_count; i++)
		right = t->columns[i] == &run->table->columns[i];
	if (right)
		return STATUS_OK;
	return request_fail(run->r, CQL_CODE_INVALID,
			    "The token() function must be applied to all partition key components "
			    "or none of them");
}

/* Operators that WHERE has on nothing. */
static enum status
check_supported(struct run *run, const struct where_term *t)
{
	const struct cql_relation *r = t->relation;
	AUTO(buf_release) struct buf shown = BUF_SHORT(NAME_SHOWN_BYTES);

	cql_relation_print(&shown, r);
	switch (r->op) {
	case CQL_OP_NE:
	case CQL_OP_NOT_IN:
		return request_fail(run->r, CQL_CODE_INVALID, "Unsupported \"%.*s\" relation: %.*s",
				    STR_ARG(cql_operator_text(r->op)), STR_ARG(buf_str(&shown)));
	case CQL_OP_IS_NOT_NULL:
		return request_fail(run->r, CQL_CODE_INVALID, "Unsupported restriction: %.*s",
				    STR_ARG(buf_str(&shown)));
	case CQL_OP_LIKE:
		return fail_column(run,
				   "LIKE restriction is only supported on properly indexed "
				   "columns. ",
				   buf_str(&shown), " is not valid.");
	case CQL_OP_LT:
	case CQL_OP_LE:
	case CQL_OP_GT:
	case CQL_OP_GE:
	case CQL_OP_EQ:
	case CQL_OP_IN:
	case CQL_OP_CONTAINS:
	case CQL_OP_CONTAINS_KEY:
		break;
	}
	return STATUS_OK;
}

static enum status
check_operator(struct run *run, const struct where_term *t)
{
	const struct cql_relation *r = t->relation;
	const struct schema_column *c = t->columns[0];
	bool slice = r->op == CQL_OP_LT || r->op == CQL_OP_LE || r->op == CQL_OP_GT ||
		     r->op == CQL_OP_GE;

	if (slice && cql_type_has(t->type, CQL_TYPE_DURATION))
		return request_fail(run->r, CQL_CODE_INVALID,
				    "Slice restrictions are not supported on duration columns");
	if (r->left == CQL_LEFT_COLUMN && cql_type_is_multicell(c->type) &&
	    r->op != CQL_OP_CONTAINS && r->op != CQL_OP_CONTAINS_KEY)
		return request_fail(run->r, CQL_CODE_INVALID,
				    "%s column '%.*s' (%.*s) cannot be restricted by a '%.*s' "
				    "relation",
				    c->type->kind == CQL_TYPE_UDT ? "UDT" : "Collection",
				    STR_ARG(c->name), STR_ARG(cql_type_text(run->q, c->type)),
				    STR_ARG(cql_operator_text(r->op)));
	return STATUS_OK;
}

/* What the operand of a relation on one column is, and what its marker is called. */
static enum status
operand_of_column(struct run *run, struct where_term *t, struct str *name)
{
	const struct schema_column *c = t->columns[0];
	const struct cql_type *type = c->type;

	t->type = type;
	*name = c->name;
	if (t->relation->op == CQL_OP_CONTAINS) {
		if (!cql_type_is_collection(type))
			return fail_column(run, "Cannot use CONTAINS on non-collection column ",
					   c->name, "");
		t->type = type->args[type->kind == CQL_TYPE_MAP];
		return receiver_name(run, "value", c->name, name);
	}
	if (t->relation->op == CQL_OP_CONTAINS_KEY) {
		if (type->kind != CQL_TYPE_MAP)
			return fail_column(run, "Cannot use CONTAINS KEY on non-map column ",
					   c->name, "");
		t->type = type->args[0];
		return receiver_name(run, "key", c->name, name);
	}
	return STATUS_OK;
}

static enum status
operand_of_element(struct run *run, struct where_term *t, struct str *name)
{
	const struct schema_column *c = t->columns[0];
	struct str key;

	if (c->type->kind == CQL_TYPE_LIST)
		return request_fail(run->r, CQL_CODE_INVALID,
				    "Indexes on list entries (%.*s[index] = value) are not "
				    "currently supported.",
				    STR_ARG(c->name));
	if (c->type->kind != CQL_TYPE_MAP)
		return fail_column(run, "Column ", c->name, " cannot be used as a map");
	if (!cql_type_is_multicell(c->type))
		return fail_column(run, "Map-entry equality predicates on frozen map column ",
				   c->name, " are not supported");
	if (t->relation->op != CQL_OP_EQ)
		return request_fail(run->r, CQL_CODE_INVALID,
				    "Only EQ relations are supported on map entries");
	t->type = c->type->args[1];
	TRY(receiver_name(run, "key", c->name, &key));
	TRY(run_compile(run, t->relation->key, c->type->args[0], key, &t->key));
	return receiver_name(run, "value", c->name, name);
}

static enum status
operand_of_tuple(struct run *run, struct where_term *t, struct str *name)
{
	AUTO(buf_release) struct buf shown = BUF_SHORT(NAME_SHOWN_BYTES);
	const struct cql_type **types = arena_alloc(run->r->arena,
						    t->column_count * sizeof(*types));

	TRY(check_tuple(run, t));
	if (!types)
		return STATUS_LIMIT;
	for (size_t i = 0; i < t->column_count; i++) {
		types[i] = t->columns[i]->type;
		buf_printf(&shown, "%s%.*s", i ? "," : "(", STR_ARG(t->columns[i]->name));
	}
	buf_append_byte(&shown, ')');
	t->type = cql_type_of(run->q, CQL_TYPE_TUPLE, true, types, t->column_count);
	return t->type ? arena_copy(run->r->arena, buf_str(&shown), name) : STATUS_LIMIT;
}

static enum status
compile_operand(struct run *run, struct where_term *t, struct str *name)
{
	switch (t->relation->left) {
	case CQL_LEFT_COLUMN:
		return operand_of_column(run, t, name);
	case CQL_LEFT_ELEMENT:
		return operand_of_element(run, t, name);
	case CQL_LEFT_TUPLE:
		return operand_of_tuple(run, t, name);
	case CQL_LEFT_TOKEN:
		TRY(check_token(run, t));
		t->type = CQL_NATIVE(BIGINT);
		*name = STR("partition key token");
		return STATUS_OK;
	case CQL_LEFT_JSON:
		*name = t->columns[0]->name;
		return json_path_compile(run, t->columns[0], t->relation->path,
					 t->relation->path_count, t->relation->is_text, &t->path,
					 &t->type);
	case CQL_LEFT_FIELD:
		break;
	}
	return request_fail(run->r, CQL_CODE_INVALID, "conditions on fields are not supported");
}

static enum status
term_compile(struct run *run, const struct cql_relation *r, struct where_term *t)
{
	bool one = r->op == CQL_OP_IN && !r->is_list;
	const struct cql_type *type;
	struct str name;

	*t = (struct where_term){ .relation = r, .column_count = r->column_count };
	t->columns = arena_alloc(run->r->arena, (r->column_count + 1) * sizeof(*t->columns));
	t->exprs = arena_alloc(run->r->arena, (r->value_count + 1) * sizeof(*t->exprs));
	if (!t->columns || !t->exprs)
		return STATUS_LIMIT;
	for (size_t i = 0; i < r->column_count; i++)
		TRY(run_column(run, r->columns[i], &t->columns[i]));
	TRY(check_supported(run, t));
	TRY(compile_operand(run, t, &name));
	TRY(check_operator(run, t));
	type = t->type;
	if (one) {
		const struct cql_type *args[] = { t->type };

		type = cql_type_of(run->q, CQL_TYPE_LIST, true, args, 1);
		if (!type)
			return STATUS_LIMIT;
		TRY(receiver_name(run, "in", name, &name));
	}
	for (size_t i = 0; i < r->value_count; i++)
		TRY(run_compile(run, r->values[i], type, name, &t->exprs[i]));
	t->expr_count = r->value_count;
	return STATUS_OK;
}

enum status
where_compile(struct run *run, const struct cql_relations *relations, struct where *ret)
{
	*ret = (struct where){ 0 };
	ret->terms = arena_alloc(run->r->arena, (relations->count + 1) * sizeof(*ret->terms));
	if (!ret->terms)
		return STATUS_LIMIT;
	for (size_t i = 0; i < relations->count; i++)
		TRY(term_compile(run, &relations->list[i], &ret->terms[i]));
	ret->count = relations->count;
	return STATUS_OK;
}

enum status
where_copy(struct run *run, struct where *w)
{
	struct where_term *terms = arena_alloc(run->r->arena, (w->count + 1) * sizeof(*terms));

	if (!terms)
		return STATUS_LIMIT;
	memcpy(terms, w->terms, w->count * sizeof(*terms));
	w->terms = terms;
	return STATUS_OK;
}

/* ---- Computing ---- */

static enum status
check_value(struct run *run, const struct where_term *t, const struct cql_value *v)
{
	struct str name = t->columns[0]->name;

	if (v->presence == CQL_SET)
		return STATUS_OK;
	if (t->relation->left == CQL_LEFT_TOKEN)
		return request_fail(run->r, CQL_CODE_INVALID, "Invalid null token value");
	if (t->relation->left == CQL_LEFT_ELEMENT)
		return fail_column(run,
				   v->presence == CQL_UNSET
					   ? "Unsupported unset map value for column "
					   : "Unsupported null map value for column ",
				   name, "");
	if (v->presence == CQL_UNSET)
		return fail_column(run, "Unsupported unset value for column ", name, "");
	if (t->relation->op == CQL_OP_IN)
		return fail_column(run, "Invalid null value for column ", name, "");
	if (t->columns[0]->type->kind == CQL_TYPE_COUNTER)
		return request_fail(run->r, CQL_CODE_INVALID,
				    "Invalid null value for counter increment/decrement");
	return fail_column(run, "Unsupported null value for column ", name, "");
}

/* IN ?: the elements of the list. */
static enum status
compute_list(struct run *run, struct where_term *t)
{
	const struct cql_type *args[] = { t->type };
	const struct cql_type *list = cql_type_of(run->q, CQL_TYPE_LIST, true, args, 1);
	struct cql_elements e;
	struct cql_value v;
	size_t n = 0;

	TRY(run_value(run, t->exprs[0], &v));
	TRY(check_value(run, t, &v));
	if (!list)
		return STATUS_LIMIT;
	t->value_count = cql_elements_count(v.bytes);
	t->values = arena_alloc(run->r->arena, (t->value_count + 1) * sizeof(*t->values));
	if (!t->values)
		return STATUS_LIMIT;
	cql_elements_init(&e, list, v.bytes);
	while (n < t->value_count && cql_elements_next(&e, &t->values[n])) {
		TRY(check_value(run, t, &t->values[n]));
		n++;
	}
	return STATUS_OK;
}

static enum status
term_compute(struct run *run, struct where_term *t)
{
	if (t->key) {
		TRY(run_value(run, t->key, &t->key_value));
		if (t->key_value.presence != CQL_SET)
			return fail_column(run,
					   t->key_value.presence == CQL_UNSET
						   ? "Unsupported unset map key for column "
						   : "Unsupported null map key for column ",
					   t->columns[0]->name, "");
	}
	if (t->relation->left == CQL_LEFT_JSON)
		TRY(json_path_compute(run, &t->path));
	if (t->relation->op == CQL_OP_IN && !t->relation->is_list)
		return compute_list(run, t);
	t->values = arena_alloc(run->r->arena, (t->expr_count + 1) * sizeof(*t->values));
	if (!t->values)
		return STATUS_LIMIT;
	for (size_t i = 0; i < t->expr_count; i++) {
		TRY(run_value(run, t->exprs[i], &t->values[i]));
		TRY(check_value(run, t, &t->values[i]));
	}
	t->value_count = t->expr_count;
	return STATUS_OK;
}

enum status
where_compute(struct run *run, struct where *w)
{
	for (size_t i = 0; i < w->count; i++)
		TRY(term_compute(run, &w->terms[i]));
	return STATUS_OK;
}

/* ---- Checking rows ---- */

static bool
order_is(int order, enum cql_operator op)
{
	switch (op) {
	case CQL_OP_EQ:
		return order == 0;
	case CQL_OP_LT:
		return order < 0;
	case CQL_OP_LE:
		return order <= 0;
	case CQL_OP_GT:
		return order > 0;
	case CQL_OP_GE:
		return order >= 0;
	case CQL_OP_NE:
		return order != 0;
	case CQL_OP_IN:
	case CQL_OP_CONTAINS:
	case CQL_OP_CONTAINS_KEY:
	case CQL_OP_NOT_IN:
	case CQL_OP_LIKE:
	case CQL_OP_IS_NOT_NULL:
		break;
	}
	return false;
}

/* The order of the row's columns to the value of a tuple. */
static int
compare_tuple(const struct where_term *t, const struct row *row, const struct cql_value *v,
	      bool as_rows)
{
	struct cql_elements e;
	struct cql_value part;

	cql_elements_init(&e, t->type, v->bytes);
	for (size_t i = 0; i < t->column_count && cql_elements_next(&e, &part); i++) {
		size_t at = schema_column_at(row->table, t->columns[i]);
		int order = cql_value_compare(t->columns[i]->type, row->values[at].bytes,
					      part.bytes);

		if (order)
			return as_rows && t->columns[i]->descending ? -order : order;
	}
	return 0;
}

/*
 * The order of what the row has, `v` unless the term is of several columns, to a value: that of the
 * values, or, with `as_rows`, of the rows.
 */
static int
compare_row(const struct where_term *t, const struct row *row, const struct cql_value *v,
	    const struct cql_value *value, bool as_rows)
{
	int64_t token;
	int order;

	if (t->relation->left == CQL_LEFT_TUPLE)
		return compare_tuple(t, row, value, as_rows);
	if (t->relation->left == CQL_LEFT_TOKEN) {
		token = cql_int_read(value->bytes);
		return (row->token > token) - (row->token < token);
	}
	order = cql_value_compare(t->type, v->bytes, value->bytes);
	return as_rows && t->columns[0]->descending ? -order : order;
}

/* Whether the row has one of the values of IN, among which it is searched by halves. */
static enum status
is_listed(const struct where_term *t, const struct row *row, const struct cql_value *v, bool *ret)
{
	size_t from = 0, to = t->value_count;
	int order = 1;

	while (order && from < to) {
		size_t middle = from + (to - from) / 2;
		const struct cql_value *listed = &t->values[middle];

		TRY(step_count_bytes(listed->bytes.len));
		order = compare_row(t, row, v, listed, true);
		if (order < 0)
			to = middle;
		else
			from = middle + 1;
	}
	*ret = !order;
	return STATUS_OK;
}

/* Whether an element of a collection is one of the term's values. */
static enum status
contains(const struct where_term *t, const struct cql_type *type, struct str bytes, bool *ret)
{
	struct cql_elements e;
	struct cql_value v;
	bool is_map = type->kind == CQL_TYPE_MAP;

	cql_elements_init(&e, type, bytes);
	*ret = false;
	for (size_t i = 0; !*ret && cql_elements_next(&e, &v); i++) {
		bool is_key = is_map && i % 2 == 0;

		TRY(step_count(1));
		if (is_map && is_key != (t->relation->op == CQL_OP_CONTAINS_KEY))
			continue;
		*ret = cql_value_compare(t->type, v.bytes, t->values[0].bytes) == 0;
	}
	return STATUS_OK;
}

static enum status
element_equals(const struct where_term *t, const struct cql_type *type, struct str bytes, bool *ret)
{
	struct cql_elements e;
	struct cql_value key, value;

	cql_elements_init(&e, type, bytes);
	*ret = false;
	while (cql_elements_next(&e, &key) && cql_elements_next(&e, &value)) {
		TRY(step_count(1));
		if (cql_value_compare(type->args[0], key.bytes, t->key_value.bytes) != 0)
			continue;
		*ret = cql_value_compare(t->type, value.bytes, t->values[0].bytes) == 0;
		break;
	}
	return STATUS_OK;
}

enum status
where_term_matches(struct cql *q, const struct where_term *t, const struct row *row, bool *ret)
{
	const struct schema_column *c = t->columns[0];
	const struct cql_value *v = &row->values[schema_column_at(row->table, c)];
	struct cql_value inner;

	*ret = false;
	if (v->presence != CQL_SET && t->relation->left != CQL_LEFT_TOKEN)
		return STATUS_OK;
	if (t->relation->left == CQL_LEFT_ELEMENT)
		return element_equals(t, c->type, v->bytes, ret);
	if (t->relation->left == CQL_LEFT_JSON) {
		TRY(json_path_get(q, &t->path, v->bytes, &inner));
		if (inner.presence != CQL_SET)
			return STATUS_OK;
		v = &inner;
	}
	if (t->relation->op == CQL_OP_CONTAINS || t->relation->op == CQL_OP_CONTAINS_KEY)
		return contains(t, c->type, v->bytes, ret);
	if (t->relation->op == CQL_OP_IN)
		return is_listed(t, row, v, ret);
	*ret = order_is(compare_row(t, row, v, &t->values[0], false), t->relation->op);
	return STATUS_OK;
}

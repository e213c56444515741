/* IF: what it is about, whether it holds, and what its client is told. */
#include "door/cql/run/modify.h"
#include "loop/step.h"

/* Makes the row that conditions and answers look at; `stored` NULL: nothing was found. */
static enum status
state_fill(struct modify *m, const struct table_row *stored, struct row *ret)
{
	const struct schema_table *t = m->run->table;

	TRY(row_init(m->run->q, t, ret));
	ret->now_ms = m->timed->now_us / 1000;
	if (stored)
		return row_fill(m->run->q, stored, ret);
	for (size_t i = 0; i < t->count; i++) {
		ret->values[i] = CQL_VALUE_NULL;
		ret->write_us[i] = ROW_UNWRITTEN;
		ret->expires_ms[i] = 0;
	}
	return STATUS_OK;
}

enum status
condition_read(struct modify *m, bool all, struct condition_state *ret)
{
	struct run *run = m->run;
	const struct schema_table *t = run->table;
	struct table_row stored = { 0 };
	struct table_key key;
	enum status status;
	bool there;

	*ret = (struct condition_state){ 0 };
	TRY(modify_key(m, &key));
	/* Any static column tells that a partition has some, not only those that are named. */
	status = table_read(m->timed, &key, t->static_count > 0,
			    all || t->static_count ? NULL : &m->wanted, run->r->arena, &stored);
	there = status == STATUS_OK;
	if (!there && status != STATUS_NOT_FOUND)
		return status;
	TRY(timed_now(m->timed));
	ret->has_statics = stored.static_count > 0;
	ret->exists = there && (m->of_statics ? stored.static_count > 0 : stored.is_row);
	/* IF EXISTS of its own looks at no column, and tells none. */
	if (!all && !m->condition_count)
		return STATUS_OK;
	return state_fill(m, there ? &stored : NULL, &ret->row);
}

/* ---- Whether it holds ---- */

/* The value that a condition is about. */
static enum status
condition_value(struct modify *m, struct modify_condition *c, const struct condition_state *state,
		struct cql_value *ret)
{
	struct cql_value whole = state->row.values[schema_column_at(m->run->table, c->column)];
	const struct cql_type *type = c->column->type;
	struct cql_elements e;
	struct cql_value key, v;

	*ret = whole;
	if (c->relation->left == CQL_LEFT_COLUMN || whole.presence != CQL_SET)
		return STATUS_OK;
	*ret = CQL_VALUE_NULL;
	if (c->relation->left == CQL_LEFT_JSON) {
		TRY(json_path_compute(m->run, &c->path));
		return json_path_get(m->run->q, &c->path, whole.bytes, ret);
	}
	cql_elements_init(&e, type, whole.bytes);
	if (c->relation->left == CQL_LEFT_FIELD) {
		for (size_t i = 0; cql_elements_next(&e, &v); i++)
			if (i == c->field)
				*ret = v;
		return STATUS_OK;
	}
	TRY(run_value(m->run, c->key, &key));
	if (key.presence != CQL_SET)
		return request_fail(m->run->r, CQL_CODE_INVALID,
				    "Invalid null value for %s element access",
				    type->kind == CQL_TYPE_LIST ? "list" : "map");
	if (type->kind == CQL_TYPE_LIST) {
		int64_t at = cql_int_read(key.bytes);

		if (at < 0)
			return request_fail(m->run->r, CQL_CODE_INVALID,
					    "Invalid negative list index %lld", (long long)at);
		for (int64_t i = 0; cql_elements_next(&e, &v); i++)
			if (i == at)
				*ret = v;
		return STATUS_OK;
	}
	for (struct cql_value k; cql_elements_next(&e, &k) && cql_elements_next(&e, &v);)
		if (cql_value_compare(type->args[0], k.bytes, key.bytes) == 0)
			*ret = v;
	return STATUS_OK;
}

static bool
is_containing(enum cql_operator op)
{
	return op == CQL_OP_CONTAINS || op == CQL_OP_CONTAINS_KEY;
}

/* The whole of a collection whose elements are cells of their own. */
static bool
is_collection(const struct modify_condition *c)
{
	return c->relation->left == CQL_LEFT_COLUMN && !is_containing(c->relation->op) &&
	       cql_type_is_multicell(c->column->type) && cql_type_is_collection(c->column->type);
}

/* An empty collection that is not frozen is null. */
static struct cql_value
nullify(const struct modify_condition *c, struct cql_value v)
{
	return is_collection(c) && v.presence == CQL_SET && !cql_elements_count(v.bytes)
		       ? CQL_VALUE_NULL
		       : v;
}

/* An element that is not set is one that no collection has. */
static enum status
compare_contained(struct modify *m, const struct modify_condition *c, struct cql_value have,
		  struct cql_value want, bool *ret)
{
	const struct cql_type *type = c->column->type;
	bool keys = c->relation->op == CQL_OP_CONTAINS_KEY, is_map = type->kind == CQL_TYPE_MAP;
	struct cql_elements e;
	struct cql_value v;

	*ret = false;
	if (want.presence == CQL_NULL)
		return request_fail(m->run->r, CQL_CODE_INVALID,
				    "Invalid comparison with null for operator \"%.*s\"",
				    STR_ARG(cql_operator_text(c->relation->op)));
	if (want.presence == CQL_UNSET || have.presence != CQL_SET)
		return STATUS_OK;
	cql_elements_init(&e, type, have.bytes);
	for (size_t i = 0; !*ret && cql_elements_next(&e, &v); i++) {
		TRY(step_count(1));
		if (!is_map || (i % 2 == 0) == keys)
			*ret = cql_value_compare(c->type, v.bytes, want.bytes) == 0;
	}
	return STATUS_OK;
}

static enum status
compare(struct modify *m, const struct modify_condition *c, struct cql_value have,
	struct cql_value want, enum cql_operator op, bool *ret)
{
	int order;

	want = nullify(c, want);
	if (is_containing(op))
		return compare_contained(m, c, have, want, ret);
	if (want.presence == CQL_UNSET)
		return request_fail(m->run->r, CQL_CODE_INVALID,
				    "Invalid 'unset' value in condition");
	if (want.presence == CQL_NULL) {
		if (op != CQL_OP_EQ && op != CQL_OP_NE && op != CQL_OP_IN)
			return request_fail(m->run->r, CQL_CODE_INVALID,
					    "Invalid comparison with null for operator \"%.*s\"",
					    STR_ARG(cql_operator_text(op)));
		*ret = (have.presence != CQL_SET) == (op != CQL_OP_NE);
		return STATUS_OK;
	}
	if (have.presence != CQL_SET) {
		/* A collection without elements is less than any other. */
		*ret = op == CQL_OP_NE ||
		       (is_collection(c) && (op == CQL_OP_LT || op == CQL_OP_LE));
		return STATUS_OK;
	}
	order = cql_value_compare(c->type, have.bytes, want.bytes);
	switch (op) {
	case CQL_OP_EQ:
	case CQL_OP_IN:
		*ret = order == 0;
		break;
	case CQL_OP_NE:
		*ret = order != 0;
		break;
	case CQL_OP_LT:
		*ret = order < 0;
		break;
	case CQL_OP_LE:
		*ret = order <= 0;
		break;
	case CQL_OP_GT:
		*ret = order > 0;
		break;
	case CQL_OP_GE:
		*ret = order >= 0;
		break;
	case CQL_OP_NOT_IN:
	case CQL_OP_CONTAINS:
	case CQL_OP_CONTAINS_KEY:
	case CQL_OP_LIKE:
	case CQL_OP_IS_NOT_NULL:
		*ret = false;
		break;
	}
	return STATUS_OK;
}

/* IN ?: any element of the list. */
static enum status
compare_list(struct modify *m, const struct modify_condition *c, struct cql_value have,
	     struct cql_value list, bool *ret)
{
	const struct cql_type *args[] = { c->type };
	const struct cql_type *type = cql_type_of(m->run->q, CQL_TYPE_LIST, true, args, 1);
	struct cql_elements e;
	struct cql_value v;

	if (!type)
		return STATUS_LIMIT;
	if (list.presence != CQL_SET)
		return request_fail(m->run->r, CQL_CODE_INVALID, "Invalid %s list in IN condition",
				    list.presence == CQL_UNSET ? "unset" : "null");
	cql_elements_init(&e, type, list.bytes);
	while (!*ret && cql_elements_next(&e, &v)) {
		TRY(step_count(1));
		TRY(compare(m, c, have, v, CQL_OP_IN, ret));
	}
	return STATUS_OK;
}

static enum status
one_holds(struct modify *m, struct modify_condition *c, const struct condition_state *state,
	  bool *ret)
{
	struct cql_value have, want;

	TRY(condition_value(m, c, state, &have));
	*ret = false;
	for (size_t i = 0; i < c->count && !*ret; i++) {
		TRY(step_count(1));
		TRY(run_value(m->run, c->exprs[i], &want));
		if (want.presence == CQL_UNSET && c->relation->op == CQL_OP_IN &&
		    c->relation->is_list)
			continue;
		if (c->relation->op == CQL_OP_IN && !c->relation->is_list)
			TRY(compare_list(m, c, have, want, ret));
		else
			TRY(compare(m, c, have, want, c->relation->op, ret));
	}
	return STATUS_OK;
}

enum status
condition_holds(struct modify *m, const struct condition_state *state, bool *ret)
{
	*ret = true;
	if (m->condition->not_exists)
		*ret = !state->exists;
	else if (m->condition->exists)
		*ret = state->exists;
	for (size_t i = 0; i < m->condition_count && *ret; i++)
		TRY(one_holds(m, &m->conditions[i], state, ret));
	return STATUS_OK;
}

/* ---- What is told ---- */

/* True for a column that a refused statement tells. */
static bool
tells(const struct modify *m, const struct schema_column *c)
{
	if (m->condition->not_exists)
		return true;
	for (size_t i = 0; i < m->condition_count; i++)
		if (m->conditions[i].column == c)
			return true;
	return false;
}

/* The n-th column to tell: with conditions on columns, static ones stand behind the others. */
static size_t
column_told(const struct modify *m, size_t n)
{
	const struct schema_table *t = m->run->table;
	size_t statics = t->static_count, others = t->count - t->key_count - statics;

	if (m->condition->not_exists || n < t->key_count)
		return n;
	return n < t->key_count + others ? n + statics : n - others;
}

enum status
condition_answer(struct modify *m, const struct condition_state *state, bool applied)
{
	struct run *run = m->run;
	const struct schema_table *t = run->table;
	struct result_column *columns = arena_alloc(run->r->arena,
						    (t->count + 1) * sizeof(*columns));
	struct result_columns result = {
		.keyspace = t->keyspace, .table = t->name, .columns = columns, .count = 1
	};
	bool row = !applied && (state->exists || m->condition_count) && !m->condition->exists;

	if (!columns)
		return STATUS_LIMIT;
	columns[0] = (struct result_column){ STR("[applied]"), CQL_NATIVE(BOOLEAN) };
	for (size_t n = 0; row && n < t->count; n++) {
		size_t i = column_told(m, n);

		if (tells(m, &t->columns[i]) &&
		    (state->exists || t->columns[i].kind == SCHEMA_STATIC || m->condition_count))
			columns[result.count++] = (struct result_column){ t->columns[i].name,
									  t->columns[i].type };
	}
	/* Of what is not there, conditions tell nothing. */
	if (!state->exists && !m->of_statics && !state->row.is_row && !state->has_statics && row)
		result.count = 1;
	metadata_put_rows(run->r->out, run->r->header.version, &result, false, (struct str){ 0 });
	frame_put_i32(run->r->out, 1);
	cql_element_put(run->r->out, CQL_VALUE(applied ? STR("\1") : STR("\0")));
	for (size_t i = 1; i < result.count; i++)
		cql_element_put(run->r->out, state->row.values[schema_column_at(
						     t, schema_column_find(t, columns[i].name))]);
	return STATUS_OK;
}

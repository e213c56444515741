#include <stdio.h>

#include "cql/expr_int.h"
#include "cql/json.h"
#include "loop/step.h"

const struct cql_type *
cql_expr_type(const struct cql_expr *e)
{
	return e->type;
}

/* True if `e` or anything in it is of one of the kinds, bits by their numbers. */
static bool
has_kind(const struct cql_expr *e, unsigned kinds)
{
	if (kinds >> e->kind & 1)
		return true;
	for (size_t i = 0; i < e->count; i++)
		if (e->args[i] && has_kind(e->args[i], kinds))
			return true;
	return false;
}

bool
cql_expr_is_constant(const struct cql_expr *e)
{
	return !has_kind(e, 1u << CQL_EXPR_COLUMN | 1u << CQL_EXPR_CELL | 1u << CQL_EXPR_AGGREGATE);
}

bool
cql_expr_has_aggregate(const struct cql_expr *e)
{
	return has_kind(e, 1u << CQL_EXPR_AGGREGATE);
}

bool
cql_expr_is_column(const struct cql_expr *e, unsigned *ret_index)
{
	if (e->kind != CQL_EXPR_COLUMN)
		return false;
	*ret_index = e->index;
	return true;
}

bool
cql_expr_is_marker(const struct cql_expr *e, unsigned *ret_marker)
{
	if (e->kind != CQL_EXPR_MARKER)
		return false;
	*ret_marker = e->index;
	return true;
}

/* ---- Literals ---- */

/* An element's value; what is not set has no place in a literal. */
static enum status
run_inner(const struct cql_expr *e, struct cql *q, struct cql_env *env, struct cql_value *ret)
{
	TRY(cql_run(e, q, env, ret));
	if (ret->presence == CQL_UNSET)
		return cql_fail(q, CQL_E_UNSET, e->name.ptr ? e->name : STR("an argument"));
	return STATUS_OK;
}

static enum status
put_elements(const struct cql_expr *e, struct cql *q, struct cql_env *env, struct buf *out)
{
	bool fields = e->kind == CQL_EXPR_FIELDS;
	struct cql_value v;

	if (!fields)
		cql_count_put(out, e->count / e->type->count);
	for (size_t i = 0; i < e->count; i++) {
		v = CQL_VALUE_NULL;
		if (e->args[i])
			TRY(run_inner(e->args[i], q, env, &v));
		if (!fields && v.presence != CQL_SET)
			return cql_fail(q, CQL_E_NULL_IN_COLLECTION);
		cql_element_put(out, v);
	}
	return buf_status(out);
}

static enum status
run_elements(const struct cql_expr *e, struct cql *q, struct cql_env *env, struct cql_value *ret)
{
	struct buf out = cql_buf(q, arena_limit_bytes(q->arena));
	struct str bytes;
	enum status status = put_elements(e, q, env, &out);

	if (status == STATUS_OK)
		status = buf_copy(&out, q->arena, &bytes);
	buf_release(&out);
	TRY(status);
	TRY(cql_value_normalize(q, e->type, bytes, &bytes));
	*ret = CQL_VALUE(bytes);
	return STATUS_OK;
}

/* ---- Parts of values ---- */

static enum status
run_field(const struct cql_expr *e, struct cql_value of, struct cql_value *ret)
{
	struct cql_elements i;
	unsigned n = e->index;

	cql_elements_init(&i, e->args[0]->type, of.bytes);
	while (cql_elements_next(&i, ret))
		if (n-- == 0)
			return STATUS_OK;
	*ret = CQL_VALUE_NULL;
	return STATUS_OK;
}

static enum status
run_element(const struct cql_expr *e, struct cql *q, struct cql_env *env, struct cql_value of,
	    struct cql_value *ret)
{
	const struct cql_type *type = e->args[0]->type;
	struct cql_elements i;
	struct cql_value wanted, key, value;

	TRY(run_inner(e->args[1], q, env, &wanted));
	cql_elements_init(&i, type, of.bytes);
	*ret = CQL_VALUE_NULL;
	while (wanted.presence == CQL_SET && cql_elements_next(&i, &key)) {
		TRY(step_count(1));
		value = key;
		if (type->kind == CQL_TYPE_MAP && !cql_elements_next(&i, &value))
			break;
		if (cql_value_compare(type->args[0], key.bytes, wanted.bytes) == 0)
			*ret = value;
	}
	return STATUS_OK;
}

/* True if the key lies within the ends, of which one that is null is open. */
static bool
within(const struct cql_type *type, struct str key, struct cql_value from, struct cql_value to)
{
	return (from.presence != CQL_SET || cql_value_compare(type, key, from.bytes) >= 0) &&
	       (to.presence != CQL_SET || cql_value_compare(type, key, to.bytes) <= 0);
}

static enum status
slice(const struct cql_type *type, struct str bytes, struct cql_value from, struct cql_value to,
      struct buf *out, size_t *ret_count)
{
	struct cql_elements i;
	struct cql_value key, value = CQL_VALUE_NULL;

	cql_elements_init(&i, type, bytes);
	while (cql_elements_next(&i, &key)) {
		TRY(step_count(1));
		if (type->kind == CQL_TYPE_MAP && !cql_elements_next(&i, &value))
			break;
		if (!within(type->args[0], key.bytes, from, to))
			continue;
		cql_element_put(out, key);
		if (type->kind == CQL_TYPE_MAP)
			cql_element_put(out, value);
		++*ret_count;
	}
	return STATUS_OK;
}

static enum status
run_slice(const struct cql_expr *e, struct cql *q, struct cql_env *env, struct cql_value of,
	  struct cql_value *ret)
{
	struct cql_value ends[2] = { CQL_VALUE_NULL, CQL_VALUE_NULL };
	struct buf elements = cql_buf(q, arena_limit_bytes(q->arena)), out = elements;
	size_t count = 0;
	struct str bytes;
	enum status status = STATUS_OK;

	for (size_t i = 0; i < 2; i++)
		if (e->args[i + 1])
			TRY(run_inner(e->args[i + 1], q, env, &ends[i]));
	status = slice(e->type, of.bytes, ends[0], ends[1], &elements, &count);
	/* A collection whose elements are cells of their own is not there without one. */
	if (status == STATUS_OK && !count && cql_type_is_multicell(e->type)) {
		buf_release(&elements);
		return STATUS_OK;
	}
	cql_count_put(&out, count);
	buf_append_buf(&out, &elements);
	if (status == STATUS_OK)
		status = buf_status(&elements);
	if (status == STATUS_OK)
		status = buf_copy(&out, q->arena, &bytes);
	buf_release(&elements);
	buf_release(&out);
	TRY(status);
	*ret = CQL_VALUE(bytes);
	return STATUS_OK;
}

static enum status
run_json(const struct cql_expr *e, struct cql *q, struct cql_env *env, struct cql_value of,
	 struct cql_value *ret)
{
	char number[24];
	struct cql_value key;
	struct str step, got;

	TRY(run_inner(e->args[1], q, env, &key));
	*ret = CQL_VALUE_NULL;
	if (key.presence != CQL_SET)
		return STATUS_OK;
	step = key.bytes;
	if (e->args[1]->type->kind == CQL_TYPE_INT) {
		snprintf(number, sizeof(number), "%lld", (long long)cql_int_read(key.bytes));
		step = str_from_cstr(number);
	}
	TRY(cql_jsonb_get(q, of.bytes, &step, 1, e->is_text, &got));
	if (got.ptr)
		*ret = CQL_VALUE(got);
	return STATUS_OK;
}

/* What is a part of args[0]: null has none. */
static enum status
run_part(const struct cql_expr *e, struct cql *q, struct cql_env *env, struct cql_value *ret)
{
	struct cql_value of;

	TRY(run_inner(e->args[0], q, env, &of));
	*ret = CQL_VALUE_NULL;
	if (of.presence != CQL_SET)
		return STATUS_OK;
	if (e->kind == CQL_EXPR_FIELD)
		return run_field(e, of, ret);
	if (e->kind == CQL_EXPR_ELEMENT)
		return run_element(e, q, env, of, ret);
	if (e->kind == CQL_EXPR_SLICE)
		return run_slice(e, q, env, of, ret);
	return run_json(e, q, env, of, ret);
}

/* ---- Calls ---- */

static enum status
run_call(const struct cql_expr *e, struct cql *q, struct cql_env *env, struct cql_value *ret)
{
	struct cql_value few[4], *args = few;

	if (e->count > sizeof(few) / sizeof(few[0]))
		args = arena_alloc(q->arena, e->count * sizeof(*args));
	if (!args)
		return STATUS_LIMIT;
	for (size_t i = 0; i < e->count; i++) {
		TRY(run_inner(e->args[i], q, env, &args[i]));
		if (args[i].presence == CQL_NULL && !e->takes_null) {
			*ret = CQL_VALUE_NULL;
			return STATUS_OK;
		}
	}
	TRY(step_count(1));
	return e->call(e, q, env, args, ret);
}

static enum status
run_marker(const struct cql_expr *e, struct cql *q, const struct cql_env *env,
	   struct cql_value *ret)
{
	if (e->index >= env->marker_count)
		return cql_fail(q, CQL_E_MARKER_COUNT);
	*ret = env->markers[e->index];
	if (ret->presence != CQL_SET)
		return STATUS_OK;
	return cql_value_normalize(q, e->type, ret->bytes, &ret->bytes);
}

enum status
cql_run(const struct cql_expr *e, struct cql *q, struct cql_env *env, struct cql_value *ret)
{
	switch (e->kind) {
	case CQL_EXPR_CONSTANT:
		*ret = e->value;
		return STATUS_OK;
	case CQL_EXPR_MARKER:
		return run_marker(e, q, env, ret);
	case CQL_EXPR_COLUMN:
		return env->get(env->arg, q, e->index, ret);
	case CQL_EXPR_CELL:
		return env->cell(env->arg, q, e->index, e->part, ret);
	case CQL_EXPR_AGGREGATE:
		*ret = env->aggregates[e->index];
		return STATUS_OK;
	case CQL_EXPR_ELEMENTS:
	case CQL_EXPR_FIELDS:
		return run_elements(e, q, env, ret);
	case CQL_EXPR_CALL:
		return run_call(e, q, env, ret);
	case CQL_EXPR_FIELD:
	case CQL_EXPR_ELEMENT:
	case CQL_EXPR_SLICE:
	case CQL_EXPR_JSON:
	default:
		return run_part(e, q, env, ret);
	}
}

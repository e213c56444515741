#include "cql/expr_int.h"
#include "cql/number.h"

void
cql_aggregate_init(struct cql_aggregate_state *s, const struct cql_aggregate *a,
		   const struct cql *q)
{
	(void)a;
	*s = (struct cql_aggregate_state){ .kept = cql_buf(q, arena_limit_bytes(q->arena)) };
}

void
cql_aggregate_release(struct cql_aggregate_state *s)
{
	buf_release(&s->kept);
}

static bool
is_floating(const struct cql_type *type)
{
	return type->kind == CQL_TYPE_DOUBLE || type->kind == CQL_TYPE_FLOAT;
}

/* Sums that no int64_t is enough for are kept as bytes. */
static bool
is_long(const struct cql_type *type)
{
	return type->kind == CQL_TYPE_VARINT || type->kind == CQL_TYPE_DECIMAL;
}

/* Kahan and Neumaier: what was rounded away is kept beside. */
static void
add_double(struct cql_aggregate_state *s, double d)
{
	double sum = s->sum + d;
	double larger = __builtin_fabs(s->sum) >= __builtin_fabs(d) ? s->sum : d;
	double smaller = larger == d && s->sum != d ? s->sum : d;

	s->correction += larger - sum + smaller;
	s->sum = sum;
}

static enum status
add_long(const struct cql_aggregate *a, struct cql_aggregate_state *s, struct cql *q,
	 struct str bytes)
{
	struct str sum = bytes;
	struct arena_mark mark = arena_mark(q->arena);

	if (s->count > 1 && a->type->kind == CQL_TYPE_VARINT)
		TRY(cql_varint_compute(q, CQL_SUM_ADD, buf_str(&s->kept), bytes, &sum));
	else if (s->count > 1)
		TRY(cql_decimal_compute(q, CQL_SUM_ADD, buf_str(&s->kept), bytes, &sum));
	buf_set(&s->kept, sum);
	arena_reset(q->arena, mark);
	return buf_status(&s->kept);
}

static enum status
add_number(const struct cql_aggregate *a, struct cql_aggregate_state *s, struct cql *q,
	   struct str bytes)
{
	if (!bytes.len) { /* "empty" is no number */
		s->count--;
		return STATUS_OK;
	}
	if (is_long(a->type))
		return add_long(a, s, q, bytes);
	if (is_floating(a->type))
		add_double(s, cql_number_to_double(a->type, bytes));
	else
		s->integers += cql_int_read(bytes);
	return STATUS_OK;
}

static enum status
add_extreme(const struct cql_aggregate *a, struct cql_aggregate_state *s, struct str bytes)
{
	int order;

	if (s->count > 1) {
		order = cql_value_compare(a->type, bytes, buf_str(&s->kept));
		if (a->kind == CQL_AGGREGATE_MIN ? order >= 0 : order <= 0)
			return STATUS_OK;
	}
	buf_set(&s->kept, bytes);
	return buf_status(&s->kept);
}

enum status
cql_aggregate_add(const struct cql_aggregate *a, struct cql_aggregate_state *s, struct cql *q,
		  struct cql_env *env)
{
	struct cql_value v = CQL_VALUE(STR(""));

	if (a->argument)
		TRY(cql_run(a->argument, q, env, &v));
	if (v.presence != CQL_SET)
		return STATUS_OK;
	s->count++;
	if (a->kind == CQL_AGGREGATE_COUNT)
		return STATUS_OK;
	if (a->kind == CQL_AGGREGATE_MIN || a->kind == CQL_AGGREGATE_MAX)
		return add_extreme(a, s, v.bytes);
	return add_number(a, s, q, v.bytes);
}

/* The zero of a type of numbers, which sums and averages of no rows are. */
static enum status
zero(const struct cql_aggregate *a, struct cql *q, struct str *ret)
{
	return cql_number_cast(q, a->type, CQL_NATIVE(INT), STR("\0\0\0\0"), ret);
}

static enum status
result_number(const struct cql_aggregate *a, const struct cql_aggregate_state *s, struct cql *q,
	      struct str *ret)
{
	bool average = a->kind == CQL_AGGREGATE_AVG;
	struct str count, sum;

	if (!s->count)
		return zero(a, q, ret);
	if (is_floating(a->type)) {
		double d = s->sum + s->correction;

		/* Infinities and NaN have no correction. */
		d = __builtin_isfinite(s->sum) ? d : s->sum;
		d = average ? d / (double)s->count : d;
		return a->type->kind == CQL_TYPE_FLOAT ? cql_float_put(q, (float)d, ret)
						       : cql_double_put(q, d, ret);
	}
	if (!is_long(a->type))
		return cql_int_put(
			q, (int64_t)(average ? s->integers / (__int128)s->count : s->integers),
			cql_type_fixed_bytes(a->type), ret);
	TRY(arena_copy(q->arena, buf_str(&s->kept), &sum));
	*ret = sum;
	if (!average)
		return STATUS_OK;
	TRY(cql_varint_of_int(q, (int64_t)s->count, &count));
	if (a->type->kind == CQL_TYPE_VARINT)
		return cql_varint_compute(q, CQL_SUM_DIVIDE, sum, count, ret);
	TRY(cql_decimal_of_varint(q, count, &count));
	return cql_decimal_compute(q, CQL_SUM_DIVIDE, sum, count, ret);
}

enum status
cql_aggregate_result(const struct cql_aggregate *a, const struct cql_aggregate_state *s,
		     struct cql *q, struct cql_value *ret)
{
	struct str bytes = { NULL, 0 };

	*ret = CQL_VALUE_NULL;
	if (a->kind == CQL_AGGREGATE_COUNT)
		TRY(cql_int_put(q, (int64_t)s->count, sizeof(int64_t), &bytes));
	else if (a->kind >= CQL_AGGREGATE_SUM)
		TRY(result_number(a, s, q, &bytes));
	else if (s->count)
		TRY(arena_copy(q->arena, buf_str(&s->kept), &bytes));
	else
		return STATUS_OK;
	*ret = CQL_VALUE(bytes);
	return STATUS_OK;
}

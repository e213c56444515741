#include <math.h>

#include "cql/expr_int.h"
#include "cql/number.h"
#include "cql/time.h"

enum {
	DURATION_SHOWN_BYTES = 256,
};

struct str
cql_arith_sign(enum cql_term_kind op)
{
	switch ((int)op) {
	case CQL_TERM_ADD:
		return STR("+");
	case CQL_TERM_MULTIPLY:
		return STR("*");
	case CQL_TERM_DIVIDE:
		return STR("/");
	case CQL_TERM_MODULO:
		return STR("%");
	default:
		return STR("-");
	}
}

/* ---- Types ---- */

static bool
is_floating(const struct cql_type *type)
{
	return type->kind == CQL_TYPE_DOUBLE || type->kind == CQL_TYPE_FLOAT ||
	       type->kind == CQL_TYPE_DECIMAL;
}

static bool
is_text(const struct cql_type *type)
{
	return type->kind == CQL_TYPE_TEXT || type->kind == CQL_TYPE_ASCII;
}

/* The larger of both: as many bytes as the wider has, floating where one is. */
static const struct cql_type *
number_type(const struct cql_type *left, const struct cql_type *right)
{
	size_t a = cql_type_fixed_bytes(left), b = cql_type_fixed_bytes(right);
	size_t bytes = a && b ? (a > b ? a : b) : 0;

	if (is_floating(left) || is_floating(right))
		return bytes == 0   ? CQL_NATIVE(DECIMAL)
		       : bytes == 8 ? CQL_NATIVE(DOUBLE)
				    : CQL_NATIVE(FLOAT);
	switch (bytes) {
	case 0:
		return CQL_NATIVE(VARINT);
	case 1:
		return CQL_NATIVE(TINYINT);
	case 2:
		return CQL_NATIVE(SMALLINT);
	case 4:
		return CQL_NATIVE(INT);
	default:
		return CQL_NATIVE(BIGINT);
	}
}

const struct cql_type *
cql_arith_type(enum cql_term_kind op, const struct cql_type *left, const struct cql_type *right)
{
	if (op == CQL_TERM_NEGATE)
		return cql_type_is_number(left) ? number_type(left, left) : NULL;
	if (cql_type_is_number(left) && cql_type_is_number(right))
		return number_type(left, right);
	if (op == CQL_TERM_ADD && is_text(left) && is_text(right))
		return left->kind == CQL_TYPE_ASCII ? right : left;
	if ((op == CQL_TERM_ADD || op == CQL_TERM_SUBTRACT) && right->kind == CQL_TYPE_DURATION &&
	    (left->kind == CQL_TYPE_TIMESTAMP || left->kind == CQL_TYPE_DATE))
		return left;
	return NULL;
}

/* ---- Computing ---- */

static enum status
failed(const struct cql_expr *e, struct cql *q, struct str why)
{
	const struct cql_type *left = e->args[0]->type;
	const struct cql_type *right = e->args[e->count - 1]->type;

	return cql_fail(q, CQL_E_OPERATION_FAILED, cql_type_text(q, left), e->name,
			cql_type_text(q, right), why);
}

/* Wraps round, as Java does. */
static enum status
compute_int(const struct cql_expr *e, struct cql *q, int64_t a, int64_t b, struct str *ret)
{
	uint64_t x = (uint64_t)a, y = (uint64_t)b, n;

	switch ((int)e->index) {
	case CQL_TERM_ADD:
		n = x + y;
		break;
	case CQL_TERM_SUBTRACT:
		n = x - y;
		break;
	case CQL_TERM_MULTIPLY:
		n = x * y;
		break;
	default:
		if (b == 0)
			return failed(e, q, STR("/ by zero"));
		if (b == -1)
			n = e->index == CQL_TERM_DIVIDE ? 0 - x : 0;
		else
			n = (uint64_t)(e->index == CQL_TERM_DIVIDE ? a / b : a % b);
		break;
	}
	return cql_int_put(q, (int64_t)n, cql_type_fixed_bytes(e->type), ret);
}

static double
compute_double(enum cql_term_kind op, double a, double b)
{
	switch ((int)op) {
	case CQL_TERM_ADD:
		return a + b;
	case CQL_TERM_SUBTRACT:
		return a - b;
	case CQL_TERM_MULTIPLY:
		return a * b;
	case CQL_TERM_DIVIDE:
		return a / b;
	default:
		return fmod(a, b);
	}
}

static enum status
compute_floating(const struct cql_expr *e, struct cql *q, struct str a, struct str b,
		 struct str *ret)
{
	double x = cql_number_to_double(e->args[0]->type, a);
	double y = cql_number_to_double(e->args[1]->type, b);
	double n = compute_double(e->index, x, y);

	return e->type->kind == CQL_TYPE_FLOAT ? cql_float_put(q, (float)n, ret)
					       : cql_double_put(q, n, ret);
}

/* What is to be computed with a decimal has to be one. */
static enum status
check_finite(const struct cql_expr *e, struct cql *q, const struct cql_type *type, struct str bytes)
{
	double d;

	if (type->kind != CQL_TYPE_DOUBLE && type->kind != CQL_TYPE_FLOAT)
		return STATUS_OK;
	d = cql_number_to_double(type, bytes);
	if (isfinite(d))
		return STATUS_OK;
	return failed(e, q,
		      isnan(d) ? STR("A NaN cannot be converted into a decimal")
			       : STR("An infinite number cannot be converted into a decimal"));
}

static enum status
compute_long(const struct cql_expr *e, struct cql *q, struct str a, struct str b, struct str *ret)
{
	enum cql_sum op = e->index == CQL_TERM_ADD        ? CQL_SUM_ADD
			  : e->index == CQL_TERM_SUBTRACT ? CQL_SUM_SUBTRACT
			  : e->index == CQL_TERM_MULTIPLY ? CQL_SUM_MULTIPLY
			  : e->index == CQL_TERM_DIVIDE   ? CQL_SUM_DIVIDE
							  : CQL_SUM_MODULO;
	struct str x, y;
	enum status status;

	TRY(check_finite(e, q, e->args[0]->type, a));
	TRY(check_finite(e, q, e->args[1]->type, b));
	q->code = 0;
	TRY(cql_number_cast(q, e->type, e->args[0]->type, a, &x));
	TRY(cql_number_cast(q, e->type, e->args[1]->type, b, &y));
	status = e->type->kind == CQL_TYPE_VARINT ? cql_varint_compute(q, op, x, y, ret)
						  : cql_decimal_compute(q, op, x, y, ret);
	/* Without a code it is a division by zero, of which only the operands' types are told. */
	return status == STATUS_INVALID && q->code == 0
		       ? failed(e, q, STR("BigInteger divide by zero"))
		       : status;
}

/* What a moment cannot be moved by. */
static enum status
fail_precision(const struct cql_expr *e, struct cql *q, const char *precision,
	       struct cql_duration d)
{
	AUTO(buf_release) struct buf shown = BUF_SHORT(DURATION_SHOWN_BYTES);
	struct str why;

	cql_duration_print(&shown, d);
	why = arena_printf(q->arena, "The duration must have a %s precision. Was: %.*s", precision,
			   STR_ARG(buf_str(&shown)));
	return why.ptr ? failed(e, q, why) : STATUS_LIMIT;
}

static enum status
compute_moment(const struct cql_expr *e, struct cql *q, struct str moment, struct str by,
	       struct str *ret)
{
	bool date = e->type->kind == CQL_TYPE_DATE;
	struct cql_duration d;
	int64_t ms = date ? cql_date_ms(moment) : cql_int_read(moment);

	if (!cql_duration_read(by, &d))
		return STATUS_CORRUPT;
	if (date && d.nanoseconds)
		return fail_precision(e, q, "day", d);
	if (d.nanoseconds % 1000000)
		return fail_precision(e, q, "millisecond", d);
	ms = cql_moment_add(ms, d, e->index == CQL_TERM_SUBTRACT);
	return date ? cql_date_put(q, ms, ret) : cql_int_put(q, ms, sizeof(ms), ret);
}

static enum status
negate(const struct cql_expr *e, struct cql *q, struct str bytes, struct str *ret)
{
	struct str zero;

	switch ((int)e->type->kind) {
	case CQL_TYPE_DOUBLE:
		return cql_double_put(q, -cql_double_read(bytes), ret);
	case CQL_TYPE_FLOAT:
		return cql_float_put(q, -cql_float_read(bytes), ret);
	case CQL_TYPE_VARINT:
		TRY(cql_varint_of_int(q, 0, &zero));
		return cql_varint_compute(q, CQL_SUM_SUBTRACT, zero, bytes, ret);
	case CQL_TYPE_DECIMAL:
		TRY(cql_number_to_decimal(q, CQL_NATIVE(INT), STR("\0\0\0\0"), &zero));
		return cql_decimal_compute(q, CQL_SUM_SUBTRACT, zero, bytes, ret);
	default:
		return cql_int_put(q, (int64_t)(0 - (uint64_t)cql_int_read(bytes)),
				   cql_type_fixed_bytes(e->type), ret);
	}
}

static enum status
concatenate(struct cql *q, struct str a, struct str b, struct str *ret)
{
	char *bytes = arena_bytes(q->arena, a.len + b.len + 1);

	if (!bytes)
		return STATUS_LIMIT;
	if (a.len)
		memcpy(bytes, a.ptr, a.len);
	if (b.len)
		memcpy(bytes + a.len, b.ptr, b.len);
	*ret = str_of(bytes, a.len + b.len);
	return STATUS_OK;
}

enum status
cql_arith_run(const struct cql_expr *e, struct cql *q, struct cql_env *env,
	      const struct cql_value *args, struct cql_value *ret)
{
	struct str n;

	(void)env;
	*ret = CQL_VALUE_NULL;
	if (is_text(e->type)) {
		TRY(concatenate(q, args[0].bytes, args[1].bytes, &n));
		*ret = CQL_VALUE(n);
		return STATUS_OK;
	}
	for (size_t i = 0; i < e->count; i++)
		if (!args[i].bytes.len)
			return STATUS_OK; /* "empty" is no number */
	if (e->index == CQL_TERM_NEGATE)
		TRY(negate(e, q, args[0].bytes, &n));
	else if (e->type->kind == CQL_TYPE_TIMESTAMP || e->type->kind == CQL_TYPE_DATE)
		TRY(compute_moment(e, q, args[0].bytes, args[1].bytes, &n));
	else if (e->type->kind == CQL_TYPE_VARINT || e->type->kind == CQL_TYPE_DECIMAL)
		TRY(compute_long(e, q, args[0].bytes, args[1].bytes, &n));
	else if (is_floating(e->type))
		TRY(compute_floating(e, q, args[0].bytes, args[1].bytes, &n));
	else
		TRY(compute_int(e, q, cql_int_read(args[0].bytes), cql_int_read(args[1].bytes),
				&n));
	*ret = CQL_VALUE(n);
	return STATUS_OK;
}

#include <math.h>
#include <stdlib.h>

#include "cql/expr_int.h"
#include "cql/number.h"
#include "cql/time.h"

static bool
is_floating(const struct cql_type *type)
{
	return type->kind == CQL_TYPE_DOUBLE || type->kind == CQL_TYPE_FLOAT;
}

double
cql_number_to_double(const struct cql_type *type, struct str bytes)
{
	switch ((int)type->kind) {
	case CQL_TYPE_DOUBLE:
		return cql_double_read(bytes);
	case CQL_TYPE_FLOAT:
		return (double)cql_float_read(bytes);
	case CQL_TYPE_DECIMAL:
		return cql_decimal_to_double(bytes);
	case CQL_TYPE_VARINT:
		return cql_varint_to_double(bytes);
	default:
		return (double)cql_int_read(bytes);
	}
}

/* A float as a double of its own digits: 1.1f is 1.1, as Java's Float.toString() says. */
static double
float_digits(float f)
{
	struct buf text = BUF_SHORT(64);

	cql_float_print(&text, f);
	return cql_double_of_text(&text, (double)f);
}

enum status
cql_number_to_decimal(struct cql *q, const struct cql_type *type, struct str bytes, struct str *ret)
{
	struct str varint;
	double d;

	if (type->kind == CQL_TYPE_DECIMAL) {
		*ret = bytes;
		return STATUS_OK;
	}
	if (!is_floating(type)) {
		TRY(cql_number_to_varint(q, type, bytes, &varint));
		return cql_decimal_of_varint(q, varint, ret);
	}
	d = type->kind == CQL_TYPE_FLOAT ? float_digits(cql_float_read(bytes))
					 : cql_double_read(bytes);
	if (!isfinite(d))
		return cql_fail(q, CQL_E_FUNCTION_FAILED, STR("cast"),
				STR("Infinite or NaN has no decimal"));
	return cql_decimal_of_double(q, d, ret);
}

enum status
cql_number_to_varint(struct cql *q, const struct cql_type *type, struct str bytes, struct str *ret)
{
	struct str decimal;

	if (type->kind == CQL_TYPE_VARINT) {
		*ret = bytes;
		return STATUS_OK;
	}
	if (type->kind != CQL_TYPE_DECIMAL && !is_floating(type))
		return cql_varint_of_int(q, cql_int_read(bytes), ret);
	TRY(cql_number_to_decimal(q, type, bytes, &decimal));
	return cql_decimal_to_varint(q, decimal, ret);
}

/* As Java: towards zero, and the least or the greatest number where it does not fit; NaN is 0. */
static int64_t
double_to_int(double d, int64_t least, int64_t most)
{
	if (isnan(d))
		return 0;
	if (d <= (double)least)
		return least;
	return d >= (double)most ? most : (int64_t)d;
}

static enum status
cast_to_int(struct cql *q, const struct cql_type *to, const struct cql_type *from, struct str bytes,
	    struct str *ret)
{
	size_t width = cql_type_fixed_bytes(to);
	struct str varint;
	int64_t n;

	if (is_floating(from)) {
		/* Java has no doubleToByte: bytes and shorts are cut out of an int. */
		bool wide = width == sizeof(int64_t);

		n = double_to_int(cql_number_to_double(from, bytes), wide ? INT64_MIN : INT32_MIN,
				  wide ? INT64_MAX : INT32_MAX);
	} else if (from->kind == CQL_TYPE_DECIMAL || from->kind == CQL_TYPE_VARINT) {
		TRY(cql_number_to_varint(q, from, bytes, &varint));
		if (varint.len > sizeof(n))
			varint = str_skip(varint, varint.len - sizeof(n));
		n = cql_int_read(varint);
	} else {
		n = cql_int_read(bytes);
	}
	return cql_int_put(q, n, width, ret);
}

enum status
cql_number_cast(struct cql *q, const struct cql_type *to, const struct cql_type *from,
		struct str bytes, struct str *ret)
{
	if (to->kind == from->kind) {
		*ret = bytes;
		return STATUS_OK;
	}
	switch ((int)to->kind) {
	case CQL_TYPE_DOUBLE:
		return cql_double_put(q, cql_number_to_double(from, bytes), ret);
	case CQL_TYPE_FLOAT:
		return cql_float_put(q, (float)cql_number_to_double(from, bytes), ret);
	case CQL_TYPE_DECIMAL:
		return cql_number_to_decimal(q, from, bytes, ret);
	case CQL_TYPE_VARINT:
		return cql_number_to_varint(q, from, bytes, ret);
	default:
		return cast_to_int(q, to, from, bytes, ret);
	}
}

static bool
is_text(const struct cql_type *type)
{
	return type->kind == CQL_TYPE_TEXT || type->kind == CQL_TYPE_ASCII;
}

bool
cql_cast_is_possible(const struct cql_type *to, const struct cql_type *from)
{
	if (cql_type_eq(to, from))
		return true;
	if (to->kind >= CQL_NATIVE_COUNT || from->kind >= CQL_NATIVE_COUNT)
		return false;
	if (cql_type_is_number(to))
		return to->kind != CQL_TYPE_COUNTER && cql_type_is_number(from);
	if (is_text(to))
		return from->kind != CQL_TYPE_BLOB && from->kind != CQL_TYPE_DURATION &&
		       !(to->kind == CQL_TYPE_ASCII && from->kind == CQL_TYPE_TEXT);
	if (to->kind == CQL_TYPE_TIMESTAMP)
		return from->kind == CQL_TYPE_DATE || from->kind == CQL_TYPE_TIMEUUID;
	if (to->kind == CQL_TYPE_DATE)
		return from->kind == CQL_TYPE_TIMESTAMP || from->kind == CQL_TYPE_TIMEUUID;
	return to->kind == CQL_TYPE_UUID && from->kind == CQL_TYPE_TIMEUUID;
}

static enum status
cast_to_text(struct cql *q, const struct cql_type *from, struct str bytes, struct str *ret)
{
	struct buf out = cql_buf(q, arena_limit_bytes(q->arena));
	enum status status;

	cql_value_print(&out, from, CQL_VALUE(bytes), CQL_FORM_CAST);
	status = buf_copy(&out, q->arena, ret);
	buf_release(&out);
	return status;
}

static enum status
cast_to_moment(struct cql *q, const struct cql_type *to, const struct cql_type *from,
	       struct str bytes, struct str *ret)
{
	int64_t ms = from->kind == CQL_TYPE_TIMEUUID ? cql_timeuuid_ms(bytes)
		     : from->kind == CQL_TYPE_DATE   ? cql_date_ms(bytes)
						     : cql_int_read(bytes);

	return to->kind == CQL_TYPE_TIMESTAMP ? cql_int_put(q, ms, sizeof(ms), ret)
					      : cql_date_put(q, ms, ret);
}

enum status
cql_cast_run(const struct cql_expr *e, struct cql *q, struct cql_env *env,
	     const struct cql_value *args, struct cql_value *ret)
{
	const struct cql_type *to = e->type, *from = e->args[0]->type;
	struct str bytes = args[0].bytes, cast = bytes;

	(void)env;
	*ret = args[0];
	if (!bytes.len && from->kind != CQL_TYPE_TEXT && from->kind != CQL_TYPE_ASCII) {
		*ret = CQL_VALUE_NULL;
		return STATUS_OK;
	}
	if (cql_type_is_number(to))
		TRY(cql_number_cast(q, to, from, bytes, &cast));
	else if (is_text(to))
		TRY(cast_to_text(q, from, bytes, &cast));
	else if ((to->kind == CQL_TYPE_TIMESTAMP || to->kind == CQL_TYPE_DATE) &&
		 to->kind != from->kind)
		TRY(cast_to_moment(q, to, from, bytes, &cast));
	*ret = CQL_VALUE(cast);
	return STATUS_OK;
}

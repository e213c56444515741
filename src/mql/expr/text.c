#include "mql/expr/text.h"

#include <math.h>
#include <stdio.h>

#include "bson/decimal.h"
#include "mql/expr/civil.h"

enum status
mql_expr_text(struct mql *q, struct str text, struct bson_value *ret)
{
	if (text.len >= MQL_STRING_BYTES)
		return mql_fail(q, 16493, "Tried to create string longer than 16MB");
	*ret = BSON_OF_STRING(text);
	return STATUS_OK;
}

enum status
mql_expr_keep_text(struct mql *q, struct buf *b, struct bson_value *ret)
{
	enum status status = buf_status(b);
	struct str text = STR("");

	if (status == STATUS_OK && b->len >= MQL_STRING_BYTES)
		status = STATUS_LIMIT;
	if (status == STATUS_LIMIT)
		status = mql_fail(q, 16493, "Tried to create string longer than 16MB");
	if (status == STATUS_OK) {
		text = buf_dup(b, q->arena);
		if (!text.ptr)
			status = mql_full(q);
	}
	buf_release(b);
	TRY(status);
	*ret = BSON_OF_STRING(text);
	return step_count_bytes(text.len);
}

enum status
mql_expr_date_text(struct mql *q, int64_t ms, struct str *ret)
{
	struct mql_civil c;

	mql_civil_of(ms, &c);
	if (c.year < 0 || c.year > 9999)
		return mql_fail(q, 18537,
				"Could not convert date to string: date component was outside the "
				"supported range of 0-9999: %lld",
				(long long)c.year);
	*ret = arena_printf(q->arena, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", (int)c.year, c.month,
			    c.day, c.hour, c.minute, c.second, c.ms);
	return ret->ptr ? STATUS_OK : mql_full(q);
}

/* "Jan  1 00:00:00:0": without the year, and the increment behind it. */
static struct str
timestamp_text(struct mql *q, uint64_t timestamp)
{
	static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
					      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	struct mql_civil c;

	mql_civil_of((int64_t)(timestamp >> 32) * MQL_MS_PER_SECOND, &c);
	return arena_printf(q->arena, "%s %2d %02d:%02d:%02d:%u", months[c.month - 1], c.day,
			    c.hour, c.minute, c.second, (unsigned)(timestamp & UINT32_MAX));
}

static struct str
double_text(struct mql *q, double d)
{
	if (isnan(d))
		return STR("nan");
	if (isinf(d))
		return d > 0 ? STR("inf") : STR("-inf");
	return arena_printf(q->arena, "%g", d);
}

enum status
mql_expr_coerce_text(struct mql *q, const struct bson_value *v, struct str *ret)
{
	char digits[BSON_DECIMAL_TEXT_BYTES];

	if (mql_is_nullish(v)) {
		*ret = STR("");
		return STATUS_OK;
	}
	switch ((int)v->type) {
	case BSON_STRING:
	case BSON_SYMBOL:
	case BSON_CODE:
		*ret = bson_text(v);
		return STATUS_OK;
	case BSON_DATE:
		return mql_expr_date_text(q, bson_integer(v), ret);
	case BSON_INT32:
	case BSON_INT64:
		*ret = arena_printf(q->arena, "%lld", (long long)bson_integer(v));
		break;
	case BSON_DOUBLE:
		*ret = double_text(q, bson_real(v));
		break;
	case BSON_DECIMAL:
		*ret = arena_dup(q->arena,
				 str_of(digits, bson_decimal_print(bson_decimal(v), digits)));
		break;
	case BSON_TIMESTAMP:
		*ret = timestamp_text(q, (uint64_t)bson_integer(v));
		break;
	default:
		return mql_fail(q, 16007, "can't convert from BSON type %s to String",
				mql_expr_type(v));
	}
	return ret->ptr ? STATUS_OK : mql_full(q);
}

enum status
mql_expr_coerce_long(struct mql *q, const struct bson_value *v, int64_t *ret)
{
	bool fits = true;

	if (v->type == BSON_DOUBLE) {
		fits = bson_real(v) >= -0x1p63 && bson_real(v) < 0x1p63;
		if (fits)
			*ret = (int64_t)bson_real(v);
	} else if (v->type == BSON_DECIMAL) {
		fits = bson_decimal_to_int64(
			bson_decimal_round(bson_decimal(v), 0, BSON_DECIMAL_NEAREST, NULL), ret);
	} else {
		*ret = bson_integer(v);
	}
	if (fits)
		return STATUS_OK;
	return mql_fail(q, 31109, "Can't coerce out of range value %s to long",
			mql_text(q, STR(""), v));
}

size_t
mql_char_bytes(struct str text)
{
	size_t n = 1;

	if (!text.len)
		return 0;
	while (n < text.len && ((uint8_t)text.ptr[n] & 0xc0) == 0x80)
		n++;
	return n;
}

size_t
mql_count_chars(struct str text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++)
		n += ((uint8_t)text.ptr[i] & 0xc0) != 0x80;
	return n;
}

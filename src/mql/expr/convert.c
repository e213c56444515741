/* $convert and its short forms; $type, $isNumber. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "bson/decimal.h"
#include "mql/expr/date_text.h"
#include "mql/expr/date.h"

enum format {
	FORMAT_NONE,
	FORMAT_AUTO, /* of the short forms: a UUID by its digits, all else in base64 */
	FORMAT_BASE64,
	FORMAT_BASE64URL,
	FORMAT_HEX,
	FORMAT_UTF8,
	FORMAT_UUID,
};

enum {
	SUBTYPE_UUID = 4,
	UUID_BYTES = 16,
	UUID_TEXT_BYTES = 36,
	DOUBLE_DIGITS = 17,
	SHORT_TEXT_BYTES = 64,
};

/* What to convert to. */
struct target {
	enum bson_type type;
	int subtype;
	enum format format;
	bool big; /* the most significant byte first */
};

static enum status
fail_type(struct mql *q, const struct bson_value *v, const struct target *t)
{
	const char *to = bson_type_name(t->type);

	return mql_fail(q, MQL_CONVERSION_FAILURE,
			"Unsupported conversion from %s to %s in $convert with no onError value",
			mql_expr_type(v), to ? to : "missing");
}

static enum status
fail_value(struct mql *q, const struct bson_value *v, const char *why)
{
	return mql_fail(q, MQL_CONVERSION_FAILURE, "%s in $convert with no onError value: %s", why,
			mql_text(q, STR(""), v));
}

/* ---- Numbers ---- */

/* The bytes of a number; false if there are as many as no number has. */
static bool
number_of_bytes(struct str bytes, bool big, uint64_t *ret)
{
	*ret = 0;
	if (bytes.len != 1 && bytes.len != 2 && bytes.len != 4 && bytes.len != 8)
		return false;
	for (size_t i = 0; i < bytes.len; i++)
		*ret |= (uint64_t)(uint8_t)bytes.ptr[big ? bytes.len - 1 - i : i] << 8 * i;
	return true;
}

static enum status
integer_of_bytes(struct mql *q, const struct bson_value *v, const struct target *t, int64_t *ret)
{
	size_t most = t->type == BSON_INT32 ? 4 : 8;
	uint64_t n;

	if (bson_text(v).len > most || !number_of_bytes(bson_text(v), t->big, &n))
		return fail_value(q, v, "Failed to convert a binData of this length to a number");
	*ret = bson_text(v).len == 1   ? (int8_t)n
	       : bson_text(v).len == 2 ? (int16_t)n
	       : bson_text(v).len == 4 ? (int32_t)n
				       : (int64_t)n;
	return STATUS_OK;
}

static enum status
integer_of_text(struct mql *q, const struct bson_value *v, int64_t *ret)
{
	if (str_to_i64(bson_text(v), ret))
		return STATUS_OK;
	return fail_value(q, v, "Failed to parse number");
}

static enum status
integer_of_number(struct mql *q, const struct bson_value *v, int64_t *ret)
{
	bool fits = true, nan = isnan(bson_to_double(v)), infinite = isinf(bson_to_double(v));

	if (nan)
		return fail_value(q, v, "Attempt to convert NaN value to integer type");
	if (infinite && v->type == BSON_DOUBLE)
		return fail_value(q, v, "Attempt to convert infinity value to integer type");
	if (v->type == BSON_DOUBLE) {
		fits = bson_real(v) >= -0x1p63 && bson_real(v) < 0x1p63;
		if (fits)
			*ret = (int64_t)bson_real(v);
	} else if (v->type == BSON_DECIMAL) {
		fits = bson_decimal_to_int64(
			bson_decimal_round(bson_decimal(v), 0, BSON_DECIMAL_TRUNCATE, NULL), ret);
	} else {
		*ret = bson_integer(v);
	}
	return fits ? STATUS_OK : fail_value(q, v, "Conversion would overflow target type");
}

static enum status
to_integer(struct mql *q, const struct bson_value *v, const struct target *t,
	   struct bson_value *ret)
{
	int64_t n;

	if (bson_is_number(v))
		TRY(integer_of_number(q, v, &n));
	else if (v->type == BSON_BOOL)
		n = bson_truth(v);
	else if (v->type == BSON_STRING)
		TRY(integer_of_text(q, v, &n));
	else if (v->type == BSON_BINARY)
		TRY(integer_of_bytes(q, v, t, &n));
	else if (v->type == BSON_DATE && t->type == BSON_INT64)
		n = bson_integer(v);
	else
		return fail_type(q, v, t);
	if (t->type == BSON_INT32 && (n < INT32_MIN || n > INT32_MAX))
		return fail_value(q, v, "Conversion would overflow target type");
	*ret = (struct bson_value){ .type = t->type, .as_n = n };
	return STATUS_OK;
}

static enum status
double_of_text(struct mql *q, const struct bson_value *v, double *ret)
{
	struct str kept = arena_printf(q->arena, "%.*s", STR_ARG(bson_text(v)));
	char *end;

	if (!kept.ptr)
		return mql_full(q);
	/* MongoDB takes these where a sign stands before them, as strtod() does. */
	if (str_starts_with(kept, STR("0x")) || str_starts_with(kept, STR("0X")))
		return fail_value(q, v, "Illegal hexadecimal input");
	TRY(step_count_bytes(bson_text(v).len * 4));
	errno = 0;
	*ret = strtod(kept.ptr, &end);
	if (!bson_text(v).len || (uint8_t)kept.ptr[0] <= ' ' ||
	    end != kept.ptr + bson_text(v).len || errno)
		return fail_value(q, v, "Failed to parse number");
	return STATUS_OK;
}

static enum status
double_of_bytes(struct mql *q, const struct bson_value *v, bool big, double *ret)
{
	uint64_t n;
	uint32_t half;
	float single;

	if (bson_text(v).len < 4 || !number_of_bytes(bson_text(v), big, &n))
		return fail_value(q, v, "Failed to convert a binData of this length to a number");
	if (bson_text(v).len == 8) {
		memcpy(ret, &n, sizeof(n));
		return STATUS_OK;
	}
	half = (uint32_t)n;
	memcpy(&single, &half, sizeof(half));
	*ret = (double)single;
	return STATUS_OK;
}

static enum status
to_double(struct mql *q, const struct bson_value *v, const struct target *t, struct bson_value *ret)
{
	double d;

	if (v->type == BSON_STRING)
		TRY(double_of_text(q, v, &d));
	else if (v->type == BSON_BINARY)
		TRY(double_of_bytes(q, v, t->big, &d));
	else if (v->type == BSON_BOOL)
		d = bson_truth(v);
	else if (v->type == BSON_DATE)
		d = (double)bson_integer(v);
	else if (bson_is_number(v))
		d = bson_to_double(v);
	else
		return fail_type(q, v, t);
	if (v->type == BSON_DECIMAL && isinf(d) && !bson_decimal_is_infinite(bson_decimal(v)))
		return fail_value(q, v, "Conversion would overflow target type");
	*ret = BSON_OF_DOUBLE(d);
	return STATUS_OK;
}

static enum status
to_decimal(struct mql *q, const struct bson_value *v, const struct target *t,
	   struct bson_value *ret)
{
	unsigned flags = 0;

	*ret = (struct bson_value){ .type = BSON_DECIMAL };
	if (v->type == BSON_STRING) {
		TRY(step_count_bytes(bson_text(v).len * 4));
		if (!bson_decimal_parse(bson_text(v), &ret->as_decimal, &flags) ||
		    flags & (BSON_DECIMAL_OVERFLOW | BSON_DECIMAL_UNDERFLOW))
			return fail_value(q, v, "Failed to parse number");
	} else if (v->type == BSON_BOOL) {
		ret->as_decimal = bson_decimal_of_int64(bson_truth(v));
	} else if (v->type == BSON_DATE) {
		ret->as_decimal = bson_decimal_of_int64(bson_integer(v));
	} else if (bson_is_number(v)) {
		ret->as_decimal = bson_decimal_of(v);
	} else {
		return fail_type(q, v, t);
	}
	return STATUS_OK;
}

/* ---- Dates, ids, booleans ---- */

static enum status
to_date(struct mql *q, const struct bson_value *v, const struct target *t, struct bson_value *ret)
{
	int64_t ms;

	if (v->type == BSON_STRING)
		TRY(mql_date_parse(q, bson_text(v), NULL, NULL, &ms));
	else if (v->type == BSON_DOUBLE || v->type == BSON_INT64 || v->type == BSON_DECIMAL)
		TRY(integer_of_number(q, v, &ms));
	else if (!mql_date_of(v, &ms))
		return fail_type(q, v, t);
	*ret = BSON_OF_DATE(ms);
	return STATUS_OK;
}

static enum status
to_object_id(struct mql *q, const struct bson_value *v, const struct target *t,
	     struct bson_value *ret)
{
	char *bytes;

	if (v->type == BSON_OBJECT_ID) {
		*ret = *v;
		return STATUS_OK;
	}
	if (v->type != BSON_STRING)
		return fail_type(q, v, t);
	bytes = arena_bytes(q->arena, BSON_OBJECT_ID_BYTES);
	if (!bytes)
		return mql_full(q);
	if (bson_text(v).len != 2 * (size_t)BSON_OBJECT_ID_BYTES ||
	    !str_from_hex(bson_text(v), bytes))
		return fail_value(q, v, "Failed to parse objectId");
	*ret = (struct bson_value){ .type = BSON_OBJECT_ID,
				    .as_text = str_of(bytes, BSON_OBJECT_ID_BYTES) };
	return STATUS_OK;
}

/* ---- Strings ---- */

/* The shortest digits that give the number back; an exponent below -4 and from 16 on. */
static struct str
double_text(struct mql *q, double d)
{
	char text[SHORT_TEXT_BYTES];
	int digits = 1, exponent;

	if (isnan(d))
		return STR("NaN");
	if (isinf(d))
		return d > 0 ? STR("Infinity") : STR("-Infinity");
	do
		snprintf(text, sizeof(text), "%.*e", digits - 1, d);
	while (strtod(text, NULL) != d && digits++ < DOUBLE_DIGITS);
	exponent = atoi(strchr(text, 'e') + 1);
	if (exponent < -4 || exponent > 15)
		return arena_printf(q->arena, "%s", text);
	return arena_printf(q->arena, "%.*f", digits - 1 > exponent ? digits - 1 - exponent : 0, d);
}

static void
put_uuid(struct buf *out, struct str bytes)
{
	static const size_t parts[] = { 4, 2, 2, 2, 6 };
	size_t at = 0;

	for (size_t i = 0; i < 5; i++) {
		if (i)
			buf_append_byte(out, '-');
		buf_append_hex(out, str_of(bytes.ptr + at, parts[i]));
		at += parts[i];
	}
}

static void
put_upper_hex(struct buf *out, struct str bytes)
{
	size_t from = out->len;

	buf_append_hex(out, bytes);
	for (size_t i = from; i < out->len; i++) {
		if (out->ptr[i] >= 'a')
			out->ptr[i] = (char)(out->ptr[i] - 'a' + 'A');
	}
}

static enum status
text_of_bytes(struct mql *q, const struct bson_value *v, const struct target *t,
	      struct bson_value *ret)
{
	struct buf out = mql_buf(q, MQL_STRING_BYTES - 1);
	bool uuid = v->subtype == SUBTYPE_UUID && bson_text(v).len == UUID_BYTES;
	enum format format = t->format;

	if (format == FORMAT_AUTO)
		format = uuid ? FORMAT_UUID : FORMAT_BASE64;
	TRY(step_count_bytes(bson_text(v).len));
	if (format == FORMAT_UUID && !uuid)
		return fail_value(q, v,
				  "Unsupported conversion: 'uuid' needs a binData of subtype 4");
	if (format == FORMAT_UTF8 && utf8_valid_prefix(bson_text(v)) != bson_text(v).len)
		return fail_value(q, v, "Invalid UTF-8");
	if (format == FORMAT_NONE)
		return mql_fail(q, 4341115,
				"Format must be speficied when converting from 'binData' to "
				"'string'");
	if (format == FORMAT_UUID)
		put_uuid(&out, bson_text(v));
	else if (format == FORMAT_HEX)
		put_upper_hex(&out, bson_text(v));
	else if (format == FORMAT_UTF8)
		buf_append_str(&out, bson_text(v));
	else
		base64_encode(&out, bson_text(v),
			      format == FORMAT_BASE64 ? BASE64_STANDARD : BASE64_URL);
	if (buf_status(&out) == STATUS_LIMIT) {
		buf_release(&out);
		return fail_value(q, v, "Conversion would make a string of more than 16 MiB");
	}
	return mql_expr_keep_text(q, &out, ret);
}

static enum status
to_text(struct mql *q, const struct bson_value *v, const struct target *t, struct bson_value *ret)
{
	struct buf out = BUF_SHORT(SHORT_TEXT_BYTES);
	struct str text;

	switch ((int)v->type) {
	case BSON_BINARY:
		return text_of_bytes(q, v, t, ret);
	case BSON_BOOL:
		return mql_expr_text(q, bson_truth(v) ? STR("true") : STR("false"), ret);
	case BSON_OBJECT_ID:
		buf_append_hex(&out, bson_text(v));
		return mql_expr_keep_text(q, &out, ret);
	case BSON_DOUBLE:
		text = double_text(q, bson_real(v));
		if (!text.ptr)
			return mql_full(q);
		return mql_expr_text(q, text, ret);
	case BSON_STRING:
	case BSON_INT32:
	case BSON_INT64:
	case BSON_DECIMAL:
	case BSON_DATE:
		TRY(mql_expr_coerce_text(q, v, &text));
		return mql_expr_text(q, text, ret);
	default:
		return fail_type(q, v, t);
	}
}

/* ---- Bytes ---- */

static bool
put_uuid_bytes(struct buf *out, struct str text)
{
	char digits[2 * UUID_BYTES], bytes[UUID_BYTES];
	size_t at = 0;

	if (text.len != UUID_TEXT_BYTES)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash != (text.ptr[i] == '-'))
			return false;
		if (!dash)
			digits[at++] = text.ptr[i];
	}
	if (!str_from_hex(str_of(digits, sizeof(digits)), bytes))
		return false;
	buf_append(out, bytes, sizeof(bytes));
	return true;
}

static bool
put_text_bytes(struct buf *out, struct str text, const struct target *t)
{
	switch (t->format) {
	case FORMAT_UUID:
		return t->subtype == SUBTYPE_UUID && put_uuid_bytes(out, text);
	case FORMAT_BASE64:
		return base64_decode(out, text, BASE64_STANDARD) != STATUS_INVALID;
	case FORMAT_BASE64URL:
		return base64_decode(out, text, BASE64_URL) != STATUS_INVALID;
	case FORMAT_HEX:
		if (!buf_reserve(out, text.len / 2 + 1))
			return true;
		if (!str_from_hex(text, out->ptr))
			return false;
		out->len = text.len / 2;
		return true;
	case FORMAT_NONE:
	case FORMAT_AUTO:
	case FORMAT_UTF8:
		break;
	}
	buf_append_str(out, text);
	return true;
}

static void
put_number_bytes(struct buf *out, uint64_t n, size_t len, bool big)
{
	for (size_t i = 0; i < len; i++)
		buf_append_byte(out, (uint8_t)(n >> 8 * (big ? len - 1 - i : i)));
}

static enum status
to_bytes(struct mql *q, const struct bson_value *v, const struct target *t, struct bson_value *ret)
{
	struct buf out = mql_buf(q, BSON_MOST_BYTES);
	uint64_t n = 0;
	double d;

	switch ((int)v->type) {
	case BSON_BINARY:
		if (v->subtype != t->subtype)
			return fail_value(q, v,
					  "Conversions between different binData subtypes are not "
					  "supported");
		*ret = *v;
		return STATUS_OK;
	case BSON_STRING:
		if (t->format == FORMAT_NONE)
			return mql_fail(q, 4341115,
					"Format must be speficied when converting from 'string' to "
					"'binData'");
		TRY(step_count_bytes(bson_text(v).len));
		if (!put_text_bytes(&out, bson_text(v), t)) {
			buf_release(&out);
			return fail_value(q, v, "Input string is not of that format");
		}
		break;
	case BSON_INT32:
		put_number_bytes(&out, (uint64_t)bson_integer(v), 4, t->big);
		break;
	case BSON_INT64:
		put_number_bytes(&out, (uint64_t)bson_integer(v), 8, t->big);
		break;
	case BSON_DOUBLE:
		d = bson_real(v);
		memcpy(&n, &d, sizeof(n));
		put_number_bytes(&out, n, 8, t->big);
		break;
	default:
		return fail_type(q, v, t);
	}
	*ret = (struct bson_value){ .type = BSON_BINARY, .subtype = (uint8_t)t->subtype };
	return mql_keep(q, &out, &ret->as_text);
}

static enum status
convert(struct mql *q, const struct bson_value *v, const struct target *t, struct bson_value *ret)
{
	switch ((int)t->type) {
	case BSON_DOUBLE:
		return to_double(q, v, t, ret);
	case BSON_STRING:
		return to_text(q, v, t, ret);
	case BSON_BINARY:
		return to_bytes(q, v, t, ret);
	case BSON_OBJECT_ID:
		return to_object_id(q, v, t, ret);
	case BSON_BOOL:
		*ret = BSON_OF_BOOL(bson_is_true(v));
		return STATUS_OK;
	case BSON_DATE:
		return to_date(q, v, t, ret);
	case BSON_INT32:
	case BSON_INT64:
		return to_integer(q, v, t, ret);
	case BSON_DECIMAL:
		return to_decimal(q, v, t, ret);
	default:
		return fail_type(q, v, t);
	}
}

/* ---- $convert ---- */

enum argument {
	ARG_INPUT,
	ARG_TO,
	ARG_ERROR,
	ARG_NULL,
	ARG_FORMAT,
	ARG_ORDER,
};

static enum status
read_type(struct mql *q, const struct bson_value *v, struct target *t)
{
	int64_t n;

	if (v->type == BSON_STRING) {
		if (bson_type_of_name(bson_text(v), &t->type) && t->type)
			return STATUS_OK;
		return mql_fail(q, MQL_BAD_VALUE, "Unknown type name: %.*s", STR_ARG(bson_text(v)));
	}
	if (!bson_is_number(v))
		return mql_fail(q, MQL_FAILED_TO_PARSE,
				"$convert's 'to' argument must be a string or number, but is %s",
				mql_expr_type(v));
	if (!bson_to_int64(v, &n))
		return mql_fail(q, MQL_FAILED_TO_PARSE,
				"In $convert, numeric 'to' argument is not an integer");
	if ((n < 0 || n > BSON_DECIMAL) && n != -1 && n != BSON_MAX_KEY)
		return mql_fail(q, MQL_FAILED_TO_PARSE,
				"In $convert, numeric value for 'to' does not correspond to a BSON "
				"type: %lld",
				(long long)n);
	t->type = n == -1 ? BSON_MIN_KEY : (enum bson_type)n;
	return STATUS_OK;
}

static enum status
read_subtype(struct mql *q, const struct bson_value *v, struct target *t)
{
	int32_t n;

	if (mql_is_nullish(v))
		return STATUS_OK;
	if (!bson_is_number(v))
		return mql_fail(q, 4341108,
				"$convert's 'subtype' argument must be a number, but is %s",
				mql_expr_type(v));
	if (!mql_expr_int32(v, &n))
		return mql_fail(q, 4341106,
				"In $convert, numeric 'subtype' argument is not an integer");
	if (n < 0 || n > UINT8_MAX || (n > 9 && n < 128))
		return mql_fail(q, 4341107,
				"In $convert, numeric value for 'subtype' does not correspond to a "
				"BinData type: %d",
				n);
	t->subtype = n;
	return STATUS_OK;
}

static enum status
read_target(struct mql *q, const struct bson_value *to, struct target *t)
{
	struct bson_value type, subtype = MQL_NO_VALUE;

	if (to->type != BSON_DOCUMENT)
		return read_type(q, to, t);
	if (!bson_find(bson_text(to), STR("type"), &type))
		return mql_fail(q, MQL_FAILED_TO_PARSE,
				"$convert's 'to' argument must have a 'type' field");
	TRY(read_type(q, &type, t));
	(void)bson_find(bson_text(to), STR("subtype"), &subtype);
	return t->type == BSON_BINARY ? read_subtype(q, &subtype, t) : STATUS_OK;
}

static enum status
read_format(struct mql *q, const struct bson_value *v, struct target *t)
{
	static const char *const names[] = {
		[FORMAT_NONE] = "",         [FORMAT_AUTO] = "auto",
		[FORMAT_BASE64] = "base64", [FORMAT_BASE64URL] = "base64url",
		[FORMAT_HEX] = "hex",       [FORMAT_UTF8] = "utf8",
		[FORMAT_UUID] = "uuid",
	};

	if (mql_is_nullish(v))
		return STATUS_OK;
	if (v->type != BSON_STRING)
		return mql_fail(q, 4341114,
				"$convert requires that 'format' be a string, found: %s with value "
				"%s",
				mql_expr_type(v), mql_text(q, STR(""), v));
	for (int i = FORMAT_AUTO; i <= FORMAT_UUID; i++) {
		if (mql_is(bson_text(v), names[i])) {
			t->format = (enum format)i;
			return STATUS_OK;
		}
	}
	return mql_fail(q, 4341125, "Invalid 'format' argument for $convert: %.*s",
			STR_ARG(bson_text(v)));
}

static enum status
read_order(struct mql *q, const struct bson_value *v, struct target *t)
{
	if (mql_is_nullish(v))
		return STATUS_OK;
	if (v->type != BSON_STRING)
		return mql_fail(q, 9130001,
				"$convert requires that 'byteOrder' be a string, found: %s with "
				"value %s",
				mql_expr_type(v), mql_text(q, STR(""), v));
	t->big = mql_is(bson_text(v), "big");
	if (t->big || mql_is(bson_text(v), "little"))
		return STATUS_OK;
	return mql_fail(q, 9130002, "Invalid 'byteOrder' argument for $convert: %.*s",
			STR_ARG(bson_text(v)));
}

static enum status
run_convert(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	    struct bson_value *ret)
{
	struct target t = { 0 };
	struct mql_date_call c;
	enum status status;

	TRY(mql_date_evaluate(e, q, env, &c));
	*ret = BSON_OF_NULL;
	if (mql_is_nullish(&c.values[ARG_INPUT])) {
		if (c.given >> ARG_NULL & 1)
			*ret = c.values[ARG_NULL];
		return STATUS_OK;
	}
	if (mql_is_nullish(&c.values[ARG_TO]))
		return STATUS_OK;
	TRY(read_target(q, &c.values[ARG_TO], &t));
	TRY(read_format(q, &c.values[ARG_FORMAT], &t));
	TRY(read_order(q, &c.values[ARG_ORDER], &t));
	status = convert(q, &c.values[ARG_INPUT], &t, ret);
	if (status == STATUS_INVALID && c.given >> ARG_ERROR & 1) {
		q->code = 0;
		*ret = c.values[ARG_ERROR];
		return STATUS_OK;
	}
	return status;
}

static enum status
compile_convert(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
		const struct mql_scope *scope, struct mql_expr **ret)
{
	return mql_date_compile(q, op, arg, scope, run_convert, ret);
}

/* ---- Short forms ---- */

static enum status
run_to(const struct mql_expr *e, struct mql *q, const struct mql_env *env, struct bson_value *ret)
{
	struct target t = { .type = (enum bson_type)e->op->number, .format = FORMAT_AUTO };
	struct bson_value v;

	TRY(mql_expr_run(e->args[0], q, env, &v));
	*ret = BSON_OF_NULL;
	if (mql_is_nullish(&v))
		return STATUS_OK;
	if (t.type == BSON_BINARY) {
		t.format = FORMAT_UUID;
		t.subtype = SUBTYPE_UUID;
	}
	return convert(q, &v, &t, ret);
}

static enum status
compile_to(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	   const struct mql_scope *scope, struct mql_expr **ret)
{
	struct bson_value v = *arg;
	struct bson_iter i;
	struct bson_element e;

	if (arg->type == BSON_ARRAY) {
		if (bson_count(bson_text(arg)) != 1)
			return mql_fail(q, 50723, "%s requires a single argument, got %zu",
					op->name, bson_count(bson_text(arg)));
		bson_iter_begin(&i, bson_text(arg));
		(void)bson_iter_read(&i, &e);
		v = e.value;
	}
	TRY(mql_expr_new(q, op, run_to, 1, ret));
	TRY(mql_expr_compile(q, &v, scope, &(*ret)->args[0]));
	return mql_expr_fold(q, *ret);
}

static enum status
run_type(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	(void)q;
	(void)count;
	*ret = BSON_OF_STRING(str_from_cstr(mql_expr_type(&args[0])));
	return STATUS_OK;
}

static enum status
run_is_number(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	(void)q;
	(void)count;
	*ret = BSON_OF_BOOL(bson_is_number(&args[0]));
	return STATUS_OK;
}

static enum status
fault_convert(struct mql *q, const struct mql_expr_op *op, enum mql_expr_fault fault,
	      struct str name, const struct bson_value *arg)
{
	switch ((int)fault) {
	case MQL_FAULT_NOT_OBJECT:
		return mql_fail(q, MQL_FAILED_TO_PARSE,
				"%s expects an object of named arguments but found: %s", op->name,
				mql_expr_type(arg));
	case MQL_FAULT_UNKNOWN:
		return mql_fail(q, MQL_FAILED_TO_PARSE, "%s found an unknown argument: %.*s",
				op->name, STR_ARG(name));
	default:
		return mql_fail(q, MQL_FAILED_TO_PARSE, "Missing '%.*s' parameter to %s",
				STR_ARG(name), op->name);
	}
}

static const char *const convert_names[] = { "input",  "to",        "onError", "onNull",
					     "format", "byteOrder", NULL };

#define TO(text, which)                                                                            \
	{                                                                                          \
		.name = text, .compile = compile_to, .number = which                               \
	}

const struct mql_expr_op mql_expr_convert_ops[] = {
	{ .name = "$convert",
	  .names = convert_names,
	  .required = 3,
	  .fault = fault_convert,
	  .compile = compile_convert },
	{ .name = "$isNumber", .least = 1, .most = 1, .run = run_is_number },
	TO("$toBool", BSON_BOOL),
	TO("$toDate", BSON_DATE),
	TO("$toDecimal", BSON_DECIMAL),
	TO("$toDouble", BSON_DOUBLE),
	TO("$toInt", BSON_INT32),
	TO("$toLong", BSON_INT64),
	TO("$toObjectId", BSON_OBJECT_ID),
	TO("$toString", BSON_STRING),
	TO("$toUUID", BSON_BINARY),
	{ .name = "$type", .least = 1, .most = 1, .run = run_type },
	{ 0 },
};

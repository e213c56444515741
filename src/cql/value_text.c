#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "cql/json.h"
#include "cql/number.h"
#include "cql/time.h"

enum {
	UUID_TEXT_BYTES = 36,
	NUMBER_TEXT_BYTES = 400, /* of a double: more is refused */
};

/* ---- Reading ---- */

static enum status
bad_number(struct cql *q, const char *java, struct str text)
{
	/* Numbers of any length take memory while they are read. */
	if (arena_is_full(q->arena))
		return STATUS_LIMIT;
	return cql_fail(q, CQL_E_BAD_INTEGER, str_from_cstr(java), text);
}

static enum status
read_int(struct cql *q, struct str text, size_t width, const char *java, struct str *ret)
{
	int64_t n, most = width == 8 ? INT64_MAX : (INT64_C(1) << (8 * width - 1)) - 1;

	if (!str_to_i64(text, &n) || n > most || n < -most - 1)
		return bad_number(q, java, text);
	return cql_int_put(q, n, width, ret);
}

/* strtod() of all of the text, which is a decimal number, NaN or an infinity. */
static bool
read_floating(struct str text, bool is_float, double *ret)
{
	char copy[NUMBER_TEXT_BYTES + 1], *end;

	if (!text.len || text.len > NUMBER_TEXT_BYTES)
		return false;
	memcpy(copy, text.ptr, text.len);
	copy[text.len] = '\0';
	if (strpbrk(copy, "xXpP \t\n") || strlen(copy) != text.len)
		return false;
	*ret = is_float ? (double)strtof(copy, &end) : strtod(copy, &end);
	return *end == '\0';
}

static enum status
read_uuid(struct cql *q, const struct cql_type *type, struct str text, struct str *ret)
{
	char digits[2 * DOC_UUID_BYTES], *bytes = arena_bytes(q->arena, DOC_UUID_BYTES);
	size_t used = 0;

	if (!bytes)
		return STATUS_LIMIT;
	if (text.len != UUID_TEXT_BYTES)
		return cql_fail(q, CQL_E_BAD_UUID, text);
	for (size_t i = 0; i < text.len; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23) {
			if (text.ptr[i] != '-')
				return cql_fail(q, CQL_E_BAD_UUID, text);
			continue;
		}
		digits[used++] = text.ptr[i];
	}
	if (!str_from_hex(str_of(digits, used), bytes))
		return cql_fail(q, CQL_E_BAD_UUID, text);
	if (type->kind == CQL_TYPE_TIMEUUID && (bytes[6] & 0xf0) != 0x10)
		return cql_fail(q, CQL_E_BAD_TIMEUUID);
	*ret = str_of(bytes, DOC_UUID_BYTES);
	return STATUS_OK;
}

static enum status
read_inet(struct cql *q, struct str text, struct str *ret)
{
	char copy[INET6_ADDRSTRLEN + 1], *bytes = arena_bytes(q->arena, DOC_INET6_BYTES);

	if (!bytes)
		return STATUS_LIMIT;
	if (text.len > INET6_ADDRSTRLEN)
		return cql_fail(q, CQL_E_BAD_INET, text);
	memcpy(copy, text.ptr, text.len);
	copy[text.len] = '\0';
	if (inet_pton(AF_INET, copy, bytes) == 1)
		*ret = str_of(bytes, DOC_INET4_BYTES);
	else if (inet_pton(AF_INET6, copy, bytes) == 1)
		*ret = str_of(bytes, DOC_INET6_BYTES);
	else
		return cql_fail(q, CQL_E_BAD_INET, text);
	return STATUS_OK;
}

static enum status
read_blob(struct cql *q, struct str text, struct str *ret)
{
	char *bytes;

	if (str_starts_with(text, STR("0x")) || str_starts_with(text, STR("0X")))
		text = str_skip(text, 2);
	bytes = arena_bytes(q->arena, text.len / 2 + 1);
	if (!bytes)
		return STATUS_LIMIT;
	if (text.len % 2)
		return cql_fail(q, CQL_E_BAD_BLOB, STR("An hex string must be even length"));
	if (!str_from_hex(text, bytes))
		return cql_fail(q, CQL_E_BAD_BLOB, STR("Non-hex characters in a blob"));
	*ret = str_of(bytes, text.len / 2);
	return STATUS_OK;
}

static enum status
read_moment(struct cql *q, const struct cql_type *type, struct str text, struct str *ret)
{
	int64_t n;

	if (type->kind == CQL_TYPE_TIMESTAMP)
		return cql_timestamp_parse(text, &n) ? cql_int_put(q, n, 8, ret)
						     : cql_fail(q, CQL_E_BAD_DATE, text);
	if (type->kind == CQL_TYPE_TIME)
		return cql_time_parse(text, &n) ? cql_int_put(q, n, 8, ret)
						: cql_fail(q, CQL_E_BAD_TIME, text);
	return cql_day_parse(text, &n) ? cql_int_put(q, n + CQL_DAY_ZERO, 4, ret)
				       : cql_fail(q, CQL_E_BAD_DAY, text);
}

static enum status
read_boolean(struct cql *q, struct str text, struct str *ret)
{
	bool truth = str_eq_nocase(text, STR("true"));

	if (!truth && !str_eq_nocase(text, STR("false")))
		return cql_fail(q, CQL_E_BAD_BOOLEAN, text);
	return cql_int_put(q, truth, 1, ret);
}

static enum status
read_duration(struct cql *q, struct str text, struct str *ret)
{
	struct cql_duration d;

	TRY(cql_duration_parse(q, text, &d));
	return cql_duration_put(q, d, ret);
}

static enum status
read_text(struct cql *q, const struct cql_type *type, struct str text, struct str *ret)
{
	*ret = text.ptr ? text : STR("");
	return cql_value_check(q, type, text);
}

enum status
cql_value_from_text(struct cql *q, const struct cql_type *type, struct str text, struct str *ret)
{
	double d;

	switch ((int)type->kind) {
	case CQL_TYPE_ASCII:
	case CQL_TYPE_TEXT:
		return read_text(q, type, text, ret);
	case CQL_TYPE_JSONB:
		return cql_jsonb_normalize(q, text, ret);
	case CQL_TYPE_BLOB:
		return read_blob(q, text, ret);
	case CQL_TYPE_BOOLEAN:
		return read_boolean(q, text, ret);
	case CQL_TYPE_BIGINT:
	case CQL_TYPE_COUNTER:
		return read_int(q, text, 8, "long", ret);
	case CQL_TYPE_INT:
		return read_int(q, text, 4, "int", ret);
	case CQL_TYPE_SMALLINT:
		return read_int(q, text, 2, "short", ret);
	case CQL_TYPE_TINYINT:
		return read_int(q, text, 1, "byte", ret);
	case CQL_TYPE_VARINT:
		return cql_varint_parse(q, text, ret) ? STATUS_OK
						      : bad_number(q, "BigInteger", text);
	case CQL_TYPE_DECIMAL:
		return cql_decimal_parse(q, text, ret) ? STATUS_OK
						       : bad_number(q, "BigDecimal", text);
	case CQL_TYPE_DOUBLE:
		return read_floating(text, false, &d) ? cql_double_put(q, d, ret)
						      : bad_number(q, "double", text);
	case CQL_TYPE_FLOAT:
		return read_floating(text, true, &d) ? cql_float_put(q, (float)d, ret)
						     : bad_number(q, "float", text);
	case CQL_TYPE_DATE:
	case CQL_TYPE_TIME:
	case CQL_TYPE_TIMESTAMP:
		return read_moment(q, type, text, ret);
	case CQL_TYPE_DURATION:
		return read_duration(q, text, ret);
	case CQL_TYPE_INET:
		return read_inet(q, text, ret);
	case CQL_TYPE_UUID:
	case CQL_TYPE_TIMEUUID:
		return read_uuid(q, type, text, ret);
	default:
		return cql_fail(q, CQL_E_TYPE_SYNTAX, text);
	}
}

/* ---- Writing ---- */

static void
print_uuid(struct buf *out, struct str uuid)
{
	static const size_t ends[] = { 4, 6, 8, 10, DOC_UUID_BYTES };
	size_t at = 0;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (i)
			buf_append_byte(out, '-');
		buf_append_hex(out, str_of(uuid.ptr + at, ends[i] - at));
		at = ends[i];
	}
}

static void
print_inet(struct buf *out, struct str address)
{
	char text[INET6_ADDRSTRLEN];

	if (inet_ntop(address.len == DOC_INET4_BYTES ? AF_INET : AF_INET6, address.ptr, text,
		      sizeof(text)))
		buf_append_cstr(out, text);
}

static void
print_moment(struct buf *out, const struct cql_type *type, struct str bytes,
	     enum cql_text_form form)
{
	bool quoted = form == CQL_FORM_LITERAL;

	if (quoted)
		buf_append_byte(out, '\'');
	if (type->kind == CQL_TYPE_TIMESTAMP)
		cql_timestamp_print(out, cql_int_read(bytes),
				    form == CQL_FORM_PLAIN ? CQL_MOMENT_CQLSH : CQL_MOMENT_ISO);
	else if (type->kind == CQL_TYPE_TIME)
		cql_time_print(out, cql_int_read(bytes));
	else
		cql_day_print(out, (int64_t)(uint32_t)cql_int_read(bytes) - CQL_DAY_ZERO);
	if (quoted)
		buf_append_byte(out, '\'');
}

static void
print_text(struct buf *out, struct str text, enum cql_text_form form)
{
	if (form == CQL_FORM_LITERAL)
		cql_text_print(out, text);
	else
		buf_append_str(out, text);
}

static void
print_native(struct buf *out, const struct cql_type *type, struct str bytes,
	     enum cql_text_form form)
{
	struct cql_duration d;

	switch ((int)type->kind) {
	case CQL_TYPE_ASCII:
	case CQL_TYPE_TEXT:
	case CQL_TYPE_JSONB:
		print_text(out, bytes, form);
		break;
	case CQL_TYPE_BLOB:
		buf_append_cstr(out, "0x");
		buf_append_hex(out, bytes);
		break;
	case CQL_TYPE_BOOLEAN:
		buf_append_cstr(out, bytes.ptr[0] ? "true" : "false");
		break;
	case CQL_TYPE_VARINT:
		cql_varint_print(out, bytes);
		break;
	case CQL_TYPE_DECIMAL:
		cql_decimal_print(out, bytes);
		break;
	case CQL_TYPE_DOUBLE:
		cql_double_print(out, cql_double_read(bytes));
		break;
	case CQL_TYPE_FLOAT:
		cql_float_print(out, cql_float_read(bytes));
		break;
	case CQL_TYPE_DATE:
	case CQL_TYPE_TIME:
	case CQL_TYPE_TIMESTAMP:
		print_moment(out, type, bytes, form);
		break;
	case CQL_TYPE_DURATION:
		if (cql_duration_read(bytes, &d))
			cql_duration_print(out, d);
		break;
	case CQL_TYPE_INET:
		if (form == CQL_FORM_LITERAL)
			buf_append_byte(out, '\'');
		print_inet(out, bytes);
		if (form == CQL_FORM_LITERAL)
			buf_append_byte(out, '\'');
		break;
	case CQL_TYPE_UUID:
	case CQL_TYPE_TIMEUUID:
		print_uuid(out, bytes);
		break;
	default:
		buf_printf(out, "%lld", (long long)cql_int_read(bytes));
		break;
	}
}

static void
print_elements(struct buf *out, const struct cql_type *type, struct str bytes)
{
	static const char *const brackets[] = { "[]", "{}", "{}", "()", "{}" };
	const char *around = brackets[type->kind - CQL_TYPE_LIST];
	bool fields = type->kind == CQL_TYPE_TUPLE || type->kind == CQL_TYPE_UDT;
	struct cql_elements e;
	struct cql_value v;

	buf_append_byte(out, (uint8_t)around[0]);
	cql_elements_init(&e, type, bytes);
	for (size_t i = 0;; i++) {
		if (!cql_elements_next(&e, &v)) {
			/* Fields that were added later are null. */
			if (!fields || i >= type->count)
				break;
			v = CQL_VALUE_NULL;
		}
		if (i)
			buf_append_cstr(out, type->kind == CQL_TYPE_MAP && i % 2 ? ": " : ", ");
		if (type->kind == CQL_TYPE_UDT) {
			cql_name_print(out, type->fields[i]);
			buf_append_cstr(out, ": ");
		}
		cql_value_print(out, type->args[fields ? i : i % type->count], v, CQL_FORM_LITERAL);
	}
	buf_append_byte(out, (uint8_t)around[1]);
}

void
cql_value_print(struct buf *out, const struct cql_type *type, struct cql_value v,
		enum cql_text_form form)
{
	if (v.presence != CQL_SET)
		buf_append_cstr(out, v.presence == CQL_NULL ? "null" : "unset");
	else if (type->kind >= CQL_TYPE_CUSTOM)
		buf_append_hex(out, v.bytes);
	else if (type->kind >= CQL_NATIVE_COUNT)
		print_elements(out, type, v.bytes);
	else if (v.bytes.len || type->kind == CQL_TYPE_TEXT || type->kind == CQL_TYPE_ASCII ||
		 type->kind == CQL_TYPE_BLOB)
		print_native(out, type, v.bytes, form);
	else if (form == CQL_FORM_LITERAL)
		buf_append_cstr(out, "''");
}

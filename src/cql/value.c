#include "cql/value.h"

#include <assert.h>
#include <math.h>

#include "base/big_endian.h"
#include "base/utf8.h"
#include "cql/json.h"
#include "cql/number.h"
#include "cql/value_int.h"
#include "loop/sort.h"
#include "loop/step.h"

/* ---- Integers and floating point ---- */

int64_t
cql_int_read(struct str bytes)
{
	uint64_t n = bytes.len && (bytes.ptr[0] & 0x80) ? UINT64_MAX : 0;

	for (size_t i = 0; i < bytes.len && i < sizeof(n); i++)
		n = n << 8 | (uint8_t)bytes.ptr[i];
	return (int64_t)n;
}

enum status
cql_int_put(struct cql *q, int64_t n, size_t width, struct str *ret)
{
	char all[sizeof(n)], *bytes = arena_bytes(q->arena, width);

	if (!bytes)
		return STATUS_LIMIT;
	assert(width <= sizeof(all));
	big_endian_put_64(all, (uint64_t)n);
	memcpy(bytes, all + sizeof(all) - width, width);
	*ret = str_of(bytes, width);
	return STATUS_OK;
}

enum status
cql_double_put(struct cql *q, double d, struct str *ret)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof(bits));
	return cql_int_put(q, (int64_t)bits, sizeof(bits), ret);
}

enum status
cql_float_put(struct cql *q, float f, struct str *ret)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return cql_int_put(q, bits, sizeof(bits), ret);
}

double
cql_double_read(struct str bytes)
{
	uint64_t bits = big_endian_64(bytes.ptr);
	double d;

	memcpy(&d, &bits, sizeof(d));
	return d;
}

float
cql_float_read(struct str bytes)
{
	uint32_t bits = big_endian_32(bytes.ptr);
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

/* ---- Elements ---- */

void
cql_elements_init(struct cql_elements *e, const struct cql_type *type, struct str bytes)
{
	*e = (struct cql_elements){ .rest = bytes };
	if (type->kind == CQL_TYPE_TUPLE || type->kind == CQL_TYPE_UDT) {
		e->left = type->count;
	} else if (bytes.len >= sizeof(uint32_t)) {
		e->left = big_endian_32(bytes.ptr);
		if (type->kind == CQL_TYPE_MAP)
			e->left *= 2;
		e->rest = str_skip(bytes, sizeof(uint32_t));
	}
}

bool
cql_elements_next(struct cql_elements *e, struct cql_value *ret)
{
	int32_t len;

	if (!e->left || e->rest.len < sizeof(uint32_t))
		return false;
	len = (int32_t)big_endian_32(e->rest.ptr);
	/* e->left still counts this element, which tells the caller that it is cut off. */
	if (len > 0 && (size_t)len > e->rest.len - sizeof(uint32_t))
		return false;
	e->left--;
	e->rest = str_skip(e->rest, sizeof(uint32_t));
	if (len < 0) {
		*ret = len == -2 ? CQL_VALUE_UNSET : CQL_VALUE_NULL;
		return true;
	}
	*ret = CQL_VALUE(str_of(e->rest.ptr, (size_t)len));
	e->rest = str_skip(e->rest, (size_t)len);
	return true;
}

size_t
cql_elements_count(struct str bytes)
{
	return bytes.len >= sizeof(uint32_t) ? big_endian_32(bytes.ptr) : 0;
}

void
cql_count_put(struct buf *out, size_t count)
{
	char bytes[sizeof(uint32_t)];

	big_endian_put_32(bytes, (uint32_t)count);
	buf_append(out, bytes, sizeof(bytes));
}

void
cql_element_put(struct buf *out, struct cql_value v)
{
	size_t len = v.presence == CQL_SET ? v.bytes.len : 0;
	int32_t told = v.presence == CQL_SET ? (int32_t)len : v.presence == CQL_NULL ? -1 : -2;

	if (!buf_reserve(out, sizeof(uint32_t) + len))
		return;
	big_endian_put_32(out->ptr + out->len, (uint32_t)told);
	out->len += sizeof(uint32_t);
	if (len)
		memcpy(out->ptr + out->len, v.bytes.ptr, len);
	out->len += len;
}

/* ---- Checking ---- */

static enum status
wrong_length(struct cql *q, const char *wanted, size_t len)
{
	char number[24];
	size_t at = sizeof(number);

	do
		number[--at] = (char)('0' + len % 10);
	while (len /= 10);
	return cql_fail(q, CQL_E_LENGTH, str_from_cstr(wanted),
			str_of(number + at, sizeof(number) - at));
}

static struct str
number_text(struct cql *q, int64_t n)
{
	struct str text = arena_printf(q->arena, "%lld", (long long)n);

	return text.ptr ? text : STR("?");
}

/* What Cassandra says of another length than the type's. */
static const char *
wanted_length(enum cql_type_kind kind)
{
	static const char *const texts[CQL_NATIVE_COUNT] = {
		[CQL_TYPE_BIGINT] = "8 or 0 byte long",
		[CQL_TYPE_COUNTER] = "8 or 0 byte long",
		[CQL_TYPE_BOOLEAN] = "1 or 0 byte value",
		[CQL_TYPE_DATE] = "4 byte long for date",
		[CQL_TYPE_DECIMAL] = "0 or at least 4 bytes",
		[CQL_TYPE_DOUBLE] = "8 or 0 byte value for a double",
		[CQL_TYPE_DURATION] = "at least 3 bytes for a duration",
		[CQL_TYPE_FLOAT] = "4 or 0 byte value for a float",
		[CQL_TYPE_INET] = "4 or 16 byte inetaddress",
		[CQL_TYPE_INT] = "4 or 0 byte int",
		[CQL_TYPE_SMALLINT] = "2 bytes for a smallint",
		[CQL_TYPE_TIME] = "8 byte long for time",
		[CQL_TYPE_TIMESTAMP] = "8 or 0 byte long for date",
		[CQL_TYPE_TIMEUUID] = "16 or 0 byte UUID",
		[CQL_TYPE_TINYINT] = "1 byte for a tinyint",
		[CQL_TYPE_UUID] = "16 or 0 byte UUID",
	};

	return texts[kind];
}

static enum status
check_ascii(struct cql *q, struct str bytes)
{
	for (size_t i = 0; i < bytes.len; i++)
		if (bytes.ptr[i] & 0x80)
			return cql_fail(q, CQL_E_BAD_ASCII, str_of(bytes.ptr + i, 1));
	return STATUS_OK;
}

static enum status
check_long_number(struct cql *q, struct str bytes)
{
	return cql_varint_minimal(bytes).len > CQL_VARINT_BYTES
		       ? cql_fail(q, CQL_E_NUMBER_LONG, STR("10000"))
		       : STATUS_OK;
}

static enum status
check_duration(struct cql *q, struct str bytes)
{
	int64_t parts[3];
	struct cql_duration d;

	if (cql_duration_read(bytes, &d))
		return STATUS_OK;
	if (!cql_duration_parts(bytes, parts))
		return wrong_length(q, wanted_length(CQL_TYPE_DURATION), bytes.len);
	for (size_t i = 0; i < 2; i++)
		if (parts[i] != (int32_t)parts[i])
			return cql_fail(q, CQL_E_DURATION_WIDE, i ? STR("days") : STR("months"),
					number_text(q, parts[i]));
	return cql_fail(q, CQL_E_DURATION_SIGNS, number_text(q, parts[0]), number_text(q, parts[1]),
			number_text(q, parts[2]));
}

static enum status
check_native(struct cql *q, enum cql_type_kind kind, struct str bytes)
{
	struct str jsonb;

	switch ((int)kind) {
	case CQL_TYPE_ASCII:
		return check_ascii(q, bytes);
	case CQL_TYPE_TEXT:
		return utf8_valid_prefix(bytes) == bytes.len ? STATUS_OK
							     : cql_fail(q, CQL_E_BAD_TEXT);
	case CQL_TYPE_VARINT:
		return check_long_number(q, bytes);
	case CQL_TYPE_DECIMAL:
		if (bytes.len <= CQL_SCALE_BYTES)
			return wrong_length(q, wanted_length(kind), bytes.len);
		return check_long_number(q, str_skip(bytes, CQL_SCALE_BYTES));
	case CQL_TYPE_INET:
		return bytes.len == DOC_INET4_BYTES || bytes.len == DOC_INET6_BYTES
			       ? STATUS_OK
			       : wrong_length(q, wanted_length(kind), bytes.len);
	case CQL_TYPE_DURATION:
		return check_duration(q, bytes);
	case CQL_TYPE_TIME:
		return cql_int_read(bytes) >= 0 && cql_int_read(bytes) < INT64_C(86400000000000)
			       ? STATUS_OK
			       : cql_fail(q, CQL_E_BAD_TIME, STR("(bytes)"));
	case CQL_TYPE_TIMEUUID:
		return (bytes.ptr[6] & 0xf0) == 0x10 ? STATUS_OK : cql_fail(q, CQL_E_BAD_TIMEUUID);
	case CQL_TYPE_JSONB:
		return cql_jsonb_normalize(q, bytes, &jsonb);
	default:
		return STATUS_OK;
	}
}

static const char *
container_name(enum cql_type_kind kind)
{
	return kind == CQL_TYPE_LIST ? "list" : kind == CQL_TYPE_SET ? "set" : "map";
}

static enum status
check_collection(struct cql *q, const struct cql_type *type, struct str bytes)
{
	struct str name = str_from_cstr(container_name(type->kind));
	struct cql_elements e;
	struct cql_value v;

	if (bytes.len < sizeof(uint32_t) || cql_elements_count(bytes) > INT32_MAX)
		return cql_fail(q, CQL_E_LENGTH_SHORT, name);
	cql_elements_init(&e, type, bytes);
	for (size_t i = 0; cql_elements_next(&e, &v); i++) {
		TRY(step_count(1));
		if (v.presence != CQL_SET)
			return cql_fail(q, v.presence == CQL_NULL ? CQL_E_NULL_IN_COLLECTION
								  : CQL_E_UNSET_IN_COLLECTION);
		TRY(cql_value_check(q, type->args[i % type->count], v.bytes));
	}
	if (e.left)
		return cql_fail(q, CQL_E_LENGTH_SHORT, name);
	return e.rest.len ? cql_fail(q, CQL_E_TRAILING, name) : STATUS_OK;
}

static enum status
check_fields(struct cql *q, const struct cql_type *type, struct str bytes)
{
	struct cql_elements e;
	struct cql_value v;

	cql_elements_init(&e, type, bytes);
	for (size_t i = 0; cql_elements_next(&e, &v); i++) {
		TRY(step_count(1));
		if (v.presence == CQL_SET)
			TRY(cql_value_check(q, type->args[i], v.bytes));
	}
	if (e.left && e.rest.len)
		return cql_fail(q, CQL_E_LENGTH_SHORT, STR("a tuple"));
	return e.rest.len ? cql_fail(q, CQL_E_TUPLE_BYTES) : STATUS_OK;
}

enum status
cql_value_check(struct cql *q, const struct cql_type *type, struct str bytes)
{
	size_t fixed = cql_type_fixed_bytes(type);

	/* Whose type that is knows what its values are. */
	if (type->kind == CQL_TYPE_CUSTOM)
		return cql_fail(q, CQL_E_CUSTOM_TYPE, type->name);
	if (bytes.len == 0 && cql_type_takes_empty(type))
		return STATUS_OK;
	if (cql_type_is_collection(type))
		return check_collection(q, type, bytes);
	if (type->kind == CQL_TYPE_TUPLE || type->kind == CQL_TYPE_UDT)
		return check_fields(q, type, bytes);
	if (type->kind >= CQL_NATIVE_COUNT)
		return STATUS_OK;
	TRY(step_count_bytes(bytes.len));
	if (fixed && bytes.len != fixed)
		return wrong_length(q, wanted_length(type->kind), bytes.len);
	return check_native(q, type->kind, bytes);
}

/* ---- Order ---- */

static int
compare_int(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int
compare_varint(struct str a, struct str b)
{
	bool a_negative = a.ptr[0] & 0x80, b_negative = b.ptr[0] & 0x80;

	if (a_negative != b_negative)
		return a_negative ? -1 : 1;
	a = cql_varint_minimal(a);
	b = cql_varint_minimal(b);
	if (a.len != b.len)
		return (a.len < b.len) != a_negative ? -1 : 1;
	return str_cmp(a, b);
}

/* As Java: -0 before 0, and every NaN last. */
static int
compare_double(double a, double b)
{
	if (isnan(a) || isnan(b))
		return (isnan(a) != 0) - (isnan(b) != 0);
	if (a == b)
		return (signbit(b) != 0) - (signbit(a) != 0);
	return a < b ? -1 : 1;
}

/* The time of a UUID of version 1, most significant part first. */
static uint64_t
uuid_time(struct str uuid)
{
	uint64_t n = big_endian_64(uuid.ptr);

	return (n & 0xffff) << 48 | (n >> 16 & 0xffff) << 32 | n >> 32;
}

static int
compare_uuid(struct str a, struct str b, bool signed_bytes)
{
	unsigned a_version = (uint8_t)a.ptr[6] >> 4, b_version = (uint8_t)b.ptr[6] >> 4;
	uint64_t a_time = uuid_time(a), b_time = uuid_time(b);

	if (a_version != b_version)
		return a_version < b_version ? -1 : 1;
	if (a_version != 1)
		return str_cmp(a, b);
	if (a_time != b_time)
		return a_time < b_time ? -1 : 1;
	for (size_t i = 8; i < DOC_UUID_BYTES; i++) {
		uint8_t flip = signed_bytes ? 0x80 : 0, x = (uint8_t)a.ptr[i] ^ flip,
			y = (uint8_t)b.ptr[i] ^ flip;

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

/* By keys of both, which have no rounding; by bytes where a number has no key. */
static int
compare_decimal(struct str a, struct str b)
{
	struct buf keys[2] = { BUF_SHORT(CQL_VARINT_BYTES * 3), BUF_SHORT(CQL_VARINT_BYTES * 3) };
	int order;

	if (cql_decimal_put_key(&keys[0], a) == STATUS_OK &&
	    cql_decimal_put_key(&keys[1], b) == STATUS_OK)
		order = str_cmp(buf_str(&keys[0]), buf_str(&keys[1]));
	else
		order = str_cmp(a, b);
	buf_release(&keys[0]);
	buf_release(&keys[1]);
	return order;
}

static int
compare_native(enum cql_type_kind kind, struct str a, struct str b)
{
	switch ((int)kind) {
	case CQL_TYPE_BIGINT:
	case CQL_TYPE_COUNTER:
	case CQL_TYPE_INT:
	case CQL_TYPE_SMALLINT:
	case CQL_TYPE_TINYINT:
	case CQL_TYPE_TIMESTAMP:
		return compare_int(cql_int_read(a), cql_int_read(b));
	case CQL_TYPE_DOUBLE:
		return compare_double(cql_double_read(a), cql_double_read(b));
	case CQL_TYPE_FLOAT:
		return compare_double((double)cql_float_read(a), (double)cql_float_read(b));
	case CQL_TYPE_UUID:
	case CQL_TYPE_TIMEUUID:
		return compare_uuid(a, b, kind == CQL_TYPE_TIMEUUID);
	case CQL_TYPE_VARINT:
		return compare_varint(a, b);
	case CQL_TYPE_DECIMAL:
		return a.len > CQL_SCALE_BYTES && b.len > CQL_SCALE_BYTES ? compare_decimal(a, b)
									  : str_cmp(a, b);
	default:
		return str_cmp(a, b);
	}
}

/* True if no element is left that is more than null. */
static bool
only_nulls(struct cql_elements *e)
{
	struct cql_value v;

	while (cql_elements_next(e, &v))
		if (v.presence == CQL_SET)
			return false;
	return true;
}

static int
compare_elements(const struct cql_type *type, struct str a, struct str b)
{
	bool fields = type->kind == CQL_TYPE_TUPLE || type->kind == CQL_TYPE_UDT;
	struct cql_elements x, y;
	struct cql_value v, w;

	cql_elements_init(&x, type, a);
	cql_elements_init(&y, type, b);
	for (size_t i = 0;; i++) {
		struct cql_elements x_left = x, y_left = y;
		bool has_x = cql_elements_next(&x, &v), has_y = cql_elements_next(&y, &w);
		int order;

		if (!has_x && !has_y)
			return 0;
		if (!has_x || !has_y) {
			if (fields && only_nulls(has_x ? &x_left : &y_left))
				return 0;
			return has_y ? -1 : 1;
		}
		if (v.presence != CQL_SET || w.presence != CQL_SET) {
			order = (v.presence == CQL_SET) - (w.presence == CQL_SET);
			if (order)
				return order;
			continue;
		}
		order = cql_value_compare(type->args[fields ? i : i % type->count], v.bytes,
					  w.bytes);
		if (order)
			return order;
	}
}

int
cql_value_compare(const struct cql_type *type, struct str a, struct str b)
{
	size_t fixed = cql_type_fixed_bytes(type);

	if (!a.len || !b.len)
		return (a.len > 0) - (b.len > 0);
	if (type->kind >= CQL_TYPE_CUSTOM)
		return str_cmp(a, b);
	if (type->kind >= CQL_NATIVE_COUNT)
		return compare_elements(type, a, b);
	if (fixed && (a.len != fixed || b.len != fixed))
		return str_cmp(a, b);
	return compare_native(type->kind, a, b);
}

/* ---- The form that is stored ---- */

/* Each of its three numbers may come in more bytes than it needs. */
static enum status
normalize_duration(struct cql *q, struct str bytes, struct str *ret)
{
	struct cql_duration d;
	struct str put;

	if (!cql_duration_read(bytes, &d))
		return STATUS_CORRUPT;
	TRY(cql_duration_put(q, d, &put));
	if (!str_eq(put, bytes))
		*ret = put;
	return STATUS_OK;
}

static enum status
normalize_native(struct cql *q, enum cql_type_kind kind, struct str bytes, struct str *ret)
{
	*ret = bytes;
	if (!bytes.len)
		return STATUS_OK;
	switch ((int)kind) {
	case CQL_TYPE_BOOLEAN:
		if (bytes.ptr[0] != 0 && bytes.ptr[0] != 1)
			*ret = STR("\1");
		return STATUS_OK;
	case CQL_TYPE_VARINT:
		*ret = cql_varint_minimal(bytes);
		return STATUS_OK;
	case CQL_TYPE_DOUBLE:
		if (isnan(cql_double_read(bytes)))
			*ret = str_of("\x7f\xf8\0\0\0\0\0\0", 8);
		return STATUS_OK;
	case CQL_TYPE_FLOAT:
		if (isnan(cql_float_read(bytes)))
			*ret = str_of("\x7f\xc0\0\0", 4);
		return STATUS_OK;
	case CQL_TYPE_DECIMAL: {
		struct str digits = str_skip(bytes, CQL_SCALE_BYTES);
		struct str minimal = cql_varint_minimal(digits);
		char *copy;

		if (minimal.len == digits.len)
			return STATUS_OK;
		copy = arena_bytes(q->arena, CQL_SCALE_BYTES + minimal.len);
		if (!copy)
			return STATUS_LIMIT;
		memcpy(copy, bytes.ptr, CQL_SCALE_BYTES);
		memcpy(copy + CQL_SCALE_BYTES, minimal.ptr, minimal.len);
		*ret = str_of(copy, CQL_SCALE_BYTES + minimal.len);
		return STATUS_OK;
	}
	case CQL_TYPE_DURATION:
		return normalize_duration(q, bytes, ret);
	case CQL_TYPE_JSONB:
		return cql_jsonb_normalize(q, bytes, ret);
	default:
		return STATUS_OK;
	}
}

/* An element of a set or list, or a pair of a map, or a field. */
struct entry {
	struct cql_value key, value;
};

static enum status
compare_entries(const void *arg, const void *a, const void *b, int *ret)
{
	const struct entry *x = a, *y = b;

	*ret = cql_value_compare(arg, x->key.bytes, y->key.bytes);
	return step_count_bytes(x->key.bytes.len);
}

static enum status
normalize_value(struct cql *q, const struct cql_type *type, struct cql_value *v, bool *changed)
{
	struct str before = v->bytes;

	if (v->presence != CQL_SET)
		return STATUS_OK;
	TRY(cql_value_normalize(q, type, before, &v->bytes));
	*changed = *changed || v->bytes.ptr != before.ptr || v->bytes.len != before.len;
	return STATUS_OK;
}

static enum status
read_entries(struct cql *q, const struct cql_type *type, struct str bytes, struct entry **ret,
	     size_t *ret_count, bool *changed)
{
	bool map = type->kind == CQL_TYPE_MAP;
	bool fields = type->kind == CQL_TYPE_TUPLE || type->kind == CQL_TYPE_UDT;
	size_t most = fields ? type->count : cql_elements_count(bytes), count = 0;
	struct entry *list = arena_alloc(q->arena, (most + 1) * sizeof(*list));
	struct cql_elements e;

	if (!list)
		return STATUS_LIMIT;
	cql_elements_init(&e, type, bytes);
	while (count < most && cql_elements_next(&e, &list[count].key)) {
		TRY(normalize_value(q, type->args[fields ? count : 0], &list[count].key, changed));
		if (map && !cql_elements_next(&e, &list[count].value))
			break;
		if (map)
			TRY(normalize_value(q, type->args[1], &list[count].value, changed));
		count++;
	}
	*ret = list;
	*ret_count = count;
	return STATUS_OK;
}

/* Sorts the entries, and leaves the last one of each key. */
static enum status
sort_entries(struct cql *q, const struct cql_type *type, struct entry *list, size_t *count,
	     bool *changed)
{
	bool sorted = true;
	size_t kept = 0;

	for (size_t i = 1; i < *count && sorted; i++)
		sorted = cql_value_compare(type->args[0], list[i - 1].key.bytes,
					   list[i].key.bytes) < 0;
	if (sorted)
		return STATUS_OK;
	*changed = true;
	TRY(sort_items(list, *count, sizeof(*list), compare_entries, type->args[0], q->arena));
	for (size_t i = 0; i < *count; i++) {
		if (i + 1 < *count &&
		    cql_value_compare(type->args[0], list[i].key.bytes, list[i + 1].key.bytes) == 0)
			continue;
		list[kept++] = list[i];
	}
	*count = kept;
	return STATUS_OK;
}

static enum status
write_entries(struct cql *q, const struct cql_type *type, const struct entry *list, size_t count,
	      struct str *ret)
{
	struct buf out = cql_buf(q, arena_limit_bytes(q->arena));
	enum status status;

	if (cql_type_is_collection(type))
		cql_count_put(&out, count);
	for (size_t i = 0; i < count; i++) {
		cql_element_put(&out, list[i].key);
		if (type->kind == CQL_TYPE_MAP)
			cql_element_put(&out, list[i].value);
	}
	status = buf_copy(&out, q->arena, ret);
	buf_release(&out);
	return status;
}

enum status
cql_value_normalize(struct cql *q, const struct cql_type *type, struct str bytes, struct str *ret)
{
	struct entry *list;
	size_t count;
	bool changed = false;

	if (type->kind < CQL_NATIVE_COUNT)
		return normalize_native(q, type->kind, bytes, ret);
	*ret = bytes;
	if (type->kind >= CQL_TYPE_CUSTOM || !bytes.len)
		return STATUS_OK;
	TRY(step_count_bytes(bytes.len));
	TRY(read_entries(q, type, bytes, &list, &count, &changed));
	if (type->kind == CQL_TYPE_SET || type->kind == CQL_TYPE_MAP)
		TRY(sort_entries(q, type, list, &count, &changed));
	return changed ? write_entries(q, type, list, count, ret) : STATUS_OK;
}

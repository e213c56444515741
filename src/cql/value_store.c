#include "base/big_endian.h"
#include "cql/number.h"
#include "cql/time.h"
#include "cql/value_int.h"
#include "doc/key_read.h"

enum {
	PART_BYTES = 16 * 1024, /* of a component: the store's limit is shorter */
};

/* The scalar's kind of a native type's values. */
static enum doc_kind
scalar_kind(enum cql_type_kind kind)
{
	static const enum doc_kind kinds[CQL_NATIVE_COUNT] = {
		[CQL_TYPE_ASCII] = DOC_TEXT,        [CQL_TYPE_BIGINT] = DOC_INT64,
		[CQL_TYPE_BLOB] = DOC_BYTES,        [CQL_TYPE_BOOLEAN] = DOC_BOOL,
		[CQL_TYPE_COUNTER] = DOC_INT64,     [CQL_TYPE_DATE] = DOC_DAY,
		[CQL_TYPE_DECIMAL] = DOC_DECIMAL,   [CQL_TYPE_DOUBLE] = DOC_DOUBLE,
		[CQL_TYPE_DURATION] = DOC_DURATION, [CQL_TYPE_FLOAT] = DOC_FLOAT,
		[CQL_TYPE_INET] = DOC_INET,         [CQL_TYPE_INT] = DOC_INT32,
		[CQL_TYPE_JSONB] = DOC_TEXT,        [CQL_TYPE_SMALLINT] = DOC_INT16,
		[CQL_TYPE_TEXT] = DOC_TEXT,         [CQL_TYPE_TIME] = DOC_TIME,
		[CQL_TYPE_TIMESTAMP] = DOC_DATE,    [CQL_TYPE_TIMEUUID] = DOC_TIMEUUID,
		[CQL_TYPE_TINYINT] = DOC_INT8,      [CQL_TYPE_UUID] = DOC_UUID,
		[CQL_TYPE_VARINT] = DOC_INTEGER,
	};

	return kinds[kind];
}

static enum status
long_scalar(struct cql *q, struct str digits, struct doc_scalar *ret)
{
	char *scratch = arena_bytes(q->arena, CQL_VARINT_BYTES);

	if (!scratch)
		return STATUS_LIMIT;
	cql_varint_scalar(digits, scratch, ret);
	return STATUS_OK;
}

static bool
is_text(const struct cql_type *type)
{
	return type->kind == CQL_TYPE_ASCII || type->kind == CQL_TYPE_TEXT ||
	       type->kind == CQL_TYPE_BLOB;
}

enum status
cql_value_to_scalar(struct cql *q, const struct cql_type *type, struct str bytes,
		    struct doc_scalar *ret)
{
	struct cql_duration d;

	*ret = (struct doc_scalar){ .kind = DOC_BYTES, .text = bytes };
	if (type->kind >= CQL_NATIVE_COUNT || (!bytes.len && !is_text(type)))
		return STATUS_OK;
	ret->kind = scalar_kind(type->kind);
	switch ((int)ret->kind) {
	case DOC_BOOL:
		ret->truth = bytes.ptr[0] != 0;
		return STATUS_OK;
	case DOC_DOUBLE:
		ret->d = cql_double_read(bytes);
		return STATUS_OK;
	case DOC_FLOAT:
		ret->f = cql_float_read(bytes);
		return STATUS_OK;
	case DOC_DAY:
		ret->n = (int64_t)(uint32_t)cql_int_read(bytes) - CQL_DAY_ZERO;
		return STATUS_OK;
	case DOC_DURATION:
		if (!cql_duration_read(bytes, &d))
			return STATUS_CORRUPT;
		ret->months = d.months;
		ret->days = d.days;
		ret->n = d.nanoseconds;
		return STATUS_OK;
	case DOC_DECIMAL:
		ret->n = (int32_t)big_endian_32(bytes.ptr);
		return long_scalar(q, str_skip(bytes, CQL_SCALE_BYTES), ret);
	case DOC_INTEGER:
		return long_scalar(q, bytes, ret);
	case DOC_TEXT:
	case DOC_BYTES:
	case DOC_UUID:
	case DOC_TIMEUUID:
	case DOC_INET:
		return STATUS_OK;
	default:
		ret->n = cql_int_read(bytes);
		return STATUS_OK;
	}
}

/* Two's complement of a sign and a magnitude, behind `front` bytes. */
static enum status
long_bytes(struct cql *q, const struct doc_scalar *s, size_t front, struct str *ret)
{
	char *bytes = arena_bytes(q->arena, front + s->text.len + 1);
	unsigned carry = 1;
	struct str minimal;

	if (!bytes)
		return STATUS_LIMIT;
	bytes[front] = 0;
	if (s->text.len)
		memcpy(bytes + front + 1, s->text.ptr, s->text.len);
	for (size_t i = front + s->text.len + 1; s->negative && i-- > front;) {
		carry += (uint8_t)~bytes[i];
		bytes[i] = (char)carry;
		carry >>= 8;
	}
	minimal = cql_varint_minimal(str_of(bytes + front, s->text.len + 1));
	memmove(bytes + front, minimal.ptr, minimal.len);
	if (front)
		big_endian_put_32(bytes, (uint32_t)s->n);
	*ret = str_of(bytes, front + minimal.len);
	return STATUS_OK;
}

static enum status
scalar_bytes(struct cql *q, const struct cql_type *type, const struct doc_scalar *s,
	     struct str *ret)
{
	switch ((int)s->kind) {
	case DOC_BOOL:
		return cql_int_put(q, s->truth, 1, ret);
	case DOC_DOUBLE:
		return cql_double_put(q, s->d, ret);
	case DOC_FLOAT:
		return cql_float_put(q, s->f, ret);
	case DOC_DAY:
		return cql_int_put(q, s->n + CQL_DAY_ZERO, 4, ret);
	case DOC_DURATION:
		return cql_duration_put(q, (struct cql_duration){ s->months, s->days, s->n }, ret);
	case DOC_DECIMAL:
		return long_bytes(q, s, CQL_SCALE_BYTES, ret);
	case DOC_INTEGER:
		return long_bytes(q, s, 0, ret);
	case DOC_TEXT:
	case DOC_BYTES:
	case DOC_UUID:
	case DOC_TIMEUUID:
	case DOC_INET:
		*ret = s->text.ptr ? s->text : STR("");
		return STATUS_OK;
	default:
		return cql_int_put(q, s->n, cql_type_fixed_bytes(type), ret);
	}
}

enum status
cql_value_of_scalar(struct cql *q, const struct cql_type *type, const struct doc_scalar *s,
		    struct str *ret)
{
	/* Bytes of other types, and an empty value. */
	if (s->kind == DOC_BYTES && (type->kind >= CQL_NATIVE_COUNT || !s->text.len)) {
		*ret = s->text.ptr ? s->text : STR("");
		return STATUS_OK;
	}
	if (type->kind >= CQL_NATIVE_COUNT || s->kind != scalar_kind(type->kind))
		return STATUS_CORRUPT;
	return scalar_bytes(q, type, s, ret);
}

/* ---- Keys ---- */

enum cql_key_use
cql_type_key_use(const struct cql_type *type)
{
	if (!cql_type_can_be_key(type))
		return CQL_KEY_NEVER;
	return cql_type_has(type, CQL_TYPE_DECIMAL) ? CQL_KEY_VALUE : CQL_KEY_EXACT;
}

/* The elements of a collection, tuple or UDT, but for nulls at the end of the latter. */
static enum status
put_elements(struct cql *q, struct buf *key, const struct cql_type *type, struct str bytes)
{
	bool fields = type->kind == CQL_TYPE_TUPLE || type->kind == CQL_TYPE_UDT;
	const struct doc_scalar null = { .kind = DOC_UNDEFINED };
	struct cql_elements e;
	struct cql_value v;
	size_t nulls = 0;

	doc_key_begin(key, DOC_KEY_TYPED, DOC_ARRAY);
	cql_elements_init(&e, type, bytes);
	for (size_t i = 0; cql_elements_next(&e, &v); i++) {
		if (v.presence != CQL_SET) {
			nulls++;
			continue;
		}
		for (; nulls; nulls--)
			TRY(doc_key_put(key, DOC_KEY_TYPED, &null));
		TRY(cql_value_put_key(q, key, type->args[fields ? i : i % type->count], v.bytes));
	}
	doc_key_end(key);
	return buf_status(key);
}

enum status
cql_value_put_key(struct cql *q, struct buf *key, const struct cql_type *type, struct str bytes)
{
	struct doc_scalar s = { .kind = DOC_NULL };

	if (!bytes.len && !is_text(type))
		return doc_key_put(key, DOC_KEY_TYPED, &s);
	if (type->kind >= CQL_NATIVE_COUNT)
		return put_elements(q, key, type, bytes);
	TRY(cql_value_to_scalar(q, type, bytes, &s));
	return doc_key_put(key, DOC_KEY_TYPED, &s);
}

/* An exact number as an integer of any length. */
static enum status
integer_of(struct cql *q, const struct doc_scalar *s, struct doc_scalar *ret)
{
	uint64_t n = s->n < 0 ? 0 - (uint64_t)s->n : (uint64_t)s->n;
	char *bytes;
	size_t skipped = 0;

	*ret = *s;
	if (s->kind != DOC_INT64)
		return STATUS_OK;
	bytes = arena_bytes(q->arena, sizeof(n));
	if (!bytes)
		return STATUS_LIMIT;
	big_endian_put_64(bytes, n);
	while (skipped < sizeof(n) && !bytes[skipped])
		skipped++;
	ret->kind = DOC_INTEGER;
	ret->negative = s->n < 0;
	ret->text = str_of(bytes + skipped, sizeof(n) - skipped);
	return STATUS_OK;
}

/* A number that was read from a key, as the type has it. */
static enum status
number_of_key(struct cql *q, const struct cql_type *type, const struct doc_scalar *s,
	      struct str *ret)
{
	struct doc_scalar n;
	struct str decimal, varint;

	if (type->kind == CQL_TYPE_VARINT || type->kind == CQL_TYPE_DECIMAL) {
		TRY(integer_of(q, s, &n));
		if (n.kind == DOC_INTEGER) {
			TRY(long_bytes(q, &n, 0, &varint));
			if (type->kind == CQL_TYPE_DECIMAL)
				return cql_decimal_of_varint(q, varint, ret);
			*ret = varint;
			return STATUS_OK;
		}
		if (n.kind != DOC_DECIMAL)
			return STATUS_CORRUPT;
		TRY(long_bytes(q, &n, CQL_SCALE_BYTES, &decimal));
		if (type->kind == CQL_TYPE_VARINT)
			return cql_decimal_to_varint(q, decimal, ret);
		*ret = decimal;
		return STATUS_OK;
	}
	if (s->kind != DOC_INT64)
		return STATUS_CORRUPT;
	return cql_int_put(q, s->n, cql_type_fixed_bytes(type), ret);
}

static bool
is_integer(enum cql_type_kind kind)
{
	return kind == CQL_TYPE_BIGINT || kind == CQL_TYPE_INT || kind == CQL_TYPE_SMALLINT ||
	       kind == CQL_TYPE_TINYINT || kind == CQL_TYPE_VARINT || kind == CQL_TYPE_DECIMAL;
}

static enum status
native_of_key(struct cql *q, const struct cql_type *type, struct str key, bool descending,
	      struct str *ret, size_t *ret_len)
{
	struct doc_scalar s;
	enum status status = doc_key_read(key, descending, q->arena, &s, ret_len);

	if (status != STATUS_OK)
		return status == STATUS_INVALID ? STATUS_CORRUPT : status;
	if (s.kind == DOC_NULL) {
		*ret = STR("");
		return is_text(type) ? STATUS_CORRUPT : STATUS_OK;
	}
	if (is_integer(type->kind))
		return number_of_key(q, type, &s, ret);
	if (s.kind != scalar_kind(type->kind))
		return STATUS_CORRUPT;
	return scalar_bytes(q, type, &s, ret);
}

/*
 * True of a scalar whose bytes need no look at the component: not of numbers of any length, which
 * a key has in another form than a value.
 */
static bool
part_is_value(enum cql_type_kind type, enum doc_kind kind)
{
	switch ((int)type) {
	case CQL_TYPE_VARINT:
	case CQL_TYPE_DECIMAL:
		return false;
	case CQL_TYPE_BIGINT:
	case CQL_TYPE_INT:
	case CQL_TYPE_SMALLINT:
	case CQL_TYPE_TINYINT:
		return kind == DOC_INT64 || kind == scalar_kind(type);
	default:
		return type < CQL_NATIVE_COUNT && kind == scalar_kind(type);
	}
}

/* The first byte of a component, as if it were ascending; -1 behind the end. */
static int
first_byte(struct str key, size_t at, bool descending)
{
	return at < key.len ? (uint8_t)key.ptr[at] ^ (descending ? 0xff : 0) : -1;
}

/* The first bytes of components that are looked at here, as doc_key_put() writes them. */
static int
component_of(enum doc_kind kind)
{
	struct buf b = BUF_SHORT(16);
	struct doc_scalar s = { .kind = kind };
	int first = doc_key_put(&b, DOC_KEY_TYPED, &s) == STATUS_OK ? (uint8_t)b.ptr[0] : -1;

	buf_release(&b);
	return first;
}

static enum status
elements_of_key(struct cql *q, const struct cql_type *type, struct str key, bool descending,
		struct str *ret, size_t *ret_len)
{
	bool fields = type->kind == CQL_TYPE_TUPLE || type->kind == CQL_TYPE_UDT;
	int array = component_of(DOC_EMPTY_ARRAY), null = component_of(DOC_UNDEFINED);
	struct buf out = cql_buf(q, arena_limit_bytes(q->arena));
	enum status status = STATUS_OK;
	size_t at = 1, count = 0, len;
	struct str element;

	if (first_byte(key, 0, descending) != array)
		return STATUS_CORRUPT;
	if (!fields)
		cql_count_put(&out, 0);
	while (status == STATUS_OK && first_byte(key, at, descending) != 0) {
		if (at >= key.len || (fields && count == type->count)) {
			status = STATUS_CORRUPT;
			break;
		}
		if (fields && first_byte(key, at, descending) == null) {
			cql_element_put(&out, CQL_VALUE_NULL);
			at++;
			count++;
			continue;
		}
		status = cql_value_of_key(q, type->args[fields ? count : count % type->count],
					  str_skip(key, at), descending, &element, &len);
		if (status != STATUS_OK)
			break;
		cql_element_put(&out, CQL_VALUE(element));
		at += len;
		count++;
	}
	for (; fields && count < type->count; count++)
		cql_element_put(&out, CQL_VALUE_NULL);
	if (status == STATUS_OK && type->kind == CQL_TYPE_MAP && count % 2)
		status = STATUS_CORRUPT;
	if (status == STATUS_OK)
		status = buf_status(&out);
	if (status == STATUS_OK && !fields)
		big_endian_put_32(out.ptr, (uint32_t)(count / type->count));
	if (status == STATUS_OK)
		status = buf_copy(&out, q->arena, ret);
	buf_release(&out);
	*ret_len = at + 1;
	return status;
}

enum status
cql_value_of_part(struct cql *q, const struct cql_type *type, const struct doc_scalar *s,
		  struct str *ret)
{
	AUTO(buf_release) struct buf key = BUF_SHORT(PART_BYTES);
	struct str bytes;
	size_t len;

	if (part_is_value(type->kind, s->kind))
		return scalar_bytes(q, type, s, ret);
	TRY(doc_key_put(&key, DOC_KEY_TYPED, s));
	TRY(cql_value_of_key(q, type, buf_str(&key), false, &bytes, &len));
	return arena_copy(q->arena, bytes, ret);
}

enum status
cql_value_of_key(struct cql *q, const struct cql_type *type, struct str key, bool descending,
		 struct str *ret, size_t *ret_len)
{
	if (type->kind < CQL_NATIVE_COUNT)
		return native_of_key(q, type, key, descending, ret, ret_len);
	if (type->kind >= CQL_TYPE_CUSTOM)
		return STATUS_CORRUPT;
	if (first_byte(key, 0, descending) == component_of(DOC_NULL)) {
		*ret = STR("");
		*ret_len = 1;
		return STATUS_OK;
	}
	return elements_of_key(q, type, key, descending, ret, ret_len);
}

#include "doc/scalar.h"

#include <assert.h>

#include "base/utf8.h"
#include "doc/doc_int.h"
#include "kv/tuple.h"

/*
 * Kinds that the tuple layer has, and JSON's, are the element itself. All others are a nested tuple
 * that begins with the kind's number, which tells it from [], {} and (double, text).
 *
 * Integers are in three forms, so that each value has one encoding: an INT64 is a tuple integer; an
 * INTEGER beyond int64_t is one, too, as long as the tuple layer has such; any other INTEGER is
 * nested.
 */

enum {
	BINARY_SUBTYPE_MAX = 255,
	UUID_VERSION_AT = 6, /* the byte whose upper half is a UUID's version */
};

static const int64_t nanoseconds_of_day = INT64_C(86400) * 1000 * 1000 * 1000;

/* ---- Integers of any length ---- */

/* The value of at most eight bytes. */
static uint64_t
magnitude_u64(struct str magnitude)
{
	uint64_t n = 0;

	assert(magnitude.len <= sizeof(n));
	for (size_t i = 0; i < magnitude.len; i++)
		n = n << 8 | (uint8_t)magnitude.ptr[i];
	return n;
}

static bool
fits_i64(bool negative, struct str magnitude)
{
	return magnitude.len < sizeof(uint64_t) ||
	       (magnitude.len == sizeof(uint64_t) &&
		magnitude_u64(magnitude) <= (uint64_t)INT64_MAX + negative);
}

/* A magnitude has no leading zeros, and zero has no sign. */
static bool
integer_is_sound(const struct doc_scalar *s)
{
	return s->text.len ? s->text.ptr[0] != 0 : !s->negative;
}

/* One element if the tuple layer has such a long one, else (sign, bytes). */
static void
integer_put(struct buf *value, bool negative, struct str magnitude)
{
	if (magnitude.len <= TUPLE_INT_MAX_BYTES) {
		tuple_put_bigint(value, negative, magnitude);
		return;
	}
	tuple_put_bool(value, negative);
	tuple_put_bytes(value, magnitude);
}

/* ---- Writing ---- */

static void
scalar_put_payload(struct buf *value, const struct doc_scalar *s)
{
	uint64_t halves[2];

	switch ((int)s->kind) {
	case DOC_INTEGER:
		integer_put(value, s->negative, s->text);
		return;
	case DOC_DECIMAL128:
		halves[0] = htobe64(s->high);
		halves[1] = htobe64(s->low);
		tuple_put_bytes(value, str_of(halves, sizeof(halves)));
		return;
	case DOC_DECIMAL:
		tuple_put_i64(value, s->n);
		integer_put(value, s->negative, s->text);
		return;
	case DOC_BINARY:
		tuple_put_i64(value, s->n);
		tuple_put_bytes(value, s->text);
		return;
	case DOC_DURATION:
		tuple_put_i64(value, s->months);
		tuple_put_i64(value, s->days);
		tuple_put_i64(value, s->n);
		return;
	case DOC_TIMEUUID:
		tuple_put_uuid(value, (const uint8_t *)s->text.ptr);
		return;
	case DOC_TIMESTAMP:
		tuple_put_u64(value, (uint64_t)s->n);
		return;
	case DOC_OBJECT_ID:
	case DOC_INET:
		tuple_put_bytes(value, s->text);
		return;
	case DOC_REGEX:
		tuple_put_str(value, s->text);
		tuple_put_str(value, s->more);
		return;
	case DOC_CODE:
	case DOC_SYMBOL:
		tuple_put_str(value, s->text);
		return;
	case DOC_CODE_SCOPE:
	case DOC_DB_POINTER:
		tuple_put_str(value, s->text);
		tuple_put_bytes(value, s->more);
		return;
	case DOC_UNDEFINED:
	case DOC_MIN_KEY:
	case DOC_MAX_KEY:
		return;
	default: /* INT8 to INT32, DATE, DAY, TIME */
		tuple_put_i64(value, s->n);
		return;
	}
}

static bool
has_nul(struct str s)
{
	return s.len && memchr(s.ptr, 0, s.len);
}

/* True if the scalar is as its kind says, as far as that can be told without reading its text. */
static bool
scalar_is_sound(const struct doc_scalar *s)
{
	switch ((int)s->kind) {
	case DOC_INT8:
		return s->n >= INT8_MIN && s->n <= INT8_MAX;
	case DOC_INT16:
		return s->n >= INT16_MIN && s->n <= INT16_MAX;
	case DOC_INT32:
	case DOC_DAY:
		return s->n >= INT32_MIN && s->n <= INT32_MAX;
	case DOC_INTEGER:
		return integer_is_sound(s);
	case DOC_DECIMAL:
		return integer_is_sound(s) && s->n >= INT32_MIN && s->n <= INT32_MAX;
	case DOC_BINARY:
		return s->n >= 1 && s->n <= BINARY_SUBTYPE_MAX;
	case DOC_TIME:
		return s->n >= 0 && s->n < nanoseconds_of_day;
	case DOC_DURATION:
		return (s->months >= 0 && s->days >= 0 && s->n >= 0) ||
		       (s->months <= 0 && s->days <= 0 && s->n <= 0);
	case DOC_UUID:
		return s->text.len == DOC_UUID_BYTES;
	case DOC_TIMEUUID:
		return s->text.len == DOC_UUID_BYTES &&
		       (uint8_t)s->text.ptr[UUID_VERSION_AT] >> 4 == 1;
	case DOC_OBJECT_ID:
		return s->text.len == DOC_OBJECT_ID_BYTES;
	case DOC_DB_POINTER:
		return s->more.len == DOC_OBJECT_ID_BYTES;
	case DOC_REGEX:
		return !has_nul(s->text) && !has_nul(s->more);
	case DOC_INET:
		return s->text.len == DOC_INET4_BYTES || s->text.len == DOC_INET6_BYTES;
	default:
		return true;
	}
}

static void
scalar_put_number(struct buf *value, double d, struct str text)
{
	tuple_open(value);
	tuple_put_double(value, d);
	tuple_put_str(value, text);
	tuple_close(value);
}

static void
scalar_put_tagged(struct buf *value, const struct doc_scalar *s)
{
	/* The payload of an INTEGER that the tuple layer has is the whole value. */
	if (s->kind == DOC_INTEGER && s->text.len <= TUPLE_INT_MAX_BYTES &&
	    !fits_i64(s->negative, s->text)) {
		tuple_put_bigint(value, s->negative, s->text);
		return;
	}
	tuple_open(value);
	tuple_put_u64(value, (uint64_t)s->kind);
	scalar_put_payload(value, s);
	tuple_close(value);
}

void
doc_scalar_put(struct buf *value, const struct doc_scalar *s)
{
	assert(scalar_is_sound(s));
	switch ((int)s->kind) {
	case DOC_NULL:
		tuple_put_null(value);
		return;
	case DOC_BOOL:
		tuple_put_bool(value, s->truth);
		return;
	case DOC_TEXT:
		tuple_put_str(value, s->text);
		return;
	case DOC_BYTES:
		tuple_put_bytes(value, s->text);
		return;
	case DOC_INT64:
		tuple_put_i64(value, s->n);
		return;
	case DOC_DOUBLE:
		tuple_put_double(value, s->d);
		return;
	case DOC_FLOAT:
		tuple_put_float(value, s->f);
		return;
	case DOC_NUMBER:
		scalar_put_number(value, s->d, s->text);
		return;
	case DOC_UUID:
		tuple_put_uuid(value, (const uint8_t *)s->text.ptr);
		return;
	case DOC_EMPTY_ARRAY:
		tuple_open(value);
		tuple_close(value);
		return;
	case DOC_EMPTY_OBJECT:
		tuple_open(value);
		tuple_open(value);
		tuple_close(value);
		tuple_close(value);
		return;
	default:
		scalar_put_tagged(value, s);
	}
}

/* ---- Reading ---- */

/* A reader of one leaf's value. */
struct scalar_reader {
	struct tuple_reader tuple;
	struct buf *scratch;
	/* The texts that lie in the scratch buffer, which may move until all are there. */
	struct str *in_scratch[2];
	size_t at[2];
	size_t count;
};

static enum status
scalar_read_content(struct scalar_reader *r, enum tuple_kind kind, struct str *ret)
{
	struct tuple_elem e;

	TRY(tuple_next_elem(&r->tuple, &e));
	if (e.kind != kind)
		return STATUS_CORRUPT;
	*ret = e.raw;
	if (kind == TUPLE_UUID || !e.escaped)
		return STATUS_OK;
	r->at[r->count] = r->scratch->len;
	r->in_scratch[r->count++] = ret;
	tuple_unescape(&e, r->scratch);
	ret->len = r->scratch->len - r->at[r->count - 1];
	return buf_status(r->scratch);
}

static enum status
scalar_read_text(struct scalar_reader *r, struct str *ret)
{
	struct str checked;

	TRY(scalar_read_content(r, TUPLE_STRING, ret));
	checked = *ret;
	if (r->count && r->in_scratch[r->count - 1] == ret)
		checked.ptr = r->scratch->ptr + r->at[r->count - 1];
	return utf8_valid_prefix(checked) == checked.len ? STATUS_OK : STATUS_CORRUPT;
}

static enum status
scalar_read_bytes(struct scalar_reader *r, size_t len, struct str *ret)
{
	TRY(scalar_read_content(r, TUPLE_BYTES, ret));
	return !len || ret->len == len ? STATUS_OK : STATUS_CORRUPT;
}

/* The magnitude of an integer element, in the scratch buffer: a negative one is complemented. */
static void
scalar_read_magnitude(struct scalar_reader *r, const struct tuple_elem *e, struct doc_scalar *ret)
{
	size_t at = r->scratch->len;

	ret->negative = e->negative;
	tuple_bigint(e, r->scratch);
	r->at[r->count] = at;
	r->in_scratch[r->count++] = &ret->text;
	ret->text.len = r->scratch->len - at;
}

static enum status
scalar_read_integer(struct scalar_reader *r, struct doc_scalar *ret)
{
	struct tuple_elem e;

	TRY(tuple_next_elem(&r->tuple, &e));
	if (e.kind == TUPLE_INT || e.kind == TUPLE_BIGINT) {
		scalar_read_magnitude(r, &e, ret);
		return buf_status(r->scratch);
	}
	if (e.kind != TUPLE_FALSE && e.kind != TUPLE_TRUE)
		return STATUS_CORRUPT;
	ret->negative = e.kind == TUPLE_TRUE;
	TRY(scalar_read_bytes(r, 0, &ret->text));
	/* A shorter one is an element of the tuple layer. */
	return ret->text.len > TUPLE_INT_MAX_BYTES && ret->text.ptr[0] ? STATUS_OK : STATUS_CORRUPT;
}

static enum status
scalar_read_i32(struct scalar_reader *r, int32_t *ret)
{
	int64_t n;

	TRY(tuple_next_i64(&r->tuple, &n));
	*ret = (int32_t)n;
	return *ret == n ? STATUS_OK : STATUS_CORRUPT;
}

/* What stands behind the kind's number. */
static enum status
scalar_read_payload(struct scalar_reader *r, struct doc_scalar *ret)
{
	uint64_t n;

	switch ((int)ret->kind) {
	case DOC_INTEGER:
		return scalar_read_integer(r, ret);
	case DOC_DECIMAL128:
		return scalar_read_bytes(r, DOC_DECIMAL128_BYTES, &ret->text);
	case DOC_DECIMAL:
		TRY(tuple_next_i64(&r->tuple, &ret->n));
		return scalar_read_integer(r, ret);
	case DOC_BINARY:
		TRY(tuple_next_i64(&r->tuple, &ret->n));
		return scalar_read_bytes(r, 0, &ret->text);
	case DOC_DURATION:
		TRY(scalar_read_i32(r, &ret->months));
		TRY(scalar_read_i32(r, &ret->days));
		return tuple_next_i64(&r->tuple, &ret->n);
	case DOC_TIMEUUID:
		return scalar_read_content(r, TUPLE_UUID, &ret->text);
	case DOC_TIMESTAMP:
		TRY(tuple_next_u64(&r->tuple, &n));
		ret->n = (int64_t)n;
		return STATUS_OK;
	case DOC_OBJECT_ID:
		return scalar_read_bytes(r, DOC_OBJECT_ID_BYTES, &ret->text);
	case DOC_INET:
		return scalar_read_bytes(r, 0, &ret->text);
	case DOC_REGEX:
		TRY(scalar_read_text(r, &ret->text));
		return scalar_read_text(r, &ret->more);
	case DOC_CODE:
	case DOC_SYMBOL:
		return scalar_read_text(r, &ret->text);
	case DOC_CODE_SCOPE:
		TRY(scalar_read_text(r, &ret->text));
		return scalar_read_bytes(r, 0, &ret->more);
	case DOC_DB_POINTER:
		TRY(scalar_read_text(r, &ret->text));
		return scalar_read_bytes(r, DOC_OBJECT_ID_BYTES, &ret->more);
	case DOC_UNDEFINED:
	case DOC_MIN_KEY:
	case DOC_MAX_KEY:
		return STATUS_OK;
	default: /* INT8 to INT32, DATE, DAY, TIME */
		return tuple_next_i64(&r->tuple, &ret->n);
	}
}

/* (double, text): a JSON number. */
static enum status
scalar_read_number(struct scalar_reader *r, double d, struct doc_scalar *ret)
{
	struct tuple_elem e;
	bool is_integer;

	TRY(tuple_next_elem(&r->tuple, &e));
	if (r->tuple.rest.len || e.kind != TUPLE_STRING || !e.raw.len ||
	    json_number_len(e.raw, &is_integer) != e.raw.len)
		return STATUS_CORRUPT;
	ret->kind = DOC_NUMBER;
	ret->d = d;
	ret->text = e.raw;
	return STATUS_OK;
}

/* Texts in the scratch buffer have their place now that it does not grow any more. */
static void
scalar_settle_texts(struct scalar_reader *r, struct doc_scalar *ret)
{
	uint64_t halves[2];

	for (size_t i = 0; i < r->count; i++)
		if (r->in_scratch[i]->len)
			r->in_scratch[i]->ptr = r->scratch->ptr + r->at[i];
	if (ret->kind != DOC_DECIMAL128)
		return;
	memcpy(halves, ret->text.ptr, sizeof(halves));
	ret->high = be64toh(halves[0]);
	ret->low = be64toh(halves[1]);
	ret->text = STR("");
}

static enum status
scalar_read_nested(const struct tuple_elem *nested, struct buf *scratch, struct doc_scalar *ret)
{
	struct scalar_reader r = { .tuple = tuple_reader_nested(nested), .scratch = scratch };
	struct tuple_elem e;

	if (!r.tuple.rest.len) {
		ret->kind = DOC_EMPTY_ARRAY;
		return STATUS_OK;
	}
	TRY(tuple_next_elem(&r.tuple, &e));
	if (e.kind == TUPLE_NESTED && !e.raw.len && !r.tuple.rest.len) {
		ret->kind = DOC_EMPTY_OBJECT;
		return STATUS_OK;
	}
	if (e.kind == TUPLE_DOUBLE)
		return scalar_read_number(&r, e.d, ret);
	if (e.kind != TUPLE_INT || e.negative || !e.magnitude || e.magnitude >= DOC_KINDS_END)
		return STATUS_CORRUPT;
	buf_clear(scratch);
	ret->kind = (enum doc_kind)e.magnitude;
	TRY(scalar_read_payload(&r, ret));
	if (r.tuple.rest.len)
		return STATUS_CORRUPT;
	scalar_settle_texts(&r, ret);
	/* An INTEGER of medium length has another encoding. */
	if (!scalar_is_sound(ret) ||
	    (ret->kind == DOC_INTEGER && ret->text.len <= TUPLE_INT_MAX_BYTES &&
	     !fits_i64(ret->negative, ret->text)))
		return STATUS_CORRUPT;
	return STATUS_OK;
}

static enum status
scalar_read_element(const struct tuple_elem *e, struct buf *scratch, struct doc_scalar *ret)
{
	switch (e->kind) {
	case TUPLE_NULL:
		ret->kind = DOC_NULL;
		return STATUS_OK;
	case TUPLE_FALSE:
	case TUPLE_TRUE:
		ret->kind = DOC_BOOL;
		ret->truth = e->kind == TUPLE_TRUE;
		return STATUS_OK;
	case TUPLE_INT:
		if (e->magnitude <= (uint64_t)INT64_MAX + e->negative) {
			ret->kind = DOC_INT64;
			ret->n = (int64_t)(e->negative ? -e->magnitude : e->magnitude);
			return STATUS_OK;
		}
		break;
	case TUPLE_BIGINT:
		break;
	case TUPLE_DOUBLE:
		ret->kind = DOC_DOUBLE;
		ret->d = e->d;
		return STATUS_OK;
	case TUPLE_FLOAT:
		ret->kind = DOC_FLOAT;
		ret->f = e->f;
		return STATUS_OK;
	case TUPLE_UUID:
		ret->kind = DOC_UUID;
		ret->text = e->raw;
		return STATUS_OK;
	case TUPLE_NESTED:
		return scalar_read_nested(e, scratch, ret);
	case TUPLE_BYTES:
	case TUPLE_STRING: /* read by the caller */
	case TUPLE_VERSIONSTAMP:
		return STATUS_CORRUPT;
	}
	buf_clear(scratch);
	tuple_bigint(e, scratch);
	ret->kind = DOC_INTEGER;
	ret->negative = e->negative;
	ret->text = buf_str(scratch);
	return buf_status(scratch);
}

static enum status
scalar_read_string(const struct tuple_elem *e, struct buf *scratch, struct doc_scalar *ret)
{
	ret->kind = e->kind == TUPLE_STRING ? DOC_TEXT : DOC_BYTES;
	ret->text = e->raw;
	if (e->escaped) {
		buf_clear(scratch);
		tuple_unescape(e, scratch);
		TRY(buf_status(scratch));
		ret->text = buf_str(scratch);
	}
	if (ret->kind == DOC_TEXT && utf8_valid_prefix(ret->text) < ret->text.len)
		return STATUS_CORRUPT;
	return STATUS_OK;
}

enum status
doc_scalar_read(struct str value, struct buf *scratch, struct doc_scalar *ret)
{
	struct tuple_reader tuple = tuple_reader(value);
	struct tuple_elem e;
	enum status status;
	struct str text;

	/* As most leaves are: a text without a NUL. */
	if (tuple_next_plain(&tuple, TUPLE_STRING, &text)) {
		if (tuple.rest.len || utf8_valid_prefix(text) < text.len)
			return STATUS_CORRUPT;
		ret->kind = DOC_TEXT;
		ret->text = text;
		return STATUS_OK;
	}
	if (tuple_next(&tuple, &e) != STATUS_OK || tuple.rest.len)
		return STATUS_CORRUPT;
	if (e.kind == TUPLE_STRING || e.kind == TUPLE_BYTES)
		return scalar_read_string(&e, scratch, ret);
	status = scalar_read_element(&e, scratch, ret);
	/* A nested tuple that breaks off says so by STATUS_NOT_FOUND. */
	return status == STATUS_NOT_FOUND ? STATUS_CORRUPT : status;
}

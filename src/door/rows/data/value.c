/*
 * Values: of messages, of CQL's types, of the store. Two steps each way: a value of a message
 * becomes one of the column's type in CQL (or stays as it is, if the type is this door's own), and
 * that becomes a scalar.
 */
#include "base/big_endian.h"
#include "cql/murmur3.h"
#include "cql/number.h"
#include "cql/value.h"
#include "door/rows/data/table.h"

#define NS_PER_US     INT64_C(1000)
#define US_PER_MS     INT64_C(1000)
#define EPOCH_2000_MS INT64_C(946684800000)

enum {
	EPOCH_2000_DAYS = 10957,
	INET_HEAD_BYTES = 2,
	NUMBER_TEXT_BYTES = 64 * 1024, /* of a number of CQL's, printed */
	KEY_PART_BYTES = 64 * 1024,    /* of a component: the store's limit is shorter */
};

static enum status
fail_format(struct rows_request *r, const struct column *c)
{
	return rows_fail(r, ROWS_STATE_FORMAT, "the bytes for \"%.*s\" are no value of %s",
			 STR_ARG(c->stored->name), rows_kind_name(c->kind));
}

static enum status
fail_range(struct rows_request *r, const struct column *c)
{
	return rows_fail(r, ROWS_STATE_RANGE,
			 "the column \"%.*s\", whose type is %.*s, cannot have this value",
			 STR_ARG(c->stored->name), STR_ARG(c->stored->type));
}

static enum status
fail_stored(struct rows_request *r, const struct column *c)
{
	return rows_fail(r, ROWS_STATE_RANGE,
			 "a value of the column \"%.*s\", whose type is %.*s, is none of %s",
			 STR_ARG(c->stored->name), STR_ARG(c->stored->type),
			 rows_kind_name(c->kind));
}

/* ---- A message's value as CQL's ---- */

static enum status
put_number(struct rows_request *r, int64_t n, size_t bytes, struct str *ret)
{
	struct cql q = { .arena = r->arena, .err = &r->err };

	return cql_int_put(&q, n, bytes, ret);
}

static enum status
date_to_cql(struct rows_request *r, const struct column *c, struct str value, struct str *ret)
{
	int64_t days = (int32_t)big_endian_32(value.ptr);

	if (days != INT32_MIN && days != INT32_MAX) {
		days += EPOCH_2000_DAYS;
		if (days >= INT32_MAX)
			return fail_range(r, c);
	}
	return put_number(r, (int32_t)((uint32_t)days ^ UINT32_C(1) << 31), 4, ret);
}

static enum status
moment_to_cql(struct rows_request *r, const struct column *c, struct str value, struct str *ret)
{
	int64_t us = (int64_t)big_endian_64(value.ptr);

	if (us == INT64_MIN || us == INT64_MAX || us % US_PER_MS)
		return fail_range(r, c);
	return put_number(r, us / US_PER_MS + EPOCH_2000_MS, 8, ret);
}

static enum status
time_to_cql(struct rows_request *r, const struct column *c, struct str value, struct str *ret)
{
	int64_t us = (int64_t)big_endian_64(value.ptr);

	if (us >= INT64_C(86400000000))
		return fail_range(r, c);
	return put_number(r, us * NS_PER_US, 8, ret);
}

static enum status
numeric_to_cql(struct rows_request *r, const struct column *c, struct str value, struct str *ret)
{
	struct cql q = { .arena = r->arena, .err = &r->err };
	bool good = c->form == FORM_VARINT ? cql_varint_parse(&q, value, ret)
					   : cql_decimal_parse(&q, value, ret);

	return good ? STATUS_OK : fail_range(r, c);
}

static enum status
address_to_cql(struct rows_request *r, const struct column *c, struct str value, struct str *ret)
{
	*ret = str_skip(value, INET_HEAD_BYTES);
	return (uint8_t)value.ptr[1] == 8 * ret->len ? STATUS_OK : fail_range(r, c);
}

static enum status
value_to_cql(struct rows_request *r, const struct column *c, struct str value, struct str *ret)
{
	struct cql q = { .arena = r->arena, .err = &r->err };
	int64_t n;

	if (!rows_value_check(c->kind, value))
		return fail_format(r, c);
	*ret = value;
	switch (c->form) {
	case FORM_NONE:
		return fail_format(r, c);
	case FORM_OWN:
	case FORM_ORDERED:
		return STATUS_OK;
	case FORM_TINY:
		n = cql_int_read(value);
		return n >= INT8_MIN && n <= INT8_MAX ? put_number(r, n, 1, ret) : fail_range(r, c);
	case FORM_DATE:
		return date_to_cql(r, c, value, ret);
	case FORM_TIME:
		return time_to_cql(r, c, value, ret);
	case FORM_MOMENT:
		return moment_to_cql(r, c, value, ret);
	case FORM_VARINT:
	case FORM_DECIMAL:
		return numeric_to_cql(r, c, value, ret);
	case FORM_ADDRESS:
		return address_to_cql(r, c, value, ret);
	case FORM_SAME:
	case FORM_ASCII:
		break;
	}
	/* What else the type asks for: ASCII, a version of a UUID, JSON. */
	if (cql_value_check(&q, c->type, value) != STATUS_OK)
		return fail_range(r, c);
	return cql_value_normalize(&q, c->type, value, ret);
}

/* ---- CQL's value as a message's ---- */

static enum status
put_checked(struct rows_request *r, const struct column *c, struct str value, struct buf *out)
{
	if (!rows_value_check(c->kind, value))
		return fail_stored(r, c);
	rows_put_value(out, value);
	return buf_status(out);
}

static enum status
put_int64(struct rows_request *r, const struct column *c, int64_t n, struct buf *out)
{
	char bytes[8];

	big_endian_put_64(bytes, (uint64_t)n);
	return put_checked(r, c, str_of(bytes, sizeof(bytes)), out);
}

static enum status
date_of_cql(struct rows_request *r, const struct column *c, struct str cql, struct buf *out)
{
	int64_t days = (int32_t)(big_endian_32(cql.ptr) ^ UINT32_C(1) << 31);
	char bytes[4];

	if (days != INT32_MIN && days != INT32_MAX)
		days -= EPOCH_2000_DAYS;
	if (days < INT32_MIN)
		return fail_stored(r, c);
	big_endian_put_32(bytes, (uint32_t)(int32_t)days);
	return put_checked(r, c, str_of(bytes, sizeof(bytes)), out);
}

static enum status
moment_of_cql(struct rows_request *r, const struct column *c, struct str cql, struct buf *out)
{
	int64_t us;

	if (__builtin_sub_overflow(cql_int_read(cql), EPOCH_2000_MS, &us) ||
	    __builtin_mul_overflow(us, US_PER_MS, &us))
		return fail_stored(r, c);
	return put_int64(r, c, us, out);
}

/* The digits of a number whose exponent is far from 0 are too many for a numeric, or for here. */
static enum status
number_of_cql(struct rows_request *r, const struct column *c, struct str cql, struct buf *out)
{
	AUTO(buf_release)
	struct buf text = BUF_SHORT(NUMBER_TEXT_BYTES), plain = BUF_SHORT(ROWS_NUMERIC_BYTES);
	struct str digits;
	int64_t scale = 0;

	if (c->form == FORM_DECIMAL) {
		scale = (int32_t)big_endian_32(cql.ptr);
		cql = str_skip(cql, CQL_SCALE_BYTES);
	}
	cql_varint_print(&text, cql);
	TRY(buf_status(&text));
	digits = buf_str(&text);
	if (digits.len && digits.ptr[0] == '-') {
		buf_append_byte(&plain, '-');
		digits = str_skip(digits, 1);
	}
	if (scale > DOC_NUMERIC_FRACTION || scale < -DOC_NUMERIC_WHOLE)
		return fail_stored(r, c);
	if ((int64_t)digits.len <= scale)
		buf_append_byte(&plain, '0');
	for (int64_t i = 0; i < (int64_t)digits.len - scale; i++)
		buf_append_byte(&plain, i < (int64_t)digits.len ? (uint8_t)digits.ptr[i] : '0');
	if (scale > 0) {
		buf_append_byte(&plain, '.');
		for (int64_t i = (int64_t)digits.len - scale; i < (int64_t)digits.len; i++)
			buf_append_byte(&plain, i < 0 ? '0' : (uint8_t)digits.ptr[i]);
	}
	TRY(buf_status(&plain));
	return put_checked(r, c, buf_str(&plain), out);
}

static enum status
address_of_cql(struct rows_request *r, const struct column *c, struct str cql, struct buf *out)
{
	char bytes[INET_HEAD_BYTES + DOC_INET6_BYTES];

	if (cql.len != DOC_INET4_BYTES && cql.len != DOC_INET6_BYTES)
		return fail_stored(r, c);
	bytes[0] = cql.len == DOC_INET4_BYTES ? 4 : 6;
	bytes[1] = (char)(8 * cql.len);
	memcpy(bytes + INET_HEAD_BYTES, cql.ptr, cql.len);
	return put_checked(r, c, str_of(bytes, INET_HEAD_BYTES + cql.len), out);
}

static enum status
value_of_cql(struct rows_request *r, const struct column *c, struct str cql, struct buf *out)
{
	char small[2];

	/* "Empty" is a value of most types of CQL, and none of these kinds. */
	if (!cql.len && c->kind != ROWS_TEXT && c->kind != ROWS_BYTES && c->kind != ROWS_OTHER) {
		rows_put_null(out);
		return buf_status(out);
	}
	switch (c->form) {
	case FORM_TINY:
		small[0] = (char)(cql_int_read(cql) < 0 ? 0xff : 0);
		small[1] = cql.ptr[0];
		return put_checked(r, c, str_of(small, sizeof(small)), out);
	case FORM_DATE:
		return date_of_cql(r, c, cql, out);
	case FORM_TIME:
		return put_int64(r, c, cql_int_read(cql) / NS_PER_US, out);
	case FORM_MOMENT:
		return moment_of_cql(r, c, cql, out);
	case FORM_VARINT:
	case FORM_DECIMAL:
		return number_of_cql(r, c, cql, out);
	case FORM_ADDRESS:
		return address_of_cql(r, c, cql, out);
	case FORM_NONE:
	case FORM_OWN:
	case FORM_ORDERED:
	case FORM_SAME:
	case FORM_ASCII:
		break;
	}
	return put_checked(r, c, cql, out);
}

/* ---- Scalars ---- */

static bool
is_own(const struct column *c)
{
	return c->form == FORM_OWN || c->form == FORM_ORDERED;
}

static enum status
ordered_of(struct rows_request *r, const struct column *c, struct str value, struct str *ret)
{
	AUTO(buf_release) struct buf ordered = BUF_SHORT(ROWS_ORDERED_BYTES);

	TRY(rows_ordered_put(c->kind, value, &ordered));
	return buf_copy(&ordered, r->arena, ret);
}

/* Appends the value that ordered bytes stand for. */
static enum status
put_ordered(struct rows_request *r, const struct column *c, const struct doc_scalar *s,
	    struct buf *out)
{
	AUTO(buf_release) struct buf bytes = BUF_SHORT(ROWS_ORDERED_BYTES);

	if (s->kind != DOC_BYTES)
		return STATUS_CORRUPT;
	TRY(rows_ordered_read(c->kind, s->text, &bytes));
	return put_checked(r, c, buf_str(&bytes), out);
}

enum status
rows_column_to_scalar(struct rows_request *r, const struct column *c, struct str value,
		      struct doc_scalar *ret)
{
	struct cql q = { .arena = r->arena, .err = &r->err };
	struct str cql;

	TRY(value_to_cql(r, c, value, &cql));
	if (!is_own(c))
		return cql_value_to_scalar(&q, c->type, cql, ret);
	if (c->form == FORM_ORDERED)
		TRY(ordered_of(r, c, cql, &cql));
	*ret = (struct doc_scalar){ .kind = DOC_BYTES, .text = cql };
	return STATUS_OK;
}

enum status
rows_column_put_scalar(struct rows_request *r, const struct column *c, const struct doc_scalar *s,
		       struct buf *out)
{
	struct cql q = { .arena = r->arena, .err = &r->err };
	struct str cql;

	if (s->kind == DOC_NULL) {
		rows_put_null(out);
		return buf_status(out);
	}
	if (c->form == FORM_ORDERED)
		return put_ordered(r, c, s, out);
	if (c->form != FORM_OWN) {
		TRY(cql_value_of_scalar(&q, c->type, s, &cql));
		return value_of_cql(r, c, cql, out);
	}
	if (s->kind != DOC_BYTES)
		return STATUS_CORRUPT;
	return put_checked(r, c, s->text, out);
}

/* ---- Keys ---- */

/* PostgreSQL takes -0 for 0. */
static struct str
float_without_sign(struct rows_request *r, const struct column *c, struct str value)
{
	char *zero;

	if ((c->kind != ROWS_FLOAT4 && c->kind != ROWS_FLOAT8) || !value.len ||
	    (uint8_t)value.ptr[0] != 0x80)
		return value;
	for (size_t i = 1; i < value.len; i++)
		if (value.ptr[i])
			return value;
	zero = arena_bytes(r->arena, value.len);
	if (!zero)
		return value;
	memset(zero, 0, value.len);
	return str_of(zero, value.len);
}

/* A component, and its bytes in CQL, by which rows are spread. */
static enum status
part_make(struct rows_request *r, const struct column *c, struct str value, struct doc_scalar *ret,
	  struct str *ret_cql)
{
	struct cql q = { .arena = r->arena, .err = &r->err };

	TRY(value_to_cql(r, c, value, ret_cql));
	if (!is_own(c)) {
		*ret_cql = float_without_sign(r, c, *ret_cql);
		return cql_value_to_scalar(&q, c->type, *ret_cql, ret);
	}
	TRY(ordered_of(r, c, value, ret_cql));
	*ret = (struct doc_scalar){ .kind = DOC_BYTES, .text = *ret_cql };
	return STATUS_OK;
}

enum status
rows_column_put_part(struct rows_request *r, const struct column *c, const struct doc_scalar *s,
		     struct buf *out)
{
	struct cql q = { .arena = r->arena, .err = &r->err };
	struct str cql;

	if (is_own(c))
		return put_ordered(r, c, s, out);
	TRY(cql_value_of_part(&q, c->type, s, &cql));
	return value_of_cql(r, c, cql, out);
}

enum status
rows_key_parts(struct rows_request *r, const struct table *t, size_t from,
	       const struct rows_value *values, size_t count, struct doc_scalar *ret)
{
	struct str cql;

	for (size_t i = 0; i < count; i++)
		TRY(part_make(r, &t->columns[t->hidden + from + i], values[i].bytes, &ret[i],
			      &cql));
	return STATUS_OK;
}

/* The token of the hash columns, whose bytes in CQL these are. */
static enum status
key_token(struct rows_request *r, const struct str *cql, size_t count, int64_t *ret)
{
	AUTO(buf_release)
	struct buf key = BUF_INIT_OF(TABLE_KEY_COLUMNS * KEY_PART_BYTES, arena_part(r->arena));

	if (cql_partition_key_put(&key, cql, count) == STATUS_INVALID)
		return rows_fail(r, ROWS_STATE_TOO_LARGE,
				 "a hash column of a key may have %d bytes (CQL_KEY_PART_BYTES)",
				 CQL_KEY_PART_BYTES);
	TRY(buf_status(&key));
	*ret = cql_token(buf_str(&key));
	return STATUS_OK;
}

enum status
rows_key_make(struct rows_request *r, const struct table *t, const struct rows_value *values,
	      size_t count, struct table_key *ret)
{
	struct doc_scalar *parts = arena_alloc(r->arena, TABLE_KEY_COLUMNS * sizeof(*parts));
	struct str cql[TABLE_KEY_COLUMNS], ignored;
	size_t all = count + t->hidden;

	if (!parts)
		return STATUS_LIMIT;
	if (all != t->schema->key_count && all != t->schema->hash_count)
		return rows_fail(r, ROWS_STATE_DEFINITION, "a key has %zu columns here",
				 rows_table_key_columns(t));
	if (t->hidden) {
		parts[0] = (struct doc_scalar){ .kind = DOC_INT16 };
		cql[0] = STR("\0\0");
	}
	for (size_t i = t->hidden; i < all; i++)
		TRY(part_make(r, &t->columns[i], values[i - t->hidden].bytes, &parts[i],
			      i < t->schema->hash_count ? &cql[i] : &ignored));
	*ret = (struct table_key){ .parts = parts, .count = all };
	return key_token(r, cql, t->schema->hash_count, &ret->token);
}

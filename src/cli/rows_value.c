/* Scalars and maps of rows as JSON: what JSON has no type for is {"$type": …}. */
#include <arpa/inet.h>
#include <assert.h>
#include <math.h>

#include "cli/rows.h"
#include "doc/doc_int.h"

enum {
	UUID_TEXT_BYTES = 36,
	NUMBER_TEXT_BYTES = 64,
};

static const struct {
	const char *name;
	enum doc_kind kind;
} tags[] = {
	{ "$int8", DOC_INT8 },      { "$int16", DOC_INT16 },       { "$int32", DOC_INT32 },
	{ "$varint", DOC_INTEGER }, { "$decimal", DOC_DECIMAL },   { "$float", DOC_FLOAT },
	{ "$double", DOC_DOUBLE },  { "$blob", DOC_BYTES },        { "$uuid", DOC_UUID },
	{ "$timestamp", DOC_DATE }, { "$timeuuid", DOC_TIMEUUID }, { "$date", DOC_DAY },
	{ "$time", DOC_TIME },      { "$inet", DOC_INET },         { "$duration", DOC_DURATION },
};

enum {
	TAGS = sizeof(tags) / sizeof(tags[0]),
};

/* ---- Reading ---- */

static enum status
fail_value(struct str text, const char *what, struct err *err)
{
	return err_set(err, STATUS_INVALID, "%.*s is no %s", STR_ARG(text), what);
}

/* A JSON number's text, or that of an integer of any length. */
static enum status
number_read(struct str text, struct arena *arena, struct doc_scalar *ret, struct err *err)
{
	uint8_t magnitude[TUPLE_INT_MAX_BYTES];
	struct json_number n;
	bool is_integer;

	if (!text.len || json_number_len(text, &is_integer) != text.len)
		return fail_value(text, "number", err);
	json_number_read(text, is_integer, &n);
	*ret = (struct doc_scalar){ 0 };
	if (n.form == JSON_NUMBER_DOUBLE) {
		*ret = (struct doc_scalar){ .kind = DOC_DOUBLE, .d = n.d };
		return STATUS_OK;
	}
	json_number_scalar(&n, magnitude, ret);
	if (ret->kind != DOC_INT64 && ret->kind != DOC_INTEGER)
		return fail_value(text, "number that is short enough", err);
	ret->text = arena_dup(arena, ret->text);
	return ret->text.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
integer_read(struct str text, int64_t least, int64_t most, const char *what, struct doc_scalar *ret,
	     struct err *err)
{
	int64_t n;

	if (!str_to_i64(text, &n) || n < least || n > most)
		return fail_value(text, what, err);
	ret->n = n;
	return STATUS_OK;
}

static enum status bytes_read(struct str text, struct str hex, size_t bytes, const char *what,
			      struct arena *arena, struct doc_scalar *ret, struct err *err);

/* An integer of any kind as a magnitude; long ones are hexadecimal (magnitude_write()). */
static enum status
magnitude_read(struct str text, struct arena *arena, struct doc_scalar *ret, struct err *err)
{
	struct doc_scalar n;
	uint64_t bytes;
	size_t zeros = 0;

	ret->negative = str_starts_with(text, STR("-0x"));
	if (ret->negative || str_starts_with(text, STR("0x"))) {
		TRY(bytes_read(text, str_skip(text, ret->negative ? 3 : 2), 0, "integer", arena,
			       ret, err));
		while (zeros < ret->text.len && !ret->text.ptr[zeros])
			zeros++;
		ret->text = str_skip(ret->text, zeros);
		ret->negative = ret->negative && ret->text.len;
		return STATUS_OK;
	}
	TRY(number_read(text, arena, &n, err));
	if (n.kind == DOC_DOUBLE)
		return fail_value(text, "integer", err);
	if (n.kind == DOC_INTEGER) {
		ret->negative = n.negative;
		ret->text = n.text;
		return STATUS_OK;
	}
	ret->negative = n.n < 0;
	bytes = htobe64(n.n < 0 ? -(uint64_t)n.n : (uint64_t)n.n);
	while (zeros < sizeof(bytes) && !((const char *)&bytes)[zeros])
		zeros++;
	ret->text = arena_dup(arena, str_of((const char *)&bytes + zeros, sizeof(bytes) - zeros));
	return ret->text.ptr ? STATUS_OK : STATUS_LIMIT;
}

/* "15E-1": an integer, and the power of ten that it is multiplied by. */
static enum status
decimal_read(struct str text, struct arena *arena, struct doc_scalar *ret, struct err *err)
{
	struct str exponent = text;
	struct str digits = str_cut(&exponent, 'E');
	int64_t power = 0;

	if (exponent.len &&
	    (!str_to_i64(exponent, &power) || power > INT32_MAX || power <= INT32_MIN))
		return fail_value(text, "decimal", err);
	TRY(magnitude_read(digits, arena, ret, err));
	ret->n = -power;
	return STATUS_OK;
}

static enum status
bytes_read(struct str text, struct str hex, size_t bytes, const char *what, struct arena *arena,
	   struct doc_scalar *ret, struct err *err)
{
	char *to = arena_bytes(arena, hex.len / 2 + 1);

	if (!to)
		return STATUS_LIMIT;
	if ((bytes && hex.len != 2 * bytes) || !str_from_hex(hex, to))
		return fail_value(text, what, err);
	ret->text = str_of(to, hex.len / 2);
	return STATUS_OK;
}

static enum status
uuid_read(struct str text, struct arena *arena, struct doc_scalar *ret, struct err *err)
{
	char hex[UUID_TEXT_BYTES];
	size_t len = 0;

	for (size_t i = 0; i < text.len && len < sizeof(hex); i++)
		if (text.ptr[i] != '-')
			hex[len++] = text.ptr[i];
	TRY(bytes_read(text, str_of(hex, len), DOC_UUID_BYTES, "UUID", arena, ret, err));
	if (ret->kind == DOC_TIMEUUID && (uint8_t)ret->text.ptr[6] >> 4 != 1)
		return fail_value(text, "UUID of version 1", err);
	return STATUS_OK;
}

static enum status
inet_read(struct str text, struct arena *arena, struct doc_scalar *ret, struct err *err)
{
	char address[DOC_INET6_BYTES];
	struct str name = arena_dup(arena, text);
	bool four;

	if (!name.ptr)
		return STATUS_LIMIT;
	four = inet_pton(AF_INET, name.ptr, address) == 1;
	if (!four && inet_pton(AF_INET6, name.ptr, address) != 1)
		return fail_value(text, "internet address", err);
	ret->text = arena_dup(arena, str_of(address, four ? DOC_INET4_BYTES : DOC_INET6_BYTES));
	return ret->text.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
double_read(struct str text, struct arena *arena, double *ret, struct err *err)
{
	struct doc_scalar n;

	if (str_eq(text, STR("NaN"))) {
		*ret = (double)NAN;
		return STATUS_OK;
	}
	if (str_eq(text, STR("Infinity")) || str_eq(text, STR("-Infinity"))) {
		*ret = text.ptr[0] == '-' ? -(double)INFINITY : (double)INFINITY;
		return STATUS_OK;
	}
	TRY(number_read(text, arena, &n, err));
	*ret = doc_number_double(text);
	return STATUS_OK;
}

/* "1mo2d3ns" */
static enum status
duration_read(struct str text, struct doc_scalar *ret, struct err *err)
{
	struct str rest = text;
	struct str months = str_cut(&rest, 'm'), days;
	int64_t m, d;

	if (str_starts_with(rest, STR("o"))) {
		rest = str_skip(rest, 1);
		days = str_cut(&rest, 'd');
		if (str_to_i64(months, &m) && m >= INT32_MIN && m <= INT32_MAX &&
		    str_to_i64(days, &d) && d >= INT32_MIN && d <= INT32_MAX && rest.len > 2 &&
		    str_eq(str_skip(rest, rest.len - 2), STR("ns")) &&
		    str_to_i64(str_of(rest.ptr, rest.len - 2), &ret->n) &&
		    ((m <= 0 && d <= 0 && ret->n <= 0) || (m >= 0 && d >= 0 && ret->n >= 0))) {
			ret->months = (int32_t)m;
			ret->days = (int32_t)d;
			return STATUS_OK;
		}
	}
	return fail_value(text, "duration", err);
}

static enum status
tagged_read(enum doc_kind kind, struct str text, struct arena *arena, struct doc_scalar *ret,
	    struct err *err)
{
	double d;

	*ret = (struct doc_scalar){ .kind = kind };
	switch ((int)kind) {
	case DOC_INT8:
		return integer_read(text, INT8_MIN, INT8_MAX, "integer of 8 bits", ret, err);
	case DOC_INT16:
		return integer_read(text, INT16_MIN, INT16_MAX, "integer of 16 bits", ret, err);
	case DOC_INT32:
		return integer_read(text, INT32_MIN, INT32_MAX, "integer of 32 bits", ret, err);
	case DOC_DATE:
		return integer_read(text, INT64_MIN, INT64_MAX, "number of milliseconds", ret, err);
	case DOC_DAY:
		return integer_read(text, INT32_MIN, INT32_MAX, "number of days", ret, err);
	case DOC_TIME:
		return integer_read(text, 0, INT64_C(86399999999999), "number of nanoseconds", ret,
				    err);
	case DOC_INTEGER:
		return magnitude_read(text, arena, ret, err);
	case DOC_DECIMAL:
		return decimal_read(text, arena, ret, err);
	case DOC_FLOAT:
		TRY(double_read(text, arena, &d, err));
		ret->f = (float)d;
		return STATUS_OK;
	case DOC_DOUBLE:
		return double_read(text, arena, &ret->d, err);
	case DOC_BYTES:
		if (!str_starts_with(text, STR("0x")))
			return fail_value(text, "blob, 0x and its digits", err);
		return bytes_read(text, str_skip(text, 2), 0, "blob", arena, ret, err);
	case DOC_INET:
		return inet_read(text, arena, ret, err);
	case DOC_DURATION:
		return duration_read(text, ret, err);
	default:
		return uuid_read(text, arena, ret, err);
	}
}

/* The one member of {"$…": …}; NULL for any other value. */
static enum status
tag_of(const struct json_value *value, struct arena *arena, const struct json_member **ret,
       struct err *err)
{
	struct json_member *members;
	size_t count;

	*ret = NULL;
	if (value->kind != JSON_OBJECT_BEGIN)
		return STATUS_OK;
	TRY(json_value_members(value, arena, &members, &count, err));
	if (count == 1 && str_starts_with(members[0].name, STR("$")))
		*ret = &members[0];
	return STATUS_OK;
}

static enum status
tag_read(const struct json_member *tag, struct arena *arena, struct doc_scalar *ret,
	 struct err *err)
{
	bool string = tag->value.kind == JSON_STRING;

	for (size_t i = 0; i < TAGS; i++)
		if (str_eq(tag->name, str_from_cstr(tags[i].name)))
			return tagged_read(tags[i].kind,
					   string ? tag->value.string : tag->value.text, arena, ret,
					   err);
	return err_set(err, STATUS_INVALID, "there is no type \"%.*s\"", STR_ARG(tag->name));
}

enum status
rows_scalar_read(const struct json_value *value, struct arena *arena, struct doc_scalar *ret,
		 struct err *err)
{
	const struct json_member *tag;

	*ret = (struct doc_scalar){ .kind = DOC_NULL };
	switch ((int)value->kind) {
	case JSON_NULL:
		return STATUS_OK;
	case JSON_TRUE:
	case JSON_FALSE:
		ret->kind = DOC_BOOL;
		ret->truth = value->kind == JSON_TRUE;
		return STATUS_OK;
	case JSON_NUMBER:
		return number_read(value->text, arena, ret, err);
	case JSON_STRING:
		ret->kind = DOC_TEXT;
		ret->text = arena_dup(arena, value->string);
		return ret->text.ptr ? STATUS_OK : STATUS_LIMIT;
	default:
		break;
	}
	TRY(tag_of(value, arena, &tag, err));
	if (!tag)
		return err_set(err, STATUS_INVALID, "%.*s is no single value",
			       STR_ARG(value->text));
	return tag_read(tag, arena, ret, err);
}

/* ---- Maps ---- */

struct timed_path
rows_path_below(const struct timed_path *above, struct timed_step step, struct arena *arena)
{
	struct timed_step *steps = arena_alloc(arena, (above->count + 1) * sizeof(*steps));

	if (!steps)
		return (struct timed_path){ NULL, 0 };
	if (above->count)
		memcpy(steps, above->steps, above->count * sizeof(*steps));
	steps[above->count] = step;
	return (struct timed_path){ steps, above->count + 1 };
}

static enum status
values_read_member(const struct doc_scalar *key, const struct json_value *value,
		   const struct timed_path *above, struct arena *arena, struct rows_values *ret,
		   struct err *err)
{
	struct timed_path path = rows_path_below(above, (struct timed_step){ .key = *key }, arena);

	if (!path.steps)
		return STATUS_LIMIT;
	if (path.count > TIMED_PATH_STEPS)
		return err_set(err, STATUS_INVALID, "more than %d maps inside each other",
			       TIMED_PATH_STEPS);
	return rows_values_read(value, &path, arena, ret, err);
}

/* {"$map": [[key, value], …]} */
static enum status
values_read_pairs(const struct json_value *list, const struct timed_path *above,
		  struct arena *arena, struct rows_values *ret, struct err *err)
{
	struct json_value *items;
	size_t count;

	TRY(json_value_items(list, arena, &items, &count, err));
	for (size_t i = 0; i < count; i++) {
		struct json_value *pair;
		struct doc_scalar key;
		size_t n;

		TRY(json_value_items(&items[i], arena, &pair, &n, err));
		if (n != 2)
			return err_set(err, STATUS_INVALID, "a pair of a map has two elements");
		TRY(rows_scalar_read(&pair[0], arena, &key, err));
		TRY(values_read_member(&key, &pair[1], above, arena, ret, err));
	}
	return STATUS_OK;
}

static enum status
values_read_members(const struct json_value *object, const struct timed_path *above,
		    struct arena *arena, struct rows_values *ret, struct err *err)
{
	struct json_member *members;
	size_t count;

	TRY(json_value_members(object, arena, &members, &count, err));
	for (size_t i = 0; i < count; i++) {
		const struct doc_scalar key = { .kind = DOC_TEXT, .text = members[i].name };

		TRY(values_read_member(&key, &members[i].value, above, arena, ret, err));
	}
	return STATUS_OK;
}

enum status
rows_values_read(const struct json_value *value, const struct timed_path *above,
		 struct arena *arena, struct rows_values *ret, struct err *err)
{
	const struct json_member *tag;
	struct timed_value *leaf;

	TRY(tag_of(value, arena, &tag, err));
	if (tag && str_eq(tag->name, STR("$map")))
		return values_read_pairs(&tag->value, above, arena, ret, err);
	if (value->kind == JSON_OBJECT_BEGIN && !tag)
		return values_read_members(value, above, arena, ret, err);
	ret->values = arena_grow(arena, ret->values, ret->count, &ret->cap, sizeof(*leaf));
	if (!ret->values)
		return STATUS_LIMIT;
	leaf = &ret->values[ret->count];
	leaf->path = *above;
	TRY(rows_scalar_read(value, arena, &leaf->value, err));
	ret->count++;
	return STATUS_OK;
}

/* ---- Writing ---- */

static void
tag_begin(enum doc_kind kind, struct buf *ret)
{
	for (size_t i = 0; i < TAGS; i++)
		if (tags[i].kind == kind)
			buf_printf(ret, "{\"%s\":", tags[i].name);
}

/* The longest that statements read is 255 bytes; keys that were read back may be longer. */
static void
magnitude_write(const struct doc_scalar *s, struct buf *ret)
{
	if (s->text.len <= TUPLE_INT_MAX_BYTES) {
		doc_integer_write(ret, s->negative, s->text);
		return;
	}
	buf_append_cstr(ret, s->negative ? "-0x" : "0x");
	buf_append_hex(ret, s->text);
}

static void
double_write(double d, struct buf *ret)
{
	if (isfinite(d))
		json_write_double(ret, d);
	else
		buf_append_cstr(ret, isnan(d) ? "\"NaN\""
				     : d < 0  ? "\"-Infinity\""
					      : "\"Infinity\"");
}

static void
uuid_write(struct str s, struct buf *ret)
{
	static const size_t ends[] = { 4, 6, 8, 10, DOC_UUID_BYTES };
	size_t from = 0;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (i)
			buf_append_byte(ret, '-');
		buf_append_hex(ret, str_of(s.ptr + from, ends[i] - from));
		from = ends[i];
	}
}

static void
tagged_write(const struct doc_scalar *s, struct buf *ret)
{
	char address[INET6_ADDRSTRLEN];

	switch ((int)s->kind) {
	case DOC_INTEGER:
		buf_append_byte(ret, '"');
		magnitude_write(s, ret);
		buf_append_byte(ret, '"');
		return;
	case DOC_DECIMAL:
		buf_append_byte(ret, '"');
		magnitude_write(s, ret);
		buf_printf(ret, "E%lld\"", (long long)-s->n);
		return;
	case DOC_FLOAT:
		double_write((double)s->f, ret);
		return;
	case DOC_DOUBLE:
		double_write(s->d, ret);
		return;
	case DOC_BYTES:
		buf_append_cstr(ret, "\"0x");
		buf_append_hex(ret, s->text);
		buf_append_byte(ret, '"');
		return;
	case DOC_UUID:
	case DOC_TIMEUUID:
		buf_append_byte(ret, '"');
		uuid_write(s->text, ret);
		buf_append_byte(ret, '"');
		return;
	case DOC_INET:
		if (inet_ntop(s->text.len == DOC_INET4_BYTES ? AF_INET : AF_INET6, s->text.ptr,
			      address, sizeof(address)))
			buf_printf(ret, "\"%s\"", address);
		return;
	case DOC_DURATION:
		buf_printf(ret, "\"%dmo%dd%lldns\"", s->months, s->days, (long long)s->n);
		return;
	default:
		buf_printf(ret, "%lld", (long long)s->n);
		return;
	}
}

void
rows_scalar_write(const struct doc_scalar *s, struct buf *ret)
{
	/* A double without a fraction would be read back as an integer. */
	bool plain = s->kind == DOC_NULL || s->kind == DOC_BOOL || s->kind == DOC_TEXT ||
		     s->kind == DOC_INT64 ||
		     (s->kind == DOC_DOUBLE && isfinite(s->d) && s->d != trunc(s->d));

	if (plain) {
		enum status status = json_write_scalar(ret, s);

		assert(status == STATUS_OK || buf_status(ret) != STATUS_OK);
		(void)status;
		return;
	}
	tag_begin(s->kind, ret);
	tagged_write(s, ret);
	buf_append_byte(ret, '}');
}

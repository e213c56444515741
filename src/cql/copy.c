#include "cql/copy.h"

#include "base/big_endian.h"
#include "cql/time.h"
#include "loop/step.h"

/* By the kinds of types, from lists on: lists, sets, maps, tuples, user types. */
static const char brackets[][3] = { "[]", "{}", "{}", "()", "{}" };

static bool
is_one_of(char c, const char *chars)
{
	return c != '\0' && strchr(chars, c) != NULL;
}

static bool
has_fields(const struct cql_type *type)
{
	return type->kind == CQL_TYPE_TUPLE || type->kind == CQL_TYPE_UDT;
}

/* ---- Writing ---- */

/* From 0001-01-01 to before 10000-01-01, in milliseconds since 1970. */
#define DATED_FROM_MS INT64_C(-62135596800000)
#define DATED_TO_MS   INT64_C(253402300800000)

/* Where Python has no date, cqlsh writes the number of milliseconds. */
static void
print_timestamp(struct buf *out, int64_t ms)
{
	if (ms >= DATED_FROM_MS && ms < DATED_TO_MS)
		cql_timestamp_print(out, ms, CQL_MOMENT_COPY);
	else
		buf_printf(out, "%lld", (long long)ms);
}

static void
print_native(struct buf *out, const struct cql_type *type, struct str bytes)
{
	if (type->kind == CQL_TYPE_BOOLEAN && bytes.len)
		buf_append_cstr(out, bytes.ptr[0] ? "True" : "False");
	else if (type->kind == CQL_TYPE_TIMESTAMP && bytes.len)
		print_timestamp(out, cql_int_read(bytes));
	else
		cql_value_print(out, type, CQL_VALUE(bytes), CQL_FORM_PLAIN);
}

/* True if the texts of the type's values may have commas, colons or brackets, or be nothing. */
static bool
is_quoted_inside(const struct cql_type *type, struct str bytes)
{
	switch ((int)type->kind) {
	case CQL_TYPE_ASCII:
	case CQL_TYPE_TEXT:
	case CQL_TYPE_JSONB:
	case CQL_TYPE_INET:
	case CQL_TYPE_TIME:
	case CQL_TYPE_TIMESTAMP:
		return true;
	default:
		return !bytes.len && type->kind != CQL_TYPE_BLOB;
	}
}

/* Puts what is behind `from` in single quotes, and doubles those that it has. */
static void
quote(struct buf *out, size_t from)
{
	struct buf text = BUF_INIT_OF(out->max_bytes, out->part);

	if (buf_status(out) != STATUS_OK)
		return;
	cql_text_print(&text, str_skip(buf_str(out), from));
	out->len = from;
	buf_append_buf(out, &text);
	if (buf_status(&text) != STATUS_OK)
		out->failed = buf_status(&text);
	buf_release(&text);
}

static void print_inside(struct buf *out, const struct cql_type *type, struct cql_value v);

static void
print_field_name(struct buf *out, struct str name)
{
	size_t from = out->len;

	buf_append_str(out, name);
	for (size_t i = 0; i < name.len; i++)
		if (is_one_of(name.ptr[i], " \t\r\n:,'\"[](){}")) {
			quote(out, from);
			return;
		}
}

static void
print_elements(struct buf *out, const struct cql_type *type, struct str bytes)
{
	const char *around = brackets[type->kind - CQL_TYPE_LIST];
	struct cql_elements e;
	struct cql_value v;

	buf_append_byte(out, (uint8_t)around[0]);
	cql_elements_init(&e, type, bytes);
	for (size_t i = 0;; i++) {
		if (!cql_elements_next(&e, &v)) {
			/* Fields that were added later are null. */
			if (!has_fields(type) || i >= type->count)
				break;
			v = CQL_VALUE_NULL;
		}
		if (i)
			buf_append_cstr(out, type->kind == CQL_TYPE_MAP && i % 2 ? ": " : ", ");
		if (type->kind == CQL_TYPE_UDT) {
			print_field_name(out, type->fields[i]);
			buf_append_cstr(out, ": ");
		}
		print_inside(out, type->args[has_fields(type) ? i : i % type->count], v);
	}
	buf_append_byte(out, (uint8_t)around[1]);
}

static void
print_inside(struct buf *out, const struct cql_type *type, struct cql_value v)
{
	size_t from = out->len;

	if (v.presence != CQL_SET)
		return;
	cql_copy_print(out, type, v.bytes);
	if (type->kind < CQL_NATIVE_COUNT && is_quoted_inside(type, v.bytes))
		quote(out, from);
}

void
cql_copy_print(struct buf *out, const struct cql_type *type, struct str bytes)
{
	if (type->kind < CQL_NATIVE_COUNT) {
		print_native(out, type, bytes);
	} else if (type->kind < CQL_TYPE_CUSTOM) {
		print_elements(out, type, bytes);
	} else {
		buf_append_cstr(out, "0x");
		buf_append_hex(out, bytes);
	}
}

/* ---- Reading ---- */

struct reader {
	struct cql *q;
	struct str rest;
	const struct cql_type *type; /* of the whole, for errors */
	struct str text;             /* likewise */
};

/* The whole value is told: a part of it says less than its place in it. */
static enum status
fail(const struct reader *r)
{
	return cql_fail(r->q, CQL_E_BAD_COPY, cql_type_text(r->q, r->type), r->text);
}

static bool
is_space(char c)
{
	return is_one_of(c, " \t\r\n");
}

static void
skip_spaces(struct reader *r)
{
	while (r->rest.len && is_space(r->rest.ptr[0]))
		r->rest = str_skip(r->rest, 1);
}

static bool
take(struct reader *r, char c)
{
	skip_spaces(r);
	if (!r->rest.len || r->rest.ptr[0] != c)
		return false;
	r->rest = str_skip(r->rest, 1);
	return true;
}

/* A text in single quotes, of which the first was taken. */
static enum status
take_quoted(struct reader *r, struct str *ret)
{
	AUTO(buf_release) struct buf text = cql_buf(r->q, arena_limit_bytes(r->q->arena));

	for (;;) {
		const char *end = r->rest.len ? memchr(r->rest.ptr, '\'', r->rest.len) : NULL;

		if (!end)
			return fail(r);
		buf_append(&text, r->rest.ptr, (size_t)(end - r->rest.ptr));
		r->rest = str_skip(r->rest, (size_t)(end - r->rest.ptr) + 1);
		if (!r->rest.len || r->rest.ptr[0] != '\'')
			return buf_copy(&text, r->q->arena, ret);
		buf_append_byte(&text, '\'');
		r->rest = str_skip(r->rest, 1);
	}
}

/* The time of day as a key of a map has colons, and a space behind the one that ends it. */
static bool
ends_key(const struct reader *r, size_t at, const struct cql_type *type)
{
	return r->rest.ptr[at] == ':' && (!type || type->kind != CQL_TYPE_TIME ||
					  (at + 1 < r->rest.len && is_space(r->rest.ptr[at + 1])));
}

/* A text without quotes. `type`: of a key, or NULL for a field's name. */
static struct str
take_word(struct reader *r, bool is_key, const struct cql_type *type)
{
	struct str word = r->rest;
	size_t at = 0;

	while (at < r->rest.len && !is_one_of(r->rest.ptr[at], ",])}") &&
	       !(is_key && ends_key(r, at, type)))
		at++;
	word.len = at;
	r->rest = str_skip(r->rest, at);
	return str_trim(word);
}

static enum status
native_of_text(struct cql *q, const struct cql_type *type, struct str text, struct str *ret)
{
	if (!text.len && cql_type_takes_empty(type)) {
		*ret = STR("");
		return STATUS_OK;
	}
	return cql_value_from_text(q, type, text, ret);
}

static enum status read_elements(struct reader *r, const struct cql_type *type, struct str *ret);

/* What is inside of another value; nothing at all is null. */
static enum status
read_inside(struct reader *r, const struct cql_type *type, bool is_key, struct cql_value *ret)
{
	struct str text, bytes;

	TRY(step_count(1));
	*ret = CQL_VALUE_NULL;
	skip_spaces(r);
	if (take(r, '\'')) {
		if (type->kind >= CQL_NATIVE_COUNT)
			return fail(r);
		TRY(take_quoted(r, &text));
	} else if (type->kind >= CQL_NATIVE_COUNT) {
		/* A null among fields is followed by what ends it. */
		if (!r->rest.len || is_one_of(r->rest.ptr[0], ",])}"))
			return STATUS_OK;
		TRY(read_elements(r, type, &bytes));
		*ret = CQL_VALUE(bytes);
		return STATUS_OK;
	} else {
		text = take_word(r, is_key, type);
		if (!text.len)
			return STATUS_OK;
	}
	TRY(native_of_text(r->q, type, text, &bytes));
	*ret = CQL_VALUE(bytes);
	return STATUS_OK;
}

/* An element of a list or set, or a key and a value of a map. */
static enum status
read_element(struct reader *r, const struct cql_type *type, struct buf *out)
{
	struct cql_value v;

	for (size_t i = 0; i < type->count; i++) {
		if (i && !take(r, ':'))
			return fail(r);
		TRY(read_inside(r, type->args[i], type->kind == CQL_TYPE_MAP && !i, &v));
		if (v.presence != CQL_SET)
			return fail(r);
		cql_element_put(out, v);
	}
	return STATUS_OK;
}

static enum status
read_collection(struct reader *r, const struct cql_type *type, struct buf *out)
{
	char close = brackets[type->kind - CQL_TYPE_LIST][1];
	size_t count = 0;

	cql_count_put(out, 0);
	if (take(r, close))
		return STATUS_OK;
	do {
		if (++count > CQL_ELEMENTS)
			return fail(r);
		TRY(read_element(r, type, out));
	} while (take(r, ','));
	if (!take(r, close))
		return fail(r);
	TRY(buf_status(out));
	big_endian_put_32(out->ptr, (uint32_t)count);
	return STATUS_OK;
}

/* The number of the field that comes next; of a tuple its place. */
static enum status
read_field_name(struct reader *r, const struct cql_type *type, size_t at, size_t *ret)
{
	struct str name;

	*ret = at;
	if (type->kind == CQL_TYPE_TUPLE)
		return at < type->count ? STATUS_OK : fail(r);
	if (take(r, '\''))
		TRY(take_quoted(r, &name));
	else
		name = take_word(r, true, NULL);
	if (!take(r, ':'))
		return fail(r);
	for (*ret = 0; *ret < type->count; ++*ret)
		if (str_eq(type->fields[*ret], name))
			return STATUS_OK;
	return fail(r);
}

/* Fields that are not named, or are left out at the end, are null. */
static enum status
read_fields(struct reader *r, const struct cql_type *type, struct buf *out)
{
	struct cql_value *fields = arena_alloc(r->q->arena, (type->count + 1) * sizeof(*fields));
	char close = brackets[type->kind - CQL_TYPE_LIST][1];
	size_t at = 0, field;

	if (!fields)
		return STATUS_LIMIT;
	for (size_t i = 0; i < type->count; i++)
		fields[i] = CQL_VALUE_NULL;
	if (!take(r, close)) {
		do {
			TRY(read_field_name(r, type, at++, &field));
			if (fields[field].presence == CQL_SET)
				return fail(r);
			TRY(read_inside(r, type->args[field], false, &fields[field]));
		} while (take(r, ','));
		if (!take(r, close))
			return fail(r);
	}
	for (size_t i = 0; i < type->count; i++)
		cql_element_put(out, fields[i]);
	return STATUS_OK;
}

static enum status
read_elements(struct reader *r, const struct cql_type *type, struct str *ret)
{
	AUTO(buf_release) struct buf out = cql_buf(r->q, arena_limit_bytes(r->q->arena));

	if (!take(r, brackets[type->kind - CQL_TYPE_LIST][0]))
		return fail(r);
	if (has_fields(type))
		TRY(read_fields(r, type, &out));
	else
		TRY(read_collection(r, type, &out));
	return buf_copy(&out, r->q->arena, ret);
}

static enum status
read_whole(struct cql *q, const struct cql_type *type, struct str text, struct str *ret)
{
	struct reader r = { .q = q, .rest = text, .type = type, .text = text };

	if (type->kind < CQL_NATIVE_COUNT)
		return native_of_text(q, type, text, ret);
	TRY(read_elements(&r, type, ret));
	skip_spaces(&r);
	return r.rest.len ? fail(&r) : STATUS_OK;
}

enum status
cql_copy_read(struct cql *q, const struct cql_type *type, struct str text, struct str *ret)
{
	struct str bytes;

	if (type->kind >= CQL_TYPE_CUSTOM)
		return cql_fail(q, CQL_E_CUSTOM_TYPE, type->name);
	TRY(step_count_bytes(text.len));
	TRY(read_whole(q, type, text, &bytes));
	TRY(cql_value_check(q, type, bytes));
	return cql_value_normalize(q, type, bytes, ret);
}

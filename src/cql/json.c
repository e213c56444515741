#include "cql/json.h"

#include <math.h>

#include "cql/number.h"
#include "cql/time.h"
#include "doc/json_value.h"
#include "loop/step.h"

/* ---- Writing ---- */

static void
print_quoted(struct buf *out, const struct cql_type *type, struct cql_value v)
{
	buf_append_byte(out, '"');
	cql_value_print(out, type, v, CQL_FORM_CAST);
	buf_append_byte(out, '"');
}

static void
print_native(struct buf *out, const struct cql_type *type, struct cql_value v)
{
	switch ((int)type->kind) {
	case CQL_TYPE_ASCII:
	case CQL_TYPE_TEXT:
		json_write_str(out, v.bytes);
		break;
	case CQL_TYPE_JSONB:
		buf_append_str(out, v.bytes);
		break;
	case CQL_TYPE_TIMESTAMP:
		buf_append_byte(out, '"');
		cql_timestamp_print(out, cql_int_read(v.bytes), CQL_MOMENT_JSON);
		buf_append_byte(out, '"');
		break;
	case CQL_TYPE_DOUBLE:
		if (isfinite(cql_double_read(v.bytes)))
			cql_double_print(out, cql_double_read(v.bytes));
		else
			buf_append_cstr(out, "null");
		break;
	case CQL_TYPE_FLOAT:
		if (isfinite(cql_float_read(v.bytes)))
			cql_float_print(out, cql_float_read(v.bytes));
		else
			buf_append_cstr(out, "null");
		break;
	case CQL_TYPE_BLOB:
	case CQL_TYPE_DATE:
	case CQL_TYPE_TIME:
	case CQL_TYPE_DURATION:
	case CQL_TYPE_INET:
	case CQL_TYPE_UUID:
	case CQL_TYPE_TIMEUUID:
		print_quoted(out, type, v);
		break;
	default:
		cql_value_print(out, type, v, CQL_FORM_CAST);
		break;
	}
}

/* A member's name is a text: JSON of another kind goes into one. */
static void
print_key(struct buf *out, const struct cql_type *type, struct cql_value v)
{
	size_t begin = out->len;
	struct buf json;

	cql_json_print(out, type, v);
	if (buf_status(out) != STATUS_OK || out->ptr[begin] == '"')
		return;
	json = BUF_INIT_OF(out->max_bytes, out->part);
	buf_append(&json, out->ptr + begin, out->len - begin);
	out->len = begin;
	if (buf_status(&json) == STATUS_OK)
		json_write_str(out, buf_str(&json));
	else
		out->failed = buf_status(&json);
	buf_release(&json);
}

static void
print_elements(struct buf *out, const struct cql_type *type, struct str bytes)
{
	bool fields = type->kind == CQL_TYPE_TUPLE || type->kind == CQL_TYPE_UDT;
	bool object = type->kind == CQL_TYPE_MAP || type->kind == CQL_TYPE_UDT;
	struct cql_elements e;
	struct cql_value v;

	buf_append_byte(out, object ? '{' : '[');
	cql_elements_init(&e, type, bytes);
	for (size_t i = 0;; i++) {
		bool key = type->kind == CQL_TYPE_MAP && i % 2 == 0;

		if (!cql_elements_next(&e, &v)) {
			if (!fields || i >= type->count)
				break;
			v = CQL_VALUE_NULL;
		}
		if (i)
			buf_append_cstr(out, type->kind == CQL_TYPE_MAP && !key ? ": " : ", ");
		if (type->kind == CQL_TYPE_UDT) {
			cql_json_print_name(out, type->fields[i]);
			buf_append_cstr(out, ": ");
		}
		if (key)
			print_key(out, type->args[0], v);
		else
			cql_json_print(out, type->args[fields ? i : i % type->count], v);
	}
	buf_append_byte(out, object ? '}' : ']');
}

void
cql_json_print(struct buf *out, const struct cql_type *type, struct cql_value v)
{
	if (v.presence != CQL_SET || type->kind >= CQL_TYPE_CUSTOM)
		buf_append_cstr(out, "null");
	else if (type->kind >= CQL_NATIVE_COUNT)
		print_elements(out, type, v.bytes);
	else if (!v.bytes.len && type->kind != CQL_TYPE_BLOB)
		buf_append_cstr(out, "\"\"");
	else
		print_native(out, type, v);
}

void
cql_json_print_name(struct buf *out, struct str name)
{
	bool upper = false;
	struct buf quoted;

	for (size_t i = 0; i < name.len; i++)
		upper = upper || (name.ptr[i] >= 'A' && name.ptr[i] <= 'Z');
	if (!upper) {
		json_write_str(out, name);
		return;
	}
	quoted = BUF_INIT_OF(out->max_bytes, out->part);
	buf_append_byte(&quoted, '"');
	buf_append_str(&quoted, name);
	buf_append_byte(&quoted, '"');
	if (buf_status(&quoted) == STATUS_OK)
		json_write_str(out, buf_str(&quoted));
	else
		out->failed = buf_status(&quoted);
	buf_release(&quoted);
}

/* ---- Reading ---- */

/* Java's name of what a JSON value becomes, which Cassandra's errors show. */
static struct str
java_name(const struct json_value *v)
{
	int64_t n;

	switch ((int)v->kind) {
	case JSON_STRING:
		return STR("String");
	case JSON_NUMBER:
		if (!v->is_integer)
			return STR("Double");
		if (!str_to_i64(v->text, &n))
			return STR("BigInteger");
		return n == (int32_t)n ? STR("Integer") : STR("Long");
	case JSON_TRUE:
	case JSON_FALSE:
		return STR("Boolean");
	case JSON_ARRAY_BEGIN:
		return STR("ArrayList");
	default:
		return STR("LinkedHashMap");
	}
}

static enum status
expected(struct cql *q, const char *what, const struct json_value *v)
{
	return cql_fail(q, CQL_E_JSON_EXPECTED, str_from_cstr(what), java_name(v),
			v->kind == JSON_STRING ? v->string : v->text);
}

/* What Cassandra expects for a native type. */
static const char *
expectation(enum cql_type_kind kind)
{
	static const char *const texts[CQL_NATIVE_COUNT] = {
		[CQL_TYPE_ASCII] = "an ascii string",
		[CQL_TYPE_BIGINT] = "a bigint value",
		[CQL_TYPE_BLOB] = "a blob string",
		[CQL_TYPE_BOOLEAN] = "a boolean value",
		[CQL_TYPE_COUNTER] = "a bigint value",
		[CQL_TYPE_DATE] = "a string representation of a date value",
		[CQL_TYPE_DECIMAL] = "a decimal value",
		[CQL_TYPE_DOUBLE] = "a double value",
		[CQL_TYPE_DURATION] = "a string representation of a duration",
		[CQL_TYPE_FLOAT] = "a float value",
		[CQL_TYPE_INET] = "a string representation of an inet value",
		[CQL_TYPE_INT] = "an int value",
		[CQL_TYPE_JSONB] = "a JSON value",
		[CQL_TYPE_SMALLINT] = "a short value",
		[CQL_TYPE_TEXT] = "a UTF-8 string",
		[CQL_TYPE_TIME] = "a string representation of a time value",
		[CQL_TYPE_TIMESTAMP] = "a long or a datestring representation of a date value",
		[CQL_TYPE_TIMEUUID] = "a string representation of a timeuuid",
		[CQL_TYPE_TINYINT] = "a byte value",
		[CQL_TYPE_UUID] = "a uuid",
		[CQL_TYPE_VARINT] = "a varint value",
	};

	return texts[kind];
}

static bool
takes_number(enum cql_type_kind kind, bool is_integer)
{
	switch ((int)kind) {
	case CQL_TYPE_DECIMAL:
	case CQL_TYPE_DOUBLE:
	case CQL_TYPE_FLOAT:
		return true;
	case CQL_TYPE_BIGINT:
	case CQL_TYPE_COUNTER:
	case CQL_TYPE_INT:
	case CQL_TYPE_SMALLINT:
	case CQL_TYPE_TINYINT:
	case CQL_TYPE_VARINT:
	case CQL_TYPE_TIMESTAMP:
		return is_integer;
	default:
		return false;
	}
}

static enum status
read_native(struct cql *q, const struct cql_type *type, const struct json_value *v, struct str *ret)
{
	if (type->kind == CQL_TYPE_JSONB)
		return cql_jsonb_normalize(q, v->text, ret);
	if (v->kind == JSON_NUMBER && takes_number(type->kind, v->is_integer))
		return cql_value_from_text(q, type, v->text, ret);
	if (type->kind == CQL_TYPE_BOOLEAN && (v->kind == JSON_TRUE || v->kind == JSON_FALSE))
		return cql_int_put(q, v->kind == JSON_TRUE, 1, ret);
	if (v->kind != JSON_STRING)
		return expected(q, expectation(type->kind), v);
	if (type->kind == CQL_TYPE_BLOB && !str_starts_with(v->string, STR("0x")))
		return cql_fail(q, CQL_E_BAD_BLOB,
				STR("String representation of blob is missing 0x prefix"));
	/* "" is the value that is empty, where a type has it. */
	if (!v->string.len && cql_type_takes_empty(type)) {
		*ret = STR("");
		return STATUS_OK;
	}
	return cql_value_from_text(q, type, v->string, ret);
}

static enum status read_value(struct cql *q, const struct cql_type *type,
			      const struct json_value *v, struct cql_value *ret);

static enum status
read_array(struct cql *q, const struct cql_type *type, const struct json_value *v, struct buf *out)
{
	struct str name = type->kind == CQL_TYPE_SET ? STR("set") : STR("list");
	bool tuple = type->kind == CQL_TYPE_TUPLE;
	struct json_value *items;
	struct cql_value element;
	size_t count;

	if (v->kind != JSON_ARRAY_BEGIN)
		return expected(q,
				tuple                        ? "a list representation of a tuple"
				: type->kind == CQL_TYPE_SET ? "a list (representing a set)"
							     : "a list",
				v);
	TRY(json_value_items(v, q->arena, &items, &count, q->err));
	if (tuple && count > type->count)
		return cql_fail(q, CQL_E_INVALID_VALUE, STR("Tuple contains extra items"));
	if (tuple && count < type->count)
		return cql_fail(q, CQL_E_INVALID_VALUE, STR("Tuple is missing items"));
	if (!tuple)
		cql_count_put(out, count);
	for (size_t i = 0; i < count; i++) {
		if (items[i].kind == JSON_NULL && !tuple)
			return cql_fail(q, CQL_E_JSON_NULL_ELEMENT, name);
		TRY(read_value(q, type->args[tuple ? i : 0], &items[i], &element));
		cql_element_put(out, element);
	}
	return STATUS_OK;
}

/* A key, which is a name: of a text type the name itself, of another one JSON inside of it. */
static enum status
read_key(struct cql *q, const struct cql_type *type, struct str name, struct cql_value *ret)
{
	struct json_value v = { .kind = JSON_STRING, .text = name, .string = name };

	if (type->kind == CQL_TYPE_JSONB || type->kind >= CQL_NATIVE_COUNT)
		return cql_json_read(q, type, name, ret);
	return read_value(q, type, &v, ret);
}

static enum status
read_map(struct cql *q, const struct cql_type *type, const struct json_value *v, struct buf *out)
{
	struct json_member *members;
	struct cql_value key, value;
	size_t count;

	if (v->kind != JSON_OBJECT_BEGIN)
		return expected(q, "a map", v);
	TRY(json_value_members(v, q->arena, &members, &count, q->err));
	cql_count_put(out, count);
	for (size_t i = 0; i < count; i++) {
		if (members[i].value.kind == JSON_NULL)
			return cql_fail(q, CQL_E_JSON_NULL_MAP, STR("value"));
		TRY(read_key(q, type->args[0], members[i].name, &key));
		if (key.presence != CQL_SET)
			return cql_fail(q, CQL_E_JSON_NULL_MAP, STR("key"));
		TRY(read_value(q, type->args[1], &members[i].value, &value));
		cql_element_put(out, key);
		cql_element_put(out, value);
	}
	return STATUS_OK;
}

/* A name as CQL has it: in lower case, unless it stands in quotes of its own. */
static enum status
fold_name(struct cql *q, struct str name, struct str *ret)
{
	char *folded;

	if (name.len >= 2 && name.ptr[0] == '"' && name.ptr[name.len - 1] == '"') {
		*ret = str_of(name.ptr + 1, name.len - 2);
		return STATUS_OK;
	}
	folded = arena_bytes(q->arena, name.len + 1);
	if (!folded)
		return STATUS_LIMIT;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		folded[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
	*ret = str_of(folded, name.len);
	return STATUS_OK;
}

static enum status
read_udt(struct cql *q, const struct cql_type *type, const struct json_value *v, struct buf *out)
{
	struct json_member *members;
	struct cql_value *values;
	size_t count;

	if (v->kind != JSON_OBJECT_BEGIN)
		return expected(q, "a map", v);
	TRY(json_value_members(v, q->arena, &members, &count, q->err));
	values = arena_alloc(q->arena, (type->count + 1) * sizeof(*values));
	if (!values)
		return STATUS_LIMIT;
	for (size_t i = 0; i < type->count; i++)
		values[i] = CQL_VALUE_NULL;
	for (size_t i = 0; i < count; i++) {
		size_t field = 0;
		struct str name;

		TRY(step_count(1 + (uint32_t)(type->count / 16)));
		TRY(fold_name(q, members[i].name, &name));
		while (field < type->count && !str_eq(type->fields[field], name))
			field++;
		if (field == type->count)
			return cql_fail(q, CQL_E_UDT_UNKNOWN_FIELD, name, type->name);
		TRY(read_value(q, type->args[field], &members[i].value, &values[field]));
	}
	for (size_t i = 0; i < type->count; i++)
		cql_element_put(out, values[i]);
	return STATUS_OK;
}

static enum status
read_container(struct cql *q, const struct cql_type *type, const struct json_value *v,
	       struct str *ret)
{
	struct buf out = cql_buf(q, arena_limit_bytes(q->arena));
	struct str bytes;
	enum status status;

	if (type->kind == CQL_TYPE_MAP)
		status = read_map(q, type, v, &out);
	else if (type->kind == CQL_TYPE_UDT)
		status = read_udt(q, type, v, &out);
	else
		status = read_array(q, type, v, &out);
	if (status == STATUS_OK)
		status = buf_copy(&out, q->arena, &bytes);
	buf_release(&out);
	TRY(status);
	return cql_value_normalize(q, type, bytes, ret);
}

static enum status
read_value(struct cql *q, const struct cql_type *type, const struct json_value *v,
	   struct cql_value *ret)
{
	struct json_value inner;
	struct str bytes;

	*ret = CQL_VALUE_NULL;
	if (v->kind == JSON_NULL && type->kind != CQL_TYPE_JSONB)
		return STATUS_OK;
	TRY(step_count(1));
	if (type->kind < CQL_NATIVE_COUNT) {
		TRY(read_native(q, type, v, &bytes));
		*ret = CQL_VALUE(bytes);
		return STATUS_OK;
	}
	/* A container may stand in a string, as JSON. */
	if (v->kind == JSON_STRING) {
		if (json_value_read(v->string, q->arena, &inner, NULL) != STATUS_OK)
			return expected(q, "a map", v);
		if (inner.kind == JSON_STRING)
			return expected(q, "a list", v);
		v = &inner;
	}
	TRY(read_container(q, type, v, &bytes));
	*ret = CQL_VALUE(bytes);
	return STATUS_OK;
}

enum status
cql_json_read(struct cql *q, const struct cql_type *type, struct str json, struct cql_value *ret)
{
	struct json_value v;
	struct err err = { 0 };
	enum status status = json_value_read(json, q->arena, &v, &err);

	if (status == STATUS_LIMIT || status == STATUS_NOMEM || status == STATUS_CANCELLED ||
	    status == STATUS_STEPS)
		return status;
	if (status != STATUS_OK)
		return cql_fail(q, CQL_E_JSON_VALUE, cql_type_text(q, type),
				str_from_cstr(err.text));
	return read_value(q, type, &v, ret);
}

enum status
cql_json_members(struct cql *q, struct str json, struct cql_json_member **ret, size_t *ret_count)
{
	struct json_member *members;
	struct cql_json_member *list;
	struct err err = { 0 };
	size_t count;
	enum status status = json_read_members(json, q->arena, &members, &count, &err);

	if (status == STATUS_LIMIT || status == STATUS_NOMEM || status == STATUS_CANCELLED ||
	    status == STATUS_STEPS)
		return status;
	if (status != STATUS_OK)
		return cql_fail(q, CQL_E_JSON_DECODE, str_from_cstr(err.text), json);
	list = arena_alloc(q->arena, (count + 1) * sizeof(*list));
	if (!list)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		TRY(fold_name(q, members[i].name, &list[i].name));
		list[i].json = members[i].value.text;
	}
	*ret = list;
	*ret_count = count;
	return STATUS_OK;
}

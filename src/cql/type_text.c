#include "cql/type_int.h"

static const char *
container_name(enum cql_type_kind kind)
{
	return kind == CQL_TYPE_LIST  ? "list"
	       : kind == CQL_TYPE_SET ? "set"
	       : kind == CQL_TYPE_MAP ? "map"
				      : "tuple";
}

void
cql_type_print(struct buf *out, const struct cql_type *type)
{
	if (type->kind < CQL_NATIVE_COUNT) {
		buf_append_cstr(out, cql_natives[type->kind].name);
		return;
	}
	if (type->kind == CQL_TYPE_CUSTOM) {
		cql_text_print(out, type->name);
		return;
	}
	if (type->kind == CQL_TYPE_EMPTY) {
		buf_append_cstr(out, "'" CQL_MARSHAL "EmptyType'");
		return;
	}
	if (type->frozen)
		buf_append_cstr(out, "frozen<");
	if (type->kind == CQL_TYPE_UDT) {
		cql_name_print(out, type->name);
	} else {
		buf_append_cstr(out, container_name(type->kind));
		for (size_t i = 0; i < type->count; i++) {
			buf_append_cstr(out, i ? ", " : "<");
			cql_type_print(out, type->args[i]);
		}
		buf_append_cstr(out, ">");
	}
	if (type->frozen)
		buf_append_cstr(out, ">");
}

struct str
cql_type_text(struct cql *q, const struct cql_type *type)
{
	struct buf out = cql_buf(q, CQL_STATEMENT_BYTES);
	struct str text;

	cql_type_print(&out, type);
	if (buf_copy(&out, q->arena, &text) != STATUS_OK)
		text = STR("?");
	buf_release(&out);
	return text;
}

static void
print_udt_class(struct buf *out, const struct cql_type *type)
{
	buf_append_cstr(out, "UserType(");
	buf_append_str(out, type->keyspace);
	buf_append_byte(out, ',');
	buf_append_hex(out, type->name);
	for (size_t i = 0; i < type->count; i++) {
		buf_append_byte(out, ',');
		buf_append_hex(out, type->fields[i]);
		buf_append_byte(out, ':');
		cql_type_print_class(out, type->args[i]);
	}
	buf_append_byte(out, ')');
}

void
cql_type_print_class(struct buf *out, const struct cql_type *type)
{
	static const char *const names[] = { "ListType", "SetType", "MapType", "TupleType" };
	/* Tuples are frozen, and do not say so. */
	bool frozen = type->frozen && type->kind != CQL_TYPE_TUPLE;

	if (type->kind == CQL_TYPE_CUSTOM) {
		buf_append_str(out, type->name);
		return;
	}
	if (frozen)
		buf_append_cstr(out, CQL_MARSHAL "FrozenType(");
	buf_append_cstr(out, CQL_MARSHAL);
	if (type->kind == CQL_TYPE_EMPTY) {
		buf_append_cstr(out, "EmptyType");
	} else if (type->kind < CQL_NATIVE_COUNT) {
		buf_append_cstr(out, cql_natives[type->kind].marshal);
	} else if (type->kind == CQL_TYPE_UDT) {
		print_udt_class(out, type);
	} else {
		buf_append_cstr(out, names[type->kind - CQL_TYPE_LIST]);
		for (size_t i = 0; i < type->count; i++) {
			buf_append_byte(out, i ? ',' : '(');
			cql_type_print_class(out, type->args[i]);
		}
		buf_append_byte(out, ')');
	}
	if (frozen)
		buf_append_byte(out, ')');
}

/* ---- Protocol ---- */

enum {
	OPTION_CUSTOM = 0x00,
	OPTION_TEXT = 0x0d,
	OPTION_LIST = 0x20,
	OPTION_MAP = 0x21,
	OPTION_SET = 0x22,
	OPTION_UDT = 0x30,
	OPTION_TUPLE = 0x31,
	VERSION_WITH_DURATION = 5,
};

unsigned
cql_type_option(const struct cql_type *type)
{
	static const unsigned containers[] = { OPTION_LIST, OPTION_SET, OPTION_MAP, OPTION_TUPLE,
					       OPTION_UDT };

	if (type->kind == CQL_TYPE_JSONB || type->kind >= CQL_TYPE_CUSTOM)
		return OPTION_CUSTOM;
	if (type->kind < CQL_NATIVE_COUNT)
		return cql_natives[type->kind].option;
	return containers[type->kind - CQL_TYPE_LIST];
}

static void
put_u16(struct buf *out, size_t n)
{
	buf_append_byte(out, (uint8_t)(n >> 8));
	buf_append_byte(out, (uint8_t)n);
}

static void
put_string(struct buf *out, struct str s)
{
	put_u16(out, s.len);
	buf_append_str(out, s);
}

static void
put_class(struct buf *out, const struct cql_type *type)
{
	size_t at = out->len;

	put_u16(out, 0);
	cql_type_print_class(out, type);
	if (buf_status(out) == STATUS_OK) {
		out->ptr[at] = (char)((out->len - at - 2) >> 8);
		out->ptr[at + 1] = (char)(out->len - at - 2);
	}
}

void
cql_type_put_option(struct buf *out, const struct cql_type *type, unsigned version)
{
	unsigned option = cql_type_option(type);

	if (type->kind == CQL_TYPE_JSONB) /* drivers do not know it: its values are texts */
		option = OPTION_TEXT;
	if (type->kind == CQL_TYPE_DURATION && version < VERSION_WITH_DURATION)
		option = OPTION_CUSTOM;
	put_u16(out, option);
	if (option == OPTION_CUSTOM) {
		put_class(out, type);
		return;
	}
	if (type->kind == CQL_TYPE_UDT) {
		put_string(out, type->keyspace);
		put_string(out, type->name);
	}
	if (type->kind == CQL_TYPE_UDT || type->kind == CQL_TYPE_TUPLE)
		put_u16(out, type->count);
	for (size_t i = 0; i < type->count; i++) {
		if (type->kind == CQL_TYPE_UDT)
			put_string(out, type->fields[i]);
		cql_type_put_option(out, type->args[i], version);
	}
}

#include "cql/statement.h"

/* Operators by their terms. */
static const char *
operator_of(enum cql_term_kind kind)
{
	switch ((int)kind) {
	case CQL_TERM_ADD:
		return " + ";
	case CQL_TERM_SUBTRACT:
		return " - ";
	case CQL_TERM_MULTIPLY:
		return " * ";
	case CQL_TERM_DIVIDE:
		return " / ";
	case CQL_TERM_MODULO:
		return " % ";
	case CQL_TERM_JSON:
		return "->";
	case CQL_TERM_JSON_TEXT:
		return "->>";
	default:
		return NULL;
	}
}

static void
print_args(struct buf *out, const struct cql_term *t)
{
	for (size_t i = 0; i < t->count; i++) {
		if (i)
			buf_append_cstr(out, t->kind == CQL_TERM_MAP && i % 2 ? ": " : ", ");
		if (t->kind == CQL_TERM_UDT) {
			cql_name_print(out, t->fields[i]);
			buf_append_cstr(out, ": ");
		}
		cql_term_print(out, t->args[i]);
	}
}

static void
print_function(struct buf *out, const struct cql_term *t)
{
	/* WRITETIME and TTL are no functions of a keyspace. */
	bool plain = str_eq(t->text, STR("ttl")) || str_eq(t->text, STR("writetime"));

	if (!plain) {
		cql_name_print(out, t->keyspace.ptr ? t->keyspace : STR("system"));
		buf_append_byte(out, '.');
	}
	buf_append_str(out, t->text);
	buf_append_byte(out, '(');
	print_args(out, t);
	buf_append_byte(out, ')');
}

static void
print_subscript(struct buf *out, const struct cql_term *t)
{
	cql_term_print(out, t->args[0]);
	buf_append_byte(out, '[');
	if (t->args[1])
		cql_term_print(out, t->args[1]);
	if (t->kind == CQL_TERM_SLICE) {
		buf_append_cstr(out, "..");
		if (t->args[2])
			cql_term_print(out, t->args[2]);
	}
	buf_append_byte(out, ']');
}

static void
print_with_type(struct buf *out, const struct cql_term *t)
{
	if (t->kind == CQL_TERM_HINT) {
		buf_append_byte(out, '(');
		cql_type_print(out, t->type);
		buf_append_byte(out, ')');
		cql_term_print(out, t->args[0]);
		return;
	}
	buf_append_cstr(out, "cast(");
	cql_term_print(out, t->args[0]);
	buf_append_cstr(out, " as ");
	cql_type_print(out, t->type);
	buf_append_byte(out, ')');
}

static void
print_enclosed(struct buf *out, const struct cql_term *t)
{
	const char *around = t->kind == CQL_TERM_LIST    ? "[]"
			     : t->kind == CQL_TERM_TUPLE ? "()"
							 : "{}";

	buf_append_byte(out, (uint8_t)around[0]);
	print_args(out, t);
	buf_append_byte(out, (uint8_t)around[1]);
}

void
cql_term_print(struct buf *out, const struct cql_term *t)
{
	const char *op = operator_of(t->kind);

	if (op) {
		cql_term_print(out, t->args[0]);
		buf_append_cstr(out, op);
		cql_term_print(out, t->args[1]);
		return;
	}
	switch ((int)t->kind) {
	case CQL_TERM_NULL:
		buf_append_cstr(out, "NULL");
		break;
	case CQL_TERM_STRING:
		cql_text_print(out, t->text);
		break;
	case CQL_TERM_MARKER:
		buf_append_cstr(out, t->text.ptr ? ":" : "?");
		buf_append_str(out, t->text);
		break;
	case CQL_TERM_LIST:
	case CQL_TERM_SET:
	case CQL_TERM_MAP:
	case CQL_TERM_TUPLE:
	case CQL_TERM_UDT:
		print_enclosed(out, t);
		break;
	case CQL_TERM_HINT:
	case CQL_TERM_CAST:
		print_with_type(out, t);
		break;
	case CQL_TERM_FUNCTION:
		print_function(out, t);
		break;
	case CQL_TERM_COUNT:
		buf_append_cstr(out, "count");
		break;
	case CQL_TERM_NEGATE:
		buf_append_byte(out, '-');
		cql_term_print(out, t->args[0]);
		break;
	case CQL_TERM_FIELD:
		cql_term_print(out, t->args[0]);
		buf_append_byte(out, '.');
		buf_append_str(out, t->text);
		break;
	case CQL_TERM_ELEMENT:
	case CQL_TERM_SLICE:
		print_subscript(out, t);
		break;
	default: /* constants and columns */
		buf_append_str(out, t->text);
		break;
	}
}

struct str
cql_term_text(struct cql *q, const struct cql_term *t)
{
	struct buf out = cql_buf(q, CQL_STATEMENT_BYTES);
	struct str text;

	cql_term_print(&out, t);
	if (buf_copy(&out, q->arena, &text) != STATUS_OK)
		text = STR("?");
	buf_release(&out);
	return text;
}

/* ---- Relations ---- */

struct str
cql_operator_text(enum cql_operator op)
{
	static const char *const texts[] = {
		[CQL_OP_EQ] = "=",
		[CQL_OP_LT] = "<",
		[CQL_OP_LE] = "<=",
		[CQL_OP_GT] = ">",
		[CQL_OP_GE] = ">=",
		[CQL_OP_NE] = "!=",
		[CQL_OP_IN] = "IN",
		[CQL_OP_NOT_IN] = "NOT IN",
		[CQL_OP_CONTAINS] = "CONTAINS",
		[CQL_OP_CONTAINS_KEY] = "CONTAINS KEY",
		[CQL_OP_LIKE] = "LIKE",
		[CQL_OP_IS_NOT_NULL] = "IS NOT NULL",
	};

	return str_from_cstr(texts[op]);
}

static void
print_left(struct buf *out, const struct cql_relation *r)
{
	bool enclosed = r->left == CQL_LEFT_TUPLE || r->left == CQL_LEFT_TOKEN;

	if (r->left == CQL_LEFT_TOKEN)
		buf_append_cstr(out, "token");
	if (enclosed)
		buf_append_byte(out, '(');
	for (size_t i = 0; i < r->column_count; i++) {
		if (i)
			buf_append_cstr(out, ", ");
		cql_name_print(out, r->columns[i]);
	}
	if (enclosed)
		buf_append_byte(out, ')');
	if (r->left == CQL_LEFT_ELEMENT) {
		buf_append_byte(out, '[');
		cql_term_print(out, r->key);
		buf_append_byte(out, ']');
	}
	if (r->left == CQL_LEFT_FIELD) {
		buf_append_byte(out, '.');
		cql_name_print(out, r->field);
	}
	for (size_t i = 0; i < r->path_count; i++) {
		bool last = i + 1 == r->path_count;

		buf_append_cstr(out, last && r->is_text ? "->>" : "->");
		cql_term_print(out, r->path[i]);
	}
}

void
cql_relation_print(struct buf *out, const struct cql_relation *r)
{
	print_left(out, r);
	buf_append_byte(out, ' ');
	buf_append_str(out, cql_operator_text(r->op));
	if (r->op == CQL_OP_IS_NOT_NULL)
		return;
	buf_append_cstr(out, r->is_list ? " (" : " ");
	for (size_t i = 0; i < r->value_count; i++) {
		if (i)
			buf_append_cstr(out, ", ");
		cql_term_print(out, r->values[i]);
	}
	if (r->is_list)
		buf_append_byte(out, ')');
}

/* ---- Statements ---- */

const struct cql_property *
cql_property_find(const struct cql_properties *p, struct str name)
{
	const struct cql_property *found = NULL;

	for (size_t i = 0; i < p->count; i++)
		if (str_eq(p->list[i].name, name))
			found = &p->list[i];
	return found;
}

void
cql_statement_print_safe(struct buf *out, const struct cql_statement *s)
{
	struct str password = s->role.password;
	bool has = (s->kind == CQL_CREATE_ROLE || s->kind == CQL_ALTER_ROLE) &&
		   s->role.has_password;
	const char *from;

	if (!has) {
		buf_append_str(out, s->text);
		return;
	}
	/* A password with quotes in it was copied: everything behind the name is left out then. */
	from = password.ptr >= s->text.ptr && password.ptr <= s->text.ptr + s->text.len
		       ? password.ptr
		       : s->role.name.ptr + s->role.name.len;
	if (from < s->text.ptr || from > s->text.ptr + s->text.len)
		from = s->text.ptr;
	buf_append(out, s->text.ptr, (size_t)(from - s->text.ptr));
	buf_append_cstr(out, "*** (the rest is not shown)");
}

/*
 * Any bytes as a statement of CQL, as a term that is then compiled and run, and as a type. What a
 * type is printed as reads as the same type. A value that was computed is one of its type.
 */
#include <stdlib.h>

#include "cql/expr.h"
#include "look.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	ARENA_BYTES = 16 * 1024 * 1024,
	MARKERS = 64,
};

/* Every statement has a kind, and its markers are counted. */
static void
check_statement(struct cql *q, struct str text)
{
	struct cql_statement *s;
	struct buf out = BUF_INIT(ARENA_BYTES);

	if (cql_parse(q, text, &s) != STATUS_OK)
		return;
	must(s->kind <= CQL_REFUSED && s->marker_count <= CQL_MARKERS);
	if (s->kind == CQL_SELECT)
		for (size_t i = 0; i < s->select.where.count; i++)
			cql_relation_print(&out, &s->select.where.list[i]);
	cql_statement_print_safe(&out, s);
	buf_release(&out);
}

static bool
any_column(void *arg, struct str name, struct cql_known_column *ret)
{
	unsigned kind = name.len ? (uint8_t)name.ptr[0] % CQL_NATIVE_COUNT : 0;

	(void)arg;
	*ret = (struct cql_known_column){ .index = kind, .type = &cql_native_types[kind] };
	return true;
}

static enum status
no_value(void *arg, struct cql *q, unsigned column, struct cql_value *ret)
{
	(void)arg;
	(void)q;
	(void)column;
	*ret = CQL_VALUE_NULL;
	return STATUS_OK;
}

static enum status
no_cell(void *arg, struct cql *q, unsigned column, enum cql_cell_part part, struct cql_value *ret)
{
	(void)part;
	return no_value(arg, q, column, ret);
}

static void
check_run(struct cql *q, const struct cql_term *t)
{
	struct cql_marker markers[MARKERS] = { 0 };
	struct cql_value values[MARKERS] = { 0 }, v;
	struct cql_scope scope = { .column = any_column,
				   .markers = markers,
				   .marker_count = MARKERS };
	struct cql_env env = { .markers = values,
			       .marker_count = MARKERS,
			       .get = no_value,
			       .cell = no_cell,
			       .now_us = 1700000000000000 };
	struct buf out = BUF_INIT(ARENA_BYTES);
	struct cql_expr *e;

	if (cql_compile_selector(q, &scope, t, &e) == STATUS_OK &&
	    cql_run(e, q, &env, &v) == STATUS_OK) {
		if (v.presence == CQL_SET)
			must(cql_value_check(q, cql_expr_type(e), v.bytes) == STATUS_OK);
		cql_value_print(&out, cql_expr_type(e), v, CQL_FORM_LITERAL);
	}
	buf_release(&out);
}

static void
check_term(struct cql *q, struct str text)
{
	struct cql_term *t;

	if (cql_parse_term(q, text, &t) != STATUS_OK)
		return;
	must(t->height <= CQL_DEPTH && t->at + t->length <= text.len);
	must(cql_term_text(q, t).len > 0 || t->kind == CQL_TERM_COLUMN);
	check_run(q, t);
}

static void
check_type(struct cql *q, struct str text)
{
	const struct cql_type *type, *again;
	struct buf out = BUF_INIT(ARENA_BYTES);

	if (cql_type_parse(q, text, &type) != STATUS_OK)
		return;
	must(cql_type_parse(q, cql_type_text(q, type), &again) == STATUS_OK);
	must(str_eq(cql_type_text(q, type), cql_type_text(q, again)));
	if (type->resolved) {
		must(cql_type_same_bytes(type, again));
		cql_type_put_option(&out, type, 4);
	}
	(void)(cql_type_check(q, type) == STATUS_OK);
	buf_release(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	struct arena *arena = arena_new(ARENA_BYTES);
	struct err err = { 0 };
	struct cql q = { .arena = arena, .err = &err };

	check_statement(&q, text);
	check_term(&q, text);
	check_type(&q, text);
	arena_free(arena);
	return 0;
}

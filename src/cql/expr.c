#include <stdio.h>

#include "cql/expr_int.h"

/*
 * A term is compiled for a type that is wanted (compile_for), or where none is known, for the type
 * that it has by itself (compile_free). Markers, NULL and literals of these have no type by
 * themselves: then compile_free() gives no expression and changes nothing, so that the term can be
 * compiled once more when its type is known.
 */

static enum status compile_free(struct cql *q, struct cql_scope *s, const struct cql_term *t,
				struct cql_expr **ret);
static enum status compile_for(struct cql *q, struct cql_scope *s, const struct cql_term *t,
			       const struct cql_type *type, struct str name, struct cql_expr **ret);

static enum status
new_expr(struct cql *q, enum cql_expr_kind kind, const struct cql_type *type, size_t count,
	 struct cql_expr **ret)
{
	struct cql_expr *e = arena_zalloc(q->arena, sizeof(*e));

	if (!e)
		return STATUS_LIMIT;
	e->kind = kind;
	e->type = type;
	e->count = count;
	if (count) {
		e->args = arena_zalloc(q->arena, count * sizeof(struct cql_expr *));
		if (!e->args)
			return STATUS_LIMIT;
	}
	*ret = e;
	return STATUS_OK;
}

/* "value(l)". */
static enum status
name_of(struct cql *q, const char *what, struct str of, struct str *ret)
{
	*ret = arena_printf(q->arena, "%s(%.*s)", what, STR_ARG(of));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
resolve_type(struct cql *q, struct cql_scope *s, const struct cql_type *type,
	     const struct cql_type **ret)
{
	*ret = type;
	if (type->resolved)
		return STATUS_OK;
	if (!s->find_type)
		return cql_fail(q, CQL_E_UNKNOWN_TYPE, cql_type_text(q, type));
	return cql_type_resolve(q, s->keyspace, type, s->find_type, s->arg, ret);
}

/* ---- Constants ---- */

static const char *
constant_name(enum cql_term_kind kind)
{
	switch ((int)kind) {
	case CQL_TERM_STRING:
		return "STRING";
	case CQL_TERM_INTEGER:
		return "INTEGER";
	case CQL_TERM_FLOAT:
		return "FLOAT";
	case CQL_TERM_BOOLEAN:
		return "BOOLEAN";
	case CQL_TERM_UUID:
		return "UUID";
	case CQL_TERM_BLOB:
		return "HEX";
	default:
		return "DURATION";
	}
}

static bool
is_constant(const struct cql_term *t)
{
	return t->kind >= CQL_TERM_STRING && t->kind <= CQL_TERM_DURATION;
}

/* Which types a constant can be of. */
static bool
constant_fits(enum cql_term_kind kind, const struct cql_type *type)
{
	static const unsigned fits[] = {
		[CQL_TERM_STRING] = 1u << CQL_TYPE_ASCII | 1u << CQL_TYPE_TEXT |
				    1u << CQL_TYPE_INET | 1u << CQL_TYPE_DATE |
				    1u << CQL_TYPE_TIME | 1u << CQL_TYPE_TIMESTAMP |
				    1u << CQL_TYPE_JSONB | 1u << CQL_TYPE_DURATION,
		[CQL_TERM_INTEGER] = 1u << CQL_TYPE_BIGINT | 1u << CQL_TYPE_COUNTER |
				     1u << CQL_TYPE_DATE | 1u << CQL_TYPE_DECIMAL |
				     1u << CQL_TYPE_DOUBLE | 1u << CQL_TYPE_DURATION |
				     1u << CQL_TYPE_FLOAT | 1u << CQL_TYPE_INT |
				     1u << CQL_TYPE_SMALLINT | 1u << CQL_TYPE_TIME |
				     1u << CQL_TYPE_TIMESTAMP | 1u << CQL_TYPE_TINYINT |
				     1u << CQL_TYPE_VARINT,
		[CQL_TERM_FLOAT] = 1u << CQL_TYPE_DECIMAL | 1u << CQL_TYPE_DOUBLE |
				   1u << CQL_TYPE_FLOAT,
		[CQL_TERM_BOOLEAN] = 1u << CQL_TYPE_BOOLEAN,
		[CQL_TERM_UUID] = 1u << CQL_TYPE_UUID | 1u << CQL_TYPE_TIMEUUID,
		[CQL_TERM_BLOB] = 1u << CQL_TYPE_BLOB,
		[CQL_TERM_DURATION] = 1u << CQL_TYPE_DURATION,
	};

	return type->kind < CQL_NATIVE_COUNT && (fits[kind] >> type->kind & 1);
}

static enum status
compile_constant(struct cql *q, const struct cql_term *t, const struct cql_type *type,
		 struct str name, struct cql_expr **ret)
{
	struct str bytes;

	if (!constant_fits(t->kind, type))
		return cql_fail(q, CQL_E_INVALID_CONSTANT, str_from_cstr(constant_name(t->kind)),
				t->text, name, cql_type_text(q, type));
	/* '' is the value that is empty, of types whose texts have another form. */
	if (t->kind == CQL_TERM_STRING && !t->text.len && type->kind != CQL_TYPE_JSONB &&
	    cql_type_takes_empty(type))
		bytes = STR("");
	else
		TRY(cql_value_from_text(q, type, t->text, &bytes));
	TRY(new_expr(q, CQL_EXPR_CONSTANT, type, 0, ret));
	(*ret)->value = CQL_VALUE(bytes);
	return STATUS_OK;
}

/* The type that an integer has by itself: the first of int, bigint, varint that holds it. */
static const struct cql_type *
integer_type(struct str text)
{
	int64_t n;

	if (!str_to_i64(text, &n))
		return CQL_NATIVE(VARINT);
	return n == (int32_t)n ? CQL_NATIVE(INT) : CQL_NATIVE(BIGINT);
}

static const struct cql_type *
constant_type(const struct cql_term *t)
{
	switch ((int)t->kind) {
	case CQL_TERM_STRING:
		return CQL_NATIVE(TEXT);
	case CQL_TERM_INTEGER:
		return integer_type(t->text);
	case CQL_TERM_FLOAT:
		return CQL_NATIVE(DOUBLE);
	case CQL_TERM_BOOLEAN:
		return CQL_NATIVE(BOOLEAN);
	case CQL_TERM_UUID:
		return CQL_NATIVE(UUID);
	case CQL_TERM_BLOB:
		return CQL_NATIVE(BLOB);
	default:
		return CQL_NATIVE(DURATION);
	}
}

/* ---- Literals ---- */

/* {} may be an empty map or user type, too. */
static bool
literal_fits(const struct cql_term *t, const struct cql_type *type)
{
	switch ((int)t->kind) {
	case CQL_TERM_LIST:
		return type->kind == CQL_TYPE_LIST;
	case CQL_TERM_SET:
		return type->kind == CQL_TYPE_SET ||
		       (!t->count && (type->kind == CQL_TYPE_MAP || type->kind == CQL_TYPE_UDT));
	case CQL_TERM_MAP:
		return type->kind == CQL_TYPE_MAP;
	case CQL_TERM_TUPLE:
		return type->kind == CQL_TYPE_TUPLE;
	default:
		return type->kind == CQL_TYPE_UDT;
	}
}

/* False for a constant or a literal that is none of the type by what it looks like. */
static bool
could_be(const struct cql_term *t, const struct cql_type *type)
{
	if (is_constant(t))
		return constant_fits(t->kind, type);
	if (t->kind < CQL_TERM_LIST || t->kind > CQL_TERM_UDT)
		return true;
	if (t->kind == CQL_TERM_TUPLE && t->count == 1 && type->kind != CQL_TYPE_TUPLE)
		return could_be(t->args[0], type);
	if (!literal_fits(t, type) || (t->kind == CQL_TERM_TUPLE && t->count > type->count))
		return false;
	if (t->kind == CQL_TERM_UDT)
		return true;
	for (size_t i = 0; i < t->count; i++)
		if (!could_be(t->args[i], type->args[i % type->count]))
			return false;
	return true;
}

/* An element of a literal for `of`; `error` is that it is of another type. */
static enum status
compile_element(struct cql *q, struct cql_scope *s, const struct cql_term *t,
		const struct cql_type *type, enum cql_error error, struct str of, struct str name,
		struct cql_expr **ret)
{
	if (t->kind == CQL_TERM_NULL)
		return cql_fail(q, CQL_E_NULL_IN_COLLECTION);
	if (!could_be(t, type))
		return cql_fail(q, error, of, cql_term_text(q, t), cql_type_text(q, type));
	return compile_for(q, s, t, type, name, ret);
}

static enum cql_error
element_error(const struct cql_type *type, size_t i)
{
	if (type->kind == CQL_TYPE_MAP)
		return i % 2 ? CQL_E_MAP_VALUE : CQL_E_MAP_KEY;
	return type->kind == CQL_TYPE_LIST ? CQL_E_LIST_ELEMENT : CQL_E_SET_ELEMENT;
}

static enum status
compile_collection(struct cql *q, struct cql_scope *s, const struct cql_term *t,
		   const struct cql_type *type, struct str name, struct cql_expr **ret)
{
	struct str names[2];

	TRY(new_expr(q, CQL_EXPR_ELEMENTS, type, t->count, ret));
	TRY(name_of(q, type->kind == CQL_TYPE_MAP ? "key" : "value", name, &names[0]));
	TRY(name_of(q, "value", name, &names[1]));
	for (size_t i = 0; i < t->count; i++)
		TRY(compile_element(q, s, t->args[i], type->args[i % type->count],
				    element_error(type, i), name, names[i % type->count],
				    &(*ret)->args[i]));
	return STATUS_OK;
}

static enum status
compile_tuple(struct cql *q, struct cql_scope *s, const struct cql_term *t,
	      const struct cql_type *type, struct str name, struct cql_expr **ret)
{
	char counts[2][24];

	if (t->count > type->count) {
		snprintf(counts[0], sizeof(counts[0]), "%zu", type->count);
		snprintf(counts[1], sizeof(counts[1]), "%zu", t->count);
		return cql_fail(q, CQL_E_TUPLE_COUNT, name, cql_type_text(q, type),
				str_from_cstr(counts[0]), str_from_cstr(counts[1]));
	}
	TRY(new_expr(q, CQL_EXPR_FIELDS, type, type->count, ret));
	for (size_t i = 0; i < t->count; i++) {
		struct str part = arena_printf(q->arena, "%.*s[%zu]", STR_ARG(name), i);

		if (!part.ptr)
			return STATUS_LIMIT;
		if (!could_be(t->args[i], type->args[i])) {
			snprintf(counts[0], sizeof(counts[0]), "%zu", i);
			return cql_fail(q, CQL_E_TUPLE_ELEMENT, name, str_from_cstr(counts[0]),
					cql_type_text(q, type->args[i]));
		}
		TRY(compile_for(q, s, t->args[i], type->args[i], part, &(*ret)->args[i]));
	}
	return STATUS_OK;
}

static enum status
compile_udt(struct cql *q, struct cql_scope *s, const struct cql_term *t,
	    const struct cql_type *type, struct str name, struct cql_expr **ret)
{
	TRY(new_expr(q, CQL_EXPR_FIELDS, type, type->count, ret));
	for (size_t i = 0; i < t->count; i++) {
		struct str part = arena_printf(q->arena, "%.*s.%.*s", STR_ARG(name),
					       STR_ARG(t->fields[i]));
		size_t field = 0;

		if (!part.ptr)
			return STATUS_LIMIT;
		while (field < type->count && !str_eq(type->fields[field], t->fields[i]))
			field++;
		if (field == type->count)
			return cql_fail(q, CQL_E_UDT_UNKNOWN_FIELD, t->fields[i], type->name);
		TRY(compile_for(q, s, t->args[i], type->args[field], part, &(*ret)->args[field]));
	}
	return STATUS_OK;
}

static enum status
compile_literal(struct cql *q, struct cql_scope *s, const struct cql_term *t,
		const struct cql_type *type, struct str name, struct cql_expr **ret)
{
	static const enum cql_error errors[] = {
		CQL_E_LIST_LITERAL,  CQL_E_SET_LITERAL, CQL_E_MAP_LITERAL,
		CQL_E_TUPLE_LITERAL, CQL_E_UDT_LITERAL,
	};

	if (!literal_fits(t, type))
		return cql_fail(q, errors[t->kind - CQL_TERM_LIST], name, cql_type_text(q, type));
	if (type->kind == CQL_TYPE_TUPLE)
		return compile_tuple(q, s, t, type, name, ret);
	if (type->kind == CQL_TYPE_UDT)
		return compile_udt(q, s, t, type, name, ret);
	return compile_collection(q, s, t, type, name, ret);
}

/* ---- Literals by themselves ---- */

/*
 * Compiles the elements into e->args, each for the type that it has by itself. With step 1 types[0]
 * becomes the type of the elements, with step 2, of a map, types[0] that of the keys and types[1]
 * that of the values: the type of the first that has one by itself; NULL if none has.
 */
static enum status
free_elements(struct cql *q, struct cql_scope *s, const struct cql_term *t, size_t step,
	      struct cql_expr *e, const struct cql_type *types[2])
{
	for (size_t i = 0; i < t->count; i++) {
		TRY(compile_free(q, s, t->args[i], &e->args[i]));
		if (e->args[i] && !types[i % step])
			TRY(cql_type_freeze(q, e->args[i]->type, &types[i % step]));
	}
	return STATUS_OK;
}

/* An element that compile_free() has compiled is kept if it has the type that was found. */
static enum status
free_collection(struct cql *q, struct cql_scope *s, const struct cql_term *t, struct cql_expr **ret)
{
	enum cql_type_kind kind = t->kind == CQL_TERM_MAP    ? CQL_TYPE_MAP
				  : t->kind == CQL_TERM_LIST ? CQL_TYPE_LIST
							     : CQL_TYPE_SET;
	size_t step = kind == CQL_TYPE_MAP ? 2 : 1;
	const struct cql_type *types[2] = { NULL, NULL };
	struct cql_expr *e;

	*ret = NULL;
	TRY(new_expr(q, CQL_EXPR_ELEMENTS, NULL, t->count, &e));
	TRY(free_elements(q, s, t, step, e, types));
	if (!types[0] || !types[step - 1])
		return STATUS_OK;
	e->type = cql_type_of(q, kind, true, types, step);
	if (!e->type)
		return STATUS_LIMIT;
	for (size_t i = 0; i < t->count; i++) {
		const struct cql_type *type = types[i % step];

		if (!e->args[i] || !cql_type_takes(type, e->args[i]->type, false))
			TRY(compile_element(q, s, t->args[i], type, element_error(e->type, i),
					    cql_term_text(q, t), cql_term_text(q, t), &e->args[i]));
	}
	*ret = e;
	return STATUS_OK;
}

static enum status
free_tuple(struct cql *q, struct cql_scope *s, const struct cql_term *t, struct cql_expr **ret)
{
	const struct cql_type **types = arena_alloc(q->arena, t->count * sizeof(struct cql_type *));
	struct cql_expr *e;

	*ret = NULL;
	if (t->count == 1) /* only parentheses */
		return compile_free(q, s, t->args[0], ret);
	if (!types)
		return STATUS_LIMIT;
	TRY(new_expr(q, CQL_EXPR_FIELDS, NULL, t->count, &e));
	for (size_t i = 0; i < t->count; i++) {
		TRY(compile_free(q, s, t->args[i], &e->args[i]));
		if (!e->args[i])
			return STATUS_OK;
		types[i] = e->args[i]->type;
	}
	e->type = cql_type_of(q, CQL_TYPE_TUPLE, true, types, t->count);
	*ret = e;
	return e->type ? STATUS_OK : STATUS_LIMIT;
}

/* ---- Arithmetic ---- */

/* An operation's error that tells its operands as they were written. */
static enum status
fail_operation(struct cql *q, enum cql_error error, const struct cql_term *t)
{
	return cql_fail(q, error, cql_arith_sign(t->kind), cql_term_text(q, t->args[0]),
			cql_term_text(q, t->args[t->count - 1]));
}

static enum status
call_operation(struct cql *q, const struct cql_term *t, struct cql_expr *left,
	       struct cql_expr *right, struct cql_expr **ret)
{
	const struct cql_type *type = cql_arith_type(t->kind, left->type,
						     right ? right->type : left->type);

	if (!type)
		return fail_operation(q, CQL_E_NO_OPERATION, t);
	TRY(new_expr(q, CQL_EXPR_CALL, type, right ? 2 : 1, ret));
	(*ret)->call = cql_arith_run;
	(*ret)->index = t->kind;
	(*ret)->name = cql_arith_sign(t->kind);
	(*ret)->args[0] = left;
	if (right)
		(*ret)->args[1] = right;
	return STATUS_OK;
}

static bool
is_operation(const struct cql_term *t)
{
	return t->kind >= CQL_TERM_NEGATE && t->kind <= CQL_TERM_MODULO;
}

/* Numbers and markers only, so that the wanted type may be the one to compute with. */
static bool
is_flexible(const struct cql_term *t)
{
	bool inner = is_operation(t) || (t->kind == CQL_TERM_TUPLE && t->count == 1);

	if (!inner)
		return t->kind == CQL_TERM_INTEGER || t->kind == CQL_TERM_FLOAT ||
		       t->kind == CQL_TERM_MARKER;
	for (size_t i = 0; i < t->count; i++)
		if (!is_flexible(t->args[i]))
			return false;
	return true;
}

/* A marker that has no type by a hint. */
static bool
is_marker(const struct cql_term *t)
{
	return t->kind == CQL_TERM_MARKER ||
	       (t->kind == CQL_TERM_TUPLE && t->count == 1 && is_marker(t->args[0]));
}

/* The type of an operand whose other one has a type. */
static const struct cql_type *
other_type(const struct cql_type *type, bool is_right)
{
	bool moment = type->kind == CQL_TYPE_TIMESTAMP || type->kind == CQL_TYPE_DATE;

	return moment && is_right ? CQL_NATIVE(DURATION) : type;
}

static enum status
free_operation(struct cql *q, struct cql_scope *s, const struct cql_term *t, struct cql_expr **ret)
{
	struct cql_expr *left, *right = NULL;

	*ret = NULL;
	TRY(compile_free(q, s, t->args[0], &left));
	if (t->kind == CQL_TERM_NEGATE)
		return left ? call_operation(q, t, left, NULL, ret) : STATUS_OK;
	TRY(compile_free(q, s, t->args[1], &right));
	if (!left && !right)
		return STATUS_OK;
	/* A number without a type does not give a marker one. */
	if ((!left && is_flexible(t->args[1])) || (!right && is_flexible(t->args[0])))
		return fail_operation(q, CQL_E_OPERATION_AMBIGUOUS, t);
	if (!left)
		TRY(compile_for(q, s, t->args[0], other_type(right->type, false), STR("arg0"),
				&left));
	if (!right)
		TRY(compile_for(q, s, t->args[1], other_type(left->type, true), STR("arg1"),
				&right));
	return call_operation(q, t, left, right, ret);
}

/* `? + 1d` for a moment. */
static enum status
moment_operation(struct cql *q, struct cql_scope *s, const struct cql_term *t,
		 const struct cql_type *type, struct str name, struct cql_expr **ret)
{
	struct cql_expr *left, *right;

	TRY(compile_for(q, s, t->args[0], type, name, &left));
	TRY(compile_for(q, s, t->args[1], CQL_NATIVE(DURATION), name, &right));
	return call_operation(q, t, left, right, ret);
}

static enum status
flexible_operation(struct cql *q, struct cql_scope *s, const struct cql_term *t,
		   const struct cql_type *type, struct str name, struct cql_expr **ret)
{
	struct cql_expr *left, *right = NULL;

	/* Only numbers of one byte give one: all others could be sums of several types. */
	if (t->kind != CQL_TERM_NEGATE && type->kind != CQL_TYPE_TINYINT &&
	    (is_marker(t->args[0]) || is_marker(t->args[1])))
		return fail_operation(q, CQL_E_OPERATION_AMBIGUOUS, t);
	TRY(compile_for(q, s, t->args[0], type, name, &left));
	if (t->kind != CQL_TERM_NEGATE)
		TRY(compile_for(q, s, t->args[1], type, name, &right));
	return call_operation(q, t, left, right, ret);
}

/* ---- Functions ---- */

static enum status
wrong_count(struct cql *q, const struct cql_term *t, size_t wanted)
{
	char counts[2][24];

	snprintf(counts[0], sizeof(counts[0]), "%zu", wanted);
	snprintf(counts[1], sizeof(counts[1]), "%zu", t->count);
	return cql_fail(q, CQL_E_ARGUMENT_COUNT, t->text, str_from_cstr(counts[0]),
			str_from_cstr(counts[1]));
}

static enum status
call(struct cql *q, const struct cql_term *t, cql_call *run, const struct cql_type *type,
     struct cql_expr *const *args, bool takes_null, struct cql_expr **ret)
{
	TRY(new_expr(q, CQL_EXPR_CALL, type, t->count, ret));
	(*ret)->call = run;
	(*ret)->name = t->text;
	(*ret)->takes_null = takes_null;
	for (size_t i = 0; i < t->count; i++)
		(*ret)->args[i] = args[i];
	return STATUS_OK;
}

/* A call of one argument of a known type. */
static enum status
call_one(struct cql *q, struct cql_scope *s, const struct cql_term *t, cql_call *run,
	 const struct cql_type *type, const struct cql_type *argument, struct cql_expr **ret)
{
	struct cql_expr *arg;

	if (t->count != 1)
		return wrong_count(q, t, 1);
	TRY(compile_for(q, s, t->args[0], argument, STR("arg0"), &arg));
	return call(q, t, run, type, &arg, false, ret);
}

static enum status
wrong_argument(struct cql *q, const struct cql_term *argument, size_t i, struct str function,
	       const struct cql_type *type)
{
	char number[24];

	snprintf(number, sizeof(number), "%zu", i);
	return cql_fail(q, CQL_E_ARGUMENT_TYPE, cql_term_text(q, argument), str_from_cstr(number),
			function, cql_type_text(q, type));
}

static enum status
compile_token(struct cql *q, struct cql_scope *s, const struct cql_term *t, struct cql_expr **ret)
{
	struct cql_expr **args = arena_zalloc(q->arena, (t->count + 1) * sizeof(struct cql_expr *));
	char counts[2][24];

	if (!args)
		return STATUS_LIMIT;
	if (t->count != s->partition_count) {
		snprintf(counts[0], sizeof(counts[0]), "%zu", s->partition_count);
		snprintf(counts[1], sizeof(counts[1]), "%zu", t->count);
		return cql_fail(q, CQL_E_TOKEN_ARGUMENTS, str_from_cstr(counts[0]),
				str_from_cstr(counts[1]));
	}
	for (size_t i = 0; i < t->count; i++) {
		TRY(compile_free(q, s, t->args[i], &args[i]));
		if (!args[i] || is_constant(t->args[i]))
			TRY(compile_for(q, s, t->args[i], s->partition[i], STR("partition key"),
					&args[i]));
		else if (!cql_type_takes(s->partition[i], args[i]->type, false))
			return wrong_argument(q, t->args[i], i, STR("system.token"),
					      s->partition[i]);
	}
	return call(q, t, cql_token_run, CQL_NATIVE(BIGINT), args, false, ret);
}

/* ttl() and writetime() of a column. */
static enum status
compile_cell(struct cql *q, struct cql_scope *s, const struct cql_term *t, struct cql_expr **ret)
{
	bool ttl = str_eq(t->text, STR("ttl"));
	struct cql_known_column column;
	const struct cql_term *of = t->count == 1 ? t->args[0] : NULL;

	if (!of || of->kind != CQL_TERM_COLUMN || !s->column)
		return cql_fail(q, CQL_E_WRITETIME_HERE, t->text);
	if (!s->column(s->arg, of->text, &column))
		return cql_fail(q, CQL_E_UNDEFINED_COLUMN, of->text, s->table);
	if (column.is_key)
		return cql_fail(q, CQL_E_WRITETIME_KEY, t->text, of->text);
	if (cql_type_is_multicell(column.type))
		return cql_fail(q, CQL_E_WRITETIME_COLLECTION, t->text,
				column.type->kind == CQL_TYPE_UDT ? STR("UDT") : STR("collection"),
				of->text);
	TRY(new_expr(q, CQL_EXPR_CELL, ttl ? CQL_NATIVE(INT) : CQL_NATIVE(BIGINT), 0, ret));
	(*ret)->index = column.index;
	(*ret)->part = ttl ? CQL_CELL_TTL : CQL_CELL_WRITETIME;
	return STATUS_OK;
}

/* How a function's argument is met. */
enum fit {
	FIT_NOT,
	FIT_WEAKLY,
	FIT_EXACTLY
};

static enum fit
argument_fit(const struct cql_term *t, const struct cql_expr *e, int wanted)
{
	const struct cql_type *type;

	if (wanted == CQL_ANY_TYPE)
		return e ? FIT_EXACTLY : FIT_NOT;
	type = &cql_native_types[wanted];
	if (!e)
		return t->kind == CQL_TERM_MARKER || t->kind == CQL_TERM_NULL ? FIT_WEAKLY
									      : FIT_NOT;
	if (cql_type_eq(type, e->type))
		return FIT_EXACTLY;
	if (is_constant(t))
		return constant_fits(t->kind, type) ? FIT_WEAKLY : FIT_NOT;
	return cql_type_takes(type, e->type, false) ? FIT_WEAKLY : FIT_NOT;
}

static enum fit
function_fit(const struct cql_function *f, const struct cql_term *t, struct cql_expr *const *free)
{
	enum fit fit = FIT_EXACTLY;

	if (f->count != t->count)
		return FIT_NOT;
	for (size_t i = 0; i < t->count; i++) {
		enum fit one = argument_fit(t->args[i], free[i], f->args[i]);

		fit = one < fit ? one : fit;
	}
	return fit;
}

/* "todate(timeuuid), todate(timestamp)". */
static struct str
signatures(struct cql *q, const struct cql_function *f, size_t count)
{
	struct buf out = cql_buf(q, CQL_STATEMENT_BYTES);
	struct str text;

	for (size_t i = 0; i < count; i++) {
		buf_append_cstr(&out, i ? ", system." : "system.");
		buf_append_cstr(&out, f[i].name);
		buf_append_byte(&out, '(');
		for (size_t a = 0; a < f[i].count; a++) {
			if (a)
				buf_append_cstr(&out, ", ");
			if (f[i].args[a] == CQL_ANY_TYPE)
				buf_append_cstr(&out, "any");
			else
				cql_type_print(&out, &cql_native_types[f[i].args[a]]);
		}
		buf_append_byte(&out, ')');
	}
	if (buf_copy(&out, q->arena, &text) != STATUS_OK)
		text = STR("?");
	buf_release(&out);
	return text;
}

/* NULL: it is STATUS_INVALID, and why was said. */
static const struct cql_function *
choose_function(struct cql *q, const struct cql_term *t, struct cql_expr *const *free)
{
	size_t count, weak = 0;
	const struct cql_function *f = cql_functions_of(t->text, &count), *found = NULL;

	for (size_t i = 0; i < count; i++) {
		enum fit fit = function_fit(&f[i], t, free);

		if (fit == FIT_EXACTLY)
			return &f[i];
		weak += fit == FIT_WEAKLY;
		if (fit == FIT_WEAKLY)
			found = &f[i];
	}
	if (weak == 1)
		return found;
	if (count == 1 && f->count == t->count && str_eq(t->text, STR("tojson"))) {
		(void)cql_fail(q, CQL_E_TO_JSON_HERE);
		return NULL;
	}
	if (weak > 1)
		(void)cql_fail(q, CQL_E_AMBIGUOUS_CALL, t->text, signatures(q, f, count));
	else if (count == 1 && f->count != t->count)
		(void)wrong_count(q, t, f->count);
	else
		(void)cql_fail(q, CQL_E_NO_OVERLOAD, t->text, signatures(q, f, count));
	return NULL;
}

static enum status
compile_scalar_function(struct cql *q, struct cql_scope *s, const struct cql_term *t,
			struct cql_expr **ret)
{
	struct cql_expr **args = arena_zalloc(q->arena, (t->count + 1) * sizeof(struct cql_expr *));
	const struct cql_function *f;

	if (!args)
		return STATUS_LIMIT;
	for (size_t i = 0; i < t->count; i++)
		TRY(compile_free(q, s, t->args[i], &args[i]));
	f = choose_function(q, t, args);
	if (!f)
		return STATUS_INVALID;
	for (size_t i = 0; i < t->count; i++) {
		const struct cql_type *type;

		if (f->args[i] == CQL_ANY_TYPE)
			continue;
		type = &cql_native_types[f->args[i]];
		if (!args[i] || !cql_type_takes(type, args[i]->type, false))
			TRY(compile_for(q, s, t->args[i], type, STR("arg0"), &args[i]));
	}
	return call(q, t, f->run, &cql_native_types[f->type], args, f->takes_null, ret);
}

/* ---- Aggregates ---- */

static bool
aggregate_kind(const struct cql_term *t, enum cql_aggregate_kind *ret)
{
	static const struct {
		const char *name;
		enum cql_aggregate_kind kind;
	} names[] = {
		{ "count", CQL_AGGREGATE_COUNT }, { "min", CQL_AGGREGATE_MIN },
		{ "max", CQL_AGGREGATE_MAX },     { "sum", CQL_AGGREGATE_SUM },
		{ "avg", CQL_AGGREGATE_AVG },
	};

	*ret = CQL_AGGREGATE_COUNT;
	if (t->kind == CQL_TERM_COUNT)
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (str_eq(t->text, str_from_cstr(names[i].name))) {
			*ret = names[i].kind;
			return true;
		}
	}
	return false;
}

static enum status
compile_aggregate(struct cql *q, struct cql_scope *s, const struct cql_term *t,
		  enum cql_aggregate_kind kind, struct cql_expr **ret)
{
	struct cql_aggregate *a = arena_zalloc(q->arena, sizeof(*a));
	struct cql_expr *argument = NULL;

	if (!a)
		return STATUS_LIMIT;
	if (!s->allows_aggregates)
		return cql_fail(q, CQL_E_AGGREGATE_HERE);
	if (t->kind != CQL_TERM_COUNT && t->count != 1)
		return wrong_count(q, t, 1);
	if (t->kind != CQL_TERM_COUNT) {
		s->allows_aggregates = false;
		enum status status = compile_free(q, s, t->args[0], &argument);
		s->allows_aggregates = true;

		if (status == STATUS_INVALID && cql_error_code(CQL_E_AGGREGATE_HERE) == q->code &&
		    t->args[0]->kind == CQL_TERM_FUNCTION && aggregate_kind(t->args[0], &a->kind))
			return cql_fail(q, CQL_E_AGGREGATE_NESTED);
		TRY(status);
		if (!argument)
			return cql_fail(q, CQL_E_CANNOT_INFER, cql_term_text(q, t->args[0]));
	}
	a->kind = kind;
	a->argument = argument;
	a->type = kind == CQL_AGGREGATE_COUNT ? CQL_NATIVE(BIGINT) : argument->type;
	if (kind >= CQL_AGGREGATE_SUM && !cql_type_is_number(a->type))
		return cql_fail(q, CQL_E_NO_OVERLOAD, t->text, STR("numbers"));
	if (kind >= CQL_AGGREGATE_SUM && a->type->kind == CQL_TYPE_COUNTER)
		a->type = CQL_NATIVE(BIGINT);
	TRY(arena_room(q->arena, &s->aggregates, s->aggregate_count, &s->aggregate_cap,
		       sizeof(struct cql_aggregate *)));
	TRY(new_expr(q, CQL_EXPR_AGGREGATE, a->type, 0, ret));
	(*ret)->index = (unsigned)s->aggregate_count;
	s->aggregates[s->aggregate_count++] = a;
	return STATUS_OK;
}

static enum status
compile_function(struct cql *q, struct cql_scope *s, const struct cql_term *t,
		 struct cql_expr **ret)
{
	enum cql_aggregate_kind kind;
	const struct cql_type *type;
	bool from_blob;
	size_t count;

	if (t->keyspace.ptr && !str_eq(t->keyspace, STR("system")))
		return cql_fail(q, CQL_E_UNKNOWN_FUNCTION, t->text);
	if (aggregate_kind(t, &kind))
		return compile_aggregate(q, s, t, kind, ret);
	if (str_eq(t->text, STR("token")))
		return compile_token(q, s, t, ret);
	if (str_eq(t->text, STR("ttl")) || str_eq(t->text, STR("writetime")))
		return compile_cell(q, s, t, ret);
	if (str_eq(t->text, STR("fromjson")))
		return cql_fail(q, CQL_E_FROM_JSON_TYPED);
	type = cql_blob_function(t->text, &from_blob);
	if (type)
		return call_one(q, s, t, cql_blob_run, from_blob ? type : CQL_NATIVE(BLOB),
				from_blob ? CQL_NATIVE(BLOB) : type, ret);
	if (!cql_functions_of(t->text, &count))
		return cql_fail(q, CQL_E_UNKNOWN_FUNCTION, t->text);
	return compile_scalar_function(q, s, t, ret);
}

/* CAST(? AS int): "system.castAsInt". */
static enum status
ambiguous_cast(struct cql *q, const struct cql_type *type)
{
	struct str to = cql_type_text(q, type);
	struct str name = arena_printf(q->arena, "system.castAs%c%.*s", to.ptr[0] - 'a' + 'A',
				       (int)(to.len - 1), to.ptr + 1);

	return name.ptr ? cql_fail(q, CQL_E_AMBIGUOUS_CALL, name, STR("any type")) : STATUS_LIMIT;
}

static enum status
compile_cast(struct cql *q, struct cql_scope *s, const struct cql_term *t, struct cql_expr **ret)
{
	const struct cql_type *type;
	struct cql_expr *inner;

	TRY(resolve_type(q, s, t->type, &type));
	TRY(compile_free(q, s, t->args[0], &inner));
	if (!inner && is_marker(t->args[0]))
		return ambiguous_cast(q, type);
	if (!inner)
		TRY(compile_for(q, s, t->args[0], type, cql_term_text(q, t->args[0]), &inner));
	if (cql_type_eq(type, inner->type)) {
		*ret = inner;
		return STATUS_OK;
	}
	if (!cql_cast_is_possible(type, inner->type))
		return cql_fail(q, CQL_E_NO_CAST, cql_type_text(q, inner->type),
				cql_type_text(q, type));
	return call(q, t, cql_cast_run, type, &inner, false, ret);
}

static enum status
compile_hint(struct cql *q, struct cql_scope *s, const struct cql_term *t, struct cql_expr **ret)
{
	const struct cql_type *type;

	TRY(resolve_type(q, s, t->type, &type));
	return compile_for(q, s, t->args[0], type, cql_term_text(q, t->args[0]), ret);
}

/* ---- Of a row ---- */

static enum status
compile_column(struct cql *q, struct cql_scope *s, const struct cql_term *t, struct cql_expr **ret)
{
	struct cql_known_column column;

	if (!s->column || !s->column(s->arg, t->text, &column))
		return cql_fail(q, CQL_E_UNDEFINED_COLUMN, t->text, s->table);
	TRY(new_expr(q, CQL_EXPR_COLUMN, column.type, 0, ret));
	(*ret)->index = column.index;
	return STATUS_OK;
}

static enum status
compile_field(struct cql *q, struct cql_scope *s, const struct cql_term *t, struct cql_expr **ret)
{
	struct cql_expr *of;
	size_t field = 0;

	TRY(compile_free(q, s, t->args[0], &of));
	if (!of || of->type->kind != CQL_TYPE_UDT)
		return cql_fail(q, CQL_E_NOT_A_UDT, cql_term_text(q, t->args[0]),
				of ? cql_type_text(q, of->type) : STR("?"));
	while (field < of->type->count && !str_eq(of->type->fields[field], t->text))
		field++;
	if (field == of->type->count)
		return cql_fail(q, CQL_E_NO_FIELD, cql_term_text(q, t->args[0]),
				cql_type_text(q, of->type), t->text);
	TRY(new_expr(q, CQL_EXPR_FIELD, of->type->args[field], 1, ret));
	(*ret)->index = (unsigned)field;
	(*ret)->args[0] = of;
	return STATUS_OK;
}

static enum status
compile_subscript(struct cql *q, struct cql_scope *s, const struct cql_term *t,
		  struct cql_expr **ret)
{
	bool slice = t->kind == CQL_TERM_SLICE;
	const struct cql_type *type;
	struct cql_expr *of;
	struct str name;

	TRY(compile_free(q, s, t->args[0], &of));
	if (!of || !cql_type_is_collection(of->type))
		return cql_fail(q, CQL_E_NOT_A_COLLECTION, cql_term_text(q, t->args[0]),
				of ? cql_type_text(q, of->type) : STR("?"));
	if (of->type->kind == CQL_TYPE_LIST)
		return cql_fail(q, slice ? CQL_E_SLICE_OF_LIST : CQL_E_ELEMENT_OF_LIST,
				cql_term_text(q, t->args[0]));
	TRY(name_of(q, of->type->kind == CQL_TYPE_MAP ? "key" : "value",
		    cql_term_text(q, t->args[0]), &name));
	type = slice ? of->type : of->type->args[of->type->count - 1];
	TRY(new_expr(q, slice ? CQL_EXPR_SLICE : CQL_EXPR_ELEMENT, type, t->count, ret));
	(*ret)->args[0] = of;
	for (size_t i = 1; i < t->count; i++)
		if (t->args[i])
			TRY(compile_for(q, s, t->args[i], of->type->args[0], name,
					&(*ret)->args[i]));
	return STATUS_OK;
}

static enum status
compile_path(struct cql *q, struct cql_scope *s, const struct cql_term *t, struct cql_expr **ret)
{
	bool as_text = t->kind == CQL_TERM_JSON_TEXT;
	const struct cql_term *key = t->args[1];
	struct cql_expr *of, *step;

	TRY(compile_free(q, s, t->args[0], &of));
	if (!of || of->type->kind != CQL_TYPE_JSONB)
		return cql_fail(q, CQL_E_NOT_JSONB, cql_term_text(q, t->args[0]),
				of ? cql_type_text(q, of->type) : STR("?"));
	TRY(compile_for(q, s, key,
			key->kind == CQL_TERM_INTEGER ? CQL_NATIVE(INT) : CQL_NATIVE(TEXT),
			STR("path"), &step));
	TRY(new_expr(q, CQL_EXPR_JSON, as_text ? CQL_NATIVE(TEXT) : CQL_NATIVE(JSONB), 2, ret));
	(*ret)->is_text = as_text;
	(*ret)->args[0] = of;
	(*ret)->args[1] = step;
	return STATUS_OK;
}

/* ---- All terms ---- */

static enum status
compile_free(struct cql *q, struct cql_scope *s, const struct cql_term *t, struct cql_expr **ret)
{
	*ret = NULL;
	if (is_constant(t))
		return compile_constant(q, t, constant_type(t), t->text, ret);
	if (is_operation(t))
		return free_operation(q, s, t, ret);
	switch ((int)t->kind) {
	case CQL_TERM_LIST:
	case CQL_TERM_SET:
	case CQL_TERM_MAP:
		return free_collection(q, s, t, ret);
	case CQL_TERM_TUPLE:
		return free_tuple(q, s, t, ret);
	case CQL_TERM_HINT:
		return compile_hint(q, s, t, ret);
	case CQL_TERM_FUNCTION:
	case CQL_TERM_COUNT:
		return compile_function(q, s, t, ret);
	case CQL_TERM_CAST:
		return compile_cast(q, s, t, ret);
	case CQL_TERM_COLUMN:
		return compile_column(q, s, t, ret);
	case CQL_TERM_FIELD:
		return compile_field(q, s, t, ret);
	case CQL_TERM_ELEMENT:
	case CQL_TERM_SLICE:
		return compile_subscript(q, s, t, ret);
	case CQL_TERM_JSON:
	case CQL_TERM_JSON_TEXT:
		return compile_path(q, s, t, ret);
	default: /* markers, NULL, {f: v} */
		return STATUS_OK;
	}
}

static enum status
compile_marker(struct cql *q, struct cql_scope *s, const struct cql_term *t,
	       const struct cql_type *type, struct str name, struct cql_expr **ret)
{
	TRY(new_expr(q, CQL_EXPR_MARKER, type, 0, ret));
	(*ret)->index = t->marker;
	(*ret)->name = name;
	if (t->marker < s->marker_count)
		s->markers[t->marker] = (struct cql_marker){ t->text.ptr ? t->text : name, type };
	return STATUS_OK;
}

/* A term with a type of its own has to be of the wanted one. */
static enum status
compile_typed(struct cql *q, struct cql_scope *s, const struct cql_term *t,
	      const struct cql_type *type, struct str name, struct cql_expr **ret)
{
	TRY(compile_free(q, s, t, ret));
	if (!*ret)
		return cql_fail(q, CQL_E_CANNOT_INFER, cql_term_text(q, t));
	if (cql_type_takes(type, (*ret)->type, false))
		return STATUS_OK;
	if (t->kind == CQL_TERM_HINT)
		return cql_fail(q, CQL_E_CAST_ASSIGN, cql_term_text(q, t), name,
				cql_type_text(q, type));
	return cql_fail(q, CQL_E_NOT_ASSIGNABLE, cql_term_text(q, t),
			cql_type_text(q, (*ret)->type), name, cql_type_text(q, type));
}

static enum status
compile_from_json(struct cql *q, struct cql_scope *s, const struct cql_term *t,
		  const struct cql_type *type, struct cql_expr **ret)
{
	return call_one(q, s, t, cql_from_json_run, type, CQL_NATIVE(TEXT), ret);
}

static enum status
compile_for(struct cql *q, struct cql_scope *s, const struct cql_term *t,
	    const struct cql_type *type, struct str name, struct cql_expr **ret)
{
	if (t->kind == CQL_TERM_NULL) {
		TRY(new_expr(q, CQL_EXPR_CONSTANT, type, 0, ret));
		(*ret)->value = CQL_VALUE_NULL;
		return STATUS_OK;
	}
	if (is_constant(t))
		return compile_constant(q, t, type, name, ret);
	if (t->kind == CQL_TERM_MARKER)
		return compile_marker(q, s, t, type, name, ret);
	if (t->kind == CQL_TERM_TUPLE && t->count == 1 && type->kind != CQL_TYPE_TUPLE)
		return compile_for(q, s, t->args[0], type, name, ret);
	if (t->kind >= CQL_TERM_LIST && t->kind <= CQL_TERM_UDT)
		return compile_literal(q, s, t, type, name, ret);
	if (t->kind == CQL_TERM_FUNCTION && str_eq(t->text, STR("fromjson")))
		return compile_from_json(q, s, t, type, ret);
	if ((t->kind == CQL_TERM_ADD || t->kind == CQL_TERM_SUBTRACT) &&
	    (type->kind == CQL_TYPE_TIMESTAMP || type->kind == CQL_TYPE_DATE) &&
	    (is_marker(t->args[0]) || t->args[0]->kind == CQL_TERM_STRING))
		return moment_operation(q, s, t, type, name, ret);
	if (is_operation(t) && cql_type_is_number(type) && is_flexible(t))
		return flexible_operation(q, s, t, type, name, ret);
	return compile_typed(q, s, t, type, name, ret);
}

enum status
cql_compile(struct cql *q, struct cql_scope *scope, const struct cql_term *term,
	    const struct cql_type *receiver, struct str name, struct cql_expr **ret)
{
	struct cql_expr *e;

	TRY(compile_for(q, scope, term, receiver, name, &e));
	*ret = e;
	return STATUS_OK;
}

enum status
cql_compile_selector(struct cql *q, struct cql_scope *scope, const struct cql_term *term,
		     struct cql_expr **ret)
{
	struct cql_expr *e;

	TRY(compile_free(q, scope, term, &e));
	if (!e)
		return cql_fail(q, CQL_E_CANNOT_INFER, cql_term_text(q, term));
	*ret = e;
	return STATUS_OK;
}

#include "cql/parse_int.h"

struct term_list {
	struct cql_term **list;
	size_t count, cap;
};

static enum status
new_term(struct cql_parser *p, enum cql_term_kind kind, size_t at, struct cql_term **ret)
{
	struct cql_term *t = arena_zalloc(p->q->arena, sizeof(*t));

	if (!t)
		return STATUS_LIMIT;
	t->kind = kind;
	t->at = at;
	t->height = 1;
	*ret = t;
	return STATUS_OK;
}

/* The term is complete: it ends in front of the token, and its height is known. */
static enum status
end_term(struct cql_parser *p, struct cql_term *t, struct term_list args)
{
	t->args = args.list;
	t->count = args.count;
	t->length = p->token.before - t->at;
	for (size_t i = 0; i < args.count; i++)
		if (args.list[i] && args.list[i]->height >= t->height)
			t->height = args.list[i]->height + 1;
	if (t->height > CQL_DEPTH)
		return cql_fail_at(p, CQL_E_TOO_DEEP, STR("64"));
	return STATUS_OK;
}

static enum status
append(struct cql_parser *p, struct term_list *to, struct cql_term *t)
{
	if (to->count == CQL_ELEMENTS)
		return cql_fail_at(p, CQL_E_TOO_MANY_ELEMENTS, STR("1048576"));
	TRY(arena_room(p->q->arena, &to->list, to->count, &to->cap, sizeof(*to->list)));
	to->list[to->count++] = t;
	return STATUS_OK;
}

static enum status take_sum(struct cql_parser *p, struct cql_term **ret);

/* Terms with commas between them, up to the sign that ends them, which is taken. */
static enum status
take_terms(struct cql_parser *p, const char *end, struct term_list *ret)
{
	struct cql_term *t;

	if (cql_skip_sign(p, end))
		return STATUS_OK;
	do {
		TRY(take_sum(p, &t));
		TRY(append(p, ret, t));
	} while (cql_skip_sign(p, ","));
	return cql_take_sign(p, end);
}

/* ---- Constants ---- */

/* The kind of a constant that the token is alone; CQL_TERM_NULL: none. */
static enum cql_term_kind
constant_kind(enum cql_token_kind kind)
{
	static const enum cql_term_kind kinds[CQL_TOKEN_BAD + 1] = {
		[CQL_TOKEN_STRING] = CQL_TERM_STRING, [CQL_TOKEN_INTEGER] = CQL_TERM_INTEGER,
		[CQL_TOKEN_FLOAT] = CQL_TERM_FLOAT,   [CQL_TOKEN_UUID] = CQL_TERM_UUID,
		[CQL_TOKEN_BLOB] = CQL_TERM_BLOB,     [CQL_TOKEN_DURATION] = CQL_TERM_DURATION,
	};

	return kinds[kind];
}

static enum status
take_constant(struct cql_parser *p, enum cql_term_kind kind, size_t at, struct cql_term **ret)
{
	TRY(new_term(p, kind, at, ret));
	if (kind == CQL_TERM_STRING)
		TRY(cql_unquote(p, p->token, &(*ret)->text));
	else /* with the sign in front of it, if there is one */
		(*ret)->text = str_of(p->text.ptr + at, p->token.at + p->token.length - at);
	cql_next(p);
	return end_term(p, *ret, (struct term_list){ 0 });
}

static bool
at_number(const struct cql_parser *p, struct cql_token t)
{
	return t.kind == CQL_TOKEN_INTEGER || t.kind == CQL_TOKEN_FLOAT ||
	       t.kind == CQL_TOKEN_DURATION || cql_is_word(p, t, "nan") ||
	       cql_is_word(p, t, "infinity");
}

/* Words that are constants: *ret is NULL for another one. */
static enum status
take_word_constant(struct cql_parser *p, struct cql_term **ret)
{
	size_t at = p->token.at;

	*ret = NULL;
	if (cql_at_word(p, "null"))
		return take_constant(p, CQL_TERM_NULL, at, ret);
	if (cql_at_word(p, "nan") || cql_at_word(p, "infinity"))
		return take_constant(p, CQL_TERM_FLOAT, at, ret);
	if (!cql_at_word(p, "true") && !cql_at_word(p, "false"))
		return STATUS_OK;
	TRY(take_constant(p, CQL_TERM_BOOLEAN, at, ret));
	(*ret)->text = (*ret)->text.len == 4 ? STR("true") : STR("false");
	return STATUS_OK;
}

/* ---- Collections, tuples, user types ---- */

static enum status
take_list(struct cql_parser *p, struct cql_term **ret)
{
	struct term_list args = { 0 };

	TRY(new_term(p, CQL_TERM_LIST, p->token.at, ret));
	cql_next(p);
	TRY(take_terms(p, "]", &args));
	return end_term(p, *ret, args);
}

/* The rest of {a: b, …} behind the brace, with names for keys. */
static enum status
take_udt(struct cql_parser *p, struct cql_term *t)
{
	struct term_list args = { 0 };
	struct str *fields = NULL;
	size_t cap = 0;
	struct cql_term *value;

	t->kind = CQL_TERM_UDT;
	do {
		TRY(arena_room(p->q->arena, &fields, args.count, &cap, sizeof(*fields)));
		TRY(cql_take_name(p, &fields[args.count]));
		TRY(cql_take_sign(p, ":"));
		TRY(take_sum(p, &value));
		TRY(append(p, &args, value));
	} while (cql_skip_sign(p, ","));
	TRY(cql_take_sign(p, "}"));
	t->fields = fields;
	return end_term(p, t, args);
}

static enum status
take_map(struct cql_parser *p, struct cql_term *t, struct cql_term *key)
{
	struct term_list args = { 0 };
	struct cql_term *value;

	t->kind = CQL_TERM_MAP;
	for (;;) {
		TRY(append(p, &args, key));
		TRY(cql_take_sign(p, ":"));
		TRY(take_sum(p, &value));
		TRY(append(p, &args, value));
		if (!cql_skip_sign(p, ","))
			break;
		TRY(take_sum(p, &key));
	}
	TRY(cql_take_sign(p, "}"));
	return end_term(p, t, args);
}

static enum status
take_braces(struct cql_parser *p, struct cql_term **ret)
{
	struct term_list args = { 0 };
	struct cql_term *first;

	TRY(new_term(p, CQL_TERM_SET, p->token.at, ret));
	cql_next(p);
	if (cql_skip_sign(p, "}"))
		return end_term(p, *ret, args);
	if (cql_token_is_name(p, p->token) && cql_is_sign(p, cql_peek(p), ":") &&
	    !cql_at_word(p, "true") && !cql_at_word(p, "false"))
		return take_udt(p, *ret);
	TRY(take_sum(p, &first));
	if (cql_at_sign(p, ":"))
		return take_map(p, *ret, first);
	TRY(append(p, &args, first));
	if (cql_skip_sign(p, ","))
		TRY(take_terms(p, "}", &args));
	else
		TRY(cql_take_sign(p, "}"));
	return end_term(p, *ret, args);
}

/* ---- (type) term, or (term, …) ---- */

/* True if a term may begin with the token: what is in front of it in parentheses is a type. */
static bool
begins_term(const struct cql_parser *p, bool native)
{
	struct cql_token t = p->token;

	if (native && (cql_at_sign(p, "-") || cql_at_sign(p, "?")))
		return true;
	if (t.kind == CQL_TOKEN_SIGN)
		return cql_at_sign(p, "(") || cql_at_sign(p, "[") || cql_at_sign(p, "{") ||
		       cql_at_sign(p, "?") || cql_at_sign(p, ":");
	if (t.kind == CQL_TOKEN_END || t.kind == CQL_TOKEN_BAD)
		return false;
	return t.kind != CQL_TOKEN_WORD || cql_token_is_name(p, t) || cql_at_word(p, "null") ||
	       cql_at_word(p, "nan") || cql_at_word(p, "infinity") || cql_at_word(p, "token");
}

/*
 * Tries to read "(type)" in front of a term. *ret is NULL, and the parser where it was, if it is
 * something else.
 */
static enum status
try_hint_type(struct cql_parser *p, const struct cql_type **ret)
{
	struct cql_parser before = *p;
	struct err unused = { 0 }, *err = p->q->err;
	const struct cql_type *type = NULL;
	enum status status;
	bool found;

	*ret = NULL;
	cql_next(p);
	/* No type has the name of a constant: (true) is a tuple of one. */
	if (cql_at_word(p, "true") || cql_at_word(p, "false")) {
		*p = before;
		return STATUS_OK;
	}
	p->q->err = &unused;
	status = cql_take_type(p, &type);
	p->q->err = err;
	if (status == STATUS_LIMIT || status == STATUS_NOMEM)
		return status;
	found = status == STATUS_OK && type->kind != CQL_TYPE_CUSTOM && cql_skip_sign(p, ")") &&
		begins_term(p, type->kind != CQL_TYPE_UDT);
	/* AS, AND and other words behind a column in parentheses begin no term. */
	if (found && p->token.kind == CQL_TOKEN_WORD && type->kind == CQL_TYPE_UDT)
		found = !cql_at_word(p, "as");
	if (!found)
		*p = before;
	else
		*ret = type;
	return STATUS_OK;
}

static enum status take_unary(struct cql_parser *p, struct cql_term **ret);

static enum status
take_parentheses(struct cql_parser *p, struct cql_term **ret)
{
	size_t at = p->token.at;
	struct term_list args = { 0 };
	const struct cql_type *type;
	struct cql_term *inner;

	TRY(try_hint_type(p, &type));
	if (type) {
		TRY(take_unary(p, &inner));
		TRY(append(p, &args, inner));
		TRY(new_term(p, CQL_TERM_HINT, at, ret));
		(*ret)->type = type;
		return end_term(p, *ret, args);
	}
	TRY(new_term(p, CQL_TERM_TUPLE, at, ret));
	cql_next(p);
	if (cql_at_sign(p, ")"))
		return cql_unexpected(p);
	TRY(take_terms(p, ")", &args));
	return end_term(p, *ret, args);
}

/* ---- Calls, columns, markers ---- */

static enum status
take_cast(struct cql_parser *p, struct cql_term **ret)
{
	struct term_list args = { 0 };
	struct cql_term *inner;

	TRY(new_term(p, CQL_TERM_CAST, p->token.at, ret));
	cql_next(p);
	TRY(cql_take_sign(p, "("));
	TRY(take_sum(p, &inner));
	TRY(append(p, &args, inner));
	TRY(cql_take_word(p, "as"));
	TRY(cql_take_type(p, &(*ret)->type));
	TRY(cql_take_sign(p, ")"));
	return end_term(p, *ret, args);
}

/* count(*) or count(1). */
static bool
skip_count_rows(struct cql_parser *p)
{
	struct cql_parser before = *p;
	bool one;

	cql_next(p);
	if (!cql_skip_sign(p, "("))
		goto other;
	one = p->token.kind == CQL_TOKEN_INTEGER && str_eq(cql_token_text(p, p->token), STR("1"));
	if (!one && !cql_at_sign(p, "*"))
		goto other;
	cql_next(p);
	if (cql_skip_sign(p, ")"))
		return true;
other:
	*p = before;
	return false;
}

static enum status
take_function(struct cql_parser *p, struct cql_term **ret)
{
	struct term_list args = { 0 };

	if (cql_at_word(p, "cast") && cql_is_sign(p, cql_peek(p), "("))
		return take_cast(p, ret);
	TRY(new_term(p, CQL_TERM_FUNCTION, p->token.at, ret));
	if (cql_at_word(p, "count") && p->has_columns && skip_count_rows(p)) {
		(*ret)->kind = CQL_TERM_COUNT;
		return end_term(p, *ret, args);
	}
	TRY(cql_take_word_name(p, &(*ret)->text));
	if (cql_skip_sign(p, ".")) {
		(*ret)->keyspace = (*ret)->text;
		TRY(cql_take_word_name(p, &(*ret)->text));
	}
	TRY(cql_take_sign(p, "("));
	TRY(take_terms(p, ")", &args));
	return end_term(p, *ret, args);
}

static enum status
take_column(struct cql_parser *p, struct cql_term **ret)
{
	TRY(new_term(p, CQL_TERM_COLUMN, p->token.at, ret));
	TRY(cql_take_name(p, &(*ret)->text));
	return end_term(p, *ret, (struct term_list){ 0 });
}

static enum status
take_marker(struct cql_parser *p, struct cql_term **ret)
{
	bool named = cql_at_sign(p, ":");

	TRY(new_term(p, CQL_TERM_MARKER, p->token.at, ret));
	cql_next(p);
	if (named)
		TRY(cql_take_word_name(p, &(*ret)->text));
	TRY(cql_add_marker(p, (*ret)->text, &(*ret)->marker));
	return end_term(p, *ret, (struct term_list){ 0 });
}

/* True if a call begins here: a name, or ks.name, and a parenthesis. */
static bool
at_call(const struct cql_parser *p)
{
	struct cql_token next = cql_peek(p), last;

	if (p->token.kind != CQL_TOKEN_WORD && p->token.kind != CQL_TOKEN_QUOTED)
		return false;
	if (cql_is_sign(p, next, "("))
		return cql_token_is_name(p, p->token) || cql_at_word(p, "token");
	if (!cql_is_sign(p, next, "."))
		return false;
	last = cql_token_at(p->text, next.at + next.length);
	return cql_is_sign(p, cql_token_at(p->text, last.at + last.length), "(");
}

static enum status
take_simple(struct cql_parser *p, struct cql_term **ret)
{
	enum cql_term_kind kind = constant_kind(p->token.kind);

	if (kind != CQL_TERM_NULL)
		return take_constant(p, kind, p->token.at, ret);
	if (cql_at_sign(p, "?") || cql_at_sign(p, ":"))
		return take_marker(p, ret);
	if (cql_at_sign(p, "["))
		return take_list(p, ret);
	if (cql_at_sign(p, "{"))
		return take_braces(p, ret);
	if (cql_at_sign(p, "("))
		return take_parentheses(p, ret);
	if (at_call(p))
		return take_function(p, ret);
	TRY(take_word_constant(p, ret));
	if (*ret)
		return STATUS_OK;
	if (p->has_columns && cql_token_is_name(p, p->token))
		return take_column(p, ret);
	return cql_unexpected(p);
}

/* ---- What follows a column ---- */

/* [key], [from..to], behind the bracket. */
static enum status
take_subscript(struct cql_parser *p, struct cql_term *t, struct term_list *args)
{
	struct cql_term *from = NULL, *to = NULL;

	t->kind = CQL_TERM_ELEMENT;
	if (!cql_at_sign(p, ".."))
		TRY(take_sum(p, &from));
	if (cql_skip_sign(p, "..")) {
		t->kind = CQL_TERM_SLICE;
		if (!cql_at_sign(p, "]"))
			TRY(take_sum(p, &to));
	}
	TRY(append(p, args, from));
	if (t->kind == CQL_TERM_SLICE)
		TRY(append(p, args, to));
	return cql_take_sign(p, "]");
}

/* One of .field, [key], -> key, ->> key, around *ret. */
static enum status
take_suffix(struct cql_parser *p, struct cql_term **ret)
{
	struct term_list args = { 0 };
	struct cql_term *outer, *key;

	TRY(new_term(p, CQL_TERM_FIELD, (*ret)->at, &outer));
	TRY(append(p, &args, *ret));
	if (cql_skip_sign(p, ".")) {
		TRY(cql_take_name(p, &outer->text));
	} else if (cql_skip_sign(p, "[")) {
		TRY(take_subscript(p, outer, &args));
	} else {
		outer->kind = cql_at_sign(p, "->") ? CQL_TERM_JSON : CQL_TERM_JSON_TEXT;
		cql_next(p);
		TRY(take_simple(p, &key));
		TRY(append(p, &args, key));
	}
	*ret = outer;
	return end_term(p, outer, args);
}

static enum status
take_suffixed(struct cql_parser *p, struct cql_term **ret)
{
	TRY(take_simple(p, ret));
	if (!p->has_columns)
		return STATUS_OK;
	while (cql_at_sign(p, ".") || cql_at_sign(p, "[") || cql_at_sign(p, "->") ||
	       cql_at_sign(p, "->>"))
		TRY(take_suffix(p, ret));
	return STATUS_OK;
}

/* ---- Arithmetic ---- */

static enum status
take_negative(struct cql_parser *p, struct cql_term **ret)
{
	size_t at = p->token.at;
	struct cql_token behind = cql_peek(p);
	struct term_list args = { 0 };
	struct cql_term *inner;

	if (at_number(p, behind)) {
		enum cql_term_kind kind = constant_kind(behind.kind);

		cql_next(p);
		TRY(take_constant(p, kind == CQL_TERM_NULL ? CQL_TERM_FLOAT : kind, at, ret));
		return STATUS_OK;
	}
	cql_next(p);
	TRY(take_unary(p, &inner));
	TRY(append(p, &args, inner));
	TRY(new_term(p, CQL_TERM_NEGATE, at, ret));
	return end_term(p, *ret, args);
}

static enum status
take_unary(struct cql_parser *p, struct cql_term **ret)
{
	TRY(cql_enter(p));
	if (cql_at_sign(p, "-"))
		TRY(take_negative(p, ret));
	else
		TRY(take_suffixed(p, ret));
	cql_leave(p);
	return STATUS_OK;
}

/* `*ret` op right, where the token is op. */
static enum status
take_right(struct cql_parser *p, enum cql_term_kind kind,
	   enum status (*right)(struct cql_parser *, struct cql_term **), struct cql_term **ret)
{
	struct term_list args = { 0 };
	struct cql_term *outer, *second;

	TRY(new_term(p, kind, (*ret)->at, &outer));
	cql_next(p);
	TRY(right(p, &second));
	TRY(append(p, &args, *ret));
	TRY(append(p, &args, second));
	*ret = outer;
	return end_term(p, outer, args);
}

static enum status
take_product(struct cql_parser *p, struct cql_term **ret)
{
	TRY(take_unary(p, ret));
	for (;;) {
		enum cql_term_kind kind = cql_at_sign(p, "*")   ? CQL_TERM_MULTIPLY
					  : cql_at_sign(p, "/") ? CQL_TERM_DIVIDE
					  : cql_at_sign(p, "%") ? CQL_TERM_MODULO
								: CQL_TERM_NULL;

		if (kind == CQL_TERM_NULL)
			return STATUS_OK;
		TRY(take_right(p, kind, take_unary, ret));
	}
}

static enum status
take_sum(struct cql_parser *p, struct cql_term **ret)
{
	TRY(take_product(p, ret));
	for (;;) {
		enum cql_term_kind kind = cql_at_sign(p, "+")   ? CQL_TERM_ADD
					  : cql_at_sign(p, "-") ? CQL_TERM_SUBTRACT
								: CQL_TERM_NULL;

		if (kind == CQL_TERM_NULL)
			return STATUS_OK;
		TRY(take_right(p, kind, take_product, ret));
	}
}

enum status
cql_take_term(struct cql_parser *p, struct cql_term **ret)
{
	p->has_columns = false;
	return take_sum(p, ret);
}

enum status
cql_take_selector(struct cql_parser *p, struct cql_term **ret)
{
	p->has_columns = true;
	return take_sum(p, ret);
}

enum status
cql_take_path(struct cql_parser *p, const struct cql_term *const **ret, size_t *ret_count,
	      bool *ret_as_text)
{
	struct term_list path = { 0 };
	struct cql_term *key;

	p->has_columns = false;
	*ret_as_text = false;
	while (!*ret_as_text && (cql_at_sign(p, "->") || cql_at_sign(p, "->>"))) {
		*ret_as_text = cql_at_sign(p, "->>");
		cql_next(p);
		TRY(take_simple(p, &key));
		TRY(append(p, &path, key));
	}
	*ret = (const struct cql_term *const *)path.list;
	*ret_count = path.count;
	return STATUS_OK;
}

enum status
cql_parse_term(struct cql *q, struct str text, struct cql_term **ret)
{
	struct cql_parser p;
	struct cql_term *t;

	cql_parser_init(&p, q, text);
	TRY(cql_take_selector(&p, &t));
	if (p.token.kind != CQL_TOKEN_END)
		return cql_unexpected(&p);
	*ret = t;
	return STATUS_OK;
}

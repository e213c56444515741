#include "cql/parse_int.h"

struct value_list {
	const struct cql_term **list;
	size_t count, cap;
};

static enum status
append_value(struct cql_parser *p, struct value_list *to)
{
	struct cql_term *t;

	if (to->count == CQL_ELEMENTS)
		return cql_fail_at(p, CQL_E_TOO_MANY_ELEMENTS, STR("1048576"));
	TRY(arena_room(p->q->arena, &to->list, to->count, &to->cap, sizeof(*to->list)));
	TRY(cql_take_term(p, &t));
	to->list[to->count++] = t;
	return STATUS_OK;
}

/* (a, b) or a marker of the whole list. */
static enum status
take_in_values(struct cql_parser *p, struct cql_relation *r)
{
	struct value_list values = { 0 };

	if (cql_skip_sign(p, "(")) {
		r->is_list = true;
		if (!cql_skip_sign(p, ")")) {
			do
				TRY(append_value(p, &values));
			while (cql_skip_sign(p, ","));
			TRY(cql_take_sign(p, ")"));
		}
	} else {
		if (!cql_at_sign(p, "?") && !cql_at_sign(p, ":"))
			return cql_unexpected(p);
		TRY(append_value(p, &values));
	}
	r->values = values.list;
	r->value_count = values.count;
	return STATUS_OK;
}

static enum status
take_one_value(struct cql_parser *p, struct cql_relation *r)
{
	struct value_list values = { 0 };

	TRY(append_value(p, &values));
	r->values = values.list;
	r->value_count = values.count;
	return STATUS_OK;
}

/* Sets the operator that is a sign; false: the token is none. */
static bool
skip_sign_operator(struct cql_parser *p, enum cql_operator *ret)
{
	static const struct {
		const char *sign;
		enum cql_operator op;
	} signs[] = {
		{ "=", CQL_OP_EQ }, { "<", CQL_OP_LT },  { "<=", CQL_OP_LE },
		{ ">", CQL_OP_GT }, { ">=", CQL_OP_GE }, { "!=", CQL_OP_NE },
	};

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		if (cql_skip_sign(p, signs[i].sign)) {
			*ret = signs[i].op;
			return true;
		}
	}
	return false;
}

static enum status
take_operator(struct cql_parser *p, struct cql_relation *r)
{
	if (skip_sign_operator(p, &r->op))
		return STATUS_OK;
	if (cql_skip_word(p, "in")) {
		r->op = CQL_OP_IN;
	} else if (cql_skip_word(p, "not")) {
		TRY(cql_take_word(p, "in"));
		r->op = CQL_OP_NOT_IN;
	} else if (cql_skip_word(p, "contains")) {
		r->op = cql_skip_word(p, "key") ? CQL_OP_CONTAINS_KEY : CQL_OP_CONTAINS;
	} else if (cql_skip_word(p, "like")) {
		r->op = CQL_OP_LIKE;
	} else if (cql_skip_word(p, "is")) {
		TRY(cql_take_word(p, "not"));
		TRY(cql_take_word(p, "null"));
		r->op = CQL_OP_IS_NOT_NULL;
	} else {
		return cql_unexpected(p);
	}
	return STATUS_OK;
}

static enum status
take_columns(struct cql_parser *p, struct cql_relation *r)
{
	struct str *columns = NULL;
	size_t count = 0, cap = 0;

	TRY(cql_take_sign(p, "("));
	do {
		if (count == CQL_ELEMENTS)
			return cql_fail_at(p, CQL_E_TOO_MANY_ELEMENTS, STR("1048576"));
		TRY(arena_room(p->q->arena, &columns, count, &cap, sizeof(*columns)));
		TRY(cql_take_name(p, &columns[count]));
		count++;
	} while (cql_skip_sign(p, ","));
	TRY(cql_take_sign(p, ")"));
	r->columns = columns;
	r->column_count = count;
	return STATUS_OK;
}

static enum status
take_column(struct cql_parser *p, struct cql_relation *r)
{
	struct str *column = arena_alloc(p->q->arena, sizeof(*column));
	struct cql_term *key;

	if (!column)
		return STATUS_LIMIT;
	TRY(cql_take_name(p, column));
	r->columns = column;
	r->column_count = 1;
	if (cql_skip_sign(p, "[")) {
		r->left = CQL_LEFT_ELEMENT;
		TRY(cql_take_term(p, &key));
		r->key = key;
		return cql_take_sign(p, "]");
	}
	if (cql_skip_sign(p, ".")) {
		r->left = CQL_LEFT_FIELD;
		return cql_take_name(p, &r->field);
	}
	if (cql_at_sign(p, "->") || cql_at_sign(p, "->>")) {
		r->left = CQL_LEFT_JSON;
		return cql_take_path(p, &r->path, &r->path_count, &r->is_text);
	}
	return STATUS_OK;
}

static enum status
take_left(struct cql_parser *p, struct cql_relation *r)
{
	if (cql_at_word(p, "token") && cql_is_sign(p, cql_peek(p), "(")) {
		r->left = CQL_LEFT_TOKEN;
		cql_next(p);
		return take_columns(p, r);
	}
	if (cql_at_sign(p, "(")) {
		r->left = CQL_LEFT_TUPLE;
		return take_columns(p, r);
	}
	return take_column(p, r);
}

static enum status
take_relation(struct cql_parser *p, struct cql_relation *r)
{
	*r = (struct cql_relation){ .at = p->token.at };
	TRY(take_left(p, r));
	if (r->left != CQL_LEFT_COLUMN && cql_at_word(p, "contains"))
		return cql_unexpected(p);
	TRY(take_operator(p, r));
	if (r->op == CQL_OP_IN || r->op == CQL_OP_NOT_IN)
		TRY(take_in_values(p, r));
	else if (r->op != CQL_OP_IS_NOT_NULL)
		TRY(take_one_value(p, r));
	r->length = p->token.before - r->at;
	return STATUS_OK;
}

/* A relation in parentheses of its own, which may hold a tuple of columns instead. */
static bool
skip_parenthesis(struct cql_parser *p)
{
	struct cql_parser before = *p;

	if (!cql_skip_sign(p, "("))
		return false;
	if (cql_at_sign(p, "("))
		return true;
	if (cql_token_is_name(p, p->token)) {
		struct cql_token behind = cql_peek(p);

		if (!cql_is_sign(p, behind, ",") && !cql_is_sign(p, behind, ")"))
			return true;
	} else if (cql_at_word(p, "token")) {
		return true;
	}
	*p = before;
	return false;
}

static enum status
take_enclosed(struct cql_parser *p, struct cql_relation *r)
{
	unsigned open = 0;

	for (; skip_parenthesis(p); open++)
		if (open == CQL_DEPTH)
			return cql_fail_at(p, CQL_E_TOO_DEEP, STR("64"));
	TRY(take_relation(p, r));
	for (; open; open--)
		TRY(cql_take_sign(p, ")"));
	return STATUS_OK;
}

static enum status
take_relations(struct cql_parser *p, struct cql_relations *ret)
{
	struct cql_relation *list = NULL;
	size_t count = 0, cap = 0;

	do {
		if (count == CQL_ELEMENTS)
			return cql_fail_at(p, CQL_E_TOO_MANY_ELEMENTS, STR("1048576"));
		TRY(arena_room(p->q->arena, &list, count, &cap, sizeof(*list)));
		TRY(take_enclosed(p, &list[count]));
		count++;
	} while (cql_skip_word(p, "and"));
	*ret = (struct cql_relations){ count, list };
	return STATUS_OK;
}

enum status
cql_take_where(struct cql_parser *p, struct cql_relations *ret)
{
	return take_relations(p, ret);
}

enum status
cql_take_conditions(struct cql_parser *p, struct cql_relations *ret)
{
	return take_relations(p, ret);
}

#include "cql/parse_int.h"

/* ---- USING, IF ---- */

enum status
cql_take_using(struct cql_parser *p, bool has_ttl, struct cql_using *ret)
{
	struct cql_term *value;

	*ret = (struct cql_using){ 0 };
	if (!cql_skip_word(p, "using"))
		return STATUS_OK;
	do {
		bool ttl = has_ttl && cql_at_word(p, "ttl");
		const struct cql_term **to = ttl ? &ret->ttl : &ret->timestamp;

		if (!ttl && !cql_at_word(p, "timestamp"))
			return cql_unexpected(p);
		if (*to)
			return cql_fail(p->q, CQL_E_TTL_REPEATED,
					ttl ? STR("ttl") : STR("timestamp"));
		cql_next(p);
		TRY(cql_take_term(p, &value));
		*to = value;
	} while (cql_skip_word(p, "and"));
	return STATUS_OK;
}

static enum status
take_if(struct cql_parser *p, struct cql_if *ret)
{
	if (!cql_skip_word(p, "if"))
		return STATUS_OK;
	if (cql_at_word(p, "not") && cql_is_word(p, cql_peek(p), "exists")) {
		cql_next(p);
		cql_next(p);
		ret->not_exists = true;
		return STATUS_OK;
	}
	/* "exists" may be a column: then an operator is behind it. */
	if (cql_at_word(p, "exists")) {
		struct cql_token behind = cql_peek(p);

		if (behind.kind != CQL_TOKEN_SIGN || cql_is_sign(p, behind, ";")) {
			cql_next(p);
			ret->exists = true;
			return STATUS_OK;
		}
	}
	return cql_take_conditions(p, &ret->conditions);
}

static enum status
take_returns(struct cql_parser *p, bool *ret)
{
	*ret = cql_skip_word(p, "returns");
	if (!*ret)
		return STATUS_OK;
	TRY(cql_take_word(p, "status"));
	TRY(cql_take_word(p, "as"));
	return cql_take_word(p, "row");
}

/* ---- INSERT ---- */

static enum status
take_insert_names(struct cql_parser *p, struct cql_insert *ret)
{
	struct str *columns = NULL;
	size_t cap = 0;

	TRY(cql_take_sign(p, "("));
	do {
		if (ret->count == CQL_ELEMENTS)
			return cql_fail_at(p, CQL_E_TOO_MANY_ELEMENTS, STR("1048576"));
		TRY(arena_room(p->q->arena, &columns, ret->count, &cap, sizeof(*columns)));
		TRY(cql_take_name(p, &columns[ret->count]));
		ret->count++;
	} while (cql_skip_sign(p, ","));
	ret->columns = columns;
	return cql_take_sign(p, ")");
}

static enum status
take_insert_values(struct cql_parser *p, struct cql_insert *ret)
{
	const struct cql_term **values = NULL;
	size_t count = 0, cap = 0;
	struct cql_term *term;

	TRY(cql_take_word(p, "values"));
	TRY(cql_take_sign(p, "("));
	do {
		if (count == CQL_ELEMENTS)
			return cql_fail_at(p, CQL_E_TOO_MANY_ELEMENTS, STR("1048576"));
		TRY(arena_room(p->q->arena, &values, count, &cap, sizeof(*values)));
		TRY(cql_take_term(p, &term));
		values[count++] = term;
	} while (cql_skip_sign(p, ","));
	TRY(cql_take_sign(p, ")"));
	if (count != ret->count)
		return cql_fail(p->q, CQL_E_UNMATCHED);
	ret->values = values;
	return STATUS_OK;
}

static enum status
take_insert_json(struct cql_parser *p, struct cql_insert *ret)
{
	struct cql_term *text;

	if (p->token.kind != CQL_TOKEN_STRING && !cql_at_sign(p, "?") && !cql_at_sign(p, ":"))
		return cql_unexpected(p);
	TRY(cql_take_term(p, &text));
	ret->json = text;
	if (!cql_skip_word(p, "default"))
		return STATUS_OK;
	ret->default_unset = cql_at_word(p, "unset");
	if (!ret->default_unset && !cql_at_word(p, "null"))
		return cql_unexpected(p);
	cql_next(p);
	return STATUS_OK;
}

enum status
cql_take_insert(struct cql_parser *p, struct cql_insert *ret)
{
	*ret = (struct cql_insert){ 0 };
	TRY(cql_take_word(p, "into"));
	TRY(cql_take_qualified(p, "Table", &ret->table));
	if (cql_skip_word(p, "json")) {
		TRY(take_insert_json(p, ret));
	} else {
		TRY(take_insert_names(p, ret));
		TRY(take_insert_values(p, ret));
	}
	TRY(take_if(p, &ret->condition));
	TRY(cql_take_using(p, true, &ret->using));
	return take_returns(p, &ret->returns_status);
}

/* ---- UPDATE ---- */

/* True if a column is anywhere in the term, which is at most CQL_DEPTH deep. */
static bool
has_column(const struct cql_term *t)
{
	if (t->kind == CQL_TERM_COLUMN)
		return true;
	for (size_t i = 0; i < t->count; i++)
		if (t->args[i] && has_column(t->args[i]))
			return true;
	return false;
}

/* c + value, c - value, where the token is the column. */
static enum status
take_changed(struct cql_parser *p, struct cql_assignment *a)
{
	struct cql_term *value;
	struct str column;
	bool minus;

	TRY(cql_take_name(p, &column));
	minus = cql_at_sign(p, "-");
	cql_next(p);
	TRY(cql_take_term(p, &value));
	if (!str_eq(column, a->column))
		return cql_fail_at(p, minus ? CQL_E_ONLY_MINUS : CQL_E_ONLY_PLUS, STR(""));
	a->kind = minus ? CQL_ASSIGN_SUBTRACT : CQL_ASSIGN_ADD;
	a->value = value;
	return STATUS_OK;
}

/* A value, or value + c. */
static enum status
take_new_value(struct cql_parser *p, struct cql_assignment *a)
{
	struct cql_token begin = p->token;
	struct cql_term *value, *last;

	TRY(cql_take_selector(p, &value));
	a->value = value;
	if (!has_column(value))
		return STATUS_OK;
	last = value->count == 2 ? value->args[1] : NULL;
	if (value->kind != CQL_TERM_ADD || !last || last->kind != CQL_TERM_COLUMN ||
	    has_column(value->args[0])) {
		p->token = begin;
		return cql_unexpected(p);
	}
	if (!str_eq(last->text, a->column))
		return cql_fail_at(p, CQL_E_ONLY_PREPEND, STR(""));
	a->kind = CQL_ASSIGN_PREPEND;
	a->value = value->args[0];
	return STATUS_OK;
}

static enum status
take_assigned(struct cql_parser *p, struct cql_assignment *a)
{
	struct cql_token behind = cql_peek(p);

	if (a->kind == CQL_ASSIGN_SET && cql_token_is_name(p, p->token) &&
	    (cql_is_sign(p, behind, "+") || cql_is_sign(p, behind, "-")))
		return take_changed(p, a);
	return take_new_value(p, a);
}

/* What stands in front of the = of an assignment. */
static enum status
take_target(struct cql_parser *p, struct cql_assignment *a)
{
	struct cql_term *key;
	bool as_text;

	TRY(cql_take_name(p, &a->column));
	if (cql_skip_sign(p, "[")) {
		a->kind = CQL_ASSIGN_ELEMENT;
		TRY(cql_take_term(p, &key));
		a->key = key;
		return cql_take_sign(p, "]");
	}
	if (cql_skip_sign(p, ".")) {
		a->kind = CQL_ASSIGN_FIELD;
		return cql_take_name(p, &a->field);
	}
	if (cql_at_sign(p, "->")) {
		a->kind = CQL_ASSIGN_JSON;
		TRY(cql_take_path(p, &a->path, &a->path_count, &as_text));
		return as_text ? cql_unexpected(p) : STATUS_OK;
	}
	return STATUS_OK;
}

static enum status
take_assignment(struct cql_parser *p, struct cql_assignment *a)
{
	struct cql_term *value;
	bool minus;

	*a = (struct cql_assignment){ .at = p->token.at };
	TRY(take_target(p, a));
	if (a->kind == CQL_ASSIGN_SET && (cql_at_sign(p, "+=") || cql_at_sign(p, "-="))) {
		minus = cql_at_sign(p, "-=");
		cql_next(p);
		TRY(cql_take_term(p, &value));
		a->kind = minus ? CQL_ASSIGN_SUBTRACT : CQL_ASSIGN_ADD;
		a->value = value;
	} else {
		TRY(cql_take_sign(p, "="));
		TRY(take_assigned(p, a));
	}
	a->length = p->token.before - a->at;
	return STATUS_OK;
}

enum status
cql_take_update(struct cql_parser *p, struct cql_update *ret)
{
	struct cql_assignment *list = NULL;
	size_t cap = 0;

	*ret = (struct cql_update){ 0 };
	TRY(cql_take_qualified(p, "Table", &ret->table));
	TRY(cql_take_using(p, true, &ret->using));
	TRY(cql_take_word(p, "set"));
	do {
		if (ret->count == CQL_ELEMENTS)
			return cql_fail_at(p, CQL_E_TOO_MANY_ELEMENTS, STR("1048576"));
		TRY(arena_room(p->q->arena, &list, ret->count, &cap, sizeof(*list)));
		TRY(take_assignment(p, &list[ret->count]));
		ret->count++;
	} while (cql_skip_sign(p, ","));
	ret->assignments = list;
	TRY(cql_take_word(p, "where"));
	TRY(cql_take_where(p, &ret->where));
	TRY(take_if(p, &ret->condition));
	return take_returns(p, &ret->returns_status);
}

/* ---- DELETE ---- */

static enum status
take_deletion(struct cql_parser *p, struct cql_deletion *d)
{
	struct cql_term *key;

	*d = (struct cql_deletion){ 0 };
	TRY(cql_take_name(p, &d->column));
	if (cql_skip_sign(p, "[")) {
		TRY(cql_take_term(p, &key));
		d->key = key;
		return cql_take_sign(p, "]");
	}
	return cql_skip_sign(p, ".") ? cql_take_name(p, &d->field) : STATUS_OK;
}

enum status
cql_take_delete(struct cql_parser *p, struct cql_delete *ret)
{
	struct cql_deletion *list = NULL;
	size_t cap = 0;

	*ret = (struct cql_delete){ 0 };
	if (!cql_at_word(p, "from")) {
		do {
			TRY(arena_room(p->q->arena, &list, ret->count, &cap, sizeof(*list)));
			TRY(take_deletion(p, &list[ret->count]));
			ret->count++;
		} while (cql_skip_sign(p, ","));
		ret->what = list;
	}
	TRY(cql_take_word(p, "from"));
	TRY(cql_take_qualified(p, "Table", &ret->table));
	TRY(cql_take_using(p, false, &ret->using));
	TRY(cql_take_word(p, "where"));
	TRY(cql_take_where(p, &ret->where));
	TRY(take_if(p, &ret->condition));
	return take_returns(p, &ret->returns_status);
}

#include "cql/parse_int.h"

/*
 * True if the word, which may be a column's name, is a keyword here: what is behind it begins
 * another selector.
 */
static bool
at_selection_word(const struct cql_parser *p, const char *word)
{
	struct cql_token behind = cql_peek(p);

	if (!cql_at_word(p, word) || cql_is_word(p, behind, "as"))
		return false;
	if (behind.kind == CQL_TOKEN_SIGN)
		return cql_is_sign(p, behind, "*") || cql_is_sign(p, behind, "{") ||
		       cql_is_sign(p, behind, "?") || cql_is_sign(p, behind, ":");
	return behind.kind != CQL_TOKEN_END && !cql_is_word(p, behind, "from");
}

static enum status
take_selectors(struct cql_parser *p, struct cql_select *ret)
{
	struct cql_selector *list = NULL;
	size_t count = 0, cap = 0;
	struct cql_term *term;

	if (cql_skip_sign(p, "*"))
		return STATUS_OK;
	do {
		if (count == CQL_ELEMENTS)
			return cql_fail_at(p, CQL_E_TOO_MANY_ELEMENTS, STR("1048576"));
		TRY(arena_room(p->q->arena, &list, count, &cap, sizeof(*list)));
		TRY(cql_take_selector(p, &term));
		list[count] = (struct cql_selector){ .term = term };
		if (cql_skip_word(p, "as"))
			TRY(cql_take_name(p, &list[count].alias));
		count++;
	} while (cql_skip_sign(p, ","));
	ret->selectors = list;
	ret->selector_count = count;
	return STATUS_OK;
}

static enum status
take_group_by(struct cql_parser *p, struct cql_select *ret)
{
	const struct cql_term **list = NULL;
	size_t count = 0, cap = 0;
	struct cql_term *term;

	do {
		TRY(arena_room(p->q->arena, &list, count, &cap, sizeof(*list)));
		TRY(cql_take_selector(p, &term));
		list[count++] = term;
	} while (cql_skip_sign(p, ","));
	ret->group_by = list;
	ret->group_count = count;
	return STATUS_OK;
}

static enum status
take_order_by(struct cql_parser *p, struct cql_select *ret)
{
	struct cql_order *list = NULL;
	size_t count = 0, cap = 0;
	struct cql_term *term;

	do {
		TRY(arena_room(p->q->arena, &list, count, &cap, sizeof(*list)));
		TRY(cql_take_selector(p, &term));
		list[count] = (struct cql_order){ .term = term };
		if (term->kind == CQL_TERM_COLUMN)
			list[count] = (struct cql_order){ .column = term->text };
		list[count].descending = cql_skip_word(p, "desc");
		if (!list[count].descending)
			(void)cql_skip_word(p, "asc");
		count++;
	} while (cql_skip_sign(p, ","));
	ret->order_by = list;
	ret->order_count = count;
	return STATUS_OK;
}

/* An integer or a marker. */
static enum status
take_count(struct cql_parser *p, const struct cql_term **ret)
{
	struct cql_term *term;

	if (p->token.kind != CQL_TOKEN_INTEGER && !cql_at_sign(p, "?") && !cql_at_sign(p, ":") &&
	    !cql_at_sign(p, "-") && !cql_at_sign(p, "("))
		return cql_unexpected(p);
	TRY(cql_take_term(p, &term));
	*ret = term;
	return STATUS_OK;
}

static enum status
take_tail(struct cql_parser *p, struct cql_select *ret)
{
	if (cql_skip_word(p, "where"))
		TRY(cql_take_where(p, &ret->where));
	if (cql_skip_word(p, "group")) {
		TRY(cql_take_word(p, "by"));
		TRY(take_group_by(p, ret));
	}
	if (cql_skip_word(p, "order")) {
		TRY(cql_take_word(p, "by"));
		TRY(take_order_by(p, ret));
	}
	if (cql_skip_word(p, "per")) {
		TRY(cql_take_word(p, "partition"));
		TRY(cql_take_word(p, "limit"));
		TRY(take_count(p, &ret->per_partition_limit));
	}
	if (cql_skip_word(p, "limit"))
		TRY(take_count(p, &ret->limit));
	if (cql_skip_word(p, "offset"))
		TRY(take_count(p, &ret->offset));
	if (cql_skip_word(p, "allow")) {
		TRY(cql_take_word(p, "filtering"));
		ret->allow_filtering = true;
	}
	return STATUS_OK;
}

enum status
cql_take_select(struct cql_parser *p, struct cql_select *ret)
{
	struct cql_term *as_of;

	*ret = (struct cql_select){ 0 };
	if (at_selection_word(p, "json")) {
		cql_next(p);
		ret->json = true;
	}
	if (at_selection_word(p, "distinct")) {
		cql_next(p);
		ret->distinct = true;
	}
	TRY(take_selectors(p, ret));
	TRY(cql_take_word(p, "from"));
	TRY(cql_take_qualified(p, "Table", &ret->table));
	if (cql_skip_words(p, "as", "of")) {
		TRY(cql_take_term(p, &as_of));
		ret->as_of = as_of;
	}
	return take_tail(p, ret);
}

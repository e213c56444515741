#include "index/collate.h"
#include "index/selector/selector_int.h"

/* What a selector is held against: a document, or inside of $elemMatch and its kin a value. */
struct subject {
	const struct selector_doc *doc; /* NULL for a value */
	struct leaf_value value;
	struct arena *scratch;
};

static enum status match_node(const struct selector_node *n, const struct subject *s, bool *ret);

/* ---- Comparisons ---- */

static enum status
compare(const struct selector_cond *c, const struct leaf_value *v, const struct leaf_value *operand,
	struct arena *scratch, int *ret)
{
	enum leaf_kind kind;
	struct str a, b;

	if (!c->by_bytes)
		return collate_compare(v, operand, scratch, ret);
	/* In Erlang's order of terms, which CouchDB takes for ids, a string is above all else. */
	TRY(leaf_kind(operand, &kind));
	*ret = 1;
	if (kind != LEAF_STRING)
		return STATUS_OK;
	TRY(leaf_text(v, scratch, &a));
	TRY(leaf_text(operand, scratch, &b));
	*ret = str_cmp(a, b);
	return STATUS_OK;
}

static enum status
match_order(const struct selector_cond *c, const struct leaf_value *v, struct arena *scratch,
	    bool *ret)
{
	int order;

	TRY(compare(c, v, &c->operand, scratch, &order));
	*ret = (c->op == SELECTOR_LT && order < 0) || (c->op == SELECTOR_LTE && order <= 0) ||
	       (c->op == SELECTOR_EQ && order == 0) || (c->op == SELECTOR_NE && order != 0) ||
	       (c->op == SELECTOR_GTE && order >= 0) || (c->op == SELECTOR_GT && order > 0);
	return STATUS_OK;
}

static enum status
is_in_list(const struct selector_cond *c, const struct leaf_value *v, struct arena *scratch,
	   bool *ret)
{
	*ret = false;
	for (size_t i = 0; i < c->list_count && !*ret; i++) {
		struct arena_mark mark = arena_mark(scratch);
		int order;

		TRY(compare(c, v, &c->list[i], scratch, &order));
		arena_reset(scratch, mark);
		*ret = order == 0;
	}
	return STATUS_OK;
}

/* An array is in the list if one of its elements is. */
static enum status
match_in(const struct selector_cond *c, const struct leaf_value *v, struct arena *scratch,
	 bool *ret)
{
	struct leaf_iter iter = { .rest = *v };
	struct leaf_value element;
	struct tuple_elem position;
	enum leaf_kind kind;
	enum status status = STATUS_OK;

	TRY(leaf_kind(v, &kind));
	if (kind != LEAF_ARRAY)
		return is_in_list(c, v, scratch, ret);
	*ret = false;
	while (!*ret && (status = leaf_next(&iter, &position, &element)) == STATUS_OK)
		TRY(is_in_list(c, &element, scratch, ret));
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- Arrays and objects ---- */

static enum status
has_same(const struct leaf_value *array, const struct leaf_value *wanted, bool *ret)
{
	struct leaf_iter iter = { .rest = *array };
	struct leaf_value element;
	struct tuple_elem position;
	enum status status = STATUS_OK;

	*ret = false;
	while (!*ret && (status = leaf_next(&iter, &position, &element)) == STATUS_OK)
		TRY(collate_same(&element, wanted, ret));
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Each of the list is in the array; or the list has one array in it, and that is this one. */
static enum status
match_all(const struct selector_cond *c, const struct leaf_value *v, bool *ret)
{
	enum leaf_kind kind;

	TRY(leaf_kind(v, &kind));
	*ret = kind == LEAF_ARRAY && c->list_count;
	for (size_t i = 0; i < c->list_count && *ret; i++)
		TRY(has_same(v, &c->list[i], ret));
	if (!*ret && kind == LEAF_ARRAY && c->list_count == 1)
		TRY(collate_same(&c->list[0], v, ret));
	return STATUS_OK;
}

static enum status
match_size(const struct selector_cond *c, const struct leaf_value *v, bool *ret)
{
	enum leaf_kind kind;
	uint64_t count = 0;

	TRY(leaf_kind(v, &kind));
	if (kind == LEAF_ARRAY)
		TRY(leaf_array_count(v, &count));
	*ret = kind == LEAF_ARRAY && count == (uint64_t)c->number;
	return STATUS_OK;
}

/*
 * $elemMatch: some element matches; $allMatch: there are elements and all match; $keyMapMatch: the
 * name of some member matches.
 */
static enum status
match_children(const struct selector_cond *c, const struct leaf_value *v, struct arena *scratch,
	       bool *ret)
{
	struct leaf_iter iter = { .rest = *v };
	struct subject s = { .scratch = scratch };
	bool all = c->op == SELECTOR_ALL_MATCH;
	bool matched = false;
	struct tuple_elem key;
	enum leaf_kind kind;
	enum status status;

	TRY(leaf_kind(v, &kind));
	*ret = false;
	if (kind != (c->op == SELECTOR_KEY_MAP_MATCH ? LEAF_OBJECT : LEAF_ARRAY))
		return STATUS_OK;
	while ((status = leaf_next(&iter, &key, &s.value)) == STATUS_OK) {
		/* A name in a path is encoded as a string among the values is. */
		struct kv_pair name = { { "", 0 }, key.encoding };

		if (c->op == SELECTOR_KEY_MAP_MATCH)
			s.value = (struct leaf_value){ &name, 1, 0 };
		TRY(match_node(c->sub, &s, &matched));
		if (matched != all)
			break;
	}
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	*ret = matched;
	return STATUS_OK;
}

/* ---- Kinds, numbers, strings ---- */

static enum status
match_type(const struct selector_cond *c, const struct leaf_value *v, bool *ret)
{
	static const char *const names[] = {
		[LEAF_NULL] = "null",     [LEAF_FALSE] = "boolean", [LEAF_TRUE] = "boolean",
		[LEAF_NUMBER] = "number", [LEAF_STRING] = "string", [LEAF_ARRAY] = "array",
		[LEAF_OBJECT] = "object",
	};
	enum leaf_kind kind;

	TRY(leaf_kind(v, &kind));
	*ret = str_eq(c->text, str_from_cstr(names[kind]));
	return STATUS_OK;
}

static enum status
match_mod(const struct selector_cond *c, const struct leaf_value *v, bool *ret)
{
	struct leaf_number n;
	enum leaf_kind kind;
	int64_t rest = 0;

	TRY(leaf_kind(v, &kind));
	*ret = false;
	if (kind != LEAF_NUMBER)
		return STATUS_OK;
	TRY(leaf_number(v, &n));
	*ret = leaf_number_rem(&n, c->divisor, &rest) && rest == c->number;
	return STATUS_OK;
}

static enum status
match_text(const struct selector_cond *c, const struct leaf_value *v, struct arena *scratch,
	   bool *ret)
{
	enum leaf_kind kind;
	struct str text;

	TRY(leaf_kind(v, &kind));
	*ret = false;
	if (kind != LEAF_STRING)
		return STATUS_OK;
	TRY(leaf_text(v, scratch, &text));
	if (c->op == SELECTOR_REGEX)
		return selector_regex_match(c->regex, text, ret);
	*ret = str_starts_with(text, c->text);
	return STATUS_OK;
}

/* ---- Conditions ---- */

static enum status
match_cond(const struct selector_cond *c, const struct leaf_value *v, struct arena *scratch,
	   bool *ret)
{
	switch (c->op) {
	case SELECTOR_LT:
	case SELECTOR_LTE:
	case SELECTOR_EQ:
	case SELECTOR_NE:
	case SELECTOR_GTE:
	case SELECTOR_GT:
		return match_order(c, v, scratch, ret);
	case SELECTOR_IN:
		return match_in(c, v, scratch, ret);
	case SELECTOR_NIN:
		TRY(match_in(c, v, scratch, ret));
		*ret = !*ret;
		return STATUS_OK;
	case SELECTOR_EXISTS:
		*ret = c->exists;
		return STATUS_OK;
	case SELECTOR_TYPE:
		return match_type(c, v, ret);
	case SELECTOR_SIZE:
		return match_size(c, v, ret);
	case SELECTOR_MOD:
		return match_mod(c, v, ret);
	case SELECTOR_REGEX:
	case SELECTOR_BEGINS_WITH:
		return match_text(c, v, scratch, ret);
	case SELECTOR_ALL:
		return match_all(c, v, ret);
	case SELECTOR_ELEM_MATCH:
	case SELECTOR_ALL_MATCH:
	case SELECTOR_KEY_MAP_MATCH:
		break;
	}
	return match_children(c, v, scratch, ret);
}

static enum status
match_field(const struct selector_node *n, const struct subject *s, bool *ret)
{
	const struct selector_cond *c = &n->cond;
	struct arena_mark mark = arena_mark(s->scratch);
	enum selector_found found = SELECTOR_FOUND;
	struct leaf_value v = s->value;

	if (s->doc) {
		TRY(selector_lookup(s->doc, &n->path, &v, &found));
	} else {
		for (size_t i = 0; i < n->path.count && found == SELECTOR_FOUND; i++)
			TRY(selector_step(&v, &n->path.names[i], &v, &found));
	}
	if (found != SELECTOR_FOUND) {
		*ret = found == SELECTOR_NO_MEMBER && c->op == SELECTOR_EXISTS && !c->exists;
		return STATUS_OK;
	}
	TRY(match_cond(c, &v, s->scratch, ret));
	*ret = *ret != c->negated;
	arena_reset(s->scratch, mark);
	return STATUS_OK;
}

static enum status
match_node(const struct selector_node *n, const struct subject *s, bool *ret)
{
	bool enough = n->kind == SELECTOR_OR; /* the answer that ends the search */

	switch (n->kind) {
	case SELECTOR_FIELD:
		return match_field(n, s, ret);
	case SELECTOR_NOT:
		TRY(match_node(n->first, s, ret));
		*ret = !*ret;
		return STATUS_OK;
	case SELECTOR_AND:
	case SELECTOR_OR:
		*ret = true; /* an empty list matches anything, in an $or, too */
		for (const struct selector_node *i = n->first; i; i = i->next) {
			TRY(match_node(i, s, ret));
			if (*ret == enough)
				break;
		}
		return STATUS_OK;
	case SELECTOR_ANYTHING:
		break;
	}
	*ret = true;
	return STATUS_OK;
}

enum status
selector_match(const struct selector *s, const struct selector_doc *doc, struct arena *scratch,
	       bool *ret)
{
	struct subject subject = {
		.doc = doc,
		.value = { doc->leaves, doc->count, 0 },
		.scratch = scratch,
	};
	struct arena_mark mark = arena_mark(scratch);
	enum status status = match_node(s->root, &subject, ret);

	arena_reset(scratch, mark);
	return status;
}

#include <assert.h>

#include "index/collate.h"
#include "index/selector/selector_int.h"

enum {
	MATCH_DECODED_BYTES = 1024, /* the bytes of a scalar that are decoded in one step */
};

/*
 * The subject of a match: a document, or a value inside of $elemMatch, $allMatch or $keyMapMatch.
 */
struct match_subject {
	const struct selector_doc *doc; /* NULL for a value */
	struct leaf_value value;
	struct index_work *work;
};

static enum status match_node(const struct selector_node *n, const struct match_subject *s,
			      bool *ret);

/* ---- Comparisons ---- */

static enum status
match_order(const struct selector_cond *c, const struct leaf_value *v, struct index_work *w,
	    bool *ret)
{
	int order;

	TRY(selector_compare(c, v, &c->operand, w, &order));
	*ret = (c->op == SELECTOR_LT && order < 0) || (c->op == SELECTOR_LTE && order <= 0) ||
	       (c->op == SELECTOR_EQ && order == 0) || (c->op == SELECTOR_NE && order != 0) ||
	       (c->op == SELECTOR_GTE && order >= 0) || (c->op == SELECTOR_GT && order > 0);
	return STATUS_OK;
}

/* True if the value is in the list. For an array, true if one of its elements is in the list. */
static enum status
match_in(const struct selector_cond *c, const struct leaf_value *v, struct index_work *w, bool *ret)
{
	struct leaf_iter iter = { .rest = *v };
	struct leaf_value element;
	struct tuple_elem position;
	enum leaf_kind kind;
	enum status status = STATUS_OK;
	size_t at;

	TRY(leaf_kind(v, &kind));
	if (kind != LEAF_ARRAY)
		return selector_list_find(c, v, w, &at, ret);
	*ret = false;
	while (!*ret && (status = leaf_next(&iter, &position, &element)) == STATUS_OK)
		TRY(selector_list_find(c, &element, w, &at, ret));
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- Arrays and objects ---- */

/*
 * True if each value of the list is in the array. Each element is looked up in the list once and
 * marks what it finds there; all are there when as many are marked as the list has.
 */
static enum status
match_has_all(const struct selector_cond *c, const struct leaf_value *array, struct index_work *w,
	      bool *ret)
{
	struct leaf_iter iter = { .rest = *array };
	struct arena_mark mark = arena_mark(w->arena);
	uint8_t *marks = arena_zalloc(w->arena, c->list_count / 8 + 1);
	struct leaf_value element;
	struct tuple_elem position;
	enum status status = STATUS_OK;
	size_t missing = c->list_count;

	if (!marks)
		return STATUS_LIMIT;
	while (missing && (status = leaf_next(&iter, &position, &element)) == STATUS_OK) {
		bool found;
		size_t at;

		TRY(selector_list_find(c, &element, w, &at, &found));
		/* The list has each value once (list.c), so one mark stands for one value. */
		assert(!found || at < c->list_count);
		if (found && !(marks[at / 8] >> at % 8 & 1)) {
			marks[at / 8] |= (uint8_t)(1U << at % 8);
			missing--;
		}
	}
	arena_reset(w->arena, mark);
	*ret = missing == 0;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* True if each value of the list is in the array, or the list has one array equal to this one. */
static enum status
match_all(const struct selector_cond *c, const struct leaf_value *v, struct index_work *w,
	  bool *ret)
{
	enum leaf_kind kind;
	uint64_t count;

	TRY(leaf_kind(v, &kind));
	*ret = false;
	if (kind != LEAF_ARRAY || !c->list_count)
		return STATUS_OK;
	if (c->list_single)
		TRY(collate_same(&c->list[0], v, w, ret));
	TRY(leaf_array_count(v, &count));
	if (*ret || count < c->list_count)
		return STATUS_OK;
	return match_has_all(c, v, w, ret);
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
 * Matches the inside of a value. $elemMatch: some element matches; $allMatch: there are elements
 * and all of them match; $keyMapMatch: the name of some member matches.
 */
static enum status
match_children(const struct selector_cond *c, const struct leaf_value *v, struct index_work *w,
	       bool *ret)
{
	struct leaf_iter iter = { .rest = *v };
	struct match_subject s = { .work = w };
	bool all = c->op == SELECTOR_ALL_MATCH;
	bool matched = false;
	struct tuple_elem key;
	enum leaf_kind kind;
	enum status status;

	/* A value inside of a value is no document: its conditions look at `s.value` alone. */
	assert(c->sub && !s.doc);
	TRY(leaf_kind(v, &kind));
	*ret = false;
	if (kind != (c->op == SELECTOR_KEY_MAP_MATCH ? LEAF_OBJECT : LEAF_ARRAY))
		return STATUS_OK;
	while ((status = leaf_next(&iter, &key, &s.value)) == STATUS_OK) {
		/*
		 * The name of a member is encoded in a path just as a string is among the values.
		 */
		struct kv_pair name = { { "", 0 }, key.encoding };

		TRY(index_count(w, 1));
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
match_mod(const struct selector_cond *c, const struct leaf_value *v, struct index_work *w,
	  bool *ret)
{
	struct leaf_number n;
	enum leaf_kind kind;
	int64_t rest = 0;

	TRY(leaf_kind(v, &kind));
	*ret = false;
	if (kind != LEAF_NUMBER)
		return STATUS_OK;
	assert(c->divisor); /* selector_compile() refuses 0 */
	TRY(leaf_number(v, &n));
	TRY(leaf_number_rem(&n, c->divisor, w, ret, &rest));
	*ret = *ret && rest == c->number;
	return STATUS_OK;
}

static enum status
match_text(const struct selector_cond *c, const struct leaf_value *v, struct index_work *w,
	   bool *ret)
{
	enum leaf_kind kind;
	struct str text;

	TRY(leaf_kind(v, &kind));
	*ret = false;
	if (kind != LEAF_STRING)
		return STATUS_OK;
	TRY(leaf_text(v, w, &text));
	if (c->op == SELECTOR_REGEX)
		return selector_regex_match(c->regex, text, w, ret);
	*ret = str_starts_with(text, c->text);
	return index_count_bytes(w, c->text.len);
}

/* ---- Conditions ---- */

static enum status
match_cond(const struct selector_cond *c, const struct leaf_value *v, struct index_work *w,
	   bool *ret)
{
	size_t at;

	switch (c->op) {
	case SELECTOR_LT:
	case SELECTOR_LTE:
	case SELECTOR_EQ:
	case SELECTOR_NE:
	case SELECTOR_GTE:
	case SELECTOR_GT:
		return match_order(c, v, w, ret);
	case SELECTOR_IN:
		return match_in(c, v, w, ret);
	case SELECTOR_NIN:
		TRY(match_in(c, v, w, ret));
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
		return match_mod(c, v, w, ret);
	case SELECTOR_REGEX:
	case SELECTOR_BEGINS_WITH:
		return match_text(c, v, w, ret);
	case SELECTOR_ALL:
		return match_all(c, v, w, ret);
	case SELECTOR_EQ_ANY:
		return selector_list_find(c, v, w, &at, ret);
	case SELECTOR_ELEM_MATCH:
	case SELECTOR_ALL_MATCH:
	case SELECTOR_KEY_MAP_MATCH:
		break;
	}
	return match_children(c, v, w, ret);
}

static enum status
match_field(const struct selector_node *n, const struct match_subject *s, bool *ret)
{
	const struct selector_cond *c = &n->cond;
	struct arena_mark mark = arena_mark(s->work->arena);
	enum selector_found found = SELECTOR_FOUND;
	struct leaf_value v = s->value;

	TRY(index_count(s->work, (uint32_t)(1 + n->path.count * SELECTOR_NAME_STEPS)));
	if (s->doc) {
		TRY(selector_lookup(s->doc, &n->path, &v, &found));
	} else {
		for (size_t i = 0; i < n->path.count && found == SELECTOR_FOUND; i++)
			TRY(selector_step(&v, &n->path.names[i], &v, &found));
	}
	/*
	 * Nothing but {"$exists": false} holds of what is not there, negated or not. What the path
	 * has met on its way instead of an object is no missing member.
	 */
	if (found != SELECTOR_FOUND) {
		*ret = found == SELECTOR_NO_MEMBER && c->op == SELECTOR_EXISTS && !c->exists;
		return STATUS_OK;
	}
	/* A scalar is decoded, which scans it. */
	if (v.count)
		TRY(index_count(s->work, (uint32_t)(v.leaves[0].value.len / MATCH_DECODED_BYTES)));
	TRY(match_cond(c, &v, s->work, ret));
	*ret = *ret != c->negated;
	arena_reset(s->work->arena, mark);
	return STATUS_OK;
}

static enum status
match_node(const struct selector_node *n, const struct match_subject *s, bool *ret)
{
	bool enough = n->kind == SELECTOR_OR; /* the answer that ends the search */

	TRY(index_count(s->work, 1));
	switch (n->kind) {
	case SELECTOR_FIELD:
		return match_field(n, s, ret);
	case SELECTOR_NOT:
		TRY(match_node(n->first, s, ret));
		*ret = !*ret;
		return STATUS_OK;
	case SELECTOR_AND:
	case SELECTOR_OR:
		*ret = true; /* an empty list matches everything, even in an $or */
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
selector_match(const struct selector *s, const struct selector_doc *doc, struct index_work *w,
	       bool *ret)
{
	struct match_subject subject = {
		.doc = doc,
		.value = { doc->leaves, doc->count, 0 },
		.work = w,
	};
	struct arena_mark mark = arena_mark(w->arena);
	enum status status = match_node(s->root, &subject, ret);

	arena_reset(w->arena, mark);
	return status;
}

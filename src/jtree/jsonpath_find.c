/*
 * Following a path: step by step, each from all nodes that the one before has led to. That is the
 * order in which going down from each node would meet them, and needs no stack.
 */
#include <assert.h>

#include "loop/step.h"
#include "mql/regex.h"
#include "jtree/jsonpath_int.h"

struct finder {
	struct jtree_node *root;
	const struct jtree_source *source;
	struct arena *arena;
	struct err *err;
	uint64_t visits; /* so far */
};

/* A container and how many of its children were gone through. */
struct walked {
	struct jtree_node *node;
	uint64_t next;
};

static enum status find_from(struct finder *f, const struct jsonpath *path, struct jtree_node *node,
			     struct jsonpath_matches *ret);

static enum status
visit(struct finder *f)
{
	TRY(step_count(1));
	if (f->visits++ < JSONPATH_VISITS)
		return STATUS_OK;
	return err_set(f->err, STATUS_LIMIT,
		       "the path has looked at %d values (JSONPATH_VISITS): it asks for too much",
		       JSONPATH_VISITS);
}

static enum status
match_add(struct finder *f, struct jsonpath_matches *m, struct jtree_node *node)
{
	TRY(visit(f));
	if (m->count == JSONPATH_MATCHES)
		return err_set(f->err, STATUS_LIMIT,
			       "the path leads to more than %d values (JSONPATH_MATCHES)",
			       JSONPATH_MATCHES);
	TRY(arena_room(f->arena, &m->nodes, m->count, &m->cap, sizeof(*m->nodes)));
	m->nodes[m->count++] = node;
	return STATUS_OK;
}

static enum status
load(struct finder *f, struct jtree_node *node)
{
	if (node->whole)
		return STATUS_OK;
	assert(f->source);
	return f->source->load(f->source->arg, node);
}

/* ---- Filters ---- */

/* What a term stands for; NULL: nothing. */
static enum status
term_value(struct finder *f, const struct jsonpath_term *term, struct jtree_node *node,
	   struct jtree_node **ret)
{
	struct jsonpath_matches found = { .count = 0 };

	*ret = term->literal;
	if (!term->path)
		return STATUS_OK;
	TRY(find_from(f, term->path, term->from_root ? f->root : node, &found));
	*ret = found.count == 1 ? found.nodes[0] : NULL;
	return *ret ? load(f, *ret) : STATUS_OK;
}

static int
sign_of(bool less, bool greater)
{
	return greater - less;
}

/* `*ret_fits` is false: there is no order between the two. */
static enum status
term_compare(struct finder *f, struct jtree_node *a, struct jtree_node *b, int *ret, bool *ret_fits)
{
	bool equal;

	*ret_fits = true;
	if (a->kind == JTREE_INT && b->kind == JTREE_INT) {
		*ret = sign_of(a->i<b->i, a->i> b->i);
	} else if (jtree_is_number(a) && jtree_is_number(b)) {
		double x = jtree_number(a), y = jtree_number(b);

		*ret = sign_of(x<y, x> y);
	} else if (a->kind == JTREE_TEXT && b->kind == JTREE_TEXT) {
		TRY(step_count_bytes(a->text.len < b->text.len ? a->text.len : b->text.len));
		*ret = str_cmp(a->text, b->text);
	} else if (a->kind == JTREE_BOOL && b->kind == JTREE_BOOL) {
		*ret = sign_of(a->truth<b->truth, a->truth> b->truth);
	} else if (a->kind == JTREE_NULL && b->kind == JTREE_NULL) {
		*ret = 0;
	} else if (jtree_is_container(a) && a->kind == b->kind) {
		TRY(jtree_equal(f->arena, a, b, &equal));
		*ret = 0;
		*ret_fits = equal;
	} else {
		*ret_fits = false;
	}
	return STATUS_OK;
}

/* True if the text of `a` has a match of the expression that `b` is. */
static enum status
term_matches(struct finder *f, const struct jsonpath_term *term, const struct jtree_node *a,
	     const struct jtree_node *b, bool *ret)
{
	struct arena_mark mark = arena_mark(f->arena);
	struct mql q = { .arena = f->arena };
	struct mql_regex *regex = term->regex;
	enum status status = STATUS_OK;

	*ret = false;
	if (a->kind != JTREE_TEXT || b->kind != JTREE_TEXT)
		return STATUS_OK;
	if (!regex && term->path)
		status = mql_regex_compile(&q, b->text, STR(""), &regex);
	if (status == STATUS_OK && regex)
		status = mql_regex_match(regex, &q, a->text, 0, ret, NULL);
	arena_reset(f->arena, mark);
	if (status == STATUS_INVALID)
		*ret = false;
	return status == STATUS_INVALID ? STATUS_OK : status;
}

static enum status
comparison_holds(struct finder *f, const struct jsonpath_filter *filter, struct jtree_node *node,
		 bool *ret)
{
	struct jtree_node *a, *b;
	int order = 0;
	bool fits = false;

	TRY(term_value(f, &filter->left, node, &a));
	*ret = a != NULL;
	if (filter->op == JSONPATH_THERE)
		return STATUS_OK;
	TRY(term_value(f, &filter->right, node, &b));
	*ret = false;
	if (filter->op == JSONPATH_MATCHES_REGEX)
		return a && b ? term_matches(f, &filter->right, a, b, ret) : STATUS_OK;
	if (a && b)
		TRY(term_compare(f, a, b, &order, &fits));
	/* Containers are equal or not, and have no order. */
	if (fits && jtree_is_container(a) && filter->op != JSONPATH_EQ && filter->op != JSONPATH_NE)
		fits = false;
	*ret = filter->op == JSONPATH_NE   ? !fits || order != 0
	       : !fits                     ? false
	       : filter->op == JSONPATH_EQ ? order == 0
	       : filter->op == JSONPATH_LT ? order < 0
	       : filter->op == JSONPATH_LE ? order <= 0
	       : filter->op == JSONPATH_GT ? order > 0
					   : order >= 0;
	return STATUS_OK;
}

static enum status
filter_holds(struct finder *f, const struct jsonpath_filter *filter, struct jtree_node *node,
	     bool *ret)
{
	TRY(visit(f));
	if (filter->kind == JSONPATH_TERM)
		return comparison_holds(f, filter, node, ret);
	*ret = filter->kind == JSONPATH_AND;
	for (size_t i = 0; i < filter->count && *ret == (filter->kind == JSONPATH_AND); i++)
		TRY(filter_holds(f, filter->parts[i], node, ret));
	return STATUS_OK;
}

/* ---- Steps ---- */

static enum status
find_names(struct finder *f, const struct jsonpath_step *step, struct jtree_node *node,
	   struct jsonpath_matches *ret)
{
	struct jtree_node *child;

	if (node->kind != JTREE_OBJECT)
		return STATUS_OK;
	if (step->count > 1)
		TRY(load(f, node));
	for (size_t i = 0; i < step->count; i++) {
		if (node->whole)
			TRY(jtree_member(f->arena, node, step->names[i], &child));
		else
			TRY(f->source->member(f->source->arg, node, step->names[i], &child));
		if (child)
			TRY(match_add(f, ret, child));
	}
	return STATUS_OK;
}

/* Negative positions count from the end; those before the beginning are the beginning. */
static uint64_t
position_of(int64_t at, uint64_t count)
{
	if (at >= 0)
		return (uint64_t)at < count ? (uint64_t)at : count;
	return (uint64_t) - (at + 1) < count ? count - 1 - (uint64_t) - (at + 1) : 0;
}

static enum status
find_indexes(struct finder *f, const struct jsonpath_step *step, struct jtree_node *node,
	     struct jsonpath_matches *ret)
{
	struct jtree_node *child;

	if (node->kind != JTREE_ARRAY)
		return STATUS_OK;
	if (step->count > 1)
		TRY(load(f, node));
	for (size_t i = 0; i < step->count; i++) {
		uint64_t at = position_of(step->indexes[i], node->count);

		if (at >= node->count)
			continue;
		if (node->whole)
			child = node->children[at];
		else
			TRY(f->source->element(f->source->arg, node, at, &child));
		TRY(match_add(f, ret, child));
	}
	return STATUS_OK;
}

static enum status
find_slice(struct finder *f, const struct jsonpath_step *step, struct jtree_node *node,
	   struct jsonpath_matches *ret)
{
	uint64_t from, to;

	if (node->kind != JTREE_ARRAY)
		return STATUS_OK;
	from = position_of(step->from, node->count);
	to = step->has_to ? position_of(step->to, node->count) : node->count;
	while (from < to) {
		TRY(match_add(f, ret, node->children[from]));
		if (to - from <= step->step)
			break;
		from += step->step;
	}
	return STATUS_OK;
}

static enum status
find_children(struct finder *f, const struct jsonpath_step *step, struct jtree_node *node,
	      struct jsonpath_matches *ret)
{
	bool holds = true;

	for (uint64_t i = 0; jtree_is_container(node) && i < node->count; i++) {
		struct jtree_node *child = node->children[i];

		if (step->kind == JSONPATH_FILTER)
			TRY(filter_holds(f, step->filter, child, &holds));
		if (holds)
			TRY(match_add(f, ret, child));
	}
	return STATUS_OK;
}

/* What the step leads to from this node alone. */
static enum status
find_step_at(struct finder *f, const struct jsonpath_step *step, struct jtree_node *node,
	     struct jsonpath_matches *ret)
{
	switch (step->kind) {
	case JSONPATH_NAMES:
		return find_names(f, step, node, ret);
	case JSONPATH_INDEXES:
		return find_indexes(f, step, node, ret);
	case JSONPATH_SLICE:
		TRY(load(f, node));
		return find_slice(f, step, node, ret);
	case JSONPATH_ALL:
	case JSONPATH_FILTER:
		TRY(load(f, node));
		return find_children(f, step, node, ret);
	}
	return STATUS_OK;
}

/* Of the node and of all below it: a container comes before what is in it. */
static enum status
find_descending(struct finder *f, const struct jsonpath_step *step, struct jtree_node *node,
		struct jsonpath_matches *ret)
{
	struct walked *stack = arena_alloc(f->arena, (JTREE_DEPTH + 1) * sizeof(*stack));
	size_t depth = 0;

	if (!stack)
		return STATUS_LIMIT;
	TRY(load(f, node));
	TRY(find_step_at(f, step, node, ret));
	if (jtree_is_container(node))
		stack[depth++] = (struct walked){ .node = node };
	while (depth) {
		struct walked *top = &stack[depth - 1];
		struct jtree_node *child;

		TRY(visit(f));
		if (top->next == top->node->count) {
			depth--;
			continue;
		}
		child = top->node->children[top->next++];
		if (!jtree_is_container(child))
			continue;
		TRY(find_step_at(f, step, child, ret));
		assert(depth <= JTREE_DEPTH);
		stack[depth++] = (struct walked){ .node = child };
	}
	return STATUS_OK;
}

static enum status
find_from(struct finder *f, const struct jsonpath *path, struct jtree_node *node,
	  struct jsonpath_matches *ret)
{
	struct jsonpath_matches from = { .count = 0 }, to = { .count = 0 };

	TRY(match_add(f, &from, node));
	for (size_t i = 0; i < path->count; i++) {
		const struct jsonpath_step *step = &path->steps[i];

		to = (struct jsonpath_matches){ .count = 0 };
		for (size_t k = 0; k < from.count; k++)
			TRY(step->descends ? find_descending(f, step, from.nodes[k], &to)
					   : find_step_at(f, step, from.nodes[k], &to));
		from = to;
	}
	*ret = from;
	return STATUS_OK;
}

enum status
jsonpath_find(const struct jsonpath *path, struct jtree_node *root,
	      const struct jtree_source *source, struct arena *arena, struct jsonpath_matches *ret,
	      struct err *err)
{
	struct finder f = { .root = root, .source = source, .arena = arena, .err = err };

	*ret = (struct jsonpath_matches){ .count = 0 };
	/* Each element would look for it anew. */
	if (path->asks_root)
		TRY(load(&f, root));
	return find_from(&f, path, root, ret);
}

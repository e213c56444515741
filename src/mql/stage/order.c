/*
 * The order of stages: $match goes in front of stages that do not change what it looks at, so that
 * a source can find by it; a $limit behind a $sort tells the sort how much it has to keep.
 */
#include <assert.h>

#include "mql/stage/stages_int.h"

/* ---- What a filter reads ---- */

/* Whether the stage leaves all that is under a name as it was. */
static bool
stage_keeps(const struct mql_stage *s, struct str name)
{
	struct str path, index;

	if (s->ops == &mql_sort_ops)
		return true;
	if (s->ops == &mql_project_ops)
		return mql_projection_keeps(mql_stage_projection(s), name);
	if (s->ops == &mql_unwind_ops) {
		path = mql_unwind_path(s, &index);
		return !str_eq(str_cut(&path, '.'), name) &&
		       (!index.len || !str_eq(str_cut(&index, '.'), name));
	}
	return false;
}

static bool filter_is_kept(const struct mql_stage *s, struct str filter, size_t depth);

static bool
condition_is_kept(const struct mql_stage *s, const struct bson_element *e, size_t depth)
{
	struct str path = e->name;
	struct bson_element inner;
	struct bson_iter i;

	if (!path.len || path.ptr[0] != '$')
		return stage_keeps(s, str_cut(&path, '.'));
	if (mql_is(path, "$comment"))
		return true;
	if (!(mql_is(path, "$and") || mql_is(path, "$or") || mql_is(path, "$nor")) ||
	    e->value.type != BSON_ARRAY)
		return s->ops == &mql_sort_ops;
	for (bson_iter_begin(&i, bson_text(&e->value)); bson_iter_read(&i, &inner);)
		if (inner.value.type != BSON_DOCUMENT ||
		    !filter_is_kept(s, bson_text(&inner.value), depth + 1))
			return false;
	return true;
}

static bool
filter_is_kept(const struct mql_stage *s, struct str filter, size_t depth)
{
	struct bson_element e;
	struct bson_iter i;

	/* A deeper filter has been refused when its stage was compiled. */
	assert(depth < MQL_DEPTH);
	for (bson_iter_begin(&i, filter); bson_iter_read(&i, &e);) {
		step_pause(1);
		if (!condition_is_kept(s, &e, depth))
			return false;
	}
	return true;
}

/*
 * Whether an $expr is somewhere in a filter: it may name variables, which a source does not know.
 */
static bool
has_expr(const struct bson_value *v, size_t depth)
{
	struct bson_element e;
	struct bson_iter i;

	if (!bson_is_container(v))
		return false;
	if (depth > MQL_DEPTH)
		return true;
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);) {
		step_pause(1);
		if (mql_is(e.name, "$expr") || has_expr(&e.value, depth + 1))
			return true;
	}
	return false;
}

/* ---- What a $group reads ---- */

struct needs {
	struct str *names;
	size_t count, most;
};

static bool
needs_add(struct needs *n, struct str name)
{
	for (size_t i = 0; i < n->count; i++)
		if (str_eq(n->names[i], name))
			return true;
	if (n->count == n->most)
		return false;
	n->names[n->count++] = name;
	return true;
}

/* "$a.b" needs "a"; a variable needs nothing, unless it stands for the document. */
static bool
needs_text(struct needs *n, struct str text)
{
	struct str rest, name;

	if (!str_starts_with(text, STR("$")))
		return true;
	if (!str_starts_with(text, STR("$$"))) {
		rest = str_skip(text, 1);
		return needs_add(n, str_cut(&rest, '.'));
	}
	rest = str_skip(text, 2);
	name = str_cut(&rest, '.');
	return !mql_is(name, "ROOT") && !mql_is(name, "CURRENT");
}

/* Of a literal that looks like a path, more is needed than is so. */
static bool
needs_value(struct needs *n, const struct bson_value *v, size_t depth)
{
	struct bson_element e;
	struct bson_iter i;

	if (v->type == BSON_STRING)
		return needs_text(n, bson_text(v));
	if (!bson_is_container(v))
		return true;
	if (depth > MQL_DEPTH)
		return false;
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);) {
		step_pause(1);
		/* These look at the document without naming it. */
		if (mql_is(e.name, "$getField") || mql_is(e.name, "$meta") ||
		    mql_is(e.name, "CURRENT") || !needs_value(n, &e.value, depth + 1))
			return false;
	}
	return true;
}

bool
mql_pipeline_needs(const struct mql_pipeline *p, size_t i, struct str *ret, size_t most,
		   size_t *ret_count)
{
	struct needs n = { .names = ret, .most = most };
	bool known = i < p->count && mql_is(p->stages[i].name, "$group") &&
		     needs_value(&n, &p->stages[i].spec, 0);

	*ret_count = n.count;
	return known;
}

/* ---- $match to the front ---- */

static enum status
move_matches(struct mql_pipeline *p)
{
	for (size_t i = 1; i < p->count; i++) {
		for (size_t at = i; at && p->stages[at].ops == &mql_match_ops; at--) {
			struct mql_stage *before = &p->stages[at - 1], swap = *before;

			TRY(step_count(1));
			if (before->ops == &mql_match_ops ||
			    !filter_is_kept(before, bson_text(&p->stages[at].spec), 0))
				break;
			*before = p->stages[at];
			p->stages[at] = swap;
		}
	}
	return STATUS_OK;
}

/* All filters in front, as one. */
static enum status
front_filter(struct mql_stages *c)
{
	struct buf out = mql_buf(c->q, 2 * BSON_MOST_BYTES);
	struct mql_pipeline *p = c->p;
	struct bson_builder b;
	size_t count = 0;

	p->front.filter = BSON_EMPTY;
	while (count < p->count && p->stages[count].ops == &mql_match_ops &&
	       !has_expr(&p->stages[count].spec, 0))
		count++;
	p->front.filter_stages = count;
	if (count == 1)
		p->front.filter = bson_text(&p->stages[0].spec);
	if (count < 2)
		return STATUS_OK;
	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_begin_array(&b, STR("$and"));
	for (size_t i = 0; i < count; i++)
		bson_put_document(&b, STR(""), bson_text(&p->stages[i].spec));
	bson_end(&b);
	bson_end(&b);
	return mql_keep(c->q, &out, &p->front.filter);
}

/* ---- Limits ---- */

/* How many documents the stages from `i` on ask for at most; 0: all. */
static int64_t
asked_for(const struct mql_pipeline *p, size_t i)
{
	int64_t skip = 0, n;

	for (; i < p->count; i++) {
		const struct mql_stage *s = &p->stages[i];

		if (s->ops == &mql_limit_ops)
			return __builtin_add_overflow(skip, mql_stage_number(s), &n) ? 0 : n;
		if (s->ops == &mql_skip_ops) {
			if (__builtin_add_overflow(skip, mql_stage_number(s), &skip))
				return 0;
		} else if (s->ops != &mql_project_ops && s->ops != &mql_replace_ops) {
			return 0;
		}
	}
	return 0;
}

enum status
mql_stages_order(struct mql_stages *c)
{
	struct mql_pipeline *p = c->p;
	size_t at;

	TRY(move_matches(p));
	TRY(front_filter(c));
	for (size_t i = 0; i < p->count; i++) {
		int64_t limit = p->stages[i].ops == &mql_sort_ops ? asked_for(p, i + 1) : 0;

		if (limit)
			mql_sort_stage_limit(&p->stages[i], limit);
	}
	at = p->front.filter_stages;
	if (at < p->count && p->stages[at].ops == &mql_sort_ops) {
		p->front.sort = bson_text(&p->stages[at].spec);
		at++;
	}
	p->front.limit = asked_for(p, at);
	return STATUS_OK;
}

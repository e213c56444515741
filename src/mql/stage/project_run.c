/* Running projections: members in the order of the document, then what is computed. */
#include "base/hash.h"
#include "mql/mql_int.h"
#include "mql/stage/project_int.h"

struct run {
	const struct mql_projection *p;
	struct mql *q;
	struct str root;
	struct mql_env env;
	int64_t position;
	bool picked; /* "a.$" has chosen its element */
	struct bson_builder out;
};

static enum status run_members(struct run *r, const struct mql_field *tree, struct str doc);

const struct mql_field *
mql_field_find(const struct mql_field *tree, struct str name)
{
	const struct mql_field *f = tree->first;
	size_t at;

	if (!tree->slot_count) {
		while (f && !str_eq(f->name, name))
			f = f->next;
		return f;
	}
	at = hash_keyed(0, name) & (tree->slot_count - 1);
	while (tree->slots[at] && !str_eq(tree->slots[at]->name, name))
		at = (at + 1) & (tree->slot_count - 1);
	return tree->slots[at];
}

/* ---- Values ---- */

static enum status
put_computed(struct run *r, const struct mql_field *f)
{
	struct bson_value v;

	TRY(mql_expr_run(f->expr, r->q, &r->env, &v));
	if ((int)v.type != MQL_MISSING)
		bson_put(&r->out, f->name, &v);
	return step_count_bytes(bson_is_container(&v) ? bson_text(&v).len : 0);
}

/* $elemMatch: an array of the first element that matches; nothing if none does. */
static enum status
put_element(struct run *r, const struct mql_field *f)
{
	struct bson_value array;
	struct bson_element e;
	struct bson_iter i;
	bool matches;

	if (!bson_find(r->root, f->name, &array) || array.type != BSON_ARRAY)
		return STATUS_OK;
	for (bson_iter_begin(&i, bson_text(&array)); bson_iter_read(&i, &e);) {
		TRY(mql_match_run_value(f->match, r->q, &e.value, &matches));
		if (!matches)
			continue;
		bson_begin_array(&r->out, f->name);
		bson_put(&r->out, STR(""), &e.value);
		bson_end(&r->out);
		return STATUS_OK;
	}
	return STATUS_OK;
}

static enum status
put_slice(struct run *r, const struct mql_field *f, const struct bson_value *v)
{
	int64_t count, from = f->skip, limit = f->limit, at = 0;
	struct bson_element e;
	struct bson_iter i;

	if (v->type != BSON_ARRAY) {
		bson_put(&r->out, f->name, v);
		return STATUS_OK;
	}
	TRY(step_count_bytes(bson_text(v).len));
	count = (int64_t)bson_count(bson_text(v));
	if (!f->skips) {
		from = limit < 0 ? limit : 0;
		limit = limit < 0 ? INT64_MAX : limit;
	}
	if (from < 0)
		from = from < -count ? 0 : count + from;
	bson_begin_array(&r->out, f->name);
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e); at++)
		if (at >= from && at - from < limit)
			bson_put(&r->out, STR(""), &e.value);
	bson_end(&r->out);
	return STATUS_OK;
}

/* ---- "a.$" ---- */

/* The element that the query has found. */
static enum status
pick(struct run *r, struct str array, struct bson_value *ret)
{
	struct bson_element e;
	struct bson_iter i;
	int64_t at = 0;

	if (r->position < 0)
		return mql_fail(r->q, 51246,
				"Executor error during find command :: caused by :: positional "
				"operator '.$' couldn't find a matching element in the array");
	for (bson_iter_begin(&i, array); bson_iter_read(&i, &e); at++) {
		if (at == r->position) {
			r->picked = true;
			*ret = e.value;
			return STATUS_OK;
		}
	}
	return mql_fail(r->q, 51247,
			"Executor error during find command :: caused by :: positional operator "
			"'.$' element mismatch");
}

static enum status
put_included(struct run *r, const struct mql_field *f, const struct bson_element *e)
{
	struct bson_value v;

	if (!f->positional || r->picked || e->value.type != BSON_ARRAY) {
		bson_put_element(&r->out, e);
		return STATUS_OK;
	}
	TRY(pick(r, bson_text(&e->value), &v));
	bson_begin_array(&r->out, f->name);
	bson_put(&r->out, STR(""), &v);
	bson_end(&r->out);
	return STATUS_OK;
}

/* ---- Trees ---- */

static enum status run_tree(struct run *r, const struct mql_field *tree, struct str name,
			    const struct bson_value *v);

static enum status
run_array(struct run *r, const struct mql_field *tree, struct str name, struct str array)
{
	struct bson_element e;
	struct bson_value picked;
	struct bson_iter i;

	bson_begin_array(&r->out, name);
	if (tree->positional && !r->picked) {
		TRY(pick(r, array, &picked));
		TRY(run_tree(r, tree, STR(""), &picked));
	} else {
		for (bson_iter_begin(&i, array); bson_iter_read(&i, &e);)
			TRY(run_tree(r, tree, STR(""), &e.value));
	}
	bson_end(&r->out);
	return STATUS_OK;
}

/* A value that the tree goes into. */
static enum status
run_tree(struct run *r, const struct mql_field *tree, struct str name, const struct bson_value *v)
{
	bool replaced = r->p->mode == MQL_PROJECTION_ADD;

	TRY(step_count(1));
	if (v->type == BSON_ARRAY)
		return run_array(r, tree, name, bson_text(v));
	if (v->type == BSON_DOCUMENT || replaced) {
		bson_begin_document(&r->out, name);
		TRY(run_members(r, tree, v->type == BSON_DOCUMENT ? bson_text(v) : BSON_EMPTY));
		bson_end(&r->out);
		return STATUS_OK;
	}
	if (r->p->mode == MQL_PROJECTION_EXCLUDE)
		bson_put(&r->out, name, v);
	return STATUS_OK;
}

static enum status
run_member(struct run *r, const struct mql_field *f, const struct bson_element *e)
{
	bool later = r->p->mode == MQL_PROJECTION_INCLUDE;

	switch (f->kind) {
	case MQL_FIELD_TREE:
		return run_tree(r, f, e->name, &e->value);
	case MQL_FIELD_INCLUDE:
		return put_included(r, f, e);
	case MQL_FIELD_SLICE:
		return put_slice(r, f, &e->value);
	case MQL_FIELD_EXPR:
		return later ? STATUS_OK : put_computed(r, f);
	case MQL_FIELD_ELEMENT:
		return later ? STATUS_OK : put_element(r, f);
	case MQL_FIELD_EXCLUDE:
		break;
	}
	return STATUS_OK;
}

/* One bit for each member of a tree: whether it was put where the document has it. */
struct placed {
	uint64_t *bits;
	uint64_t few; /* the bits of most trees */
};

static enum status
placed_init(struct placed *p, struct run *r, const struct mql_field *tree)
{
	*p = (struct placed){ .bits = &p->few };
	if (tree->computed && tree->count > 64)
		p->bits = arena_zalloc(r->q->arena, (tree->count / 64 + 1) * sizeof(*p->bits));
	return p->bits ? STATUS_OK : mql_full(r->q);
}

static void
placed_note(struct placed *p, const struct run *r, const struct mql_field *tree,
	    const struct mql_field *f, const struct bson_value *v)
{
	bool include = r->p->mode == MQL_PROJECTION_INCLUDE;

	if (tree->computed && (!include || (f->kind == MQL_FIELD_TREE && bson_is_container(v))))
		p->bits[f->index / 64] |= UINT64_C(1) << f->index % 64;
}

static enum status
run_computed(struct run *r, const struct mql_field *tree, const struct placed *p)
{
	for (const struct mql_field *f = tree->first; f; f = f->next) {
		bool computes = f->kind == MQL_FIELD_EXPR || f->kind == MQL_FIELD_ELEMENT ||
				(f->kind == MQL_FIELD_TREE && f->computed);

		TRY(step_count(1));
		if (!computes || (p->bits[f->index / 64] >> f->index % 64 & 1))
			continue;
		if (f->kind == MQL_FIELD_EXPR) {
			TRY(put_computed(r, f));
		} else if (f->kind == MQL_FIELD_ELEMENT) {
			TRY(put_element(r, f));
		} else {
			bson_begin_document(&r->out, f->name);
			TRY(run_members(r, f, BSON_EMPTY));
			bson_end(&r->out);
		}
	}
	return STATUS_OK;
}

static enum status
run_members(struct run *r, const struct mql_field *tree, struct str doc)
{
	struct bson_element e;
	struct bson_iter i;
	struct placed placed;

	TRY(step_count_bytes(doc.len));
	TRY(placed_init(&placed, r, tree));
	for (bson_iter_begin(&i, doc); bson_iter_read(&i, &e);) {
		const struct mql_field *f = mql_field_find(tree, e.name);

		if (f) {
			placed_note(&placed, r, tree, f, &e.value);
			TRY(run_member(r, f, &e));
		} else if (r->p->mode != MQL_PROJECTION_INCLUDE) {
			bson_put_element(&r->out, &e);
		}
	}
	return tree->computed ? run_computed(r, tree, &placed) : STATUS_OK;
}

enum status
mql_projection_run(const struct mql_projection *p, struct mql *q, struct str doc, int64_t position,
		   const struct mql_bound *let, struct str *ret)
{
	struct buf out = mql_buf(q, BSON_MOST_BYTES);
	struct run r = { .p = p, .q = q, .root = doc, .position = position };
	enum status status;

	r.env = (struct mql_env){ .root = doc, .current = MQL_NO_VALUE, .bound = let };
	bson_builder_init(&r.out, &out);
	bson_begin(&r.out);
	status = run_members(&r, &p->root, doc);
	if (status != STATUS_OK) {
		buf_release(&out);
		return status;
	}
	bson_end(&r.out);
	return mql_keep(q, &out, ret);
}

bool
mql_projection_keeps(const struct mql_projection *p, struct str name)
{
	const struct mql_field *f = mql_field_find(&p->root, name);

	if (!f)
		return p->mode != MQL_PROJECTION_INCLUDE;
	return f->kind == MQL_FIELD_INCLUDE && !f->positional;
}

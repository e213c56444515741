/* Projections into trees of the members that they name. */
#include <math.h>

#include "base/hash.h"
#include "mql/field_path.h"
#include "mql/mql_int.h"
#include "mql/stage/project_int.h"

enum {
	PROJECT_UNKNOWN_OPERATOR = 168, /* of an expression */
	PROJECT_FEW = 8,                /* members that are looked for one by one */
};

struct compile {
	struct mql *q;
	const struct mql_scope *scope;
	struct mql_projection *p;
	bool find;
	bool has_query;
	bool has_element;
	bool id_included;
	struct str stage; /* of those that add */
};

static enum status compile_members(struct compile *c, struct str spec, struct str prefix,
				   size_t depth);

/* ---- Places in the tree ---- */

static enum status
fail_collision(struct compile *c, struct str path, struct str rest)
{
	if (c->p->mode == MQL_PROJECTION_ADD)
		return mql_fail(c->q, 40176,
				"Invalid %.*s :: caused by :: specification contains two "
				"conflicting paths. Cannot specify both '%.*s' and a path above or "
				"below it",
				STR_ARG(c->stage), STR_ARG(path));
	if (rest.len)
		return mql_fail(c->q, 31249, "Path collision at %.*s remaining portion %.*s",
				STR_ARG(path), STR_ARG(rest));
	return mql_fail(c->q, 31250, "Path collision at %.*s", STR_ARG(path));
}

static void
tree_put_slot(struct mql_field *tree, const struct mql_field *f)
{
	size_t at = hash_keyed(0, f->name) & (tree->slot_count - 1);

	while (tree->slots[at])
		at = (at + 1) & (tree->slot_count - 1);
	tree->slots[at] = f;
}

/* Has the newest member found by its name. At most half of the slots are taken. */
static bool
tree_index_last(struct compile *c, struct mql_field *tree)
{
	size_t slots = tree->slot_count ? 2 * tree->slot_count : 4 * PROJECT_FEW;

	if (tree->count <= PROJECT_FEW)
		return true;
	if (2 * tree->count <= tree->slot_count) {
		tree_put_slot(tree, tree->last);
		return true;
	}
	tree->slots = arena_zalloc(c->q->arena, slots * sizeof(*tree->slots));
	if (!tree->slots)
		return false;
	tree->slot_count = slots;
	for (const struct mql_field *f = tree->first; f; f = f->next)
		tree_put_slot(tree, f);
	return true;
}

static struct mql_field *
tree_add(struct compile *c, struct mql_field *tree, struct str name)
{
	struct mql_field *f = arena_zalloc(c->q->arena, sizeof(*f));

	if (!f)
		return NULL;
	f->name = name;
	f->index = tree->count++;
	if (tree->last)
		tree->last->next = f;
	else
		tree->first = f;
	tree->last = f;
	return tree_index_last(c, tree) ? f : NULL;
}

/* A new member at a path. Trees above it are marked. */
static enum status
place_at(struct compile *c, struct str path, enum mql_field_kind kind, bool positional,
	 struct mql_field **ret)
{
	bool computed = kind == MQL_FIELD_EXPR || kind == MQL_FIELD_ELEMENT;
	struct mql_field *tree = &c->p->root;
	struct str rest = path;

	for (;;) {
		struct str name = str_cut(&rest, '.');
		struct mql_field *f = (struct mql_field *)(uintptr_t)mql_field_find(tree, name);

		TRY(step_count(1));
		tree->computed |= computed;
		if (f && (!rest.len || f->kind != MQL_FIELD_TREE))
			return fail_collision(c, path, rest);
		if (!f)
			f = tree_add(c, tree, name);
		if (!f)
			return mql_full(c->q);
		f->positional |= positional;
		if (!rest.len) {
			f->kind = kind;
			*ret = f;
			return STATUS_OK;
		}
		tree = f;
	}
}

/* ---- Including, excluding, computing ---- */

static enum status
compile_flag(struct compile *c, struct str path, bool include, bool positional)
{
	enum mql_projection_mode mode = include ? MQL_PROJECTION_INCLUDE : MQL_PROJECTION_EXCLUDE;
	struct mql_field *f;

	if (mql_is(path, "_id")) {
		c->id_included = include;
	} else {
		if (c->p->mode == MQL_PROJECTION_EXCLUDE && include)
			return mql_fail(c->q, 31253,
					"Cannot do inclusion on field %.*s in exclusion projection",
					STR_ARG(path));
		if (c->p->mode == MQL_PROJECTION_INCLUDE && !include)
			return mql_fail(c->q, 31254,
					"Cannot do exclusion on field %.*s in inclusion projection",
					STR_ARG(path));
		c->p->mode = mode;
	}
	return place_at(c, path, include ? MQL_FIELD_INCLUDE : MQL_FIELD_EXCLUDE, positional, &f);
}

static enum status
compile_expr(struct compile *c, struct str path, const struct bson_value *v)
{
	struct mql_field *f;
	enum status status;

	if (c->p->mode == MQL_PROJECTION_EXCLUDE && v->type == BSON_DOCUMENT)
		return mql_fail(c->q, 31252,
				"Cannot use expression other than $meta in exclusion projection");
	if (c->p->mode == MQL_PROJECTION_EXCLUDE)
		return mql_fail(c->q, 31310,
				"Cannot use an expression %s in an exclusion projection",
				mql_text(c->q, path, v));
	if (c->p->mode == MQL_PROJECTION_UNKNOWN)
		c->p->mode = MQL_PROJECTION_INCLUDE;
	TRY(place_at(c, path, MQL_FIELD_EXPR, false, &f));
	status = mql_expr_compile(c->q, v, c->scope, &f->expr);
	if (status == STATUS_INVALID && c->q->code == PROJECT_UNKNOWN_OPERATOR &&
	    c->p->mode != MQL_PROJECTION_ADD)
		c->q->code = 31325;
	return status;
}

/* ---- What only find has ---- */

static int64_t
to_int32(const struct bson_value *v)
{
	double d = bson_to_double(v);

	if (isnan(d))
		return 0;
	return d < INT32_MIN ? INT32_MIN : d > INT32_MAX ? INT32_MAX : (int64_t)d;
}

/* $slice as find has it; false in `*ret` if it is the expression. */
static enum status
compile_slice(struct compile *c, struct str path, const struct bson_value *v, bool *ret)
{
	struct bson_value skip = { 0 }, limit = *v;
	struct mql_field *f;

	*ret = false;
	if (v->type == BSON_ARRAY) {
		if (bson_count(bson_text(v)) != 2 || !bson_find(bson_text(v), STR("0"), &skip) ||
		    !bson_find(bson_text(v), STR("1"), &limit) || !bson_is_number(&skip) ||
		    !bson_is_number(&limit))
			return STATUS_OK;
		if (to_int32(&limit) <= 0)
			return mql_fail(c->q, 28724,
					"First argument to $slice must be an array, but is of "
					"type: %s",
					bson_type_name(skip.type));
	} else if (!bson_is_number(v)) {
		return STATUS_OK;
	}
	TRY(place_at(c, path, MQL_FIELD_SLICE, false, &f));
	f->skips = v->type == BSON_ARRAY;
	f->skip = f->skips ? to_int32(&skip) : 0;
	f->limit = to_int32(&limit);
	*ret = true;
	return STATUS_OK;
}

static enum status
compile_element(struct compile *c, struct str path, const struct bson_value *v)
{
	struct mql_field *f;

	if (v->type != BSON_DOCUMENT)
		return mql_fail(c->q, 31274,
				"elemMatch: Invalid argument, object required, but got %s",
				bson_type_name(v->type));
	if (c->p->positional)
		return mql_fail(c->q, 31255, "Cannot specify positional operator and $elemMatch.");
	if (memchr(path.ptr, '.', path.len))
		return mql_fail(c->q, 31275, "Cannot use $elemMatch projection on a nested field.");
	c->has_element = true;
	TRY(place_at(c, path, MQL_FIELD_ELEMENT, false, &f));
	return mql_match_compile_value(c->q, bson_text(v), &f->match);
}

static enum status
compile_positional(struct compile *c, struct str path, const struct bson_value *v)
{
	if (v->type == BSON_DOCUMENT)
		return mql_fail(c->q, 31271,
				"positional projection cannot be used with an expression or "
				"sub object");
	if (!bson_is_number(v) && v->type != BSON_BOOL)
		return mql_fail(c->q, 31308, "positional projection cannot be used with a literal");
	if (c->p->positional)
		return mql_fail(c->q, 31276,
				"Cannot specify more than one positional projection per query.");
	if (c->has_element)
		return mql_fail(c->q, 31256, "Cannot specify positional operator and $elemMatch.");
	if (!c->has_query)
		return mql_fail(c->q, 51050,
				"Projections with a positional operator require a matcher");
	if (!bson_is_true(v))
		return mql_fail(c->q, 31395, "positional projection cannot be used with exclusion");
	c->p->positional = true;
	TRY(mql_field_path_check(c->q, path));
	return compile_flag(c, path, true, true);
}

/* Finds `$` among the names of a path: at its end, or where it must not be. */
static enum status
check_positional(struct compile *c, struct str *path, bool *ret)
{
	static const char middle[] = ".$.";
	size_t len = path->len;

	*ret = len > 2 && memcmp(path->ptr + len - 2, ".$", 2) == 0;
	if (*ret && !c->find)
		return mql_fail(c->q, 31324,
				"Cannot use positional projection in aggregation projection");
	if (c->find && memmem(path->ptr, len, middle, sizeof(middle) - 1))
		return mql_fail(c->q, 31394,
				"As of 4.4, it's illegal to specify positional operator in the "
				"middle of a path.Positional projection may only be used at the "
				"end, for example: a.b.$. If the query previously used a form like "
				"a.b.$.d, remove the parts following the '$' and the results will "
				"be equivalent.");
	if (*ret)
		path->len -= 2;
	return STATUS_OK;
}

/* ---- Members ---- */

static enum status
project_compile_operator(struct compile *c, struct str path, const struct bson_value *v)
{
	struct bson_element e;
	struct bson_iter i;
	bool done;

	bson_iter_begin(&i, bson_text(v));
	if (c->find && bson_iter_read(&i, &e)) {
		if (mql_is(e.name, "$elemMatch"))
			return compile_element(c, path, &e.value);
		if (mql_is(e.name, "$slice")) {
			TRY(compile_slice(c, path, &e.value, &done));
			if (done)
				return STATUS_OK;
		}
	}
	return compile_expr(c, path, v);
}

static bool
is_operator(struct str doc)
{
	struct bson_element e;
	struct bson_iter i;

	bson_iter_begin(&i, doc);
	return bson_iter_read(&i, &e) && e.name.len && e.name.ptr[0] == '$' && bson_count(doc) == 1;
}

static enum status
compile_member(struct compile *c, struct str path, const struct bson_value *v, size_t depth)
{
	bool adds = c->p->mode == MQL_PROJECTION_ADD;

	if (!adds && (bson_is_number(v) || v->type == BSON_BOOL))
		return compile_flag(c, path, bson_is_true(v), false);
	if (v->type != BSON_DOCUMENT || (adds && bson_is_empty(bson_text(v))))
		return compile_expr(c, path, v);
	if (bson_is_empty(bson_text(v)))
		return mql_fail(c->q, 51270,
				"An empty sub-projection is not a valid value. Found empty object "
				"at path");
	if (is_operator(bson_text(v)))
		return project_compile_operator(c, path, v);
	return compile_members(c, bson_text(v), path, depth + 1);
}

static enum status
compile_members(struct compile *c, struct str spec, struct str prefix, size_t depth)
{
	bool positional, nested = prefix.len != 0;
	struct bson_element e;
	struct bson_iter i;

	if (depth > MQL_DEPTH)
		return mql_fail(c->q, MQL_OVERFLOW, "A projection nests more than %d documents",
				MQL_DEPTH);
	for (bson_iter_begin(&i, spec); bson_iter_read(&i, &e);) {
		struct str path = e.name;

		TRY(step_count_bytes(e.bytes.len));
		TRY(check_positional(c, &path, &positional));
		if (!positional)
			TRY(mql_field_path_check(c->q, path));
		if (nested && c->p->mode == MQL_PROJECTION_ADD && memchr(path.ptr, '.', path.len))
			return mql_fail(c->q, 40183,
					"cannot use dotted field name '%.*s' in a sub object",
					STR_ARG(path));
		if (nested)
			path = arena_printf(c->q->arena, "%.*s.%.*s", STR_ARG(prefix),
					    STR_ARG(path));
		if (!path.ptr)
			return mql_full(c->q);
		TRY(positional ? compile_positional(c, path, &e.value)
			       : compile_member(c, path, &e.value, depth));
	}
	return STATUS_OK;
}

static enum status
compile_end(struct compile *c)
{
	struct mql_projection *p = c->p;
	struct mql_field *f;

	if (p->mode == MQL_PROJECTION_UNKNOWN)
		p->mode = c->has_element || c->id_included ? MQL_PROJECTION_INCLUDE
							   : MQL_PROJECTION_EXCLUDE;
	if (p->mode == MQL_PROJECTION_INCLUDE && !mql_field_find(&p->root, STR("_id")))
		return place_at(c, STR("_id"), MQL_FIELD_INCLUDE, false, &f);
	return STATUS_OK;
}

static enum status
compile(struct compile *c, enum mql_projection_mode mode, struct str spec,
	struct mql_projection **ret)
{
	c->p = arena_zalloc(c->q->arena, sizeof(*c->p));
	if (!c->p)
		return mql_full(c->q);
	c->p->mode = mode;
	TRY(compile_members(c, spec, STR(""), 0));
	TRY(compile_end(c));
	*ret = c->p;
	return STATUS_OK;
}

enum status
mql_projection_compile(struct mql *q, struct str spec, const struct mql_match *filter,
		       const struct mql_scope *scope, struct mql_projection **ret)
{
	struct compile c = { .q = q, .scope = scope, .find = true, .has_query = filter != NULL };

	return compile(&c, MQL_PROJECTION_UNKNOWN, spec, ret);
}

enum status
mql_projection_compile_project(struct mql *q, const struct bson_value *spec,
			       const struct mql_scope *scope, struct mql_projection **ret)
{
	struct compile c = { .q = q, .scope = scope };

	if (spec->type != BSON_DOCUMENT)
		return mql_fail(q, 15969, "$project specification must be an object");
	if (bson_is_empty(bson_text(spec)))
		return mql_fail(q, 51272,
				"Invalid $project :: caused by :: projection specification must "
				"have at least one field");
	return compile(&c, MQL_PROJECTION_UNKNOWN, bson_text(spec), ret);
}

enum status
mql_projection_compile_set(struct mql *q, struct str stage, const struct bson_value *spec,
			   const struct mql_scope *scope, struct mql_projection **ret)
{
	struct compile c = { .q = q, .scope = scope, .stage = stage };

	if (spec->type != BSON_DOCUMENT)
		return mql_fail(q, 40272, "%.*s specification stage must be an object, got %s",
				STR_ARG(stage), bson_type_name(spec->type));
	return compile(&c, MQL_PROJECTION_ADD, bson_text(spec), ret);
}

/* ---- What it looks at ---- */

/* Calls itself for trees inside each other: MQL_DEPTH deep, or as many names as a path has. */
static enum status
tree_paths(struct mql *q, const struct mql_field *tree, struct str prefix, struct mql_paths *ret)
{
	for (const struct mql_field *f = tree->first; f && !ret->all; f = f->next) {
		struct str path = f->name;

		if (prefix.len)
			path = arena_printf(q->arena, "%.*s.%.*s", STR_ARG(prefix), STR_ARG(path));
		if (!path.ptr)
			return mql_full(q);
		if (f->kind == MQL_FIELD_TREE)
			TRY(tree_paths(q, f, path, ret));
		else if (f->kind == MQL_FIELD_EXPR)
			ret->all = true;
		else if (f->kind != MQL_FIELD_EXCLUDE)
			mql_paths_add(ret, path);
	}
	return STATUS_OK;
}

enum status
mql_projection_paths(const struct mql_projection *p, struct mql *q, struct mql_paths *ret)
{
	ret->all = ret->all || p->mode != MQL_PROJECTION_INCLUDE;
	return ret->all ? STATUS_OK : tree_paths(q, &p->root, STR(""), ret);
}

/* ---- $unset ---- */

static enum status
unset_name(struct mql *q, struct bson_builder *b, const struct bson_value *v)
{
	if (v->type != BSON_STRING)
		return mql_fail(q, 31120,
				"$unset specification must be a string or an array containing only "
				"string values");
	TRY(mql_field_path_check(q, bson_text(v)));
	bson_put_int32(b, bson_text(v), 0);
	return step_count(1);
}

static enum status
unset_names(struct mql *q, struct bson_builder *b, const struct bson_value *spec)
{
	struct bson_element e;
	struct bson_iter i;

	if (spec->type == BSON_STRING)
		return unset_name(q, b, spec);
	for (bson_iter_begin(&i, bson_text(spec)); bson_iter_read(&i, &e);)
		TRY(unset_name(q, b, &e.value));
	return STATUS_OK;
}

enum status
mql_projection_compile_unset(struct mql *q, const struct bson_value *spec,
			     struct mql_projection **ret)
{
	struct compile c = { .q = q };
	struct buf out = mql_buf(q, BSON_MOST_BYTES);
	struct bson_builder b;
	enum status status;
	struct str names;

	if (spec->type != BSON_STRING && spec->type != BSON_ARRAY)
		return mql_fail(q, 31002, "$unset specification must be a string or an array");
	if (spec->type == BSON_ARRAY && bson_is_empty(bson_text(spec)))
		return mql_fail(q, 31119,
				"$unset specification must be a string or an array with at least "
				"one field");
	bson_builder_init(&b, &out);
	bson_begin(&b);
	status = unset_names(q, &b, spec);
	bson_end(&b);
	if (status != STATUS_OK) {
		buf_release(&out);
		return status;
	}
	TRY(mql_keep(q, &out, &names));
	return compile(&c, MQL_PROJECTION_UNKNOWN, names, ret);
}

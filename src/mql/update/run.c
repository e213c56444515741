/* Running updates: the way to where each operator works. */
#include "mql/mql_int.h"
#include "mql/sort_values.h"
#include "mql/update/update_int.h"

struct change {
	struct str path;
	bool made; /* a document was created there for what is below it */
};

struct run {
	struct mql *q;
	const struct mql_update *update;
	const struct mql_update_on *on;
	struct buf path; /* of the node that is looked at */
	struct change *changes;
	size_t count, cap;
};

/* An operator on its way along its path. */
struct way {
	struct run *r;
	const struct mql_modifier *m;
};

static bool
op_creates(enum mql_update_op op)
{
	return op != MQL_UPDATE_UNSET && op != MQL_UPDATE_POP && op != MQL_UPDATE_PULL &&
	       op != MQL_UPDATE_PULL_ALL;
}

/* ---- What has changed ---- */

static enum status
run_changed(struct run *r, bool made)
{
	struct mql *q = r->q;
	struct change *change;

	TRY(step_count(1));
	TRY(buf_status(&r->path));
	r->changes = arena_grow(q->arena, r->changes, r->count, &r->cap, sizeof(*r->changes));
	if (!r->changes)
		return mql_full(q);
	change = &r->changes[r->count++];
	*change = (struct change){ buf_dup(&r->path, q->arena), made };
	if (!change->path.ptr)
		return mql_full(q);
	return STATUS_OK;
}

/* Appends a name to the path; returns the length that cuts it off again. */
static size_t
path_push(struct run *r, struct str name)
{
	size_t len = r->path.len;

	if (len)
		buf_append_byte(&r->path, '.');
	buf_append_str(&r->path, name);
	return len;
}

static size_t
path_push_position(struct run *r, size_t position)
{
	size_t len = r->path.len;

	if (len)
		buf_append_byte(&r->path, '.');
	buf_append_u64(&r->path, position);
	return len;
}

static enum status
changed_elements(struct run *r, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		size_t len = path_push_position(r, i);

		TRY(run_changed(r, false));
		r->path.len = len;
	}
	return STATUS_OK;
}

/* ---- Creating ---- */

static enum status
not_viable(struct run *r, struct mql_tree *node, struct str name)
{
	struct bson_value v;

	TRY(mql_tree_value(r->q, node, &v));
	return mql_fail(r->q, MQL_PATH_NOT_VIABLE, "Cannot create field '%.*s' in element {%s}",
			STR_ARG(name), mql_text(r->q, node->name, &v));
}

/* For what does not create fields: MongoDB has other words for the same failure. */
static enum status
not_traversable(struct run *r, const struct mql_tree *node, struct str name, struct str path)
{
	struct bson_value v;

	TRY(mql_tree_value(r->q, node, &v));
	return mql_fail(r->q, MQL_PATH_NOT_VIABLE,
			"Cannot use the part (%.*s) of (%.*s) to traverse the element ({%s})",
			STR_ARG(name), STR_ARG(path), mql_text(r->q, node->name, &v));
}

/* Puts nulls behind an array's elements, until `position` is the next one. */
static enum status
array_pad(struct run *r, struct mql_tree *array, size_t position)
{
	const struct bson_value null = BSON_OF_NULL;
	size_t from = array->count;

	/* An element that is there would have been found. */
	assert(position >= from);
	if (position - from > MQL_UPDATE_PADDING)
		return mql_fail(r->q, MQL_BAD_VALUE,
				"Cannot put more than %d nulls in front of an array's element",
				MQL_UPDATE_PADDING);
	while (array->count < position)
		TRY(mql_tree_append(r->q, array, STR(""), &null, NULL));
	return changed_elements(r, from, position);
}

/* Creates `name`, and what `rest` names below it. */
static enum status
run_create(struct run *r, struct mql_tree *node, struct str name, struct str rest, bool more,
	   const struct bson_value *v)
{
	const struct bson_value document = BSON_OF_DOCUMENT(BSON_EMPTY);
	size_t len = r->path.len;
	uint32_t position;
	struct str id;

	if (node->value.type == BSON_ARRAY) {
		if (!mql_is_position(name, &position))
			return not_viable(r, node, name);
		TRY(array_pad(r, node, position));
	}
	(void)path_push(r, name);
	TRY(run_changed(r, more));
	while (more) {
		TRY(mql_tree_append(r->q, node, name, &document, &node));
		node->open = true;
		more = memchr(rest.ptr, '.', rest.len) != NULL;
		name = str_cut(&rest, '.');
		if (mql_is(name, "$") || mql_update_name_is_filtered(name, &id))
			return mql_fail(r->q, MQL_BAD_VALUE,
					"The path '%.*s' must exist in the document in order to "
					"apply array updates.",
					STR_ARG(buf_str(&r->path)));
		(void)path_push(r, name);
	}
	r->path.len = len;
	return mql_tree_append(r->q, node, name, v, NULL);
}

/* ---- Applying ---- */

static enum status
apply_to(struct way *w, struct mql_tree *parent, struct mql_tree *node)
{
	const struct bson_value null = BSON_OF_NULL;
	struct run *r = w->r;
	struct mql_applied done;

	TRY(mql_update_apply(r->q, w->m, node, &done));
	assert(!done.create);
	/* An element that is unset becomes null, which it may have been. */
	if (!done.changed ||
	    (done.remove && parent->value.type == BSON_ARRAY && node->value.type == BSON_NULL))
		return STATUS_OK;
	if (done.remove && parent->value.type != BSON_ARRAY)
		mql_tree_remove(parent, node);
	else if (done.remove)
		*node = (struct mql_tree){ .value = null, .next = node->next, .prev = node->prev };
	assert(done.appended <= node->count);
	if (done.appended)
		return changed_elements(r, node->count - done.appended, node->count);
	return run_changed(r, false);
}

static enum status apply_below(struct way *w, struct mql_tree *node, struct str path);

/* At a member that exists: the end of the path, or further on. */
static enum status
apply_member(struct way *w, struct mql_tree *parent, struct mql_tree *member, struct str rest,
	     bool more)
{
	if (more)
		return apply_below(w, member, rest);
	return apply_to(w, parent, member);
}

/* Whether an element fulfils the array filter: as the only member of a document. */
static enum status
filter_takes(struct run *r, struct str id, const struct mql_tree *element, bool *ret)
{
	const struct mql_array_filter *f = r->update->filters;
	struct arena_mark mark = arena_mark(r->q->arena);
	struct buf out = mql_buf(r->q, BSON_MOST_BYTES);
	struct bson_builder b;
	struct bson_value v;
	struct str document;

	*ret = true;
	if (!id.len)
		return STATUS_OK;
	/* Compiling the path has looked for the filter. */
	while (f && !str_eq(f->name, id))
		f = f->next;
	assert(f);
	TRY(mql_tree_value(r->q, element, &v));
	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_put(&b, id, &v);
	bson_end(&b);
	TRY(mql_keep(r->q, &out, &document));
	TRY(mql_match_run(f->match, r->q, document, ret, NULL));
	arena_reset(r->q->arena, mark);
	return STATUS_OK;
}

static enum status
apply_elements(struct way *w, struct mql_tree *array, struct str id, struct str rest, bool more)
{
	struct run *r = w->r;
	size_t at = 0;
	bool takes;

	if (array->value.type != BSON_ARRAY) {
		struct bson_value v;

		TRY(mql_tree_value(r->q, array, &v));
		return mql_fail(r->q, MQL_BAD_VALUE,
				"Cannot apply array updates to non-array element %s",
				mql_text(r->q, array->name, &v));
	}
	TRY(mql_tree_open(r->q, array));
	for (struct mql_tree *n = array->first; n; n = n->next, at++) {
		size_t len;

		TRY(step_count(1));
		TRY(filter_takes(r, id, n, &takes));
		if (!takes)
			continue;
		len = path_push_position(r, at);
		TRY(apply_member(w, array, n, rest, more));
		r->path.len = len;
	}
	return STATUS_OK;
}

static enum status
apply_missing(struct way *w, struct mql_tree *node, struct str name, struct str rest, bool more)
{
	struct mql_applied done;

	uint32_t position;

	if (w->m->op != MQL_UPDATE_UNSET && !op_creates(w->m->op) &&
	    node->value.type == BSON_ARRAY && !mql_is_position(name, &position))
		return not_traversable(w->r, node, name, w->m->path);
	if (!op_creates(w->m->op))
		return STATUS_OK;
	TRY(mql_update_apply(w->r->q, w->m, NULL, &done));
	assert(!done.remove && !done.appended);
	if (!done.create)
		return STATUS_OK;
	return run_create(w->r, node, name, rest, more, &done.value);
}

/* Goes on from a node. Calls itself once for each name: MQL_UPDATE_STEPS deep at most. */
static enum status
apply_below(struct way *w, struct mql_tree *node, struct str path)
{
	struct run *r = w->r;
	bool more = memchr(path.ptr, '.', path.len) != NULL;
	struct str rest = path, name = str_cut(&rest, '.');
	struct mql_tree *member;
	struct str id;
	size_t len;

	TRY(step_count(1));
	if (mql_update_name_is_filtered(name, &id))
		return apply_elements(w, node, id, rest, more);
	if (mql_is(name, "$")) {
		struct buf number = BUF_SHORT(32);

		if (r->on->position < 0)
			return mql_fail(r->q, MQL_BAD_VALUE,
					"The positional operator did not find the match needed "
					"from the query.");
		buf_append_u64(&number, (uint64_t)r->on->position);
		TRY(mql_keep(r->q, &number, &name));
	}
	if (!bson_is_container(&node->value))
		return op_creates(w->m->op)           ? not_viable(r, node, name)
		       : w->m->op == MQL_UPDATE_UNSET ? STATUS_OK
						      : not_traversable(r, node, name, w->m->path);
	if (w->m->op == MQL_UPDATE_RENAME && node->value.type == BSON_ARRAY)
		return mql_fail(r->q, MQL_BAD_VALUE,
				"The destination field cannot be an array element, '%.*s'",
				STR_ARG(w->m->path));
	TRY(mql_tree_open(r->q, node));
	TRY(mql_tree_find(r->q, node, name, &member));
	if (!member)
		return apply_missing(w, node, name, rest, more);
	len = path_push(r, name);
	TRY(apply_member(w, node, member, rest, more));
	r->path.len = len;
	return STATUS_OK;
}

/* Takes the source of a $rename out of the document. `*ret`: false if there is none. */
static enum status
rename_take(struct run *r, struct mql_tree *root, struct str path, struct bson_value *ret_value,
	    bool *ret)
{
	struct mql_tree *node = root, *parent = root;
	struct str rest = path, name;
	bool more, in_array = false;
	uint32_t position;

	*ret = false;
	do {
		more = memchr(rest.ptr, '.', rest.len) != NULL;
		name = str_cut(&rest, '.');
		if (!bson_is_container(&node->value) ||
		    (node->value.type == BSON_ARRAY && !mql_is_position(name, &position)))
			return not_traversable(r, node, name, path);
		in_array = in_array || node->value.type == BSON_ARRAY;
		TRY(mql_tree_open(r->q, node));
		parent = node;
		TRY(mql_tree_find(r->q, parent, name, &node));
	} while (node && more);
	if (!node)
		return STATUS_OK;
	if (in_array)
		return mql_fail(r->q, MQL_BAD_VALUE,
				"The source field cannot be an array element, '%.*s'",
				STR_ARG(path));
	TRY(mql_tree_value(r->q, node, ret_value));
	mql_tree_remove(parent, node);
	*ret = true;
	buf_clear(&r->path);
	buf_append_str(&r->path, path);
	return run_changed(r, false);
}

/*
 * A field of the document itself whose name begins with `$` can be inserted, and not be changed.
 * A path does not begin with an element of an array.
 */
static enum status
check_first_name(struct run *r, struct str path)
{
	struct str rest = path;
	struct str name = str_cut(&rest, '.');

	if (r->on->insert || !str_starts_with(name, STR("$")))
		return STATUS_OK;
	return mql_fail(r->q, MQL_DOLLAR_PREFIXED,
			"The dollar ($) prefixed field '%.*s' in '%.*s' is not allowed in the "
			"context of an update's replacement document. Consider using an "
			"aggregation pipeline with $replaceWith.",
			STR_ARG(name), STR_ARG(path));
}

static enum status
run_modifier(struct run *r, struct mql_tree *root, const struct mql_modifier *m)
{
	struct mql_modifier renamed = *m;
	struct way w = { r, m };
	bool found = true;

	if (m->op == MQL_UPDATE_SOURCE || (m->op == MQL_UPDATE_SET_ON_INSERT && !r->on->insert))
		return STATUS_OK;
	if (m->op == MQL_UPDATE_RENAME) {
		TRY(rename_take(r, root, bson_text(&m->value), &renamed.value, &found));
		w.m = &renamed;
	}
	if (!found)
		return STATUS_OK;
	assert(m->op != MQL_UPDATE_RENAME || w.m == &renamed);
	TRY(check_first_name(r, m->path));
	buf_clear(&r->path);
	return apply_below(&w, root, m->path);
}

/* ---- The whole ---- */

static enum status
check_id(struct run *r, struct str document)
{
	struct bson_value old, new;
	bool had = bson_find(r->on->document, STR("_id"), &old);

	if (r->on->insert || !had)
		return STATUS_OK;
	if (bson_find(document, STR("_id"), &new) && bson_equals(&old, &new))
		return STATUS_OK;
	if (r->update->replacement)
		return mql_fail(r->q, MQL_IMMUTABLE_FIELD,
				"After applying the update, the (immutable) field '_id' was found "
				"to have been altered to %s",
				mql_text(r->q, STR("_id"), &new));
	return mql_fail(r->q, MQL_IMMUTABLE_FIELD,
			"Performing an update on the path '_id' would modify the immutable field "
			"'_id'");
}

static int
compare_changes(const void *a, const void *b, const void *arg)
{
	const struct change *left = a, *right = b;
	bool below;

	(void)arg;
	return mql_update_compare_paths(left->path, right->path, &below);
}

/*
 * Puts the changes in order, without those below a document that was created for them. Of paths
 * with `$` only now is known whether two operators have changed the same.
 */
static enum status
run_list_changes(struct run *r, struct mql_updated *ret)
{
	struct mql *q = r->q;
	const void **all = arena_alloc(q->arena, r->count * sizeof(*all));
	struct str *paths = arena_alloc(q->arena, r->count * sizeof(*paths));
	const struct change *last = NULL;
	bool below;

	if (!all || !paths)
		return mql_full(q);
	assert(r->count > 0 && ret->count == 0);
	for (size_t i = 0; i < r->count; i++)
		all[i] = &r->changes[i];
	/* In the order of paths a path comes right behind those above it. */
	TRY(mql_sort(q, all, r->count, compare_changes, NULL));
	for (size_t i = 0; i < r->count; i++) {
		const struct change *change = all[i];
		int order = last ? mql_update_compare_paths(last->path, change->path, &below) : -1;

		if (last && below && (!last->made || !order))
			return mql_fail(q, MQL_CONFLICTING_UPDATE,
					"Updating the path '%.*s' would create a conflict at "
					"'%.*s'",
					STR_ARG(change->path), STR_ARG(last->path));
		if (last && below)
			continue;
		last = change;
		paths[ret->count++] = change->path;
	}
	assert(ret->count > 0 && ret->count <= r->count);
	ret->paths = paths;
	return STATUS_OK;
}

/* Runs the modifiers; the path's buffer is the caller's to release. */
static enum status
run_modifiers(struct run *r, struct mql_updated *ret)
{
	struct mql_tree root = { .value = BSON_OF_DOCUMENT(r->on->document) };
	struct mql_updated updated = { .changed = true };

	for (size_t i = 0; i < r->update->count; i++)
		TRY(run_modifier(r, &root, r->update->modifiers[i]));
	if (!r->count) {
		*ret = (struct mql_updated){ .document = r->on->document };
		return STATUS_OK;
	}
	TRY(mql_tree_open(r->q, &root));
	TRY(run_list_changes(r, &updated));
	TRY(mql_tree_write(r->q, &root, r->on->insert, &updated.document));
	TRY(check_id(r, updated.document));
	*ret = updated;
	return STATUS_OK;
}

static enum status
run_replacement(struct run *r, struct mql_updated *ret)
{
	struct mql_tree root = { .value = BSON_OF_DOCUMENT(r->update->document) };
	struct mql_tree *own;
	struct bson_value id;
	struct str document;

	TRY(mql_tree_open(r->q, &root));
	TRY(mql_tree_find(r->q, &root, STR("_id"), &own));
	if (!own && bson_find(r->on->document, STR("_id"), &id))
		TRY(mql_tree_append(r->q, &root, STR("_id"), &id, NULL));
	TRY(mql_tree_write(r->q, &root, true, &document));
	TRY(check_id(r, document));
	*ret = (struct mql_updated){
		.document = document,
		.changed = !str_eq(document, r->on->document),
		.replaced = true,
	};
	return STATUS_OK;
}

enum status
mql_update_run(const struct mql_update *u, struct mql *q, const struct mql_update_on *on,
	       struct mql_updated *ret)
{
	struct run r = { .q = q, .update = u, .on = on, .path = mql_buf(q, BSON_MOST_BYTES) };
	enum status status = u->replacement ? run_replacement(&r, ret) : run_modifiers(&r, ret);

	buf_release(&r.path);
	return status;
}

void
mql_update_paths(const struct mql_update *u, struct mql_paths *ret)
{
	ret->all = ret->all || u->replacement;
	for (size_t i = 0; i < u->count && !ret->all; i++) {
		struct str path = u->modifiers[i]->path;

		/* What `$`, `$[]` and `$[id]` stand for depends on all of an array. */
		ret->all = memchr(path.ptr, '$', path.len) != NULL;
		mql_paths_add(ret, path);
	}
}

/* A demand of the filter that says what a field is; not one of an element, or with operators. */
static bool
demand_is_field(const struct mql_demand *d)
{
	return d->op == MQL_DEMAND_EQ && !d->element && d->path.len &&
	       !memchr(d->path.ptr, '$', d->path.len);
}

static int
compare_fields(const void *a, const void *b, const void *arg)
{
	const struct mql_demand *left = a, *right = b;
	bool below;

	(void)arg;
	return mql_update_compare_paths(left->path, right->path, &below);
}

static enum status
upsert_fields(struct mql *q, const struct mql_match *m, const struct mql_demand ***ret,
	      size_t *ret_count)
{
	const struct mql_demand *demands;
	const struct mql_demand **fields;
	size_t count = 0, all;

	mql_match_demands(m, &demands, &all);
	fields = arena_alloc(q->arena, all * sizeof(*fields));
	if (!fields)
		return mql_full(q);
	for (size_t i = 0; i < all; i++) {
		if (demand_is_field(&demands[i]))
			fields[count++] = &demands[i];
	}
	TRY(mql_sort(q, (const void **)fields, count, compare_fields, NULL));
	for (size_t i = 1; i < count; i++) {
		bool below;

		(void)mql_update_compare_paths(fields[i - 1]->path, fields[i]->path, &below);
		if (below)
			return mql_fail(q, MQL_NOT_SINGLE_VALUE,
					"cannot infer query fields to set, path '%.*s' is matched "
					"twice",
					STR_ARG(fields[i]->path));
	}
	*ret = fields;
	*ret_count = count;
	return STATUS_OK;
}

enum status
mql_upsert_document(const struct mql_match *m, struct mql *q, struct str *ret)
{
	struct mql_tree root = { .value = BSON_OF_DOCUMENT(BSON_EMPTY), .open = true };
	const struct mql_update none = { 0 };
	const struct mql_update_on on = { .document = BSON_EMPTY, .position = -1, .insert = true };
	struct run r = { .q = q, .update = &none, .on = &on, .path = mql_buf(q, BSON_MOST_BYTES) };
	const struct mql_demand **fields;
	size_t count;
	enum status status = upsert_fields(q, m, &fields, &count);

	for (size_t i = 0; status == STATUS_OK && i < count; i++) {
		const struct mql_modifier set = { .op = MQL_UPDATE_SET,
						  .path = fields[i]->path,
						  .value = fields[i]->value };

		status = run_modifier(&r, &root, &set);
	}
	buf_release(&r.path);
	TRY(status);
	return mql_tree_write(q, &root, true, ret);
}

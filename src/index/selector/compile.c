/*
 * Compiles a selector's text to its tree in one pass, which also joins fields into paths and pushes
 * negations down.
 */
#include <assert.h>

#include "base/quote.h"
#include "index/selector/selector_int.h"

const char *
selector_error_name(enum selector_error error)
{
	static const char *const names[] = {
		[SELECTOR_ERROR_NONE] = "",
		[SELECTOR_ERROR_BAD_ARG] = "bad_arg",
		[SELECTOR_ERROR_INVALID_OPERATOR] = "invalid_operator",
		[SELECTOR_ERROR_NOT_SUPPORTED] = "not_supported",
		[SELECTOR_ERROR_INVALID_SELECTOR] = "invalid_selector",
		[SELECTOR_ERROR_INVALID_SELECTOR_JSON] = "invalid_selector_json",
		[SELECTOR_ERROR_INVALID_FIELD_NAME] = "invalid_field_name",
		[SELECTOR_ERROR_INVALID_FIELDS] = "invalid_fields",
		[SELECTOR_ERROR_INVALID_FIELD] = "invalid_field",
	};

	return names[error];
}

static const struct {
	const char *name;
	enum selector_op op;
	enum selector_op opposite;
} ops[] = {
#define OPERATOR_ROW(op, name, opposite) { name, SELECTOR_##op, SELECTOR_##opposite },
	SELECTOR_OPERATORS(OPERATOR_ROW)
};

static const char *const unsupported[] = { "$text",          "$where", "$geoWithin",
					   "$geoIntersects", "$near",  "$nearSphere" };

/* The operators that combine or negate other selectors. */
static const struct {
	const char *name;
	enum selector_node_kind kind;
	bool negates;
	bool list;
} combinations[] = {
	{ "$and", SELECTOR_AND, false, true },
	{ "$or", SELECTOR_OR, false, true },
	{ "$nor", SELECTOR_AND, true, true },
	{ "$not", SELECTOR_NOT, true, false },
};

static enum status compile_value(struct selector_compiler *c, enum json_token first, bool negated,
				 struct selector_node **ret);

/* ---- Nodes ---- */

static enum status
compile_node_new(struct selector_compiler *c, enum selector_node_kind kind,
		 struct selector_node **ret)
{
	struct selector_node *n = arena_zalloc(c->arena, sizeof(*n));

	if (!n)
		return STATUS_LIMIT;
	if (++c->conditions > SELECTOR_CONDITIONS)
		return err_set(c->err, STATUS_LIMIT, "The selector has more than %d conditions.",
			       (int)SELECTOR_CONDITIONS);
	n->kind = kind;
	*ret = n;
	return STATUS_OK;
}

/* All conditions on the same field share one copy of its path. */
static enum status
compile_field_new(struct selector_compiler *c, struct selector_node **ret)
{
	struct selector_node *n;

	TRY(compile_node_new(c, SELECTOR_FIELD, &n));
	if (!c->kept.names) {
		struct selector_name *names = arena_alloc(c->arena,
							  (c->path.count + 1) * sizeof(*names));

		if (!names)
			return STATUS_LIMIT;
		if (c->path.count)
			memcpy(names, c->path.names, c->path.count * sizeof(*names));
		c->kept = (struct selector_path){ names, c->path.count };
	}
	n->path = c->kept;
	n->cond.by_bytes = !c->inside && n->path.count == 1 &&
			   str_eq(n->path.names[0].text, STR("_id"));
	*ret = n;
	return STATUS_OK;
}

static enum status
compile_wrap_not(struct selector_compiler *c, struct selector_node **node)
{
	struct selector_node *n;

	TRY(compile_node_new(c, SELECTOR_NOT, &n));
	n->first = *node;
	*node = n;
	return STATUS_OK;
}

/* Allocates the names of the paths at this level of $elemMatch and the like, which stay. */
static enum status
compile_names_alloc(struct selector_compiler *c)
{
	struct selector_name **names = &c->names[c->inside];

	if (!*names)
		*names = arena_alloc(c->arena, SELECTOR_PATH_NAMES * sizeof(**names));
	return *names ? STATUS_OK : STATUS_LIMIT;
}

/* ---- Operators ---- */

/*
 * Compiles $elemMatch, $allMatch or $keyMapMatch, whose argument is a selector for what is inside
 * the value.
 */
static enum status
compile_inside(struct selector_compiler *c, size_t op, enum json_token first,
	       struct selector_cond *ret)
{
	struct selector_path path = c->path;
	struct selector_path kept = c->kept;
	enum status status;
	struct str text, string;

	if (first != JSON_OBJECT_BEGIN) {
		TRY(selector_take(c, first, &text, &string));
		return selector_bad_arg(c, ops[op].name, text);
	}
	*ret = (struct selector_cond){ .op = ops[op].op };
	assert(c->inside < SELECTOR_DEPTH); /* each of them is inside of an object */
	c->inside++;
	status = compile_names_alloc(c);
	c->path = (struct selector_path){ c->names[c->inside], 0 };
	c->kept.names = NULL;
	if (status == STATUS_OK)
		status = compile_value(c, first, false, &ret->sub);
	c->inside--;
	c->path = path;
	c->kept = kept;
	return status;
}

static enum status
compile_condition(struct selector_compiler *c, size_t op, enum json_token first, bool negated,
		  struct selector_node **ret)
{
	struct selector_node *n;
	bool by_bytes;

	TRY(compile_field_new(c, &n));
	by_bytes = n->cond.by_bytes;
	if (ops[op].op >= SELECTOR_ELEM_MATCH)
		TRY(compile_inside(c, op, first, &n->cond));
	else
		TRY(selector_read_argument(c, ops[op].name, ops[op].op, first, &n->cond));
	n->cond.by_bytes = by_bytes;
	if (negated && ops[op].op == SELECTOR_EXISTS)
		n->cond.exists = !n->cond.exists;
	else if (negated && ops[op].opposite != ops[op].op)
		n->cond.op = ops[op].opposite;
	else
		n->cond.negated = negated;
	*ret = n;
	return STATUS_OK;
}

/*
 * Compiles the members of $and, $or and $nor, each negated if `negated` is set, or put into a node
 * of $not if `wrap` is set.
 */
static enum status
compile_list(struct selector_compiler *c, struct selector_node *list, bool negated, bool wrap)
{
	struct selector_node **end = &list->first;
	enum json_token token;

	for (;;) {
		TRY(json_next(&c->reader, &token));
		if (token == JSON_ARRAY_END)
			return STATUS_OK;
		TRY(compile_value(c, token, negated, end));
		if (wrap)
			TRY(compile_wrap_not(c, end));
		end = &(*end)->next;
	}
}

/*
 * De Morgan's law: a negated $and is an $or of negated conditions. Inside of $elemMatch negations
 * are not pushed down; there a negation is a node of its own.
 */
static enum status
compile_combination(struct selector_compiler *c, size_t which, enum json_token first, bool negated,
		    struct selector_node **ret)
{
	enum selector_node_kind kind = combinations[which].kind;
	enum json_token wanted = combinations[which].list ? JSON_ARRAY_BEGIN : JSON_OBJECT_BEGIN;
	bool wrap = c->inside && combinations[which].negates;
	bool below = c->inside ? false : negated != combinations[which].negates;
	struct str text, string;

	if (first != wanted) {
		TRY(selector_take(c, first, &text, &string));
		return selector_bad_arg(c, combinations[which].name, text);
	}
	if (kind == SELECTOR_NOT) {
		TRY(compile_value(c, first, below, ret));
		return wrap ? compile_wrap_not(c, ret) : STATUS_OK;
	}
	if (negated)
		kind = kind == SELECTOR_AND ? SELECTOR_OR : SELECTOR_AND;
	TRY(compile_node_new(c, kind, ret));
	TRY(compile_list(c, *ret, below, wrap));
	return selector_fold(*ret, c->work);
}

static enum status
selector_compile_operator(struct selector_compiler *c, struct str name, enum json_token first,
			  bool negated, struct selector_node **ret)
{
	for (size_t i = 0; i < sizeof(combinations) / sizeof(combinations[0]); i++) {
		if (str_eq(name, str_from_cstr(combinations[i].name)))
			return compile_combination(c, i, first, negated, ret);
	}
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (str_eq(name, str_from_cstr(ops[i].name)))
			return compile_condition(c, i, first, negated, ret);
	}
	for (size_t i = 0; i < sizeof(unsupported) / sizeof(unsupported[0]); i++) {
		if (str_eq(name, str_from_cstr(unsupported[i]))) {
			*c->error = SELECTOR_ERROR_NOT_SUPPORTED;
			return err_set(c->err, STATUS_INVALID, "Unsupported operator: %s%s",
				       QUOTE_SHOW(name),
				       i == 0 ? ". There is no full-text search here: $regex and "
						"$beginsWith look into strings."
					      : "");
		}
	}
	*c->error = SELECTOR_ERROR_INVALID_OPERATOR;
	return err_set(c->err, STATUS_INVALID, "Invalid operator: %s", QUOTE_SHOW(name));
}

/* ---- Objects and values ---- */

static enum status
compile_member(struct selector_compiler *c, struct str name, enum json_token first, bool negated,
	       struct selector_node **ret)
{
	struct selector_path kept = c->kept;
	size_t above = c->path.count;
	enum status status;

	TRY(index_count_bytes(c->work, name.len));
	if (name.len && name.ptr[0] == '$')
		return selector_compile_operator(c, name, first, negated, ret);
	TRY(selector_path_add(name, c->arena, &c->path, c->error, c->err));
	c->kept.names = NULL;
	status = compile_value(c, first, negated, ret);
	c->path.count = above;
	c->kept = kept;
	return status;
}

static enum status
compile_compare_members(const void *arg, const void *a, const void *b, struct index_work *w,
			int *ret)
{
	const struct selector_node *x = a;
	const struct selector_node *y = b;

	(void)arg;
	*ret = str_cmp(x->member, y->member);
	return index_count_bytes(w, x->member.len < y->member.len ? x->member.len : y->member.len);
}

/*
 * Of several members of the same name the last one counts, in the place of the first one: `nodes`
 * is changed to say so. The nodes that do not count become NULL.
 */
static enum status
compile_drop_doubles(struct selector_compiler *c, struct selector_node **nodes, size_t count)
{
	const void **sorted = arena_alloc(c->arena, (count + 1) * sizeof(*sorted));
	size_t first = 0; /* of the run of equal names, in the sorted order */

	if (!sorted)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		nodes[i]->place = i;
		sorted[i] = nodes[i];
	}
	TRY(selector_sort(sorted, count, compile_compare_members, NULL, c->work));
	for (size_t i = 1; i < count; i++) {
		const struct selector_node *a = sorted[first];
		const struct selector_node *b = sorted[i];

		if (!str_eq(a->member, b->member)) {
			first = i;
			continue;
		}
		nodes[a->place] = nodes[b->place];
		nodes[b->place] = NULL;
	}
	return STATUS_OK;
}

/* Chains the nodes of an object's members. */
static enum status
compile_chain_members(struct selector_compiler *c, struct selector_node *all,
		      struct selector_node **nodes, size_t count)
{
	struct selector_node **end = &all->first;

	if (count > 1)
		TRY(compile_drop_doubles(c, nodes, count));
	for (size_t i = 0; i < count; i++) {
		if (nodes[i]) {
			*end = nodes[i];
			end = &nodes[i]->next;
		}
	}
	return STATUS_OK;
}

static enum status
compile_equality(struct selector_compiler *c, struct str text, bool negated,
		 struct selector_node **ret)
{
	struct selector_node *n;

	TRY(compile_field_new(c, &n));
	n->cond.op = negated ? SELECTOR_NE : SELECTOR_EQ;
	TRY(leaf_parse(text, c->arena, &n->cond.operand, c->err));
	*ret = n;
	return STATUS_OK;
}

/*
 * Compiles an object. Several members are combined with $and. An object without members is a value
 * to compare with.
 */
static enum status
compile_object(struct selector_compiler *c, bool negated, struct selector_node **ret)
{
	struct selector_node *all;
	struct selector_node **nodes = NULL;
	enum json_token token;
	size_t count = 0;
	size_t cap = 0;

	TRY(compile_node_new(c, negated ? SELECTOR_OR : SELECTOR_AND, &all));
	for (;;) {
		struct str name;

		TRY(json_next(&c->reader, &token));
		if (token == JSON_OBJECT_END)
			break;
		TRY(arena_copy(c->arena, c->reader.text, &name));
		TRY(arena_room(c->arena, &nodes, count, &cap, sizeof(*nodes)));
		TRY(json_next(&c->reader, &token));
		TRY(compile_member(c, name, token, negated, &nodes[count]));
		nodes[count++]->member = name;
	}
	TRY(compile_chain_members(c, all, nodes, count));
	if (!all->first)
		return compile_equality(c, STR("{}"), negated, ret);
	*ret = all->first->next ? all : all->first;
	return STATUS_OK;
}

static enum status
compile_value(struct selector_compiler *c, enum json_token first, bool negated,
	      struct selector_node **ret)
{
	struct str text, string;
	enum status status;

	if (first != JSON_OBJECT_BEGIN) {
		TRY(selector_take(c, first, &text, &string));
		return compile_equality(c, text, negated, ret);
	}
	if (c->depth == SELECTOR_DEPTH)
		return err_set(c->err, STATUS_LIMIT, "The selector is more than %d levels deep.",
			       (int)SELECTOR_DEPTH);
	c->depth++;
	status = compile_object(c, negated, ret);
	c->depth--;
	return status;
}

/* ---- The whole ---- */

static enum status
compile_root(struct selector_compiler *c, struct str text, struct selector_node **ret)
{
	enum json_token token;

	TRY(json_next(&c->reader, &token));
	if (token != JSON_OBJECT_BEGIN) {
		*c->error = SELECTOR_ERROR_INVALID_SELECTOR_JSON;
		return err_set(c->err, STATUS_INVALID, "Selector must be a JSON object, not: %s",
			       QUOTE_SHOW(text));
	}
	TRY(compile_value(c, token, false, ret));
	TRY(json_next(&c->reader, &token));
	if ((*ret)->kind != SELECTOR_FIELD || (*ret)->path.count)
		return STATUS_OK;
	if (!(*ret)->member.ptr) { /* {}: no condition at all */
		(*ret)->kind = SELECTOR_ANYTHING;
		return STATUS_OK;
	}
	*c->error = SELECTOR_ERROR_INVALID_SELECTOR;
	return err_set(c->err, STATUS_INVALID, "One or more conditions is missing a field name.");
}

enum status
selector_compile(struct str text, struct index_work *w, struct selector **ret,
		 enum selector_error *ret_error, struct err *err)
{
	enum selector_error error = SELECTOR_ERROR_NONE;
	struct selector_compiler c = { .work = w, .arena = w->arena, .error = &error, .err = err };
	struct selector *s = arena_zalloc(w->arena, sizeof(*s));
	enum status status;

	if (ret_error)
		*ret_error = SELECTOR_ERROR_NONE;
	if (text.len > SELECTOR_TEXT_BYTES)
		return err_set(err, STATUS_LIMIT, "The selector has more than %d bytes.",
			       (int)SELECTOR_TEXT_BYTES);
	if (!s)
		return STATUS_LIMIT;
	TRY(compile_names_alloc(&c));
	c.path.names = c.names[0];
	json_reader_init(&c.reader, text, err);
	c.reader.scratch.part = arena_part(w->arena);
	status = compile_root(&c, text, &s->root);
	json_reader_release(&c.reader);
	if (ret_error)
		*ret_error = error;
	if (status == STATUS_OK)
		*ret = s;
	return status;
}

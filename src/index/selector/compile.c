/*
 * From a selector's text to its tree, in one pass: fields are joined into paths and negations are
 * pushed down on the way.
 */
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
	enum selector_op opposite; /* the same where there is none */
} ops[] = {
	{ "$lt", SELECTOR_LT, SELECTOR_GTE },
	{ "$lte", SELECTOR_LTE, SELECTOR_GT },
	{ "$eq", SELECTOR_EQ, SELECTOR_NE },
	{ "$ne", SELECTOR_NE, SELECTOR_EQ },
	{ "$gte", SELECTOR_GTE, SELECTOR_LT },
	{ "$gt", SELECTOR_GT, SELECTOR_LTE },
	{ "$in", SELECTOR_IN, SELECTOR_NIN },
	{ "$nin", SELECTOR_NIN, SELECTOR_IN },
	{ "$exists", SELECTOR_EXISTS, SELECTOR_EXISTS },
	{ "$type", SELECTOR_TYPE, SELECTOR_TYPE },
	{ "$size", SELECTOR_SIZE, SELECTOR_SIZE },
	{ "$mod", SELECTOR_MOD, SELECTOR_MOD },
	{ "$regex", SELECTOR_REGEX, SELECTOR_REGEX },
	{ "$beginsWith", SELECTOR_BEGINS_WITH, SELECTOR_BEGINS_WITH },
	{ "$all", SELECTOR_ALL, SELECTOR_ALL },
	{ "$elemMatch", SELECTOR_ELEM_MATCH, SELECTOR_ELEM_MATCH },
	{ "$allMatch", SELECTOR_ALL_MATCH, SELECTOR_ALL_MATCH },
	{ "$keyMapMatch", SELECTOR_KEY_MAP_MATCH, SELECTOR_KEY_MAP_MATCH },
};

static const char *const unsupported[] = { "$text",          "$where", "$geoWithin",
					   "$geoIntersects", "$near",  "$nearSphere" };

/* Names that lead to other selectors. */
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
node_new(struct selector_compiler *c, enum selector_node_kind kind, struct selector_node **ret)
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

static enum status
field_new(struct selector_compiler *c, struct selector_node **ret)
{
	struct selector_node *n;
	struct selector_name *names;

	TRY(node_new(c, SELECTOR_FIELD, &n));
	names = arena_alloc(c->arena, (c->path.count + 1) * sizeof(*names));
	if (!names)
		return STATUS_LIMIT;
	if (c->path.count)
		memcpy(names, c->path.names, c->path.count * sizeof(*names));
	n->path = (struct selector_path){ names, c->path.count };
	n->cond.by_bytes = !c->inside && c->path.count == 1 && str_eq(names[0].text, STR("_id"));
	*ret = n;
	return STATUS_OK;
}

static enum status
wrap_not(struct selector_compiler *c, struct selector_node **node)
{
	struct selector_node *n;

	TRY(node_new(c, SELECTOR_NOT, &n));
	n->first = *node;
	*node = n;
	return STATUS_OK;
}

/* ---- Operators ---- */

/* $elemMatch and its kin: a selector of its own for what is inside of the value. */
static enum status
compile_inside(struct selector_compiler *c, size_t op, enum json_token first,
	       struct selector_cond *ret)
{
	struct selector_path path = c->path;
	bool inside = c->inside;
	enum status status;
	struct str text, string;

	if (first != JSON_OBJECT_BEGIN) {
		TRY(selector_take(c, first, &text, &string));
		return selector_bad_arg(c, ops[op].name, text);
	}
	*ret = (struct selector_cond){ .op = ops[op].op };
	c->path.count = 0;
	c->path.names = arena_alloc(c->arena, SELECTOR_PATH_NAMES * sizeof(*path.names));
	if (!c->path.names)
		return STATUS_LIMIT;
	c->inside = true;
	status = compile_value(c, first, false, &ret->sub);
	c->path = path;
	c->inside = inside;
	return status;
}

static enum status
compile_condition(struct selector_compiler *c, size_t op, enum json_token first, bool negated,
		  struct selector_node **ret)
{
	struct selector_node *n;
	bool by_bytes;

	TRY(field_new(c, &n));
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

/* The members of $and, $or and $nor. `negated` is what holds for each of them. */
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
			TRY(wrap_not(c, end));
		end = &(*end)->next;
	}
}

/*
 * De Morgan: a negated $and is an $or of what is negated. Inside of $elemMatch nothing is pushed:
 * there a negation is a node.
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
		return wrap ? wrap_not(c, ret) : STATUS_OK;
	}
	if (negated)
		kind = kind == SELECTOR_AND ? SELECTOR_OR : SELECTOR_AND;
	TRY(node_new(c, kind, ret));
	return compile_list(c, *ret, below, wrap);
}

static enum status
compile_operator(struct selector_compiler *c, struct str name, enum json_token first, bool negated,
		 struct selector_node **ret)
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
			return err_set(c->err, STATUS_INVALID, "Unsupported operator: %.*s",
				       STR_ARG(name));
		}
	}
	*c->error = SELECTOR_ERROR_INVALID_OPERATOR;
	return err_set(c->err, STATUS_INVALID, "Invalid operator: %.*s", STR_ARG(name));
}

/* ---- Objects and values ---- */

static enum status
compile_member(struct selector_compiler *c, struct str name, enum json_token first, bool negated,
	       struct selector_node **ret)
{
	size_t above = c->path.count;
	enum status status;

	if (name.len && name.ptr[0] == '$')
		return compile_operator(c, name, first, negated, ret);
	TRY(selector_path_add(name, c->arena, &c->path, c->error, c->err));
	status = compile_value(c, first, negated, ret);
	c->path.count = above;
	return status;
}

/* Puts a member's node behind the others, or in the place of one of its name: the last wins. */
static void
put_member(struct selector_node *all, struct selector_node *n)
{
	struct selector_node **at = &all->first;

	while (*at && !str_eq((*at)->member, n->member))
		at = &(*at)->next;
	if (*at)
		n->next = (*at)->next;
	*at = n;
}

static enum status
compile_equality(struct selector_compiler *c, struct str text, bool negated,
		 struct selector_node **ret)
{
	struct selector_node *n;

	TRY(field_new(c, &n));
	n->cond.op = negated ? SELECTOR_NE : SELECTOR_EQ;
	TRY(leaf_parse(text, c->arena, &n->cond.operand, c->err));
	*ret = n;
	return STATUS_OK;
}

/* Several members are an $and of them; none at all is a value to be equal to. */
static enum status
compile_object(struct selector_compiler *c, bool negated, struct selector_node **ret)
{
	struct selector_node *all, *n;
	enum json_token token;

	TRY(node_new(c, negated ? SELECTOR_OR : SELECTOR_AND, &all));
	for (;;) {
		struct str name;

		TRY(json_next(&c->reader, &token));
		if (token == JSON_OBJECT_END)
			break;
		name = arena_dup(c->arena, c->reader.text);
		if (!name.ptr)
			return STATUS_LIMIT;
		TRY(json_next(&c->reader, &token));
		TRY(compile_member(c, name, token, negated, &n));
		n->member = name;
		put_member(all, n);
	}
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
		return err_set(c->err, STATUS_INVALID, "Selector must be a JSON object, not: %.*s",
			       STR_ARG(text));
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
selector_compile(struct str text, struct arena *arena, struct selector **ret,
		 enum selector_error *ret_error, struct err *err)
{
	enum selector_error error = SELECTOR_ERROR_NONE;
	struct selector_compiler c = { .arena = arena, .error = &error, .err = err };
	struct selector *s = arena_zalloc(arena, sizeof(*s));
	enum status status;

	if (ret_error)
		*ret_error = SELECTOR_ERROR_NONE;
	if (text.len > SELECTOR_TEXT_BYTES)
		return err_set(err, STATUS_LIMIT, "The selector has more than %d bytes.",
			       (int)SELECTOR_TEXT_BYTES);
	c.path.names = arena_alloc(arena, SELECTOR_PATH_NAMES * sizeof(*c.path.names));
	if (!s || !c.path.names)
		return STATUS_LIMIT;
	json_reader_init(&c.reader, text, err);
	status = compile_root(&c, text, &s->root);
	json_reader_release(&c.reader);
	if (ret_error)
		*ret_error = error;
	if (status == STATUS_OK)
		*ret = s;
	return status;
}

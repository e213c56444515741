/* Expressions into nodes: texts, objects, arrays, operators with their arguments. */
#include "mql/expr/expr_int.h"
#include "mql/field_path.h"

struct mql_scope {
	struct str name;
	const struct mql_scope *outer;
};

enum {
	FEW = 3, /* arguments that need no memory of the arena */
};

/* ---- Nodes ---- */

enum status
mql_expr_new(struct mql *q, const struct mql_expr_op *op, mql_expr_run_fn *run, size_t count,
	     struct mql_expr **ret)
{
	struct mql_expr *e;

	TRY(step_count(1));
	e = arena_zalloc(q->arena, sizeof(*e));
	if (!e)
		return mql_full(q);
	if (count) {
		e->args = arena_zalloc(q->arena, count * sizeof(struct mql_expr *));
		if (!e->args)
			return mql_full(q);
	}
	e->op = op;
	e->run = run;
	e->count = count;
	*ret = e;
	return STATUS_OK;
}

static enum status
run_constant(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	     struct bson_value *ret)
{
	(void)q;
	(void)env;
	*ret = e->value;
	return STATUS_OK;
}

enum status
mql_expr_of_value(struct mql *q, const struct bson_value *v, struct mql_expr **ret)
{
	TRY(mql_expr_new(q, NULL, run_constant, 0, ret));
	(*ret)->value = *v;
	return STATUS_OK;
}

bool
mql_expr_constant(const struct mql_expr *e, struct bson_value *ret)
{
	if (e->run != run_constant)
		return false;
	if (ret)
		*ret = e->value;
	return true;
}

/* What fails now may never be run: only running it tells the client. */
enum status
mql_expr_fold(struct mql *q, struct mql_expr *e)
{
	static const struct mql_env nothing = { .root = { "\x05\0\0\0\0", BSON_EMPTY_BYTES } };
	struct err *err = q->err;
	struct bson_value v;
	enum status status;

	for (size_t i = 0; i < e->count; i++) {
		if (e->args[i] && e->args[i]->run != run_constant)
			return STATUS_OK;
	}
	q->err = NULL;
	status = e->run(e, q, &nothing, &v);
	q->err = err;
	if (status == STATUS_INVALID || status == STATUS_UNSUPPORTED) {
		q->code = 0;
		return STATUS_OK;
	}
	if (status == STATUS_LIMIT)
		return mql_full(q);
	TRY(status);
	e->run = run_constant;
	e->value = v;
	return STATUS_OK;
}

enum status
mql_expr_run(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	     struct bson_value *ret)
{
	return e->run(e, q, env, ret);
}

/* ---- Scopes ---- */

enum status
mql_scope_add(struct mql *q, const struct mql_scope *outer, struct str name,
	      const struct mql_scope **ret)
{
	struct mql_scope *scope = arena_alloc(q->arena, sizeof(*scope));

	if (!scope)
		return mql_full(q);
	*scope = (struct mql_scope){ name, outer };
	*ret = scope;
	return STATUS_OK;
}

/* How many variables lie in front of it; false if there is none of this name. */
static bool
scope_find(const struct mql_scope *scope, struct str name, size_t *ret)
{
	size_t at = 0;

	for (; scope; scope = scope->outer, at++) {
		if (str_eq(scope->name, name)) {
			*ret = at;
			return true;
		}
	}
	return false;
}

static bool
is_lower(char c)
{
	return (c >= 'a' && c <= 'z') || (c & 0x80);
}

static bool
is_letter(char c)
{
	return is_lower(c) || (c >= 'A' && c <= 'Z');
}

static bool
is_part_of_name(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
}

static enum status
scope_check_rest(struct mql *q, struct str name)
{
	for (size_t i = 1; i < name.len; i++) {
		if (!is_part_of_name(name.ptr[i]))
			return mql_fail(
				q, MQL_FAILED_TO_PARSE,
				"'%.*s' contains an invalid character for a variable name: '%c'",
				STR_ARG(name), name.ptr[i]);
	}
	return STATUS_OK;
}

enum status
mql_scope_check_name(struct mql *q, struct str name)
{
	if (!name.len)
		return mql_fail(q, MQL_FAILED_TO_PARSE, "empty variable names are not allowed");
	if (mql_is(name, "CURRENT"))
		return STATUS_OK;
	if (!is_lower(name.ptr[0]))
		return mql_fail(q, MQL_FAILED_TO_PARSE,
				"'%.*s' starts with an invalid character for a user variable name",
				STR_ARG(name));
	return scope_check_rest(q, name);
}

/* ---- Paths ---- */

/* What the documents of an array have at the rest of a path. */
static enum status
path_in_array(struct mql *q, struct str array, struct str path, struct bson_value *ret)
{
	struct bson_value *values = arena_alloc(q->arena, bson_count(array) * sizeof(*values));
	struct bson_iter i;
	struct bson_element e;
	size_t count = 0;

	if (!values)
		return mql_full(q);
	for (bson_iter_begin(&i, array); bson_iter_read(&i, &e);) {
		TRY(step_count(1));
		if (e.value.type != BSON_DOCUMENT)
			continue;
		TRY(mql_path_value(q, &e.value, path, &values[count]));
		count += !mql_is_missing(&values[count]);
	}
	return mql_expr_array(q, values, count, ret);
}

enum status
mql_path_value(struct mql *q, const struct bson_value *of, struct str path, struct bson_value *ret)
{
	struct bson_value v = *of;

	while (path.len) {
		if (v.type == BSON_ARRAY)
			return path_in_array(q, bson_text(&v), path, ret);
		if (v.type != BSON_DOCUMENT) {
			v = MQL_NO_VALUE;
			break;
		}
		TRY(step_count_bytes(bson_text(&v).len));
		if (!bson_find(bson_text(&v), str_cut(&path, '.'), &v))
			v = MQL_NO_VALUE;
	}
	*ret = v;
	return STATUS_OK;
}

/* ---- Variables ---- */

static enum status
run_root(const struct mql_expr *e, struct mql *q, const struct mql_env *env, struct bson_value *ret)
{
	return mql_path_value(q, &BSON_OF_DOCUMENT(env->root), bson_text(&e->value), ret);
}

/* `number` is 1 where the path is one name, as most are. */
static enum status
run_current(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	    struct bson_value *ret)
{
	if (!mql_is_missing(&env->current))
		return mql_path_value(q, &env->current, bson_text(&e->value), ret);
	if (!e->number)
		return run_root(e, q, env, ret);
	TRY(step_count_bytes(env->root.len));
	if (!bson_find(env->root, bson_text(&e->value), ret))
		*ret = MQL_NO_VALUE;
	return STATUS_OK;
}

static enum status
run_bound(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	  struct bson_value *ret)
{
	const struct mql_bound *bound = env->bound;

	for (size_t i = e->number; i && bound; i--)
		bound = bound->outer;
	if (bound)
		return mql_path_value(q, &bound->value, bson_text(&e->value), ret);
	*ret = MQL_NO_VALUE;
	return STATUS_OK;
}

static enum status
run_now(const struct mql_expr *e, struct mql *q, const struct mql_env *env, struct bson_value *ret)
{
	(void)env;
	return mql_path_value(q, &BSON_OF_DATE(q->now_ms), bson_text(&e->value), ret);
}

static enum status
run_cluster_time(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
		 struct bson_value *ret)
{
	const struct bson_value v = { .type = BSON_TIMESTAMP, .as_n = (int64_t)q->cluster_time };

	(void)env;
	return mql_path_value(q, &v, bson_text(&e->value), ret);
}

/* A path in a variable of the system; `*ret` is NULL if there is none of this name. */
static enum status
compile_system(struct mql *q, struct str name, struct str path, struct mql_expr **ret)
{
	static const struct {
		const char *name, *value;
	} strings[] = {
		{ "DESCEND", "descend" },
		{ "PRUNE", "prune" },
		{ "KEEP", "keep" },
	};
	mql_expr_run_fn *run = mql_is(name, "ROOT")           ? run_root
			       : mql_is(name, "CURRENT")      ? run_current
			       : mql_is(name, "NOW")          ? run_now
			       : mql_is(name, "CLUSTER_TIME") ? run_cluster_time
							      : NULL;
	struct bson_value v;

	*ret = NULL;
	if (run == run_cluster_time && !q->cluster_time)
		return mql_fail(q, 10071200, "Builtin variable '$$CLUSTER_TIME' is not available");
	if (run) {
		TRY(mql_expr_new(q, NULL, run, 0, ret));
		(*ret)->value = BSON_OF_STRING(path);
		return STATUS_OK;
	}
	v = MQL_NO_VALUE;
	if (mql_is(name, "USER_ROLES"))
		v = BSON_OF_ARRAY(BSON_EMPTY);
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		if (mql_is(name, strings[i].name))
			v = BSON_OF_STRING(str_from_cstr(strings[i].value));
	}
	if (mql_is_missing(&v) && !mql_is(name, "REMOVE"))
		return STATUS_OK;
	TRY(mql_path_value(q, &v, path, &v));
	return mql_expr_of_value(q, &v, ret);
}

static enum status
compile_variable(struct mql *q, struct str text, const struct mql_scope *scope,
		 struct mql_expr **ret)
{
	struct str path = text, name = str_cut(&path, '.');
	size_t at;

	if (!name.len)
		return mql_fail(q, MQL_FAILED_TO_PARSE, "empty variable names are not allowed");
	if (!is_letter(name.ptr[0]))
		return mql_fail(q, MQL_FAILED_TO_PARSE,
				"'%.*s' starts with an invalid character for a variable name",
				STR_ARG(name));
	TRY(scope_check_rest(q, name));
	if (name.len < text.len)
		TRY(mql_field_path_check(q, text));
	if (!scope_find(scope, name, &at)) {
		TRY(compile_system(q, name, path, ret));
		if (*ret)
			return STATUS_OK;
		return mql_fail(q, 17276, "Use of undefined variable: %.*s", STR_ARG(name));
	}
	TRY(mql_expr_new(q, NULL, run_bound, 0, ret));
	(*ret)->number = at;
	(*ret)->value = BSON_OF_STRING(path);
	return STATUS_OK;
}

static enum status
compile_path(struct mql *q, struct str text, const struct mql_scope *scope, struct mql_expr **ret)
{
	size_t at;

	if (text.len == 1)
		return mql_fail(q, 16872, "'$' by itself is not a valid FieldPath");
	if (memchr(text.ptr, 0, text.len))
		return mql_fail(q, 16419, "field path must not contain embedded null characters");
	text = str_skip(text, 1);
	if (text.ptr[0] == '$')
		return compile_variable(q, str_skip(text, 1), scope, ret);
	TRY(mql_field_path_check(q, text));
	if (scope_find(scope, STR("CURRENT"), &at)) {
		TRY(mql_expr_new(q, NULL, run_bound, 0, ret));
		(*ret)->number = at;
	} else {
		TRY(mql_expr_new(q, NULL, run_current, 0, ret));
		(*ret)->number = !memchr(text.ptr, '.', text.len);
	}
	(*ret)->value = BSON_OF_STRING(text);
	return STATUS_OK;
}

/* ---- Arguments ---- */

static enum status
named_fault(struct mql *q, const struct mql_expr_op *op, enum mql_expr_fault fault, struct str name,
	    const struct bson_value *arg)
{
	int code = op->codes[fault] ? op->codes[fault] : MQL_FAILED_TO_PARSE;

	if (op->fault)
		return op->fault(q, op, fault, name, arg);
	switch (fault) {
	case MQL_FAULT_NOT_OBJECT:
		return mql_fail(q, code, "%s only supports an object as its argument", op->name);
	case MQL_FAULT_UNKNOWN:
		return mql_fail(q, code, "Unrecognized parameter to %s: %.*s", op->name,
				STR_ARG(name));
	case MQL_FAULT_MISSING:
	case MQL_FAULTS:
		break;
	}
	return mql_fail(q, code, "Missing '%.*s' parameter to %s", STR_ARG(name), op->name);
}

enum status
mql_expr_named(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	       struct bson_value *ret)
{
	struct bson_iter i;
	struct bson_element e;

	if (arg->type != BSON_DOCUMENT)
		return named_fault(q, op, MQL_FAULT_NOT_OBJECT, STR(""), arg);
	for (size_t n = 0; op->names[n]; n++)
		ret[n] = MQL_NO_VALUE;
	for (bson_iter_begin(&i, bson_text(arg)); bson_iter_read(&i, &e);) {
		size_t n = 0;

		TRY(step_count(1));
		while (op->names[n] && !mql_is(e.name, op->names[n]))
			n++;
		if (!op->names[n])
			return named_fault(q, op, MQL_FAULT_UNKNOWN, e.name, arg);
		ret[n] = e.value;
	}
	for (size_t n = 0; op->names[n]; n++) {
		if (op->required >> n & 1 && mql_is_missing(&ret[n]))
			return named_fault(q, op, MQL_FAULT_MISSING, str_from_cstr(op->names[n]),
					   arg);
	}
	return STATUS_OK;
}

static enum status
compile_named(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	      const struct mql_scope *scope, mql_expr_run_fn *run, struct mql_expr **ret)
{
	struct bson_value *values;
	size_t count = 0;

	while (op->names[count])
		count++;
	values = arena_alloc(q->arena, count * sizeof(*values));
	if (!values)
		return mql_full(q);
	TRY(mql_expr_named(q, op, arg, values));
	TRY(mql_expr_new(q, op, run, count, ret));
	for (size_t n = 0; n < count; n++) {
		if (!mql_is_missing(&values[n]))
			TRY(mql_expr_compile(q, &values[n], scope, &(*ret)->args[n]));
	}
	return STATUS_OK;
}

static enum status
check_arity(struct mql *q, const struct mql_expr_op *op, size_t count)
{
	if ((int64_t)count >= op->least && (op->most < 0 || (int64_t)count <= op->most))
		return STATUS_OK;
	if (op->least == op->most)
		return mql_fail(q, 16020,
				"Expression %s takes exactly %d arguments. %zu were passed in.",
				op->name, op->least, count);
	return mql_fail(q, 28667,
			"Expression %s takes at least %d arguments, and at most %d, but %zu were "
			"passed in.",
			op->name, op->least, op->most < 0 ? INT32_MAX : op->most, count);
}

enum status
mql_expr_args(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	      const struct mql_scope *scope, mql_expr_run_fn *run, struct mql_expr **ret)
{
	bool list = arg->type == BSON_ARRAY;
	size_t count = list ? bson_count(bson_text(arg)) : 1, n = 0;
	struct bson_iter i;
	struct bson_element e;

	if (op->names)
		return compile_named(q, op, arg, scope, run, ret);
	TRY(check_arity(q, op, count));
	TRY(mql_expr_new(q, op, run, count, ret));
	if (!list)
		return mql_expr_compile(q, arg, scope, &(*ret)->args[0]);
	for (bson_iter_begin(&i, bson_text(arg)); n < count && bson_iter_read(&i, &e);)
		TRY(mql_expr_compile(q, &e.value, scope, &(*ret)->args[n++]));
	return STATUS_OK;
}

enum status
mql_expr_run_args(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
		  struct bson_value *ret)
{
	for (size_t i = 0; i < e->count; i++) {
		if (e->args[i])
			TRY(mql_expr_run(e->args[i], q, env, &ret[i]));
		else
			ret[i] = MQL_NO_VALUE;
	}
	return STATUS_OK;
}

/* The usual operator. */
static enum status
run_strict(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	   struct bson_value *ret)
{
	struct bson_value few[FEW], *args = few;

	TRY(step_count(1));
	if (e->count > FEW) {
		args = arena_alloc(q->arena, e->count * sizeof(*args));
		if (!args)
			return mql_full(q);
	}
	TRY(mql_expr_run_args(e, q, env, args));
	if (e->op->run_op)
		return e->op->run_op(q, e->op, args, e->count, ret);
	return e->op->run(q, args, e->count, ret);
}

static enum status
expr_compile_operator(struct mql *q, const struct bson_element *e, const struct mql_scope *scope,
		      struct mql_expr **ret)
{
	const struct mql_expr_op *op = mql_expr_op_of(e->name);

	if (!op)
		return mql_fail(q, MQL_UNKNOWN_EXPRESSION, "Unrecognized expression '%.*s'",
				STR_ARG(e->name));
	if (op->compile)
		return op->compile(q, op, &e->value, scope, ret);
	TRY(mql_expr_args(q, op, &e->value, scope, run_strict, ret));
	return mql_expr_fold(q, *ret);
}

/* ---- Objects and arrays ---- */

static enum status
run_object(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	   struct bson_value *ret)
{
	struct bson_value *values = arena_alloc(q->arena, e->count * sizeof(*values));

	if (!values)
		return mql_full(q);
	TRY(mql_expr_run_args(e, q, env, values));
	return mql_expr_document(q, e->more, values, e->count, ret);
}

static enum status
run_array(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	  struct bson_value *ret)
{
	struct bson_value *values = arena_alloc(q->arena, e->count * sizeof(*values));

	if (!values)
		return mql_full(q);
	TRY(mql_expr_run_args(e, q, env, values));
	return mql_expr_array(q, values, e->count, ret);
}

static bool
has_name(const struct str *names, size_t count, struct str name)
{
	for (size_t i = 0; i < count; i++) {
		if (str_eq(names[i], name))
			return true;
	}
	return false;
}

static enum status
compile_members(struct mql *q, const struct bson_value *v, const struct mql_scope *scope,
		struct mql_expr **ret)
{
	size_t count = bson_count(bson_text(v)), n = 0;
	struct str *names = arena_alloc(q->arena, count * sizeof(*names));
	struct bson_iter i;
	struct bson_element e;

	if (!names)
		return mql_full(q);
	TRY(mql_expr_new(q, NULL, run_object, count, ret));
	(*ret)->more = names;
	for (bson_iter_begin(&i, bson_text(v)); n < count && bson_iter_read(&i, &e); n++) {
		TRY(mql_field_name_check(q, e.name));
		TRY(step_count_bytes(n * sizeof(*names)));
		if (has_name(names, n, e.name))
			return mql_fail(q, 16406,
					"duplicate field name specified in object expression: %s",
					mql_text(q, STR(""), v));
		names[n] = e.name;
		TRY(mql_expr_compile(q, &e.value, scope, &(*ret)->args[n]));
	}
	return mql_expr_fold(q, *ret);
}

static enum status
compile_object(struct mql *q, const struct bson_value *v, const struct mql_scope *scope,
	       struct mql_expr **ret)
{
	struct bson_iter i;
	struct bson_element e;

	bson_iter_begin(&i, bson_text(v));
	if (!bson_iter_read(&i, &e))
		return mql_expr_of_value(q, v, ret);
	if (!str_starts_with(e.name, STR("$")))
		return compile_members(q, v, scope, ret);
	if (i.at != i.end)
		return mql_fail(q, 15983,
				"an object representing an expression must have exactly one "
				"field: %s",
				mql_text(q, STR(""), v));
	return expr_compile_operator(q, &e, scope, ret);
}

static enum status
compile_array(struct mql *q, const struct bson_value *v, const struct mql_scope *scope,
	      struct mql_expr **ret)
{
	size_t count = bson_count(bson_text(v)), n = 0;
	struct bson_iter i;
	struct bson_element e;

	TRY(mql_expr_new(q, NULL, run_array, count, ret));
	for (bson_iter_begin(&i, bson_text(v)); n < count && bson_iter_read(&i, &e); n++)
		TRY(mql_expr_compile(q, &e.value, scope, &(*ret)->args[n]));
	return mql_expr_fold(q, *ret);
}

enum status
mql_expr_compile(struct mql *q, const struct bson_value *v, const struct mql_scope *scope,
		 struct mql_expr **ret)
{
	enum status status;

	if (v->type == BSON_STRING && str_starts_with(bson_text(v), STR("$")))
		return compile_path(q, bson_text(v), scope, ret);
	if (!bson_is_container(v))
		return mql_expr_of_value(q, v, ret);
	if (q->depth == MQL_DEPTH)
		return mql_fail(q, MQL_OVERFLOW, "expressions lie more than %d inside each other",
				MQL_DEPTH);
	q->depth++;
	status = v->type == BSON_ARRAY ? compile_array(q, v, scope, ret)
				       : compile_object(q, v, scope, ret);
	assert(q->depth > 0 && q->depth <= MQL_DEPTH);
	q->depth--;
	return status;
}

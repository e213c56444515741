/* $function: a function in JavaScript, called with the values of its arguments. */
#include "mql/expr/expr_int.h"
#include "mql/expr/script.h"

enum status
mql_expr_source(struct mql *q, const struct bson_value *v, const struct mql_scope *scope,
		bool *ret_constant, struct bson_value *ret)
{
	struct mql_expr *e;

	TRY(mql_expr_compile(q, v, scope, &e));
	*ret_constant = mql_expr_constant(e, ret);
	return STATUS_OK;
}

static enum status
run_function(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	     struct bson_value *ret)
{
	struct bson_value args;
	struct str ask, text;

	TRY(mql_expr_run(e->args[0], q, env, &args));
	if (args.type != BSON_ARRAY)
		return mql_fail(q, 31266, "The args field must be of type array");
	TRY(mql_script_text(q, &args, true, &ask));
	TRY(mql_script_call(e->more, q, ask, &text));
	return mql_script_value(q, text, ret);
}

static enum status
compile_body(struct mql *q, struct str spec, const struct mql_scope *scope,
	     const struct mql_script **ret)
{
	struct bson_value v;
	bool constant;

	if (!bson_find(spec, STR("body"), &v))
		return mql_fail(q, 31261, "The body function must be specified.");
	TRY(mql_expr_source(q, &v, scope, &constant, &v));
	if (!constant)
		return mql_fail(q, 31432, "The body function must be a constant expression");
	if (!mql_is_source(&v))
		return mql_fail(q, 31262, "The body function must evaluate to type string or code");
	return mql_script_new(q, MQL_SCRIPT_CALL, MQL_SCRIPT_NO_ENGINE,
			      &(struct mql_script_source){ "body", bson_text(&v) }, 1, ret);
}

static enum status
compile_function(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
		 const struct mql_scope *scope, struct mql_expr **ret)
{
	const struct mql_script *script;
	struct bson_value args, lang;

	if (q->is_validator)
		return mql_fail(q, 4660800, "$function cannot be used inside a validator.");
	if (arg->type != BSON_DOCUMENT)
		return mql_fail(q, 31260, "$function requires an object as an argument, found: %s",
				bson_type_name(arg->type));
	TRY(compile_body(q, bson_text(arg), scope, &script));
	if (!bson_find(bson_text(arg), STR("args"), &args))
		return mql_fail(q, 31263, "The args field must be specified.");
	TRY(mql_expr_new(q, op, run_function, 1, ret));
	TRY(mql_expr_compile(q, &args, scope, &(*ret)->args[0]));
	(*ret)->more = script;
	if (!bson_find(bson_text(arg), STR("lang"), &lang))
		return mql_fail(q, 31418, "The lang field must be specified.");
	if (lang.type != BSON_STRING || !mql_is(bson_text(&lang), "js"))
		return mql_fail(q, 31419,
				"Currently the only supported language specifier is 'js'.");
	return STATUS_OK;
}

const struct mql_expr_op mql_expr_script_ops[] = {
	{ .name = "$function", .compile = compile_function },
	{ .name = NULL },
};

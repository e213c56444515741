#include "mql/stage/accum_script.h"

#include "mql/mql_int.h"

/* ---- Compiling ---- */

static enum status
compile_source(struct mql *q, const struct bson_element *e, const struct mql_scope *scope,
	       struct str *ret)
{
	struct bson_value v;
	bool constant;

	TRY(mql_expr_source(q, &e->value, scope, &constant, &v));
	if (!constant)
		return mql_fail(q, 4544701, "$accumulator '%.*s' must be a constant expression",
				STR_ARG(e->name));
	if (!mql_is_source(&v))
		return mql_fail(q, 4544702, "$accumulator '%.*s' must be a String or Code",
				STR_ARG(e->name));
	*ret = bson_text(&v);
	return STATUS_OK;
}

enum source {
	SOURCE_INIT,
	SOURCE_ACCUMULATE,
	SOURCE_MERGE,
	SOURCE_FINALIZE,
	SOURCES,
};

static const char *const source_names[SOURCES] = { "init", "accumulate", "merge", "finalize" };

static enum status
compile_member(struct mql *q, struct mql_accum_script *a, const struct bson_element *e,
	       const struct mql_scope *scope, struct str *sources)
{
	for (size_t i = 0; i < SOURCES; i++)
		if (mql_is(e->name, source_names[i]))
			return compile_source(q, e, scope, &sources[i]);
	if (mql_is(e->name, "initArgs"))
		return mql_expr_compile(q, &e->value, NULL, &a->init_args);
	if (mql_is(e->name, "accumulateArgs"))
		return mql_expr_compile(q, &e->value, scope, &a->args);
	if (!mql_is(e->name, "lang"))
		return mql_fail(q, 4544706, "$accumulator got an unexpected field: %.*s",
				STR_ARG(e->name));
	if (e->value.type != BSON_STRING)
		return mql_fail(q, 4544704, "$accumulator lang must be a string; found: %s",
				bson_type_name(e->value.type));
	if (!mql_is(bson_text(&e->value), "js"))
		return mql_fail(q, 4544705, "$accumulator only supports lang: 'js'");
	return STATUS_OK;
}

enum status
mql_accum_script_compile(struct mql *q, const struct bson_value *spec,
			 const struct mql_scope *scope, struct mql_accum_script *ret)
{
	static const int missing[] = { 4544707, 4544708, 4544709 };
	struct str sources[SOURCES] = { 0 };
	struct mql_script_source given[SOURCES];
	struct bson_element e;
	struct bson_iter i;
	size_t count = 0;

	if (spec->type != BSON_DOCUMENT)
		return mql_fail(q, 4544703,
				"$accumulator expects an object as an argument; found: %s",
				bson_type_name(spec->type));
	for (bson_iter_begin(&i, bson_text(spec)); bson_iter_read(&i, &e);)
		TRY(compile_member(q, ret, &e, scope, sources));
	for (size_t k = SOURCE_INIT; k <= SOURCE_MERGE; k++)
		if (!sources[k].len)
			return mql_fail(q, missing[k],
					"$accumulator missing required argument '%s'",
					source_names[k]);
	if (!ret->args)
		return mql_fail(q, 4544710,
				"$accumulator missing required argument 'accumulateArgs'");
	for (size_t k = 0; k < SOURCES; k++)
		if (sources[k].ptr)
			given[count++] = (struct mql_script_source){ source_names[k], sources[k] };
	return mql_script_new(q, MQL_SCRIPT_ACCUMULATE, MQL_SCRIPT_NO_ENGINE, given, count,
			      &ret->script);
}

/* ---- States ---- */

static enum status
text_append(struct arena *keep, struct mql_accum_text *t, struct str s)
{
	if (t->len + s.len > t->cap) {
		size_t cap = t->cap * 2 > t->len + s.len ? t->cap * 2 : t->len + s.len;
		char *ptr = arena_bytes(keep, cap);

		if (!ptr)
			return STATUS_LIMIT;
		if (t->len)
			memcpy(ptr, t->ptr, t->len);
		t->ptr = ptr;
		t->cap = cap;
	}
	if (s.len)
		memcpy(t->ptr + t->len, s.ptr, s.len);
	t->len += s.len;
	return STATUS_OK;
}

static struct str
text_of(const struct mql_accum_text *t)
{
	return str_of(t->len ? t->ptr : "", t->len);
}

static enum status
check_args(struct mql *q, int code, const char *name, const struct bson_value *v)
{
	if (v->type == BSON_ARRAY)
		return STATUS_OK;
	return mql_fail(q, code, "$accumulator %s must evaluate to an array: %s", name,
			mql_is_missing(v) ? "missing" : mql_text(q, STR(""), v));
}

enum status
mql_accum_script_begin(const struct mql_accum_script *a, struct mql *q, const struct mql_env *env,
		       struct arena *keep, struct mql_accum_script_state *s)
{
	struct bson_value args = BSON_OF_ARRAY(BSON_EMPTY);
	struct str text;

	if (a->init_args)
		TRY(mql_expr_run(a->init_args, q, env, &args));
	TRY(check_args(q, 4544711, "initArgs", &args));
	TRY(mql_script_text(q, &args, true, &text));
	return text_append(keep, &s->state, text);
}

/* Makes the calls that wait. */
static enum status
script_run(const struct mql_accum_script *a, struct mql *q, const struct mql_accum_script_state *s,
	   bool ends, struct str *ret)
{
	struct str ask = arena_printf(q->arena, "{\"%s\":%.*s,\"a\":[%.*s]%s}",
				      s->begun ? "s" : "i", STR_ARG(text_of(&s->state)),
				      STR_ARG(text_of(&s->calls)), ends ? ",\"f\":true" : "");

	if (!ask.ptr)
		return mql_full(q);
	return mql_script_call(a->script, q, ask, ret);
}

enum status
mql_accum_script_take(const struct mql_accum_script *a, struct mql *q,
		      const struct bson_value *args, struct arena *keep,
		      struct mql_accum_script_state *s)
{
	struct str text;

	TRY(check_args(q, 4544712, "accumulateArgs", args));
	TRY(mql_script_text(q, args, true, &text));
	if (s->count)
		TRY(text_append(keep, &s->calls, STR(",")));
	TRY(text_append(keep, &s->calls, text));
	s->count++;
	if (s->count < MQL_ACCUM_CALLS && s->calls.len < MQL_ACCUM_BYTES)
		return STATUS_OK;
	TRY(script_run(a, q, s, false, &text));
	s->begun = true;
	s->count = s->calls.len = s->state.len = 0;
	return text_append(keep, &s->state, text);
}

enum status
mql_accum_script_end(const struct mql_accum_script *a, struct mql *q,
		     const struct mql_accum_script_state *s, struct bson_value *ret)
{
	struct str text;

	TRY(script_run(a, q, s, true, &text));
	return mql_script_value(q, text, ret);
}

/* $out and $merge, which write, and the stages that tell figures of a collection. */

#include "mql/field_path.h"
#include "mql/stage/stages_int.h"

/* ---- Running ---- */

static enum status
write_next(struct mql_stage_run *r, struct str *ret)
{
	const struct mql_store *store = r->run->options.store;
	bool *done = r->state;

	(void)ret;
	if (*done)
		return STATUS_NOT_FOUND;
	*done = true;
	if (!store)
		return mql_fail(&r->run->q, MQL_BAD_VALUE, "%.*s has no collections to write",
				STR_ARG(r->stage->name));
	TRY(store->write(store, mql_stage_begin(r), r->stage->more, r->from));
	return STATUS_NOT_FOUND;
}

static const struct mql_stage_ops write_ops = { .next = write_next, .state_bytes = sizeof(bool) };

static enum status
add_write(struct mql_stages *c, struct str stage, const struct bson_value *v,
	  const struct mql_write *w)
{
	c->p->write = w;
	return mql_stage_add(c, stage, v, &write_ops, w);
}

/* ---- $out ---- */

MQL_STAGE_COMPILE(out)
{
	struct mql_write *w = mql_stage_alloc(c, sizeof(*w));
	struct bson_element e;
	struct bson_iter i;

	if (!w)
		return mql_full(c->q);
	w->replaces = true;
	if (v->type == BSON_STRING) {
		w->collection = bson_text(v);
		return add_write(c, stage, v, w);
	}
	if (v->type != BSON_DOCUMENT)
		return mql_fail(c->q, 16990,
				"$out only supports a string or object argument, but found %s",
				bson_type_name(v->type));
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);) {
		bool db = mql_is(e.name, "db");

		if (mql_is(e.name, "timeseries"))
			return mql_refuse(c->q, STR("$out to a time series"));
		if (!db && !mql_is(e.name, "coll"))
			return mql_fail(c->q, 40415, "BSON field '$out.%.*s' is an unknown field.",
					STR_ARG(e.name));
		if (e.value.type != BSON_STRING)
			return mql_fail(c->q, MQL_TYPE_MISMATCH,
					"BSON field '$out.%.*s' is the wrong type '%s', expected "
					"type 'string'",
					STR_ARG(e.name), bson_type_name(e.value.type));
		*(db ? &w->db : &w->collection) = bson_text(&e.value);
	}
	if (!w->db.len || !w->collection.len)
		return mql_fail(c->q, 40414, "BSON field '$out.%s' is missing but a required field",
				w->db.len ? "coll" : "db");
	return add_write(c, stage, v, w);
}

/* ---- $merge ---- */

struct merge_args {
	struct bson_value into, on, let, matched, not_matched;
};

/* MongoDB takes an optional member that is null as one that is not there. */
static bool
is_left_out(const struct bson_value *v)
{
	return v->type == BSON_NULL || v->type == BSON_UNDEFINED;
}

static enum status
merge_into(struct mql *q, struct mql_write *w, const struct bson_value *v)
{
	struct bson_element e;
	struct bson_iter i;

	if (v->type == BSON_STRING) {
		if (!bson_text(v).len)
			return mql_fail(q, 5786800,
					"$merge 'into' field must be a non-empty string");
		w->collection = bson_text(v);
		return STATUS_OK;
	}
	if (v->type != BSON_DOCUMENT)
		return mql_fail(q, 51178,
				"$merge 'into' field  must be either a string or an object, but "
				"found %s",
				bson_type_name(v->type));
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);) {
		bool db = mql_is(e.name, "db");

		if (!db && !mql_is(e.name, "coll"))
			return mql_fail(q, 40415, "BSON field 'into.%.*s' is an unknown field.",
					STR_ARG(e.name));
		if (is_left_out(&e.value))
			continue;
		if (e.value.type != BSON_STRING)
			return mql_fail(q, MQL_TYPE_MISMATCH,
					"BSON field 'into.%.*s' is the wrong type '%s', expected "
					"type 'string'",
					STR_ARG(e.name), bson_type_name(e.value.type));
		*(db ? &w->db : &w->collection) = bson_text(&e.value);
	}
	if (!w->collection.len)
		return mql_fail(q, 5786801,
				"$merge 'into' field must specify a 'coll' that is not empty, null "
				"or undefined");
	return STATUS_OK;
}

static enum status
merge_on(struct mql_stages *c, struct mql_write *w, const struct bson_value *v)
{
	struct bson_element e;
	struct bson_iter i;
	struct str *on;

	if (v->type != BSON_STRING && v->type != BSON_ARRAY)
		return mql_fail(c->q, 51186,
				"$merge 'on' field  must be either a string or an array of "
				"strings, but found %s",
				bson_type_name(v->type));
	if (v->type == BSON_ARRAY && bson_is_empty(bson_text(v)))
		return mql_fail(c->q, 51187,
				"If explicitly specifying $merge 'on', must include at least one "
				"field");
	on = mql_stage_alloc(c,
			     (v->type == BSON_ARRAY ? bson_count(bson_text(v)) : 1) * sizeof(*on));
	if (!on)
		return mql_full(c->q);
	w->on = on;
	if (v->type == BSON_STRING) {
		on[w->on_count++] = bson_text(v);
		return mql_field_path_check(c->q, bson_text(v));
	}
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);) {
		if (e.value.type != BSON_STRING)
			return mql_fail(c->q, 51134,
					"$merge 'on' array elements must be strings, but found %s",
					bson_type_name(e.value.type));
		TRY(mql_field_path_check(c->q, bson_text(&e.value)));
		for (size_t k = 0; k < w->on_count; k++) {
			TRY(step_count(1));
			if (str_eq(on[k], bson_text(&e.value)))
				return mql_fail(c->q, 31465, "Found a duplicate field '%.*s'",
						STR_ARG(bson_text(&e.value)));
		}
		on[w->on_count++] = bson_text(&e.value);
	}
	return STATUS_OK;
}

/* Variables of a pipeline; `$$new` is the document that comes. */
static enum status
merge_let(struct mql_stages *c, struct mql_write *w, const struct bson_value *v,
	  const struct mql_scope **scope)
{
	const struct bson_value root = BSON_OF_STRING(STR("$$ROOT"));
	struct str let = v->type == BSON_DOCUMENT ? bson_text(v) : BSON_EMPTY;
	struct mql_expr **exprs = mql_stage_alloc(c, (bson_count(let) + 1) *
							     sizeof(struct mql_expr *));
	struct bson_element e;
	struct bson_iter i;

	if (!exprs)
		return mql_full(c->q);
	w->let = (const struct mql_expr *const *)exprs;
	TRY(mql_expr_compile(c->q, &root, NULL, &exprs[w->let_count++]));
	TRY(mql_scope_add(c->q, *scope, STR("new"), scope));
	for (bson_iter_begin(&i, let); bson_iter_read(&i, &e);) {
		if (mql_is(e.name, "new")) {
			if (e.value.type != BSON_STRING || !mql_is(bson_text(&e.value), "$$ROOT"))
				return mql_fail(c->q, 51273,
						"'let' may not define a value for the reserved "
						"'new' variable other than '$$ROOT'");
			continue;
		}
		TRY(mql_scope_check_name(c->q, e.name));
		TRY(mql_expr_compile(c->q, &e.value, c->scope, &exprs[w->let_count++]));
		TRY(mql_scope_add(c->q, *scope, e.name, scope));
	}
	return STATUS_OK;
}

static enum status
merge_pipeline(struct mql_stages *c, struct mql_write *w, const struct merge_args *a)
{
	struct mql_pipeline_options options = { .scope = c->scope, .update = true };
	struct mql_pipeline *p;

	TRY(merge_let(c, w, &a->let, &options.scope));
	TRY(mql_pipeline_compile(c->q, bson_text(&a->matched), &options, &p));
	w->matched = MQL_MERGE_PIPELINE;
	w->pipeline = p;
	return STATUS_OK;
}

static enum status
merge_matched(struct mql_stages *c, struct mql_write *w, const struct merge_args *a)
{
	static const struct {
		const char *name;
		enum mql_merge_mode mode;
	} modes[] = { { "replace", MQL_MERGE_REPLACE },
		      { "keepExisting", MQL_MERGE_KEEP },
		      { "merge", MQL_MERGE_MERGE },
		      { "fail", MQL_MERGE_FAIL } };

	w->matched = MQL_MERGE_MERGE;
	if (a->matched.type == BSON_ARRAY)
		return merge_pipeline(c, w, a);
	if (a->let.type)
		return mql_fail(c->q, 51199,
				"Cannot use 'let' variables with 'whenMatched' mode that is no "
				"pipeline");
	if (!a->matched.type)
		return STATUS_OK;
	if (a->matched.type != BSON_STRING)
		return mql_fail(c->q, 51191,
				"$merge 'whenMatched' field  must be either a string or an array, "
				"but found %s",
				bson_type_name(a->matched.type));
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (mql_is(bson_text(&a->matched), modes[i].name)) {
			w->matched = modes[i].mode;
			return STATUS_OK;
		}
	}
	return mql_fail(c->q, MQL_BAD_VALUE,
			"Enumeration value '%.*s' for field '$merge.whenMatched' is not a valid "
			"value.",
			STR_ARG(bson_text(&a->matched)));
}

static enum status
merge_not_matched(struct mql *q, struct mql_write *w, const struct bson_value *v)
{
	w->not_matched = MQL_MERGE_INSERT;
	if (!v->type || (v->type == BSON_STRING && mql_is(bson_text(v), "insert")))
		return STATUS_OK;
	if (v->type != BSON_STRING)
		return mql_fail(q, MQL_TYPE_MISMATCH,
				"BSON field '$merge.whenNotMatched' is the wrong type '%s', "
				"expected type 'string'",
				bson_type_name(v->type));
	if (mql_is(bson_text(v), "discard"))
		w->not_matched = MQL_MERGE_DISCARD;
	else if (mql_is(bson_text(v), "fail"))
		w->not_matched = MQL_MERGE_FAIL;
	else
		return mql_fail(q, MQL_BAD_VALUE,
				"Enumeration value '%.*s' for field '$merge.whenNotMatched' is "
				"not a valid value.",
				STR_ARG(bson_text(v)));
	return STATUS_OK;
}

static enum status
merge_option(struct mql *q, const struct bson_element *e, struct merge_args *a)
{
	const struct {
		const char *name;
		struct bson_value *value;
		bool takes_null; /* to refuse it: the member is of more than one type */
	} options[] = { { "into", &a->into, true },
			{ "on", &a->on, true },
			{ "let", &a->let, false },
			{ "whenMatched", &a->matched, true },
			{ "whenNotMatched", &a->not_matched, false } };

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (!mql_is(e->name, options[i].name))
			continue;
		if (options[i].takes_null || !is_left_out(&e->value))
			*options[i].value = e->value;
		return STATUS_OK;
	}
	return mql_fail(q, 40415, "BSON field '$merge.%.*s' is an unknown field.",
			STR_ARG(e->name));
}

MQL_STAGE_COMPILE(merge)
{
	struct mql_write *w = mql_stage_alloc(c, sizeof(*w));
	struct merge_args a = { .into = { 0 } };
	struct bson_element e;
	struct bson_iter i;

	if (!w)
		return mql_full(c->q);
	if (v->type == BSON_STRING) {
		a.into = *v;
	} else if (v->type == BSON_DOCUMENT) {
		for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);)
			TRY(merge_option(c->q, &e, &a));
	} else {
		return mql_fail(c->q, 51182,
				"$merge requires a string or object argument, but found %s",
				bson_type_name(v->type));
	}
	if (!a.into.type)
		return mql_fail(c->q, 40414,
				"BSON field '$merge.into' is missing but a required field");
	if (a.let.type && a.let.type != BSON_DOCUMENT)
		return mql_fail(c->q, MQL_TYPE_MISMATCH,
				"BSON field '$merge.let' is the wrong type '%s', expected type "
				"'object'",
				bson_type_name(a.let.type));
	TRY(merge_into(c->q, w, &a.into));
	if (a.on.type)
		TRY(merge_on(c, w, &a.on));
	TRY(merge_matched(c, w, &a));
	TRY(merge_not_matched(c->q, w, &a.not_matched));
	if (w->not_matched != MQL_MERGE_INSERT &&
	    (w->matched == MQL_MERGE_KEEP || w->matched == MQL_MERGE_FAIL))
		return mql_fail(c->q, 51181,
				"Combination of 'whenMatched' mode and 'whenNotMatched' mode of "
				"$merge is not supported");
	return add_write(c, stage, v, w);
}

enum status
mql_write_merge(const struct mql_write *w, struct mql *q, struct str old, struct str doc,
		struct str *ret)
{
	const struct mql_env env = { .root = doc, .current = MQL_NO_VALUE };
	struct mql_bound *bound = NULL;
	struct bson_value merged;

	switch (w->matched) {
	case MQL_MERGE_REPLACE:
		*ret = doc;
		return STATUS_OK;
	case MQL_MERGE_MERGE:
		TRY(mql_expr_merge(q, old, doc, &merged));
		*ret = bson_text(&merged);
		return STATUS_OK;
	case MQL_MERGE_FAIL:
		return mql_fail(q, 11000,
				"$merge with whenMatched: fail found an existing document");
	case MQL_MERGE_PIPELINE:
		break;
	case MQL_MERGE_KEEP:
	case MQL_MERGE_INSERT:
	case MQL_MERGE_DISCARD:
		*ret = old;
		return STATUS_OK;
	}
	for (size_t i = 0; i < w->let_count; i++) {
		struct mql_bound *next = arena_zalloc(q->arena, sizeof(*next));

		if (!next)
			return mql_full(q);
		TRY(mql_expr_run(w->let[i], q, &env, &next->value));
		next->outer = bound;
		bound = next;
	}
	return mql_pipeline_apply(w->pipeline, q, old, bound, ret);
}

/* ---- $collStats, $indexStats, $currentOp, $listLocalSessions ---- */

struct stats_state {
	struct mql_source *source;
};

static enum status
stats_next(struct mql_stage_run *r, struct str *ret)
{
	const struct mql_store *store = r->run->options.store;
	struct stats_state *s = r->state;

	if (!store)
		return STATUS_NOT_FOUND;
	if (!s->source)
		TRY(store->stats(store, mql_stage_begin(r), r->stage->name,
				 bson_text(&r->stage->spec), &s->source));
	return s->source->next(s->source, ret);
}

static void
stats_fini(struct mql_stage_run *r)
{
	struct stats_state *s = r->state;

	if (s->source)
		s->source->close(s->source);
}

static const struct mql_stage_ops stats_ops = { .next = stats_next,
						.fini = stats_fini,
						.state_bytes = sizeof(struct stats_state) };

MQL_STAGE_COMPILE(stats)
{
	if (mql_is(stage, "$indexStats") &&
	    (v->type != BSON_DOCUMENT || !bson_is_empty(bson_text(v))))
		return mql_fail(c->q, 28803,
				"The $indexStats stage specification must be an empty object");
	if (v->type != BSON_DOCUMENT && mql_is(stage, "$collStats"))
		return mql_fail(c->q, 5447000, "$collStats must take a nested object but found: %s",
				mql_text(c->q, STR(""), v));
	if (v->type != BSON_DOCUMENT)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE, "%.*s must be an object, but found: %s",
				STR_ARG(stage), bson_type_name(v->type));
	return mql_stage_add(c, stage, v, &stats_ops, NULL);
}

/* Expressions as cases: on a document each has a value, none, or a failure with its code. */
#ifndef FROND_TESTS_MQL_EXPR_CASE_H
#define FROND_TESTS_MQL_EXPR_CASE_H

#include "mql/expr/expr.h"
#include "mql_case.h"

struct expr_case {
	const char *expression; /* Extended JSON in which ' stands for " */
	const char *document;
	const char *value; /* NULL: none */
	int code;          /* of the failure, and then no value */
};

/* A value that stands in a text by itself. */
static inline struct bson_value
case_value(struct arena *arena, const char *text)
{
	struct str doc = case_bson(arena, arena_printf(arena, "{'v':%s}", text).ptr);
	struct bson_value v;

	assert_true(bson_find(doc, STR("v"), &v));
	return v;
}

struct expr_run {
	struct bson_value expression;
	struct str document;
};

static inline enum status
case_run_on(struct mql *q, const struct expr_run *run, struct bson_value *ret)
{
	const struct mql_env env = { .root = run->document };
	struct mql_expr *e;

	TRY(mql_expr_compile(q, &run->expression, NULL, &e));
	return mql_expr_run(e, q, &env, ret);
}

/* Compiles and runs; a constant has the same value without a document. */
static inline enum status
case_run(struct mql *q, const char *expression, const char *document, struct bson_value *ret)
{
	const struct expr_run run = { case_value(q->arena, expression),
				      case_bson(q->arena, document) };

	return case_run_on(q, &run, ret);
}

static inline enum status
case_run_again(struct mql *q, const void *arg, struct buf *said)
{
	struct bson_value v;

	TRY(case_run_on(q, arg, &v));
	if ((int)v.type != MQL_MISSING)
		bson_json_write_value(said, &v, BSON_JSON_CANONICAL);
	return buf_status(said);
}

/* The document that has the value as its only member. */
static inline const char *
case_text(struct arena *arena, const struct bson_value *v)
{
	struct buf out = BUF_INIT(CASE_BYTES), text = BUF_INIT(CASE_BYTES);
	struct bson_builder b;
	char *kept;

	if ((int)v->type == MQL_MISSING)
		return "none";
	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_put(&b, STR("v"), v);
	bson_end(&b);
	if (bson_check(buf_str(&out), &case_err) != STATUS_OK)
		fail_msg("not BSON: %s", case_err.text);
	bson_json_write_value(&text, v, BSON_JSON_CANONICAL);
	kept = arena_bytes(arena, text.len + 1);
	memcpy(kept, text.ptr, text.len);
	kept[text.len] = '\0';
	buf_release(&out);
	buf_release(&text);
	return kept;
}

static inline void
case_check(struct arena *arena, const struct expr_case *c)
{
	struct mql q = case_mql(arena);
	const struct expr_run run = { case_value(arena, c->expression),
				      case_bson(arena, c->document) };
	struct bson_value v, wanted = MQL_NO_VALUE;
	enum status status = case_run_on(&q, &run, &v);

	case_memory(case_run_again, &run, c->expression);
	if (c->value)
		wanted = case_value(arena, c->value);
	if (c->code) {
		if (status == STATUS_OK)
			fail_msg("%s on %s is %s, not code %d", c->expression, c->document,
				 case_text(arena, &v), c->code);
		if (q.code != c->code)
			fail_msg("%s on %s has code %d, not %d: %s", c->expression, c->document,
				 q.code, c->code, case_err.text);
		return;
	}
	if (status != STATUS_OK)
		fail_msg("%s on %s: %s", c->expression, c->document, case_err.text);
	if (strcmp(case_text(arena, &v), case_text(arena, &wanted)) != 0)
		fail_msg("%s on %s is %s, not %s", c->expression, c->document, case_text(arena, &v),
			 case_text(arena, &wanted));
}

static inline void
case_check_all(struct arena *arena, const struct expr_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		case_check(arena, &cases[i]);
}

#define EXPR_CASES(arena, cases) case_check_all(arena, cases, CASES(cases))

#endif

/*
 * Functions in JavaScript, which a stand-in answers instead of running them: $function and
 * $accumulator add their numbers, and $where lets a document through whose `a` is more than 1. An
 * argument "throw" is a function that throws, "garbage" one whose result is no value, and "loop",
 * "die", "refuse" and "lost" make a whole run fail.
 */
#include "bson/tagged.h"
#include "mql/expr/script.h"
#include "mql/match/match.h"
#include "mql/stage/accum_script.h"
#include "mql/stage/stages.h"

#include "mql_case.h"

enum {
	ANSWER_BYTES = 1024,
};

/* ---- The stand-in ---- */

struct engine {
	struct mql_scripts scripts;
	bool off;
	size_t runs;
	size_t asks; /* of all runs */
};

static enum status
engine_check(const struct mql_scripts *s, struct err *err)
{
	if (((const struct engine *)s)->off)
		return err_set(err, STATUS_UNSUPPORTED, "it is off");
	return STATUS_OK;
}

/* Adds the numbers in a value, at any depth. `*ret_word`: the string that it has. */
static double
sum_of(const struct bson_value *v, struct str *ret_word)
{
	struct bson_element e;
	struct bson_iter i;
	double sum = 0;
	int64_t n;

	if (v->type == BSON_STRING)
		*ret_word = bson_text(v);
	if (!bson_is_container(v))
		return bson_to_int64(v, &n) ? (double)n : 0;
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);)
		sum += sum_of(&e.value, ret_word);
	return sum;
}

static enum status
answer_one(struct mql *q, const struct mql_script *script, struct str ask,
	   struct mql_script_result *ret)
{
	struct buf document = BUF_INIT(CASE_BYTES);
	struct bson_value v, a;
	struct str word = { 0 };
	double sum;
	enum status status = bson_tagged_read(ask, &document, NULL);

	if (status == STATUS_NOMEM) {
		buf_release(&document);
		return status;
	}
	assert_int_equal(status, STATUS_OK);
	assert_true(bson_find(buf_str(&document), STR(""), &v));
	sum = sum_of(&v, &word);
	if (script->kind == MQL_SCRIPT_WHERE) {
		sum = bson_find(bson_text(&v), STR("a"), &a) ? sum_of(&a, &word) : 0;
		ret->text = sum > 1 ? STR("true") : STR("false");
	} else {
		ret->text = arena_printf(q->arena, "%.0f", sum);
	}
	if (str_eq(word, STR("throw"))) {
		ret->error_name = STR("TypeError");
		ret->error_reason = STR("\"no\"");
	} else if (str_eq(word, STR("loop")) || str_eq(word, STR("die"))) {
		q->code = str_eq(word, STR("loop")) ? MQL_SCRIPT_INTERRUPTED : MQL_SCRIPT_FAILED;
		status = err_set(q->err, STATUS_INVALID, "ended: %.*s", STR_ARG(word));
	} else if (str_eq(word, STR("refuse"))) {
		q->code = MQL_BAD_VALUE;
		status = err_set(q->err, STATUS_INVALID, "refused");
	} else if (str_eq(word, STR("garbage"))) {
		ret->text = STR("{");
	} else if (str_eq(word, STR("lost"))) {
		status = err_set(q->err, STATUS_IO, "the engine is gone");
	} else if (!ret->text.ptr) {
		status = STATUS_LIMIT;
	}
	buf_release(&document);
	return status;
}

static enum status
engine_run(const struct mql_scripts *s, struct mql *q, const struct mql_script *script,
	   const struct str *asks, size_t count, struct mql_script_result *ret)
{
	struct engine *e = (struct engine *)(void *)(uintptr_t)s;

	e->runs++;
	e->asks += count;
	for (size_t i = 0; i < count; i++)
		TRY(answer_one(q, script, asks[i], &ret[i]));
	return STATUS_OK;
}

static struct engine
engine_new(void)
{
	return (struct engine){ .scripts = { engine_check, engine_run } };
}

/* ---- Pipelines ---- */

struct source {
	struct mql_source source;
	struct bson_iter iter;
};

static enum status
source_next(struct mql_source *s, struct str *ret)
{
	struct bson_element e;

	if (!bson_iter_read(&((struct source *)s)->iter, &e))
		return STATUS_NOT_FOUND;
	*ret = bson_text(&e.value);
	return STATUS_OK;
}

static void
source_close(struct mql_source *s)
{
	(void)s;
}

struct pipeline {
	struct str stages; /* arrays */
	struct str documents;
	struct engine *engine;
};

/* Says the documents that a pipeline gives, before it ends or fails. */
static enum status
pipeline_run(struct mql *q, const void *arg, struct buf *said)
{
	const struct pipeline *r = arg;
	const struct mql_pipeline_options compile = { .scope = NULL };
	const struct mql_run_options options = { .directory = "/tmp" };
	struct source source = { .source = { source_next, source_close } };
	struct mql_pipeline *p;
	struct mql_run *run;
	enum status status;
	struct str doc;

	q->scripts = r->engine ? &r->engine->scripts : NULL;
	bson_iter_begin(&source.iter, r->documents);
	TRY(mql_pipeline_compile(q, r->stages, &compile, &p));
	TRY(mql_run_new(p, q, &options, &source.source, &run));
	while ((status = mql_run_next(run, q, &doc)) == STATUS_OK) {
		if (said->len)
			buf_append_byte(said, ',');
		bson_json_write(said, doc, BSON_JSON_RELAXED);
	}
	mql_run_free(run);
	return status == STATUS_NOT_FOUND ? buf_status(said) : status;
}

static struct pipeline
pipeline_of(struct arena *arena, struct engine *engine, const char *stages, const char *documents)
{
	struct str both = case_bson(
		arena, arena_printf(arena, "{'p':[%s],'d':[%s]}", stages, documents).ptr);
	struct bson_value p, d;

	assert_true(bson_find(both, STR("p"), &p) && bson_find(both, STR("d"), &d));
	return (struct pipeline){ bson_text(&p), bson_text(&d), engine };
}

/* `code` is that of the failure behind these documents: 0 if it ends, and -1 if it has none. */
static void
assert_pipeline(struct arena *arena, struct engine *engine, const char *stages,
		const char *documents, const char *expected, int code)
{
	struct pipeline run = pipeline_of(arena, engine, stages, documents);
	struct buf said = BUF_INIT(CASE_BYTES);
	struct mql q = case_mql(arena);
	enum status status = pipeline_run(&q, &run, &said);

	buf_append_byte(&said, '\0');
	for (char *c = said.ptr; *c; c++)
		*c = *c == '"' ? '\'' : *c;
	if ((status != STATUS_OK) != (code != 0) || (code > 0 && q.code != code) ||
	    strcmp(said.ptr, expected) != 0)
		fail_msg("%s on %s: %s, then %s %d %s", stages, documents, said.ptr,
			 status_name(status), q.code, case_err.text);
	buf_release(&said);
}

#define ADD(args) "{'$set':{'s':{'$function':{'body':'f','args':" args ",'lang':'js'}}}}"

/* Documents {a: 0}, {a: 1}, … of which some have another value. */
static const char *
documents_with(struct arena *arena, int count, int at, const char *value)
{
	struct buf text = BUF_INIT(CASE_BYTES);
	const char *kept;

	for (int i = 0; i < count; i++) {
		buf_printf(&text, "%s{'a':", i ? "," : "");
		if (i == at)
			buf_printf(&text, "%s}", value);
		else
			buf_printf(&text, "%d}", i);
	}
	buf_append_byte(&text, '\0');
	kept = arena_dup(arena, buf_str(&text)).ptr;
	buf_release(&text);
	return kept;
}

/* What the stage ADD("['$a']") makes of the first of them. */
static const char *
added(struct arena *arena, int count)
{
	struct buf text = BUF_INIT(CASE_BYTES);
	const char *kept;

	for (int i = 0; i < count; i++)
		buf_printf(&text, "%s{'a':%d,'s':%d.0}", i ? "," : "", i, i);
	buf_append_byte(&text, '\0');
	kept = arena_dup(arena, buf_str(&text)).ptr;
	buf_release(&text);
	return kept;
}

/* ---- Batches ---- */

static void
calls_of_many_documents_are_made_together(void **state)
{
	struct engine e = engine_new();

	/* Batches are of one document, of four, of sixteen and of sixty-four. */
	assert_pipeline(*state, &e, ADD("['$a']"), documents_with(*state, 85, -1, ""),
			added(*state, 85), 0);
	assert_int_equal(e.asks, 85);
	assert_int_equal(e.runs, 4);
}

/* A call whose arguments are the answer of another one is made when that is known. */
static void
calls_wait_for_each_other(void **state)
{
	static const char inner[] = ADD("['$a',{'$function':{'body':'g','args':['$a',1],"
					"'lang':'js'}}]");
	struct engine e = engine_new();

	assert_pipeline(*state, &e, inner, "{'a':1},{'a':2},{'a':3},{'a':4},{'a':5}",
			"{'a':1,'s':3.0},{'a':2,'s':5.0},{'a':3,'s':7.0},{'a':4,'s':9.0},"
			"{'a':5,'s':11.0}",
			0);
	assert_int_equal(e.asks, 10);
	assert_int_equal(e.runs, 4);
}

/* Of a document's calls the first MQL_AHEAD_CALLS are made together with those of others. */
static void
a_document_with_many_calls_makes_the_last_ones_alone(void **state)
{
	static const char call[] = "{'$function':{'body':'f','args':['$a'],'lang':'js'}}";
	struct engine e = engine_new();
	struct buf stage = BUF_INIT(CASE_BYTES);

	buf_append_cstr(&stage, "{'$set':{'s':{'$add':[0");
	for (int i = 0; i <= MQL_AHEAD_CALLS; i++)
		buf_printf(&stage, ",%s", call);
	buf_append_cstr(&stage, "]}}}");
	buf_append_byte(&stage, '\0');
	assert_pipeline(*state, &e, stage.ptr, "{'a':1},{'a':2},{'a':3},{'a':4},{'a':5}",
			"{'a':1,'s':9.0},{'a':2,'s':18.0},{'a':3,'s':27.0},{'a':4,'s':36.0},"
			"{'a':5,'s':45.0}",
			0);
	assert_int_equal(e.asks, 5 * (MQL_AHEAD_CALLS + 1));
	assert_int_equal(e.runs, (MQL_AHEAD_CALLS + 1) + (MQL_AHEAD_CALLS + 4));
	buf_release(&stage);
}

/* The documents in front of it are given, and it is not known before which one it is. */
static void
a_document_whose_call_fails_ends_the_pipeline_behind_those_before(void **state)
{
	static const struct {
		const char *word;
		int code;
		size_t asks; /* of one document, of four, of nine together; then of single ones */
	} cases[] = {
		{ "'throw'", MQL_SCRIPT_FAILED, 1 + 4 + 9 },
		{ "'garbage'", MQL_SCRIPT_FAILED, 1 + 4 + 9 },
		{ "'loop'", MQL_SCRIPT_INTERRUPTED, 1 + 4 + 9 + 6 },
		{ "'die'", MQL_SCRIPT_FAILED, 1 + 4 + 9 + 6 },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct engine e = engine_new();

		assert_pipeline(*state, &e, ADD("['$a']"),
				documents_with(*state, 14, 10, cases[i].word), added(*state, 10),
				cases[i].code);
		assert_int_equal(e.asks, cases[i].asks);
	}
}

/* So does one that a stage before fails with. */
static void
a_document_that_cannot_be_made_ends_the_pipeline_behind_those_before(void **state)
{
	struct engine e = engine_new();

	assert_pipeline(
		*state, &e,
		arena_printf(*state, "{'$set':{'a':{'$add':['$a',0]}}},%s", ADD("['$a']")).ptr,
		documents_with(*state, 14, 10, "'x'"), added(*state, 10), MQL_TYPE_MISMATCH);
}

/* Each document calls one of them. */
static void
two_functions_of_a_batch_are_told_apart(void **state)
{
	static const char stage[] = "{'$set':{'s':{'$cond':['$b',{'$function':{'body':'f','args':"
				    "['$a'],'lang':'js'}},{'$function':{'body':'g','args':['$a',"
				    "100],'lang':'js'}}]}}}";
	struct engine e = engine_new();

	assert_pipeline(*state, &e, stage,
			"{'a':1,'b':true},{'a':2,'b':false},{'a':3,'b':true},{'a':4,'b':true},"
			"{'a':5,'b':false}",
			"{'a':1,'b':true,'s':1.0},{'a':2,'b':false,'s':102.0},"
			"{'a':3,'b':true,'s':3.0},{'a':4,'b':true,'s':4.0},"
			"{'a':5,'b':false,'s':105.0}",
			0);
	assert_int_equal(e.asks, 5);
}

/* Documents are evaluated again with the answers, and draw another number then. */
static void
functions_that_are_drawn_give_their_own_answers(void **state)
{
	static const char stages[] =
		"{'$project':{'s':{'$let':{'vars':{'r':{'$lt':[{'$rand':{}},0.5]}},'in':['$$r',"
		"{'$cond':['$$r',{'$function':{'body':'f','args':[1],'lang':'js'}},"
		"{'$function':{'body':'g','args':[2],'lang':'js'}}]}]}}}},"
		"{'$group':{'_id':'$s'}},{'$sort':{'_id':1}}";
	struct engine e = engine_new();

	assert_pipeline(*state, &e, stages, documents_with(*state, 85, -1, ""),
			"{'_id':[true,1.0]},{'_id':[false,2.0]}", 0);
}

/* What is no document's failure is told at once. */
static void
an_engine_that_is_gone_is_not_asked_again(void **state)
{
	struct engine e = engine_new();

	assert_pipeline(*state, &e, ADD("['$a']"), documents_with(*state, 14, 10, "'lost'"),
			added(*state, 5), -1);
	assert_int_equal(e.runs, 3);
	assert_string_equal(case_err.text, "the engine is gone");
	e = engine_new();
	assert_pipeline(*state, &e, ADD("['$a']"), documents_with(*state, 14, 10, "'refuse'"),
			added(*state, 5), MQL_BAD_VALUE);
	assert_int_equal(e.runs, 3);
	assert_string_equal(case_err.text, "refused");
}

static void
groups_call_functions_for_their_ids_and_values(void **state)
{
	static const char f[] = "{'$function':{'body':'f','args':['$a',1],'lang':'js'}}";
	struct engine e = engine_new();

	assert_pipeline(*state, &e,
			arena_printf(*state, "{'$group':{'_id':%s}},{'$sort':{'_id':1}}", f).ptr,
			"{'a':1},{'a':3},{'a':1}", "{'_id':2.0},{'_id':4.0}", 0);
	assert_pipeline(*state, &e,
			arena_printf(*state,
				     "{'$group':{'_id':'$a','n':{'$sum':%s},'m':{'$max':"
				     "'$b'}}},{'$sort':{'_id':1}}",
				     f)
				.ptr,
			"{'a':1,'b':1},{'a':3,'b':2},{'a':1,'b':3}",
			"{'_id':1,'n':4.0,'m':3},{'_id':3,'n':4.0,'m':2}", 0);
}

static void
full_memory_is_a_limit(void **state)
{
	static const char *const stages[] = {
		ADD("['$a',{'$function':{'body':'g','args':[1],'lang':'js'}}]"),
		"{'$group':{'_id':{'$function':{'body':'f','args':['$a'],'lang':'js'}},"
		"'n':{'$accumulator':{'init':'i','initArgs':[1],'accumulate':'a',"
		"'accumulateArgs':['$a'],'merge':'m','lang':'js'}}}}",
	};

	for (size_t i = 0; i < CASES(stages); i++) {
		struct engine e = engine_new();
		struct pipeline run = pipeline_of(*state, &e, stages[i],
						  documents_with(*state, 6, 4, "'throw'"));

		case_memory(pipeline_run, &run, stages[i]);
	}
}

/* ---- $accumulator ---- */

#define SUM(members)                                                                               \
	"{'$group':{'_id':null,'s':{'$accumulator':{'init':'i','accumulate':'a',"                  \
	"'accumulateArgs':['$a'],'merge':'m'" members ",'lang':'js'}}}}"

static void
an_accumulator_has_the_values_of_a_group(void **state)
{
	struct engine e = engine_new();

	assert_pipeline(*state, &e, SUM(""), "{'a':1},{'a':2},{'a':3}", "{'_id':null,'s':6.0}", 0);
	assert_pipeline(*state, &e, SUM(",'initArgs':[10,20],'finalize':'f'"), "{'a':1},{'a':2}",
			"{'_id':null,'s':33.0}", 0);
	assert_pipeline(*state, &e, SUM(""), "{'a':1},{'a':'throw'}", "", MQL_SCRIPT_FAILED);
	assert_pipeline(*state, &e, SUM(",'initArgs':'$$ROOT'"), "{'a':1}", "", 4544711);
	e = engine_new();
	assert_pipeline(*state, &e, SUM(""), documents_with(*state, 2 * MQL_ACCUM_CALLS, 0, "0"),
			"{'_id':null,'s':1999000.0}", 0);
	/* Those that wait are called when there are so many, and at the end. */
	assert_int_equal(e.runs, 3);
}

static void
accumulators_are_checked(void **state)
{
	static const struct {
		const char *spec;
		int code;
	} cases[] = {
		{ "1", 4544703 },
		{ "{'init':'i','accumulate':'a','accumulateArgs':[],'merge':'m','lang':'js'}", 0 },
		{ "{'accumulate':'a','accumulateArgs':[],'merge':'m','lang':'js'}", 4544707 },
		{ "{'init':'i','accumulateArgs':[],'merge':'m','lang':'js'}", 4544708 },
		{ "{'init':'i','accumulate':'a','accumulateArgs':[],'lang':'js'}", 4544709 },
		{ "{'init':'i','accumulate':'a','merge':'m','lang':'js'}", 4544710 },
		{ "{'init':'$a'}", 4544701 },
		{ "{'merge':1}", 4544702 },
		{ "{'lang':1}", 4544704 },
		{ "{'lang':'py'}", 4544705 },
		{ "{'inits':'i'}", 4544706 },
		{ "{'init':'i','accumulate':'a','accumulateArgs':1,'merge':'m'}", 4544712 },
	};
	struct engine e = engine_new();

	for (size_t i = 0; i < CASES(cases); i++) {
		const char *stage = arena_printf(*state,
						 "{'$group':{'_id':null,'s':{'$accumulator':%s}}}",
						 cases[i].spec)
					    .ptr;

		assert_pipeline(*state, &e, stage, "{'a':1}",
				cases[i].code ? "" : "{'_id':null,'s':0.0}", cases[i].code);
	}
}

/* ---- $function and $where ---- */

static void
functions_are_checked(void **state)
{
	static const struct {
		const char *spec;
		int code;
	} cases[] = {
		{ "1", 31260 },
		{ "{'args':[],'lang':'js'}", 31261 },
		{ "{'body':1,'args':[],'lang':'js'}", 31262 },
		{ "{'body':'$a','args':[],'lang':'js'}", 31432 },
		{ "{'body':'f','lang':'js'}", 31263 },
		{ "{'body':'f','args':[]}", 31418 },
		{ "{'body':'f','args':[],'lang':'py'}", 31419 },
		{ "{'body':'f','args':[],'lang':1}", 31419 },
		{ "{'body':'f','args':'$a','lang':'js'}", 31266 },
	};
	struct engine e = engine_new();

	for (size_t i = 0; i < CASES(cases); i++) {
		const char *stage =
			arena_printf(*state, "{'$set':{'s':{'$function':%s}}}", cases[i].spec).ptr;

		assert_pipeline(*state, &e, stage, "{'a':1}", "", cases[i].code);
	}
	assert_int_equal(e.runs, 0);
	assert_pipeline(*state, NULL, ADD("['$a']"), "{'a':1}", "", MQL_BAD_VALUE);
	e.off = true;
	assert_pipeline(*state, &e, ADD("['$a']"), "{'a':1}", "", MQL_SCRIPT_NO_ENGINE);
	assert_string_equal(case_err.text, "Cannot run server-side javascript without the "
					   "javascript engine enabled :: caused by :: it is off");
}

static void
where_lets_documents_through(void **state)
{
	struct engine e = engine_new();
	struct mql q = case_mql(*state);
	struct mql_match *m;
	bool matches;

	q.scripts = &e.scripts;
	assert_int_equal(mql_match_compile(&q, case_bson(*state, "{'$where':'f'}"), &m),
			 STATUS_INVALID);
	assert_int_equal(q.code, MQL_BAD_VALUE);
	q.takes_where = true;
	assert_int_equal(mql_match_compile(&q, case_bson(*state, "{'$where':'f'}"), &m), STATUS_OK);
	for (int a = 0; a < 4; a++) {
		struct str doc = case_bson(*state, arena_printf(*state, "{'a':%d}", a).ptr);

		assert_int_equal(mql_match_run(m, &q, doc, &matches, NULL), STATUS_OK);
		assert_int_equal(matches, a > 1);
	}
	assert_int_equal(e.asks, 4);
	e.off = true;
	assert_int_equal(mql_match_compile(&q, case_bson(*state, "{'$where':'f'}"), &m),
			 STATUS_INVALID);
	assert_int_equal(q.code, MQL_SCRIPT_NO_WHERE);
}

/* The reason is JSON: a text stands for itself, anything else is shown as it was written. */
static void
reasons_of_failures_are_told(void **state)
{
	static const struct {
		const char *json, *told;
	} cases[] = {
		{ "\"a\\tb\"", "E: a\tb" }, { "\"\"", "E: " },
		{ "12", "E: 12" },          { "{\"a\":\"b\"}", "E: {\"a\":\"b\"}" },
		{ "\"no", "E: \"no" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);

		assert_int_equal(mql_script_fail(&q, STR("E"), str_from_cstr(cases[i].json)),
				 STATUS_INVALID);
		assert_int_equal(q.code, MQL_SCRIPT_FAILED);
		assert_string_equal(case_err.text, cases[i].told);
	}
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, case_setup, case_teardown)
	const struct CMUnitTest tests[] = {
		T(calls_of_many_documents_are_made_together),
		T(calls_wait_for_each_other),
		T(a_document_with_many_calls_makes_the_last_ones_alone),
		T(a_document_whose_call_fails_ends_the_pipeline_behind_those_before),
		T(a_document_that_cannot_be_made_ends_the_pipeline_behind_those_before),
		T(two_functions_of_a_batch_are_told_apart),
		T(functions_that_are_drawn_give_their_own_answers),
		T(an_engine_that_is_gone_is_not_asked_again),
		T(groups_call_functions_for_their_ids_and_values),
		T(full_memory_is_a_limit),
		T(an_accumulator_has_the_values_of_a_group),
		T(accumulators_are_checked),
		T(functions_are_checked),
		T(where_lets_documents_through),
		T(reasons_of_failures_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

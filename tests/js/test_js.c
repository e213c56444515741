/* What functions of design documents can do, with the real worker. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/metric.h"
#include "common.h"

/* All tests but those of starting and ending share the workers of one pool. */
static struct fixture shared;

static int
open_shared(void **state)
{
	struct js_config config = fixture_config();

	(void)state;
	fixture_open(&shared, &config);
	return 0;
}

static int
close_shared(void **state)
{
	(void)state;
	fixture_close(&shared);
	return 0;
}

/* The rows of a map whose source has no quotes in it. */
static const char *
rows_of(const char *function, const char *doc)
{
	struct str text = arena_printf(shared.arena,
				       "{\"_id\":\"_design/t\",\"views\":{\"v\":{\"map\":\"%s\"}}}",
				       function);
	struct js_design design = design_of(1, text.ptr);

	return map_one(&shared, &design, "v", doc);
}

/* ---- Maps ---- */

static void
a_map_emits_rows(void **state)
{
	(void)state;
	assert_string_equal(
		rows_of("function (doc) { emit(doc.a, doc._id); emit([1, null], {b: 2}) }",
			"{\"_id\":\"x\",\"a\":\"\xc3\xa4\"}"),
		"\"\xc3\xa4\"=\"x\";[1,null]={\"b\":2};");
}

static void
what_is_undefined_becomes_null(void **state)
{
	(void)state;
	assert_string_equal(rows_of("function (doc) { emit(); emit(doc.q, function () {}) }", "{}"),
			    "null=null;null=null;");
}

static void
sources_have_all_forms_that_people_write(void **state)
{
	static const char *const sources[] = {
		"function(doc){emit(1)}",
		"function(doc){emit(1)};",
		"function (doc) { emit(1) } ; // a comment",
		"// a comment\\nfunction (doc) { emit(1) }",
		"function named(doc) { emit(1) }",
		"(function (doc) { emit(1) })",
		"doc => emit(1)",
		"(doc) => { emit(1); };",
		"var one = 1; (function (doc) { emit(one) })",
		"\\n\\n  function(doc)\\n{ emit(1)\\n}\\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		assert_string_equal(rows_of(sources[i], "{}"), "1=null;");
}

static void
source_that_is_no_function_is_a_compilation_error(void **state)
{
	(void)state;
	assert_string_equal(rows_of("function (doc) { emit(", "{}"),
			    "!compilation_error \"SyntaxError: Unexpected end of script (function "
			    "(doc) { emit()\"");
	assert_string_equal(rows_of("5", "{}"),
			    "!compilation_error \"Expression does not eval to a function. (5)\"");
	assert_string_equal(rows_of("missing.member", "{}"),
			    "!compilation_error \"ReferenceError: Can't find variable: missing "
			    "(missing.member)\"");
}

static void
a_map_that_throws_gives_no_rows_of_that_document(void **state)
{
	(void)state;
	assert_string_equal(
		rows_of("function (doc) { emit(1); throw new Error('no') }", "{\"_id\":\"x\"}"),
		"?\"function raised exception Error: no with doc._id x\"");
	assert_string_equal(rows_of("function (doc) { throw 'fatal_error' }", "{}"),
			    "!map_runtime_error \"function raised 'fatal_error'\"");
	assert_string_equal(rows_of("function (doc) { throw ['fatal', 'mine', 'why'] }", "{}"),
			    "!mine \"why\"");
}

static void
a_document_cannot_be_changed_by_a_map(void **state)
{
	(void)state;
	assert_string_equal(rows_of("function (doc) { doc.a = 2; doc.list.b = 2; delete doc.c;"
				    "emit(doc.a, doc.list.b); emit(doc.c) }",
				    "{\"list\":{},\"c\":3}"),
			    "null=null;3=null;");
	assert_string_equal(rows_of("function (doc) { 'use strict'; doc.list.push(1) }",
				    "{\"_id\":\"x\",\"list\":[]}")[0] == '?'
				    ? "throws"
				    : "changes",
			    "throws");
}

static void
the_environment_is_couchdbs(void **state)
{
	(void)state;
	assert_string_equal(rows_of("function (doc) { emit(sum([1, 2, 3]), isArray([]));"
				    "emit(isArray({length: 0}), toJSON({a: [1]}));"
				    "emit(JSON.parse('[1]'), typeof log); log({a: 1}) }",
				    "{}"),
			    "6=true;false=\"{\\\"a\\\":[1]}\";[1]=\"function\";");
	assert_string_equal(rows_of("function (doc) { emit('e', new TypeError('t')) }", "{}"),
			    "\"e\"={\"error\":\"TypeError\",\"message\":\"t\"};");
}

static void
the_language_is_of_2023(void **state)
{
	(void)state;
	assert_string_equal(rows_of("({a, ...rest}) => { class A { #p = 1; static { A.q = 2 }"
				    "get p() { return this.#p } };"
				    "emit([1, 2, 3].at(-1), [3, 1].toSorted());"
				    "emit(rest?.b ?? 5, new A().p + A.q);"
				    "emit([1, 2].findLast(x => x < 2), Object.hasOwn({a}, 'a')) }",
				    "{\"a\":1}"),
			    "3=[1,3];5=3;1=true;");
}

static void
several_maps_share_one_pass(void **state)
{
	static const char text[] =
		"{\"views\":{\"a\":{\"map\":\"function (d) { emit(d.n, 'a') }\"},"
		"\"b\":{\"map\":\"function (d) { if (d.n > 1) emit(d.n, 'b') }\"}}}";
	const struct str views[] = { STR("a"), STR("b") };
	const struct str docs[] = { STR("{\"n\":1}"), STR("{\"n\":2}") };
	static const size_t counts[] = { 1, 0, 1, 1 };
	struct js_design design = design_of(1, text);
	struct js_call call = call_of(&shared, &design, JS_LANE_INDEX);
	struct js_mapped m = { 0 };
	struct str key;
	struct str value;

	(void)state;
	assert_int_equal(js_map(&call, views, 2, docs, 2, &m, &shared.err), STATUS_OK);
	assert_int_equal(m.done, 2);
	for (size_t i = 0; i < 4; i++) {
		size_t n = 0;

		assert_true(js_mapped_next(&m, &value));
		while (js_mapped_row(&m, &key, &value))
			n++;
		assert_int_equal(n, counts[i]);
	}
	js_mapped_release(&m);
}

static void
a_long_batch_is_answered_in_parts(void **state)
{
	enum {
		DOCS = 3000
	};
	static const char text[] =
		"{\"views\":{\"v\":{\"map\":\"function (d) { emit(d.n, 'x'.repeat(10000)) }\"}}}";
	struct js_design design = design_of(1, text);
	struct js_call call = call_of(&shared, &design, JS_LANE_INDEX);
	const struct str view = STR("v");
	struct str *docs = calloc(DOCS, sizeof(*docs));
	size_t parts = 0;
	size_t done = 0;

	(void)state;
	assert_non_null(docs);
	for (size_t i = 0; i < DOCS; i++)
		docs[i] = arena_printf(shared.arena, "{\"n\":%zu}", i);
	while (done < DOCS) {
		struct js_mapped m = { 0 };
		struct str key;
		struct str value;

		assert_int_equal(js_map(&call, &view, 1, docs + done, DOCS - done, &m, &shared.err),
				 STATUS_OK);
		assert_true(m.done > 0);
		for (size_t i = 0; i < m.done; i++) {
			assert_true(js_mapped_next(&m, &value));
			assert_true(js_mapped_row(&m, &key, &value));
			assert_int_equal(strtoul(key.ptr, NULL, 10), done + i);
			assert_int_equal(value.len, 10002);
		}
		done += m.done;
		parts++;
		js_mapped_release(&m);
	}
	assert_true(parts > 1);
	free(docs);
}

/* ---- require() ---- */

static const char modules[] =
	"{\"_id\":\"_design/t\",\"views\":{\"lib\":{\"a\":\"exports.id = module.id; exports.b = "
	"require('./b').name\",\"b\":\"exports.name = 'b'; exports.up = "
	"require('../lib/deep/c').name\",\"deep\":{\"c\":\"exports.name = module.id\"},"
	"\"ring1\":\"exports.one = 1; exports.two = require('./ring2').two\","
	"\"ring2\":\"exports.two = 1 + require('./ring1').one\",\"bad\":\"throw 'x'\",\"n\":5},"
	"\"v\":{\"map\":\"function (d) { var a = require('views/lib/a'); emit(a.id, a.b);"
	"emit(require('views/lib/b').up, require('views/lib/ring1').two);"
	"emit(require('views/lib/a') === a) }\"},"
	"\"outside\":{\"map\":\"function (d) { require('other/m') }\"},"
	"\"text\":{\"map\":\"function (d) { try { require('views/lib/n') } catch (e) { emit(e) } "
	"}\"},"
	"\"broken\":{\"map\":\"function (d) { try { require('views/lib/bad') } catch (e) { emit(e) "
	"} "
	"}\"}},"
	"\"other\":{\"m\":\"exports.f = function () { return require('views/lib/a').id }\"},"
	"\"filters\":{\"f\":\"function (d, req) { return require('other/m').f() === 'views/lib/a' "
	"&& this._id === '_design/t' && d.ok }\"}}";

static void
modules_are_found_by_paths(void **state)
{
	struct js_design design = design_of(1, modules);

	(void)state;
	assert_string_equal(map_one(&shared, &design, "v", "{}"),
			    "\"views/lib/a\"=\"b\";\"views/lib/deep/c\"=2;true=null;");
	assert_string_equal(
		map_one(&shared, &design, "text", "{}"),
		"[\"error\",\"invalid_require_path\",\"Must require a JavaScript string, "
		"not: number\"]=null;");
	assert_string_equal(map_one(&shared, &design, "broken", "{}"),
			    "[\"error\",\"compilation_error\",\"Module require('views/lib/bad') "
			    "raised error x\"]=null;");
}

static void
maps_require_views_lib_only(void **state)
{
	struct js_design design = design_of(1, modules);
	const char *rows;

	(void)state;
	rows = map_one(&shared, &design, "outside", "{}");
	assert_int_equal(rows[0], '?');
	assert_non_null(strstr(rows, "Object has no property"));
}

/* ---- Filters ---- */

static void
filters_say_yes_and_no(void **state)
{
	struct js_design design = design_of(1, modules);
	struct js_call call = call_of(&shared, &design, JS_LANE_REQUEST);
	const struct str docs[] = { STR("{\"ok\":true}"), STR("{}"), STR("{\"ok\":1}") };
	bool passed[3];

	(void)state;
	assert_int_equal(js_filter(&call, false, STR("f"), STR("{}"), docs, 3, passed, &shared.err),
			 STATUS_OK);
	assert_true(passed[0] && !passed[1] && passed[2]);
	assert_int_equal(js_filter(&call, false, STR("g"), STR("{}"), docs, 3, passed, &shared.err),
			 STATUS_FUNCTION);
	assert_true(str_eq(call.error.name, STR("not_found")));
	assert_true(str_eq(call.error.reason,
			   STR("\"missing filters function g on design doc _design/t\"")));
}

static void
a_view_is_a_filter(void **state)
{
	static const char text[] =
		"{\"views\":{\"v\":{\"map\":\"function (d) { if (d.n) emit() }\"}}}";
	struct js_design design = design_of(1, text);
	struct js_call call = call_of(&shared, &design, JS_LANE_REQUEST);
	const struct str docs[] = { STR("{\"n\":0}"), STR("{\"n\":1}") };
	bool passed[2];

	(void)state;
	assert_int_equal(js_filter(&call, true, STR("v"), STR("{}"), docs, 2, passed, &shared.err),
			 STATUS_OK);
	assert_true(!passed[0] && passed[1]);
	assert_string_equal(map_one(&shared, &design, "v", "{\"n\":1}"), "null=null;");
}

/* ---- Validation ---- */

static struct js_verdict
validate(const char *function, const char *new_doc, const char *old_doc)
{
	struct str text = arena_printf(
		shared.arena, "{\"_id\":\"_design/t\",\"validate_doc_update\":\"%s\"}", function);
	struct js_design design = design_of(1, text.ptr);
	struct js_call call = call_of(&shared, &design, JS_LANE_REQUEST);
	const struct js_edit edit = { str_from_cstr(new_doc), str_from_cstr(old_doc) };
	struct js_verdict verdict;

	assert_int_equal(js_validate(&call, STR("{\"name\":\"ada\",\"roles\":[\"r\"]}"),
				     STR("{\"admins\":{}}"), &edit, 1, &verdict, &shared.err),
			 STATUS_OK);
	return verdict;
}

static void
assert_verdict(struct js_verdict verdict, enum js_verdict_kind kind, const char *name,
	       const char *reason)
{
	assert_int_equal(verdict.kind, kind);
	assert_true(str_eq(verdict.error.name, str_from_cstr(name)));
	assert_true(str_eq(verdict.error.reason, str_from_cstr(reason)));
}

static void
validators_allow_and_refuse(void **state)
{
	(void)state;
	assert_int_equal(validate("function (n, o, u, s) { if (u.name !== 'ada' || !s.admins || o) "
				  "throw 1; }",
				  "{}", "null")
				 .kind,
			 JS_ALLOWED);
	assert_verdict(
		validate("function (n, o) { throw({forbidden: 'no ' + o.a}) }", "{}", "{\"a\":1}"),
		JS_FORBIDDEN, "forbidden", "\"no 1\"");
	assert_verdict(
		validate("function (n, o) { throw({unauthorized: {why: 1}}) }", "{}", "null"),
		JS_UNAUTHORIZED, "unauthorized", "{\"why\":1}");
	assert_verdict(validate("function (n, o) { throw({other: 'x'}) }", "{}", "null"), JS_FAULTY,
		       "unknown_error", "\"x\"");
	assert_verdict(validate("function (n, o) { throw 'text' }", "{}", "null"), JS_FAULTY,
		       "unknown_error", "\"text\"");
	assert_int_equal(validate("function (n, o) { n.a.b }", "{}", "null").kind, JS_FAULTY);
	assert_verdict(validate("function (n, o) { throw new TypeError('t') }", "{}", "null"),
		       JS_FAULTY, "TypeError", "\"t\"");
}

static void
a_validator_judges_each_document_of_a_batch(void **state)
{
	enum {
		EDITS = 10000
	};
	static const char text[] =
		"{\"validate_doc_update\":\"function (n, o, u) { if (n.n % 3 == 0) "
		"throw {forbidden: n.n}; u.name = 'changed' }\"}";
	struct js_design design = design_of(1, text);
	struct js_call call = call_of(&shared, &design, JS_LANE_REQUEST);
	struct js_edit *edits = calloc(EDITS, sizeof(*edits));
	struct js_verdict *verdicts = calloc(EDITS, sizeof(*verdicts));

	(void)state;
	for (size_t i = 0; i < EDITS; i++)
		edits[i] = (struct js_edit){ arena_printf(shared.arena,
							  "{\"n\":%zu,\"p\":\"%01000d\"}", i, 0),
					     STR("null") };
	assert_int_equal(
		js_validate(&call, STR("{}"), STR("{}"), edits, EDITS, verdicts, &shared.err),
		STATUS_OK);
	for (size_t i = 0; i < EDITS; i++)
		assert_int_equal(verdicts[i].kind, i % 3 == 0 ? JS_FORBIDDEN : JS_ALLOWED);
	assert_true(str_eq(verdicts[9999].error.reason, STR("9999")));
	free(edits);
	free(verdicts);
}

/* ---- Reduces ---- */

static const char reduces[] = "{\"views\":{\"s\":{\"map\":\"\",\"reduce\":\"function (k, v, again) "
			      "{ return again ? ['again', "
			      "k, sum(v)] : [k[0][0], k[0][1], sum(v)] }\"},"
			      "\"all\":{\"reduce\":\"function (k, v) { return v }\"},"
			      "\"slow\":{\"reduce\":\"function (k, v) { const end = Date.now() + "
			      "v[0]; while (Date.now() < end); return v[0] }\"},"
			      "\"bad\":{\"reduce\":\"function (k, v) { throw 'no' }\"}}}";

static void
groups_are_reduced_and_reduced_again(void **state)
{
	struct js_design design = design_of(1, reduces);
	struct js_call call = call_of(&shared, &design, JS_LANE_REQUEST);
	const struct str views[] = { STR("s"), STR("bad") };
	const struct js_group groups[] = {
		{ STR("[[\"k\",\"id\"],[\"l\",\"id2\"]]"), STR("[1,2]") },
		{ STR("[[7,\"id3\"]]"), STR("[40]") },
	};
	struct js_error errors[2];
	struct str results[4];

	(void)state;
	assert_int_equal(js_reduce(&call, views, 2, false, JS_REDUCE_LIMIT_ON, groups, 2, results,
				   errors, &shared.err),
			 STATUS_OK);
	assert_true(str_eq(results[0], STR("[\"k\",\"id\",3]")));
	assert_true(str_eq(results[1], STR("null")));
	assert_true(str_eq(results[2], STR("[7,\"id3\",40]")));
	assert_int_equal(js_reduce(&call, views, 1, true, JS_REDUCE_LIMIT_ON, groups, 1, results,
				   errors, &shared.err),
			 STATUS_OK);
	assert_true(str_eq(results[0], STR("[\"again\",null,3]")));
}

static void
count_slow(void *arg)
{
	++*(int *)arg;
}

/* Whoever waits for a call is told once that it is slow, and gets the answer all the same. */
static void
a_caller_is_told_of_a_slow_call(void **state)
{
	struct js_design design = design_of(1, reduces);
	struct str view = STR("slow");
	const struct js_group groups[] = { { STR("[]"), STR("[300]") },
					   { STR("[]"), STR("[300]") } };
	struct js_error errors[2];
	struct str results[2];
	int told = 0;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct js_call call = call_of(&shared, &design, JS_LANE_REQUEST);

		call.on_slow = count_slow;
		call.slow_arg = &told;
		call.patience_ns = i ? clock_after_ms(60000) : clock_after_ms(100);
		assert_int_equal(js_reduce(&call, &view, 1, false, JS_REDUCE_LIMIT_OFF, groups, 2,
					   results, errors, &shared.err),
				 STATUS_OK);
		assert_true(str_eq(results[1], STR("300")));
		assert_int_equal(told, 1);
	}
}

static void
a_reduce_that_does_not_shrink_is_refused(void **state)
{
	struct js_design design = design_of(1, reduces);
	struct js_call call = call_of(&shared, &design, JS_LANE_REQUEST);
	const struct str view = STR("all");
	struct js_group group = { STR("[]"), { 0 } };
	struct js_error error;
	struct str result;

	(void)state;
	group.values = arena_printf(shared.arena, "[\"%05000d\"]", 0);
	assert_int_equal(js_reduce(&call, &view, 1, false, JS_REDUCE_LIMIT_ON, &group, 1, &result,
				   &error, &shared.err),
			 STATUS_OK);
	assert_null(result.ptr);
	assert_true(str_eq(error.name, STR("reduce_overflow_error")));
	assert_true(str_starts_with(error.reason, STR("\"Reduce output must shrink more rapidly")));
	assert_int_equal(js_reduce(&call, &view, 1, false, JS_REDUCE_LIMIT_LOG, &group, 1, &result,
				   &error, &shared.err),
			 STATUS_OK);
	assert_true(str_eq(result, group.values));
}

/* ---- Updates ---- */

static void
updates_give_a_document_and_an_answer(void **state)
{
	static const char text[] =
		"{\"_id\":\"_design/t\",\"updates\":{\"u\":\"function (d, req) { if (!d) return "
		"[null, "
		"'nothing']; d.by = req.userCtx.name; return [d, {code: 201, json: {ok: true}}] "
		"}\","
		"\"none\":\"function (d, req) { return [d] }\","
		"\"mine\":\"function (d, req) { throw {error: 'mine', reason: 'because'} }\"}}";
	struct js_design design = design_of(1, text);
	struct js_call call = call_of(&shared, &design, JS_LANE_REQUEST);
	const struct str request = STR("{\"method\":\"PUT\",\"userCtx\":{\"name\":\"ada\"}}");
	struct str doc;
	struct str response;

	(void)state;
	assert_int_equal(js_update(&call, STR("u"), STR("{\"_id\":\"a\"}"), request, &doc,
				   &response, &shared.err),
			 STATUS_OK);
	assert_true(str_eq(doc, STR("{\"_id\":\"a\",\"by\":\"ada\"}")));
	assert_true(str_eq(response, STR("{\"code\":201,\"json\":{\"ok\":true}}")));
	assert_int_equal(
		js_update(&call, STR("u"), STR("null"), request, &doc, &response, &shared.err),
		STATUS_OK);
	assert_true(str_eq(doc, STR("null")));
	assert_true(str_eq(response, STR("{\"body\":\"nothing\"}")));
	assert_int_equal(
		js_update(&call, STR("none"), STR("{}"), request, &doc, &response, &shared.err),
		STATUS_FUNCTION);
	assert_true(str_eq(call.error.name, STR("render_error")));
	assert_int_equal(
		js_update(&call, STR("mine"), STR("{}"), request, &doc, &response, &shared.err),
		STATUS_FUNCTION);
	assert_true(str_eq(call.error.name, STR("mine")));
	assert_int_equal(js_update(&call, STR("u"), STR("{}"), STR("{\"method\":\"GET\"}"), &doc,
				   &response, &shared.err),
			 STATUS_FUNCTION);
	assert_true(str_eq(call.error.name, STR("method_not_allowed")));
}

/* ---- Design documents ---- */

static void
a_design_document_that_cannot_be_loaded_fails_its_calls(void **state)
{
	struct js_design design = design_of(1, "[1]");

	(void)state;
	assert_string_equal(
		map_one(&shared, &design, "v", "{}"),
		"!compilation_error \"error,compilation_error,the design document is no "
		"object\"");
	design = design_of(1, "{}");
	design.key = STR("another language");
	design.language = STR("erlang");
	assert_string_equal(map_one(&shared, &design, "v", "{}"),
			    "!unknown_query_language \"the worker knows javascript only\"");
}

static void
a_worker_loads_more_design_documents_than_it_can_hold(void **state)
{
	(void)state;
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 40; i++) {
			struct str source = arena_printf(shared.arena, "function (d) { emit(%d) }",
							 i);
			struct str rows = arena_printf(shared.arena, "%d=null;", i);

			assert_string_equal(rows_of(source.ptr, "{}"), rows.ptr);
		}
}

/* ---- Starting and ending ---- */

/* Worker processes that this test's program has started so far. */
static int64_t
starts(void)
{
	const struct metric *m = metric_find("frond_js_worker_starts_total");
	int64_t value = 0;

	metric_hold();
	assert_true(metric_value(m, 0, &value));
	metric_release();
	return value;
}

static void
workers_start_on_first_use_and_end_when_idle(void **state)
{
	int64_t before = starts();
	struct js_config config = fixture_config();
	struct js_design design = design_of(1, "{\"views\":{\"v\":{\"map\":\"d => emit(1)\"}}}");
	struct fixture f;

	(void)state;
	config.idle_ms = 200;
	fixture_open(&f, &config);
	await_workers(f.js, 0);
	assert_int_equal(starts(), before);
	for (int64_t i = 1; i <= 2; i++) {
		assert_string_equal(map_one(&f, &design, "v", "{}"), "1=null;");
		assert_int_equal(starts(), before + i);
		await_workers(f.js, 0);
	}
	fixture_close(&f);
}

static void *
stop_when_busy(void *arg)
{
	struct fixture *f = arg;

	/* The call gets the pool's only worker a moment after it has started. */
	if (workers_become(f->js, 1, 60000))
		usleep(200 * 1000);
	js_stop(f->js);
	return NULL;
}

/* A function that does not return, a call behind it, and one that comes later. */
static void
calls_end_when_the_pool_is_stopped(void **state)
{
	struct js_config config = fixture_config();
	struct js_design endless = design_of(1, "{\"views\":{\"v\":{\"map\":"
						"\"d => { while (true) ; }\"}}}");
	struct str view = STR("v"), doc = STR("{}");
	struct js_mapped m = { 0 };
	struct js_call call;
	struct fixture f;
	uint64_t began_ns = clock_mono_ns();
	pthread_t thread;

	(void)state;
	config.timeout_ms = 600 * 1000;
	fixture_open(&f, &config);
	assert_int_equal(pthread_create(&thread, NULL, stop_when_busy, &f), 0);
	for (int i = 0; i < 2; i++) {
		call = call_of(&f, &endless, JS_LANE_INDEX);
		assert_int_equal(js_map(&call, &view, 1, &doc, 1, &m, &f.err), STATUS_CANCELLED);
	}
	assert_true(clock_mono_ns() - began_ns < 120 * 1000 * CLOCK_NS_PER_MS);
	pthread_join(thread, NULL);
	await_workers(f.js, 0);
	fixture_close(&f);
}

static void
a_server_without_the_program_says_so(void **state)
{
	struct js_config config = fixture_config();
	struct js_design design = design_of(1, "{}");
	struct js_call call;
	struct fixture f;
	struct str doc = STR("{}");
	struct js_mapped m;

	(void)state;
	config.worker = "/nowhere/frond-js";
	fixture_open(&f, &config);
	call = call_of(&f, &design, JS_LANE_INDEX);
	assert_int_equal(js_check(f.js, &f.err), STATUS_UNSUPPORTED);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(js_map(&call, &doc, 1, &doc, 1, &m, &f.err), STATUS_UNSUPPORTED);
		assert_non_null(strstr(f.err.text, "/nowhere/frond-js"));
	}
	fixture_close(&f);
}

static void
a_program_that_is_no_worker_is_unavailable(void **state)
{
	struct js_config config = fixture_config();
	struct js_design design = design_of(1, "{}");
	struct js_call call;
	struct fixture f;
	struct str doc = STR("{}");
	struct js_mapped m;

	(void)state;
	config.worker = "/bin/true";
	fixture_open(&f, &config);
	call = call_of(&f, &design, JS_LANE_INDEX);
	assert_int_equal(js_map(&call, &doc, 1, &doc, 1, &m, &f.err), STATUS_UNAVAILABLE);
	fixture_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_map_emits_rows),
		cmocka_unit_test(what_is_undefined_becomes_null),
		cmocka_unit_test(sources_have_all_forms_that_people_write),
		cmocka_unit_test(source_that_is_no_function_is_a_compilation_error),
		cmocka_unit_test(a_map_that_throws_gives_no_rows_of_that_document),
		cmocka_unit_test(a_document_cannot_be_changed_by_a_map),
		cmocka_unit_test(the_environment_is_couchdbs),
		cmocka_unit_test(the_language_is_of_2023),
		cmocka_unit_test(several_maps_share_one_pass),
		cmocka_unit_test(a_long_batch_is_answered_in_parts),
		cmocka_unit_test(modules_are_found_by_paths),
		cmocka_unit_test(maps_require_views_lib_only),
		cmocka_unit_test(filters_say_yes_and_no),
		cmocka_unit_test(a_view_is_a_filter),
		cmocka_unit_test(validators_allow_and_refuse),
		cmocka_unit_test(a_validator_judges_each_document_of_a_batch),
		cmocka_unit_test(groups_are_reduced_and_reduced_again),
		cmocka_unit_test(a_caller_is_told_of_a_slow_call),
		cmocka_unit_test(a_reduce_that_does_not_shrink_is_refused),
		cmocka_unit_test(updates_give_a_document_and_an_answer),
		cmocka_unit_test(a_design_document_that_cannot_be_loaded_fails_its_calls),
		cmocka_unit_test(a_worker_loads_more_design_documents_than_it_can_hold),
		cmocka_unit_test(workers_start_on_first_use_and_end_when_idle),
		cmocka_unit_test(calls_end_when_the_pool_is_stopped),
		cmocka_unit_test(a_server_without_the_program_says_so),
		cmocka_unit_test(a_program_that_is_no_worker_is_unavailable),
	};

	return cmocka_run_group_tests(tests, open_shared, close_shared);
}

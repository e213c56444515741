/* _find: what a request may say, and what comes of it. */
#include "common.h"

static void
put(const char *db, const char *id, const char *body)
{
	door_expect(d, "PUT", format("/%s/%s", db, id), body, 201, "ok");
}

static void
make_people(const char *db)
{
	door_create(d, db);
	put(db, "ann", "{\"age\":31,\"name\":{\"first\":\"Ann\"},\"tags\":[\"x\",\"y\"]}");
	put(db, "bob", "{\"age\":27,\"name\":{\"first\":\"Bob\"},\"e\":{}}");
	put(db, "cat", "{\"age\":44,\"name\":{\"first\":\"C\\u00e4t\"},\"esc\":\"a\\nb\"}");
	put(db, "dan", "{\"name\":{\"first\":\"Dan\"},\"big\":123456789012345678901234567890}");
	put(db, "_design/d", "{\"age\":31}");
}

static void
selector_finds_documents_but_no_design_documents(void **state)
{
	(void)state;
	make_people("people");
	expect_found("people", "{\"selector\":{}}", "ann,bob,cat,dan");
	expect_found("people", "{\"selector\":{\"age\":31}}", "ann");
	expect_found("people", "{\"selector\":{\"age\":{\"$gt\":27}}}", "ann,cat");
	expect_found("people", "{\"selector\":{\"name.first\":{\"$gte\":\"Bob\"}}}", "bob,cat,dan");
	expect_found("people", "{\"selector\":{\"tags\":{\"$elemMatch\":{\"$eq\":\"y\"}}}}", "ann");
	expect_found("people", "{\"selector\":{\"e\":{\"$eq\":{}}}}", "bob");
	expect_found("people", "{\"selector\":{\"esc\":\"a\\nb\"}}", "cat");
	expect_found("people", "{\"selector\":{\"big\":{\"$gt\":1e20}}}", "dan");
	expect_found("people", "{\"selector\":{\"age\":{\"$exists\":false}}}", "dan");
	expect_found("people", "{\"selector\":{\"_rev\":{\"$regex\":\"^1-\"}}}", "ann,bob,cat,dan");
	expect_found("people", "{\"selector\":{\"$or\":[{\"age\":27},{\"_id\":\"dan\"}]}}",
		     "bob,dan");
	expect_found("people", "{\"selector\":{\"$or\":[]}}", "");
	expect_found("people", "{\"selector\":{\"age\":31,\"$or\":[]}}", "ann");
}

static void
conditions_on_ids_narrow_what_is_read(void **state)
{
	(void)state;
	make_people("narrow");
	door_expect(d, "POST", "/narrow/_find",
		    "{\"selector\":{\"_id\":{\"$gt\":\"ann\",\"$lte\":\"cat\"}},"
		    "\"execution_stats\":true}",
		    200,
		    "\"total_keys_examined\":2,\"total_docs_examined\":2,"
		    "\"total_quorum_docs_examined\":0,\"results_returned\":2,");
	assert_string_equal(found_ids(), "bob,cat");
	door_expect(d, "POST", "/narrow/_find",
		    "{\"selector\":{\"_id\":{\"$beginsWith\":\"c\"}},\"execution_stats\":true,"
		    "\"r\":2}",
		    200, "\"total_docs_examined\":0,\"total_quorum_docs_examined\":1,");
	assert_string_equal(found_ids(), "cat");
	expect_found("narrow", "{\"selector\":{\"_id\":\"bob\"}}", "bob");
	expect_found("narrow", "{\"selector\":{\"_id\":{\"$gt\":\"z\",\"$lt\":\"a\"}}}", "");
	expect_found("narrow", "{\"selector\":{\"_id\":{\"$gt\":null}},\"sort\":[\"_id\"]}",
		     "ann,bob,cat,dan");
	expect_found("narrow",
		     "{\"selector\":{\"_id\":{\"$lt\":\"d\"}},\"sort\":[{\"_id\":\"desc\"}]}",
		     "cat,bob,ann");
}

static void
limit_skip_and_bookmark_make_pages(void **state)
{
	(void)state;
	make_people("pages");
	expect_found("pages", "{\"selector\":{},\"limit\":2}", "ann,bob");
	/* What is written between two pages neither repeats nor hides another document. */
	door_expect(d, "GET", "/pages/bob", NULL, 200, "_rev");
	door_expect(d, "DELETE", format("/pages/bob?rev=%s", door_member(d, "_rev")), NULL, 200,
		    "ok");
	put("pages", "abe", "{}");
	expect_found("pages", "{\"selector\":{},\"limit\":2}", "abe,ann");
	expect_found("pages",
		     format("{\"selector\":{},\"limit\":1,\"bookmark\":\"%s\"}", found_bookmark()),
		     "cat");
	expect_found("pages",
		     format("{\"selector\":{},\"limit\":9,\"bookmark\":\"%s\"}", found_bookmark()),
		     "dan");
	expect_found("pages",
		     format("{\"selector\":{},\"limit\":9,\"bookmark\":\"%s\"}", found_bookmark()),
		     "");
	expect_found("pages", "{\"selector\":{},\"skip\":1,\"limit\":2}", "ann,cat");
	expect_found("pages", "{\"selector\":{},\"limit\":0}", "");
	assert_string_equal(found_bookmark(), "nil");
	expect_found("pages",
		     "{\"selector\":{\"_id\":{\"$gt\":null}},\"sort\":[{\"_id\":\"desc\"}],"
		     "\"limit\":2}",
		     "dan,cat");
	expect_found("pages",
		     format("{\"selector\":{\"_id\":{\"$gt\":null}},\"sort\":[{\"_id\":\"desc\"}],"
			    "\"limit\":1,\"bookmark\":\"%s\"}",
			    found_bookmark()),
		     "ann");
	door_expect(d, "POST", "/pages/_find", "{\"selector\":{},\"bookmark\":\"no\"}", 400,
		    "\"error\":\"invalid_bookmark\",\"reason\":\"Invalid bookmark value: "
		    "\\\"no\\\"\"");
}

static void
twenty_five_documents_are_a_page(void **state)
{
	(void)state;
	door_create(d, "many");
	for (int i = 0; i < 30; i++)
		put("many", format("d%02d", i), format("{\"n\":%d}", i));
	door_expect(d, "POST", "/many/_find", "{\"selector\":{}}", 200, "\"_id\":\"d24\"");
	assert_null(strstr(d->last.body, "\"_id\":\"d25\""));
	door_expect(d, "POST", "/many/_find", "{\"selector\":{\"n\":29}}", 200,
		    "\"warning\": \"No matching index found, create an index to optimize query "
		    "time.\\nThe number of documents examined is high in proportion to the number "
		    "of results returned. Consider adding a more specific index to improve "
		    "this.\"}\r\n");
	door_expect(d, "POST", "/many/_find", "{\"selector\":{\"n\":{\"$gt\":19}}}", 200,
		    "\"warning\": \"No matching index found, create an index to optimize query "
		    "time.\"}\r\n");
	door_expect(d, "POST", "/many/_find", "{\"selector\":{\"n\":0},\"use_index\":\"a/b\"}", 200,
		    "\"warning\": \"_design/a, b was not used because it is not a valid index for "
		    "this query.\\nNo matching");
	door_expect(d, "POST", "/many/_find",
		    "{\"selector\":{\"n\":0},\"use_index\":[\"_design/a\"]}", 200,
		    "\"warning\": \"_design/a was not used because it does not contain a valid "
		    "index for this query.\\nNo matching");
}

static void
fields_and_conflicts_are_shown_when_asked_for(void **state)
{
	(void)state;
	make_people("shown");
	door_expect(d, "POST", "/shown/_find",
		    "{\"selector\":{\"age\":31},\"fields\":[\"_id\",\"name.first\",\"tags.1\","
		    "\"none\"]}",
		    200, "[\r\n{\"_id\":\"ann\",\"name\":{\"first\":\"Ann\"},\"tags\":");
	door_expect(d, "POST", "/shown/_find",
		    "{\"selector\":{\"age\":44},\"fields\":[\"esc\",\"_rev\"]}", 200,
		    "{\"_rev\":\"1-");
	door_expect(d, "POST", "/shown/_find", "{\"selector\":{\"age\":44},\"fields\":[]}", 200,
		    "\"name\":{\"first\":\"C\u00e4t\"}}");
	door_expect(d, "POST", "/shown/_bulk_docs",
		    "{\"new_edits\":false,\"docs\":[{\"_id\":\"ann\",\"_rev\":\"1-a\",\"age\":1}]}",
		    201, "[]");
	door_expect(d, "POST", "/shown/_find",
		    "{\"selector\":{\"_id\":\"ann\"},\"conflicts\":true}", 200,
		    "\"_conflicts\":[\"1-");
	door_expect(d, "POST", "/shown/_find",
		    "{\"selector\":{\"_conflicts\":{\"$exists\":true}},\"conflicts\":true,"
		    "\"fields\":[\"_conflicts\"]}",
		    200, "[\r\n{\"_conflicts\":[\"1-");
}

static void
attachments_are_seen_by_a_selector_and_shown_as_stubs(void **state)
{
	(void)state;
	door_create(d, "atts");
	put("atts", "a", "{\"_attachments\":{\"f\":{\"data\":\"aGk=\"}}}");
	put("atts", "b", "{}");
	expect_found("atts", "{\"selector\":{\"_attachments.f.length\":2}}", "a");
	assert_non_null(strstr(d->last.body, "\"stub\":true"));
}

static void
long_documents_that_lie_in_leaves_are_found(void **state)
{
	char *body = malloc(40000);

	(void)state;
	assert_non_null(body);
	door_create(d, "long");
	(void)snprintf(body, 40000, "{\"n\":7,\"text\":\"%030000d\"}", 1);
	put("long", "a", body);
	expect_found("long", "{\"selector\":{\"n\":7}}", "a");
	expect_found("long", "{\"selector\":{\"n\":8}}", "");
	free(body);
}

static void
what_is_wrong_with_a_query_is_told_in_couchdbs_words(void **state)
{
	static const struct {
		const char *body, *error, *reason;
		int status;
	} cases[] = {
		{ "{}", "missing_required_key", "Missing required key: selector", 400 },
		{ "[]", "bad_request", "Request body must be a JSON object", 400 },
		{ "{\"selector\":5}", "invalid_selector_json",
		  "Selector must be a JSON object, not: 5", 400 },
		{ "{\"selector\":{\"a\":{\"$in\":1}}}", "bad_arg",
		  "Bad argument for operator $in: 1", 400 },
		{ "{\"selector\":{\"a\":{\"$odd\":1}}}", "invalid_operator",
		  "Invalid operator: $odd", 400 },
		{ "{\"selector\":{\"$where\":1}}", "not_supported", "Unsupported operator: $where",
		  400 },
		{ "{\"selector\":{\"$text\":\"a\"}}", "not_supported",
		  "Unsupported operator: $text. There is no full-text search here", 400 },
		{ "{\"selector\":{\"$gt\":1}}", "invalid_selector",
		  "One or more conditions is missing a field name.", 400 },
		{ "{\"selector\":{\"a..b\":1}}", "invalid_field_name", "Invalid field name: a..b",
		  400 },
		{ "{\"selector\":{},\"limit\":-1}", "invalid_non_neg_integer",
		  "-1 is not an integer greater than or equal to zero", 400 },
		{ "{\"selector\":{},\"skip\":1.5}", "invalid_non_neg_integer",
		  "1.5 is not an integer greater than or equal to zero", 400 },
		{ "{\"selector\":{},\"r\":0}", "invalid_pos_integer",
		  "0 is not an integer greater than zero", 400 },
		{ "{\"selector\":{},\"partition\":1}", "illegal_partition",
		  "Partition must be a string", 400 },
		{ "{\"selector\":{},\"conflicts\":1}", "invalid_boolean",
		  "Invalid boolean value: 1", 400 },
		{ "{\"selector\":{},\"odd\":1}", "invalid_key", "Invalid key odd for this request.",
		  400 },
		{ "{\"selector\":{},\"fields\":1}", "invalid_fields",
		  "Fields must be an array of strings, not: 1", 400 },
		{ "{\"selector\":{},\"fields\":[1]}", "invalid_field",
		  "Invalid JSON for field spec: 1", 400 },
		{ "{\"selector\":{},\"sort\":1}", "invalid_sort_json",
		  "Sort must be an array of sort specs, not: 1", 400 },
		{ "{\"selector\":{},\"sort\":[1]}", "invalid_sort_field", "Invalid sort field: 1",
		  400 },
		{ "{\"selector\":{},\"sort\":[{\"a\":\"up\"}]}", "invalid_sort_field",
		  "Invalid sort field: {\\\"a\\\":\\\"up\\\"}", 400 },
		{ "{\"selector\":{},\"sort\":[\"a\",{\"b\":\"desc\"}]}", "unsupported_mixed_sort",
		  "Sorts currently only support a single direction for all fields.", 400 },
		{ "{\"selector\":{},\"sort\":[\"a\"]}", "no_usable_index",
		  "No index exists for this sort, try indexing by the sort fields.", 400 },
		{ "{\"selector\":{},\"use_index\":1}", "invalid_index_name",
		  "Invalid index name: 1", 400 },
		{ "{\"selector\":{},\"use_index\":\"a/b/c\"}", "invalid_index_name",
		  "Invalid index name: \\\"a/b/c\\\"", 400 },
		{ "{\"selector\":{},\"bookmark\":1}", "invalid_bookmark",
		  "Invalid bookmark value: 1", 400 },
		{ "{\"selector\":{},\"stale\":1}", "unknown_error",
		  "Unknown Error: mango_opts :: {invalid_ok_or_false_value,1}", 500 },
		{ "{\"selector\":{},\"use_index\":\"a\",\"allow_fallback\":false}", "invalid_index",
		  "_design/a specified by `use_index` could not be found or it is not suitable.",
		  400 },
	};

	(void)state;
	door_create(d, "wrong");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		door_expect(d, "POST", "/wrong/_find", cases[i].body, cases[i].status,
			    format("\"error\":\"%s\"", cases[i].error));
		if (!strstr(d->last.body, cases[i].reason))
			fail_msg("%s: %s", cases[i].body, d->last.body);
	}
	door_expect(d, "GET", "/wrong/_find", NULL, 405, "method_not_allowed");
	door_expect(d, "POST", "/nowhere/_find", "{\"selector\":{}}", 404, "not_found");
	expect_as("Content-Type: text/plain\r\n", "POST", "/wrong/_find", "{\"selector\":{}}", 415,
		  "bad_content_type");
}

static void
set(const char *name, const char *value)
{
	door_expect(d, "PUT", format("/_node/_local/_config/mango/%s", name), value, 200, "");
}

static void
settings_bound_what_a_query_reads(void **state)
{
	(void)state;
	make_people("bound");
	set("scan_documents", "\"2\"");
	door_expect(d, "POST", "/bound/_find", "{\"selector\":{\"age\":1}}", 400,
		    "[mango] scan_documents, is 2 documents");
	expect_found("bound", "{\"selector\":{\"_id\":{\"$gte\":\"cat\"}}}", "cat,dan");
	door_expect(d, "DELETE", "/_node/_local/_config/mango/scan_documents", NULL, 200, "");
	set("default_limit", "\"1\"");
	expect_found("bound", "{\"selector\":{}}", "ann");
	set("default_limit", "\"25\"");
	set("index_scan_warning_threshold", "\"0\"");
	door_expect(d, "POST", "/bound/_find", "{\"selector\":{\"age\":1}}", 200,
		    "optimize query time.\"}\r\n");
	set("index_scan_warning_threshold", "\"10\"");
}

/* The text with the number in the place of its %s. */
static const char *
format_number(const char *text, const char *number)
{
	const char *at = strstr(text, "%s");

	assert_non_null(at);
	return format("%.*s%s%s", (int)(at - text), text, number, at + 2);
}

/* A number that a refusal names is the client's text, however it was written. */
static const char *
covered_question(const char *selector, const char *fields, const char *index)
{
	return format("{\"selector\":%s,\"fields\":%s,\"sort\":[\"a.b\"],\"execution_stats\":true,"
		      "\"use_index\":\"%s\"}",
		      selector, fields, index);
}

/* The same question answered by an index and by documents: `examined` documents are read. */
static void
expect_covered(const char *selector, const char *fields, int examined)
{
	static char by_index[4096];
	const char *end;

	door_expect(d, "POST", "/deep/_find", covered_question(selector, fields, "deep"), 200,
		    format("\"total_docs_examined\":%d,", examined));
	end = strstr(d->last.body, "\"bookmark\"");
	assert_non_null(end);
	(void)snprintf(by_index, sizeof(by_index), "%.*s", (int)(end - d->last.body), d->last.body);
	door_expect(d, "POST", "/deep/_find", covered_question(selector, fields, "plain"), 200,
		    "\"total_docs_examined\":3,");
	assert_int_equal(strncmp(d->last.body, by_index, strlen(by_index)), 0);
}

static void
an_index_of_fields_inside_of_others_covers(void **state)
{
	(void)state;
	door_create(d, "deep");
	door_expect(
		d, "POST", "/deep/_bulk_docs",
		"{\"docs\":[{\"_id\":\"1\",\"a\":{\"b\":1,\"c\":{\"d\":[1,{\"e\":2}],\"f\":1.50},"
		"\"z\":9},\"x\":\"one\"},"
		"{\"_id\":\"2\",\"a\":{\"b\":{\"k\":null},\"c\":{\"d\":{},\"f\":[]}},\"x\":\"t\"},"
		"{\"_id\":\"3\",\"a\":{\"b\":3,\"c\":{\"d\":\"\",\"f\":false,\"g\":0}},\"x\":2}]}",
		201, "ok");
	door_expect(
		d, "POST", "/deep/_index",
		"{\"index\":{\"fields\":[\"a.b\",\"x\",\"a.c.f\",\"a.c.d\"]},\"ddoc\":\"deep\"}",
		200, "created");
	door_expect(d, "POST", "/deep/_index",
		    "{\"index\":{\"fields\":[\"a.b\"]},\"ddoc\":\"plain\"}", 200, "created");
	expect_covered("{\"a.b\":{\"$gt\":null},\"x\":{\"$gt\":null},\"a.c.f\":{\"$gt\":null},"
		       "\"a.c.d\":{\"$gt\":null}}",
		       "[\"x\",\"a.c.d\",\"a.b\",\"a.c.f\"]", 0);
	expect_covered("{\"a.b\":{\"$gt\":null},\"x\":{\"$gt\":null},\"a.c.f\":{\"$exists\":true},"
		       "\"a.c.d\":{\"$exists\":true}}",
		       "[\"a.c.d\"]", 0);
	/* Fields that the index has not, or has in parts only, need the documents. */
	expect_covered("{\"a.b\":{\"$gt\":null},\"x\":{\"$gt\":null},\"a.c.f\":{\"$gt\":null},"
		       "\"a.c.d\":{\"$gt\":null}}",
		       "[\"a.c\"]", 3);
	door_expect(d, "POST", "/deep/_explain",
		    "{\"selector\":{\"a.b\":{\"$gt\":null}},\"fields\":[\"a.b\"]}", 200,
		    "\"covering\":true,\"plan\":{");
	/* A number may be a place in an array; a column in another one would be there twice. */
	door_expect(d, "POST", "/deep/_index",
		    "{\"index\":{\"fields\":[\"l.0\"]},\"ddoc\":\"place\"}", 200, "created");
	door_expect(d, "POST", "/deep/_index",
		    "{\"index\":{\"fields\":[\"o\",\"o.p\"]},\"ddoc\":\"twice\"}", 200, "created");
	door_expect(d, "PUT", "/deep/4", "{\"l\":[7],\"o\":{\"p\":8}}", 201, "ok");
	door_expect(d, "POST", "/deep/_find",
		    "{\"selector\":{\"l.0\":7},\"fields\":[\"l.0\"],\"execution_stats\":true}", 200,
		    "\"total_docs_examined\":1,");
	door_expect(d, "POST", "/deep/_find",
		    "{\"selector\":{\"o\":{\"$gt\":null},\"o.p\":8},\"fields\":[\"o\",\"o.p\"],"
		    "\"execution_stats\":true}",
		    200, "{\"o\":{\"p\":8}}");
	door_has(d, "\"total_docs_examined\":1,");
}

static void
numbers_are_told_back_as_they_were_typed(void **state)
{
	static const char *const numbers[] = {
		"1e3", "1.50", "-0", "1E+2", "-1e400", "-123456789012345678901234567890"
	};
	static const struct {
		const char *endpoint, *body, *reason; /* %s: the number */
	} cases[] = {
		{ "_find", "{\"selector\":%s}", "Selector must be a JSON object, not: %s\"" },
		{ "_find", "{\"selector\":{\"a\":{\"$in\":%s}}}", "operator $in: %s\"" },
		{ "_find", "{\"selector\":{\"a\":{\"$mod\":[%s,0.5]}}}", "$mod: [%s,0.5]\"" },
		{ "_find", "{\"selector\":{\"a\":{\"$type\":%s}}}", "operator $type: %s\"" },
		{ "_find", "{\"selector\":{\"$and\":%s}}", "operator $and: %s\"" },
		{ "_find", "{\"selector\":{},\"fields\":%s}", "array of strings, not: %s\"" },
		{ "_find", "{\"selector\":{},\"fields\":[%s]}", "for field spec: %s\"" },
		{ "_find", "{\"selector\":{},\"sort\":%s}", "array of sort specs, not: %s\"" },
		{ "_find", "{\"selector\":{},\"sort\":[%s]}", "Invalid sort field: %s\"" },
		{ "_find", "{\"selector\":{},\"sort\":[{\"a\":%s}]}", "{\\\"a\\\":%s}\"" },
		{ "_find", "{\"selector\":{},\"use_index\":%s}", "index name: %s\"" },
		{ "_find", "{\"selector\":{},\"bookmark\":%s}", "bookmark value: %s\"" },
		{ "_find", "{\"selector\":{},\"update\":%s}", "boolean value: %s\"" },
		{ "_find", "{\"selector\":{},\"aggregate\":%s}", "an object, not: %s\"" },
		{ "_find", "{\"selector\":{},\"aggregate\":{\"sum\":%s}}", "fields, not: %s\"" },
		{ "_find", "{\"selector\":{},\"aggregate\":{\"sum\":[%s]}}", "a field: %s\"" },
		{ "_index", "{\"index\":%s}", "%s\"" },
		{ "_index", "{\"index\":{\"fields\":%s}}", "%s\"" },
		{ "_index", "{\"index\":{\"fields\":[%s]}}", "%s\"" },
		{ "_index", "{\"index\":{\"fields\":[\"a\"]},\"name\":%s}", "%s\"" },
		{ "_index", "{\"index\":{\"fields\":[\"a\"]},\"type\":%s}", "%s\"" },
		{ "_index", "{\"index\":{\"fields\":[\"a\"],\"partial_filter_selector\":%s}}",
		  "not: %s\"" },
		{ "_index/_bulk_delete", "{\"docids\":%s}", "%s\"" },
	};
	static const char *const counts[] = { "limit", "skip", "r" };

	(void)state;
	door_create(d, "typed");
	for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++) {
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			door_expect(d, "POST", format("/typed/%s", cases[i].endpoint),
				    format_number(cases[i].body, numbers[n]), 400, "\"reason\":\"");
			door_has(d, format_number(cases[i].reason, numbers[n]));
		}
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) && n != 2; i++) {
			door_expect(d, "POST", "/typed/_find",
				    format("{\"selector\":{},\"%s\":%s}", counts[i], numbers[n]),
				    400, format("\"reason\":\"%s is not an integer", numbers[n]));
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(selector_finds_documents_but_no_design_documents),
		cmocka_unit_test(conditions_on_ids_narrow_what_is_read),
		cmocka_unit_test(limit_skip_and_bookmark_make_pages),
		cmocka_unit_test(twenty_five_documents_are_a_page),
		cmocka_unit_test(fields_and_conflicts_are_shown_when_asked_for),
		cmocka_unit_test(attachments_are_seen_by_a_selector_and_shown_as_stubs),
		cmocka_unit_test(long_documents_that_lie_in_leaves_are_found),
		cmocka_unit_test(what_is_wrong_with_a_query_is_told_in_couchdbs_words),
		cmocka_unit_test(settings_bound_what_a_query_reads),
		cmocka_unit_test(an_index_of_fields_inside_of_others_covers),
		cmocka_unit_test(numbers_are_told_back_as_they_were_typed),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

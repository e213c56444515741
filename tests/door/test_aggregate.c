/* `aggregate` in _find: counts, sums, least, greatest and mean values, of groups. */
#include "common.h"

#include "base/rand.h"
#include "store.h"

static void
put(const char *db, const char *id, const char *body)
{
	door_expect(d, "PUT", format("/%s/%s", db, id), body, 201, "ok");
}

static void
index_on(const char *db, const char *fields, const char *name)
{
	door_expect(d, "POST", format("/%s/_index", db),
		    format("{\"index\":{\"fields\":[%s]},\"ddoc\":\"%s\",\"name\":\"%s\"}", fields,
			   name, name),
		    200, "created");
}

/* The groups of the last answer, without line breaks. Overwritten by the next call. */
static const char *
groups(void)
{
	static char text[65536];
	const char *at = strstr(d->last.body, "{\"groups\":[");
	const char *end = strstr(d->last.body, "\r\n]");
	size_t len = 0;

	if (!at || !end)
		fail_msg("no groups: %s", d->last.body);
	for (at += strlen("{\"groups\":["); at < end && len < sizeof(text) - 1; at++) {
		if (*at != '\r' && *at != '\n')
			text[len++] = *at;
	}
	text[len] = '\0';
	return text;
}

static void
expect_groups(const char *db, const char *selector, const char *aggregate, const char *expected)
{
	door_expect(d, "POST", format("/%s/_find", db),
		    format("{\"selector\":%s,\"aggregate\":%s,\"execution_stats\":true}", selector,
			   aggregate),
		    200, "{\"groups\":[");
	assert_string_equal(groups(), expected);
}

/* How the last query that was asked would be answered, by _explain. */
static void
expect_way(const char *db, const char *selector, const char *aggregate, const char *way)
{
	door_expect(d, "POST", format("/%s/_explain", db),
		    format("{\"selector\":%s,\"aggregate\":%s}", selector, aggregate), 200,
		    format("\"groups\":\"%s\"}", way));
}

static void
make_films(const char *db)
{
	door_create(d, db);
	put(db, "a", "{\"t\":\"Alien\",\"y\":1979,\"r\":4.5}");
	put(db, "b", "{\"t\":\"Brazil\",\"y\":1985,\"r\":4}");
	put(db, "c", "{\"t\":\"Dune\",\"y\":1984,\"r\":3}");
	put(db, "d", "{\"t\":\"Dune\",\"y\":2021,\"r\":\"good\"}");
	put(db, "e", "{\"t\":\"Dune\",\"y\":2024}");
	put(db, "f", "{\"y\":1999,\"r\":5}");
	put(db, "_design/x", "{\"t\":\"Dune\",\"y\":1,\"r\":9}");
}

#define ALL "{\"count\":true,\"sum\":[\"r\"],\"min\":[\"r\",\"y\"],\"max\":[\"r\"],\"avg\":[\"y\"]}"
#define BY_TITLE                                                                                   \
	"{\"group_by\":[\"t\"],\"count\":true,\"sum\":[\"r\"],\"max\":[\"y\"],\"avg\":[\"r\"]}"

static void
functions_are_computed_of_all_documents(void **state)
{
	(void)state;
	make_films("all");
	expect_groups("all", "{}", ALL,
		      "{\"count\":6,\"sum\":{\"r\":16.5},\"min\":{\"r\":3,\"y\":1979},"
		      "\"max\":{\"r\":\"good\"},\"avg\":{\"y\":1998.6666666666667}}");
	door_has(d, "\"total_docs_examined\":7,");
	door_has(d, "\"results_returned\":1,");
	door_has_not(d, "bookmark");
	/* Without a document there is still one group, of all none. */
	expect_groups("all", "{\"y\":1}", ALL,
		      "{\"count\":0,\"sum\":{\"r\":0},\"min\":{\"r\":null,\"y\":null},"
		      "\"max\":{\"r\":null},\"avg\":{\"y\":null}}");
	expect_groups("all", "{\"$or\":[]}", "{\"count\":true}", "{\"count\":0}");
	expect_groups("all", "{\"_id\":{\"$gt\":\"z\",\"$lt\":\"a\"}}", "{\"count\":true}",
		      "{\"count\":0}");
	expect_groups("all", "{\"y\":1}", BY_TITLE, "");
}

static void
groups_come_in_the_order_of_their_values(void **state)
{
	(void)state;
	make_films("by");
	/* A document without one of the fields is in no group. */
	expect_groups(
		"by", "{}", BY_TITLE,
		"{\"group\":{\"t\":\"Alien\"},\"count\":1,\"sum\":{\"r\":4.5},\"max\":{\"y\":"
		"1979},\"avg\":{\"r\":4.5}},"
		"{\"group\":{\"t\":\"Brazil\"},\"count\":1,\"sum\":{\"r\":4},\"max\":{\"y\":"
		"1985},\"avg\":{\"r\":4}},"
		"{\"group\":{\"t\":\"Dune\"},\"count\":3,\"sum\":{\"r\":3},\"max\":{\"y\":2024},"
		"\"avg\":{\"r\":3}}");
	expect_groups("by", "{\"y\":{\"$gt\":1984}}", "{\"group_by\":[\"t\",\"r\"],\"count\":true}",
		      "{\"group\":{\"t\":\"Brazil\",\"r\":4},\"count\":1},"
		      "{\"group\":{\"t\":\"Dune\",\"r\":\"good\"},\"count\":1}");
	door_expect(
		d, "POST", "/by/_find",
		"{\"selector\":{},\"aggregate\":{\"group_by\":[\"y\"],\"count\":true},\"skip\":1,"
		"\"limit\":2}",
		200, "");
	assert_string_equal(groups(), "{\"group\":{\"y\":1984},\"count\":1},"
				      "{\"group\":{\"y\":1985},\"count\":1}");
	door_expect(d, "POST", "/by/_find",
		    "{\"selector\":{},\"aggregate\":{\"group_by\":[\"y\"],\"count\":true},"
		    "\"limit\":0}",
		    200, "");
	assert_string_equal(groups(), "");
	expect_way("by", "{}", BY_TITLE, "gathered");
}

static void
an_index_that_covers_answers_without_documents(void **state)
{
	(void)state;
	make_films("cover");
	index_on("cover", "\"t\",\"y\"", "ty");
	expect_groups("cover", "{\"y\":{\"$gt\":null}}",
		      "{\"group_by\":[\"t\"],\"count\":true,\"min\":[\"y\"]}",
		      "{\"group\":{\"t\":\"Alien\"},\"count\":1,\"min\":{\"y\":1979}},"
		      "{\"group\":{\"t\":\"Brazil\"},\"count\":1,\"min\":{\"y\":1985}},"
		      "{\"group\":{\"t\":\"Dune\"},\"count\":3,\"min\":{\"y\":1984}}");
	door_has(d, "\"total_keys_examined\":5,\"total_docs_examined\":0,");
	door_has_not(d, "warning");
	expect_way("cover", "{\"y\":{\"$gt\":null}}",
		   "{\"group_by\":[\"t\"],\"count\":true,\"min\":[\"y\"]}", "streamed");
	door_has(d, "\"covering\":true");
	door_has(d, "\"limit\":null,");
	/* Grouped by what is not first in the index, it covers still. */
	expect_groups("cover", "{\"t\":\"Dune\",\"y\":{\"$gt\":1990}}",
		      "{\"group_by\":[\"y\"],\"count\":true}",
		      "{\"group\":{\"y\":2021},\"count\":1},{\"group\":{\"y\":2024},\"count\":1}");
	door_has(d, "\"total_keys_examined\":2,\"total_docs_examined\":0,");
	/* Documents are read for a field that is not in the index. */
	expect_groups("cover", "{\"t\":\"Dune\",\"y\":{\"$gt\":1990}}", "{\"max\":[\"r\"]}",
		      "{\"max\":{\"r\":\"good\"}}");
	door_has(d, "\"total_docs_examined\":2,");
	door_expect(d, "POST", "/cover/_find",
		    "{\"selector\":{\"y\":{\"$gt\":null}},\"aggregate\":{\"group_by\":[\"t\"],"
		    "\"count\":true},\"skip\":1,\"limit\":1,\"execution_stats\":true}",
		    200, "");
	assert_string_equal(groups(), "{\"group\":{\"t\":\"Brazil\"},\"count\":1}");
}

static void
a_count_of_a_range_reads_nothing(void **state)
{
	static const struct {
		const char *selector, *way;
		int count;
	} cases[] = {
		{ "{}", "counted", 6 },
		{ "{\"y\":{\"$gte\":1985}}", "counted", 4 },
		{ "{\"y\":{\"$gt\":1985,\"$lt\":2024}}", "counted", 2 },
		{ "{\"y\":2021}", "counted", 1 },
		{ "{\"y\":{\"$gt\":2021,\"$lt\":1985}}", "counted", 0 },
		{ "{\"y\":{\"$exists\":true}}", "counted", 6 },
		{ "{\"t\":\"Dune\",\"y\":{\"$gt\":1990}}", "counted", 2 },
		{ "{\"t\":\"Dune\",\"y\":{\"$exists\":true}}", "counted", 3 },
		{ "{\"t\":{\"$gt\":\"B\"},\"y\":{\"$gt\":1990}}", "gathered", 2 },
		{ "{\"y\":{\"$ne\":2021,\"$gt\":1}}", "counted", 5 },
		{ "{\"y\":{\"$in\":[1979,2021]}}", "counted", 2 },
		{ "{\"$or\":[{\"y\":1979},{\"y\":{\"$gt\":2000}}]}", "counted", 3 },
		{ "{\"$or\":[{\"y\":{\"$lt\":1980}},{\"y\":{\"$in\":[1979,1985]}}]}", "counted",
		  2 },
		{ "{\"t\":{\"$in\":[\"Dune\",\"Alien\"]},\"y\":{\"$lt\":2000}}", "counted", 2 },
		{ "{\"t\":\"Dune\",\"y\":{\"$in\":[1984,2024]}}", "counted", 2 },
		{ "{\"y\":{\"$type\":\"number\"}}", "counted", 6 },
		{ "{\"y\":{\"$type\":\"string\"}}", "counted", 0 },
		{ "{\"$or\":[{\"y\":1979},{\"t\":\"Dune\"}],\"y\":{\"$gt\":0}}", "gathered", 4 },
		{ "{\"t\":{\"$beginsWith\":\"D\"},\"y\":{\"$exists\":true}}", "gathered", 3 },
		{ "{\"r\":{\"$gt\":3}}", "gathered", 4 },
	};

	(void)state;
	make_films("range");
	index_on("range", "\"y\"", "y");
	index_on("range", "\"t\",\"y\"", "ty");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool counted = strcmp(cases[i].way, "counted") == 0;

		expect_groups("range", cases[i].selector, "{\"count\":true}",
			      format("{\"count\":%d}", cases[i].count));
		if (counted)
			door_has(d, "\"total_keys_examined\":0,\"total_docs_examined\":0,");
		expect_way("range", cases[i].selector, "{\"count\":true}", cases[i].way);
	}
	put("range", "g", "{\"y\":2000,\"t\":\"x\"}");
	expect_groups("range", "{\"y\":{\"$gte\":1985}}", "{\"count\":true}", "{\"count\":5}");
	door_expect(d, "DELETE", "/range/_design/x", NULL, 409, "conflict");
	(void)door_request(d, "DELETE", "/parts", NULL, NULL);
	door_expect(d, "PUT", "/parts?partitioned=true", NULL, 201, "ok");
	put("parts", "p:1", "{\"y\":1}");
	put("parts", "p:2", "{\"y\":2}");
	put("parts", "q:1", "{\"y\":1}");
	door_expect(d, "POST", "/parts/_partition/p/_find",
		    "{\"selector\":{},\"aggregate\":{\"count\":true}}", 200, "{\"count\":2}");
	index_on("parts", "\"y\"", "y");
	door_expect(d, "POST", "/parts/_partition/p/_find",
		    "{\"selector\":{\"y\":{\"$gt\":0}},\"aggregate\":{\"count\":true},"
		    "\"execution_stats\":true}",
		    200, "{\"count\":2}");
	door_has(d, "\"total_keys_examined\":0,");
	door_expect(d, "POST", "/parts/_partition/p/_find",
		    "{\"selector\":{\"y\":{\"$gt\":0}},\"aggregate\":{\"group_by\":[\"y\"],"
		    "\"sum\":[\"y\"]}}",
		    200, "");
	assert_string_equal(groups(), "{\"group\":{\"y\":1},\"sum\":{\"y\":1}},"
				      "{\"group\":{\"y\":2},\"sum\":{\"y\":2}}");
}

/* What `$in` finds in arrays is not known from ranges of an index: the documents are read. */
static void
an_array_is_read_beside_what_is_counted(void **state)
{
	(void)state;
	door_create(d, "arrays");
	for (int i = 0; i < 90; i++)
		put("arrays", format("n%d", i), format("{\"y\":%d}", i % 3));
	index_on("arrays", "\"y\"", "y");
	expect_groups("arrays", "{\"y\":{\"$in\":[1,2]}}", "{\"count\":true}", "{\"count\":60}");
	door_has(d, "\"total_keys_examined\":0,\"total_docs_examined\":0,");
	put("arrays", "a", "{\"y\":[1,7]}");
	put("arrays", "b", "{\"y\":[3]}");
	put("arrays", "c", "{\"y\":[]}");
	expect_groups("arrays", "{\"y\":{\"$in\":[1,2]}}", "{\"count\":true}", "{\"count\":61}");
	door_has(d, "\"total_keys_examined\":3,\"total_docs_examined\":0,");
	expect_groups("arrays", "{\"y\":{\"$in\":[1,2]}}",
		      "{\"count\":true,\"min\":[\"y\"],\"max\":[\"y\"]}",
		      "{\"count\":61,\"min\":{\"y\":1},\"max\":{\"y\":[1,7]}}");
	expect_groups("arrays", "{\"y\":{\"$in\":[1,2],\"$type\":\"number\"}}",
		      "{\"count\":true,\"max\":[\"y\"]}", "{\"count\":60,\"max\":{\"y\":2}}");
	door_has(d, "\"total_keys_examined\":1,\"total_docs_examined\":0,");
}

static void
the_least_and_the_greatest_are_read_from_ends(void **state)
{
	static const struct {
		const char *selector, *aggregate, *expected, *way;
		int keys;
	} cases[] = {
		{ "{}", "{\"min\":[\"y\"],\"max\":[\"y\"]}",
		  "{\"min\":{\"y\":1979},\"max\":{\"y\":2024}}", "counted", 2 },
		{ "{}", "{\"count\":true,\"max\":[\"y\"]}", "{\"count\":6,\"max\":{\"y\":2024}}",
		  "counted", 1 },
		{ "{\"y\":{\"$gt\":1979,\"$lt\":2024}}",
		  "{\"count\":true,\"min\":[\"y\"],\"max\":[\"y\"]}",
		  "{\"count\":4,\"min\":{\"y\":1984},\"max\":{\"y\":2021}}", "counted", 2 },
		{ "{\"y\":{\"$gt\":3000}}", "{\"count\":true,\"max\":[\"y\"]}",
		  "{\"count\":0,\"max\":{\"y\":null}}", "counted", 0 },
		{ "{\"t\":\"Dune\"}", "{\"min\":[\"y\"],\"max\":[\"y\"]}",
		  "{\"min\":{\"y\":1984},\"max\":{\"y\":2024}}", "counted", 2 },
		{ "{\"t\":\"Dune\",\"y\":{\"$lt\":2024}}", "{\"count\":true,\"max\":[\"y\"]}",
		  "{\"count\":2,\"max\":{\"y\":2021}}", "counted", 1 },
		{ "{\"t\":{\"$gt\":\"B\"}}", "{\"min\":[\"y\"]}", "{\"min\":{\"y\":1984}}",
		  "gathered", -1 },
		{ "{\"y\":{\"$gt\":1}}", "{\"min\":[\"r\"]}", "{\"min\":{\"r\":3}}", "gathered",
		  -1 },
		{ "{\"y\":{\"$gt\":1}}", "{\"min\":[\"y\"],\"sum\":[\"y\"]}",
		  "{\"sum\":{\"y\":11992},\"min\":{\"y\":1979}}", "gathered", -1 },
	};

	(void)state;
	make_films("ends");
	index_on("ends", "{\"y\":\"desc\"}", "y");
	index_on("ends", "\"t\",\"y\"", "ty");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		expect_groups("ends", cases[i].selector, cases[i].aggregate, cases[i].expected);
		if (cases[i].keys >= 0)
			door_has(d, format("\"total_keys_examined\":%d,\"total_docs_examined\":0,",
					   cases[i].keys));
		expect_way("ends", cases[i].selector, cases[i].aggregate, cases[i].way);
	}
	/* `skip` and `limit` are those of groups. */
	door_expect(d, "POST", "/ends/_find",
		    "{\"selector\":{},\"aggregate\":{\"max\":[\"y\"]},\"skip\":1}", 200, "");
	assert_string_equal(groups(), "");
}

/* A named partial index has fewer documents: ends of another index would be those of more. */
static void
ends_are_of_the_documents_that_are_asked_for(void **state)
{
	(void)state;
	make_films("partial");
	door_expect(d, "POST", "/partial/_index",
		    "{\"index\":{\"fields\":[\"t\"],\"partial_filter_selector\":{\"y\":{\"$lt\":"
		    "2000}}},"
		    "\"ddoc\":\"old\",\"name\":\"old\"}",
		    200, "created");
	index_on("partial", "\"y\"", "y");
	index_on("partial", "\"t\",\"y\"", "ty");
	door_expect(d, "POST", "/partial/_find",
		    "{\"selector\":{\"t\":\"Dune\"},\"use_index\":\"old\","
		    "\"aggregate\":{\"count\":true,\"max\":[\"y\"]}}",
		    200, "");
	assert_string_equal(groups(), "{\"count\":1,\"max\":{\"y\":1984}}");
	door_expect(d, "POST", "/partial/_find",
		    "{\"selector\":{\"t\":\"Dune\"},\"use_index\":\"old\","
		    "\"aggregate\":{\"count\":true,\"max\":[\"t\"]}}",
		    200, "");
	assert_string_equal(groups(), "{\"count\":1,\"max\":{\"t\":\"Dune\"}}");
}

/* A text that is too long for a key of an entry: the counters cannot tell it from its like. */
static void
a_bound_that_is_too_long_is_compared_with_documents(void **state)
{
	static char text[4001];

	(void)state;
	memset(text, 'x', 4000);
	door_create(d, "long");
	index_on("long", "\"s\"", "s");
	put("long", "a", format("{\"s\":\"%sa\"}", text + 1000));
	put("long", "b", format("{\"s\":\"%sb\"}", text + 1000));
	expect_groups("long", format("{\"s\":{\"$gt\":\"%sa\"}}", text + 1000), "{\"count\":true}",
		      "{\"count\":1}");
	expect_groups("long", "{\"s\":{\"$gt\":\"w\"}}", "{\"count\":true}", "{\"count\":2}");
	/* Which of the two is greater is not to be seen in the index. */
	put("long", "c", format("{\"s\":\"%saa\"}", text + 1000));
	expect_groups("long", "{\"s\":{\"$gt\":\"w\"}}", "{\"max\":[\"s\"]}",
		      format("{\"max\":{\"s\":\"%sb\"}}", text + 1000));
	expect_groups("long", "{\"s\":{\"$gt\":\"w\"}}", "{\"min\":[\"s\"]}",
		      format("{\"min\":{\"s\":\"%sa\"}}", text + 1000));
	door_expect(d, "POST", "/long/_find",
		    "{\"selector\":{},\"aggregate\":{\"group_by\":[\"s\"],\"count\":true}}", 400,
		    "A value of `group_by` is too long");
}

static void
integers_are_summed_exactly(void **state)
{
	static const struct {
		const char *docs[4];
		const char *sum, *avg;
	} cases[] = {
		{ { "9223372036854775807", "9223372036854775807", "1" },
		  "18446744073709551615",
		  "6148914691236517205" },
		{ { "18446744073709551615", "18446744073709551616", "-1" },
		  "36893488147419103230",
		  "12297829382473034410" },
		{ { "123456789012345678901234567890", "-123456789012345678901234567889", "0" },
		  "1",
		  "0.3333333333333333" },
		{ { "-123456789012345678901234567890", "123456789012345678901234567889" },
		  "-1",
		  "-0.5" },
		{ { "1e400", "1" }, "1.7976931348623157e+308", "8.988465674311579e+307" },
		{ { "0.1", "0.2", "0.3" }, "0.6", "0.19999999999999998" },
		{ { "1.5", "1.5", "9007199254740993" },
		  "9007199254740996.0",
		  "3002399751580332.0" },
		{ { "1000000000", "-1", "1" }, "1000000000", "333333333.3333333" },
		{ { "\"text\"", "null", "[1]" }, "0", "null" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		door_create(d, "exact");
		for (size_t k = 0; k < 4 && cases[i].docs[k]; k++)
			put("exact", format("%zu", k), format("{\"n\":%s}", cases[i].docs[k]));
		expect_groups("exact", "{}", "{\"sum\":[\"n\"],\"avg\":[\"n\"]}",
			      format("{\"sum\":{\"n\":%s},\"avg\":{\"n\":%s}}", cases[i].sum,
				     cases[i].avg));
		door_expect(d, "DELETE", "/exact", NULL, 200, "ok");
	}
	/* Beyond what a number of a tuple may have: 400 digits, up by one and down again. */
	door_create(d, "exact");
	{
		char digits[401];

		memset(digits, '9', 400);
		digits[400] = '\0';
		put("exact", "a", format("{\"n\":%s}", digits));
		put("exact", "b", "{\"n\":1}");
		expect_groups("exact", "{}", "{\"sum\":[\"n\"]}",
			      format("{\"sum\":{\"n\":1%0400d}}", 0));
		put("exact", "c", format("{\"n\":-%s}", digits));
		put("exact", "d", "{\"n\":-2}");
		expect_groups("exact", "{}", "{\"sum\":[\"n\"]}", "{\"sum\":{\"n\":-1}}");
	}
}

static void
what_is_wrong_with_an_aggregate_is_told(void **state)
{
	static const struct {
		const char *aggregate, *reason;
	} cases[] = {
		{ "1", "`aggregate` must be an object, not: 1" },
		{ "{}", "`aggregate` asks for nothing" },
		{ "{\"group_by\":[\"a\"]}", "`aggregate` asks for nothing" },
		{ "{\"count\":\"a\"}", "`count` counts documents, and can only be true, not: " },
		{ "{\"sum\":\"a\"}", "`sum` must be a list of names of fields, not: " },
		{ "{\"sum\":[1]}", "`sum` has what is no name of a field: 1" },
		{ "{\"sum\":[\"\"]}", "`sum` has what is no name of a field" },
		{ "{\"max\":[\"a..b\"]}", "`max` has what is no name of a field" },
		{ "{\"avg\":[\"a\",\"a\"]}", "`avg` names the field \\\"a\\\" twice" },
		{ "{\"count\":true,\"group_by\":[\"a\",\"a\"]}", "`group_by` names the field" },
		{ "{\"count\":true,\"group_by\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\","
		  "\"9\",\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\"]}",
		  "`group_by` has too many fields: the limit is 16" },
		{ "{\"count\":true,\"median\":[\"a\"]}", "Invalid key median for this request." },
		{ "{\"count\":true},\"sort\":[\"a\"]", "`sort` has no meaning beside" },
		{ "{\"count\":true},\"fields\":[\"a\"]", "`fields` has no meaning beside" },
		{ "{\"count\":true},\"bookmark\":\"x\"", "`bookmark` has no meaning beside" },
		{ "{\"count\":true},\"conflicts\":true", "`conflicts` has no meaning beside" },
	};

	(void)state;
	door_create(d, "wrong");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		door_expect(d, "POST", "/wrong/_find",
			    format("{\"selector\":{},\"aggregate\":%s}", cases[i].aggregate), 400,
			    "\"error\":\"invalid_");
		door_has(d, cases[i].reason);
	}
}

static void
set(const char *name, const char *value)
{
	door_expect(d, "PUT", format("/_node/_local/_config/mango/%s", name), value, 200, "");
}

static void
settings_bound_the_groups(void **state)
{
	(void)state;
	door_create(d, "bound");
	for (int i = 0; i < 10; i++)
		put("bound", format("d%d", i), format("{\"n\":%d,\"s\":\"x\"}", i));
	set("aggregate_groups", "\"9\"");
	door_expect(d, "POST", "/bound/_find",
		    "{\"selector\":{},\"aggregate\":{\"group_by\":[\"n\"],\"count\":true}}", 400,
		    "more groups than [mango] aggregate_groups, 9, allows.");
	expect_groups("bound", "{\"n\":{\"$gt\":0}}", "{\"group_by\":[\"s\"],\"count\":true}",
		      "{\"group\":{\"s\":\"x\"},\"count\":9}");
	index_on("bound", "\"n\"", "n");
	door_expect(d, "POST", "/bound/_find",
		    "{\"selector\":{},\"aggregate\":{\"group_by\":[\"n\"],\"count\":true}}", 200,
		    "{\"group\":{\"n\":9},\"count\":1}");
	door_expect(d, "DELETE", "/_node/_local/_config/mango/aggregate_groups", NULL, 200, "");
	set("sort_bytes", "\"65536\"");
	{
		static char body[40000];
		size_t len = (size_t)snprintf(body, sizeof(body), "{\"docs\":[");

		for (int i = 0; i < 600; i++)
			len += (size_t)snprintf(body + len, sizeof(body) - len,
						"%s{\"m\":\"%032d\"}", i ? "," : "", i);
		(void)snprintf(body + len, sizeof(body) - len, "]}");
		door_expect(d, "POST", "/bound/_bulk_docs", body, 201, "ok");
	}
	door_expect(d, "POST", "/bound/_find",
		    "{\"selector\":{},\"aggregate\":{\"group_by\":[\"m\"],\"count\":true}}", 400,
		    "The groups take more memory than [mango] sort_bytes, 65536, allows.");
	door_expect(d, "DELETE", "/_node/_local/_config/mango/sort_bytes", NULL, 200, "");
	set("scan_documents", "\"5\"");
	door_expect(d, "POST", "/bound/_find",
		    "{\"selector\":{\"s\":\"x\"},\"aggregate\":{\"max\":[\"n\"]}}", 400,
		    "[mango] scan_documents, is 5 documents");
	expect_groups("bound", "{}", "{\"count\":true}", "{\"count\":610}");
	door_expect(d, "DELETE", "/_node/_local/_config/mango/scan_documents", NULL, 200, "");
}

/* ---- Random aggregates ---- */

enum {
	RANDOM_DOCS = 90,
	RANDOM_QUERIES = 120,
	RANDOM_VALUES = 7,
};

struct known {
	bool there;
	int a, b, n;
};

static struct known docs[RANDOM_DOCS];
static struct rand_seq randoms;

static int
pick(int limit)
{
	return (int)rand_seq_below(&randoms, (uint64_t)limit);
}

static void
random_write(int i)
{
	struct known *k = &docs[i];
	const char *path = format("/random/%03d", i);
	const char *rev = "";

	if (k->there) {
		door_expect(d, "GET", path, NULL, 200, "_rev");
		rev = format("?rev=%s", door_member(d, "_rev"));
	}
	if (k->there && pick(4) == 0) {
		door_expect(d, "DELETE", format("%s%s", path, rev), NULL, 200, "ok");
		k->there = false;
		return;
	}
	*k = (struct known){ true, pick(RANDOM_VALUES), pick(RANDOM_VALUES), pick(1000) - 500 };
	door_expect(d, "PUT", format("%s%s", path, rev),
		    format("{\"a\":%d,\"b\":%d,\"n\":%d}", k->a, k->b, k->n), 201, "ok");
}

/* Groups by a, by b, by both or by none, of a range of a and one of b. */
static void
random_query(void)
{
	static const char *const by[] = { "", "\"a\"", "\"b\"", "\"a\",\"b\"" };
	static char expected[16384];
	int shape = pick(4), low = pick(RANDOM_VALUES), high = pick(RANDOM_VALUES);
	int least = pick(RANDOM_VALUES);
	size_t len = 0;

	expected[0] = '\0';
	for (int g = 0; g < RANDOM_VALUES * RANDOM_VALUES; g++) {
		int a = g / RANDOM_VALUES, b = g % RANDOM_VALUES;
		int count = 0, sum = 0, min = 0, max = 0;

		if ((!(shape & 1) && a) || (!(shape & 2) && b))
			continue;
		for (int i = 0; i < RANDOM_DOCS; i++) {
			const struct known *k = &docs[i];

			if (!k->there || k->a < low || k->a > high || k->b < least ||
			    ((shape & 1) && k->a != a) || ((shape & 2) && k->b != b))
				continue;
			min = !count || k->n < min ? k->n : min;
			max = !count || k->n > max ? k->n : max;
			sum += k->n;
			count++;
		}
		if (!count && shape)
			continue;
		len += (size_t)snprintf(expected + len, sizeof(expected) - len, "%s{",
					len ? "," : "");
		if (shape)
			len += (size_t)snprintf(
				expected + len, sizeof(expected) - len, "\"group\":{%s%s%s},",
				shape & 1 ? format("\"a\":%d", a) : "", shape == 3 ? "," : "",
				shape & 2 ? format("\"b\":%d", b) : "");
		len += (size_t)snprintf(expected + len, sizeof(expected) - len,
					"\"count\":%d,\"sum\":{\"n\":%d},\"min\":{\"n\":%s},"
					"\"max\":{\"n\":%s}}",
					count, sum, count ? format("%d", min) : "null",
					count ? format("%d", max) : "null");
	}
	expect_groups(
		"random",
		format("{\"a\":{\"$gte\":%d,\"$lte\":%d},\"b\":{\"$gte\":%d}}", low, high, least),
		format("{\"group_by\":[%s],\"count\":true,\"sum\":[\"n\"],\"min\":[\"n\"],"
		       "\"max\":[\"n\"]}",
		       by[shape]),
		expected);
}

/* A count, and ends of a, of documents that one of two conditions on a lets through, or of b. */
static void
random_ends(void)
{
	int x = pick(RANDOM_VALUES), y = pick(RANDOM_VALUES), low = pick(RANDOM_VALUES);
	int shape = pick(4), count = 0, min = 0, max = 0;
	char selector[256];

	for (int i = 0; i < RANDOM_DOCS; i++) {
		const struct known *k = &docs[i];
		bool in = k->a == x || k->a == y;

		if (!k->there || (shape == 0 && !in) || (shape == 1 && !in && k->a <= low) ||
		    (shape == 2 && (k->b != x || k->a < low)) || (shape == 3 && k->a == x))
			continue;
		min = !count || k->a < min ? k->a : min;
		max = !count || k->a > max ? k->a : max;
		count++;
	}
	(void)snprintf(selector, sizeof(selector), "%s",
		       shape == 0 ? format("{\"a\":{\"$in\":[%d,%d]}}", x, y)
		       : shape == 1
			       ? format("{\"$or\":[{\"a\":%d},{\"a\":%d},{\"a\":{\"$gt\":%d}}]}", x,
					y, low)
		       : shape == 2 ? format("{\"b\":%d,\"a\":{\"$gte\":%d}}", x, low)
				    : format("{\"a\":{\"$ne\":%d}}", x));
	expect_groups("random", selector, "{\"count\":true,\"min\":[\"a\"],\"max\":[\"a\"]}",
		      format("{\"count\":%d,\"min\":{\"a\":%s},\"max\":{\"a\":%s}}", count,
			     count ? format("%d", min) : "null",
			     count ? format("%d", max) : "null"));
}

static void
random_aggregates_are_those_of_a_naive_loop(void **state)
{
	static const char *const indexes[] = { "\"a\"", "\"b\",\"a\"", "\"a\",\"b\",\"n\"" };

	(void)state;
	randoms.state = test_seed();
	print_message("# FROND_TEST_SEED=%llu\n", (unsigned long long)randoms.state);
	door_create(d, "random");
	memset(docs, 0, sizeof(docs));
	for (int i = 0; i < RANDOM_DOCS; i++)
		random_write(i);
	for (int i = 0; i < RANDOM_QUERIES; i++) {
		if (i % (RANDOM_QUERIES / 4) == 1 && i / (RANDOM_QUERIES / 4) < 3)
			index_on("random", indexes[i / (RANDOM_QUERIES / 4)],
				 format("i%d", i / (RANDOM_QUERIES / 4)));
		random_write(pick(RANDOM_DOCS));
		random_query();
		random_ends();
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_computed_of_all_documents),
		cmocka_unit_test(groups_come_in_the_order_of_their_values),
		cmocka_unit_test(an_index_that_covers_answers_without_documents),
		cmocka_unit_test(a_count_of_a_range_reads_nothing),
		cmocka_unit_test(an_array_is_read_beside_what_is_counted),
		cmocka_unit_test(the_least_and_the_greatest_are_read_from_ends),
		cmocka_unit_test(ends_are_of_the_documents_that_are_asked_for),
		cmocka_unit_test(a_bound_that_is_too_long_is_compared_with_documents),
		cmocka_unit_test(integers_are_summed_exactly),
		cmocka_unit_test(what_is_wrong_with_an_aggregate_is_told),
		cmocka_unit_test(settings_bound_the_groups),
		cmocka_unit_test(random_aggregates_are_those_of_a_naive_loop),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

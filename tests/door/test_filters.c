/* _changes of some documents: by id, by kind, by what is in them. */
#include "common.h"

enum {
	LINE_MS = 10000,
	MANY = 300,
};

static void
put(const char *db, const char *id, const char *body)
{
	door_expect(d, "PUT", format("/%s/%s", db, id), body, 201, "ok");
}

/* "a,b": the ids of the last answer's rows, in their order. */
static const char *
ids(void)
{
	static char text[4096];
	const char *at = d->last.body;
	size_t len = 0;

	text[0] = '\0';
	while ((at = strstr(at, "\"id\":\"")) && len < sizeof(text) - 64) {
		const char *end = strchr(at + 6, '"');

		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.*s", len ? "," : "",
					(int)(end - at - 6), at + 6);
		at = end;
	}
	return text;
}

static void
expect_ids(const char *target, const char *body, const char *expected)
{
	door_expect(d, body ? "POST" : "GET", target, body, 200, "\"last_seq\":\"");
	assert_string_equal(ids(), expected);
}

static void
selector_picks_documents_by_what_is_in_them(void **state)
{
	(void)state;
	door_create(d, "sel");
	put("sel", "a", "{\"n\":1,\"tags\":[\"x\",\"y\"]}");
	put("sel", "b", "{\"n\":2,\"tags\":[]}");
	put("sel", "c", "{\"m\":{\"deep\":[{\"n\":7}]}}");
	put("sel", "_design/d", "{\"n\":3}");
	expect_ids("/sel/_changes?filter=_selector", "{\"selector\":{}}", "a,b,c,_design/d");
	expect_ids("/sel/_changes?filter=_selector", "{\"selector\":{\"n\":{\"$gt\":1}}}",
		   "b,_design/d");
	expect_ids("/sel/_changes?filter=_selector",
		   "{\"selector\":{\"tags\":{\"$elemMatch\":{\"$eq\":\"y\"}}}}", "a");
	expect_ids("/sel/_changes?filter=_selector", "{\"selector\":{\"m.deep.0.n\":7}}", "c");
	expect_ids("/sel/_changes?filter=_selector",
		   "{\"selector\":{\"_id\":{\"$gt\":\"a\",\"$lt\":\"d\"}}}", "b,c");
	expect_ids("/sel/_changes?filter=_selector",
		   "{\"selector\":{\"_rev\":{\"$regex\":\"^2-\"}}}", "");
	expect_ids("/sel/_changes?filter=_selector&descending=true",
		   "{\"selector\":{\"n\":{\"$exists\":true}}}", "_design/d,b,a");
	expect_ids("/sel/_changes?filter=_selector&limit=1",
		   "{\"selector\":{\"n\":{\"$exists\":true}}}", "a");
	expect_ids(format("/sel/_changes?filter=_selector&since=%s", door_member(d, "last_seq")),
		   "{\"selector\":{\"n\":{\"$exists\":true}}}", "b,_design/d");
}

static void
tombstones_and_attachments_are_seen_by_a_selector(void **state)
{
	(void)state;
	door_create(d, "special");
	door_expect(d, "POST", "/special/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"gone\",\"_deleted\":true,\"why\":\"x\"},"
		    "{\"_id\":\"bare\",\"_deleted\":true},"
		    "{\"_id\":\"att\",\"_attachments\":{\"f.txt\":{\"data\":\"aGk=\","
		    "\"content_type\":\"text/plain\"}}},{\"_id\":\"live\"}]}",
		    201, "ok");
	expect_ids("/special/_changes?filter=_selector", "{\"selector\":{\"_deleted\":true}}",
		   "gone,bare");
	expect_ids("/special/_changes?filter=_selector",
		   "{\"selector\":{\"_deleted\":{\"$exists\":false}}}", "att,live");
	expect_ids("/special/_changes?filter=_selector",
		   "{\"selector\":{\"_deleted\":true,\"why\":\"x\"}}", "gone");
	expect_ids("/special/_changes?filter=_selector",
		   "{\"selector\":{\"_attachments\":{\"f\\\\.txt\":{\"length\":2}}}}", "att");
}

static void
each_leaf_is_looked_at_with_all_docs(void **state)
{
	(void)state;
	door_create(d, "leaves");
	door_expect(d, "POST", "/leaves/_bulk_docs",
		    "{\"new_edits\":false,\"docs\":[{\"_id\":\"a\",\"_rev\":\"1-a\",\"n\":1},"
		    "{\"_id\":\"a\",\"_rev\":\"1-b\",\"n\":2},{\"_id\":\"a\",\"_rev\":\"1-c\","
		    "\"n\":3}]}",
		    201, "[]");
	/* The winner alone, … */
	expect_ids("/leaves/_changes?filter=_selector", "{\"selector\":{\"n\":2}}", "");
	door_expect(d, "POST", "/leaves/_changes?filter=_selector", "{\"selector\":{\"n\":3}}", 200,
		    "\"changes\":[{\"rev\":\"1-c\"}]}");
	/* … and all leaves: those that match are told. */
	door_expect(d, "POST", "/leaves/_changes?filter=_selector&style=all_docs",
		    "{\"selector\":{\"n\":{\"$lt\":3}}}", 200,
		    "\"changes\":[{\"rev\":\"1-b\"},{\"rev\":\"1-a\"}]}");
	door_expect(d, "POST", "/leaves/_changes?filter=_selector&style=all_docs&include_docs=true",
		    "{\"selector\":{\"n\":1}}", 200,
		    "\"changes\":[{\"rev\":\"1-a\"}],\"doc\":{\"_id\":\"a\",\"_rev\":\"1-c\",\"n\":"
		    "3}}");
	expect_ids("/leaves/_changes?filter=_selector&style=all_docs", "{\"selector\":{\"n\":4}}",
		   "");
}

static void
fields_are_what_is_shown_of_a_document(void **state)
{
	(void)state;
	door_create(d, "fields");
	put("fields", "a", "{\"n\":1,\"o\":{\"p\":2,\"q\":3},\"z\":0}");
	door_expect(d, "POST", "/fields/_changes?filter=_selector&include_docs=true",
		    "{\"selector\":{},\"fields\":[\"_id\",\"o.p\",\"none\"]}", 200,
		    "\"doc\":{\"_id\":\"a\",\"o\":{\"p\":2}}}");
	door_expect(d, "POST", "/fields/_changes?filter=_selector&include_docs=true",
		    "{\"selector\":{},\"fields\":[]}", 200, "\"z\":0}}");
	door_expect(d, "POST", "/fields/_changes?filter=_selector", "{\"selector\":{}}", 200,
		    "\"}]}\n]");
}

static void
what_is_no_filter_is_refused(void **state)
{
	static const struct {
		const char *method, *query, *body;
		int status;
		const char *reason;
	} cases[] = {
		{ "GET", "filter=_odd", NULL, 400, "unknown builtin filter name" },
		{ "GET", "filter=_view", NULL, 400, "`view` filter parameter is not provided." },
		{ "GET", "filter=_view&view=a", NULL, 400,
		  "`view` must be of the form `designname/viewname`" },
		{ "GET", "filter=_view&view=none/v", NULL, 404, "\"reason\":\"missing\"" },
		{ "GET", "filter=_view&view=a/c", NULL, 404, "missing json key: c" },
		{ "GET", "filter=_view&view=e/b", NULL, 404, "missing json key: views" },
		{ "GET", "filter=a", NULL, 400,
		  "`filter` must be of the form `designname/filtername`" },
		{ "GET", "filter=a/b/c", NULL, 400,
		  "`filter` must be of the form `designname/filtername`" },
		{ "GET", "filter=none/b", NULL, 404, "\"reason\":\"missing\"" },
		{ "GET", "filter=a/c", NULL, 404, "missing json key: c" },
		{ "GET", "filter=e/b", NULL, 404, "missing json key: filters" },
		{ "GET", "filter=_selector", NULL, 400,
		  "Selector must be specified in POST payload" },
		{ "POST", "filter=_selector", "{}", 400, "Selector error: expected a JSON object" },
		{ "POST", "filter=_selector", "{\"selector\":[]}", 400,
		  "Selector error: expected a JSON object" },
		{ "POST", "filter=_selector", "{\"selector\":{},\"fields\":1}", 400,
		  "Selector error: fields must be JSON array" },
		{ "POST", "filter=_selector", "{\"selector\":{},\"fields\":[1]}", 400,
		  "\"bad_request\",\"reason\":\"Invalid JSON for field spec: 1\"" },
		{ "POST", "filter=_selector", "{\"selector\":{\"a\":{\"$foo\":1}}}", 400,
		  "\"bad_request\",\"reason\":\"Invalid operator: $foo\"" },
		{ "POST", "filter=_selector", "{\"selector\":{\"a\":{\"$in\":1}}}", 400,
		  "Bad argument for operator $in: 1" },
		{ "GET", "filter=_doc_ids", NULL, 400,
		  "`doc_ids` filter parameter is not a list of doc ids." },
		{ "POST", "filter=_doc_ids", "{\"doc_ids\":[1]}", 400,
		  "`doc_ids` filter parameter is not a list of doc ids." },
	};

	(void)state;
	door_create(d, "refused");
	door_expect(d, "PUT", "/refused/_design/a",
		    "{\"filters\":{\"b\":\"function(){}\"},\"views\":{\"b\":{\"map\":"
		    "\"function(){}\"}}}",
		    201, "ok");
	door_expect(d, "PUT", "/refused/_design/e", "{}", 201, "ok");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		door_expect(d, cases[i].method, format("/refused/_changes?%s", cases[i].query),
			    cases[i].body, cases[i].status, cases[i].reason);
}

static void
a_selector_past_a_limit_is_a_bad_request(void **state)
{
	static char body[4096];
	size_t len = 0;

	(void)state;
	door_create(d, "deep");
	len += (size_t)snprintf(body, sizeof(body), "{\"selector\":");
	for (int i = 0; i < 100; i++)
		len += (size_t)snprintf(body + len, sizeof(body) - len, "{\"$not\":");
	len += (size_t)snprintf(body + len, sizeof(body) - len, "{\"a\":1}");
	for (int i = 0; i < 101; i++)
		body[len++] = '}';
	body[len] = '\0';
	door_expect(d, "POST", "/deep/_changes?filter=_selector", body, 400, "levels deep");
}

/* A list of `n` ids from "d0" on, and what they are in a body. */
static const char *
id_list(int n)
{
	static char text[16384];
	size_t len = (size_t)snprintf(text, sizeof(text), "{\"doc_ids\":[\"none\",\"d0\"");

	for (int i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, ",\"d%d\"", i);
	(void)snprintf(text + len, sizeof(text) - len, "]}");
	return text;
}

static int
rows(void)
{
	int n = 0;

	for (const char *at = d->last.body; (at = strstr(at, "\"id\":\"")); at++)
		n++;
	return n;
}

/* A short list is looked up, a long one looked for; both tell the same. */
static void
documents_by_id(void **state)
{
	char last[32];

	(void)state;
	door_create(d, "ids");
	for (int i = 0; i < MANY; i++)
		put("ids", format("d%d", i), "{}");
	put("ids", "d3", format("{\"_rev\":\"%s\"}", "1-967a00dff5e02add41819138abb3284d"));
	door_expect(d, "GET", "/ids/_changes?limit=0&descending=true", NULL, 200, "last_seq");
	door_expect(d, "GET", "/ids/_changes?since=now", NULL, 200, "last_seq");
	(void)snprintf(last, sizeof(last), "%s", door_member(d, "last_seq"));

	expect_ids("/ids/_changes?filter=_doc_ids", "{\"doc_ids\":[\"d3\",\"d1\",\"x\",\"d2\"]}",
		   "d1,d2,d3");
	assert_string_equal(door_member(d, "last_seq"), last);
	door_has(d, "\"pending\":0}");
	expect_ids("/ids/_changes?filter=_doc_ids&doc_ids=[%22d1%22,%22d1%22]", NULL, "d1");
	expect_ids("/ids/_changes?filter=_doc_ids&descending=true", "{\"doc_ids\":[\"d3\",\"d1\"]}",
		   "d3,d1");
	expect_ids("/ids/_changes?filter=_doc_ids&limit=1", "{\"doc_ids\":[\"d3\",\"d1\"]}", "d1");
	door_has(d, format("\"pending\":%d}", MANY - 2));
	expect_ids(format("/ids/_changes?filter=_doc_ids&since=%s", door_member(d, "last_seq")),
		   "{\"doc_ids\":[\"d3\",\"d1\"]}", "d3");
	expect_ids("/ids/_changes?filter=_doc_ids", "{\"doc_ids\":[]}", "");
	assert_string_equal(door_member(d, "last_seq"), last);

	for (int n = 90; n <= 200; n += 110) {
		door_expect(d, "POST", "/ids/_changes?filter=_doc_ids", id_list(n), 200, "d0");
		assert_int_equal(rows(), n);
		assert_string_equal(door_member(d, "last_seq"), last);
	}
}

static void
design_documents_alone(void **state)
{
	(void)state;
	door_create(d, "design");
	put("design", "a", "{}");
	put("design", "_design/x", "{}");
	expect_ids("/design/_changes?filter=_design", NULL, "_design/x");
	expect_ids("/design/_changes?filter=_design", "{}", "_design/x");
}

/* ---- Feeds that wait ---- */

static struct client *
listen_with(const char *target, const char *body)
{
	struct client *c = client_open(d->port);
	struct response head;

	client_send(c, "POST", target, "Content-Type: application/json\r\n", body);
	head = client_receive_head(c);
	assert_int_equal(head.status, 200);
	response_release(&head);
	return c;
}

/* The next line that is not empty; it has to have this in it. */
static void
expect_line(struct client *c, const char *text)
{
	const char *line;

	do {
		line = client_line(c, LINE_MS);
	} while (line && !line[0]);
	if (!line || !strstr(line, text))
		fail_msg("expected a line with %s, got %s", text, line ? line : "none");
}

static void
continuous_feed_passes_over_what_does_not_match(void **state)
{
	struct client *c;

	(void)state;
	door_create(d, "cont");
	put("cont", "before", "{\"n\":1}");
	c = listen_with("/cont/_changes?feed=continuous&filter=_selector&timeout=60000",
			"{\"selector\":{\"n\":1}}");
	expect_line(c, "\"id\":\"before\"");
	for (int i = 0; i < 20; i++)
		put("cont", format("other%d", i), "{\"n\":2}");
	put("cont", "after", "{\"n\":1}");
	expect_line(c, "\"id\":\"after\"");
	client_close(c);
}

static void
longpoll_waits_for_a_match(void **state)
{
	struct client *c;

	(void)state;
	door_create(d, "poll");
	put("poll", "a", "{\"n\":2}");
	c = listen_with("/poll/_changes?feed=longpoll&filter=_selector&timeout=60000",
			"{\"selector\":{\"n\":1}}");
	expect_line(c, "{\"results\":[");
	put("poll", "b", "{\"n\":2}");
	put("poll", "c", "{\"n\":1}");
	expect_line(c, "\"id\":\"c\"");
	expect_line(c, "],");
	expect_line(c, "\"pending\":0}");
	assert_null(client_line(c, LINE_MS));
	client_close(c);
}

static void
ids_are_listened_to(void **state)
{
	struct client *c;

	(void)state;
	door_create(d, "listen");
	put("listen", "a", "{}");
	c = listen_with("/listen/_changes?feed=eventsource&filter=_doc_ids&timeout=60000",
			"{\"doc_ids\":[\"a\",\"b\"]}");
	expect_line(c, "\"id\":\"a\"");
	expect_line(c, "id: \"");
	put("listen", "c", "{}");
	put("listen", "b", "{}");
	expect_line(c, "\"id\":\"b\"");
	client_close(c);
	/* Nothing has been told yet. */
	c = listen_with("/listen/_changes?feed=longpoll&filter=_doc_ids&timeout=60000",
			"{\"doc_ids\":[\"z\"]}");
	expect_line(c, "{\"results\":[");
	put("listen", "z", "{}");
	expect_line(c, "\"id\":\"z\"");
	client_close(c);
}

/* However much happens that the client does not want to know of. */
static void
a_heartbeat_comes_while_others_write(void **state)
{
	struct client *c;
	int beats = 0;

	(void)state;
	door_create(d, "busy");
	c = listen_with("/busy/_changes?feed=continuous&filter=_selector&heartbeat=50",
			"{\"selector\":{\"n\":1}}");
	for (int i = 0; i < 4000 && beats < 3; i++) {
		const char *line;

		put("busy", format("d%d", i), "{}");
		line = client_line(c, 0);
		if (line) {
			assert_string_equal(line, "");
			beats++;
		}
	}
	assert_true(beats >= 3);
	client_close(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(selector_picks_documents_by_what_is_in_them),
		cmocka_unit_test(tombstones_and_attachments_are_seen_by_a_selector),
		cmocka_unit_test(each_leaf_is_looked_at_with_all_docs),
		cmocka_unit_test(fields_are_what_is_shown_of_a_document),
		cmocka_unit_test(what_is_no_filter_is_refused),
		cmocka_unit_test(a_selector_past_a_limit_is_a_bad_request),
		cmocka_unit_test(documents_by_id),
		cmocka_unit_test(design_documents_alone),
		cmocka_unit_test(continuous_feed_passes_over_what_does_not_match),
		cmocka_unit_test(longpoll_waits_for_a_match),
		cmocka_unit_test(ids_are_listened_to),
		cmocka_unit_test(a_heartbeat_comes_while_others_write),
	};

	return cmocka_run_group_tests_name("couch filters", tests, setup, teardown);
}

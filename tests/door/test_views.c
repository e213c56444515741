/* Views over HTTP: options and their refusals, the shape of answers, what belongs to views. */
#include "common.h"

#define VIEWS                                                                                      \
	"\"views\":{"                                                                              \
	"\"map\":{\"map\":\"function (doc) { if (doc.k) emit(doc.k, doc.v); }\"},"                 \
	"\"sum\":{\"map\":\"function (doc) { if (doc.k) emit(doc.k, doc.v); }\","                  \
	"\"reduce\":\"_sum\"},"                                                                    \
	"\"own\":{\"map\":\"function (doc) { if (doc.k) emit(doc.k, doc.v); }\","                  \
	"\"reduce\":\"function (k, v, r) { return sum(v); }\"},"                                   \
	"\"link\":{\"map\":\"function (doc) { if (doc.to) emit(doc._id, doc.to); }\"}}}"
#define DESIGN "{" VIEWS

#define MAP "/v/_design/d/_view/map"
#define SUM "/v/_design/d/_view/sum"

static bool
has_worker(void)
{
	return getenv("FROND_JS_WORKER") != NULL;
}

static int
setup_views(void **state)
{
	(void)setup(state);
	door_create(d, "v");
	door_expect(
		d, "POST", "/v/_bulk_docs",
		"{\"docs\":["
		"{\"_id\":\"a\",\"k\":[1,1],\"v\":1},{\"_id\":\"b\",\"k\":[1,2],\"v\":2},"
		"{\"_id\":\"c\",\"k\":[2,1],\"v\":3},{\"_id\":\"d\",\"k\":[2,2],\"v\":4},"
		"{\"_id\":\"e\",\"k\":[2,2],\"v\":5},"
		"{\"_id\":\"l\",\"to\":{\"_id\":\"a\"}},{\"_id\":\"m\",\"to\":{\"_id\":\"no\"}},"
		"{\"_id\":\"n\",\"to\":{\"_id\":5}}]}",
		201, "ok");
	door_expect(d, "PUT", "/v/_design/d", DESIGN, 201, "ok");
	return 0;
}

/* The whole answer but for the line ends between rows. */
static void
expect_all(const char *target, const char *body, const char *answer)
{
	const struct response *r = door_request(d, body ? "POST" : "GET", target, NULL, body);
	AUTO(buf_release) struct buf text = BUF_INIT(1 << 20);

	for (size_t i = 0; i < r->body_len; i++)
		if (r->body[i] != '\r' && r->body[i] != '\n')
			buf_append_byte(&text, (uint8_t)r->body[i]);
	buf_append_byte(&text, '\0');
	assert_int_equal(buf_status(&text), STATUS_OK);
	if (r->status != 200 || strcmp(text.ptr, answer) != 0)
		fail_msg("%s %s: expected %s, got %d: %s", target, body ? body : "", answer,
			 r->status, r->body);
}

#define ROW_A "{\"id\":\"a\",\"key\":[1,1],\"value\":1}"
#define ROW_B "{\"id\":\"b\",\"key\":[1,2],\"value\":2}"
#define ROW_C "{\"id\":\"c\",\"key\":[2,1],\"value\":3}"
#define ROW_D "{\"id\":\"d\",\"key\":[2,2],\"value\":4}"
#define ROW_E "{\"id\":\"e\",\"key\":[2,2],\"value\":5}"

static void
answers_have_couchdbs_shape(void **state)
{
	(void)state;
	expect_all(MAP, NULL,
		   "{\"total_rows\":5,\"offset\":0,\"rows\":[" ROW_A "," ROW_B "," ROW_C "," ROW_D
		   "," ROW_E "]}");
	expect_all(MAP "?startkey=[1,2]&endkey=[2,1]", NULL,
		   "{\"total_rows\":5,\"offset\":1,\"rows\":[" ROW_B "," ROW_C "]}");
	expect_all(MAP "?descending=true&limit=1&skip=1", NULL,
		   "{\"total_rows\":5,\"offset\":1,\"rows\":[" ROW_D "]}");
	expect_all(MAP "?key=[2,2]&startkey_docid=e", NULL,
		   "{\"total_rows\":5,\"offset\":4,\"rows\":[" ROW_E "]}");
	expect_all(MAP "?key=[3]", NULL, "{\"total_rows\":5,\"offset\":5,\"rows\":[]}");
	expect_all(MAP "?skip=9", NULL, "{\"total_rows\":5,\"offset\":5,\"rows\":[]}");
	expect_all(MAP "?limit=0&skip=2", NULL, "{\"total_rows\":5,\"offset\":2,\"rows\":[]}");
	expect_all(SUM, NULL, "{\"rows\":[{\"key\":null,\"value\":15}]}");
	expect_all(SUM "?group_level=1", NULL,
		   "{\"rows\":[{\"key\":[1],\"value\":3},{\"key\":[2],\"value\":12}]}");
	expect_all(SUM "?group=true&descending=true&limit=2", NULL,
		   "{\"rows\":[{\"key\":[2,2],\"value\":9},{\"key\":[2,1],\"value\":3}]}");
	expect_all(SUM "?startkey=[3]", NULL, "{\"rows\":[]}");
	expect_all(SUM "?reduce=false&limit=1", NULL,
		   "{\"total_rows\":5,\"offset\":0,\"rows\":[" ROW_A "]}");
	expect_all("/v/_design/d/_view/own?group_level=1&skip=1", NULL,
		   "{\"rows\":[{\"key\":[2],\"value\":12}]}");
	door_expect(d, "GET", MAP "?limit=0&update_seq=true", NULL, 200, ",\"update_seq\":\"");
	door_expect(d, "GET", SUM "?update_seq=true", NULL, 200, "{\"update_seq\":\"");
}

static void
keys_are_answered_in_their_order(void **state)
{
	(void)state;
	expect_all(MAP, "{\"keys\":[[2,2],[9],[1,1]]}",
		   "{\"total_rows\":5,\"offset\":3,\"rows\":[" ROW_D "," ROW_E "," ROW_A "]}");
	expect_all(MAP "?descending=true", "{\"keys\":[[2,2],[9],[1,1]]}",
		   "{\"total_rows\":5,\"offset\":4,\"rows\":[" ROW_A "," ROW_E "," ROW_D "]}");
	expect_all(MAP, "{\"keys\":[[2,2],[1,1]],\"skip\":1,\"limit\":1}",
		   "{\"total_rows\":5,\"offset\":4,\"rows\":[" ROW_E "]}");
	expect_all(MAP, "{\"keys\":[[2,2],[1,1]],\"skip\":2}",
		   "{\"total_rows\":5,\"offset\":5,\"rows\":[" ROW_A "]}");
	expect_all(MAP, "{\"keys\":[[0],[9]]}", "{\"total_rows\":5,\"offset\":5,\"rows\":[]}");
	expect_all(MAP, "{\"keys\":[[1,1]]}",
		   "{\"total_rows\":5,\"offset\":0,\"rows\":[" ROW_A "]}");
	expect_all(SUM, "{\"keys\":[[1,1]]}", "{\"rows\":[{\"key\":null,\"value\":1}]}");
	expect_all(SUM "?group=true", "{\"keys\":[[2,2],[9],[1,1]]}",
		   "{\"rows\":[{\"key\":[2,2],\"value\":9},{\"key\":[1,1],\"value\":1}]}");
	expect_all(SUM "?group=true&descending=true", "{\"keys\":[[2,2],[9],[1,1]]}",
		   "{\"rows\":[{\"key\":[2,2],\"value\":9},{\"key\":[1,1],\"value\":1}]}");
	expect_all(SUM "?group=true", "{\"keys\":[[1,1],[1,1]]}",
		   "{\"rows\":[{\"key\":[1,1],\"value\":1},{\"key\":[1,1],\"value\":1}]}");
	expect_all(SUM "?group=true&skip=1", "{\"keys\":[[2,2],[9],[1,1]]}",
		   "{\"rows\":[{\"key\":[1,1],\"value\":1}]}");
	door_expect(d, "POST", MAP, "{\"keys\":[]}", 200, "\"rows\":[");
}

static void
several_questions_have_an_answer_each(void **state)
{
	(void)state;
	expect_all(SUM "/queries",
		   "{\"queries\":[{\"group_level\":1,\"limit\":1},{},"
		   "{\"reduce\":false,\"key\":[1,1]}]}",
		   "{\"results\":[{\"rows\":[{\"key\":[1],\"value\":3}]},"
		   "{\"rows\":[{\"key\":null,\"value\":15}]},"
		   "{\"total_rows\":5,\"offset\":0,\"rows\":[" ROW_A "]}]}");
	/* The URL's parameters hold for all, but for those that CouchDB takes back. */
	expect_all(SUM "/queries?group=true&limit=1",
		   "{\"queries\":[{},{\"limit\":2,\"group\":true}]}",
		   "{\"results\":[{\"rows\":[{\"key\":null,\"value\":15}]},"
		   "{\"rows\":[{\"key\":[1,1],\"value\":1},{\"key\":[1,2],\"value\":2}]}]}");
	expect_all(MAP "/queries", "{\"queries\":[]}", "{\"results\":[]}");
	door_expect(d, "POST", MAP "/queries", "{\"queries\":[{},{\"reduce\":true}]}", 400,
		    "Reduce is invalid");
	door_expect(d, "POST", MAP "/queries", "{}", 400, "must include `queries`");
	door_expect(d, "POST", MAP "/queries", "{\"queries\":1}", 400, "must be an array");
	door_expect(d, "GET", MAP "/queries", NULL, 405, "method_not_allowed");
	door_expect(d, "POST", MAP, "{\"queries\":[]}", 400, "no longer supported");
}

static void
documents_come_with_their_rows(void **state)
{
	const char *rev;

	(void)state;
	door_expect(d, "GET", MAP "?include_docs=true&key=[1,1]", NULL, 200,
		    "\"value\":1,\"doc\":{\"_id\":\"a\",\"_rev\":");
	door_expect(d, "GET", "/v/_design/d/_view/link?include_docs=true&key=\"l\"", NULL, 200,
		    "\"doc\":{\"_id\":\"a\",");
	door_expect(d, "GET", "/v/_design/d/_view/link?include_docs=true&key=\"m\"", NULL, 200,
		    "\"doc\":null}");
	door_expect(d, "GET", "/v/_design/d/_view/link?include_docs=true&key=\"n\"", NULL, 200,
		    "\"doc\":null}");
	door_expect(d, "GET", "/v/a", NULL, 200, "_rev");
	rev = format("%s", door_member(d, "_rev"));
	door_expect(d, "PUT", "/v/o", format("{\"to\":{\"_id\":\"a\",\"_rev\":\"%s\"}}", rev), 201,
		    "ok");
	door_expect(d, "GET", "/v/_design/d/_view/link?include_docs=true&key=\"o\"", NULL, 200,
		    format("\"doc\":{\"_id\":\"a\",\"_rev\":\"%s\"", rev));
	door_expect(d, "PUT", "/v/o2", "{\"to\":{\"_id\":\"a\",\"_rev\":\"9-x\"}}", 201, "ok");
	door_expect(d, "GET", "/v/_design/d/_view/link?include_docs=true&key=\"o2\"", NULL, 200,
		    "\"doc\":null}");
	door_expect(d, "PUT", "/v/a?new_edits=false", "{\"_rev\":\"1-0\",\"z\":1}", 201, "ok");
	door_expect(d, "GET", MAP "?include_docs=true&conflicts=true&key=[1,1]", NULL, 200,
		    "\"_conflicts\":[\"1-0\"]");
	door_expect(d, "GET", MAP "?include_docs=true&key=[1,1]&attachments=true", NULL, 200,
		    "\"doc\":{\"_id\":\"a\"");
}

static void
what_a_view_does_not_take_is_refused_in_couchdbs_words(void **state)
{
	static const struct {
		const char *query;
		const char *reason;
	} refused[] = {
		{ MAP "?reduce=true", "Reduce is invalid for map-only views." },
		{ MAP "?group=true", "Invalid use of grouping on a map view." },
		{ MAP "?group_level=1", "Invalid use of grouping on a map view." },
		{ SUM "?reduce=false&group=true", "Invalid use of grouping on a map view." },
		{ SUM "?group=false&group_level=1",
		  "Can't specify group=false and group_level>0 at the same time" },
		{ SUM "?include_docs=true", "`include_docs` is invalid for reduce" },
		{ SUM "?conflicts=false", "`conflicts` is invalid for reduce views." },
		{ SUM "?keys=[1,2]", "Multi-key fetches for reduce views must use `group=true`" },
		{ MAP "?keys=[1,2]&key=1",
		  "`keys` is incompatible with `key`, `start_key` and `end_key`" },
		{ MAP "?keys=1", "`keys` must be an array of strings." },
		{ MAP "?keys=null", "`keys` must be an array of strings." },
		{ SUM "?keys={}&group=true", "`keys` must be an array of strings." },
		{ MAP "?startkey=2&endkey=1", "or set descending=true" },
		{ MAP "?startkey=1&endkey=2&descending=true", "or set descending=false" },
		{ MAP "?stale=no", "Invalid value for `stale`." },
		{ MAP "?update=1", "Invalid value for `update`." },
		{ MAP "?stable=1", "Invalid value for `stable`." },
		{ MAP "?sorted=1", "Invalid boolean parameter" },
		{ MAP "?limit=-1", "Invalid value for positive integer" },
		{ MAP "?partition=p", "`partition` parameter is not supported in this design doc" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		door_expect(d, "GET", refused[i].query, NULL, 400, refused[i].reason);
		door_has(d, "\"error\":\"query_parse_error\"");
	}
	door_expect(d, "GET", MAP "?key=x", NULL, 400, "bad_request");
	door_expect(d, "POST", MAP, "[]", 400, "Request body must be a JSON object");
	door_expect(d, "POST", MAP, "{\"keys\":1}", 400,
		    "{\"error\":\"bad_request\",\"reason\":\"`keys` member must be an array.\"}");
	door_expect(d, "POST", SUM "?group=true", "{\"keys\":null}", 400,
		    "\"`keys` member must be an array.\"");
	door_expect(d, "POST", MAP "/queries", "{\"queries\":[{\"keys\":\"a\"}]}", 400,
		    "{\"error\":\"query_parse_error\",\"reason\":"
		    "\"`keys` must be an array of strings.\"}");
	door_expect(d, "GET", "/v/_design/d/_view/no", NULL, 404, "missing_named_view");
	door_expect(d, "GET", "/v/_design/no/_view/no", NULL, 404, "missing");
	door_expect(d, "GET", "/no/_design/d/_view/map", NULL, 404, "not_found");
	door_expect(d, "PUT", MAP, "{}", 405, "method_not_allowed");
	door_expect(d, "GET", MAP "/x", NULL, 404, "missing");
}

/* The row's document in the revision that its value names, beside rows that name none. */
static void
values_name_the_revision_that_is_shown(void **state)
{
	static const char target[] = "/linked/_design/d/_view/v?include_docs=true";
	char rev[128];
	char row[512];

	(void)state;
	door_create(d, "linked");
	door_expect(d, "PUT", "/linked/_design/d",
		    "{\"views\":{\"v\":{\"map\":\"function (doc) {"
		    " if (doc.to) emit(doc.n, doc.to); else emit(doc.n, {_rev: doc._rev}); }\"}}}",
		    201, "ok");
	/* a's winner is 1-b, and 1-a is a conflict of it. */
	door_expect(
		d, "POST", "/linked/_bulk_docs",
		"{\"new_edits\":false,\"docs\":["
		"{\"_id\":\"a\",\"_rev\":\"1-a\",\"n\":1,\"x\":\"lost\"},"
		"{\"_id\":\"a\",\"_rev\":\"1-b\",\"n\":1,\"x\":\"won\"},"
		"{\"_id\":\"b\",\"_rev\":\"1-b\",\"n\":2,\"to\":{\"_id\":\"a\",\"_rev\":\"1-a\"}},"
		"{\"_id\":\"c\",\"_rev\":\"1-c\",\"n\":3,\"to\":{\"_rev\":\"1-none\"}},"
		"{\"_id\":\"d\",\"_rev\":\"1-d\",\"n\":4,\"to\":{\"_id\":\"a\"}},"
		"{\"_id\":\"e\",\"_rev\":\"1-e\",\"n\":5,\"to\":{\"_id\":\"a\",\"_rev\":\"1-b\"}},"
		"{\"_id\":\"f\",\"_rev\":\"1-f\",\"n\":6,\"to\":{\"x\":1}}]}",
		201, "[]");
	for (size_t i = 0; i < 2; i++) {
		const char *query = i ? "&conflicts=true" : "";

		door_expect(d, "GET", format("%s%s&limit=4", target, query), NULL, 200,
			    "\"value\":{\"_rev\":\"1-b\"},\"doc\":{\"_id\":\"a\",\"_rev\":\"1-b\"");
		door_has(d, "\"_rev\":\"1-a\"},\"doc\":{\"_id\":\"a\",\"_rev\":\"1-a\"");
		door_has(d, "\"x\":\"lost\"");
		door_has(d, "{\"_rev\":\"1-none\"},\"doc\":null}");
		door_has(d, "{\"_id\":\"a\"},\"doc\":{\"_id\":\"a\",\"_rev\":\"1-b\"");
		door_expect(d, "GET", format("%s%s&skip=4", target, query), NULL, 200,
			    "\"_rev\":\"1-b\"},\"doc\":{\"_id\":\"a\",\"_rev\":\"1-b\"");
		door_has(d, "{\"x\":1},\"doc\":{\"_id\":\"f\",\"_rev\":\"1-f\"");
	}
	/* A revision that was replaced is gone. */
	door_expect(d, "PUT", "/linked/g", "{\"n\":9}", 201, "ok");
	(void)snprintf(rev, sizeof(rev), "%s", door_member(d, "rev"));
	door_expect(d, "PUT", "/linked/g",
		    format("{\"_rev\":\"%s\",\"n\":9,\"to\":{\"_rev\":\"%s\"}}", rev, rev), 201,
		    "ok");
	(void)snprintf(row, sizeof(row), "\"value\":{\"_rev\":\"%s\"},\"doc\":null}", rev);
	door_expect(d, "GET", format("%s&key=9", target), NULL, 200, row);
}

/* As in CouchDB, what follows the name of a built-in reduce is passed over. */
static void
built_in_reduces_are_known_by_their_beginning(void **state)
{
	static const char *const trailing[] = { "\\n", " ", "orama", "\\nare\\nawesome",
						" /* a sum */" };
	static const char *const results[][2] = {
		{ "_sum", "15" },
		{ "_count", "5" },
		{ "_stats", "{\"sum\":15,\"count\":5,\"min\":1,\"max\":5,\"sumsqr\":55}" },
		{ "_approx_count_distinct", "4" },
		{ "_first", "1" },
		{ "_last", "5" },
	};

	(void)state;
	for (size_t t = 0; t < sizeof(trailing) / sizeof(trailing[0]); t++) {
		for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
			const char *ddoc = format("/v/_design/t%zu-%zu", t, i);

			door_expect(d, "PUT", ddoc,
				    format("{\"views\":{\"v\":{\"map\":\"function (doc) {"
					   " if (doc.k) emit(doc.k, doc.v); }\","
					   "\"reduce\":\"%s%s\"}}}",
					   results[i][0], trailing[t]),
				    201, "ok");
			expect_all(
				format("%s/_view/v", ddoc), NULL,
				format("{\"rows\":[{\"key\":null,\"value\":%s}]}", results[i][1]));
		}
	}
	door_expect(d, "PUT", "/v/_design/top",
		    "{\"views\":{\"v\":{\"map\":\"function (doc) {"
		    " if (doc.k) emit(doc.k, doc.v); }\",\"reduce\":\"_top_02\"}}}",
		    201, "ok");
	expect_all("/v/_design/top/_view/v", NULL, "{\"rows\":[{\"key\":null,\"value\":[5,4]}]}");
}

/* Values of _sum and _stats. A failure is an answer's error of _stats, and a value of _sum. */
static void
values_that_do_not_add_up_are_errors(void **state)
{
	static const struct {
		const char *docs; /* their values */
		const char *sum;  /* what the answer has */
		const char *stats;
	} cases[] = {
		{ "[\"text\"]", NULL, NULL },
		{ "[1,\"text\"]", NULL, NULL },
		{ "[null]", NULL, NULL },
		{ "[true,1]", NULL, NULL },
		{ "[1,[1]]", "\"value\":[2]", NULL },
		{ "[[1],2]", "\"value\":[3]", NULL },
		{ "[[1,2],[3]]", "\"value\":[4,2]", NULL },
		{ "[[3],[1,2]]", "\"value\":[4,2]", NULL },
		{ "[[\"a\"]]", NULL, NULL },
		{ "[[[1]],[[2]]]", NULL, "\"value\":[[{\"sum\":3,\"count\":2,\"min\":1," },
		{ "[[]]", "\"value\":[0]", "\"value\":[]" },
		{ "[{\"a\":1},2]", NULL, NULL },
		{ "[{\"a\":1},{\"b\":2}]", "\"value\":{\"a\":1,\"b\":2}", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char db[32];

		(void)snprintf(db, sizeof(db), "/values%zu", i);
		door_create(d, db + 1);
		door_expect(
			d, "PUT", format("%s/_design/d", db),
			"{\"views\":{"
			"\"sum\":{\"map\":\"function (doc) { doc.v.forEach((v, i) => emit(i, v)); "
			"}\",\"reduce\":\"_sum\"},"
			"\"stats\":{\"map\":\"function (doc) { doc.v.forEach((v, i) => emit(i, "
			"v)); "
			"}\",\"reduce\":\"_stats\"}}}",
			201, "ok");
		door_expect(d, "PUT", format("%s/a", db), format("{\"v\":%s}", cases[i].docs), 201,
			    "ok");
		if (cases[i].sum) {
			door_expect(d, "GET", format("%s/_design/d/_view/sum", db), NULL, 200,
				    cases[i].sum);
		} else {
			door_expect(d, "GET", format("%s/_design/d/_view/sum", db), NULL, 200,
				    "\"value\":{\"error\":\"builtin_reduce_error\",\"reason\":"
				    "\"The _sum function requires that map values be numbers,");
		}
		if (cases[i].stats) {
			door_expect(d, "GET", format("%s/_design/d/_view/stats", db), NULL, 200,
				    cases[i].stats);
		} else {
			door_expect(d, "GET", format("%s/_design/d/_view/stats", db), NULL, 500,
				    "{\"error\":\"invalid_value\",\"reason\":"
				    "\"The _stats function requires that map values be numbers");
		}
	}
}

static void
an_answer_is_known_by_its_etag(void **state)
{
	char tag[128];

	(void)state;
	door_expect(d, "GET", MAP, NULL, 200, "rows");
	(void)snprintf(tag, sizeof(tag), "If-None-Match: %s\r\n",
		       response_header(&d->last, "ETag"));
	expect_as(tag, "GET", MAP, NULL, 304, "");
	door_expect(d, "PUT", "/v/other", "{}", 201, "ok");
	expect_as(tag, "GET", MAP, NULL, 200, "rows");
}

static void
info_tells_how_far_views_are(void **state)
{
	(void)state;
	door_expect(d, "GET", MAP "?limit=0", NULL, 200, "rows");
	door_expect(d, "GET", "/v/_design/d/_info", NULL, 200,
		    "{\"name\":\"d\",\"view_index\":{\"signature\":\"");
	door_has(d, "\"language\":\"javascript\"");
	door_has(d, "\"updater_running\":false");
	door_has(d, "\"updates_pending\":{\"minimum\":0,\"preferred\":0,\"total\":0}");
	door_has(d, "\"refused\":{\"total\":0,\"newest\":[]}");
	door_expect(d, "PUT", "/v/later", "{}", 201, "ok");
	door_expect(d, "GET", "/v/_design/d/_info", NULL, 200, "\"total\":1}");
	door_expect(d, "GET", "/v/_design/no/_info", NULL, 404, "missing");
	door_expect(d, "POST", "/v/_design/d/_info", "{}", 405, "method_not_allowed");
	door_expect(d, "POST", "/v/_view_cleanup", "{}", 202, "\"ok\":true");
	door_expect(d, "GET", MAP "?update=false&limit=0", NULL, 200, "\"total_rows\":5");
}

static void
a_row_that_is_too_long_is_told(void **state)
{
	(void)state;
	door_create(d, "long");
	door_expect(d, "PUT", "/long/_design/d",
		    "{\"views\":{\"v\":{\"map\":\"function (doc) {"
		    " emit('x'.repeat(doc.n), 1); }\"}}}",
		    201, "ok");
	door_expect(d, "PUT", "/long/short", "{\"n\":5}", 201, "ok");
	door_expect(d, "PUT", "/long/long", "{\"n\":20000}", 201, "ok");
	expect_all(
		"/long/_design/d/_view/v", NULL,
		"{\"total_rows\":1,\"offset\":0,\"rows\":["
		"{\"id\":\"short\",\"key\":\"xxxxx\",\"value\":1}],\"errors\":[{\"id\":\"long\","
		"\"error\":\"not_in_view\",\"reason\":\"a row's key takes more than 6000 bytes as "
		"it is stored, or with the document's id more than a key of the store may\","
		"\"limit\":\"view_key_bytes\",\"rows\":1}]}");
	door_expect(d, "GET", "/long/_design/d/_info", NULL, 200, "\"lacking\":{\"v\":1}");
	door_expect(d, "GET", "/long/_design/d/_info", NULL, 200,
		    "\"refused\":{\"total\":1,\"newest\":[{\"id\":\"long\",\"view\":\"v\","
		    "\"limit\":\"view_key_bytes\"}]}");
}

static void
what_a_partition_lacks_is_told_in_its_answers(void **state)
{
	(void)state;
	door_expect(d, "PUT", "/lacks?partitioned=true", NULL, 201, "ok");
	door_expect(d, "PUT", "/lacks/_design/d",
		    "{\"views\":{\"v\":{\"map\":\"function (doc) {"
		    " emit('x'.repeat(doc.n), 1); }\",\"reduce\":\"_sum\"}}}",
		    201, "ok");
	door_expect(d, "PUT", "/lacks/p:long", "{\"n\":20000}", 201, "ok");
	door_expect(d, "PUT", "/lacks/q:short", "{\"n\":1}", 201, "ok");
	door_expect(d, "GET", "/lacks/_partition/p/_design/d/_view/v", NULL, 200,
		    "\"errors\":[{\"id\":\"p:long\"");
	expect_all("/lacks/_partition/q/_design/d/_view/v", NULL,
		   "{\"rows\":[{\"key\":null,\"value\":1}]}");
}

static void
views_of_a_partitioned_database_are_by_partition(void **state)
{
	(void)state;
	door_expect(d, "PUT", "/parted?partitioned=true", NULL, 201, "ok");
	door_expect(
		d, "POST", "/parted/_bulk_docs",
		"{\"docs\":[{\"_id\":\"p:a\",\"k\":2,\"v\":1},{\"_id\":\"p:b\",\"k\":1,\"v\":2},"
		"{\"_id\":\"q:c\",\"k\":1,\"v\":4}]}",
		201, "ok");
	door_expect(d, "PUT", "/parted/_design/d", DESIGN, 201, "ok");
	expect_all(
		"/parted/_partition/p/_design/d/_view/map", NULL,
		"{\"total_rows\":2,\"offset\":0,\"rows\":["
		"{\"id\":\"p:b\",\"key\":1,\"value\":2},{\"id\":\"p:a\",\"key\":2,\"value\":1}]}");
	expect_all("/parted/_partition/q/_design/d/_view/sum", NULL,
		   "{\"rows\":[{\"key\":null,\"value\":4}]}");
	expect_all("/parted/_design/d/_view/sum?partition=p&key=1", NULL,
		   "{\"rows\":[{\"key\":null,\"value\":2}]}");
	door_expect(d, "GET", "/parted/_design/d/_view/map", NULL, 400,
		    "`partition` parameter is mandatory for queries to this view.");
	door_expect(d, "GET", "/parted/_partition/p/_design/d/_view/map?partition=q", NULL, 400,
		    "Conflicting value");
	door_expect(d, "GET", "/v/_partition/p/_design/d/_view/map", NULL, 400, "not partitioned");
	door_expect(d, "PUT", "/parted/_design/g", "{\"options\":{\"partitioned\":false}," VIEWS,
		    201, "ok");
	expect_all("/parted/_design/g/_view/sum", NULL, "{\"rows\":[{\"key\":null,\"value\":7}]}");
	door_expect(d, "GET", "/parted/_partition/p/_design/g/_view/sum", NULL, 400,
		    "not supported in this design doc");
}

#define RAW(name, collation)                                                                       \
	"\"" name "\":{\"map\":\"function (doc) { if ('k' in doc) emit(doc.k, null); }\","         \
	"\"reduce\":\"_count\",\"options\":{\"collation\":\"" collation "\"}}"

/* Answers to a view whose rows have their keys as ids, one after another. */
static void
expect_keys(const char *target, const char *keys)
{
	const struct response *r = door_request(d, "GET", target, NULL, NULL);
	AUTO(buf_release) struct buf found = BUF_INIT(1 << 16);

	assert_int_equal(r->status, 200);
	for (const char *at = r->body; (at = strstr(at, "\"key\":")) != NULL;) {
		const char *end = strstr(at, ",\"value\"");

		assert_non_null(end);
		at += strlen("\"key\":");
		buf_printf(&found, "%.*s ", (int)(end - at), at);
	}
	buf_append_byte(&found, '\0');
	assert_string_equal(found.ptr, keys);
}

static void
the_raw_collation_is_erlangs(void **state)
{
	(void)state;
	door_create(d, "raw");
	door_expect(d, "POST", "/raw/_bulk_docs",
		    "{\"docs\":[{\"k\":\"a\"},{\"k\":\"B\"},{\"k\":[1,2]},{\"k\":[1]},{\"k\":{}},"
		    "{\"k\":true},{\"k\":null},{\"k\":false},{\"k\":5}]}",
		    201, "ok");
	door_expect(d, "PUT", "/raw/_design/d",
		    "{\"views\":{" RAW("r", "raw") "," RAW("d", "default") "}}", 201, "ok");
	expect_keys("/raw/_design/d/_view/r?reduce=false",
		    "5 false null true {} [1] [1,2] \"B\" \"a\" ");
	expect_keys("/raw/_design/d/_view/d?reduce=false",
		    "null false true 5 \"a\" \"B\" [1] [1,2] {} ");
	expect_keys("/raw/_design/d/_view/r?reduce=false&startkey={}&endkey=\"Z\"",
		    "{} [1] [1,2] \"B\" ");
	expect_all("/raw/_design/d/_view/r?group_level=1&startkey=[1]&endkey=[2]", NULL,
		   "{\"rows\":[{\"key\":[1],\"value\":2}]}");
	door_expect(d, "GET", "/raw/_design/d/_view/r?startkey=\"a\"&endkey=[]", NULL, 400,
		    "No rows can match");
}

static void
options_say_what_is_mapped(void **state)
{
	const struct response *r;

	(void)state;
	door_create(d, "opt");
	door_expect(d, "PUT", "/opt/a", "{}", 201, "ok");
	door_expect(d, "PUT", "/opt/_design/all",
		    "{\"options\":{\"include_design\":true,\"local_seq\":true},\"views\":{\"v\":{"
		    "\"map\":"
		    "\"function (doc) { emit(doc._id, typeof doc._local_seq); }\"}}}",
		    201, "ok");
	door_expect(d, "PUT", "/opt/_design/docs",
		    "{\"views\":{\"v\":{\"map\":"
		    "\"function (doc) { emit(doc._id, typeof doc._local_seq); }\"}}}",
		    201, "ok");
	expect_all("/opt/_design/all/_view/v", NULL,
		   "{\"total_rows\":3,\"offset\":0,\"rows\":["
		   "{\"id\":\"_design/all\",\"key\":\"_design/all\",\"value\":\"string\"},"
		   "{\"id\":\"_design/docs\",\"key\":\"_design/docs\",\"value\":\"string\"},"
		   "{\"id\":\"a\",\"key\":\"a\",\"value\":\"string\"}]}");
	expect_all("/opt/_design/docs/_view/v", NULL,
		   "{\"total_rows\":1,\"offset\":0,\"rows\":["
		   "{\"id\":\"a\",\"key\":\"a\",\"value\":\"undefined\"}]}");
	r = door_request(d, "GET", "/opt/_design/all/_info", NULL, NULL);
	assert_non_null(strstr(r->body, "\"update_options\":[\"include_design\",\"local_seq\"]"));
}

#define LONG(n) "function (k, v, r) { return 'y'.repeat(" #n "); }"

static void
a_result_that_does_not_shrink_is_refused_past_couchdbs_limit(void **state)
{
	(void)state;
	door_create(d, "shrink");
	door_expect(d, "PUT", "/shrink/a", "{}", 201, "ok");
	door_expect(
		d, "PUT", "/shrink/_design/d",
		"{\"views\":{\"fits\":{\"map\":\"function (doc) { emit(1, 1); "
		"}\",\"reduce\":\"" LONG(4092) "\"},\"long\":{\"map\":\"function (doc) { emit(1, "
					       "1); }\",\"reduce\":\"" LONG(4093) "\"}}}",
		201, "ok");
	door_expect(d, "GET", "/shrink/_design/d/_view/fits", NULL, 200, "\"value\":\"yyy");
	door_expect(d, "GET", "/shrink/_design/d/_view/long", NULL, 200,
		    "{\"rows\":[\r\n{\"key\":null,\"error\":\"reduce_overflow_error\",\"reason\":"
		    "\"Reduce output must shrink more rapidly: input size: ");
	door_has(d, " output size: 4097\"}");
}

#define KNOWN "/known/_design/d/_view/v"

/* Asks twice, since the second answer is made of what the loop knows by then. */
static void
expect_known(const char *answer)
{
	expect_all(KNOWN, NULL, answer);
	expect_all(KNOWN, NULL, answer);
	expect_all(KNOWN "?limit=9", NULL, answer);
}

static void
what_a_loop_knows_of_a_view_goes_with_what_changes(void **state)
{
	const char *rev;

	(void)state;
	door_create(d, "known");
	door_expect(d, "PUT", "/known/a", "{\"k\":1}", 201, "ok");
	door_expect(d, "PUT", "/known/_design/d",
		    "{\"views\":{\"v\":{\"map\":\"function (doc) { emit(doc.k, 1); }\"}}}", 201,
		    "ok");
	expect_known("{\"total_rows\":1,\"offset\":0,\"rows\":["
		     "{\"id\":\"a\",\"key\":1,\"value\":1}]}");
	door_expect(d, "PUT", "/known/b", "{\"k\":2}", 201, "ok");
	expect_known("{\"total_rows\":2,\"offset\":0,\"rows\":["
		     "{\"id\":\"a\",\"key\":1,\"value\":1},{\"id\":\"b\",\"key\":2,\"value\":1}]}");
	door_expect(d, "GET", "/known/b", NULL, 200, "_rev");
	rev = format("%s", door_member(d, "_rev"));
	door_expect(d, "POST", "/known/_purge", format("{\"b\":[\"%s\"]}", rev), 201, "purged");
	expect_known("{\"total_rows\":1,\"offset\":0,\"rows\":["
		     "{\"id\":\"a\",\"key\":1,\"value\":1}]}");
	door_expect(d, "GET", "/known/_design/d", NULL, 200, "_rev");
	rev = format("%s", door_member(d, "_rev"));
	door_expect(d, "PUT", "/known/_design/d",
		    format("{\"_rev\":\"%s\",\"views\":{\"v\":{\"map\":"
			   "\"function (doc) { emit(doc.k, 2); }\"}}}",
			   rev),
		    201, "ok");
	expect_known("{\"total_rows\":1,\"offset\":0,\"rows\":["
		     "{\"id\":\"a\",\"key\":1,\"value\":2}]}");
	door_expect(d, "POST", "/known/_view_cleanup", NULL, 202, "ok");
	expect_known("{\"total_rows\":1,\"offset\":0,\"rows\":["
		     "{\"id\":\"a\",\"key\":1,\"value\":2}]}");
	door_expect(d, "GET", "/known/_design/d", NULL, 200, "_rev");
	rev = format("%s", door_member(d, "_rev"));
	door_expect(d, "DELETE", format("/known/_design/d?rev=%s", rev), NULL, 200, "ok");
	door_expect(d, "GET", KNOWN, NULL, 404, "deleted");
	door_expect(d, "DELETE", "/known", NULL, 200, "ok");
	door_create(d, "known");
	door_expect(d, "GET", KNOWN, NULL, 404, "missing");
	door_expect(d, "GET", "/v/_design/d/_view/none", NULL, 404, "missing_named_view");
	door_expect(d, "GET", MAP, NULL, 200, "rows");
	door_expect(d, "GET", "/v/_design/d/_view/none", NULL, 404, "missing_named_view");
}

static void
without_the_program_views_are_not_implemented(void **state)
{
	(void)state;
	door_expect(d, "GET", MAP, NULL, 501, "frond-js");
	door_expect(d, "GET", "/v/_design/d/_info", NULL, 200, "view_index");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_view_does_not_take_is_refused_in_couchdbs_words),
		cmocka_unit_test(answers_have_couchdbs_shape),
		cmocka_unit_test(keys_are_answered_in_their_order),
		cmocka_unit_test(several_questions_have_an_answer_each),
		cmocka_unit_test(built_in_reduces_are_known_by_their_beginning),
		cmocka_unit_test(values_that_do_not_add_up_are_errors),
		cmocka_unit_test(an_answer_is_known_by_its_etag),
		cmocka_unit_test(documents_come_with_their_rows),
		cmocka_unit_test(values_name_the_revision_that_is_shown),
		cmocka_unit_test(info_tells_how_far_views_are),
		cmocka_unit_test(a_row_that_is_too_long_is_told),
		cmocka_unit_test(what_a_partition_lacks_is_told_in_its_answers),
		cmocka_unit_test(options_say_what_is_mapped),
		cmocka_unit_test(a_result_that_does_not_shrink_is_refused_past_couchdbs_limit),
		cmocka_unit_test(the_raw_collation_is_erlangs),
		cmocka_unit_test(what_a_loop_knows_of_a_view_goes_with_what_changes),
		cmocka_unit_test(views_of_a_partitioned_database_are_by_partition),
	};
	const struct CMUnitTest without[] = {
		cmocka_unit_test(without_the_program_views_are_not_implemented),
	};

	return has_worker() ? cmocka_run_group_tests(tests, setup_views, teardown)
			    : cmocka_run_group_tests(without, setup_views, teardown);
}

/*
 * Every endpoint while memory is short: the first allocation of a request fails, in the next run
 * the second, and so on, until the request needs no more. Each run ends in an answer as usual, in a
 * 503 with a reason, or in the connection's end; the store is consistent afterwards, and a request
 * that has enough memory again is answered as before.
 */
#include "common.h"

#include <semaphore.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/mem.h"
#include "catalog/verify.h"
#include "http/http.h"
#include "kv/kv.h"

enum {
	RUNS_MAX = 4000, /* no request of this table needs as many allocations */
};

/* What the handler does to the next request, and what it found. */
static uint64_t (*_Atomic fail)(uint64_t nth) = mem_fail_after;
static _Atomic uint64_t fail_nth;
static _Atomic uint64_t made;
static sem_t returned; /* the answer may come before the handler returns */

static void
handle_without_memory(struct http_exchange *x, void *couch)
{
	(void)atomic_load (&fail)(atomic_load(&fail_nth));
	couch_handle(x, couch);
	atomic_store(&made, mem_fail_after(0));
	(void)sem_post(&returned);
}

/* The status of views: 200, or 501 where there is no worker. */
#define VIEWED 0

struct asked {
	const char *method;
	const char *target; /* with %llu for the number of the run, if it writes something new */
	const char *headers;
	const char *body;
	int status; /* with enough memory */
};

#define MULTIPART                                                                                  \
	"--b\r\nContent-Type: application/json\r\n\r\n{\"_attachments\":{\"f\":{\"follows\":true," \
	"\"content_type\":\"text/plain\",\"length\":5}}}\r\n--b\r\n\r\nhello\r\n--b--"

static const struct asked requests[] = {
	{ "GET", "/", NULL, NULL, 200 },
	{ "GET", "/_up", NULL, NULL, 200 },
	{ "GET", "/_uuids?count=10", NULL, NULL, 200 },
	{ "GET", "/_all_dbs", NULL, NULL, 200 },
	{ "POST", "/_dbs_info", NULL, "{\"keys\":[\"there\",\"nowhere\"]}", 200 },
	{ "GET", "/_active_tasks", NULL, NULL, 200 },
	{ "GET", "/_membership", NULL, NULL, 200 },
	{ "GET", "/_cluster_setup", NULL, NULL, 200 },
	{ "POST", "/_cluster_setup", NULL, "{\"action\":\"finish_cluster\"}", 400 },
	{ "GET", "/_session", NULL, NULL, 200 },
	{ "GET", "/_db_updates?limit=3", NULL, NULL, 200 },
	{ "GET", "/_node/_local/_config", NULL, NULL, 200 },
	{ "GET", "/_node/_local/_prometheus", NULL, NULL, 200 },
	{ "GET", "/_node/_local/_stats", NULL, NULL, 200 },
	{ "GET", "/_node/_local/_stats/couchdb/httpd/requests", NULL, NULL, 200 },
	{ "GET", "/_node/_local/_system", NULL, NULL, 200 },
	{ "GET", "/_node/_local/_versions", NULL, NULL, 200 },
	{ "PUT", "/_node/_local/_config/mine/key", NULL, "\"%llu\"", 200 },
	{ "PUT", "/new-%llu", NULL, NULL, 201 },
	{ "GET", "/there", NULL, NULL, 200 },
	{ "HEAD", "/there", NULL, NULL, 200 },
	{ "PUT", "/there/_security", NULL, "{\"admins\":{\"names\":[\"anna\"]}}", 200 },
	{ "GET", "/there/_security", NULL, NULL, 200 },
	{ "PUT", "/there/_revs_limit", NULL, "900", 200 },
	{ "POST", "/there/_ensure_full_commit", NULL, "{}", 201 },
	{ "POST", "/there/_compact", NULL, "{}", 202 },
	{ "PUT", "/there/put-%llu", NULL, "{\"a\":[1,2,{\"b\":\"c\"}],\"d\":1.5}", 201 },
	{ "POST", "/there", NULL, "{\"posted\":true}", 201 },
	{ "GET", "/there/old", NULL, NULL, 200 },
	{ "GET", "/there/old?revs=true&revs_info=true&conflicts=true&local_seq=true", NULL, NULL,
	  200 },
	{ "GET", "/there/old?open_revs=all", NULL, NULL, 200 },
	{ "GET", "/there/old?open_revs=all", "Accept: application/json\r\n", NULL, 200 },
	{ "GET", "/there/old?path=/large/3", NULL, NULL, 200 },
	{ "GET", "/there/old?paths=[\"/large/3\",\"/no\"]", NULL, NULL, 200 },
	{ "HEAD", "/there/old", NULL, NULL, 200 },
	{ "PATCH", "/there/patched", "Content-Type: application/merge-patch+json\r\n",
	  "{\"n\":%llu}", 200 },
	{ "COPY", "/there/old", "Destination: copy-%llu\r\n", NULL, 201 },
	{ "DELETE", "/there/missing?rev=1-0123456789abcdef0123456789abcdef", NULL, NULL, 404 },
	{ "PUT", "/there/_local/mark-%llu", NULL, "{\"seq\":1}", 201 },
	{ "GET", "/there/_local/mark", NULL, NULL, 200 },
	{ "PUT", "/there/_design/d-%llu", NULL, "{\"language\":\"javascript\"}", 201 },
	{ "PUT", "/there/form-%llu", "Content-Type: multipart/related; boundary=b\r\n", MULTIPART,
	  201 },
	{ "PUT", "/there/with-%llu/file", "Content-Type: text/plain\r\n", "hello", 201 },
	{ "GET", "/there/with/file", NULL, NULL, 200 },
	{ "GET", "/there/with/file", "Range: bytes=1-3\r\n", NULL, 206 },
	{ "GET", "/there/with?attachments=true", NULL, NULL, 200 },
	{ "GET", "/there/with?attachments=true", "Accept: multipart/related\r\n", NULL, 200 },
	{ "POST", "/there/_bulk_docs", NULL,
	  "{\"docs\":[{\"_id\":\"x-%llu\",\"a\":1},{\"a\":2},{\"_id\":\"old\"}]}", 201 },
	{ "POST", "/there/_bulk_docs", NULL,
	  "{\"new_edits\":false,\"docs\":[{\"_id\":\"branch\",\"_rev\":\"1-%032llu\"}]}", 201 },
	{ "POST", "/there/_bulk_get?revs=true", NULL,
	  "{\"docs\":[{\"id\":\"old\"},{\"id\":\"nowhere\"},{\"id\":\"with\"}]}", 200 },
	{ "POST", "/there/_revs_diff", NULL,
	  "{\"old\":[\"1-0123456789abcdef0123456789abcdef\",\"2-b\"],\"no\":[\"1-a\"]}", 200 },
	{ "POST", "/there/_missing_revs", NULL, "{\"old\":[\"3-b\"]}", 200 },
	{ "POST", "/there/_purge", NULL, "{\"old\":[\"9-0123456789abcdef0123456789abcdef\"]}",
	  201 },
	{ "GET", "/there/_purged_infos", NULL, NULL, 200 },
	{ "GET", "/there/_all_docs?include_docs=true", NULL, NULL, 200 },
	{ "GET", "/there/_all_docs?include_docs=true", "Accept-Encoding: gzip\r\n", NULL, 200 },
	{ "POST", "/there/_all_docs", NULL, "{\"keys\":[\"old\",\"with\",\"no\"]}", 200 },
	{ "POST", "/there/_all_docs/queries", NULL,
	  "{\"queries\":[{\"limit\":1},{\"keys\":[\"old\"]}]}", 200 },
	{ "GET", "/there/_design_docs", NULL, NULL, 200 },
	{ "GET", "/there/_local_docs", NULL, NULL, 200 },
	{ "GET", "/there/_changes", NULL, NULL, 200 },
	{ "GET", "/there/_changes?include_docs=true&style=all_docs&descending=true", NULL, NULL,
	  200 },
	{ "GET", "/there/_changes?feed=longpoll", NULL, NULL, 200 },
	{ "GET", "/there/_changes?feed=continuous&timeout=0", NULL, NULL, 200 },
	{ "POST", "/there/_changes?filter=_doc_ids", NULL, "{\"doc_ids\":[\"old\",\"with\"]}",
	  200 },
	{ "POST", "/there/_changes?filter=_selector", NULL,
	  "{\"selector\":{\"$or\":[{\"n\":{\"$gt\":1}},{\"d\":{\"$regex\":\"^a\"}}]}}", 200 },
	{ "POST", "/there/_find", NULL,
	  "{\"selector\":{\"n\":{\"$gt\":1},\"d\":{\"$regex\":\"^a\"}},\"fields\":[\"n\",\"_rev\"]"
	  "}",
	  200 },
	{ "POST", "/there/_explain", NULL, "{\"selector\":{\"n\":{\"$gt\":1}}}", 200 },
	/* Each in a database of its own: every later request to one has to keep its indexes. */
	{ "POST", "/indexed-%llu/_index", NULL,
	  "{\"index\":{\"fields\":[\"n\"]},\"ddoc\":\"n\",\"name\":\"n\"}", 200 },
	{ "POST", "/there/_index", NULL,
	  "{\"index\":{\"fields\":[\"n\"]},\"ddoc\":\"n\",\"name\":\"n\"}", 200 },
	{ "POST", "/there/_find", NULL, "{\"selector\":{\"n\":{\"$gt\":1}},\"sort\":[\"n\"]}",
	  200 },
	{ "POST", "/there/_find", NULL, "{\"selector\":{},\"aggregate\":{\"count\":true}}", 200 },
	{ "POST", "/there/_find", NULL,
	  "{\"selector\":{},\"aggregate\":{\"group_by\":[\"n\"],\"sum\":[\"n\"],"
	  "\"min\":[\"large\"],\"avg\":[\"n\"]}}",
	  200 },
	{ "POST", "/there/_explain", NULL,
	  "{\"selector\":{},\"aggregate\":{\"group_by\":[\"d\"],\"max\":[\"n\"]}}", 200 },
	{ "GET", "/there/_index", NULL, NULL, 200 },
	{ "GET", "/there/_index?sizes=true", NULL, NULL, 200 },
	{ "PUT", "/parts-%llu?partitioned=true", NULL, NULL, 201 },
	{ "PUT", "/parted/p:%llu", NULL, "{\"n\":2}", 201 },
	{ "POST", "/parted/_index", NULL,
	  "{\"index\":{\"fields\":[\"n\"]},\"ddoc\":\"n\",\"name\":\"n\"}", 200 },
	{ "POST", "/parted/_partition/p/_find", NULL,
	  "{\"selector\":{\"n\":{\"$gt\":1}},\"sort\":[\"n\"]}", 200 },
	{ "POST", "/parted/_partition/p/_find", NULL, "{\"selector\":{}}", 200 },
	{ "POST", "/parted/_partition/p/_explain", NULL, "{\"selector\":{\"n\":{\"$gt\":1}}}",
	  200 },
	{ "GET", "/parted/_partition/p/_index", NULL, NULL, 200 },
	{ "GET", "/viewed/_design/v/_view/v", NULL, NULL, VIEWED },
	{ "GET", "/viewed/_design/v/_view/v?reduce=false&include_docs=true&conflicts=true", NULL,
	  NULL, VIEWED },
	{ "GET", "/viewed/_design/v/_view/v?reduce=false&include_docs=true", NULL, NULL, VIEWED },
	{ "GET", "/viewed/_design/v/_view/own?group_level=1", NULL, NULL, VIEWED },
	{ "POST", "/viewed/_design/v/_view/v", NULL,
	  "{\"keys\":[\"old\",\"with\",3],\"group\":true}", VIEWED },
	{ "POST", "/viewed/_design/v/_view/v/queries", NULL,
	  "{\"queries\":[{\"limit\":1,\"reduce\":false},{\"group\":true,\"keys\":[\"old\"]}]}",
	  VIEWED },
	{ "GET", "/viewed/_design/v/_info", NULL, NULL, 200 },
	{ "POST", "/viewed/_view_cleanup", NULL, "{}", 202 },
	{ "GET", "/there/_shards", NULL, NULL, 501 },
	{ "GET", "/nowhere/doc", NULL, NULL, 404 },
};

/* What functions of design documents have a part in: asked where there is a worker. */
static const struct asked of_functions[] = {
	{ "PUT", "/ruled/%llu", NULL, "{\"n\":1}", 201 },
	{ "PUT", "/ruled/%llu", NULL, "{\"no\":1}", 403 },
	{ "POST", "/ruled/_bulk_docs", NULL, "{\"docs\":[{\"n\":1},{\"no\":1}]}", 201 },
	{ "POST", "/ruled/_bulk_docs", NULL,
	  "{\"new_edits\":false,\"docs\":[{\"_id\":\"old\",\"_revisions\":{\"start\":2,\"ids\":["
	  "\"%032llu\",\"0123456789abcdef0123456789abcdef\"]}}]}",
	  201 },
	{ "GET", "/ruled/_changes?limit=3&filter=d/all", NULL, NULL, 200 },
	{ "GET", "/ruled/_changes?limit=3&filter=_view&view=d/all", NULL, NULL, 200 },
	{ "POST", "/ruled/_design/d/_update/make/%llu", NULL, "text", 201 },
};

/* Puts the number of the run where the text has %llu or %032llu. */
static const char *
with_number(const char *text, unsigned long long number)
{
	static char texts[4][4096];
	static unsigned next;
	char *out = texts[next++ % 4];
	const char *at;
	int width;

	if (!text)
		return NULL;
	at = strstr(text, "%032llu");
	width = at ? 32 : 0;
	at = at ? at : strstr(text, "%llu");
	if (!at)
		return text;
	(void)snprintf(out, sizeof(texts[0]), "%.*s%0*llu%s", (int)(at - text), text, width, number,
		       at + (width ? 7 : 4));
	return out;
}

static void
make_database(const char *target)
{
	struct response r;

	atomic_store(&fail_nth, 0);
	client_close(d->client);
	d->client = client_open(d->port);
	client_send(d->client, "PUT", target, "Connection: close\r\n", NULL);
	r = client_receive_or_end(d->client, false);
	assert_int_equal(sem_wait(&returned), 0);
	assert_int_equal(r.status, 201);
	response_release(&r);
}

/* One request, whose `nth` allocation fails; 0: none does. Each gets a number of its own. */
static void
ask(const struct asked *a, uint64_t nth)
{
	static unsigned long long number;
	const char *headers = with_number(a->headers, number);
	char all[512];

	if (strncmp(a->target, "/indexed-", strlen("/indexed-")) == 0)
		make_database(with_number("/indexed-%llu", number));
	atomic_store(&fail_nth, nth);
	response_release(&d->last);
	(void)snprintf(all, sizeof(all), "%s%sConnection: close\r\n", headers ? headers : "",
		       a->body && !(headers && strstr(headers, "Content-Type:"))
			       ? "Content-Type: application/json\r\n"
			       : "");
	client_close(d->client);
	d->client = client_open(d->port);
	client_send(d->client, a->method, with_number(a->target, number), all,
		    with_number(a->body, number));
	d->last = client_receive_or_end(d->client, strcmp(a->method, "HEAD") == 0);
	assert_int_equal(sem_wait(&returned), 0);
	number++;
}

static int
status_of(const struct asked *a)
{
	if (a->status != VIEWED)
		return a->status;
	return getenv("FROND_JS_WORKER") ? 200 : 501;
}

static bool
answer_is_fine(const struct asked *a)
{
	const struct response *r = &d->last;

	if (r->broken || r->status == status_of(a))
		return true;
	if (r->status != 503)
		return false;
	return strcmp(a->method, "HEAD") == 0 ||
	       (strstr(r->body, "\"error\":\"") && strstr(r->body, "\"reason\":\""));
}

static void
check_store(void)
{
	const struct catalog_verify_options options = { 0 };
	struct catalog_verify_sum sum;
	struct err err = { 0 };
	struct kv_tx *tx;

	assert_int_equal(kv_begin(d->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(catalog_verify_store(tx, &options, &sum, &err), STATUS_OK);
	assert_int_equal(sum.findings, 0);
	kv_tx_free(tx);
}

static void
ask_each(const struct asked *table, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct asked *a = &table[i];
		uint64_t n = 0;
		uint64_t needed;

		do {
			n++;
			if (n == RUNS_MAX)
				fail_msg("%s %s: %llu allocations and more", a->method, a->target,
					 (unsigned long long)n);
			ask(a, n);
			needed = atomic_load(&made);
			if (!answer_is_fine(a))
				fail_msg("%s %s, allocation %llu: %d %s", a->method, a->target,
					 (unsigned long long)n, d->last.status, d->last.body);
		} while (needed >= n);
		ask(a, 0);
		if (d->last.broken || d->last.status != status_of(a))
			fail_msg("%s %s, afterwards: %d %s", a->method, a->target, d->last.status,
				 d->last.body ? d->last.body : "");
	}
}

static void
ask_all(void)
{
	ask_each(requests, sizeof(requests) / sizeof(requests[0]));
	if (getenv("FROND_JS_WORKER"))
		ask_each(of_functions, sizeof(of_functions) / sizeof(of_functions[0]));
	check_store();
}

static void
every_endpoint_survives_memory_that_runs_out_at_each_allocation(void **state)
{
	(void)state;
	atomic_store(&fail, mem_fail_after);
	ask_all();
}

static void
every_endpoint_survives_each_allocation_that_fails_alone(void **state)
{
	(void)state;
	atomic_store(&fail, mem_fail_only);
	ask_all();
}

static int
setup_documents(void **state)
{
	static const door_setting no_settings[] = { { NULL } };

	(void)state;
	assert_int_equal(sem_init(&returned, 0, 0), 0);
	d = door_start_handled(false, no_settings, NULL, handle_without_memory);
	door_create(d, "there");
	door_expect(d, "POST", "/there/_bulk_docs",
		    "{\"new_edits\":false,\"docs\":["
		    "{\"_id\":\"old\",\"_rev\":\"1-0123456789abcdef0123456789abcdef\",\"n\":1,"
		    "\"large\":[1,2,3,4]},"
		    "{\"_id\":\"old\",\"_rev\":\"1-0123456789abcdef0123456789abcdee\",\"n\":2},"
		    "{\"_id\":\"old\",\"_rev\":\"2-0123456789abcdef0123456789abcdee\",\"n\":2,"
		    "\"large\":[5,6,7,8]}]}",
		    201, "[]");
	door_expect(d, "PUT", "/there/with",
		    "{\"_attachments\":{\"file\":{\"content_type\":\"image/png\","
		    "\"data\":\"aGVsbG8=\"}}}",
		    201, "ok");
	door_expect(d, "PUT", "/there/patched", "{}", 201, "ok");
	door_expect(d, "PUT", "/there/_local/mark", "{}", 201, "ok");
	door_expect(d, "PUT", "/parted?partitioned=true", NULL, 201, "ok");
	door_create(d, "ruled");
	door_expect(
		d, "PUT", "/ruled/_design/d",
		"{\"validate_doc_update\":\"function(n) { if (n.no) throw({forbidden: 'no'}); }\","
		"\"filters\":{\"all\":\"function() { return true; }\"},"
		"\"views\":{\"all\":{\"map\":\"function() { emit(1); }\"}},"
		"\"updates\":{\"make\":\"function(doc, req) { return [{_id: req.id}, 'made']; "
		"}\"}}",
		201, "ok");
	door_create(d, "viewed");
	door_expect(d, "POST", "/viewed/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"old\"},{\"_id\":\"with\"},{\"_id\":\"x\"}]}", 201, "ok");
	door_expect(
		d, "PUT", "/viewed/_design/v",
		"{\"views\":{\"v\":{\"map\":\"(d) => { emit(d._id, 1); }\",\"reduce\":\"_count\"},"
		"\"own\":{\"map\":\"(d) => { emit(d._id, 1); }\","
		"\"reduce\":\"(k, v) => v.length\"}}}",
		201, "ok");
	for (unsigned i = 0; i < 11; i++) /* the requests above */
		assert_int_equal(sem_wait(&returned), 0);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_endpoint_survives_memory_that_runs_out_at_each_allocation),
		cmocka_unit_test(every_endpoint_survives_each_allocation_that_fails_alone),
	};

	return cmocka_run_group_tests(tests, setup_documents, teardown);
}

/* _changes: rows, parameters, and feeds that wait. */
#include "common.h"

#include "base/clock.h"

enum {
	LINE_MS = 10000,
};

/* The first row's or the end's sequence of the last answer. */
static const char *
last_seq(void)
{
	return door_member(d, "last_seq");
}

static void
rows_come_one_a_line(void **state)
{
	char *again;

	(void)state;
	door_create(d, "rows");
	door_expect(d, "GET", "/rows/_changes", NULL, 200, "{\"results\":[\n\n],\n\"last_seq\":\"");
	door_has(d, "\",\"pending\":0}\n");
	door_expect(d, "PUT", "/rows/a", "{}", 201, "ok");
	door_expect(d, "PUT", "/rows/b", "{\"n\":1}", 201, "ok");
	door_expect(d, "DELETE", format("/rows/b?rev=%s", door_member(d, "rev")), NULL, 200, "ok");
	door_expect(d, "GET", "/rows/_changes", NULL, 200, "{\"results\":[\n{\"seq\":\"");
	door_has(d,
		 "\",\"id\":\"a\",\"changes\":[{\"rev\":\"1-967a00dff5e02add41819138abb3284d\"}]}"
		 ",\r\n{\"seq\":\"");
	door_has(d, "\",\"id\":\"b\",\"changes\":[{\"rev\":\"2-");
	door_has(d, "\"}],\"deleted\":true}\n],\n\"last_seq\":\"");
	/* A repeated read of a quiet database is the same. */
	again = strdup(d->last.body);
	assert_non_null(again);
	door_expect_body(d, "GET", "/rows/_changes", NULL, 200,
			 format("%.*s", (int)strlen(again) - 1, again));
	free(again);
	assert_int_equal(strlen(last_seq()), 26);
	door_expect(d, "GET", format("/rows/_changes?since=%s", last_seq()), NULL, 200,
		    "{\"results\":[\n\n],");
	door_expect(d, "GET", "/rows/_changes?since=now", NULL, 200, "{\"results\":[\n\n],");
	door_expect(d, "GET", format("/rows/_changes?since=%%22%s%%22", last_seq()), NULL, 200,
		    "{\"results\":[\n\n],");
	door_request(d, "HEAD", "/rows/_changes", NULL, NULL);
	assert_int_equal(d->last.status, 200);
}

static void
limit_tells_what_is_pending(void **state)
{
	(void)state;
	door_create(d, "limit");
	door_expect(d, "POST", "/limit/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"a\"},{\"_id\":\"b\"},{\"_id\":\"c\"}]}", 201, "ok");
	door_expect(d, "GET", "/limit/_changes?limit=0", NULL, 200, "{\"results\":[\n\n],");
	door_has(d, "\"pending\":3}");
	door_expect(d, "GET", "/limit/_changes?limit=2", NULL, 200, "\"pending\":1}");
	door_has(d, "\"id\":\"b\"");
	door_has_not(d, "\"id\":\"c\"");
	door_expect(d, "GET", format("/limit/_changes?limit=1&since=%s", last_seq()), NULL, 200,
		    "\"id\":\"c\"");
	door_has(d, "\"pending\":0}");
	door_expect(d, "GET", "/limit/_changes?descending=true&limit=1", NULL, 200, "\"id\":\"c\"");
	door_has(d, "\"pending\":2}");
	door_expect(d, "GET", "/limit/_changes?descending=true", NULL, 200, "\"id\":\"a\"");
	assert_true(strstr(d->last.body, "\"id\":\"c\"") < strstr(d->last.body, "\"id\":\"a\""));
	door_expect(d, "GET", "/limit/_changes?seq_interval=10", NULL, 200,
		    "{\"seq\":null,\"id\":\"b\"");
	door_has_not(d, "{\"seq\":null,\"id\":\"a\"");
}

static void
parameters_are_checked(void **state)
{
	(void)state;
	door_create(d, "params");
	door_expect(
		d, "GET", "/params/_changes?since=nonsense", NULL, 400,
		"{\"error\":\"bad_request\",\"reason\":\"Malformed sequence supplied in 'since' "
		"parameter.\"}");
	door_expect(d, "GET", "/params/_changes?heartbeat=0", NULL, 400,
		    "The heartbeat value should be a positive integer (in milliseconds).");
	door_expect(d, "GET", "/params/_changes?heartbeat=x", NULL, 400,
		    "Invalid heartbeat value.");
	door_expect(d, "GET", "/params/_changes?limit=x", NULL, 400,
		    "The limit parameter should be a non-negative integer");
	door_expect(d, "GET", "/params/_changes?limit=-1", NULL, 400,
		    "The limit value should be a non-negative integer");
	door_expect(d, "GET", "/params/_changes?timeout=-1", NULL, 400, "The timeout value");
	door_expect(d, "GET", "/params/_changes?feed=odd", NULL, 400, "Supported `feed` types:");
	door_expect(d, "GET", "/params/_changes?style=odd", NULL, 400, "`style`");
	door_expect(d, "GET", "/params/_changes?seq_interval=0", NULL, 400, "invalid_seq_interval");
	door_expect(d, "GET", "/none/_changes", NULL, 404, "Database does not exist.");
	door_request(d, "POST", "/params/_changes", "Content-Type: text/plain\r\n", "{}");
	assert_int_equal(d->last.status, 415);
	door_expect(d, "POST", "/params/_changes", "", 200, "{\"results\":[\n\n],");
	door_expect(d, "POST", "/params/_changes", "{}", 200, "{\"results\":[\n\n],");
}

/* Sequences of CouchDB 3, as they come in its answers and in checkpoints of replications. */
#define COUCHDB_TERM                                                                               \
	"g1AAAABQeJxLTEpOSU1Lz8jMys7JzcsvKCwqLikt"                                                 \
	"K6-orErEKZOXn5efkuqQl5-RX1wCAIjeG50"
#define COUCHDB_SEQ "12-" COUCHDB_TERM

static void
whoever_has_followed_couchdb_begins_at_0(void **state)
{
	static const char *const good[] = { COUCHDB_SEQ, "%22" COUCHDB_SEQ "%22",
					    "0-" COUCHDB_TERM };
	static const char *const bad[] = { "12",       "12-",       "-g1AA",
					   "12-abc",   "x-g1AA",    "12-g1*A",
					   "12-g1AA-", "12-g1%00A", COUCHDB_TERM };

	(void)state;
	door_create(d, "followed");
	door_expect(d, "PUT", "/followed/a", "{}", 201, "ok");
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		door_expect(d, "GET", format("/followed/_changes?since=%s", good[i]), NULL, 200,
			    "\"id\":\"a\"");
		door_expect(d, "GET", format("/followed/_changes?last-event-id=%s", good[i]), NULL,
			    200, "\"id\":\"a\"");
		door_expect(d, "POST", format("/followed/_changes?feed=longpoll&since=%s", good[i]),
			    "{}", 200, "\"id\":\"a\"");
		door_expect(
			d, "GET",
			format("/followed/_changes?feed=continuous&timeout=1&since=%s", good[i]),
			NULL, 200, "\"id\":\"a\"");
		door_expect(d, "GET", format("/_db_updates?since=%s", good[i]), NULL, 200,
			    "\"db_name\":\"followed\"");
	}
	expect_as("Last-Event-ID: \"" COUCHDB_SEQ "\"\r\n", "GET",
		  "/followed/_changes?feed=eventsource&timeout=1", NULL, 200, "\"id\":\"a\"");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		door_expect(d, "GET", format("/followed/_changes?since=%s", bad[i]), NULL, 400,
			    "Malformed sequence supplied in 'since' parameter.");
		door_expect(d, "GET", format("/_db_updates?since=%s", bad[i]), NULL, 400,
			    "Malformed sequence supplied in 'since' parameter.");
	}
}

static void
documents_and_leaves_are_told_on_demand(void **state)
{
	(void)state;
	door_create(d, "more");
	door_expect(d, "POST", "/more/_bulk_docs",
		    "{\"new_edits\":false,\"docs\":[{\"_id\":\"a\",\"_rev\":\"1-a\",\"n\":1},"
		    "{\"_id\":\"_design/x\",\"_rev\":\"1-x\"},{\"_id\":\"t\",\"_rev\":\"1-t\","
		    "\"_deleted\":true},{\"_id\":\"a\",\"_rev\":\"1-b\",\"n\":2}]}",
		    201, "[]");
	door_expect(d, "GET", "/more/_changes", NULL, 200,
		    "\"id\":\"a\",\"changes\":[{\"rev\":\"1-b\"}]}");
	door_expect(d, "GET", "/more/_changes?style=all_docs", NULL, 200,
		    "\"id\":\"a\",\"changes\":[{\"rev\":\"1-b\"},{\"rev\":\"1-a\"}]}");
	door_expect(d, "GET", "/more/_changes?include_docs=true&conflicts=true", NULL, 200,
		    "\"doc\":{\"_id\":\"a\",\"_rev\":\"1-b\",\"_conflicts\":[\"1-a\"],\"n\":2}}");
	door_has(d, "\"deleted\":true,\"doc\":{\"_id\":\"t\",\"_rev\":\"1-t\",\"_deleted\":true}}");
	door_expect(d, "GET", "/more/_changes?filter=_doc_ids&doc_ids=[%22t%22,%22z%22]", NULL, 200,
		    "\"id\":\"t\"");
	door_has_not(d, "\"id\":\"a\"");
	door_expect(d, "POST", "/more/_changes?filter=_doc_ids", "{\"doc_ids\":[\"a\"]}", 200,
		    "\"id\":\"a\"");
	door_has_not(d, "\"id\":\"t\"");
	door_expect(d, "GET", "/more/_changes?filter=_design", NULL, 200, "\"id\":\"_design/x\"");
	door_has_not(d, "\"id\":\"t\"");
}

/* A second connection that listens while the first one writes. */
static struct client *
listen_to(const char *target, const char *headers)
{
	struct client *c = client_open(d->port);

	client_send(c, "GET", target, headers, NULL);
	return c;
}

static void
expect_head(struct client *c, const char *type)
{
	struct response head = client_receive_head(c);

	assert_int_equal(head.status, 200);
	assert_string_equal(response_header(&head, "Content-Type"), type);
	response_release(&head);
}

static void
expect_line(struct client *c, const char *text)
{
	const char *line = client_line(c, LINE_MS);

	if (!line || !strstr(line, text))
		fail_msg("expected a line with %s, got %s", text, line ? line : "none");
}

static void
longpoll_returns_at_once_when_there_is_something(void **state)
{
	(void)state;
	door_create(d, "poll");
	door_expect(d, "PUT", "/poll/a", "{}", 201, "ok");
	door_expect(d, "PUT", "/poll/b", "{}", 201, "ok");
	door_expect(d, "GET", "/poll/_changes?feed=longpoll", NULL, 200, "\"id\":\"b\"");
	/* Never short of the limit while more remain. */
	door_expect(d, "GET", "/poll/_changes?feed=longpoll&limit=1", NULL, 200, "\"pending\":1}");
}

static void
longpoll_wakes_at_the_first_change(void **state)
{
	struct client *c;
	uint64_t begin;

	(void)state;
	door_create(d, "wake");
	c = listen_to("/wake/_changes?feed=longpoll&since=now", NULL);
	expect_head(c, "application/json");
	expect_line(c, "{\"results\":[");
	assert_null(client_line(c, 100));
	begin = clock_mono_ns();
	door_expect(d, "PUT", "/wake/a", "{}", 201, "ok");
	expect_line(c, "\"id\":\"a\",\"changes\":[{\"rev\":\"1-");
	expect_line(c, "],");
	expect_line(c, "\"pending\":0}");
	assert_null(client_line(c, LINE_MS));
	assert_true(client_ended(c));
	assert_true(clock_mono_ns() - begin < 5000 * CLOCK_NS_PER_MS);
	client_close(c);
}

static void
longpoll_ends_at_its_timeout(void **state)
{
	uint64_t begin = clock_mono_ns();

	(void)state;
	door_create(d, "time");
	door_expect(d, "GET", "/time/_changes?feed=longpoll&timeout=200", NULL, 200,
		    "{\"results\":[\n\n],\n\"last_seq\":\"");
	assert_true(clock_mono_ns() - begin >= 190 * CLOCK_NS_PER_MS);
}

static void
heartbeat_is_a_newline(void **state)
{
	struct client *c;

	(void)state;
	door_create(d, "heart");
	c = listen_to("/heart/_changes?feed=continuous&heartbeat=100&timeout=1", NULL);
	expect_head(c, "application/json");
	for (int i = 0; i < 3; i++)
		assert_string_equal(client_line(c, LINE_MS), "");
	door_expect(d, "PUT", "/heart/a", "{}", 201, "ok");
	for (;;) {
		const char *line = client_line(c, LINE_MS);

		assert_non_null(line);
		if (line[0]) {
			assert_non_null(strstr(line, "\"id\":\"a\""));
			break;
		}
	}
	assert_false(client_ended(c));
	client_close(c);
}

static void
continuous_feed_misses_nothing(void **state)
{
	enum {
		DOCS = 300
	};
	bool seen[DOCS] = { false };
	struct client *c;
	int count = 0;

	(void)state;
	door_create(d, "cont");
	c = listen_to("/cont/_changes?feed=continuous&since=0&include_docs=true&timeout=60000",
		      NULL);
	for (int i = 0; i < DOCS; i++)
		door_expect(d, "PUT", format("/cont/%d", i), "{}", 201, "ok");
	expect_head(c, "application/json");
	while (count < DOCS) {
		const char *line = client_line(c, LINE_MS);
		const char *id = line ? strstr(line, "\"id\":\"") : NULL;
		int n;

		assert_non_null(id);
		n = atoi(id + 6);
		assert_in_range(n, 0, DOCS - 1);
		assert_false(seen[n]);
		seen[n] = true;
		count++;
	}
	client_close(c);

	c = listen_to("/cont/_changes?feed=continuous&limit=2", NULL);
	expect_head(c, "application/json");
	expect_line(c, "{\"seq\":\"");
	expect_line(c, "{\"seq\":\"");
	expect_line(c, "{\"last_seq\":\"");
	assert_null(client_line(c, LINE_MS));
	assert_true(client_ended(c));
	client_close(c);
}

static void
eventsource_names_its_sequences(void **state)
{
	struct client *c;
	char header[128];

	(void)state;
	door_create(d, "event");
	door_expect(d, "PUT", "/event/a", "{}", 201, "ok");
	c = listen_to("/event/_changes?feed=eventsource&heartbeat=50", NULL);
	expect_head(c, "text/event-stream");
	expect_line(c, "data: {\"seq\":\"");
	expect_line(c, "id: \"");
	assert_string_equal(client_line(c, LINE_MS), "");
	assert_string_equal(client_line(c, LINE_MS), "event: heartbeat");
	assert_string_equal(client_line(c, LINE_MS), "data: ");
	assert_string_equal(client_line(c, LINE_MS), "");
	client_close(c);

	/* A browser that reconnects says what it had last, as it was told: quoted. */
	door_expect(d, "GET", "/event/_changes", NULL, 200, "last_seq");
	(void)snprintf(header, sizeof(header), "Last-Event-ID: \"%s\"\r\n", last_seq());
	c = listen_to("/event/_changes?feed=eventsource&since=0&timeout=100", header);
	expect_head(c, "text/event-stream");
	assert_null(client_line(c, LINE_MS));
	assert_true(client_ended(c));
	client_close(c);
}

static void
feed_of_a_deleted_database_breaks_off(void **state)
{
	struct client *c;

	(void)state;
	door_create(d, "gone");
	c = listen_to("/gone/_changes?feed=continuous&heartbeat=60000", NULL);
	expect_head(c, "application/json");
	door_expect(d, "DELETE", "/gone", NULL, 200, "ok");
	assert_null(client_line(c, LINE_MS));
	assert_false(client_ended(c));
	client_close(c);
}

/* Last: it stops the server that the group shares, and starts another. */
static void
a_stopping_server_ends_its_feeds_properly(void **state)
{
	struct client *c;

	door_create(d, "stop");
	c = listen_to("/stop/_changes?feed=longpoll&heartbeat=60000", NULL);
	expect_head(c, "application/json");
	expect_line(c, "{\"results\":[");
	door_stop(d);
	expect_line(c, "");
	expect_line(c, "],");
	expect_line(c, "\"last_seq\":\"");
	assert_null(client_line(c, LINE_MS));
	assert_true(client_ended(c));
	client_close(c);
	(void)setup(state);
}

/* A Sequence beyond every change would silence its reader for ever. */
static void
since_beyond_every_change_is_refused(void **state)
{
	static const char *const feeds[] = { "normal", "longpoll", "continuous", "eventsource" };
	static const char *const beyond[] = {
		"007f7f7f7f7f7f7f7f7f7f7f7f", /* of a commit that is to come */
		"ff000000000000000000000000", /* of an Incarnation that is to come */
	};
	char newest[64];

	(void)state;
	door_create(d, "beyond");
	door_expect(d, "PUT", "/beyond/a", "{}", 201, "ok");
	door_expect(d, "GET", "/beyond/_changes", NULL, 200, "last_seq");
	(void)snprintf(newest, sizeof(newest), "%s", door_member(d, "last_seq"));
	for (size_t i = 0; i < 2; i++) {
		for (size_t j = 0; j < sizeof(feeds) / sizeof(feeds[0]); j++)
			door_expect(d, "GET",
				    format("/beyond/_changes?feed=%s&timeout=100&since=%s",
					   feeds[j], beyond[i]),
				    NULL, 400, "lies beyond every change");
		door_has(d, "\"error\":\"bad_request\"");
		door_expect(d, "POST",
			    format("/beyond/_changes?filter=_doc_ids&since=%s", beyond[i]),
			    "{\"doc_ids\":[\"a\"]}", 400, "lies beyond every change");
		expect_as(format("Last-Event-ID: %s\r\n", beyond[i]), "GET",
			  "/beyond/_changes?feed=eventsource&timeout=100", NULL, 400,
			  "lies beyond every change");
	}
	door_expect(d, "GET", format("/beyond/_changes?since=%s", newest), NULL, 200,
		    "{\"results\":[\n\n],");
	/* What somebody else has just been told is a place to go on from, in any database. */
	door_create(d, "later");
	door_expect(d, "PUT", "/later/a", "{}", 201, "ok");
	door_expect(d, "GET", "/later", NULL, 200, "update_seq");
	(void)snprintf(newest, sizeof(newest), "%s", door_member(d, "update_seq"));
	door_expect(d, "GET", format("/beyond/_changes?since=%s", newest), NULL, 200, "last_seq");
	door_expect(d, "GET", format("/beyond/_changes?feed=longpoll&timeout=50&since=%s", newest),
		    NULL, 200, "last_seq");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_come_one_a_line),
		cmocka_unit_test(limit_tells_what_is_pending),
		cmocka_unit_test(parameters_are_checked),
		cmocka_unit_test(whoever_has_followed_couchdb_begins_at_0),
		cmocka_unit_test(documents_and_leaves_are_told_on_demand),
		cmocka_unit_test(longpoll_returns_at_once_when_there_is_something),
		cmocka_unit_test(longpoll_wakes_at_the_first_change),
		cmocka_unit_test(longpoll_ends_at_its_timeout),
		cmocka_unit_test(heartbeat_is_a_newline),
		cmocka_unit_test(continuous_feed_misses_nothing),
		cmocka_unit_test(eventsource_names_its_sequences),
		cmocka_unit_test(feed_of_a_deleted_database_breaks_off),
		cmocka_unit_test(a_stopping_server_ends_its_feeds_properly),
		cmocka_unit_test(since_beyond_every_change_is_refused),
	};

	return cmocka_run_group_tests_name("couch changes", tests, setup, teardown);
}

/* _db_updates: what happens to databases. */
#include "common.h"

#include "base/clock.h"

enum {
	LINE_MS = 10000,
};

/* "a+ a~ b-": the rows of the last answer about databases that begin with this. */
static const char *
told(const char *prefix)
{
	static char text[4096];
	const char *at = d->last.body;
	size_t len = 0;

	text[0] = '\0';
	while ((at = strstr(at, "{\"db_name\":\"")) && len < sizeof(text) - 64) {
		const char *name = at + 12;
		const char *end = strchr(name, '"');
		const char *type = strstr(end, "\"type\":\"") + 8;

		at = end;
		if (strncmp(name, prefix, strlen(prefix)) != 0)
			continue;
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.*s%c", len ? " " : "",
					(int)(end - name), name,
					*type == 'c'   ? '+'
					: *type == 'd' ? '-'
						       : '~');
	}
	return text;
}

static const char *
last_seq(void)
{
	return door_member(d, "last_seq");
}

static void
databases_are_told_of_in_order(void **state)
{
	char since[32];

	(void)state;
	door_create(d, "ord_a");
	door_create(d, "ord_b");
	door_expect(d, "PUT", "/ord_a/x", "{}", 201, "ok");
	door_expect(d, "GET", "/_db_updates", NULL, 200, "{\"results\":[\n{\"db_name\":\"");
	assert_string_equal(told("ord_"), "ord_a+ ord_b+ ord_a~");
	door_has(d, "\"type\":\"updated\",\"seq\":\"");
	(void)snprintf(since, sizeof(since), "%s", last_seq());
	/* Its sequence is the database's own. */
	door_expect(d, "GET", "/ord_a", NULL, 200, format("\"update_seq\":\"%s\"", since));
	door_expect(d, "GET", format("/_db_updates?since=%s", since), NULL, 200,
		    format("{\"results\":[\n\n],\n\"last_seq\":\"%s\"}\n", since));
	door_expect(d, "GET", "/_db_updates?since=now", NULL, 200,
		    format("{\"results\":[\n\n],\n\"last_seq\":\"%s\"}\n", since));

	door_expect(d, "PUT", "/ord_b/x", "{}", 201, "ok");
	door_expect(d, "PUT", "/ord_b/y", "{}", 201, "ok");
	door_expect(d, "DELETE", "/ord_a", NULL, 200, "ok");
	door_expect(d, "GET", format("/_db_updates?since=%s", since), NULL, 200, "last_seq");
	assert_string_equal(told("ord_"), "ord_b~ ord_a-");
	door_expect(d, "GET", "/_db_updates?descending=true&limit=1", NULL, 200, "last_seq");
	assert_string_equal(told(""), "ord_a-");
	door_expect(d, "GET", format("/_db_updates?since=%s&limit=1", since), NULL, 200,
		    "last_seq");
	assert_string_equal(told(""), "ord_b~");
	door_expect(d, "GET", format("/_db_updates?since=%s", last_seq()), NULL, 200, "last_seq");
	assert_string_equal(told(""), "ord_a-");
}

static void
parameters_are_checked(void **state)
{
	(void)state;
	door_expect(d, "GET", "/_db_updates?feed=odd", NULL, 400, "Supported `feed` types:");
	door_expect(d, "GET", "/_db_updates?since=odd", NULL, 400, "Malformed sequence");
	door_expect(d, "GET", "/_db_updates?timeout=-1", NULL, 400, "The timeout value");
	door_expect(d, "POST", "/_db_updates", "{}", 405, "Only GET allowed");
	door_expect(d, "GET", "/_db_updates/x", NULL, 404, "not_found");
}

static struct client *
listen_to(const char *target, const char *type)
{
	struct client *c = client_open(d->port);
	struct response head;

	client_send(c, "GET", target, NULL, NULL);
	head = client_receive_head(c);
	assert_int_equal(head.status, 200);
	assert_string_equal(response_header(&head, "Content-Type"), type);
	response_release(&head);
	return c;
}

static void
expect_line(struct client *c, const char *text)
{
	const char *line = client_line(c, LINE_MS);

	if (!line || !strstr(line, text))
		fail_msg("expected a line with %s, got %s", text, line ? line : "none");
}

static void
longpoll_wakes_at_the_first_event(void **state)
{
	struct client *c = listen_to("/_db_updates?feed=longpoll&since=now", "application/json");
	uint64_t begin;

	(void)state;
	expect_line(c, "{\"results\":[");
	assert_null(client_line(c, 100));
	begin = clock_mono_ns();
	door_create(d, "poll");
	expect_line(c, "{\"db_name\":\"poll\",\"type\":\"created\",\"seq\":\"");
	expect_line(c, "],");
	expect_line(c, "\"last_seq\":\"");
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
	door_expect(d, "GET", "/_db_updates?feed=longpoll&since=now&timeout=200", NULL, 200,
		    "{\"results\":[\n\n],\n\"last_seq\":\"");
	assert_true(clock_mono_ns() - begin >= 190 * CLOCK_NS_PER_MS);
}

/* Databases that come later are watched as those that were there; heartbeats between are passed. */
static void
continuous_feed_follows_old_and_new_databases(void **state)
{
	struct client *c;

	(void)state;
	door_create(d, "cont_old");
	c = listen_to("/_db_updates?feed=continuous&since=now&timeout=60000", "application/json");
	door_expect(d, "PUT", "/cont_old/x", "{}", 201, "ok");
	expect_line(c, "{\"db_name\":\"cont_old\",\"type\":\"updated\"");
	door_create(d, "cont_new");
	expect_line(c, "{\"db_name\":\"cont_new\",\"type\":\"created\"");
	door_expect(d, "PUT", "/cont_new/x", "{}", 201, "ok");
	expect_line(c, "{\"db_name\":\"cont_new\",\"type\":\"updated\"");
	door_expect(d, "DELETE", "/cont_old", NULL, 200, "ok");
	expect_line(c, "{\"db_name\":\"cont_old\",\"type\":\"deleted\"");
	door_create(d, "cont_old");
	expect_line(c, "{\"db_name\":\"cont_old\",\"type\":\"created\"");
	client_close(c);
}

/* Of many writes to one database the feed tells at least the last. */
static void
no_database_is_missed_under_load(void **state)
{
	enum {
		DATABASES = 20
	};
	bool seen[DATABASES] = { false };
	struct client *c;
	int count = 0;

	(void)state;
	for (int i = 0; i < DATABASES; i++)
		door_create(d, format("load_%d", i));
	c = listen_to("/_db_updates?feed=continuous&since=now&timeout=60000", "application/json");
	for (int i = 0; i < 10 * DATABASES; i++)
		door_expect(d, "PUT", format("/load_%d/%d", i % DATABASES, i), "{}", 201, "ok");
	while (count < DATABASES) {
		const char *line = client_line(c, LINE_MS);
		const char *name = line ? strstr(line, "\"load_") : NULL;
		int n;

		assert_non_null(name);
		assert_non_null(strstr(line, "\"type\":\"updated\""));
		n = atoi(name + 6);
		assert_in_range(n, 0, DATABASES - 1);
		count += !seen[n];
		seen[n] = true;
	}
	client_close(c);
}

static void
eventsource_has_events_and_heartbeats(void **state)
{
	struct client *c = listen_to("/_db_updates?feed=eventsource&since=now&heartbeat=100",
				     "text/event-stream");

	(void)state;
	assert_string_equal(client_line(c, LINE_MS), "event: heartbeat");
	assert_string_equal(client_line(c, LINE_MS), "data: ");
	assert_string_equal(client_line(c, LINE_MS), "");
	door_create(d, "source");
	for (;;) {
		const char *line = client_line(c, LINE_MS);

		assert_non_null(line);
		if (strstr(line, "data: {\"db_name\":\"source\",\"type\":\"created\",\"seq\":\""))
			break;
	}
	expect_line(c, "id: \"");
	client_close(c);
}

static void
only_administrators_are_told(void **state)
{
	struct door *open = d;

	(void)state;
	d = door_start(true);
	door_expect(d, "GET", "/_db_updates", NULL, 401, "You are not a server admin.");
	door_request(d, "GET", "/_db_updates", "Authorization: Basic YWRtaW46c2VjcmV0\r\n", NULL);
	assert_int_equal(d->last.status, 200);
	assert_string_equal(d->last.body,
			    "{\"results\":[\n\n],\n\"last_seq\":\"00000000000000000000000000\"}\n");
	door_stop(d);
	d = open;
}

static void
since_beyond_every_event_is_refused(void **state)
{
	static const char *const feeds[] = { "normal", "longpoll", "continuous", "eventsource" };

	(void)state;
	door_create(d, "reached");
	for (size_t i = 0; i < sizeof(feeds) / sizeof(feeds[0]); i++) {
		door_expect(
			d, "GET",
			format("/_db_updates?feed=%s&timeout=100&since=007f7f7f7f7f7f7f7f7f7f7f7f",
			       feeds[i]),
			NULL, 400, "lies beyond every event");
		door_expect(
			d, "GET",
			format("/_db_updates?feed=%s&timeout=100&since=ff000000000000000000000000",
			       feeds[i]),
			NULL, 400, "lies beyond every event");
	}
	door_expect(d, "GET", "/_db_updates", NULL, 200, "last_seq");
	door_expect(d, "GET", format("/_db_updates?feed=longpoll&timeout=50&since=%s", last_seq()),
		    NULL, 200, "last_seq");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(databases_are_told_of_in_order),
		cmocka_unit_test(parameters_are_checked),
		cmocka_unit_test(longpoll_wakes_at_the_first_event),
		cmocka_unit_test(longpoll_ends_at_its_timeout),
		cmocka_unit_test(continuous_feed_follows_old_and_new_databases),
		cmocka_unit_test(no_database_is_missed_under_load),
		cmocka_unit_test(eventsource_has_events_and_heartbeats),
		cmocka_unit_test(only_administrators_are_told),
		cmocka_unit_test(since_beyond_every_event_is_refused),
	};

	return cmocka_run_group_tests_name("couch database updates", tests, setup, teardown);
}

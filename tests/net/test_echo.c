/* Two protocols in one process, each on a port of its own: HTTP and a line echo. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../http/fixture.h"
#include "base/clock.h"
#include "echo.h"
#include "net/conn.h"

#define BUSY STR("too many\n")

enum {
	LINES = 20000,
	ENDLESS = 100 * LINES, /* more than any kernel keeps for a reader */
	CLIENTS = 200,
	CONNECTIONS = 6,
	SOON_MS = 100,
};

struct echo {
	struct fixture http;
	struct net_stream_options options;
	uint16_t port;
	unsigned loops; /* of the service; 0: all */
};

static void
hello(struct http_exchange *x, void *arg)
{
	(void)arg;
	assert_int_equal(http_send(x, STR("hello\n")), STATUS_OK);
}

static void
echo_start(struct echo *e, const struct server_config *config)
{
	struct server_config own = config ? *config : (struct server_config){ 0 };
	struct net_stream_options options = e->options;
	struct err err = { 0 };
	struct net_host *host;
	unsigned service;

	*e = (struct echo){ .options = options, .loops = e->loops };
	e->options.serve = echo_serve;
	e->options.refusal = BUSY;
	fixture_make(&e->http, &own, hello);
	host = server_host(e->http.server);
	assert_int_equal(
		net_host_add_service(host, &net_stream_protocol, &e->options, &service, &err),
		STATUS_OK);
	if (e->loops)
		net_host_narrow(host, service, e->loops);
	assert_int_equal(net_host_listen(host, service, "127.0.0.1:0", &e->port, &err), STATUS_OK);
	fixture_run(&e->http);
}

static void
expect(struct client *c, const char *text)
{
	size_t n = strlen(text);

	while (c->in.len < n)
		assert_true(client_receive(c));
	assert_memory_equal(c->in.ptr, text, n);
	buf_consume(&c->in, n);
}

static void
expect_end(struct client *c)
{
	while (client_receive(c))
		;
	assert_int_equal(c->in.len, 0);
	assert_false(c->reset);
}

static void
ask(struct client *c, const char *line, const char *answer)
{
	assert_true(client_send_cstr(c, line));
	expect(c, answer);
}

/* ---- Tests ---- */

static void
who_rests_keeps_nobody_from_being_alone(void **state)
{
	const struct server_config config = { .loops = 1 };
	struct client one, resting;
	struct echo e = { 0 };

	(void)state;
	echo_start(&e, &config);
	client_open_port(&one, e.port, 0);
	client_open_port(&resting, e.port, 0);
	assert_true(client_send_cstr(&resting, "rest\n"));
	usleep(SOON_MS * 1000);
	ask(&one, "alone\n", "no\n");
	usleep(2 * NET_ALONE_MS * 1000);
	ask(&one, "alone\n", "yes\n");
	/* What it asks for then is a request. */
	ask(&resting, "rest\n", "rested\n");
	ask(&one, "alone\n", "no\n");
	usleep(2 * NET_ALONE_MS * 1000);
	ask(&one, "alone\n", "yes\n");
	/* One that waits for something is served all the time. */
	ask(&resting, "x\n", "rested\nx\n");
	assert_true(client_send_cstr(&resting, "wait\n"));
	usleep(2 * NET_ALONE_MS * 1000);
	ask(&one, "alone\n", "no\n");
	usleep(2 * NET_ALONE_MS * 1000);
	ask(&one, "alone\n", "no\n");
	client_close(&resting);
	client_close(&one);
	fixture_stop(&e.http);
}

static void
what_waits_is_told_of_the_client_s_end_and_of_a_stop(void **state)
{
	struct echo e = { 0 };
	struct client ends;
	struct client stays;

	(void)state;
	echo_start(&e, NULL);
	client_open_port(&ends, e.port, 0);
	client_open_port(&stays, e.port, 0);
	client_send_cstr(&ends, "who\none\nwait\n");
	client_send_cstr(&stays, "two\nwait\n");
	expect(&ends, "127.0.0.1:");
	while (!ends.in.len || ends.in.ptr[0] != '\n') {
		if (ends.in.len)
			buf_consume(&ends.in, 1);
		else
			assert_true(client_receive(&ends));
	}
	expect(&ends, "\none\n");
	client_shutdown(&ends);
	expect(&ends, "over\n");
	expect_end(&ends);
	expect(&stays, "two\n");
	server_stop(e.http.server);
	expect(&stays, "over\n");
	expect_end(&stays);
	client_close(&ends);
	client_close(&stays);
	fixture_stop(&e.http);
}

/* How many threads serve connections that come one after the other. */
static size_t
count_threads(const struct echo *e)
{
	char seen[CONNECTIONS][32];
	size_t count = 0;

	for (size_t i = 0; i < CONNECTIONS; i++) {
		struct client c;
		size_t known = 0;

		client_open_port(&c, e->port, 0);
		client_send_cstr(&c, "thread\n");
		while (!c.in.len || c.in.ptr[c.in.len - 1] != '\n')
			assert_true(client_receive(&c));
		snprintf(seen[count], sizeof(seen[count]), "%.*s", (int)c.in.len, c.in.ptr);
		while (strcmp(seen[known], seen[count]) != 0)
			known++;
		count += known == count;
		client_close(&c);
	}
	return count;
}

static void
a_narrow_service_has_the_connections_of_its_loops_only(void **state)
{
	const struct server_config config = { .loops = 3 };

	(void)state;
	for (unsigned loops = 0; loops <= 4; loops++) {
		struct echo e = { .loops = loops };

		echo_start(&e, &config);
		assert_int_equal(count_threads(&e), loops == 0 || loops > 3 ? 3 : loops);
		server_stop(e.http.server);
		fixture_stop(&e.http);
	}
}

static void
lines_come_back_beside_http(void **state)
{
	struct echo e = { 0 };
	struct answer a = { 0 };
	struct client line;
	struct client http;

	(void)state;
	echo_start(&e, NULL);
	client_open_port(&line, e.port, 0);
	client_open(&http, &e.http);
	client_send_cstr(&line, "one\n");
	expect(&line, "one\n");
	client_ask(&http, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", &a, 200);
	client_send_cstr(&line, "tw");
	usleep(1000);
	client_send_cstr(&line, "o\nthree\nfo");
	expect(&line, "two\nthree\n");
	client_send_cstr(&line, "ur\nquit\nfive\n");
	expect(&line, "four\n");
	expect_end(&line);
	answer_release(&a);
	client_close(&line);
	client_close(&http);
	fixture_stop(&e.http);
}

static void
a_client_that_ends_its_side_gets_what_it_asked(void **state)
{
	struct echo e = { 0 };
	struct client c;

	(void)state;
	echo_start(&e, NULL);
	client_open_port(&c, e.port, 0);
	client_send_cstr(&c, "one\ntwo\nand a half");
	client_shutdown(&c);
	expect(&c, "one\ntwo\n");
	expect_end(&c);
	client_close(&c);
	fixture_stop(&e.http);
}

static void *
flood_lines(struct client *c, int count)
{
	char line[64];

	for (int i = 0; i < count; i++) {
		snprintf(line, sizeof(line), "line %08d of a flood that nobody reads\n", i);
		if (!client_send_cstr(c, line))
			return c;
	}
	client_shutdown(c);
	return NULL;
}

/* Sends far more than the server's buffers hold before it reads anything. */
static void *
flood(void *arg)
{
	return flood_lines(arg, LINES);
}

static void *
flood_endlessly(void *arg)
{
	return flood_lines(arg, ENDLESS);
}

static void
a_flood_stays_with_a_client_that_does_not_read(void **state)
{
	struct echo e = { 0 };
	struct client c;
	pthread_t sender;
	char line[64];
	void *failed;

	(void)state;
	e.options.output_bytes = 4096;
	e.options.input_bytes = 4096;
	echo_start(&e, NULL);
	client_open_port(&c, e.port, 8192);
	assert_int_equal(pthread_create(&sender, NULL, flood, &c), 0);
	usleep(SOON_MS * 1000);
	/* One that is behind takes no more of the budget than its buffers. */
	assert_true(net_host_take_memory_peak(server_host(e.http.server)) < 1024 * 1024);
	for (int i = 0; i < LINES; i++) {
		snprintf(line, sizeof(line), "line %08d of a flood that nobody reads\n", i);
		expect(&c, line);
	}
	pthread_join(sender, &failed);
	assert_null(failed);
	expect_end(&c);
	client_close(&c);
	fixture_stop(&e.http);
}

static void
a_reader_that_stalls_is_cut_off(void **state)
{
	const struct server_config config = { .body_timeout_ms = SOON_MS };
	struct echo e = { 0 };
	struct client c;
	pthread_t sender;
	void *failed;

	(void)state;
	echo_start(&e, &config);
	client_open_port(&c, e.port, 8192);
	assert_int_equal(pthread_create(&sender, NULL, flood_endlessly, &c), 0);
	pthread_join(sender, &failed);
	assert_non_null(failed);
	client_close(&c);
	fixture_stop(&e.http);
}

static void
a_line_without_an_end_is_not_waited_for(void **state)
{
	const struct server_config config = { .body_timeout_ms = SOON_MS };
	struct echo e = { .options = { .input_bytes = 4096 } };
	char long_line[5000];
	struct client c;

	(void)state;
	echo_start(&e, &config);
	client_open_port(&c, e.port, 0);
	client_send_cstr(&c, "half");
	expect_end(&c);
	client_close(&c);
	client_open_port(&c, e.port, 0);
	memset(long_line, 'x', sizeof(long_line));
	client_send(&c, str_of(long_line, sizeof(long_line)));
	expect(&c, "too long\n");
	expect_end(&c);
	client_close(&c);
	fixture_stop(&e.http);
}

static void
an_idle_connection_is_closed(void **state)
{
	const struct server_config config = { .idle_timeout_ms = SOON_MS };
	struct echo e = { 0 };
	uint64_t begun = clock_mono_ns();
	struct client c;

	(void)state;
	echo_start(&e, &config);
	client_open_port(&c, e.port, 0);
	expect_end(&c);
	client_close(&c);
	client_open_port(&c, e.port, 0);
	client_send_cstr(&c, "one\n");
	expect(&c, "one\n");
	expect_end(&c);
	client_close(&c);
	assert_true(clock_mono_ns() - begun >= 2 * SOON_MS * CLOCK_NS_PER_MS);
	fixture_stop(&e.http);
}

static void
too_many_connections_are_told_so_in_its_own_words(void **state)
{
	const struct server_config config = { .max_connections = 2 };
	struct echo e = { 0 };
	struct answer a = { 0 };
	struct client http;
	struct client line;
	struct client more;

	(void)state;
	echo_start(&e, &config);
	client_open(&http, &e.http);
	client_ask(&http, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", &a, 200);
	client_open_port(&line, e.port, 0);
	client_send_cstr(&line, "one\n");
	expect(&line, "one\n");
	client_open_port(&more, e.port, 0);
	expect(&more, "too many\n");
	client_shutdown(&more);
	expect_end(&more);
	client_close(&more);
	client_open(&more, &e.http);
	client_ask(&more, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", &a, 503);
	client_close(&more);
	answer_release(&a);
	client_close(&http);
	client_close(&line);
	fixture_stop(&e.http);
}

static void
clients_that_reset_harm_nobody(void **state)
{
	struct echo e = { 0 };
	struct client c;

	(void)state;
	echo_start(&e, NULL);
	for (int i = 0; i < CLIENTS; i++) {
		client_open_port(&c, e.port, 0);
		client_send_cstr(&c, i % 2 ? "one\ntw" : "one\n");
		if (i % 3)
			expect(&c, "one\n");
		client_close_reset(&c);
	}
	client_open_port(&c, e.port, 0);
	client_send_cstr(&c, "one\n");
	expect(&c, "one\n");
	client_close(&c);
	fixture_stop(&e.http);
}

static struct server *signalled;

static void
on_signal(int number)
{
	(void)number;
	server_stop(signalled);
}

static void
a_signal_ends_both_when_everything_is_answered(void **state)
{
	struct echo e = { .options = { .output_bytes = 4096 } };
	struct client idle;
	struct client busy;
	pthread_t sender;
	char line[64];
	void *failed;

	(void)state;
	echo_start(&e, NULL);
	signalled = e.http.server;
	signal(SIGTERM, on_signal);
	client_open_port(&idle, e.port, 0);
	client_open_port(&busy, e.port, 8192);
	assert_int_equal(pthread_create(&sender, NULL, flood, &busy), 0);
	expect(&busy, "line 00000000 of a flood that nobody reads\n");
	usleep(SOON_MS * 1000);
	raise(SIGTERM);
	expect_end(&idle);
	for (int i = 1; i < LINES; i++) {
		snprintf(line, sizeof(line), "line %08d of a flood that nobody reads\n", i);
		if (busy.in.len < strlen(line) && !client_receive(&busy))
			break;
		expect(&busy, line);
	}
	(void)pthread_join(sender, &failed);
	client_close(&idle);
	client_close(&busy);
	assert_int_equal(fixture_join(&e.http), STATUS_OK);
	signal(SIGTERM, SIG_DFL);
	fixture_stop(&e.http);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_come_back_beside_http),
		cmocka_unit_test(a_narrow_service_has_the_connections_of_its_loops_only),
		cmocka_unit_test(what_waits_is_told_of_the_client_s_end_and_of_a_stop),
		cmocka_unit_test(a_client_that_ends_its_side_gets_what_it_asked),
		cmocka_unit_test(a_flood_stays_with_a_client_that_does_not_read),
		cmocka_unit_test(a_reader_that_stalls_is_cut_off),
		cmocka_unit_test(a_line_without_an_end_is_not_waited_for),
		cmocka_unit_test(who_rests_keeps_nobody_from_being_alone),
		cmocka_unit_test(an_idle_connection_is_closed),
		cmocka_unit_test(too_many_connections_are_told_so_in_its_own_words),
		cmocka_unit_test(clients_that_reset_harm_nobody),
		cmocka_unit_test(a_signal_ends_both_when_everything_is_answered),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The server as a whole: waits, limits, timeouts, many connections, and how it stops. */
#include "fixture.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "net/conn.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"

static struct event release;        /* what /wait and /stuck wait for */
static _Atomic unsigned waiting;    /* handlers that have come to their wait */
static _Atomic int wait_outcome;    /* which of its events ended the last /wait */
static _Atomic bool offloaded_here; /* /block ran on its loop's thread */
static _Atomic unsigned contexts;

static void
reply(struct http_exchange *x, const char *text)
{
	if (http_send(x, str_from_cstr(text)) != STATUS_OK)
		http_abort(x);
}

/* A feed: waits for news, the client's end, or the server's. */
static void
wait_for_news(struct http_exchange *x)
{
	struct event *events[] = { &release, http_closed_event(x), http_stopping_event(x) };

	if (http_start(x, HTTP_LENGTH_UNKNOWN) != STATUS_OK ||
	    http_write(x, STR("waiting\n")) != STATUS_OK)
		return;
	http_flush(x);
	atomic_fetch_add(&waiting, 1);
	atomic_store(&wait_outcome, (int)event_wait_any(events, 3, clock_after_ms(10000)));
	if (http_write(x, STR("done\n")) != STATUS_OK || http_finish(x) != STATUS_OK)
		return;
}

struct blocking {
	pthread_t loop;
	uint64_t ms;
};

static void
block(void *arg)
{
	struct blocking *b = arg;

	if (pthread_equal(b->loop, pthread_self()))
		atomic_store(&offloaded_here, true);
	usleep((useconds_t)b->ms * 1000);
}

static void
offload(struct http_exchange *x)
{
	struct blocking b = { .loop = pthread_self() };

	assert_true(str_to_u64(http_query(x), &b.ms));
	wait_offload(block, &b);
	reply(x, pthread_equal(b.loop, pthread_self()) && wait_on_fiber() ? "back" : "lost");
}

enum {
	BEGUN = 8,
};

/* Begins work and wants it at once, or when it has been done for a while; some is never wanted. */
static void
begin_work(struct http_exchange *x)
{
	struct wait_work work[BEGUN];
	struct blocking b[BEGUN];
	unsigned done = 0;

	for (unsigned i = 0; i < BEGUN; i++) {
		b[i] = (struct blocking){ .loop = pthread_self(), .ms = 1 };
		assert_true(wait_begin(&work[i], block, &b[i]));
	}
	assert_true(wait_end(&work[0]) || !event_is_set(&work[0].done));
	for (unsigned i = BEGUN; --i;)
		done += wait_end(&work[i]);
	assert_true(done < BEGUN);
	reply(x, "begun");
}

static void
sleep_long(struct http_exchange *x, uint64_t ms)
{
	struct event never;
	uint64_t begin = clock_mono_ns();

	event_init(&never);
	assert_false(event_wait(&never, clock_after_ms(ms)));
	reply(x, clock_mono_ns() - begin >= ms * CLOCK_NS_PER_MS ? "slept" : "woke early");
}

static void
take_turns(struct http_exchange *x)
{
	for (int i = 0; i < 1000; i++)
		wait_yield();
	reply(x, "yielded");
}

static void
read_slowly(struct http_exchange *x)
{
	struct str part;
	enum status s;

	while ((s = http_read(x, &part)) == STATUS_OK)
		;
	atomic_store(&wait_outcome, (int)s);
	reply(x, status_name(s));
}

static void
flood(struct http_exchange *x)
{
	static const char zeros[10000];
	enum status s = http_start(x, HTTP_LENGTH_UNKNOWN);

	while (s == STATUS_OK)
		s = http_write(x, str_of(zeros, sizeof(zeros)));
	atomic_store(&wait_outcome, (int)s);
	atomic_fetch_add(&waiting, 1);
}

static void
read_whole(struct http_exchange *x)
{
	struct str body;
	enum status s = http_read_all(x, SIZE_MAX, &body);

	if (s == STATUS_LIMIT && http_memory(x)->refused)
		http_set_status(x, 503);
	atomic_store(&wait_outcome, (int)s);
	atomic_fetch_add(&waiting, 1);
	reply(x, status_name(s));
}

/* While this one waits, its loop's allocations fail from the n-th on. */
static void
starve(struct http_exchange *x)
{
	struct event never;
	uint64_t nth = 0;

	event_init(&never);
	assert_true(str_to_u64(http_query(x), &nth));
	mem_fail_after(nth);
	atomic_fetch_add(&waiting, 1);
	event_wait(&never, clock_after_ms(30));
	mem_fail_after(0);
	reply(x, "fed");
}

static void
handle(struct http_exchange *x, void *arg)
{
	struct str path = http_path(x);

	(void)arg;
	if (str_eq(path, STR("/wait"))) {
		wait_for_news(x);
	} else if (str_eq(path, STR("/stuck"))) {
		atomic_fetch_add(&waiting, 1);
		event_wait(&release, WAIT_FOREVER);
		reply(x, "released");
	} else if (str_eq(path, STR("/block"))) {
		offload(x);
	} else if (str_eq(path, STR("/begin"))) {
		begin_work(x);
	} else if (str_eq(path, STR("/sleep"))) {
		atomic_fetch_add(&waiting, 1);
		sleep_long(x, 150);
	} else if (str_eq(path, STR("/yield"))) {
		take_turns(x);
	} else if (str_eq(path, STR("/alone"))) {
		reply(x, wait_is_alone() ? "alone" : "among others");
	} else if (str_eq(path, STR("/read"))) {
		read_slowly(x);
	} else if (str_eq(path, STR("/whole"))) {
		read_whole(x);
	} else if (str_eq(path, STR("/starve"))) {
		starve(x);
	} else if (str_eq(path, STR("/flood"))) {
		flood(x);
	} else {
		reply(x, "hello");
	}
}

static void
reset_all(void)
{
	event_init(&release);
	atomic_store(&waiting, 0);
	atomic_store(&wait_outcome, -1);
	atomic_store(&offloaded_here, false);
}

static void
begin(struct fixture *f, const struct server_config *config)
{
	reset_all();
	fixture_start(f, config, handle);
}

static void
await(unsigned handlers)
{
	for (int i = 0; i < 5000 && atomic_load(&waiting) < handlers; i++)
		usleep(1000);
	assert_true(atomic_load(&waiting) >= handlers);
}

static void
await_outcome(int outcome)
{
	for (int i = 0; i < 5000 && atomic_load(&wait_outcome) != outcome; i++)
		usleep(1000);
	assert_int_equal(atomic_load(&wait_outcome), outcome);
}

static void
a_fiber_sleeps_until_its_deadline(void **state)
{
	struct fixture f;
	struct client c;
	struct answer a = { 0 };

	(void)state;
	begin(&f, NULL);
	client_open(&c, &f);
	client_ask(&c, GET("/sleep"), &a, 200);
	assert_memory_equal(a.body.ptr, "slept", 5);
	client_ask(&c, GET("/yield"), &a, 200);
	assert_memory_equal(a.body.ptr, "yielded", 7);
	answer_release(&a);
	client_close(&c);
	fixture_stop(&f);
}

static void
an_event_set_elsewhere_wakes_the_handler(void **state)
{
	struct fixture f;
	struct client c;
	struct answer a = { 0 };

	(void)state;
	begin(&f, NULL);
	client_open(&c, &f);
	assert_true(client_send_cstr(&c, GET("/wait")));
	await(1);
	event_set(&release);
	client_answer(&c, &a, false);
	assert_true(a.whole);
	assert_memory_equal(a.body.ptr, "waiting\ndone\n", 13);
	assert_int_equal(atomic_load(&wait_outcome), 0);
	answer_release(&a);
	client_close(&c);
	fixture_stop(&f);
}

static void
a_waiting_handler_learns_that_the_client_left(void **state)
{
	struct fixture f;
	struct client c;

	(void)state;
	for (int way = 0; way < 3; way++) {
		begin(&f, NULL);
		client_open(&c, &f);
		assert_true(client_send_cstr(&c, GET("/wait")));
		await(1);
		if (way == 2) /* what is pipelined behind it must not hide the end */
			assert_true(client_send_cstr(&c, GET("/hello") GET("/hello")));
		if (way == 1)
			client_close_reset(&c);
		else
			client_close(&c);
		await_outcome(1);
		fixture_stop(&f);
	}
}

static void
a_client_that_leaves_in_mid_answer_stops_the_handler(void **state)
{
	struct fixture f;
	struct client c;

	(void)state;
	begin(&f, NULL);
	client_open(&c, &f);
	assert_true(client_send_cstr(&c, GET("/flood")));
	assert_true(client_receive(&c));
	client_close(&c);
	await_outcome(STATUS_CANCELLED);
	assert_true(server_stats(f.server).aborted > 0);
	fixture_stop(&f);
}

static void
a_client_that_leaves_in_mid_body_stops_the_handler(void **state)
{
	struct fixture f;
	struct client c;

	(void)state;
	begin(&f, NULL);
	client_open(&c, &f);
	assert_true(client_send_cstr(
		&c, "POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"));
	client_shutdown(&c);
	await_outcome(STATUS_CANCELLED);
	client_close(&c);
	fixture_stop(&f);
}

static void
begun_work_is_done_elsewhere_or_given_back(void **state)
{
	const struct server_config config = { .loops = 2, .pool_threads = 2 };
	struct fixture f;
	struct client c[4];
	struct answer a = { 0 };

	(void)state;
	begin(&f, &config);
	for (int i = 0; i < 4; i++)
		client_open(&c[i], &f);
	for (int round = 0; round < 25; round++) {
		for (int i = 0; i < 4; i++)
			assert_true(client_send_cstr(&c[i], GET("/begin")));
		for (int i = 0; i < 4; i++) {
			client_answer(&c[i], &a, false);
			assert_memory_equal(a.body.ptr, "begun", 5);
			answer_release(&a);
		}
	}
	assert_false(atomic_load(&offloaded_here));
	for (int i = 0; i < 4; i++)
		client_close(&c[i]);
	fixture_stop(&f);
}

static void
blocking_work_runs_elsewhere_while_others_are_served(void **state)
{
	const struct server_config config = { .loops = 1 };
	struct fixture f;
	struct client blocked;
	struct client c;
	struct answer a = { 0 };
	uint64_t begin_ns;

	(void)state;
	begin(&f, &config);
	client_open(&blocked, &f);
	client_open(&c, &f);
	begin_ns = clock_mono_ns();
	assert_true(client_send_cstr(&blocked, GET("/block?300")));
	for (int i = 0; i < 20; i++)
		client_ask(&c, GET("/hello"), &a, 200);
	assert_true(clock_mono_ns() - begin_ns < 300 * CLOCK_NS_PER_MS);
	client_answer(&blocked, &a, false);
	assert_memory_equal(a.body.ptr, "back", 4);
	assert_false(atomic_load(&offloaded_here));
	answer_release(&a);
	client_close(&blocked);
	client_close(&c);
	fixture_stop(&f);
}

static void
slow_headers_time_out(void **state)
{
	const struct server_config config = { .header_timeout_ms = 100 };
	struct fixture f;
	struct client c;
	struct answer a = { 0 };

	(void)state;
	begin(&f, &config);
	client_open(&c, &f);
	client_ask(&c, "GET / HTTP/1.1\r\nHo", &a, 408);
	assert_true(a.close);
	assert_memory_equal(a.body.ptr, "{\"error\":\"request_timeout\",", 26);
	assert_int_equal(server_stats(f.server).malformed, 1);
	answer_release(&a);
	client_close(&c);
	fixture_stop(&f);
}

static void
an_idle_connection_is_closed(void **state)
{
	const struct server_config config = { .idle_timeout_ms = 100 };
	struct fixture f;
	struct client c;
	struct answer a = { 0 };

	(void)state;
	begin(&f, &config);
	client_open(&c, &f);
	client_ask(&c, GET("/hello"), &a, 200);
	assert_false(client_receive(&c));
	assert_int_equal(c.in.len, 0);
	answer_release(&a);
	client_close(&c);
	fixture_stop(&f);
}

static void
a_body_that_stalls_times_out(void **state)
{
	const struct server_config config = { .body_timeout_ms = 100 };
	struct fixture f;
	struct client c;

	(void)state;
	begin(&f, &config);
	client_open(&c, &f);
	assert_true(client_send_cstr(
		&c, "POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"));
	while (client_receive(&c))
		;
	buf_append_byte(&c.in, '\0');
	assert_non_null(strstr(c.in.ptr, "HTTP/1.1 408 Request Timeout\r\n"));
	assert_non_null(strstr(c.in.ptr, "body_timeout_ms, 100 ms."));
	await_outcome(STATUS_CANCELLED);
	client_close(&c);
	fixture_stop(&f);
}

static void
a_reader_that_stalls_times_out(void **state)
{
	const struct server_config config = { .body_timeout_ms = 100 };
	struct fixture f;
	struct client c;

	(void)state;
	begin(&f, &config);
	client_open_small(&c, &f, 8192);
	assert_true(client_send_cstr(&c, GET("/flood")));
	await(1);
	assert_int_equal(atomic_load(&wait_outcome), STATUS_CANCELLED);
	while (client_receive(&c))
		;
	client_close(&c);
	fixture_stop(&f);
}

/*
 * Announced and not sent: four times its length is set aside, which is all that can be asked for of
 * eight megabytes.
 */
static void
hold_memory(struct client *c, const struct fixture *f)
{
	client_open(c, f);
	client_send_cstr(c, "POST /whole HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
			    "Content-Length: 1572864\r\n\r\n");
	assert_true(client_receive(c));
	assert_memory_equal(c->in.ptr, "HTTP/1.1 100", 12);
	buf_clear(&c->in);
}

enum {
	HELD_BYTES = 1572864,
	SMALLER_BYTES = 100000,
};

static void
send_body(struct client *c, size_t bytes)
{
	char *body = calloc(1, bytes);

	assert_non_null(body);
	client_send(c, str_of(body, bytes));
	free(body);
}

static void
ask_for_whole(struct client *c, const struct fixture *f)
{
	client_open(c, f);
	client_send_cstr(c, "POST /whole HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
	send_body(c, SMALLER_BYTES);
}

static void
a_body_waits_until_another_has_left_memory_for_it(void **state)
{
	const struct server_config config = { .memory_bytes = 8 << 20 };
	struct fixture f;
	struct client first;
	struct client second;
	struct answer a = { 0 };

	(void)state;
	begin(&f, &config);
	hold_memory(&first, &f);
	ask_for_whole(&second, &f);
	usleep(30 * 1000);
	assert_int_equal(atomic_load(&waiting), 0);
	send_body(&first, HELD_BYTES);
	client_answer(&first, &a, false);
	assert_int_equal(a.status, 200);
	client_answer(&second, &a, false);
	assert_int_equal(a.status, 200);

	/* The same when the first one goes away. */
	client_close(&first);
	hold_memory(&first, &f);
	client_send_cstr(&second,
			 "POST /whole HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
	send_body(&second, SMALLER_BYTES);
	client_close_reset(&first);
	client_answer(&second, &a, false);
	assert_int_equal(a.status, 200);
	assert_true(net_host_take_memory_peak(server_host(f.server)) <= 8 << 20);
	client_close(&second);
	answer_release(&a);
	fixture_stop(&f);
}

static void
a_body_that_does_not_come_leaves_its_memory_to_others(void **state)
{
	const struct server_config config = { .memory_bytes = 8 << 20 };
	enum {
		SLOW_BYTES = 600000
	};
	struct fixture f;
	struct client slow[6];
	struct client other;
	struct answer a = { 0 };

	(void)state;
	begin(&f, &config);
	for (size_t i = 0; i < 6; i++) {
		client_open(&slow[i], &f);
		client_send_cstr(&slow[i], "POST /whole HTTP/1.1\r\nHost: x\r\n"
					   "Content-Length: 600000\r\n\r\n.");
	}
	/* Long before memory_timeout_ms or body_timeout_ms would help. */
	for (int i = 0; i < 3; i++) {
		ask_for_whole(&other, &f);
		client_answer(&other, &a, false);
		assert_int_equal(a.status, 200);
		client_close(&other);
	}
	/* They are served when the rest comes, each in its turn. */
	for (size_t i = 0; i < 6; i++) {
		send_body(&slow[i], SLOW_BYTES - 1);
		client_answer(&slow[i], &a, false);
		assert_int_equal(a.status, 200);
		client_close(&slow[i]);
	}
	assert_true(net_host_take_memory_peak(server_host(f.server)) <= 8 << 20);
	answer_release(&a);
	fixture_stop(&f);
}

static void
a_body_without_memory_in_time_is_refused(void **state)
{
	const struct server_config config = { .memory_bytes = 8 << 20, .memory_timeout_ms = 20 };
	struct fixture f;
	struct client first;
	struct client second;
	struct answer a = { 0 };

	(void)state;
	begin(&f, &config);
	hold_memory(&first, &f);
	ask_for_whole(&second, &f);
	client_answer(&second, &a, false);
	assert_int_equal(a.status, 503);
	client_close(&second);
	/* Small ones are served all the while. */
	client_open(&second, &f);
	client_ask(&second, GET("/hello"), &a, 200);
	client_ask(&second, "POST /whole HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nsmall", &a,
		   200);
	client_close(&second);
	client_close(&first);
	answer_release(&a);
	fixture_stop(&f);
}

static void
who_leaves_while_waiting_for_memory_is_forgotten(void **state)
{
	const struct server_config config = { .memory_bytes = 8 << 20 };
	struct fixture f;
	struct client first;
	struct client second;

	(void)state;
	begin(&f, &config);
	hold_memory(&first, &f);
	client_open(&second, &f);
	client_send_cstr(&second,
			 "POST /whole HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nx");
	usleep(30 * 1000);
	client_close_reset(&second);
	for (int i = 0; i < 5000 && atomic_load(&waiting) == 0; i++)
		usleep(1000);
	assert_int_equal(atomic_load(&wait_outcome), STATUS_CANCELLED);
	client_close(&first);
	fixture_stop(&f);
}

static void
too_many_connections_are_told_so(void **state)
{
	const struct server_config config = { .max_connections = 2 };
	struct fixture f;
	struct client kept[2];
	struct client c;
	struct answer a = { 0 };

	(void)state;
	begin(&f, &config);
	for (int i = 0; i < 2; i++) {
		client_open(&kept[i], &f);
		client_ask(&kept[i], GET("/hello"), &a, 200);
	}
	client_open(&c, &f);
	client_ask(&c, GET("/hello"), &a, 503);
	assert_true(a.close);
	assert_false(client_receive(&c));
	client_close(&c);
	assert_int_equal(server_stats(f.server).refused, 1);
	assert_int_equal(server_stats(f.server).connections, 2);

	client_close(&kept[0]);
	for (int i = 0; i < 5000 && server_stats(f.server).connections > 1; i++)
		usleep(1000);
	client_open(&c, &f);
	client_ask(&c, GET("/hello"), &a, 200);
	answer_release(&a);
	client_close(&c);
	client_close(&kept[1]);
	fixture_stop(&f);
}

static void *
ask_often(void *arg)
{
	struct fixture *f = arg;
	struct answer a = { 0 };

	for (int round = 0; round < 4; round++) {
		struct client c;

		client_open(&c, f);
		for (int i = 0; i < 50; i++)
			client_ask(&c, i % 10 ? GET("/hello") : GET("/yield"), &a, 200);
		client_close(&c);
	}
	answer_release(&a);
	return NULL;
}

static void
many_clients_are_served_at_once(void **state)
{
	enum {
		CLIENTS = 8
	};
	pthread_t threads[CLIENTS];
	struct fixture f;

	(void)state;
	begin(&f, NULL);
	for (int i = 0; i < CLIENTS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_often, &f), 0);
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(server_stats(f.server).requests, CLIENTS * 200);
	assert_int_equal(server_stats(f.server).accepted, CLIENTS * 4);
	assert_int_equal(server_stats(f.server).malformed, 0);
	fixture_stop(&f);
	/* Nothing is left behind when the threads have gone. */
}

struct leaver {
	struct fixture *f;
	uint64_t seed;
};

/* Sends some of a request, reads some of the answer, and goes, politely or not. */
static void *
leave_often(void *arg)
{
	static const char *const requests[] = {
		GET("/hello") GET("/hello") GET("/yield"),
		GET("/flood"),
		GET("/wait"),
		GET("/block?5"),
		"POST /read HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
		"chunked\r\n\r\n5\r\nhello\r\n0"
		"\r\n\r\n" GET("/hello"),
		"POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\nab",
		GET("/hello") "nonsense\r\n\r\n",
	};
	struct leaver *leaver = arg;
	struct rand_seq seq = { .state = leaver->seed };

	for (int i = 0; i < 150; i++) {
		struct str request = str_from_cstr(
			requests[rand_seq_below(&seq, sizeof(requests) / sizeof(requests[0]))]);
		struct client c;

		client_open(&c, leaver->f);
		if (rand_seq_below(&seq, 2))
			request.len = (size_t)rand_seq_below(&seq, request.len);
		client_send(&c, request);
		usleep((useconds_t)rand_seq_below(&seq, 500));
		if (rand_seq_below(&seq, 4) == 0)
			client_shutdown(&c);
		if (rand_seq_below(&seq, 2))
			client_close(&c);
		else
			client_close_reset(&c);
	}
	return NULL;
}

static void
clients_that_leave_at_any_moment_harm_nobody(void **state)
{
	enum {
		LEAVERS = 4
	};
	const struct server_config config = { .body_timeout_ms = 2000 };
	struct leaver leavers[LEAVERS];
	pthread_t threads[LEAVERS];
	struct fixture f;
	struct client c;
	struct answer a = { 0 };

	(void)state;
	begin(&f, &config);
	event_set(&release); /* one waiter at a time may wait: these do not have to */
	for (int i = 0; i < LEAVERS; i++) {
		leavers[i] = (struct leaver){ &f, (uint64_t)i + 1 };
		assert_int_equal(pthread_create(&threads[i], NULL, leave_often, &leavers[i]), 0);
	}
	client_open(&c, &f);
	for (int i = 0; i < 200; i++)
		client_ask(&c, GET("/hello"), &a, 200);
	for (int i = 0; i < LEAVERS; i++)
		pthread_join(threads[i], NULL);
	client_close(&c);
	for (int i = 0; i < 5000 && server_stats(f.server).connections; i++)
		usleep(2000);
	assert_int_equal(server_stats(f.server).connections, 0);
	answer_release(&a);
	fixture_stop(&f);
}

static void
many_handlers_wait_at_once(void **state)
{
	enum {
		CLIENTS = 300
	};
	static struct client clients[CLIENTS];
	struct fixture f;
	struct answer a = { 0 };
	uint64_t begin_ns = clock_mono_ns();

	(void)state;
	begin(&f, NULL);
	for (int i = 0; i < CLIENTS; i++) {
		client_open(&clients[i], &f);
		assert_true(client_send_cstr(&clients[i], GET("/sleep")));
	}
	for (int i = 0; i < CLIENTS; i++) {
		client_answer(&clients[i], &a, false);
		assert_int_equal(a.status, 200);
		client_close(&clients[i]);
	}
	/* One after the other they would take 45 seconds. */
	assert_true(clock_mono_ns() - begin_ns < 20000 * CLOCK_NS_PER_MS);
	answer_release(&a);
	fixture_stop(&f);
}

static bool
is_alone(struct client *c)
{
	struct answer a = { 0 };
	bool alone;

	client_ask(c, GET("/alone"), &a, 200);
	alone = a.body.ptr[1] == 'l';
	answer_release(&a);
	return alone;
}

static void
a_loop_is_alone_with_a_client_whose_requests_are_the_only_ones(void **state)
{
	const struct server_config config = { .loops = 1 };
	struct client c, other;
	struct answer a = { 0 };
	struct fixture f;

	(void)state;
	begin(&f, &config);
	client_open(&c, &f);
	client_open(&other, &f);
	assert_false(is_alone(&c));
	usleep(2 * NET_ALONE_MS * 1000);
	assert_true(is_alone(&c));
	assert_true(is_alone(&c));
	/* Another one that is just connected makes no difference, but its requests do. */
	assert_false(is_alone(&other));
	assert_false(is_alone(&c));
	usleep(2 * NET_ALONE_MS * 1000);
	assert_true(is_alone(&c));
	/* So does one that is not finished, however long it takes. */
	assert_true(client_send_cstr(&other, GET("/block?1000")));
	usleep(2 * NET_ALONE_MS * 1000);
	assert_false(is_alone(&c));
	client_answer(&other, &a, false);
	answer_release(&a);
	client_close(&other);
	client_close(&c);
	fixture_stop(&f);
}

static void
a_lack_of_memory_costs_single_requests_only(void **state)
{
	const struct server_config config = { .loops = 1 };
	unsigned refused = 0;
	unsigned served = 0;

	(void)state;
	for (unsigned nth = 1; nth < 24; nth++) {
		struct fixture f;
		struct client starving;
		struct client c;
		struct answer a = { 0 };
		char request[64];

		begin(&f, &config);
		client_open(&starving, &f);
		snprintf(request, sizeof(request), "GET /starve?%u HTTP/1.1\r\nHost: x\r\n\r\n",
			 nth);
		assert_true(client_send_cstr(&starving, request));
		await(1);
		client_open(&c, &f);
		client_send_cstr(&c, GET("/hello"));
		client_answer(&c, &a, false);
		/* Served, refused in words, or cut off: never served half. */
		served += a.status == 200;
		refused += a.status != 200;
		assert_true(a.status == 200 || a.status == 503 || a.status == 500 || !a.whole);
		client_close(&c);
		client_answer(&starving, &a, false);
		assert_int_equal(a.status, 200);
		client_open(&c, &f);
		client_ask(&c, GET("/hello"), &a, 200);
		client_close(&c);
		client_close(&starving);
		answer_release(&a);
		fixture_stop(&f);
	}
	assert_true(served > 0 && refused > 0);
}

static void
idle_connections_are_cheap(void **state)
{
	enum {
		CLIENTS = 1000
	};
	static struct client clients[CLIENTS];
	struct mallinfo2 before;
	struct mallinfo2 after;
	struct fixture f;
	struct answer a = { 0 };

	(void)state;
	begin(&f, NULL);
	before = mallinfo2();
	for (int i = 0; i < CLIENTS; i++) {
		client_open(&clients[i], &f);
		client_ask(&clients[i], GET("/hello"), &a, 200);
		buf_release(&clients[i].in);
	}
	after = mallinfo2();
	/* The sanitizers' allocators are not counted there; then this asks for nothing. */
	assert_true(after.uordblks - before.uordblks < CLIENTS * 1024 + (256 << 10));
	assert_int_equal(server_stats(f.server).connections, CLIENTS);
	for (int i = 0; i < CLIENTS; i++)
		client_close(&clients[i]);
	answer_release(&a);
	fixture_stop(&f);
}

static void
a_stop_closes_the_idle_and_lets_the_others_finish(void **state)
{
	struct fixture f;
	struct client idle;
	struct client busy;
	struct client feed;
	struct answer a = { 0 };

	(void)state;
	begin(&f, NULL);
	client_open(&idle, &f);
	client_ask(&idle, GET("/hello"), &a, 200);
	client_open(&busy, &f);
	assert_true(client_send_cstr(&busy, GET("/sleep")));
	client_open(&feed, &f);
	assert_true(client_send_cstr(&feed, GET("/wait")));
	await(2);
	server_stop(f.server);
	assert_false(client_receive(&idle));
	client_answer(&busy, &a, false);
	assert_int_equal(a.status, 200);
	assert_true(a.close && a.whole);
	client_answer(&feed, &a, false);
	assert_true(a.whole);
	assert_int_equal(atomic_load(&wait_outcome), 2);
	assert_int_equal(fixture_join(&f), STATUS_OK);
	answer_release(&a);
	client_close(&idle);
	client_close(&busy);
	client_close(&feed);
	server_stop(f.server); /* late, and harmless */
	assert_true(server_free(f.server));
}

static void
a_handler_that_ignores_the_stop_is_cut_off(void **state)
{
	const struct server_config config = { .drain_timeout_ms = 50 };
	struct fixture f;
	struct client c;

	(void)state;
	begin(&f, &config);
	client_open_small(&c, &f, 8192);
	assert_true(client_send_cstr(&c, GET("/flood")));
	assert_true(client_receive(&c));
	server_stop(f.server);
	assert_int_equal(fixture_join(&f), STATUS_OK);
	assert_int_equal(atomic_load(&wait_outcome), STATUS_CANCELLED);
	client_close(&c);
	assert_true(server_free(f.server));
}

static void
a_second_stop_does_not_wait(void **state)
{
	struct fixture f;
	struct client c;

	(void)state;
	begin(&f, NULL);
	client_open_small(&c, &f, 8192);
	assert_true(client_send_cstr(&c, GET("/flood")));
	assert_true(client_receive(&c));
	server_stop(f.server);
	server_stop(f.server);
	assert_int_equal(fixture_join(&f), STATUS_OK);
	client_close(&c);
	assert_true(server_free(f.server));
}

/* The last: what it leaves is there until the process ends. */
static void
a_stuck_handler_does_not_keep_the_server_from_stopping(void **state)
{
	struct fixture f;
	struct client c;

	(void)state;
	begin(&f, NULL);
	client_open(&c, &f);
	assert_true(client_send_cstr(&c, GET("/stuck")));
	await(1);
	server_stop(f.server);
	server_stop(f.server);
	assert_int_equal(fixture_join(&f), STATUS_TIMEOUT);
	assert_false(server_free(f.server));
	event_set(&release); /* a wake for a loop that is gone */
	client_close(&c);
}

static void
addresses_are_checked(void **state)
{
	const struct server_config config = { .loops = 1, .handler = handle };
	struct server *s;
	struct server *other;
	struct err err = { 0 };
	char taken[32];

	(void)state;
	assert_int_equal(server_new(&config, &s, &err), STATUS_OK);
	assert_int_equal(server_listen(s, "nonsense", &err), STATUS_INVALID);
	assert_int_equal(server_listen(s, "127.0.0.1:66000", &err), STATUS_INVALID);
	assert_int_equal(server_listen(s, "localhost:80", &err), STATUS_INVALID);
	assert_int_equal(server_listen(s, "[::1:80", &err), STATUS_INVALID);
	assert_int_equal(server_listen(s, "127.0.0.1:0", &err), STATUS_OK);
	assert_int_equal(server_listen(s, "127.0.0.1:0", &err), STATUS_OK);
	/* Not every machine speaks IPv6. */
	assert_true(server_listen(s, "[::1]:0", &err) == STATUS_OK || err.status == STATUS_IO);
	snprintf(taken, sizeof(taken), "127.0.0.1:%u", server_port(s));
	assert_int_equal(server_new(&config, &other, &err), STATUS_OK);
	assert_int_equal(server_listen(other, taken, &err), STATUS_IO);
	assert_true(server_free(other));
	assert_true(server_free(s));
}

static void *
make_context(void *arg)
{
	(void)arg;
	atomic_fetch_add(&contexts, 1);
	return &contexts;
}

static void *
make_none(void *arg)
{
	(void)arg;
	return NULL;
}

static void
free_context(void *context)
{
	assert_ptr_equal(context, &contexts);
	atomic_fetch_sub(&contexts, 1);
}

static void
answer_from_context(struct http_exchange *x, void *arg)
{
	(void)arg;
	reply(x, http_loop_context(x) == &contexts ? "mine" : "none");
}

static void
each_loop_has_its_context(void **state)
{
	struct server_config config = { .loops = 3,
					.loop_new = make_context,
					.loop_free = free_context };
	struct fixture f;
	struct client c;
	struct answer a = { 0 };

	(void)state;
	reset_all();
	fixture_start(&f, &config, answer_from_context);
	for (int i = 0; i < 3; i++) {
		client_open(&c, &f);
		client_ask(&c, GET("/"), &a, 200);
		assert_memory_equal(a.body.ptr, "mine", 4);
		client_close(&c);
	}
	assert_int_equal(atomic_load(&contexts), 3);
	fixture_stop(&f);
	assert_int_equal(atomic_load(&contexts), 0);

	config.loop_new = make_none;
	fixture_start(&f, &config, answer_from_context);
	assert_int_equal(fixture_join(&f), STATUS_NOMEM);
	fixture_stop(&f);
	answer_release(&a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fiber_sleeps_until_its_deadline),
		cmocka_unit_test(an_event_set_elsewhere_wakes_the_handler),
		cmocka_unit_test(a_waiting_handler_learns_that_the_client_left),
		cmocka_unit_test(a_client_that_leaves_in_mid_answer_stops_the_handler),
		cmocka_unit_test(a_client_that_leaves_in_mid_body_stops_the_handler),
		cmocka_unit_test(begun_work_is_done_elsewhere_or_given_back),
		cmocka_unit_test(blocking_work_runs_elsewhere_while_others_are_served),
		cmocka_unit_test(slow_headers_time_out),
		cmocka_unit_test(an_idle_connection_is_closed),
		cmocka_unit_test(a_body_that_stalls_times_out),
		cmocka_unit_test(a_reader_that_stalls_times_out),
		cmocka_unit_test(a_body_waits_until_another_has_left_memory_for_it),
		cmocka_unit_test(a_body_that_does_not_come_leaves_its_memory_to_others),
		cmocka_unit_test(a_body_without_memory_in_time_is_refused),
		cmocka_unit_test(who_leaves_while_waiting_for_memory_is_forgotten),
		cmocka_unit_test(too_many_connections_are_told_so),
		cmocka_unit_test(many_clients_are_served_at_once),
		cmocka_unit_test(clients_that_leave_at_any_moment_harm_nobody),
		cmocka_unit_test(many_handlers_wait_at_once),
		cmocka_unit_test(a_loop_is_alone_with_a_client_whose_requests_are_the_only_ones),
		cmocka_unit_test(a_lack_of_memory_costs_single_requests_only),
		cmocka_unit_test(idle_connections_are_cheap),
		cmocka_unit_test(a_stop_closes_the_idle_and_lets_the_others_finish),
		cmocka_unit_test(a_handler_that_ignores_the_stop_is_cut_off),
		cmocka_unit_test(a_second_stop_does_not_wait),
		cmocka_unit_test(addresses_are_checked),
		cmocka_unit_test(each_loop_has_its_context),
		cmocka_unit_test(a_stuck_handler_does_not_keep_the_server_from_stopping),
	};

	mallopt(M_ARENA_MAX, 1); /* mallinfo2() counts one */
	return cmocka_run_group_tests(tests, NULL, NULL);
}

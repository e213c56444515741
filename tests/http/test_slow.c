/*
 * Clients that send and read slowly, on a twin with virtual time: who is cut off, when and with
 * which words, and who is not, for many seeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/server.h"
#include "net/session.h"
#include "twin.h"

enum {
	SEEDS = 100,
	PORT = 80,
	HEADER_MS = 3000,
	STALL_MS = 2000,
	WINDOW_MS = 5000,
	RATE_BYTES = 100,
	BODY_BYTES = 2000,
	LONG_BYTES = 400 * 1000, /* more than the ways and the buffers between both ends hold */
	LATE_MS = 300,
	MEMORY_BYTES = 64 * 1024 * 1024,
	FEED_MS = 10 * WINDOW_MS,
	PATIENT_MS = 100 * WINDOW_MS,
	/* Of what lasts: so many fill what such requests may have. */
	FEEDS = 3,
	LASTING_BYTES = 512 * 1024,
	LASTING_MEMORY_BYTES = 8 * 1024 * 1024,
	LASTING = LASTING_MEMORY_BYTES / 8 * BUDGET_LASTING_EIGHTHS / LASTING_BYTES,
};

static struct server *server;
static unsigned clients;
static size_t memory_bytes = MEMORY_BYTES;
static bool patient; /* then only the memory's being short ends who stalls */

static enum status
answer(struct http_exchange *x)
{
	struct str path = http_path(x);
	struct str body = STR("");

	if (str_eq(path, STR("/lasting")) || str_eq(path, STR("/lasting/feed"))) {
		TRY(http_ask_to_last(x, LASTING_BYTES));
		path = str_skip(path, sizeof("/lasting") - 1);
		if (!path.len)
			path = STR("/long");
	}
	if (str_eq(path, STR("/long"))) {
		TRY(http_start(x, LONG_BYTES));
		for (int i = 0; i < LONG_BYTES / 100; i++)
			TRY(http_write(x, STR("0123456789012345678901234567890123456789012345678901"
					      "234567890123456789012345678901234567890123456789")));
		return http_finish(x);
	}
	if (str_eq(path, STR("/feed"))) { /* has nothing to say for long */
		TRY(http_start(x, HTTP_LENGTH_UNKNOWN));
		http_flush(x);
		twin_sleep_ms(FEED_MS);
		TRY(http_write(x, STR("news")));
		return http_finish(x);
	}
	if (str_eq(path, STR("/begun"))) /* answers before it has read the body */
		TRY(http_start(x, HTTP_LENGTH_UNKNOWN));
	if (str_eq(path, STR("/unread")))
		return http_send(x, STR("no"));
	TRY(http_read_all(x, LONG_BYTES, &body));
	if (str_eq(path, STR("/begun")))
		return http_finish(x);
	return http_send(x, STR("done"));
}

static void
handle(struct http_exchange *x, void *arg)
{
	(void)arg;
	if (answer(x) != STATUS_OK)
		http_abort(x);
}

static void
play(unsigned count, void (*script)(void *arg))
{
	struct server_config config = {
		.loops = 1,
		.io = &twin_io,
		.handler = handle,
		.max_connections = 100,
		.memory_bytes = memory_bytes,
		.request_bytes = 1024 * 1024,
		.header_timeout_ms = patient ? PATIENT_MS : HEADER_MS,
		.idle_timeout_ms = UINT64_C(100) * WINDOW_MS,
		.body_timeout_ms = patient ? PATIENT_MS : STALL_MS,
		.min_rate_bytes = RATE_BYTES,
		.rate_window_ms = patient ? PATIENT_MS : WINDOW_MS,
		.drain_timeout_ms = 20000,
		.output_bytes = 4096,
	};
	struct err err = { 0 };

	clients = count;
	twin_check(server_new(&config, &server, &err) == STATUS_OK);
	twin_check(server_listen(server, "twin:80", &err) == STATUS_OK);
	for (unsigned i = 0; i < count; i++)
		twin_script(script, NULL);
	twin_check(server_run(server, &err) == STATUS_OK);
	twin_settle();
	twin_check(server_stats(server).connections == 0);
	twin_check(server_free(server));
}

/* ---- Clients ---- */

struct talk {
	struct twin_client *c;
	char text[4096]; /* the first bytes of what came, which ends in NUL */
	size_t len;
	uint64_t received;
	uint64_t begun_ms;
};

static void
talk_open(struct talk *t, const char *head)
{
	*t = (struct talk){ .c = twin_connect(PORT, TWIN_WAY_SHORT) };
	twin_check(twin_send(t->c, str_from_cstr(head)));
	t->begun_ms = twin_now_ms();
}

static void
talk_close(struct talk *t)
{
	twin_close(t->c, true);
	if (--clients == 0)
		server_stop(server);
}

/* Reads at most `most` bytes, until the deadline. */
static enum twin_got
talk_read(struct talk *t, size_t most, uint64_t deadline_ns)
{
	char some[2000];
	size_t n = 0;
	enum twin_got got = twin_receive(t->c, some, most < sizeof(some) ? most : sizeof(some), &n,
					 deadline_ns);
	size_t kept = n < sizeof(t->text) - 1 - t->len ? n : sizeof(t->text) - 1 - t->len;

	memcpy(t->text + t->len, some, kept);
	t->len += kept;
	t->received += n;
	return got;
}

/* Reads to the end, and gives which it is. */
static enum twin_got
talk_end(struct talk *t)
{
	enum twin_got got;

	do
		got = talk_read(t, sizeof(t->text), WAIT_FOREVER);
	while (got == TWIN_GOT_BYTES);
	return got;
}

static void
talk_has(const struct talk *t, const char *text)
{
	if (!strstr(t->text, text)) {
		printf("# no \"%s\" in: %s\n", text, t->text);
		twin_check(false);
	}
}

static void
talk_took_ms(const struct talk *t, uint64_t least)
{
	uint64_t passed = twin_now_ms() - t->begun_ms;

	twin_check(passed + 1 >= least && passed <= least + LATE_MS);
}

/* Sends `bytes` each `every_ms`, until `total` are sent or the server has said something. */
static bool
talk_trickle(struct talk *t, size_t total, size_t bytes, uint64_t every_ms)
{
	static const char body[LONG_BYTES] = "{";

	for (size_t sent = 0; sent < total; sent += bytes) {
		size_t n = total - sent < bytes ? total - sent : bytes;

		if (!twin_send(t->c, str_of(body, n)))
			return false;
		if (talk_read(t, sizeof(t->text), clock_mono_ns() + every_ms * CLOCK_NS_PER_MS) !=
		    TWIN_GOT_NOTHING)
			return false;
	}
	return true;
}

/* ---- Bodies ---- */

#define POST(path) "POST " path " HTTP/1.1\r\nHost: h\r\nContent-Length: 2000\r\n\r\n"

static void
trickling_body(void *arg)
{
	struct talk t;

	(void)arg;
	talk_open(&t, POST("/body"));
	twin_check(!talk_trickle(&t, BODY_BYTES, 1, 200));
	twin_check(talk_end(&t) == TWIN_GOT_END);
	talk_took_ms(&t, WINDOW_MS);
	talk_has(&t, "HTTP/1.1 408 ");
	talk_has(&t, "Connection: close");
	talk_has(&t,
		 "{\"error\":\"request_timeout\",\"reason\":\"The request's body came too slowly: "
		 "the limit, min_rate_bytes, is 100 bytes a second");
	talk_close(&t);
}

static void
silent_body(void *arg)
{
	struct talk t;

	(void)arg;
	talk_open(&t, POST("/body"));
	twin_check(talk_end(&t) == TWIN_GOT_END);
	talk_took_ms(&t, STALL_MS);
	talk_has(&t, "HTTP/1.1 408 ");
	talk_has(&t, "body_timeout_ms, 2000 ms");
	talk_close(&t);
}

/* The server has begun to answer: all that it can do is break off. */
static void
trickling_body_of_a_begun_answer(void *arg)
{
	struct talk t;

	(void)arg;
	talk_open(&t, POST("/begun"));
	twin_check(!talk_trickle(&t, BODY_BYTES, 1, 200));
	twin_check(talk_end(&t) == TWIN_GOT_RESET);
	talk_took_ms(&t, WINDOW_MS);
	talk_close(&t);
}

/* Nobody reads the body any more: the connection waits for it only to be used again. */
static void
trickling_body_that_nobody_reads(void *arg)
{
	struct talk t;

	(void)arg;
	talk_open(&t, POST("/unread"));
	while (!strstr(t.text, "\r\n\r\nno"))
		twin_check(talk_read(&t, sizeof(t.text), WAIT_FOREVER) == TWIN_GOT_BYTES);
	twin_check(!talk_trickle(&t, BODY_BYTES, 1, 200));
	twin_check(talk_end(&t) == TWIN_GOT_RESET);
	talk_took_ms(&t, WINDOW_MS);
	talk_close(&t);
}

/* Slow, but not below the least rate; and in bursts. */
static void
modest_body(void *arg)
{
	struct talk t;

	(void)arg;
	talk_open(&t, POST("/body"));
	if (twin_chance(50))
		twin_check(talk_trickle(&t, BODY_BYTES - 1, 24, 200));
	else
		twin_check(talk_trickle(&t, BODY_BYTES - 1, 240, STALL_MS - LATE_MS));
	twin_check(twin_send(t.c, STR("x")));
	while (!strstr(t.text, "done"))
		twin_check(talk_read(&t, sizeof(t.text), WAIT_FOREVER) == TWIN_GOT_BYTES);
	talk_has(&t, "HTTP/1.1 200 ");
	talk_close(&t);
}

static void
trickling_head(void *arg)
{
	static const char more[] = "X-Long: 0123456789012345678901234567890123456789\r\n";
	struct talk t;

	(void)arg;
	talk_open(&t, "GET / HTTP/1.1\r\n");
	for (size_t i = 0; i < sizeof(more) - 1; i++)
		if (!twin_send(t.c, str_of(more + i, 1)) ||
		    talk_read(&t, sizeof(t.text), clock_mono_ns() + 100 * CLOCK_NS_PER_MS) !=
			    TWIN_GOT_NOTHING)
			break;
	twin_check(talk_end(&t) == TWIN_GOT_END);
	talk_took_ms(&t, HEADER_MS);
	talk_has(&t, "HTTP/1.1 408 ");
	talk_has(&t, "header_timeout_ms, is 3000 ms");
	talk_close(&t);
}

/* ---- Readers ---- */

#define GET(path) "GET " path " HTTP/1.1\r\nHost: h\r\n\r\n"

static void
slow_reader(void *arg)
{
	uint64_t every_ms = 100 + twin_draw(200);
	struct talk t;

	(void)arg;
	talk_open(&t, GET("/long"));
	/* Buffers in between take some bytes at first, so the first window may be a good one. */
	while (twin_now_ms() - t.begun_ms < 2 * WINDOW_MS + LATE_MS) {
		twin_sleep_ms(every_ms);
		(void)talk_read(&t, 1, WAIT_FOREVER);
	}
	twin_check(talk_end(&t) == TWIN_GOT_RESET && t.received < LONG_BYTES);
	talk_close(&t);
}

static void
modest_reader(void *arg)
{
	struct talk t;

	(void)arg;
	talk_open(&t, GET("/long"));
	while (t.received < LONG_BYTES) {
		twin_sleep_ms(100);
		twin_check(talk_read(&t, 1900, WAIT_FOREVER) == TWIN_GOT_BYTES);
	}
	talk_close(&t);
}

static void
reader_of_a_quiet_feed(void *arg)
{
	struct talk t;

	(void)arg;
	talk_open(&t, GET("/feed"));
	while (!strstr(t.text, "news"))
		twin_check(talk_read(&t, sizeof(t.text), WAIT_FOREVER) == TWIN_GOT_BYTES);
	twin_check(twin_now_ms() - t.begun_ms >= FEED_MS);
	talk_close(&t);
}

/* ---- Readers while the memory is short ---- */

static unsigned fed;  /* feeds that have got their news */
static unsigned cut;  /* readers that have stalled, and were cut off */
static unsigned kept; /* … and that were not */
static unsigned crowded;

/* Reads nothing until those who want the memory have it. */
static void
stalled_reader(void *arg)
{
	struct talk t;

	(void)arg;
	talk_open(&t, GET("/lasting"));
	twin_sleep_ms(FEED_MS / 2);
	while (t.received < LONG_BYTES &&
	       talk_read(&t, sizeof(t.text), WAIT_FOREVER) == TWIN_GOT_BYTES)
		;
	*(t.received < LONG_BYTES ? &cut : &kept) += 1;
	talk_close(&t);
}

static void
reader_of_a_lasting_feed(void *arg)
{
	struct talk t;

	(void)arg;
	talk_open(&t, GET("/lasting/feed"));
	while (!strstr(t.text, "news"))
		twin_check(talk_read(&t, sizeof(t.text), WAIT_FOREVER) == TWIN_GOT_BYTES);
	fed++;
	talk_close(&t);
}

/* Comes when others have taken all that there is for those who last. */
static void
late_reader(void *arg)
{
	struct talk t;

	(void)arg;
	twin_sleep_ms(WINDOW_MS / 5);
	talk_open(&t, GET("/lasting"));
	while (t.received < LONG_BYTES)
		twin_check(talk_read(&t, sizeof(t.text), WAIT_FOREVER) == TWIN_GOT_BYTES);
	talk_has(&t, "HTTP/1.1 200 ");
	twin_check(twin_now_ms() - t.begun_ms <= BUDGET_STALL_MS + BUDGET_LOOK_MS + LATE_MS);
	talk_close(&t);
}

static void
crowd(void *arg)
{
	unsigned i = crowded++;

	if (i < FEEDS)
		reader_of_a_lasting_feed(arg);
	else if (i < LASTING)
		stalled_reader(arg);
	else
		late_reader(arg);
}

static void
play_crowd(void)
{
	unsigned late = 1 + (unsigned)twin_draw(3);

	crowded = fed = cut = kept = 0;
	memory_bytes = LASTING_MEMORY_BYTES;
	patient = true;
	play(LASTING + late, crowd);
	memory_bytes = MEMORY_BYTES;
	patient = false;
	/* No more of them than others need, and no feed, since nobody waits for its reader. */
	twin_check(fed == FEEDS);
	twin_check(cut >= 1 && cut <= late && cut + kept == LASTING - FEEDS);
}

static void
those_who_have_stalled_for_long_make_room_for_those_who_read(void **state)
{
	(void)state;
	twin_run_seeds(play_crowd, SEEDS / 5);
}

/* ---- Readers and senders while the server stops ---- */

/* Has it stop, and reads nothing for the time that such peers have then. */
static void
reader_that_stalls_at_a_stop(void *arg)
{
	struct talk t;

	(void)arg;
	talk_open(&t, GET("/long"));
	twin_sleep_ms(LATE_MS);
	server_stop(server);
	twin_sleep_ms(NET_STOP_STALL_MS + LATE_MS);
	twin_check(talk_end(&t) == TWIN_GOT_RESET && t.received < LONG_BYTES);
	talk_close(&t);
}

/* It has got half of an answer when the server stops, and gets the rest. */
static void
reader_that_goes_on_at_a_stop(void *arg)
{
	struct talk t;

	(void)arg;
	talk_open(&t, GET("/long"));
	while (t.received < LONG_BYTES) {
		twin_sleep_ms(20);
		twin_check(talk_read(&t, 1900, WAIT_FOREVER) == TWIN_GOT_BYTES);
	}
	talk_close(&t);
}

static void
silent_body_at_a_stop(void *arg)
{
	struct talk t;

	(void)arg;
	talk_open(&t, POST("/body"));
	twin_check(talk_end(&t) == TWIN_GOT_END);
	talk_took_ms(&t, NET_STOP_STALL_MS);
	talk_has(&t, "HTTP/1.1 503 ");
	talk_has(&t, "This server stops");
	talk_close(&t);
}

static void
half_of_a_head_at_a_stop(void *arg)
{
	struct talk t;

	(void)arg;
	talk_open(&t, "GET / HTTP/1.1\r\n");
	twin_check(talk_end(&t) == TWIN_GOT_END && t.received == 0);
	twin_check(twin_now_ms() - t.begun_ms <= NET_STOP_STALL_MS + 2 * LATE_MS);
	talk_close(&t);
}

static void
at_a_stop(void *arg)
{
	void (*const all[])(void *arg) = {
		reader_that_stalls_at_a_stop,
		reader_that_goes_on_at_a_stop,
		silent_body_at_a_stop,
		half_of_a_head_at_a_stop,
	};

	all[crowded++](arg);
}

static void
play_stop(void)
{
	crowded = 0;
	patient = true;
	play(4, at_a_stop);
	patient = false;
}

static void
a_stop_waits_for_those_who_move_something_only(void **state)
{
	(void)state;
	twin_run_seeds(play_stop, SEEDS / 5);
}

/* ---- ---- */

static void
any(void *arg)
{
	void (*const all[])(void *arg) = {
		trickling_body, silent_body,    trickling_body_of_a_begun_answer,
		modest_body,    trickling_head, trickling_body_that_nobody_reads,
		slow_reader,    modest_reader,  reader_of_a_quiet_feed,
	};

	all[twin_draw(sizeof(all) / sizeof(all[0]))](arg);
}

/* Each kind of client alone, for some seeds, and then many of them at once. */
#define TEST(script)                                                                               \
	static void play_##script(void)                                                            \
	{                                                                                          \
		play(1, script);                                                                   \
	}                                                                                          \
	static void test_##script(void **state)                                                    \
	{                                                                                          \
		(void)state;                                                                       \
		twin_run_seeds(play_##script, SEEDS / 5);                                          \
	}

TEST(trickling_body)
TEST(silent_body)
TEST(trickling_body_of_a_begun_answer)
TEST(trickling_body_that_nobody_reads)
TEST(modest_body)
TEST(trickling_head)
TEST(slow_reader)
TEST(modest_reader)
TEST(reader_of_a_quiet_feed)

static void
play_many(void)
{
	play(1 + (unsigned)twin_draw(12), any);
}

static void
slow_and_modest_clients_at_once(void **state)
{
	(void)state;
	twin_run_seeds(play_many, SEEDS);
}

int
main(void)
{
	log_set_level(LOG_LEVEL_WARN);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trickling_body),
		cmocka_unit_test(test_silent_body),
		cmocka_unit_test(test_trickling_body_of_a_begun_answer),
		cmocka_unit_test(test_trickling_body_that_nobody_reads),
		cmocka_unit_test(test_modest_body),
		cmocka_unit_test(test_trickling_head),
		cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_modest_reader),
		cmocka_unit_test(test_reader_of_a_quiet_feed),
		cmocka_unit_test(slow_and_modest_clients_at_once),
		cmocka_unit_test(a_stop_waits_for_those_who_move_something_only),
		cmocka_unit_test(those_who_have_stalled_for_long_make_room_for_those_who_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The line echo over streams that delay, cut and break, on a twin with virtual time: many seeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "echo.h"
#include "net/host.h"
#include "twin.h"

enum {
	SEEDS = 400,
	PORT = 7,
	CLIENTS = 5,
	LINES = 60,
	LINE_BYTES = 200,
	IDLE_MS = 5000,
	STALL_MS = 1000,
	DRAIN_MS = 20000,
	LATE_MS = 300, /* what steps and the way of bytes may take on top of a deadline */
};

static struct net_host *host;
static unsigned clients; /* scripts that have not ended; the last one stops the host */

static void
client_ended(void)
{
	if (--clients == 0)
		net_host_stop(host);
}

static void
play(unsigned count, void (*script)(void *arg), size_t max_connections)
{
	static struct net_stream_options options;
	const struct net_host_config config = {
		.loops = 1,
		.io = &twin_io,
		.max_connections = max_connections ? max_connections : 100,
		.drain_timeout_ms = DRAIN_MS,
		.min_rate_bytes = 1, /* ways may be narrow and long */
		.idle_timeout_ms = IDLE_MS,
		.stall_timeout_ms = STALL_MS,
		.request_bytes = 1024 * 1024,
	};
	struct err err = { 0 };
	unsigned service;

	options = (struct net_stream_options){
		.serve = echo_serve,
		.refusal = STR("too many\n"),
		.input_bytes = 512 + twin_draw(4096),
		.output_bytes = 512 + twin_draw(4096),
	};
	twin_check(net_host_new(&config, &host, &err) == STATUS_OK);
	twin_check(net_host_add_service(host, &net_stream_protocol, &options, &service, &err) ==
		   STATUS_OK);
	twin_check(net_host_listen(host, service, "twin:7", NULL, &err) == STATUS_OK);
	clients = count;
	for (unsigned i = 0; i < count; i++)
		twin_script(script, NULL);
	twin_check(net_host_run(host, &err) == STATUS_OK);
	twin_settle();
	twin_check(net_host_stats(host).connections == 0);
	twin_check(net_host_free(host));
}

/* ---- What the clients send, and what has to come back ---- */

struct talk {
	struct twin_client *c;
	struct event over;
	char text[LINES * LINE_BYTES];
	size_t len;
	size_t back; /* of them, bytes that came back */
	enum twin_got end;
};

static void
talk_write(struct talk *t, unsigned lines)
{
	t->len = 0;
	for (unsigned i = 0; i < lines; i++) {
		size_t n = twin_draw(LINE_BYTES - 1);

		for (size_t k = 0; k < n; k++)
			t->text[t->len++] = (char)('A' + twin_draw(26)); /* never a command */
		t->text[t->len++] = '\n';
	}
}

/* Takes in what comes and compares it, up to the end. */
static void
talk_read(void *arg)
{
	struct talk *t = arg;
	bool slow = twin_chance(20);

	for (;;) {
		char some[700];
		size_t n;

		t->end = twin_receive(t->c, some, 1 + twin_draw(sizeof(some) - 1), &n,
				      WAIT_FOREVER);
		if (t->end != TWIN_GOT_BYTES)
			break;
		twin_check(t->back + n <= t->len);
		twin_check(memcmp(some, t->text + t->back, n) == 0);
		t->back += n;
		if (slow)
			twin_sleep_ms(twin_draw(STALL_MS / 10));
	}
	event_set(&t->over);
}

static void
talk_begin(struct talk *t, unsigned lines, enum twin_way way)
{
	event_init(&t->over);
	t->back = 0;
	talk_write(t, lines);
	t->c = twin_connect(PORT, way);
	twin_script(talk_read, t);
}

static void
talk_end(struct talk *t)
{
	event_wait(&t->over, WAIT_FOREVER);
	twin_close(t->c, false);
	mem_free(t);
	client_ended();
}

static struct talk *
talk_new(void)
{
	struct talk *t = mem_alloc(sizeof(*t));

	twin_check(t != NULL);
	return t;
}

/* ---- Scripts ---- */

static void
polite(void *arg)
{
	struct talk *t = talk_new();

	(void)arg;
	talk_begin(t, 1 + (unsigned)twin_draw(LINES), TWIN_WAY_ANY);
	twin_check(twin_send_slowly(t->c, str_of(t->text, t->len), STALL_MS / 20));
	twin_shutdown(t->c); /* half closed: everything still comes back */
	event_wait(&t->over, WAIT_FOREVER);
	twin_check(t->end == TWIN_GOT_END && t->back == t->len);
	talk_end(t);
}

static void
rude(void *arg)
{
	struct talk *t = talk_new();

	(void)arg;
	talk_begin(t, 1 + (unsigned)twin_draw(LINES), TWIN_WAY_ANY);
	(void)twin_send_slowly(t->c, str_of(t->text, twin_draw(t->len + 1)), 5);
	if (twin_chance(50))
		twin_sleep_ms(twin_draw(50));
	twin_close(t->c, twin_chance(50));
	talk_end(t);
}

static void
mixed(void *arg)
{
	if (twin_chance(60))
		polite(arg);
	else
		rude(arg);
}

/* A line that does not come to its end, or nothing at all: closed in time, and not before. */
static void
silent(void *arg)
{
	struct talk *t = talk_new();
	bool half = twin_chance(50);
	uint64_t least = half ? STALL_MS : IDLE_MS;
	uint64_t begun;

	(void)arg;
	talk_begin(t, 1, TWIN_WAY_SHORT);
	begun = twin_now_ms();
	if (half && t->len > 1)
		(void)twin_send(t->c, str_of(t->text, t->len - 1));
	else
		least = IDLE_MS;
	event_wait(&t->over, WAIT_FOREVER);
	twin_check(t->end == TWIN_GOT_END && t->back == 0);
	twin_check(twin_now_ms() - begun + 1 >= least);
	twin_check(twin_now_ms() - begun <= least + LATE_MS);
	talk_end(t);
}

/* Sends and never reads: the connection is cut off, with what was written lost. */
static void
deaf(void *arg)
{
	struct twin_client *c = twin_connect(PORT, TWIN_WAY_ANY);
	char line[LINE_BYTES];
	unsigned sent = 0;

	(void)arg;
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	while (twin_send(c, str_of(line, sizeof(line))))
		twin_check(++sent < 10000);
	twin_close(c, true);
	client_ended();
}

/* Stops the host at some moment of others' talks. */
static void
stopper(void *arg)
{
	(void)arg;
	twin_sleep_ms(twin_draw(100));
	net_host_stop(host);
	client_ended();
}

static void
interrupted(void *arg)
{
	struct talk *t = talk_new();

	if (twin_chance(20)) {
		mem_free(t);
		stopper(arg);
		return;
	}
	talk_begin(t, 1 + (unsigned)twin_draw(LINES), TWIN_WAY_ANY);
	(void)twin_send_slowly(t->c, str_of(t->text, t->len), 5);
	if (twin_chance(50))
		twin_shutdown(t->c);
	talk_end(t);
}

/* Waits on the server until it is stopped, or until the client goes. */
static void
waiting(void *arg)
{
	struct talk *t = talk_new();
	bool leaves = twin_chance(50);

	(void)arg;
	talk_begin(t, 0, TWIN_WAY_SHORT);
	t->len = (size_t)snprintf(t->text, sizeof(t->text), "over\n");
	(void)twin_send(t->c, STR("wait\n"));
	twin_sleep_ms(20 + twin_draw(20));
	if (leaves)
		twin_shutdown(t->c);
	else
		net_host_stop(host);
	event_wait(&t->over, WAIT_FOREVER);
	twin_check(t->back == t->len && t->end == TWIN_GOT_END);
	talk_end(t);
}

/* ---- Tests ---- */

static void
play_waiting(void)
{
	play(1, waiting, 0);
}

static void
play_mixed(void)
{
	play(1 + (unsigned)twin_draw(CLIENTS), mixed, 0);
}

static void
play_silent(void)
{
	play(1 + (unsigned)twin_draw(CLIENTS), silent, 0);
}

static void
play_deaf(void)
{
	play(1 + (unsigned)twin_draw(2), deaf, 0);
}

static void
play_interrupted(void)
{
	play(1 + (unsigned)twin_draw(CLIENTS), interrupted, 0);
}

static void
crowded(void *arg)
{
	struct twin_client *c = twin_connect(PORT, TWIN_WAY_ANY);
	char text[16] = "";
	size_t got = 0;
	size_t n;

	(void)arg;
	while (got < sizeof(text) - 1 && twin_receive(c, text + got, sizeof(text) - 1 - got, &n,
						      clock_after_ms(2000)) == TWIN_GOT_BYTES)
		got += n;
	twin_check(got == 0 || strcmp(text, "too many\n") == 0);
	twin_close(c, false);
	client_ended();
}

static void
play_crowded(void)
{
	play(2 + (unsigned)twin_draw(2 * CLIENTS), crowded, 1 + twin_draw(3));
}

static void
lines_come_back_whole_and_in_order(void **state)
{
	(void)state;
	twin_run_seeds(play_mixed, SEEDS);
}

static void
silence_has_its_deadlines(void **state)
{
	(void)state;
	twin_run_seeds(play_silent, SEEDS);
}

static void
a_client_that_never_reads_is_cut_off(void **state)
{
	(void)state;
	twin_run_seeds(play_deaf, SEEDS / 4);
}

static void
what_waits_is_told_of_the_end_and_of_a_stop(void **state)
{
	(void)state;
	twin_run_seeds(play_waiting, SEEDS);
}

static void
a_stop_at_any_moment_ends_every_connection(void **state)
{
	(void)state;
	twin_run_seeds(play_interrupted, SEEDS);
}

static void
connections_beyond_the_limit_are_told_so(void **state)
{
	(void)state;
	twin_run_seeds(play_crowded, SEEDS);
}

static void
a_seed_replays_exactly(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++)
		assert_true(twin_run_seed(play_mixed, seed) == twin_run_seed(play_mixed, seed));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_come_back_whole_and_in_order),
		cmocka_unit_test(silence_has_its_deadlines),
		cmocka_unit_test(a_client_that_never_reads_is_cut_off),
		cmocka_unit_test(what_waits_is_told_of_the_end_and_of_a_stop),
		cmocka_unit_test(a_stop_at_any_moment_ends_every_connection),
		cmocka_unit_test(connections_beyond_the_limit_are_told_so),
		cmocka_unit_test(a_seed_replays_exactly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

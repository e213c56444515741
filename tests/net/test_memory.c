/* Memory for the requests of a door on streams, on a twin with virtual time: many seeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/host.h"
#include "net/memory.h"
#include "net/stream.h"
#include "twin.h"

enum {
	SEEDS = 30,
	CROWD = 800, /* connections whose stacks alone have twice the memory */
	CROWD_SEEDS = 3,
	/* Connections whose stacks have three quarters of the memory, and at work more than all. */
	PUSHED = 300,
	PUSH_MS = 10, /* less than the time after which a rest gives memory back */
	PUSHES_MOST = 1000,
	PORT = 7,
	LIMIT_BYTES = 8 << 20,
	HEAD_BYTES = 4,
	LARGE_BYTES = 2 << 20,
	STRANGER_BYTES = NET_STRANGER_BYTES / 4,
	COST = 2,
	PIECES = 64,
	LATE_MS = 3000, /* on top of the time after which those who stall make room */
};

static struct net_host *host;
static uint64_t wait_ms; /* how long a request waits for memory; 0: as long as by default */
static bool strangers;   /* nobody knows the clients */
static bool waits;       /* requests rest, and bytes that come meanwhile are left for later */
static bool pushes;      /* a message of no bytes asks to be told something again and again, */
static bool pushed;      /* until this */
static size_t pushed_to;
static struct event wakes[PUSHED]; /* of those */
static unsigned clients;           /* scripts that have not ended; the last one stops the host */

static void
client_ended(void)
{
	if (--clients == 0)
		net_host_stop(host);
}

/* ---- A door: the length of a message, and the message; each is answered by its length ---- */

static struct str
door_answer(struct net_stream *s, size_t n)
{
	struct buf AUTO(buf_release) in = BUF_INIT_OF(64 << 20, arena_part(net_stream_arena(s)));
	struct net_session *session = net_stream_session(s);
	struct err err = { 0 };
	enum status status;

	session->part.refused = session->part.exceeded = false;
	status = net_stream_read(s, n, COST * n, &in);
	twin_check(status != STATUS_OK || in.len == n);
	twin_check(budget_held(session->part.budget) <= LIMIT_BYTES + LIMIT_BYTES / 4);
	/* Also if it has waited for its bytes or for memory, without that. */
	twin_check(status != STATUS_OK || session->work.used_bytes == NET_WORK_BYTES);
	budget_settle(&session->part);
	if (status == STATUS_OK)
		return STR("read\n");
	if (status != STATUS_LIMIT)
		return STR("");
	twin_check(!in.cap && (session->part.refused || session->part.exceeded));
	twin_check(net_memory_refuse(session, &err) == STATUS_LIMIT);
	twin_check(strstr(err.text, strangers ? "65536 bytes, a quarter of the limit NET_STRANGER"
					      : "memory_bytes, is 8388608 bytes") != NULL);
	return STR("refused\n");
}

/* What is told to many who ask nothing is no work. The first of them tells the others. */
static bool
door_push(struct net_stream *s)
{
	size_t number = pushed_to++;

	event_init(&wakes[number]);
	for (unsigned i = 0; i < PUSHES_MOST && !pushed; i++) {
		if (net_stream_write(s, STR(".")) != STATUS_OK)
			return false;
		if (number) {
			net_stream_rest(s, NET_REST_IDLE, &wakes[number], WAIT_FOREVER);
			event_init(&wakes[number]);
			continue;
		}
		net_stream_rest(s, NET_REST_IDLE, NULL, clock_after_ms(PUSH_MS));
		for (size_t k = 1; k < pushed_to; k++)
			event_set(&wakes[k]);
	}
	twin_check(pushed);
	return false;
}

/* A request that waits is what it was, whatever comes meanwhile. */
static bool
door_wait(struct net_stream *s)
{
	struct net_session *session = net_stream_session(s);

	budget_part_last(&session->part);
	net_stream_rest(s, NET_REST_WAITING, NULL, clock_after_ms(PUSH_MS));
	twin_check(net_stream_has_input(s));
	twin_check(session->part.lasts && session->work.used_bytes == NET_WORK_BYTES);
	twin_check(net_stream_write(s, STR("read\n")) == STATUS_OK);
	return false;
}

static bool
door_serve(struct net_stream *s, void *arg)
{
	uint32_t n;
	struct str in, answer;

	(void)arg;
	twin_check(budget_held(net_stream_session(s)->part.budget) <=
		   LIMIT_BYTES + LIMIT_BYTES / 4);
	twin_check(net_stream_session(s)->work.used_bytes == NET_WORK_BYTES);
	net_stream_set_stranger(s, strangers);
	if (net_stream_peek(s, HEAD_BYTES, &in) != STATUS_OK)
		return false;
	memcpy(&n, in.ptr, sizeof(n));
	net_stream_take(s, HEAD_BYTES);
	if (waits)
		return door_wait(s);
	if (pushes && n == 0)
		return door_push(s);
	answer = door_answer(s, n);
	return answer.len && net_stream_write(s, answer) == STATUS_OK;
}

static void
play(unsigned count, void (*script)(void *arg))
{
	static struct net_stream_options options;
	const struct net_host_config config = {
		.loops = 1,
		.io = &twin_io,
		.max_connections = CROWD + 10,
		.drain_timeout_ms = 20000,
		.min_rate_bytes = 1,
		.request_bytes = 1024 * 1024,
		.memory_bytes = LIMIT_BYTES,
		.memory_wait_ms = wait_ms,
	};
	struct err err = { 0 };
	unsigned service;

	options = (struct net_stream_options){ .serve = door_serve };
	twin_check(net_host_new(&config, &host, &err) == STATUS_OK);
	twin_check(net_host_add_service(host, &net_stream_protocol, &options, &service, &err) ==
		   STATUS_OK);
	twin_check(net_host_listen(host, service, "twin:7", NULL, &err) == STATUS_OK);
	clients = count;
	for (size_t i = 0; i < count; i++)
		twin_script(script, (void *)i);
	twin_check(net_host_run(host, &err) == STATUS_OK);
	twin_settle();
	twin_check(net_host_free(host));
}

/* ---- Clients ---- */

/* Says that `n` bytes come, and sends `sent` of them. */
static bool
client_send(struct twin_client *c, uint32_t n, size_t sent)
{
	char *bytes = mem_zalloc(HEAD_BYTES + sent);
	bool went;

	twin_check(bytes != NULL);
	memcpy(bytes, &n, sizeof(n));
	went = twin_send(c, str_of(bytes, HEAD_BYTES + sent));
	mem_free(bytes);
	return went;
}

static void
client_hears(struct twin_client *c, const char *expected)
{
	char text[32] = "";
	size_t got = 0, n;

	while (got < strlen(expected)) {
		twin_check(twin_receive(c, text + got, sizeof(text) - 1 - got, &n, WAIT_FOREVER) ==
			   TWIN_GOT_BYTES);
		got += n;
	}
	twin_check(strcmp(text, expected) == 0);
}

static void
sends_too_much(void *arg)
{
	struct twin_client *c = twin_connect(PORT, TWIN_WAY_SHORT);

	(void)arg;
	for (unsigned i = 0; i < 2; i++) {
		twin_check(client_send(c, LIMIT_BYTES, LIMIT_BYTES));
		client_hears(c, "refused\n");
		twin_check(client_send(c, 1000, 1000));
		client_hears(c, "read\n");
	}
	twin_close(c, false);
	client_ended();
}

/* The first ones stop in the middle of what they have announced; the last one does not. */
static void
stops_in_the_middle(void *arg)
{
	struct twin_client *c = twin_connect(PORT, TWIN_WAY_SHORT);
	size_t number = (size_t)arg;
	char some[32];
	size_t n;

	if (number < 5) {
		(void)client_send(c, LARGE_BYTES, LARGE_BYTES / 2);
		(void)twin_receive(c, some, sizeof(some), &n, clock_after_ms(30000));
	} else {
		uint64_t begun_ms;

		twin_sleep_ms(500);
		begun_ms = twin_now_ms();
		twin_check(client_send(c, LARGE_BYTES, LARGE_BYTES));
		client_hears(c, "read\n");
		twin_check(twin_now_ms() - begun_ms <= BUDGET_STALL_MS + LATE_MS);
	}
	twin_close(c, false);
	client_ended();
}

/* One that keeps up, and takes long, has half of the memory; the other waits for as much. */
static void
waits_for_one_who_takes_long(void *arg)
{
	struct twin_client *c = twin_connect(PORT, TWIN_WAY_SHORT);
	size_t number = (size_t)arg;

	if (number == 0) {
		static const char piece[LARGE_BYTES / PIECES];
		uint32_t n = sizeof(piece) * PIECES;

		twin_check(twin_send(c, str_of((const char *)&n, HEAD_BYTES)));
		for (unsigned i = 0; i < PIECES; i++) {
			twin_check(twin_send(c, str_of(piece, sizeof(piece))));
			twin_sleep_ms(100);
		}
		client_hears(c, "read\n");
	} else {
		uint64_t begun_ms, took_ms;

		twin_sleep_ms(500);
		begun_ms = twin_now_ms();
		twin_check(client_send(c, LARGE_BYTES, LARGE_BYTES));
		client_hears(c, wait_ms ? "refused\n" : "read\n");
		took_ms = twin_now_ms() - begun_ms;
		twin_check(wait_ms ? took_ms >= wait_ms && took_ms < wait_ms + LATE_MS
				   : took_ms > LATE_MS);
	}
	twin_close(c, false);
	client_ended();
}

/* All of them come at once, and have more together than there is: each has its turn. */
static void
sends_whole(void *arg)
{
	struct twin_client *c = twin_connect(PORT, TWIN_WAY_SHORT);

	(void)arg;
	for (unsigned i = 0; i < 2; i++) {
		twin_check(client_send(c, LARGE_BYTES, LARGE_BYTES));
		client_hears(c, "read\n");
	}
	twin_close(c, false);
	client_ended();
}

/* All but the first send a part of a message; it comes among them, and has its answer. */
static void
comes_in_a_crowd(void *arg)
{
	struct twin_client *c = twin_connect(PORT, TWIN_WAY_SHORT);
	char some[32];
	size_t n;

	if (arg) {
		(void)client_send(c, 1000, 10);
		(void)twin_receive(c, some, sizeof(some), &n, clock_after_ms(30000));
	} else {
		uint64_t begun_ms;

		twin_sleep_ms(1);
		begun_ms = twin_now_ms();
		twin_check(client_send(c, 1000, 1000));
		client_hears(c, "read\n");
		twin_check(twin_now_ms() - begun_ms <= LATE_MS);
	}
	twin_close(c, false);
	client_ended();
}

static void
play_crowd(void)
{
	play(CROWD, comes_in_a_crowd);
}

/* A stranger's messages have a limit of their own, and what was refused leaves nothing behind. */
static void
is_unknown(void *arg)
{
	struct twin_client *c = twin_connect(PORT, TWIN_WAY_SHORT);

	(void)arg;
	for (unsigned i = 0; i < 3; i++) {
		twin_check(client_send(c, STRANGER_BYTES, STRANGER_BYTES));
		client_hears(c, "read\n");
		twin_check(client_send(c, STRANGER_BYTES + 1, STRANGER_BYTES + 1));
		client_hears(c, "refused\n");
		twin_check(client_send(c, LARGE_BYTES, LARGE_BYTES));
		client_hears(c, "refused\n");
	}
	twin_close(c, false);
	client_ended();
}

/* The others are told things; this one asks in the middle of that. */
static void
asks_while_others_are_told(void *arg)
{
	struct twin_client *c = twin_connect(PORT, TWIN_WAY_SHORT);
	char some[32];
	size_t n;

	if (arg) {
		twin_check(client_send(c, 0, 0));
		while (twin_receive(c, some, sizeof(some), &n, WAIT_FOREVER) == TWIN_GOT_BYTES)
			;
	} else {
		uint64_t begun_ms;

		twin_sleep_ms(500);
		begun_ms = twin_now_ms();
		twin_check(client_send(c, 1000, 1000));
		client_hears(c, "read\n");
		twin_check(twin_now_ms() - begun_ms <= LATE_MS);
		pushed = true;
	}
	twin_close(c, false);
	client_ended();
}

static void
play_pushed(void)
{
	pushes = true;
	pushed = false;
	pushed_to = 0;
	play(PUSHED, asks_while_others_are_told);
	pushes = false;
}

static void
sends_more_while_it_waits(void *arg)
{
	struct twin_client *c = twin_connect(PORT, TWIN_WAY_SHORT);

	(void)arg;
	twin_check(client_send(c, 0, 0));
	twin_sleep_ms(PUSH_MS / 2);
	twin_check(client_send(c, 0, 0));
	client_hears(c, "read\n");
	twin_close(c, false);
	client_ended();
}

static void
play_waits(void)
{
	waits = true;
	play(1, sends_more_while_it_waits);
	waits = false;
}

static void
play_unknown(void)
{
	strangers = true;
	play(1, is_unknown);
	strangers = false;
}

static void
play_too_much(void)
{
	play(1, sends_too_much);
}

static void
play_middle(void)
{
	play(6, stops_in_the_middle);
}

static void
play_whole(void)
{
	play(8, sends_whole);
}

static void
play_long(void)
{
	play(2, waits_for_one_who_takes_long);
}

static void
a_message_larger_than_the_memory_is_refused_and_the_connection_goes_on(void **state)
{
	(void)state;
	twin_run_seeds(play_too_much, SEEDS);
}

static void
messages_of_strangers_are_short(void **state)
{
	(void)state;
	twin_run_seeds(play_unknown, SEEDS);
}

static void
messages_that_do_not_end_make_room_for_one_that_does(void **state)
{
	(void)state;
	twin_run_seeds(play_middle, SEEDS);
}

static void
messages_that_are_too_much_together_have_their_turns(void **state)
{
	(void)state;
	twin_run_seeds(play_whole, SEEDS);
}

static void
a_crowd_that_comes_at_once_takes_no_more_than_there_is(void **state)
{
	(void)state;
	twin_run_seeds(play_crowd, CROWD_SEEDS);
}

static void
those_who_are_told_things_keep_nobody_out(void **state)
{
	(void)state;
	twin_run_seeds(play_pushed, CROWD_SEEDS);
}

static void
a_request_that_waits_is_none_that_begins(void **state)
{
	(void)state;
	twin_run_seeds(play_waits, SEEDS);
}

/* ---- Parts of their own ---- */

static void
turn_granted(struct budget_turn *turn)
{
	assert_true(turn->has_come);
}

static void
what_is_kept_and_unused_makes_room_when_others_wait(void **state)
{
	struct budget_part request, kept[2];
	struct budget_turn turn = { .bytes = 2 << 20,
				    .kind = BUDGET_TO_LAST,
				    .granted = turn_granted };
	struct budget b;

	(void)state;
	twin_begin(1);
	budget_init(&b, LIMIT_BYTES);
	budget_part_init(&request, &b);
	for (size_t i = 0; i < 2; i++) {
		net_memory_part_init(&kept[i], &request, false);
		net_memory_part_keep(&kept[i]);
		assert_true(net_memory_part_resize(&kept[i], 3 << 20) == (i == 0));
		net_memory_part_rest(&kept[i]);
		twin_compute(CLOCK_NS_PER_MS);
	}
	assert_false(budget_may_last(&request));
	assert_int_equal(budget_queue(&b, &turn), BUDGET_QUEUED);
	budget_make_room(&b);
	assert_false(budget_is_unwanted(&kept[0]));
	twin_compute((uint64_t)BUDGET_STALL_MS * CLOCK_NS_PER_MS);
	net_memory_part_rouse(&kept[1]); /* it is used, and was never to end */
	budget_make_room(&b);
	assert_true(budget_is_unwanted(&kept[0]));
	assert_false(budget_is_unwanted(&kept[1]));
	budget_part_release(&kept[0]);
	assert_true(turn.has_come);
	assert_true(budget_leave(&b, &turn));
	assert_true(net_memory_part_resize(&kept[1], 1000));
	budget_part_release(&kept[1]);
	budget_part_release(&request);
	twin_end();
}

static void
a_request_waits_for_memory_as_long_as_the_setting_says(void **state)
{
	(void)state;
	for (wait_ms = 0; wait_ms <= 2000; wait_ms += 1000)
		twin_run_seeds(play_long, SEEDS);
	wait_ms = 0;
}

static void
what_is_better_kept_than_lost_may_exceed_the_memory(void **state)
{
	struct budget_part full, more;
	struct budget b;

	(void)state;
	budget_init(&b, LIMIT_BYTES);
	budget_part_init(&full, &b);
	budget_count(&full, LIMIT_BYTES);
	net_memory_part_init(&more, &full, false);
	net_memory_part_keep(&more);
	assert_false(net_memory_part_use(&more, 1000, false));
	assert_true(net_memory_part_use(&more, 1000, true));
	assert_false(net_memory_part_use(&more, LIMIT_BYTES / 2, true));
	budget_part_release(&more);
	budget_part_release(&full);
	budget_fini(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_message_larger_than_the_memory_is_refused_and_the_connection_goes_on),
		cmocka_unit_test(messages_of_strangers_are_short),
		cmocka_unit_test(messages_that_do_not_end_make_room_for_one_that_does),
		cmocka_unit_test(messages_that_are_too_much_together_have_their_turns),
		cmocka_unit_test(a_crowd_that_comes_at_once_takes_no_more_than_there_is),
		cmocka_unit_test(those_who_are_told_things_keep_nobody_out),
		cmocka_unit_test(a_request_that_waits_is_none_that_begins),
		cmocka_unit_test(what_is_kept_and_unused_makes_room_when_others_wait),
		cmocka_unit_test(a_request_waits_for_memory_as_long_as_the_setting_says),
		cmocka_unit_test(what_is_better_kept_than_lost_may_exceed_the_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

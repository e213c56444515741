/*
 * HTTP over streams that delay, cut and break, on a twin with virtual time: many seeds. What the
 * clients check holds whatever the order of things: each gets its own answers, whole and in order,
 * deadlines are kept, a stop ends everything, and no memory of the shared budget stays taken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "http/conn.h"
#include "http/server.h"
#include "loop/step.h"
#include "net/session.h"
#include "twin.h"

enum {
	SEEDS = 400,
	COMPUTE_SEEDS = 40,
	PIPELINED = 300,
	PORT = 80,
	CLIENTS = 5,
	REQUESTS = 6,
	BODY_BYTES = 3000,
	LARGE_BYTES = 300 * 1000,
	MEMORY_BYTES = 4 * LARGE_BYTES * HTTP_BODY_COST / 3, /* room for one large body */
	HEADER_MS = 2000,
	IDLE_MS = 5000,
	STALL_MS = 1000,
	MEMORY_MS = 3000,
	DRAIN_MS = 20000,
	LATE_MS = 300, /* what steps and the way of bytes may take on top of a deadline */
	TEXT_BYTES = 64 * 1024,
	STEP_NS = 50,
	/* What a handler may take to end once its client has, and less than that. */
	ENDED_MS = 2 * NET_ENDED_SLICES * STEP_SLICE_NS / CLOCK_NS_PER_MS,
	MODEST_MS = ENDED_MS / 8,
	COMPUTE_SECONDS = 2,
};

static struct server *server;
static unsigned clients;     /* scripts that have not ended; the last one stops the server */
static unsigned computing;   /* handlers that compute for ever, and have not been cancelled */
static uint64_t begun_ns;    /* when the last handler began */
static unsigned begun_then;  /* and how many have at that moment: without a turn of the loop */
static unsigned most_begun;  /* the most of these */
static unsigned given_up;    /* bodies that the handler did not get to the end of */
static uint64_t stopped_ms;  /* when stopper() stopped the server */
static bool stop_is_planned; /* a second stop would break off what the first one lets finish */

/* ---- The server ---- */

static uint64_t
number_in(struct str path, const char *prefix)
{
	uint64_t n = 0;

	twin_check(str_to_u64(str_skip(path, strlen(prefix)), &n));
	return n;
}

static void
add_one(void *arg)
{
	++*(unsigned *)arg;
}

static enum status
send_chunks(struct http_exchange *x, uint64_t count)
{
	char text[64];

	TRY(http_start(x, HTTP_LENGTH_UNKNOWN));
	for (uint64_t i = 0; i < count; i++) {
		int n = snprintf(text, sizeof(text), "chunk %llu of many;", (unsigned long long)i);

		TRY(http_write(x, str_of(text, (size_t)n)));
		if (twin_chance(30))
			http_flush(x);
		if (twin_chance(10))
			twin_sleep_ms(twin_draw(20));
	}
	return http_finish(x);
}

static enum status
send_body_back(struct http_exchange *x)
{
	struct str body;
	enum status status = http_read_all(x, LARGE_BYTES, &body);

	if (status == STATUS_CANCELLED)
		given_up++;
	if (status == STATUS_LIMIT) {
		http_set_status(x, 503);
		return http_send(x, STR("no memory"));
	}
	TRY(status);
	return http_send(x, body);
}

/* Computes until it is told not to, as a hostile request would have it. */
static enum status
compute_for_ever(void)
{
	enum status status;

	computing++;
	do {
		twin_compute(STEP_NS * 100);
		status = step_count(100);
	} while (status == STATUS_OK);
	computing--;
	return status;
}

/* Computes for about that time, and answers. */
static enum status
compute_for(struct http_exchange *x, uint64_t ms)
{
	for (uint64_t i = 0; i < ms * CLOCK_NS_PER_MS / STEP_NS; i += 100) {
		twin_compute(STEP_NS * 100);
		TRY(step_count(100));
	}
	return http_send(x, http_path(x));
}

static enum status
answer(struct http_exchange *x)
{
	struct str path = http_path(x);
	unsigned ran = 0;

	begun_then = twin_now_ns() == begun_ns ? begun_then + 1 : 1;
	begun_ns = twin_now_ns();
	if (begun_then > most_begun)
		most_begun = begun_then;
	if (str_starts_with(path, STR("/n/")))
		return http_send(x, path);
	if (str_starts_with(path, STR("/chunks/")))
		return send_chunks(x, number_in(path, "/chunks/"));
	if (str_starts_with(path, STR("/sleep/"))) {
		twin_sleep_ms(number_in(path, "/sleep/"));
		return http_send(x, path);
	}
	if (str_starts_with(path, STR("/work/"))) {
		wait_offload(add_one, &ran);
		twin_check(ran == 1);
		return http_send(x, path);
	}
	if (str_eq(path, STR("/compute")))
		return compute_for_ever();
	if (str_starts_with(path, STR("/compute/")))
		return compute_for(x, number_in(path, "/compute/"));
	if (str_eq(path, STR("/echo")))
		return send_body_back(x);
	if (str_eq(path, STR("/feed"))) { /* until the client goes or the server stops */
		struct event *ends[] = { http_closed_event(x), http_stopping_event(x) };

		(void)event_wait_any(ends, 2, WAIT_FOREVER);
		return http_send(x, STR("over"));
	}
	http_set_status(x, 404);
	return http_send(x, STR("")); /* leaves its body unread */
}

static void
handle(struct http_exchange *x, void *arg)
{
	(void)arg;
	if (answer(x) != STATUS_OK)
		http_abort(x);
}

static void
client_ended(void)
{
	if (--clients == 0)
		server_stop(server);
}

static void
play_on(const struct server_config *more, unsigned count, void (*script)(void *arg))
{
	struct server_config config = more ? *more : (struct server_config){ 0 };
	struct err err = { 0 };

	config.loops = 1;
	config.io = &twin_io;
	config.handler = handle;
	if (!config.max_connections)
		config.max_connections = 100;
	if (!config.memory_bytes)
		config.memory_bytes = 64 * 1024 * 1024;
	config.request_bytes = 1024 * 1024;
	config.header_timeout_ms = HEADER_MS;
	config.idle_timeout_ms = IDLE_MS;
	config.body_timeout_ms = STALL_MS;
	config.min_rate_bytes = 1; /* ways may be narrow and long: test_slow.c is about rates */
	config.drain_timeout_ms = DRAIN_MS;
	config.memory_timeout_ms = MEMORY_MS;
	config.output_bytes = 4096 + twin_draw(100000);
	clients = count;
	given_up = 0;
	twin_check(server_new(&config, &server, &err) == STATUS_OK);
	twin_check(server_listen(server, "twin:80", &err) == STATUS_OK);
	for (unsigned i = 0; i < count; i++)
		twin_script(script, NULL);
	twin_check(server_run(server, &err) == STATUS_OK);
	twin_settle();
	twin_check(server_stats(server).connections == 0);
	twin_check(server_free(server)); /* where the budget says that all of it has come back */
}

/* ---- A client that understands answers ---- */

struct reader {
	struct twin_client *c;
	struct buf in;
	enum twin_got end; /* TWIN_GOT_BYTES: not yet */
	bool slow;
	uint64_t deadline_ns;
};

struct got {
	int status; /* 0: nothing came but the end */
	bool whole;
	bool close;
	struct buf body;
};

static void
reader_open(struct reader *r, enum twin_way way)
{
	*r = (struct reader){
		.c = twin_connect(PORT, way),
		.in = BUF_INIT(1024 * 1024),
		.slow = way == TWIN_WAY_ANY && twin_chance(20),
		.deadline_ns = WAIT_FOREVER,
	};
}

static void
reader_close(struct reader *r, bool reset)
{
	twin_close(r->c, reset);
	buf_release(&r->in);
	client_ended();
}

static bool
reader_more(struct reader *r)
{
	char some[2000];
	size_t n;

	if (r->end != TWIN_GOT_BYTES)
		return false;
	if (r->slow)
		twin_sleep_ms(twin_draw(STALL_MS / 20));
	r->end = twin_receive(r->c, some, 1 + twin_draw(sizeof(some) - 1), &n, r->deadline_ns);
	buf_append(&r->in, some, n);
	return r->end == TWIN_GOT_BYTES;
}

static bool
reader_need(struct reader *r, size_t n)
{
	while (r->in.len < n)
		if (!reader_more(r))
			return false;
	return true;
}

/* The length of what comes before and with the first `end`; 0: it does not come. */
static size_t
reader_find(struct reader *r, const char *end)
{
	for (;;) {
		const char *at = r->in.len ? memmem(r->in.ptr, r->in.len, end, strlen(end)) : NULL;

		if (at)
			return (size_t)(at - r->in.ptr) + strlen(end);
		if (!reader_more(r))
			return 0;
	}
}

static bool
reader_take(struct reader *r, struct buf *to, size_t n)
{
	if (!reader_need(r, n))
		return false;
	buf_append(to, r->in.ptr, n);
	buf_consume(&r->in, n);
	return true;
}

static bool
reader_take_chunks(struct reader *r, struct buf *to)
{
	for (;;) {
		size_t line = reader_find(r, "\r\n");
		size_t n;

		if (!line)
			return false;
		n = strtoul(r->in.ptr, NULL, 16);
		buf_consume(&r->in, line);
		if (n && !reader_take(r, to, n))
			return false;
		if (!reader_need(r, 2))
			return false;
		twin_check(memcmp(r->in.ptr, "\r\n", 2) == 0);
		buf_consume(&r->in, 2);
		if (!n)
			return true;
	}
}

static void
got_release(struct got *g)
{
	buf_release(&g->body);
	*g = (struct got){ .body = BUF_INIT(1024 * 1024) };
}

static void
reader_answer(struct reader *r, struct got *g)
{
	size_t n = reader_find(r, "\r\n\r\n");
	char head[2048];
	const char *length;

	got_release(g);
	if (!n)
		return;
	twin_check(n < sizeof(head));
	memcpy(head, r->in.ptr, n);
	head[n] = '\0';
	buf_consume(&r->in, n);
	twin_check(strncmp(head, "HTTP/1.1 ", 9) == 0);
	g->status = atoi(head + 9);
	g->close = strstr(head, "\r\nConnection: close\r\n") != NULL;
	length = strstr(head, "\r\nContent-Length: ");
	if (length)
		g->whole = reader_take(r, &g->body, strtoul(length + 18, NULL, 10));
	else
		g->whole = reader_take_chunks(r, &g->body);
}

/* ---- Requests, and what their answers have to be ---- */

struct request {
	char text[BODY_BYTES + 300];
	size_t len;
	int status;
	struct buf body; /* of the answer */
};

static void
request_write(struct request *q)
{
	unsigned long long n = twin_draw(1000);
	char path[64];

	q->status = 200;
	buf_release(&q->body);
	q->body = BUF_INIT(1024 * 1024);
	switch (twin_draw(6)) {
	case 0:
		snprintf(path, sizeof(path), "/chunks/%llu", n);
		for (unsigned long long i = 0; i < n; i++)
			buf_printf(&q->body, "chunk %llu of many;", i);
		break;
	case 1:
		snprintf(path, sizeof(path), "/sleep/%llu", n / 10);
		buf_append_cstr(&q->body, path);
		break;
	case 2:
		snprintf(path, sizeof(path), "/work/%llu", n);
		buf_append_cstr(&q->body, path);
		break;
	case 3:
		snprintf(path, sizeof(path), "/echo");
		for (uint64_t i = twin_draw(BODY_BYTES); i > 0; i--)
			buf_append_byte(&q->body, (char)('a' + i % 26));
		break;
	case 4:
		snprintf(path, sizeof(path), "/nothing/%llu", n);
		q->status = 404;
		break;
	default:
		snprintf(path, sizeof(path), "/n/%llu", n);
		buf_append_cstr(&q->body, path);
		break;
	}
	q->len = (size_t)snprintf(q->text, sizeof(q->text), "POST %s HTTP/1.1\r\nHost: h\r\n",
				  path);
	if (strcmp(path, "/echo") != 0)
		q->len += (size_t)snprintf(q->text + q->len, sizeof(q->text) - q->len,
					   "Content-Length: 4\r\n\r\nrest");
	else if (twin_chance(50))
		q->len += (size_t)snprintf(q->text + q->len, sizeof(q->text) - q->len,
					   "Content-Length: %zu\r\n\r\n%.*s", q->body.len,
					   STR_ARG(buf_str(&q->body)));
	else if (q->body.len)
		q->len += (size_t)snprintf(q->text + q->len, sizeof(q->text) - q->len,
					   "Transfer-Encoding: chunked\r\n\r\n%zx\r\n%.*s\r\n"
					   "0\r\n\r\n",
					   q->body.len, STR_ARG(buf_str(&q->body)));
	else
		q->len += (size_t)snprintf(q->text + q->len, sizeof(q->text) - q->len,
					   "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
	twin_check(q->len < sizeof(q->text));
}

/* Many requests in one go, cut anywhere. */
struct pipeline {
	struct twin_client *c;
	struct request *requests;
	unsigned count;
	bool shut;
	struct event sent;
};

static void
pipeline_send(void *arg)
{
	struct pipeline *p = arg;

	for (unsigned i = 0; i < p->count; i++)
		if (!twin_send_slowly(p->c, str_of(p->requests[i].text, p->requests[i].len),
				      STALL_MS / 50))
			break;
	if (p->shut)
		twin_shutdown(p->c);
	event_set(&p->sent);
}

/* Sends requests and takes their answers at the same time. True: every one was as it has to be. */
static unsigned
pipeline_play(struct reader *r, struct pipeline *p)
{
	struct got g = { 0 };
	unsigned whole = 0;

	p->c = r->c;
	p->count = 1 + (unsigned)twin_draw(REQUESTS);
	p->requests = mem_zalloc(p->count * sizeof(*p->requests));
	event_init(&p->sent);
	for (unsigned i = 0; i < p->count; i++)
		request_write(&p->requests[i]);
	twin_script(pipeline_send, p);
	for (; whole < p->count; whole++) {
		const struct request *q = &p->requests[whole];

		reader_answer(r, &g);
		if (!g.whole)
			break;
		twin_check(g.status == q->status);
		twin_check(str_eq(buf_str(&g.body), buf_str(&q->body)));
	}
	if (whole < p->count) /* cut off: its sender must not wait for ever */
		twin_close(r->c, true);
	event_wait(&p->sent, WAIT_FOREVER);
	for (unsigned i = 0; i < p->count; i++)
		buf_release(&p->requests[i].body);
	mem_free(p->requests);
	got_release(&g);
	return whole;
}

/* ---- Scripts ---- */

static void
polite(void *arg)
{
	struct pipeline p = { .shut = twin_chance(30) };
	struct reader r;

	(void)arg;
	reader_open(&r, TWIN_WAY_ANY);
	twin_check(pipeline_play(&r, &p) == p.count);
	if (!p.shut && twin_chance(50)) {
		twin_sleep_ms(twin_draw(IDLE_MS / 2));
		twin_check(pipeline_play(&r, &p) == p.count);
	}
	if (p.shut)
		twin_check(!reader_more(&r) && r.end == TWIN_GOT_END);
	reader_close(&r, false);
}

static void
rude(void *arg)
{
	struct request q = { .len = 0 };
	struct reader r;

	(void)arg;
	reader_open(&r, TWIN_WAY_ANY);
	request_write(&q);
	(void)twin_send_slowly(r.c, str_of(q.text, twin_draw(q.len + 1)), 5);
	if (twin_chance(50))
		twin_sleep_ms(twin_draw(50));
	reader_close(&r, twin_chance(70));
	buf_release(&q.body);
}

static void
mixed(void *arg)
{
	if (twin_chance(60))
		polite(arg);
	else
		rude(arg);
}

static void
check_passed_ms(uint64_t begun, uint64_t least)
{
	uint64_t passed = twin_now_ms() - begun;

	twin_check(passed + 1 >= least && passed <= least + LATE_MS);
}

static void
slow_head(void *arg)
{
	uint64_t begun;
	struct got g = { 0 };
	struct reader r;

	(void)arg;
	reader_open(&r, TWIN_WAY_SHORT);
	begun = twin_now_ms();
	twin_check(twin_send(r.c, STR("GET / HTTP/1.1\r\nHo")));
	reader_answer(&r, &g);
	twin_check(g.status == 408 && g.whole && g.close);
	check_passed_ms(begun, HEADER_MS);
	got_release(&g);
	reader_close(&r, false);
}

static void
idle(void *arg)
{
	uint64_t begun;
	struct reader r;

	(void)arg;
	reader_open(&r, TWIN_WAY_SHORT);
	begun = twin_now_ms();
	twin_check(!reader_more(&r) && r.end == TWIN_GOT_END);
	check_passed_ms(begun, IDLE_MS);
	reader_close(&r, false);
}

static void
slow_body(void *arg)
{
	uint64_t begun;
	struct got g = { 0 };
	struct reader r;

	(void)arg;
	reader_open(&r, TWIN_WAY_SHORT);
	begun = twin_now_ms();
	twin_check(twin_send(r.c, STR("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n"
				      "1234")));
	reader_answer(&r, &g);
	twin_check(g.status == 408 && g.whole && g.close);
	check_passed_ms(begun, STALL_MS);
	twin_check(given_up > 0);
	got_release(&g);
	reader_close(&r, false);
}

/* Asks for much and reads nothing. */
static void
deaf(void *arg)
{
	struct twin_client *c = twin_connect(PORT, TWIN_WAY_ANY);
	unsigned sent = 0;

	(void)arg;
	while (twin_send(c, STR("GET /chunks/999 HTTP/1.1\r\nHost: h\r\n\r\n")))
		twin_check(++sent < 100000);
	twin_close(c, true);
	client_ended();
}

static void
with_a_deadline(void *arg)
{
	void (*const all[])(void *arg) = { slow_head, idle, slow_body, deaf };

	all[twin_draw(4)](arg);
}

static void
feed(void *arg)
{
	struct got g = { 0 };
	struct reader r;

	(void)arg;
	reader_open(&r, TWIN_WAY_SHORT);
	(void)twin_send(r.c, STR("GET /feed HTTP/1.1\r\nHost: h\r\n\r\n"));
	if (twin_chance(30)) {
		twin_sleep_ms(twin_draw(50));
		reader_close(&r, twin_chance(50));
		return;
	}
	reader_answer(&r, &g);
	if (g.status) {
		twin_check(g.whole && g.close && str_eq(buf_str(&g.body), STR("over")));
		twin_check(!reader_more(&r) && r.end == TWIN_GOT_END);
	}
	/* It is told of the stop: nothing waits for the end of the drain. */
	twin_check(twin_now_ms() <= stopped_ms + LATE_MS);
	got_release(&g);
	reader_close(&r, false);
}

/*
 * What a stop does not answer has not been begun to be answered: an answer is whole or absent, and
 * the last one tells that the connection closes, unless the client was not asking anything.
 */
static void
stopped_while_talking(void *arg)
{
	struct pipeline p = { .shut = false };
	struct reader r;

	if (twin_chance(20)) {
		feed(arg);
		return;
	}
	reader_open(&r, TWIN_WAY_ANY);
	(void)pipeline_play(&r, &p);
	twin_check(r.in.len == 0 || r.end == TWIN_GOT_RESET);
	reader_close(&r, false);
}

static void
stopper(void *arg)
{
	(void)arg;
	twin_sleep_ms(twin_draw(100));
	stopped_ms = twin_now_ms();
	server_stop(server);
	client_ended();
}

static void
stop_and_talk(void *arg)
{
	if (!stop_is_planned) {
		stop_is_planned = true;
		clients++;
		twin_script(stopper, NULL);
	}
	stopped_while_talking(arg);
}

static void
large(void *arg)
{
	static char body[LARGE_BYTES];
	char head[128];
	struct got g = { 0 };
	struct reader r;
	int n;

	(void)arg;
	reader_open(&r, TWIN_WAY_SHORT);
	memset(body, 'x', sizeof(body));
	n = snprintf(head, sizeof(head),
		     "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", LARGE_BYTES);
	twin_check(twin_send(r.c, str_of(head, (size_t)n)));
	if (twin_chance(20)) { /* lets the others have the memory, sooner or later */
		twin_sleep_ms(twin_draw(2 * STALL_MS));
		reader_close(&r, twin_chance(50));
		return;
	}
	twin_check(twin_send(r.c, str_of(body, sizeof(body))));
	reader_answer(&r, &g);
	twin_check(g.whole);
	twin_check(g.status == 503 || (g.status == 200 && g.body.len == LARGE_BYTES));
	got_release(&g);
	reader_close(&r, twin_chance(20));
}

static void
crowded(void *arg)
{
	struct got g = { 0 };
	struct reader r;

	(void)arg;
	reader_open(&r, TWIN_WAY_ANY);
	(void)twin_send(r.c, STR("GET /sleep/20 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
	reader_answer(&r, &g);
	twin_check(g.status == 0 || g.status == 200 || g.status == 503);
	got_release(&g);
	reader_close(&r, false);
}

/* Asks for something that never ends, and goes, or shuts its side, or asks for much more first. */
static void
computed_and_gone(void *arg)
{
	struct twin_client *c = twin_connect(PORT, TWIN_WAY_SHORT);
	uint64_t begun;

	(void)arg;
	(void)twin_send(c, STR("GET /compute HTTP/1.1\r\nHost: h\r\n\r\n"));
	if (twin_chance(50)) /* more than is read while the handler runs */
		for (int i = 0; i < 4000; i++)
			(void)twin_send(c, STR("GET /n/1 HTTP/1.1\r\nHost: h\r\n\r\n"));
	twin_sleep_ms(twin_draw(20));
	if (twin_chance(30))
		twin_shutdown(c);
	else
		twin_close(c, twin_chance(50));
	begun = twin_now_ms();
	while (computing && twin_now_ms() < begun + CLIENTS * ENDED_MS + LATE_MS)
		twin_sleep_ms(10);
	twin_check(!computing);
	twin_close(c, true);
	client_ended();
}

/* Others are served meanwhile, in as little time as always. */
static void
served_meanwhile(void *arg)
{
	(void)arg;
	for (int i = 0; i < REQUESTS; i++) {
		struct got g = { 0 };
		struct reader r;
		uint64_t begun;

		reader_open(&r, TWIN_WAY_SHORT);
		begun = twin_now_ms();
		(void)twin_send(r.c, STR("GET /n/1 HTTP/1.1\r\nHost: h\r\n\r\n"));
		reader_answer(&r, &g);
		twin_check(g.whole && twin_now_ms() <= begun + LATE_MS / 6);
		got_release(&g);
		clients++;
		reader_close(&r, false);
	}
	client_ended();
}

/* Asks for much at once, of which each is little. */
static void
pipelined(void *arg)
{
	struct got g = { 0 };
	struct reader r;

	(void)arg;
	reader_open(&r, TWIN_WAY_SHORT);
	for (int i = 0; i < PIPELINED; i++)
		twin_check(twin_send(r.c, STR("GET /n/1 HTTP/1.1\r\nHost: h\r\n\r\n")));
	for (int i = 0; i < PIPELINED; i++) {
		reader_answer(&r, &g);
		twin_check(g.whole && g.status == 200);
	}
	got_release(&g);
	reader_close(&r, false);
}

/* Has shut its sending side, and gets the answer that took some computing nevertheless. */
static void
half_closed(void *arg)
{
	struct got g = { 0 };
	struct reader r;
	char text[80];
	int n = snprintf(text, sizeof(text), "GET /compute/%d HTTP/1.1\r\nHost: h\r\n\r\n",
			 MODEST_MS);

	(void)arg;
	reader_open(&r, TWIN_WAY_SHORT);
	(void)twin_send(r.c, str_of(text, (size_t)n));
	twin_shutdown(r.c);
	reader_answer(&r, &g);
	twin_check(g.status == 200 && g.whole);
	got_release(&g);
	reader_close(&r, false);
}

static void
with_computing(void *arg)
{
	void (*const all[])(void *arg) = { computed_and_gone, served_meanwhile, half_closed };

	all[twin_draw(3)](arg);
}

/* Waits for an answer that never comes, while the server is being stopped. */
static void
stopped_while_computing(void *arg)
{
	struct got g = { 0 };
	struct reader r;

	if (!stop_is_planned) {
		stop_is_planned = true;
		clients++;
		twin_script(stopper, NULL);
	}
	(void)arg;
	reader_open(&r, TWIN_WAY_SHORT);
	(void)twin_send(r.c, STR("GET /compute HTTP/1.1\r\nHost: h\r\n\r\n"));
	reader_answer(&r, &g);
	twin_check(!g.whole);
	twin_check(!stopped_ms || twin_now_ms() <= stopped_ms + DRAIN_MS + LATE_MS);
	got_release(&g);
	reader_close(&r, false);
}

/* One that is patient: the limit of steps ends it. */
static void
limited(void *arg)
{
	struct got g = { 0 };
	struct reader r;

	(void)arg;
	reader_open(&r, TWIN_WAY_SHORT);
	(void)twin_send(r.c, STR("GET /compute HTTP/1.1\r\nHost: h\r\n\r\n"));
	reader_answer(&r, &g);
	twin_check(!g.whole && r.end == TWIN_GOT_RESET); /* the handler answers nothing */
	got_release(&g);
	reader_close(&r, false);
}

/* ---- Tests ---- */

static void
play_computing(void)
{
	computing = 0;
	play_on(NULL, 2 + (unsigned)twin_draw(CLIENTS), with_computing);
	twin_check(computing == 0);
}

static void
what_computes_for_a_client_that_has_gone_is_cancelled(void **state)
{
	(void)state;
	twin_run_seeds(play_computing, COMPUTE_SEEDS);
}

static void
play_stops_of_computing(void)
{
	stop_is_planned = false;
	stopped_ms = 0;
	computing = 0;
	play_on(NULL, 1 + (unsigned)twin_draw(2), stopped_while_computing);
	twin_check(computing == 0);
}

static void
play_pipelined(void)
{
	most_begun = 0;
	play_on(NULL, 1, pipelined);
	/*
	 * The one that waited for its turn is followed by a burst. Twice that, since the twin's
	 * time may stand still between two turns.
	 */
	twin_check(most_begun <= 2 * (CONN_BURST + 1));
}

static void
pipelined_requests_let_others_run(void **state)
{
	(void)state;
	twin_run_seeds(play_pipelined, COMPUTE_SEEDS);
}

static void
what_computes_is_cancelled_at_the_end_of_the_drain(void **state)
{
	(void)state;
	twin_run_seeds(play_stops_of_computing, 5);
}

static void
play_limit(void)
{
	const struct server_config config = {
		.request_steps = COMPUTE_SECONDS * 1000 * CLOCK_NS_PER_MS / STEP_NS,
	};
	uint64_t begun = twin_now_ms();

	computing = 0;
	play_on(&config, 1 + (unsigned)twin_draw(2), limited);
	twin_check(computing == 0);
	twin_check(twin_now_ms() <= begun + 2 * COMPUTE_SECONDS * 1000 + IDLE_MS + LATE_MS);
}

static void
what_computes_for_too_long_is_ended_by_the_limit(void **state)
{
	(void)state;
	twin_run_seeds(play_limit, 5);
}

static void
play_mixed(void)
{
	play_on(NULL, 1 + (unsigned)twin_draw(CLIENTS), mixed);
}

static void
play_deadlines(void)
{
	play_on(NULL, 1 + (unsigned)twin_draw(CLIENTS), with_a_deadline);
}

static void
play_stops(void)
{
	stop_is_planned = false;
	play_on(NULL, 1 + (unsigned)twin_draw(CLIENTS), stop_and_talk);
}

static void
play_budget(void)
{
	const struct server_config config = { .memory_bytes = MEMORY_BYTES };

	play_on(&config, 2 + (unsigned)twin_draw(CLIENTS), large);
}

static void
play_crowd(void)
{
	const struct server_config config = { .max_connections = 1 + twin_draw(4) };

	play_on(&config, 2 + (unsigned)twin_draw(2 * CLIENTS), crowded);
}

static void
each_client_gets_its_own_answers_in_order(void **state)
{
	(void)state;
	twin_run_seeds(play_mixed, SEEDS);
}

static void
what_stalls_is_cut_off_at_its_deadline(void **state)
{
	(void)state;
	twin_run_seeds(play_deadlines, SEEDS);
}

static void
a_stop_at_any_moment_leaves_no_half_answer(void **state)
{
	(void)state;
	twin_run_seeds(play_stops, SEEDS);
}

static void
large_bodies_wait_for_memory_and_give_it_back(void **state)
{
	(void)state;
	twin_run_seeds(play_budget, SEEDS / 4);
}

static void
connections_beyond_the_limit_are_told_so(void **state)
{
	(void)state;
	twin_run_seeds(play_crowd, SEEDS);
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
		cmocka_unit_test(each_client_gets_its_own_answers_in_order),
		cmocka_unit_test(what_stalls_is_cut_off_at_its_deadline),
		cmocka_unit_test(a_stop_at_any_moment_leaves_no_half_answer),
		cmocka_unit_test(large_bodies_wait_for_memory_and_give_it_back),
		cmocka_unit_test(connections_beyond_the_limit_are_told_so),
		cmocka_unit_test(what_computes_for_a_client_that_has_gone_is_cancelled),
		cmocka_unit_test(pipelined_requests_let_others_run),
		cmocka_unit_test(what_computes_is_cancelled_at_the_end_of_the_drain),
		cmocka_unit_test(what_computes_for_too_long_is_ended_by_the_limit),
		cmocka_unit_test(a_seed_replays_exactly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

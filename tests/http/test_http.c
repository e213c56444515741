/* Exchanges: what a handler is given, what a client gets. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"

static _Atomic uint64_t peak_unsent; /* bytes a handler had written when it was parked */

static uint64_t
number(const struct http_exchange *x)
{
	uint64_t n = 0;

	assert_true(str_to_u64(http_query(x), &n));
	return n;
}

static void
echo(struct http_exchange *x)
{
	struct str body;
	enum status s = http_read_all(x, 1 << 20, &body);

	if (s == STATUS_LIMIT)
		http_set_status(x, 413);
	else if (s == STATUS_INVALID)
		http_set_status(x, 400);
	if (http_send(x, s == STATUS_OK ? body : str_from_cstr(status_name(s))) != STATUS_OK)
		http_abort(x);
}

static void
echo_stream(struct http_exchange *x)
{
	struct str part;

	if (http_start(x, HTTP_LENGTH_UNKNOWN) != STATUS_OK)
		return;
	while (http_read(x, &part) == STATUS_OK)
		if (http_write(x, part) != STATUS_OK)
			return;
	if (http_finish(x) != STATUS_OK)
		return;
}

/* Reads the first part of the body, as many bytes as the query says at least, and no more. */
static void
read_first(struct http_exchange *x)
{
	uint64_t left = number(x);
	struct str part;

	while (left && http_read(x, &part) == STATUS_OK)
		left -= part.len < left ? part.len : left;
	if (http_send(x, STR("read")) != STATUS_OK)
		http_abort(x);
}

/* `n` bytes that tell their place. */
static void
stream(struct http_exchange *x, uint64_t n, uint64_t announced, size_t piece)
{
	char *bytes = arena_bytes(http_arena(x), piece);

	if (!bytes || http_start(x, announced) != STATUS_OK)
		return;
	for (uint64_t at = 0; at < n;) {
		size_t len = n - at < piece ? (size_t)(n - at) : piece;

		for (size_t i = 0; i < len; i++)
			bytes[i] = (char)('a' + (at + i) % 23);
		if (http_write(x, str_of(bytes, len)) != STATUS_OK)
			return;
		at += len;
		atomic_store(&peak_unsent, at);
	}
	if (http_finish(x) != STATUS_OK)
		return;
}

static void
describe(struct http_exchange *x)
{
	struct buf out = BUF_INIT(1 << 20);

	buf_append_str(&out, http_method(x));
	buf_append_byte(&out, ' ');
	buf_append_str(&out, http_path(x));
	buf_append_byte(&out, '?');
	buf_append_str(&out, http_query(x));
	for (size_t i = 0; i < http_request_header_count(x); i++) {
		struct http_header h = http_request_header_at(x, i);

		buf_printf(&out, "\n%.*s=%.*s", STR_ARG(h.name), STR_ARG(h.value));
	}
	if (http_send(x, buf_str(&out)) != STATUS_OK)
		http_abort(x);
	buf_release(&out);
}

static void
answer_oddly(struct http_exchange *x, struct str path)
{
	enum status s = STATUS_OK;

	if (str_eq(path, STR("/inject"))) {
		http_set_header(x, STR("X-Evil"), STR("a\r\nSet-Cookie: b"));
		s = http_send(x, STR("secret"));
	} else if (str_starts_with(path, STR("/name/"))) {
		char name[] = "X-A-Name-Of-Sixteen";
		size_t at = path.len == 10 ? 3 : 17; /* within the first eight bytes, or the rest */

		(void)str_from_hex(str_of(path.ptr + 6, 2), name + at);
		http_set_header(x, str_from_cstr(name), STR("a"));
		s = http_send(x, STR("ok"));
	} else if (str_eq(path, STR("/headers"))) {
		http_set_header(x, STR("ETag"), STR("\"1\""));
		http_set_header(x, STR("etag"), STR("\"2\""));
		http_add_header(x, STR("Set-Cookie"), STR("a"));
		http_add_header(x, STR("Set-Cookie"), STR("b"));
		http_set_header(x, STR("Content-Length"), STR("7"));
		s = http_send(x, STR("ok"));
	} else if (str_eq(path, STR("/fails"))) {
		http_set_status(x, (int)number(x));
		s = http_send(x, STR(""));
	} else if (str_eq(path, STR("/empty"))) {
		http_set_status(x, 204);
		s = http_send(x, STR(""));
	} else if (str_eq(path, STR("/short"))) {
		s = http_start(x, 10);
		s = s ? s : http_write(x, STR("123"));
		assert_int_equal(http_finish(x), STATUS_INVALID);
	} else if (str_eq(path, STR("/long"))) {
		s = http_start(x, 2);
		assert_int_equal(http_write(x, STR("123")), STATUS_INVALID);
	} else if (str_eq(path, STR("/unfinished"))) {
		s = http_start(x, HTTP_LENGTH_UNKNOWN);
		s = s ? s : http_write(x, STR("half of it"));
		http_flush(x);
	} else if (str_eq(path, STR("/abort"))) {
		s = http_start(x, HTTP_LENGTH_UNKNOWN);
		s = s ? s : http_write(x, STR("half of it"));
		http_flush(x);
		http_abort(x);
		assert_int_equal(http_write(x, STR("more")), STATUS_CANCELLED);
	} else if (str_eq(path, STR("/peer"))) {
		s = http_send(x, http_peer(x));
	}
	(void)s;
}

static void
handle(struct http_exchange *x, void *arg)
{
	struct str path = http_path(x);

	(void)arg;
	if (str_eq(path, STR("/echo")))
		echo(x);
	else if (str_eq(path, STR("/echo-stream")))
		echo_stream(x);
	else if (str_eq(path, STR("/stream")))
		stream(x, number(x), HTTP_LENGTH_UNKNOWN, 1000);
	else if (str_eq(path, STR("/stream-large")))
		stream(x, number(x), HTTP_LENGTH_UNKNOWN, 3 << 20);
	else if (str_eq(path, STR("/stream-known")))
		stream(x, number(x), number(x), 7000);
	else if (str_eq(path, STR("/send-large")))
		stream(x, number(x), number(x), (size_t)number(x));
	else if (str_starts_with(path, STR("/describe")) || path.ptr[0] == '*')
		describe(x);
	else if (str_eq(path, STR("/first")))
		read_first(x);
	else if (str_eq(path, STR("/ignore")) && http_send(x, STR("ignored")) != STATUS_OK)
		http_abort(x);
	else
		answer_oddly(x, path);
}

static struct fixture f;

static int
start(void **state)
{
	(void)state;
	fixture_start(&f, NULL, handle);
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	fixture_stop(&f);
	return 0;
}

static void
check_stream(const struct answer *a, size_t n)
{
	assert_true(a->whole);
	assert_int_equal(a->body.len, n);
	for (size_t i = 0; i < n; i++)
		if (a->body.ptr[i] != (char)('a' + i % 23))
			fail_msg("wrong byte at %zu", i);
}

static void
a_connection_serves_one_request_after_the_other(void **state)
{
	struct client c;
	struct answer a = { 0 };

	(void)state;
	client_open(&c, &f);
	for (int i = 0; i < 5; i++) {
		client_ask(&c, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
			   &a, 200);
		assert_true(a.whole && !a.close);
		assert_int_equal(a.body.len, 5);
		assert_memory_equal(a.body.ptr, "hello", 5);
		assert_true(answer_has(&a, "\r\nDate: ") && answer_has(&a, "\r\nServer: frond/"));
	}
	answer_release(&a);
	client_close(&c);
}

static void
the_handler_sees_method_target_and_headers(void **state)
{
	struct client c;
	struct answer a = { 0 };
	static const char expected[] = "COPY /describe/a%2Fb?x=1&y=?\nHost=x\nA=b c\nEmpty=\nZ=z";

	(void)state;
	client_open(&c, &f);
	client_ask(&c,
		   "COPY /describe/a%2Fb?x=1&y=? HTTP/1.1\r\nHost: x\r\nA:  b c \t\r\nEmpty:\r\n"
		   "Z: z\r\n\r\n",
		   &a, 200);
	assert_int_equal(a.body.len, sizeof(expected) - 1);
	assert_memory_equal(a.body.ptr, expected, a.body.len);
	client_ask(&c, "GET http://host:1/describe?q HTTP/1.1\r\nHost: x\r\n\r\n", &a, 200);
	assert_memory_equal(a.body.ptr, "GET /describe?q", 15);
	client_ask(&c, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", &a, 200);
	assert_memory_equal(a.body.ptr, "OPTIONS *?", 10);
	client_ask(&c, GET("/peer"), &a, 200);
	assert_memory_equal(a.body.ptr, "127.0.0.1:", 10);
	answer_release(&a);
	client_close(&c);
}

static void
pipelined_requests_are_answered_in_their_order(void **state)
{
	enum {
		REQUESTS = 400
	};
	struct buf out = BUF_INIT(1 << 20);
	struct client c;
	struct answer a = { 0 };
	char expected[32];

	(void)state;
	client_open(&c, &f);
	for (int i = 0; i < REQUESTS; i++)
		buf_printf(&out,
			   "PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
			   "4\r\n%04d\r\n0\r\n\r\n",
			   i);
	assert_true(client_send(&c, buf_str(&out)));
	for (int i = 0; i < REQUESTS; i++) {
		client_answer(&c, &a, false);
		snprintf(expected, sizeof(expected), "%04d", i);
		assert_int_equal(a.body.len, 4);
		assert_memory_equal(a.body.ptr, expected, 4);
	}
	answer_release(&a);
	buf_release(&out);
	client_close(&c);
}

static void
a_request_may_come_byte_by_byte(void **state)
{
	static const char request[] = "POST /echo HTTP/1.1\r\nHost: x\r\n"
				      "Transfer-Encoding: chunked\r\n\r\n"
				      "3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: t\r\n\r\n";
	struct client c;
	struct answer a = { 0 };

	(void)state;
	client_open(&c, &f);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof(request) - 1; i++) {
			assert_true(client_send(&c, str_of(request + i, 1)));
			usleep(200);
		}
		client_answer(&c, &a, false);
		assert_int_equal(a.status, 200);
		assert_int_equal(a.body.len, 5);
		assert_memory_equal(a.body.ptr, "abcde", 5);
	}
	answer_release(&a);
	client_close(&c);
}

static void
a_body_streams_through(void **state)
{
	enum {
		CHUNKS = 64,
		CHUNK = 0x8000
	};
	static char chunk[CHUNK];
	struct client c;
	struct answer a = { 0 };

	(void)state;
	memset(chunk, 'q', sizeof(chunk));
	client_open(&c, &f);
	assert_true(client_send_cstr(&c, "POST /echo-stream HTTP/1.1\r\nHost: x\r\n"
					 "Transfer-Encoding: chunked\r\n\r\n"));
	for (int i = 0; i < CHUNKS; i++) {
		assert_true(client_send_cstr(&c, "8000\r\n"));
		assert_true(client_send(&c, str_of(chunk, CHUNK)));
		assert_true(client_send_cstr(&c, "\r\n"));
	}
	assert_true(client_send_cstr(&c, "0\r\n\r\n"));
	client_answer(&c, &a, false);
	assert_true(a.whole);
	assert_int_equal(a.body.len, CHUNKS * CHUNK);
	answer_release(&a);
	client_close(&c);
}

static void
answers_of_any_size_arrive_whole(void **state)
{
	static const char *const paths[] = { "/stream", "/stream-known", "/stream-large",
					     "/send-large" };
	static const size_t sizes[] = { 1, 16384, 300001, 5000000 };
	struct client c;
	struct answer a = { 0 };
	char request[128];

	(void)state;
	client_open(&c, &f);
	for (size_t i = 0; i < 4; i++) {
		for (size_t k = 0; k < 4; k++) {
			snprintf(request, sizeof(request), "GET %s?%zu HTTP/1.1\r\nHost: x\r\n\r\n",
				 paths[i], sizes[k]);
			client_ask(&c, request, &a, 200);
			check_stream(&a, sizes[k]);
		}
	}
	answer_release(&a);
	client_close(&c);
}

static void
a_slow_reader_holds_the_handler_back(void **state)
{
	enum {
		BYTES = 30000000,
		OUTPUT_BYTES = 256 * 1024, /* of the connection, by default */
		KERNEL_BYTES = 64 * 1024,
	};
	struct client c;
	struct answer a = { 0 };
	uint64_t before;

	(void)state;
	client_open_small(&c, &f, 8192);
	atomic_store(&peak_unsent, 0);
	assert_true(client_send_cstr(&c, GET("/stream?30000000")));
	do {
		before = atomic_load(&peak_unsent);
		usleep(100000);
	} while (atomic_load(&peak_unsent) != before || !before);
	/* The connection's own output, and what the kernel takes for a client that never read. */
	assert_true(before < OUTPUT_BYTES + KERNEL_BYTES);
	client_answer(&c, &a, false);
	check_stream(&a, BYTES);
	answer_release(&a);
	client_close(&c);
}

static void
a_head_request_gets_the_length_and_no_body(void **state)
{
	struct client c;
	struct answer a = { 0 };

	(void)state;
	client_open(&c, &f);
	client_ask(&c, "HEAD /ignore HTTP/1.1\r\nHost: x\r\n\r\n", &a, 200);
	assert_true(answer_has(&a, "\r\nContent-Length: 7\r\n"));
	client_ask(&c, "HEAD /stream?100000 HTTP/1.1\r\nHost: x\r\n\r\n", &a, 200);
	client_ask(&c, GET("/empty"), &a, 204);
	assert_false(answer_has(&a, "Content-Length"));
	client_ask(&c, GET("/ignore"), &a, 200);
	assert_int_equal(a.body.len, 7);
	answer_release(&a);
	client_close(&c);
}

static void
http_1_0_closes_unless_asked_not_to(void **state)
{
	struct client c;
	struct answer a = { 0 };

	(void)state;
	client_open(&c, &f);
	client_ask(&c, "GET /ignore HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", &a, 200);
	assert_true(a.whole && answer_has(&a, "\r\nConnection: keep-alive\r\n"));
	client_ask(&c, "GET /stream?50000 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", &a, 200);
	assert_true(a.close && !answer_has(&a, "chunked"));
	check_stream(&a, 50000);
	client_close(&c);

	client_open(&c, &f);
	client_ask(&c, "GET /ignore HTTP/1.0\r\n\r\n", &a, 200);
	assert_true(a.close);
	assert_false(client_receive(&c));
	assert_false(c.reset);
	answer_release(&a);
	client_close(&c);
}

static void
continue_is_sent_when_the_body_is_read(void **state)
{
	struct client c;
	struct answer a = { 0 };

	(void)state;
	client_open(&c, &f);
	client_ask(&c,
		   "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
		   "Expect: 100-continue\r\n\r\n",
		   &a, 100);
	client_ask(&c, "abc", &a, 200);
	assert_memory_equal(a.body.ptr, "abc", 3);
	/* Nobody reads it, so nobody asked for it: whether it comes cannot be known. */
	client_ask(&c,
		   "PUT /ignore HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
		   "Expect: 100-continue\r\n\r\n",
		   &a, 200);
	assert_true(a.close);
	client_close(&c);

	client_open(&c, &f);
	client_ask(&c,
		   "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: miracles\r\n\r\n",
		   &a, 417);
	answer_release(&a);
	client_close(&c);
}

static void
an_unread_body_is_skipped(void **state)
{
	static char body[200000];
	struct client c;
	struct answer a = { 0 };

	(void)state;
	client_open(&c, &f);
	memset(body, 'b', sizeof(body));
	for (int i = 0; i < 3; i++) {
		assert_true(client_send_cstr(
			&c, "POST /ignore HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n"));
		assert_true(client_send(&c, str_of(body, sizeof(body))));
		client_answer(&c, &a, false);
		assert_int_equal(a.status, 200);
		assert_false(a.close);
	}
	answer_release(&a);
	client_close(&c);
}

/* However much of it was read before: what is left is less than is skipped at most. */
static void
the_rest_of_a_body_is_skipped(void **state)
{
	static char body[1300000];
	struct client c;
	struct answer a = { 0 };

	(void)state;
	client_open(&c, &f);
	memset(body, 'b', sizeof(body));
	for (int i = 0; i < 3; i++) {
		assert_true(client_send_cstr(&c, "POST /first?500000 HTTP/1.1\r\nHost: x\r\n"
						 "Content-Length: 1300000\r\n\r\n"));
		assert_true(client_send(&c, str_of(body, sizeof(body))));
		client_answer(&c, &a, false);
		assert_int_equal(a.status, 200);
		assert_false(a.close);
	}
	answer_release(&a);
	client_close(&c);
}

static void
too_large_a_body_is_refused_and_the_client_reads_why(void **state)
{
	static char body[1 << 20];
	struct client c;
	struct answer a = { 0 };

	(void)state;
	client_open(&c, &f);
	client_ask(&c, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n", &a,
		   413);
	assert_true(a.close);
	/* It goes on sending; the answer must survive that. */
	for (int i = 0; i < 4; i++)
		client_send(&c, str_of(body, sizeof(body)));
	client_close(&c);

	client_open(&c, &f);
	assert_true(client_send_cstr(
		&c, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
		    "300000\r\n"));
	for (int i = 0; i < 3; i++)
		client_send(&c, str_of(body, sizeof(body)));
	client_answer(&c, &a, false);
	assert_int_equal(a.status, 413);
	answer_release(&a);
	client_close(&c);
}

static void
a_broken_body_is_the_handlers_to_refuse(void **state)
{
	struct client c;
	struct answer a = { 0 };

	(void)state;
	client_open(&c, &f);
	client_ask(&c,
		   "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
		   "3\r\nabcXX",
		   &a, 400);
	assert_true(a.close);
	answer_release(&a);
	client_close(&c);
}

static void
headers_are_replaced_added_and_never_injected(void **state)
{
	struct client c;
	struct answer a = { 0 };

	(void)state;
	client_open(&c, &f);
	client_ask(&c, GET("/headers"), &a, 200);
	assert_true(answer_has(&a, "\r\netag: \"2\"\r\n") && !answer_has(&a, "\"1\""));
	assert_true(answer_has(&a, "Set-Cookie: a\r\nSet-Cookie: b\r\n"));
	assert_true(answer_has(&a, "Content-Length: 2\r\n"));
	client_ask(&c, GET("/inject"), &a, 500);
	assert_false(answer_has(&a, "Set-Cookie: "));
	assert_non_null(memmem(a.body.ptr, a.body.len, "cannot be sent", 14));
	answer_release(&a);
	client_close(&c);
}

static void
names_of_headers_are_visible_characters_but_the_colon(void **state)
{
	static const char *const tails[] = { "", "/8" };
	struct answer a = { 0 };
	struct client c;
	char text[64];

	(void)state;
	client_open(&c, &f);
	for (int byte = 1; byte < 256; byte++) {
		bool may = byte > ' ' && byte <= '~' && byte != ':';

		for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
			(void)snprintf(text, sizeof(text),
				       "GET /name/%02x%s HTTP/1.1\r\nHost: x\r\n\r\n",
				       (unsigned)byte, tails[i]);
			client_ask(&c, text, &a, may ? 200 : 500);
		}
	}
	answer_release(&a);
	client_close(&c);
}

/* However a handler fails, the client is told that it has, in JSON, and nobody has to guess. */
static void
a_failure_always_has_a_body(void **state)
{
	static const struct {
		const char *request;
		int status;
		const char *body;
	} cases[] = {
		{ GET("/nothing-answers-here"), 500, "\"internal_server_error\"" },
		{ GET("/fails?500"), 500, "\"internal_server_error\"" },
		{ GET("/fails?501"), 501, "\"not_implemented\"" },
		{ GET("/fails?503"), 503, "\"service_unavailable\"" },
		{ GET("/fails?599"), 500, "\"internal_server_error\"" },
	};
	struct client c;
	struct answer a = { 0 };

	(void)state;
	client_open(&c, &f);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		client_ask(&c, cases[i].request, &a, cases[i].status);
		assert_true(answer_has(&a, "Content-Type: application/json\r\n"));
		assert_non_null(
			memmem(a.body.ptr, a.body.len, cases[i].body, strlen(cases[i].body)));
		assert_non_null(memmem(a.body.ptr, a.body.len, "\"reason\":\"", 10));
	}
	answer_release(&a);
	client_close(&c);
}

static void
refusals_are_json_whatever_their_reason_quotes(void **state)
{
	static const struct {
		const char *request;
		int status;
		const char *reason;
	} cases[] = {
		{ "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \"gzip\"\r\n\r\n", 501,
		  "the transfer coding \\\"chunked\\\" is" },
		{ "GET / HTTP/1.1\r\nHost: x\r\nExpect: \"x\"\r\n\r\n", 417,
		  "the expectation \\\"100-continue\\\" can" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct client c;
		struct answer a = { 0 };

		client_open(&c, &f);
		client_ask(&c, cases[i].request, &a, cases[i].status);
		assert_non_null(
			memmem(a.body.ptr, a.body.len, cases[i].reason, strlen(cases[i].reason)));
		answer_release(&a);
		client_close(&c);
	}
}

static void
a_cut_answer_never_looks_whole(void **state)
{
	static const char *const requests[] = { GET("/abort"), GET("/unfinished"), GET("/short"),
						GET("/long") };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct client c;
		struct answer a = { 0 };

		client_open(&c, &f);
		assert_true(client_send_cstr(&c, requests[i]));
		client_answer(&c, &a, false);
		assert_false(a.whole);
		assert_true(c.eof);
		answer_release(&a);
		client_close(&c);
	}
}

static void
a_half_closed_client_gets_its_answers(void **state)
{
	struct client c;
	struct answer a = { 0 };

	(void)state;
	client_open(&c, &f);
	assert_true(client_send_cstr(&c, GET("/stream?500000") GET("/ignore")));
	client_shutdown(&c);
	client_answer(&c, &a, false);
	check_stream(&a, 500000);
	client_answer(&c, &a, false);
	assert_int_equal(a.status, 200);
	assert_int_equal(a.body.len, 7);
	assert_false(client_receive(&c));
	answer_release(&a);
	client_close(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_serves_one_request_after_the_other),
		cmocka_unit_test(the_handler_sees_method_target_and_headers),
		cmocka_unit_test(pipelined_requests_are_answered_in_their_order),
		cmocka_unit_test(a_request_may_come_byte_by_byte),
		cmocka_unit_test(a_body_streams_through),
		cmocka_unit_test(answers_of_any_size_arrive_whole),
		cmocka_unit_test(a_slow_reader_holds_the_handler_back),
		cmocka_unit_test(a_head_request_gets_the_length_and_no_body),
		cmocka_unit_test(http_1_0_closes_unless_asked_not_to),
		cmocka_unit_test(continue_is_sent_when_the_body_is_read),
		cmocka_unit_test(an_unread_body_is_skipped),
		cmocka_unit_test(the_rest_of_a_body_is_skipped),
		cmocka_unit_test(too_large_a_body_is_refused_and_the_client_reads_why),
		cmocka_unit_test(a_broken_body_is_the_handlers_to_refuse),
		cmocka_unit_test(headers_are_replaced_added_and_never_injected),
		cmocka_unit_test(names_of_headers_are_visible_characters_but_the_colon),
		cmocka_unit_test(a_failure_always_has_a_body),
		cmocka_unit_test(refusals_are_json_whatever_their_reason_quotes),
		cmocka_unit_test(a_cut_answer_never_looks_whole),
		cmocka_unit_test(a_half_closed_client_gets_its_answers),
	};

	return cmocka_run_group_tests(tests, start, stop);
}

/*
 * The request parser without sockets: what it takes, what it refuses, and that cuts do not matter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "http/parser.h"

enum {
	HEADER_BYTES = 64 * 1024,
};

#define HEAD(more) "POST /x HTTP/1.1\r\nHost: h\r\n" more "\r\n"

static struct buf body;

static bool
take_body(void *arg, struct str data)
{
	assert_ptr_equal(arg, &body);
	buf_append_str(&body, data);
	return true;
}

static void
init(struct parser *p)
{
	body = BUF_INIT(1 << 20);
	parser_init(p, HEADER_BYTES, take_body, &body);
}

static void
fini(struct parser *p)
{
	parser_release(p);
	buf_release(&body);
}

/* Feeds `text` in stretches of `step` bytes; the unused rest comes back in *ret_rest. */
static enum parser_result
feed(struct parser *p, struct str text, size_t step, size_t *ret_rest)
{
	enum parser_result result = PARSER_RESULT_MORE;
	size_t at = 0;

	while (at < text.len && result == PARSER_RESULT_MORE) {
		size_t n = text.len - at < step ? text.len - at : step;
		size_t used;

		result = parser_feed(p, str_of(text.ptr + at, n), &used);
		at += used;
	}
	*ret_rest = text.len - at;
	return result;
}

/* The same refusal however it is cut. */
static void
check_refused(struct str text, int status)
{
	static const size_t steps[] = { 1, 2, 3, 7, 1 << 20 };

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct parser p;
		size_t rest;

		init(&p);
		if (feed(&p, text, steps[i], &rest) != PARSER_RESULT_BAD)
			fail_msg("taken in steps of %zu: %.*s", steps[i], STR_ARG(text));
		if (p.refusal != status)
			fail_msg("%d instead of %d: %.*s", p.refusal, status, STR_ARG(text));
		assert_non_null(p.reason);
		if (status == 414 || status == 431)
			assert_non_null(strstr(p.reason, "the limit is "));
		fini(&p);
	}
}

static void
check_taken(struct str text, struct str expected_body)
{
	static const size_t steps[] = { 1, 2, 3, 7, 1 << 20 };

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct parser p;
		size_t rest;

		init(&p);
		if (feed(&p, text, steps[i], &rest) != PARSER_RESULT_DONE)
			fail_msg("%d %s: %.*s", p.refusal, p.reason, STR_ARG(text));
		assert_int_equal(rest, 0);
		assert_true(str_eq(buf_str(&body), expected_body));
		fini(&p);
	}
}

static void
whole_requests_are_taken(void **state)
{
	(void)state;
	check_taken(STR("GET / HTTP/1.0\r\n\r\n"), STR(""));
	check_taken(STR("\r\n\r\nGET / HTTP/1.1\r\nHost:\r\n\r\n"), STR(""));
	check_taken(STR("COPY /db/a HTTP/1.1\r\nHost: h\r\nDestination: b\r\n\r\n"), STR(""));
	check_taken(STR("GET /?a=%22&b=[1,{}] HTTP/1.1\r\nHost: h\r\n\r\n"), STR(""));
	check_taken(STR(HEAD("Content-Length: 0\r\n")), STR(""));
	check_taken(STR(HEAD("Content-Length: 3\r\n") "a\nb"), STR("a\nb"));
	check_taken(STR(HEAD("Content-Length: 2\r\n") "\r\n"), STR("\r\n"));
	check_taken(STR(HEAD("Content-Length: 2\r\n") " \0"), STR(" \0"));
	check_taken(STR(HEAD("Transfer-Encoding: chunked\r\n") "0\r\n\r\n"), STR(""));
	check_taken(
		STR(HEAD("Transfer-Encoding: Chunked\r\n") "00a\r\n0123456789\r\n"
							   "1;x=\"y\"\r\n\n\r\n0\r\nT: v\r\n\r\n"),
		STR("0123456789\n"));
	check_taken(STR(HEAD("Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n") "x"),
		    STR("x"));
	check_taken(STR(HEAD("Connection: upgrade\r\nUpgrade: websocket\r\n")), STR(""));
}

/* However it is cut, `text` has the target `expected`. */
static void
check_target_is(struct str text, struct str expected)
{
	for (size_t step = 1; step <= text.len; step++) {
		struct parser p;
		size_t rest;

		init(&p);
		if (feed(&p, text, step, &rest) != PARSER_RESULT_DONE)
			fail_msg("%d %s: %.*s", p.refusal, p.reason, STR_ARG(text));
		if (!str_eq(parser_target(&p), expected))
			fail_msg("%.*s", STR_ARG(parser_target(&p)));
		assert_true(str_eq(parser_find_header(&p, STR("X")), STR("\xc3\xa9")));
		fini(&p);
	}
}

static void
bytes_beyond_ascii_in_a_target_come_out_escaped(void **state)
{
#define REST " HTTP/1.1\r\nHost: h\r\nX: \xc3\xa9\r\n\r\n"
	(void)state;
	check_target_is(STR("GET /db/\xc3\xa9" REST), STR("/db/%C3%A9"));
	check_target_is(STR("\r\nGET /\xe9?k=\"\xff\x80x\"" REST), STR("/%E9?k=\"%FF%80x\""));
	check_target_is(STR("GET http://h/\xc3\xa9" REST), STR("/%C3%A9"));
	check_refused(STR("GE\xc3 /" REST), 400);
	check_refused(STR("\xc3GET /" REST), 400);
	check_refused(STR("GET \xc3/" REST), 400);
	check_refused(STR("GET / \xc3HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
	check_refused(STR("GET / HTTP/1.1\xc3\r\nHost: h\r\n\r\n"), 400);
	check_refused(STR("GET / HTTP/1.1\r\nHost: h\r\nX\xc3: y\r\n\r\n"), 400);
	check_refused(STR("GET /\xc3\xa9#f" REST), 400);
#undef REST
}

static void
an_escaped_target_has_the_same_limit(void **state)
{
	static char text[PARSER_TARGET_BYTES / 3 + 64] = "GET /";
	struct parser p;
	size_t rest;

	(void)state;
	memset(text + 5, '\xc3', PARSER_TARGET_BYTES / 3 + 1);
	init(&p);
	assert_int_equal(feed(&p, str_of(text, sizeof(text)), sizeof(text), &rest),
			 PARSER_RESULT_BAD);
	assert_int_equal(p.refusal, 414);
	fini(&p);
}

static void
an_escaped_target_has_the_same_limit_of_the_head(void **state)
{
	enum {
		SMALL = 1024
	};
	char text[SMALL] = "GET /";
	struct str stream = str_of(text, 5 + SMALL / 3 + 1);

	(void)state;
	memset(text + 5, '\xc3', SMALL / 3);
	text[stream.len - 1] = '\x06'; /* refused with 400, if it were reached */
	for (size_t step = 1; step <= stream.len; step++) {
		struct parser p;
		size_t rest;

		body = BUF_INIT(1 << 20);
		parser_init(&p, SMALL, take_body, &body);
		assert_int_equal(feed(&p, stream, step, &rest), PARSER_RESULT_BAD);
		assert_int_equal(p.refusal, 431);
		fini(&p);
	}
}

static void
lines_without_crlf_are_refused(void **state)
{
	(void)state;
	check_refused(STR("GET / HTTP/1.1\nHost: h\r\n\r\n"), 400);
	check_refused(STR("GET / HTTP/1.1\r\nHost: h\n\r\n"), 400);
	check_refused(STR("GET / HTTP/1.1\r\nHost: h\r\n\n"), 400);
	check_refused(STR("GET / HTTP/1.1\rHost: h\r\n\r\n"), 400);
	check_refused(STR("GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n"), 400);
	check_refused(STR("GET / HTTP/1.1\r\nHost: h\r\nX:\rContent-Length: 5\r\n\r\n"), 400);
	check_refused(STR("GET / HTTP/1.1\r\nHost: h\r\n\r\r\n"), 400);
	check_refused(STR("\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
	check_refused(STR(HEAD("Transfer-Encoding: chunked\r\n") "1\nx\r\n0\r\n\r\n"), 400);
	check_refused(STR(HEAD("Transfer-Encoding: chunked\r\n") "1\r\nx\n0\r\n\r\n"), 400);
	check_refused(STR(HEAD("Transfer-Encoding: chunked\r\n") "1\r\nxYZ0\r\n\r\n"), 400);
	check_refused(STR(HEAD("Transfer-Encoding: chunked\r\n") "0\r\nT:\rv\r\n\r\n"), 400);
	check_refused(STR(HEAD("Transfer-Encoding: chunked\r\n") "0\r\n\n"), 400);
}

static void
folded_lines_and_spaces_around_names_are_refused(void **state)
{
	(void)state;
	check_refused(STR(HEAD("A: b\r\n c\r\n")), 400);
	check_refused(STR(HEAD("A: b\r\n\tc\r\n")), 400);
	check_refused(STR("GET / HTTP/1.1\r\n Host: h\r\n\r\n"), 400);
	check_refused(STR(HEAD("Content-Length : 1\r\n") "x"), 400);
	check_refused(STR(HEAD("Transfer-Encoding:\r\n chunked\r\n") "0\r\n\r\n"), 400);
	check_refused(STR(HEAD("A b: c\r\n")), 400);
	check_refused(STR(HEAD(": c\r\n")), 400);
	check_refused(STR("GET / HTTP/1.1\r\n: c\r\nHost: h\r\n\r\n"), 400);
	check_refused(STR(HEAD("A: b\0c\r\n")), 400);
	check_refused(STR(HEAD("A\0: b\r\n")), 400);
	check_refused(STR("GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
}

static void
a_body_has_one_length(void **state)
{
	(void)state;
	check_refused(STR(HEAD("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n") "0\r\n\r\n"),
		      400);
	check_refused(STR(HEAD("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n") "0\r\n\r\n"),
		      400);
	check_refused(STR(HEAD("Content-Length: 1\r\nContent-Length: 2\r\n") "xx"), 400);
	check_refused(STR(HEAD("Content-Length: 1\r\nContent-Length: 1\r\n") "x"), 400);
	check_refused(STR(HEAD("Content-Length: 1, 1\r\n") "x"), 400);
	check_refused(STR(HEAD("Content-Length: +1\r\n") "x"), 400);
	check_refused(STR(HEAD("Content-Length: -1\r\n") "x"), 400);
	check_refused(STR(HEAD("Content-Length: 0x1\r\n") "x"), 400);
	check_refused(STR(HEAD("Content-Length: 1 1\r\n") "x"), 400);
	check_refused(STR(HEAD("Content-Length:\r\n") "x"), 400);
	check_refused(STR(HEAD("Content-Length: 18446744073709551616\r\n")), 400);
	check_refused(STR(HEAD("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")),
		      400);
	check_refused(STR(HEAD("Transfer-Encoding: xchunked\r\n") "0\r\n\r\n"), 501);
	check_refused(STR(HEAD("Transfer-Encoding: gzip, chunked\r\n") "0\r\n\r\n"), 501);
	check_refused(STR(HEAD("Transfer-Encoding: identity\r\n")), 501);
	check_refused(STR("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400);
	check_refused(STR(HEAD("Transfer-Encoding: chunked\r\n") "g\r\n"), 400);
	check_refused(STR(HEAD("Transfer-Encoding: chunked\r\n") " 1\r\nx\r\n0\r\n\r\n"), 400);
	check_refused(STR(HEAD("Transfer-Encoding: chunked\r\n") "1 \r\nx\r\n0\r\n\r\n"), 400);
	check_refused(STR(HEAD("Transfer-Encoding: chunked\r\n") "-1\r\nx\r\n0\r\n\r\n"), 400);
	check_refused(STR(HEAD("Transfer-Encoding: chunked\r\n") "10000000000000000\r\n"), 400);
}

static void
what_is_not_a_request_is_refused(void **state)
{
	(void)state;
	check_refused(STR("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), 400);
	check_refused(STR("get / HTTP/1.1\r\n\r\n"), 400);
	check_refused(STR("BREW / HTTP/1.1\r\nHost: h\r\n\r\n"), 501);
	check_refused(STR("CONNECT a:1 HTTP/1.1\r\nHost: h\r\n\r\n"), 501);
	check_refused(STR("GET / HTTP/2.0\r\nHost: h\r\n\r\n"), 505);
	check_refused(STR("GET / HTTQ/1.1\r\nHost: h\r\n\r\n"), 400);
	check_refused(STR("GET / HTTP/1.1 x\r\nHost: h\r\n\r\n"), 400);
	check_refused(STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505);
	check_refused(STR("GET / HTTP/1.1\r\n\r\n"), 400);
	check_refused(STR("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), 400);
	check_refused(STR("GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
	check_refused(STR("GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
	check_refused(STR("GET /a b HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
	check_refused(STR(HEAD("Expect: tea\r\n")), 417);
}

static void
add_repeated(struct buf *b, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_append_cstr(b, text);
}

static void
what_is_too_large_is_refused(void **state)
{
	struct buf b = BUF_INIT(1 << 20);

	(void)state;
	buf_append_cstr(&b, "GET /");
	add_repeated(&b, "a", PARSER_TARGET_BYTES - 1);
	buf_append_cstr(&b, " HTTP/1.1\r\nHost: h\r\n\r\n");
	check_taken(buf_str(&b), STR(""));
	buf_clear(&b);
	buf_append_cstr(&b, "GET /");
	add_repeated(&b, "a", PARSER_TARGET_BYTES);
	buf_append_cstr(&b, " HTTP/1.1\r\nHost: h\r\n\r\n");
	check_refused(buf_str(&b), 414);

	buf_clear(&b);
	buf_append_cstr(&b, "GET / HTTP/1.1\r\nHost: h\r\nA: ");
	add_repeated(&b, "a", HEADER_BYTES);
	check_refused(buf_str(&b), 431);

	buf_clear(&b);
	buf_append_cstr(&b, "GET / HTTP/1.1\r\nHost: h\r\n");
	add_repeated(&b, "A: b\r\n", PARSER_HEADERS - 1);
	buf_append_cstr(&b, "\r\n");
	check_taken(buf_str(&b), STR(""));
	b.len -= 2;
	buf_append_cstr(&b, "A: b\r\n\r\n");
	check_refused(buf_str(&b), 431);

	buf_clear(&b);
	buf_append_cstr(&b, HEAD("Transfer-Encoding: chunked\r\n") "1\r\nx\r\n1;a=");
	add_repeated(&b, "a", 2 * HEADER_BYTES);
	check_refused(buf_str(&b), 431);
	buf_clear(&b);
	buf_append_cstr(&b, HEAD("Transfer-Encoding: chunked\r\n") "1\r\nx\r\n0\r\n");
	add_repeated(&b, "T: v\r\n", 2 * HEADER_BYTES / 6 + 1);
	check_refused(buf_str(&b), 431);
	buf_release(&b);
}

static void
the_next_request_is_left_alone(void **state)
{
	static const char two[] = HEAD("Content-Length: 2\r\n") "ab" HEAD("X: 1\r\n");
	struct parser p;
	size_t used;
	size_t more;

	(void)state;
	init(&p);
	assert_int_equal(parser_feed(&p, str_of(two, sizeof(two) - 1), &used), PARSER_RESULT_DONE);
	assert_int_equal(used, sizeof(HEAD("Content-Length: 2\r\n") "ab") - 1);
	assert_int_equal(p.content_length, 2);
	assert_true(p.keep_alive);
	parser_clear(&p);
	assert_int_equal(parser_feed(&p, str_of(two + used, sizeof(two) - 1 - used), &more),
			 PARSER_RESULT_DONE);
	assert_int_equal(used + more, sizeof(two) - 1);
	assert_true(str_eq(parser_find_header(&p, STR("x")), STR("1")));
	assert_null(parser_find_header(&p, STR("Content-Length")).ptr);
	fini(&p);
}

static void
running_out_of_memory_is_a_503(void **state)
{
	static const char request[] = HEAD("A: b\r\nC: d\r\n");
	bool succeeded = false;

	(void)state;
	for (uint64_t nth = 1; !succeeded && nth < 100; nth++) {
		struct parser p;
		enum parser_result result;
		size_t used;

		init(&p);
		mem_fail_after(nth);
		result = parser_feed(&p, str_of(request, sizeof(request) - 1), &used);
		mem_fail_after(0);
		succeeded = result == PARSER_RESULT_DONE;
		if (!succeeded)
			assert_int_equal(p.refusal, 503);
		fini(&p);
	}
	assert_true(succeeded);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_requests_are_taken),
		cmocka_unit_test(bytes_beyond_ascii_in_a_target_come_out_escaped),
		cmocka_unit_test(an_escaped_target_has_the_same_limit),
		cmocka_unit_test(an_escaped_target_has_the_same_limit_of_the_head),
		cmocka_unit_test(lines_without_crlf_are_refused),
		cmocka_unit_test(folded_lines_and_spaces_around_names_are_refused),
		cmocka_unit_test(a_body_has_one_length),
		cmocka_unit_test(what_is_not_a_request_is_refused),
		cmocka_unit_test(what_is_too_large_is_refused),
		cmocka_unit_test(the_next_request_is_left_alone),
		cmocka_unit_test(running_out_of_memory_is_a_503),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

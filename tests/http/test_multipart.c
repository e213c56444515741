/* Multipart bodies that are read as they arrive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "http/multipart.h"

struct body {
	struct str rest;
	size_t piece;
};

static enum status
read_body(void *arg, struct str *ret, struct err *err)
{
	struct body *body = arg;
	size_t n = body->rest.len < body->piece ? body->rest.len : body->piece;

	(void)err;
	if (n == 0)
		return STATUS_NOT_FOUND;
	*ret = str_of(body->rest.ptr, n);
	body->rest = str_skip(body->rest, n);
	return STATUS_OK;
}

static enum status
read_parts(struct http_multipart *p, struct buf *out)
{
	struct err err = { 0 };
	struct str piece;
	enum status status;

	while ((status = http_multipart_next(p, &err)) == STATUS_OK) {
		struct str type = http_multipart_header(p, STR("Content-Type"));

		buf_append_byte(out, '<');
		if (http_is_multipart(type)) {
			struct http_multipart inner;

			status = http_multipart_init(&inner, type, http_multipart_read, p, &err);
			if (status == STATUS_OK)
				status = read_parts(&inner, out);
			http_multipart_fini(&inner);
			if (status != STATUS_OK)
				return status;
		} else {
			while ((status = http_multipart_read(p, &piece, &err)) == STATUS_OK)
				buf_append_str(out, piece);
			if (status != STATUS_NOT_FOUND)
				return status;
		}
		buf_append_byte(out, '>');
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Reads a body with a source that hands out pieces of that length. */
static enum status
read_whole(const char *type, struct str text, size_t piece, struct buf *out)
{
	struct body body = { text, piece };
	struct http_multipart parts;
	struct err err = { 0 };
	enum status status = http_multipart_init(&parts, str_from_cstr(type), read_body, &body,
						 &err);

	if (status == STATUS_OK)
		status = read_parts(&parts, out);
	http_multipart_fini(&parts);
	return status;
}

#define TYPE_AB "multipart/mixed; boundary=\"AB\""

static const char nested[] = "--AB\r\nContent-Type: application/json\r\n\r\n{\"a\":1}\r\n"
			     "--AB\r\nContent-Type: multipart/related; boundary=\"CD\"\r\n\r\n"
			     "--CD\r\nContent-Type: application/json\r\n\r\n{}\r\n"
			     "--CD\r\nContent-Disposition: attachment\r\n\r\n--A\r\n--C\r\n\r\n"
			     "--CD\r\n\r\nplain\r\n--CD--\r\n"
			     "--AB\r\nContent-Type: text/plain\r\n\r\n\r\n--AB--";

static void
parts_inside_of_parts_are_read_wherever_the_pieces_end(void **state)
{
	(void)state;
	for (size_t piece = 1; piece < sizeof(nested); piece++) {
		struct buf out = BUF_INIT(1 << 16);

		assert_int_equal(read_whole(TYPE_AB, str_from_cstr(nested), piece, &out),
				 STATUS_OK);
		if (!str_eq(buf_str(&out), STR("<{\"a\":1}><<{}><--A\r\n--C\r\n><plain>><>")))
			fail_msg("in pieces of %zu: \"%.*s\"", piece, STR_ARG(buf_str(&out)));
		buf_release(&out);
	}
}

static void
a_body_that_breaks_off_is_noticed(void **state)
{
	(void)state;
	for (size_t n = 0; n + 1 < sizeof(nested); n++) {
		struct buf out = BUF_INIT(1 << 16);

		assert_int_equal(read_whole(TYPE_AB, str_of(nested, n), 7, &out), STATUS_INVALID);
		buf_release(&out);
	}
}

static void
reads(const char *type, const char *text, enum status expected, const char *parts)
{
	struct str body = str_from_cstr(text);

	for (size_t piece = 1; piece <= body.len + 1; piece++) {
		struct buf out = BUF_INIT(1 << 16);
		enum status status = read_whole(type, body, piece, &out);

		if (status != expected ||
		    (status == STATUS_OK && !str_eq(buf_str(&out), str_from_cstr(parts))))
			fail_msg("%s, in pieces of %zu: %s, \"%.*s\"", text, piece,
				 status_name(status), STR_ARG(buf_str(&out)));
		buf_release(&out);
	}
}

static void
what_surrounds_the_parts_is_passed_over(void **state)
{
	(void)state;
	reads(TYPE_AB, "preamble\r\n--AB\r\n\r\none\r\n--AB--\r\nepilogue --AB\r\n", STATUS_OK,
	      "<one>");
	reads(TYPE_AB, "--AB--", STATUS_OK, "");
	reads(TYPE_AB, "\r\n--AB \t \r\n\r\n--A\r\n-AB\r\n--AB--", STATUS_OK, "<--A\r\n-AB>");
	reads(TYPE_AB, "--ABC\r\n\r\none\r\n--AB--", STATUS_INVALID, NULL);
	reads(TYPE_AB, "--AB x\r\n\r\none\r\n--AB--", STATUS_INVALID, NULL);
	reads(TYPE_AB, "no boundary at all", STATUS_INVALID, NULL);
	/* A line feed alone is no line break. */
	reads(TYPE_AB, "--AB\r\n\r\none\n--AB\r\n--AB--", STATUS_OK, "<one\n--AB>");
}

static void
the_boundary_is_read_as_a_quoted_string(void **state)
{
	char type[HTTP_BOUNDARY_BYTES + 64];

	(void)state;
	reads("multipart/mixed; boundary=AB", "--AB--", STATUS_OK, "");
	reads("multipart/mixed; charset=\"; boundary=no\"; BOUNDARY = AB ;x", "--AB--", STATUS_OK,
	      "");
	reads("multipart/mixed; boundary=\"A;B\"", "--A;B--", STATUS_OK, "");
	reads("multipart/mixed; boundary=\"A\\\"B\"", "--A\"B--", STATUS_OK, "");
	reads("multipart/mixed; boundary=\"A B\"", "--A B--", STATUS_OK, "");
	reads("multipart/mixed; xboundary=AB", "--AB--", STATUS_INVALID, NULL);
	reads("multipart/mixed; boundary=\"\"", "----", STATUS_INVALID, NULL);
	reads("multipart/mixed", "----", STATUS_INVALID, NULL);
	reads("", "----", STATUS_INVALID, NULL);
	strcpy(type, "multipart/mixed; boundary=");
	memset(type + 26, 'b', HTTP_BOUNDARY_BYTES + 1);
	type[26 + HTTP_BOUNDARY_BYTES + 1] = '\0';
	reads(type, "--AB--", STATUS_INVALID, NULL);
}

static void
headers_of_a_part_are_found(void **state)
{
	static const char text[] = "--AB\r\ncontent-TYPE : a/b;\r\n\tc=d \r\nX:\r\nno colon\r\n"
				   "Y: 1\r\nY: 2\r\n\r\n\r\n--AB\r\n\r\n\r\n--AB--";
	struct body body = { str_from_cstr(text), 3 };
	struct http_multipart m;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(http_multipart_init(&m, STR(TYPE_AB), read_body, &body, &err), STATUS_OK);
	assert_int_equal(http_multipart_next(&m, &err), STATUS_OK);
	assert_true(str_eq(http_multipart_header(&m, STR("Content-Type")), STR("a/b;  \tc=d")));
	assert_true(str_eq(http_multipart_header(&m, STR("y")), STR("1")));
	assert_non_null(http_multipart_header(&m, STR("x")).ptr);
	assert_int_equal(http_multipart_header(&m, STR("x")).len, 0);
	assert_null(http_multipart_header(&m, STR("no colon")).ptr);
	assert_int_equal(http_multipart_next(&m, &err), STATUS_OK);
	assert_null(http_multipart_header(&m, STR("y")).ptr);
	for (int i = 0; i < 3; i++)
		assert_int_equal(http_multipart_next(&m, &err), STATUS_NOT_FOUND);
	http_multipart_fini(&m);
}

/* A part whose headers have that many bytes. */
static enum status
read_long_head(size_t bytes, size_t piece)
{
	struct buf text = BUF_INIT(1 << 20);
	struct buf out = BUF_INIT(1 << 16);
	enum status status;

	buf_append_cstr(&text, "--AB\r\nX: ");
	for (size_t i = 3; i + 2 < bytes; i++)
		buf_append_byte(&text, 'x');
	buf_append_cstr(&text, "\r\n\r\none\r\n--AB--");
	status = read_whole(TYPE_AB, buf_str(&text), piece, &out);
	buf_release(&text);
	buf_release(&out);
	return status;
}

static void
long_headers_are_refused_wherever_the_pieces_end(void **state)
{
	static const size_t pieces[] = { 100, 4096, 1 << 18 };

	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		assert_int_equal(read_long_head(HTTP_PART_HEAD_BYTES, pieces[i]), STATUS_OK);
		assert_int_equal(read_long_head(HTTP_PART_HEAD_BYTES + 1, pieces[i]),
				 STATUS_INVALID);
	}
}

static void
a_failing_allocation_is_no_memory(void **state)
{
	struct buf out = BUF_INIT(1 << 16);
	uint64_t needed;

	(void)state;
	(void)mem_fail_after(0);
	assert_int_equal(read_whole(TYPE_AB, str_from_cstr(nested), 50, &out), STATUS_OK);
	needed = mem_fail_after(0);
	assert_true(needed > 1);
	buf_release(&out);
	for (uint64_t i = 1; i <= needed; i++) {
		enum status status;

		(void)mem_fail_after(i);
		status = read_whole(TYPE_AB, str_from_cstr(nested), 50, &out);
		/* The output is the test's own, and remembers that it failed. */
		if (status == STATUS_OK)
			status = buf_status(&out);
		(void)mem_fail_after(0);
		assert_int_equal(status, STATUS_NOMEM);
		buf_release(&out);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_inside_of_parts_are_read_wherever_the_pieces_end),
		cmocka_unit_test(a_body_that_breaks_off_is_noticed),
		cmocka_unit_test(what_surrounds_the_parts_is_passed_over),
		cmocka_unit_test(the_boundary_is_read_as_a_quoted_string),
		cmocka_unit_test(headers_of_a_part_are_found),
		cmocka_unit_test(long_headers_are_refused_wherever_the_pieces_end),
		cmocka_unit_test(a_failing_allocation_is_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

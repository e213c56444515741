/* Answers that are read as they arrive: rows of JSON, parts of a multipart body. */
#include "common.h"

#include "replicator/parts.h"
#include "replicator/rows.h"

/* ---- Rows ---- */

/* The rows, each with a bar behind, and then the rest; read in pieces of `piece` bytes. */
static enum status
read_rows(struct str text, size_t piece, size_t row_bytes, struct buf *out)
{
	struct rows rows;
	struct str row;
	enum status status = STATUS_NOT_FOUND;

	rows_init(&rows, row_bytes);
	while (text.len && status == STATUS_NOT_FOUND) {
		struct str part = str_of(text.ptr, text.len < piece ? text.len : piece);

		text = str_skip(text, part.len);
		while ((status = rows_next(&rows, &part, &row)) == STATUS_OK) {
			buf_append_str(out, row);
			buf_append_byte(out, '|');
		}
	}
	if (status == STATUS_NOT_FOUND)
		status = rows_end(&rows, &row);
	if (status == STATUS_OK)
		buf_append_str(out, row);
	rows_release(&rows);
	return status;
}

static void
assert_rows(const char *text, const char *expected)
{
	for (size_t piece = 1; piece <= strlen(text); piece++) {
		struct buf out = BUF_INIT(1 << 16);

		assert_int_equal(read_rows(str_from_cstr(text), piece, 1 << 16, &out), STATUS_OK);
		if (!str_eq(buf_str(&out), str_from_cstr(expected)))
			fail_msg("in pieces of %zu: \"%.*s\"", piece, STR_ARG(buf_str(&out)));
		buf_release(&out);
	}
}

static void
rows_are_cut_out_wherever_the_pieces_end(void **state)
{
	(void)state;
	assert_rows("{\"results\":[\n{\"seq\":1,\"id\":\"a]\\\"}\"},\n\n{\"x\":[[1],{}]}\n],\n"
		    "\"last_seq\":\"2-[\",\"pending\":0}\n",
		    "{\"seq\":1,\"id\":\"a]\\\"}\"}|{\"x\":[[1],{}]}|{\"results\":[],\n"
		    "\"last_seq\":\"2-[\",\"pending\":0}\n");
	assert_rows("{\"results\":[]}", "{\"results\":[]}");
	assert_rows("{\"a\":\"[\",\"r\":[1,\"b\",null ]}", "1|\"b\"|null|{\"a\":\"[\",\"r\":[]}");
	assert_rows("{\"error\":{\"x\":[1]}}", "{\"error\":{\"x\":[1]}}");
	assert_rows("\n\n{\"results\":[1],\"more\":[2,3]}",
		    "1|\n\n{\"results\":[],\"more\":[2,3]}");
}

static void
answers_that_break_off_are_noticed(void **state)
{
	static const char *const texts[] = {
		"{\"results\":[",       "{\"results\":[{\"a\":1}",  "{\"results\":[1]",
		"{\"results\":[1],\"l", "{\"results\":[{\"a\":\"b",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct buf out = BUF_INIT(1 << 16);

		assert_int_equal(read_rows(str_from_cstr(texts[i]), 3, 1 << 16, &out),
				 STATUS_JSON_SYNTAX);
		buf_release(&out);
	}
}

static void
a_row_that_is_too_long_is_refused(void **state)
{
	struct buf out = BUF_INIT(1 << 16);

	(void)state;
	assert_int_equal(read_rows(STR("{\"r\":[\"0123456789\"]}"), 4, 8, &out), STATUS_LIMIT);
	assert_int_equal(read_rows(STR("{\"r\":[\"0123456789\"]}"), 100, 8, &out), STATUS_LIMIT);
	buf_release(&out);
}

/* ---- Parts ---- */

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
read_parts(struct parts *p, struct buf *out)
{
	struct err err = { 0 };
	struct str piece;
	enum status status;

	while ((status = parts_next(p, &err)) == STATUS_OK) {
		buf_append_byte(out, '<');
		if (parts_is_multipart(p->type)) {
			struct parts inner;

			assert_int_equal(parts_init(&inner, p->type, parts_read, p, &err),
					 STATUS_OK);
			status = read_parts(&inner, out);
			parts_release(&inner);
			if (status != STATUS_OK)
				return status;
		} else {
			while ((status = parts_read(p, &piece, &err)) == STATUS_OK)
				buf_append_str(out, piece);
			if (status != STATUS_NOT_FOUND)
				return status;
		}
		buf_append_byte(out, '>');
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
read_whole(const char *text, size_t piece, struct buf *out)
{
	struct body body = { str_from_cstr(text), piece };
	struct parts parts;
	struct err err = { 0 };
	enum status status = parts_init(&parts, STR("multipart/mixed; boundary=\"AB\""), read_body,
					&body, &err);

	if (status == STATUS_OK)
		status = read_parts(&parts, out);
	parts_release(&parts);
	return status;
}

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

		assert_int_equal(read_whole(nested, piece, &out), STATUS_OK);
		if (!str_eq(buf_str(&out), STR("<{\"a\":1}><<{}><--A\r\n--C\r\n><plain>><>")))
			fail_msg("in pieces of %zu: \"%.*s\"", piece, STR_ARG(buf_str(&out)));
		buf_release(&out);
	}
}

static void
a_body_that_breaks_off_is_noticed(void **state)
{
	char text[sizeof(nested)];

	(void)state;
	for (size_t n = 1; n + 1 < sizeof(nested) - 1; n++) {
		struct buf out = BUF_INIT(1 << 16);

		memcpy(text, nested, n);
		text[n] = '\0';
		assert_int_equal(read_whole(text, 7, &out), STATUS_INVALID);
		buf_release(&out);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_cut_out_wherever_the_pieces_end),
		cmocka_unit_test(answers_that_break_off_are_noticed),
		cmocka_unit_test(a_row_that_is_too_long_is_refused),
		cmocka_unit_test(parts_inside_of_parts_are_read_wherever_the_pieces_end),
		cmocka_unit_test(a_body_that_breaks_off_is_noticed),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

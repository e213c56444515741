#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cli/input.h"

/* Hands out a text in pieces of a given size. */
struct source {
	struct str text;
	size_t piece;
	enum status failure; /* at the end, instead of ending */
};

static enum status
read_source(void *arg, char *to, size_t n, size_t *ret, struct err *err)
{
	struct source *s = arg;

	if (n > s->piece)
		n = s->piece;
	if (n > s->text.len)
		n = s->text.len;
	if (n == 0 && s->failure != STATUS_OK)
		return err_set(err, s->failure, "the source broke");
	if (n)
		memcpy(to, s->text.ptr, n);
	s->text = str_skip(s->text, n);
	*ret = n;
	return STATUS_OK;
}

/*
 * What an input gives, as one text: "LINE:text;" a document ("LINE:id=text;" in a map), "LINE:!;"
 * one that is too large, and at the end the failure's "STATUS reason", or nothing.
 */
static void
describe(struct str text, enum input_format format, size_t piece, struct buf *ret,
	 enum input_format *ret_format)
{
	struct source source = { .text = text, .piece = piece };
	struct input *in = input_new(read_source, &source, format, "rows");
	struct input_item item;
	struct err err = { 0 };
	enum status status;

	assert_non_null(in);
	buf_clear(ret);
	while ((status = input_next(in, &item, &err)) == STATUS_OK) {
		buf_append_u64(ret, item.line);
		buf_append_byte(ret, ':');
		if (item.too_large) {
			buf_append_byte(ret, '!');
		} else {
			if (item.id.ptr) {
				buf_append_str(ret, item.id);
				buf_append_byte(ret, '=');
			}
			buf_append_str(ret, item.text);
		}
		buf_append_byte(ret, ';');
	}
	if (status != STATUS_NOT_FOUND)
		buf_printf(ret, "%s %s", status_name(status), err.text);
	else
		assert_int_equal(input_bytes(in), text.len);
	*ret_format = input_format(in);
	input_free(in);
	assert_int_equal(buf_status(ret), STATUS_OK);
}

/* Whatever the size of the pieces in which it comes. */
static void
assert_input(const char *text, enum input_format format, enum input_format expected_format,
	     const char *expected)
{
	static const size_t pieces[] = { 1, 2, 3, 7, 1000 };
	AUTO(buf_release) struct buf got = BUF_INIT(100000);

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		enum input_format got_format;

		describe(str_from_cstr(text), format, pieces[i], &got, &got_format);
		buf_append_byte(&got, '\0');
		assert_string_equal(got.ptr, expected);
		assert_int_equal(got_format, expected_format);
	}
}

static void
lines_are_documents_with_their_line(void **state)
{
	(void)state;
	assert_input("{\"a\":1}\n{\"b\":2}\n", INPUT_AUTO, INPUT_LINES, "1:{\"a\":1};2:{\"b\":2};");
	assert_input("\n\n  {\"a\":1}  \r\n\r\n\n{\"b\":2}", INPUT_AUTO, INPUT_LINES,
		     "3:{\"a\":1};6:{\"b\":2};");
}

static void
broken_line_spoils_no_other(void **state)
{
	(void)state;
	assert_input("{\"a\":1}\n{\"b\":[\"\nnonsense\n{\"c\":3}\n", INPUT_AUTO, INPUT_LINES,
		     "1:{\"a\":1};2:{\"b\":[\";3:nonsense;4:{\"c\":3};");
}

static void
array_is_told_by_its_bracket(void **state)
{
	(void)state;
	assert_input(" [ {\"a\":\"]}\\\"\"} ,\n\n{\"b\":[{}]}\n]\n", INPUT_AUTO, INPUT_ARRAY,
		     "1:{\"a\":\"]}\\\"\"};3:{\"b\":[{}]};");
	assert_input("[]", INPUT_AUTO, INPUT_ARRAY, "");
	assert_input("[1, \"x\", null]", INPUT_AUTO, INPUT_ARRAY, "1:1;1:\"x\";1:null;");
}

static void
object_of_objects_is_a_map(void **state)
{
	(void)state;
	assert_input("{\"x\":{\"a\":1},\n\"y\\u0041\":{}}", INPUT_AUTO, INPUT_MAP,
		     "1:x={\"a\":1};2:yA={};");
}

static void
object_with_other_members_is_a_document(void **state)
{
	(void)state;
	assert_input("{\"x\":{\"a\":1},\n\"y\":2}\n\n", INPUT_AUTO, INPUT_DOCUMENT,
		     "1:{\"x\":{\"a\":1},\n\"y\":2};");
	assert_input("{\"_id\":\"q\",\"y\":{}}", INPUT_AUTO, INPUT_DOCUMENT,
		     "1:{\"_id\":\"q\",\"y\":{}};");
	assert_input("{\"y\":{},\"_id\":{}}", INPUT_AUTO, INPUT_DOCUMENT,
		     "1:{\"y\":{},\"_id\":{}};");
	assert_input("{}", INPUT_AUTO, INPUT_DOCUMENT, "1:{};");
}

static void
records_of_csv_may_have_lines_in_quotes(void **state)
{
	(void)state;
	assert_input("a,\"b\nc\"\r\n\r\n\nd\\\n,e\nf", INPUT_CSV, INPUT_CSV,
		     "1:a,\"b\nc\"\r\n;5:d\\\n,e\n;7:f;");
	assert_input("\"a\"\"\nb\"\n\"\"\nc\"d\n", INPUT_CSV, INPUT_CSV,
		     "1:\"a\"\"\nb\"\n;3:\"\"\n;4:c\"d\n;");
	assert_input("a\n\"b\nc\n", INPUT_CSV, INPUT_CSV, "1:a\n;2:\"b\nc\n;");
	assert_input("\n\r\n", INPUT_CSV, INPUT_CSV, "");
}

static void
nothing_is_nothing(void **state)
{
	(void)state;
	assert_input("", INPUT_AUTO, INPUT_LINES, "");
	assert_input(" \n\t\n", INPUT_AUTO, INPUT_LINES, "");
	assert_input("", INPUT_DOCUMENT, INPUT_DOCUMENT, "");
}

static void
format_that_is_named_is_not_guessed(void **state)
{
	(void)state;
	assert_input("{\"x\":{\"a\":1}}", INPUT_LINES, INPUT_LINES, "1:{\"x\":{\"a\":1}};");
	assert_input("{\"x\":{\"a\":1}}", INPUT_DOCUMENT, INPUT_DOCUMENT, "1:{\"x\":{\"a\":1}};");
	assert_input("{\"x\":1}", INPUT_MAP, INPUT_MAP, "1:x=1;");
	assert_input("{}", INPUT_MAP, INPUT_MAP, "");
	assert_input("[]", INPUT_MAP, INPUT_MAP, "json_syntax expected '{', not '['");
}

static void
broken_brackets_end_the_input_with_a_reason(void **state)
{
	(void)state;
	assert_input("[{\"a\":1}\n{\"b\":2}]", INPUT_AUTO, INPUT_ARRAY,
		     "1:{\"a\":1};json_syntax expected ',', not '{'");
	assert_input("[{\"a\":1},\n{\"b\":", INPUT_AUTO, INPUT_ARRAY,
		     "1:{\"a\":1};json_syntax the input ends in the middle of the value that "
		     "starts here");
	assert_input("[{\"a\":1}", INPUT_AUTO, INPUT_ARRAY,
		     "1:{\"a\":1};json_syntax the input ends where ',' is expected");
	assert_input("[{\"a\":1},]", INPUT_AUTO, INPUT_ARRAY,
		     "1:{\"a\":1};json_syntax expected a value, not ']'");
	assert_input("[1] 2", INPUT_AUTO, INPUT_ARRAY,
		     "1:1;json_syntax '2' follows the end of the array");
	assert_input("{\"a\" {}}", INPUT_MAP, INPUT_MAP, "json_syntax expected ':', not '{'");
	assert_input("{1:{}}", INPUT_MAP, INPUT_MAP, "json_syntax expected the name of a member");
}

static void
rows_are_found_in_an_answer(void **state)
{
	(void)state;
	assert_input(
		"{\"total_rows\":2,\"offset\":0,\"rows\":[\n{\"id\":\"a\"},\n{\"id\":\"b\"}\n],"
		"\"more\":[]}\n",
		INPUT_ROWS, INPUT_ROWS, "2:{\"id\":\"a\"};3:{\"id\":\"b\"};");
	assert_input("{\"rows\":[]}", INPUT_ROWS, INPUT_ROWS, "");
	assert_input("{\"rows\":[1", INPUT_ROWS, INPUT_ROWS,
		     "1:1;json_syntax the input ends where ',' is expected");
	assert_input("{\"other\":1}", INPUT_ROWS, INPUT_ROWS, "json_syntax expected ',', not '}'");
}

/* `before`, a string of `n` characters in quotes, `after`. */
static struct str
make_long(const char *before, size_t n, const char *after, struct buf *b)
{
	buf_append_cstr(b, before);
	buf_append_byte(b, '"');
	if (buf_reserve(b, n)) {
		memset(b->ptr + b->len, 'x', n);
		b->len += n;
	}
	buf_append_byte(b, '"');
	buf_append_cstr(b, after);
	assert_int_equal(buf_status(b), STATUS_OK);
	return buf_str(b);
}

static void
too_large_document_is_skipped_and_told(void **state)
{
	AUTO(buf_release) struct buf text = BUF_INIT(4 * (size_t)INPUT_VALUE_BYTES);
	AUTO(buf_release) struct buf got = BUF_INIT(100000);
	enum input_format format;

	(void)state;
	make_long("[{\"a\":", 2 * (size_t)INPUT_VALUE_BYTES, "},\n{\"b\":2}]", &text);
	describe(buf_str(&text), INPUT_AUTO, SIZE_MAX, &got, &format);
	assert_true(str_eq(buf_str(&got), STR("1:!;2:{\"b\":2};")));

	buf_clear(&text);
	make_long("{\"a\":1}\n{\"a\":", 2 * (size_t)INPUT_VALUE_BYTES, "}\n{\"b\":2}", &text);
	describe(buf_str(&text), INPUT_AUTO, SIZE_MAX, &got, &format);
	assert_true(str_eq(buf_str(&got), STR("1:{\"a\":1};2:!;3:{\"b\":2};")));

	buf_clear(&text);
	make_long("{\"x\":{\"a\":", INPUT_VALUE_BYTES, "},\n\"y\":{}}", &text);
	describe(buf_str(&text), INPUT_AUTO, SIZE_MAX, &got, &format);
	assert_int_equal(format, INPUT_MAP);
	assert_true(str_eq(buf_str(&got), STR("1:!;2:y={};")));
}

static void
large_documents_come_whole(void **state)
{
	AUTO(buf_release) struct buf text = BUF_INIT(4 * (size_t)INPUT_VALUE_BYTES);
	struct source source = { .piece = 100000 };
	struct input_item item;
	struct err err;
	struct input *in;

	(void)state;
	buf_append_cstr(&text, "[1,");
	make_long("", INPUT_VALUE_BYTES - 2, ",", &text);
	make_long("", INPUT_VALUE_BYTES - 2, "]", &text);
	source.text = buf_str(&text);
	in = input_new(read_source, &source, INPUT_ARRAY, NULL);
	assert_non_null(in);
	assert_int_equal(input_next(in, &item, &err), STATUS_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(input_next(in, &item, &err), STATUS_OK);
		assert_false(item.too_large);
		assert_int_equal(item.text.len, INPUT_VALUE_BYTES);
	}
	assert_int_equal(input_next(in, &item, &err), STATUS_NOT_FOUND);
	input_free(in);
}

static void
failure_of_the_source_is_passed_on(void **state)
{
	static const char *const texts[] = { "", "{\"a\":1}", "{\"a\":1}\n{\"b\"", "[1,2",
					     "{\"a\":{" };

	(void)state;
	/* A source that cannot find something must not pass for one that has ended. */
	for (size_t i = 0; i < 2 * sizeof(texts) / sizeof(texts[0]); i++) {
		struct source source = { str_from_cstr(texts[i / 2]), 3,
					 i % 2 ? STATUS_NOT_FOUND : STATUS_IO };
		struct input *in = input_new(read_source, &source, INPUT_AUTO, NULL);
		struct input_item item;
		struct err err = { 0 };
		enum status status;

		assert_non_null(in);
		while ((status = input_next(in, &item, &err)) == STATUS_OK)
			continue;
		assert_int_equal(status, STATUS_IO);
		assert_string_equal(err.text, "the source broke");
		input_free(in);
	}
}

static void
running_out_of_memory_is_a_failure_and_no_leak(void **state)
{
	static const char text[] = "{\"x\":{\"a\":1},\"y\\n\":{}}";

	(void)state;
	for (uint64_t n = 1; n < 6; n++) {
		struct source source = { str_from_cstr(text), 5, STATUS_OK };
		struct input_item item;
		struct err err = { 0 };
		enum status status = STATUS_NOMEM;
		struct input *in;

		mem_fail_after(n);
		in = input_new(read_source, &source, INPUT_AUTO, NULL);
		if (in) {
			while ((status = input_next(in, &item, &err)) == STATUS_OK)
				continue;
		}
		mem_fail_after(0);
		input_free(in);
		assert_true(status == STATUS_NOMEM || status == STATUS_NOT_FOUND);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_documents_with_their_line),
		cmocka_unit_test(broken_line_spoils_no_other),
		cmocka_unit_test(array_is_told_by_its_bracket),
		cmocka_unit_test(object_of_objects_is_a_map),
		cmocka_unit_test(object_with_other_members_is_a_document),
		cmocka_unit_test(records_of_csv_may_have_lines_in_quotes),
		cmocka_unit_test(nothing_is_nothing),
		cmocka_unit_test(format_that_is_named_is_not_guessed),
		cmocka_unit_test(broken_brackets_end_the_input_with_a_reason),
		cmocka_unit_test(rows_are_found_in_an_answer),
		cmocka_unit_test(too_large_document_is_skipped_and_told),
		cmocka_unit_test(large_documents_come_whole),
		cmocka_unit_test(failure_of_the_source_is_passed_on),
		cmocka_unit_test(running_out_of_memory_is_a_failure_and_no_leak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

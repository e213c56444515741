/* Answers that are read as they arrive: rows of JSON. */
#include "common.h"

#include "replicator/rows.h"

/* ---- Rows ---- */

/* The rows, each with a bar behind, and then the rest; read in pieces of `piece` bytes. */
static enum status
read_rows(struct str text, size_t piece, size_t row_bytes, struct buf *out)
{
	struct rows rows;
	struct str row;
	enum status status = STATUS_NOT_FOUND;

	rows_init(&rows, row_bytes, NULL);
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

/* Heartbeats are newlines, but an answer of nothing else must end. */
static void
what_lies_between_rows_is_limited(void **state)
{
	struct buf text = BUF_INIT(8 << 20);
	struct buf out = BUF_INIT(1 << 16);

	(void)state;
	buf_append_cstr(&text, "{\"r\":[");
	for (int row = 0; row < 3; row++) {
		for (int i = 0; i < ROWS_BETWEEN_BYTES - 1; i++)
			buf_append_byte(&text, '\n');
		buf_append_cstr(&text, row < 2 ? "1," : "1");
	}
	buf_append_cstr(&text, "]}");
	assert_int_equal(read_rows(buf_str(&text), 5000, 64, &out), STATUS_OK);
	buf_clear(&text);
	buf_append_cstr(&text, "{\"r\":[1");
	for (int i = 0; i < ROWS_BETWEEN_BYTES + 1; i++)
		buf_append_byte(&text, ',');
	assert_int_equal(read_rows(buf_str(&text), 5000, 64, &out), STATUS_LIMIT);
	buf_release(&text);
	buf_release(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_cut_out_wherever_the_pieces_end),
		cmocka_unit_test(answers_that_break_off_are_noticed),
		cmocka_unit_test(a_row_that_is_too_long_is_refused),
		cmocka_unit_test(what_lies_between_rows_is_limited),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

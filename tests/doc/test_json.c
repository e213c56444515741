#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rand.h"
#include "base/arena.h"
#include "base/budget.h"
#include "doc/json.h"
#include "doc/json_list.h"

enum {
	MAX_BYTES = 1 << 24,
};

/* Reads a whole text; the bytes lie in a block of their own, so that an overrun is seen. */
static enum status
read_all(struct str text, struct err *err)
{
	char *copy = mem_alloc(text.len);
	struct json_reader r;
	enum json_token token = JSON_NULL;
	enum status status;

	assert_non_null(copy);
	if (text.len)
		memcpy(copy, text.ptr, text.len);
	json_reader_init(&r, str_of(copy, text.len), err);
	do
		status = json_next(&r, &token);
	while (status == STATUS_OK && token != JSON_END);
	assert_int_equal(json_next(&r, &token), status); /* both outcomes are final */
	json_reader_release(&r);
	mem_free(copy);
	return status;
}

static void
assert_fails(struct str text, enum status expected, const char *explanation)
{
	struct err err = { 0 };

	assert_int_equal(read_all(text, &err), expected);
	assert_string_equal(err.text, explanation);
}

/* The only string of a text. */
static void
assert_string_reads(struct str text, struct str expected)
{
	struct json_reader r;
	enum json_token token;

	json_reader_init(&r, text, NULL);
	assert_int_equal(json_next(&r, &token), STATUS_OK);
	assert_int_equal(token, JSON_STRING);
	assert_int_equal(r.text.len, expected.len);
	assert_memory_equal(r.text.ptr, expected.ptr, expected.len);
	json_reader_release(&r);
}

/* ---- The suite of RFC 8259 vectors ---- */

static struct buf
read_file(const char *dir, const char *name)
{
	struct buf b = BUF_INIT(MAX_BYTES);
	char path[1024];
	FILE *f;
	int c;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "rb");
	assert_non_null(f);
	while ((c = fgetc(f)) != EOF)
		buf_append_byte(&b, (uint8_t)c);
	fclose(f);
	assert_int_equal(buf_status(&b), STATUS_OK);
	return b;
}

static bool
starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/*
 * What the suite leaves open: numbers of any size are kept as text, 500 levels are within our
 * limit; invalid UTF-8, lone surrogates, other encodings and byte order marks are refused.
 */
static bool
must_be_read(const char *name)
{
	return starts_with(name, "y_") || starts_with(name, "i_number_") ||
	       starts_with(name, "i_structure_500");
}

static void
parsing_suite_is_decided_as_it_should_be(void **state)
{
	DIR *dir = opendir(JSON_SUITE "/test_parsing");
	struct dirent *entry;
	size_t files = 0;

	(void)state;
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		struct err err = { 0 };
		struct buf text;
		enum status status;

		if (entry->d_name[0] == '.')
			continue;
		text = read_file(JSON_SUITE "/test_parsing", entry->d_name);
		status = read_all(buf_str(&text), &err);
		buf_release(&text);
		files++;
		if ((status == STATUS_OK) != must_be_read(entry->d_name))
			fail_msg("%s: %s %s", entry->d_name, status_name(status), err.text);
		if (status != STATUS_OK && !starts_with(err.text, "line "))
			fail_msg("%s: no position in '%s'", entry->d_name, err.text);
	}
	closedir(dir);
	assert_int_equal(files, 318);
}

/* ---- Tokens ---- */

static void
tokens_come_in_order_with_their_text(void **state)
{
	static const struct {
		enum json_token token;
		struct str text;
	} expected[] = {
		{ JSON_OBJECT_BEGIN, STR("") },
		{ JSON_KEY, STR("a") },
		{ JSON_ARRAY_BEGIN, STR("") },
		{ JSON_NUMBER, STR("1") },
		{ JSON_NUMBER, STR("-2.50e+1") },
		{ JSON_TRUE, STR("") },
		{ JSON_FALSE, STR("") },
		{ JSON_NULL, STR("") },
		{ JSON_ARRAY_END, STR("") },
		{ JSON_KEY, STR("b\"") },
		{ JSON_OBJECT_BEGIN, STR("") },
		{ JSON_OBJECT_END, STR("") },
		{ JSON_KEY, STR("") },
		{ JSON_STRING, STR("x\n") },
		{ JSON_OBJECT_END, STR("") },
		{ JSON_END, STR("") },
		{ JSON_END, STR("") },
	};
	struct json_reader r;

	(void)state;
	json_reader_init(
		&r, STR(" {\"a\" : [1, -2.50e+1,true,false,null],\n\"b\\\"\":{ }, \"\":\"x\\n\"} "),
		NULL);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		enum json_token token;

		assert_int_equal(json_next(&r, &token), STATUS_OK);
		assert_int_equal(token, expected[i].token);
		if (token == JSON_KEY || token == JSON_STRING || token == JSON_NUMBER)
			assert_true(str_eq(r.text, expected[i].text));
		if (token == JSON_NUMBER)
			assert_int_equal(r.is_integer, expected[i].text.len == 1);
	}
	json_reader_release(&r);
}

static void
escapes_are_undone(void **state)
{
	(void)state;
	assert_string_reads(STR("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), STR("\"\\/\b\f\n\r\t"));
	assert_string_reads(STR("\"a\\u0000b\\u00e9\\u20AC\\ud834\\udd1e!\""),
			    STR("a\0b\xc3\xa9\xe2\x82\xac\xf0\x9d\x84\x9e!"));
	assert_string_reads(STR("\"\xf0\x9d\x84\x9e plain\""), STR("\xf0\x9d\x84\x9e plain"));
	assert_string_reads(STR("\"\x7f\""), STR("\x7f"));
}

static void
specials_are_found_at_every_offset(void **state)
{
	(void)state;
	for (size_t at = 0; at < 40; at++) {
		char text[64];
		char expected[64];

		memset(text, 'x', sizeof(text));
		memset(expected, 'x', sizeof(expected));
		text[0] = '"';
		text[1 + at] = '\\';
		text[2 + at] = 'n';
		text[43] = '"';
		expected[at] = '\n';
		assert_string_reads(str_of(text, 44), str_of(expected, 41));
		text[1 + at] = '\x1f';
		assert_int_equal(read_all(str_of(text, 44), NULL), STATUS_JSON_SYNTAX);
		text[1 + at] = '\xff';
		assert_int_equal(read_all(str_of(text, 44), NULL), STATUS_JSON_UTF8);
		text[1 + at] = '"';
		assert_string_reads(str_of(text, 44),
				    str_of("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", at));
	}
}

static void
failures_name_line_and_column(void **state)
{
	(void)state;
	assert_fails(STR(""), STATUS_JSON_SYNTAX, "line 1 column 1: unexpected end of the text");
	assert_fails(STR("{\n \"\xc3\xa9\": tru}"), STATUS_JSON_SYNTAX,
		     "line 2 column 10: unexpected '}'");
	assert_fails(STR("[1] 2"), STATUS_JSON_SYNTAX, "line 1 column 5: unexpected '2'");
	assert_fails(STR("[1,]"), STATUS_JSON_SYNTAX, "line 1 column 4: unexpected ']'");
	assert_fails(STR("[01]"), STATUS_JSON_SYNTAX, "line 1 column 3: unexpected '1'");
	assert_fails(STR("\xef\xbb\xbf{}"), STATUS_JSON_SYNTAX, "line 1 column 1: byte order mark");
	assert_fails(STR("[\x01]"), STATUS_JSON_SYNTAX, "line 1 column 2: unexpected byte 0x01");
	assert_fails(STR("\"ab\ncd\""), STATUS_JSON_SYNTAX,
		     "line 1 column 4: control character in a string");
	assert_fails(STR("\"abc"), STATUS_JSON_SYNTAX, "line 1 column 5: the string does not end");
	assert_fails(STR("[\"a\\x\"]"), STATUS_JSON_SYNTAX, "line 1 column 4: unknown escape");
	assert_fails(STR("[\"\\u12g4\"]"), STATUS_JSON_SYNTAX,
		     "line 1 column 3: \\u needs four hexadecimal digits");
	assert_fails(STR("[\"\\ud800\"]"), STATUS_JSON_UTF8,
		     "line 1 column 3: lone high surrogate");
	assert_fails(STR("[\"\\ud800\\u0041\"]"), STATUS_JSON_UTF8,
		     "line 1 column 3: lone high surrogate");
	assert_fails(STR("[\"\\udc00\"]"), STATUS_JSON_UTF8, "line 1 column 3: lone low surrogate");
	assert_fails(STR("[\"ab\xed\xa0\x80\"]"), STATUS_JSON_UTF8,
		     "line 1 column 5: not valid UTF-8");
}

static void
depth_has_a_limit(void **state)
{
	struct buf b = BUF_INIT(MAX_BYTES);

	(void)state;
	for (int i = 0; i < JSON_DEPTH_LIMIT; i++)
		buf_append_byte(&b, '[');
	for (int i = 0; i < JSON_DEPTH_LIMIT; i++)
		buf_append_byte(&b, ']');
	assert_int_equal(read_all(buf_str(&b), NULL), STATUS_OK);
	buf_clear(&b);
	for (int i = 0; i < JSON_DEPTH_LIMIT; i++)
		buf_append_cstr(&b, "{\"a\":");
	buf_append_cstr(&b, "[]");
	assert_fails(buf_str(&b), STATUS_JSON_DEPTH,
		     "line 1 column 2561: nested too deeply: more than 512 containers inside "
		     "each other");
	buf_release(&b);
}

static void
skip_returns_the_text_of_the_value(void **state)
{
	struct json_reader r;
	enum json_token token;
	struct str text;

	(void)state;
	json_reader_init(&r, STR("[ {\"a\": [1, {}]} , \"s\\n\", 12.5, []]"), NULL);
	assert_int_equal(json_next(&r, &token), STATUS_OK);
	for (int i = 0; i < 4; i++) {
		static const struct str expected[] = { STR("{\"a\": [1, {}]}"), STR("\"s\\n\""),
						       STR("12.5"), STR("[]") };

		assert_int_equal(json_next(&r, &token), STATUS_OK);
		assert_int_equal(json_skip(&r, token, &text), STATUS_OK);
		assert_true(str_eq(text, expected[i]));
	}
	assert_int_equal(json_next(&r, &token), STATUS_OK);
	assert_int_equal(token, JSON_ARRAY_END);
	json_reader_release(&r);
	json_reader_init(&r, STR("[[1,tru]]"), NULL);
	assert_int_equal(json_next(&r, &token), STATUS_OK);
	assert_int_equal(json_next(&r, &token), STATUS_OK);
	assert_int_equal(json_skip(&r, token, &text), STATUS_JSON_SYNTAX);
	json_reader_release(&r);
}

static void
memory_shortage_is_a_final_failure(void **state)
{
	struct json_reader r;
	enum json_token token;

	(void)state;
	json_reader_init(&r, STR("\"a\\n\""), NULL);
	mem_fail_after(1);
	assert_int_equal(json_next(&r, &token), STATUS_NOMEM);
	mem_fail_after(0);
	assert_int_equal(json_next(&r, &token), STATUS_NOMEM);
	json_reader_release(&r);
}

/* ---- Writing ---- */

static void
assert_written(struct buf *b, struct str expected)
{
	assert_int_equal(buf_status(b), STATUS_OK);
	assert_int_equal(b->len, expected.len);
	assert_memory_equal(b->ptr, expected.ptr, expected.len);
	buf_clear(b);
}

static void
strings_escape_only_what_they_must(void **state)
{
	struct buf b = BUF_INIT(MAX_BYTES);

	(void)state;
	json_write_str(&b, STR("a\"\\/\b\f\n\r\t\x01\x1f\x7f\0\xc3\xa9 and a long plain tail"));
	assert_written(&b, STR("\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\\u0000\xc3\xa9 and a "
			       "long plain tail\""));
	json_write_str(&b, STR(""));
	assert_written(&b, STR("\"\""));
	buf_release(&b);
}

static void
specials_are_escaped_at_every_offset_of_every_length(void **state)
{
	struct buf b = BUF_INIT(MAX_BYTES);

	(void)state;
	for (size_t len = 1; len < 40; len++) {
		for (size_t at = 0; at < len; at++) {
			char *text = mem_alloc(len); /* of its own, so that an overrun is seen */
			char expected[64] = "\"";

			assert_non_null(text);
			memset(text, 'x', len);
			memset(expected + 1, 'x', len + 1);
			text[at] = '\n';
			memcpy(expected + 1 + at, "\\n", 2);
			expected[len + 2] = '"';
			json_write_str(&b, str_of(text, len));
			assert_written(&b, str_of(expected, len + 3));
			text[at] = '\x80';
			json_write_str(&b, str_of(text, len));
			expected[at + 1] = '\x80';
			expected[at + 2] = at + 1 < len ? 'x' : '"';
			expected[len + 1] = '"';
			assert_written(&b, str_of(expected, len + 2));
			mem_free(text);
		}
	}
	buf_release(&b);
}

static void
doubles_are_written_as_javascript_would_but_never_as_integers(void **state)
{
	static const struct {
		double d;
		struct str text;
	} cases[] = {
		{ 0.0, STR("0.0") },
		{ -0.0, STR("-0.0") },
		{ 0.1, STR("0.1") },
		{ -1.5, STR("-1.5") },
		{ 1.0, STR("1.0") },
		{ 1500.0, STR("1500.0") },
		{ 1e20, STR("100000000000000000000.0") },
		{ 1e21, STR("1e+21") },
		{ 1.5e300, STR("1.5e+300") },
		{ 1e-6, STR("0.000001") },
		{ 1e-7, STR("1e-7") },
		{ 1.25e-7, STR("1.25e-7") },
		{ 123456.789, STR("123456.789") },
		{ 0.1 + 0.2, STR("0.30000000000000004") },
		{ 1.0 / 3, STR("0.3333333333333333") },
		{ 5e-324, STR("5e-324") },
		{ 1.7976931348623157e308, STR("1.7976931348623157e+308") },
		{ 9007199254740993.0, STR("9007199254740992.0") },
	};
	struct buf b = BUF_INIT(MAX_BYTES);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_write_double(&b, cases[i].d);
		if (!str_eq(buf_str(&b), cases[i].text))
			fail_msg("%.17g is written as %.*s", cases[i].d, STR_ARG(buf_str(&b)));
		buf_clear(&b);
	}
	buf_release(&b);
}

static void
random_doubles_read_back_as_themselves(void **state)
{
	struct rand_seq r = { 99 };
	struct buf b = BUF_INIT(MAX_BYTES);

	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint64_t bits = rand_seq_next(&r);
		double d;

		memcpy(&d, &bits, sizeof(d));
		if (i % 2) /* few digits */
			d = (double)(int64_t)(bits >> (20 + i % 40)) / pow(10, i % 12);
		if (!isfinite(d))
			continue;
		buf_clear(&b);
		json_write_double(&b, d);
		buf_append_byte(&b, '\0');
		assert_int_equal(buf_status(&b), STATUS_OK);
		if (strtod(b.ptr, NULL) != d || !strpbrk(b.ptr, ".e") ||
		    read_all(str_of(b.ptr, b.len - 1), NULL) != STATUS_OK)
			fail_msg("%.17g is written as %s", d, b.ptr);
	}
	buf_release(&b);
}

/* ---- Long lists ---- */

/* Writes [0, "1" ,[ 2],{"n":3},4,…] with `count` elements. */
static void
write_list(struct buf *b, size_t count)
{
	static const char *const before[] = { "", " \"", "[ ", "{\"n\":" };
	static const char *const behind[] = { "", "\" ", "]", "}" };

	buf_append_byte(b, '[');
	for (size_t i = 0; i < count; i++) {
		buf_append_cstr(b, i ? "\n," : "");
		buf_append_cstr(b, before[i % 4]);
		buf_append_u64(b, i);
		buf_append_cstr(b, behind[i % 4]);
	}
	buf_append_byte(b, ']');
}

/* Reads all pages, the last one first, and compares them with the elements read at once. */
static void
check_list(size_t count)
{
	struct arena *arena = arena_new(16 << 20);
	struct buf b = BUF_INIT(MAX_BYTES);
	struct json_value page[JSON_LIST_PAGE];
	struct json_value value;
	struct json_value *items;
	struct json_list list;
	size_t n;

	write_list(&b, count);
	assert_int_equal(json_value_read(buf_str(&b), arena, &value, NULL), STATUS_OK);
	assert_int_equal(json_value_items(&value, arena, &items, &n, NULL), STATUS_OK);
	assert_int_equal(json_list_init(&list, &value, arena, NULL), STATUS_OK);
	assert_int_equal(n, count);
	assert_int_equal(list.count, count);
	assert_int_equal(list.pages, (count + JSON_LIST_PAGE - 1) / JSON_LIST_PAGE);
	for (size_t p = list.pages; p-- > 0;) {
		assert_int_equal(json_list_page(&list, p, arena, page, &n), STATUS_OK);
		assert_int_equal(n,
				 p + 1 < list.pages ? JSON_LIST_PAGE : count - p * JSON_LIST_PAGE);
		for (size_t i = 0; i < n; i++) {
			const struct json_value *item = &items[p * JSON_LIST_PAGE + i];

			assert_int_equal(page[i].kind, item->kind);
			assert_true(str_eq(page[i].text, item->text));
			assert_true(str_eq(page[i].string, item->string));
		}
	}
	buf_release(&b);
	arena_free(arena);
}

static void
pages_of_a_list_are_its_elements(void **state)
{
	(void)state;
	check_list(0);
	check_list(1);
	check_list(JSON_LIST_PAGE - 1);
	check_list(JSON_LIST_PAGE);
	check_list(JSON_LIST_PAGE + 1);
	check_list(5 * JSON_LIST_PAGE + 3);
}

static void
a_list_holds_one_offset_for_each_page(void **state)
{
	enum {
		COUNT = 100 * 1000,
	};
	struct arena *arena = arena_new(1 << 20);
	struct buf b = BUF_INIT(MAX_BYTES);
	struct json_value value;
	struct json_list list;
	size_t before;

	(void)state;
	write_list(&b, COUNT);
	assert_int_equal(json_value_read(buf_str(&b), arena, &value, NULL), STATUS_OK);
	before = arena_used_bytes(arena);
	assert_int_equal(json_list_init(&list, &value, arena, NULL), STATUS_OK);
	assert_true(arena_used_bytes(arena) - before < COUNT / 2);
	buf_release(&b);
	arena_free(arena);
}

/* Long strings are checked piece by piece, and characters lie across the pieces. */
static void
long_strings_are_checked_as_a_whole(void **state)
{
	static const char character[] = "\xf0\x9f\x90\x98";
	enum {
		CHARACTERS = 50000
	};

	(void)state;
	for (size_t shift = 0; shift < 4; shift++) {
		struct buf text = BUF_INIT(1 << 20);

		buf_append_byte(&text, '"');
		for (size_t i = 0; i < shift; i++)
			buf_append_byte(&text, 'x');
		for (int i = 0; i < CHARACTERS; i++)
			buf_append_cstr(&text, character);
		buf_append_byte(&text, '"');
		assert_int_equal(read_all(buf_str(&text), NULL), STATUS_OK);
		for (size_t at = 65530; at < 65542; at++) {
			char kept = text.ptr[at];

			text.ptr[at] = (char)0xff;
			assert_int_equal(read_all(buf_str(&text), NULL), STATUS_JSON_UTF8);
			text.ptr[at] = kept;
		}
		text.ptr[text.len - 2] = 'x'; /* the last character is cut off */
		assert_int_equal(read_all(buf_str(&text), NULL), STATUS_JSON_UTF8);
		buf_release(&text);
	}
}

/* A string with an escape is put together beside the value: both count. */
static void
strings_count_in_the_arenas_part(void **state)
{
	enum {
		STRING_BYTES = 4 << 20,
	};
	struct buf text = BUF_INIT(2 * STRING_BYTES);

	(void)state;
	buf_append_cstr(&text, "\"\\n");
	while (text.len < STRING_BYTES)
		buf_append_cstr(&text, "xxxxxxxx");
	buf_append_byte(&text, '"');
	for (int enough = 0; enough < 2; enough++) {
		struct arena *arena = arena_new(2 * STRING_BYTES);
		struct budget_part part;
		struct json_value value;
		struct budget budget;

		budget_init(&budget, enough ? 8 * STRING_BYTES : STRING_BYTES * 3 / 2);
		budget_part_init(&part, &budget);
		arena_set_part(arena, &part);
		assert_int_equal(json_value_read(buf_str(&text), arena, &value, NULL),
				 enough ? STATUS_OK : STATUS_LIMIT);
		/* What was put together has been given back. */
		assert_true(part.used_bytes < STRING_BYTES * 3 / 2);
		arena_free(arena);
		budget_part_release(&part);
		budget_fini(&budget);
	}
	buf_release(&text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parsing_suite_is_decided_as_it_should_be),
		cmocka_unit_test(tokens_come_in_order_with_their_text),
		cmocka_unit_test(escapes_are_undone),
		cmocka_unit_test(specials_are_found_at_every_offset),
		cmocka_unit_test(failures_name_line_and_column),
		cmocka_unit_test(depth_has_a_limit),
		cmocka_unit_test(skip_returns_the_text_of_the_value),
		cmocka_unit_test(memory_shortage_is_a_final_failure),
		cmocka_unit_test(strings_escape_only_what_they_must),
		cmocka_unit_test(specials_are_escaped_at_every_offset_of_every_length),
		cmocka_unit_test(doubles_are_written_as_javascript_would_but_never_as_integers),
		cmocka_unit_test(random_doubles_read_back_as_themselves),
		cmocka_unit_test(pages_of_a_list_are_its_elements),
		cmocka_unit_test(a_list_holds_one_offset_for_each_page),
		cmocka_unit_test(long_strings_are_checked_as_a_whole),
		cmocka_unit_test(strings_count_in_the_arenas_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

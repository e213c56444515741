#include "doc/json.h"

#include <assert.h>
#include <stdio.h>

#include "base/utf8.h"
#include "doc/doc_int.h"
#include "loop/step.h"

enum {
	/* Reading 64 bytes of JSON text takes about two steps. */
	JSON_BYTES_A_STEP = 32,
	JSON_UTF8_PIECE_BYTES = 64 * 1024,
	UTF8_CHARACTER_BYTES = 4, /* of the longest character */
};

enum expect {
	EXPECT_VALUE,
	EXPECT_ELEMENT_OR_END, /* behind [ */
	EXPECT_KEY_OR_END,     /* behind { */
	EXPECT_COMMA_OR_END,   /* behind a value inside a container */
	EXPECT_NOTHING,        /* behind the outermost value */
};

void
json_reader_init(struct json_reader *r, struct str text, struct err *err)
{
	*r = (struct json_reader){
		.begin = text.ptr,
		.at = text.ptr,
		.end = text.len ? text.ptr + text.len : text.ptr,
		.token_begin = text.ptr,
		.err = err,
		.count_at = JSON_STEP_BYTES,
		.expect = EXPECT_VALUE,
	};
	/* A string's content is never longer than its text. */
	buf_init(&r->scratch, text.len);
}

void
json_reader_init_within(struct json_reader *r, struct str array, size_t offset, struct err *err)
{
	assert(offset >= 1 && offset <= array.len && array.ptr[0] == '[');
	json_reader_init(r, array, err);
	r->at = array.ptr + offset;
	r->count_at = offset + JSON_STEP_BYTES;
	r->depth = 1; /* the bit of this level is 0: an array */
	r->expect = offset == 1 ? EXPECT_ELEMENT_OR_END : EXPECT_COMMA_OR_END;
}

void
json_reader_release(struct json_reader *r)
{
	buf_release(&r->scratch);
}

void
json_rewind(struct json_reader *r, const struct json_reader *at)
{
	struct buf scratch = r->scratch;

	*r = *at;
	r->scratch = scratch;
}

/* ---- Failures ---- */

/* From now on json_next() returns `status`: it looks at `count_at` alone, which is reached now. */
static void
json_set_failed(struct json_reader *r, enum status status)
{
	r->failed = status;
	r->count_at = 0;
}

static enum status
json_fail(struct json_reader *r, const char *at, enum status status, const char *what)
{
	size_t line = 1;
	size_t column = 1;

	for (const char *p = r->begin; p < at; p++) {
		if (*p == '\n') {
			line++;
			column = 1;
		} else if (((uint8_t)*p & 0xc0) != 0x80) {
			column++;
		}
	}
	json_set_failed(r, status);
	return err_set(r->err, status, "line %zu column %zu: %s", line, column, what);
}

static enum status
json_fail_unexpected(struct json_reader *r, const char *at)
{
	char what[] = "unexpected '?'";
	char hex[] = "unexpected byte 0x??";
	static const char digits[] = "0123456789abcdef";
	uint8_t c;

	if (at == r->end)
		return json_fail(r, at, STATUS_JSON_SYNTAX, "unexpected end of the text");
	if (at == r->begin &&
	    str_starts_with(str_of(at, (size_t)(r->end - at)), STR("\xef\xbb\xbf")))
		return json_fail(r, at, STATUS_JSON_SYNTAX, "byte order mark");
	c = (uint8_t)*at;
	if (c > 0x20 && c < 0x7f) {
		what[sizeof(what) - 3] = (char)c;
		return json_fail(r, at, STATUS_JSON_SYNTAX, what);
	}
	hex[sizeof(hex) - 3] = digits[c >> 4];
	hex[sizeof(hex) - 2] = digits[c & 15];
	return json_fail(r, at, STATUS_JSON_SYNTAX, hex);
}

/* ---- Tokens ---- */

static inline bool
json_is_in_object(const struct json_reader *r)
{
	unsigned level = r->depth - 1;

	return r->stack[level / 8] >> level % 8 & 1;
}

static inline void
json_skip_space(struct json_reader *r)
{
	/* One comparison tells that there is none. */
	while (r->at < r->end && (uint8_t)*r->at <= ' ' &&
	       (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t'))
		r->at++;
}

static inline void
json_end_value(struct json_reader *r)
{
	r->expect = r->depth ? EXPECT_COMMA_OR_END : EXPECT_NOTHING;
}

/* Four hexadecimal digits, or -1. */
static int
hex4(const char *at, const char *end)
{
	int code = 0;

	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = str_hex_digit(at[i]);

		if (digit < 0)
			return -1;
		code = code << 4 | digit;
	}
	return code;
}

/* `r->at` is behind the u of an escape, which starts at `escape`. */
static enum status
json_read_unicode_escape(struct json_reader *r, const char *escape)
{
	char utf8[4];
	int code = hex4(r->at, r->end);
	int low;

	if (code < 0)
		return json_fail(r, escape, STATUS_JSON_SYNTAX,
				 "\\u needs four hexadecimal digits");
	r->at += 4;
	if (code >= 0xdc00 && code <= 0xdfff)
		return json_fail(r, escape, STATUS_JSON_UTF8, "lone low surrogate");
	if (code >= 0xd800 && code <= 0xdbff) {
		low = r->end - r->at >= 6 && r->at[0] == '\\' && r->at[1] == 'u'
			      ? hex4(r->at + 2, r->end)
			      : -1;
		if (low < 0xdc00 || low > 0xdfff)
			return json_fail(r, escape, STATUS_JSON_UTF8, "lone high surrogate");
		r->at += 6;
		code = 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
	}
	buf_append(&r->scratch, utf8, utf8_encode((uint32_t)code, utf8));
	return STATUS_OK;
}

/* `r->at` is at a backslash. */
static enum status
json_read_escape(struct json_reader *r)
{
	static const char plain[256] = {
		['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
		['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
	};
	const char *escape = r->at;
	uint8_t c;

	if (r->end - escape < 2)
		return json_fail_unexpected(r, r->end);
	c = (uint8_t)escape[1];
	r->at += 2;
	if (c == 'u')
		return json_read_unicode_escape(r, escape);
	if (!plain[c])
		return json_fail(r, escape, STATUS_JSON_SYNTAX, "unknown escape");
	buf_append_byte(&r->scratch, (uint8_t)plain[c]);
	return STATUS_OK;
}

/* Checks a string piece by piece, so that other fibers run while a long one is checked. */
static enum status
json_check_utf8(struct json_reader *r, struct str s)
{
	while (s.len) {
		size_t n = s.len < JSON_UTF8_PIECE_BYTES ? s.len : JSON_UTF8_PIECE_BYTES;
		size_t valid = utf8_valid_prefix(str_of(s.ptr, n));

		/* A piece may end inside of a character, which the next piece begins with. */
		if (valid < n && (n == s.len || n - valid >= UTF8_CHARACTER_BYTES))
			return json_fail(r, s.ptr + valid, STATUS_JSON_UTF8, "not valid UTF-8");
		s = str_skip(s, valid);
		if (s.len) {
			enum status status = step_count(JSON_UTF8_PIECE_BYTES / JSON_BYTES_A_STEP);

			if (status != STATUS_OK) {
				json_set_failed(r, status);
				return status;
			}
		}
	}
	return STATUS_OK;
}

/*
 * The rest of json_read_string() for a string with escapes, with bytes that are not ASCII, or
 * without an end. It begins at `begin`, and `at` is where it stops being plain.
 */
__attribute__((noinline)) static enum status
json_read_string_rest(struct json_reader *r, const char *begin, const char *at, uint64_t high)
{
	const char *piece = begin;

	buf_clear(&r->scratch);
	while (at < r->end && *at == '\\') {
		buf_append(&r->scratch, piece, (size_t)(at - piece));
		r->at = at;
		TRY(json_read_escape(r));
		piece = r->at;
		at = json_scan_plain(piece, r->end, &high);
	}
	if (at == r->end)
		return json_fail(r, at, STATUS_JSON_SYNTAX, "the string does not end");
	if (*at != '"')
		return json_fail(r, at, STATUS_JSON_SYNTAX, "control character in a string");
	if (high)
		TRY(json_check_utf8(r, str_of(begin, (size_t)(at - begin))));
	r->at = at + 1;
	if (piece == begin) {
		r->text = str_of(begin, (size_t)(at - begin));
		return STATUS_OK;
	}
	buf_append(&r->scratch, piece, (size_t)(at - piece));
	if (buf_status(&r->scratch) != STATUS_OK)
		return json_fail(r, begin, buf_status(&r->scratch), "no memory for the string");
	r->text = buf_str(&r->scratch);
	return STATUS_OK;
}

/* The same for a string that may go on to less than a block before the end of the text. */
__attribute__((noinline)) static enum status
json_read_string_last(struct json_reader *r, const char *begin, const char *at, uint64_t high)
{
	at = json_scan_rest(begin, at, r->end, &high);
	if (high || at == r->end || *at != '"')
		return json_read_string_rest(r, begin, at, high);
	r->at = at + 1;
	r->text = str_of(begin, (size_t)(at - begin));
	return STATUS_OK;
}

/* `r->at` is at the opening quote; afterwards behind the closing one. */
static enum status
json_read_string(struct json_reader *r)
{
	const char *begin = r->at + 1;
	const char *at = begin;
	uint64_t high = 0;

	if (!json_scan_blocks(&at, r->end, &high))
		return json_read_string_last(r, begin, at, high);
	if (high || *at != '"')
		return json_read_string_rest(r, begin, at, high);
	r->at = at + 1;
	r->text = str_of(begin, (size_t)(at - begin));
	return STATUS_OK;
}

static enum status
json_read_key(struct json_reader *r, enum json_token *ret)
{
	if (r->at == r->end || *r->at != '"')
		return json_fail_unexpected(r, r->at);
	r->token_begin = r->at;
	TRY(json_read_string(r));
	json_skip_space(r);
	if (r->at == r->end || *r->at != ':')
		return json_fail_unexpected(r, r->at);
	r->at++;
	r->expect = EXPECT_VALUE;
	*ret = JSON_KEY;
	return STATUS_OK;
}

static const char *
skip_digits(const char *at, const char *end)
{
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at;
}

/*
 * Returns the end of the number that starts at `at`. If there is none, `*ret_valid` is false and
 * the place returned is where the text stops being a number.
 */
static const char *
scan_number(const char *at, const char *end, bool *ret_valid, bool *ret_is_integer)
{
	const char *digits;

	*ret_valid = false;
	*ret_is_integer = true;
	if (at < end && *at == '-')
		at++;
	digits = at;
	at = at < end && *at == '0' ? at + 1 : skip_digits(at, end);
	if (at == digits)
		return at;
	if (at < end && *at == '.') {
		*ret_is_integer = false;
		digits = ++at;
		at = skip_digits(at, end);
		if (at == digits)
			return at;
	}
	if (at < end && (*at == 'e' || *at == 'E')) {
		*ret_is_integer = false;
		at++;
		if (at < end && (*at == '+' || *at == '-'))
			at++;
		digits = at;
		at = skip_digits(at, end);
		if (at == digits)
			return at;
	}
	*ret_valid = true;
	return at;
}

size_t
json_number_len(struct str s, bool *ret_is_integer)
{
	bool valid;
	const char *end;

	if (!s.len)
		return 0;
	end = scan_number(s.ptr, s.ptr + s.len, &valid, ret_is_integer);
	return valid ? (size_t)(end - s.ptr) : 0;
}

static enum status
json_read_number(struct json_reader *r, enum json_token *ret)
{
	const char *begin = r->at;
	bool valid;

	r->at = scan_number(begin, r->end, &valid, &r->is_integer);
	if (!valid)
		return json_fail_unexpected(r, r->at);
	r->text = str_of(begin, (size_t)(r->at - begin));
	json_end_value(r);
	*ret = JSON_NUMBER;
	return STATUS_OK;
}

static enum status
json_read_literal(struct json_reader *r, struct str name, enum json_token token,
		  enum json_token *ret)
{
	for (size_t i = 0; i < name.len; i++, r->at++)
		if (r->at == r->end || *r->at != name.ptr[i])
			return json_fail_unexpected(r, r->at);
	json_end_value(r);
	*ret = token;
	return STATUS_OK;
}

static enum status
json_fail_depth(struct json_reader *r)
{
	char what[80];

	snprintf(what, sizeof(what), "nested too deeply: more than %d containers inside each other",
		 JSON_DEPTH_LIMIT);
	return json_fail(r, r->at, STATUS_JSON_DEPTH, what);
}

static enum status
json_open_container(struct json_reader *r, bool object, enum json_token *ret)
{
	unsigned level = r->depth;
	uint8_t bit = (uint8_t)(1u << level % 8);

	if (level == JSON_DEPTH_LIMIT + r->wrapped)
		return json_fail_depth(r);
	r->stack[level / 8] = (uint8_t)(object ? r->stack[level / 8] | bit
					       : r->stack[level / 8] & ~bit);
	r->depth++;
	r->at++;
	r->expect = object ? EXPECT_KEY_OR_END : EXPECT_ELEMENT_OR_END;
	*ret = object ? JSON_OBJECT_BEGIN : JSON_ARRAY_BEGIN;
	return STATUS_OK;
}

static enum status
json_close_container(struct json_reader *r, bool object, enum json_token *ret)
{
	assert(r->depth);
	r->token_begin = r->at++;
	r->depth--;
	json_end_value(r);
	*ret = object ? JSON_OBJECT_END : JSON_ARRAY_END;
	return STATUS_OK;
}

static enum status
json_read_value(struct json_reader *r, enum json_token *ret)
{
	if (r->at == r->end)
		return json_fail_unexpected(r, r->at);
	r->token_begin = r->at;
	switch (*r->at) {
	case '"':
		TRY(json_read_string(r));
		json_end_value(r);
		*ret = JSON_STRING;
		return STATUS_OK;
	case '{':
		return json_open_container(r, true, ret);
	case '[':
		return json_open_container(r, false, ret);
	case 't':
		return json_read_literal(r, STR("true"), JSON_TRUE, ret);
	case 'f':
		return json_read_literal(r, STR("false"), JSON_FALSE, ret);
	case 'n':
		return json_read_literal(r, STR("null"), JSON_NULL, ret);
	default:
		return json_read_number(r, ret);
	}
}

/* Behind a value inside a container: a comma and what follows it, or the container's end. */
static enum status
json_read_comma_or_end(struct json_reader *r, enum json_token *ret)
{
	bool object = json_is_in_object(r);

	if (r->at == r->end)
		return json_fail_unexpected(r, r->at);
	if (*r->at == ',') {
		r->at++;
		json_skip_space(r);
		return object ? json_read_key(r, ret) : json_read_value(r, ret);
	}
	if (*r->at == (object ? '}' : ']'))
		return json_close_container(r, object, ret);
	return json_fail_unexpected(r, r->at);
}

/*
 * Returns the failure if there has been one. Otherwise it counts the steps of what has been read
 * since they were counted last, and reads on. It is apart from json_next(), which needs no stack
 * frame without it.
 */
__attribute__((noinline, cold)) static enum status
json_count_and_next(struct json_reader *r, enum json_token *ret)
{
	size_t at = (size_t)(r->at - r->begin);
	size_t bytes = at - (r->count_at - JSON_STEP_BYTES);
	enum status status = r->failed;

	if (status == STATUS_OK)
		status = step_count((uint32_t)(bytes / JSON_BYTES_A_STEP));
	if (status != STATUS_OK) {
		json_set_failed(r, status);
		return status;
	}
	r->count_at = at + JSON_STEP_BYTES;
	return json_next(r, ret);
}

enum status
json_next(struct json_reader *r, enum json_token *ret)
{
	if (__builtin_expect((size_t)(r->at - r->begin) >= r->count_at, 0))
		return json_count_and_next(r, ret);
	json_skip_space(r);
	switch ((enum expect)r->expect) {
	case EXPECT_VALUE:
		return json_read_value(r, ret);
	case EXPECT_ELEMENT_OR_END:
		if (r->at < r->end && *r->at == ']')
			return json_close_container(r, false, ret);
		return json_read_value(r, ret);
	case EXPECT_KEY_OR_END:
		if (r->at < r->end && *r->at == '}')
			return json_close_container(r, true, ret);
		return json_read_key(r, ret);
	case EXPECT_COMMA_OR_END:
		return json_read_comma_or_end(r, ret);
	case EXPECT_NOTHING:
		break;
	}
	if (r->at < r->end)
		return json_fail_unexpected(r, r->at);
	r->token_begin = r->at;
	*ret = JSON_END;
	return STATUS_OK;
}

enum status
json_skip(struct json_reader *r, enum json_token first, struct str *ret_text)
{
	const char *begin = r->token_begin;

	if (first == JSON_OBJECT_BEGIN || first == JSON_ARRAY_BEGIN) {
		unsigned depth = r->depth;
		enum json_token token;

		while (r->depth >= depth)
			TRY(json_next(r, &token));
	}
	*ret_text = str_of(begin, (size_t)(r->at - begin));
	return STATUS_OK;
}

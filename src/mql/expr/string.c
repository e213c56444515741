/* Expressions on strings. */
#include "mql/expr/text.h"

static bool
is_inside_char(struct str text, size_t at)
{
	return at < text.len && ((uint8_t)text.ptr[at] & 0xc0) == 0x80;
}

/* Where `what` first is at byte `from` or later; false if nowhere. */
static bool
find_text(struct str text, struct str what, size_t from, size_t *ret)
{
	const char *at;

	if (from > text.len)
		return false;
	if (!what.len) {
		*ret = from;
		return true;
	}
	at = memmem(text.ptr + from, text.len - from, what.ptr, what.len);
	if (at)
		*ret = (size_t)(at - text.ptr);
	return at != NULL;
}

static enum status
run_concat(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	struct buf out = mql_buf(q, MQL_STRING_BYTES);

	for (size_t i = 0; i < count; i++) {
		enum status status = STATUS_OK;

		if (mql_is_nullish(&args[i])) {
			buf_release(&out);
			*ret = BSON_OF_NULL;
			return STATUS_OK;
		}
		if (args[i].type != BSON_STRING)
			status = mql_fail(q, 16702, "$concat only supports strings, not %s",
					  mql_expr_type(&args[i]));
		if (status == STATUS_OK)
			status = step_count_bytes(bson_text(&args[i]).len);
		if (status != STATUS_OK) {
			buf_release(&out);
			return status;
		}
		/* A null behind a text that is too long still gives null. */
		buf_append_str(&out, bson_text(&args[i]));
	}
	return mql_expr_keep_text(q, &out, ret);
}

/* ---- Case ---- */

static char
to_case(char c, bool upper)
{
	if (upper)
		return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Letters of ASCII only. */
static enum status
run_case(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args, size_t count,
	 struct bson_value *ret)
{
	struct str text;
	char *out;

	(void)count;
	TRY(mql_expr_coerce_text(q, &args[0], &text));
	TRY(step_count_bytes(text.len));
	TRY(mql_expr_text(q, text, ret));
	out = arena_bytes(q->arena, text.len + 1);
	if (!out)
		return mql_full(q);
	for (size_t i = 0; i < text.len; i++)
		out[i] = to_case(text.ptr[i], op->number != 0);
	*ret = BSON_OF_STRING(str_of(out, text.len));
	return STATUS_OK;
}

static enum status
run_strcasecmp(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	struct str a, b;
	size_t shorter;
	int order = 0;

	(void)count;
	TRY(mql_expr_coerce_text(q, &args[0], &a));
	TRY(mql_expr_coerce_text(q, &args[1], &b));
	shorter = a.len < b.len ? a.len : b.len;
	TRY(step_count_bytes(shorter));
	for (size_t i = 0; i < shorter && !order; i++)
		order = (uint8_t)to_case(a.ptr[i], true) - (uint8_t)to_case(b.ptr[i], true);
	if (!order)
		order = (a.len > b.len) - (a.len < b.len);
	*ret = BSON_OF_INT32((order > 0) - (order < 0));
	return STATUS_OK;
}

/* ---- Lengths and places ---- */

static enum status
run_length(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args, size_t count,
	   struct bson_value *ret)
{
	bool chars = op->number != 0;

	(void)count;
	if (args[0].type != BSON_STRING)
		return mql_fail(q, chars ? 34471 : 34473,
				"%s requires a string argument, found: %s", op->name,
				mql_expr_type(&args[0]));
	TRY(step_count_bytes(chars ? bson_text(&args[0]).len : 0));
	*ret = BSON_OF_INT32(
		(int64_t)(chars ? mql_count_chars(bson_text(&args[0])) : bson_text(&args[0]).len));
	return STATUS_OK;
}

static enum status
read_place(struct mql *q, const struct mql_expr_op *op, const char *which,
	   const struct bson_value *v, size_t *ret)
{
	int32_t n;

	if (!mql_expr_int32(v, &n))
		return mql_fail(q, 40096,
				"%s requires an integral %s index, found a value of type: %s, with "
				"value: \"%s\"",
				op->name, which, mql_expr_type(v),
				mql_is_missing(v) ? "" : mql_text(q, STR(""), v));
	if (n < 0)
		return mql_fail(q, 40097, "%s requires a nonnegative %s index, found: %d", op->name,
				which, n);
	*ret = (size_t)n;
	return STATUS_OK;
}

/* `end` only says where the text may begin. Texts are UTF-8, so none begins inside a character. */
static int64_t
index_of_char(struct str text, struct str what, size_t start, size_t end)
{
	size_t at = 0, n = 0, found;

	if (!text.len && !what.len && !start)
		return 0;
	for (; n < start && at < text.len; n++)
		at += mql_char_bytes(str_skip(text, at));
	if (at >= text.len || !find_text(text, what, at, &found))
		return -1;
	n += mql_count_chars(str_of(text.ptr + at, found - at));
	return n < end ? (int64_t)n : -1;
}

static enum status
run_index_of(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args,
	     size_t count, struct bson_value *ret)
{
	bool chars = op->number != 0;
	size_t start = 0, end = SIZE_MAX, at;
	struct str text;

	if (mql_is_nullish(&args[0])) {
		*ret = BSON_OF_NULL;
		return STATUS_OK;
	}
	if (args[0].type != BSON_STRING)
		return mql_fail(q, chars ? 40093 : 40091,
				"%s requires a string as the first argument, found: %s", op->name,
				mql_expr_type(&args[0]));
	if (args[1].type != BSON_STRING)
		return mql_fail(q, chars ? 40094 : 40092,
				"%s requires a string as the second argument, found: %s", op->name,
				mql_expr_type(&args[1]));
	if (count > 2)
		TRY(read_place(q, op, "starting", &args[2], &start));
	if (count > 3)
		TRY(read_place(q, op, "ending", &args[3], &end));
	text = bson_text(&args[0]);
	TRY(step_count_bytes(text.len + bson_text(&args[1]).len));
	*ret = BSON_OF_INT32(-1);
	if (end < start)
		return STATUS_OK;
	if (chars) {
		ret->as_n = index_of_char(text, bson_text(&args[1]), start, end);
		return STATUS_OK;
	}
	text.len = end < text.len ? end : text.len;
	if (find_text(text, bson_text(&args[1]), start, &at))
		ret->as_n = (int64_t)at;
	return STATUS_OK;
}

/* ---- Parts ---- */

static enum status
run_substr_bytes(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args,
		 size_t count, struct bson_value *ret)
{
	struct str text;
	int64_t from, len;
	size_t rest;

	(void)count;
	TRY(mql_expr_coerce_text(q, &args[0], &text));
	if (!bson_is_number(&args[1]))
		return mql_fail(q, 16034,
				"%s:  starting index must be a numeric type (is BSON type %s)",
				op->name, mql_expr_type(&args[1]));
	if (!bson_is_number(&args[2]))
		return mql_fail(q, 16035, "%s:  length must be a numeric type (is BSON type %s)",
				op->name, mql_expr_type(&args[2]));
	TRY(mql_expr_coerce_long(q, &args[1], &from));
	TRY(mql_expr_coerce_long(q, &args[2], &len));
	if (from < 0)
		return mql_fail(q, 50752, "%s:  starting index must be non-negative (got: %lld)",
				op->name, (long long)from);
	if ((uint64_t)from >= text.len)
		return mql_expr_text(q, STR(""), ret);
	if (is_inside_char(text, (size_t)from))
		return mql_fail(q, 28656,
				"%s:  Invalid range, starting index is a UTF-8 continuation byte.",
				op->name);
	rest = text.len - (size_t)from;
	if (len >= 0 && (uint64_t)len < rest)
		rest = (size_t)len;
	if (is_inside_char(text, (size_t)from + rest))
		return mql_fail(q, 28657,
				"%s:  Invalid range, ending index is in the middle of a UTF-8 "
				"character.",
				op->name);
	return mql_expr_text(q, str_of(text.ptr + from, rest), ret);
}

static enum status
read_chars(struct mql *q, const char *what, const struct bson_value *v, const int codes[3],
	   int32_t *ret)
{
	if (!bson_is_number(v))
		return mql_fail(q, codes[0],
				"$substrCP: %s must be a numeric type (is BSON type %s)", what,
				mql_expr_type(v));
	if (!mql_expr_int32(v, ret))
		return mql_fail(q, codes[1],
				"$substrCP: %s cannot be represented as a 32-bit integral value: "
				"%s",
				what, mql_text(q, STR(""), v));
	if (*ret < 0)
		return mql_fail(q, codes[2], "$substrCP: the %s must be a nonnegative integer.",
				what);
	return STATUS_OK;
}

static size_t
skip_chars(struct str text, int32_t count)
{
	size_t at = 0;

	for (int32_t n = 0; n < count && at < text.len; n++)
		at += mql_char_bytes(str_skip(text, at));
	return at;
}

static enum status
run_substr_chars(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	static const int from_codes[] = { 34450, 34451, 34455 };
	static const int count_codes[] = { 34452, 34453, 34454 };
	struct str text;
	int32_t from, chars;

	(void)count;
	TRY(mql_expr_coerce_text(q, &args[0], &text));
	TRY(read_chars(q, "starting index", &args[1], from_codes, &from));
	TRY(read_chars(q, "length", &args[2], count_codes, &chars));
	TRY(step_count_bytes(text.len));
	text = str_skip(text, skip_chars(text, from));
	return mql_expr_text(q, str_of(text.ptr, skip_chars(text, chars)), ret);
}

static enum status
run_split(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	struct bson_value *parts = NULL;
	size_t cap = 0, found, at = 0;
	struct str text, by;
	bool more = true;

	*ret = BSON_OF_NULL;
	if (mql_is_nullish(&args[0]) || mql_is_nullish(&args[1]))
		return STATUS_OK;
	if (args[0].type != BSON_STRING)
		return mql_fail(q, 40085,
				"$split requires an expression that evaluates to a string as a "
				"first argument, found: %s",
				mql_expr_type(&args[0]));
	if (args[1].type != BSON_STRING)
		return mql_fail(q, 10503900,
				"$split requires an expression that evaluates to a string as a "
				"second argument, found: %s",
				mql_expr_type(&args[1]));
	text = bson_text(&args[0]);
	by = bson_text(&args[1]);
	if (!by.len)
		return mql_fail(q, 40087, "$split requires a non-empty separator");
	TRY(step_count_bytes(text.len));
	for (count = 0; more; count++) {
		TRY(step_count(1));
		more = find_text(text, by, at, &found);
		parts = arena_grow(q->arena, parts, count, &cap, sizeof(*parts));
		if (!parts)
			return mql_full(q);
		TRY(mql_expr_text(q, str_of(text.ptr + at, (more ? found : text.len) - at),
				  &parts[count]));
		at = more ? found + by.len : at;
	}
	return mql_expr_array(q, parts, count, ret);
}

/* ---- $trim ---- */

enum {
	TRIM_LEFT = 1,
	TRIM_RIGHT = 2,
};

enum {
	CHAR_SET_SHORT_BYTES = 64, /* of which each character is compared */
	CHAR_SET_CODES = 0x110000, /* of Unicode */
};

/* Characters: `bits` has one for each code; NULL: there are few, and `text` is gone through. */
struct char_set {
	struct str text;
	uint8_t *bits;
};

static uint32_t
char_code(const char *c, size_t len)
{
	uint32_t code = len > 1 ? (uint8_t)c[0] & (0x7fU >> len) : (uint8_t)c[0];

	for (size_t i = 1; i < len; i++)
		code = code << 6 | ((uint8_t)c[i] & 0x3f);
	return code % CHAR_SET_CODES;
}

static enum status
char_set_of(struct mql *q, struct str text, struct char_set *ret)
{
	*ret = (struct char_set){ .text = text };
	if (text.len <= CHAR_SET_SHORT_BYTES)
		return STATUS_OK;
	TRY(step_count_bytes(text.len + CHAR_SET_CODES / 8));
	ret->bits = arena_zalloc(q->arena, CHAR_SET_CODES / 8);
	if (!ret->bits)
		return mql_full(q);
	while (text.len) {
		size_t n = mql_char_bytes(text);
		uint32_t code = char_code(text.ptr, n);

		ret->bits[code / 8] |= (uint8_t)(1U << code % 8);
		text = str_skip(text, n);
	}
	return STATUS_OK;
}

static bool
char_set_has(const struct char_set *set, struct str c)
{
	struct str rest = set->text;
	uint32_t code;

	if (set->bits) {
		code = char_code(c.ptr, c.len);
		return set->bits[code / 8] >> code % 8 & 1;
	}
	while (rest.len) {
		size_t n = mql_char_bytes(rest);

		if (str_eq(c, str_of(rest.ptr, n)))
			return true;
		rest = str_skip(rest, n);
	}
	return false;
}

/* All that MongoDB takes for white space. */
#define TRIM_BLANKS                                                                                \
	STR("\0\t\n\v\f\r \xc2\xa0\xe1\x9a\x80\xe2\x80\x80\xe2\x80\x81\xe2\x80\x82\xe2\x80\x83"    \
	    "\xe2\x80\x84\xe2\x80\x85\xe2\x80\x86\xe2\x80\x87\xe2\x80\x88\xe2\x80\x89\xe2\x80"     \
	    "\x8a")

static enum status
trim_text(struct mql *q, int sides, struct str chars, struct str *text)
{
	struct char_set set;

	TRY(char_set_of(q, chars, &set));
	while (sides & TRIM_LEFT && text->len) {
		size_t n = mql_char_bytes(*text);

		TRY(step_count(1));
		if (!char_set_has(&set, str_of(text->ptr, n)))
			break;
		*text = str_skip(*text, n);
	}
	while (sides & TRIM_RIGHT && text->len) {
		size_t at = text->len - 1;

		while (at && is_inside_char(*text, at))
			at--;
		TRY(step_count(1));
		if (!char_set_has(&set, str_skip(*text, at)))
			break;
		text->len = at;
	}
	return STATUS_OK;
}

/* `chars` that is missing in the document is not the same as `chars` that was left out. */
static enum status
run_trim(const struct mql_expr *e, struct mql *q, const struct mql_env *env, struct bson_value *ret)
{
	struct bson_value input, chars = BSON_OF_STRING(TRIM_BLANKS);

	TRY(mql_expr_run(e->args[0], q, env, &input));
	if (e->args[1])
		TRY(mql_expr_run(e->args[1], q, env, &chars));
	*ret = BSON_OF_NULL;
	if (mql_is_nullish(&input))
		return STATUS_OK;
	if (input.type != BSON_STRING)
		return mql_fail(q, 50699,
				"%s requires its input to be a string, got %s (of type %s) "
				"instead.",
				e->op->name, mql_text(q, STR(""), &input), mql_expr_type(&input));
	if (mql_is_nullish(&chars))
		return STATUS_OK;
	if (chars.type != BSON_STRING)
		return mql_fail(q, 50700,
				"%s requires 'chars' to be a string, got %s (of type %s) instead.",
				e->op->name, mql_text(q, STR(""), &chars), mql_expr_type(&chars));
	TRY(trim_text(q, e->op->number, bson_text(&chars), &input.as_text));
	return mql_expr_text(q, bson_text(&input), ret);
}

static enum status
compile_trim(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	     const struct mql_scope *scope, struct mql_expr **ret)
{
	TRY(mql_expr_args(q, op, arg, scope, run_trim, ret));
	return mql_expr_fold(q, *ret);
}

/* ---- $replaceOne, $replaceAll ---- */

static enum status
fault_replace(struct mql *q, const struct mql_expr_op *op, enum mql_expr_fault fault,
	      struct str name, const struct bson_value *arg)
{
	switch ((int)fault) {
	case MQL_FAULT_NOT_OBJECT:
		return mql_fail(q, 51751, "%s requires an object as an argument, found: %s",
				op->name, mql_expr_type(arg));
	case MQL_FAULT_UNKNOWN:
		return mql_fail(q, 51750, "%s found an unknown argument: %.*s", op->name,
				STR_ARG(name));
	default:
		return mql_fail(q,
				mql_is(name, "input")  ? 51749
				: mql_is(name, "find") ? 51748
						       : 51747,
				"%s requires '%.*s' to be specified", op->name, STR_ARG(name));
	}
}

static enum status
replace_text(const struct mql_expr_op *op, const struct bson_value *args, struct buf *out)
{
	struct str text = bson_text(&args[0]), what = bson_text(&args[1]),
		   with = bson_text(&args[2]);
	size_t at = 0, found;

	while (find_text(text, what, at, &found)) {
		TRY(step_count_bytes(with.len + found - at));
		buf_append(out, text.ptr + at, found - at);
		buf_append_str(out, with);
		at = found + what.len;
		if (op->number == 1)
			break;
		if (what.len)
			continue;
		/* The empty text is in front of each character, and at the end. */
		if (at == text.len)
			break;
		found = mql_char_bytes(str_skip(text, at));
		buf_append(out, text.ptr + at, found);
		at += found;
	}
	buf_append_str(out, str_skip(text, at));
	return STATUS_OK;
}

static enum status
run_replace(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args,
	    size_t count, struct bson_value *ret)
{
	static const int codes[] = { 10503904, 10503901, 10503902 };
	struct buf out = mql_buf(q, MQL_STRING_BYTES);
	bool null = false;
	enum status status;

	for (size_t i = 0; i < count; i++) {
		if (mql_is_nullish(&args[i]))
			null = true;
		else if (args[i].type != BSON_STRING)
			return mql_fail(q, codes[i], "%s requires that '%s' be a string, found: %s",
					op->name, op->names[i], mql_text(q, STR(""), &args[i]));
	}
	*ret = BSON_OF_NULL;
	if (null)
		return STATUS_OK;
	TRY(step_count_bytes(bson_text(&args[0]).len));
	status = replace_text(op, args, &out);
	if (status != STATUS_OK) {
		buf_release(&out);
		return status;
	}
	return mql_expr_keep_text(q, &out, ret);
}

static const char *const trim_names[] = { "input", "chars", NULL };
static const char *const replace_names[] = { "input", "find", "replacement", NULL };

#define TRIM(text, sides)                                                                          \
	{                                                                                          \
		.name = text, .names = trim_names, .required = 1,                                  \
		.codes = { 50696, 50694, 50695 }, .compile = compile_trim, .number = sides         \
	}
#define REPLACE(text, which)                                                                       \
	{                                                                                          \
		.name = text, .names = replace_names, .required = 7, .fault = fault_replace,       \
		.run_op = run_replace, .number = which                                             \
	}

const struct mql_expr_op mql_expr_string_ops[] = {
	{ .name = "$concat", .least = 0, .most = -1, .run = run_concat },
	{ .name = "$indexOfBytes", .least = 2, .most = 4, .run_op = run_index_of },
	{ .name = "$indexOfCP", .least = 2, .most = 4, .run_op = run_index_of, .number = 1 },
	TRIM("$ltrim", TRIM_LEFT),
	TRIM("$rtrim", TRIM_RIGHT),
	TRIM("$trim", TRIM_LEFT | TRIM_RIGHT),
	REPLACE("$replaceOne", 1),
	REPLACE("$replaceAll", 0),
	{ .name = "$split", .least = 2, .most = 2, .run = run_split },
	{ .name = "$strLenBytes", .least = 1, .most = 1, .run_op = run_length },
	{ .name = "$strLenCP", .least = 1, .most = 1, .run_op = run_length, .number = 1 },
	{ .name = "$strcasecmp", .least = 2, .most = 2, .run = run_strcasecmp },
	{ .name = "$substr", .least = 3, .most = 3, .run_op = run_substr_bytes },
	{ .name = "$substrBytes", .least = 3, .most = 3, .run_op = run_substr_bytes },
	{ .name = "$substrCP", .least = 3, .most = 3, .run = run_substr_chars },
	{ .name = "$toLower", .least = 1, .most = 1, .run_op = run_case },
	{ .name = "$toUpper", .least = 1, .most = 1, .run_op = run_case, .number = 1 },
	{ 0 },
};

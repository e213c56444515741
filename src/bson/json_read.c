#include <math.h>

#include "base/base64.h"
#include "bson/bson_int.h"
#include "bson/date.h"
#include "bson/decimal.h"
#include "bson/json.h"
#include "doc/doc_int.h"
#include "doc/json.h"

enum {
	SCOPES = 8, /* scopes of code inside each other, in a text */
	UUID_BYTES = 16,
	UUID_SUBTYPE = 4,
	UUID_TEXT_BYTES = 36,
};

struct json_input {
	struct json_reader r;
	struct bson_builder b;
	struct buf name; /* of the member whose value comes next */
	struct buf text; /* what a special object consists of */
	struct buf more;
	unsigned scopes;
	struct err *err;
};

static enum status read_text(struct str text, struct buf *out, unsigned scopes, struct err *err);

/* ---- What special objects consist of ---- */

static enum status
wrong(const struct json_input *in, const char *what)
{
	return err_set(in->err, STATUS_INVALID, "Extended JSON: %s", what);
}

static enum status
expect(struct json_input *in, enum json_token token, const char *what)
{
	enum json_token next;

	TRY(json_next(&in->r, &next));
	return next == token ? STATUS_OK : wrong(in, what);
}

static enum status
expect_end(struct json_input *in)
{
	return expect(in, JSON_OBJECT_END, "an object of one value has another member");
}

/* The text of the current token stays only until the next one. */
static enum status
keep(struct json_input *in, struct buf *into)
{
	buf_clear(into);
	buf_append_str(into, in->r.text);
	return buf_status(into);
}

static enum status
expect_string(struct json_input *in, struct buf *into, const char *what)
{
	TRY(expect(in, JSON_STRING, what));
	return keep(in, into);
}

static enum status
expect_key(struct json_input *in, struct str name, const char *what)
{
	TRY(expect(in, JSON_KEY, what));
	return str_eq(in->r.text, name) ? STATUS_OK : wrong(in, what);
}

static bool
has_nul(const struct buf *text)
{
	return text->len && memchr(text->ptr, 0, text->len);
}

static void
put(struct json_input *in, const struct bson_value *v)
{
	bson_put(&in->b, buf_str(&in->name), v);
}

/* ---- Numbers ---- */

/* An integer, in quotes or not. */
static enum status
expect_integer(struct json_input *in, int64_t *ret)
{
	enum json_token token;

	TRY(json_next(&in->r, &token));
	if ((token != JSON_STRING && token != JSON_NUMBER) || !str_to_i64(in->r.text, ret))
		return wrong(in, "an integer of 64 bits is expected");
	return STATUS_OK;
}

static enum status
special_int32(struct json_input *in)
{
	int64_t n;

	TRY(expect_integer(in, &n));
	if (n < INT32_MIN || n > INT32_MAX)
		return wrong(in, "$numberInt has more than 32 bits");
	put(in, &BSON_OF_INT32(n));
	return expect_end(in);
}

static enum status
special_int64(struct json_input *in)
{
	int64_t n;

	TRY(expect_integer(in, &n));
	put(in, &BSON_OF_INT64(n));
	return expect_end(in);
}

static enum status
special_double(struct json_input *in)
{
	bool is_integer;
	double d;

	TRY(expect_string(in, &in->text, "$numberDouble wants a string"));
	if (str_eq(buf_str(&in->text), STR("NaN")))
		d = (double)NAN;
	else if (str_eq(buf_str(&in->text), STR("Infinity")))
		d = (double)INFINITY;
	else if (str_eq(buf_str(&in->text), STR("-Infinity")))
		d = -(double)INFINITY;
	else if (in->text.len && json_number_len(buf_str(&in->text), &is_integer) == in->text.len)
		d = doc_number_double(buf_str(&in->text));
	else
		return wrong(in, "$numberDouble is no number");
	put(in, &BSON_OF_DOUBLE(d));
	return expect_end(in);
}

static enum status
special_decimal(struct json_input *in)
{
	struct bson_value v = { .type = BSON_DECIMAL };
	unsigned flags = 0;

	TRY(expect_string(in, &in->text, "$numberDecimal wants a string"));
	if (!bson_decimal_parse(buf_str(&in->text), &v.as_decimal, &flags) || flags)
		return wrong(in, "$numberDecimal is no number that a Decimal128 holds exactly");
	put(in, &v);
	return expect_end(in);
}

/* A number by itself: the narrowest type that holds it. */
static void
put_number(struct json_input *in)
{
	int64_t n;

	if (!str_to_i64(in->r.text, &n))
		put(in, &BSON_OF_DOUBLE(doc_number_double(in->r.text)));
	else if (n >= INT32_MIN && n <= INT32_MAX)
		put(in, &BSON_OF_INT32(n));
	else
		put(in, &BSON_OF_INT64(n));
}

/* ---- Bytes ---- */

/* The 12 bytes of an ObjectId, in in->more. */
static enum status
expect_object_id(struct json_input *in)
{
	char id[BSON_OBJECT_ID_BYTES];

	TRY(expect(in, JSON_STRING, "$oid wants a string"));
	if (in->r.text.len != 2 * sizeof(id) || !str_from_hex(in->r.text, id))
		return wrong(in, "$oid is not 24 hexadecimal digits");
	buf_clear(&in->more);
	buf_append(&in->more, id, sizeof(id));
	TRY(buf_status(&in->more));
	return expect_end(in);
}

static enum status
special_object_id(struct json_input *in)
{
	TRY(expect_object_id(in));
	bson_put_object_id(&in->b, buf_str(&in->name), buf_str(&in->more));
	return STATUS_OK;
}

static enum status
expect_base64(struct json_input *in)
{
	buf_clear(&in->text);
	if (base64_decode(&in->text, in->r.text, BASE64_STANDARD) != STATUS_OK) {
		TRY(buf_status(&in->text));
		return wrong(in, "$binary is not base64");
	}
	return STATUS_OK;
}

static enum status
read_subtype(struct json_input *in, uint8_t *ret)
{
	struct str s = in->r.text;
	int high = s.len == 2 ? str_hex_digit(s.ptr[0]) : 0;
	int low = s.len ? str_hex_digit(s.ptr[s.len - 1]) : -1;

	if (s.len > 2 || high < 0 || low < 0)
		return wrong(in, "a subtype of $binary is not one or two hexadecimal digits");
	*ret = (uint8_t)(high << 4 | low);
	return STATUS_OK;
}

/* {"base64": …, "subType": …} in any order, behind its brace. */
static enum status
read_binary(struct json_input *in, uint8_t *ret_subtype)
{
	static const char what[] = "$binary wants base64 and subType";
	bool base64 = false, subtype = false;

	for (int i = 0; i < 2; i++) {
		bool is_base64;

		TRY(expect(in, JSON_KEY, what));
		is_base64 = str_eq(in->r.text, STR("base64"));
		if (!is_base64 && !str_eq(in->r.text, STR("subType")))
			return wrong(in, what);
		TRY(expect(in, JSON_STRING, what));
		TRY(is_base64 ? expect_base64(in) : read_subtype(in, ret_subtype));
		*(is_base64 ? &base64 : &subtype) = true;
	}
	if (!base64 || !subtype)
		return wrong(in, what);
	return expect_end(in);
}

static enum status
put_binary(struct json_input *in, uint8_t subtype)
{
	uint32_t len = htole32((uint32_t)in->text.len);

	if (subtype != BSON_SUBTYPE_COUNTED) {
		bson_put_binary(&in->b, buf_str(&in->name), subtype, buf_str(&in->text));
		return STATUS_OK;
	}
	/* Its length stands in front of the bytes once more. */
	buf_clear(&in->more);
	buf_append(&in->more, &len, sizeof(len));
	buf_append_buf(&in->more, &in->text);
	TRY(buf_status(&in->more));
	bson_put_binary(&in->b, buf_str(&in->name), subtype, buf_str(&in->more));
	return STATUS_OK;
}

static enum status
special_binary(struct json_input *in)
{
	static const char what[] = "$binary wants an object, or a string and $type";
	enum json_token token;
	uint8_t subtype = 0;

	TRY(json_next(&in->r, &token));
	if (token == JSON_OBJECT_BEGIN) {
		TRY(read_binary(in, &subtype));
	} else if (token == JSON_STRING) {
		TRY(expect_base64(in));
		TRY(expect_key(in, STR("$type"), what));
		TRY(expect(in, JSON_STRING, what));
		TRY(read_subtype(in, &subtype));
	} else {
		return wrong(in, what);
	}
	TRY(put_binary(in, subtype));
	return expect_end(in);
}

static enum status
special_uuid(struct json_input *in)
{
	static const char what[] = "$uuid is no UUID";
	char digits[2 * UUID_BYTES];
	char uuid[UUID_BYTES];
	size_t n = 0;

	TRY(expect(in, JSON_STRING, what));
	if (in->r.text.len != UUID_TEXT_BYTES)
		return wrong(in, what);
	for (size_t i = 0; i < UUID_TEXT_BYTES; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash != (in->r.text.ptr[i] == '-'))
			return wrong(in, what);
		if (!dash)
			digits[n++] = in->r.text.ptr[i];
	}
	if (!str_from_hex(str_of(digits, n), uuid))
		return wrong(in, what);
	bson_put_binary(&in->b, buf_str(&in->name), UUID_SUBTYPE, str_of(uuid, sizeof(uuid)));
	return expect_end(in);
}

/* ---- Times ---- */

static enum status
special_date(struct json_input *in)
{
	static const char what[] = "$date is neither ISO 8601 nor milliseconds";
	enum json_token token;
	int64_t ms;

	TRY(json_next(&in->r, &token));
	if (token == JSON_OBJECT_BEGIN) {
		TRY(expect_key(in, STR("$numberLong"), what));
		TRY(expect_integer(in, &ms));
		TRY(expect_end(in));
	} else if (token == JSON_STRING ? !bson_date_read(in->r.text, &ms)
					: token != JSON_NUMBER || !str_to_i64(in->r.text, &ms)) {
		return wrong(in, what);
	}
	bson_put_date(&in->b, buf_str(&in->name), ms);
	return expect_end(in);
}

static enum status
special_timestamp(struct json_input *in)
{
	static const char what[] = "$timestamp wants t and i, of 32 bits each";
	const struct str names[] = { STR("t"), STR("i") };
	uint64_t timestamp = 0;

	TRY(expect(in, JSON_OBJECT_BEGIN, what));
	for (int i = 0; i < 2; i++) {
		int64_t n;

		TRY(expect_key(in, names[i], what));
		TRY(expect_integer(in, &n));
		if (n < 0 || n > UINT32_MAX)
			return wrong(in, what);
		timestamp = timestamp << 32 | (uint64_t)n;
	}
	TRY(expect_end(in));
	bson_put_timestamp(&in->b, buf_str(&in->name), timestamp);
	return expect_end(in);
}

/* ---- Texts ---- */

static enum status
put_regex(struct json_input *in)
{
	const struct bson_value v = {
		.type = BSON_REGEX,
		.as_text = buf_str(&in->text),
		.as_more = buf_str(&in->more),
	};

	if (has_nul(&in->text) || has_nul(&in->more))
		return wrong(in, "a regular expression has a NUL");
	put(in, &v);
	return expect_end(in);
}

static enum status
special_regular_expression(struct json_input *in)
{
	static const char what[] = "$regularExpression wants pattern and options";
	bool pattern = false, options = false;

	TRY(expect(in, JSON_OBJECT_BEGIN, what));
	for (int i = 0; i < 2; i++) {
		bool is_pattern;

		TRY(expect(in, JSON_KEY, what));
		is_pattern = str_eq(in->r.text, STR("pattern"));
		if (!is_pattern && !str_eq(in->r.text, STR("options")))
			return wrong(in, what);
		TRY(expect_string(in, is_pattern ? &in->text : &in->more, what));
		*(is_pattern ? &pattern : &options) = true;
	}
	if (!pattern || !options)
		return wrong(in, what);
	TRY(expect_end(in));
	return put_regex(in);
}

/* The older form. It is also an operator of queries, which may have no options: a document then. */
static enum status
special_regex(struct json_input *in)
{
	enum json_token token;

	TRY(json_next(&in->r, &token));
	if (token != JSON_STRING)
		return STATUS_NOT_FOUND;
	TRY(keep(in, &in->text));
	TRY(json_next(&in->r, &token));
	if (token != JSON_KEY || !str_eq(in->r.text, STR("$options")))
		return STATUS_NOT_FOUND;
	TRY(json_next(&in->r, &token));
	if (token != JSON_STRING)
		return STATUS_NOT_FOUND;
	TRY(keep(in, &in->more));
	return put_regex(in);
}

static enum status
special_symbol(struct json_input *in)
{
	TRY(expect_string(in, &in->text, "$symbol wants a string"));
	put(in, &(struct bson_value){ .type = BSON_SYMBOL, .as_text = buf_str(&in->text) });
	return expect_end(in);
}

/* Behind "$scope": a document, which is read by itself. */
static enum status
read_scope(struct json_input *in)
{
	struct buf *out = in->b.out;
	struct buf scope = BUF_INIT_OF(out->max_bytes, out->part);
	enum status status;
	struct str text;

	if (in->scopes == SCOPES)
		return wrong(in, "there are more than 8 scopes of code inside each other");
	TRY(expect(in, JSON_OBJECT_BEGIN, "$scope wants an object"));
	TRY(json_skip(&in->r, JSON_OBJECT_BEGIN, &text));
	status = read_text(text, &scope, in->scopes + 1, in->err);
	if (status == STATUS_OK)
		put(in, &(struct bson_value){ .type = BSON_CODE_SCOPE,
					      .as_text = buf_str(&in->text),
					      .as_more = buf_str(&scope) });
	buf_release(&scope);
	return status;
}

static enum status
special_code(struct json_input *in)
{
	enum json_token token;

	TRY(expect_string(in, &in->text, "$code wants a string"));
	TRY(json_next(&in->r, &token));
	if (token == JSON_OBJECT_END) {
		put(in, &(struct bson_value){ .type = BSON_CODE, .as_text = buf_str(&in->text) });
		return STATUS_OK;
	}
	if (token != JSON_KEY || !str_eq(in->r.text, STR("$scope")))
		return wrong(in, "beside $code there may be $scope only");
	TRY(read_scope(in));
	return expect_end(in);
}

static enum status
special_db_pointer(struct json_input *in)
{
	static const char what[] = "$dbPointer wants $ref and $id";

	TRY(expect(in, JSON_OBJECT_BEGIN, what));
	TRY(expect_key(in, STR("$ref"), what));
	TRY(expect_string(in, &in->text, what));
	TRY(expect_key(in, STR("$id"), what));
	TRY(expect(in, JSON_OBJECT_BEGIN, what));
	TRY(expect_key(in, STR("$oid"), what));
	TRY(expect_object_id(in));
	put(in, &(struct bson_value){ .type = BSON_DB_POINTER,
				      .as_text = buf_str(&in->text),
				      .as_more = buf_str(&in->more) });
	TRY(expect_end(in));
	return expect_end(in);
}

/* ---- Types without a value ---- */

static enum status
put_empty(struct json_input *in, enum json_token value, enum bson_type type)
{
	TRY(expect(in, value, "$minKey and $maxKey want 1, $undefined wants true"));
	put(in, &(struct bson_value){ .type = type });
	return expect_end(in);
}

static enum status
special_min_key(struct json_input *in)
{
	return put_empty(in, JSON_NUMBER, BSON_MIN_KEY);
}

static enum status
special_max_key(struct json_input *in)
{
	return put_empty(in, JSON_NUMBER, BSON_MAX_KEY);
}

static enum status
special_undefined(struct json_input *in)
{
	return put_empty(in, JSON_TRUE, BSON_UNDEFINED);
}

/* ---- Values ---- */

/* By the name of the first member: reads what is behind it, through the object's end. */
static const struct {
	struct str name;
	enum status (*read)(struct json_input *in);
} specials[] = {
	{ { "$oid", 4 }, special_object_id },
	{ { "$numberInt", 10 }, special_int32 },
	{ { "$numberLong", 11 }, special_int64 },
	{ { "$numberDouble", 13 }, special_double },
	{ { "$numberDecimal", 14 }, special_decimal },
	{ { "$date", 5 }, special_date },
	{ { "$binary", 7 }, special_binary },
	{ { "$uuid", 5 }, special_uuid },
	{ { "$timestamp", 10 }, special_timestamp },
	{ { "$regularExpression", 18 }, special_regular_expression },
	{ { "$regex", 6 }, special_regex },
	{ { "$symbol", 7 }, special_symbol },
	{ { "$code", 5 }, special_code },
	{ { "$dbPointer", 10 }, special_db_pointer },
	{ { "$minKey", 7 }, special_min_key },
	{ { "$maxKey", 7 }, special_max_key },
	{ { "$undefined", 10 }, special_undefined },
};

/* STATUS_NOT_FOUND if what follows the brace is an ordinary object; the reader may have moved. */
static enum status
read_special(struct json_input *in)
{
	enum json_token token;

	TRY(json_next(&in->r, &token));
	if (token != JSON_KEY || !str_starts_with(in->r.text, STR("$")))
		return STATUS_NOT_FOUND;
	for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++)
		if (str_eq(in->r.text, specials[i].name))
			return specials[i].read(in);
	return STATUS_NOT_FOUND;
}

static enum status
read_object(struct json_input *in)
{
	struct json_reader at = in->r;
	enum status status = read_special(in);

	if (status != STATUS_NOT_FOUND)
		return status;
	json_rewind(&in->r, &at);
	bson_begin_document(&in->b, buf_str(&in->name));
	return STATUS_OK;
}

static enum status
json_read_name(struct json_input *in)
{
	TRY(keep(in, &in->name));
	return has_nul(&in->name) ? wrong(in, "a name has a NUL") : STATUS_OK;
}

static enum status
read_token(struct json_input *in, enum json_token token)
{
	struct str name = buf_str(&in->name);

	switch (token) {
	case JSON_KEY:
		return json_read_name(in);
	case JSON_OBJECT_BEGIN:
		return read_object(in);
	case JSON_ARRAY_BEGIN:
		bson_begin_array(&in->b, name);
		return STATUS_OK;
	case JSON_OBJECT_END:
	case JSON_ARRAY_END:
		bson_end(&in->b);
		return STATUS_OK;
	case JSON_STRING:
		bson_put_string(&in->b, name, in->r.text);
		return STATUS_OK;
	case JSON_NUMBER:
		put_number(in);
		return STATUS_OK;
	case JSON_TRUE:
	case JSON_FALSE:
		bson_put_bool(&in->b, name, token == JSON_TRUE);
		return STATUS_OK;
	case JSON_NULL:
		bson_put_null(&in->b, name);
		return STATUS_OK;
	case JSON_END:
		break;
	}
	return STATUS_JSON_SYNTAX; /* the reader sees to it that containers end before the text */
}

static enum status
json_read_all(struct json_input *in)
{
	enum json_token token;

	TRY(expect(in, JSON_OBJECT_BEGIN, "a document is an object"));
	bson_begin(&in->b);
	while (in->b.depth) {
		TRY(json_next(&in->r, &token));
		TRY(read_token(in, token));
		if (in->b.too_deep)
			return err_set(in->err, STATUS_JSON_DEPTH,
				       "the document has more than %d containers inside each other",
				       BSON_DEPTH);
		TRY(buf_status(in->b.out));
	}
	return json_next(&in->r, &token); /* nothing may follow */
}

static enum status
read_text(struct str text, struct buf *out, unsigned scopes, struct err *err)
{
	struct budget_part *part = out->part;
	struct json_input in = {
		.name = BUF_INIT_OF(out->max_bytes, part),
		.text = BUF_INIT_OF(out->max_bytes, part),
		.more = BUF_INIT_OF(out->max_bytes, part),
		.scopes = scopes,
		.err = err,
	};
	size_t from = out->len;
	enum status status;

	json_reader_init(&in.r, text, err);
	bson_builder_init(&in.b, out);
	status = json_read_all(&in);
	json_reader_release(&in.r);
	buf_release(&in.name);
	buf_release(&in.text);
	buf_release(&in.more);
	/* Scopes count as depth, too. */
	if (status == STATUS_OK)
		status = bson_check(str_skip(buf_str(out), from), err);
	if (status != STATUS_OK)
		out->len = from;
	return status;
}

enum status
bson_json_read(struct str text, struct buf *out, struct err *err)
{
	return read_text(text, out, 0, err);
}

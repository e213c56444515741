#include <math.h>

#include "base/base64.h"
#include "bson/bson_int.h"
#include "bson/decimal.h"
#include "bson/tagged.h"
#include "doc/doc_int.h"
#include "doc/json.h"

struct input {
	struct json_reader r;
	struct bson_builder b;
	struct buf name;  /* of the member whose value comes next */
	struct buf bytes; /* of binary */
	struct err *err;
};

static enum status
wrong(const struct input *in, const char *what)
{
	return err_set(in->err, STATUS_INVALID, "%s", what);
}

/* Strings of BSON end in a NUL where they are a name, a pattern or options. */
static bool
has_nul(struct str text)
{
	return text.len && memchr(text.ptr, 0, text.len);
}

/* ---- Tagged strings: `text` is what stands behind the letter ---- */

static enum status
read_double(const struct input *in, struct str text, struct bson_value *ret)
{
	if (str_eq(text, STR("NaN")))
		*ret = BSON_OF_DOUBLE((double)NAN);
	else if (str_eq(text, STR("Infinity")))
		*ret = BSON_OF_DOUBLE((double)INFINITY);
	else if (str_eq(text, STR("-Infinity")))
		*ret = BSON_OF_DOUBLE(-(double)INFINITY);
	else if (str_eq(text, STR("-0")))
		*ret = BSON_OF_DOUBLE(-0.0);
	else
		return wrong(in, "a number is none");
	return STATUS_OK;
}

static enum status
read_integer(const struct input *in, char letter, struct str text, struct bson_value *ret)
{
	uint64_t u;
	int64_t n;

	if (letter == 't') {
		if (!str_to_u64(text, &u))
			return wrong(in, "a Timestamp is no integer of 64 bits");
		*ret = (struct bson_value){ .type = BSON_TIMESTAMP, .as_n = (int64_t)u };
		return STATUS_OK;
	}
	if (!str_to_i64(text, &n) || (letter == 'i' && (n < INT32_MIN || n > INT32_MAX)))
		return wrong(in, "an integer is none, or does not fit");
	*ret = letter == 'i'   ? BSON_OF_INT32(n)
	       : letter == 'l' ? BSON_OF_INT64(n)
			       : BSON_OF_DATE(n);
	return STATUS_OK;
}

static enum status
read_decimal(const struct input *in, struct str text, struct bson_value *ret)
{
	unsigned flags = 0;

	*ret = (struct bson_value){ .type = BSON_DECIMAL };
	if (!bson_decimal_parse(text, &ret->as_decimal, &flags))
		return wrong(in, "a NumberDecimal is no number");
	return STATUS_OK;
}

static enum status
read_object_id(struct input *in, struct str text, struct bson_value *ret)
{
	char id[BSON_OBJECT_ID_BYTES];

	if (text.len != 2 * sizeof(id) || !str_from_hex(text, id))
		return wrong(in, "an ObjectId is not 24 hexadecimal digits");
	buf_clear(&in->bytes);
	buf_append(&in->bytes, id, sizeof(id));
	*ret = (struct bson_value){ .type = BSON_OBJECT_ID, .as_text = buf_str(&in->bytes) };
	return buf_status(&in->bytes);
}

static enum status
decode(struct input *in, struct str text)
{
	buf_clear(&in->bytes);
	if (base64_decode(&in->bytes, text, BASE64_STANDARD) == STATUS_OK)
		return STATUS_OK;
	TRY(buf_status(&in->bytes));
	return wrong(in, "bytes are not base64");
}

static enum status
read_binary(struct input *in, struct str text, struct bson_value *ret)
{
	int high = text.len > 1 ? str_hex_digit(text.ptr[0]) : -1;
	int low = text.len > 1 ? str_hex_digit(text.ptr[1]) : -1;

	if (high < 0 || low < 0)
		return wrong(in, "a BinData has no subtype");
	TRY(decode(in, str_skip(text, 2)));
	*ret = (struct bson_value){ .type = BSON_BINARY,
				    .subtype = (uint8_t)(high << 4 | low),
				    .as_text = buf_str(&in->bytes) };
	return bson_binary_is_whole(ret) ? STATUS_OK
					 : wrong(in, "a BinData does not have its own length");
}

static enum status
read_regex(const struct input *in, struct str text, struct bson_value *ret)
{
	struct str options = str_cut(&text, '/');

	if (has_nul(options) || has_nul(text))
		return wrong(in, "a regular expression has a NUL");
	*ret = (struct bson_value){ .type = BSON_REGEX, .as_text = text, .as_more = options };
	return STATUS_OK;
}

/* What is in it is checked with the whole document. */
static enum status
read_opaque(struct input *in, struct str text, struct bson_value *ret)
{
	enum bson_type type;
	struct str bytes;
	size_t len;

	TRY(decode(in, text));
	bytes = buf_str(&in->bytes);
	type = bytes.len ? (enum bson_type)(uint8_t)bytes.ptr[0] : BSON_NULL;
	bytes = bytes.len ? str_skip(bytes, 1) : bytes;
	if ((type != BSON_DB_POINTER && type != BSON_CODE_SCOPE) ||
	    !bson_value_read(type, bytes, ret, &len) || len != bytes.len)
		return wrong(in, "bytes are no such value");
	return STATUS_OK;
}

static enum status
read_tagged(struct input *in, char letter, struct str text, struct bson_value *ret)
{
	switch (letter) {
	case 's':
		*ret = BSON_OF_STRING(text);
		return STATUS_OK;
	case 'c':
		*ret = (struct bson_value){ .type = BSON_CODE, .as_text = text };
		return STATUS_OK;
	case 'u':
	case 'm':
	case 'M':
		*ret = (struct bson_value){ .type = letter == 'u'   ? BSON_UNDEFINED
						    : letter == 'm' ? BSON_MIN_KEY
								    : BSON_MAX_KEY };
		return STATUS_OK;
	case 'f':
		return read_double(in, text, ret);
	case 'i':
	case 'l':
	case 'd':
	case 't':
		return read_integer(in, letter, text, ret);
	case 'n':
		return read_decimal(in, text, ret);
	case 'o':
		return read_object_id(in, text, ret);
	case 'b':
		return read_binary(in, text, ret);
	case 'r':
		return read_regex(in, text, ret);
	case 'x':
		return read_opaque(in, text, ret);
	default:
		return wrong(in, "a value has an unknown type");
	}
}

static enum status
read_string(struct input *in)
{
	struct str text = in->r.text;
	struct bson_value v;

	if (!text.len || text.ptr[0] != '\x01') {
		v = BSON_OF_STRING(text);
	} else {
		if (text.len < 2)
			return wrong(in, "a value has no type");
		TRY(read_tagged(in, text.ptr[1], str_skip(text, 2), &v));
	}
	bson_put(&in->b, buf_str(&in->name), &v);
	return STATUS_OK;
}

/* ---- The text ---- */

static enum status
read_token(struct input *in, enum json_token token)
{
	struct str name = buf_str(&in->name);

	switch (token) {
	case JSON_KEY:
		if (has_nul(in->r.text))
			return wrong(in, "a name has a NUL");
		buf_clear(&in->name);
		buf_append_str(&in->name, in->r.text);
		return buf_status(&in->name);
	case JSON_OBJECT_BEGIN:
		bson_begin_document(&in->b, name);
		return STATUS_OK;
	case JSON_ARRAY_BEGIN:
		bson_begin_array(&in->b, name);
		return STATUS_OK;
	case JSON_OBJECT_END:
	case JSON_ARRAY_END:
		bson_end(&in->b);
		return STATUS_OK;
	case JSON_STRING:
		return read_string(in);
	case JSON_NUMBER:
		bson_put_double(&in->b, name, doc_number_double(in->r.text));
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
	return STATUS_JSON_SYNTAX;
}

static enum status
tagged_read_all(struct input *in)
{
	enum json_token token;

	bson_begin(&in->b);
	/* The value may be a container, whose end is then its last token. */
	do {
		TRY(json_next(&in->r, &token));
		TRY(read_token(in, token));
		if (in->b.too_deep)
			return err_set(in->err, STATUS_JSON_DEPTH,
				       "the value has more than %d containers inside each other",
				       BSON_DEPTH - 1);
		TRY(buf_status(in->b.out));
	} while (in->b.depth > 1);
	bson_end(&in->b);
	return json_next(&in->r, &token); /* nothing may follow */
}

enum status
bson_tagged_read(struct str text, struct buf *out, struct err *err)
{
	struct budget_part *part = out->part;
	struct input in = { .name = BUF_INIT_OF(out->max_bytes, part),
			    .bytes = BUF_INIT_OF(out->max_bytes, part),
			    .err = err };
	size_t from = out->len;
	enum status status;

	json_reader_init(&in.r, text, err);
	bson_builder_init(&in.b, out);
	status = tagged_read_all(&in);
	json_reader_release(&in.r);
	buf_release(&in.name);
	buf_release(&in.bytes);
	if (status == STATUS_OK)
		status = buf_status(out);
	if (status == STATUS_OK)
		status = bson_check(str_skip(buf_str(out), from), err);
	if (status != STATUS_OK)
		out->len = from;
	return status;
}

#include <math.h>

#include "base/base64.h"
#include "bson/bson_int.h"
#include "bson/decimal.h"
#include "bson/tagged.h"
#include "doc/json.h"

/* ---- Scalars ---- */

/* Begins a tagged string; its text needs no escapes. */
static void
tag_begin(struct buf *out, char letter)
{
	buf_append_cstr(out, "\"\\u0001");
	buf_append_byte(out, letter);
}

static void
tag_end(struct buf *out)
{
	buf_append_byte(out, '"');
}

static void
put_tagged(struct buf *out, char letter, struct str text)
{
	tag_begin(out, letter);
	buf_append_str(out, text);
	tag_end(out);
}

/* A text that may need escapes, behind its tag. */
static void
put_escaped(struct buf *out, char letter, struct str text)
{
	size_t at;

	tag_begin(out, letter);
	at = out->len;
	json_write_str(out, text);
	if (buf_status(out) != STATUS_OK)
		return;
	/* The quote that the string begins with stood in front of the tag already. */
	memmove(out->ptr + at, out->ptr + at + 1, out->len - at - 1);
	out->len--;
}

static void
put_string(struct buf *out, struct str text)
{
	if (text.len && text.ptr[0] == '\x01')
		put_escaped(out, 's', text);
	else
		json_write_str(out, text);
}

static void
put_double(struct buf *out, double d)
{
	if (isnan(d))
		put_tagged(out, 'f', STR("NaN"));
	else if (isinf(d))
		put_tagged(out, 'f', d < 0 ? STR("-Infinity") : STR("Infinity"));
	else
		json_write_double(out, d);
}

static void
put_integer(struct buf *out, char letter, int64_t n)
{
	buf_printf(out, "\"\\u0001%c%lld\"", letter, (long long)n);
}

static void
put_binary(struct buf *out, const struct bson_value *v)
{
	tag_begin(out, 'b');
	buf_printf(out, "%02x", v->subtype);
	base64_encode(out, bson_text(v), BASE64_STANDARD);
	tag_end(out);
}

static void
put_regex(struct buf *out, const struct bson_value *v)
{
	struct buf text = BUF_INIT(out->max_bytes);

	buf_append_str(&text, bson_more(v));
	buf_append_byte(&text, '/');
	buf_append_str(&text, bson_text(v));
	if (buf_status(&text) == STATUS_OK)
		put_escaped(out, 'r', buf_str(&text));
	else
		out->failed = buf_status(&text);
	buf_release(&text);
}

static void
put_opaque(struct buf *out, const struct bson_value *v)
{
	struct buf bytes = BUF_INIT(out->max_bytes);

	buf_append_byte(&bytes, (char)v->type);
	bson_value_write(&bytes, v);
	if (buf_status(&bytes) == STATUS_OK) {
		tag_begin(out, 'x');
		base64_encode(out, buf_str(&bytes), BASE64_STANDARD);
		tag_end(out);
	} else {
		out->failed = buf_status(&bytes);
	}
	buf_release(&bytes);
}

static void
put_decimal(struct buf *out, struct bson_decimal d)
{
	char text[BSON_DECIMAL_TEXT_BYTES];
	size_t len = bson_decimal_print(d, text);

	put_tagged(out, 'n', str_of(text, len));
}

/* A value that has no elements. */
static void
put_scalar(struct buf *out, const struct bson_value *v, bool ints)
{
	switch ((int)v->type) {
	case BSON_DOUBLE:
		put_double(out, bson_real(v));
		return;
	case BSON_STRING:
	case BSON_SYMBOL:
		put_string(out, bson_text(v));
		return;
	case BSON_BINARY:
		put_binary(out, v);
		return;
	case BSON_UNDEFINED:
		put_tagged(out, 'u', STR(""));
		return;
	case BSON_OBJECT_ID:
		tag_begin(out, 'o');
		buf_append_hex(out, bson_text(v));
		tag_end(out);
		return;
	case BSON_BOOL:
		buf_append_cstr(out, bson_truth(v) ? "true" : "false");
		return;
	case BSON_DATE:
		put_integer(out, 'd', bson_integer(v));
		return;
	case BSON_REGEX:
		put_regex(out, v);
		return;
	case BSON_CODE:
		put_escaped(out, 'c', bson_text(v));
		return;
	case BSON_DB_POINTER:
	case BSON_CODE_SCOPE:
		put_opaque(out, v);
		return;
	case BSON_INT32:
		if (ints)
			put_integer(out, 'i', bson_integer(v));
		else
			buf_printf(out, "%lld", (long long)bson_integer(v));
		return;
	case BSON_INT64:
		put_integer(out, 'l', bson_integer(v));
		return;
	case BSON_TIMESTAMP:
		buf_printf(out, "\"\\u0001t%llu\"", (unsigned long long)bson_integer(v));
		return;
	case BSON_DECIMAL:
		put_decimal(out, bson_decimal(v));
		return;
	case BSON_MIN_KEY:
		put_tagged(out, 'm', STR(""));
		return;
	case BSON_MAX_KEY:
		put_tagged(out, 'M', STR(""));
		return;
	default:
		buf_append_cstr(out, "null");
		return;
	}
}

/* ---- Containers ---- */

enum form {
	FORM_ARRAY,
	FORM_OBJECT,
	FORM_ORDERED, /* a document as an array of names and values */
};

struct level {
	struct bson_iter rest;
	enum form form;
	bool comma;
};

struct writer {
	struct buf *out;
	bool ints;
	size_t depth;
	struct level levels[BSON_DEPTH];
};

/* True for names that an object of JavaScript does not keep in their place. */
static bool
name_is_special(struct str name)
{
	if (!name.len)
		return false;
	if (name.ptr[0] >= '0' && name.ptr[0] <= '9') {
		for (size_t i = 1; i < name.len; i++)
			if (name.ptr[i] < '0' || name.ptr[i] > '9')
				return false;
		return true;
	}
	return str_eq(name, STR("__proto__"));
}

static bool
document_is_special(struct str document)
{
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, document); bson_iter_read(&i, &e);)
		if (name_is_special(e.name))
			return true;
	return false;
}

static void
writer_enter(struct writer *w, const struct bson_value *v)
{
	enum form form = v->type == BSON_ARRAY               ? FORM_ARRAY
			 : document_is_special(bson_text(v)) ? FORM_ORDERED
							     : FORM_OBJECT;

	if (w->depth == BSON_DEPTH) {
		if (buf_status(w->out) == STATUS_OK)
			w->out->failed = STATUS_LIMIT; /* bson_check() lets none through */
		return;
	}
	w->levels[w->depth] = (struct level){ .form = form, .comma = form == FORM_ORDERED };
	bson_iter_begin(&w->levels[w->depth++].rest, bson_text(v));
	buf_append_byte(w->out, form == FORM_OBJECT ? '{' : '[');
	if (form == FORM_ORDERED)
		put_tagged(w->out, 'O', STR(""));
}

static void
writer_put(struct writer *w, const struct bson_value *v)
{
	if (bson_is_container(v))
		writer_enter(w, v);
	else
		put_scalar(w->out, v, w->ints);
}

void
bson_tagged_write(struct buf *out, const struct bson_value *v, bool ints)
{
	struct bson_element e;
	struct writer w;

	w.out = out;
	w.ints = ints;
	w.depth = 0;
	writer_put(&w, v);
	while (w.depth && buf_status(out) == STATUS_OK) {
		struct level *level = &w.levels[w.depth - 1];

		if (!bson_iter_read(&level->rest, &e)) {
			buf_append_byte(out, level->form == FORM_OBJECT ? '}' : ']');
			w.depth--;
			continue;
		}
		if (level->comma)
			buf_append_byte(out, ',');
		level->comma = true;
		if (level->form != FORM_ARRAY) {
			json_write_str(out, e.name);
			buf_append_byte(out, level->form == FORM_OBJECT ? ':' : ',');
		}
		writer_put(&w, &e.value);
	}
}

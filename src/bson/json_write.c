#include <assert.h>
#include <math.h>

#include "base/base64.h"
#include "bson/bson_int.h"
#include "bson/date.h"
#include "bson/decimal.h"
#include "bson/json.h"
#include "doc/json.h"

/* {"name":"text"}, the text being written as it is. */
static void
put_wrapped(struct buf *out, const char *name, struct str text)
{
	buf_printf(out, "{\"%s\":\"", name);
	buf_append_str(out, text);
	buf_append_cstr(out, "\"}");
}

static void
put_object_id(struct buf *out, struct str id)
{
	buf_append_cstr(out, "{\"$oid\":\"");
	buf_append_hex(out, id);
	buf_append_cstr(out, "\"}");
}

static void
put_integer(struct buf *out, const struct bson_value *v, enum bson_json_style style)
{
	if (style == BSON_JSON_RELAXED)
		buf_printf(out, "%lld", (long long)bson_integer(v));
	else
		buf_printf(out, "{\"%s\":\"%lld\"}",
			   v->type == BSON_INT32 ? "$numberInt" : "$numberLong",
			   (long long)bson_integer(v));
}

static void
put_double(struct buf *out, double d, enum bson_json_style style)
{
	if (isnan(d)) {
		put_wrapped(out, "$numberDouble", STR("NaN"));
	} else if (isinf(d)) {
		put_wrapped(out, "$numberDouble", d < 0 ? STR("-Infinity") : STR("Infinity"));
	} else if (style == BSON_JSON_RELAXED) {
		json_write_double(out, d);
	} else {
		buf_append_cstr(out, "{\"$numberDouble\":\"");
		json_write_double(out, d);
		buf_append_cstr(out, "\"}");
	}
}

static void
put_decimal(struct buf *out, struct bson_decimal d)
{
	char text[BSON_DECIMAL_TEXT_BYTES];
	size_t len = bson_decimal_print(d, text);

	put_wrapped(out, "$numberDecimal", str_of(text, len));
}

static void
put_date(struct buf *out, int64_t ms, enum bson_json_style style)
{
	if (style == BSON_JSON_RELAXED && ms >= BSON_DATE_LEAST_MS && ms <= BSON_DATE_MOST_MS) {
		buf_append_cstr(out, "{\"$date\":\"");
		bson_date_write(out, ms);
		buf_append_cstr(out, "\"}");
	} else {
		buf_printf(out, "{\"$date\":{\"$numberLong\":\"%lld\"}}", (long long)ms);
	}
}

static void
put_binary(struct buf *out, const struct bson_value *v)
{
	/* The second length of subtype 2 is not in the text. */
	bool counted = v->subtype == BSON_SUBTYPE_COUNTED && bson_binary_is_whole(v);

	buf_append_cstr(out, "{\"$binary\":{\"base64\":\"");
	base64_encode(out, str_skip(bson_text(v), counted ? sizeof(uint32_t) : 0), BASE64_STANDARD);
	buf_printf(out, "\",\"subType\":\"%02x\"}}", v->subtype);
}

static void
put_regex(struct buf *out, const struct bson_value *v)
{
	buf_append_cstr(out, "{\"$regularExpression\":{\"pattern\":");
	json_write_str(out, bson_text(v));
	buf_append_cstr(out, ",\"options\":");
	json_write_str(out, bson_more(v));
	buf_append_cstr(out, "}}");
}

static void
put_db_pointer(struct buf *out, const struct bson_value *v)
{
	buf_append_cstr(out, "{\"$dbPointer\":{\"$ref\":");
	json_write_str(out, bson_text(v));
	buf_append_cstr(out, ",\"$id\":");
	put_object_id(out, bson_more(v));
	buf_append_cstr(out, "}}");
}

static void
json_put_wrapped(struct buf *out, const char *name, struct str text)
{
	buf_printf(out, "{\"%s\":", name);
	json_write_str(out, text);
	buf_append_byte(out, '}');
}

/* A value that has no elements. */
static void
put_scalar(struct buf *out, const struct bson_value *v, enum bson_json_style style)
{
	switch ((int)v->type) {
	case BSON_DOUBLE:
		put_double(out, bson_real(v), style);
		return;
	case BSON_STRING:
		json_write_str(out, bson_text(v));
		return;
	case BSON_BINARY:
		put_binary(out, v);
		return;
	case BSON_UNDEFINED:
		buf_append_cstr(out, "{\"$undefined\":true}");
		return;
	case BSON_OBJECT_ID:
		put_object_id(out, bson_text(v));
		return;
	case BSON_BOOL:
		buf_append_cstr(out, bson_truth(v) ? "true" : "false");
		return;
	case BSON_DATE:
		put_date(out, bson_integer(v), style);
		return;
	case BSON_REGEX:
		put_regex(out, v);
		return;
	case BSON_DB_POINTER:
		put_db_pointer(out, v);
		return;
	case BSON_CODE:
		json_put_wrapped(out, "$code", bson_text(v));
		return;
	case BSON_SYMBOL:
		json_put_wrapped(out, "$symbol", bson_text(v));
		return;
	case BSON_INT32:
	case BSON_INT64:
		put_integer(out, v, style);
		return;
	case BSON_TIMESTAMP:
		buf_printf(out, "{\"$timestamp\":{\"t\":%u,\"i\":%u}}",
			   (unsigned)((uint64_t)bson_integer(v) >> 32), (unsigned)bson_integer(v));
		return;
	case BSON_DECIMAL:
		put_decimal(out, bson_decimal(v));
		return;
	case BSON_MIN_KEY:
		buf_append_cstr(out, "{\"$minKey\":1}");
		return;
	case BSON_MAX_KEY:
		buf_append_cstr(out, "{\"$maxKey\":1}");
		return;
	default:
		assert(v->type == BSON_NULL);
		buf_append_cstr(out, "null");
		return;
	}
}

/* ---- Containers ---- */

struct json_level {
	struct bson_iter rest;
	bool array;
	bool scope; /* of code, whose object it ends, too */
	bool comma;
};

struct json_writer {
	struct buf *out;
	enum bson_json_style style;
	size_t depth;
	struct json_level levels[BSON_DEPTH];
};

static void
writer_enter(struct json_writer *w, struct str container, bool array, bool scope)
{
	if (w->depth == BSON_DEPTH) {
		if (buf_status(w->out) == STATUS_OK)
			w->out->failed = STATUS_LIMIT; /* bson_check() lets none through */
		return;
	}
	w->levels[w->depth] = (struct json_level){ .array = array, .scope = scope };
	bson_iter_begin(&w->levels[w->depth++].rest, container);
	buf_append_byte(w->out, array ? '[' : '{');
}

static void
writer_put(struct json_writer *w, const struct bson_value *v)
{
	if (bson_is_container(v)) {
		writer_enter(w, bson_text(v), v->type == BSON_ARRAY, false);
	} else if (v->type == BSON_CODE_SCOPE) {
		buf_append_cstr(w->out, "{\"$code\":");
		json_write_str(w->out, bson_text(v));
		buf_append_cstr(w->out, ",\"$scope\":");
		writer_enter(w, bson_more(v), false, true);
	} else {
		put_scalar(w->out, v, w->style);
	}
}

static void
writer_leave(struct json_writer *w)
{
	const struct json_level *level = &w->levels[--w->depth];

	buf_append_byte(w->out, level->array ? ']' : '}');
	if (level->scope)
		buf_append_byte(w->out, '}');
}

void
bson_json_write_value(struct buf *out, const struct bson_value *v, enum bson_json_style style)
{
	struct json_writer w;
	struct bson_element e;

	w.out = out;
	w.style = style;
	w.depth = 0;
	writer_put(&w, v);
	while (w.depth && buf_status(out) == STATUS_OK) {
		struct json_level *level = &w.levels[w.depth - 1];

		if (!bson_iter_read(&level->rest, &e)) {
			writer_leave(&w);
			continue;
		}
		if (level->comma)
			buf_append_byte(out, ',');
		level->comma = true;
		if (!level->array) {
			json_write_str(out, e.name);
			buf_append_byte(out, ':');
		}
		writer_put(&w, &e.value);
	}
}

void
bson_json_write(struct buf *out, struct str document, enum bson_json_style style)
{
	bson_json_write_value(out, &BSON_OF_DOCUMENT(document), style);
}

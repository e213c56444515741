/* Failures, and values as the texts of failures show them. */
#include <math.h>
#include <stdio.h>

#include "bson/decimal.h"
#include "mql/mql_int.h"

enum {
	TEXT_DEPTH = 6, /* containers inside each other that are shown */
};

enum status
mql_refuse(struct mql *q, struct str name)
{
	q->code = MQL_NOT_SUPPORTED;
	return err_set(q->err, STATUS_UNSUPPORTED, "%.*s is not supported", STR_ARG(name));
}

enum status
mql_keep(struct mql *q, struct buf *b, struct str *ret)
{
	enum status status = buf_status(b);

	if (status == STATUS_OK) {
		*ret = buf_dup(b, q->arena);
		if (!ret->ptr)
			status = mql_full(q);
	} else if (status == STATUS_LIMIT) {
		status = mql_fail(q, MQL_TOO_LARGE, "BSONObj size: more than %zu bytes is invalid",
				  b->max_bytes);
	}
	buf_release(b);
	return status;
}

bool
mql_is_position(struct str name, uint32_t *ret)
{
	uint64_t n = 0;

	if (!name.len || name.len > 10 || (name.ptr[0] == '0' && name.len > 1))
		return false;
	for (size_t i = 0; i < name.len; i++) {
		if (name.ptr[i] < '0' || name.ptr[i] > '9')
			return false;
		n = n * 10 + (uint64_t)(name.ptr[i] - '0');
	}
	if (n > INT32_MAX)
		return false;
	*ret = (uint32_t)n;
	return true;
}

/* ---- Texts ---- */

static void
text_put_double(struct buf *out, double d)
{
	char text[40];
	int len;

	if (isnan(d)) {
		buf_append_cstr(out, "nan");
		return;
	}
	if (isinf(d)) {
		buf_append_cstr(out, d > 0 ? "inf" : "-inf");
		return;
	}
	len = snprintf(text, sizeof(text), "%.16g", d);
	buf_append(out, text, (size_t)len);
	if (!strpbrk(text, ".e"))
		buf_append_cstr(out, ".0");
}

static void
text_put_scalar(struct buf *out, const struct bson_value *v)
{
	char digits[BSON_DECIMAL_TEXT_BYTES];

	switch (v->type) {
	case BSON_DOUBLE:
		text_put_double(out, bson_real(v));
		return;
	case BSON_INT32:
	case BSON_INT64:
		buf_printf(out, "%lld", (long long)bson_integer(v));
		return;
	case BSON_DECIMAL:
		buf_append(out, digits, bson_decimal_print(bson_decimal(v), digits));
		return;
	case BSON_STRING:
	case BSON_SYMBOL:
		buf_printf(out, "\"%.*s\"", STR_ARG(bson_text(v)));
		return;
	case BSON_BOOL:
		buf_append_cstr(out, bson_truth(v) ? "true" : "false");
		return;
	case BSON_OBJECT_ID:
		buf_append_cstr(out, "ObjectId('");
		buf_append_hex(out, bson_text(v));
		buf_append_cstr(out, "')");
		return;
	case BSON_DATE:
		buf_printf(out, "new Date(%lld)", (long long)bson_integer(v));
		return;
	case BSON_TIMESTAMP:
		buf_printf(out, "Timestamp(%llu, %llu)",
			   (unsigned long long)(uint64_t)bson_integer(v) >> 32,
			   (unsigned long long)bson_integer(v) & UINT32_MAX);
		return;
	case BSON_REGEX:
		buf_printf(out, "/%.*s/%.*s", STR_ARG(bson_text(v)), STR_ARG(bson_more(v)));
		return;
	case BSON_BINARY:
		buf_printf(out, "BinData(%d, ", v->subtype);
		buf_append_hex(out, bson_text(v));
		buf_append_cstr(out, ")");
		return;
	case BSON_MIN_KEY:
		buf_append_cstr(out, "MinKey");
		return;
	case BSON_MAX_KEY:
		buf_append_cstr(out, "MaxKey");
		return;
	case BSON_CODE:
	case BSON_CODE_SCOPE:
		buf_append_str(out, bson_text(v));
		return;
	case BSON_DOCUMENT:
	case BSON_ARRAY:
	case BSON_UNDEFINED:
	case BSON_NULL:
	case BSON_DB_POINTER:
		break;
	}
	buf_append_cstr(out, bson_type_name(v->type));
}

static void
text_put(struct buf *out, const struct bson_value *v, int depth)
{
	bool array = v->type == BSON_ARRAY, first = true;
	struct bson_iter i;
	struct bson_element e;

	if (!bson_is_container(v)) {
		text_put_scalar(out, v);
		return;
	}
	if (bson_is_empty(bson_text(v)) || !depth) {
		buf_append_cstr(out, array ? "[]" : "{}");
		return;
	}
	buf_append_cstr(out, array ? "[ " : "{ ");
	for (bson_iter_begin(&i, bson_text(v));
	     bson_iter_read(&i, &e) && buf_status(out) == STATUS_OK;) {
		if (!first)
			buf_append_cstr(out, ", ");
		first = false;
		if (!array)
			buf_printf(out, "%.*s: ", STR_ARG(e.name));
		text_put(out, &e.value, depth - 1);
	}
	buf_append_cstr(out, array ? " ]" : " }");
}

const char *
mql_text(struct mql *q, struct str name, const struct bson_value *v)
{
	/* The last append before the limit may be a long string, of which nothing is kept. */
	struct buf out = BUF_SHORT(64 * 1024);
	struct str text, kept;

	if (name.len)
		buf_printf(&out, "%.*s: ", STR_ARG(name));
	text_put(&out, v, TEXT_DEPTH);
	text = buf_str(&out);
	if (text.len > MQL_TEXT_BYTES)
		kept = arena_printf(q->arena, "%.*s...", MQL_TEXT_BYTES, text.ptr);
	else
		kept = arena_printf(q->arena, "%.*s", STR_ARG(text));
	buf_release(&out);
	return kept.ptr ? kept.ptr : "";
}

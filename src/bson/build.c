#include <assert.h>
#include <stdio.h>

#include "bson/bson.h"
#include "bson/bson_int.h"

enum {
	INDEX_BYTES = 10, /* of the name of an array's element */
};

static void
put_u32(struct buf *out, uint32_t n)
{
	n = htole32(n);
	buf_append(out, &n, sizeof(n));
}

static void
put_u64(struct buf *out, uint64_t n)
{
	n = htole64(n);
	buf_append(out, &n, sizeof(n));
}

static void
put_string(struct buf *out, struct str text)
{
	put_u32(out, (uint32_t)text.len + 1);
	buf_append_str(out, text);
	buf_append_byte(out, 0);
}

static void
put_cstring(struct buf *out, struct str text)
{
	assert(!text.len || !memchr(text.ptr, 0, text.len));
	buf_append_str(out, text);
	buf_append_byte(out, 0);
}

static void
put_code_scope(struct buf *out, const struct bson_value *v)
{
	put_u32(out, (uint32_t)(2 * sizeof(uint32_t) + bson_text(v).len + 1 + bson_more(v).len));
	put_string(out, bson_text(v));
	buf_append_str(out, bson_more(v));
}

void
bson_value_write(struct buf *out, const struct bson_value *v)
{
	switch (v->type) {
	case BSON_DOUBLE: {
		double d = bson_real(v);
		uint64_t bits;

		memcpy(&bits, &d, sizeof(bits));
		put_u64(out, bits);
		return;
	}
	case BSON_STRING:
	case BSON_CODE:
	case BSON_SYMBOL:
		put_string(out, bson_text(v));
		return;
	case BSON_DOCUMENT:
	case BSON_ARRAY:
	case BSON_OBJECT_ID:
		buf_append_str(out, bson_text(v));
		return;
	case BSON_BINARY:
		put_u32(out, (uint32_t)bson_text(v).len);
		buf_append_byte(out, v->subtype);
		buf_append_str(out, bson_text(v));
		return;
	case BSON_BOOL:
		buf_append_byte(out, bson_truth(v));
		return;
	case BSON_DATE:
	case BSON_TIMESTAMP:
	case BSON_INT64:
		put_u64(out, (uint64_t)bson_integer(v));
		return;
	case BSON_INT32:
		put_u32(out, (uint32_t)bson_integer(v));
		return;
	case BSON_REGEX:
		put_cstring(out, bson_text(v));
		put_cstring(out, bson_more(v));
		return;
	case BSON_DB_POINTER:
		put_string(out, bson_text(v));
		buf_append_str(out, bson_more(v));
		return;
	case BSON_CODE_SCOPE:
		put_code_scope(out, v);
		return;
	case BSON_DECIMAL:
		put_u64(out, bson_decimal(v).low);
		put_u64(out, bson_decimal(v).high);
		return;
	case BSON_UNDEFINED:
	case BSON_NULL:
	case BSON_MIN_KEY:
	case BSON_MAX_KEY:
		return;
	}
	assert(false && "a type of BSON");
}

/* ---- Containers ---- */

void
bson_builder_init(struct bson_builder *b, struct buf *out)
{
	b->out = out;
	b->depth = 0;
	b->too_deep = 0;
}

/* The digits of a position, which are its element's name. */
static struct str
position_name(char room[INDEX_BYTES], uint32_t position)
{
	size_t at = INDEX_BYTES;

	do {
		room[--at] = (char)('0' + position % 10);
		position /= 10;
	} while (position);
	return str_of(room + at, INDEX_BYTES - at);
}

/* Writes the head of the next element: the type, and the name or the next position. */
static void
begin_element(struct bson_builder *b, uint8_t type, struct str name)
{
	struct bson_level *in = &b->levels[b->depth - 1];
	char index[INDEX_BYTES];
	char *at;

	assert(b->depth);
	if (in->array)
		name = position_name(index, in->count++);
	else
		assert(!name.len || !memchr(name.ptr, 0, name.len));
	if (!buf_reserve(b->out, name.len + 2))
		return;
	at = b->out->ptr + b->out->len;
	*at++ = (char)type;
	if (name.len)
		memcpy(at, name.ptr, name.len);
	at[name.len] = 0;
	b->out->len += name.len + 2;
}

static void
begin_level(struct bson_builder *b, bool array)
{
	if (b->depth == BSON_DEPTH) {
		b->too_deep++;
		if (b->out->failed == STATUS_OK)
			b->out->failed = STATUS_LIMIT;
		return;
	}
	b->levels[b->depth++] = (struct bson_level){ .begin = b->out->len, .array = array };
	put_u32(b->out, 0);
}

void
bson_begin(struct bson_builder *b)
{
	assert(!b->depth);
	begin_level(b, false);
}

void
bson_open(struct bson_builder *b, struct buf *out)
{
	bson_builder_init(b, out);
	bson_begin(b);
}

void
bson_begin_outer_array(struct bson_builder *b)
{
	assert(!b->depth);
	begin_level(b, true);
}

void
bson_begin_document(struct bson_builder *b, struct str name)
{
	begin_element(b, BSON_DOCUMENT, name);
	begin_level(b, false);
}

void
bson_begin_array(struct bson_builder *b, struct str name)
{
	begin_element(b, BSON_ARRAY, name);
	begin_level(b, true);
}

void
bson_end(struct bson_builder *b)
{
	size_t begin;
	size_t len;
	uint32_t n;

	if (b->too_deep) {
		b->too_deep--;
		return;
	}
	assert(b->depth);
	begin = b->levels[--b->depth].begin;
	buf_append_byte(b->out, 0);
	if (buf_status(b->out) != STATUS_OK)
		return;
	len = b->out->len - begin;
	if (len > INT32_MAX) {
		b->out->failed = STATUS_LIMIT;
		return;
	}
	n = htole32((uint32_t)len);
	memcpy(b->out->ptr + begin, &n, sizeof(n));
}

/* ---- Elements ---- */

void
bson_put(struct bson_builder *b, struct str name, const struct bson_value *v)
{
	begin_element(b, (uint8_t)v->type, name);
	bson_value_write(b->out, v);
}

void
bson_put_element(struct bson_builder *b, const struct bson_element *e)
{
	if (b->levels[b->depth - 1].array)
		bson_put(b, e->name, &e->value);
	else
		buf_append_str(b->out, e->bytes);
}

void
bson_put_elements(struct bson_builder *b, struct str document)
{
	struct bson_iter i;
	struct bson_element e;

	for (bson_iter_begin(&i, document); bson_iter_read(&i, &e);)
		bson_put_element(b, &e);
}

void
bson_put_int32(struct bson_builder *b, struct str name, int32_t n)
{
	bson_put(b, name, &BSON_OF_INT32(n));
}

void
bson_put_int64(struct bson_builder *b, struct str name, int64_t n)
{
	bson_put(b, name, &BSON_OF_INT64(n));
}

void
bson_put_double(struct bson_builder *b, struct str name, double d)
{
	bson_put(b, name, &BSON_OF_DOUBLE(d));
}

void
bson_put_bool(struct bson_builder *b, struct str name, bool truth)
{
	bson_put(b, name, &BSON_OF_BOOL(truth));
}

void
bson_put_null(struct bson_builder *b, struct str name)
{
	bson_put(b, name, &BSON_OF_NULL);
}

void
bson_put_string(struct bson_builder *b, struct str name, struct str text)
{
	bson_put(b, name, &BSON_OF_STRING(text));
}

void
bson_put_date(struct bson_builder *b, struct str name, int64_t ms)
{
	bson_put(b, name, &BSON_OF_DATE(ms));
}

void
bson_put_timestamp(struct bson_builder *b, struct str name, uint64_t timestamp)
{
	const struct bson_value v = { .type = BSON_TIMESTAMP, .as_n = (int64_t)timestamp };

	bson_put(b, name, &v);
}

void
bson_put_object_id(struct bson_builder *b, struct str name, struct str id)
{
	const struct bson_value v = { .type = BSON_OBJECT_ID, .as_text = id };

	assert(id.len == BSON_OBJECT_ID_BYTES);
	bson_put(b, name, &v);
}

void
bson_put_binary(struct bson_builder *b, struct str name, uint8_t subtype, struct str bytes)
{
	const struct bson_value v = { .type = BSON_BINARY, .subtype = subtype, .as_text = bytes };

	bson_put(b, name, &v);
}

void
bson_put_document(struct bson_builder *b, struct str name, struct str document)
{
	bson_put(b, name, &BSON_OF_DOCUMENT(document));
}

void
bson_put_array(struct bson_builder *b, struct str name, struct str array)
{
	bson_put(b, name, &BSON_OF_ARRAY(array));
}

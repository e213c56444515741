#include "doc/key_int.h"

#include <assert.h>
#include <endian.h>
#include <math.h>

/*
 * Each component begins with a byte that stands for its type in its order, so that no order has two
 * meanings for one byte and a component can be passed over without knowing the order. Numbers are
 * in key_number.c.
 */

enum {
	/* In bytes and texts a NUL is 00 FF, and the end is 00 01, whatever follows. */
	ESCAPE_NUL = 0xff,
	ESCAPE_END = 0x01,

	UUID_HALF_BYTES = 8,
	UUID_VERSION_TIME = 1,
	LENGTH_BYTES = 4,
};

/* ---- Parts ---- */

static void
component_put_u32(struct buf *key, uint32_t n)
{
	n = htobe32(n);
	buf_append(key, &n, sizeof(n));
}

static void
component_put_u64(struct buf *key, uint64_t n)
{
	n = htobe64(n);
	buf_append(key, &n, sizeof(n));
}

/* With the sign inverted, negative numbers come first. */
static void
component_put_i64(struct buf *key, int64_t n)
{
	component_put_u64(key, (uint64_t)n ^ UINT64_C(1) << 63);
}

static void
component_put_i32(struct buf *key, int32_t n)
{
	component_put_u32(key, (uint32_t)n ^ UINT32_C(1) << 31);
}

static void
component_put_escaped(struct buf *key, struct str s)
{
	static const uint8_t nul[] = { 0, ESCAPE_NUL };
	static const uint8_t end[] = { 0, ESCAPE_END };

	while (s.len) {
		const char *at = memchr(s.ptr, 0, s.len);
		size_t plain = at ? (size_t)(at - s.ptr) : s.len;

		buf_append(key, s.ptr, plain);
		if (at)
			buf_append(key, nul, sizeof(nul));
		s = str_skip(s, at ? plain + 1 : plain);
	}
	buf_append(key, end, sizeof(end));
}

/* The bits of a double in the order of IEEE 754's totalOrder(), but that there is one NaN. */
static void
component_put_double(struct buf *key, double d)
{
	uint64_t bits;

	if (isnan(d))
		d = (double)NAN;
	memcpy(&bits, &d, sizeof(bits));
	component_put_u64(key, bits >> 63 ? ~bits : bits ^ UINT64_C(1) << 63);
}

static void
component_put_float(struct buf *key, float f)
{
	uint32_t bits;

	if (isnan(f))
		f = NAN;
	memcpy(&bits, &f, sizeof(bits));
	component_put_u32(key, bits >> 31 ? ~bits : bits ^ UINT32_C(1) << 31);
}

/* The first half of a UUID of version 1 with the highest bits of its time in front. */
static void
component_put_uuid_time(struct buf *key, const char *uuid)
{
	buf_append(key, uuid + 6, 2);
	buf_append(key, uuid + 4, 2);
	buf_append(key, uuid, 4);
}

/* As Cassandra's UUIDType: by version, those of version 1 by time. */
static void
component_put_uuid(struct buf *key, const char *uuid)
{
	uint8_t version = (uint8_t)uuid[6] >> 4;

	buf_append_byte(key, version);
	if (version == UUID_VERSION_TIME)
		component_put_uuid_time(key, uuid);
	else
		buf_append(key, uuid, UUID_HALF_BYTES);
	buf_append(key, uuid + UUID_HALF_BYTES, UUID_HALF_BYTES);
}

/* As Cassandra's TimeUUIDType: by time, then by the other bytes as signed ones. */
static void
component_put_timeuuid(struct buf *key, const char *uuid)
{
	component_put_uuid_time(key, uuid);
	for (size_t i = UUID_HALF_BYTES; i < DOC_UUID_BYTES; i++)
		buf_append_byte(key, (uint8_t)uuid[i] ^ 0x80);
}

/* ---- Scalars ---- */

static enum key_class
class_of_bool(enum doc_key_order order, bool value)
{
	if (order == DOC_KEY_COUCH)
		return value ? KEY_COUCH_TRUE : KEY_COUCH_FALSE;
	if (order == DOC_KEY_RAW)
		return value ? KEY_RAW_TRUE : KEY_RAW_FALSE;
	return value ? KEY_TRUE : KEY_FALSE;
}

static enum key_class
class_of_container(enum doc_key_order order, enum doc_container container)
{
	if (order == DOC_KEY_COUCH)
		return container == DOC_OBJECT ? KEY_COUCH_OBJECT : KEY_COUCH_ARRAY;
	if (order == DOC_KEY_RAW)
		return container == DOC_OBJECT ? KEY_RAW_OBJECT : KEY_RAW_ARRAY;
	return container == DOC_OBJECT ? KEY_BSON_OBJECT : KEY_BSON_ARRAY;
}

/* The first byte of a component, but for numbers and booleans, which have several. */
static enum key_class
class_of(enum doc_key_order order, enum doc_kind kind)
{
	switch ((int)kind) {
	case DOC_NULL:
		return order == DOC_KEY_RAW ? KEY_RAW_NULL : KEY_NULL;
	case DOC_BOOL:
		return class_of_bool(order, false);
	case DOC_TEXT:
	case DOC_SYMBOL:
		return order == DOC_KEY_RAW ? KEY_RAW_TEXT : KEY_TEXT;
	case DOC_BYTES:
		return order == DOC_KEY_TYPED ? KEY_BYTES : KEY_BINARY;
	case DOC_BINARY:
		return KEY_BINARY;
	case DOC_UUID:
		return KEY_UUID;
	case DOC_TIMEUUID:
		return KEY_TIMEUUID;
	case DOC_EMPTY_ARRAY:
		return class_of_container(order, DOC_ARRAY);
	case DOC_EMPTY_OBJECT:
		return class_of_container(order, DOC_OBJECT);
	case DOC_DATE:
		return KEY_DATE;
	case DOC_DAY:
		return KEY_DAY;
	case DOC_TIME:
		return KEY_TIME;
	case DOC_DURATION:
		return KEY_DURATION;
	case DOC_OBJECT_ID:
		return KEY_OBJECT_ID;
	case DOC_TIMESTAMP:
		return KEY_TIMESTAMP;
	case DOC_REGEX:
		return KEY_REGEX;
	case DOC_CODE:
		return KEY_CODE;
	case DOC_CODE_SCOPE:
		return KEY_CODE_SCOPE;
	case DOC_DB_POINTER:
		return KEY_DB_POINTER;
	case DOC_UNDEFINED:
		return KEY_UNDEFINED;
	case DOC_MIN_KEY:
		return KEY_MIN;
	case DOC_MAX_KEY:
		return KEY_MAX;
	case DOC_INET:
		return KEY_INET;
	default:
		assert(key_is_number(kind));
		return KEY_NUMBERS;
	}
}

/* Bytes by length, subtype, content: the order of BSON's binary values. */
static void
component_put_binary(struct buf *key, uint8_t subtype, struct str bytes)
{
	component_put_u32(key, (uint32_t)bytes.len);
	buf_append_byte(key, subtype);
	buf_append_str(key, bytes);
}

/* What follows the first byte. */
static void
component_put_content(struct buf *key, enum doc_key_order order, const struct doc_scalar *s)
{
	switch ((int)s->kind) {
	case DOC_BYTES:
		if (order == DOC_KEY_TYPED)
			component_put_escaped(key, s->text);
		else
			component_put_binary(key, 0, s->text);
		return;
	case DOC_BINARY:
		component_put_binary(key, (uint8_t)s->n, s->text);
		return;
	case DOC_TEXT:
	case DOC_SYMBOL:
	case DOC_CODE:
	case DOC_INET:
		component_put_escaped(key, s->text);
		return;
	case DOC_REGEX:
	case DOC_CODE_SCOPE:
		component_put_escaped(key, s->text);
		component_put_escaped(key, s->more);
		return;
	case DOC_DB_POINTER:
		component_put_u32(key, (uint32_t)s->text.len);
		buf_append_str(key, s->text);
		buf_append_str(key, s->more);
		return;
	case DOC_UUID:
		component_put_uuid(key, s->text.ptr);
		return;
	case DOC_TIMEUUID:
		component_put_timeuuid(key, s->text.ptr);
		return;
	case DOC_OBJECT_ID:
		buf_append_str(key, s->text);
		return;
	case DOC_DATE:
	case DOC_TIME:
		component_put_i64(key, s->n);
		return;
	case DOC_DAY:
		component_put_i32(key, (int32_t)s->n);
		return;
	case DOC_TIMESTAMP:
		component_put_u64(key, (uint64_t)s->n);
		return;
	case DOC_DURATION:
		component_put_i32(key, s->months);
		component_put_i32(key, s->days);
		component_put_i64(key, s->n);
		return;
	case DOC_EMPTY_ARRAY:
	case DOC_EMPTY_OBJECT:
		doc_key_end(key);
		return;
	default: /* null, undefined, MinKey, MaxKey */
		return;
	}
}

enum status
doc_key_put(struct buf *key, enum doc_key_order order, const struct doc_scalar *s)
{
	if (s->kind == DOC_BOOL) {
		buf_append_byte(key, (uint8_t)class_of_bool(order, s->truth));
	} else if (s->kind == DOC_DOUBLE && order == DOC_KEY_TYPED) {
		buf_append_byte(key, KEY_DOUBLE_BITS);
		component_put_double(key, s->d);
	} else if (s->kind == DOC_FLOAT && order == DOC_KEY_TYPED) {
		buf_append_byte(key, KEY_FLOAT_BITS);
		component_put_float(key, s->f);
	} else if (key_is_number(s->kind)) {
		TRY(key_put_number(key, s));
	} else {
		buf_append_byte(key, (uint8_t)class_of(order, s->kind));
		component_put_content(key, order, s);
	}
	return buf_status(key);
}

/* ---- Containers ---- */

void
doc_key_begin(struct buf *key, enum doc_key_order order, enum doc_container container)
{
	buf_append_byte(key, (uint8_t)class_of_container(order, container));
}

void
doc_key_member(struct buf *key, enum doc_key_order order, struct str name, enum doc_kind value)
{
	if (order != DOC_KEY_COUCH && order != DOC_KEY_RAW)
		buf_append_byte(key, (uint8_t)class_of(order, value));
	buf_append_byte(key, KEY_TEXT);
	component_put_escaped(key, name);
}

void
doc_key_end(struct buf *key)
{
	buf_append_byte(key, KEY_END);
}

/* ---- Passing over components ---- */

static enum status
component_skip_bytes(struct key_reader *r, size_t n)
{
	if ((size_t)(r->end - r->at) < n)
		return STATUS_CORRUPT;
	r->at += n;
	return STATUS_OK;
}

static enum status
component_skip_escaped(struct key_reader *r)
{
	uint8_t c;

	for (;;) {
		TRY(key_next_byte(r, &c));
		if (c)
			continue;
		TRY(key_next_byte(r, &c));
		if (c == ESCAPE_END)
			return STATUS_OK;
		if (c != ESCAPE_NUL)
			return STATUS_CORRUPT;
	}
}

/* A length, and so many bytes and `more`. */
static enum status
component_skip_counted(struct key_reader *r, size_t more)
{
	uint32_t n = 0;

	for (int i = 0; i < LENGTH_BYTES; i++) {
		uint8_t c;

		TRY(key_next_byte(r, &c));
		n = n << 8 | c;
	}
	return component_skip_bytes(r, n + more);
}

/* A component that is no container, whose first byte has been read. */
static enum status
component_skip_scalar(struct key_reader *r, uint8_t first)
{
	switch (first) {
	case KEY_MIN:
	case KEY_UNDEFINED:
	case KEY_NULL:
	case KEY_COUCH_FALSE:
	case KEY_COUCH_TRUE:
	case KEY_RAW_FALSE:
	case KEY_RAW_NULL:
	case KEY_RAW_TRUE:
	case KEY_FALSE:
	case KEY_TRUE:
	case KEY_MAX:
		return STATUS_OK;
	case KEY_TEXT:
	case KEY_RAW_TEXT:
	case KEY_BYTES:
	case KEY_CODE:
	case KEY_INET:
		return component_skip_escaped(r);
	case KEY_REGEX:
	case KEY_CODE_SCOPE:
		TRY(component_skip_escaped(r));
		return component_skip_escaped(r);
	case KEY_BINARY:
		return component_skip_counted(r, 1);
	case KEY_DB_POINTER:
		return component_skip_counted(r, DOC_OBJECT_ID_BYTES);
	case KEY_OBJECT_ID:
		return component_skip_bytes(r, DOC_OBJECT_ID_BYTES);
	case KEY_DATE:
	case KEY_TIME:
	case KEY_TIMESTAMP:
	case KEY_DOUBLE_BITS:
		return component_skip_bytes(r, sizeof(uint64_t));
	case KEY_DAY:
	case KEY_FLOAT_BITS:
		return component_skip_bytes(r, sizeof(uint32_t));
	case KEY_DURATION:
		return component_skip_bytes(r, 2 * sizeof(uint32_t) + sizeof(uint64_t));
	case KEY_UUID:
		return component_skip_bytes(r, 1 + DOC_UUID_BYTES);
	case KEY_TIMEUUID:
		return component_skip_bytes(r, DOC_UUID_BYTES);
	default:
		if (first >= KEY_NAN && first <= KEY_PLUS_INFINITY)
			return key_skip_number(r, first);
		return STATUS_CORRUPT;
	}
}

/* In an object: passes over what stands before a member's value, or over the object's end. */
static enum status
component_skip_member(struct key_reader *r, enum key_class object, bool *ret_end)
{
	uint8_t c;

	TRY(key_next_byte(r, &c));
	*ret_end = c == KEY_END;
	if (*ret_end)
		return STATUS_OK;
	if (object == KEY_BSON_OBJECT)
		TRY(key_next_byte(r, &c));
	return c == KEY_TEXT ? component_skip_escaped(r) : STATUS_CORRUPT;
}

static bool
begins_object(uint8_t first)
{
	return first == KEY_COUCH_OBJECT || first == KEY_BSON_OBJECT || first == KEY_RAW_OBJECT;
}

static bool
begins_container(uint8_t first)
{
	return begins_object(first) || first == KEY_COUCH_ARRAY || first == KEY_BSON_ARRAY ||
	       first == KEY_RAW_ARRAY;
}

enum status
doc_key_skip(struct str key, bool descending, size_t *ret_len)
{
	struct key_reader r = { .mask = descending ? 0xff : 0 };
	uint8_t open[DOC_KEY_DEPTH];
	size_t depth = 0;
	uint8_t first;

	r.at = (const uint8_t *)key.ptr;
	r.end = key.len ? r.at + key.len : r.at;
	do {
		bool end = false;

		if (depth && begins_object(open[depth - 1]))
			TRY(component_skip_member(&r, (enum key_class)open[depth - 1], &end));
		if (!end) {
			TRY(key_next_byte(&r, &first));
			end = depth && first == KEY_END && !begins_object(open[depth - 1]);
		}
		if (end) {
			depth--;
		} else if (begins_container(first)) {
			if (depth == DOC_KEY_DEPTH)
				return STATUS_CORRUPT;
			open[depth++] = first;
		} else {
			TRY(component_skip_scalar(&r, first));
		}
	} while (depth);
	*ret_len = (size_t)(r.at - (const uint8_t *)key.ptr);
	return STATUS_OK;
}

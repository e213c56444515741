#include "index/leaf.h"

enum {
	/* Above every type code: where the paths that go on behind an element end. An encoded
	 * string that is followed by it is the beginning of a longer one with a NUL inside. */
	PAST_ELEMENT = 0xff,

	TYPE_NULL = 0x00, /* a piece of a split string */
	TYPE_STRING = 0x02,
};

/* ---- Making values ---- */

static enum status
of_element(const struct buf *encoded, struct arena *arena, struct leaf_value *ret)
{
	struct kv_pair *leaf = arena_alloc(arena, sizeof(*leaf));

	TRY(buf_status(encoded));
	if (!leaf)
		return STATUS_LIMIT;
	*leaf = (struct kv_pair){ { "", 0 }, arena_dup(arena, buf_str(encoded)) };
	if (!leaf->value.ptr)
		return STATUS_LIMIT;
	*ret = (struct leaf_value){ leaf, 1, 0 };
	return STATUS_OK;
}

enum status
leaf_of_string(struct str text, struct arena *arena, struct leaf_value *ret)
{
	AUTO(buf_release) struct buf encoded = BUF_INIT(SIZE_MAX);

	tuple_put_str(&encoded, text);
	return of_element(&encoded, arena, ret);
}

enum status
leaf_of_bool(bool value, struct arena *arena, struct leaf_value *ret)
{
	AUTO(buf_release) struct buf encoded = BUF_INIT(16);

	tuple_put_bool(&encoded, value);
	return of_element(&encoded, arena, ret);
}

enum status
leaf_parse(struct str text, struct arena *arena, struct leaf_value *ret, struct err *err)
{
	const struct doc_limits limits = { .doc_bytes = SIZE_MAX,
					   .path_bytes = KV_LIMIT_KEY_BYTES };
	static const char before[] = { '{', '"', '"', ':' };
	char *document = arena_bytes(arena, text.len + sizeof(before) + 1);
	struct doc doc;

	if (!document)
		return STATUS_LIMIT;
	memcpy(document, before, sizeof(before));
	memcpy(document + sizeof(before), text.ptr, text.len);
	document[sizeof(before) + text.len] = '}';
	TRY(doc_explode_text(str_of(document, text.len + sizeof(before) + 1), arena, &limits, 0,
			     &doc, err));
	*ret = (struct leaf_value){ doc.leaves, doc.count, 0 };
	if (doc.count == 0 || !leaf_find(ret, STR("\x02\0"), ret))
		return STATUS_CORRUPT;
	return STATUS_OK;
}

/* ---- What a value is ---- */

bool
leaf_has_children(const struct leaf_value *v)
{
	return v->count && v->leaves[0].key.len > v->at && v->leaves[0].key.ptr[v->at] != TYPE_NULL;
}

/* The element that a leaf's value is. */
static enum status
scalar(struct str value, struct tuple_elem *ret)
{
	struct tuple_reader r = tuple_reader(value);

	if (tuple_next(&r, ret) != STATUS_OK || r.rest.len)
		return STATUS_CORRUPT;
	return STATUS_OK;
}

/* (): an empty array; (()): an empty object; (double, text): a number. */
static enum status
nested_kind(const struct tuple_elem *nested, enum leaf_kind *ret)
{
	struct tuple_reader r = tuple_reader_nested(nested);
	struct tuple_elem e;

	if (!r.rest.len) {
		*ret = LEAF_ARRAY;
		return STATUS_OK;
	}
	TRY(tuple_next(&r, &e));
	*ret = e.kind == TUPLE_DOUBLE ? LEAF_NUMBER : LEAF_OBJECT;
	return STATUS_OK;
}

static enum status
scalar_kind(struct str value, enum leaf_kind *ret)
{
	struct tuple_elem e;

	TRY(scalar(value, &e));
	switch (e.kind) {
	case TUPLE_NULL:
		*ret = LEAF_NULL;
		return STATUS_OK;
	case TUPLE_FALSE:
		*ret = LEAF_FALSE;
		return STATUS_OK;
	case TUPLE_TRUE:
		*ret = LEAF_TRUE;
		return STATUS_OK;
	case TUPLE_INT:
	case TUPLE_BIGINT:
	case TUPLE_DOUBLE:
		*ret = LEAF_NUMBER;
		return STATUS_OK;
	case TUPLE_STRING:
		*ret = LEAF_STRING;
		return STATUS_OK;
	case TUPLE_NESTED:
		return nested_kind(&e, ret);
	case TUPLE_BYTES:
	case TUPLE_FLOAT:
	case TUPLE_UUID:
	case TUPLE_VERSIONSTAMP:
		break;
	}
	return STATUS_CORRUPT;
}

enum status
leaf_kind(const struct leaf_value *v, enum leaf_kind *ret)
{
	if (v->count == 0) {
		*ret = LEAF_OBJECT;
		return STATUS_OK;
	}
	if (v->leaves[0].key.len == v->at)
		return scalar_kind(v->leaves[0].value, ret);
	if (v->leaves[0].key.ptr[v->at] == TYPE_NULL)
		*ret = LEAF_STRING;
	else if (v->leaves[0].key.ptr[v->at] == TYPE_STRING)
		*ret = LEAF_OBJECT;
	else
		*ret = LEAF_ARRAY;
	return STATUS_OK;
}

/* ---- Strings ---- */

static enum status
append_piece(struct str value, struct buf *ret)
{
	struct tuple_elem e;

	TRY(scalar(value, &e));
	if (e.kind != TUPLE_STRING)
		return STATUS_CORRUPT;
	tuple_unescape(&e, ret);
	return buf_status(ret);
}

enum status
leaf_text(const struct leaf_value *v, struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf text = BUF_INIT(SIZE_MAX);
	struct tuple_elem e;

	if (v->count == 0)
		return STATUS_CORRUPT;
	if (v->count == 1 && v->leaves[0].key.len == v->at) {
		TRY(scalar(v->leaves[0].value, &e));
		if (e.kind == TUPLE_STRING && !e.escaped) {
			*ret = e.raw;
			return STATUS_OK;
		}
	}
	for (size_t i = 0; i < v->count; i++)
		TRY(append_piece(v->leaves[i].value, &text));
	*ret = arena_dup(arena, buf_str(&text));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

/* ---- Children ---- */

/* How a leaf's path below the value compares with `element`: 0 where it starts with it. */
static int
compare_element(const struct leaf_value *v, size_t i, struct str element)
{
	struct str path = str_skip(v->leaves[i].key, v->at);

	if (!str_starts_with(path, element))
		return str_cmp(path, element);
	return path.len > element.len && (uint8_t)path.ptr[element.len] == PAST_ELEMENT;
}

bool
leaf_find(const struct leaf_value *v, struct str element, struct leaf_value *ret)
{
	size_t lo = 0;
	size_t hi = v->count;
	size_t first;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (compare_element(v, mid, element) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	first = lo;
	hi = v->count;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (compare_element(v, mid, element) <= 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == first)
		return false;
	*ret = (struct leaf_value){ v->leaves + first, lo - first, v->at + element.len };
	return true;
}

enum status
leaf_next(struct leaf_iter *iter, struct tuple_elem *ret_key, struct leaf_value *ret)
{
	struct leaf_value *rest = &iter->rest;
	struct tuple_reader path;
	size_t n = 1;

	if (!leaf_has_children(rest))
		return STATUS_NOT_FOUND;
	path = tuple_reader(str_skip(rest->leaves[0].key, rest->at));
	if (tuple_next(&path, ret_key) != STATUS_OK ||
	    (ret_key->kind != TUPLE_STRING && (ret_key->kind != TUPLE_INT || ret_key->negative)))
		return STATUS_CORRUPT;
	while (n < rest->count && compare_element(rest, n, ret_key->encoding) == 0)
		n++;
	*ret = (struct leaf_value){ rest->leaves, n, rest->at + ret_key->encoding.len };
	rest->leaves += n;
	rest->count -= n;
	return STATUS_OK;
}

enum status
leaf_array_count(const struct leaf_value *v, uint64_t *ret)
{
	struct tuple_reader last;

	if (!leaf_has_children(v)) {
		*ret = 0;
		return STATUS_OK;
	}
	last = tuple_reader(str_skip(v->leaves[v->count - 1].key, v->at));
	TRY(tuple_next_u64(&last, ret));
	(*ret)++;
	return STATUS_OK;
}

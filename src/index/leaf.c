#include "index/leaf.h"

#include <assert.h>

enum {
	/*
	 * This byte is greater than every type code, so the paths that continue behind an element
	 * sort before that element followed by this byte. Behind the end of an encoded string it
	 * begins a longer string with a NUL.
	 */
	PAST_ELEMENT = 0xff,

	TYPE_NULL = 0x00, /* a piece of a split string */
	TYPE_STRING = 0x02,
};

/* ---- Making values ---- */

static enum status
leaf_of_scalar(const struct doc_scalar *scalar, struct arena *arena, struct leaf_value *ret)
{
	AUTO(buf_release) struct buf encoded = BUF_INIT(SIZE_MAX);
	struct kv_pair *leaf = arena_alloc(arena, sizeof(*leaf));

	doc_scalar_put(&encoded, scalar);
	TRY(buf_status(&encoded));
	if (!leaf)
		return STATUS_LIMIT;
	*leaf = (struct kv_pair){ { "", 0 }, buf_dup(&encoded, arena) };
	if (!leaf->value.ptr)
		return STATUS_LIMIT;
	*ret = (struct leaf_value){ leaf, 1, 0 };
	return STATUS_OK;
}

enum status
leaf_of_string(struct str text, struct arena *arena, struct leaf_value *ret)
{
	const struct doc_scalar scalar = { .kind = DOC_TEXT, .text = text };

	return leaf_of_scalar(&scalar, arena, ret);
}

enum status
leaf_of_bool(bool value, struct arena *arena, struct leaf_value *ret)
{
	const struct doc_scalar scalar = { .kind = DOC_BOOL, .truth = value };

	return leaf_of_scalar(&scalar, arena, ret);
}

enum status
leaf_parse(struct str text, struct arena *arena, struct leaf_value *ret, struct err *err)
{
	const struct doc_limits limits = { .doc_bytes = SIZE_MAX,
					   .path_bytes = KV_LIMIT_KEY_BYTES };
	struct doc doc;

	TRY(doc_explode_value_text(text, arena, &limits, &doc, err));
	*ret = (struct leaf_value){ doc.leaves, doc.count, 0 };
	return STATUS_OK;
}

/* ---- What a value is ---- */

bool
leaf_has_children(const struct leaf_value *v)
{
	return v->count && v->leaves[0].key.len > v->at && v->leaves[0].key.ptr[v->at] != TYPE_NULL;
}

/* Reads the single element that makes up the value of a leaf. */
static enum status
leaf_read_element(struct str value, struct tuple_elem *ret)
{
	struct tuple_reader r = tuple_reader(value);

	if (tuple_next(&r, ret) != STATUS_OK || r.rest.len)
		return STATUS_CORRUPT;
	return STATUS_OK;
}

/*
 * Tells what a nested tuple stands for: () is an empty array, (()) an empty object, (double, text)
 * a number.
 */
static enum status
leaf_nested_kind(const struct tuple_elem *nested, enum leaf_kind *ret)
{
	struct tuple_reader r = tuple_reader_nested(nested);
	struct tuple_elem e;

	if (!r.rest.len) {
		*ret = LEAF_ARRAY;
		return STATUS_OK;
	}
	TRY(tuple_next_elem(&r, &e));
	*ret = e.kind == TUPLE_DOUBLE ? LEAF_NUMBER : LEAF_OBJECT;
	return STATUS_OK;
}

static enum status
leaf_scalar_kind(struct str value, enum leaf_kind *ret)
{
	struct tuple_elem e;

	TRY(leaf_read_element(value, &e));
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
		return leaf_nested_kind(&e, ret);
	case TUPLE_BYTES:
	case TUPLE_FLOAT:
	case TUPLE_UUID:
	case TUPLE_VERSIONSTAMP:
		break;
	}
	return STATUS_CORRUPT;
}

enum status
leaf_write(const struct leaf_value *v, struct buf *out)
{
	AUTO(doc_assemble_release) struct doc_assembler a;

	if (!v->count) {
		buf_append_cstr(out, "{}");
		return buf_status(out);
	}
	doc_assemble_init(&a, out);
	for (size_t i = 0; i < v->count; i++)
		TRY(doc_assemble_leaf(&a, str_skip(v->leaves[i].key, v->at), v->leaves[i].value));
	return doc_assemble_end(&a);
}

enum status
leaf_kind(const struct leaf_value *v, enum leaf_kind *ret)
{
	if (v->count == 0) {
		*ret = LEAF_OBJECT;
		return STATUS_OK;
	}
	if (v->leaves[0].key.len == v->at)
		return leaf_scalar_kind(v->leaves[0].value, ret);
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
leaf_append_piece(struct str value, struct buf *ret)
{
	struct tuple_elem e;

	TRY(leaf_read_element(value, &e));
	if (e.kind != TUPLE_STRING)
		return STATUS_CORRUPT;
	tuple_unescape(&e, ret);
	return buf_status(ret);
}

enum status
leaf_text(const struct leaf_value *v, struct index_work *w, struct str *ret)
{
	struct buf text = { 0 };
	struct tuple_elem e;

	if (v->count == 0)
		return STATUS_CORRUPT;
	if (v->count == 1 && v->leaves[0].key.len == v->at) {
		TRY(leaf_read_element(v->leaves[0].value, &e));
		if (e.kind == TUPLE_STRING && !e.escaped) {
			*ret = e.raw;
			return STATUS_OK;
		}
	}
	/* A string's encoding is never shorter than its content. */
	for (size_t i = 0; i < v->count; i++)
		text.max_bytes += v->leaves[i].value.len;
	text.cap = text.max_bytes;
	text.ptr = arena_bytes(w->arena, text.cap);
	if (!text.ptr)
		return STATUS_LIMIT;
	for (size_t i = 0; i < v->count; i++) {
		TRY(leaf_append_piece(v->leaves[i].value, &text));
		TRY(index_count_bytes(w, v->leaves[i].value.len));
	}
	*ret = buf_str(&text);
	return STATUS_OK;
}

/* ---- Children ---- */

/* Compares a leaf's path below the value with `element`: 0 if the path starts with it. */
static int
leaf_compare_element(const struct leaf_value *v, size_t i, struct str element)
{
	struct str path = str_skip(v->leaves[i].key, v->at);

	assert(i < v->count);
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

		if (leaf_compare_element(v, mid, element) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	first = lo;
	hi = v->count;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (leaf_compare_element(v, mid, element) <= 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == first)
		return false;
	*ret = (struct leaf_value){ v->leaves + first, lo - first, v->at + element.len };
	return true;
}

/*
 * Counts the leaves at the beginning of `v` whose paths start with `element`; the first one does.
 * The steps double until they pass the end of the element, which is then searched for, so that a
 * child costs the logarithm of its leaves.
 */
static size_t
leaf_count_below(const struct leaf_value *v, struct str element)
{
	size_t lo = 0; /* belongs to the element */
	size_t step = 1;
	size_t hi;

	while (lo + step < v->count && leaf_compare_element(v, lo + step, element) == 0) {
		lo += step;
		step *= 2;
	}
	hi = lo + step < v->count ? lo + step : v->count; /* does not, or is the end */
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (leaf_compare_element(v, mid, element) == 0)
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}

enum status
leaf_next(struct leaf_iter *iter, struct tuple_elem *ret_key, struct leaf_value *ret)
{
	struct leaf_value *rest = &iter->rest;
	struct tuple_reader path;
	size_t n;

	if (!leaf_has_children(rest))
		return STATUS_NOT_FOUND;
	path = tuple_reader(str_skip(rest->leaves[0].key, rest->at));
	if (tuple_next(&path, ret_key) != STATUS_OK ||
	    (ret_key->kind != TUPLE_STRING && (ret_key->kind != TUPLE_INT || ret_key->negative)))
		return STATUS_CORRUPT;
	n = leaf_count_below(rest, ret_key->encoding);
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

#include "index/collate.h"

#include <pthread.h>
#include <unicode/ucol.h>
#include <unicode/ustring.h>

#include "loop/wait.h"

enum {
	REPLACEMENT = 0xfffd,
	SORT_SHORT_BYTES = 512, /* a text that is turned into UTF-16 without an allocation */
};

/* ---- Strings ---- */

static pthread_once_t collator_once = PTHREAD_ONCE_INIT;
static UCollator *root_collator;

static void
collate_open(void)
{
	UErrorCode code = U_ZERO_ERROR;
	UCollator *opened = ucol_open("", &code);

	if (U_SUCCESS(code))
		root_collator = opened;
	else
		ucol_close(opened);
}

/* ICU counts bytes in an int32_t. No document has a longer string. */
static int32_t
collate_icu_length(struct str s)
{
	return s.len > INT32_MAX ? INT32_MAX : (int32_t)s.len;
}

struct collate_call {
	struct str a, b;
	UErrorCode code;
	UCollationResult result;
};

static void
collate_call_icu(void *arg)
{
	struct collate_call *c = arg;

	c->result = ucol_strcollUTF8(root_collator, c->a.ptr, collate_icu_length(c->a), c->b.ptr,
				     collate_icu_length(c->b), &c->code);
}

enum status
collate_strings(struct str a, struct str b, struct index_work *w, int *ret)
{
	struct collate_call call = { .a = a, .b = b, .code = U_ZERO_ERROR };
	size_t shorter = a.len < b.len ? a.len : b.len;

	TRY(index_count_bytes(w, shorter));
	if (str_eq(a, b)) {
		*ret = 0;
		return STATUS_OK;
	}
	/* ICU takes about eight times as long as scanning the bytes does. */
	TRY(index_count_bytes(w, shorter * 7));
	if (pthread_once(&collator_once, collate_open) != 0 || !root_collator)
		return STATUS_UNAVAILABLE;
	if (shorter > COLLATE_OFFLOAD_BYTES)
		wait_offload(collate_call_icu, &call);
	else
		collate_call_icu(&call);
	if (U_FAILURE(call.code))
		return call.code == U_MEMORY_ALLOCATION_ERROR ? STATUS_NOMEM : STATUS_CORRUPT;
	*ret = call.result == UCOL_LESS ? -1 : call.result == UCOL_GREATER;
	return STATUS_OK;
}

/* ---- Sort keys ---- */

struct sort_key_call {
	struct str text;
	UChar *units; /* room for as many as the text has bytes */
	uint8_t *key;
	int32_t key_bytes;
	int32_t wanted; /* the length of the whole key, with the NUL at its end */
	UErrorCode code;
};

static void
sort_key_call_icu(void *arg)
{
	struct sort_key_call *c = arg;
	int32_t units = 0;

	for (; units < (int32_t)c->text.len && !(c->text.ptr[units] & 0x80); units++)
		c->units[units] = (UChar)c->text.ptr[units];
	/* Ids and revisions may be no UTF-8: what is none counts as U+FFFD, as ICU compares it. */
	if (units < (int32_t)c->text.len)
		u_strFromUTF8WithSub(c->units, collate_icu_length(c->text), &units, c->text.ptr,
				     collate_icu_length(c->text), REPLACEMENT, NULL, &c->code);
	if (U_SUCCESS(c->code) || c->code == U_STRING_NOT_TERMINATED_WARNING)
		c->wanted = ucol_getSortKey(root_collator, c->units, units, c->key, c->key_bytes);
}

enum status
collate_sort_key(struct str text, size_t most, struct index_work *w, struct buf *ret)
{
	UChar short_units[SORT_SHORT_BYTES];
	struct sort_key_call call = { .text = text, .code = U_ZERO_ERROR };
	size_t bytes;

	TRY(index_count_bytes(w, text.len * 8));
	if (pthread_once(&collator_once, collate_open) != 0 || !root_collator)
		return STATUS_UNAVAILABLE;
	call.units = short_units;
	if (text.len > SORT_SHORT_BYTES)
		call.units = arena_alloc(w->arena, text.len * sizeof(UChar));
	if (!call.units)
		return STATUS_LIMIT;
	if (!buf_reserve(ret, most))
		return buf_status(ret);
	call.key = (uint8_t *)ret->ptr + ret->len;
	call.key_bytes = (int32_t)most;
	if (text.len > COLLATE_OFFLOAD_BYTES)
		wait_offload(sort_key_call_icu, &call);
	else
		sort_key_call_icu(&call);
	if (call.wanted <= 0)
		return STATUS_CORRUPT;
	bytes = (size_t)call.wanted - 1;
	ret->len += bytes < most ? bytes : most;
	return STATUS_OK;
}

static enum status
collate_names(const struct tuple_elem *a, const struct tuple_elem *b, struct index_work *w,
	      int *ret)
{
	struct kv_pair leaves[2] = { { { "", 0 }, a->encoding }, { { "", 0 }, b->encoding } };
	struct leaf_value va = { &leaves[0], 1, 0 };
	struct leaf_value vb = { &leaves[1], 1, 0 };
	struct str ta, tb;

	TRY(leaf_text(&va, w, &ta));
	TRY(leaf_text(&vb, w, &tb));
	return collate_strings(ta, tb, w, ret);
}

/* ---- Values ---- */

/* One side of a comparison, which walks over its leaves: scalars and empty containers. */
struct collate_walk {
	struct leaf_value v; /* the leaves that have not been read yet */
	struct str last;     /* the path of the scalar that was read last */
};

/* Counts the elements that the next leaf's path shares with the path of the last scalar. */
static enum status
walk_shared_elements(const struct collate_walk *w, size_t *ret)
{
	struct tuple_reader a = tuple_reader(w->last);
	struct tuple_reader b = tuple_reader(str_skip(w->v.leaves[0].key, w->v.at));
	struct tuple_elem ea, eb;

	for (*ret = 0; a.rest.len && b.rest.len; (*ret)++) {
		TRY(tuple_next_elem(&a, &ea));
		TRY(tuple_next_elem(&b, &eb));
		if (!str_eq(ea.encoding, eb.encoding))
			break;
	}
	return STATUS_OK;
}

/* Takes the next scalar from the walk: the first leaf, or all pieces of a long string. */
static enum status
walk_take_scalar(struct collate_walk *w, struct leaf_value *ret)
{
	struct str key = w->v.leaves[0].key;
	struct tuple_reader r = tuple_reader(str_skip(key, w->v.at));
	struct tuple_elem e = { .kind = TUPLE_STRING };
	size_t len = key.len;
	size_t n = 1;

	while (r.rest.len && e.kind != TUPLE_NULL) {
		len = key.len - r.rest.len;
		TRY(tuple_next_elem(&r, &e));
	}
	if (e.kind == TUPLE_NULL) {
		struct str pieces = str_of(key.ptr, len + e.encoding.len);

		while (n < w->v.count && str_starts_with(w->v.leaves[n].key, pieces))
			n++;
	} else {
		len = key.len;
	}
	*ret = (struct leaf_value){ w->v.leaves, n, len };
	w->last = str_skip(str_of(key.ptr, len), w->v.at);
	w->v.leaves += n;
	w->v.count -= n;
	return STATUS_OK;
}

/* Compares two values without children. */
static enum status
collate_scalars(const struct leaf_value *a, const struct leaf_value *b, struct index_work *w,
		int *ret)
{
	enum leaf_kind ka, kb;
	struct leaf_number na, nb;
	struct str ta, tb;

	TRY(leaf_kind(a, &ka));
	TRY(leaf_kind(b, &kb));
	*ret = (ka > kb) - (ka < kb);
	if (*ret)
		return STATUS_OK;
	if (ka == LEAF_NUMBER) {
		TRY(leaf_number(a, &na));
		TRY(leaf_number(b, &nb));
		*ret = leaf_number_cmp(&na, &nb);
	} else if (ka == LEAF_STRING) {
		TRY(leaf_text(a, w, &ta));
		TRY(leaf_text(b, w, &tb));
		return collate_strings(ta, tb, w, ret);
	}
	return STATUS_OK;
}

/* Compares a value without children with a container whose first element is `e`. */
static enum status
collate_with_container(const struct leaf_value *v, const struct tuple_elem *e, int *ret)
{
	enum leaf_kind container = e->kind == TUPLE_STRING ? LEAF_OBJECT : LEAF_ARRAY;
	enum leaf_kind kind;

	TRY(leaf_kind(v, &kind));
	*ret = kind > container ? 1 : -1; /* an empty one of the same kind comes first */
	return STATUS_OK;
}

static enum status
collate_elements(const struct tuple_elem *a, const struct tuple_elem *b, struct index_work *w,
		 int *ret)
{
	if (a->kind == TUPLE_STRING && b->kind == TUPLE_STRING)
		return collate_names(a, b, w, ret);
	if (a->kind == b->kind)
		*ret = (a->magnitude > b->magnitude) - (a->magnitude < b->magnitude);
	else
		*ret = a->kind == TUPLE_STRING ? 1 : -1;
	return STATUS_OK;
}

/* Compares the next scalars of two walks that were equal so far, from element `shared` on. */
static enum status
collate_fronts(struct collate_walk *a, struct collate_walk *b, size_t shared, struct index_work *w,
	       int *ret)
{
	struct leaf_value va, vb;
	struct tuple_reader ra, rb;
	struct tuple_elem ea, eb;

	TRY(walk_take_scalar(a, &va));
	TRY(walk_take_scalar(b, &vb));
	ra = tuple_reader(a->last);
	rb = tuple_reader(b->last);
	*ret = 0;
	for (size_t i = 0; ra.rest.len && rb.rest.len; i++) {
		TRY(tuple_next_elem(&ra, &ea));
		TRY(tuple_next_elem(&rb, &eb));
		if (i >= shared)
			TRY(collate_elements(&ea, &eb, w, ret));
		if (*ret)
			return STATUS_OK;
	}
	if (rb.rest.len) {
		TRY(tuple_next_elem(&rb, &eb));
		return collate_with_container(&va, &eb, ret);
	}
	if (ra.rest.len) {
		TRY(tuple_next_elem(&ra, &ea));
		TRY(collate_with_container(&vb, &ea, ret));
		*ret = -*ret;
		return STATUS_OK;
	}
	return collate_scalars(&va, &vb, w, ret);
}

/*
 * Walks over the leaves of both values at the same time. As long as everything was equal the two
 * have the same shape. If one of them then leaves a container that the other stays in, its
 * container is the shorter one.
 */
enum status
collate_compare(const struct leaf_value *a, const struct leaf_value *b, struct index_work *w,
		int *ret)
{
	struct collate_walk wa = { .v = *a };
	struct collate_walk wb = { .v = *b };
	enum leaf_kind ka, kb;
	size_t sa, sb;

	TRY(leaf_kind(a, &ka));
	TRY(leaf_kind(b, &kb));
	*ret = (ka > kb) - (ka < kb);
	TRY(index_count(w, 1));
	while (*ret == 0 && wa.v.count && wb.v.count) {
		TRY(index_count_bytes(w, wa.v.leaves[0].key.len + wb.v.leaves[0].key.len));
		TRY(walk_shared_elements(&wa, &sa));
		TRY(walk_shared_elements(&wb, &sb));
		*ret = (sa > sb) - (sa < sb);
		if (*ret == 0)
			TRY(collate_fronts(&wa, &wb, sa, w, ret));
	}
	if (*ret == 0 && wa.v.count != wb.v.count) {
		/*
		 * All leaves were equal until one value ended. The longer value is the greater one.
		 * The only exception is a document without leaves, which is equal to a value such
		 * as `{}` that has nothing below it.
		 */
		const struct collate_walk *longer = wa.v.count ? &wa : &wb;

		if (longer->last.ptr || leaf_has_children(&longer->v))
			*ret = longer == &wa ? 1 : -1;
	}
	return STATUS_OK;
}

/* ---- Sameness ---- */

/* Numbers come first, integers before doubles; all others are in the order of their bytes. */
static enum status
collate_scalars_exactly(struct str a, struct str b, int *ret)
{
	const struct kv_pair leaves[2] = { { { "", 0 }, a }, { { "", 0 }, b } };
	const struct leaf_value va = { &leaves[0], 1, 0 };
	const struct leaf_value vb = { &leaves[1], 1, 0 };
	enum leaf_kind ka, kb;
	struct leaf_number na, nb;

	*ret = str_cmp(a, b);
	if (*ret == 0)
		return STATUS_OK;
	TRY(leaf_kind(&va, &ka));
	TRY(leaf_kind(&vb, &kb));
	if (ka != LEAF_NUMBER && kb != LEAF_NUMBER)
		return STATUS_OK;
	if (ka != kb) {
		*ret = ka == LEAF_NUMBER ? -1 : 1;
		return STATUS_OK;
	}
	/* 1.10 and 1.1 are spelled differently. */
	TRY(leaf_number(&va, &na));
	TRY(leaf_number(&vb, &nb));
	*ret = (na.form == LEAF_NUMBER_DOUBLE) - (nb.form == LEAF_NUMBER_DOUBLE);
	if (*ret == 0)
		*ret = leaf_number_cmp(&na, &nb);
	return STATUS_OK;
}

enum status
collate_exactly(const struct leaf_value *a, const struct leaf_value *b, struct index_work *w,
		int *ret)
{
	TRY(index_count(w, 1));
	*ret = (a->count > b->count) - (a->count < b->count);
	for (size_t i = 0; *ret == 0 && i < a->count; i++) {
		const struct kv_pair *la = &a->leaves[i];
		const struct kv_pair *lb = &b->leaves[i];

		TRY(index_count_bytes(w, la->key.len + la->value.len));
		*ret = str_cmp(str_skip(la->key, a->at), str_skip(lb->key, b->at));
		if (*ret == 0)
			TRY(collate_scalars_exactly(la->value, lb->value, ret));
	}
	return STATUS_OK;
}

enum status
collate_same(const struct leaf_value *a, const struct leaf_value *b, struct index_work *w,
	     bool *ret)
{
	int order;

	TRY(collate_exactly(a, b, w, &order));
	*ret = order == 0;
	return STATUS_OK;
}

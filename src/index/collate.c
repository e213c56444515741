#include "index/collate.h"

#include <pthread.h>
#include <unicode/ucol.h>

/* ---- Strings ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static UCollator *root_collator;

static void
open_collator(void)
{
	UErrorCode code = U_ZERO_ERROR;
	UCollator *opened = ucol_open("", &code);

	if (U_SUCCESS(code))
		root_collator = opened;
	else
		ucol_close(opened);
}

/* Longer strings are beyond ICU's counting; no document holds one. */
static int32_t
icu_length(struct str s)
{
	return s.len > INT32_MAX ? INT32_MAX : (int32_t)s.len;
}

enum status
collate_strings(struct str a, struct str b, int *ret)
{
	UErrorCode code = U_ZERO_ERROR;
	UCollationResult result;

	if (str_eq(a, b)) {
		*ret = 0;
		return STATUS_OK;
	}
	if (pthread_once(&once, open_collator) != 0 || !root_collator)
		return STATUS_UNAVAILABLE;
	result = ucol_strcollUTF8(root_collator, a.ptr, icu_length(a), b.ptr, icu_length(b), &code);
	if (U_FAILURE(code))
		return code == U_MEMORY_ALLOCATION_ERROR ? STATUS_NOMEM : STATUS_CORRUPT;
	*ret = result == UCOL_LESS ? -1 : result == UCOL_GREATER;
	return STATUS_OK;
}

static enum status
compare_names(const struct tuple_elem *a, const struct tuple_elem *b, struct arena *scratch,
	      int *ret)
{
	struct kv_pair leaves[2] = { { { "", 0 }, a->encoding }, { { "", 0 }, b->encoding } };
	struct leaf_value va = { &leaves[0], 1, 0 };
	struct leaf_value vb = { &leaves[1], 1, 0 };
	struct str ta, tb;

	TRY(leaf_text(&va, scratch, &ta));
	TRY(leaf_text(&vb, scratch, &tb));
	return collate_strings(ta, tb, ret);
}

/* ---- Values ---- */

/* One side of a comparison: a walk over its leaves, each one a scalar or an empty container. */
struct walk {
	struct leaf_value v; /* what is left of the whole */
	struct str last;     /* the path of the scalar before */
};

/* How many elements at the beginning of the front's path are also those of the last one. */
static enum status
shared_elements(const struct walk *w, size_t *ret)
{
	struct tuple_reader a = tuple_reader(w->last);
	struct tuple_reader b = tuple_reader(str_skip(w->v.leaves[0].key, w->v.at));
	struct tuple_elem ea, eb;

	for (*ret = 0; a.rest.len && b.rest.len; (*ret)++) {
		TRY(tuple_next(&a, &ea));
		TRY(tuple_next(&b, &eb));
		if (!str_eq(ea.encoding, eb.encoding))
			break;
	}
	return STATUS_OK;
}

/* The scalar at the front: the first leaf, or all the pieces of a split string. */
static enum status
take_scalar(struct walk *w, struct leaf_value *ret)
{
	struct str key = w->v.leaves[0].key;
	struct tuple_reader r = tuple_reader(str_skip(key, w->v.at));
	struct tuple_elem e = { .kind = TUPLE_STRING };
	size_t len = key.len;
	size_t n = 1;

	while (r.rest.len && e.kind != TUPLE_NULL) {
		len = key.len - r.rest.len;
		TRY(tuple_next(&r, &e));
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

/* Two values without children. */
static enum status
compare_scalars(const struct leaf_value *a, const struct leaf_value *b, struct arena *scratch,
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
		TRY(leaf_text(a, scratch, &ta));
		TRY(leaf_text(b, scratch, &tb));
		return collate_strings(ta, tb, ret);
	}
	return STATUS_OK;
}

/* A value without children against a container whose first element is `e`. */
static enum status
compare_with_container(const struct leaf_value *v, const struct tuple_elem *e, int *ret)
{
	enum leaf_kind container = e->kind == TUPLE_STRING ? LEAF_OBJECT : LEAF_ARRAY;
	enum leaf_kind kind;

	TRY(leaf_kind(v, &kind));
	*ret = kind > container ? 1 : -1; /* an empty one of the same kind comes first */
	return STATUS_OK;
}

static enum status
compare_elements(const struct tuple_elem *a, const struct tuple_elem *b, struct arena *scratch,
		 int *ret)
{
	if (a->kind == TUPLE_STRING && b->kind == TUPLE_STRING)
		return compare_names(a, b, scratch, ret);
	if (a->kind == b->kind)
		*ret = (a->magnitude > b->magnitude) - (a->magnitude < b->magnitude);
	else
		*ret = a->kind == TUPLE_STRING ? 1 : -1;
	return STATUS_OK;
}

/* The front scalars of two walks that have been equal so far, from element `shared` on. */
static enum status
compare_fronts(struct walk *a, struct walk *b, size_t shared, struct arena *scratch, int *ret)
{
	struct leaf_value va, vb;
	struct tuple_reader ra, rb;
	struct tuple_elem ea, eb;

	TRY(take_scalar(a, &va));
	TRY(take_scalar(b, &vb));
	ra = tuple_reader(a->last);
	rb = tuple_reader(b->last);
	*ret = 0;
	for (size_t i = 0; ra.rest.len && rb.rest.len; i++) {
		TRY(tuple_next(&ra, &ea));
		TRY(tuple_next(&rb, &eb));
		if (i >= shared)
			TRY(compare_elements(&ea, &eb, scratch, ret));
		if (*ret)
			return STATUS_OK;
	}
	if (rb.rest.len) {
		TRY(tuple_next(&rb, &eb));
		return compare_with_container(&va, &eb, ret);
	}
	if (ra.rest.len) {
		TRY(tuple_next(&ra, &ea));
		TRY(compare_with_container(&vb, &ea, ret));
		*ret = -*ret;
		return STATUS_OK;
	}
	return compare_scalars(&va, &vb, scratch, ret);
}

/*
 * Walks over the leaves of both. As long as all has been equal the two have the same shape; where
 * one of them then leaves a container that the other stays in, it was the shorter one.
 */
enum status
collate_compare(const struct leaf_value *a, const struct leaf_value *b, struct arena *scratch,
		int *ret)
{
	struct walk wa = { .v = *a };
	struct walk wb = { .v = *b };
	enum leaf_kind ka, kb;
	size_t sa, sb;

	TRY(leaf_kind(a, &ka));
	TRY(leaf_kind(b, &kb));
	*ret = (ka > kb) - (ka < kb);
	while (*ret == 0 && wa.v.count && wb.v.count) {
		TRY(shared_elements(&wa, &sa));
		TRY(shared_elements(&wb, &sb));
		*ret = (sa > sb) - (sa < sb);
		if (*ret == 0)
			TRY(compare_fronts(&wa, &wb, sa, scratch, ret));
	}
	if (*ret == 0 && wa.v.count != wb.v.count) {
		/* One has ended before the other; or it is a document without leaves, and the other
		 * perhaps `{}`. */
		const struct walk *longer = wa.v.count ? &wa : &wb;

		if (longer->last.ptr || leaf_has_children(&longer->v))
			*ret = longer == &wa ? 1 : -1;
	}
	return STATUS_OK;
}

/* ---- Sameness ---- */

static enum status
same_scalars(const struct leaf_value *a, const struct leaf_value *b, bool *ret)
{
	enum leaf_kind ka, kb;
	struct leaf_number na, nb;

	*ret = str_eq(a->leaves[0].value, b->leaves[0].value);
	if (*ret)
		return STATUS_OK;
	TRY(leaf_kind(a, &ka));
	TRY(leaf_kind(b, &kb));
	if (ka != LEAF_NUMBER || kb != LEAF_NUMBER)
		return STATUS_OK;
	/* 1.10 and 1.1 are spelled differently. */
	TRY(leaf_number(a, &na));
	TRY(leaf_number(b, &nb));
	*ret = (na.form == LEAF_NUMBER_DOUBLE) == (nb.form == LEAF_NUMBER_DOUBLE) &&
	       leaf_number_cmp(&na, &nb) == 0;
	return STATUS_OK;
}

enum status
collate_same(const struct leaf_value *a, const struct leaf_value *b, bool *ret)
{
	*ret = a->count == b->count;
	for (size_t i = 0; *ret && i < a->count; i++) {
		struct leaf_value va = { a->leaves + i, 1, a->leaves[i].key.len };
		struct leaf_value vb = { b->leaves + i, 1, b->leaves[i].key.len };

		*ret = str_eq(str_skip(a->leaves[i].key, a->at), str_skip(b->leaves[i].key, b->at));
		if (*ret)
			TRY(same_scalars(&va, &vb, ret));
	}
	return STATUS_OK;
}

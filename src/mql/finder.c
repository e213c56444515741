#include "mql/finder.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"

/* A document that was looked in. */
struct mql_finder_document {
	const char *at;
	bool unfit;      /* there was no memory for its index */
	uint32_t *slots; /* by names, where an element begins; 0: none. NULL: no index yet */
	size_t slot_count;
};

enum {
	FIRST_DOCUMENTS = 8,
};

void
mql_finder_fini(struct mql_finder *f)
{
	arena_free(f->own);
	*f = (struct mql_finder){ .of = f->of };
}

/* ---- Documents ---- */

static struct mql_finder_document **
document_slot(const struct mql_finder *f, const char *at)
{
	size_t i = hash_keyed((uint64_t)(uintptr_t)at, STR("")) & (f->slot_count - 1);

	assert(f->count < f->slot_count);
	while (f->slots[i] && f->slots[i]->at != at)
		i = (i + 1) & (f->slot_count - 1);
	return &f->slots[i];
}

/* Makes room for one more document. False: there is no memory. */
static bool
documents_grow(struct mql_finder *f)
{
	size_t count = f->slot_count;
	struct mql_finder_document **old = f->slots, **slots;

	if (2 * (f->count + 1) <= count)
		return true;
	if (!f->own) {
		f->own = arena_new(arena_limit_bytes(f->of));
		if (!f->own)
			return false;
		arena_set_part(f->own, arena_part(f->of));
	}
	slots = arena_zalloc(f->own, hash_slots(count + FIRST_DOCUMENTS) *
					     sizeof(struct mql_finder_document *));
	if (!slots)
		return false;
	f->slots = slots;
	f->slot_count = hash_slots(count + FIRST_DOCUMENTS);
	for (size_t i = 0; i < count; i++)
		if (old[i])
			*document_slot(f, old[i]->at) = old[i];
	return true;
}

/* What is noted of a document. NULL: nothing was until now, or there is no memory. */
static struct mql_finder_document *
document_find(struct mql_finder *f, const char *at)
{
	struct mql_finder_document **slot;

	if (!documents_grow(f))
		return NULL;
	slot = document_slot(f, at);
	if (*slot)
		return *slot;
	*slot = arena_zalloc(f->own, sizeof(**slot));
	if (*slot) {
		(*slot)->at = at;
		f->count++;
	}
	return NULL;
}

/* ---- Members ---- */

/* The member whose element begins there. */
static struct bson_element
member_at(struct str document, uint32_t offset)
{
	struct bson_element e = { 0 };
	struct bson_iter i;

	bson_iter_begin(&i, document);
	i.at = document.ptr + offset;
	(void)bson_iter_read(&i, &e);
	return e;
}

/* The slot of the first member of that name, or the empty one where it would be. */
static uint32_t *
member_slot(const struct mql_finder_document *d, struct str document, struct str name,
	    struct bson_element *ret)
{
	size_t i = hash_keyed(0, name) & (d->slot_count - 1);

	for (; d->slots[i]; i = (i + 1) & (d->slot_count - 1)) {
		*ret = member_at(document, d->slots[i]);
		if (str_eq(ret->name, name))
			break;
	}
	return &d->slots[i];
}

static enum status
document_index(struct mql_finder *f, struct mql_finder_document *d, struct str document)
{
	size_t count = bson_count(document);
	struct bson_element e, other;
	struct bson_iter i;

	TRY(step_count_bytes(document.len));
	d->slots = arena_zalloc(f->own, hash_slots(count) * sizeof(*d->slots));
	d->unfit = !d->slots;
	if (d->unfit)
		return STATUS_OK;
	d->slot_count = hash_slots(count);
	for (bson_iter_begin(&i, document); bson_iter_read(&i, &e);) {
		uint32_t *slot = member_slot(d, document, e.name, &other);

		TRY(step_count(1));
		/* Of a name that is there twice the first one counts. */
		if (!*slot)
			*slot = (uint32_t)(e.bytes.ptr - document.ptr);
	}
	return STATUS_OK;
}

enum status
mql_finder_look_up(struct mql_finder *f, struct str document, struct str name,
		   struct bson_value *ret, bool *ret_there)
{
	struct mql_finder_document *d = document_find(f, document.ptr);
	struct bson_element e;

	if (d && !d->slots && !d->unfit)
		TRY(document_index(f, d, document));
	if (!d || d->unfit) {
		*ret_there = bson_find(document, name, ret);
		return step_count_bytes(document.len);
	}
	*ret_there = *member_slot(d, document, name, &e) != 0;
	if (*ret_there)
		*ret = e.value;
	return step_count(1);
}

enum status
mql_finder_path(struct mql_finder *f, struct str document, struct str path, struct bson_value *ret,
		bool *ret_there)
{
	struct bson_value v = BSON_OF_DOCUMENT(document);
	bool more;

	do {
		more = memchr(path.ptr, '.', path.len) != NULL;
		*ret_there = bson_is_container(&v);
		if (*ret_there)
			TRY(mql_finder_find(f, bson_text(&v), str_cut(&path, '.'), &v, ret_there));
	} while (*ret_there && more);
	if (*ret_there)
		*ret = v;
	return STATUS_OK;
}

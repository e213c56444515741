/* Makes the entries of a document, and reads entries. */
#include "index/engine/entry.h"

#include <assert.h>

#include "catalog/format.h"
#include "catalog/keys.h"
#include "loop/sort.h"

/* ---- Making ---- */

void
index_making_flags(struct index_making *m, unsigned flags)
{
	assert(!(flags & ~m->def->form->entry_flags));
	buf_clear(&m->value);
	tuple_put_u64(&m->value, INDEX_ENTRY_FORMAT);
	tuple_put_u64(&m->value, flags);
}

enum status
index_making_add(struct index_making *m)
{
	struct index_pairs *pairs = m->pairs;
	struct kv_pair *pair;

	TRY(catalog_key_status(&m->key));
	TRY(buf_status(&m->value));
	TRY(catalog_array_grow(m->w->arena, (void **)&pairs->pairs, sizeof(*pair), pairs->count,
			       &m->cap));
	pair = &pairs->pairs[pairs->count];
	pair->key = buf_dup(&m->key, m->w->arena);
	pair->value = buf_dup(&m->value, m->w->arena);
	if (!pair->key.ptr || !pair->value.ptr)
		return STATUS_LIMIT;
	pairs->count++;
	return STATUS_OK;
}

static enum status
compare_pairs(const void *arg, const void *a, const void *b, int *ret)
{
	const struct kv_pair *x = a, *y = b;

	(void)arg;
	TRY(sort_compare_strs(x->key, y->key, ret));
	return *ret ? STATUS_OK : sort_compare_strs(x->value, y->value, ret);
}

/* In key order, each key once: 1 and 1.0 in one array are one entry. */
static enum status
sort_pairs(struct index_pairs *pairs, struct arena *arena)
{
	size_t kept = 0;

	TRY(sort_items(pairs->pairs, pairs->count, sizeof(*pairs->pairs), compare_pairs, NULL,
		       arena));
	for (size_t i = 0; i < pairs->count; i++)
		if (i == 0 || !str_eq(pairs->pairs[i].key, pairs->pairs[kept - 1].key))
			pairs->pairs[kept++] = pairs->pairs[i];
	pairs->count = kept;
	return STATUS_OK;
}

enum status
index_entries_make(const struct catalog_db *db, const struct index_def *def,
		   const struct index_source *source, struct index_work *w, struct index_pairs *ret)
{
	struct index_making m = {
		.db = db,
		.def = def,
		.source = source,
		.w = w,
		.pairs = ret,
		.key = CATALOG_KEY_INIT,
		.value = BUF_INIT(KV_LIMIT_VALUE_BYTES),
	};
	enum status status;

	*ret = (struct index_pairs){ 0 };
	status = def->form->make_entries(&m);
	buf_release(&m.key);
	buf_release(&m.value);
	return status == STATUS_OK ? sort_pairs(ret, w->arena) : status;
}

/* ---- Reading ---- */

/* An id that is a digest in the key is in the value: ptr NULL. */
static enum status
entry_parse_id(const struct index_form *form, struct tuple_reader *r, struct arena *arena,
	       struct str *ret)
{
	char code = form->id_kind == TUPLE_BYTES ? TUPLE_CODE_BYTES : TUPLE_CODE_STRING;
	struct tuple_elem e;

	if (r->rest.len && r->rest.ptr[0] == code)
		return catalog_next_text(r, form->id_kind, arena, false, ret);
	*ret = (struct str){ NULL, 0 };
	return tuple_next(r, &e) == STATUS_OK && e.kind == TUPLE_BYTES ? STATUS_OK : STATUS_CORRUPT;
}

enum status
index_entry_parse(const struct index_def *def, struct str tail, struct str value,
		  struct arena *arena, struct index_entry *ret)
{
	struct tuple_reader r = tuple_reader(tail);
	size_t components = def->column_count + (def->flags & INDEX_PARTITIONED ? 1 : 0);
	uint64_t format, flags;
	struct tuple_elem e;
	struct err err;

	for (size_t i = 0; i < components; i++)
		if (tuple_next(&r, &e) != STATUS_OK || e.kind != TUPLE_BYTES)
			return STATUS_CORRUPT;
	ret->key = tail;
	TRY(entry_parse_id(def->form, &r, arena, &ret->id));
	if (r.rest.len)
		return STATUS_CORRUPT;
	r = tuple_reader(value);
	TRY(catalog_format_next(&r, "entry of an index", INDEX_ENTRY_FORMAT, &format, &err));
	TRY(tuple_next_u64(&r, &flags));
	if (flags & ~(uint64_t)def->form->entry_flags ||
	    !(flags & INDEX_ENTRY_LONG_ID) != !!ret->id.ptr)
		return STATUS_CORRUPT;
	if (flags & INDEX_ENTRY_LONG_ID)
		TRY(catalog_next_text(&r, TUPLE_STRING, arena, false, &ret->id));
	ret->cut = flags & INDEX_ENTRY_CUT;
	return def->form->parse_values(def, &r, flags, arena, ret);
}

/* ---- Several entries of one document ---- */

enum status
index_entry_is_first(const struct catalog_db *db, const struct index_def *def,
		     const struct index_source *source, const struct index_range *ranges,
		     size_t count, bool reverse, struct str key, struct index_work *w, bool *ret)
{
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;
	struct index_pairs pairs;
	size_t range = 0;

	*ret = true;
	if (!(def->flags & INDEX_MULTIKEY) && !index_def_arrays(def))
		return STATUS_OK;
	index_key_entries(&prefix, db, def->number);
	TRY(catalog_key_status(&prefix));
	TRY(index_entries_make(db, def, source, w, &pairs));
	for (size_t i = 0; i < pairs.count; i++) {
		struct str at = pairs.pairs[reverse ? pairs.count - 1 - i : i].key;
		const struct index_range *r = NULL;

		/* Ranges are in the order of their keys, whichever way they are read. */
		for (; range < count; range++) {
			r = &ranges[reverse ? count - 1 - range : range];
			if (reverse ? str_cmp(at, r->begin) >= 0 : str_cmp(at, r->end) < 0)
				break;
		}
		if (range == count)
			break;
		if (str_cmp(at, r->begin) >= 0 && str_cmp(at, r->end) < 0) {
			*ret = str_eq(str_skip(at, prefix.len), key);
			break;
		}
	}
	return STATUS_OK;
}

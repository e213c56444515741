/*
 * Answers from an index alone: where it has all fields that a query looks at, its entries stand for
 * the documents. That is so for fields of documents themselves, at which none has ever had an
 * array.
 */
#include <endian.h>

#include "door/mongo/plan/plan_int.h"
#include "index/plan/cover.h"

bool
plan_covers(const struct choosing *x, const struct candidate *one)
{
	const struct cover columns = { one->names, one->def->column_count, { 0 } };
	const struct plan_cover *cover = x->ask->cover;
	struct bson_element e;
	struct bson_iter i;

	if (!cover || !(one->def->flags & INDEX_COVERING) || one->arrays)
		return false;
	for (size_t at = 0; at < columns.count; at++)
		if (memchr(one->names[at].ptr, '.', one->names[at].len))
			return false;
	/* Operators around conditions are no fields, so nothing covers them. */
	for (bson_iter_begin(&i, cover->filter); bson_iter_read(&i, &e);)
		if (!cover_has(&columns, e.name))
			return false;
	return cover_has_all(&columns, cover->fields, cover->count);
}

size_t
plan_distinct_columns(const struct choosing *x, const struct candidate *one)
{
	const struct plan_cover *cover = x->ask->cover;
	size_t found = 0, looked = bson_count(cover->filter);

	/* Texts that a collation takes for equal may be wanted each. */
	if (!cover->distinct.ptr || one->cuts || one->def->hashed || one->def->collation.len ||
	    x->ask->texts)
		return 0;
	for (size_t at = 0; at < one->def->column_count; at++) {
		found += bson_find(cover->filter, one->names[at], NULL);
		if (str_eq(one->names[at], cover->distinct))
			return found == looked ? at + 1 : 0;
		/* Of other values in front of it, each has entries of its own. */
		if (at >= one->points || one->columns[at].count != 1)
			return 0;
	}
	return 0;
}

void
plan_columns_choose(const struct plan_cover *cover, const struct candidate *one,
		    struct plan_columns *ret)
{
	const struct cover fields = { cover->fields, cover->count, { 0 } };

	*ret = (struct plan_columns){ 0 };
	for (size_t at = 0; at < one->def->column_count; at++) {
		struct str name = one->names[at];

		if (!cover_has(&fields, name) && !bson_find(cover->filter, name, NULL))
			continue;
		/* A name of BSON has its NUL behind it. */
		ret->names[at] = str_of(name.ptr, name.len + 1);
		ret->bytes += ret->names[at].len;
		ret->count = at + 1;
	}
}

static bool
cover_add(struct plan_cover *cover, struct str name)
{
	if (cover->count == INDEX_COLUMNS || memchr(name.ptr, '.', name.len))
		return false;
	cover->fields[cover->count++] = name;
	return true;
}

bool
plan_cover_projection(struct plan_cover *cover, struct str projection, struct str sort)
{
	bool id = true, any = false;
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, projection); bson_iter_read(&i, &e);) {
		bool is_id = str_eq(e.name, STR("_id"));

		if (!bson_is_number(&e.value) && e.value.type != BSON_BOOL)
			return false;
		if (is_id)
			id = bson_is_true(&e.value);
		else if (!bson_is_true(&e.value) || !cover_add(cover, e.name))
			return false;
		any = any || bson_is_true(&e.value);
	}
	for (bson_iter_begin(&i, sort); bson_iter_read(&i, &e);)
		if (!cover_add(cover, e.name))
			return false;
	return any && (!id || cover_add(cover, STR("_id")));
}

void
plan_cover_distinct(struct plan_cover *cover, struct str *key, struct str filter)
{
	*cover = (struct plan_cover){
		.filter = filter, .fields = key, .count = 1, .distinct = *key
	};
}

enum status
plan_covered_document(const struct plan_columns *columns, struct str values, struct arena *arena,
		      struct str *ret)
{
	char *out = arena_bytes(arena, BSON_EMPTY_BYTES + columns->bytes + values.len), *at;
	struct bson_element e;
	struct bson_iter i;
	uint32_t len;

	if (!out)
		return STATUS_LIMIT;
	at = out + sizeof(len);
	bson_iter_begin(&i, values);
	for (size_t k = 0; k < columns->count && bson_iter_read(&i, &e); k++) {
		const struct str *name = &columns->names[k];
		struct str value = str_skip(e.bytes, 1 + e.name.len + 1);

		if (!name->len || e.name.len)
			continue;
		*at++ = e.bytes.ptr[0];
		memcpy(at, name->ptr, name->len);
		at += name->len;
		if (value.len)
			memcpy(at, value.ptr, value.len);
		at += value.len;
	}
	*at++ = 0;
	*ret = str_of(out, (size_t)(at - out));
	len = htole32((uint32_t)ret->len);
	memcpy(out, &len, sizeof(len));
	return STATUS_OK;
}

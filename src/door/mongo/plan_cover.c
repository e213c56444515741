/*
 * Answers from an index alone: where it has all fields that a query looks at, its entries stand for
 * the documents. That is so for fields of documents themselves, at which none has ever had an
 * array.
 */
#include "door/mongo/index.h"
#include "door/mongo/plan_int.h"

static bool
index_has_field(const struct index_def *def, struct str name)
{
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, index_key_of(def)); bson_iter_read(&i, &e);)
		if (str_eq(e.name, name))
			return true;
	return false;
}

bool
plan_covers(const struct choosing *x, const struct index_def *def)
{
	const struct plan_cover *cover = x->ask->cover;
	struct bson_element e;
	struct bson_iter i;

	if (!cover || !(def->flags & INDEX_COVERING) || plan_arrays_of(x, def))
		return false;
	for (bson_iter_begin(&i, index_key_of(def)); bson_iter_read(&i, &e);)
		if (memchr(e.name.ptr, '.', e.name.len))
			return false;
	/* Operators around conditions are no fields, so nothing covers them. */
	for (bson_iter_begin(&i, cover->filter); bson_iter_read(&i, &e);)
		if (!index_has_field(def, e.name))
			return false;
	for (size_t k = 0; k < cover->count; k++)
		if (!index_has_field(def, cover->fields[k]))
			return false;
	return true;
}

enum status
plan_covered_document(const struct index_def *def, struct str values, struct arena *arena,
		      struct str *ret)
{
	AUTO(buf_release) struct buf out = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct bson_element key, value;
	struct bson_iter keys, all;
	struct bson_builder b;

	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_iter_begin(&keys, index_key_of(def));
	bson_iter_begin(&all, values);
	while (bson_iter_read(&keys, &key) && bson_iter_read(&all, &value))
		if (!value.name.len)
			bson_put(&b, key.name, &value.value);
	bson_end(&b);
	TRY(buf_status(&out));
	*ret = arena_dup(arena, buf_str(&out));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

/* Finds the values of columns in a document, without building anything of it. */
#include "index/json/source.h"

#include <assert.h>

#include "doc/doc_int.h"

/* "_id" and "_rev", which are no part of the body. */
static bool
source_is_special(const struct index_source *source, const struct index_column *column,
		  struct str *ret)
{
	struct str name;

	assert(column->path_count); /* as definitions are parsed */
	name = column->path[0];
	if (column->path_count != 1 || name.len == 0 || name.ptr[0] != '_')
		return false;
	*ret = (struct str){ NULL, 0 };
	if (str_eq(name, STR("_id")))
		*ret = source->id;
	else if (str_eq(name, STR("_rev")))
		*ret = source->rev;
	else
		return false;
	return true;
}

static enum status
source_find_packed(struct str packed, const struct index_column *column, struct index_value *ret)
{
	const struct doc_pointer pointer = { column->path, column->path_count };
	enum status status = doc_packed_find(packed, &pointer, &ret->text);

	ret->found = status == STATUS_OK;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
source_find_in_leaves(const struct index_source *source, const struct index_column *column,
		      struct index_value *ret)
{
	AUTO(buf_release) struct buf element = BUF_INIT((size_t)2 * KV_LIMIT_KEY_BYTES);
	struct leaf_value v = { source->leaves, source->count, 0 };

	for (size_t i = 0; i < column->path_count; i++) {
		enum leaf_kind kind;
		uint64_t position;

		TRY(leaf_kind(&v, &kind));
		buf_clear(&element);
		if (kind == LEAF_OBJECT)
			tuple_put_str(&element, column->path[i]);
		else if (kind == LEAF_ARRAY && doc_pointer_position(column->path[i], &position))
			tuple_put_u64(&element, position);
		else
			return STATUS_OK;
		/* No leaf has a longer path. */
		if (buf_status(&element) == STATUS_LIMIT)
			return STATUS_OK;
		TRY(buf_status(&element));
		if (!leaf_find(&v, buf_str(&element), &v))
			return STATUS_OK;
	}
	ret->found = true;
	ret->leaf = v;
	return STATUS_OK;
}

enum status
index_json_find(const struct index_source *source, const struct index_column *column,
		struct index_work *w, struct index_value *ret)
{
	struct str special;

	*ret = (struct index_value){ 0 };
	if (source_is_special(source, column, &special)) {
		ret->found = special.ptr != NULL;
		return ret->found ? leaf_of_string(special, w->arena, &ret->leaf) : STATUS_OK;
	}
	if (!source->body.ptr) {
		TRY(index_count(w, 1));
		return source_find_in_leaves(source, column, ret);
	}
	TRY(index_count_bytes(w, source->body.len));
	return source_find_packed(source->body, column, ret);
}

enum status
index_json_matches(const struct index_source *source, const struct index_def *def,
		   struct index_work *w, bool *ret)
{
	const struct index_json_filter *filter = def->opened;
	struct selector_special specials[2] = { { .name = STR("_id") }, { .name = STR("_rev") } };
	struct selector_doc doc = { source->leaves, source->count, specials, 1 };
	struct kv_pair *leaves;

	*ret = true;
	if (!filter)
		return STATUS_OK;
	TRY(leaf_of_string(source->id, w->arena, &specials[0].value));
	if (source->rev.ptr) {
		TRY(leaf_of_string(source->rev, w->arena, &specials[1].value));
		doc.specials_count = 2;
	}
	if (source->body.ptr) {
		if (filter->whole)
			TRY(doc_unpack(source->body, w->arena, &leaves, &doc.count));
		else
			TRY(doc_packed_leaves(source->body, filter->members, filter->members_count,
					      w->arena, &leaves, &doc.count));
		doc.leaves = leaves;
	}
	return selector_match(filter->selector, &doc, w, ret);
}

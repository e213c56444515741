#include "index/bson/form.h"

#include "bson/json.h"
#include "bson/order.h"
#include "index/bson/entry.h"

static bool
bson_form_is_whole(struct str stored)
{
	return bson_check(stored, NULL) == STATUS_OK;
}

static enum status
bson_form_open(struct index_def *def, bool is_current, struct arena *arena, struct err *err)
{
	struct index_bson *opened = arena_zalloc(arena, sizeof(*opened));
	struct mql q = { .arena = arena, .err = err };
	struct mql_match *match;

	if (!opened)
		return STATUS_LIMIT;
	def->opened = opened;
	if (def->collation.len && is_current) {
		TRY(mql_collation_new(&q, def->collation, &opened->collating));
		if (!opened->collating)
			return err_set(err, STATUS_INVALID,
				       "An index has no collation that orders texts by bytes.");
	}
	if (!def->filter.ptr)
		return STATUS_OK;
	q.texts = mql_collation_texts(opened->collating);
	TRY(mql_match_compile(&q, def->filter, &match));
	opened->match = match;
	return STATUS_OK;
}

static void
bson_form_close(void *opened)
{
	mql_collation_free(((struct index_bson *)opened)->collating);
}

/* The document says all of a collation: two of them are the same if their bytes are. */
static enum status
bson_form_check_collation(const struct index_def *def, struct err *err)
{
	const struct index_bson *opened = def->opened;

	if (str_eq(mql_collation_document(opened->collating), def->collation))
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "The collation of an index has all of its members, in order.");
}

static void
bson_form_draw(struct buf *ret, struct str document)
{
	bson_json_write(ret, document, BSON_JSON_RELAXED);
}

/* The bytes of a key are no text. */
static void
bson_form_draw_id(struct buf *ret, struct str id)
{
	buf_append_byte(ret, '"');
	buf_append_hex(ret, id);
	buf_append_byte(ret, '"');
}

/* The first member of that name. */
static bool
find_member(struct str document, struct str name, struct bson_element *ret)
{
	struct bson_iter i;

	for (bson_iter_begin(&i, document); bson_iter_read(&i, ret);)
		if (str_eq(ret->name, name))
			return true;
	return false;
}

/* True if the members are the same that the paths of the columns begin with. */
static enum status
bson_form_has_same_columns(const struct index_def *def, const struct index_source *before,
			   const struct index_source *after, struct index_work *w, bool *ret)
{
	*ret = false;
	TRY(index_count_bytes(w, before->body.len + after->body.len));
	for (size_t i = 0; i < def->column_count; i++) {
		struct str name = def->columns[i].path[0];
		struct bson_element a = { 0 }, b = { 0 };
		bool has_a = find_member(before->body, name, &a);
		bool has_b = find_member(after->body, name, &b);

		if (has_a != has_b || (has_a && !str_eq(a.bytes, b.bytes)))
			return STATUS_OK;
	}
	*ret = true;
	return STATUS_OK;
}

/* `texts` is a struct bson_texts. */
static enum status
bson_form_compare(const void *a, const void *b, const void *texts, struct index_work *w, int *ret)
{
	(void)w;
	*ret = bson_compare_values(a, b, texts);
	return STATUS_OK;
}

const struct index_form index_bson_form = {
	.flag = INDEX_BSON,
	.entry_flags = INDEX_ENTRY_CUT | INDEX_ENTRY_BSON,
	.format = INDEX_FORMAT_MORE,
	.collation_bytes = INDEX_COLLATION_BYTES,
	.id_kind = TUPLE_BYTES,
	.check_collation = bson_form_check_collation,
	.is_whole = bson_form_is_whole,
	.open = bson_form_open,
	.close = bson_form_close,
	.draw = bson_form_draw,
	.draw_id = bson_form_draw_id,
	.compare = bson_form_compare,
	.put_component = index_bson_component_put,
	.has_same_columns = bson_form_has_same_columns,
	.make_entries = index_bson_entries,
	.find_values = index_bson_values,
	.parse_values = index_bson_parse_values,
};

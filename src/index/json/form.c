#include "index/json/form.h"

#include <assert.h>

#include "catalog/keys.h"
#include "doc/json.h"
#include "index/collate.h"
#include "index/engine/component.h"
#include "index/engine/entry.h"
#include "index/json/component.h"
#include "index/json/source.h"

static enum status
json_form_open(struct index_def *def, bool is_current, struct arena *arena, struct err *err)
{
	struct index_json_filter *filter = arena_zalloc(arena, sizeof(*filter));
	struct index_work w = { .arena = arena };
	struct selector *selector;
	struct doc_member *members;
	struct str *names;
	size_t count;

	(void)is_current;
	if (!filter)
		return STATUS_LIMIT;
	TRY(selector_compile(def->filter, &w, &selector, NULL, err));
	TRY(selector_members(selector, arena, &names, &count, &filter->whole));
	members = arena_alloc(arena, (count + 1) * sizeof(*members));
	if (!members)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		TRY(doc_member_init(names[i], arena, &members[i]));
	filter->selector = selector;
	filter->members = members;
	filter->members_count = count;
	def->opened = filter;
	return STATUS_OK;
}

static enum status
json_form_put_component(struct buf *key, const struct index_def *def, size_t column,
			const void *value, struct index_work *w, bool *ret_cut)
{
	const struct leaf_value *leaf = value;
	const struct index_value found = { .found = true, .leaf = *leaf };

	return index_json_component_put(key, def, column, &found, w, ret_cut);
}

static enum status
json_form_compare(const void *a, const void *b, const void *texts, struct index_work *w, int *ret)
{
	(void)texts;
	return collate_compare(a, b, w, ret);
}

static bool
value_is_same(const struct index_value *a, const struct index_value *b)
{
	if (!a->found || !b->found)
		return a->found == b->found;
	if (a->text.ptr || b->text.ptr)
		return a->text.ptr && b->text.ptr && str_eq(a->text, b->text);
	if (a->leaf.count != b->leaf.count)
		return false;
	for (size_t i = 0; i < a->leaf.count; i++) {
		const struct kv_pair *x = &a->leaf.leaves[i], *y = &b->leaf.leaves[i];

		if (!str_eq(x->value, y->value) ||
		    !str_eq(str_skip(x->key, a->leaf.at), str_skip(y->key, b->leaf.at)))
			return false;
	}
	return true;
}

static enum status
json_form_has_same_columns(const struct index_def *def, const struct index_source *before,
			   const struct index_source *after, struct index_work *w, bool *ret)
{
	struct index_value a, b;

	*ret = false;
	for (size_t i = 0; i < def->column_count; i++) {
		TRY(index_json_find(before, &def->columns[i], w, &a));
		TRY(index_json_find(after, &def->columns[i], w, &b));
		if (!value_is_same(&a, &b))
			return STATUS_OK;
	}
	*ret = true;
	return STATUS_OK;
}

/* ---- Entries ---- */

/* One component of one column, encoded, and the value that it is of. */
struct json_component {
	struct str encoded;
	struct str text; /* JSON; ptr NULL: there is no value, or nobody wants it */
	bool cut;
};

/* What the entries of one document are made of. */
struct json_making {
	struct index_making *m;
	struct index_value values[INDEX_COLUMNS];
	struct json_component columns[INDEX_COLUMNS];
	size_t many; /* the column with several components; or the number of columns */
};

/* The JSON text of a value, for the entry's own value. */
static enum status
make_text(const struct index_making *m, const struct index_value *v, struct str *ret)
{
	AUTO(buf_release) struct buf text = BUF_INIT(INDEX_PAYLOAD_BYTES + 1);
	enum status status;

	*ret = (struct str){ NULL, 0 };
	if (!v->found || v->text.ptr || !(m->def->flags & INDEX_COVERING)) {
		*ret = v->text;
		return STATUS_OK;
	}
	status = leaf_write(&v->leaf, &text);
	if (buf_status(&text) == STATUS_LIMIT) {
		/* A text of this length is left out, whatever is in it. */
		char *longer = arena_bytes(m->w->arena, INDEX_PAYLOAD_BYTES + 1);

		*ret = str_of(longer, INDEX_PAYLOAD_BYTES + 1);
		return longer ? STATUS_OK : STATUS_LIMIT;
	}
	TRY(status);
	return arena_copy(m->w->arena, buf_str(&text), ret);
}

static enum status
make_component(struct json_making *j, size_t column, const struct index_value *v)
{
	struct json_component *made = &j->columns[column];
	struct index_making *m = j->m;

	*made = (struct json_component){ 0 };
	buf_clear(&m->key);
	TRY(index_json_component_put(&m->key, m->def, column, v, m->w, &made->cut));
	TRY(arena_copy(m->w->arena, buf_str(&m->key), &made->encoded));
	return make_text(m, v, &made->text);
}

/* The value of an entry: what the key has lost. */
static void
make_value(struct json_making *j, bool cut, bool long_id)
{
	struct index_making *m = j->m;
	bool texts = m->def->flags & INDEX_COVERING;
	size_t bytes = 0;

	for (size_t i = 0; i < m->def->column_count; i++)
		bytes += j->columns[i].text.len;
	texts = texts && bytes <= INDEX_PAYLOAD_BYTES;
	index_making_flags(m, (cut ? INDEX_ENTRY_CUT : 0u) | (texts ? INDEX_ENTRY_TEXTS : 0u) |
				      (long_id ? INDEX_ENTRY_LONG_ID : 0u));
	if (long_id)
		tuple_put_str(&m->value, m->source->id);
	for (size_t i = 0; texts && i < m->def->column_count; i++) {
		if (j->columns[i].text.ptr)
			tuple_put_str(&m->value, j->columns[i].text);
		else
			tuple_put_null(&m->value);
	}
}

static enum status
make_entry(struct json_making *j)
{
	struct index_making *m = j->m;
	bool cut = false;

	index_key_entries(&m->key, m->db, m->def->number);
	if (m->def->flags & INDEX_PARTITIONED) {
		const char *colon = memchr(m->source->id.ptr, ':', m->source->id.len);

		assert(colon); /* json_form_make_entries() has looked */
		TRY(index_partition_put(
			&m->key, m->def,
			str_of(m->source->id.ptr, (size_t)(colon - m->source->id.ptr)), &cut));
	}
	for (size_t i = 0; i < m->def->column_count; i++) {
		buf_append_str(&m->key, j->columns[i].encoded);
		cut = cut || j->columns[i].cut;
	}
	make_value(j, cut, index_key_put_id(&m->key, m->def->form, m->source->id));
	return index_making_add(m);
}

/* ---- Several values ---- */

static enum status
make_element(struct json_making *j, const struct index_value *v)
{
	/* The components of the other columns were made before, and stay for all elements. */
	assert(j->many < j->m->def->column_count);
	TRY(make_component(j, j->many, v));
	return make_entry(j);
}

/* The elements of an array as a packed body writes it. */
static enum status
make_elements_of_text(struct json_making *j, struct str array)
{
	struct index_value v = { .found = true };
	AUTO(json_reader_release) struct json_reader r;
	enum json_token token;

	json_reader_init(&r, array, NULL);
	TRY(json_next(&r, &token));
	for (;;) {
		TRY(json_next(&r, &token));
		if (token == JSON_ARRAY_END)
			return STATUS_OK;
		TRY(json_skip(&r, token, &v.text));
		TRY(make_element(j, &v));
	}
}

static enum status
make_elements_of_leaves(struct json_making *j, const struct leaf_value *array)
{
	struct leaf_iter iter = { .rest = *array };
	struct index_value v = { .found = true };
	struct tuple_elem position;
	enum status status;

	while ((status = leaf_next(&iter, &position, &v.leaf)) == STATUS_OK)
		TRY(make_element(j, &v));
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* True if the value is an array, as far as its leaves or its text begin like one. */
static enum status
value_is_array(const struct index_value *v, bool *ret)
{
	enum leaf_kind kind;

	*ret = false;
	if (!v->found)
		return STATUS_OK;
	if (v->text.ptr) {
		*ret = v->text.len && v->text.ptr[0] == '[';
		return STATUS_OK;
	}
	TRY(leaf_kind(&v->leaf, &kind));
	*ret = kind == LEAF_ARRAY;
	return STATUS_OK;
}

/* Makes the component of a column, or leaves that to its elements. */
static enum status
make_column(struct json_making *j, size_t column)
{
	const struct index_def *def = j->m->def;
	const struct index_value missing = { 0 };
	const struct index_value *v = &j->values[column];
	bool is_array = false;

	if ((def->flags & INDEX_MULTIKEY) && j->many == def->column_count)
		TRY(value_is_array(v, &is_array));
	if (!is_array)
		return make_component(j, column, v);
	if (v->text.ptr ? str_eq(v->text, STR("[]")) : !leaf_has_children(&v->leaf))
		return make_component(j, column, &missing);
	j->many = column;
	return STATUS_OK;
}

static enum status
make_all(struct index_making *m)
{
	const struct index_def *def = m->def;
	struct json_making j = { .m = m, .many = def->column_count };
	bool matches;

	if ((def->flags & INDEX_PARTITIONED) && !memchr(m->source->id.ptr, ':', m->source->id.len))
		return STATUS_OK;
	for (size_t i = 0; i < def->column_count; i++) {
		TRY(index_json_find(m->source, &def->columns[i], m->w, &j.values[i]));
		if (!j.values[i].found && (def->flags & INDEX_SPARSE))
			return STATUS_OK;
	}
	TRY(index_json_matches(m->source, def, m->w, &matches));
	if (!matches)
		return STATUS_OK;
	for (size_t i = 0; i < def->column_count; i++)
		TRY(make_column(&j, i));
	if (j.many == def->column_count)
		return make_entry(&j);
	return j.values[j.many].text.ptr ? make_elements_of_text(&j, j.values[j.many].text)
					 : make_elements_of_leaves(&j, &j.values[j.many].leaf);
}

/* A body was read as JSON before it was stored, so what cannot be read in it is damage. */
static enum status
json_form_make_entries(struct index_making *m)
{
	enum status status = make_all(m);

	return status == STATUS_JSON_SYNTAX || status == STATUS_JSON_UTF8 ||
			       status == STATUS_JSON_DEPTH
		       ? STATUS_CORRUPT
		       : status;
}

static enum status
json_form_parse_values(const struct index_def *def, struct tuple_reader *r, uint64_t flags,
		       struct arena *arena, struct index_entry *ret)
{
	ret->has_texts = flags & INDEX_ENTRY_TEXTS;
	for (size_t i = 0; ret->has_texts && i < def->column_count; i++) {
		struct tuple_reader peek = *r;
		struct tuple_elem e;

		TRY(tuple_next_elem(&peek, &e));
		ret->texts[i] = (struct str){ NULL, 0 };
		if (e.kind == TUPLE_NULL)
			*r = peek;
		else
			TRY(catalog_next_text(r, TUPLE_STRING, arena, false, &ret->texts[i]));
	}
	return r->rest.len ? STATUS_CORRUPT : STATUS_OK;
}

const struct index_form index_json_form = {
	.entry_flags = INDEX_ENTRY_CUT | INDEX_ENTRY_TEXTS | INDEX_ENTRY_LONG_ID,
	.format = INDEX_FORMAT_LEAST,
	.id_kind = TUPLE_STRING,
	.has_revisions = true,
	.open = json_form_open,
	.draw = buf_append_str, /* a selector is kept as it was written */
	.draw_id = json_write_str,
	.compare = json_form_compare,
	.put_component = json_form_put_component,
	.has_same_columns = json_form_has_same_columns,
	.make_entries = json_form_make_entries,
	.parse_values = json_form_parse_values,
};

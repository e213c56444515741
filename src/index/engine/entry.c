/* Makes the entries of a document, and reads entries. */
#include "index/engine/entry.h"

#include <stdlib.h>

#include "catalog/format.h"
#include "catalog/keys.h"
#include "index/engine/component.h"

/* ---- Making ---- */

/* One component of one column, encoded, and the value that it is of. */
struct made_component {
	struct str encoded;
	struct str text; /* JSON; ptr NULL: there is no value, or nobody wants it */
	bool cut;
};

/* The entries of one document in one index while they are made. */
struct making {
	const struct index_def *def;
	const struct index_source *source;
	struct index_work *w;
	struct index_value values[INDEX_COLUMNS];
	struct made_component columns[INDEX_COLUMNS];
	size_t many; /* the column with several components; or the number of columns */
	struct made_component *several; /* of that column */
	size_t several_count;
	struct buf key;
	struct buf value;
};

/* The JSON text of a value, for the entry's own value. */
static enum status
make_text(struct making *m, const struct index_value *v, struct str *ret)
{
	AUTO(buf_release) struct buf text = BUF_INIT(INDEX_PAYLOAD_BYTES + 1);
	struct doc_assembler assembler;
	enum status status = STATUS_OK;

	*ret = (struct str){ NULL, 0 };
	if (!v->found || v->text.ptr || !(m->def->flags & INDEX_COVERING)) {
		*ret = v->text;
		return STATUS_OK;
	}
	doc_assemble_init(&assembler, &text);
	for (size_t i = 0; i < v->leaf.count && status == STATUS_OK; i++)
		status = doc_assemble_leaf(&assembler, str_skip(v->leaf.leaves[i].key, v->leaf.at),
					   v->leaf.leaves[i].value);
	if (status == STATUS_OK)
		status = doc_assemble_end(&assembler);
	doc_assemble_release(&assembler);
	if (buf_status(&text) == STATUS_LIMIT) {
		/* A text of this length is left out, whatever is in it. */
		char *longer = arena_bytes(m->w->arena, INDEX_PAYLOAD_BYTES + 1);

		*ret = str_of(longer, INDEX_PAYLOAD_BYTES + 1);
		return longer ? STATUS_OK : STATUS_LIMIT;
	}
	TRY(status);
	*ret = arena_dup(m->w->arena, buf_str(&text));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
make_component(struct making *m, size_t column, const struct index_value *v,
	       struct made_component *ret)
{
	*ret = (struct made_component){ 0 };
	buf_clear(&m->key);
	TRY(index_component_put(&m->key, m->def, column, v, m->w, &ret->cut));
	ret->encoded = arena_dup(m->w->arena, buf_str(&m->key));
	if (!ret->encoded.ptr)
		return STATUS_LIMIT;
	return make_text(m, v, &ret->text);
}

static int
compare_made(const void *a, const void *b)
{
	const struct made_component *x = a, *y = b;

	return str_cmp(x->encoded, y->encoded);
}

static enum status
make_one_of_several(struct making *m, size_t column, const struct index_value *v, size_t *cap)
{
	TRY(catalog_array_grow(m->w->arena, (void **)&m->several, sizeof(*m->several),
			       m->several_count, cap));
	TRY(make_component(m, column, v, &m->several[m->several_count]));
	m->several_count++;
	return STATUS_OK;
}

/* The elements of an array as a packed body writes it. */
static enum status
make_several_of_text(struct making *m, size_t column, struct str array)
{
	struct index_value v = { .found = true };
	enum json_token token;
	struct json_reader r;
	size_t cap = 0;
	enum status status;

	json_reader_init(&r, array, NULL);
	status = json_next(&r, &token);
	while (status == STATUS_OK && (status = json_next(&r, &token)) == STATUS_OK &&
	       token != JSON_ARRAY_END) {
		status = json_skip(&r, token, &v.text);
		if (status == STATUS_OK)
			status = make_one_of_several(m, column, &v, &cap);
	}
	json_reader_release(&r);
	return status;
}

static enum status
make_several_of_leaves(struct making *m, size_t column, const struct leaf_value *array)
{
	struct leaf_iter iter = { .rest = *array };
	struct index_value v = { .found = true };
	struct tuple_elem position;
	size_t cap = 0;
	enum status status;

	while ((status = leaf_next(&iter, &position, &v.leaf)) == STATUS_OK)
		TRY(make_one_of_several(m, column, &v, &cap));
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* The components of a column whose value is an array: one for each different element. */
static enum status
make_several(struct making *m, size_t column, const struct index_value *v)
{
	size_t kept = 0;

	if (v->text.ptr)
		TRY(make_several_of_text(m, column, v->text));
	else
		TRY(make_several_of_leaves(m, column, &v->leaf));
	if (m->several_count)
		qsort(m->several, m->several_count, sizeof(*m->several), compare_made);
	for (size_t i = 0; i < m->several_count; i++)
		if (i == 0 || compare_made(&m->several[i], &m->several[kept - 1]) != 0)
			m->several[kept++] = m->several[i];
	m->several_count = kept;
	return STATUS_OK;
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

static enum status
make_column(struct making *m, size_t column)
{
	const struct index_value missing = { 0 };
	const struct index_value *v = &m->values[column];
	bool is_array;

	if (!(m->def->flags & INDEX_MULTIKEY) || m->many < m->def->column_count)
		return make_component(m, column, v, &m->columns[column]);
	TRY(value_is_array(v, &is_array));
	if (!is_array)
		return make_component(m, column, v, &m->columns[column]);
	TRY(make_several(m, column, v));
	if (m->several_count == 0) /* an empty array is entered as nothing */
		return make_component(m, column, &missing, &m->columns[column]);
	m->many = column;
	return STATUS_OK;
}

/* The value of an entry: what the key has lost. */
static void
make_value(struct making *m, bool cut, bool long_id)
{
	bool texts = m->def->flags & INDEX_COVERING;
	size_t bytes = 0;

	for (size_t i = 0; i < m->def->column_count; i++)
		bytes += m->columns[i].text.len;
	texts = texts && bytes <= INDEX_PAYLOAD_BYTES;
	buf_clear(&m->value);
	tuple_put_u64(&m->value, INDEX_ENTRY_FORMAT);
	tuple_put_u64(&m->value, (cut ? INDEX_ENTRY_CUT : 0u) | (texts ? INDEX_ENTRY_TEXTS : 0u) |
					 (long_id ? INDEX_ENTRY_LONG_ID : 0u));
	if (long_id)
		tuple_put_str(&m->value, m->source->id);
	for (size_t i = 0; texts && i < m->def->column_count; i++) {
		if (m->columns[i].text.ptr)
			tuple_put_str(&m->value, m->columns[i].text);
		else
			tuple_put_null(&m->value);
	}
}

static enum status
make_pair(struct making *m, const struct catalog_db *db, size_t *cap, struct index_pairs *ret)
{
	struct kv_pair *pair;
	bool cut = false, long_id;

	index_key_entries(&m->key, db, m->def->number);
	if (m->def->flags & INDEX_PARTITIONED) {
		const char *colon = memchr(m->source->id.ptr, ':', m->source->id.len);

		TRY(index_partition_put(
			&m->key, m->def,
			str_of(m->source->id.ptr, (size_t)(colon - m->source->id.ptr)), &cut));
	}
	for (size_t i = 0; i < m->def->column_count; i++) {
		buf_append_str(&m->key, m->columns[i].encoded);
		cut = cut || m->columns[i].cut;
	}
	long_id = index_key_put_id(&m->key, m->source->id);
	TRY(catalog_key_status(&m->key));
	make_value(m, cut, long_id);
	TRY(buf_status(&m->value));
	TRY(catalog_array_grow(m->w->arena, (void **)&ret->pairs, sizeof(*ret->pairs), ret->count,
			       cap));
	pair = &ret->pairs[ret->count];
	pair->key = arena_dup(m->w->arena, buf_str(&m->key));
	pair->value = arena_dup(m->w->arena, buf_str(&m->value));
	if (!pair->key.ptr || !pair->value.ptr)
		return STATUS_LIMIT;
	ret->count++;
	return STATUS_OK;
}

static enum status
make_entries(struct making *m, const struct catalog_db *db, struct index_pairs *ret)
{
	size_t cap = 0;

	m->many = m->def->column_count;
	for (size_t i = 0; i < m->def->column_count; i++)
		TRY(make_column(m, i));
	if (m->many == m->def->column_count)
		return make_pair(m, db, &cap, ret);
	for (size_t i = 0; i < m->several_count; i++) {
		m->columns[m->many] = m->several[i];
		TRY(make_pair(m, db, &cap, ret));
	}
	return STATUS_OK;
}

enum status
index_entries_make(const struct catalog_db *db, const struct index_def *def,
		   const struct index_source *source, struct index_work *w, struct index_pairs *ret)
{
	struct making m = { .def = def, .source = source, .w = w };
	enum status status;
	bool matches;

	if (def->flags & INDEX_BSON) {
		struct index_refusal refusal;

		return index_bson_entries_make(db, def, source, w, ret, &refusal);
	}
	*ret = (struct index_pairs){ 0 };
	if ((def->flags & INDEX_PARTITIONED) && !memchr(source->id.ptr, ':', source->id.len))
		return STATUS_OK;
	for (size_t i = 0; i < def->column_count; i++) {
		TRY(index_source_find(source, &def->columns[i], w, &m.values[i]));
		if (!m.values[i].found && (def->flags & INDEX_SPARSE))
			return STATUS_OK;
	}
	TRY(index_source_matches(source, def, w, &matches));
	if (!matches)
		return STATUS_OK;
	m.key = CATALOG_KEY_INIT;
	m.value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	status = make_entries(&m, db, ret);
	buf_release(&m.key);
	buf_release(&m.value);
	return status;
}

/* ---- Reading ---- */

static enum status
entry_parse_texts(const struct index_def *def, struct tuple_reader *r, struct arena *arena,
		  struct index_entry *ret)
{
	for (size_t i = 0; i < def->column_count; i++) {
		struct tuple_reader peek = *r;
		struct tuple_elem e;

		TRY(tuple_next(&peek, &e));
		ret->texts[i] = (struct str){ NULL, 0 };
		if (e.kind == TUPLE_NULL)
			*r = peek;
		else
			TRY(catalog_next_text(r, TUPLE_STRING, arena, false, &ret->texts[i]));
	}
	return STATUS_OK;
}

/* What follows the key of an entry of a BSON index, and its value. */
static enum status
entry_parse_bson(struct tuple_reader key, struct str value, struct arena *arena,
		 struct index_entry *ret)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format, flags;
	struct err err;

	TRY(catalog_next_text(&key, TUPLE_BYTES, arena, false, &ret->id));
	TRY(catalog_format_next(&r, "entry of an index", INDEX_ENTRY_FORMAT, &format, &err));
	TRY(tuple_next_u64(&r, &flags));
	if (key.rest.len || flags & ~(uint64_t)(INDEX_ENTRY_CUT | INDEX_ENTRY_BSON) ||
	    bson_length(r.rest) != (flags & INDEX_ENTRY_BSON ? r.rest.len : 0))
		return STATUS_CORRUPT;
	ret->cut = flags & INDEX_ENTRY_CUT;
	ret->has_texts = false;
	ret->values = r.rest;
	return STATUS_OK;
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
	if (def->flags & INDEX_BSON)
		return entry_parse_bson(r, value, arena, ret);
	if (r.rest.len && r.rest.ptr[0] == CATALOG_KEY_STRINGS)
		TRY(catalog_next_text(&r, TUPLE_STRING, arena, false, &ret->id));
	else if (tuple_next(&r, &e) != STATUS_OK || e.kind != TUPLE_BYTES)
		return STATUS_CORRUPT;
	else
		ret->id = (struct str){ NULL, 0 };
	if (r.rest.len)
		return STATUS_CORRUPT;
	r = tuple_reader(value);
	TRY(catalog_format_next(&r, "entry of an index", INDEX_ENTRY_FORMAT, &format, &err));
	TRY(tuple_next_u64(&r, &flags));
	if (flags & ~(uint64_t)(INDEX_ENTRY_FLAGS & ~INDEX_ENTRY_BSON) ||
	    !(flags & INDEX_ENTRY_LONG_ID) != !!ret->id.ptr)
		return STATUS_CORRUPT;
	if (flags & INDEX_ENTRY_LONG_ID)
		TRY(catalog_next_text(&r, TUPLE_STRING, arena, false, &ret->id));
	ret->cut = flags & INDEX_ENTRY_CUT;
	ret->has_texts = flags & INDEX_ENTRY_TEXTS;
	if (ret->has_texts)
		TRY(entry_parse_texts(def, &r, arena, ret));
	return r.rest.len ? STATUS_CORRUPT : STATUS_OK;
}

enum status
index_entry_is_first(const struct catalog_db *db, const struct index_def *def,
		     const struct index_source *source, const struct index_range *range,
		     bool reverse, struct str key, struct index_work *w, bool *ret)
{
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;
	struct index_pairs pairs;

	*ret = true;
	if (!(def->flags & INDEX_MULTIKEY))
		return STATUS_OK;
	index_key_entries(&prefix, db, def->number);
	TRY(catalog_key_status(&prefix));
	TRY(index_entries_make(db, def, source, w, &pairs));
	for (size_t i = 0; i < pairs.count; i++) {
		const struct kv_pair *pair = &pairs.pairs[reverse ? pairs.count - 1 - i : i];

		if (str_cmp(pair->key, range->begin) < 0 || str_cmp(pair->key, range->end) >= 0)
			continue;
		*ret = str_eq(str_skip(pair->key, prefix.len), key);
		return STATUS_OK;
	}
	return STATUS_OK;
}

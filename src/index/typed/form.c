#include "index/typed/form.h"

#include <assert.h>
#include <stdio.h>

#include "base/quote.h"
#include "doc/json_value.h"
#include "index/engine/component.h"
#include "index/engine/entry.h"
#include "index/typed/filter.h"
#include "index/typed/order.h"

enum {
	RAW_BYTES = 512 * 1024, /* of a component before it is cut */
	PATH_NAMES = 2,         /* of a path that does not go into a document */
};

static const char *const parts[] = {
	[INDEX_TYPED_KEYS] = "keys",           [INDEX_TYPED_VALUES] = "values",
	[INDEX_TYPED_ENTRIES] = "entries",     [INDEX_TYPED_JSON] = "json",
	[INDEX_TYPED_JSON_TEXT] = "json text", [INDEX_TYPED_ORDER] = "order",
};

enum {
	PARTS = sizeof(parts) / sizeof(parts[0]),
};

/* ---- Paths ---- */

bool
index_typed_is_json(enum index_typed_part part)
{
	return part == INDEX_TYPED_JSON || part == INDEX_TYPED_JSON_TEXT;
}

bool
index_typed_is_single(enum index_typed_part part)
{
	return part == INDEX_TYPED_COLUMN || part == INDEX_TYPED_ORDER || index_typed_is_json(part);
}

bool
index_typed_steps_fit(enum index_typed_part part, const struct str *steps, size_t count)
{
	if (part == INDEX_TYPED_ORDER)
		return count == 1 && index_typed_order_is_known(steps[0]);
	return (count > 0) == index_typed_is_json(part);
}

bool
index_typed_same_origin(const struct index_typed_origin *a, const struct index_typed_origin *b)
{
	bool same = a->column == b->column && a->part == b->part && a->step_count == b->step_count;

	for (size_t i = 0; same && i < a->step_count; i++)
		same = str_eq(a->steps[i], b->steps[i]);
	return same;
}

enum status
index_typed_path(const struct index_typed_origin *origin, struct arena *arena,
		 struct index_column *ret)
{
	struct str *path = arena_alloc(arena, (2 + origin->step_count) * sizeof(*path));

	if (!path)
		return STATUS_LIMIT;
	path[0] = arena_printf(arena, "%llu", (unsigned long long)origin->column);
	if (!path[0].ptr)
		return STATUS_LIMIT;
	ret->path = path;
	ret->path_count = 1;
	if (origin->part == INDEX_TYPED_COLUMN)
		return STATUS_OK;
	path[ret->path_count++] = str_from_cstr(parts[origin->part]);
	for (size_t i = 0; i < origin->step_count; i++)
		path[ret->path_count++] = origin->steps[i];
	return STATUS_OK;
}

bool
index_typed_path_read(const struct index_column *column, struct index_typed_origin *ret)
{
	*ret = (struct index_typed_origin){ .part = INDEX_TYPED_COLUMN };
	if (!column->path_count || !str_to_u64(column->path[0], &ret->column))
		return false;
	if (column->path_count == 1)
		return true;
	for (unsigned i = INDEX_TYPED_KEYS; i < PARTS; i++)
		if (str_eq(column->path[1], str_from_cstr(parts[i])))
			ret->part = (enum index_typed_part)i;
	ret->steps = column->path + 2;
	ret->step_count = column->path_count - 2;
	return ret->part != INDEX_TYPED_COLUMN &&
	       index_typed_steps_fit(ret->part, ret->steps, ret->step_count);
}

/* Only what has a filter or a collation is opened. */
static enum status
typed_form_open(struct index_def *def, bool is_current, struct arena *arena, struct err *err)
{
	struct index_typed_filter *filter = arena_alloc(arena, sizeof(*filter));
	enum status status;

	(void)is_current;
	if (!filter)
		return STATUS_LIMIT;
	status = index_typed_filter_read(def->filter, arena, filter);
	if (status == STATUS_INVALID)
		return err_set(err, status, "this is no filter of an index of rows");
	def->opened = filter;
	return status;
}

/* ---- Components ---- */

static enum status
put_value(struct buf *raw, const struct index_typed_value *v)
{
	if (!v->second)
		return index_typed_put(raw, &v->first);
	doc_key_begin(raw, DOC_KEY_TYPED, DOC_ARRAY);
	TRY(index_typed_put(raw, &v->first));
	TRY(index_typed_put(raw, v->second));
	doc_key_end(raw);
	return buf_status(raw);
}

static enum status
typed_form_put_component(struct buf *key, const struct index_def *def, size_t column,
			 const void *value, struct index_work *w, bool *ret_cut)
{
	AUTO(buf_release) struct buf raw = BUF_INIT(RAW_BYTES);

	(void)w;
	TRY(put_value(&raw, value));
	return index_component_finish(key, def, column, &raw, ret_cut);
}

static enum status
typed_form_compare(const void *a, const void *b, const void *texts, struct index_work *w, int *ret)
{
	AUTO(buf_release) struct buf x = BUF_INIT(RAW_BYTES);
	AUTO(buf_release) struct buf y = BUF_INIT(RAW_BYTES);

	(void)texts;
	TRY(put_value(&x, a));
	TRY(put_value(&y, b));
	*ret = str_cmp(buf_str(&x), buf_str(&y));
	return index_count_bytes(w, x.len + y.len);
}

/* ---- Rows ---- */

/* The cells of a column; `*ret_count` is 0 if it is null. */
static const struct index_typed_cell *
cells_of(const struct index_typed_row *row, uint64_t column, size_t *ret_count)
{
	size_t from = 0, to = row->count;

	while (from < to) {
		size_t at = from + (to - from) / 2;

		if (row->cells[at].column < column)
			from = at + 1;
		else
			to = at;
	}
	for (to = from; to < row->count && row->cells[to].column == column;)
		to++;
	*ret_count = to - from;
	return row->cells ? row->cells + from : NULL;
}

static enum status
same_scalar(const struct doc_scalar *a, const struct doc_scalar *b, bool *ret)
{
	AUTO(buf_release) struct buf x = BUF_INIT(RAW_BYTES);
	AUTO(buf_release) struct buf y = BUF_INIT(RAW_BYTES);

	*ret = false;
	if (a->kind != b->kind)
		return STATUS_OK;
	doc_scalar_put(&x, a);
	doc_scalar_put(&y, b);
	TRY(buf_status(&x));
	TRY(buf_status(&y));
	*ret = str_eq(buf_str(&x), buf_str(&y));
	return STATUS_OK;
}

static enum status
same_cells(const struct index_typed_cell *a, const struct index_typed_cell *b, size_t count,
	   struct index_work *w, bool *ret)
{
	*ret = true;
	for (size_t i = 0; *ret && i < count; i++) {
		TRY(index_count_bytes(w, a[i].value.text.len + a[i].element.text.len));
		TRY(same_scalar(&a[i].element, &b[i].element, ret));
		if (*ret)
			TRY(same_scalar(&a[i].value, &b[i].value, ret));
	}
	return STATUS_OK;
}

static enum status
typed_form_has_same_columns(const struct index_def *def, const struct index_source *before,
			    const struct index_source *after, struct index_work *w, bool *ret)
{
	*ret = true;
	for (size_t i = 0; *ret && i < def->column_count + def->carried; i++) {
		struct index_typed_origin origin;
		const struct index_typed_cell *a, *b;
		size_t a_count, b_count;

		(void)index_typed_path_read(&def->columns[i], &origin);
		a = cells_of(before->row, origin.column, &a_count);
		b = cells_of(after->row, origin.column, &b_count);
		*ret = a_count == b_count;
		/* Whether one expires decides what entries carry. */
		for (size_t j = 0; *ret && def->carried && j < a_count; j++)
			*ret = a[j].expires == b[j].expires;
		if (*ret)
			TRY(same_cells(a, b, a_count, w, ret));
	}
	return STATUS_OK;
}

/* ---- Entries ---- */

/* What lies at the path in a document. One that is damaged has nothing there. */
static enum status
value_of_json(const struct doc_scalar *document, const struct index_typed_origin *origin,
	      struct index_work *w, struct index_typed_value *ret, bool *ret_there)
{
	bool as_text = origin->part == INDEX_TYPED_JSON_TEXT;
	const struct json_value *v = NULL;
	struct json_value root;
	enum status status;

	*ret_there = false;
	if (document->kind != DOC_TEXT)
		return STATUS_OK;
	TRY(index_count_bytes(w, document->text.len));
	status = json_value_read(document->text, w->arena, &root, NULL);
	if (status == STATUS_OK)
		status = json_value_at(&root, origin->steps, origin->step_count, w->arena, &v);
	if (status == STATUS_LIMIT || status == STATUS_NOMEM || status == STATUS_CANCELLED ||
	    status == STATUS_STEPS)
		return status;
	*ret_there = status == STATUS_OK && v && !(as_text && v->kind == JSON_NULL);
	if (*ret_there)
		ret->first = (struct doc_scalar){
			.kind = DOC_TEXT,
			.text = as_text && v->kind == JSON_STRING ? v->string : v->text,
		};
	return STATUS_OK;
}

static enum status
value_of_cell(const struct index_typed_cell *cell, const struct index_typed_origin *origin,
	      struct index_work *w, struct index_typed_value *ret, bool *ret_there)
{
	enum index_typed_part part = origin->part;

	*ret = (struct index_typed_value){ .first = cell->value };
	*ret_there = true;
	if (index_typed_is_json(part))
		return value_of_json(&cell->value, origin, w, ret, ret_there);
	if (part == INDEX_TYPED_ORDER)
		return index_typed_order(origin->steps[0], &cell->value, w->arena, &ret->first,
					 ret_there);
	if (part == INDEX_TYPED_KEYS || part == INDEX_TYPED_ENTRIES)
		ret->first = cell->element;
	if (part == INDEX_TYPED_ENTRIES)
		ret->second = &cell->value;
	return STATUS_OK;
}

/* Whether the column is one of the index's: `*ret_whole`: by its whole value. */
static bool
has_column(const struct index_def *def, uint64_t column, bool *ret_whole)
{
	bool any = false;

	*ret_whole = false;
	for (size_t i = 0; i < def->column_count + def->carried; i++) {
		struct index_typed_origin origin;

		(void)index_typed_path_read(&def->columns[i], &origin);
		if (origin.column != column)
			continue;
		any = true;
		*ret_whole = *ret_whole || origin.part == INDEX_TYPED_COLUMN;
	}
	return any;
}

/* Appends what an entry of the row carries. False: it does not carry anything. */
static bool
put_carried(const struct index_def *def, const struct index_typed_row *row, struct buf *values)
{
	bool lives = false, whole;

	for (size_t i = 0; i < row->count; i++) {
		const struct index_typed_cell *cell = &row->cells[i];

		if (cell->is_key || !has_column(def, cell->column, &whole))
			continue;
		if (cell->expires)
			return false;
		lives = true;
		if (!whole)
			continue;
		if (cell->value.text.len > INDEX_PAYLOAD_BYTES)
			return false;
		tuple_put_u64(values, cell->column);
		doc_scalar_put(values, &cell->value);
	}
	return lives && buf_status(values) == STATUS_OK;
}

enum status
index_typed_carried_next(struct str *values, uint64_t *ret_column, struct str *ret)
{
	struct tuple_reader r = tuple_reader(*values);
	struct tuple_elem e;

	if (!values->len)
		return STATUS_NOT_FOUND;
	TRY(tuple_next_u64(&r, ret_column));
	*ret = r.rest;
	if (tuple_next(&r, &e) != STATUS_OK)
		return STATUS_CORRUPT;
	ret->len -= r.rest.len;
	*values = r.rest;
	return STATUS_OK;
}

/* What an id takes of a key: its NULs are escaped. */
static size_t
id_bytes(struct str id)
{
	size_t bytes = id.len + 2;

	for (size_t i = 0; i < id.len; i++)
		bytes += !id.ptr[i];
	return bytes;
}

/* One entry, whose first column has this value. */
static enum status
make_entry(struct index_making *m, const struct index_typed_value *first)
{
	const struct index_def *def = m->def;
	AUTO(buf_release) struct buf values = BUF_INIT(INDEX_PAYLOAD_BYTES);
	bool cut = false, null = false, carries;

	if (id_bytes(m->source->id) > INDEX_ID_BYTES)
		return STATUS_UNSUPPORTED;
	index_key_entries(&m->key, m->db, def->number);
	TRY(typed_form_put_component(&m->key, def, 0, first, m->w, &cut));
	for (size_t i = 1; i < def->column_count; i++) {
		struct index_typed_value v;
		struct index_typed_origin origin;
		const struct index_typed_cell *cell;
		bool there = false;
		size_t count;

		(void)index_typed_path_read(&def->columns[i], &origin);
		cell = cells_of(m->source->row, origin.column, &count);
		if (count)
			TRY(value_of_cell(cell, &origin, m->w, &v, &there));
		if (!there)
			v = (struct index_typed_value){ .first = { .kind = DOC_UNDEFINED } };
		null = null || !there;
		TRY(typed_form_put_component(&m->key, def, i, &v, m->w, &cut));
	}
	(void)index_key_put_id(&m->key, def->form, m->source->id);
	/* Nulls are not equal: rows that have one are no duplicates of each other. */
	null = null && (def->flags & INDEX_UNIQUE);
	carries = def->carried && put_carried(def, m->source->row, &values);
	index_making_flags(m, (cut ? INDEX_ENTRY_CUT : 0u) | (null ? INDEX_ENTRY_FREE : 0u) |
				      (carries ? INDEX_ENTRY_CARRIES : 0u));
	if (carries)
		buf_append_buf(&m->value, &values);
	return index_making_add(m);
}

static enum status
row_fulfils(const struct index_def *def, const struct index_typed_row *row, bool *ret)
{
	const struct index_typed_filter *filter = def->opened;

	*ret = true;
	for (size_t i = 0; filter && *ret && i < filter->count; i++) {
		size_t count;
		const struct index_typed_cell *cell = cells_of(row, filter->conditions[i].column,
							       &count);

		*ret = count > 0;
		if (*ret)
			TRY(index_typed_holds(&filter->conditions[i], &cell->value, ret));
	}
	return STATUS_OK;
}

static enum status
typed_form_make_entries(struct index_making *m)
{
	struct index_typed_origin origin;
	const struct index_typed_cell *cells;
	bool fulfils, there;
	size_t count;

	(void)index_typed_path_read(&m->def->columns[0], &origin);
	TRY(row_fulfils(m->def, m->source->row, &fulfils));
	if (!fulfils)
		return STATUS_OK;
	cells = cells_of(m->source->row, origin.column, &count);
	for (size_t i = 0; i < count; i++) {
		struct index_typed_value v;

		TRY(index_count(m->w, 1));
		TRY(value_of_cell(&cells[i], &origin, m->w, &v, &there));
		if (there)
			TRY(make_entry(m, &v));
	}
	return STATUS_OK;
}

static enum status
typed_form_parse_values(const struct index_def *def, struct tuple_reader *r, uint64_t flags,
			struct arena *arena, struct index_entry *ret)
{
	struct str left = r->rest, scalar;
	enum status status;
	uint64_t column;

	(void)arena;
	ret->has_texts = false;
	ret->values = (struct str){ NULL, 0 };
	if (!(flags & INDEX_ENTRY_CARRIES))
		return r->rest.len ? STATUS_CORRUPT : STATUS_OK;
	while ((status = index_typed_carried_next(&left, &column, &scalar)) == STATUS_OK)
		;
	if (status != STATUS_NOT_FOUND || !def->carried)
		return STATUS_CORRUPT;
	ret->values = r->rest.len ? r->rest : STR("");
	return STATUS_OK;
}

/* ---- For people ---- */

/* A filter is a text (filter.c), and a damaged one may have any bytes; an id is bytes. */
static void
typed_form_draw(struct buf *ret, struct str stored)
{
	quote_json(ret, stored);
}

static void
typed_form_draw_id(struct buf *ret, struct str id)
{
	buf_append_byte(ret, '"');
	buf_append_hex(ret, id);
	buf_append_byte(ret, '"');
}

const struct index_form index_typed_form = {
	.flag = INDEX_TYPED,
	.entry_flags = INDEX_ENTRY_CUT | INDEX_ENTRY_FREE | INDEX_ENTRY_CARRIES,
	.format = INDEX_FORMAT_MORE,
	.id_kind = TUPLE_BYTES,
	.open = typed_form_open,
	.draw = typed_form_draw,
	.draw_id = typed_form_draw_id,
	.compare = typed_form_compare,
	.put_component = typed_form_put_component,
	.has_same_columns = typed_form_has_same_columns,
	.make_entries = typed_form_make_entries,
	.parse_values = typed_form_parse_values,
	.path_names = PATH_NAMES,
};

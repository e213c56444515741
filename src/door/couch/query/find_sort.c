/*
 * Documents that are sorted before they are sent, by the columns of the index that the query takes.
 * Of all documents that match, those of the page are kept, and now and then the others are given
 * up.
 */
#include "doc/json.h"
#include "door/couch/query/find.h"
#include "door/couch/wire/error.h"
#include "index/collate.h"
#include "index/engine/entry.h"
#include "loop/sort.h"

enum {
	SORT_SPARE_ROWS = 1024, /* that are kept beyond the page before the rest is given up */
};

struct sort_row {
	struct str id;
	struct rev_id rev;
	struct leaf_value *values;
};

struct find_sorter {
	struct find *f;
	const struct query_sort *order; /* the columns of the index */
	const struct normal_path *paths;
	struct find_members members;
	struct sort_row after; /* of the page before */
	struct arena *arena;   /* of the rows */
	struct arena *other;
	struct sort_row **rows;
	size_t count;
	size_t most; /* rows that the page needs, as far as memory may allow them */
	bool cut;    /* the page needs more than `most` */
	size_t limit_bytes;
};

/* ---- Order ---- */

static enum status
sort_compare(const struct find_sorter *s, const struct sort_row *a, const struct sort_row *b,
	     struct index_work *w, int *ret)
{
	size_t count = s->order->count;

	*ret = 0;
	for (size_t i = 0; i < count && *ret == 0; i++)
		TRY(collate_compare(&a->values[i], &b->values[i], w, ret));
	if (*ret == 0)
		*ret = str_cmp(a->id, b->id);
	if (s->f->args.sort.descending)
		*ret = -*ret;
	return STATUS_OK;
}

static enum status
rows_compare(const void *arg, const void *a, const void *b, int *ret)
{
	const struct find_sorter *s = arg;
	struct index_work w = { .arena = s->f->r->arena };

	return sort_compare(s, *(struct sort_row *const *)a, *(struct sort_row *const *)b, &w, ret);
}

/* ---- Rows ---- */

static enum status
sort_refuse_bytes(struct find_sorter *s)
{
	AUTO(buf_release) struct buf fields = BUF_SHORT(ERR_TEXT_BYTES / 2);

	for (size_t i = 0; i < s->order->count; i++) {
		buf_append_cstr(&fields, i ? "," : "");
		json_write_str(&fields, s->order->fields[i]);
	}
	s->f->sort_is_full = true;
	return couch_fail_set(
		&s->f->r->fail, COUCH_ERROR_NO_USABLE_INDEX,
		"The documents to be sorted take more memory than [mango] sort_bytes, "
		"%zu, allows. An index on [%.*s] would be read in this order.",
		s->limit_bytes, (int)fields.len, fields.ptr ? fields.ptr : "");
}

static enum status
row_copy_value(const struct leaf_value *v, struct arena *arena, struct leaf_value *ret)
{
	struct kv_pair *leaves = arena_alloc(arena, (v->count + 1) * sizeof(*leaves));

	if (!leaves)
		return STATUS_LIMIT;
	for (size_t i = 0; i < v->count; i++) {
		leaves[i].key = arena_dup(arena, str_skip(v->leaves[i].key, v->at));
		leaves[i].value = arena_dup(arena, v->leaves[i].value);
		if (!leaves[i].key.ptr || !leaves[i].value.ptr)
			return STATUS_LIMIT;
	}
	*ret = (struct leaf_value){ leaves, v->count, 0 };
	return STATUS_OK;
}

static enum status
row_copy(const struct find_sorter *s, const struct sort_row *from, struct arena *arena,
	 struct sort_row **ret)
{
	size_t count = s->order->count;
	struct sort_row *row = arena_alloc(arena, sizeof(*row));

	if (!row)
		return STATUS_LIMIT;
	row->id = arena_dup(arena, from->id);
	row->rev = (struct rev_id){ from->rev.pos, arena_dup(arena, from->rev.hash) };
	row->values = arena_alloc(arena, (count + 1) * sizeof(*row->values));
	if (!row->id.ptr || !row->rev.hash.ptr || !row->values)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		TRY(row_copy_value(&from->values[i], arena, &row->values[i]));
	*ret = row;
	return STATUS_OK;
}

/* Sorts the rows, and gives up those that are behind the page. */
static enum status
sorter_settle(struct find_sorter *s)
{
	struct arena *swap = s->arena;

	if (s->cut && s->count > s->most)
		return sort_refuse_bytes(s);
	TRY(sort_items(s->rows, s->count, sizeof(struct sort_row *), rows_compare, s, s->other));
	if (s->count > s->most)
		s->count = s->most;
	for (size_t i = 0; i < s->count; i++)
		TRY(row_copy(s, s->rows[i], s->other, &s->rows[i]));
	arena_clear(s->arena);
	s->arena = s->other;
	s->other = swap;
	return STATUS_OK;
}

/* Keeps a document that matches if it may belong to the page. */
static enum status
sorter_take(struct find *f, const struct find_doc *d)
{
	struct find_sorter *s = f->sorter;
	struct index_work w = { .arena = f->r->arena };
	struct sort_row row = { .id = d->id, .rev = d->doc->rev };
	struct selector_doc doc;
	struct couch_seen seen;
	enum status status;
	bool found = true;
	int c = 1;

	TRY(find_doc_see(f, d, &s->members, &seen, &doc));
	row.values = arena_alloc(f->r->arena, (s->order->count + 1) * sizeof(*row.values));
	if (!row.values)
		return STATUS_LIMIT;
	for (size_t i = 0; i < s->order->count && found; i++)
		TRY(find_doc_value(&doc, &s->paths[i], &row.values[i], &found));
	if (found && s->after.values)
		TRY(sort_compare(s, &row, &s->after, &w, &c));
	if (!found || c <= 0)
		return STATUS_OK;
	if (s->count == s->most + SORT_SPARE_ROWS)
		TRY(sorter_settle(s));
	status = row_copy(s, &row, s->arena, &s->rows[s->count]);
	if (status == STATUS_LIMIT) {
		TRY(sorter_settle(s));
		status = row_copy(s, &row, s->arena, &s->rows[s->count]);
	}
	if (status == STATUS_LIMIT)
		return arena_is_full(s->arena) ? sort_refuse_bytes(s) : STATUS_NOMEM;
	TRY(status);
	s->count++;
	return STATUS_OK;
}

/* ---- Places ---- */

/* The values of a row as a JSON array: its place in the order, for a bookmark. */
static enum status
row_write_place(const struct find_sorter *s, const struct sort_row *row, struct buf *out)
{
	buf_clear(out);
	buf_append_byte(out, '[');
	for (size_t i = 0; i < s->order->count; i++) {
		buf_append_cstr(out, i ? "," : "");
		TRY(leaf_write(&row->values[i], out));
	}
	buf_append_byte(out, ']');
	return buf_status(out);
}

/* The values of the last document of the page before, in the request's arena. */
static enum status
place_read(const struct find *f, struct leaf_value **ret)
{
	struct arena *arena = f->r->arena;
	struct leaf_value *values;
	struct json_value place;
	struct json_value *items;
	size_t count;

	TRY(json_value_read(f->after.place, arena, &place, NULL));
	TRY(json_value_items(&place, arena, &items, &count, NULL));
	values = arena_alloc(arena, (count + 1) * sizeof(*values));
	if (!values)
		return STATUS_LIMIT;
	if (count != f->plan.chosen->columns.count)
		return STATUS_INVALID;
	for (size_t i = 0; i < count; i++)
		TRY(leaf_parse(items[i].text, arena, &values[i], NULL));
	*ret = values;
	return STATUS_OK;
}

static enum status
sorter_read_after(struct find_sorter *s)
{
	if (!s->f->has_after)
		return STATUS_OK;
	s->after.id = s->f->after.id;
	return place_read(s->f, &s->after.values);
}

struct place_turning {
	struct find *f;
	bool known;
};

static enum status
place_turn(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct place_turning *t = arg;
	struct find *f = t->f;
	const struct index_def *def = index_find(r->db, f->plan.reads[0].number);
	struct index_work w = { .arena = r->arena };
	struct index_interval at = { .partition = f->args.partition };
	AUTO(buf_release) struct buf place = BUF_SHORT(BOOKMARK_BYTES);
	const void *equal[INDEX_COLUMNS];
	struct leaf_value *values;
	struct str key;

	(void)tx;
	t->known = false;
	if (r->db->number != f->plan.db_number || !def)
		return STATUS_OK;
	TRY(place_read(f, &values));
	for (at.equal = equal; at.equal_count < def->column_count; at.equal_count++)
		equal[at.equal_count] = &values[at.equal_count];
	TRY(index_place_make(r->db, def, &at, f->after.id, &w, &key, &t->known));
	if (!t->known)
		return STATUS_OK;
	buf_append_byte(&place, PLAN_PLACE_KEY);
	buf_append_str(&place, key);
	return buf_copy(&place, r->arena, &f->after.place);
}

enum status
find_turn_place(struct find *f, bool *ret_known)
{
	struct place_turning t = { .f = f };

	TRY(couch_snapshot_run(&f->snapshot, place_turn, &t));
	*ret_known = t.known;
	return STATUS_OK;
}

/* ---- The whole ---- */

static enum status
sorter_init(struct find_sorter *s, struct find *f)
{
	const struct query_sort *sort = &f->plan.chosen->columns;
	uint64_t most = f->skip > UINT64_MAX - f->limit ? UINT64_MAX : f->skip + f->limit;
	size_t fits;

	s->limit_bytes = (size_t)f->r->settings->sort_bytes;
	fits = s->limit_bytes / sizeof(struct sort_row);
	s->most = most < fits ? (size_t)most : fits;
	s->cut = s->most < most;
	s->order = sort;
	s->paths = f->plan.chosen->paths;
	s->rows = arena_alloc(f->r->arena, (s->most + SORT_SPARE_ROWS) * sizeof(*s->rows));
	s->arena = arena_new(s->limit_bytes);
	s->other = arena_new(s->limit_bytes);
	if (!s->arena || !s->other)
		return STATUS_NOMEM;
	if (!s->rows)
		return STATUS_LIMIT;
	arena_set_part(s->arena, http_memory(f->r->x));
	arena_set_part(s->other, http_memory(f->r->x));
	return find_members_of_paths(f, s->paths, sort->count, &s->members);
}

struct row_call {
	struct find_sorter *s;
	const struct sort_row *row;
	size_t out;
};

/* Reads a document of the page again, and writes it unless it has gone meanwhile. */
static enum status
sorter_write_row(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	const struct row_call *c = arg;
	struct find *f = c->s->f;
	struct rev_tree tree;
	struct rev_doc doc;
	struct find_doc d = { .id = c->row->id, .doc = &doc };
	enum status status;

	couch_stream_cut(&f->stream, c->out);
	status = rev_doc_read_head(tx, r->db, d.id, c->row->rev, false, r->arena, &doc);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	if (f->args.conflicts) {
		TRY(rev_tree_read(tx, r->db, d.id, REV_TREE_HEADS, r->arena, &tree));
		d.tree = &tree;
	}
	TRY(find_doc_take(f, &d));
	return row_write_place(c->s, c->row, &f->place);
}

static enum status
sorter_send(struct find_sorter *s)
{
	struct find *f = s->f;
	struct arena_mark mark = arena_mark(f->r->arena);

	TRY(sorter_settle(s));
	for (size_t i = 0; i < s->count && f->limit; i++) {
		struct row_call c = { s, s->rows[i], f->stream.out.len };

		arena_reset(f->r->arena, mark);
		TRY(couch_snapshot_run(&f->snapshot, sorter_write_row, &c));
		TRY(couch_stream_push(&f->stream, false));
	}
	return STATUS_OK;
}

enum status
find_sorted(struct find *f, struct name_range range)
{
	struct find_sorter s = { .f = f };
	enum status status = sorter_init(&s, f);

	f->sorter = &s;
	f->take = sorter_take;
	if (status == STATUS_OK)
		status = sorter_read_after(&s);
	if (status == STATUS_OK)
		status = f->plan.way == PLAN_SETS ? find_by_sets(f, range) : find_by_ids(f, range);
	if (status == STATUS_OK)
		status = sorter_send(&s);
	arena_free(s.arena);
	arena_free(s.other);
	f->sorter = NULL;
	return status;
}

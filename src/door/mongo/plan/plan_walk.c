/* Walks: the documents of a plan, one after the other. */
#include <assert.h>

#include "door/mongo/plan/plan_int.h"
#include "index/plan/names.h"
#include "kv/tuple.h"
#include "loop/step.h"
#include "model/plain/index.h"
#include "model/plain/many.h"

static void
count_read(const struct plan_walk *w, unsigned keys, unsigned docs)
{
	struct plan_figures *f = w->plan->figures;

	if (!f)
		return;
	f->keys += keys;
	f->docs += docs;
}

/* ---- Ids of entries, gathered ---- */

struct gathered {
	struct name_list ids;
	size_t bytes;
	bool full;
};

static enum status
gather_id(struct plan_walk *w, struct str id_key, struct gathered *g)
{
	count_read(w, 1, 0);
	g->bytes += id_key.len + sizeof(struct str);
	g->full = g->ids.count == PLAN_IDS_MOST || g->bytes > PLAN_IDS_BYTES;
	return name_list_add(&g->ids, id_key);
}

/* A walk through ranges of an index, from the first entry on. The caller sets `scans`. */
static struct key_walk_terms
walk_terms(const struct plan_walk *w, const struct index_def *def, const struct index_range *ranges,
	   size_t count)
{
	return (struct key_walk_terms){ .tx = w->p->tx,
					.db = w->p->db,
					.def = def,
					.ranges = ranges,
					.count = count,
					.options = { .mode = w->mode, .ahead = true },
					.together = 1 };
}

/* The ids of the entries of ranges of an index. */
static enum status
gather_ranges(struct plan_walk *w, const struct index_def *def, const struct index_range *ranges,
	      size_t count, struct gathered *g)
{
	struct key_walk_terms terms = walk_terms(w, def, ranges, count);
	struct index_work work = { .arena = g->ids.arena };
	struct index_entry entry;
	struct index_scan scan;
	struct key_walk walk;
	enum status status;

	terms.scans = &scan;
	status = key_walk_init(&walk, &terms);
	while (status == STATUS_OK && !g->full) {
		status = key_walk_next(&walk, &work, &entry);
		if (status == STATUS_OK)
			status = gather_id(w, entry.id, g);
	}
	key_walk_release(&walk);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
gather_branch(struct plan_walk *w, const struct plan_branch *branch, struct gathered *g)
{
	AUTO(buf_release) struct buf key = BUF_SHORT(BSON_KEY_ROOM(PLAIN_ID_BYTES));

	if (branch->asked)
		TRY(gather_ranges(w, branch->asked->def, branch->asked->keys.items,
				  branch->asked->keys.count, g));
	for (size_t i = 0; i < branch->ids.count && !g->full; i++) {
		buf_clear(&key);
		TRY(plain_index_id(branch->ids.items[i].low.value, &key, w->p->err));
		TRY(gather_id(w, buf_str(&key), g));
	}
	return STATUS_OK;
}

/* In order, each once; the walk begins with the first one behind the place. */
static enum status
gather_settle(struct plan_walk *w, struct gathered *g, struct str place)
{
	AUTO(buf_release) struct buf at = BUF_SHORT(KV_LIMIT_KEY_BYTES);

	TRY(name_list_settle(&g->ids));
	w->ids = g->ids.items;
	w->id_count = g->ids.count;
	for (; place.len && w->at < w->id_count; w->at++) {
		TRY(plain_place_of(w->p, w->ids[w->at], &at));
		if (str_cmp(buf_str(&at), place) > 0)
			break;
	}
	return STATUS_OK;
}

/* Of too many, none; the collection is walked through instead, in the same order. */
static enum status
gather(struct plan_walk *w, struct str place, struct mql *q)
{
	struct arena_mark mark = arena_mark(q->arena);
	struct gathered g = { .ids.arena = q->arena };

	if (w->plan->def)
		TRY(gather_ranges(w, w->plan->def, w->plan->ranges, w->plan->range_count, &g));
	for (size_t i = 0; i < w->plan->branch_count && !g.full; i++)
		TRY(gather_branch(w, &w->plan->branches[i], &g));
	if (!g.full)
		return gather_settle(w, &g, place);
	arena_reset(q->arena, mark);
	w->kind = PLAN_RANGE;
	return STATUS_OK;
}

/* ---- Opening ---- */

static enum status
open_range(struct plan_walk *w, struct str place)
{
	const struct value_interval *b = &w->plan->bounds;
	const struct plain_range range = { .from = b->low.value,
					   .from_open = b->low.exclusive,
					   .to = b->high.value,
					   .to_open = b->high.exclusive,
					   .reverse = w->plan->reverse,
					   .mode = w->mode,
					   .first = w->plan->first,
					   .resume = place };

	return plain_scan_open(&w->scan, w->p, &range);
}

/* Lists the ranges that are merged: those of the plan, or of all of its branches. */
static enum status
list_merged(const struct plan *plan, struct arena *arena, const struct key_merge_range **ret)
{
	struct key_merge_range *list = arena_alloc(arena, (plan->range_count + 1) * sizeof(*list));
	size_t at = 0;

	if (!list)
		return STATUS_LIMIT;
	*ret = list;
	for (size_t i = 0; !plan->branch_count && i < plan->range_count; i++)
		list[at++] = (struct key_merge_range){ plan->def, &plan->ranges[i], plan->merged };
	for (size_t i = 0; i < plan->branch_count; i++) {
		const struct candidate *asked = plan->branches[i].asked;

		for (size_t k = 0; k < asked->keys.count; k++)
			list[at++] = (struct key_merge_range){ asked->def, &asked->keys.items[k],
							       asked->points };
	}
	assert(at == plan->range_count);
	return STATUS_OK;
}

static enum status
open_merged(struct plan_walk *w, const struct index_scan_options *options, struct arena *arena)
{
	struct key_merge_terms terms = { .tx = w->p->tx,
					 .db = w->p->db,
					 .count = w->plan->range_count,
					 .several = w->plan->branch_count,
					 .options = *options };

	assert(terms.count <= PLAN_MERGED);
	terms.options.limit_bytes = PLAN_MERGED_BYTES;
	TRY(list_merged(w->plan, arena, &terms.ranges));
	return key_merge_init(&w->merge, &terms, arena);
}

static enum status
open_index(struct plan_walk *w, struct str place, struct arena *arena)
{
	const struct plan *plan = w->plan;
	struct key_walk_terms terms = walk_terms(w, plan->def, plan->ranges, plan->range_count);

	terms.scans = &w->scan_of_entries;
	terms.options.reverse = plan->reverse;
	terms.options.only_values = plan->covered;
	terms.options.after = place.len ? place : (struct str){ 0 };
	terms.options.first = plan->first;
	if (plan->merged)
		return open_merged(w, &terms.options, arena);
	/* The walk jumps to the next distinct value after PLAN_PASSES entries of one. */
	if (plan->distinct)
		terms.options.first = PLAN_PASSES + 1;
	return key_walk_init(&w->entries, &terms);
}

/*
 * True if documents of several `_id`s are asked for ahead of their use. Not for writing: what was
 * read in vain would conflict with others.
 */
static bool
walk_asks_points(const struct plan_walk *w)
{
	return w->kind == PLAN_POINTS && w->plan->ids.count > 1 && !w->plan->parts &&
	       w->mode == KV_SNAPSHOT;
}

enum status
plan_walk_open(struct plan_walk *w, const struct plan *plan, struct plain *p, enum kv_read mode,
	       struct str place, struct mql *q)
{
	if (place.len)
		place = str_skip(place, sizeof(struct place_head));
	*w = (struct plan_walk){ .plan = plan,
				 .kind = plan->kind,
				 .p = p,
				 .mode = mode,
				 .window = plan->first < PLAN_WINDOW ? plan->first : PLAN_WINDOW,
				 .place = BUF_SHORT(PLAN_PLACE_BYTES),
				 .passed = BUF_SHORT(KV_LIMIT_KEY_BYTES) };
	if (!w->window)
		w->window = 1;
	if (plan->def || plan->branch_count || walk_asks_points(w)) {
		w->arena = arena_new(PLAN_WINDOW_BYTES);
		if (!w->arena)
			return STATUS_NOMEM;
		arena_set_part(w->arena, arena_part(q->arena));
	}
	if (plan->kind == PLAN_IDS)
		TRY(gather(w, place, q));
	if (w->kind == PLAN_RANGE)
		return open_range(w, place);
	if (w->kind == PLAN_INDEX)
		return open_index(w, place, q->arena);
	if (w->kind == PLAN_POINTS && place.len == sizeof(w->at))
		memcpy(&w->at, place.ptr, sizeof(w->at));
	return STATUS_OK;
}

/* ---- Going on ---- */

/* Which index a place of the walk belongs to (struct place_head). */
static uint64_t
walk_index(const struct plan_walk *w)
{
	if (w->kind != PLAN_INDEX)
		return 0;
	if (w->plan->def)
		return w->plan->def->number;
	return w->plan->reverse ? PLAN_PLACE_MERGED_REVERSE : PLAN_PLACE_MERGED;
}

static void
walk_set_place(struct plan_walk *w, struct str at)
{
	const struct place_head head = { .index = walk_index(w), .db = w->p->db->number };

	buf_clear(&w->place);
	buf_append(&w->place, &head, sizeof(head));
	buf_append_str(&w->place, at);
}

/* ---- Values that one entry is enough of ---- */

enum status
plan_walk_pass(struct plan_walk *w)
{
	struct str key = str_skip(buf_str(&w->place), sizeof(struct place_head));
	struct tuple_reader r = tuple_reader(key);
	struct str columns;

	assert(w->plan->distinct && !w->plan->reverse);
	TRY(tuple_skip_strings(&r, w->plan->distinct, &columns));
	buf_set(&w->passed, columns);
	return buf_status(&w->passed);
}

/* Goes on behind all entries that begin so: no element begins with that byte. */
static enum status
jump_passed(struct plan_walk *w)
{
	AUTO(buf_release) struct buf after = BUF_SHORT(KV_LIMIT_KEY_BYTES + 1);

	buf_append_buf(&after, &w->passed);
	buf_append_byte(&after, (char)0xff);
	TRY(buf_status(&after));
	w->passes = 0;
	return key_walk_jump(&w->entries, buf_str(&after));
}

/* The next entry, in the order of the ranges, that is not passed over. */
static enum status
next_entry(struct plan_walk *w, struct index_entry *ret)
{
	struct index_work work = { .arena = w->arena };

	if (w->plan->merged)
		return key_merge_next(&w->merge, &work, ret);
	for (;;) {
		TRY(key_walk_next(&w->entries, &work, ret));
		if (!w->passed.len || !str_starts_with(ret->key, buf_str(&w->passed))) {
			w->passes = 0;
			return STATUS_OK;
		}
		count_read(w, 1, 0);
		TRY(step_count(1));
		if (++w->passes == PLAN_PASSES)
			TRY(jump_passed(w));
	}
}

/* Keeps what the scan forgets, in the arena of the rows. */
static enum status
row_keep(struct plan_walk *w, const struct index_entry *entry, struct plan_row *row)
{
	struct str *what = &row->id_key;
	struct str bytes = entry->id;

	*row = (struct plan_row){ .place = arena_dup(w->arena, entry->key) };
	if (w->plan->covered && entry->values.len) {
		what = &row->values;
		bytes = entry->values;
	}
	*what = arena_dup(w->arena, bytes);
	if (w->plan->keys)
		row->key = arena_dup(w->arena, entry->values);
	return row->place.ptr && what->ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
next_row(struct plan_walk *w, struct plan_row *row)
{
	struct index_entry entry;

	*row = (struct plan_row){ 0 };
	if (w->kind == PLAN_IDS) {
		if (w->at == w->id_count)
			return STATUS_NOT_FOUND;
		row->id_key = w->ids[w->at++];
		return STATUS_OK;
	}
	TRY(next_entry(w, &entry));
	return row_keep(w, &entry, row);
}

/* Asks for the documents of the rows together. */
static enum status
ask_rows(struct plan_walk *w)
{
	struct str ids[PLAN_WINDOW];
	struct plain_got got[PLAN_WINDOW];
	size_t count = 0;

	static_assert((int)PLAN_WINDOW <= (int)KV_MANY, "documents are asked for by one call");
	for (size_t i = 0; i < w->row_count; i++)
		if (!w->rows[i].values.len)
			ids[count++] = w->rows[i].id_key;
	TRY(plain_ask_keys(w->p, ids, count, w->mode, w->arena, got));
	for (size_t i = w->row_count; i-- > 0;) {
		struct plan_row *row = &w->rows[i];

		if (!row->values.len)
			row->got = got[--count];
		if (w->kind == PLAN_IDS)
			row->place = row->got.key;
	}
	return STATUS_OK;
}

/*
 * Asks for the documents of the next entries: each time for twice as many. `first`: one that was
 * read before them; NULL: none.
 */
static enum status
fill_rows(struct plan_walk *w, const struct index_entry *first)
{
	enum status status = STATUS_OK;

	while (w->row_count < w->window) {
		struct plan_row *row = &w->rows[w->row_count];

		status = first ? row_keep(w, first, row) : next_row(w, row);
		first = NULL;
		if (status != STATUS_OK)
			break;
		w->row_count++;
	}
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	w->window = w->window * 2 < PLAN_WINDOW ? w->window * 2 : PLAN_WINDOW;
	return w->row_count ? ask_rows(w) : STATUS_NOT_FOUND;
}

/* A document that has several entries in the ranges is given at the first of them. */
static enum status
row_is_first(struct plan_walk *w, const struct plan_row *row, struct str doc, struct arena *arena,
	     bool *ret)
{
	const struct plan *plan = w->plan;
	struct index_source source = plain_index_source(row->id_key, doc);
	struct index_work work = { .arena = arena };

	*ret = true;
	if (w->kind == PLAN_IDS || plan->once)
		return STATUS_OK;
	return index_entry_is_first(w->p->db, plan->def, &source, plan->ranges, plan->range_count,
				    plan->reverse, row->place, &work, ret);
}

static enum status
covered_document(struct plan_walk *w, struct str place, struct str values, struct arena *arena,
		 struct str *ret)
{
	count_read(w, 1, 0);
	walk_set_place(w, place);
	return plan_covered_document(w->plan->covered, values, arena, ret);
}

/* Where an entry has all values, it is no row. Else it is the first one, and `*ret` is empty. */
static enum status
next_covered(struct plan_walk *w, struct arena *arena, struct str *ret)
{
	struct index_entry entry;

	*ret = STR("");
	TRY(next_entry(w, &entry));
	if (entry.values.len)
		return covered_document(w, entry.key, entry.values, arena, ret);
	return fill_rows(w, &entry);
}

static enum status
next_row_document(struct plan_walk *w, struct arena *arena, struct str *ret)
{
	enum status status;
	struct plan_row *row;
	bool first;

	if (w->row_at == w->row_count) {
		if (w->row_count)
			arena_clear(w->arena);
		w->row_at = w->row_count = 0;
		*ret = STR("");
		TRY(w->plan->covered ? next_covered(w, arena, ret) : fill_rows(w, NULL));
		if (ret->len)
			return STATUS_OK;
	}
	row = &w->rows[w->row_at];
	if (row->values.len) {
		w->row_at++;
		return covered_document(w, row->place, row->values, arena, ret);
	}
	status = plain_wait(w->p, &row->got, w->mode, arena, ret);
	if (status == STATUS_NOT_FOUND)
		*ret = STR("");
	else
		TRY(status);
	count_read(w, w->kind == PLAN_INDEX, status == STATUS_OK);
	w->row_at++;
	w->key = row->key;
	walk_set_place(w, row->place);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(row_is_first(w, row, *ret, arena, &first));
	if (!first)
		*ret = STR("");
	return STATUS_OK;
}

static const struct bson_value *
point_at(const struct plan_walk *w, uint64_t at)
{
	const struct plan *plan = w->plan;

	return plan->ids.items[plan->reverse ? plan->ids.count - 1 - at : at].low.value;
}

/* Asks for the next documents of several, likewise each time for twice as many. */
static enum status
ask_points(struct plan_walk *w)
{
	AUTO(buf_release) struct buf key = BUF_SHORT(BSON_KEY_ROOM(PLAIN_ID_BYTES));
	uint64_t left = w->plan->ids.count - w->at;

	arena_clear(w->arena);
	w->row_at = w->row_count = 0;
	while (w->row_count < w->window && w->row_count < left) {
		struct plan_row *row = &w->rows[w->row_count];

		buf_clear(&key);
		TRY(plain_index_id(point_at(w, w->at + w->row_count), &key, w->p->err));
		*row = (struct plan_row){ .id_key = buf_dup(&key, w->arena) };
		if (!row->id_key.ptr)
			return STATUS_LIMIT;
		w->row_count++;
	}
	w->window = w->window * 2 < PLAN_WINDOW ? w->window * 2 : PLAN_WINDOW;
	return ask_rows(w);
}

static enum status
wait_point(struct plan_walk *w, struct arena *arena, struct str *ret)
{
	enum status status;

	if (w->row_at == w->row_count)
		TRY(ask_points(w));
	status = plain_wait(w->p, &w->rows[w->row_at].got, w->mode, arena, ret);
	if (status == STATUS_OK || status == STATUS_NOT_FOUND)
		w->row_at++;
	return status;
}

static enum status
get_point(struct plan_walk *w, const struct bson_value *id, struct arena *arena, struct str *ret)
{
	const struct plan *plan = w->plan;
	struct plain_got got;
	bool whole = true;

	w->partial = false;
	w->held = (struct str){ 0 };
	if (w->arena)
		return wait_point(w, arena, ret);
	if (!plan->parts) {
		TRY(plain_ask(w->p, id, w->mode, arena, &got));
		TRY(plain_wait(w->p, &got, w->mode, arena, ret));
		if (got.whole && w->mode == KV_READ)
			w->held = *ret;
		return STATUS_OK;
	}
	TRY(plain_get_parts(w->p, id, plan->parts, plan->part_count, w->mode, arena, ret, &whole));
	w->partial = !whole;
	return STATUS_OK;
}

static enum status
next_point(struct plan_walk *w, struct arena *arena, struct str *ret)
{
	const struct plan *plan = w->plan;

	while (w->at < plan->ids.count) {
		enum status status = get_point(w, point_at(w, w->at), arena, ret);

		if (status == STATUS_OK || status == STATUS_NOT_FOUND)
			w->at++;
		count_read(w, 1, status == STATUS_OK);
		if (status != STATUS_NOT_FOUND) {
			walk_set_place(w, str_of((const char *)&w->at, sizeof(w->at)));
			return status;
		}
	}
	return STATUS_NOT_FOUND;
}

enum status
plan_walk_next(struct plan_walk *w, struct arena *arena, struct str *ret)
{
	if (w->kind == PLAN_POINTS)
		return next_point(w, arena, ret);
	if (w->kind != PLAN_RANGE)
		return next_row_document(w, arena, ret);
	TRY(plain_scan_next(&w->scan, arena, ret));
	count_read(w, 0, 1);
	walk_set_place(w, plain_scan_place(&w->scan));
	return buf_status(&w->place);
}

struct str
plan_walk_key(const struct plan_walk *w)
{
	return w->key;
}

struct str
plan_walk_place(const struct plan_walk *w)
{
	return buf_str(&w->place);
}

void
plan_walk_close(struct plan_walk *w)
{
	if (!w->plan)
		return;
	if (w->kind == PLAN_RANGE)
		plain_scan_close(&w->scan);
	key_walk_release(&w->entries);
	key_merge_release(&w->merge);
	for (size_t i = w->row_at; i < w->row_count; i++)
		if (w->rows[i].got.future)
			kv_future_free(w->rows[i].got.future);
	arena_free(w->arena);
	buf_release(&w->place);
	buf_release(&w->passed);
	w->plan = NULL;
}

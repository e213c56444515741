/*
 * Unions and intersections of indexes. The ids of all members of an $or, or the ids that several
 * indexes have in common, are gathered first, sorted, and made unique. Then the documents are read
 * by id.
 *
 * If there are many entries and the answer is in the order of ids, ids are gathered window by
 * window, in the direction of the answer. A range of entries whose columns all have one value (a
 * point) is in the order of its ids. Of each such range the next `most` entries behind the window's
 * beginning are read. The window then ends at the first id, in its direction, at which one of the
 * ranges stopped. So a page costs what is in it, and the next page continues at its bookmark. A
 * sort, and an aggregate, need all matches: they use windows only if all ids together would not
 * fit into memory.
 */
#include "catalog/keys.h"
#include "door/couch/query/entries.h"
#include "door/couch/query/find.h"
#include "index/plan/names.h"
#include "loop/step.h"

enum {
	SETS_PAGE_ENTRIES = 1000, /* read at once */
	WINDOW_LEAST = 64,        /* the fewest entries that a window reads of each range */
	WINDOW_OTHERS = 4000,     /* entries of a range that is not in the order of ids */
};

struct gathering {
	struct find *f;
	struct arena *arena; /* of the ids; its limit is that of a sort */
	struct name_list ids;
	struct name_list known; /* with `within`, ids outside of these are dropped */
	bool within;
	size_t before; /* number of ids when the present page of entries began */
	const struct plan_read *read;
	struct buf after; /* the key of the last entry */
	struct buf last;  /* likewise, in this attempt */
	bool more;
	size_t entries;

	/* The window has ids with behind < id <= end, in its direction; ptr NULL: no bound. */
	bool descending;
	struct str behind;
	struct str end; /* in the arena */
	size_t most;    /* entries of a range; 0: there is no window */
	struct buf last_id;
};

/* ---- Reading ---- */

/* Negative if `a` comes before `b` in the direction of the windows. */
static int
window_compare(const struct gathering *g, struct str a, struct str b)
{
	int c = str_cmp(a, b);

	return g->descending ? -c : c;
}

static enum status
gather_take(void *arg, const struct index_def *def, const struct index_entry *entry)
{
	struct gathering *g = arg;

	(void)def;
	buf_set(&g->last, entry->key);
	TRY(buf_status(&g->last));
	TRY(step_count(1));
	buf_set(&g->last_id, entry->id);
	TRY(buf_status(&g->last_id));
	if (g->behind.ptr && window_compare(g, entry->id, g->behind) <= 0)
		return STATUS_OK;
	if (g->end.ptr && window_compare(g, entry->id, g->end) > 0)
		return STATUS_OK;
	if (g->within && !name_list_has(&g->known, entry->id))
		return STATUS_OK;
	return name_list_add(&g->ids, entry->id);
}

static size_t
gather_page_entries(const struct gathering *g)
{
	return g->most ? g->most : SETS_PAGE_ENTRIES;
}

static enum status
gather_page(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct gathering *g = arg;
	const struct entries entries = {
		.plan = &g->f->plan,
		.read = g->read,
		.partition = g->f->args.partition,
		.after = buf_str(&g->after),
		.reverse = g->descending,
		.most = gather_page_entries(g),
		.take = gather_take,
		.arg = g,
	};
	uint64_t reads = kv_reads_mark(tx);

	g->ids.count = g->before;
	buf_clear(&g->last);
	TRY(entries_read(r, tx, &entries, &g->entries));
	g->more = g->entries == entries.most;
	kv_reads_forget(tx, reads);
	return STATUS_OK;
}

/* Reads one page of entries behind the key `after`. */
static enum status
gather_one_page(struct gathering *g)
{
	struct arena_mark mark = arena_mark(g->f->r->arena);

	g->before = g->ids.count;
	TRY(couch_snapshot_run(&g->f->snapshot, gather_page, g));
	arena_reset(g->f->r->arena, mark);
	g->f->keys += g->entries;
	TRY(find_check_limits(g->f));
	buf_set_buf(&g->after, &g->last);
	return buf_status(&g->after);
}

/* Gathers the ids of one index, or the ids that the selector itself names. */
static enum status
gather_read(struct gathering *g, const struct plan_read *read)
{
	for (size_t i = 0; i < read->ids_count; i++)
		TRY(name_list_add(&g->ids, read->ids[i]));
	g->read = read;
	g->more = read->index != NULL;
	buf_clear(&g->after);
	while (g->more)
		TRY(gather_one_page(g));
	return STATUS_OK;
}

/* ---- Windows ---- */

/* Makes the key of an id's entry in a point, or the key right behind it. */
static enum status
point_place(struct gathering *g, const struct index_range *range, struct str id, bool is_behind,
	    struct str *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	buf_append_str(&key, range->begin);
	tuple_put_str(&key, id);
	if (is_behind)
		buf_append_byte(&key, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(&key));
	return arena_copy(g->arena, buf_str(&key), ret);
}

/*
 * Narrows a point to the window: `ret[1]` has the entries with the window's ids. Ids too long for a
 * key are stored as digests in front of the others, in no useful order, so `ret[0]` has all of
 * them.
 */
static enum status
point_narrow(struct gathering *g, const struct index_range *range, struct index_range ret[2])
{
	AUTO(buf_release) struct buf texts = CATALOG_KEY_INIT;
	struct str low = g->descending ? g->end : g->behind;
	struct str high = g->descending ? g->behind : g->end;

	buf_append_str(&texts, range->begin);
	buf_append_byte(&texts, TUPLE_CODE_STRING);
	TRY(catalog_key_status(&texts));
	ret[0] = ret[1] = *range;
	ret[0].end = buf_dup(&texts, g->arena);
	ret[1].begin = ret[0].end;
	if (!ret[0].end.ptr)
		return STATUS_LIMIT;
	/* `behind` lies outside of the window, and `end` inside of it. */
	if (low.ptr)
		TRY(point_place(g, range, low, !g->descending, &ret[1].begin));
	return high.ptr ? point_place(g, range, high, !g->descending, &ret[1].end) : STATUS_OK;
}

/* Ends the window at the last id that was read of a range that has more entries. */
static enum status
window_end(struct gathering *g)
{
	struct str last = buf_str(&g->last_id);

	/*
	 * The range stopped among digests of long ids, which are in no order, so no id can end the
	 * window.
	 */
	if (last.len > INDEX_ID_BYTES / 2 - 1)
		return STATUS_LIMIT;
	if (g->end.ptr && window_compare(g, g->end, last) <= 0)
		return STATUS_OK;
	return arena_copy(g->arena, last, &g->end);
}

/*
 * Reads up to `most` entries of some ranges. An intersection only keeps ids that are known already,
 * so there the ranges are read to their ends.
 */
static enum status
window_read_parts(struct gathering *g, const struct plan_read *read, struct index_range *parts,
		  size_t count, size_t most)
{
	struct plan_read part = *read;
	size_t before = g->most;

	part.keys = (struct key_ranges){ .items = parts, .count = count };
	g->read = &part;
	g->most = g->within ? 0 : most;
	buf_clear(&g->after);
	do
		TRY(gather_one_page(g));
	while (g->within && g->more);
	g->most = before;
	return STATUS_OK;
}

/* Gathers the ids of a range that belong to the window. */
static enum status
window_read_range(struct gathering *g, const struct plan_read *read,
		  const struct index_range *range)
{
	struct index_range parts[2] = { *range };

	if (!range->point) {
		TRY(window_read_parts(g, read, parts, 1, WINDOW_OTHERS));
		return g->more ? STATUS_LIMIT : STATUS_OK;
	}
	TRY(point_narrow(g, range, parts));
	/* Digests are read first, so that none of them is missed if the window ends at an id. */
	if (g->descending) {
		TRY(window_read_parts(g, read, parts, 1, g->most));
		if (g->more)
			return STATUS_LIMIT;
		TRY(window_read_parts(g, read, parts + 1, 1, g->most));
	} else {
		TRY(window_read_parts(g, read, parts, 2, g->most));
	}
	return g->more ? window_end(g) : STATUS_OK;
}

static enum status
window_read(struct gathering *g, const struct plan_read *read)
{
	for (size_t i = 0; i < read->ids_count; i++) {
		if (!g->behind.ptr || window_compare(g, read->ids[i], g->behind) > 0)
			TRY(name_list_add(&g->ids, read->ids[i]));
	}
	for (size_t i = 0; read->index && i < read->keys.count; i++)
		TRY(window_read_range(g, read, &read->keys.items[i]));
	return STATUS_OK;
}

/* Sorts the ids, and drops those behind a window's end, of which some may not have been read. */
static enum status
window_settle(struct gathering *g)
{
	struct name_list *ids = &g->ids;

	TRY(name_list_settle(&g->ids));
	while (g->end.ptr && ids->count &&
	       window_compare(g, ids->items[g->descending ? 0 : ids->count - 1], g->end) > 0) {
		ids->count--;
		ids->items += g->descending;
	}
	return STATUS_OK;
}

/* Gathers what all reads have, or of an intersection what each of them has. */
static enum status
gather_reads(struct gathering *g,
	     enum status (*read)(struct gathering *g, const struct plan_read *read))
{
	const struct plan *p = &g->f->plan;

	for (size_t i = 0; i < p->reads_count; i++) {
		TRY(read(g, &p->reads[i]));
		if (!p->intersects || i + 1 == p->reads_count)
			continue;
		TRY(window_settle(g));
		g->known = g->ids;
		g->within = true;
		g->ids = (struct name_list){ .arena = g->arena };
	}
	return window_settle(g);
}

/* As many entries of each range as fit into half of the memory. */
static size_t
window_most(const struct find *f)
{
	uint64_t most = plan_most_ids(f->r) / 2;
	size_t ranges = 1;

	for (size_t i = 0; i < f->plan.reads_count; i++)
		ranges += f->plan.reads[i].keys.count;
	most /= ranges;
	if (most > SETS_PAGE_ENTRIES)
		return SETS_PAGE_ENTRIES;
	return most < WINDOW_LEAST ? WINDOW_LEAST : (size_t)most;
}

/* How many entries a window reads of each range. 0: windows cannot be used, or do not pay. */
static size_t
window_entries(const struct find *f)
{
	const struct plan *p = &f->plan;
	uint64_t page = f->skip < SETS_PAGE_ENTRIES ? f->skip + f->limit : SETS_PAGE_ENTRIES;

	if (p->rows <= (plan_needs_all(p, &f->args) ? plan_most_ids(f->r) : PLAN_WINDOW_ROWS))
		return 0;
	for (size_t i = 1; p->intersects && i < p->reads_count; i++) {
		if (!plan_read_is_points(&p->reads[i]))
			return 0;
	}
	if (plan_needs_all(p, &f->args))
		return window_most(f);
	if (p->intersects || page > SETS_PAGE_ENTRIES / 2)
		return SETS_PAGE_ENTRIES;
	return page < WINDOW_LEAST / 2 ? WINDOW_LEAST : 2 * (size_t)page;
}

/* ---- The whole ---- */

/* Gathers the window behind `behind`, or all ids if windows are not used. */
static enum status
gather_run(struct gathering *g)
{
	g->most = window_entries(g->f);
	g->descending = g->most && !plan_sorts(&g->f->plan) && g->f->args.sort.descending;
	if (g->most) {
		enum status status = gather_reads(g, window_read);

		if (status != STATUS_LIMIT || g->f->r->fail.error != COUCH_ERROR_NONE)
			return status;
	}
	g->most = 0;
	g->descending = false;
	g->end = g->behind = (struct str){ 0 };
	g->within = false;
	g->ids = (struct name_list){ .arena = g->arena };
	arena_clear(g->arena);
	return gather_reads(g, gather_read);
}

/*
 * Makes f->list of what the plan reads, unless that takes too much memory.
 *
 * `behind`: earlier ids are not asked for; ptr NULL: all are. `*ret_end` is the id, in
 * f->list_arena, at which the list ends although more may follow; ptr NULL: it is whole.
 */
static enum status
find_gather(struct find *f, struct str behind, struct str *ret_end)
{
	struct gathering g = {
		.f = f,
		.arena = arena_new((size_t)f->r->settings->sort_bytes),
		.after = BUF_SHORT(BOOKMARK_BYTES),
		.last = BUF_SHORT(BOOKMARK_BYTES),
		.last_id = BUF_SHORT(REV_DOC_ID_BYTES),
		.behind = behind,
	};
	enum status status = STATUS_NOMEM;

	*ret_end = (struct str){ 0 };
	f->listed = false;
	f->list_arena = g.arena;
	if (g.arena) {
		g.ids.arena = g.arena;
		arena_set_part(g.arena, http_memory(f->r->x));
		status = gather_run(&g);
	}
	buf_release(&g.after);
	buf_release(&g.last);
	buf_release(&g.last_id);
	if (status == STATUS_LIMIT && f->r->fail.error == COUCH_ERROR_NONE) {
		/* Too many ids: all documents are read instead, in the same order. */
		arena_free(f->list_arena);
		f->list_arena = NULL;
		return STATUS_OK;
	}
	TRY(status);
	f->listed = true;
	f->list = g.ids.items;
	f->list_count = g.ids.count;
	*ret_end = g.end;
	return STATUS_OK;
}

enum status
find_by_sets(struct find *f, struct name_range range)
{
	AUTO(buf_release) struct buf behind = BUF_SHORT(REV_DOC_ID_BYTES);
	struct str end = range.exclusive_begin ? range.begin : (struct str){ 0 };

	for (;;) {
		TRY(find_gather(f, end, &end));
		TRY(find_by_ids(f, range));
		if (!end.ptr || !f->limit)
			return STATUS_OK;
		buf_set(&behind, end);
		TRY(buf_status(&behind));
		end = range.begin = buf_str(&behind);
		range.has_begin = range.exclusive_begin = true;
		arena_free(f->list_arena);
		f->list_arena = NULL;
	}
}

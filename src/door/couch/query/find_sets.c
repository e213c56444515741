/*
 * Ids that are read out of indexes before their documents are: those of all members of an $or, or
 * those that two indexes have in common. They are put in order, each once, and the documents then
 * come by id, as if the others were not there.
 */
#include "door/couch/query/entries.h"
#include "door/couch/query/find.h"
#include "loop/step.h"

enum {
	SETS_PAGE_ENTRIES = 1000, /* read at once */
};

struct ids {
	struct str *items;
	size_t count;
	size_t cap;
};

struct gathering {
	struct find *f;
	struct arena *arena; /* of the ids; its limit is that of a sort */
	struct ids ids;
	const struct ids *within; /* only ids that are in here; NULL: all */
	size_t before;            /* ids when the page began */
	const struct plan_read *read;
	struct buf after; /* the key of the last entry */
	struct buf last;  /* likewise, in this attempt */
	bool more;
	size_t entries;
};

/* ---- Lists of ids ---- */

static enum status
ids_add(struct gathering *g, struct str id)
{
	struct str *grown = arena_grow(g->arena, g->ids.items, g->ids.count, &g->ids.cap,
				       sizeof(*grown));

	if (!grown)
		return STATUS_LIMIT;
	g->ids.items = grown;
	g->ids.items[g->ids.count] = arena_dup(g->arena, id);
	if (!g->ids.items[g->ids.count].ptr)
		return STATUS_LIMIT;
	g->ids.count++;
	return STATUS_OK;
}

/* The position of the first id that does not come before `id`. */
static size_t
ids_find(const struct ids *ids, struct str id)
{
	size_t lo = 0, hi = ids->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (str_cmp(ids->items[mid], id) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static enum status
ids_merge(const struct str *from, size_t middle, size_t end, struct str *to)
{
	size_t a = 0, b = middle;

	for (size_t i = 0; i < end; i++) {
		bool left = b == end || (a < middle && str_cmp(from[a], from[b]) <= 0);

		to[i] = left ? from[a++] : from[b++];
	}
	return step_count((uint32_t)(end < UINT32_MAX ? end : UINT32_MAX) / 4 + 1);
}

/* Puts the ids in order, each once, by merging runs of doubling length. */
static enum status
ids_settle(struct gathering *g)
{
	size_t count = g->ids.count;
	struct str *from = g->ids.items;
	struct str *to = arena_alloc(g->arena, (count + 1) * sizeof(*to));
	size_t kept = 0;

	if (!to)
		return STATUS_LIMIT;
	for (size_t run = 1; run < count; run *= 2) {
		struct str *swap = from;

		for (size_t at = 0; at < count; at += 2 * run) {
			size_t left = count - at;

			TRY(ids_merge(from + at, left < run ? left : run,
				      left < 2 * run ? left : 2 * run, to + at));
		}
		from = to;
		to = swap;
	}
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || !str_eq(from[i], from[kept - 1]))
			from[kept++] = from[i];
	}
	g->ids = (struct ids){ from, kept, kept };
	return STATUS_OK;
}

/* ---- Reading ---- */

static enum status
gather_take(void *arg, const struct index_def *def, const struct index_entry *entry)
{
	struct gathering *g = arg;

	(void)def;
	buf_clear(&g->last);
	buf_append_str(&g->last, entry->key);
	TRY(buf_status(&g->last));
	TRY(step_count(1));
	if (g->within) {
		size_t at = ids_find(g->within, entry->id);

		if (at == g->within->count || !str_eq(g->within->items[at], entry->id))
			return STATUS_OK;
	}
	return ids_add(g, entry->id);
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
		.most = SETS_PAGE_ENTRIES,
		.take = gather_take,
		.arg = g,
	};
	uint64_t reads = kv_reads_mark(tx);

	g->ids.count = g->before;
	buf_clear(&g->last);
	TRY(entries_read(r, tx, &entries, &g->entries));
	g->more = g->entries == SETS_PAGE_ENTRIES;
	kv_reads_forget(tx, reads);
	return STATUS_OK;
}

/* Reads the ids of one index, or those that the selector names. */
static enum status
gather_read(struct gathering *g, const struct plan_read *read)
{
	struct arena_mark mark = arena_mark(g->f->r->arena);

	for (size_t i = 0; i < read->ids_count; i++)
		TRY(ids_add(g, read->ids[i]));
	g->read = read;
	g->more = read->index != NULL;
	buf_clear(&g->after);
	while (g->more) {
		g->before = g->ids.count;
		TRY(couch_snapshot_run(&g->f->snapshot, gather_page, g));
		arena_reset(g->f->r->arena, mark);
		g->f->keys += g->entries;
		TRY(find_check_limits(g->f));
		buf_clear(&g->after);
		buf_append_str(&g->after, buf_str(&g->last));
		TRY(buf_status(&g->after));
	}
	return STATUS_OK;
}

static enum status
gather_all(struct gathering *g)
{
	const struct plan *p = &g->f->plan;
	struct ids within;

	for (size_t i = 0; i < p->reads_count; i++) {
		TRY(gather_read(g, &p->reads[i]));
		if (!p->intersects || i + 1 == p->reads_count)
			continue;
		TRY(ids_settle(g));
		within = g->ids;
		g->within = &within;
		g->ids = (struct ids){ 0 };
	}
	return ids_settle(g);
}

enum status
find_gather(struct find *f)
{
	struct gathering g = {
		.f = f,
		.arena = arena_new((size_t)f->r->settings->sort_bytes),
		.after = BUF_INIT(BOOKMARK_BYTES),
		.last = BUF_INIT(BOOKMARK_BYTES),
	};
	enum status status = STATUS_NOMEM;

	f->list_arena = g.arena;
	if (g.arena) {
		arena_set_part(g.arena, http_memory(f->r->x));
		status = gather_all(&g);
	}
	buf_release(&g.after);
	buf_release(&g.last);
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
	return STATUS_OK;
}

/*
 * What each way to find the documents of a query costs, and which one is taken.
 *
 * CouchDB's choice is the first, and it stands if it reads few rows: then nothing has to be counted
 * but its own rows, and queries of small databases go as in CouchDB. Otherwise these are compared:
 *
 * - another index that gives the order, or any order if none is asked for;
 * - ids that the selector names, or that lie in several indexes at the same time, or in one of
 *   several for each member of an $or, or simply in another index. These come by id, and are sorted
 *   in memory where another order is asked for;
 * - all documents of a range of ids.
 */
#include <assert.h>

#include "door/couch/query/plan_int.h"
#include "model/revisioned/list.h"

enum {
	WAYS_FEW = 64,      /* rows that are read without looking for less */
	WAYS_BETTER = 2,    /* how many times cheaper another way has to be */
	WAYS_BRANCHES = 64, /* members of an $or that are looked up one by one */

	/* In units of an entry that is read beside others. */
	COST_FETCH = 4, /* a document whose id an entry tells */
	COST_SCAN = 2,  /* one of a range of ids */
};

struct way {
	struct plan_candidate *order; /* which index the answer follows */
	enum plan_way way;
	struct plan_read *reads;
	size_t reads_count;
	bool intersects;
	uint64_t rows;
	double whole; /* what it costs in any case */
	double paged; /* what it costs to the last of its rows; it may end before */
};

struct ways {
	struct planner *m;
	struct way *items; /* the first is CouchDB's choice */
	size_t count;
	size_t cap;
	uint64_t documents; /* of the range of ids */
	uint64_t fewest;    /* rows that a way reads: there are no more matches */
	uint64_t wanted;    /* documents of the page, with those that are skipped */
	bool pinned;        /* by a bookmark: the order is given */
};

static enum status
ways_offer(struct ways *w, const struct way *way)
{
	TRY(arena_room(w->m->r->arena, &w->items, w->count, &w->cap, sizeof(*w->items)));
	w->items[w->count++] = *way;
	return STATUS_OK;
}

static double
way_cost(const struct ways *w, const struct way *way)
{
	return way->whole + choice_cost_until(way->paged, w->wanted, w->fewest);
}

/* ---- One way ---- */

static void
way_fill_index(const struct ways *w, struct way *way)
{
	struct plan_candidate *c = way->order;
	double each = candidate_covers_all(c, w->m->args->normal) ? 1 : 1 + COST_FETCH;

	way->way = PLAN_INDEX;
	way->reads = &c->read;
	way->reads_count = 1;
	way->rows = c->read.rows;
	way->paged = (double)c->read.rows * each;
}

/* A sort needs all that match before it knows the first. */
static void
way_add_documents(struct way *way, double cost)
{
	*(way->order->index->ddoc.ptr ? &way->whole : &way->paged) += cost;
}

static void
way_fill_ids(const struct ways *w, struct way *way)
{
	way->way = PLAN_IDS;
	way->rows = w->documents;
	way_add_documents(way, (double)w->documents * COST_SCAN);
}

/* ---- Sets ---- */

/* Offers ids that are put together. Their memory is that of a sort. */
static enum status
ways_offer_sets(struct ways *w, struct plan_candidate *order, struct plan_read *reads, size_t count,
		bool intersects)
{
	struct way way = {
		.order = order,
		.way = PLAN_SETS,
		.reads = reads,
		.reads_count = count,
		.intersects = intersects,
	};
	bool all = order->index->ddoc.ptr || w->m->args->aggregate;
	uint64_t most = plan_most_ids(w->m->r);
	double fetched = 0;
	bool windows, bounded;

	for (size_t i = 0; i < count; i++)
		way.rows += reads[i].rows;
	windows = bounded = way.rows > (all ? most : PLAN_WINDOW_ROWS);
	for (size_t i = 0; i < count; i++) {
		double rows = (double)reads[i].rows;
		double entries = reads[i].index ? rows : 0;
		bool points = plan_read_is_points(&reads[i]);

		/* With windows, each index is read only as far as a page needs. */
		*(windows && points && !all ? &way.paged : &way.whole) += entries;
		bounded = bounded && points;
		fetched = !intersects || i == 0 ? fetched + rows
						: fetched * rows / ((double)w->documents + 1);
	}
	if (!bounded && way.rows > most)
		return STATUS_OK;
	if (fetched < (double)w->fewest)
		w->fewest = (uint64_t)fetched;
	way_add_documents(&way, fetched * COST_FETCH);
	return ways_offer(w, &way);
}

/* The index with the fewest rows that begins with another column than `but` does. */
static const struct plan_candidate *
ways_find_fewest(const struct plan *p, const struct plan_candidate *but)
{
	const struct plan_candidate *best = NULL;

	for (size_t i = 0; i < p->count; i++) {
		const struct plan_candidate *c = &p->candidates[i];

		if (!c->read.counted ||
		    (but && normal_path_eq(&c->index->paths[0], &but->index->paths[0])))
			continue;
		if (!best || c->read.rows < best->read.rows)
			best = c;
	}
	return best;
}

/* Two indexes, both of which have the ids of all matches; and the better one of them by itself. */
static enum status
ways_try_intersection(struct ways *w, struct plan_candidate *order)
{
	const struct plan_candidate *first = ways_find_fewest(w->m->p, NULL);
	const struct plan_candidate *second = first ? ways_find_fewest(w->m->p, first) : NULL;
	struct plan_read *reads = arena_alloc(w->m->r->arena, 2 * sizeof(*reads));

	if (!reads)
		return STATUS_LIMIT;
	if (!first)
		return STATUS_OK;
	reads[0] = first->read;
	TRY(ways_offer_sets(w, order, reads, 1, false));
	if (!second)
		return STATUS_OK;
	reads[1] = second->read;
	return ways_offer_sets(w, order, reads, 2, true);
}

/* What is read for one member of an $or: the ids that it names, or the index with fewest rows. */
static enum status
branch_choose(struct ways *w, const struct normal_node *n, struct plan_read *ret, bool *ret_found)
{
	struct planner *m = w->m;

	TRY(read_make_ids(m, n, ret, ret_found));
	for (size_t i = 0; i < m->p->count && !*ret_found; i++) {
		const struct plan_candidate *c = &m->p->candidates[i];
		struct plan_read read;
		bool readable;

		if (c->partial || !c->in_scope || !c->index->ddoc.ptr ||
		    !candidate_is_required(m->args, n, c->index))
			continue;
		TRY(read_make(m, n, c->index, &read, &readable));
		if (!readable)
			continue;
		TRY(read_count(m, &read));
		if (!ret->counted || read.rows < ret->rows)
			*ret = read;
	}
	*ret_found = ret->counted;
	return STATUS_OK;
}

/* An $or, each member of which is looked up by itself; `others` hold for all of them. */
static enum status
ways_try_union(struct ways *w, struct plan_candidate *order, const struct normal_node *any,
	       const struct normal_node *others)
{
	struct plan_read *reads;
	size_t count = 0;

	for (const struct normal_node *i = any->first; i; i = i->next)
		count++;
	if (count == 0 || count > WAYS_BRANCHES)
		return STATUS_OK;
	reads = arena_zalloc(w->m->r->arena, count * sizeof(*reads));
	if (!reads)
		return STATUS_LIMIT;
	count = 0;
	for (const struct normal_node *i = any->first; i; i = i->next) {
		struct normal_node member = *i, rest = { .kind = NORMAL_AND };
		struct normal_node both = { .kind = NORMAL_AND, .first = &member };
		bool found;

		rest.first = others ? others->first : NULL;
		member.next = &rest;
		TRY(branch_choose(w, &both, &reads[count], &found));
		/* All members or none: a match may be in the one that no index has. */
		if (!found)
			return STATUS_OK;
		count++;
	}
	assert(count);
	return ways_offer_sets(w, order, reads, count, false);
}

/* Each $or that every match has to meet. */
static enum status
ways_try_unions(struct ways *w, struct plan_candidate *order, const struct normal_node *n)
{
	if (n->kind == NORMAL_OR)
		return ways_try_union(w, order, n, NULL);
	for (const struct normal_node *i = n->kind == NORMAL_AND ? n->first : NULL; i;
	     i = i->next) {
		if (i->kind == NORMAL_OR)
			TRY(ways_try_union(w, order, i, n));
	}
	return STATUS_OK;
}

/* ---- All of them ---- */

/* Indexes that the answer may follow. */
static enum status
ways_try_indexes(struct ways *w)
{
	struct plan *p = w->m->p;

	for (size_t i = 0; i < p->count && !w->pinned; i++) {
		struct plan_candidate *c = &p->candidates[i];
		struct way way = { .order = c };

		if (!c->read.counted || !c->order || c == w->m->best)
			continue;
		way_fill_index(w, &way);
		TRY(ways_offer(w, &way));
	}
	return STATUS_OK;
}

/* Documents may come by id where no order is asked for, and no index was named. */
static struct plan_candidate *
ways_find_order(const struct ways *w)
{
	const struct plan *p = w->m->p;

	for (size_t i = 0; i < p->count && !w->pinned && !w->m->args->sort.count; i++) {
		if (!p->candidates[i].index->ddoc.ptr && p->candidates[i].considered)
			return &p->candidates[i];
	}
	return w->m->best;
}

static enum status
ways_try_ids(struct ways *w, struct plan_candidate *order)
{
	struct way way = { .order = order };

	if (!w->m->p->ids.has_begin && !w->m->p->ids.has_end)
		return STATUS_OK;
	way_fill_ids(w, &way);
	return ways_offer(w, &way);
}

static enum status
ways_try_sets(struct ways *w, struct plan_candidate *order)
{
	struct planner *m = w->m;
	struct plan_read *ids = arena_alloc(m->r->arena, sizeof(*ids));
	bool any;

	if (!ids)
		return STATUS_LIMIT;
	TRY(read_make_ids(m, m->args->normal, ids, &any));
	if (any)
		TRY(ways_offer_sets(w, order, ids, 1, false));
	TRY(ways_try_intersection(w, order));
	return ways_try_unions(w, order, m->args->normal);
}

/* True if the index has the ids of all matches. */
static bool
candidate_has_all(const struct plan_candidate *c)
{
	return c->in_scope && c->required && c->index->ddoc.ptr &&
	       (!c->partial || c->named || c->implied);
}

/* Makes and counts what would be read of each index that has the ids of all matches. */
static enum status
ways_count_reads(struct ways *w)
{
	struct planner *m = w->m;

	for (size_t i = 0; i < m->p->count; i++) {
		struct plan_candidate *c = &m->p->candidates[i];

		if (!candidate_has_all(c))
			continue;
		if (!c->readable)
			TRY(read_make(m, m->args->normal, c->index, &c->read, &c->readable));
		if (!c->readable)
			continue;
		TRY(read_count(m, &c->read));
		if (c->read.counted && c->read.rows < w->fewest)
			w->fewest = c->read.rows;
	}
	return STATUS_OK;
}

/* True if every match has to meet an $or, whose members may be looked up one by one. */
static bool
selector_has_or(const struct normal_node *n)
{
	if (n->kind == NORMAL_OR)
		return true;
	for (const struct normal_node *i = n->kind == NORMAL_AND ? n->first : NULL; i;
	     i = i->next) {
		if (i->kind == NORMAL_OR)
			return true;
	}
	return false;
}

/* True for conditions that must all hold, each of which asks for one value of a field. */
static bool
selector_is_equalities(const struct normal_node *n)
{
	if (n->kind == NORMAL_FIELD)
		return n->op == NORMAL_EQ && !n->negated;
	for (const struct normal_node *i = n->first; i; i = i->next) {
		if (!selector_is_equalities(i))
			return false;
	}
	return n->kind == NORMAL_AND;
}

/*
 * True if the selector asks for one value of each column of CouchDB's choice, and for nothing else.
 * Its entries are the matches then, and their documents are shown, so no other way reads less.
 */
static bool
ways_first_is_plain(const struct ways *w)
{
	const struct planner *m = w->m;
	const struct plan_candidate *c = m->best;

	return w->items[0].way == PLAN_INDEX && !m->args->shown && !m->args->aggregate &&
	       m->p->ranges.count == c->index->columns.count &&
	       c->prefix == c->index->columns.count && selector_is_equalities(m->args->normal);
}

/* True if there may be another way than CouchDB's choice. */
static bool
ways_has_others(const struct ways *w)
{
	const struct planner *m = w->m;
	const struct plan *p = m->p;
	bool any = selector_has_or(m->args->normal);

	if (p->any_named || p->no_ids || (w->pinned && w->items[0].way == PLAN_INDEX) ||
	    ways_first_is_plain(w))
		return false;
	if (!m->best->index->ddoc.ptr && !read_names_ids(m->args->normal) &&
	    !index_set_of(m->r->db))
		return false;
	if (p->ids.has_begin || p->ids.has_end || read_names_ids(m->args->normal))
		return true;
	for (size_t i = 0; i < p->count; i++) {
		const struct plan_candidate *c = &p->candidates[i];

		if (c != m->best && c->index->ddoc.ptr && (any || candidate_has_all(c)))
			return true;
	}
	return false;
}

/* Counts the rows of CouchDB's choice. */
static enum status
ways_count_first(struct ways *w)
{
	struct planner *m = w->m;
	struct way *first = &w->items[0];

	m->p->counted = true;
	if (first->way == PLAN_INDEX) {
		TRY(read_count(m, &m->best->read));
		way_fill_index(w, first);
		return STATUS_OK;
	}
	TRY(rev_all_docs_estimate(m->tx, m->r->db, &m->p->ids, &w->documents));
	way_fill_ids(w, first);
	return STATUS_OK;
}

static enum status
ways_compare(struct ways *w)
{
	struct plan_candidate *order = ways_find_order(w);

	if (w->items[0].way == PLAN_INDEX)
		TRY(rev_all_docs_estimate(w->m->tx, w->m->r->db, &w->m->p->ids, &w->documents));
	w->fewest = w->documents;
	TRY(ways_count_reads(w));
	TRY(ways_try_indexes(w));
	TRY(ways_try_ids(w, order));
	return ways_try_sets(w, order);
}

/* CouchDB's choice, before anything is counted. */
static enum status
ways_begin(struct ways *w, bool sorted)
{
	struct planner *m = w->m;
	struct plan_candidate *c = m->best;
	struct way way = { .order = c, .way = PLAN_IDS };

	TRY(read_make(m, m->args->normal, c->index, &c->read, &c->readable));
	if (c->readable && !sorted) {
		way.way = PLAN_INDEX;
		way.reads = &c->read;
		way.reads_count = 1;
	}
	return ways_offer(w, &way);
}

/* Another way has to be clearly better than CouchDB's. */
static const struct way *
ways_find_best(const struct ways *w)
{
	const struct way *best = &w->items[0];
	double least = way_cost(w, best) / WAYS_BETTER;

	for (size_t i = 1; i < w->count; i++) {
		double cost = way_cost(w, &w->items[i]);

		if (cost >= least)
			continue;
		best = &w->items[i];
		least = cost;
	}
	return best;
}

/* Prefers an index of which nothing has to be read to count the matches. */
static enum status
ways_try_sure(struct ways *w)
{
	struct planner *m = w->m;

	if (plan_read_is_sure(&m->best->read) || m->args->normal->kind == NORMAL_ANYTHING)
		return STATUS_OK;
	for (size_t i = 0; i < m->p->count; i++) {
		struct plan_candidate *c = &m->p->candidates[i];
		struct way way = { .order = c };

		if (!c->considered || c == m->best)
			continue;
		TRY(read_make(m, m->args->normal, c->index, &c->read, &c->readable));
		if (!c->readable || !plan_read_is_sure(&c->read))
			continue;
		way_fill_index(w, &way);
		w->items[0] = way;
		return STATUS_OK;
	}
	return STATUS_OK;
}

enum status
ways_choose(struct planner *m, const struct plan_terms *terms)
{
	const struct bookmark *after = terms->after;
	struct ways w = {
		.m = m,
		.fewest = UINT64_MAX,
		.wanted = m->args->skip > UINT64_MAX - m->args->limit
				  ? UINT64_MAX
				  : m->args->skip + m->args->limit,
		.pinned = after != NULL,
	};
	const struct way *best;
	bool others;

	TRY(ways_begin(&w, after && after->place.len && after->place.ptr[0] == PLAN_PLACE_SORTED));
	if (terms->counts)
		TRY(ways_try_sure(&w));
	others = !terms->first && ways_has_others(&w);
	if (others || terms->explain)
		TRY(ways_count_first(&w));
	if (others && w.items[0].rows > WAYS_FEW)
		TRY(ways_compare(&w));
	if (terms->explain)
		TRY(ways_count_reads(&w));
	best = ways_find_best(&w);
	if (best->order != m->best)
		candidates_promote(m, best->order);
	m->p->way = best->way;
	m->p->reads = best->reads;
	m->p->reads_count = best->reads_count;
	m->p->intersects = best->intersects;
	m->p->rows = m->p->no_ids ? 0 : best->rows;
	return STATUS_OK;
}

#include "base/quote.h"
#include "door/couch/query/plan_int.h"
#include "door/couch/wire/error.h"
#include "index/json/form.h"
#include "model/revisioned/revisioned.h"

/* ---- use_index ---- */

static enum status
plan_refuse_use_index(struct couch_req *r, const struct find_args *args)
{
	struct str ddoc;

	if (!args->use_index_count)
		return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_INDEX,
				      "You must specify an index with the `use_index` parameter.");
	ddoc = plan_named_design(args);
	if (args->use_index_count == 1)
		return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_INDEX,
				      "_design/%s specified by `use_index` could not be found or "
				      "it is not suitable.",
				      QUOTE_SHOW(ddoc));
	return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_INDEX,
			      "_design/%s, %s specified by `use_index` could not be found or it is "
			      "not suitable.",
			      QUOTE_SHOW(ddoc), QUOTE_SHOW(args->use_index[1]));
}

static enum status
plan_refuse_sort(struct couch_req *r, const struct find_args *args)
{
	const char *scope = !rev_db_is_partitioned(r->db) ? ""
			    : args->partition.ptr         ? "partitioned "
							  : "global ";

	return couch_fail_set(&r->fail, COUCH_ERROR_NO_USABLE_INDEX,
			      "No %sindex exists for this sort, try indexing by the sort fields.",
			      scope);
}

/* Excludes what use_index does not name, unless it names nothing that is usable. */
static enum status
plan_apply_use_index(struct planner *m, bool explain)
{
	const struct find_args *args = m->args;
	struct plan *p = m->p;
	size_t usable = 0;

	for (size_t i = 0; i < p->count; i++) {
		usable += p->candidates[i].usable;
		p->any_named = p->any_named || (p->candidates[i].usable && p->candidates[i].named);
	}
	if (usable == 0 && !explain)
		return plan_refuse_sort(m->r, args);
	if (!p->any_named && !args->allow_fallback && (args->use_index_count || usable <= 1))
		return plan_refuse_use_index(m->r, args);
	for (size_t i = 0; i < p->count; i++) {
		struct plan_candidate *c = &p->candidates[i];

		c->considered = c->usable && (!p->any_named || c->named);
		m->any_json = m->any_json || (c->considered && c->index->ddoc.ptr);
	}
	return STATUS_OK;
}

/* ---- Bookmarks ---- */

void
plan_write_name(const struct query_index *index, struct buf *out)
{
	if (!index->ddoc.ptr)
		return;
	buf_append_str(out, index->ddoc);
	buf_append_byte(out, '/');
	buf_append_str(out, index->name);
}

/* A place in an index is an entry's key or, after a sort, an array; by id there is none. */
static bool
place_is_of(struct str place, const struct query_index *index)
{
	if (!index->ddoc.ptr)
		return place.len == 0;
	return place.len && (place.ptr[0] == PLAN_PLACE_KEY || place.ptr[0] == PLAN_PLACE_SORTED);
}

/* Makes the index that the bookmark comes from the best one. */
static enum status
plan_pin(struct planner *m, const struct bookmark *after)
{
	for (size_t i = 0; i < m->p->count; i++) {
		struct plan_candidate *c = &m->p->candidates[i];
		AUTO(buf_release) struct buf own = BUF_SHORT(BOOKMARK_BYTES);

		plan_write_name(c->index, &own);
		TRY(buf_status(&own));
		if (!str_eq(buf_str(&own), after->index) || (!c->considered && !c->implied))
			continue;
		if (m->best != c)
			candidates_promote(m, c);
		return place_is_of(after->place, c->index) ? STATUS_OK : STATUS_INVALID;
	}
	return STATUS_INVALID;
}

/* ---- The whole ---- */

/* The ids that may match. */
static enum status
plan_narrow_ids(struct planner *m)
{
	struct id_range ids = { 0 };

	TRY(id_range_narrow(m->args->normal, m->r->arena, &ids));
	if (m->args->partition.ptr)
		TRY(id_range_of_partition(m->args->partition, m->r->arena, &ids));
	m->p->ids = id_range_names(&ids, false);
	m->p->no_ids = ids.empty;
	return STATUS_OK;
}

static enum status
plan_judge(struct planner *m, const struct query_indexes *indexes)
{
	struct plan *p = m->p;

	for (size_t i = 0; i < p->count; i++) {
		struct plan_candidate *c = &p->candidates[i];

		c->index = &indexes->items[i];
		candidate_judge(m->args, p, c);
		if (c->partial && !c->named && c->in_scope && c->required && c->order)
			TRY(filter_is_implied(m->args->normal, c->index->filter, &m->order,
					      &c->implied));
	}
	return STATUS_OK;
}

bool
plan_sorts(const struct plan *p)
{
	return p->way != PLAN_INDEX && p->chosen->ddoc.ptr;
}

bool
plan_needs_all(const struct plan *p, const struct find_args *args)
{
	return plan_sorts(p) || args->aggregate;
}

bool
plan_follow_index(struct plan *p)
{
	for (size_t i = 0; i < p->count; i++) {
		struct plan_candidate *c = &p->candidates[i];

		if (c->index != p->chosen || !c->readable)
			continue;
		p->way = PLAN_INDEX;
		p->reads = &c->read;
		p->reads_count = 1;
		return true;
	}
	return false;
}

enum status
plan_make(struct couch_req *r, struct kv_tx *tx, const struct find_args *args,
	  const struct query_indexes *indexes, const struct plan_terms *terms, struct plan *ret)
{
	const struct normal_node *n = args->normal;
	struct planner m = { .r = r, .tx = tx, .args = args, .p = ret };

	m.work.arena = r->arena;
	m.order = (struct value_order){ .form = &index_json_form, .w = &m.work };
	*ret = (struct plan){
		.candidates = arena_zalloc(r->arena,
					   (indexes->count + 1) * sizeof(*ret->candidates)),
		.count = indexes->count,
		.nothing = (n->kind == NORMAL_AND || n->kind == NORMAL_OR) && !n->first,
		.db_number = r->db->number,
	};
	if (!ret->candidates)
		return STATUS_LIMIT;
	TRY(field_ranges_read(n, &m.order, &ret->ranges));
	TRY(plan_narrow_ids(&m));
	TRY(plan_judge(&m, indexes));
	TRY(plan_apply_use_index(&m, terms->explain));
	candidates_rank(&m);
	if (terms->after)
		TRY(plan_pin(&m, terms->after));
	if (!m.best)
		return STATUS_OK;
	TRY(ways_choose(&m, terms));
	ret->chosen = m.best->index;
	ret->incomplete = ret->chosen->ddoc.ptr && !m.best->readable;
	ret->covers = candidate_covers_all(m.best, n);
	/* Nothing that is sorted can go on behind a page of entries. */
	if (terms->after && plan_sorts(ret) && terms->after->place.ptr[0] == PLAN_PLACE_KEY)
		return STATUS_INVALID;
	return STATUS_OK;
}

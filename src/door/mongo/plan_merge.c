/*
 * Ranges of an index that are merged: each is of other values of the index's first columns, and all
 * are read side by side, so that entries come in the order of what is behind those columns.
 *
 * Only indexes at whose columns no document has an array are merged. A document then has one entry
 * in each, and no two entries of different documents are equal, since the `_id` is the last thing
 * that is compared. Branches of a $or may use several indexes and find a document more than once:
 * its entries then compare as equal, and it is given once.
 */
#include <assert.h>

#include "door/mongo/plan_int.h"
#include "index/bson/entry.h"
#include "kv/tuple.h"

struct plan_merged {
	const struct index_def *def;
	const struct index_range *range;
	size_t columns; /* of a key, which the comparison leaves out */
	struct index_scan scan;
	struct index_entry head; /* the next entry of the range */
	struct str order;        /* of its key, what is behind the columns */
	struct buf id;           /* of the entry */
	bool scans;
	bool has_head;
};

/* The columns of a key that the ranges differ in. */
static enum status
merged_columns(const struct plan_merged *m, struct str key, struct str *ret)
{
	struct tuple_reader r = tuple_reader(key);

	*ret = str_of(key.ptr, 0);
	return m->columns ? tuple_skip_strings(&r, m->columns, ret) : STATUS_OK;
}

/*
 * The key behind which a range goes on: the range's own columns, and behind them what the place has
 * there. The place of merged branches has no columns in front of that.
 */
static enum status
merged_after(const struct plan_walk *w, const struct plan_merged *m, struct str place,
	     struct buf *ret)
{
	AUTO(buf_release) struct buf prefix = BUF_INIT(KV_LIMIT_KEY_BYTES);
	struct str own, columns = STR("");

	index_key_entries(&prefix, w->p->db, m->def->number);
	TRY(buf_status(&prefix));
	TRY(merged_columns(m, str_skip(m->range->begin, prefix.len), &own));
	if (!w->plan->branch_count)
		TRY(merged_columns(m, place, &columns));
	buf_append_str(ret, own);
	buf_append_str(ret, str_skip(place, columns.len));
	return buf_status(ret);
}

static enum status
merged_open(struct plan_walk *w, struct str place, struct plan_merged *m)
{
	AUTO(buf_release) struct buf after = BUF_INIT(2 * KV_LIMIT_KEY_BYTES);
	struct index_scan_options options = {
		.reverse = w->plan->reverse,
		.mode = w->mode,
		.first = w->plan->first,
		.limit_bytes = PLAN_MERGED_BYTES / w->plan->range_count,
		.ahead = true,
	};

	if (place.len) {
		TRY(merged_after(w, m, place, &after));
		options.after = buf_str(&after);
	}
	TRY(index_scan_init(&m->scan, w->p->tx, w->p->db, m->def, m->range, &options));
	m->scans = true;
	return STATUS_OK;
}

/* Lists the ranges of the plan, or of all of its branches, each with its index. */
static void
merged_list(const struct plan *plan, struct plan_merged *ret)
{
	size_t at = 0;

	for (size_t i = 0; !plan->branch_count && i < plan->range_count; i++)
		ret[at++] = (struct plan_merged){ .def = plan->def,
						  .range = &plan->ranges[i],
						  .columns = plan->merged };
	for (size_t i = 0; i < plan->branch_count; i++)
		for (size_t k = 0; k < plan->branches[i].range_count; k++)
			ret[at++] = (struct plan_merged){
				.def = plan->branches[i].asked->def,
				.range = &plan->branches[i].ranges[k],
				.columns = plan->branches[i].asked->points,
			};
	assert(at == plan->range_count);
}

enum status
plan_merge_open(struct plan_walk *w, struct str place, struct arena *arena)
{
	const struct plan *plan = w->plan;

	assert(plan->range_count <= PLAN_MERGED);
	w->merged = arena_zalloc(arena, (plan->range_count + 1) * sizeof(*w->merged));
	if (!w->merged)
		return STATUS_LIMIT;
	merged_list(plan, w->merged);
	for (size_t i = 0; i < plan->range_count; i++)
		w->merged[i].id = BUF_INIT(KV_LIMIT_KEY_BYTES);
	for (size_t i = 0; i < plan->range_count; i++)
		TRY(merged_open(w, place, &w->merged[i]));
	return STATUS_OK;
}

/* Reads the next entry of a range. At its end the scan is closed. */
static enum status
merged_read(struct plan_walk *w, struct plan_merged *m)
{
	struct index_work work = { .arena = w->arena };
	enum status status;
	struct str columns;

	m->head = (struct index_entry){ 0 };
	status = w->plan->covered ? index_bson_scan_next(&m->scan, &work, &m->head)
				  : index_scan_next(&m->scan, &work, &m->head);
	if (status == STATUS_NOT_FOUND) {
		index_scan_release(&m->scan);
		m->scans = false;
		return STATUS_OK;
	}
	TRY(status);
	/* It may lie in the arena, which is cleared before the entry's turn comes. */
	buf_clear(&m->id);
	buf_append_str(&m->id, m->head.id);
	TRY(buf_status(&m->id));
	m->head.id = buf_str(&m->id);
	TRY(merged_columns(m, m->head.key, &columns));
	m->order = str_skip(m->head.key, columns.len);
	m->has_head = true;
	return STATUS_OK;
}

enum status
plan_merge_next(struct plan_walk *w, struct index_entry *ret)
{
	struct plan_merged *best = NULL;

	for (size_t i = 0; i < w->plan->range_count; i++) {
		struct plan_merged *m = &w->merged[i];
		int order;

		if (m->scans && !m->has_head)
			TRY(merged_read(w, m));
		if (!m->scans)
			continue;
		order = best ? str_cmp(m->order, best->order) : 0;
		if (!best || (w->plan->reverse ? order > 0 : order < 0))
			best = m;
	}
	if (!best)
		return STATUS_NOT_FOUND;
	*ret = best->head;
	if (w->plan->branch_count)
		ret->key = best->order;
	for (size_t i = 0; i < w->plan->range_count; i++)
		if (w->merged[i].has_head && str_eq(w->merged[i].order, best->order))
			w->merged[i].has_head = false;
	return STATUS_OK;
}

void
plan_merge_close(struct plan_walk *w)
{
	for (size_t i = 0; w->merged && i < w->plan->range_count; i++) {
		if (w->merged[i].scans)
			index_scan_release(&w->merged[i].scan);
		buf_release(&w->merged[i].id);
	}
	w->merged = NULL;
}

#include "model/revisioned/revisioned_int.h"

/* One document while it is purged. */
struct purging {
	struct kv_future *future;
	struct rev_rows rows;
	struct kv_future **atts; /* of each row that goes and has some */
	bool any;
};

static enum status
check_queries(const struct rev_purge_query *queries, size_t count, struct err *err)
{
	if (count > REV_PURGE_DOCS)
		return err_set(err, STATUS_INVALID, "More than %d documents to be purged at once.",
			       REV_PURGE_DOCS);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < i; j++)
			if (str_eq(queries[i].id, queries[j].id))
				return err_set(err, STATUS_INVALID,
					       "The same document twice in a transaction.");
	return STATUS_OK;
}

/* The row of that revision that is not on its way out already. */
static struct rev_row *
find_leaf(struct rev_rows *rows, struct rev_id rev)
{
	for (size_t i = 0; i < rows->count; i++)
		if (!rows->rows[i].replaced && rev_id_eq(rows->rows[i].rev, rev))
			return &rows->rows[i];
	return NULL;
}

/* Which leaves go; asks for their attachments. */
static enum status
mark(struct rev_writer *w, const struct rev_purge_query *query, struct purging *p,
     struct rev_purge_result *result)
{
	result->count = 0;
	result->revs = arena_alloc(w->arena,
				   (query->count ? query->count : 1) * sizeof(*result->revs));
	p->atts = arena_zalloc(w->arena,
			       (p->rows.count ? p->rows.count : 1) * sizeof(struct kv_future *));
	if (!result->revs || !p->atts)
		return STATUS_LIMIT;
	for (size_t i = 0; i < query->count; i++) {
		struct rev_row *row = find_leaf(&p->rows, query->revs[i]);

		if (!row)
			continue;
		row->replaced = true;
		p->any = true;
		result->revs[result->count++] = query->revs[i];
		if (row->has_atts)
			TRY(rev_atts_get(w->tx, w->db, query->id, row->rev, row->deleted, &w->key,
					 &p->atts[row - p->rows.rows]));
	}
	return STATUS_OK;
}

static enum status
purge_one(struct rev_writer *w, const struct rev_purge_query *query, struct purging *p,
	  uint16_t order)
{
	const struct rev_edit edit = { .id = query->id };
	const struct rev_update u = {
		.edit = &edit,
		.order = order,
		.rows = p->rows.rows,
		.count = p->rows.count,
	};

	if (!p->any)
		return STATUS_OK;
	for (size_t i = 0; i < u.count; i++) {
		const struct rev_row *row = &u.rows[i];
		struct rev_att_list list;

		if (!p->atts[i])
			continue;
		TRY(rev_atts_wait(w->tx, w->db, query->id, row->rev, row->deleted, p->atts[i],
				  &w->key, w->arena, &list));
		TRY(rev_atts_count(w, list.atts, list.count, -1));
	}
	return rev_update_purge(w, &u);
}

static enum status
purge_all(struct rev_writer *w, const struct rev_purge_query *queries, size_t count,
	  struct rev_purge_result *results)
{
	struct purging *all = arena_zalloc(w->arena, (count ? count : 1) * sizeof(*all));

	if (!all)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		/* No key can be so long: there is no such document. */
		if (queries[i].id.len <= REV_DOC_ID_BYTES)
			TRY(rev_rows_read(w->tx, w->db, queries[i].id, 0, KV_READ, &w->key,
					  &all[i].future));
	}
	for (size_t i = 0; i < count; i++) {
		if (all[i].future)
			TRY(rev_rows_wait(w->tx, w->db, queries[i].id, 0, KV_READ, all[i].future,
					  &w->key, w->arena, &all[i].rows));
		TRY(mark(w, &queries[i], &all[i], &results[i]));
	}
	for (size_t i = 0; i < count; i++)
		TRY(purge_one(w, &queries[i], &all[i], (uint16_t)i));
	if (w->changed)
		TRY(rev_stat_purged(w->tx, w->db, w->last_order, &w->key));
	return rev_writer_finish(w);
}

enum status
rev_purge(struct kv_tx *tx, const struct rev_db *db, const struct rev_purge_query *queries,
	  size_t count, struct arena *arena, struct rev_purge_result *ret_results, struct err *err)
{
	struct rev_writer w = {
		.tx = tx,
		.db = db,
		.arena = arena,
		.key = REV_KEY_INIT,
		.value = BUF_INIT(KV_LIMIT_VALUE_BYTES),
	};
	enum status status;

	TRY(rev_db_check_writable(db, err));
	TRY(check_queries(queries, count, err));
	w.guide = rev_guide_get(db);
	status = purge_all(&w, queries, count, ret_results);
	rev_guide_unref(w.guide);
	buf_release(&w.key);
	buf_release(&w.value);
	return status;
}

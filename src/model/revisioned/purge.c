/*
 * Purging: heads are removed together with all that the document has of them.
 *
 * Of k heads that may go, the best that stays is among the last k + 1 branches, so these are read.
 * Where the document may have more branches, those of the k that were not among them are then asked
 * for by their keys. So a purge costs the same in a document with thousands of branches.
 */
#include "loop/step.h"
#include "model/revisioned/rev_set.h"
#include "model/revisioned/revisioned_int.h"

/* The branch record of a head that may lie further down: under one of these two keys. */
struct purge_ask {
	struct kv_future *live;
	struct kv_future *deleted;
};

/* One document while it is purged. */
struct purge_of_document {
	struct kv_future *future;
	struct rev_set set;    /* of the revisions to be purged */
	bool *found;           /* by number in the set: it is a head */
	struct purge_ask *ask; /* by number; NULL: all branches have been read */
	struct rev_branch_records rows;
	struct kv_future **atts; /* by row: the attachments of a head that is removed, or NULL */
	bool any;                /* a head is removed */
	struct rev_index_change *index; /* what indexes need to know; NULL: nothing */
};

static enum status
purge_check_queries(const struct rev_purge_query *queries, size_t count, struct err *err)
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

static enum status
purge_ask_best(struct rev_writer *w, const struct rev_purge_query *query,
	       struct purge_of_document *p)
{
	TRY(rev_set_init(&p->set, query->count, w->arena));
	for (size_t i = 0; i < query->count; i++)
		(void)rev_set_add(&p->set, query->revs[i]);
	TRY(step_count((uint32_t)query->count));
	p->found = arena_zalloc(w->arena, p->set.count + 1);
	if (!p->found)
		return STATUS_LIMIT;
	/* No key can be as long as a longer id, so there is no such document. */
	if (query->id.len > REV_DOC_ID_BYTES)
		return STATUS_OK;
	return rev_branches_read(w->tx, w->db, query->id, p->set.count + 1, KV_READ, &w->key,
				 &p->future);
}

/* Marks what is to be removed of the branches that were read, and asks for what may be missing. */
static enum status
purge_mark_best(struct rev_writer *w, const struct rev_purge_query *query,
		struct purge_of_document *p)
{
	if (!p->future)
		return STATUS_OK;
	TRY(rev_branches_wait(w->tx, w->db, query->id, p->set.count + 1, KV_READ, p->future,
			      &w->key, w->arena, &p->rows));
	for (size_t i = 0; i < p->rows.count; i++) {
		struct rev_branch_record *row = &p->rows.rows[i];
		size_t number = rev_set_find(&p->set, row->rev);

		if (number == REV_SET_NONE)
			continue;
		row->replaced = true;
		p->found[number] = true;
	}
	if (p->rows.count <= p->set.count)
		return STATUS_OK;
	p->ask = arena_zalloc(w->arena, p->set.count * sizeof(*p->ask));
	if (!p->ask)
		return STATUS_LIMIT;
	for (size_t i = 0; i < p->set.count; i++) {
		if (p->found[i])
			continue;
		TRY(rev_branch_ask(w->tx, w->db, query->id, p->set.revs[i], false, &w->key,
				   &p->ask[i].live));
		TRY(rev_branch_ask(w->tx, w->db, query->id, p->set.revs[i], true, &w->key,
				   &p->ask[i].deleted));
		TRY(step_count(2));
	}
	return STATUS_OK;
}

/* Adds the branches that were asked for by their keys, all of which are to be removed. */
static enum status
purge_mark_others(struct rev_writer *w, struct purge_of_document *p)
{
	struct rev_branch_record *rows;

	if (!p->ask)
		return STATUS_OK;
	rows = arena_alloc(w->arena, (p->rows.count + p->set.count) * sizeof(*rows));
	if (!rows)
		return STATUS_LIMIT;
	memcpy(rows, p->rows.rows, p->rows.count * sizeof(*rows));
	p->rows.rows = rows;
	for (size_t i = 0; i < p->set.count; i++) {
		struct rev_branch_record *row = &rows[p->rows.count];
		const struct rev_id rev = p->set.revs[i];
		enum status status;

		if (p->found[i])
			continue;
		status = rev_branch_wait(w->tx, rev, false, p->ask[i].live, w->arena, row);
		if (status == STATUS_NOT_FOUND)
			status = rev_branch_wait(w->tx, rev, true, p->ask[i].deleted, w->arena,
						 row);
		if (status == STATUS_NOT_FOUND)
			continue;
		TRY(status);
		row->replaced = true;
		p->found[i] = true;
		p->rows.count++;
	}
	return STATUS_OK;
}

/* Asks for the bodies that indexes need: the winner's, and that of the branch that becomes it. */
static enum status
purge_ask_index(struct rev_writer *w, const struct rev_purge_query *query,
		struct purge_of_document *p)
{
	const struct rev_edit edit = { .id = query->id };
	const struct rev_update u = {
		.edit = &edit,
		.rows = p->rows.rows,
		.count = p->rows.count,
		.purges = true,
	};
	bool waits = false;

	return rev_index_begin(w, &u, NULL, &p->index, &waits);
}

/* Tells which heads go, each once and in the query's order, and asks for their attachments. */
static enum status
purge_tell(struct rev_writer *w, const struct rev_purge_query *query, struct purge_of_document *p,
	   struct rev_purge_result *result)
{
	result->count = 0;
	result->revs = arena_alloc(w->arena, (p->set.count + 1) * sizeof(*result->revs));
	p->atts = arena_zalloc(w->arena, (p->rows.count + 1) * sizeof(struct kv_future *));
	if (!result->revs || !p->atts)
		return STATUS_LIMIT;
	/* The set has its revisions in the order in which they came first. */
	for (size_t i = 0; i < p->set.count; i++)
		if (p->found[i])
			result->revs[result->count++] = p->set.revs[i];
	p->any = result->count > 0;
	for (size_t i = 0; i < p->rows.count; i++) {
		const struct rev_branch_record *row = &p->rows.rows[i];

		if (row->replaced && row->has_atts)
			TRY(rev_atts_get(w->tx, w->db, query->id, row->rev, row->deleted, &w->key,
					 &p->atts[i]));
	}
	if (p->any && rev_index_wants(w, query->id))
		TRY(purge_ask_index(w, query, p));
	return step_count((uint32_t)(p->set.count + p->rows.count));
}

static enum status
purge_apply_query(struct rev_writer *w, const struct rev_purge_query *query,
		  struct purge_of_document *p, const struct rev_purge_result *result,
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
	if (p->index)
		TRY(rev_index_apply(w, p->index));
	for (size_t i = 0; i < u.count; i++) {
		const struct rev_branch_record *row = &u.rows[i];
		struct rev_att_list list;

		if (!p->atts[i])
			continue;
		TRY(rev_atts_wait(w->tx, w->db, query->id, row->rev, row->deleted, p->atts[i],
				  &w->key, w->arena, &list));
		TRY(rev_atts_count(w, list.atts, list.count, -1));
	}
	TRY(rev_update_purge(w, &u));
	return rev_purge_write(w, query->id, order, result->revs, result->count);
}

static enum status
purge_apply_queries(struct rev_writer *w, const struct rev_purge_query *queries, size_t count,
		    struct rev_purge_result *results)
{
	struct purge_of_document *all = arena_zalloc(w->arena, (count ? count : 1) * sizeof(*all));

	if (!all)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		TRY(purge_ask_best(w, &queries[i], &all[i]));
	for (size_t i = 0; i < count; i++)
		TRY(purge_mark_best(w, &queries[i], &all[i]));
	for (size_t i = 0; i < count; i++) {
		TRY(purge_mark_others(w, &all[i]));
		TRY(purge_tell(w, &queries[i], &all[i], &results[i]));
	}
	for (size_t i = 0; i < count; i++)
		TRY(purge_apply_query(w, &queries[i], &all[i], &results[i], (uint16_t)i));
	if (w->changed)
		TRY(rev_stat_purged(w->tx, w->db, w->last_order, &w->key));
	return rev_writer_finish(w);
}

enum status
rev_purge(struct kv_tx *tx, const struct catalog_db *db, const struct rev_purge_query *queries,
	  size_t count, struct arena *arena, struct rev_purge_result *ret_results, struct err *err)
{
	struct rev_writer w = {
		.tx = tx,
		.db = db,
		.arena = arena,
		.key = CATALOG_KEY_INIT,
		.value = BUF_INIT(KV_LIMIT_VALUE_BYTES),
	};
	enum status status;

	TRY(catalog_db_check_writable(db, err));
	TRY(purge_check_queries(queries, count, err));
	catalog_counts_init(&w.counts, db, arena);
	if (index_set_has_writers(index_set_of(db)))
		index_writer_init(&w.indexes, tx, db, &w.counts, REV_LIST_ENTRIES, arena);
	status = purge_apply_queries(&w, queries, count, ret_results);
	if (w.indexes.set)
		index_writer_release(&w.indexes);
	catalog_counts_release(&w.counts);
	buf_release(&w.key);
	buf_release(&w.value);
	return status;
}

/* Rows of a view that is reduced: results by group, page by page. */
#include "door/couch/view/run.h"
#include "loop/step.h"

enum {
	REDUCED_PAGE = 100,   /* results that a step writes at most */
	REDUCED_ROW_STEPS = 8 /* what a result costs (loop/step.h) */
};

struct reduced_page {
	const struct view_range *range;
	struct view_reducing reducing;
	struct index_work w;
	struct view_results results;
};

static void
reduced_write(struct view_run *v, const struct view_result *result)
{
	struct buf *out = &v->stream.out;

	view_run_begin_row(v);
	if (result->error.name.len) {
		buf_append_cstr(out, "{\"key\":null,\"error\":\"");
		buf_append_str(out, result->error.name);
		buf_append_cstr(out, "\",\"reason\":");
		buf_append_str(out, result->error.reason);
	} else {
		buf_append_cstr(out, "{\"key\":");
		buf_append_str(out, result->key);
		buf_append_cstr(out, ",\"value\":");
		buf_append_str(out, result->value);
	}
	buf_append_byte(out, '}');
}

/*
 * Where a value has no statistics, CouchDB cannot build the view, and every answer is an error.
 * Here it is the error of the answers that the value belongs to, unless they have begun.
 */
static const struct view_error *
reduced_failure(const struct view_run *v, const struct view_results *page)
{
	if (v->named.reduce->kind != VIEW_REDUCE_STATS || v->stream.started)
		return NULL;
	for (size_t i = 0; i < page->count; i++)
		if (page->results[i].error.name.len)
			return &page->results[i].error;
	return NULL;
}

static unsigned
reduced_level(const struct view_run *v)
{
	uint64_t level = couch_view_args_group_level(&v->args);

	return level < VIEW_LEVEL_EXACT ? (unsigned)level : VIEW_LEVEL_EXACT;
}

/* A step: reads the groups of the next page, whose values are made when it is over. */
static enum status
reduced_read_page(struct view_run *v, struct kv_tx *tx, void *arg)
{
	struct reduced_page *p = arg;
	const struct view_groups_options options = {
		.level = reduced_level(v),
		.skip = v->at.skip,
		.limit = v->at.limit,
		.after = v->place.len ? buf_str(&v->place) : (struct str){ NULL, 0 },
	};
	uint64_t reads = kv_reads_mark(tx);

	p->results = (struct view_results){ 0 };
	if (!v->built)
		return STATUS_OK;
	TRY(view_groups_page(tx, v->r->db, &v->group, &p->reducing, p->range, &options,
			     REDUCED_PAGE, &p->w, &p->results));
	kv_reads_forget(tx, reads);
	return STATUS_OK;
}

/*
 * Writes the page, for which functions are called. That takes no snapshot: the one there is serves
 * the next page if the functions are quick, and is let go of otherwise (view_begin()).
 */
static enum status
reduced_write_page(struct view_run *v, struct reduced_page *p)
{
	struct view_results *page = &p->results;
	struct view_error error = { 0 };
	const struct view_error *failure;
	enum status status = view_groups_reduce(&p->reducing, &p->w, page, &error, &v->r->fail.err);

	if (status != STATUS_OK)
		return couch_view_fail(v->r, status, &error);
	failure = reduced_failure(v, page);
	if (failure)
		return couch_view_fail(v->r, STATUS_FUNCTION, failure);
	for (size_t i = 0; i < page->count; i++) {
		step_unit();
		TRY(step_count(REDUCED_ROW_STEPS));
		reduced_write(v, &page->results[i]);
	}
	v->at.more = page->more;
	v->at.limit -= page->count;
	if (page->count) {
		v->at.skip = 0;
		buf_set(&v->place, page->results[page->count - 1].place);
	}
	TRY(buf_status(&v->place));
	return buf_status(&v->stream.out);
}

/* The next page. One that needs more memory than the turn to read has is read anew with more. */
static enum status
reduced_send_page(struct view_run *v, struct reduced_page *p)
{
	size_t out = v->stream.out.len;
	bool any_row = v->at.any_row;
	enum status status;

	TRY(view_run_step(v, reduced_read_page, p));
	status = reduced_write_page(v, p);
	view_results_release(&p->results);
	if (status != STATUS_LIMIT && status != STATUS_NOMEM)
		return status;
	couch_stream_cut(&v->stream, out);
	v->at.any_row = any_row;
	TRY(couch_snapshot_resume(&v->snapshot));
	v->found = false;
	return couch_snapshot_renew(&v->snapshot, status);
}

enum status
view_send_results(struct view_run *v, const struct view_range *range)
{
	struct reduced_page p = { .range = range,
				  .w = { .arena = v->r->arena },
				  .reducing = { .design = &v->named.design,
						.map = v->named.view->map,
						.reduce = (size_t)v->named.view->reduce,
						.functions = v->functions ? &couch_view_functions
									  : NULL,
						.arg = v->functions } };
	struct arena_mark mark = arena_mark(v->r->arena);

	v->at.more = true;
	buf_clear(&v->place);
	while (v->at.more && v->at.limit) {
		TRY(reduced_send_page(v, &p));
		arena_reset(v->r->arena, mark);
		TRY(view_run_push(v));
	}
	return STATUS_OK;
}

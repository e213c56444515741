/* Rows of a view that is reduced: results by group, page by page. */
#include "door/couch/view/run.h"
#include "loop/step.h"

enum {
	REDUCED_PAGE = 100,   /* results that a step writes at most */
	REDUCED_ROW_STEPS = 8 /* what a result costs (loop/step.h) */
};

struct reduced_page {
	const struct view_range *range;
	struct view_at at; /* of this attempt */
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

/* A step: the next page of results. */
static enum status
reduced_write_page(struct view_run *v, struct kv_tx *tx, void *arg)
{
	struct reduced_page *p = arg;
	struct index_work w = { .arena = v->r->arena };
	const struct view_view *view = v->named.view;
	const struct view_reducing reducing = {
		.design = &v->named.design,
		.map = view->map,
		.reduce = (size_t)view->reduce,
		.functions = v->functions ? &couch_view_functions : NULL,
		.arg = v->functions,
		.memo = v->memo,
	};
	const struct view_groups_options options = {
		.level = reduced_level(v),
		.skip = v->at.skip,
		.limit = v->at.limit,
		.after = v->place.len ? buf_str(&v->place) : (struct str){ NULL, 0 },
	};
	struct view_error error = { 0 };
	const struct view_error *failure;
	struct view_results page = { 0 };
	uint64_t reads = kv_reads_mark(tx);
	enum status status;

	p->at = v->at;
	p->at.more = false;
	if (!v->built)
		return STATUS_OK;
	status = view_groups_page(tx, v->r->db, &v->group, &reducing, p->range, &options,
				  REDUCED_PAGE, &w, &page, &error, &v->r->fail.err);
	if (status != STATUS_OK)
		return couch_view_fail(v->r, status, &error);
	kv_reads_forget(tx, reads);
	failure = reduced_failure(v, &page);
	if (failure)
		return couch_view_fail(v->r, STATUS_FUNCTION, failure);
	for (size_t i = 0; i < page.count; i++) {
		step_unit();
		TRY(step_count(REDUCED_ROW_STEPS));
		reduced_write(v, &page.results[i]);
	}
	p->at.more = page.more;
	p->at.limit -= page.count;
	if (page.count) {
		p->at.skip = 0;
		view_run_note_place(v, page.results[page.count - 1].place);
	}
	return buf_status(&v->stream.out);
}

enum status
view_send_results(struct view_run *v, const struct view_range *range)
{
	struct reduced_page p = { .range = range };

	return view_run_pages(v, reduced_write_page, &p, &p.at);
}

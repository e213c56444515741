/* Rows of a view that is not reduced, page by page. */
#include "door/couch/doc/doc_opts.h"
#include "door/couch/view/run.h"
#include "loop/step.h"

enum {
	ROWS_PAGE = 500,               /* rows that a step writes at most */
	ROWS_PAGE_DOCS = 100,          /* with documents, which are read together */
	ROWS_PAGE_BYTES = 128 * 1024,  /* of the answer: a page ends behind the row there */
	ROWS_DOCS_BYTES = 1024 * 1024, /* of rows whose documents are read together */
	ROWS_ROW_STEPS = 8,            /* what a row costs (loop/step.h) */
};

struct rows_page {
	const struct view_range *range;
	struct view_at at; /* of this attempt */
	struct view_doc_row *docs;
	size_t count; /* rows of the page */
	size_t doc_bytes;
};

static enum status
rows_begin(struct view_run *v, struct kv_tx *tx, struct rows_page *p, struct index_work *w)
{
	const struct view_rows_options options = {
		.skip = p->at.skip,
		.limit = p->at.limit,
		.after = v->place.len ? buf_str(&v->place) : (struct str){ NULL, 0 },
		.ahead = true,
	};

	return view_rows_begin(&v->rows, tx, v->r->db, &v->group, v->named.view->map, p->range,
			       &options, w);
}

/* Keeps a row until the documents of the page are read. */
static enum status
rows_keep(struct view_run *v, struct rows_page *p, const struct view_row *row)
{
	struct arena *arena = v->r->arena;
	struct view_doc_row *kept = &p->docs[p->count];

	*kept = (struct view_doc_row){
		.id = arena_dup(arena, row->id),
		.key = arena_dup(arena, row->key),
		.value = arena_dup(arena, row->value),
	};
	if (!kept->id.ptr || !kept->key.ptr || !kept->value.ptr)
		return STATUS_LIMIT;
	p->doc_bytes += row->id.len + row->key.len + row->value.len;
	return view_doc_row_link(v, kept);
}

/* True if the page has all that a page may have. */
static bool
rows_are_enough(const struct view_run *v, const struct rows_page *p)
{
	if (p->docs)
		return p->count == ROWS_PAGE_DOCS || p->doc_bytes > ROWS_DOCS_BYTES;
	return p->count == ROWS_PAGE || v->stream.out.len > ROWS_PAGE_BYTES;
}

static enum status
rows_read(struct view_run *v, struct rows_page *p, struct index_work *w)
{
	struct arena_mark mark = arena_mark(v->r->arena);
	struct view_row row;

	while (p->at.limit && !rows_are_enough(v, p)) {
		enum status status;

		if (!p->docs)
			arena_reset(v->r->arena, mark);
		status = view_rows_next(&v->rows, w, &row);
		if (status == STATUS_NOT_FOUND) {
			p->at.more = false;
			return STATUS_OK;
		}
		TRY(status);
		step_unit();
		TRY(step_count(ROWS_ROW_STEPS));
		if (p->docs) {
			TRY(rows_keep(v, p, &row));
		} else {
			view_write_row(v, row.id, row.key, row.value);
			buf_append_byte(&v->stream.out, '}');
		}
		p->count++;
		p->at.limit--;
		view_run_note_place(v, row.place);
	}
	return buf_status(&v->stream.out);
}

/* A step: the next page of rows. */
static enum status
rows_write_page(struct view_run *v, struct kv_tx *tx, void *arg)
{
	struct rows_page *p = arg;
	struct index_work w = { .arena = v->r->arena };
	uint64_t reads = kv_reads_mark(tx);

	p->at = v->at;
	p->count = 0;
	p->doc_bytes = 0;
	p->docs = NULL;
	if (!v->built) {
		p->at.more = false;
		return STATUS_OK;
	}
	if (v->args.include_docs) {
		p->docs = arena_alloc(v->r->arena, ROWS_PAGE_DOCS * sizeof(*p->docs));
		if (!p->docs)
			return STATUS_LIMIT;
	}
	if (!v->rows.open)
		TRY(rows_begin(v, tx, p, &w));
	TRY(rows_read(v, p, &w));
	p->at.skip = 0;
	if (p->docs)
		TRY(view_write_doc_rows(v, tx, p->docs, p->count));
	/*
	 * A cursor does not outlive its snapshot, which the sending of attachments may end. That of
	 * a key has few rows, and a request may name more keys than there is memory for.
	 */
	if ((v->args.doc_flags & COUCH_DOC_ATTS) || v->args.has_keys) {
		view_run_end_reads(v);
		kv_reads_forget(tx, reads);
	}
	return STATUS_OK;
}

enum status
view_send_rows(struct view_run *v, const struct view_range *range)
{
	struct arena_mark mark = arena_mark(v->r->arena);
	struct rows_page p = { .range = range };
	enum status status = view_run_pages(v, rows_write_page, &p, &p.at);

	view_run_end_reads(v);
	arena_reset(v->r->arena, mark);
	return status;
}

enum status
view_count_rows(struct view_run *v, struct kv_tx *tx, void *arg)
{
	struct view_counts *c = arg;
	struct index_work w = { .arena = v->r->arena };
	size_t map = v->named.view->map;
	uint64_t reads = kv_reads_mark(tx);

	c->total = c->before = c->within = 0;
	if (!v->built)
		return STATUS_OK;
	TRY(view_rows_total(tx, v->r->db, &v->group, map, v->args.partition, &w, &c->total));
	if (c->range)
		TRY(view_rows_offset(tx, v->r->db, &v->group, map, c->range, &w, &c->before));
	if (c->range && v->args.has_keys)
		TRY(view_rows_count(tx, v->r->db, &v->group, map, c->range, &w, &c->within));
	kv_reads_forget(tx, reads);
	return STATUS_OK;
}

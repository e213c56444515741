/*
 * The documents of rows. The documents of a page are read together: first the winners' revisions,
 * then the bodies.
 */
#include "door/couch/doc/doc_out.h"
#include "door/couch/view/run.h"
#include "door/couch/wire/error.h"

/* ---- Which document ---- */

enum status
view_doc_row_link(struct view_run *v, struct view_doc_row *row)
{
	const struct json_value *member;
	struct json_member *members;
	struct json_value value;
	size_t count;

	row->doc_id = row->id;
	if (!str_starts_with(row->value, STR("{")))
		return STATUS_OK;
	TRY(json_value_read(row->value, v->r->arena, &value, &v->r->fail.err));
	TRY(json_value_members(&value, v->r->arena, &members, &count, &v->r->fail.err));
	member = json_value_find(members, count, "_id");
	if (member)
		row->doc_id = member->kind == JSON_STRING ? member->string : (struct str){ 0 };
	member = json_value_find(members, count, "_rev");
	if (member && member->kind == JSON_STRING)
		row->rev = member->string;
	if (!row->doc_id.len || row->doc_id.len > REV_DOC_ID_BYTES)
		row->doc_id = (struct str){ 0 };
	return STATUS_OK;
}

/* ---- The page ---- */

struct docs_page {
	struct view_run *v;
	struct kv_tx *tx;
	struct view_doc_row *rows;
	size_t count;
	struct rev_id *revs; /* of each row; the hash of one without a document has ptr NULL */
	struct rev_ahead ahead;
};

/* A revision that a value names: of no document, if it is no revision. */
static enum status
docs_named_rev(struct docs_page *p, struct str text, struct rev_id *ret)
{
	struct couch_fail fail = { 0 };
	enum status status = couch_rev_parse(text, p->v->r->arena, ret, &fail);

	if (status == STATUS_INVALID)
		*ret = (struct rev_id){ 0 };
	return status == STATUS_INVALID ? STATUS_OK : status;
}

/* Finds the revision of each row's document. */
static enum status
docs_find_revs(struct docs_page *p)
{
	struct arena *arena = p->v->r->arena;
	struct str *ids = arena_alloc(arena, (p->count + 1) * sizeof(*ids));
	struct rev_id *winners = arena_alloc(arena, (p->count + 1) * sizeof(*winners));
	size_t n = 0;

	p->revs = arena_zalloc(arena, (p->count + 1) * sizeof(*p->revs));
	if (!ids || !winners || !p->revs)
		return STATUS_LIMIT;
	for (size_t i = 0; i < p->count; i++)
		if (p->rows[i].doc_id.ptr && !p->rows[i].rev.ptr)
			ids[n++] = p->rows[i].doc_id;
	TRY(rev_winners_read(p->tx, p->v->r->db, ids, n, arena, winners));
	n = 0;
	for (size_t i = 0; i < p->count; i++) {
		if (!p->rows[i].doc_id.ptr)
			continue;
		if (p->rows[i].rev.ptr)
			TRY(docs_named_rev(p, p->rows[i].rev, &p->revs[i]));
		else
			p->revs[i] = winners[n++];
	}
	return STATUS_OK;
}

static enum status
docs_begin(struct docs_page *p)
{
	struct couch_req *r = p->v->r;
	struct rev_want *wants = arena_alloc(r->arena, (p->count + 1) * sizeof(*wants));
	size_t n = 0;

	if (!wants)
		return STATUS_LIMIT;
	for (size_t i = 0; i < p->count; i++)
		if (p->revs[i].hash.ptr)
			wants[n++] = (struct rev_want){ p->rows[i].doc_id, p->revs[i], false };
	TRY(rev_ahead_begin(&p->ahead, p->tx, r->db, http_memory(r->x), wants, n, false));
	rev_ahead_is_sparse(&p->ahead);
	return STATUS_OK;
}

static struct couch_doc_opts
docs_opts(struct docs_page *p)
{
	return (struct couch_doc_opts){
		.flags = p->v->args.doc_flags,
		.holes = &p->v->stream.holes,
		.check_tx = p->tx,
		.check_req = p->v->r,
	};
}

/* Writes the document with its conflicts. */
static enum status
docs_write_tree(struct docs_page *p, size_t i)
{
	struct couch_req *r = p->v->r;
	struct couch_doc_opts opts = docs_opts(p);
	struct str id = p->rows[i].doc_id;
	struct rev_tree tree;

	opts.flags |= COUCH_DOC_CONFLICTS;
	TRY(rev_tree_read(p->tx, r->db, id, REV_TREE_HEADS, r->arena, &tree));
	for (size_t b = 0; b < tree.count; b++) {
		if (rev_id_eq(tree.branches[b].rev, p->revs[i]))
			return couch_head_write(r, p->tx, id, &tree, &tree.branches[b], &opts,
						&p->v->stream.out);
	}
	return STATUS_NOT_FOUND;
}

static enum status
docs_write_doc(struct docs_page *p, size_t i)
{
	struct couch_doc_opts opts = docs_opts(p);
	struct rev_doc doc;
	struct couch_doc_out d = { .id = p->rows[i].doc_id, .doc = &doc, .opts = &opts };

	if (!p->revs[i].hash.ptr)
		return STATUS_NOT_FOUND;
	if (p->v->args.conflicts)
		return docs_write_tree(p, i);
	TRY(rev_ahead_take(&p->ahead, p->v->r->arena, &doc));
	return couch_doc_write(&d, &p->v->stream.out);
}

static enum status
docs_write_rows(struct docs_page *p)
{
	struct view_run *v = p->v;
	struct arena_mark mark = arena_mark(v->r->arena);

	for (size_t i = 0; i < p->count; i++) {
		size_t len;
		enum status status;

		view_write_row(v, p->rows[i].id, p->rows[i].key, p->rows[i].value);
		buf_append_cstr(&v->stream.out, ",\"doc\":");
		len = v->stream.out.len;
		status = docs_write_doc(p, i);
		if (status == STATUS_NOT_FOUND) {
			couch_stream_cut(&v->stream, len);
			buf_append_cstr(&v->stream.out, "null");
		} else if (status != STATUS_OK) {
			return status;
		}
		buf_append_byte(&v->stream.out, '}');
		arena_reset(v->r->arena, mark);
	}
	return buf_status(&v->stream.out);
}

enum status
view_write_doc_rows(struct view_run *v, struct kv_tx *tx, struct view_doc_row *rows, size_t count)
{
	struct docs_page p = { .v = v, .tx = tx, .rows = rows, .count = count };
	uint64_t reads = kv_reads_mark(tx);
	enum status status = docs_find_revs(&p);

	if (status == STATUS_OK && !v->args.conflicts)
		status = docs_begin(&p);
	if (status == STATUS_OK)
		status = docs_write_rows(&p);
	rev_ahead_release(&p.ahead);
	kv_reads_forget(tx, reads);
	return status;
}

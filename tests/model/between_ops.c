/* What requests do in the worlds of between.h. */
#include "between_ops.h"

#include <stdlib.h>

#include "catalog/tally.h"
#include "model/revisioned/indexed_docs.h"

enum {
	BUILD_STEPS = 20,
	LOADED_BESIDE = 4, /* documents before and behind the one that op_load() is about */
	LOADED = 2 * LOADED_BESIDE + 1,
};

/* ---- Documents ---- */

static enum status
write_edits(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db,
	    const struct rev_edit *edits, size_t count)
{
	struct fixture *f = c->w->f;
	struct rev_result results[LOADED];

	assert_in_range(count, 1, LOADED);
	TRY(rev_write(tx, db, edits, count, 0, f->arena, results, NULL));
	for (size_t i = 0; i < count; i++) {
		buf_printf(c->said, " %s", status_name(results[i].status));
		if (results[i].status == STATUS_OK)
			buf_printf(c->said, " %s%s", fixture_text(f, results[i].rev),
				   results[i].unchanged ? " unchanged" : "");
	}
	return STATUS_OK;
}

static enum status
edit_body(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db)
{
	const struct between_op *op = c->op;
	struct rev_edit edit = fixture_edit(c->w->f, op->id, op->rev, op->json);

	return write_edits(c, tx, db, &edit, 1);
}

void
op_edit(struct between_world *w, const struct between_op *op, struct buf *said)
{
	between_call(w, op, said, edit_body);
}

static enum status
copy_body(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db)
{
	const struct between_op *op = c->op;
	struct rev_edit edits[2];
	size_t count = 0;

	edits[count++] = fixture_copy(c->w->f, op->id, op->rev, !op->json,
				      op->json ? op->json : "{}");
	if (op->more)
		edits[count++] = fixture_copy(c->w->f, op->id, op->more, false, "{\"more\":1}");
	return write_edits(c, tx, db, edits, count);
}

void
op_copy(struct between_world *w, const struct between_op *op, struct buf *said)
{
	between_call(w, op, said, copy_body);
}

static enum status
load_body(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db)
{
	struct fixture *f = c->w->f;
	const struct between_op *op = c->op;
	struct rev_edit edits[LOADED];

	for (size_t i = 0; i < LOADED; i++) {
		const char *id = op->id;

		if (i < LOADED_BESIDE)
			id = arena_printf(f->arena, "%c%zu", op->id[0] - 1, i).ptr;
		else if (i > LOADED_BESIDE)
			id = arena_printf(f->arena, "%s%zu", op->id, i).ptr;
		edits[i] = op->rev ? fixture_copy(f, id, op->rev, false, op->json)
				   : fixture_edit(f, id, NULL, op->json);
	}
	return write_edits(c, tx, db, edits, LOADED);
}

void
op_load(struct between_world *w, const struct between_op *op, struct buf *said)
{
	between_call(w, op, said, load_body);
}

static enum status
purge_body(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db)
{
	struct fixture *f = c->w->f;
	struct rev_id revs[2];
	struct rev_purge_query query = { str_from_cstr(c->op->id), revs, 1 };
	struct rev_purge_result result;

	revs[0] = fixture_rev(f, c->op->rev);
	if (c->op->more)
		revs[query.count++] = fixture_rev(f, c->op->more);
	TRY(rev_purge(tx, db, &query, 1, f->arena, &result, NULL));
	for (size_t i = 0; i < result.count; i++)
		buf_printf(c->said, " %s", fixture_text(f, result.revs[i]));
	return STATUS_OK;
}

void
op_purge(struct between_world *w, const struct between_op *op, struct buf *said)
{
	between_call(w, op, said, purge_body);
}

/* ---- Attachments ---- */

static struct rev_att_edit
stub_of(const char *name)
{
	return (struct rev_att_edit){ .source = REV_ATT_STUB,
				      .att = { .name = str_from_cstr(name) } };
}

static enum status
attach_body(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db)
{
	const struct between_op *op = c->op;
	struct rev_edit edit = fixture_edit(c->w->f, op->id, op->rev, op->json);
	const struct rev_att_edit atts[] = { stub_of("kept"), between_att("new", op->more) };

	edit.atts = atts;
	edit.atts_count = 2;
	return write_edits(c, tx, db, &edit, 1);
}

void
op_attach(struct between_world *w, const struct between_op *op, struct buf *said)
{
	between_call(w, op, said, attach_body);
}

static enum status
publish_body(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db)
{
	const struct between_op *op = c->op;
	struct rev_edit edit = fixture_edit(c->w->f, op->id, op->rev, op->json);

	edit.atts = &c->w->staged;
	edit.atts_count = 1;
	return write_edits(c, tx, db, &edit, 1);
}

void
op_publish(struct between_world *w, const struct between_op *op, struct buf *said)
{
	between_call(w, op, said, publish_body);
}

void
op_sweep(struct between_world *w, const struct between_op *op, struct buf *said)
{
	enum status status = rev_uploads_sweep(w->f->store, 0, NULL, NULL);

	(void)op;
	buf_printf(said, " %s", status_name(status));
}

void
op_give_up(struct between_world *w, const struct between_op *op, struct buf *said)
{
	struct rev_upload *upload = w->upload;

	(void)op;
	(void)said;
	w->upload = NULL; /* what interrupts may be the same */
	rev_upload_free(upload, false);
}

void
op_upload_more(struct between_world *w, const struct between_op *op, struct buf *said)
{
	static const char bytes[REV_ATT_CHUNK_BYTES * REV_ATT_BATCH_CHUNKS];
	enum status status = STATUS_TIMEOUT;

	(void)op;
	if (w->upload)
		status = rev_upload_write(w->upload, str_of(bytes, sizeof(bytes)), NULL);
	buf_printf(said, " %s", status_name(status));
}

void
op_upload_begin(struct between_world *w)
{
	static const char bytes[REV_ATT_CHUNK_BYTES];
	struct rev_upload_options options = { .store = w->f->store,
					      .db = w->f->db,
					      .memory_bytes = 1 };

	assert_int_equal(rev_upload_new(&options, &w->upload), STATUS_OK);
	assert_int_equal(rev_upload_write(w->upload, str_of(bytes, sizeof(bytes)), NULL),
			 STATUS_OK);
	assert_int_equal(rev_upload_write(w->upload, STR("end"), NULL), STATUS_OK);
}

void
op_upload_finish(struct between_world *w)
{
	uint8_t md5[REV_ATT_DIGEST_BYTES];

	w->staged = (struct rev_att_edit){ .att = { .name = STR("large"), .type = STR("x/y") } };
	assert_int_equal(rev_upload_finish(w->upload, &w->staged, md5, NULL), STATUS_OK);
	assert_int_equal(w->staged.source, REV_ATT_STAGED);
}

/* ---- Local documents ---- */

static enum status
local_put_body(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db)
{
	struct doc doc = fixture_doc(c->w->f, c->op->json);
	uint64_t rev;

	TRY(rev_local_put(tx, db, str_from_cstr(c->op->id), 0, &doc, c->w->f->arena, &rev, NULL));
	buf_printf(c->said, " 0-%llu", (unsigned long long)rev);
	return STATUS_OK;
}

void
op_local_put(struct between_world *w, const struct between_op *op, struct buf *said)
{
	between_call(w, op, said, local_put_body);
}

static enum status
local_delete_body(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db)
{
	return rev_local_delete(tx, db, str_from_cstr(c->op->id), NULL);
}

void
op_local_delete(struct between_world *w, const struct between_op *op, struct buf *said)
{
	between_call(w, op, said, local_delete_body);
}

/* ---- Reading, and noting what was read ---- */

static enum status
say_doc(struct fixture *f, enum status status, const struct rev_doc *doc, struct buf *out)
{
	buf_printf(out, "%s", status_name(status));
	if (status != STATUS_OK)
		return status == STATUS_NOT_FOUND || status == STATUS_DELETED ? STATUS_OK : status;
	buf_printf(out, " %s {", fixture_text(f, doc->rev));
	TRY(rev_body_write(doc, false, out));
	for (size_t i = 0; i < doc->atts_count; i++)
		buf_printf(out, " %.*s", STR_ARG(doc->atts[i].name));
	return buf_status(out);
}

enum status
op_read_doc(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db, struct buf *out)
{
	struct rev_doc doc;
	enum status status = rev_doc_read(tx, db, str_from_cstr(c->op->id), c->w->f->arena, &doc);

	return say_doc(c->w->f, status, &doc, out);
}

enum status
op_read_together(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db,
		 struct buf *out)
{
	struct rev_doc doc;
	enum status status = rev_doc_read_together(tx, db, str_from_cstr(c->op->id), c->w->f->arena,
						   &doc);

	return say_doc(c->w->f, status, &doc, out);
}

enum status
op_read_head(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db, struct buf *out)
{
	struct fixture *f = c->w->f;
	struct rev_doc doc = { 0 };
	enum status status = rev_doc_read_head(tx, db, str_from_cstr(c->op->id),
					       fixture_rev(f, c->op->rev), false, f->arena, &doc);

	return say_doc(f, status, &doc, out);
}

enum status
op_read_tree(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db, struct buf *out)
{
	struct fixture *f = c->w->f;
	struct rev_tree tree = { 0 };
	enum status status = rev_tree_read(tx, db, str_from_cstr(c->op->id), REV_TREE_ALL, f->arena,
					   &tree);

	for (size_t i = 0; i < tree.count; i++)
		buf_printf(out, " %s", fixture_text(f, tree.branches[i].rev));
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
op_read_winner(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db,
	       struct buf *out)
{
	struct fixture *f = c->w->f;
	struct rev_id rev;
	enum status status = rev_winner_read(tx, db, str_from_cstr(c->op->id), f->arena, &rev);

	buf_printf(out, "%s %s", status_name(status),
		   status == STATUS_OK ? fixture_text(f, rev) : "");
	return status == STATUS_NOT_FOUND || status == STATUS_DELETED ? STATUS_OK : status;
}

enum status
op_read_descent(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db,
		struct buf *out)
{
	struct fixture *f = c->w->f;
	struct rev_id rev = fixture_rev(f, c->op->rev);
	struct rev_descent d;

	TRY(rev_descent_read(tx, db, str_from_cstr(c->op->id), &rev, 1, 0, f->arena, &d));
	for (uint32_t i = rev_descent_first(&d, rev); i; i = d.links[i - 1].next)
		buf_printf(out, " %s", fixture_text(f, d.heads[d.links[i - 1].head].rev));
	return STATUS_OK;
}

enum status
op_read_att(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db, struct buf *out)
{
	struct fixture *f = c->w->f;
	struct rev_att att = { .length = 0 };
	enum status status = rev_att_read(tx, db, str_from_cstr(c->op->id),
					  fixture_rev(f, c->op->rev), false, STR("kept"), f->arena,
					  &att);

	buf_printf(out, "%s %llu", status_name(status), (unsigned long long)att.length);
	return status == STATUS_NOT_FOUND || status == STATUS_DELETED ? STATUS_OK : status;
}

enum status
op_read_local(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db,
	      struct buf *out)
{
	struct rev_doc doc;
	uint64_t rev = 0;
	enum status status = rev_local_get(tx, db, str_from_cstr(c->op->id), c->w->f->arena, &rev,
					   &doc);

	buf_printf(out, "%s 0-%llu ", status_name(status), (unsigned long long)rev);
	if (status != STATUS_OK)
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	return rev_body_write(&doc, false, out);
}

/* Writes what was read to a place that nothing else reads or writes. */
static enum status
note_body(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db)
{
	AUTO(buf_release) struct buf text = BUF_INIT(BETWEEN_SAID_BYTES);

	TRY(c->op->read(c, tx, db, &text));
	return rev_config_set(tx, db, STR("note"), buf_str(&text), NULL);
}

void
op_note(struct between_world *w, const struct between_op *op, struct buf *said)
{
	between_call(w, op, said, note_body);
}

/* ---- The record of purges ---- */

static enum status
reader_add_body(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db)
{
	struct catalog_seq seq;

	return rev_purge_reader_add(tx, db, str_from_cstr(c->op->id), &seq, NULL);
}

void
op_reader_add(struct between_world *w, const struct between_op *op, struct buf *said)
{
	between_call(w, op, said, reader_add_body);
}

/* To the newest purge that the transaction sees. */
static enum status
reader_advance_body(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db)
{
	const struct catalog_seq beginning = { { 0 } };
	struct rev_purge_page page;

	TRY(rev_purges_page(tx, db, &beginning, c->op->rev ? 1 : 0, c->w->f->arena, &page, NULL));
	if (page.count == 0)
		return STATUS_OK;
	return rev_purge_reader_advance(tx, db, str_from_cstr(c->op->id),
					&page.purges[page.count - 1].seq, NULL);
}

void
op_reader_advance(struct between_world *w, const struct between_op *op, struct buf *said)
{
	between_call(w, op, said, reader_advance_body);
}

static enum status
reader_remove_body(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db)
{
	return rev_purge_reader_remove(tx, db, str_from_cstr(c->op->id), NULL);
}

void
op_reader_remove(struct between_world *w, const struct between_op *op, struct buf *said)
{
	between_call(w, op, said, reader_remove_body);
}

static enum status
limit_purges_body(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db)
{
	return rev_purges_limit_set(tx, db, strtoull(c->op->rev, NULL, 10), NULL);
}

void
op_limit_purges(struct between_world *w, const struct between_op *op, struct buf *said)
{
	between_call(w, op, said, limit_purges_body);
}

static enum status
trim_body(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db)
{
	bool more;

	TRY(rev_purges_trim(tx, db, c->w->f->arena, &more, NULL));
	buf_printf(c->said, " %s", more ? "more" : "all");
	return STATUS_OK;
}

void
op_trim(struct between_world *w, const struct between_op *op, struct buf *said)
{
	between_call(w, op, said, trim_body);
}

/* ---- The database ---- */

static enum status
limit_revs_body(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db)
{
	(void)c;
	return rev_limit_set(tx, db, 1, NULL);
}

void
op_limit_revs(struct between_world *w, const struct between_op *op, struct buf *said)
{
	between_call(w, op, said, limit_revs_body);
}

/* Answers differ with what has been counted so far, so nothing is said. */
void
op_tend(struct between_world *w, const struct between_op *op, struct buf *said)
{
	enum status status;
	bool more;

	(void)op;
	(void)said;
	status = catalog_tally_tend(w->f->store, w->f->db,
				    &(const struct catalog_tally_sizes){ OP_TINY, 2 }, &more, NULL);
	assert_int_equal(status, STATUS_OK);
}

static enum status
put_known_body(struct kv_tx *tx, void *arg)
{
	struct between_world *w = arg;
	struct rev_edit edit = fixture_edit(w->f, "f6x", NULL, "{}");
	struct rev_result result;

	return rev_write(tx, w->known, &edit, 1, 0, w->f->arena, &result, NULL);
}

/* By a description that knows of old ranges alone. */
void
op_put_known(struct between_world *w, const struct between_op *op, struct buf *said)
{
	(void)op;
	(void)said;
	between_run(w, put_known_body);
}

/* ---- Indexes ---- */

static enum status
index_add_body(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db)
{
	uint64_t number;

	(void)c;
	TRY(between_index(tx, db, INDEX_SPARSE, INDEX_BUILDING, &number));
	return index_work_note(tx, db);
}

void
op_index_add(struct between_world *w, const struct between_op *op, struct buf *said)
{
	between_call(w, op, said, index_add_body);
}

static enum status
index_drop_body(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db)
{
	const struct index_def *def = index_find(db, c->w->building);

	return def ? index_drop(tx, db, def) : STATUS_OK;
}

void
op_index_remove(struct between_world *w, const struct between_op *op, struct buf *said)
{
	between_call(w, op, said, index_drop_body);
}

static enum status
index_add_known_body(struct kv_tx *tx, void *arg)
{
	struct between_world *w = arg;
	uint64_t number;

	return between_index(tx, w->f->db, INDEX_SPARSE, INDEX_BUILDING, &number);
}

/* By a description from another transaction, which its caller has to know to be current. */
void
op_index_add_known(struct between_world *w, const struct between_op *op, struct buf *said)
{
	(void)op;
	(void)said;
	between_run(w, index_add_known_body);
}

static enum status
index_clear_entries(struct index_writer *writer, void *arg)
{
	struct between_call *c = arg;
	bool more;

	return index_clear(writer, index_find(c->w->f->db, c->w->ready),
			   strtoull(c->op->rev, NULL, 10), &more);
}

static enum status
index_clear_body(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db)
{
	struct arena *arena = c->w->f->arena;

	return index_writer_run(tx, db, rev_indexed_documents.list, arena, arena,
				index_clear_entries, c);
}

void
op_index_clear_some(struct between_world *w, const struct between_op *op, struct buf *said)
{
	between_call(w, op, said, index_clear_body);
}

void
op_build_all(struct between_world *w, const struct between_op *op, struct buf *said)
{
	(void)op;
	(void)said;
	(void)between_build(w, w->building, BUILD_STEPS);
}

void
op_build(struct between_world *w, const struct between_op *op, struct buf *said)
{
	(void)op;
	(void)said;
	(void)between_build(w, w->building, 1);
}

/*
 * What a build of an index needs of documents (index/engine/build.h). They have no Sequences: a
 * writer who changes entries of an index that is being built leaves a mark with the document's id.
 *
 * Documents are read by snapshot. Those with a mark have been entered by their writers. For all
 * others the step gets a read conflict with the place of the mark: whoever changes the document in
 * a way that matters to the index sets the mark, so the step fails then, and skips the document
 * the next time. Writers that leave the index's fields alone are in nobody's way.
 */
#include "loop/step.h"
#include "model/plain/index.h"
#include "model/plain/plain_int.h"

enum {
	VISIT_BYTES = 8 * 1024 * 1024, /* of documents in one step, and the one that passes it */
	VISIT_STEPS = 4,               /* of passing over a document */
};

/* One stretch: all of the collection. */
static enum status
indexed_cut(struct kv_tx *tx, const struct catalog_db *db, size_t parts, struct arena *arena,
	    const struct str **ret_ids, size_t *ret_count, uint64_t *ret_documents)
{
	struct plain p;

	(void)parts;
	(void)arena;
	plain_init(&p, tx, db, 0, kv_tx_err(tx));
	*ret_ids = NULL;
	*ret_count = 0;
	return plain_count(&p, ret_documents);
}

struct visit {
	struct kv_tx *tx;
	const struct catalog_db *db;
	const struct index_def *def;
	struct plain p;
	struct plain_scan scan;
	struct kv_scan marks; /* in the order of documents */
	bool marks_open;
	bool marks_done;
	struct buf marked;  /* the id of the mark that was read last */
	size_t mark_prefix; /* of a mark's key, in front of the id */
	struct buf space;   /* what keys of documents begin with */
	struct buf mark;
	struct buf last; /* the key of the document that was passed last */
	struct arena *arena;
	index_visitor *visitor;
	void *arg;
	struct str end;
};

/* The bytes of the `_id`'s key, of the document that the scan has read. */
static enum status
visit_read_id(struct visit *v, struct str *ret)
{
	struct tuple_reader r = tuple_reader(str_skip(plain_scan_place(&v->scan), v->space.len));

	return catalog_next_text(&r, TUPLE_BYTES, v->arena, true, ret);
}

/* Opens a scan of the marks behind `after`. */
static enum status
marks_open(struct visit *v, struct str after)
{
	const struct kv_range_options options = { .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	index_key_mark(&v->mark, v->db, v->def->number, STR(""));
	v->mark_prefix = v->mark.len;
	TRY(plain_key_end(buf_str(&v->mark), &end));
	index_key_mark(&v->mark, v->db, v->def->number, after);
	TRY(catalog_key_status(&v->mark));
	TRY(kv_scan_init(&v->marks, v->tx, buf_str(&v->mark), buf_str(&end), &options));
	v->marks_open = true;
	return STATUS_OK;
}

static enum status
marks_next(struct visit *v)
{
	struct kv_pair pair;
	enum status status = kv_scan_next(&v->marks, &pair);
	struct tuple_reader r;
	struct str id;

	v->marks_done = status != STATUS_OK;
	if (v->marks_done)
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	r = tuple_reader(str_skip(pair.key, v->mark_prefix));
	TRY(catalog_next_text(&r, TUPLE_BYTES, v->arena, true, &id));
	buf_clear(&v->marked);
	buf_append_str(&v->marked, id);
	return buf_status(&v->marked);
}

/* Whether the document has a mark; if not, whoever sets one conflicts with this transaction. */
static enum status
visit_is_marked(struct visit *v, struct str id, bool *ret)
{
	AUTO(buf_release) struct buf next = CATALOG_KEY_INIT;

	while (!v->marks_done && str_cmp(buf_str(&v->marked), id) < 0)
		TRY(marks_next(v));
	*ret = !v->marks_done && str_eq(buf_str(&v->marked), id);
	if (*ret)
		return STATUS_OK;
	index_key_mark(&v->mark, v->db, v->def->number, id);
	buf_append_str(&next, buf_str(&v->mark));
	buf_append_byte(&next, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(&v->mark));
	TRY(catalog_key_status(&next));
	return kv_add_read_conflict_range(v->tx, buf_str(&v->mark), buf_str(&next));
}

static enum status
visit_document(struct visit *v, struct str id, struct str document)
{
	const struct index_source source = plain_index_source(id, document);
	bool marked;

	TRY(step_count(VISIT_STEPS));
	TRY(visit_is_marked(v, id, &marked));
	return marked ? STATUS_OK : v->visitor(v->arg, &source);
}

static enum status
visit_all(struct visit *v, const struct index_stretch *stretch, struct index_passed *ret)
{
	size_t bytes = 0;
	enum status status;
	struct str document, id;

	for (;;) {
		struct arena_mark mark = arena_mark(v->arena);

		status = plain_scan_next(&v->scan, v->arena, &document);
		if (status == STATUS_NOT_FOUND)
			return STATUS_OK;
		TRY(status);
		TRY(visit_read_id(v, &id));
		if (stretch->end.len && str_cmp(id, stretch->end) >= 0)
			return STATUS_OK;
		TRY(visit_document(v, id, document));
		buf_clear(&v->last);
		buf_append_str(&v->last, id);
		TRY(buf_status(&v->last));
		bytes += document.len;
		arena_reset(v->arena, mark);
		if (++ret->count < stretch->limit && bytes < VISIT_BYTES)
			continue;
		ret->more = true;
		return STATUS_OK;
	}
}

static enum status
indexed_visit(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *def,
	      const struct index_stretch *stretch, struct arena *arena, index_visitor *visitor,
	      void *arg, struct index_passed *ret)
{
	AUTO(buf_release) struct buf after = CATALOG_KEY_INIT;
	struct plain_range range = { .mode = KV_SNAPSHOT };
	struct visit v = {
		.tx = tx,
		.db = db,
		.def = def,
		.space = CATALOG_KEY_INIT,
		.mark = CATALOG_KEY_INIT,
		.marked = CATALOG_KEY_INIT,
		.last = CATALOG_KEY_INIT,
		.arena = arena,
		.visitor = visitor,
		.arg = arg,
	};
	enum status status;

	*ret = (struct index_passed){ 0 };
	plain_init(&v.p, tx, db, 0, kv_tx_err(tx));
	plain_key_space(&v.space, db, PLAIN_SPACE_RECORDS);
	plain_key_space(&after, db, PLAIN_SPACE_RECORDS);
	tuple_put_bytes(&after, stretch->after);
	status = catalog_key_status(&after);
	if (stretch->after.len)
		range.resume = buf_str(&after);
	if (status == STATUS_OK)
		status = plain_scan_open(&v.scan, &v.p, &range);
	if (status == STATUS_OK)
		status = marks_open(&v, stretch->after);
	if (status == STATUS_OK)
		status = visit_all(&v, stretch, ret);
	if (status == STATUS_OK)
		ret->last = arena_dup(arena, buf_str(&v.last));
	if (status == STATUS_OK && !ret->last.ptr)
		status = STATUS_LIMIT;
	plain_scan_close(&v.scan);
	if (v.marks_open)
		kv_scan_release(&v.marks);
	buf_release(&v.space);
	buf_release(&v.marked);
	buf_release(&v.mark);
	buf_release(&v.last);
	return status;
}

const struct index_documents plain_indexed_documents = {
	.kind = CATALOG_KIND_PLAIN,
	.list = PLAIN_LIST_ENTRIES,
	.cut = indexed_cut,
	.visit = indexed_visit,
};

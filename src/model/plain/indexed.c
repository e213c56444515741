/*
 * What a build of an index needs of documents (index/engine/build.h). They have no Sequences, and
 * are read by snapshot: those that others change meanwhile have marks (index/engine/marks.h).
 */
#include "index/engine/marks.h"
#include "loop/step.h"
#include "model/plain/index.h"
#include "model/plain/plain_int.h"

enum {
	VISIT_BYTES = 8 * 1024 * 1024, /* of documents in one step, and the one that passes it */
	VISIT_STEPS = 4,               /* of passing over a document */
};

/* Where the store says that much lies: only how many documents there are is counted. */
static enum status
indexed_cut(struct kv_tx *tx, const struct catalog_db *db, size_t parts, struct arena *arena,
	    const struct str **ret_ids, size_t *ret_count, uint64_t *ret_documents)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct str *keys = arena_zalloc(arena, parts * sizeof(*keys)), id;
	size_t count, ids = 0;
	struct plain p;

	if (!keys)
		return STATUS_LIMIT;
	plain_key_space(&begin, db, PLAIN_SPACE_RECORDS);
	plain_key_space(&end, db, PLAIN_SPACE_RECORDS);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	TRY(index_cut_range(tx, buf_str(&begin), buf_str(&end), parts, arena, keys, &count));
	for (size_t i = 0; i < count; i++) {
		struct tuple_reader r = tuple_reader(str_skip(keys[i], begin.len));

		TRY(catalog_next_text(&r, TUPLE_BYTES, arena, true, &id));
		/* Two keys may be of one document. */
		if (ids == 0 || str_cmp(keys[ids - 1], id) < 0)
			keys[ids++] = id;
	}
	*ret_ids = keys;
	*ret_count = ids;
	plain_init(&p, tx, db, 0, kv_tx_err(tx));
	return plain_count(&p, ret_documents);
}

struct visit {
	struct plain p;
	struct plain_scan scan;
	struct index_marks marks;
	struct buf space; /* what keys of documents begin with */
	struct buf last;  /* the key of the document that was passed last */
	struct arena *arena;
	index_visitor *visitor;
	void *arg;
};

/* The bytes of the `_id`'s key, of the document that the scan has read. */
static enum status
visit_read_id(struct visit *v, struct str *ret)
{
	struct tuple_reader r = tuple_reader(str_skip(plain_scan_place(&v->scan), v->space.len));

	return catalog_next_text(&r, TUPLE_BYTES, v->arena, true, ret);
}

static enum status
visit_document(struct visit *v, struct str id, struct str document)
{
	const struct index_source source = plain_index_source(id, document);
	bool marked;

	TRY(step_count(VISIT_STEPS));
	TRY(index_marks_have(&v->marks, id, v->arena, &marked));
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
		if (stretch->end.len && str_cmp(id, stretch->end) > 0)
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
		.space = CATALOG_KEY_INIT,
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
	status = catalog_key_status(&v.space);
	if (status == STATUS_OK)
		status = catalog_key_status(&after);
	if (stretch->after.len)
		range.resume = buf_str(&after);
	if (status == STATUS_OK)
		status = plain_scan_open(&v.scan, &v.p, &range);
	if (status == STATUS_OK)
		status = index_marks_open(&v.marks, tx, db, def, stretch);
	if (status == STATUS_OK)
		status = visit_all(&v, stretch, ret);
	if (status == STATUS_OK)
		status = index_marks_finish(&v.marks, buf_str(&v.last));
	if (status == STATUS_OK)
		ret->last = buf_dup(&v.last, arena);
	if (status == STATUS_OK && !ret->last.ptr)
		status = STATUS_LIMIT;
	plain_scan_close(&v.scan);
	index_marks_close(&v.marks);
	buf_release(&v.space);
	buf_release(&v.last);
	return status;
}

const struct index_documents plain_indexed_documents = {
	.kind = CATALOG_KIND_PLAIN,
	.list = PLAIN_LIST_ENTRIES,
	.cut = indexed_cut,
	.visit = indexed_visit,
};

/* What the check of indexes (index/engine/verify.h) knows of documents with revisions. */
#include "index/engine/verify.h"
#include "model/revisioned/indexed_docs.h"
#include "model/revisioned/record.h"
#include "model/revisioned/verify_int.h"

enum {
	VERIFY_INDEX_ARENA_BYTES = 64 * 1024 * 1024,
};

static enum status
load(struct index_verify_on *on, struct err *err)
{
	return index_set_load(on->v->tx, &on->db, &on->db.extension, err);
}

/* (P, ALL_DOCS, id) */
static bool
document_id(struct index_verify_on *on, struct str tail, struct str *ret)
{
	struct tuple_reader r = tuple_reader(tail);

	return catalog_next_text(&r, TUPLE_STRING, on->arena, true, ret) == STATUS_OK &&
	       rev_id_is_indexed(*ret);
}

static enum status
source(struct index_verify_on *on, struct str id, struct index_source *ret)
{
	struct rev_doc doc;
	enum status status = rev_doc_read(on->v->tx, &on->db, id, on->arena, &doc);

	if (status == STATUS_DELETED || status == STATUS_CORRUPT || status == STATUS_NEWER)
		return STATUS_NOT_FOUND;
	TRY(status);
	return rev_index_source(&on->db, id, &doc, on->arena, ret);
}

static const struct index_verify_model model = {
	.finding = REV_FINDING_INDEX,
	.finding_stray = REV_FINDING_INDEX_STRAY,
	.arena_bytes = VERIFY_INDEX_ARENA_BYTES,
	.documents = REV_SUBSPACE_ALL_DOCS,
	.load = load,
	.unload = index_set_free,
	.id = document_id,
	.source = source,
};

enum status
verify_indexes_in_ranges(struct catalog_verify *v)
{
	return index_verify_in_ranges(v, &model);
}

enum status
verify_indexes(struct catalog_verify *v)
{
	uint64_t entries;

	return index_verify(v, &model, &entries);
}

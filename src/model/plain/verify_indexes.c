/* What the check of indexes (index/engine/verify.h) knows of collections. */
#include "index/engine/verify.h"
#include "model/plain/index.h"
#include "model/plain/plain_int.h"

#define PLAIN_FINDING_INDEX       "plain_index"       /* an entry that is not as its document */
#define PLAIN_FINDING_INDEX_STRAY "plain_index_stray" /* an entry that no document has */

enum {
	VERIFY_ARENA_BYTES = 256 * 1024 * 1024,
};

/* Notes a collection that lacks its PLAIN_ID_INDEX. */
static void
check_index_of_ids(struct index_verify_on *on)
{
	const struct index_set *set = index_set_of(&on->db);
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	if (!plain_wants_id_index(&on->db))
		return;
	for (size_t i = 0; set && i < set->count; i++)
		if (index_def_is_live(&set->defs[i]) &&
		    str_eq(set->defs[i].name, STR(PLAIN_ID_INDEX)))
			return;
	index_key_def(&key, on->v->db, 0);
	catalog_verify_found(on->v, PLAIN_FINDING_INDEX, buf_str(&key),
			     "there is no index of the _ids by the collation of the collection, so "
			     "_ids that it holds equal may be there");
}

static enum status
load(struct index_verify_on *on, struct err *err)
{
	TRY(plain_extend(on->v->tx, &on->db, &on->db.extension, err));
	if (!on->again)
		check_index_of_ids(on);
	return STATUS_OK;
}

/* (P, RECORDS, key of the `_id`); a longer key is that of a leaf. */
static bool
document_id(struct index_verify_on *on, struct str tail, struct str *ret)
{
	struct tuple_reader r = tuple_reader(tail);
	enum status status = catalog_next_text(&r, TUPLE_BYTES, on->arena, true, ret);

	return catalog_verify_parsed_in(on->v, status, on->arena) && !r.rest.len;
}

static enum status
source(struct index_verify_on *on, struct str id, struct index_source *ret)
{
	struct err err = { 0 };
	struct plain_got got;
	struct str document;
	struct plain plain;
	enum status status;

	plain_init(&plain, on->v->tx, &on->db, 0, &err);
	status = plain_ask_key(&plain, id, KV_SNAPSHOT, on->arena, &got);
	if (status == STATUS_OK)
		status = plain_wait(&plain, &got, KV_SNAPSHOT, on->arena, &document);
	if (status == STATUS_CORRUPT || status == STATUS_NEWER)
		return STATUS_NOT_FOUND;
	TRY(status);
	*ret = plain_index_source(id, document);
	return STATUS_OK;
}

static const struct index_verify_model model = {
	.finding = PLAIN_FINDING_INDEX,
	.finding_stray = PLAIN_FINDING_INDEX_STRAY,
	.arena_bytes = VERIFY_ARENA_BYTES,
	.documents = PLAIN_SPACE_RECORDS,
	.load = load,
	.unload = plain_extension_free,
	.id = document_id,
	.source = source,
};

static enum status
verify_total(struct catalog_verify *v)
{
	return index_verify_total(v, &model, PLAIN_SPACE_STATS, NULL);
}

enum status
plain_verify_indexes_in_ranges(struct catalog_verify *v)
{
	TRY(index_verify_in_ranges(v, &model));
	TRY(catalog_verify_once(v, verify_total, "the number of entries"));
	return catalog_verify_tallies_in_ranges(v);
}

enum status
plain_verify_indexes(struct catalog_verify *v)
{
	uint64_t entries;

	TRY(index_verify(v, &model, &entries));
	TRY(index_verify_total(v, &model, PLAIN_SPACE_STATS, &entries));
	return catalog_verify_tallies(v);
}

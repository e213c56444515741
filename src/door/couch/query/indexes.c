#include "door/couch/query/indexes.h"

#include "base/mem.h"
#include "door/couch/wire/kept.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/state.h"
#include "model/revisioned/list.h"
#include "model/revisioned/read.h"
#include "model/revisioned/revisioned.h"

/* The definitions of a database, as a loop keeps them. */
struct kept_indexes {
	struct couch_kept kept; /* first */
	struct query_indexes list;
	struct arena *arena;
};

static void
kept_free(struct couch_kept *kept)
{
	struct kept_indexes *k = (struct kept_indexes *)kept;

	arena_free(k->arena);
	mem_free(k);
}

/* ---- Reading ---- */

/*
 * The state of reading definitions. The functions that read them take a request because of its
 * arena.
 */
struct reading {
	struct couch_req *r;
	struct couch_req to; /* a stand-in whose arena is that of the list */
	struct query_indexes *list;
};

/* Adds the indexes of one design document, whose winner is known. */
static enum status
indexes_add_design(struct reading *reading, struct kv_tx *tx, const struct rev_entry *entry)
{
	struct couch_req *r = reading->r;
	AUTO(buf_release) struct buf text = couch_buf(r, COUCH_ROW_BYTES);
	bool partitioned = rev_db_is_partitioned(r->db);
	struct query_indexes found = { 0 };
	struct rev_doc doc;
	struct str id, kept;

	TRY(rev_doc_read_head(tx, r->db, entry->id, entry->rev, false, r->arena, &doc));
	buf_append_byte(&text, '{');
	TRY(rev_body_write(&doc, false, &text));
	TRY(buf_status(&text));
	/* Most design documents define no index, and nothing is kept of them. */
	TRY(query_indexes_add(r, entry->id, buf_str(&text), partitioned, &found));
	if (found.count == 0)
		return STATUS_OK;
	kept = buf_dup(&text, reading->to.arena);
	id = arena_dup(reading->to.arena, entry->id);
	if (!kept.ptr || !id.ptr)
		return STATUS_LIMIT;
	return query_indexes_add(&reading->to, id, kept, partitioned, reading->list);
}

static enum status
indexes_read(struct couch_req *r, struct kv_tx *tx, struct arena *arena, struct query_indexes *ret)
{
	struct name_range range = {
		.begin = STR("_design/"),
		.has_begin = true,
		.end = STR("_design0"),
		.has_end = true,
		.exclusive_end = true,
		.limit = 100,
	};
	struct reading reading = { .r = r, .to = { .arena = arena }, .list = ret };
	struct rev_entry_page page = { .more = true };

	*ret = (struct query_indexes){ .items = arena_alloc(arena, sizeof(*ret->items)),
				       .count = 1,
				       .cap = 1 };
	if (!ret->items)
		return STATUS_LIMIT;
	TRY(query_index_all_docs(arena, &ret->items[0]));
	while (page.more) {
		TRY(rev_all_docs_page(tx, r->db, &range, r->arena, &page));
		for (size_t i = 0; i < page.count; i++)
			TRY(indexes_add_design(&reading, tx, &page.entries[i]));
		range.begin = page.last;
		range.exclusive_begin = true;
	}
	return STATUS_OK;
}

/* ---- The table ---- */

static enum status
kept_read(struct couch_req *r, struct kv_tx *tx, struct kept_indexes **ret)
{
	struct kept_indexes *k = mem_zalloc(sizeof(*k));
	enum status status = STATUS_NOMEM;

	if (!k)
		return STATUS_NOMEM;
	k->kept = (struct couch_kept){ .refs = 1, .free = kept_free };
	k->arena = arena_new(QUERY_INDEXES_BYTES);
	if (k->arena)
		status = indexes_read(r, tx, k->arena, &k->list);
	if (status == STATUS_OK)
		*ret = k;
	else
		couch_kept_unref(&k->kept);
	return status;
}

enum status
query_indexes_load(struct couch_req *r, struct kv_tx *tx, struct query_indexes *ret)
{
	struct couch_kept_table *table = &r->loop->indexes;
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	struct kept_indexes *k;
	enum status status;

	TRY(kv_get_metadata_version(tx, version));
	k = (struct kept_indexes *)couch_kept_find(table, r->db->number, version);
	if (k) {
		couch_kept_hold(&r->indexes, &k->kept);
		*ret = k->list;
		return STATUS_OK;
	}
	status = kept_read(r, tx, &k);
	/* Too many to keep, so the request reads them into its own arena. */
	if (status == STATUS_LIMIT)
		return indexes_read(r, tx, r->arena, ret);
	TRY(status);
	couch_kept_put(table, r->db->number, version, &k->kept);
	couch_kept_hold(&r->indexes, &k->kept);
	couch_kept_unref(&k->kept);
	*ret = k->list;
	return STATUS_OK;
}

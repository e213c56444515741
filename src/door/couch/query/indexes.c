#include "door/couch/query/indexes.h"

#include "door/couch/wire/reply.h"
#include "model/revisioned/list.h"
#include "model/revisioned/read.h"
#include "model/revisioned/revisioned.h"

/* Adds the indexes of one design document, whose winner is known. */
static enum status
indexes_add_design(struct couch_req *r, struct kv_tx *tx, const struct rev_entry *entry,
		   struct query_indexes *list)
{
	AUTO(buf_release) struct buf text = couch_buf(r, COUCH_ROW_BYTES);
	struct rev_doc doc;
	struct str kept;

	TRY(rev_doc_read_head(tx, r->db, entry->id, entry->rev, false, r->arena, &doc));
	buf_append_byte(&text, '{');
	TRY(rev_body_write(&doc, false, &text));
	TRY(buf_status(&text));
	kept = arena_dup(r->arena, buf_str(&text));
	if (!kept.ptr)
		return STATUS_LIMIT;
	return query_indexes_add(r, entry->id, kept, rev_db_is_partitioned(r->db), list);
}

enum status
query_indexes_load(struct couch_req *r, struct kv_tx *tx, struct query_indexes *ret)
{
	struct name_range range = {
		.begin = STR("_design/"),
		.has_begin = true,
		.end = STR("_design0"),
		.has_end = true,
		.exclusive_end = true,
		.limit = 100,
	};
	struct rev_entry_page page = { .more = true };

	*ret = (struct query_indexes){ .items = arena_alloc(r->arena, sizeof(*ret->items)),
				       .count = 1,
				       .cap = 1 };
	if (!ret->items)
		return STATUS_LIMIT;
	TRY(query_index_all_docs(r->arena, &ret->items[0]));
	while (page.more) {
		TRY(rev_all_docs_page(tx, r->db, &range, r->arena, &page));
		for (size_t i = 0; i < page.count; i++)
			TRY(indexes_add_design(r, tx, &page.entries[i], ret));
		range.begin = page.last;
		range.exclusive_begin = true;
	}
	return STATUS_OK;
}

/*
 * What views need of documents: the winners behind a Sequence as JSON texts, and which documents
 * purges have taken away.
 *
 * A text has what CouchDB gives to maps: _id, _rev, the members, stubs of attachments, and of a
 * document with other branches their revisions in _conflicts and _deleted_conflicts.
 */
#include "base/base64.h"
#include "doc/json.h"
#include "loop/step.h"
#include "model/revisioned/indexed_docs.h"
#include "model/revisioned/purges.h"
#include "model/revisioned/revisioned_int.h"
#include "model/revisioned/viewed_docs.h"

enum {
	TEXT_BYTES = 256 * 1024 * 1024, /* of one document; what is stored is smaller */
};

/* ---- Texts ---- */

static void
text_rev(struct buf *out, struct rev_id rev)
{
	buf_append_byte(out, '"');
	rev_id_write(rev, out);
	buf_append_byte(out, '"');
}

static void
text_att(struct buf *out, const struct rev_att *att)
{
	json_write_str(out, att->name);
	buf_append_cstr(out, ":{\"content_type\":");
	json_write_str(out, att->type);
	buf_append_cstr(out, ",\"revpos\":");
	buf_append_u64(out, att->revpos);
	buf_append_cstr(out, ",\"digest\":\"md5-");
	base64_encode(out, str_of(att->digest, sizeof(att->digest)), BASE64_STANDARD);
	buf_append_cstr(out, "\",\"length\":");
	buf_append_u64(out, att->length);
	buf_append_cstr(out, ",\"stub\":true}");
}

static void
text_branches(struct buf *out, const struct rev_tree *tree, bool deleted, const char *member)
{
	bool any = false;

	for (size_t i = 0; i < tree->count; i++) {
		if (tree->branches[i].winner || tree->branches[i].deleted != deleted)
			continue;
		if (any)
			buf_append_byte(out, ',');
		else
			buf_printf(out, ",\"%s\":[", member);
		any = true;
		text_rev(out, tree->branches[i].rev);
	}
	if (any)
		buf_append_byte(out, ']');
}

/* A document that is being written down. */
struct text_of_doc {
	struct kv_tx *tx;
	const struct catalog_db *db;
	const struct rev_change *change;
	const struct rev_doc *doc;
	bool local_seq;
	struct arena *scratch;
};

static enum status
text_write(const struct text_of_doc *t, struct buf *out)
{
	struct rev_tree tree;

	buf_append_cstr(out, "{\"_id\":");
	json_write_str(out, t->change->id);
	buf_append_cstr(out, ",\"_rev\":");
	text_rev(out, t->change->rev);
	if (t->local_seq) {
		buf_append_cstr(out, ",\"_local_seq\":\"");
		catalog_seq_write(&t->change->seq, out);
		buf_append_byte(out, '"');
	}
	for (size_t i = 0; i < t->doc->atts_count; i++) {
		buf_append_cstr(out, i ? "," : ",\"_attachments\":{");
		text_att(out, &t->doc->atts[i]);
	}
	if (t->doc->atts_count)
		buf_append_byte(out, '}');
	if (t->change->branch_count > 1) {
		TRY(rev_tree_read(t->tx, t->db, t->change->id, REV_TREE_HEADS, t->scratch, &tree));
		text_branches(out, &tree, false, "_conflicts");
		text_branches(out, &tree, true, "_deleted_conflicts");
	}
	TRY(rev_body_write(t->doc, true, out));
	return buf_status(out);
}

/* ---- Changes ---- */

static bool
change_is_mapped(const struct rev_change *change, const struct view_docs_want *want)
{
	return !change->deleted && (want->include_design || rev_id_is_indexed(change->id));
}

/* Writes the texts until there are enough bytes of them; cuts the page there. */
static enum status
texts_write(struct kv_tx *tx, const struct catalog_db *db, const struct view_docs_want *want,
	    const struct rev_change_page *page, struct rev_ahead *ahead, struct arena *arena,
	    struct view_docs *ret)
{
	struct arena *scratch = arena_new(REV_AHEAD_ARENA_BYTES + (size_t)TEXT_BYTES);
	AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);
	enum status status = scratch ? STATUS_OK : STATUS_NOMEM;
	size_t bytes = 0;

	for (size_t i = 0; status == STATUS_OK && i < page->count && bytes < want->most_bytes;
	     i++) {
		const struct rev_change *change = &page->changes[i];
		struct view_doc *view = &ret->docs[ret->count++];
		struct rev_doc doc;
		const struct text_of_doc t = { tx, db, change, &doc, want->local_seq, scratch };

		*view = (struct view_doc){ .id = change->id, .seq = change->seq };
		ret->last = change->seq;
		view->gone = !change_is_mapped(change, want);
		if (view->gone)
			continue;
		arena_clear(scratch);
		buf_clear(&text);
		status = rev_ahead_take(ahead, scratch, &doc);
		if (status == STATUS_OK)
			status = text_write(&t, &text);
		/* The change is read at the same moment, and says that the document is alive. */
		if (status == STATUS_NOT_FOUND)
			status = STATUS_CORRUPT;
		if (status != STATUS_OK)
			break;
		view->json = buf_dup(&text, arena);
		bytes += text.len;
		if (!view->json.ptr)
			status = STATUS_LIMIT;
	}
	arena_free(scratch);
	ret->more = page->more || ret->count < page->count;
	return status;
}

static enum status
docs_changes(struct kv_tx *tx, const struct catalog_db *db, const struct view_docs_want *want,
	     struct arena *arena, struct view_docs *ret, struct err *err)
{
	AUTO(rev_ahead_release) struct rev_ahead ahead = { 0 };
	struct rev_change_range range = { .since = want->after, .limit = want->most };
	struct rev_change_page page;
	struct rev_want *wants;
	size_t count = 0;

	(void)err;
	*ret = (struct view_docs){ .last = want->after };
	memset(range.until.bytes, 0xff, sizeof(range.until.bytes));
	TRY(rev_changes_page(tx, db, &range, arena, &page));
	ret->docs = arena_zalloc(arena, (page.count + 1) * sizeof(*ret->docs));
	wants = arena_zalloc(arena, (page.count + 1) * sizeof(*wants));
	if (!ret->docs || !wants)
		return STATUS_LIMIT;
	for (size_t i = 0; i < page.count; i++)
		if (change_is_mapped(&page.changes[i], want))
			wants[count++] = (struct rev_want){ .id = page.changes[i].id,
							    .rev = page.changes[i].rev };
	TRY(rev_ahead_begin(&ahead, tx, db, NULL, wants, count, false));
	return texts_write(tx, db, want, &page, &ahead, arena, ret);
}

static enum status
docs_newest(struct kv_tx *tx, const struct catalog_db *db, struct catalog_seq *ret)
{
	return rev_db_newest(tx, db, ret);
}

static enum status
docs_count(struct kv_tx *tx, const struct catalog_db *db, const struct catalog_seq *after,
	   uint64_t *ret_docs, uint64_t *ret_changes)
{
	struct rev_change_range range = { .since = *after };
	struct rev_db_info info;

	TRY(rev_db_info(tx, db, &info));
	*ret_docs = info.doc_count;
	memset(range.until.bytes, 0xff, sizeof(range.until.bytes));
	return rev_changes_count(tx, db, &range, ret_changes);
}

/* ---- Purges ---- */

static enum status
docs_purges(struct kv_tx *tx, const struct catalog_db *db, const struct catalog_seq *after,
	    size_t most, struct arena *arena, struct view_docs *ret, struct err *err)
{
	struct rev_purge_page page;

	*ret = (struct view_docs){ .last = *after };
	TRY(rev_purges_page(tx, db, after, most, arena, &page, err));
	ret->docs = arena_zalloc(arena, (page.count + 1) * sizeof(*ret->docs));
	if (!ret->docs)
		return STATUS_LIMIT;
	for (size_t i = 0; i < page.count; i++) {
		const struct rev_purge *purge = &page.purges[i];
		struct rev_tree tree;
		enum status status;

		ret->last = purge->seq;
		status = rev_tree_read(tx, db, purge->doc_id, REV_TREE_HEADS, arena, &tree);
		if (status == STATUS_OK)
			continue; /* what is left of it has a change behind the purge */
		if (status != STATUS_NOT_FOUND)
			return status;
		ret->docs[ret->count++] = (struct view_doc){ .id = purge->doc_id,
							     .seq = purge->seq,
							     .gone = true };
	}
	/* A page ends early by its bytes, so that only an empty one is the last. */
	ret->more = page.count > 0;
	return STATUS_OK;
}

const struct view_documents rev_viewed_documents = {
	.kind = CATALOG_KIND_REVISIONED,
	.changes = docs_changes,
	.newest = docs_newest,
	.count = docs_count,
	.purges = docs_purges,
	.purge_reader_add = rev_purge_reader_add,
	.purge_reader_advance = rev_purge_reader_advance,
	.purge_reader_remove = rev_purge_reader_remove,
};

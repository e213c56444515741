#include "model/revisioned/read.h"
#include "model/revisioned/record.h"
#include "model/revisioned/revisioned_int.h"

enum {
	/*
	 * What is read from the end of a document's bodies before its winner is known: a packed
	 * body with its attachments. Of one in leaves, or in conflicts of large bodies, the rest
	 * costs another round trip.
	 */
	NEWEST_BYTES = 2 * DOC_PACKED_BYTES,
};

/* The branches came worst first. */
static void
tree_reverse(struct rev_tree *tree)
{
	for (size_t i = 0; i < tree->count / 2; i++) {
		struct rev_branch swap = tree->branches[i];

		tree->branches[i] = tree->branches[tree->count - 1 - i];
		tree->branches[tree->count - 1 - i] = swap;
	}
}

enum status
rev_tree_read(struct kv_tx *tx, const struct catalog_db *db, struct str id, enum rev_tree_part part,
	      struct arena *arena, struct rev_tree *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct rev_tree tree = { 0 };
	struct rev_branch_record row;
	struct rev_branch_scan scan;
	enum status status;
	size_t cap = 0;

	TRY(rev_branch_scan_begin(&scan, tx, db, id, KV_READ, &key));
	while ((status = rev_branch_scan_next(&scan, arena, &row)) == STATUS_OK) {
		bool whole = part == REV_TREE_ALL || (part == REV_TREE_WINNER && row.winner);

		TRY(catalog_array_grow(arena, (void **)&tree.branches, sizeof(*tree.branches),
				       tree.count, &cap));
		TRY(rev_branch_copy(&row, whole, arena, &tree.branches[tree.count]));
		tree.count++;
		tree.seq = row.seq;
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	rev_branch_scan_release(&scan);
	if (tree.count == 0)
		return STATUS_NOT_FOUND;
	tree_reverse(&tree);
	*ret = tree;
	return STATUS_OK;
}

enum status
rev_body_write(const struct rev_doc *doc, bool has_members, struct buf *out)
{
	struct doc_assembler assembler;
	enum status status = STATUS_OK;

	if (doc->packed.ptr)
		return doc_packed_write(doc->packed, has_members, out);
	doc_assemble_init_object(&assembler, out, has_members);
	for (size_t i = 0; i < doc->count && status == STATUS_OK; i++)
		status = doc_assemble_leaf(&assembler, doc->leaves[i].key, doc->leaves[i].value);
	if (status == STATUS_OK)
		status = doc_assemble_end(&assembler);
	doc_assemble_release(&assembler);
	return status == STATUS_OK ? buf_status(out) : status;
}

enum status
rev_body_explode(struct rev_doc *doc, struct arena *arena)
{
	if (!doc->packed.ptr)
		return STATUS_OK;
	TRY(doc_unpack(doc->packed, arena, &doc->leaves, &doc->count));
	doc->packed = (struct str){ NULL, 0 };
	return STATUS_OK;
}

enum status
rev_winner_ask(struct kv_tx *tx, const struct catalog_db *db, struct str id, struct buf *key,
	       struct kv_future **ret)
{
	rev_key_named(key, db, REV_SUBSPACE_ALL_DOCS, id);
	TRY(catalog_key_status(key));
	*ret = kv_get(tx, buf_str(key), KV_READ);
	return STATUS_OK;
}

enum status
rev_winner_wait(struct kv_tx *tx, const struct catalog_db *db, struct str id, struct kv_future *f,
		struct arena *arena, struct rev_id *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct rev_branch_records rows;
	struct str value;

	TRY(kv_future_wait(f));
	if (kv_future_value(f, &value))
		return rev_entry_parse(value, true, arena, ret, kv_tx_err(tx));
	/* The document does not exist or is deleted. Its last branch record shows which. */
	TRY(rev_branches_read(tx, db, id, 1, KV_READ, &key, &f));
	TRY(rev_branches_wait(tx, db, id, 1, KV_READ, f, &key, arena, &rows));
	if (rows.count == 0)
		return STATUS_NOT_FOUND;
	if (!rows.rows[0].deleted)
		return STATUS_CORRUPT;
	ret->pos = rows.rows[0].rev.pos;
	ret->hash = arena_dup(arena, rows.rows[0].rev.hash);
	return ret->hash.ptr ? STATUS_DELETED : STATUS_LIMIT;
}

enum status
rev_winner_read(struct kv_tx *tx, const struct catalog_db *db, struct str id, struct arena *arena,
		struct rev_id *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;

	TRY(rev_winner_ask(tx, db, id, &key, &f));
	return rev_winner_wait(tx, db, id, f, arena, ret);
}

enum status
rev_winners_read(struct kv_tx *tx, const struct catalog_db *db, const struct str *ids, size_t count,
		 struct arena *arena, struct rev_id *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future **asked = arena_alloc(arena, (count + 1) * sizeof(struct kv_future *));

	if (!asked)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		rev_key_named(&key, db, REV_SUBSPACE_ALL_DOCS, ids[i]);
		TRY(catalog_key_status(&key));
		asked[i] = kv_get(tx, buf_str(&key), KV_SNAPSHOT);
	}
	for (size_t i = 0; i < count; i++) {
		struct str value;

		ret[i] = (struct rev_id){ 0 };
		TRY(kv_future_wait(asked[i]));
		if (kv_future_value(asked[i], &value))
			TRY(rev_entry_parse(value, true, arena, &ret[i], kv_tx_err(tx)));
	}
	return STATUS_OK;
}

/* ---- The newest revision ---- */

/* Asks for the last keys of a document in DOCUMENTS, among which is the winner's body. */
static enum status
newest_ask(struct kv_tx *tx, const struct catalog_db *db, struct str id, struct kv_future **ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	const struct kv_range_options options = { .limit_bytes = NEWEST_BYTES,
						  .reverse = true,
						  .mode = KV_READ };

	rev_key_named(&key, db, REV_SUBSPACE_DOCUMENTS, id);
	rev_key_named(&end, db, REV_SUBSPACE_DOCUMENTS, id);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&key));
	TRY(catalog_key_status(&end));
	*ret = kv_get_range(tx, buf_str(&key), buf_str(&end), &options);
	return STATUS_OK;
}

enum status
rev_doc_read_together(struct kv_tx *tx, const struct catalog_db *db, struct str id,
		      struct arena *arena, struct rev_doc *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *entry, *last;
	struct rev_doc doc = { 0 };
	enum status winner, body;
	struct kv_range range;
	bool whole;

	TRY(rev_winner_ask(tx, db, id, &key, &entry));
	TRY(newest_ask(tx, db, id, &last));
	winner = rev_winner_wait(tx, db, id, entry, arena, &doc.rev);
	if (winner != STATUS_OK && winner != STATUS_DELETED)
		return winner;
	doc.deleted = winner == STATUS_DELETED;
	rev_key_rev(&key, db, REV_SUBSPACE_DOCUMENTS, id, doc.deleted, doc.rev);
	TRY(catalog_key_status(&key));
	TRY(kv_future_wait(last));
	range = kv_future_range(last);
	body = rev_body_take_last(tx, db, &range, buf_str(&key), arena, &whole, &doc);
	if (!whole)
		body = rev_body_read_all(tx, db, id, arena, &doc);
	if (body == STATUS_NOT_FOUND && !doc.deleted)
		return STATUS_CORRUPT;
	if (body != STATUS_OK && body != STATUS_NOT_FOUND)
		return body;
	*ret = doc;
	return winner;
}

enum status
rev_doc_read(struct kv_tx *tx, const struct catalog_db *db, struct str id, struct arena *arena,
	     struct rev_doc *ret)
{
	struct rev_doc doc = { 0 };
	enum status winner, body;

	/* Where each wait is a round trip, the body is asked for before its revision is known. */
	if (kv_is_shared(kv_tx_store(tx)))
		return rev_doc_read_together(tx, db, id, arena, ret);
	winner = rev_winner_read(tx, db, id, arena, &doc.rev);
	if (winner != STATUS_OK && winner != STATUS_DELETED)
		return winner;
	doc.deleted = winner == STATUS_DELETED;
	body = rev_doc_read_head(tx, db, id, doc.rev, doc.deleted, arena, &doc);
	if (body == STATUS_NOT_FOUND && !doc.deleted)
		return STATUS_CORRUPT;
	if (body != STATUS_OK && body != STATUS_NOT_FOUND)
		return body;
	*ret = doc;
	return winner;
}

static enum status
doc_place_copy_key(const struct buf *key, struct arena *arena, struct str *ret)
{
	TRY(catalog_key_status(key));
	*ret = buf_dup(key, arena);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
rev_doc_place(const struct catalog_db *db, struct str id, struct rev_id rev, bool deleted,
	      struct arena *arena, struct doc_place *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct doc_place place;

	rev_key_rev(&key, db, REV_SUBSPACE_DOCUMENTS, id, deleted, rev);
	TRY(doc_place_copy_key(&key, arena, &place.key));
	rev_key_named(&key, db, REV_SUBSPACE_ATTACHMENTS, REV_ATT_SPACE_DATA);
	TRY(doc_place_copy_key(&key, arena, &place.texts));
	*ret = place;
	return STATUS_OK;
}

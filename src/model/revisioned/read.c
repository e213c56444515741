#include "model/revisioned/revisioned_int.h"

enum status
rev_tree_read(struct kv_tx *tx, const struct rev_db *db, struct str id, struct arena *arena,
	      struct rev_tree *ret)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	struct rev_branch *branches;
	struct kv_future *f;
	struct rev_rows rows;

	TRY(rev_rows_read(tx, db, id, 0, KV_READ, &key, &f));
	TRY(rev_rows_wait(tx, db, id, 0, KV_READ, f, &key, arena, &rows));
	if (rows.count == 0)
		return STATUS_NOT_FOUND;
	branches = arena_zalloc(arena, rows.count * sizeof(*branches));
	if (!branches)
		return STATUS_LIMIT;
	for (size_t i = 0; i < rows.count; i++) {
		const struct rev_row *row = &rows.rows[i];
		struct tuple_reader r = { row->ancestors, true };
		struct rev_branch *branch = &branches[i];
		size_t cap = 0;

		branch->rev.pos = row->rev.pos;
		branch->rev.hash = arena_dup(arena, row->rev.hash);
		if (!branch->rev.hash.ptr)
			return STATUS_LIMIT;
		branch->deleted = row->deleted;
		branch->winner = row->winner;
		while (r.rest.len) {
			TRY(rev_array_grow(arena, (void **)&branch->ancestors,
					   sizeof(*branch->ancestors), branch->ancestors_count,
					   &cap));
			TRY(rev_next_text(&r, TUPLE_BYTES, arena, true,
					  &branch->ancestors[branch->ancestors_count]));
			branch->ancestors_count++;
		}
	}
	*ret = (struct rev_tree){ branches, rows.count, rows.rows[0].seq };
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
rev_body_form(const struct rev_db *db, const struct doc *doc, struct arena *arena,
	      struct rev_doc *ret)
{
	size_t packed_bytes = rev_scheme_packed_bytes(db->scheme);

	*ret = (struct rev_doc){ .packed = doc->packed,
				 .leaves = doc->leaves,
				 .count = doc->count };
	if (doc->packed.ptr)
		return doc->packed.len > packed_bytes ? rev_body_explode(ret, arena) : STATUS_OK;
	if (doc->unpackable >= packed_bytes)
		return STATUS_OK;
	TRY(doc_pack(doc->leaves, doc->count, packed_bytes, arena, &ret->packed));
	if (ret->packed.ptr)
		ret->count = 0;
	return STATUS_OK;
}

enum status
rev_winner_read(struct kv_tx *tx, const struct rev_db *db, struct str id, struct arena *arena,
		struct rev_id *ret)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	struct kv_future *f;
	struct rev_rows rows;
	struct str value;

	rev_key_named(&key, db, REV_SUBSPACE_ALL_DOCS, id);
	TRY(rev_key_status(&key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (kv_future_value(f, &value)) {
		struct tuple_reader r = tuple_reader(value);

		TRY(rev_next_format(&r));
		TRY(tuple_next_u64(&r, &ret->pos));
		return rev_next_text(&r, TUPLE_BYTES, arena, true, &ret->hash);
	}
	/* Never there, or deleted: the last branch tells. */
	TRY(rev_rows_read(tx, db, id, 1, KV_READ, &key, &f));
	TRY(rev_rows_wait(tx, db, id, 1, KV_READ, f, &key, arena, &rows));
	if (rows.count == 0)
		return STATUS_NOT_FOUND;
	if (!rows.rows[0].deleted)
		return STATUS_CORRUPT;
	ret->pos = rows.rows[0].rev.pos;
	ret->hash = arena_dup(arena, rows.rows[0].rev.hash);
	return ret->hash.ptr ? STATUS_DELETED : STATUS_LIMIT;
}

enum status
rev_doc_read(struct kv_tx *tx, const struct rev_db *db, struct str id, struct arena *arena,
	     struct rev_doc *ret)
{
	struct rev_doc doc = { 0 };
	enum status winner, body;

	winner = rev_winner_read(tx, db, id, arena, &doc.rev);
	if (winner != STATUS_OK && winner != STATUS_DELETED)
		return winner;
	doc.deleted = winner == STATUS_DELETED;
	body = rev_doc_read_leaf(tx, db, id, doc.rev, doc.deleted, arena, &doc);
	if (body == STATUS_NOT_FOUND && !doc.deleted)
		return STATUS_CORRUPT;
	if (body != STATUS_OK && body != STATUS_NOT_FOUND)
		return body;
	*ret = doc;
	return winner;
}

enum status
rev_doc_prefix(const struct rev_db *db, struct str id, struct rev_id rev, bool deleted,
	       struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	struct str copy;

	rev_key_rev(&key, db, REV_SUBSPACE_DOCUMENTS, id, deleted, rev);
	TRY(rev_key_status(&key));
	copy = arena_dup(arena, buf_str(&key));
	if (!copy.ptr)
		return STATUS_LIMIT;
	*ret = copy;
	return STATUS_OK;
}

size_t
rev_doc_prefix_bytes(const struct rev_db *db, struct str id)
{
	return rev_local_prefix_bytes(db, id) + REV_KEY_TAIL_BYTES + REV_KEY_HASH_BYTES;
}

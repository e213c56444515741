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
rev_body_read(struct kv_tx *tx, struct buf *key, struct arena *arena, bool *ret_found,
	      struct str *ret_root, struct rev_doc *ret)
{
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_range_options options = { .mode = KV_READ };
	size_t prefix_len = key->len, cap = 0;
	struct rev_att_list atts = { 0 };
	struct kv_pair pair, copy;
	enum status status;

	TRY(rev_key_status(key));
	if (buf_reserve(key, prefix_len + 1)) {
		buf_append(key, key->ptr, prefix_len);
		buf_append_byte(key, REV_KEY_LAST);
	}
	TRY(rev_key_status(key));
	*ret_found = false;
	ret->leaves = NULL;
	ret->count = 0;
	ret->atts = NULL;
	ret->atts_count = 0;
	TRY(kv_scan_init(&scan, tx, str_of(key->ptr, prefix_len),
			 str_of(key->ptr + prefix_len, key->len - prefix_len), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		TRY(rev_pair_copy(arena, str_skip(pair.key, prefix_len), pair.value, &copy));
		if (*ret_found && str_starts_with(copy.key, REV_ATT_MARK)) {
			TRY(rev_att_list_add(&atts, copy.key, copy.value, arena));
			continue;
		}
		if (!*ret_found) {
			if (copy.key.len) /* leaves without a root */
				return STATUS_CORRUPT;
			*ret_found = true;
			*ret_root = copy.value;
			continue;
		}
		TRY(rev_array_grow(arena, (void **)&ret->leaves, sizeof(*ret->leaves), ret->count,
				   &cap));
		ret->leaves[ret->count++] = copy;
	}
	rev_att_list_sort(&atts);
	ret->atts = atts.atts;
	ret->atts_count = atts.count;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
rev_doc_read_leaf(struct kv_tx *tx, const struct rev_db *db, struct str id, struct rev_id rev,
		  bool deleted, struct arena *arena, struct rev_doc *ret)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	struct rev_doc doc = { .rev = rev, .deleted = deleted };
	struct str value;
	bool found;

	rev_key_rev(&key, db, REV_SUBSPACE_DOCUMENTS, id, deleted, rev);
	TRY(rev_body_read(tx, &key, arena, &found, &value, &doc));
	if (!found)
		return STATUS_NOT_FOUND;
	TRY(doc_root_read(value, &doc.packed));
	if (doc.packed.ptr && doc.count)
		return STATUS_CORRUPT;
	*ret = doc;
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

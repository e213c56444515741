/* Writing what write.c has decided: blindly, without reading a key. */
#include "model/revisioned/revisioned_int.h"

static enum status
body_clear(struct rev_writer *w, struct str id, const struct rev_row *row)
{
	rev_key_rev(&w->key, w->db, REV_SUBSPACE_DOCUMENTS, id, row->deleted, row->rev);
	TRY(rev_key_status(&w->key));
	/* Nobody need look what there is to clear. */
	if (row->has_one_key)
		return kv_clear(w->tx, buf_str(&w->key));
	return doc_clear(w->tx, buf_str(&w->key));
}

/* Seed 0: a tombstone without members leaves nothing among the documents; nor does it here, unless
 * it has attachments. */
static bool
has_body(const struct rev_edit *edit)
{
	return !edit->deleted || !doc_is_empty(&edit->doc) || edit->atts_count > 0;
}

static enum status
body_write(struct rev_writer *w, const struct rev_update *u, const struct rev_doc *body)
{
	rev_key_rev(&w->key, w->db, REV_SUBSPACE_DOCUMENTS, u->edit->id, u->edit->deleted, u->rev);
	TRY(rev_key_status(&w->key));
	buf_clear(&w->value);
	doc_root_put(&w->value, body->packed, u->edit->atts_count > 0);
	TRY(buf_status(&w->value));
	TRY(kv_set(w->tx, buf_str(&w->key), buf_str(&w->value)));
	TRY(doc_write(w->tx, buf_str(&w->key), body->leaves, body->count));
	return u->edit->atts_count ? rev_atts_write(w, u) : STATUS_OK;
}

static enum status
branch_clear(struct rev_writer *w, struct str id, const struct rev_row *row)
{
	rev_key_rev(&w->key, w->db, REV_SUBSPACE_REVISIONS, id, row->deleted, row->rev);
	TRY(rev_key_status(&w->key));
	TRY(kv_clear(w->tx, buf_str(&w->key)));
	return body_clear(w, id, row);
}

static enum status
branch_set_loser(struct rev_writer *w, struct str id, const struct rev_row *row)
{
	rev_key_rev(&w->key, w->db, REV_SUBSPACE_REVISIONS, id, row->deleted, row->rev);
	TRY(rev_key_status(&w->key));
	rev_value_loser(&w->value, row);
	TRY(buf_status(&w->value));
	return kv_set(w->tx, buf_str(&w->key), buf_str(&w->value));
}

static enum status
branch_set_winner(struct rev_writer *w, const struct rev_update *u, const struct rev_row *row,
		  uint64_t branch_count)
{
	size_t offset;

	rev_key_rev(&w->key, w->db, REV_SUBSPACE_REVISIONS, u->edit->id, row->deleted, row->rev);
	TRY(rev_key_status(&w->key));
	offset = rev_value_winner(&w->value, w->db->incarnation, u->order, branch_count, row);
	TRY(buf_status(&w->value));
	return kv_set_versionstamped_value(w->tx, buf_str(&w->key), buf_str(&w->value), offset);
}

/* Moves the document's one entry in the changes index (seed 1); with no winner, it goes. */
static enum status
change_move(struct rev_writer *w, const struct rev_update *u, const struct rev_row *before,
	    const struct rev_row *winner, uint64_t branch_count)
{
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];
	size_t offset;

	if (before) {
		rev_key_change(&w->key, w->db, &before->seq);
		TRY(rev_key_status(&w->key));
		TRY(kv_clear(w->tx, buf_str(&w->key)));
		TRY(rev_tally_count(w, REV_LIST_CHANGES, rev_key_tail(&w->key, w->db), -1));
	}
	if (!winner)
		return STATUS_OK;
	rev_stamp(u->order, stamp);
	rev_key_space(&w->key, w->db, REV_SUBSPACE_CHANGES);
	tuple_put_u64(&w->key, w->db->incarnation);
	offset = tuple_put_versionstamp(&w->key, stamp);
	TRY(rev_key_status(&w->key));
	buf_clear(&w->value);
	tuple_put_u64(&w->value, REV_FORMAT);
	tuple_put_str(&w->value, u->edit->id);
	tuple_put_u64(&w->value, winner->rev.pos);
	tuple_put_bytes(&w->value, winner->rev.hash);
	tuple_put_u64(&w->value, branch_count);
	tuple_put_bool(&w->value, !winner->deleted);
	TRY(buf_status(&w->value));
	TRY(rev_tally_count_new(w));
	return kv_set_versionstamped_key(w->tx, buf_str(&w->key), offset, buf_str(&w->value));
}

/* The entry in ALL_DOCS, and the counters: both are about the winner alone. */
static enum status
entry_move(struct rev_writer *w, struct str id, const struct rev_row *before,
	   const struct rev_row *winner)
{
	bool was_live = before && !before->deleted;
	bool is_live = winner && !winner->deleted;

	w->docs_delta += is_live - was_live;
	w->deleted_delta += (winner && winner->deleted) - (before && before->deleted);
	if (!is_live && !was_live)
		return STATUS_OK;
	rev_key_named(&w->key, w->db, REV_SUBSPACE_ALL_DOCS, id);
	TRY(rev_key_status(&w->key));
	if (is_live != was_live)
		TRY(rev_tally_count(w, REV_LIST_DOCS, rev_key_tail(&w->key, w->db),
				    is_live - was_live));
	if (!is_live)
		return kv_clear(w->tx, buf_str(&w->key));
	if (was_live && rev_id_eq(before->rev, winner->rev))
		return STATUS_OK;
	buf_clear(&w->value);
	tuple_put_u64(&w->value, REV_FORMAT);
	tuple_put_u64(&w->value, winner->rev.pos);
	tuple_put_bytes(&w->value, winner->rev.hash);
	TRY(buf_status(&w->value));
	return kv_set(w->tx, buf_str(&w->key), buf_str(&w->value));
}

enum status
rev_update_apply(struct rev_writer *w, const struct rev_update *u)
{
	struct rev_row leaf = {
		.rev = u->rev,
		.deleted = u->edit->deleted,
		.ancestors = buf_str(&w->ancestors),
		.has_atts = u->edit->atts_count > 0,
	};
	const struct rev_row *before = NULL, *winner = &leaf;
	struct rev_doc body = { 0 };
	uint64_t branch_count = 1;

	TRY(buf_status(&w->ancestors));
	if (has_body(u->edit))
		TRY(rev_body_form(w->db, &u->edit->doc, w->arena, &body));
	leaf.has_one_key = !leaf.has_atts && body.count == 0;
	for (size_t i = 0; i < u->count; i++) {
		const struct rev_row *row = &u->rows[i];

		if (row->winner) {
			before = row;
			branch_count += row->branch_count;
		}
	}
	for (size_t i = 0; i < u->count; i++) {
		const struct rev_row *row = &u->rows[i];

		if (row->replaced) {
			branch_count--;
			TRY(branch_clear(w, u->edit->id, row));
		} else if (rev_row_cmp(row, winner) > 0) {
			winner = row;
		}
	}
	if (before && !before->replaced && winner != before)
		TRY(branch_set_loser(w, u->edit->id, before));
	if (winner != &leaf)
		TRY(branch_set_loser(w, u->edit->id, &leaf));
	TRY(branch_set_winner(w, u, winner, branch_count));
	TRY(change_move(w, u, before, winner, branch_count));
	TRY(entry_move(w, u->edit->id, before, winner));
	w->changed = true;
	if (u->order > w->last_order) /* edits of losing branches come after others */
		w->last_order = u->order;
	return has_body(u->edit) ? body_write(w, u, &body) : STATUS_OK;
}

enum status
rev_update_purge(struct rev_writer *w, const struct rev_update *u)
{
	const struct rev_row *before = NULL, *winner = NULL;
	uint64_t branch_count = 0;

	for (size_t i = 0; i < u->count; i++) {
		const struct rev_row *row = &u->rows[i];

		if (row->winner)
			before = row;
		if (row->replaced) {
			TRY(branch_clear(w, u->edit->id, row));
			continue;
		}
		branch_count++;
		if (!winner || rev_row_cmp(row, winner) > 0)
			winner = row;
	}
	if (winner)
		TRY(branch_set_winner(w, u, winner, branch_count));
	TRY(change_move(w, u, before, winner, branch_count));
	TRY(entry_move(w, u->edit->id, before, winner));
	w->changed = true;
	w->last_order = u->order;
	return STATUS_OK;
}

/* Writes what write.c and purge.c have decided. No key is read here. */
#include <assert.h>

#include "loop/step.h"
#include "model/revisioned/partition_int.h"
#include "model/revisioned/record.h"

enum {
	BRANCH_STEPS = 20, /* steps of writing or clearing one of many branches */
};

static enum status
body_clear(struct rev_writer *w, struct str id, const struct rev_branch_record *row)
{
	rev_key_rev(&w->key, w->db, REV_SUBSPACE_DOCUMENTS, id, row->deleted, row->rev);
	TRY(catalog_key_status(&w->key));
	if (row->has_text)
		TRY(rev_data_count(w, row->text_id, -1));
	/* The branch record says that there is one key only, so a single clear is enough. */
	if (row->has_one_key)
		return kv_clear(w->tx, buf_str(&w->key));
	return doc_clear(w->tx, buf_str(&w->key));
}

/* False for a tombstone with neither members nor attachments: DOCUMENTS gets no key for it. */
static bool
edit_has_body(const struct rev_edit *edit)
{
	return !edit->deleted || !doc_is_empty(&edit->doc) || edit->atts_count > 0;
}

/* Writes the chunks of the body's text, unless they are in the store already, and counts it. */
static enum status
text_write(struct rev_writer *w, const struct rev_update *u, const struct rev_body *body)
{
	const struct rev_text *text = u->edit->text;

	if (!text)
		TRY(rev_att_write_data(w->tx, w->db, body->root.text_id, 0, body->text, &w->key));
	if (text && text->source == REV_TEXT_STAGED) {
		rev_key_upload(&w->key, w->db->number, text->id);
		TRY(catalog_key_status(&w->key));
		TRY(kv_clear(w->tx, buf_str(&w->key)));
	}
	return rev_data_count(w, body->root.text_id, 1);
}

static enum status
body_write(struct rev_writer *w, const struct rev_update *u, const struct rev_body *body)
{
	struct doc_root root = body->root;

	root.more = u->edit->atts_count > 0;
	rev_key_rev(&w->key, w->db, REV_SUBSPACE_DOCUMENTS, u->edit->id, u->edit->deleted, u->rev);
	TRY(catalog_key_status(&w->key));
	buf_clear(&w->value);
	doc_root_put(&w->value, &root);
	TRY(buf_status(&w->value));
	TRY(kv_set(w->tx, buf_str(&w->key), buf_str(&w->value)));
	TRY(doc_write(w->tx, buf_str(&w->key), body->leaves, body->count));
	if (u->edit->atts_count)
		TRY(rev_atts_write(w, u));
	return root.form == DOC_FORM_CHUNKED ? text_write(w, u, body) : STATUS_OK;
}

/* Chooses the form of the new body. If its text is in the store already, the text stays there. */
static enum status
body_choose(struct rev_writer *w, const struct rev_edit *edit, struct rev_body *ret)
{
	const struct rev_body_limits limits = rev_body_limits(w->db, edit->id);

	if (!edit->text)
		return rev_body_choose(&edit->doc, &limits, w->arena, ret);
	*ret = (struct rev_body){ .root = { .form = DOC_FORM_CHUNKED,
					    .text_bytes = edit->text->bytes } };
	memcpy(ret->root.text_id, edit->text->id, sizeof(ret->root.text_id));
	return STATUS_OK;
}

/* ---- What a partitioned database counts of a head ---- */

static uint64_t
body_external_bytes(const struct rev_body *body)
{
	uint64_t bytes = body->root.form == DOC_FORM_CHUNKED ? body->root.text_bytes
							     : body->root.packed.len;

	for (size_t i = 0; i < body->count; i++)
		bytes += body->leaves[i].key.len + body->leaves[i].value.len;
	if (body->root.form == DOC_FORM_EXPLODED && body->count == 0)
		bytes = REV_EMPTY_BODY_BYTES;
	return bytes;
}

static struct rev_sizes
head_sizes(const struct rev_body *body, const struct rev_att *atts, size_t count)
{
	struct rev_sizes sizes = { body_external_bytes(body), body_external_bytes(body) };

	for (size_t i = 0; i < count; i++) {
		sizes.external += atts[i].length;
		sizes.active += atts[i].encoded_length;
	}
	return sizes;
}

enum status
rev_update_sizes(struct rev_writer *w, const struct rev_edit *edit, const struct rev_att *atts,
		 struct rev_sizes *ret)
{
	struct rev_body body = { .count = 0 };

	if (edit_has_body(edit))
		TRY(body_choose(w, edit, &body));
	*ret = head_sizes(&body, atts, edit->atts_count);
	return STATUS_OK;
}

/* Notes the sizes of a new head in its record, and for its partition. */
static enum status
head_count_sizes(struct rev_writer *w, const struct rev_update *u, const struct rev_body *body,
		 struct rev_branch_record *row)
{
	if (!rev_db_is_partitioned(w->db))
		return STATUS_OK;
	row->has_sizes = true;
	row->sizes = head_sizes(body, u->atts, u->edit->atts_count);
	return rev_partition_count(w, u->edit->id, 0, &row->sizes, 1);
}

/* ---- Branches ---- */

static enum status
branch_clear(struct rev_writer *w, struct str id, const struct rev_branch_record *row)
{
	TRY(rev_partition_count(w, id, 0, &row->sizes, -1));
	rev_key_rev(&w->key, w->db, REV_SUBSPACE_REVISIONS, id, row->deleted, row->rev);
	TRY(catalog_key_status(&w->key));
	TRY(kv_clear(w->tx, buf_str(&w->key)));
	return body_clear(w, id, row);
}

static enum status
branch_set_loser(struct rev_writer *w, struct str id, const struct rev_branch_record *row)
{
	rev_key_rev(&w->key, w->db, REV_SUBSPACE_REVISIONS, id, row->deleted, row->rev);
	TRY(catalog_key_status(&w->key));
	rev_branch_record_put_loser(&w->value, row);
	TRY(buf_status(&w->value));
	return kv_set(w->tx, buf_str(&w->key), buf_str(&w->value));
}

static enum status
branch_set_winner(struct rev_writer *w, const struct rev_update *u,
		  const struct rev_branch_record *row, uint64_t branch_count)
{
	size_t offset;

	rev_key_rev(&w->key, w->db, REV_SUBSPACE_REVISIONS, u->edit->id, row->deleted, row->rev);
	TRY(catalog_key_status(&w->key));
	offset = rev_branch_record_put_winner(&w->value, w->db->incarnation, u->order, branch_count,
					      row);
	TRY(buf_status(&w->value));
	return kv_set_versionstamped_value(w->tx, buf_str(&w->key), buf_str(&w->value), offset);
}

/* Moves the document's one entry in CHANGES to the new Sequence. With no winner, it is cleared. */
static enum status
change_move(struct rev_writer *w, const struct rev_update *u,
	    const struct rev_branch_record *before, const struct rev_branch_record *winner,
	    uint64_t branch_count)
{
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];
	size_t offset;

	if (before) {
		rev_key_change(&w->key, w->db, &before->seq);
		TRY(catalog_key_status(&w->key));
		TRY(kv_clear(w->tx, buf_str(&w->key)));
		TRY(catalog_counts_add(&w->counts, REV_LIST_CHANGES, rev_key_tail(&w->key, w->db),
				       -1));
	}
	if (!winner)
		return STATUS_OK;
	catalog_stamp(u->order, stamp);
	rev_key_space(&w->key, w->db, REV_SUBSPACE_CHANGES);
	tuple_put_u64(&w->key, w->db->incarnation);
	offset = tuple_put_versionstamp(&w->key, stamp);
	TRY(catalog_key_status(&w->key));
	rev_change_put(&w->value, &(struct rev_change){
					  .id = u->edit->id,
					  .rev = winner->rev,
					  .deleted = winner->deleted,
					  .branch_count = branch_count,
				  });
	TRY(buf_status(&w->value));
	/* The new Sequence is above all others, so the entry belongs to the last range. */
	TRY(catalog_counts_add(&w->counts, REV_LIST_CHANGES, CATALOG_TALLY_END, 1));
	return kv_set_versionstamped_key(w->tx, buf_str(&w->key), offset, buf_str(&w->value));
}

/* Updates the entry in ALL_DOCS and the document counters, which depend on the winner alone. */
static enum status
entry_move(struct rev_writer *w, struct str id, const struct rev_branch_record *before,
	   const struct rev_branch_record *winner)
{
	bool was_live = before && !before->deleted;
	bool is_live = winner && !winner->deleted;
	bool was_tombstone = before && before->deleted;
	bool is_tombstone = winner && winner->deleted;

	w->docs_delta += is_live - was_live;
	w->deleted_delta += is_tombstone - was_tombstone;
	TRY(rev_partition_count(w, id, is_tombstone - was_tombstone, NULL, 0));
	if (!is_live && !was_live)
		return STATUS_OK;
	rev_key_named(&w->key, w->db, REV_SUBSPACE_ALL_DOCS, id);
	TRY(catalog_key_status(&w->key));
	if (is_live != was_live)
		TRY(catalog_counts_add(&w->counts, REV_LIST_DOCS, rev_key_tail(&w->key, w->db),
				       is_live - was_live));
	if (!is_live)
		return kv_clear(w->tx, buf_str(&w->key));
	if (was_live && rev_id_eq(before->rev, winner->rev))
		return STATUS_OK;
	rev_entry_put(&w->value, winner->rev);
	TRY(buf_status(&w->value));
	return kv_set(w->tx, buf_str(&w->key), buf_str(&w->value));
}

enum status
rev_update_apply(struct rev_writer *w, const struct rev_update *u)
{
	struct rev_branch_record head = {
		.rev = u->rev,
		.deleted = u->edit->deleted,
		.ancestors = buf_str(&w->ancestors),
		.has_atts = u->edit->atts_count > 0,
	};
	const struct rev_branch_record *before = NULL, *winner = &head;
	struct rev_body body = { .count = 0 };
	uint64_t branch_count = 1;

	TRY(buf_status(&w->ancestors));
	if (edit_has_body(u->edit))
		TRY(body_choose(w, u->edit, &body));
	head.has_text = body.root.form == DOC_FORM_CHUNKED;
	memcpy(head.text_id, body.root.text_id, sizeof(head.text_id));
	head.has_one_key = !head.has_atts && body.count == 0;
	TRY(head_count_sizes(w, u, &body, &head));
	for (size_t i = 0; i < u->count; i++) {
		const struct rev_branch_record *row = &u->rows[i];

		if (row->winner) {
			before = row;
			branch_count += row->branch_count;
		}
	}
	for (size_t i = 0; i < u->count; i++) {
		const struct rev_branch_record *row = &u->rows[i];

		if (row->replaced) {
			branch_count--;
			TRY(branch_clear(w, u->edit->id, row));
		} else if (rev_branch_record_cmp(row, winner) > 0) {
			winner = row;
		}
	}
	if (before && !before->replaced && winner != before)
		TRY(branch_set_loser(w, u->edit->id, before));
	if (winner != &head)
		TRY(branch_set_loser(w, u->edit->id, &head));
	TRY(branch_set_winner(w, u, winner, branch_count));
	TRY(change_move(w, u, before, winner, branch_count));
	TRY(entry_move(w, u->edit->id, before, winner));
	w->changed = true;
	if (u->order > w->last_order) /* edits of losing branches come after others */
		w->last_order = u->order;
	return edit_has_body(u->edit) ? body_write(w, u, &body) : STATUS_OK;
}

/* Writes the body of a new branch, and notes in its record what the branch says of it. */
static enum status
head_write_body(struct rev_writer *w, const struct rev_update *u, struct rev_branch_record *row)
{
	struct rev_body body = { .count = 0 };

	if (!edit_has_body(u->edit)) {
		row->has_one_key = true;
		return head_count_sizes(w, u, &body, row);
	}
	TRY(body_choose(w, u->edit, &body));
	row->has_atts = u->edit->atts_count > 0;
	row->has_text = body.root.form == DOC_FORM_CHUNKED;
	memcpy(row->text_id, body.root.text_id, sizeof(row->text_id));
	row->has_one_key = !row->has_atts && body.count == 0;
	TRY(head_count_sizes(w, u, &body, row));
	return body_write(w, u, &body);
}

const struct rev_branch_record *
rev_merged_winner(const struct rev_merged *m, uint64_t *ret_branches)
{
	const struct rev_branch_record *winner = NULL;

	*ret_branches = 0;
	for (size_t i = 0; i < m->count; i++) {
		const struct rev_branch_record *row = &m->rows[i];

		if (row->replaced)
			continue;
		++*ret_branches;
		if (!winner || rev_branch_record_cmp(row, winner) > 0)
			winner = row;
	}
	return winner;
}

enum status
rev_merged_apply(struct rev_writer *w, const struct rev_merged *m)
{
	const struct rev_branch_record *before = m->stored ? &m->rows[0] : NULL;
	const struct rev_update *last = &m->heads[m->count - m->stored - 1];
	const struct rev_branch_record *winner;
	uint64_t branch_count;

	assert(m->count > m->stored && (!before || before->winner));
	winner = rev_merged_winner(m, &branch_count);
	for (size_t i = 0; i < m->count; i++) {
		struct rev_branch_record *row = &m->rows[i];
		bool is_new = i >= m->stored;

		TRY(step_count(BRANCH_STEPS));
		if (row->replaced && !is_new)
			TRY(branch_clear(w, m->id, row));
		if (row->replaced)
			continue;
		if (is_new)
			TRY(head_write_body(w, &m->heads[i - m->stored], row));
		if ((is_new || row == before) && row != winner)
			TRY(branch_set_loser(w, m->id, row));
	}
	TRY(branch_set_winner(w, last, winner, branch_count));
	TRY(change_move(w, last, before, winner, branch_count));
	TRY(entry_move(w, m->id, before, winner));
	w->changed = true;
	if (last->order > w->last_order)
		w->last_order = last->order;
	return STATUS_OK;
}

enum status
rev_update_purge(struct rev_writer *w, const struct rev_update *u)
{
	const struct rev_branch_record *before = NULL, *winner = NULL;
	uint64_t branch_count, gone = 0;

	for (size_t i = 0; i < u->count; i++) {
		const struct rev_branch_record *row = &u->rows[i];

		TRY(step_count(BRANCH_STEPS));
		if (row->winner)
			before = row;
		if (row->replaced) {
			TRY(branch_clear(w, u->edit->id, row));
			gone++;
			continue;
		}
		if (!winner || rev_branch_record_cmp(row, winner) > 0)
			winner = row;
	}
	if (!before || gone > before->branch_count)
		return STATUS_CORRUPT;
	branch_count = before->branch_count - gone;
	if (winner)
		TRY(branch_set_winner(w, u, winner, branch_count));
	TRY(change_move(w, u, before, winner, branch_count));
	TRY(entry_move(w, u->edit->id, before, winner));
	w->changed = true;
	w->last_order = u->order;
	return STATUS_OK;
}

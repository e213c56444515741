/*
 * What indexes and design documents need when the winner of a document changes: the body that had
 * entries and the one that gets them.
 *
 * The bodies are read by snapshot reads. Every edit reads the winner's key, or the end of the
 * document's range, and every edit writes the winner's key; so whoever changes one of these bodies
 * conflicts by that key. Where the winner can be guessed, its body is asked for in the first wave.
 */
#include "doc/chunks.h"
#include "doc/root.h"
#include "model/revisioned/indexed_docs.h"
#include "model/revisioned/revisioned_int.h"

/* What is called when a design document changes; set before any other thread runs. */
static rev_design_changed *design_changed;

void
rev_design_hook(rev_design_changed *changed)
{
	/*
	 * Not written again by a repeated call: a process may start a second server while threads
	 * of the first one read it.
	 */
	if (design_changed != changed)
		design_changed = changed;
}

/* The two callbacks of rev_follow(). */
static rev_is_followed *is_followed;
static rev_design_changed *followed_changed;

void
rev_follow(rev_is_followed *is, rev_design_changed *changed)
{
	/* Not written again by a repeated call, for the same reason. */
	if (is_followed == is && followed_changed == changed)
		return;
	is_followed = is;
	followed_changed = changed;
}

static bool
follows(const struct rev_writer *w, struct str id)
{
	return is_followed && is_followed(w->db, id);
}

bool
rev_index_wants(const struct rev_writer *w, struct str id)
{
	if (!rev_id_is_indexed(id))
		return design_changed != NULL;
	return w->indexes.set != NULL || follows(w, id);
}

/* ---- Bodies ---- */

static enum status
body_ask_all(struct rev_writer *w, struct str id, struct rev_id rev, struct kv_future **ret)
{
	const struct kv_range_options options = { .mode = KV_SNAPSHOT };
	size_t len;

	rev_key_rev(&w->key, w->db, REV_SUBSPACE_DOCUMENTS, id, false, rev);
	TRY(catalog_key_status(&w->key));
	len = w->key.len;
	if (buf_reserve(&w->key, len + 1)) {
		buf_append(&w->key, w->key.ptr, len);
		buf_append_byte(&w->key, CATALOG_KEY_LAST);
	}
	TRY(buf_status(&w->key));
	*ret = kv_get_range(w->tx, str_of(w->key.ptr, len),
			    str_of(w->key.ptr + len, w->key.len - len), &options);
	return STATUS_OK;
}

enum status
rev_body_ask(struct rev_writer *w, struct str id, struct rev_id rev, struct rev_body_ask *ret)
{
	*ret = (struct rev_body_ask){ .rev = rev,
				      .all = rev_db_scheme(w->db) != REV_SCHEME_PACKED };
	if (ret->all)
		return body_ask_all(w, id, rev, &ret->future);
	rev_key_rev(&w->key, w->db, REV_SUBSPACE_DOCUMENTS, id, false, rev);
	TRY(catalog_key_status(&w->key));
	ret->future = kv_get(w->tx, buf_str(&w->key), KV_SNAPSHOT);
	return STATUS_OK;
}

static enum status
body_add_leaf(struct rev_writer *w, struct kv_pair pair, size_t prefix_len, size_t *cap,
	      struct kv_pair **leaves, size_t *count)
{
	pair.key = str_skip(pair.key, prefix_len);
	if (str_starts_with(pair.key, REV_ATT_MARK))
		return STATUS_OK;
	TRY(catalog_array_grow(w->arena, (void **)leaves, sizeof(**leaves), *count, cap));
	(*leaves)[(*count)++] = pair;
	return STATUS_OK;
}

/*
 * Takes the leaves out of a range that begins with the root, and reads on where they are more than
 * one answer has. They are borrowed from the transaction's futures.
 */
static enum status
body_take_leaves(struct rev_writer *w, struct str id, struct rev_id rev, struct kv_range range,
		 struct index_source *ret)
{
	const struct kv_range_options options = { .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf next = CATALOG_KEY_INIT;
	struct kv_pair *leaves = NULL;
	size_t prefix_len, cap = 0;

	rev_key_rev(&end, w->db, REV_SUBSPACE_DOCUMENTS, id, false, rev);
	prefix_len = end.len;
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	for (size_t first = 1;; first = 0) {
		struct kv_future *f;

		for (size_t i = first; i < range.count; i++) {
			TRY(body_add_leaf(w, range.pairs[i], prefix_len, &cap, &leaves,
					  &ret->count));
			TRY(step_count(1));
		}
		if (!range.more || range.count == 0)
			break;
		buf_clear(&next);
		buf_append_str(&next, range.pairs[range.count - 1].key);
		buf_append_byte(&next, CATALOG_KEY_NEXT);
		TRY(catalog_key_status(&next));
		f = kv_get_range(w->tx, buf_str(&next), buf_str(&end), &options);
		TRY(kv_future_wait(f));
		range = kv_future_range(f);
	}
	ret->leaves = leaves;
	return STATUS_OK;
}

/* The root value of a body that was asked for, and all of its pairs where they came with it. */
static enum status
body_wait_root(struct rev_writer *w, const struct rev_body_ask *ask, struct doc_root *ret,
	       struct kv_range *ret_range)
{
	struct str value;

	TRY(kv_future_wait(ask->future));
	if (ask->all) {
		*ret_range = kv_future_range(ask->future);
		if (ret_range->count == 0)
			return STATUS_CORRUPT;
		value = ret_range->pairs[0].value;
	} else if (!kv_future_value(ask->future, &value)) {
		return STATUS_CORRUPT; /* a live head without a body */
	}
	return doc_root_read(value, ret, kv_tx_err(w->tx));
}

static enum status
body_wait(struct rev_writer *w, struct str id, const struct rev_body_ask *ask,
	  struct index_source *ret)
{
	struct kv_range range = { 0 };
	struct doc_root root;

	TRY(body_wait_root(w, ask, &root, &range));
	if (root.form == DOC_FORM_PACKED) {
		ret->body = root.packed;
		return STATUS_OK;
	}
	if (root.form == DOC_FORM_CHUNKED) {
		rev_key_att(&w->key, w->db, REV_ATT_SPACE_DATA, root.text_id);
		TRY(catalog_key_status(&w->key));
		return doc_chunks_read(w->tx, buf_str(&w->key), root.text_bytes, w->arena,
				       &ret->body);
	}
	if (!ask->all) {
		struct kv_future *f;

		TRY(body_ask_all(w, id, ask->rev, &f));
		TRY(kv_future_wait(f));
		range = kv_future_range(f);
	}
	return body_take_leaves(w, id, ask->rev, range, ret);
}

/* ---- The change ---- */

/* True if an index is being built that is younger than the document. */
static bool
change_meets_build(const struct rev_writer *w, const struct rev_index_change *c)
{
	return w->indexes.set && index_set_builds(w->indexes.set, &c->before.seq);
}

/* The winner stays the branch that it was. */
static bool
change_keeps_winner(const struct rev_index_change *c)
{
	return c->has_before && c->has_after && rev_id_eq(c->before.rev, c->after.rev) &&
	       c->before.deleted == c->after.deleted;
}

enum status
rev_index_ask(struct rev_writer *w, struct rev_index_change *c, bool *ret_waits)
{
	bool before = c->has_before && !c->before.deleted;
	bool after = c->has_after && !c->after.deleted;

	if (change_keeps_winner(c)) {
		/*
		 * The document gets another Sequence, by which a build takes it for one that
		 * a writer has entered: so it is entered now.
		 */
		before = before && change_meets_build(w, c);
		after = false;
	}
	if (before && c->guess.future && rev_id_eq(c->guess.rev, c->before.rev)) {
		c->before_body = c->guess;
	} else if (before) {
		TRY(rev_body_ask(w, c->id, c->before.rev, &c->before_body));
		*ret_waits = true;
	}
	if (after) {
		TRY(rev_body_ask(w, c->id, c->after.rev, &c->after_body));
		*ret_waits = true;
	}
	return STATUS_OK;
}

static enum status
change_name_rev(struct rev_writer *w, struct rev_id rev, struct index_source *source)
{
	AUTO(buf_release) struct buf text = BUF_INIT(2 * REV_HASH_LIMIT_BYTES + 32);

	source->rev = (struct str){ NULL, 0 };
	if (!w->indexes.set || !w->indexes.set->any_rev)
		return STATUS_OK;
	rev_id_write(rev, &text);
	TRY(buf_status(&text));
	source->rev = buf_dup(&text, w->arena);
	return source->rev.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
change_source_of_edit(struct rev_writer *w, const struct rev_index_change *c,
		      struct index_source *ret)
{
	const struct doc *doc = &c->edit->doc;

	*ret = (struct index_source){ .id = c->id, .body = doc->packed };
	if (!doc->packed.ptr) {
		ret->leaves = doc->leaves;
		ret->count = doc->count;
	}
	return change_name_rev(w, c->edit_rev, ret);
}

static enum status
change_source_of_body(struct rev_writer *w, const struct rev_index_change *c,
		      const struct rev_body_ask *ask, struct index_source *ret)
{
	*ret = (struct index_source){ .id = c->id };
	TRY(body_wait(w, c->id, ask, ret));
	return change_name_rev(w, ask->rev, ret);
}

/* Calls the callback for the document if its winner has changed. */
static enum status
change_tell(struct rev_writer *w, const struct rev_index_change *c,
	    const struct index_change *change, rev_design_changed *changed)
{
	const struct rev_design_change told = { .id = c->id,
						.before = change->before,
						.after = change->after };

	if ((!change->before && !change->after) || change->before == change->after)
		return STATUS_OK;
	return changed(w->tx, w->db, &told, w->arena);
}

enum status
rev_index_apply(struct rev_writer *w, struct rev_index_change *c)
{
	struct index_source before, after;
	struct index_change change = { .before_seq = c->before.seq };

	if (c->before_body.future) {
		TRY(change_source_of_body(w, c, &c->before_body, &before));
		change.before = &before;
	}
	if (c->edit && !c->edit->deleted) {
		TRY(change_source_of_edit(w, c, &after));
		change.after = &after;
	} else if (c->after_body.future) {
		TRY(change_source_of_body(w, c, &c->after_body, &after));
		change.after = &after;
	} else if (change_keeps_winner(c)) {
		change.after = change.before;
	}
	if (!rev_id_is_indexed(c->id))
		return change_tell(w, c, &change, design_changed);
	if (w->indexes.set)
		TRY(index_update(&w->indexes, &change, &w->duplicate));
	return follows(w, c->id) ? change_tell(w, c, &change, followed_changed) : STATUS_OK;
}

enum status
rev_index_begin(struct rev_writer *w, const struct rev_update *u, const struct rev_body_ask *guess,
		struct rev_index_change **ret, bool *ret_waits)
{
	struct rev_index_change *c = arena_zalloc(w->arena, sizeof(*c));
	struct rev_branch_record head = { .rev = u->rev, .deleted = u->edit->deleted };
	const struct rev_branch_record *winner = u->purges ? NULL : &head;

	if (!c)
		return STATUS_LIMIT;
	c->id = u->edit->id;
	for (size_t i = 0; i < u->count; i++) {
		const struct rev_branch_record *row = &u->rows[i];

		if (row->winner) {
			c->has_before = true;
			c->before = *row;
		}
		if (!row->replaced && (!winner || rev_branch_record_cmp(row, winner) > 0))
			winner = row;
	}
	if (winner == &head) {
		c->edit = u->edit;
		c->edit_rev = u->rev;
	} else if (winner) {
		c->has_after = true;
		c->after = *winner;
	}
	if (guess)
		c->guess = *guess;
	*ret = c;
	return rev_index_ask(w, c, ret_waits);
}

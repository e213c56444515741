/*
 * Edits (seed 3). One wave reads what each edit needs, a second one reads the winner for edits of
 * losing branches; then everything is written blindly.
 *
 * Reading the right key is what makes concurrent edits of one document conflict: every edit writes
 * the winner's key, because it alone carries the Sequence, so an edit that has read the winner (or
 * the end of the document's range) cannot commit behind another one.
 */
#include "model/revisioned/revisioned_int.h"

/* What an edit is waiting for. */
enum plan {
	PLAN_DONE,      /* nothing more: its result is there */
	PLAN_CREATE,    /* no parent named: `first` is the last branch, if there is one */
	PLAN_EXTEND,    /* `first` is the parent's key */
	PLAN_DELETE,    /* `first` is the last two branches, `twin` the new revision's key */
	PLAN_REPLICATE, /* `first` is every branch */
	PLAN_SECOND,    /* `first` is the parent's key, `second` the last branch, and `twin` */
	PLAN_STUBS,     /* `pointers` name the revision: then PLAN_DELETE begins */
	PLAN_SETTLE,    /* decided: the attachments of what is replaced are still to be read */
};

struct pending {
	enum plan plan;
	uint8_t *hash; /* room for the new revision's */
	struct kv_future *first;
	struct kv_future *second;
	/*
	 * The key that the new revision would get. It is there already if the same edit came in by
	 * replication without its history, as a branch of its own; writing it again would leave
	 * fewer branches than the winner counts. Only edits that cannot tell from what they read
	 * anyway ask for it, and it is hardly ever there to be read.
	 */
	struct kv_future *twin;

	/* For edits with attachments, or of branches that have some. */
	struct kv_future *pointers; /* those of the parent that was named */
	struct kv_future **staged;  /* the uploads that the edit takes over, in the arena */
	struct rev_att *atts;       /* of the new leaf, once they are known */
	struct str ancestors;       /* PLAN_SETTLE: the new leaf's, encoded, in the arena */
	struct rev_update update;   /* PLAN_SETTLE: what has been decided */
	struct kv_future *
		*given_up; /* PLAN_SETTLE: the attachments of each of update.rows, or NULL */
};

/* ---- Reading branches ---- */

static enum status
row_get(struct rev_writer *w, struct str id, bool deleted, struct rev_id rev,
	struct kv_future **ret)
{
	rev_key_rev(&w->key, w->db, REV_SUBSPACE_REVISIONS, id, deleted, rev);
	TRY(rev_key_status(&w->key));
	*ret = kv_get(w->tx, buf_str(&w->key), KV_READ);
	return STATUS_OK;
}

static enum status
last_rows(struct rev_writer *w, struct str id, size_t limit, struct kv_future **ret)
{
	return rev_rows_read(w->tx, w->db, id, limit, KV_READ, &w->key, ret);
}

static enum status
last_rows_wait(struct rev_writer *w, struct str id, size_t limit, struct kv_future *f,
	       struct rev_rows *ret)
{
	return rev_rows_wait(w->tx, w->db, id, limit, KV_READ, f, &w->key, w->arena, ret);
}

static enum status
present(struct kv_future *f, bool *ret)
{
	struct str value;

	TRY(kv_future_wait(f));
	*ret = kv_future_value(f, &value);
	return STATUS_OK;
}

/* The branch behind row_get(), a live leaf. `*ret_found` is false if there is none. */
static enum status
parent_wait(struct rev_writer *w, struct kv_future *f, struct rev_id parent, bool *ret_found,
	    struct rev_row *ret)
{
	AUTO(buf_release) struct buf tail = REV_KEY_INIT;
	struct str value;

	TRY(kv_future_wait(f));
	*ret_found = kv_future_value(f, &value);
	if (!*ret_found)
		return STATUS_OK;
	tuple_put_bool(&tail, true);
	tuple_put_u64(&tail, parent.pos);
	tuple_put_bytes(&tail, parent.hash);
	TRY(buf_status(&tail));
	TRY(rev_row_parse(buf_str(&tail), value, w->arena, ret));
	ret->rev = parent;
	return STATUS_OK;
}

/* ---- Deciding: attachments ---- */

static bool
has_stubs(const struct rev_edit *edit)
{
	for (size_t i = 0; i < edit->atts_count; i++)
		if (edit->atts[i].source == REV_ATT_STUB)
			return true;
	return false;
}

/* The parent's attachments, and the uploads that the edit takes over: in the first wave. */
static enum status
atts_begin(struct rev_writer *w, const struct rev_edit *edit, struct pending *p)
{
	if (edit->atts_count == 0)
		return STATUS_OK;
	if (edit->kind == REV_EDIT_INTERACTIVE && edit->parent.pos)
		TRY(rev_atts_get(w->tx, w->db, edit->id, edit->parent, false, &w->key,
				 &p->pointers));
	p->staged = arena_zalloc(w->arena, edit->atts_count * sizeof(struct kv_future *));
	if (!p->staged)
		return STATUS_LIMIT;
	for (size_t i = 0; i < edit->atts_count; i++) {
		if (edit->atts[i].source != REV_ATT_STAGED)
			continue;
		rev_key_upload(&w->key, w->db->number, edit->atts[i].att.id);
		TRY(rev_key_status(&w->key));
		p->staged[i] = kv_get(w->tx, buf_str(&w->key), KV_READ);
	}
	return STATUS_OK;
}

/* All attachments of the new leaf, which extends `parent`, whose own are behind `f` (or NULL). */
static enum status
atts_resolve(struct rev_writer *w, const struct rev_edit *edit, struct rev_id parent, bool deleted,
	     struct kv_future *f, struct pending *p, struct rev_result *result)
{
	struct rev_att_list from = { 0 };

	if (edit->atts_count == 0)
		return STATUS_OK;
	if (f && has_stubs(edit))
		TRY(rev_atts_wait(w->tx, w->db, edit->id, parent, deleted, f, &w->key, w->arena,
				  &from));
	return rev_atts_resolve(edit, &from,
				edit->kind == REV_EDIT_INTERACTIVE ? parent.pos + 1 : 0, w->arena,
				&p->atts, &result->att);
}

/* STATUS_TIMEOUT if an upload has been given up before this edit came. */
static enum status
staged_wait(const struct rev_edit *edit, const struct pending *p)
{
	struct str value;

	for (size_t i = 0; p->staged && i < edit->atts_count; i++) {
		if (!p->staged[i])
			continue;
		TRY(kv_future_wait(p->staged[i]));
		if (!kv_future_value(p->staged[i], &value))
			return STATUS_TIMEOUT;
	}
	return STATUS_OK;
}

/*
 * Everything is known but the attachments of what is replaced, which most documents do not have:
 * then, and if the new leaf has none either, it is written at once.
 */
static enum status
update_decide(struct rev_writer *w, struct pending *p, const struct rev_update *u)
{
	bool any = false;

	for (size_t i = 0; i < u->count; i++)
		any = any || (u->rows[i].replaced && u->rows[i].has_atts);
	p->plan = PLAN_DONE;
	if (!any && u->edit->atts_count == 0)
		return rev_update_apply(w, u);
	p->given_up = arena_zalloc(w->arena, (u->count + 1) * sizeof(struct kv_future *));
	p->update.rows = arena_alloc(w->arena, (u->count + 1) * sizeof(*u->rows));
	if (!p->given_up || !p->update.rows)
		return STATUS_LIMIT;
	for (size_t i = 0; i < u->count; i++) {
		const struct rev_row *row = &u->rows[i];

		if (row->replaced && row->has_atts)
			TRY(rev_atts_get(w->tx, w->db, u->edit->id, row->rev, row->deleted, &w->key,
					 &p->given_up[i]));
	}
	if (u->count)
		memcpy(p->update.rows, u->rows, u->count * sizeof(*u->rows));
	p->update.edit = u->edit;
	p->update.rev = u->rev;
	p->update.order = u->order;
	p->update.count = u->count;
	TRY(buf_status(&w->ancestors));
	p->ancestors = arena_dup(w->arena, buf_str(&w->ancestors));
	if (!p->ancestors.ptr)
		return STATUS_LIMIT;
	p->plan = PLAN_SETTLE;
	return STATUS_OK;
}

/* The replaced leaf that the stubs of a replicated edit mean: the newest of them. */
static size_t
newest_replaced(const struct rev_update *u)
{
	size_t newest = SIZE_MAX;

	for (size_t i = 0; i < u->count; i++)
		if (u->rows[i].replaced &&
		    (newest == SIZE_MAX || u->rows[i].rev.pos > u->rows[newest].rev.pos))
			newest = i;
	return newest;
}

static enum status
refuse(struct pending *p, struct rev_result *result, enum status status)
{
	p->plan = PLAN_DONE;
	result->status = status;
	return STATUS_OK;
}

static enum status
settle_resolve(struct rev_writer *w, struct pending *p, struct rev_result *result)
{
	struct rev_update *u = &p->update;
	enum status status;

	if (!p->atts && u->edit->atts_count) {
		size_t from = newest_replaced(u);
		struct rev_row none = { 0 };
		const struct rev_row *row = from == SIZE_MAX ? &none : &u->rows[from];

		status = atts_resolve(w, u->edit, row->rev, row->deleted,
				      from == SIZE_MAX ? NULL : p->given_up[from], p, result);
		if (status == STATUS_ATT_MISSING)
			return refuse(p, result, status);
		TRY(status);
	}
	status = staged_wait(u->edit, p);
	if (status == STATUS_TIMEOUT)
		return refuse(p, result, status);
	TRY(status);
	for (size_t i = 0; i < u->count; i++) {
		struct rev_att_list list;

		if (!p->given_up[i])
			continue;
		TRY(rev_atts_wait(w->tx, w->db, u->edit->id, u->rows[i].rev, u->rows[i].deleted,
				  p->given_up[i], &w->key, w->arena, &list));
		TRY(rev_atts_count(w, list.atts, list.count, -1));
	}
	buf_clear(&w->ancestors);
	buf_append_str(&w->ancestors, p->ancestors);
	u->atts = p->atts;
	p->plan = PLAN_DONE;
	return rev_update_apply(w, u);
}

/* ---- Deciding: interactive edits ---- */

/* Names the revision that extends `parent`; the hash's bytes go to p->hash. */
static struct rev_id
rev_extend(const struct rev_edit *edit, struct rev_id parent, const struct pending *p)
{
	rev_hash_atts(edit->deleted, parent, edit->doc.term, p->atts, edit->atts_count, p->hash);
	return (struct rev_id){ parent.pos + 1, str_of(p->hash, REV_HASH_BYTES) };
}

/* Extends `rows[at]`, or starts a document if there are no rows. */
static enum status
interactive_apply(struct rev_writer *w, const struct rev_edit *edit, struct pending *p,
		  struct rev_row *rows, size_t count, size_t at, uint16_t order,
		  struct rev_result *result)
{
	struct rev_update u = {
		.edit = edit, .rev = result->rev, .order = order, .rows = rows, .count = count
	};
	struct rev_stem stem;

	rev_stem_init(&stem, &w->ancestors, w->db);
	if (count) {
		rows[at].replaced = true;
		rev_stem_add(&stem, rows[at].rev.hash);
		TRY(rev_stem_add_encoded(&stem, rows[at].ancestors, rows[at].rev.pos - 1));
	}
	return update_decide(w, p, &u);
}

static enum status
conflict(struct pending *p, struct rev_result *result)
{
	p->plan = PLAN_DONE;
	result->status = STATUS_DOC_CONFLICT;
	return STATUS_OK;
}

static enum status
create_resolve(struct rev_writer *w, const struct rev_edit *edit, struct pending *p, uint16_t order,
	       struct rev_result *result)
{
	struct rev_rows rows;
	struct rev_id parent;
	enum status status;

	TRY(last_rows_wait(w, edit->id, 1, p->first, &rows));
	/*
	 * A document whose branches are all deleted starts again from its winner, as in CouchDB:
	 * from nothing, it could become a revision that it has been before.
	 */
	if (rows.count && (!rows.rows[0].deleted || edit->deleted))
		return conflict(p, result);
	/* Nobody has named a revision that stubs could be taken from. */
	parent = rows.count ? rows.rows[0].rev : (struct rev_id){ 0 };
	status = atts_resolve(w, edit, parent, true, NULL, p, result);
	if (status == STATUS_ATT_MISSING)
		return refuse(p, result, status);
	TRY(status);
	result->rev = rev_extend(edit, parent, p);
	return interactive_apply(w, edit, p, rows.rows, rows.count, 0, order, result);
}

/*
 * Seed 3: the revision of a deleted leaf is always a conflict, whatever else the document has;
 * CouchDB 3 agrees where the document is deleted. So only live leaves are looked for,
 * and an edit that is refused reads no branch at all.
 */
static enum status
extend_resolve(struct rev_writer *w, const struct rev_edit *edit, struct pending *p, uint16_t order,
	       struct rev_result *result)
{
	struct rev_row parent;
	enum status status;
	bool found;

	TRY(parent_wait(w, p->first, edit->parent, &found, &parent));
	if (!found)
		return conflict(p, result);
	status = atts_resolve(w, edit, edit->parent, false, p->pointers, p, result);
	if (status == STATUS_ATT_MISSING)
		return refuse(p, result, status);
	TRY(status);
	result->rev = rev_extend(edit, edit->parent, p);
	if (!parent.winner) {
		p->plan = PLAN_SECOND;
		TRY(last_rows(w, edit->id, 1, &p->second));
		return row_get(w, edit->id, edit->deleted, result->rev, &p->twin);
	}
	return interactive_apply(w, edit, p, &parent, 1, 0, order, result);
}

/* The first wave of a deletion, whose revision has to be known. */
static enum status
delete_begin(struct rev_writer *w, const struct rev_edit *edit, struct pending *p,
	     struct rev_result *result)
{
	result->rev = rev_extend(edit, edit->parent, p);
	p->plan = PLAN_DELETE;
	TRY(last_rows(w, edit->id, 2, &p->first));
	return row_get(w, edit->id, true, result->rev, &p->twin);
}

/* A tombstone that keeps attachments: its hash depends on what they are. */
static enum status
stubs_resolve(struct rev_writer *w, const struct rev_edit *edit, struct pending *p,
	      struct rev_result *result)
{
	enum status status = atts_resolve(w, edit, edit->parent, false, p->pointers, p, result);

	/* Of a parent that is not there it cannot be told what is missing. */
	if (status == STATUS_ATT_MISSING) {
		struct kv_future *f;
		bool found;

		TRY(row_get(w, edit->id, false, edit->parent, &f));
		TRY(present(f, &found));
		return refuse(p, result, found ? status : STATUS_DOC_CONFLICT);
	}
	TRY(status);
	return delete_begin(w, edit, p, result);
}

static enum status
delete_resolve(struct rev_writer *w, const struct rev_edit *edit, struct pending *p, uint16_t order,
	       struct rev_result *result)
{
	struct rev_rows rows;
	bool twin;

	TRY(last_rows_wait(w, edit->id, 2, p->first, &rows));
	TRY(present(p->twin, &twin));
	if (rows.count == 0 || rows.rows[0].deleted || twin)
		return conflict(p, result);
	for (size_t i = 0; i < rows.count; i++) {
		if (rows.rows[i].deleted || !rev_id_eq(rows.rows[i].rev, edit->parent))
			continue;
		return interactive_apply(w, edit, p, rows.rows, rows.count, i, order, result);
	}
	if (rows.count < 2 || rows.rows[1].deleted)
		return conflict(p, result);
	/* A third live branch, or none: one more key, and the winner is at hand. */
	p->plan = PLAN_SECOND;
	p->second = p->first;
	p->first = NULL;
	return row_get(w, edit->id, false, edit->parent, &p->first);
}

/* An edit of a losing branch, with the winner read. */
static enum status
second_resolve(struct rev_writer *w, const struct rev_edit *edit, struct pending *p, uint16_t order,
	       struct rev_result *result)
{
	struct rev_row both[2];
	struct rev_rows last;
	bool found, twin;

	TRY(parent_wait(w, p->first, edit->parent, &found, &both[1]));
	TRY(last_rows_wait(w, edit->id, 1, p->second, &last));
	TRY(present(p->twin, &twin));
	if (!found || twin)
		return conflict(p, result);
	/* A losing branch without a winner, or one that is both. */
	if (last.count == 0 || both[1].winner)
		return STATUS_CORRUPT;
	both[0] = last.rows[0];
	return interactive_apply(w, edit, p, both, 2, 1, order, result);
}

/* ---- Deciding: replicated edits ---- */

/* Appends what other branches know of the ancestors of `oldest`. */
static enum status
history_continue(struct rev_writer *w, const struct rev_rows *rows, struct rev_id oldest,
		 struct rev_stem *stem)
{
	struct str longest = { 0 };

	for (size_t i = 0; i < rows->count; i++) {
		struct str rest;
		bool found;

		TRY(rev_row_find(&rows->rows[i], oldest, &w->scratch, &found, &rest));
		if (found && rest.len > longest.len)
			longest = rest;
	}
	return rev_stem_add_encoded(stem, longest, oldest.pos - 1);
}

/*
 * Joins the branch to those that are there. A leaf anywhere in its history is extended by it, even
 * several of them: a history can tie together branches that arrived without theirs.
 */
static enum status
replicate_resolve(struct rev_writer *w, const struct rev_edit *edit, struct pending *p,
		  uint16_t order, struct rev_result *result)
{
	struct rev_update u = { .edit = edit, .rev = result->rev, .order = order };
	struct rev_rows rows;
	struct rev_stem stem;

	p->plan = PLAN_DONE;
	TRY(last_rows_wait(w, edit->id, 0, p->first, &rows));
	for (size_t i = 0; i < rows.count; i++) {
		struct rev_row *row = &rows.rows[i];
		struct str rest;

		TRY(rev_row_find(row, result->rev, &w->scratch, &result->unchanged, &rest));
		if (result->unchanged)
			return STATUS_OK;
		row->replaced = row->rev.pos < edit->start &&
				edit->start - row->rev.pos < edit->history_count &&
				str_eq(row->rev.hash, edit->history[edit->start - row->rev.pos]);
	}
	rev_stem_init(&stem, &w->ancestors, w->db);
	for (size_t i = 1; i < edit->history_count; i++)
		rev_stem_add(&stem, edit->history[i]);
	TRY(history_continue(w, &rows,
			     (struct rev_id){ edit->start - (edit->history_count - 1),
					      edit->history[edit->history_count - 1] },
			     &stem));
	u.rows = rows.rows;
	u.count = rows.count;
	return update_decide(w, p, &u);
}

/* ---- The batch ---- */

static bool
hash_fits(struct str hash)
{
	return hash.len <= REV_HASH_LIMIT_BYTES;
}

/* What is wrong with an edit before anything is read. */
static enum status
edit_check(const struct rev_db *db, const struct rev_edit *edit)
{
	size_t id_bytes = rev_doc_prefix_bytes(db, edit->id) - REV_KEY_HASH_BYTES;
	size_t hash_bytes = REV_KEY_HASH_BYTES, parent_bytes = 0;

	if (edit->id.len == 0)
		return STATUS_INVALID;
	if (edit->id.len > REV_DOC_ID_BYTES)
		return STATUS_KEY_TOO_LARGE;
	if (edit->kind == REV_EDIT_REPLICATED) {
		if (edit->history_count == 0 || edit->start < edit->history_count ||
		    edit->start >= INT64_MAX)
			return STATUS_INVALID;
		for (size_t i = 0; i < edit->history_count; i++)
			if (!hash_fits(edit->history[i]))
				return STATUS_INVALID;
		hash_bytes = rev_encoded_bytes(edit->history[0]);
	} else if (edit->parent.pos) {
		if (!hash_fits(edit->parent.hash) || edit->parent.pos >= INT64_MAX)
			return STATUS_INVALID;
		parent_bytes = rev_encoded_bytes(edit->parent.hash);
	} else if (edit->parent.hash.len) {
		return STATUS_DOC_CONFLICT; /* "0-…" is no leaf of any document */
	}
	/* Less than the limit: the end of a range is a byte longer. */
	if (id_bytes + (hash_bytes > parent_bytes ? hash_bytes : parent_bytes) >=
	    KV_LIMIT_KEY_BYTES)
		return STATUS_KEY_TOO_LARGE;
	/* Packed or not: the document's scheme may change. */
	if (edit->doc.path_bytes > KV_LIMIT_KEY_BYTES - (id_bytes + hash_bytes))
		return STATUS_PATH_TOO_LONG;
	return rev_atts_check(edit, id_bytes + hash_bytes);
}

/* Issues the first wave's reads of one edit. */
static enum status
edit_begin(struct rev_writer *w, const struct rev_edit *edit, uint8_t *hash, struct pending *p,
	   struct rev_result *result)
{
	*p = (struct pending){ .plan = PLAN_DONE, .hash = hash };
	*result = (struct rev_result){ .status = edit_check(w->db, edit) };
	if (result->status != STATUS_OK)
		return STATUS_OK;
	TRY(atts_begin(w, edit, p));
	if (edit->kind == REV_EDIT_REPLICATED) {
		result->rev = (struct rev_id){ edit->start, edit->history[0] };
		p->plan = PLAN_REPLICATE;
		return last_rows(w, edit->id, 0, &p->first);
	}
	if (edit->parent.pos == 0) {
		p->plan = PLAN_CREATE;
		return last_rows(w, edit->id, 1, &p->first);
	}
	if (!edit->deleted) {
		p->plan = PLAN_EXTEND;
		return row_get(w, edit->id, false, edit->parent, &p->first);
	}
	if (has_stubs(edit)) {
		p->plan = PLAN_STUBS;
		return STATUS_OK;
	}
	TRY(atts_resolve(w, edit, edit->parent, false, NULL, p, result));
	return delete_begin(w, edit, p, result);
}

static enum status
edit_resolve(struct rev_writer *w, const struct rev_edit *edit, struct pending *p, uint16_t order,
	     struct rev_result *result)
{
	switch (p->plan) {
	case PLAN_CREATE:
		return create_resolve(w, edit, p, order, result);
	case PLAN_EXTEND:
		return extend_resolve(w, edit, p, order, result);
	case PLAN_DELETE:
		return delete_resolve(w, edit, p, order, result);
	case PLAN_REPLICATE:
		return replicate_resolve(w, edit, p, order, result);
	case PLAN_SECOND:
		return second_resolve(w, edit, p, order, result);
	case PLAN_STUBS:
		return stubs_resolve(w, edit, p, result);
	case PLAN_SETTLE:
		return settle_resolve(w, p, result);
	case PLAN_DONE:
		break;
	}
	return STATUS_OK;
}

static void
pending_release(struct pending *p)
{
	kv_future_free(p->first);
	kv_future_free(p->second);
	kv_future_free(p->twin);
	kv_future_free(p->pointers);
	*p = (struct pending){ .plan = PLAN_DONE };
}

/* One set of ids, open addressing, at most half full. */
static enum status
ids_distinct(const struct rev_edit *edits, size_t count, struct arena *arena, struct err *err)
{
	size_t slots = 4;
	uint32_t *table;

	if (count < 2)
		return STATUS_OK;
	while (slots < 2 * count)
		slots *= 2;
	table = arena_zalloc(arena, slots * sizeof(*table));
	if (!table)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		size_t at = str_hash(edits[i].id) & (slots - 1);

		for (; table[at]; at = (at + 1) & (slots - 1))
			if (str_eq(edits[table[at] - 1].id, edits[i].id))
				return err_set(err, STATUS_INVALID,
					       "The same document twice in a transaction.");
		table[at] = (uint32_t)(i + 1);
	}
	return STATUS_OK;
}

static enum status
batch_run(struct rev_writer *w, const struct rev_edit *edits, size_t count, size_t first,
	  uint8_t *hashes, struct rev_result *results)
{
	struct pending *pending = arena_alloc(w->arena, (count ? count : 1) * sizeof(*pending));
	size_t left = count;

	if (!pending)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		TRY(edit_begin(w, &edits[i], hashes + i * REV_HASH_BYTES, &pending[i],
			       &results[i]));
	/* A pass a wave: what one pass leaves undone is on its way when the next begins. */
	while (left) {
		left = 0;
		for (size_t i = 0; i < count; i++) {
			if (pending[i].plan == PLAN_DONE)
				continue;
			TRY(edit_resolve(w, &edits[i], &pending[i], (uint16_t)(first + i),
					 &results[i]));
			if (pending[i].plan == PLAN_DONE)
				pending_release(&pending[i]);
			else
				left++;
		}
	}
	return rev_writer_finish(w);
}

enum status
rev_writer_finish(struct rev_writer *w)
{
	TRY(rev_atts_settle(w));
	TRY(rev_stat_add(w->tx, w->db, REV_STAT_DOCS, w->docs_delta, &w->key));
	TRY(rev_stat_add(w->tx, w->db, REV_STAT_DELETED, w->deleted_delta, &w->key));
	TRY(rev_tally_finish(w));
	return w->changed ? rev_stat_changed(w->tx, w->db, w->last_order, &w->key) : STATUS_OK;
}

enum status
rev_write(struct kv_tx *tx, const struct rev_db *db, const struct rev_edit *edits, size_t count,
	  size_t first, struct arena *arena, struct rev_result *ret_results, struct err *err)
{
	struct rev_writer w = {
		.tx = tx,
		.db = db,
		.arena = arena,
		.key = REV_KEY_INIT,
		.value = BUF_INIT(KV_LIMIT_VALUE_BYTES),
		.ancestors = BUF_INIT(KV_LIMIT_VALUE_BYTES),
		.scratch = BUF_INIT(REV_VALUE_OTHER_BYTES + 2 * REV_HASH_LIMIT_BYTES),
	};
	struct arena_mark mark;
	enum status status;
	uint8_t *hashes;

	TRY(rev_db_check_writable(db, err));
	if (first > REV_BATCH_EDITS || count > REV_BATCH_EDITS - first)
		return err_set(err, STATUS_TX_TOO_LARGE, "More than %d edits in a transaction.",
			       (int)REV_BATCH_EDITS);
	hashes = (uint8_t *)arena_bytes(arena, count * REV_HASH_BYTES);
	if (!hashes)
		return STATUS_LIMIT;
	w.guide = rev_guide_get(db);
	mark = arena_mark(arena);
	status = ids_distinct(edits, count, arena, err);
	if (status == STATUS_OK)
		status = batch_run(&w, edits, count, first, hashes, ret_results);
	arena_reset(arena, mark);
	rev_guide_unref(w.guide);
	buf_release(&w.key);
	buf_release(&w.value);
	buf_release(&w.ancestors);
	buf_release(&w.scratch);
	return status;
}

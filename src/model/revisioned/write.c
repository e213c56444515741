/*
 * Edits of documents. A first wave of reads fetches what each edit needs. Edits of losing branches
 * read the winner in a second wave. Then everything is written, and no key is read for that.
 *
 * Reading the right key is what makes concurrent edits of one document conflict: every edit writes
 * the winner's key, because it alone carries the Sequence, so an edit that has read the winner (or
 * the end of the document's range) cannot commit behind another one.
 */
#include <assert.h>

#include "base/hash.h"
#include "base/metric.h"
#include "loop/step.h"
#include "model/revisioned/body.h"
#include "model/revisioned/neighbours.h"
#include "model/revisioned/partition_int.h"

enum {
	EDIT_STEPS = 100, /* of issuing an edit's reads, and of a wave that decides and writes it */
};

/* What an edit is waiting for. */
enum plan {
	PLAN_DONE,      /* nothing more: its result is there */
	PLAN_CREATE,    /* no parent named: `first` is the last branch, unless `is_new` */
	PLAN_EXTEND,    /* `first` is the parent's key */
	PLAN_DELETE,    /* `first` is the last two branches, `twin` the new revision's key */
	PLAN_REPLICATE, /* `first` is every branch, unless `is_new` */
	PLAN_SECOND,    /* `first` is the parent's key, `second` the last branch, and `twin` */
	PLAN_STUBS,     /* `pointers` name the revision: then PLAN_DELETE begins */
	PLAN_SETTLE,    /* decided: the attachments of what is replaced are still to be read */
	PLAN_MERGE,     /* this and later edits of the document: `merge` */
};

struct pending_edit {
	enum plan plan;
	bool is_new;   /* its neighbours have told that the document has no branch */
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
	struct rev_att *atts;       /* of the new head, once they are known */
	struct str ancestors;       /* PLAN_SETTLE: the new head's, encoded, in the arena */
	struct rev_update update;   /* PLAN_SETTLE: what has been decided */
	struct kv_future *
		*given_up;       /* PLAN_SETTLE: the attachments of each of update.rows, or NULL */
	struct rev_merge *merge; /* in the arena */
	struct rev_body_ask guess; /* for indexes: the body of what is probably the winner */

	/* How large the document's partition is, where that matters. The transaction owns it. */
	struct kv_future *partition_bytes;
};

/* ---- Reading branches ---- */

/* Asks for the branch record of one revision. */
static enum status
write_ask_branch(struct rev_writer *w, struct str id, bool deleted, struct rev_id rev,
		 struct kv_future **ret)
{
	return rev_branch_ask(w->tx, w->db, id, rev, deleted, &w->key, ret);
}

static enum status
write_ask_last_branches(struct rev_writer *w, struct str id, size_t limit, struct kv_future **ret)
{
	return rev_branches_read(w->tx, w->db, id, limit, KV_READ, &w->key, ret);
}

static enum status
write_wait_for_last_branches(struct rev_writer *w, struct str id, size_t limit, struct kv_future *f,
			     struct rev_branch_records *ret)
{
	return rev_branches_wait(w->tx, w->db, id, limit, KV_READ, f, &w->key, w->arena, ret);
}

/* Of an edit whose document may be new. */
static enum status
edit_ask_branches(struct rev_writer *w, const struct rev_edit *edit, struct pending_edit *p)
{
	size_t limit = p->plan == PLAN_CREATE ? 1 : 0;

	assert(p->plan == PLAN_CREATE || p->plan == PLAN_REPLICATE);
	return write_ask_last_branches(w, edit->id, limit, &p->first);
}

static enum status
edit_wait_for_branches(struct rev_writer *w, const struct rev_edit *edit,
		       const struct pending_edit *p, size_t limit, struct rev_branch_records *ret)
{
	*ret = (struct rev_branch_records){ 0 };
	if (p->is_new)
		return STATUS_OK;
	return write_wait_for_last_branches(w, edit->id, limit, p->first, ret);
}

static enum status
write_wait_key_exists(struct kv_future *f, bool *ret)
{
	struct str value;

	TRY(kv_future_wait(f));
	*ret = kv_future_value(f, &value);
	return STATUS_OK;
}

/* The branch behind write_ask_branch(), a live head. `*ret_found` is false if there is none. */
static enum status
write_wait_for_parent(struct rev_writer *w, struct kv_future *f, struct rev_id parent,
		      bool *ret_found, struct rev_branch_record *ret)
{
	enum status status = rev_branch_wait(w->tx, parent, false, f, w->arena, ret);

	*ret_found = status == STATUS_OK;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- Deciding: attachments ---- */

static bool
edit_has_stubs(const struct rev_edit *edit)
{
	for (size_t i = 0; i < edit->atts_count; i++)
		if (edit->atts[i].source == REV_ATT_STUB)
			return true;
	return false;
}

static bool
edit_has_staged_text(const struct rev_edit *edit)
{
	return edit->text && edit->text->source == REV_TEXT_STAGED;
}

/* Asks for the record of an upload. */
static enum status
write_ask_upload_record(struct rev_writer *w, const uint8_t id[REV_ATT_ID_BYTES],
			struct kv_future **ret)
{
	rev_key_upload(&w->key, w->db->number, id);
	TRY(catalog_key_status(&w->key));
	*ret = kv_get(w->tx, buf_str(&w->key), KV_READ);
	return STATUS_OK;
}

/*
 * Asks, in the first wave, for the parent's attachments and for the records of the uploads that the
 * edit takes over. The record of its text's upload comes last in p->staged.
 */
static enum status
edit_ask_atts(struct rev_writer *w, const struct rev_edit *edit, struct pending_edit *p)
{
	if (edit->atts_count == 0 && !edit_has_staged_text(edit))
		return STATUS_OK;
	if (edit->atts_count && edit->kind == REV_EDIT_INTERACTIVE && edit->parent.pos)
		TRY(rev_atts_get(w->tx, w->db, edit->id, edit->parent, false, &w->key,
				 &p->pointers));
	p->staged = arena_zalloc(w->arena, (edit->atts_count + 1) * sizeof(struct kv_future *));
	if (!p->staged)
		return STATUS_LIMIT;
	for (size_t i = 0; i < edit->atts_count; i++) {
		if (edit->atts[i].source == REV_ATT_STAGED)
			TRY(write_ask_upload_record(w, edit->atts[i].att.id, &p->staged[i]));
	}
	if (edit_has_staged_text(edit))
		TRY(write_ask_upload_record(w, edit->text->id, &p->staged[edit->atts_count]));
	return STATUS_OK;
}

/*
 * Puts all attachments of the new head into p->atts. The head extends `parent`, whose attachments
 * `f` (or NULL) answers. STATUS_ATT_MISSING for a stub that the parent does not have.
 */
static enum status
edit_resolve_atts(struct rev_writer *w, const struct rev_edit *edit, struct rev_id parent,
		  bool deleted, struct kv_future *f, struct pending_edit *p,
		  struct rev_result *result)
{
	struct rev_att_list from = { 0 };

	if (edit->atts_count == 0)
		return STATUS_OK;
	if (f && edit_has_stubs(edit))
		TRY(rev_atts_wait(w->tx, w->db, edit->id, parent, deleted, f, &w->key, w->arena,
				  &from));
	return rev_atts_resolve(edit, &from,
				edit->kind == REV_EDIT_INTERACTIVE ? parent.pos + 1 : 0, w->arena,
				&p->atts, &result->att);
}

/* Returns STATUS_TIMEOUT if the sweep has removed an upload before this edit took it over. */
static enum status
edit_wait_for_uploads(const struct rev_edit *edit, const struct pending_edit *p)
{
	struct str value;

	for (size_t i = 0; p->staged && i <= edit->atts_count; i++) {
		if (!p->staged[i])
			continue;
		TRY(kv_future_wait(p->staged[i]));
		if (!kv_future_value(p->staged[i], &value))
			return STATUS_TIMEOUT;
	}
	return STATUS_OK;
}

/* The edit is refused, and the batch goes on without it. */
static enum status
edit_refuse(struct pending_edit *p, struct rev_result *result, enum status status)
{
	p->plan = PLAN_DONE;
	result->status = status;
	return STATUS_OK;
}

/*
 * Asks, in the first wave, how large the document's partition is. Edits of one partition mostly
 * follow each other, and share the answer.
 */
static enum status
edit_ask_partition(struct rev_writer *w, const struct rev_edit *edit, struct pending_edit *p)
{
	struct str partition;

	if (!edit->max_partition_bytes || edit->kind != REV_EDIT_INTERACTIVE ||
	    !rev_db_is_partitioned(w->db) || rev_id_has_no_partition(edit->id) ||
	    !rev_partition_of(edit->id, &partition))
		return STATUS_OK;
	if (!w->asked_partition_bytes || !str_eq(w->asked_partition, partition)) {
		TRY(rev_partition_ask(w->tx, w->db, partition, REV_PARTITION_EXTERNAL, &w->key,
				      &w->asked_partition_bytes));
		w->asked_partition = partition;
	}
	p->partition_bytes = w->asked_partition_bytes;
	return STATUS_OK;
}

/* Whether the edit makes its document larger although its partition was full before. */
static enum status
update_overflows_partition(struct rev_writer *w, const struct pending_edit *p,
			   const struct rev_update *u, bool *ret)
{
	struct rev_sizes after;
	uint64_t bytes, before = 0;

	*ret = false;
	if (!p->partition_bytes)
		return STATUS_OK;
	TRY(catalog_counter_wait(p->partition_bytes, &bytes));
	if (bytes < u->edit->max_partition_bytes)
		return STATUS_OK;
	for (size_t i = 0; i < u->count; i++)
		if (u->rows[i].replaced)
			before += u->rows[i].sizes.external;
	TRY(rev_update_sizes(w, u->edit, p->atts, &after));
	*ret = after.external > before;
	return STATUS_OK;
}

/*
 * Called when everything is known but the attachments of the heads that are replaced. If none of
 * them has attachments and the new head has none either, and no index needs a body that has not
 * been asked for, the edit is written at once. Otherwise the plan becomes PLAN_SETTLE, and a last
 * wave reads the attachments that are given up, and those bodies.
 */
static enum status
update_decide(struct rev_writer *w, struct pending_edit *p, const struct rev_update *u,
	      struct rev_result *result)
{
	struct rev_index_change *index = NULL;
	bool any = false, overflows;

	TRY(update_overflows_partition(w, p, u, &overflows));
	if (overflows)
		return edit_refuse(p, result, STATUS_PARTITION_FULL);
	for (size_t i = 0; i < u->count; i++)
		any = any || (u->rows[i].replaced && u->rows[i].has_atts);
	p->plan = PLAN_DONE;
	if (rev_index_wants(w, u->edit->id))
		TRY(rev_index_begin(w, u, &p->guess, &index, &any));
	if (!any && u->edit->atts_count == 0 && !edit_has_staged_text(u->edit)) {
		if (index)
			TRY(rev_index_apply(w, index));
		return rev_update_apply(w, u);
	}
	p->given_up = arena_zalloc(w->arena, (u->count + 1) * sizeof(struct kv_future *));
	p->update.rows = arena_alloc(w->arena, (u->count + 1) * sizeof(*u->rows));
	if (!p->given_up || !p->update.rows)
		return STATUS_LIMIT;
	for (size_t i = 0; i < u->count; i++) {
		const struct rev_branch_record *row = &u->rows[i];

		if (row->replaced && row->has_atts)
			TRY(rev_atts_get(w->tx, w->db, u->edit->id, row->rev, row->deleted, &w->key,
					 &p->given_up[i]));
	}
	/* `u` and w->ancestors are reused for the next edit, so what has been decided is copied. */
	if (u->count)
		memcpy(p->update.rows, u->rows, u->count * sizeof(*u->rows));
	p->update.edit = u->edit;
	p->update.rev = u->rev;
	p->update.order = u->order;
	p->update.count = u->count;
	p->update.index = index;
	TRY(buf_status(&w->ancestors));
	p->ancestors = buf_dup(&w->ancestors, w->arena);
	if (!p->ancestors.ptr)
		return STATUS_LIMIT;
	p->plan = PLAN_SETTLE;
	return STATUS_OK;
}

/* The replaced head that the stubs of a replicated edit mean: the newest of them. */
static size_t
update_newest_replaced(const struct rev_update *u)
{
	size_t newest = SIZE_MAX;

	for (size_t i = 0; i < u->count; i++)
		if (u->rows[i].replaced &&
		    (newest == SIZE_MAX || u->rows[i].rev.pos > u->rows[newest].rev.pos))
			newest = i;
	return newest;
}

/* PLAN_SETTLE: the attachments of the replaced heads have come, and the edit is written. */
static enum status
edit_resolve_given_up(struct rev_writer *w, struct pending_edit *p, struct rev_result *result)
{
	struct rev_update *u = &p->update;
	enum status status;

	assert(p->plan == PLAN_SETTLE && p->given_up);
	if (!p->atts && u->edit->atts_count) {
		size_t from = update_newest_replaced(u);
		struct rev_branch_record none = { 0 };
		const struct rev_branch_record *row = from == SIZE_MAX ? &none : &u->rows[from];

		status = edit_resolve_atts(w, u->edit, row->rev, row->deleted,
					   from == SIZE_MAX ? NULL : p->given_up[from], p, result);
		if (status == STATUS_ATT_MISSING)
			return edit_refuse(p, result, status);
		TRY(status);
	}
	status = edit_wait_for_uploads(u->edit, p);
	if (status == STATUS_TIMEOUT)
		return edit_refuse(p, result, status);
	TRY(status);
	/* It may forbid the edit, of which nothing must have been counted then. */
	if (u->index)
		TRY(rev_index_apply(w, u->index));
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
edit_name_revision(const struct rev_edit *edit, struct rev_id parent, const struct pending_edit *p)
{
	rev_hash_atts(edit->deleted, parent, edit->doc.term, p->atts, edit->atts_count, p->hash);
	return (struct rev_id){ parent.pos + 1, str_of(p->hash, REV_HASH_BYTES) };
}

/* The new head extends the head in `rows[at]`, or starts a document if there are no rows. */
static enum status
edit_extend(struct rev_writer *w, const struct rev_edit *edit, struct pending_edit *p,
	    struct rev_branch_record *rows, size_t count, size_t at, uint16_t order,
	    struct rev_result *result)
{
	struct rev_update u = {
		.edit = edit, .rev = result->rev, .order = order, .rows = rows, .count = count
	};
	struct rev_ancestors list;

	assert(count == 0 || at < count);
	rev_ancestors_init(&list, &w->ancestors, w->db);
	if (count) {
		rows[at].replaced = true;
		rev_ancestors_add(&list, rows[at].rev.hash);
		TRY(rev_ancestors_add_encoded(&list, rows[at].ancestors, rows[at].rev.pos - 1));
	}
	return update_decide(w, p, &u, result);
}

static enum status
edit_refuse_conflict(struct pending_edit *p, struct rev_result *result)
{
	p->plan = PLAN_DONE;
	result->status = STATUS_DOC_CONFLICT;
	return STATUS_OK;
}

static enum status
edit_resolve_create(struct rev_writer *w, const struct rev_edit *edit, struct pending_edit *p,
		    uint16_t order, struct rev_result *result)
{
	struct rev_branch_records rows;
	struct rev_id parent;
	enum status status;

	TRY(edit_wait_for_branches(w, edit, p, 1, &rows));
	/*
	 * A document whose branches are all deleted starts again from its winner, as in CouchDB:
	 * from nothing, it could become a revision that it has been before.
	 */
	if (rows.count && (!rows.rows[0].deleted || edit->deleted))
		return edit_refuse_conflict(p, result);
	/* The edit names no parent, so there is no revision that stubs could refer to. */
	parent = rows.count ? rows.rows[0].rev : (struct rev_id){ 0 };
	status = edit_resolve_atts(w, edit, parent, true, NULL, p, result);
	if (status == STATUS_ATT_MISSING)
		return edit_refuse(p, result, status);
	TRY(status);
	result->rev = edit_name_revision(edit, parent, p);
	return edit_extend(w, edit, p, rows.rows, rows.count, 0, order, result);
}

/*
 * The revision of a deleted head is always a conflict, whatever else the document has;
 * CouchDB 3 agrees where the document is deleted. So only live heads are looked for,
 * and an edit that is refused reads no branch at all.
 */
static enum status
edit_resolve_extend(struct rev_writer *w, const struct rev_edit *edit, struct pending_edit *p,
		    uint16_t order, struct rev_result *result)
{
	struct rev_branch_record parent;
	enum status status;
	bool found;

	TRY(write_wait_for_parent(w, p->first, edit->parent, &found, &parent));
	if (!found)
		return edit_refuse_conflict(p, result);
	status = edit_resolve_atts(w, edit, edit->parent, false, p->pointers, p, result);
	if (status == STATUS_ATT_MISSING)
		return edit_refuse(p, result, status);
	TRY(status);
	result->rev = edit_name_revision(edit, edit->parent, p);
	if (!parent.winner) {
		p->plan = PLAN_SECOND;
		TRY(write_ask_last_branches(w, edit->id, 1, &p->second));
		return write_ask_branch(w, edit->id, edit->deleted, result->rev, &p->twin);
	}
	return edit_extend(w, edit, p, &parent, 1, 0, order, result);
}

/* Issues the reads of a deletion. The new revision is known by then, since `twin` asks for it. */
static enum status
edit_begin_delete(struct rev_writer *w, const struct rev_edit *edit, struct pending_edit *p,
		  struct rev_result *result)
{
	result->rev = edit_name_revision(edit, edit->parent, p);
	p->plan = PLAN_DELETE;
	TRY(write_ask_last_branches(w, edit->id, 2, &p->first));
	return write_ask_branch(w, edit->id, true, result->rev, &p->twin);
}

/* A tombstone that keeps attachments: its hash depends on what they are. */
static enum status
edit_resolve_delete_stubs(struct rev_writer *w, const struct rev_edit *edit, struct pending_edit *p,
			  struct rev_result *result)
{
	enum status status = edit_resolve_atts(w, edit, edit->parent, false, p->pointers, p,
					       result);

	/*
	 * If the parent itself does not exist, the edit is a conflict, and no attachment is missing
	 * from anything.
	 */
	if (status == STATUS_ATT_MISSING) {
		struct kv_future *f;
		bool found;

		TRY(write_ask_branch(w, edit->id, false, edit->parent, &f));
		TRY(write_wait_key_exists(f, &found));
		return edit_refuse(p, result, found ? status : STATUS_DOC_CONFLICT);
	}
	TRY(status);
	return edit_begin_delete(w, edit, p, result);
}

static enum status
edit_resolve_delete(struct rev_writer *w, const struct rev_edit *edit, struct pending_edit *p,
		    uint16_t order, struct rev_result *result)
{
	struct rev_branch_records rows;
	bool twin;

	TRY(write_wait_for_last_branches(w, edit->id, 2, p->first, &rows));
	TRY(write_wait_key_exists(p->twin, &twin));
	if (rows.count == 0 || rows.rows[0].deleted || twin)
		return edit_refuse_conflict(p, result);
	for (size_t i = 0; i < rows.count; i++) {
		if (rows.rows[i].deleted || !rev_id_eq(rows.rows[i].rev, edit->parent))
			continue;
		return edit_extend(w, edit, p, rows.rows, rows.count, i, order, result);
	}
	if (rows.count < 2 || rows.rows[1].deleted)
		return edit_refuse_conflict(p, result);
	/*
	 * The parent may be a third live branch or further down. One more key tells; the winner has
	 * been read already.
	 */
	p->plan = PLAN_SECOND;
	p->second = p->first;
	p->first = NULL;
	return write_ask_branch(w, edit->id, false, edit->parent, &p->first);
}

/* An edit of a losing branch, with the winner read. */
static enum status
edit_resolve_losing_branch(struct rev_writer *w, const struct rev_edit *edit,
			   struct pending_edit *p, uint16_t order, struct rev_result *result)
{
	struct rev_branch_record both[2];
	struct rev_branch_records last;
	bool found, twin;

	TRY(write_wait_for_parent(w, p->first, edit->parent, &found, &both[1]));
	TRY(write_wait_for_last_branches(w, edit->id, 1, p->second, &last));
	TRY(write_wait_key_exists(p->twin, &twin));
	if (!found || twin)
		return edit_refuse_conflict(p, result);
	/* The parent is not the winner, so the document must have another branch, which is. */
	if (last.count == 0 || both[1].winner)
		return STATUS_CORRUPT;
	both[0] = last.rows[0];
	return edit_extend(w, edit, p, both, 2, 1, order, result);
}

/* ---- Deciding: replicated edits ---- */

/* Appends the longest list of ancestors of `oldest` that any branch of the document has. */
static enum status
edit_continue_history(struct rev_writer *w, const struct rev_branch_records *rows,
		      struct rev_id oldest, struct rev_ancestors *list)
{
	struct str longest = { 0 };

	for (size_t i = 0; i < rows->count; i++) {
		struct str rest;
		bool found;

		TRY(rev_branch_record_find(&rows->rows[i], oldest, &w->scratch, &found, &rest));
		if (found && rest.len > longest.len)
			longest = rest;
	}
	return rev_ancestors_add_encoded(list, longest, oldest.pos - 1);
}

/*
 * Adds the replicated branch to the document. It replaces every head that its history contains.
 * There can be several: branches may have arrived without the history that connects them.
 */
static enum status
edit_resolve_replicated(struct rev_writer *w, const struct rev_edit *edit, struct pending_edit *p,
			uint16_t order, struct rev_result *result)
{
	struct rev_update u = { .edit = edit, .rev = result->rev, .order = order };
	struct rev_branch_records rows;
	struct rev_ancestors list;

	p->plan = PLAN_DONE;
	TRY(edit_wait_for_branches(w, edit, p, 0, &rows));
	for (size_t i = 0; i < rows.count; i++) {
		struct rev_branch_record *row = &rows.rows[i];
		struct str rest;

		TRY(rev_branch_record_find(row, result->rev, &w->scratch, &result->unchanged,
					   &rest));
		if (result->unchanged)
			return STATUS_OK;
		row->replaced = row->rev.pos < edit->start &&
				edit->start - row->rev.pos < edit->history_count &&
				str_eq(row->rev.hash, edit->history[edit->start - row->rev.pos]);
	}
	rev_ancestors_init(&list, &w->ancestors, w->db);
	for (size_t i = 1; i < edit->history_count; i++)
		rev_ancestors_add(&list, edit->history[i]);
	TRY(edit_continue_history(w, &rows,
				  (struct rev_id){ edit->start - (edit->history_count - 1),
						   edit->history[edit->history_count - 1] },
				  &list));
	u.rows = rows.rows;
	u.count = rows.count;
	return update_decide(w, p, &u, result);
}

/* ---- The batch ---- */

static bool
edit_hash_fits(struct str hash)
{
	return hash.len <= REV_HASH_LIMIT_BYTES;
}

/* Refuses edits that are wrong whatever the store has, before anything is read. */
static enum status
edit_check(const struct rev_writer *w, const struct rev_edit *edit)
{
	const struct catalog_db *db = w->db;
	size_t limit = kv_key_limit(w->tx);
	size_t id_bytes = rev_doc_prefix_bytes(db, edit->id) - REV_KEY_HASH_BYTES;
	size_t hash_bytes = REV_KEY_HASH_BYTES, parent_bytes = 0;

	if (edit->id.len == 0)
		return STATUS_INVALID;
	if (edit->id.len > REV_DOC_ID_BYTES)
		return STATUS_KEY_TOO_LARGE;
	if (rev_db_is_partitioned(db) && rev_partition_id_fault(edit->id))
		return STATUS_INVALID;
	if (edit->kind == REV_EDIT_REPLICATED) {
		if (edit->history_count == 0 || edit->start < edit->history_count ||
		    edit->start >= INT64_MAX)
			return STATUS_INVALID;
		for (size_t i = 0; i < edit->history_count; i++)
			if (!edit_hash_fits(edit->history[i]))
				return STATUS_INVALID;
		hash_bytes = rev_encoded_bytes(edit->history[0]);
	} else if (edit->parent.pos) {
		if (!edit_hash_fits(edit->parent.hash) || edit->parent.pos >= INT64_MAX)
			return STATUS_INVALID;
		parent_bytes = rev_encoded_bytes(edit->parent.hash);
	} else if (edit->parent.hash.len) {
		return STATUS_DOC_CONFLICT; /* "0-…" is no head of any document */
	}
	/* The end of a range is one byte longer than the key, so the limit itself is too long. */
	if (id_bytes + (hash_bytes > parent_bytes ? hash_bytes : parent_bytes) >= limit)
		return STATUS_KEY_TOO_LARGE;
	/* Packed documents have to keep to this, too: the scheme of the database may change. */
	if (edit->doc.path_bytes > limit - (id_bytes + hash_bytes))
		return STATUS_PATH_TOO_LONG;
	return rev_atts_check(edit, id_bytes + hash_bytes, limit);
}

/* For indexes: the body of the revision that the edit extends, which most often is the winner's. */
static enum status
edit_guess_winner(struct rev_writer *w, const struct rev_edit *edit, struct pending_edit *p)
{
	if (edit->kind == REV_EDIT_INTERACTIVE && edit->parent.pos)
		return rev_body_ask(w, edit->id, edit->parent, &p->guess);
	if (edit->kind == REV_EDIT_REPLICATED && edit->history_count > 1)
		return rev_body_ask(w, edit->id,
				    (struct rev_id){ edit->start - 1, edit->history[1] },
				    &p->guess);
	return STATUS_OK;
}

/*
 * Issues the first wave's reads of one edit. If the document may be new, its branches are not among
 * them: edits_ask_branches() asks for those of the whole batch.
 */
static enum status
edit_begin(struct rev_writer *w, const struct rev_edit *edit, uint8_t *hash, struct pending_edit *p,
	   struct rev_result *result)
{
	*p = (struct pending_edit){ .plan = PLAN_DONE, .hash = hash };
	*result = (struct rev_result){ .status = edit_check(w, edit) };
	if (result->status != STATUS_OK)
		return STATUS_OK;
	TRY(edit_ask_atts(w, edit, p));
	if (rev_index_wants(w, edit->id))
		TRY(edit_guess_winner(w, edit, p));
	TRY(edit_ask_partition(w, edit, p));
	if (edit->kind == REV_EDIT_REPLICATED) {
		result->rev = (struct rev_id){ edit->start, edit->history[0] };
		p->plan = PLAN_REPLICATE;
		return STATUS_OK;
	}
	if (edit->parent.pos == 0) {
		p->plan = PLAN_CREATE;
		return STATUS_OK;
	}
	if (!edit->deleted) {
		p->plan = PLAN_EXTEND;
		return write_ask_branch(w, edit->id, false, edit->parent, &p->first);
	}
	if (edit_has_stubs(edit)) {
		p->plan = PLAN_STUBS;
		return STATUS_OK;
	}
	TRY(edit_resolve_atts(w, edit, edit->parent, false, NULL, p, result));
	return edit_begin_delete(w, edit, p, result);
}

static enum status
edit_resolve(struct rev_writer *w, const struct rev_edit *edit, struct pending_edit *p,
	     uint16_t order, struct rev_result *result)
{
	bool done;

	switch (p->plan) {
	case PLAN_CREATE:
		return edit_resolve_create(w, edit, p, order, result);
	case PLAN_EXTEND:
		return edit_resolve_extend(w, edit, p, order, result);
	case PLAN_DELETE:
		return edit_resolve_delete(w, edit, p, order, result);
	case PLAN_REPLICATE:
		return edit_resolve_replicated(w, edit, p, order, result);
	case PLAN_SECOND:
		return edit_resolve_losing_branch(w, edit, p, order, result);
	case PLAN_STUBS:
		return edit_resolve_delete_stubs(w, edit, p, result);
	case PLAN_SETTLE:
		return edit_resolve_given_up(w, p, result);
	case PLAN_MERGE:
		TRY(rev_merge_resolve(w, p->merge, &done));
		if (done)
			p->plan = PLAN_DONE;
		return STATUS_OK;
	case PLAN_DONE:
		break;
	}
	return STATUS_OK;
}

static void
pending_release(struct pending_edit *p)
{
	kv_future_free(p->first);
	kv_future_free(p->second);
	kv_future_free(p->twin);
	kv_future_free(p->pointers);
	*p = (struct pending_edit){ .plan = PLAN_DONE };
}

/* The edits of one document behind each other; see edits_chain(). */
struct edit_chain {
	uint32_t *next;  /* by edit: the next one of its document plus one, or 0 */
	bool *is_behind; /* by edit: another one of its document comes before it */
};

/*
 * Finds ids that come more than once, by a hash table with open addressing that is at most half
 * full. It has the last edit of each id so far. STATUS_INVALID if such edits cannot merge.
 */
static enum status
edits_chain(const struct rev_edit *edits, size_t count, struct arena *arena, struct err *err,
	    struct edit_chain *ret)
{
	size_t slots = hash_slots(count);
	uint32_t *table;

	*ret = (struct edit_chain){ 0 };
	if (count < 2)
		return STATUS_OK;
	table = arena_zalloc(arena, slots * sizeof(*table));
	ret->next = arena_zalloc(arena, count * sizeof(*ret->next));
	ret->is_behind = arena_zalloc(arena, count * sizeof(*ret->is_behind));
	if (!table || !ret->next || !ret->is_behind)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		size_t at = hash_keyed(0, edits[i].id) & (slots - 1);

		TRY(step_count(1));
		while (table[at] && !str_eq(edits[table[at] - 1].id, edits[i].id))
			at = (at + 1) & (slots - 1);
		if (table[at]) {
			if (!rev_edit_can_merge(&edits[i]) ||
			    !rev_edit_can_merge(&edits[table[at] - 1]))
				return err_set(err, STATUS_INVALID,
					       "The same document twice in a transaction.");
			ret->next[table[at] - 1] = (uint32_t)(i + 1);
			ret->is_behind[i] = true;
		}
		table[at] = (uint32_t)(i + 1);
	}
	return STATUS_OK;
}

/* Checks all edits of a document, and asks for what they need. */
static enum status
edits_begin_merge(struct rev_writer *w, const struct rev_edit *edits,
		  const struct edit_chain *chain, size_t leader, size_t first,
		  struct pending_edit *pending, struct rev_result *results)
{
	for (size_t i = leader;; i = chain->next[i] - 1) {
		TRY(step_count(1));
		pending[i] = (struct pending_edit){ .plan = PLAN_DONE };
		results[i] = (struct rev_result){ .status = edit_check(w, &edits[i]) };
		if (results[i].status == STATUS_OK)
			results[i].rev = (struct rev_id){ edits[i].start, edits[i].history[0] };
		if (!chain->next[i])
			break;
	}
	pending[leader].plan = PLAN_MERGE;
	return rev_merge_begin(w, edits, chain->next, leader, first, results,
			       &pending[leader].merge);
}

static enum status
edits_begin(struct rev_writer *w, const struct rev_edit *edits, size_t count, size_t first,
	    const struct edit_chain *chain, uint8_t *hashes, struct pending_edit *pending,
	    struct rev_result *results)
{
	for (size_t i = 0; i < count; i++) {
		if (chain->next && chain->is_behind[i])
			continue;
		TRY(step_count(EDIT_STEPS));
		if (chain->next && chain->next[i])
			TRY(edits_begin_merge(w, edits, chain, i, first, pending, results));
		else
			TRY(edit_begin(w, &edits[i], hashes + i * REV_HASH_BYTES, &pending[i],
				       &results[i]));
	}
	return STATUS_OK;
}

/* Edits with ascending ids, which share a read of what lies between their documents. */
struct edit_run {
	struct edit_run *next;
	const size_t *at; /* the numbers of the edits */
	size_t count;
	struct rev_neighbours neighbours;
};

/* Asks for the branches of these edits, which have ascending ids, by one read for all of them. */
static enum status
run_ask(struct rev_writer *w, const struct rev_edit *edits, const size_t *at, size_t count,
	struct edit_run **runs)
{
	struct edit_run *run = arena_alloc(w->arena, sizeof(*run));

	if (!run)
		return STATUS_LIMIT;
	*run = (struct edit_run){ .next = *runs, .at = at, .count = count };
	*runs = run;
	return rev_neighbours_ask(&run->neighbours, w->tx, w->db, edits[at[0]].id,
				  edits[at[count - 1]].id, &w->key);
}

/*
 * Issues the reads of the branches of all documents that may be new, in the first wave. Those of
 * runs go together, unless the transaction has had edits before this batch, of which there are
 * `first`: the stamps that they have left cannot be read, and might lie in between.
 */
static enum status
edits_ask_branches(struct rev_writer *w, const struct rev_edit *edits, size_t count, size_t first,
		   struct pending_edit *pending, struct edit_run **ret_runs)
{
	size_t least = first ? SIZE_MAX : REV_NEIGHBOURS_LEAST;
	size_t *at = arena_alloc(w->arena, (count ? count : 1) * sizeof(*at));
	size_t asking = 0, begin = 0;

	*ret_runs = NULL;
	if (!at)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		if (pending[i].plan == PLAN_CREATE || pending[i].plan == PLAN_REPLICATE)
			at[asking++] = i;
	for (size_t i = 1; i <= asking; i++) {
		bool together;

		TRY(step_count(1));
		if (i < asking && str_cmp(edits[at[i - 1]].id, edits[at[i]].id) < 0)
			continue;
		together = i - begin >= least;
		if (together)
			TRY(run_ask(w, edits, at + begin, i - begin, ret_runs));
		for (size_t j = begin; !together && j < i; j++)
			TRY(edit_ask_branches(w, &edits[at[j]], &pending[at[j]]));
		begin = i;
	}
	return STATUS_OK;
}

/*
 * Waits for what lies between the documents of runs, and asks for the branches of those that it
 * does not tell of. All of them are asked for before anything is written: a cluster's ranges that
 * are under way would have to come first.
 */
static enum status
runs_look(struct rev_writer *w, const struct rev_edit *edits, struct pending_edit *pending,
	  struct edit_run *runs)
{
	for (struct edit_run *run = runs; run; run = run->next) {
		for (size_t i = 0; i < run->count; i++) {
			const struct rev_edit *edit = &edits[run->at[i]];
			struct pending_edit *p = &pending[run->at[i]];

			TRY(step_count(1));
			TRY(rev_neighbours_look(&run->neighbours, w->tx, w->db, edit->id, &w->key,
						&p->is_new));
			if (!p->is_new)
				TRY(edit_ask_branches(w, edit, p));
		}
		rev_neighbours_release(&run->neighbours);
	}
	return STATUS_OK;
}

static enum status
write_edits(struct rev_writer *w, const struct rev_edit *edits, size_t count, size_t first,
	    const struct edit_chain *chain, uint8_t *hashes, struct rev_result *results)
{
	struct pending_edit *pending = arena_alloc(w->arena,
						   (count ? count : 1) * sizeof(*pending));
	struct edit_run *runs;
	size_t left = count;

	if (!pending)
		return STATUS_LIMIT;
	TRY(edits_begin(w, edits, count, first, chain, hashes, pending, results));
	TRY(edits_ask_branches(w, edits, count, first, pending, &runs));
	TRY(runs_look(w, edits, pending, runs));
	/*
	 * Each pass is one wave: it waits for the reads of the wave before it, and issues those of
	 * the next one for all edits that are not done yet.
	 */
	while (left) {
		left = 0;
		for (size_t i = 0; i < count; i++) {
			enum status status;

			if (pending[i].plan == PLAN_DONE)
				continue;
			TRY(step_count(EDIT_STEPS));
			status = edit_resolve(w, &edits[i], &pending[i], (uint16_t)(first + i),
					      &results[i]);
			if (status == STATUS_DUPLICATE) {
				results[i].index = w->duplicate->name;
				status = edit_refuse(&pending[i], &results[i], status);
			}
			TRY(status);
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
	if (w->indexes.set)
		TRY(index_writer_finish(&w->indexes));
	TRY(rev_partitions_settle(w));
	TRY(catalog_counts_finish(&w->counts, w->tx, &w->key));
	return w->changed ? rev_stat_changed(w->tx, w->db, w->last_order, &w->key) : STATUS_OK;
}

static const char *const edit_outcomes[] = { "written", "unchanged", "conflict", "refused" };

METRIC_COUNTERS(edits_done, "frond_document_edits_total", METRIC_NUMBER,
		"Edits of documents by outcome, _local ones aside, in each attempt of their "
		"transaction; unchanged: a replicated revision that was known already.",
		"outcome", edit_outcomes);

static void
edits_count(const struct rev_result *results, size_t count)
{
	size_t counts[METRIC_COUNT_OF(edit_outcomes)] = { 0 };

	for (size_t i = 0; i < count; i++) {
		if (results[i].status == STATUS_OK)
			counts[results[i].unchanged ? 1 : 0]++;
		else
			counts[results[i].status == STATUS_DOC_CONFLICT ? 2 : 3]++;
	}
	for (size_t i = 0; i < METRIC_COUNT_OF(counts); i++)
		if (counts[i])
			metric_add_at(&edits_done, i, counts[i]);
}

bool
rev_write_reads_first(const struct catalog_db *db)
{
	return !db->bare && !index_set_has_writers(index_set_of(db));
}

enum status
rev_write(struct kv_tx *tx, const struct catalog_db *db, const struct rev_edit *edits, size_t count,
	  size_t first, struct arena *arena, struct rev_result *ret_results, struct err *err)
{
	struct rev_writer w = {
		.tx = tx,
		.db = db,
		.arena = arena,
		.key = CATALOG_KEY_INIT,
		.value = BUF_INIT(KV_LIMIT_VALUE_BYTES),
		.ancestors = BUF_INIT(KV_LIMIT_VALUE_BYTES),
		.scratch = BUF_INIT(REV_VALUE_OTHER_BYTES + 2 * REV_HASH_LIMIT_BYTES),
	};
	struct edit_chain chain;
	struct arena_mark mark;
	enum status status;
	uint8_t *hashes;

	TRY(catalog_db_check_writable(db, err));
	if (first > REV_BATCH_EDITS || count > REV_BATCH_EDITS - first)
		return err_set(err, STATUS_TX_TOO_LARGE, "More than %d edits in a transaction.",
			       (int)REV_BATCH_EDITS);
	hashes = (uint8_t *)arena_bytes(arena, count * REV_HASH_BYTES);
	if (!hashes)
		return STATUS_LIMIT;
	catalog_counts_init(&w.counts, db, arena);
	if (index_set_has_writers(index_set_of(db)))
		index_writer_init(&w.indexes, tx, db, &w.counts, REV_LIST_ENTRIES, arena);
	mark = arena_mark(arena);
	status = edits_chain(edits, count, arena, err, &chain);
	if (status == STATUS_OK)
		status = write_edits(&w, edits, count, first, &chain, hashes, ret_results);
	if (status == STATUS_OK)
		edits_count(ret_results, count);
	arena_reset(arena, mark);
	catalog_counts_release(&w.counts);
	if (w.indexes.set)
		index_writer_release(&w.indexes);
	buf_release(&w.key);
	buf_release(&w.value);
	buf_release(&w.ancestors);
	buf_release(&w.scratch);
	return status;
}

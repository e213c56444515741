/*
 * Several replicated edits of one document in one transaction. Its branches are read once. Then
 * each edit in turn changes the branches in memory as if the edits before it had been committed,
 * and at the end what has become of the branches is written.
 *
 * An edit needs to know of each revision in its history whether a branch has it, whether it is a
 * head, and which ancestors it has. So the revisions of all histories are a set, and `entries` says
 * this of each of them as the branches come and go. What an edit costs does not grow with the
 * number of branches.
 *
 * Where two branches know the same revision, its entry remembers the longer list of ancestors. If
 * that branch is replaced by one that has forgotten the revision, the list is gone, although a
 * third branch may still have it; an edit whose history ends with that revision is then stored with
 * a shorter history. No other part of the outcome depends on it.
 */
#include <assert.h>

#include "loop/step.h"
#include "model/revisioned/rev_set.h"
#include "model/revisioned/revisioned_int.h"

enum {
	MERGE_STEPS = 20, /* steps of an edit that becomes a branch, without those of its history */
};

/* What the branches have, at this moment, of one revision. Rows are numbered from 1; 0: none. */
struct merge_entry {
	uint32_t holders;     /* branches that have it, as a head or as an ancestor */
	uint32_t head;        /* the branch whose head it is */
	uint32_t known_by;    /* the branch that `ancestors` is of */
	struct str ancestors; /* encoded */
};

struct rev_merge {
	const struct rev_edit *edits;
	const uint32_t *next;
	size_t leader;
	size_t first;
	struct rev_result *results;
	struct kv_future *branches;
	struct kv_future *
		*given_up; /* by stored row: the attachments of what is replaced, or NULL */
	bool any_given_up;
	struct rev_att **new_atts; /* by new row: its attachments */
	struct rev_set set;
	struct merge_entry *entries; /* by number in the set */
	struct rev_merged merged;
	struct rev_index_change *index; /* what indexes need to know; NULL: nothing */
};

bool
rev_edit_can_merge(const struct rev_edit *edit)
{
	/* Whether an upload can be had is known only when the store has been asked. */
	for (size_t i = 0; i < edit->atts_count; i++)
		if (edit->atts[i].source != REV_ATT_DATA && edit->atts[i].source != REV_ATT_STUB)
			return false;
	return edit->kind == REV_EDIT_REPLICATED && !edit->text;
}

enum status
rev_merge_begin(struct rev_writer *w, const struct rev_edit *edits, const uint32_t *next,
		size_t leader, size_t first, struct rev_result *results, struct rev_merge **ret)
{
	struct rev_merge *m = arena_zalloc(w->arena, sizeof(*m));

	if (!m)
		return STATUS_LIMIT;
	m->edits = edits;
	m->next = next;
	m->leader = leader;
	m->first = first;
	m->results = results;
	*ret = m;
	return rev_branches_read(w->tx, w->db, edits[leader].id, 0, KV_READ, &w->key, &m->branches);
}

/* The edit behind `i`, or SIZE_MAX. */
static size_t
merge_next(const struct rev_merge *m, size_t i)
{
	return m->next[i] ? m->next[i] - 1 : SIZE_MAX;
}

/* ---- What is known of revisions ---- */

static enum status
merge_fill_set(struct rev_writer *w, struct rev_merge *m)
{
	size_t most = 0;

	for (size_t i = m->leader; i != SIZE_MAX; i = merge_next(m, i))
		if (m->results[i].status == STATUS_OK)
			most += m->edits[i].history_count;
	TRY(rev_set_init(&m->set, most, w->arena));
	for (size_t i = m->leader; i != SIZE_MAX; i = merge_next(m, i)) {
		const struct rev_edit *edit = &m->edits[i];

		if (m->results[i].status != STATUS_OK)
			continue;
		for (size_t j = 0; j < edit->history_count; j++)
			(void)rev_set_add(&m->set,
					  (struct rev_id){ edit->start - j, edit->history[j] });
		TRY(step_count((uint32_t)edit->history_count));
	}
	m->entries = arena_zalloc(w->arena, (m->set.count + 1) * sizeof(*m->entries));
	return m->entries ? STATUS_OK : STATUS_LIMIT;
}

static struct merge_entry *
merge_find_entry(struct rev_merge *m, struct rev_id rev)
{
	size_t number = rev_set_find(&m->set, rev);

	assert(number == REV_SET_NONE || number < m->set.count);
	return number == REV_SET_NONE ? NULL : &m->entries[number];
}

static void
entry_add_row(const struct rev_merge *m, struct merge_entry *e, uint32_t row, bool is_head,
	      struct str ancestors)
{
	assert(row && row <= m->merged.count && !m->merged.rows[row - 1].replaced);
	e->holders++;
	if (is_head)
		e->head = row;
	if (e->known_by && !m->merged.rows[e->known_by - 1].replaced &&
	    ancestors.len < e->ancestors.len)
		return;
	e->known_by = row;
	e->ancestors = ancestors;
}

static void
entry_remove_row(struct merge_entry *e, uint32_t row)
{
	assert(e->holders > 0);
	e->holders--;
	if (e->head == row)
		e->head = 0;
	if (e->known_by == row)
		e->known_by = 0;
	/* A head is a holder. */
	assert(e->holders || !e->head);
}

/* Notes that a branch is there now, or with `remove` that it is there no more. */
static enum status
merge_note_row(struct rev_writer *w, struct rev_merge *m, size_t at, bool remove)
{
	const struct rev_branch_record *record = &m->merged.rows[at];
	struct rev_lineage lineage;
	enum status status;
	struct str ancestors;
	struct rev_id rev;

	rev_lineage_begin(&lineage, record, &w->scratch);
	TRY(rev_lineage_skip(&lineage, m->set.highest));
	while ((status = rev_lineage_next(&lineage, &rev, &ancestors)) == STATUS_OK) {
		struct merge_entry *e = merge_find_entry(m, rev);

		if (rev.pos < m->set.lowest)
			return STATUS_OK;
		if (e && remove)
			entry_remove_row(e, (uint32_t)at + 1);
		else if (e)
			entry_add_row(m, e, (uint32_t)at + 1, rev.pos == record->rev.pos,
				      ancestors);
		TRY(step_count(1));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- The edits, one after another ---- */

/* The revisions that the edit names as ancestors: marks the heads among them as replaced. */
static void
merge_mark_replaced(struct rev_merge *m, const struct rev_edit *edit)
{
	for (size_t i = 1; i < edit->history_count; i++) {
		const struct merge_entry *e = merge_find_entry(
			m, (struct rev_id){ edit->start - i, edit->history[i] });

		if (e && e->head) {
			/* A branch is replaced once: its head goes with it. */
			assert(!m->merged.rows[e->head - 1].replaced);
			m->merged.rows[e->head - 1].replaced = true;
		}
	}
}

static enum status
merge_remove_replaced(struct rev_writer *w, struct rev_merge *m, const struct rev_edit *edit)
{
	for (size_t i = 1; i < edit->history_count; i++) {
		const struct merge_entry *e = merge_find_entry(
			m, (struct rev_id){ edit->start - i, edit->history[i] });

		if (e && e->head)
			TRY(merge_note_row(w, m, e->head - 1, true));
	}
	return STATUS_OK;
}

/* The newest head that the edit replaces, which its stubs refer to: its row's number, or 0. */
static uint32_t
merge_newest_replaced(struct rev_merge *m, const struct rev_edit *edit)
{
	for (size_t i = 1; i < edit->history_count; i++) {
		const struct merge_entry *e = merge_find_entry(
			m, (struct rev_id){ edit->start - i, edit->history[i] });

		if (e && e->head)
			return e->head;
	}
	return 0;
}

static bool
merge_has_stubs(const struct rev_edit *edit)
{
	for (size_t i = 0; i < edit->atts_count; i++)
		if (edit->atts[i].source == REV_ATT_STUB)
			return true;
	return false;
}

/* Asks for the attachments of a stored branch, unless it has none or they have been asked for. */
static enum status
merge_ask_atts(struct rev_writer *w, struct rev_merge *m, size_t at)
{
	const struct rev_branch_record *row = &m->merged.rows[at];

	assert(at < m->merged.stored);
	if (!row->has_atts || m->given_up[at])
		return STATUS_OK;
	m->any_given_up = true;
	return rev_atts_get(w->tx, w->db, m->merged.id, row->rev, row->deleted, &w->key,
			    &m->given_up[at]);
}

/* Asks at once for what the stubs of all edits refer to, as far as it is stored. */
static enum status
merge_ask_stubs(struct rev_writer *w, struct rev_merge *m)
{
	for (size_t i = m->leader; i != SIZE_MAX; i = merge_next(m, i)) {
		uint32_t row;

		if (m->results[i].status != STATUS_OK || !merge_has_stubs(&m->edits[i]))
			continue;
		row = merge_newest_replaced(m, &m->edits[i]);
		if (row)
			TRY(merge_ask_atts(w, m, row - 1));
	}
	return STATUS_OK;
}

/* The attachments of the head that the edit's stubs refer to: a stored one, or a new one. */
static enum status
merge_read_parent_atts(struct rev_writer *w, struct rev_merge *m, const struct rev_edit *edit,
		       struct rev_att_list *ret)
{
	struct rev_merged *merged = &m->merged;
	uint32_t number = merge_newest_replaced(m, edit);
	const struct rev_branch_record *row;
	size_t at = number - 1;

	if (!number)
		return STATUS_OK;
	if (at >= merged->stored) {
		assert(at < merged->count);
		ret->atts = m->new_atts[at - merged->stored];
		ret->count = merged->heads[at - merged->stored].edit->atts_count;
		return STATUS_OK;
	}
	row = &merged->rows[at];
	TRY(merge_ask_atts(w, m, at));
	if (!m->given_up[at])
		return STATUS_OK;
	return rev_atts_wait(w->tx, w->db, merged->id, row->rev, row->deleted, m->given_up[at],
			     &w->key, w->arena, ret);
}

/*
 * All attachments of the new head. STATUS_ATT_MISSING for a stub that its parent does not have. A
 * parent that is new, too, is replaced before it is written, so what it brings becomes the edit's
 * own: `*edit` may be another one then.
 */
static enum status
merge_resolve_atts(struct rev_writer *w, struct rev_merge *m, const struct rev_edit **edit,
		   struct rev_att **ret, struct str *ret_missing)
{
	struct rev_att_list from = { 0 };
	size_t parent;

	*ret = NULL;
	if ((*edit)->atts_count == 0)
		return STATUS_OK;
	if (!merge_has_stubs(*edit))
		return rev_atts_resolve(*edit, &from, 0, w->arena, ret, ret_missing);
	TRY(merge_read_parent_atts(w, m, *edit, &from));
	TRY(rev_atts_resolve(*edit, &from, 0, w->arena, ret, ret_missing));
	parent = merge_newest_replaced(m, *edit);
	if (parent <= m->merged.stored)
		return STATUS_OK;
	return rev_atts_inherit(m->merged.heads[parent - 1 - m->merged.stored].edit, &from, *ret,
				w->arena, edit);
}

static enum status
merge_add_row(struct rev_writer *w, struct rev_merge *m, size_t i, const struct rev_edit *edit,
	      struct rev_att *atts)
{
	const struct rev_id oldest = { edit->start - (edit->history_count - 1),
				       edit->history[edit->history_count - 1] };
	const struct merge_entry *known = merge_find_entry(m, oldest);
	struct rev_merged *to = &m->merged;
	struct rev_update *head = &to->heads[to->count - to->stored];
	struct rev_ancestors list;

	assert(to->count >= to->stored && edit->history_count);
	rev_ancestors_init(&list, &w->ancestors, w->db);
	for (size_t j = 1; j < edit->history_count; j++)
		rev_ancestors_add(&list, edit->history[j]);
	if (known && known->known_by)
		TRY(rev_ancestors_add_encoded(&list, known->ancestors, oldest.pos - 1));
	TRY(buf_status(&w->ancestors));
	*head = (struct rev_update){ .edit = edit,
				     .rev = m->results[i].rev,
				     .atts = atts,
				     .order = (uint16_t)(m->first + i) };
	m->new_atts[to->count - to->stored] = atts;
	to->rows[to->count] = (struct rev_branch_record){
		.rev = head->rev,
		.deleted = edit->deleted,
		.ancestors = buf_dup(&w->ancestors, w->arena),
	};
	if (!to->rows[to->count].ancestors.ptr)
		return STATUS_LIMIT;
	to->count++;
	return merge_note_row(w, m, to->count - 1, false);
}

static enum status
merge_apply_edit(struct rev_writer *w, struct rev_merge *m, size_t i)
{
	const struct rev_edit *edit = &m->edits[i];
	struct rev_result *result = &m->results[i];
	const struct merge_entry *known;
	struct rev_att *atts;
	enum status status;

	if (result->status != STATUS_OK)
		return STATUS_OK;
	known = merge_find_entry(m, result->rev);
	assert(known && "the set has all revisions of all histories");
	result->unchanged = known && known->holders > 0;
	if (result->unchanged)
		return STATUS_OK;
	status = merge_resolve_atts(w, m, &edit, &atts, &result->att);
	if (status == STATUS_ATT_MISSING) {
		result->status = status; /* the others go on without it */
		return STATUS_OK;
	}
	TRY(status);
	merge_mark_replaced(m, edit);
	TRY(merge_add_row(w, m, i, edit, atts));
	/* The new branch is there first, so that it can take over what the others knew. */
	TRY(merge_remove_replaced(w, m, edit));
	return step_count(MERGE_STEPS + (uint32_t)(3 * edit->history_count));
}

static enum status
merge_read_rows(struct rev_writer *w, struct rev_merge *m)
{
	struct rev_merged *to = &m->merged;
	struct rev_branch_records stored;
	size_t edits = 0;

	TRY(rev_branches_wait(w->tx, w->db, m->edits[m->leader].id, 0, KV_READ, m->branches,
			      &w->key, w->arena, &stored));
	for (size_t i = m->leader; i != SIZE_MAX; i = merge_next(m, i))
		edits++;
	to->id = m->edits[m->leader].id;
	to->rows = arena_alloc(w->arena, (stored.count + edits) * sizeof(*to->rows));
	to->heads = arena_alloc(w->arena, edits * sizeof(*to->heads));
	m->new_atts = arena_alloc(w->arena, edits * sizeof(struct rev_att *));
	m->given_up = arena_zalloc(w->arena, (stored.count + 1) * sizeof(struct kv_future *));
	if (!to->rows || !to->heads || !m->given_up || !m->new_atts)
		return STATUS_LIMIT;
	if (stored.count)
		memcpy(to->rows, stored.rows, stored.count * sizeof(*to->rows));
	assert(edits); /* the leader is one */
	to->stored = stored.count;
	to->count = stored.count;
	for (size_t i = 0; i < to->count; i++)
		TRY(merge_note_row(w, m, i, false));
	return STATUS_OK;
}

/* ---- The end ---- */

/* What becomes of the winner, for indexes: asks for the bodies, or sets *ret_waits to wait for. */
static enum status
merge_ask_index(struct rev_writer *w, struct rev_merge *m, bool *ret_waits)
{
	const struct rev_merged *merged = &m->merged;
	const struct rev_branch_record *winner;
	uint64_t branches;

	if (merged->count == merged->stored || !rev_index_wants(w, merged->id))
		return STATUS_OK;
	m->index = arena_zalloc(w->arena, sizeof(*m->index));
	if (!m->index)
		return STATUS_LIMIT;
	winner = rev_merged_winner(merged, &branches);
	assert(winner >= merged->rows && winner < merged->rows + merged->count);
	m->index->id = merged->id;
	m->index->has_before = merged->stored > 0;
	if (merged->stored)
		m->index->before = merged->rows[0];
	if (winner < merged->rows + merged->stored) {
		m->index->has_after = true;
		m->index->after = *winner;
	} else {
		m->index->edit = merged->heads[winner - merged->rows - merged->stored].edit;
		m->index->edit_rev = winner->rev;
	}
	return rev_index_ask(w, m->index, ret_waits);
}

/* A unique index forbids what becomes of the document: whatever would change it is refused. */
static void
merge_refuse_all(struct rev_merge *m, struct str index)
{
	for (size_t i = m->leader; i != SIZE_MAX; i = merge_next(m, i)) {
		if (m->results[i].status != STATUS_OK || m->results[i].unchanged)
			continue;
		m->results[i].status = STATUS_DUPLICATE;
		m->results[i].index = index;
	}
}

/* Asks for the attachments of stored branches that are replaced. */
static enum status
merge_ask_given_up(struct rev_writer *w, struct rev_merge *m)
{
	for (size_t i = 0; i < m->merged.stored; i++)
		if (m->merged.rows[i].replaced)
			TRY(merge_ask_atts(w, m, i));
	return STATUS_OK;
}

static enum status
merge_count_given_up(struct rev_writer *w, struct rev_merge *m)
{
	const struct rev_merged *merged = &m->merged;

	for (size_t i = 0; i < merged->stored; i++) {
		const struct rev_branch_record *row = &merged->rows[i];
		struct rev_att_list list;

		/* What a refused edit's stubs would have referred to is not replaced. */
		if (!row->replaced || !m->given_up[i])
			continue;
		TRY(rev_atts_wait(w->tx, w->db, merged->id, row->rev, row->deleted, m->given_up[i],
				  &w->key, w->arena, &list));
		TRY(rev_atts_count(w, list.atts, list.count, -1));
	}
	return STATUS_OK;
}

static enum status
merge_write(struct rev_writer *w, struct rev_merge *m)
{
	const struct rev_merged *merged = &m->merged;

	return merged->count > merged->stored ? rev_merged_apply(w, &m->merged) : STATUS_OK;
}

/* All that has to be read has come. */
static enum status
merge_finish(struct rev_writer *w, struct rev_merge *m)
{
	if (m->index) {
		enum status status = rev_index_apply(w, m->index);

		if (status == STATUS_DUPLICATE) {
			merge_refuse_all(m, w->duplicate->name);
			return STATUS_OK;
		}
		TRY(status);
	}
	TRY(merge_count_given_up(w, m));
	return merge_write(w, m);
}

enum status
rev_merge_resolve(struct rev_writer *w, struct rev_merge *m, bool *ret_done)
{
	bool waits = false;

	*ret_done = true;
	if (m->merged.rows) /* the second wave has come */
		return merge_finish(w, m);
	TRY(merge_fill_set(w, m));
	if (m->set.count == 0) /* no edit is possible */
		return STATUS_OK;
	TRY(merge_read_rows(w, m));
	TRY(merge_ask_stubs(w, m));
	for (size_t i = m->leader; i != SIZE_MAX; i = merge_next(m, i))
		TRY(merge_apply_edit(w, m, i));
	TRY(merge_ask_given_up(w, m));
	TRY(merge_ask_index(w, m, &waits));
	*ret_done = !m->any_given_up && !waits;
	return *ret_done ? merge_finish(w, m) : STATUS_OK;
}

#include "door/couch/view/run.h"

#include "doc/json.h"
#include "door/couch/wire/error.h"

void
view_run_end_reads(struct view_run *v)
{
	view_rows_end(&v->rows);
}

void
view_run_let_go(struct view_run *v)
{
	view_run_end_reads(v);
	v->found = false;
	couch_snapshot_rest(&v->snapshot);
}

enum status
view_run_push(struct view_run *v)
{
	TRY(couch_stream_push(&v->stream, false));
	if (v->snapshot.resting || !couch_snapshot_is_wanted(&v->snapshot))
		return STATUS_OK;
	/* What has been written must not be held until the next turn comes. */
	TRY(couch_stream_push(&v->stream, true));
	view_run_let_go(v);
	return STATUS_OK;
}

void
view_run_note_place(struct view_run *v, struct str place)
{
	buf_set(&v->next, place);
}

void
view_run_begin_row(struct view_run *v)
{
	if (v->at.any_row)
		buf_append_cstr(&v->stream.out, ",\r\n");
	v->at.any_row = true;
}

void
view_write_row(struct view_run *v, struct str id, struct str key, struct str value)
{
	struct buf *out = &v->stream.out;

	view_run_begin_row(v);
	buf_append_cstr(out, "{\"id\":");
	json_write_str(out, id);
	buf_append_cstr(out, ",\"key\":");
	buf_append_str(out, key);
	buf_append_cstr(out, ",\"value\":");
	buf_append_str(out, value);
}

/* ---- Steps ---- */

/* Takes the group from the loop's entry if that holds in the snapshot. */
static enum status
run_take_known(struct view_run *v, struct kv_tx *tx, bool *ret)
{
	*ret = false;
	if (!v->known)
		return STATUS_OK;
	TRY(couch_view_known_holds(tx, v->r->db, v->known, ret));
	if (*ret)
		v->group = v->known->group;
	return STATUS_OK;
}

/* Reads the group, and keeps it as the loop's entry if it is up to date. */
static enum status
run_read_group(struct view_run *v, struct kv_tx *tx)
{
	struct arena_mark mark = arena_mark(v->r->arena);
	enum status status = view_group_open(tx, v->r->db, &v->named.design, v->r->arena, &v->group,
					     &v->r->fail.err);

	if (status == STATUS_OK && !v->known)
		status = couch_view_known_keep(v->r, tx, &v->named, &v->group);
	arena_reset(v->r->arena, mark);
	return status;
}

/* Finds the view in the snapshot. */
static enum status
run_find(struct view_run *v, struct kv_tx *tx)
{
	enum status status;
	bool known;

	TRY(run_take_known(v, tx, &known));
	status = known ? STATUS_OK : run_read_group(v, tx);
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	v->built = status == STATUS_OK && v->group.phase == VIEW_PHASE_READY;
	if (!v->built)
		v->group = (struct view_group){ .partitioned = v->named.design.partitioned };
	/* What lay in the arena. */
	v->group.refusals = NULL;
	v->group.refusal_count = 0;
	if (!v->built && (v->ever_built || v->waits))
		return couch_fail_set(&v->r->fail, COUCH_ERROR_NOT_FOUND,
				      "Design document was updated or deleted.");
	v->ever_built = v->built;
	v->found = true;
	return STATUS_OK;
}

struct run_call {
	struct view_run *v;
	view_step *step;
	void *arg;
	size_t out;
	bool any_row;
};

/* One attempt at a step. First it drops what the attempt before has written. */
static enum status
run_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct run_call *c = arg;
	struct view_run *v = c->v;
	enum status status = STATUS_OK;

	(void)r;
	couch_stream_cut(&v->stream, c->out);
	v->at.any_row = c->any_row;
	buf_clear(&v->next);
	if (!v->found)
		status = run_find(v, tx);
	if (status == STATUS_OK)
		status = c->step(v, tx, c->arg);
	if (status == STATUS_OK)
		return buf_status(&v->next);
	/* The next attempt has another snapshot. */
	view_run_end_reads(v);
	v->found = false;
	return status;
}

enum status
view_run_step(struct view_run *v, view_step *step, void *arg)
{
	struct run_call c = { v, step, arg, v->stream.out.len, v->at.any_row };
	struct buf place = v->place;

	TRY(couch_snapshot_run(&v->snapshot, run_attempt, &c));
	if (!v->next.len)
		return STATUS_OK;
	v->place = v->next;
	v->next = place;
	return STATUS_OK;
}

/* ---- Ranges ---- */

struct view_question
view_run_question(const struct view_run *v)
{
	const struct couch_view_args *a = &v->args;

	return (struct view_question){
		.collation = v->named.design.maps[v->named.view->map].collation,
		.partition = a->partition,
		.start_key = a->start.text,
		.start_id = a->start_docid.text,
		.end_key = a->end.text,
		.end_id = a->end_docid.text,
		.exclusive_end = a->exclusive_end,
		.descending = a->descending,
	};
}

struct view_question
view_run_question_of_key(const struct view_run *v, struct str key)
{
	struct view_question q = view_run_question(v);

	q.start_key = key;
	q.end_key = key;
	return q;
}

enum status
view_run_range(struct view_run *v, const struct view_question *question, struct view_range *ret)
{
	const struct view_group shape = {
		.partitioned = v->named.design.partitioned,
		.map_count = v->named.design.map_count,
	};
	struct index_work w = { .arena = v->r->arena };

	return view_range_make(&shape, question, &w, ret, &v->r->fail.err);
}

enum status
view_run_pages(struct view_run *v, view_step *step, void *page, const struct view_at *at)
{
	struct arena_mark mark = arena_mark(v->r->arena);
	bool any_row;

	v->at.more = true;
	buf_clear(&v->place);
	while (v->at.more && v->at.limit) {
		TRY(view_run_step(v, step, page));
		any_row = v->at.any_row;
		v->at = *at;
		v->at.any_row = any_row;
		arena_reset(v->r->arena, mark);
		TRY(view_run_push(v));
	}
	return STATUS_OK;
}

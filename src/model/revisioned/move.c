/*
 * The steps of a move. Each is one transaction at one of the stores (but for the copy, which is
 * many), and which one comes next follows from what both stores say alone: a run that is ended
 * anywhere is gone on with by the next one. README.md has the table.
 */
#include "model/revisioned/move.h"

#include "base/clock.h"
#include "base/rand.h"
#include "model/revisioned/move_int.h"

/* ---- Looking ---- */

static enum status
look_at_source(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;
	enum status status;

	TRY(rev_move_get(tx, m->o->name, m->arena, &m->source));
	status = rev_description_get(tx, m->o->name, &m->db, NULL);
	if (status == STATUS_NOT_FOUND)
		m->db = (struct rev_db){ .name = m->o->name };
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
look_at_target(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;

	return rev_move_get(tx, m->o->name, m->arena, &m->target);
}

static enum status
look(struct mover *m)
{
	AUTO(buf_release) struct buf prefix = BUF_INIT(16);

	arena_clear(m->arena);
	TRY(kv_run_read(m->o->from, look_at_source, m, m->err));
	TRY(kv_run_read(m->o->to, look_at_target, m, m->err));
	tuple_put_u64(&prefix, m->db.number);
	TRY(buf_status(&prefix));
	m->db.prefix = arena_dup(m->arena, buf_str(&prefix));
	if (m->target.state != REV_MOVE_NONE)
		m->sum = m->target.sum;
	/* It was less when it was fenced, and nothing has been written since. */
	m->incarnation = m->db.incarnation;
	if (m->incarnation < UINT8_MAX)
		m->incarnation++;
	return m->db.prefix.ptr ? STATUS_OK : STATUS_LIMIT;
}

/* The record as it was looked at, for a transaction that goes on from there. */
static enum status
expect(struct mover *m, struct kv_tx *tx, const struct rev_move *move)
{
	struct arena_mark mark = arena_mark(m->arena);
	struct rev_move now;
	enum status status = rev_move_expect(tx, move, m->arena, &now, m->err);

	arena_reset(m->arena, mark);
	return status;
}

static struct str
url(const char *text)
{
	struct str s = str_from_cstr(text);

	return str_of(s.ptr, s.len < REV_MOVE_URL_BYTES ? s.len : REV_MOVE_URL_BYTES);
}

/* ---- Steps forward ---- */

/* At the target: nobody else gets the name, and the copy has a number. */
static enum status
reserve_body(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;
	struct rev_move move = {
		.name = m->o->name,
		.state = REV_MOVE_RESERVED,
		.begun_ms = clock_wall_ms(),
		.other = url(m->o->from_url),
		.number = m->target.number,
	};
	struct rev_db there;
	enum status status = rev_description_get(tx, m->o->name, &there, NULL);

	if (status == STATUS_OK)
		return err_set(m->err, STATUS_EXISTS,
			       "there is a database \"%.*s\" already where it should go",
			       STR_ARG(m->o->name));
	if (status != STATUS_NOT_FOUND)
		return status;
	TRY(expect(m, tx, &m->target));
	if (!move.number)
		TRY(rev_number_allocate(tx, &move.number));
	memcpy(move.id, m->id, sizeof(move.id));
	return rev_move_set(tx, &move);
}

static enum status
reserve(struct mover *m)
{
	if (m->db.number == 0)
		return err_set(m->err, STATUS_NOT_FOUND, "there is no database \"%.*s\"",
			       STR_ARG(m->o->name));
	if (m->db.fence == REV_FENCE_KEPT)
		return err_set(m->err, STATUS_FORBIDDEN,
			       "the database \"%.*s\" has been moved already; this is what was "
			       "kept of it",
			       STR_ARG(m->o->name));
	if (m->db.incarnation == UINT8_MAX)
		return err_set(m->err, STATUS_LIMIT,
			       "the database \"%.*s\" has been moved or restored %u times, and "
			       "cannot be any more",
			       STR_ARG(m->o->name), (unsigned)UINT8_MAX);
	/* Not the id of a reservation that is there: another source may go by that one. */
	rand_bytes(m->id, sizeof(m->id));
	m->reserved = true;
	return kv_run(m->o->to, reserve_body, m, NULL, m->err);
}

/* At the source: from here on it is read only, for everybody. */
static enum status
fence_body(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;
	struct rev_move move = {
		.name = m->o->name,
		.state = REV_MOVE_MOVING,
		.begun_ms = m->target.begun_ms,
		.other = url(m->o->to_url),
		.keep = m->o->keep,
	};
	struct rev_db db;

	TRY(expect(m, tx, &m->source));
	TRY(rev_description_get(tx, m->o->name, &db, m->err));
	TRY(rev_db_check_writable(&db, m->err));
	db.fence = REV_FENCE_MOVING;
	memcpy(move.id, m->id, sizeof(move.id));
	TRY(rev_description_set(tx, &db));
	TRY(rev_move_set(tx, &move));
	return kv_touch_metadata_version(tx);
}

static enum status
fence(struct mover *m)
{
	if (!m->reserved || memcmp(m->target.id, m->id, sizeof(m->id)) != 0)
		return reserve(m);
	return kv_run(m->o->from, fence_body, m, NULL, m->err);
}

static enum status
copy(struct mover *m)
{
	return rev_move_copy(m);
}

/* At the source: the copy is the database now. There is no way back. */
static enum status
hand_over_body(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;
	struct rev_move move = m->source;

	TRY(expect(m, tx, &m->source));
	move.state = REV_MOVE_HANDED_OVER;
	move.keep = move.keep || m->o->keep;
	return rev_move_set(tx, &move);
}

static enum status
hand_over(struct mover *m)
{
	return kv_run(m->o->from, hand_over_body, m, NULL, m->err);
}

/* At the target: the copy gets its name. */
static enum status
live_body(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;
	struct rev_move move = m->target;
	struct rev_db db = m->db;
	struct rev_db there;
	enum status status;

	TRY(expect(m, tx, &m->target));
	status = rev_description_get(tx, m->o->name, &there, NULL);
	if (status != STATUS_NOT_FOUND)
		return status == STATUS_OK ? STATUS_CORRUPT : status;
	db.number = move.number;
	db.fence = REV_FENCE_NONE;
	TRY(rev_store_incarnation(tx, &db.incarnation));
	TRY(rev_description_set(tx, &db));
	TRY(rev_event_put(tx, db.name, REV_EVENT_CREATED, db.incarnation));
	move.state = REV_MOVE_LIVE;
	TRY(rev_move_set(tx, &move));
	return kv_touch_metadata_version(tx);
}

static enum status
make_live(struct mover *m)
{
	/* The store's Incarnation, which the database gets, is then above all that it has had. */
	TRY(rev_incarnations_raise_to(m->o->to, m->incarnation, m->err));
	return kv_run(m->o->to, live_body, m, NULL, m->err);
}

/* At the source: nothing is left, or what is to be kept. */
static enum status
leave_body(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;
	struct rev_db db;

	TRY(expect(m, tx, &m->source));
	TRY(rev_description_get(tx, m->o->name, &db, m->err));
	TRY(rev_move_clear(tx, m->o->name));
	if (!m->source.keep && !m->o->keep)
		return rev_db_remove(tx, &db);
	db.fence = REV_FENCE_KEPT;
	TRY(rev_description_set(tx, &db));
	return kv_touch_metadata_version(tx);
}

static enum status
leave(struct mover *m)
{
	return kv_run(m->o->from, leave_body, m, NULL, m->err);
}

/* What a deleted database has left is nobody's any more: at the source, or of a copy. */
static enum status
clear_rest(struct mover *m, struct kv_store *store)
{
	bool more = true;

	while (more) {
		TRY(rev_dropped_clear(store, &more, m->err));
		TRY(rev_move_tell(m, REV_MOVE_PHASE_END, &m->sum, 0));
	}
	return STATUS_OK;
}

/* At the target: it is a database like any other. */
static enum status
forget_body(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;

	TRY(expect(m, tx, &m->target));
	return rev_move_clear(tx, m->o->name);
}

static enum status
forget(struct mover *m)
{
	TRY(clear_rest(m, m->o->from));
	return kv_run(m->o->to, forget_body, m, NULL, m->err);
}

/* ---- Which one comes next ---- */

static const struct step {
	enum rev_move_state source;
	enum rev_move_state target;
	enum status (*run)(struct mover *m);
	bool last;
} steps[] = {
	{ REV_MOVE_NONE, REV_MOVE_NONE, reserve, false },
	{ REV_MOVE_NONE, REV_MOVE_RESERVED, fence, false },
	{ REV_MOVE_MOVING, REV_MOVE_RESERVED, copy, false },
	{ REV_MOVE_MOVING, REV_MOVE_COPYING, copy, false },
	{ REV_MOVE_MOVING, REV_MOVE_COPIED, hand_over, false },
	{ REV_MOVE_HANDED_OVER, REV_MOVE_COPIED, make_live, false },
	{ REV_MOVE_HANDED_OVER, REV_MOVE_LIVE, leave, false },
	{ REV_MOVE_NONE, REV_MOVE_LIVE, forget, true },
};

static bool
is_same_move(const struct mover *m)
{
	return m->source.state == REV_MOVE_NONE || m->target.state == REV_MOVE_NONE ||
	       memcmp(m->source.id, m->target.id, sizeof(m->source.id)) == 0;
}

/* No step goes on from what the two stores say: they do not speak of the same move. */
static enum status
no_step(const struct mover *m)
{
	const struct rev_move *source = &m->source;
	const struct rev_move *target = &m->target;

	if (source->state >= REV_MOVE_RESERVED)
		return err_set(m->err, STATUS_LOCKED,
			       "the database \"%.*s\" is itself being moved, from %.*s: finish "
			       "that first",
			       STR_ARG(m->o->name), STR_ARG(source->other));
	if (source->state != REV_MOVE_NONE)
		return err_set(m->err, STATUS_LOCKED,
			       "the database \"%.*s\" is being moved already, to %.*s: name that "
			       "store%s",
			       STR_ARG(m->o->name), STR_ARG(source->other),
			       source->state == REV_MOVE_MOVING ? ", or roll it back" : "");
	if (target->state == REV_MOVE_MOVING || target->state == REV_MOVE_HANDED_OVER)
		return err_set(m->err, STATUS_LOCKED,
			       "a database \"%.*s\" is being moved away from there, to %.*s: "
			       "finish that first",
			       STR_ARG(m->o->name), STR_ARG(target->other));
	return err_set(m->err, STATUS_LOCKED,
		       "a database \"%.*s\" is being moved there already, from %.*s: name that "
		       "store, or roll it back",
		       STR_ARG(m->o->name), STR_ARG(target->other));
}

static enum status
step_forward(struct mover *m, bool *ret_last)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const struct step *s = &steps[i];

		if (s->source != m->source.state || s->target != m->target.state ||
		    !is_same_move(m))
			continue;
		*ret_last = s->last;
		return s->run(m);
	}
	return no_step(m);
}

static enum status
move_on(struct mover *m)
{
	bool last = false;

	TRY(look(m));
	while (!last) {
		enum rev_move_phase phase;

		TRY(step_forward(m, &last));
		TRY(look(m));
		phase = m->source.state == REV_MOVE_HANDED_OVER ? REV_MOVE_PHASE_END
								: REV_MOVE_PHASE_BEGIN;
		if (!last)
			TRY(rev_move_tell(m, phase, &m->sum, 0));
	}
	return STATUS_OK;
}

/* ---- Back ---- */

/* At the source: it can be written again, and nothing can be handed over any more. */
static enum status
unfence_body(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;
	struct rev_db db;

	TRY(expect(m, tx, &m->source));
	TRY(rev_description_get(tx, m->o->name, &db, m->err));
	db.fence = REV_FENCE_NONE;
	TRY(rev_description_set(tx, &db));
	TRY(rev_move_clear(tx, m->o->name));
	return kv_touch_metadata_version(tx);
}

/* At the target: what was copied is as if it were of a deleted database. */
static enum status
discard_body(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;

	TRY(expect(m, tx, &m->target));
	TRY(rev_drop_begin(tx, m->target.number));
	return rev_move_clear(tx, m->o->name);
}

static bool
can_be_discarded(enum rev_move_state target)
{
	return target == REV_MOVE_RESERVED || target == REV_MOVE_COPYING ||
	       target == REV_MOVE_COPIED;
}

static enum status
roll_back(struct mover *m)
{
	bool mine;

	TRY(look(m));
	mine = is_same_move(m);
	if (m->source.state == REV_MOVE_HANDED_OVER ||
	    (m->source.state == REV_MOVE_NONE && m->target.state == REV_MOVE_LIVE))
		return err_set(m->err, STATUS_FORBIDDEN,
			       "all of it is at the target already: it cannot be rolled back, "
			       "only finished, by the same without --rollback");
	if (m->source.state == REV_MOVE_NONE && m->target.state == REV_MOVE_NONE)
		return err_set(m->err, STATUS_NOT_FOUND, "no move of \"%.*s\" is under way",
			       STR_ARG(m->o->name));
	if (m->source.state != REV_MOVE_MOVING && m->source.state != REV_MOVE_NONE)
		return no_step(m);
	/* Without the source's record, its URL is all that tells whose copy it is. */
	if (m->source.state == REV_MOVE_NONE &&
	    (!can_be_discarded(m->target.state) || !str_eq(m->target.other, url(m->o->from_url))))
		return no_step(m);
	if (m->source.state == REV_MOVE_MOVING)
		TRY(kv_run(m->o->from, unfence_body, m, NULL, m->err));
	if (!mine || !can_be_discarded(m->target.state))
		return STATUS_OK;
	TRY(rev_move_tell(m, REV_MOVE_PHASE_END, &m->sum, 0));
	TRY(kv_run(m->o->to, discard_body, m, NULL, m->err));
	return clear_rest(m, m->o->to);
}

/* ---- Both ---- */

static enum status
run(const struct rev_move_options *options, enum status (*fn)(struct mover *m),
    struct rev_move_sum *ret, struct err *err)
{
	struct mover m = {
		.o = options,
		.err = err,
		.arena = arena_new(REV_MOVE_ARENA_BYTES),
		.page = arena_new(REV_MOVE_ARENA_BYTES),
	};
	enum status status = STATUS_NOMEM;

	if (m.arena && m.page)
		status = fn(&m);
	if (status != STATUS_OK && err && (err->status != status || !err->text[0]))
		status = err_set(err, status, "%s", status_name(status));
	arena_free(m.page);
	arena_free(m.arena);
	if (status == STATUS_OK && ret)
		*ret = m.sum;
	return status;
}

enum status
rev_move(const struct rev_move_options *options, struct rev_move_sum *ret, struct err *err)
{
	return run(options, move_on, ret, err);
}

enum status
rev_move_rollback(const struct rev_move_options *options, struct err *err)
{
	return run(options, roll_back, NULL, err);
}

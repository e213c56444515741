/*
 * The steps of a move. Each step is one transaction at one of the stores, except the copy, which is
 * many. The records at the two stores alone decide which step comes next, so a run that was stopped
 * anywhere can be continued by the next run. README.md has the table.
 */
#include "catalog/move.h"

#include "base/clock.h"
#include "base/rand.h"
#include "catalog/incarnation.h"
#include "catalog/move_int.h"
#include "kv/prefix.h"

/* ---- Looking ---- */

static enum status
mover_look_at_source(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;
	enum status status;

	TRY(catalog_move_get(tx, m->o->space, m->o->name, m->arena, &m->source, m->err));
	status = catalog_description_get(tx, m->o->space, m->o->name, &m->db, NULL);
	if (status == STATUS_NOT_FOUND)
		m->db = (struct catalog_db){ .name = m->o->name };
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
mover_look_at_target(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;

	return catalog_move_get(tx, m->o->space, m->o->name, m->arena, &m->target, m->err);
}

static enum status
mover_look(struct mover *m)
{
	AUTO(buf_release) struct buf prefix = BUF_INIT(16);

	arena_clear(m->arena);
	TRY(kv_run_read(m->o->from, mover_look_at_source, m, m->err));
	TRY(kv_run_read(m->o->to, mover_look_at_target, m, m->err));
	tuple_put_u64(&prefix, m->db.number);
	TRY(buf_status(&prefix));
	m->db.prefix = buf_dup(&prefix, m->arena);
	if (m->target.state != CATALOG_MOVE_NONE)
		m->sum = m->target.sum;
	/*
	 * The Incarnation was below 255 when the database was fenced, and nothing has been written
	 * since.
	 */
	m->incarnation = m->db.incarnation;
	if (m->incarnation < UINT8_MAX)
		m->incarnation++;
	return m->db.prefix.ptr ? STATUS_OK : STATUS_LIMIT;
}

static struct str
url_cut(const char *text)
{
	struct str s = str_from_cstr(text);

	return str_of(s.ptr, s.len < CATALOG_MOVE_URL_BYTES ? s.len : CATALOG_MOVE_URL_BYTES);
}

/* ---- Steps forward ---- */

/* At the target: reserves the name, and a number for the copy. */
static enum status
reserve_body(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;
	struct catalog_move move = {
		.space = m->o->space,
		.name = m->o->name,
		.kind = m->db.kind->number,
		.state = CATALOG_MOVE_RESERVED,
		.begun_ms = clock_wall_ms(),
		.other = url_cut(m->o->from_url),
		.number = m->target.number,
	};
	struct catalog_db there;
	enum status status = catalog_description_get(tx, m->o->space, m->o->name, &there, NULL);

	if (status == STATUS_OK)
		return err_set(m->err, STATUS_EXISTS,
			       "there is a database \"%.*s\" already where it should go",
			       STR_ARG(m->o->name));
	if (status != STATUS_NOT_FOUND)
		return status;
	TRY(catalog_mover_expect(m, tx, &m->target));
	if (!move.number)
		TRY(kv_prefix_take(kv_tx_store(tx), &move.number, m->err));
	memcpy(move.id, m->id, sizeof(move.id));
	return catalog_move_set(tx, &move);
}

static enum status
step_reserve(struct mover *m)
{
	if (m->db.number == 0)
		return err_set(m->err, STATUS_NOT_FOUND, "there is no database \"%.*s\"",
			       STR_ARG(m->o->name));
	if (m->db.fence == CATALOG_FENCE_KEPT)
		return err_set(m->err, STATUS_FORBIDDEN,
			       "the database \"%.*s\" has been moved already; this is what was "
			       "kept of it",
			       STR_ARG(m->o->name));
	if (m->db.incarnation == UINT8_MAX)
		return err_set(m->err, STATUS_LIMIT,
			       "the database \"%.*s\" has been moved or restored %u times, and "
			       "cannot be any more",
			       STR_ARG(m->o->name), (unsigned)UINT8_MAX);
	/*
	 * The reservation always gets a new id, never that of an existing reservation, because
	 * another source may be using that one.
	 */
	rand_bytes(m->id, sizeof(m->id));
	m->reserved = true;
	return kv_run(m->o->to, reserve_body, m, NULL, m->err);
}

/* At the source: fences the database. From now on it is read-only for all processes. */
static enum status
fence_body(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;
	struct catalog_move move = {
		.space = m->o->space,
		.name = m->o->name,
		.kind = m->db.kind->number,
		.state = CATALOG_MOVE_MOVING,
		.begun_ms = m->target.begun_ms,
		.other = url_cut(m->o->to_url),
		.keep = m->o->keep,
	};
	struct catalog_db db;

	TRY(catalog_mover_expect(m, tx, &m->source));
	TRY(catalog_description_get(tx, m->o->space, m->o->name, &db, m->err));
	TRY(catalog_db_check_writable(&db, m->err));
	db.fence = CATALOG_FENCE_MOVING;
	memcpy(move.id, m->id, sizeof(move.id));
	TRY(catalog_description_set(tx, &db));
	TRY(catalog_move_set(tx, &move));
	return kv_touch_metadata_version(tx);
}

static enum status
step_fence(struct mover *m)
{
	if (!m->reserved || memcmp(m->target.id, m->id, sizeof(m->id)) != 0)
		return step_reserve(m);
	return kv_run(m->o->from, fence_body, m, NULL, m->err);
}

static enum status
step_copy(struct mover *m)
{
	return catalog_move_copy(m);
}

/* At the source: declares that the copy is the database now. This cannot be undone. */
static enum status
hand_over_body(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;
	struct catalog_move move = m->source;

	TRY(catalog_mover_expect(m, tx, &m->source));
	move.state = CATALOG_MOVE_HANDED_OVER;
	move.keep = move.keep || m->o->keep;
	return catalog_move_set(tx, &move);
}

/* What the database shares with others of its kind is to be at the target before it is. */
static enum status
mover_share(struct mover *m)
{
	if (!m->db.kind->move_share)
		return STATUS_OK;
	return m->db.kind->move_share(m->o->from, m->o->to, &m->db, m->err);
}

static enum status
step_hand_over(struct mover *m)
{
	TRY(mover_share(m));
	return kv_run(m->o->from, hand_over_body, m, NULL, m->err);
}

/* At the target: gives the copy its name. */
/* Lets the kind make what it keeps outside of the database's keys. */
static enum status
mover_tell_arrival(struct mover *m, struct kv_tx *tx, struct catalog_db db)
{
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;

	tuple_put_u64(&prefix, db.number);
	TRY(catalog_key_status(&prefix));
	db.prefix = buf_str(&prefix);
	db.extension = NULL;
	return db.kind->move_arrive(tx, &db, m->err);
}

static enum status
make_live_body(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;
	struct catalog_move move = m->target;
	struct catalog_db db = m->db;
	struct catalog_db there;
	enum status status;

	TRY(catalog_mover_expect(m, tx, &m->target));
	status = catalog_description_get(tx, m->o->space, m->o->name, &there, NULL);
	if (status != STATUS_NOT_FOUND)
		return status == STATUS_OK ? STATUS_CORRUPT : status;
	db.number = move.number;
	db.fence = CATALOG_FENCE_NONE;
	TRY(catalog_store_incarnation(tx, &db.incarnation));
	TRY(catalog_description_set(tx, &db));
	TRY(catalog_event_put(tx, db.kind, db.name, CATALOG_EVENT_CREATED, db.incarnation));
	if (db.kind->move_arrive)
		TRY(mover_tell_arrival(m, tx, db));
	move.state = CATALOG_MOVE_LIVE;
	TRY(catalog_move_set(tx, &move));
	return kv_touch_metadata_version(tx);
}

static enum status
step_make_live(struct mover *m)
{
	/*
	 * The database gets the Incarnation of the store. This call first raises it above every
	 * Incarnation that the database has had.
	 */
	TRY(mover_share(m));
	TRY(catalog_incarnations_raise_to(m->o->to, m->incarnation, m->err));
	return kv_run(m->o->to, make_live_body, m, NULL, m->err);
}

/* At the source: removes the database, or keeps it for reading only. */
static enum status
leave_body(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;
	struct catalog_db db;

	TRY(catalog_mover_expect(m, tx, &m->source));
	TRY(catalog_description_get(tx, m->o->space, m->o->name, &db, m->err));
	TRY(catalog_move_clear(tx, m->o->space, m->o->name));
	if (!m->source.keep && !m->o->keep)
		return catalog_remove(tx, &db, 0);
	db.fence = CATALOG_FENCE_KEPT;
	TRY(catalog_description_set(tx, &db));
	return kv_touch_metadata_version(tx);
}

static enum status
step_leave(struct mover *m)
{
	return kv_run(m->o->from, leave_body, m, NULL, m->err);
}

/*
 * Clears the keys of databases that are deleted in this store: of the database at the source, or of
 * a discarded copy.
 */
static enum status
clear_rest(struct mover *m, struct kv_store *store)
{
	struct catalog_sweeping sweeping = { .store = store };
	bool more = true;

	while (more) {
		TRY(catalog_drop_clear(&sweeping, &more, m->err));
		TRY(catalog_move_tell(m, CATALOG_MOVE_PHASE_END, &m->sum, 0));
	}
	return STATUS_OK;
}

/* At the target: removes the record. The copy is then a database like any other. */
static enum status
forget_body(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;

	TRY(catalog_mover_expect(m, tx, &m->target));
	return catalog_move_clear(tx, m->o->space, m->o->name);
}

static enum status
step_forget(struct mover *m)
{
	TRY(clear_rest(m, m->o->from));
	return kv_run(m->o->to, forget_body, m, NULL, m->err);
}

/* ---- Which one comes next ---- */

static const struct step {
	enum catalog_move_state source;
	enum catalog_move_state target;
	enum status (*run)(struct mover *m);
	bool last;
} steps[] = {
	{ CATALOG_MOVE_NONE, CATALOG_MOVE_NONE, step_reserve, false },
	{ CATALOG_MOVE_NONE, CATALOG_MOVE_RESERVED, step_fence, false },
	{ CATALOG_MOVE_MOVING, CATALOG_MOVE_RESERVED, step_copy, false },
	{ CATALOG_MOVE_MOVING, CATALOG_MOVE_COPYING, step_copy, false },
	{ CATALOG_MOVE_MOVING, CATALOG_MOVE_COPIED, step_hand_over, false },
	{ CATALOG_MOVE_HANDED_OVER, CATALOG_MOVE_COPIED, step_make_live, false },
	{ CATALOG_MOVE_HANDED_OVER, CATALOG_MOVE_LIVE, step_leave, false },
	{ CATALOG_MOVE_NONE, CATALOG_MOVE_LIVE, step_forget, true },
};

static bool
is_same_move(const struct mover *m)
{
	return m->source.state == CATALOG_MOVE_NONE || m->target.state == CATALOG_MOVE_NONE ||
	       memcmp(m->source.id, m->target.id, sizeof(m->source.id)) == 0;
}

/* Explains why no step continues from the two records: they belong to different moves. */
static enum status
move_explain_no_step(const struct mover *m)
{
	const struct catalog_move *source = &m->source;
	const struct catalog_move *target = &m->target;

	if (source->state >= CATALOG_MOVE_RESERVED)
		return err_set(m->err, STATUS_LOCKED,
			       "the database \"%.*s\" is itself being moved, from %.*s: finish "
			       "that first",
			       STR_ARG(m->o->name), STR_ARG(source->other));
	if (source->state != CATALOG_MOVE_NONE)
		return err_set(m->err, STATUS_LOCKED,
			       "the database \"%.*s\" is being moved already, to %.*s: name that "
			       "store%s",
			       STR_ARG(m->o->name), STR_ARG(source->other),
			       source->state == CATALOG_MOVE_MOVING ? ", or roll it back" : "");
	if (target->state == CATALOG_MOVE_MOVING || target->state == CATALOG_MOVE_HANDED_OVER)
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
	return move_explain_no_step(m);
}

static enum status
move_on(struct mover *m)
{
	bool last = false;

	TRY(mover_look(m));
	while (!last) {
		enum catalog_move_phase phase;

		TRY(step_forward(m, &last));
		TRY(mover_look(m));
		phase = m->source.state == CATALOG_MOVE_HANDED_OVER ? CATALOG_MOVE_PHASE_END
								    : CATALOG_MOVE_PHASE_BEGIN;
		if (!last)
			TRY(catalog_move_tell(m, phase, &m->sum, 0));
	}
	return STATUS_OK;
}

/* ---- Back ---- */

/* At the source: makes the database writable again. The move can then no longer be handed over. */
static enum status
unfence_body(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;
	struct catalog_db db;

	TRY(catalog_mover_expect(m, tx, &m->source));
	TRY(catalog_description_get(tx, m->o->space, m->o->name, &db, m->err));
	db.fence = CATALOG_FENCE_NONE;
	TRY(catalog_description_set(tx, &db));
	TRY(catalog_move_clear(tx, m->o->space, m->o->name));
	return kv_touch_metadata_version(tx);
}

/* At the target: discards the copy as if it were a deleted database. */
static enum status
discard_body(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;
	const struct catalog_kind *kind = catalog_kind_find(m->target.kind);

	if (!kind)
		return err_set(m->err, STATUS_NEWER,
			       "the database was written by a newer frond: it is of kind %llu, "
			       "which this one does not have",
			       (unsigned long long)m->target.kind);
	TRY(catalog_mover_expect(m, tx, &m->target));
	TRY(catalog_drop_begin(tx, kind, m->target.number, 0));
	return catalog_move_clear(tx, m->o->space, m->o->name);
}

static bool
can_be_discarded(enum catalog_move_state target)
{
	return target == CATALOG_MOVE_RESERVED || target == CATALOG_MOVE_COPYING ||
	       target == CATALOG_MOVE_COPIED;
}

static enum status
roll_back(struct mover *m)
{
	bool mine;

	TRY(mover_look(m));
	mine = is_same_move(m);
	if (m->source.state == CATALOG_MOVE_HANDED_OVER ||
	    (m->source.state == CATALOG_MOVE_NONE && m->target.state == CATALOG_MOVE_LIVE))
		return err_set(m->err, STATUS_FORBIDDEN,
			       "all of it is at the target already: it cannot be rolled back, "
			       "only finished, by the same without --rollback");
	if (m->source.state == CATALOG_MOVE_NONE && m->target.state == CATALOG_MOVE_NONE)
		return err_set(m->err, STATUS_NOT_FOUND, "no move of \"%.*s\" is under way",
			       STR_ARG(m->o->name));
	if (m->source.state != CATALOG_MOVE_MOVING && m->source.state != CATALOG_MOVE_NONE)
		return move_explain_no_step(m);
	/* If the source has no record, only its URL tells whether the copy was made from it. */
	if (m->source.state == CATALOG_MOVE_NONE &&
	    (!can_be_discarded(m->target.state) ||
	     !str_eq(m->target.other, url_cut(m->o->from_url))))
		return move_explain_no_step(m);
	if (m->source.state == CATALOG_MOVE_MOVING)
		TRY(kv_run(m->o->from, unfence_body, m, NULL, m->err));
	if (!mine || !can_be_discarded(m->target.state))
		return STATUS_OK;
	TRY(catalog_move_tell(m, CATALOG_MOVE_PHASE_END, &m->sum, 0));
	TRY(kv_run(m->o->to, discard_body, m, NULL, m->err));
	return clear_rest(m, m->o->to);
}

/* ---- Both ---- */

static enum status
mover_run(const struct catalog_move_options *options, enum status (*fn)(struct mover *m),
	  struct catalog_move_sum *ret, struct err *err)
{
	struct mover m = {
		.o = options,
		.err = err,
		.arena = arena_new(CATALOG_MOVE_ARENA_BYTES),
		.page = arena_new(CATALOG_MOVE_ARENA_BYTES),
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
catalog_move(const struct catalog_move_options *options, struct catalog_move_sum *ret,
	     struct err *err)
{
	return mover_run(options, move_on, ret, err);
}

enum status
catalog_move_rollback(const struct catalog_move_options *options, struct err *err)
{
	return mover_run(options, roll_back, NULL, err);
}

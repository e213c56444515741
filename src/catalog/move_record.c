/*
 * The records of databases that are being moved:
 *
 *     format 1: (1, state, id, begun, other store, …)             of a revisioned database
 *     format 2: (2, kind, state, id, begun, other store, …)       of any other
 *
 * At the source the rest is whether the database is kept there. At the target the rest is the
 * number of the copy, the cursor, and the sums over what was copied.
 */
#include <assert.h>

#include "catalog/format.h"
#include "catalog/move_int.h"
#include "kv/keyspace.h"

enum {
	MOVE_FORMAT_KIND = 2,
	MOVE_FORMAT = 2, /* the newest */
	RECORD_BYTES = KV_LIMIT_KEY_BYTES + CATALOG_MOVE_URL_BYTES + 1024,
};

static const char *const state_names[CATALOG_MOVE_STATES] = {
	[CATALOG_MOVE_NONE] = "none",
	[CATALOG_MOVE_MOVING] = "moving",
	[CATALOG_MOVE_HANDED_OVER] = "handed_over",
	[CATALOG_MOVE_RESERVED] = "reserved",
	[CATALOG_MOVE_COPYING] = "copying",
	[CATALOG_MOVE_COPIED] = "copied",
	[CATALOG_MOVE_LIVE] = "live",
};

const char *
catalog_move_state_name(enum catalog_move_state state)
{
	return state_names[state];
}

static bool
is_target(enum catalog_move_state state)
{
	return state >= CATALOG_MOVE_RESERVED;
}

static enum status
record_key(struct buf *key, enum catalog_space space, struct str name)
{
	catalog_key_name(key, KV_ROOT_MOVES, space, name);
	return catalog_key_status(key);
}

/* ---- Values ---- */

static enum status
move_state_parse(struct tuple_reader *r, enum catalog_move_state *ret)
{
	struct tuple_elem e;

	if (tuple_next(r, &e) != STATUS_OK || e.kind != TUPLE_STRING)
		return STATUS_CORRUPT;
	for (int state = CATALOG_MOVE_MOVING; state < CATALOG_MOVE_STATES; state++)
		if (str_eq(e.raw, str_from_cstr(state_names[state]))) {
			*ret = (enum catalog_move_state)state;
			return STATUS_OK;
		}
	return STATUS_CORRUPT;
}

static enum status
move_target_parse(struct tuple_reader *r, struct arena *arena, struct catalog_move *ret)
{
	TRY(tuple_next_u64(r, &ret->number));
	TRY(catalog_next_text(r, TUPLE_BYTES, arena, true, &ret->cursor));
	TRY(tuple_next_u64(r, &ret->sum.documents));
	TRY(tuple_next_u64(r, &ret->sum.keys));
	TRY(tuple_next_u64(r, &ret->sum.bytes));
	TRY(tuple_next_u64(r, &ret->sum.fingerprint));
	return ret->number < 1 ? STATUS_CORRUPT : STATUS_OK;
}

enum status
catalog_move_parse(struct str value, struct arena *arena, struct catalog_move *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	struct catalog_move move = { .space = ret->space, .name = ret->name };
	struct tuple_elem id;
	uint64_t format;

	TRY(catalog_format_next(&r, "record of the database's move", MOVE_FORMAT, &format, err));
	move.kind = CATALOG_KIND_REVISIONED;
	if (format >= MOVE_FORMAT_KIND)
		TRY(tuple_next_u64(&r, &move.kind));
	TRY(move_state_parse(&r, &move.state));
	if (tuple_next(&r, &id) != STATUS_OK || id.kind != TUPLE_UUID)
		return STATUS_CORRUPT;
	memcpy(move.id, id.raw.ptr, sizeof(move.id));
	TRY(tuple_next_u64(&r, &move.begun_ms));
	TRY(catalog_next_text(&r, TUPLE_STRING, arena, true, &move.other));
	if (is_target(move.state))
		TRY(move_target_parse(&r, arena, &move));
	else
		TRY(tuple_next_bool(&r, &move.keep));
	if (r.rest.len)
		return STATUS_CORRUPT;
	*ret = move;
	return STATUS_OK;
}

void
catalog_move_put(const struct catalog_move *move, struct buf *value)
{
	bool plain = move->kind == CATALOG_KIND_REVISIONED;

	assert(move->kind);
	tuple_put_u64(value, plain ? 1 : MOVE_FORMAT_KIND);
	if (!plain)
		tuple_put_u64(value, move->kind);
	tuple_put_str(value, str_from_cstr(state_names[move->state]));
	tuple_put_uuid(value, move->id);
	tuple_put_u64(value, move->begun_ms);
	tuple_put_str(value, move->other);
	if (!is_target(move->state)) {
		tuple_put_bool(value, move->keep);
		return;
	}
	tuple_put_u64(value, move->number);
	tuple_put_bytes(value, move->cursor);
	tuple_put_u64(value, move->sum.documents);
	tuple_put_u64(value, move->sum.keys);
	tuple_put_u64(value, move->sum.bytes);
	tuple_put_u64(value, move->sum.fingerprint);
}

/* ---- One record ---- */

enum status
catalog_move_get(struct kv_tx *tx, enum catalog_space space, struct str name, struct arena *arena,
		 struct catalog_move *ret, struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct catalog_move move = { .space = space, .name = name };
	struct kv_future *f;
	struct str value;

	TRY(record_key(&key, space, name));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (kv_future_value(f, &value))
		TRY(catalog_move_parse(value, arena, &move, err));
	*ret = move;
	return STATUS_OK;
}

enum status
catalog_move_set(struct kv_tx *tx, const struct catalog_move *move)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(2 * RECORD_BYTES);

	TRY(record_key(&key, move->space, move->name));
	catalog_move_put(move, &value);
	TRY(buf_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

enum status
catalog_move_clear(struct kv_tx *tx, enum catalog_space space, struct str name)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	TRY(record_key(&key, space, name));
	return kv_clear(tx, buf_str(&key));
}

enum status
catalog_move_expect(struct kv_tx *tx, const struct catalog_move *move, struct arena *arena,
		    struct catalog_move *ret, struct err *err)
{
	struct catalog_move now;

	TRY(catalog_move_get(tx, move->space, move->name, arena, &now, err));
	if (now.state != move->state || memcmp(now.id, move->id, sizeof(now.id)) != 0 ||
	    !str_eq(now.cursor, move->cursor))
		return err_set(err, STATUS_LOCKED,
			       "somebody else has gone on with this move, or has undone it");
	*ret = now;
	return STATUS_OK;
}

enum status
catalog_mover_expect(struct mover *m, struct kv_tx *tx, const struct catalog_move *move)
{
	struct arena_mark mark = arena_mark(m->arena);
	struct catalog_move now;
	enum status status = catalog_move_expect(tx, move, m->arena, &now, m->err);

	arena_reset(m->arena, mark);
	return status;
}

enum status
catalog_move_check_absent(struct kv_tx *tx, enum catalog_space space, struct str name,
			  struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	enum catalog_move_state state;
	uint64_t format, kind;
	struct tuple_reader r;
	struct kv_future *f;
	struct str value;

	TRY(record_key(&key, space, name));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_OK;
	r = tuple_reader(value);
	TRY(catalog_format_next(&r, "record of the database's move", MOVE_FORMAT, &format, err));
	if (format >= MOVE_FORMAT_KIND)
		TRY(tuple_next_u64(&r, &kind));
	TRY(move_state_parse(&r, &state));
	/* the move is complete here, and the database has been deleted since */
	if (state == CATALOG_MOVE_LIVE)
		return STATUS_OK;
	return err_set(err, STATUS_UNAVAILABLE,
		       "A database of this name is being moved here from another store.");
}

/* ---- All records ---- */

struct moves_reading {
	struct arena *arena;
	struct catalog_move *moves;
	size_t count;
	size_t cap;
	struct err *err;
};

static enum status
moves_take_record(void *arg, struct tuple_reader key, struct str value)
{
	struct moves_reading *r = arg;
	struct catalog_move move = { 0 };

	TRY(catalog_key_name_next(key, r->arena, &move.space, &move.name));
	TRY(catalog_move_parse(value, r->arena, &move, r->err));
	TRY(catalog_array_grow(r->arena, (void **)&r->moves, sizeof(*r->moves), r->count, &r->cap));
	r->moves[r->count++] = move;
	return STATUS_OK;
}

enum status
catalog_moves_read(struct kv_tx *tx, struct arena *arena, struct catalog_move **ret,
		   size_t *ret_count, struct err *err)
{
	struct moves_reading r = { .arena = arena, .err = err };

	TRY(catalog_root_scan(tx, KV_ROOT_MOVES, moves_take_record, &r));
	*ret = r.moves;
	*ret_count = r.count;
	return STATUS_OK;
}

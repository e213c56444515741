/* What stores remember of databases that are being moved. */
#include "kv/keyspace.h"
#include "model/revisioned/move_int.h"

enum {
	RECORD_BYTES = KV_LIMIT_KEY_BYTES + REV_MOVE_URL_BYTES + 1024,
};

static const char *const state_names[REV_MOVE_STATES] = {
	[REV_MOVE_NONE] = "none",
	[REV_MOVE_MOVING] = "moving",
	[REV_MOVE_HANDED_OVER] = "handed_over",
	[REV_MOVE_RESERVED] = "reserved",
	[REV_MOVE_COPYING] = "copying",
	[REV_MOVE_COPIED] = "copied",
	[REV_MOVE_LIVE] = "live",
};

const char *
rev_move_state_name(enum rev_move_state state)
{
	return state_names[state];
}

static bool
is_target(enum rev_move_state state)
{
	return state >= REV_MOVE_RESERVED;
}

static enum status
record_key(struct buf *key, struct str name)
{
	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_MOVES);
	tuple_put_str(key, name);
	return rev_key_status(key);
}

/* ---- Values ---- */

static enum status
state_parse(struct tuple_reader *r, enum rev_move_state *ret)
{
	struct tuple_elem e;

	if (tuple_next(r, &e) != STATUS_OK || e.kind != TUPLE_STRING)
		return STATUS_CORRUPT;
	for (int state = REV_MOVE_MOVING; state < REV_MOVE_STATES; state++)
		if (str_eq(e.raw, str_from_cstr(state_names[state]))) {
			*ret = (enum rev_move_state)state;
			return STATUS_OK;
		}
	return STATUS_CORRUPT;
}

static enum status
target_parse(struct tuple_reader *r, struct arena *arena, struct rev_move *ret)
{
	TRY(tuple_next_u64(r, &ret->number));
	TRY(rev_next_text(r, TUPLE_BYTES, arena, true, &ret->cursor));
	TRY(tuple_next_u64(r, &ret->sum.documents));
	TRY(tuple_next_u64(r, &ret->sum.keys));
	TRY(tuple_next_u64(r, &ret->sum.bytes));
	TRY(tuple_next_u64(r, &ret->sum.fingerprint));
	return ret->number < 1 ? STATUS_CORRUPT : STATUS_OK;
}

enum status
rev_move_parse(struct str value, struct arena *arena, struct rev_move *ret)
{
	struct tuple_reader r = tuple_reader(value);
	struct rev_move move = { .name = ret->name };
	struct tuple_elem id;

	TRY(rev_next_format(&r));
	TRY(state_parse(&r, &move.state));
	if (tuple_next(&r, &id) != STATUS_OK || id.kind != TUPLE_UUID)
		return STATUS_CORRUPT;
	memcpy(move.id, id.raw.ptr, sizeof(move.id));
	TRY(tuple_next_u64(&r, &move.begun_ms));
	TRY(rev_next_text(&r, TUPLE_STRING, arena, true, &move.other));
	if (is_target(move.state))
		TRY(target_parse(&r, arena, &move));
	else
		TRY(tuple_next_bool(&r, &move.keep));
	if (r.rest.len)
		return STATUS_CORRUPT;
	*ret = move;
	return STATUS_OK;
}

static void
put_value(struct buf *value, const struct rev_move *move)
{
	tuple_put_u64(value, REV_FORMAT);
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
rev_move_get(struct kv_tx *tx, struct str name, struct arena *arena, struct rev_move *ret)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	struct rev_move move = { .name = name };
	struct kv_future *f;
	struct str value;

	TRY(record_key(&key, name));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (kv_future_value(f, &value))
		TRY(rev_move_parse(value, arena, &move));
	*ret = move;
	return STATUS_OK;
}

enum status
rev_move_set(struct kv_tx *tx, const struct rev_move *move)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(2 * RECORD_BYTES);

	TRY(record_key(&key, move->name));
	put_value(&value, move);
	TRY(buf_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

enum status
rev_move_clear(struct kv_tx *tx, struct str name)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;

	TRY(record_key(&key, name));
	return kv_clear(tx, buf_str(&key));
}

enum status
rev_move_expect(struct kv_tx *tx, const struct rev_move *move, struct arena *arena,
		struct rev_move *ret, struct err *err)
{
	struct rev_move now;

	TRY(rev_move_get(tx, move->name, arena, &now));
	if (now.state != move->state || memcmp(now.id, move->id, sizeof(now.id)) != 0 ||
	    !str_eq(now.cursor, move->cursor))
		return err_set(err, STATUS_LOCKED,
			       "somebody else has gone on with this move, or has undone it");
	*ret = now;
	return STATUS_OK;
}

enum status
rev_move_check_absent(struct kv_tx *tx, struct str name, struct err *err)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	enum rev_move_state state;
	struct tuple_reader r;
	struct kv_future *f;
	struct str value;

	TRY(record_key(&key, name));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_OK;
	r = tuple_reader(value);
	TRY(rev_next_format(&r));
	TRY(state_parse(&r, &state));
	if (state == REV_MOVE_LIVE) /* it has come, and has been deleted since */
		return STATUS_OK;
	return err_set(err, STATUS_UNAVAILABLE,
		       "A database of this name is being moved here from another store.");
}

/* ---- All records ---- */

struct reading {
	struct arena *arena;
	struct rev_move *moves;
	size_t count;
	size_t cap;
};

static enum status
take_record(void *arg, struct tuple_reader key, struct str value)
{
	struct reading *r = arg;
	struct rev_move move = { 0 };

	TRY(rev_next_text(&key, TUPLE_STRING, r->arena, true, &move.name));
	TRY(rev_move_parse(value, r->arena, &move));
	TRY(rev_array_grow(r->arena, (void **)&r->moves, sizeof(*r->moves), r->count, &r->cap));
	r->moves[r->count++] = move;
	return STATUS_OK;
}

enum status
rev_moves_read(struct kv_tx *tx, struct arena *arena, struct rev_move **ret, size_t *ret_count)
{
	struct reading r = { .arena = arena };

	TRY(rev_root_scan(tx, KV_ROOT_MOVES, take_record, &r));
	*ret = r.moves;
	*ret_count = r.count;
	return STATUS_OK;
}

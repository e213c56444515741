/* DUMP and RESTORE: keys of any type as payloads of RDB, which rdb/ reads and writes. */
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/data.h"
#include "rdb/items/rdb_items.h"

enum {
	FREQUENCY_MOST = 255,
};

enum status
cmd_dump(struct call *c)
{
	AUTO(buf_release)
	struct buf payload = BUF_INIT_OF(DATA_VALUE_BYTES, arena_part(c->arena));
	struct timed_item *item;

	TRY(txn_item(c, c->argv[1], &item));
	if (item->type == TIMED_LEAF) {
		reply_null(c->reply);
		return STATUS_OK;
	}
	if (item->type == TIMED_JSON)
		return call_error(c, STR("ERR documents are not dumped; JSON.GET reads them"));
	TRY(rdb_dump(item, &payload));
	reply_bulk(c->reply, buf_str(&payload));
	return STATUS_OK;
}

struct restore_options {
	bool replace;
	bool absolute;
	bool has_idle; /* the two exclude each other, and change nothing: nothing is evicted */
	bool has_frequency;
};

static enum status
restore_parse(struct call *c, struct restore_options *ret)
{
	int64_t n;

	*ret = (struct restore_options){ .replace = false };
	for (size_t i = 4; i < c->argc; i++) {
		bool more = i + 1 < c->argc;

		if (call_arg_is(c, i, "replace")) {
			ret->replace = true;
		} else if (call_arg_is(c, i, "absttl")) {
			ret->absolute = true;
		} else if (more && !ret->has_frequency && call_arg_is(c, i, "idletime")) {
			TRY(call_int(c, ++i, &n));
			if (n < 0)
				return call_error(c, STR("ERR Invalid IDLETIME value, must be "
							 ">= 0"));
			ret->has_idle = true;
		} else if (more && !ret->has_idle && call_arg_is(c, i, "freq")) {
			TRY(call_int(c, ++i, &n));
			if (n < 0 || n > FREQUENCY_MOST)
				return call_error(c, STR("ERR Invalid FREQ value, must be >= 0 and "
							 "<= 255"));
			ret->has_frequency = true;
		} else {
			return call_syntax_error(c);
		}
	}
	return STATUS_OK;
}

/* When the key expires, by the time of the database; 0: never. */
static enum status
restore_expiry(struct call *c, bool absolute, int64_t *ret_ms)
{
	uint64_t now_ms;

	TRY(call_int(c, 2, ret_ms));
	if (*ret_ms < 0)
		return call_error(c, STR("ERR Invalid TTL value, must be >= 0"));
	TRY(txn_now_ms(c, &now_ms));
	if (!*ret_ms)
		return STATUS_OK;
	if (__builtin_add_overflow(*ret_ms, absolute ? txn_ahead_ms(c) : (int64_t)now_ms, ret_ms))
		return call_error(c, STR("ERR Invalid TTL value, must be >= 0"));
	if (*ret_ms <= 0)
		*ret_ms = 1;
	return STATUS_OK;
}

/* Checks all of the value, before anything is written. */
static enum status
restore_check(struct call *c, struct str value)
{
	struct err reason = { 0 };
	struct rdb_input in = { .rest = str_skip(value, 1), .arena = c->arena, .err = &reason };
	struct arena_mark mark = arena_mark(c->arena);
	uint64_t parts = 0;
	struct rdb_value v;
	enum status status;

	if (value.len == 0)
		return call_error(c, STR("ERR Bad data format"));
	status = rdb_value_begin(&in, (uint8_t)value.ptr[0], &v);
	if (status == STATUS_OK)
		status = rdb_value_skip(&v, &parts);
	arena_reset(c->arena, mark);
	if (status == STATUS_INVALID || (status == STATUS_OK && (!parts || in.rest.len)))
		return call_error(c, STR("ERR Bad data format"));
	return status;
}

/* Puts the value in the place of what is there. False in `*ret_there`: it has expired already. */
static enum status
restore_put(struct call *c, struct timed_item *item, struct str value, int64_t expires_ms,
	    bool *ret_there)
{
	struct rdb_input in = { .rest = str_skip(value, 1), .err = c->x->err };
	uint64_t now_ms;

	TRY(txn_now_ms(c, &now_ms));
	if (item->type != TIMED_LEAF)
		TRY(timed_item_delete(item));
	*ret_there = false;
	if (expires_ms && (uint64_t)expires_ms <= now_ms)
		return STATUS_OK;
	TRY(rdb_restore(&in, (uint8_t)value.ptr[0], item));
	/* All fields of a hash may have expired. */
	*ret_there = item->type != TIMED_LEAF;
	return *ret_there && expires_ms ? timed_item_expire(item, data_expiry(expires_ms))
					: STATUS_OK;
}

enum status
cmd_restore(struct call *c)
{
	struct restore_options o;
	bool was_there, there;
	struct timed_item *item;
	int64_t expires_ms;
	struct str value;

	TRY(restore_parse(c, &o));
	TRY(txn_item(c, c->argv[1], &item));
	was_there = item->type != TIMED_LEAF;
	if (was_there && !o.replace)
		return call_error(c, STR("BUSYKEY Target key name already exists."));
	TRY(restore_expiry(c, o.absolute, &expires_ms));
	if (!rdb_payload_is_sound(c->argv[3], &value))
		return call_error(c, STR("ERR DUMP payload version or checksum are wrong"));
	TRY(restore_check(c, value));
	TRY(restore_put(c, item, value, expires_ms, &there));
	reply_ok(c->reply);
	if (there && was_there)
		TRY(txn_is_new(c, c->db, c->argv[1]));
	if (there || was_there)
		TRY(txn_changed(c, c->argv[1], EVENT_GENERIC, there ? "restore" : "del"));
	return STATUS_OK;
}

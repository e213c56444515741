/*
 * /_frond/operations and /_frond/slow: views of the registry that all doors have (serve/ops.h).
 * What clients have sent is never shown, since it may have passwords and documents.
 */
#include "base/clock.h"
#include "doc/json_value.h"
#include "door/couch/look/look.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/reply.h"
#include "serve/clients.h"
#include "serve/ops.h"

struct listing {
	struct buf *out;
	uint64_t now_ns;
	size_t count;
	size_t left_out;
};

/* ---- What runs ---- */

/* With locks: it only writes into memory that is there or is taken at once. */
static void
put_operation(void *arg, const struct clients_view *v)
{
	struct listing *l = arg;
	struct buf *out = l->out;
	const struct ops_op *op = v->op;
	uint64_t took_ns = l->now_ns > op->began_ns ? l->now_ns - op->began_ns : 0;

	if (l->count == LOOK_OPERATIONS) {
		l->left_out++;
		return;
	}
	buf_printf(out, "%s{\"id\":%llu,\"door\":\"%s\",\"name\":", l->count++ ? ",\n" : "",
		   (unsigned long long)atomic_load_explicit(&op->id, memory_order_relaxed),
		   op->door->name);
	look_write_text(out, op->name);
	buf_append_cstr(out, ",\"on\":");
	look_write_text(out, op->on);
	if (op->on_more.len) {
		buf_append_cstr(out, ",\"more\":");
		look_write_text(out, op->on_more);
	}
	buf_append_cstr(out, ",\"user\":");
	look_write_text(out, v->user);
	buf_append_cstr(out, ",\"peer\":");
	look_write_text(out, v->peer ? str_from_cstr(v->peer) : STR(""));
	buf_printf(out, ",\"ms\":%.1f}", (double)took_ns / 1e6);
}

enum status
look_operations(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct listing l = { .out = &out, .now_ns = clock_mono_ns() };

	buf_append_cstr(&out, "{\"operations\":[");
	clients_each_op(NULL, put_operation, &l);
	buf_printf(&out, "],\"left_out\":%zu}", l.left_out);
	return couch_reply(r, 200, &out);
}

static bool
may_end(void *arg, const struct clients_view *v)
{
	bool *found = arg;

	(void)v;
	*found = true;
	return true;
}

enum status
look_end_operation(struct couch_req *r)
{
	const struct json_value *end;
	struct json_member *members;
	bool found = false;
	uint64_t id;
	size_t count;

	TRY(couch_read_object(r, COUCH_SMALL_BODY_BYTES, &members, &count));
	end = json_value_find(members, count, "end");
	if (!end || end->kind != JSON_NUMBER || !end->is_integer || !str_to_u64(end->text, &id))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`end` must be the number of an operation.");
	clients_end_op(id, may_end, &found);
	if (!found)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND,
				      "There is no such operation any more.");
	return couch_reply_ok(r, 202);
}

/* ---- What was slow ---- */

/* With a lock, likewise. */
static void
put_slow(void *arg, const struct recent_entry *entry)
{
	const struct ops_slow_entry *e = (const struct ops_slow_entry *)entry;
	struct listing *l = arg;

	buf_printf(l->out, "%s{\"time\":%llu,\"door\":\"%s\",\"ms\":%.1f,\"peer\":",
		   l->count++ ? ",\n" : "", (unsigned long long)e->time_ms, e->door->name,
		   (double)e->took_ns / 1e6);
	look_write_text(l->out, e->peer);
	buf_append_cstr(l->out, ",\"line\":");
	look_write_text(l->out, e->line);
	buf_append_byte(l->out, '}');
}

enum status
look_slow(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct listing l = { .out = &out };

	buf_append_cstr(&out, "{\"slow\":[");
	ops_each_slow(put_slow, &l);
	buf_append_cstr(&out, "]}");
	return couch_reply(r, 200, &out);
}

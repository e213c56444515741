#include "door/redis/txn/slow.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "door/redis/txn/redis_int.h"

/* A command that was slow. */
struct slow_entry {
	struct recent_entry entry; /* first */
	uint64_t time_s;
	uint64_t micros;
	char peer[CLIENTS_PEER_BYTES];
	char name[64];
	struct str args; /* behind the struct: RESP, as SLOWLOG GET answers it */
};

enum {
	ENTRY_BYTES = 2 * REDIS_ARGS_SHOWN * (REDIS_BYTES_SHOWN + 64),
};

/* The arguments as SLOWLOG GET answers them, in the words of Redis where they are too long. */
static void
slow_write_args(const struct unit *u, struct buf *out)
{
	struct reply reply = { .out = out, .version = 2 };
	size_t shown = u->argc <= REDIS_ARGS_SHOWN ? u->argc : REDIS_ARGS_SHOWN - 1;

	reply_array(&reply, shown < u->argc ? shown + 1 : shown);
	for (size_t i = 0; i < shown; i++) {
		char text[REDIS_BYTES_SHOWN + 64];
		struct str arg = u->argv[i];

		if (arg.len <= REDIS_BYTES_SHOWN) {
			reply_bulk(&reply, arg);
			continue;
		}
		memcpy(text, arg.ptr, REDIS_BYTES_SHOWN);
		snprintf(text + REDIS_BYTES_SHOWN, 64, "... (%zu more bytes)",
			 arg.len - REDIS_BYTES_SHOWN);
		reply_bulk(&reply, str_from_cstr(text));
	}
	if (shown < u->argc) {
		char text[64];

		snprintf(text, sizeof(text), "... (%zu more arguments)", u->argc - shown);
		reply_bulk(&reply, str_from_cstr(text));
	}
}

static void
slow_copy_name(void *arg, struct clients_entry *client)
{
	struct slow_entry *e = arg;

	snprintf(e->name, sizeof(e->name), "%.*s", STR_ARG(buf_str(&client->name)));
}

static void
slow_keep(struct redis *r, struct client *c, const struct unit *u, uint64_t micros, uint64_t most)
{
	AUTO(buf_release) struct buf args = BUF_INIT(ENTRY_BYTES);
	struct slow_entry *e;

	slow_write_args(u, &args);
	e = buf_status(&args) == STATUS_OK ? mem_zalloc(sizeof(*e) + args.len) : NULL;
	if (!e)
		return;
	e->time_s = clock_wall_ms() / 1000;
	e->micros = micros;
	memcpy(e + 1, args.ptr, args.len);
	e->args = str_of(e + 1, args.len);
	snprintf(e->peer, sizeof(e->peer), "%s", c->entry.peer);
	clients_see(&c->entry, slow_copy_name, e);
	recent_add(&r->slow, &e->entry, most, NULL, 0);
}

void
slow_note(struct redis *r, struct client *c, const struct unit *u, uint64_t now_ns)
{
	uint64_t limit = atomic_load_explicit(&r->slow_us, memory_order_relaxed);
	uint64_t micros = (now_ns - u->began_ns) / 1000;
	uint64_t most;

	if (limit == UINT64_MAX || micros < limit)
		return;
	most = atomic_load(&r->slow_max);
	if (most)
		slow_keep(r, c, u, micros, most);
}

static void
slow_begin(void *reply, size_t count)
{
	reply_array(reply, count);
}

static void
slow_show(void *reply, const struct recent_entry *entry)
{
	const struct slow_entry *e = (const struct slow_entry *)entry;
	struct reply *r = reply;

	reply_array(r, 6);
	reply_int(r, (int64_t)entry->number);
	reply_int(r, (int64_t)e->time_s);
	reply_int(r, (int64_t)e->micros);
	buf_append_str(r->out, e->args);
	reply_bulk_cstr(r, e->peer);
	reply_bulk_cstr(r, e->name);
}

void
slow_get(struct redis *r, int64_t most, struct reply *reply)
{
	recent_show(&r->slow, most < 0 ? UINT64_MAX : (uint64_t)most, slow_begin, slow_show, reply);
}

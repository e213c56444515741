#include "door/redis/txn/slow.h"

#include <stdio.h>

#include "door/redis/acl/subcommand.h"
#include "door/redis/txn/latency.h"
#include "door/redis/txn/redis_int.h"

enum {
	MORE_BYTES = 64,
	ARGS_BYTES = 2 * REDIS_ARGS_SHOWN * (REDIS_BYTES_SHOWN + 64),
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

		if (subcommand_arg_is_secret(u->command, u->argv, i))
			arg = STR("(redacted)");
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
slow_keep(struct redis *r, struct client *c, const struct unit *u, uint64_t took_ns)
{
	AUTO(buf_release) struct buf args = BUF_SHORT(ARGS_BYTES);
	char room[MORE_BYTES];
	struct buf more = { .ptr = room, .cap = sizeof(room), .max_bytes = sizeof(room) };

	slow_write_args(u, &args);
	buf_append_cstr(&more, "db=");
	buf_append_u64(&more, u->db);
	buf_append_cstr(&more, " args=");
	buf_append_u64(&more, u->argc);
	clients_note_slow(&c->entry,
			  &(struct ops_op){ .door = &redis_ops,
					    .name = str_from_cstr(u->command->name),
					    .peer = c->entry.peer },
			  (struct ops_slow){ .took_ns = took_ns,
					     .args = buf_str(&args),
					     .more = buf_str(&more),
					     .keep = atomic_load(&r->slow_max) });
}

void
slow_note(struct redis *r, struct client *c, const struct unit *u, uint64_t now_ns)
{
	uint64_t limit = atomic_load_explicit(&r->slow_us, memory_order_relaxed);
	uint64_t took_ns = now_ns - u->began_ns;

	latency_note(r->latency, u->command, took_ns);
	if (took_ns / 1000 >= limit && limit != UINT64_MAX && ops_count_slow(&redis_ops))
		slow_keep(r, c, u, took_ns);
}

static void
slow_begin(void *reply, size_t count)
{
	reply_array(reply, count);
}

static void
slow_show(void *reply, const struct recent_entry *entry)
{
	const struct ops_slow_entry *e = (const struct ops_slow_entry *)entry;
	struct reply *r = reply;

	reply_array(r, 6);
	reply_int(r, (int64_t)entry->number);
	reply_int(r, (int64_t)(e->time_ms / 1000));
	reply_int(r, (int64_t)(e->took_ns / 1000));
	buf_append_str(r->out, e->args);
	reply_bulk(r, e->peer);
	reply_bulk(r, e->client);
}

void
slow_get(int64_t most, struct reply *reply)
{
	recent_show(&redis_ops.slow, most < 0 ? UINT64_MAX : (uint64_t)most, slow_begin, slow_show,
		    reply);
}

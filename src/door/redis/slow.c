#include "door/redis/slow.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "door/redis/redis_int.h"

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

void
slow_note(struct redis *r, struct client *c, const struct unit *u, uint64_t now_ns)
{
	uint64_t limit = atomic_load_explicit(&r->slow_us, memory_order_relaxed);
	uint64_t micros = (now_ns - u->began_ns) / 1000;
	AUTO(buf_release) struct buf args = BUF_INIT(ENTRY_BYTES);
	struct slow_entry *e;
	uint64_t most = atomic_load(&r->slow_max);

	if (limit == UINT64_MAX || micros < limit || !most)
		return;
	slow_write_args(u, &args);
	if (buf_status(&args) != STATUS_OK)
		return;
	pthread_mutex_lock(&r->slow_lock);
	e = &r->slow[r->slow_next % REDIS_SLOWLOG_ENTRIES];
	mem_free(e->args);
	e->id = r->slow_next++;
	e->time_s = clock_wall_ms() / 1000;
	e->micros = micros;
	e->args = args.ptr;
	e->args_len = args.len;
	args = BUF_INIT(ENTRY_BYTES); /* the entry owns the bytes now */
	snprintf(e->peer, sizeof(e->peer), "%s", c->peer);
	pthread_mutex_lock(&r->clients_lock);
	snprintf(e->name, sizeof(e->name), "%.*s", STR_ARG(buf_str(&c->name)));
	pthread_mutex_unlock(&r->clients_lock);
	if (r->slow_next - r->slow_first > most)
		r->slow_first = r->slow_next - most;
	if (r->slow_next - r->slow_first > REDIS_SLOWLOG_ENTRIES)
		r->slow_first = r->slow_next - REDIS_SLOWLOG_ENTRIES;
	pthread_mutex_unlock(&r->slow_lock);
}

void
slow_clear(struct redis *r)
{
	pthread_mutex_lock(&r->slow_lock);
	for (size_t i = 0; i < REDIS_SLOWLOG_ENTRIES; i++) {
		mem_free(r->slow[i].args);
		r->slow[i].args = NULL;
	}
	r->slow_first = r->slow_next;
	pthread_mutex_unlock(&r->slow_lock);
}

uint64_t
slow_count(struct redis *r)
{
	uint64_t count;

	pthread_mutex_lock(&r->slow_lock);
	count = r->slow_next - r->slow_first;
	pthread_mutex_unlock(&r->slow_lock);
	return count;
}

void
slow_get(struct redis *r, int64_t most, struct reply *reply)
{
	uint64_t count;

	pthread_mutex_lock(&r->slow_lock);
	count = r->slow_next - r->slow_first;
	if (most >= 0 && (uint64_t)most < count)
		count = (uint64_t)most;
	reply_array(reply, count);
	for (uint64_t i = 1; i <= count; i++) {
		const struct slow_entry *e = &r->slow[(r->slow_next - i) % REDIS_SLOWLOG_ENTRIES];

		reply_array(reply, 6);
		reply_int(reply, (int64_t)e->id);
		reply_int(reply, (int64_t)e->time_s);
		reply_int(reply, (int64_t)e->micros);
		buf_append(reply->out, e->args, e->args_len);
		reply_bulk_cstr(reply, e->peer);
		reply_bulk_cstr(reply, e->name);
	}
	pthread_mutex_unlock(&r->slow_lock);
}

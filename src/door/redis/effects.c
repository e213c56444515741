#include "door/redis/effects.h"

#include <stdio.h>

#include "door/redis/redis_int.h"

static void
event_publish(struct redis *r, const char *prefix, unsigned db, struct str name, struct str message)
{
	AUTO(buf_release) struct buf channel = BUF_INIT(REDIS_REQUEST_BYTES);

	buf_printf(&channel, "%s@%u__:", prefix, db);
	buf_append_str(&channel, name);
	if (buf_status(&channel) == STATUS_OK)
		(void)effects_publish(r, false, buf_str(&channel), message);
}

/* notify-keyspace-events */
static void
event_notify(struct redis *r, const struct effect *e)
{
	unsigned wanted = atomic_load_explicit(&r->events, memory_order_relaxed);

	if (!e->event || !(wanted & e->class))
		return;
	if (wanted & EVENT_KEYSPACE)
		event_publish(r, "__keyspace", e->db, e->key, str_from_cstr(e->event));
	if (wanted & EVENT_KEYEVENT)
		event_publish(r, "__keyevent", e->db, str_from_cstr(e->event), e->key);
}

/* True if what a client may wait for can have come to the key. */
static bool
event_brings(const char *event)
{
	static const char *const events[] = {
		"lpush",       "rpush",       "linsert",    "sortstore", "zadd",
		"zincr",       "copy_to",     "rename_to",  "move_to",   "zrangestore",
		"zunionstore", "zinterstore", "zdiffstore",
	};

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (strcmp(event, events[i]) == 0)
			return true;
	return false;
}

void
effects_happen(struct redis *r, const struct txn *x)
{
	for (const struct effect *e = x->effects; e; e = e->next) {
		switch (e->kind) {
		case EFFECT_EVENT:
			if (e->changes && event_brings(e->event))
				effects_ready(r, e->db, e->key);
			if (e->class == EVENT_EXPIRED)
				atomic_fetch_add(&r->expired, 1);
			event_notify(r, e);
			break;
		case EFFECT_FLUSH:
			break;
		case EFFECT_WATCH:
			effects_watch(e->client, e->db, e->key, e->message);
			break;
		case EFFECT_SWAP:
			effects_ready_all(r, e->db);
			break;
		case EFFECT_PUBLISH:
		case EFFECT_SPUBLISH:
			(void)effects_publish(r, e->kind == EFFECT_SPUBLISH, e->key, e->message);
			break;
		}
	}
}

void
redis_expired(struct redis *r, unsigned db, struct str key, bool member, bool emptied)
{
	struct effect e = {
		.class = member ? EVENT_HASH : EVENT_EXPIRED,
		.event = member ? "hexpired" : "expired",
		.db = db,
		.key = key,
	};

	atomic_fetch_add(member ? &r->expired_fields : &r->expired, 1);
	event_notify(r, &e);
	if (!emptied)
		return;
	e.class = EVENT_GENERIC;
	e.event = "del";
	event_notify(r, &e);
}

#include "door/redis/effects.h"

#include "door/redis/acl_log.h"
#include "door/redis/monitor.h"
#include "door/redis/notify.h"
#include "door/redis/others.h"
#include "door/redis/redis_int.h"
#include "door/redis/stats.h"

static enum status
event_publish(void *r, struct str channel, struct str message)
{
	(void)effects_publish(r, false, channel, message);
	return STATUS_OK;
}

bool
effects_brings(const struct effect *e)
{
	static const char *const events[] = {
		"lpush",       "rpush",       "linsert",    "sortstore", "zadd",
		"zincr",       "copy_to",     "rename_to",  "move_to",   "zrangestore",
		"zunionstore", "zinterstore", "zdiffstore", "xadd",
	};

	if (e->kind != EFFECT_EVENT || !e->changes)
		return false;
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (strcmp(e->event, events[i]) == 0)
			return true;
	return false;
}

/* notify-keyspace-events, in this process. Without memory for a channel's name nobody is told. */
static void
event_notify(struct redis *r, const struct effect *e)
{
	(void)!notify_each(r, e, event_publish, r);
}

static void
effect_count(struct redis *r, const struct effect *e)
{
	if (e->refused)
		stats_count_refused(r->stats, e->command, e->argv, e->argc);
	else
		stats_count_call(r->stats, e->command, e->argv, e->argc, e->ns, e->message.len > 0);
	if (e->message.len)
		stats_count_error(r->stats, e->message);
}

void
effects_happen(struct redis *r, const struct txn *x)
{
	for (const struct effect *e = x->effects; e; e = e->next) {
		switch (e->kind) {
		case EFFECT_EVENT:
			if (effects_brings(e))
				effects_ready_left(r, e);
			if (e->class == EVENT_EXPIRED)
				atomic_fetch_add(&r->expired, 1);
			event_notify(r, e);
			break;
		case EFFECT_FLUSH:
			break;
		case EFFECT_WATCH:
			effects_watch(e->client, e->db, e->key, e->message);
			break;
		case EFFECT_CALL:
			if (!e->refused)
				monitor_show(r, NULL, e->db, e->command, e->argv, e->argc);
			effect_count(r, e);
			break;
		case EFFECT_DENY:
			acl_log_add(e->client, &(struct acl_refusal){ .denial = e->denial,
								      .context = "lua",
								      .object = e->key });
			break;
		case EFFECT_SHOW:
			monitor_show(r, e->client, e->db, e->command, e->argv, e->argc);
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

/* The same in all processes, of what happened in no transaction of a client's. */
static void
event_tell(struct redis *r, const struct effect *e)
{
	event_notify(r, e);
	if (r->others)
		others_tell(r->others, e);
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
	event_tell(r, &e);
	if (!emptied)
		return;
	e.class = EVENT_GENERIC;
	e.event = "del";
	event_tell(r, &e);
}

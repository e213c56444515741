#include "door/redis/txn/effects.h"

#include "door/redis/txn/acl_log.h"
#include "door/redis/txn/monitor.h"
#include "door/redis/txn/notify.h"
#include "door/redis/txn/others.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/txn/stats.h"
#include "model/timed/timed.h"

enum {
	/* Of what has expired, that are told together: in one transaction on a cluster. */
	EXPIRED_EVENTS = 128,
	EXPIRED_BYTES = 256 * 1024, /* of its keys */
};

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
		"lpush",          "rpush",          "linsert",    "sortstore", "zadd",
		"zincr",          "copy_to",        "rename_to",  "move_to",   "zrangestore",
		"zunionstore",    "zinterstore",    "zdiffstore", "xadd",      "xgroup-destroy",
		"geosearchstore", "georadiusstore", "restore",
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

bool
effects_wait_for_expiry(const struct redis *r)
{
	unsigned wanted = atomic_load_explicit(&r->events, memory_order_relaxed);

	if (tracking_is_on(r) || trackers_were_any(&r->trackers))
		return true;
	return wanted & (EVENT_KEYSPACE | EVENT_KEYEVENT) &&
	       wanted & (EVENT_EXPIRED | EVENT_HASH | EVENT_GENERIC);
}

/*
 * Has the sweep look in time at what the transaction lets expire, and at once at what one of its
 * commands has met, for those who want to be told.
 */
static void
effects_hurry_sweep(struct redis *r, const struct txn *x)
{
	uint64_t ms;

	if (!r->chores || !effects_wait_for_expiry(r))
		return;
	ms = x->met_expired ? 0 : txn_soonest(x);
	if (ms < TIMED_SOON_MS)
		timed_sweep_by(r->chores, ms);
}

/* Tells those who wait for the key. */
static void
effect_wake(struct redis *r, const struct effect *e)
{
	if (effects_brings(e))
		effects_ready_left(r, e);
	else if (e->changes)
		effects_ready_groups(r, e->db, &e->key);
}

void
effects_happen(struct redis *r, const struct txn *x)
{
	/* Who begins to wait from here on finds what the transaction has written. */
	bool waited_for = atomic_load_explicit(&r->ticket_count, memory_order_acquire);

	for (const struct effect *e = x->effects; e; e = e->next) {
		switch (e->kind) {
		case EFFECT_EVENT:
			if (waited_for)
				effect_wake(r, e);
			if (e->class == EVENT_EXPIRED)
				atomic_fetch_add(&r->expired, 1);
			event_notify(r, e);
			break;
		case EFFECT_FLUSH:
			effects_ready_groups(r, e->db, NULL);
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
								      .context = e->context,
								      .object = e->key });
			break;
		case EFFECT_SHOW:
			monitor_show(r, e->client, e->db, e->command, e->argv, e->argc);
			break;
		case EFFECT_SWAP:
			effects_ready_all(r, e->db);
			effects_ready_groups(r, e->db, NULL);
			break;
		case EFFECT_PUBLISH:
		case EFFECT_SPUBLISH:
			(void)effects_publish(r, e->kind == EFFECT_SPUBLISH, e->key, e->message);
			break;
		}
	}
	tracking_happen(r, x->effects);
	effects_hurry_sweep(r, x);
}

/* Publishes events that no client's command has caused, the first of them at `first`. */
static void
effects_tell(struct redis *r, const struct effect *first)
{
	if (r->others) {
		others_tell(r->others, first);
		return;
	}
	for (const struct effect *e = first; e; e = e->next)
		event_notify(r, e);
}

/* The events of one that has expired, which are `ret[0]`, `ret[1]`; returns how many they are. */
static size_t
effects_of_expired(const struct timed_expired *what, unsigned db, struct effect ret[static 2])
{
	ret[0] = (struct effect){
		.class = what->member ? EVENT_HASH : EVENT_EXPIRED,
		.event = what->member ? "hexpired" : "expired",
		.db = db,
		.key = what->key,
	};
	if (!what->emptied)
		return 1;
	ret[1] = (struct effect){
		.class = EVENT_GENERIC, .event = "del", .db = db, .key = what->key
	};
	ret[0].next = &ret[1];
	return 2;
}

void
effects_expired(struct redis *r, const struct timed_expired *first)
{
	struct effect effects[EXPIRED_EVENTS];
	size_t count = 0, bytes = 0;
	uint64_t db;

	for (const struct timed_expired *what = first; what; what = what->next) {
		if (!str_to_u64(what->db, &db))
			continue;
		/* On a cluster all processes learn of that by the log (trackers_tell_removed()). */
		if (!r->others)
			tracking_happen(r, &(struct effect){ .changes = true, .key = what->key });
		if (!what->member || what->emptied)
			effects_ready_groups(r, (unsigned)db, &what->key);
		atomic_fetch_add(what->member ? &r->expired_fields : &r->expired, 1);
		if (count)
			effects[count - 1].next = &effects[count];
		count += effects_of_expired(what, (unsigned)db, &effects[count]);
		bytes += what->key.len;
		if (count > EXPIRED_EVENTS - 2 || bytes > EXPIRED_BYTES) {
			effects_tell(r, effects);
			count = bytes = 0;
		}
	}
	if (count)
		effects_tell(r, effects);
}

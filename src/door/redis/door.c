/* Redis's door as a row of the program's table of doors. */
#include "door/redis/redis.h"

#include "base/quote.h"
#include "catalog/kind.h"
#include "catalog/verify.h"
#include "door/redis/script/library.h"
#include "door/redis/settings.h"
#include "door/redis/txn/effects.h"
#include "door/redis/txn/messages.h"
#include "door/redis/txn/run.h"
#include "door/redis/txn/trackers.h"
#include "model/timed/timed.h"
#include "net/host.h"
#include "settings/settings.h"

enum {
	FINDING_BYTES = 1024,
};

/* Where the sweep of expired rows tells what has gone; there is one door in a process. */
static struct timed_listener listener;
/* The lanes that the sweep holds. Only its thread uses this. */
static uint64_t held_lanes;

static bool
waits_for_expiry(void *redis)
{
	return effects_wait_for_expiry(redis);
}

/*
 * The sweep may remove what a group has just written, before that group has told of it; and a group
 * may write again what the sweep has removed, before the sweep has told of that. So the sweep has
 * the lanes of these keys from before its commit until it has told.
 */
static void
hold_expiring(void *redis, const struct timed_expired *first)
{
	uint64_t db, lanes = 0;

	if (!effects_wait_for_expiry(redis))
		return;
	for (const struct timed_expired *what = first; what; what = what->next)
		if (str_to_u64(what->db, &db))
			lanes |= run_lane((unsigned)db, what->key);
	lanes &= ~held_lanes;
	run_hold(redis, lanes);
	held_lanes |= lanes;
}

static void
tell_expired(void *redis, const struct timed_expired *first)
{
	effects_expired(redis, first);
	run_release(redis, held_lanes);
	held_lanes = 0;
}

static enum status
door_open(const struct door_ground *ground, const struct door_place *place, void **ret,
	  struct err *err)
{
	struct redis_config config = { .store = ground->store,
				       .live = ground->live,
				       .news = ground->news,
				       .people = ground->people,
				       .host = place->host,
				       .config_file = ground->config_file,
				       .max_clients = net_host_max_connections(ground->host) };
	struct redis *redis = redis_new(&config);

	if (!redis)
		return err_set(err, STATUS_NOMEM, "out of memory");
	listener = (struct timed_listener){ .waits = waits_for_expiry,
					    .removing = hold_expiring,
					    .expired = tell_expired,
					    .arg = redis };
	ground->sweeping->listener = &listener;
	*ret = redis;
	return STATUS_OK;
}

static struct net_stream_options *
door_stream_options(void *redis)
{
	return redis_stream_options(redis);
}

static unsigned
door_loops(const struct door_ground *ground)
{
	const struct redis_settings *s = settings_of(ground->settings, &redis_setting_group);

	return s->loops ? (unsigned)s->loops : (net_host_loops(ground->host) + 1) / 2;
}

static void
door_listens(void *redis, const struct door_place *place)
{
	redis_set_port(redis, place->port);
}

static void
door_chores_add(void *redis, struct chores *chores)
{
	redis_chores_add(redis, chores);
}

struct verifying {
	void (*found)(const struct catalog_finding *finding, void *arg);
	void *arg;
};

static void
tell_library(void *arg, struct str name, const char *text)
{
	AUTO(buf_release) struct buf line = BUF_SHORT(FINDING_BYTES);
	const struct verifying *v = arg;

	buf_printf(&line, "%s: \"%s\"", text, QUOTE_SHOW(name));
	buf_append_byte(&line, '\0');
	v->found(&(struct catalog_finding){ .kind = "library",
					    .database = STR(TIMED_FUNCTIONS),
					    .of = catalog_kind_find(CATALOG_KIND_REDIS),
					    .text = buf_status(&line) == STATUS_OK ? line.ptr
										   : text },
		 v->arg);
}

static enum status
door_verify(struct kv_tx *tx, void (*found)(const struct catalog_finding *finding, void *arg),
	    void *arg, struct err *err)
{
	return library_verify(tx, tell_library, &(struct verifying){ found, arg }, err);
}

static void
register_records(void)
{
	messages_register();
	trackers_register();
	timed_removed_register(trackers_tell_removed);
}

static void
door_free(void *redis)
{
	redis_free(redis);
}

const struct door_type redis_door_type = {
	.name = "redis",
	.clients = "Redis",
	.settings = &redis_setting_group,
	.register_records = register_records,
	.open = door_open,
	.stream_options = door_stream_options,
	.loops = door_loops,
	.listens = door_listens,
	.verify = door_verify,
	.chores_add = door_chores_add,
	.free = door_free,
};

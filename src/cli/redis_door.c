#include "cli/redis_door.h"

#include "door/redis/redis.h"
#include "door/redis/settings.h"
#include "http/server.h"
#include "net/host.h"
#include "settings/settings.h"

enum status
redis_door_listen(struct redis_door *d, struct door *door, const struct door_ground *ground,
		  struct err *err)
{
	const struct redis_settings *s = settings_of(ground->settings, &redis_setting_group);
	struct net_host *host = server_host(ground->server);
	struct redis_config config = { .store = ground->store,
				       .live = ground->live,
				       .news = ground->news,
				       .host = door_host(door),
				       .config_file = ground->config_file,
				       .max_clients = net_host_max_connections(host) };

	if (!door_is_wanted(door))
		return STATUS_OK;
	door->loops = s->loops ? (unsigned)s->loops : (net_host_loops(host) + 1) / 2;
	d->redis = redis_new(&config);
	if (!d->redis)
		return err_set(err, STATUS_NOMEM, "out of memory");
	TRY(door_listen(door, ground, redis_stream_options(d->redis), "redis", "rediss", err));
	redis_set_port(d->redis, door_port(door));
	return STATUS_OK;
}

static void
tell_expired(void *redis, const struct timed_expired *what)
{
	uint64_t db;

	if (str_to_u64(what->db, &db))
		redis_expired(redis, (unsigned)db, what->key, what->member, what->emptied);
}

const struct timed_listener *
redis_door_listener(struct redis_door *d)
{
	if (!d->redis)
		return NULL;
	d->listener = (struct timed_listener){ .expired = tell_expired, .arg = d->redis };
	return &d->listener;
}

void
redis_door_fini(struct redis_door *d)
{
	redis_free(d->redis);
	d->redis = NULL;
}

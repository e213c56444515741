#include "cli/redis_door.h"

#include "door/redis/redis.h"
#include "http/server.h"

enum status
redis_door_listen(struct redis_door *d, struct kv_store *store, struct settings_live *live,
		  struct server *server, struct err *err)
{
	struct redis_config config = { .store = store, .live = live };

	if (!door_is_wanted(&d->door))
		return STATUS_OK;
	d->redis = redis_new(&config);
	if (!d->redis)
		return err_set(err, STATUS_NOMEM, "out of memory");
	TRY(door_listen(&d->door, server_host(server), redis_stream_options(d->redis), "redis",
			"rediss", err));
	redis_set_port(d->redis, door_port(&d->door));
	return STATUS_OK;
}

void
redis_door_fini(struct redis_door *d)
{
	redis_free(d->redis);
	d->redis = NULL;
}

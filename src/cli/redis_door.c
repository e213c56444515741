#include "cli/redis_door.h"

#include <stdio.h>

#include "base/log.h"
#include "door/redis/redis.h"
#include "http/server.h"
#include "net/tls.h"

enum status
redis_door_find(struct redis_door *d, const struct settings *settings, const char *clear,
		const char *tls, struct err *err)
{
	const struct tls_settings *s = settings_of(settings, &tls_setting_group);

	d->wanted = clear;
	d->tls_wanted = tls;
	if (clear)
		TRY(address_parse(clear, d->host, &d->port, err));
	if (tls)
		TRY(address_parse(tls, d->tls_host, &d->tls_port, err));
	return tls ? net_tls_new(s, &d->tls, err) : STATUS_OK;
}

const char *
redis_door_exposed(const struct redis_door *d)
{
	if (d->wanted && !address_is_loopback(d->host))
		return d->host;
	return d->tls_wanted && !address_is_loopback(d->tls_host) ? d->tls_host : NULL;
}

static enum status
redis_door_listen_at(struct net_host *host, unsigned service, const char *name, uint16_t *port,
		     const char *event, struct err *err)
{
	char address[ADDRESS_TEXT_BYTES];

	address_write(name, *port, address);
	TRY(net_host_listen(host, service, address, port, err));
	address_write(name, *port, address);
	log_event(LOG_LEVEL_INFO, event, "address=%s", address);
	return STATUS_OK;
}

enum status
redis_door_listen(struct redis_door *d, struct kv_store *store, struct settings_live *live,
		  struct server *server, struct err *err)
{
	struct redis_config config = { .store = store, .live = live };
	struct net_host *host = server_host(server);
	unsigned service, secure;

	if (!d->wanted && !d->tls_wanted)
		return STATUS_OK;
	d->redis = redis_new(&config);
	if (!d->redis)
		return err_set(err, STATUS_NOMEM, "out of memory");
	TRY(net_host_add_service(host, &net_stream_protocol, redis_stream_options(d->redis),
				 &service, err));
	if (d->wanted)
		TRY(redis_door_listen_at(host, service, d->host, &d->port, "redis", err));
	if (d->tls_wanted) {
		TRY(net_host_secure(host, service, d->tls, &secure, err));
		TRY(redis_door_listen_at(host, secure, d->tls_host, &d->tls_port, "rediss", err));
	}
	redis_set_port(d->redis, d->wanted ? d->port : d->tls_port);
	return STATUS_OK;
}

void
redis_door_fini(struct redis_door *d)
{
	redis_free(d->redis);
	d->redis = NULL;
}

void
redis_door_fini_tls(struct redis_door *d)
{
	net_tls_free(d->tls);
	d->tls = NULL;
}

#include "cli/door.h"

#include "base/log.h"
#include "net/host.h"
#include "net/stream.h"
#include "net/tls.h"

enum status
door_find(struct door *d, const struct settings *settings, const char *clear, const char *tls,
	  struct err *err)
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
door_exposed(const struct door *d)
{
	if (d->wanted && !address_is_loopback(d->host))
		return d->host;
	return d->tls_wanted && !address_is_loopback(d->tls_host) ? d->tls_host : NULL;
}

static enum status
listen_at(struct net_host *host, unsigned service, const char *name, uint16_t *port,
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
door_listen(struct door *d, struct net_host *host, struct net_stream_options *options,
	    const char *event, const char *tls_event, struct err *err)
{
	unsigned service, secure;

	TRY(net_host_add_service(host, &net_stream_protocol, options, &service, err));
	if (d->loops)
		net_host_narrow(host, service, d->loops);
	if (d->wanted)
		TRY(listen_at(host, service, d->host, &d->port, event, err));
	if (d->tls_wanted) {
		TRY(net_host_secure(host, service, d->tls, &secure, err));
		TRY(listen_at(host, secure, d->tls_host, &d->tls_port, tls_event, err));
	}
	return STATUS_OK;
}

const char *
door_host(const struct door *d)
{
	return d->wanted ? d->host : d->tls_host;
}

uint16_t
door_port(const struct door *d)
{
	return d->wanted ? d->port : d->tls_port;
}

void
door_fini(struct door *d)
{
	net_tls_free(d->tls);
	d->tls = NULL;
}

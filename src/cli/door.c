#include "cli/door.h"

#include <stdio.h>

#include "base/address_path.h"
#include "base/log.h"
#include "cli/manager.h"
#include "door/door.h"
#include "net/host.h"
#include "net/stream.h"

enum {
	DOOR_EVENT_BYTES = 64,
};

/* An address of the command line, or one of the settings. */
static enum status
door_place(const struct door_wish *wish, const char *given, uint64_t port,
	   char ret_host[ADDRESS_HOST_BYTES], uint16_t *ret_port, struct err *err)
{
	if (wish->takes_paths && address_is_path(given ? given : wish->host)) {
		TRY(address_check_path(given ? given : wish->host, err));
		(void)snprintf(ret_host, ADDRESS_HOST_BYTES, "%s", given ? given : wish->host);
		*ret_port = 0;
		return STATUS_OK;
	}
	if (given) {
		TRY(address_parse(given, ret_host, ret_port, err));
		return address_check_host(ret_host, given, err);
	}
	if (strlen(wish->host) >= ADDRESS_HOST_BYTES)
		return err_set(err, STATUS_INVALID, "bind_address of [%s] is too long",
			       wish->section);
	(void)snprintf(ret_host, ADDRESS_HOST_BYTES, "%s", wish->host);
	*ret_port = (uint16_t)port;
	if (address_check_host(ret_host, wish->host, err) == STATUS_OK)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID, "[%s] bind_address: \"%s\" is no IP address%s",
		       wish->section, wish->host,
		       wish->takes_paths ? ", and no path of a Unix socket" : "");
}

static enum status
door_find_one(const struct door_wish *wish, const char *suffix, bool enabled, const char *given,
	      uint64_t port, bool *ret_wanted, char ret_host[ADDRESS_HOST_BYTES],
	      uint16_t *ret_port, struct err *err)
{
	bool handed = manager_socket(wish->name, suffix, ret_host, ret_port);

	if (handed && given)
		return err_set(err, STATUS_INVALID,
			       "--%s%s %s, and the manager of services hands over a socket for it: "
			       "one of them has to go",
			       wish->name, suffix, given);
	if (handed && address_is_path(ret_host) && !wish->takes_paths)
		return err_set(err, STATUS_INVALID,
			       "the manager of services hands over a socket \"%s%s\" at %s: this "
			       "door listens at IP addresses alone",
			       wish->name, suffix, ret_host);
	*ret_wanted = handed || given || enabled;
	if (handed || !*ret_wanted)
		return STATUS_OK;
	return door_place(wish, given, port, ret_host, ret_port, err);
}

enum status
door_find(struct door *d, const struct door_wish *wish, struct err *err)
{
	TRY(door_find_one(wish, "", wish->enabled, wish->given, wish->port, &d->wanted, d->host,
			  &d->port, err));
	return door_find_one(wish, "s", wish->tls_enabled, wish->tls_given, wish->tls_port,
			     &d->tls_wanted, d->tls_host, &d->tls_port, err);
}

static bool
is_local(const char *host)
{
	return address_is_path(host) || address_is_loopback(host);
}

const char *
door_exposed(const struct door *d)
{
	if (d->wanted && !is_local(d->host))
		return d->host;
	return d->tls_wanted && !is_local(d->tls_host) ? d->tls_host : NULL;
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
door_listen(struct door *d, const struct door_type *type, struct net_host *host,
	    struct net_stream_options *options, struct net_tls *tls, struct err *err)
{
	char tls_event[DOOR_EVENT_BYTES];
	unsigned service, secure;

	TRY(net_host_add_service(host, &net_stream_protocol, options, &service, err));
	if (d->loops)
		net_host_narrow(host, service, d->loops);
	if (d->wanted)
		TRY(listen_at(host, service, d->host, &d->port, type->name, err));
	if (d->tls_wanted) {
		(void)snprintf(tls_event, sizeof(tls_event), "%ss", type->name);
		TRY(net_host_secure(host, service, tls, &secure, err));
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

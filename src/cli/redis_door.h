/*
 * Redis's door of `frond serve`: where it listens, in clear and with TLS.
 *
 * For the main thread; a process serves once.
 */
#ifndef FROND_CLI_REDIS_DOOR_H
#define FROND_CLI_REDIS_DOOR_H

#include "base/address.h"
#include "kv/kv.h"
#include "settings/live.h"

struct net_tls;
struct redis;
struct server;

struct redis_door {
	bool wanted;
	bool tls_wanted;
	char host[ADDRESS_HOST_BYTES];
	char tls_host[ADDRESS_HOST_BYTES];
	uint16_t port;
	uint16_t tls_port;
	struct net_tls *tls;
	struct redis *redis;
};

/*
 * Decides where it listens, by the options of the command line; NULL: not. Reads the certificates
 * for TLS. STATUS_INVALID, STATUS_IO, STATUS_NOMEM.
 */
MUST_USE enum status redis_door_find(struct redis_door *d, const struct settings *settings,
				     const char *clear, const char *tls, struct err *err);

/* The address of it that other machines can reach; NULL: there is none. */
const char *redis_door_exposed(const struct redis_door *d);

/* Makes the door, if it is wanted, and listens. STATUS_INVALID, STATUS_IO, STATUS_NOMEM. */
MUST_USE enum status redis_door_listen(struct redis_door *d, struct kv_store *store,
				       struct settings_live *live, struct server *server,
				       struct err *err);

/* After the server was freed, before the store is closed. */
void redis_door_fini(struct redis_door *d);
void redis_door_fini_tls(struct redis_door *d);

#endif

/*
 * What a door is: a protocol of its own, with connections as streams of bytes (net/stream.h), in a
 * folder of door/. It hands out one struct door_type; the program has a table of these and opens
 * whichever is wanted (cli/doors.h). CouchDB's door is not among them: it answers the requests of
 * the HTTP server, and the program always has that one.
 *
 * Threading: the functions are called on the main thread, before connections come and after they
 * have ended.
 */
#ifndef FROND_DOOR_DOOR_H
#define FROND_DOOR_DOOR_H

#include "base/setting.h"
#include "base/status.h"

struct catalog_finding; /* catalog/verify.h */
struct chores;
struct door_people;
struct js;
struct kv_store;
struct kv_tx;
struct net_host;
struct net_stream_options;
struct people_news;
struct settings;
struct settings_live;
struct timed_sweeping;

/* How the settings of a door begin: what DOOR_SETTINGS declares. */
struct door_settings {
	bool enabled;
	const char *host;
	uint64_t port;
	bool tls_enabled;
	uint64_t tls_port;
};

/*
 * The first settings of each door: where it listens. `name` is the section and the option of `frond
 * serve`; with an "s" behind it, the option for TLS. `clients`: whose clients it serves.
 */
/* clang-format off */
#define DOOR_SETTINGS(S, NUMBER, FLAG, TEXT, name, clients, port_number, tls_port_number)          \
	FLAG(S, enabled, name, "enable", false, SETTING_AT_START,                                  \
	     "Whether clients of " clients " are served, at the address below. The option --" name \
	     " of frond serve says so, too, with an address of its own.")                          \
	TEXT(S, host, name, "bind_address", 1, NULL, "127.0.0.1", SETTING_AT_START,                \
	     "The IP address that is listened on for clients of " clients ", an IPv6 one without " \
	     "brackets; or the path of a Unix socket, which has no port. Any address but the "     \
	     "loopback needs an administrator.")                                                   \
	NUMBER(S, port, name, "port", "", 0, 65535, port_number, SETTING_AT_START,                 \
	       "The port that is listened on. 0: any free one.")                                   \
	FLAG(S, tls_enabled, name, "tls_enable", false, SETTING_AT_START,                          \
	     "Whether clients of " clients " are served with TLS, at the bind_address above and "  \
	     "the port below, by the certificates of [ssl]. The option --" name "s of frond "      \
	     "serve says so, too, with an address of its own.")                                    \
	NUMBER(S, tls_port, name, "tls_port", "", 0, 65535, tls_port_number, SETTING_AT_START,     \
	       "The port that is listened on with TLS. 0: any free one.")
/* clang-format on */

/* That the struct of a door's settings begins so. */
#define DOOR_SETTINGS_ARE_FIRST(name)                                                              \
	_Static_assert(                                                                            \
		offsetof(struct name, enabled) == offsetof(struct door_settings, enabled) &&       \
			offsetof(struct name, host) == offsetof(struct door_settings, host) &&     \
			offsetof(struct name, port) == offsetof(struct door_settings, port) &&     \
			offsetof(struct name, tls_enabled) ==                                      \
				offsetof(struct door_settings, tls_enabled) &&                     \
			offsetof(struct name, tls_port) ==                                         \
				offsetof(struct door_settings, tls_port),                          \
		#name " does not begin with DOOR_SETTINGS")

/* Where clients in clear reach a door, or those with TLS where there is nothing else. */
struct door_place {
	const char *host; /* or the path of a Unix socket, with port 0 */
	uint16_t port;    /* 0, until the door listens, if any free one was asked for */
	bool tls;         /* it listens for TLS, whether or not also in clear */
};

/* What the doors of a process stand on. All of it outlives them. */
struct door_ground {
	struct kv_store *store;
	const struct settings *settings;
	struct settings_live *live;       /* who may log in */
	struct people_news *news;         /* tells when they change (access/follow.h) */
	const struct door_people *people; /* whom commands read and change (door/people.h) */
	struct net_host *host;            /* whose loops and limits all connections share */
	struct js *js;                    /* runs functions that clients send */
	struct timed_sweeping *sweeping;  /* a door may set who is told of what expires */
	const char *config_file;          /* its whole path; NULL: none */
	bool flag;                        /* the option `flag` of its type was given */
};

struct door_type {
	const char *name;    /* as in DOOR_SETTINGS */
	const char *clients; /* likewise */
	const struct setting_group *settings;
	/* An option of `frond serve` without an argument, and its help; both NULL: none. */
	const char *flag;
	const char *flag_help;

	/*
	 * Registers the records that the door keeps in the store beside databases
	 * (catalog/verify.h). The program calls it once when it begins, for each of its commands.
	 * NULL: the door keeps no such records.
	 */
	void (*register_records)(void);
	/*
	 * NULL, or STATUS_INVALID, explained, for settings that it could not work with.
	 * `frond serve` and `frond config` call it before they read the people. `wanted`: clients
	 * of this door are to be served.
	 */
	enum status (*check)(const struct settings *settings, bool wanted, struct err *err);
	/* Makes it, for a place where it is going to listen. STATUS_INVALID, STATUS_NOMEM. */
	enum status (*open)(const struct door_ground *ground, const struct door_place *place,
			    void **ret, struct err *err);
	/* The options of net_stream_protocol for its connections; the door's. */
	struct net_stream_options *(*stream_options)(void *door);
	/* NULL, or how many loops of the host serve it. */
	unsigned (*loops)(const struct door_ground *ground);
	/* NULL, or is told where it listens, with the port that was found. */
	void (*listens)(void *door, const struct door_place *place);
	/*
	 * NULL, or checks in a transaction that reads what the door keeps in databases of its own
	 * beyond what their kind checks: tells of each thing that is wrong.
	 */
	enum status (*verify)(struct kv_tx *tx,
			      void (*found)(const struct catalog_finding *finding, void *arg),
			      void *arg, struct err *err);
	/* NULL, or adds its background work. The door outlives the registry. */
	void (*chores_add)(void *door, struct chores *chores);
	/* NULL, or called when the host has run to its end, before net_host_free(). */
	void (*stop)(void *door);
	/* After all connections have ended. NULL is fine. */
	void (*free)(void *door);
};

#endif

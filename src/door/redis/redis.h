/*
 * Redis's door: RESP2 and RESP3 on connections of net/, Redis 7.0.15's commands on the databases of
 * model/timed. docs/REDIS.md has what clients are promised, README.md how it is made.
 *
 * A struct redis is shared by all loops of a process.
 */
#ifndef FROND_DOOR_REDIS_REDIS_H
#define FROND_DOOR_REDIS_REDIS_H

#include "base/status.h"
#include "door/door.h"
#include "kv/kv.h"
#include "net/stream.h"

struct chores;
struct people_news;
struct settings_live;
struct timed_expired;

enum {
	REDIS_DATABASES = 16,
	REDIS_REQUEST_BYTES = 1024 * 1024 * 1024, /* of a request while it comes */
	REDIS_REPLY_BYTES = 1024 * 1024 * 1024,   /* of the answers to what is run together */
	REDIS_OUTPUT_BYTES = 1024 * 1024,         /* of answers that a client has not read */
	REDIS_MULTI_BYTES = 64 * 1024 * 1024,     /* of the commands that MULTI keeps */
	REDIS_MEMORY_WAIT_MS = 10 * 1000,         /* of an answer for which there is no memory */
	REDIS_WATCH_KEYS = 10000,                 /* that one connection watches */
	REDIS_WAITED_KEYS = 10000, /* different ones that clients wait for, on a cluster: watches */
	REDIS_PIPELINE_UNITS = 256,          /* commands of a pipeline that are run together */
	REDIS_GROUP_JOBS = 256,              /* pipelines that share a transaction */
	REDIS_GROUP_UNITS = 1024,            /* commands that do */
	REDIS_STAGES = 256,                  /* of values that a pipeline writes */
	REDIS_GROUP_BYTES = 4 * 1000 * 1000, /* of their writes, of KV_LIMIT_TX_BYTES */
};

struct redis;

struct redis_config {
	struct kv_store *store;
	struct settings_live *live; /* who may log in */
	struct people_news *news;   /* tells when they change; NULL: nothing does */
	const char *host;           /* where the door listens: CONFIG tells */
	uint16_t port;              /* the same: CONFIG and INFO tell */
	size_t max_clients;         /* connections of all doors together: CONFIG and INFO tell */
	const char *config_file;    /* that the process was started with: INFO tells; NULL: none */
};

/* NULL when out of memory. `config` is copied; what it names outlives the result. */
struct redis *redis_new(const struct redis_config *config);
/* Its background work; `r` outlives it. */
void redis_chores_add(struct redis *r, struct chores *chores);
/* After all connections have ended. NULL is fine. */
void redis_free(struct redis *r);

/* The options of net_stream_protocol for its connections; the door's. */
struct net_stream_options *redis_stream_options(struct redis *r);

/*
 * Keys have expired and were removed in the background, or fields of them: tells those who want to
 * know. The groups that have changed these keys before have ended (run_await()). Any thread.
 */
void redis_expired(struct redis *r, const struct timed_expired *first);
/* True if somebody may want to be told of that soon. Any thread. */
bool redis_waits_for_expiry(const struct redis *r);

void redis_set_port(struct redis *r, uint16_t port);

/* All of this, as the program opens it. */
extern const struct door_type redis_door_type;

#endif

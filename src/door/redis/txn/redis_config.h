/* Limits of Redis's door, and what the process gives it. */
#ifndef FROND_DOOR_REDIS_TXN_REDIS_CONFIG_H
#define FROND_DOOR_REDIS_TXN_REDIS_CONFIG_H

#include <stddef.h>
#include <stdint.h>

struct door_people;
struct kv_store;
struct people_news;
struct settings_live;

enum {
	REDIS_DATABASES = 16,
	REDIS_REQUEST_BYTES = 1024 * 1024 * 1024, /* of a request while it comes */
	REDIS_REPLY_BYTES = 1024 * 1024 * 1024,   /* of the answers to what is run together */
	REDIS_OUTPUT_BYTES = 1024 * 1024,         /* of answers that a client has not read */
	REDIS_MULTI_BYTES = 64 * 1024 * 1024,     /* of the commands that MULTI keeps */
	REDIS_WATCH_KEYS = 10000,                 /* that one connection watches */
	REDIS_WAITED_KEYS = 10000, /* different ones that clients wait for, on a cluster: watches */
	REDIS_PIPELINE_UNITS = 256,          /* commands of a pipeline that are run together */
	REDIS_GROUP_JOBS = 256,              /* pipelines that share a transaction */
	REDIS_GROUP_UNITS = 1024,            /* commands that do */
	REDIS_STAGES = 256,                  /* of values that a pipeline writes */
	REDIS_GROUP_BYTES = 4 * 1000 * 1000, /* of their writes, of KV_LIMIT_TX_BYTES */
};

struct redis_config {
	struct kv_store *store;
	struct settings_live *live;       /* who may log in */
	struct people_news *news;         /* tells when they change; NULL: nothing does */
	const struct door_people *people; /* whom commands change (door/people.h) */
	const char *host;                 /* where the door listens: CONFIG tells */
	uint16_t port;                    /* the same: CONFIG and INFO tell */
	size_t max_clients;      /* connections of all doors together: CONFIG and INFO tell */
	const char *config_file; /* that the process was started with: INFO tells; NULL: none */
};

#endif

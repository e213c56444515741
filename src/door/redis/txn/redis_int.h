/* The door itself: what all of its connections share. */
#ifndef FROND_DOOR_REDIS_TXN_REDIS_INT_H
#define FROND_DOOR_REDIS_TXN_REDIS_INT_H

#include "catalog/caches.h"
#include "door/redis/txn/client.h"
#include "door/redis/txn/output.h"
#include "door/redis/txn/redis_config.h"
#include "door/redis/txn/trackers.h"
#include "door/redis/txn/tracking.h"
#include "door/redis/txn/txn.h"
#include "door/redis/txn/waited.h"
#include "net/stream.h"
#include "serve/recent.h"
#include "settings/live.h"

enum {
	REDIS_CONFIG_BYTES = 1024,    /* of a setting's value */
	REDIS_SLOWLOG_ENTRIES = 1024, /* the most that slowlog-max-len may be */
	REDIS_ARGS_SHOWN = 32,        /* of a slow command */
	REDIS_BYTES_SHOWN = 128,      /* of an argument of it */
	REDIS_NODE_ENTRIES = 100,     /* of a stream, that go together */
	PUBSUB_BEGINNING_BYTES = 64,  /* of a pattern, by which it is found */
};

extern struct ops_door redis_ops; /* its classes are command_groups */

/* A setting of CONFIG: its present value. */
struct config_value {
	char *text; /* owned */
};

struct redis {
	struct redis_config config;
	struct net_stream_options stream;
	struct lanes queue;    /* of jobs: run.h */
	struct lanes readers;  /* of single small commands that only read, in a cluster's store */
	struct others *others; /* NULL: the store is this process's alone */
	uint64_t origin;       /* of this process, in the log of messages */
	struct chores *chores; /* that sweep what expires; NULL: none do */
	uint64_t started_ns;
	uint64_t started_ms;
	char run_id[41];

	struct catalog_caches caches; /* one for each fiber that runs a transaction */
	struct timed_maps *maps;      /* of sorted sets; NULL: the store is shared */

	struct clients clients; /* of struct client */

	/* Owns who has subscribed to what. Messages are handed out while it is held to read. */
	pthread_rwlock_t pubsub_lock;
	struct hash_table channels[3]; /* channels, patterns, shard channels */
	struct hash_table beginnings;  /* what patterns begin with */
	size_t beginning_lengths[PUBSUB_BEGINNING_BYTES + 1]; /* how many have so many bytes */

	struct tracking *tracking;
	struct trackers_known trackers; /* other processes with such clients; with a lock */

	/* Owns the list of clients that see all commands; how many they are is read without. */
	pthread_mutex_t monitor_lock;
	struct client *monitors;
	_Atomic size_t monitor_count;

	/* Owns who waits for which key, and the jobs that groups may run for them. */
	pthread_mutex_t blocked_lock;
	struct hash_table blocked;      /* keys that clients wait for: effects_block.c */
	struct waited_keys waited;      /* for other processes; with its bell */
	_Atomic uint64_t ticket_count;  /* clients in `blocked` */
	_Atomic uint64_t group_count;   /* those of them that read streams in groups */
	_Atomic uint64_t blocked_count; /* those that INFO tells of: they have found nothing */
	uint64_t next_ticket;

	/* Owns the texts of settings. What follows them is read without. */
	pthread_mutex_t config_lock;
	struct config_value *values; /* by the table in cmd_config.c */
	_Atomic unsigned events;     /* notify-keyspace-events */
	_Atomic uint64_t slow_us;    /* slowlog-log-slower-than; UINT64_MAX: never */
	_Atomic uint64_t slow_max;
	struct net_unread_limit output[OUTPUT_CLASSES]; /* client-output-buffer-limit */
	_Atomic uint64_t bulk_bytes;                    /* proto-max-bulk-len */
	_Atomic uint64_t sparse_bytes;                  /* hll-sparse-max-bytes */
	_Atomic uint64_t node_entries;                  /* stream-node-max-entries */
	_Atomic uint64_t small_hash;                    /* hash-max-listpack-entries */
	_Atomic uint64_t small_zset;                    /* zset-max-listpack-entries */

	/* Owns the list of scripts that run. */
	pthread_mutex_t scripts_lock;
	struct eval *scripts; /* that run now */
	struct eval_cache *script_cache;
	struct script_images *script_images;
	struct recent acl_log;        /* what was refused: acl_log.h */
	_Atomic uint64_t acl_log_max; /* acllog-max-len */
	_Atomic bool acl_pubsub;      /* acl-pubsub-default: new users may have all channels */
	/* people_news_count() when there was nothing to be said of the user `default`. */
	_Atomic uint64_t free_default;
	struct stats *stats;        /* of commands and errors */
	struct latency *latency;    /* what took long, if that is wanted */
	uint64_t started_bytes;     /* of malloc's, when the door began */
	_Atomic uint64_t idle_s;    /* timeout; 0: none */
	_Atomic uint64_t script_ms; /* lua-time-limit; 0: none */

	_Atomic uint64_t paused_until_ns;
	_Atomic bool paused_writes_only;

	_Atomic uint64_t commands;
	_Atomic uint64_t commands_a_second; /* lately, by the chore that looks */
	uint64_t rate_commands;             /* the chore's: at the last look, */
	uint64_t rate_ns;                   /* which was then */
	_Atomic uint64_t connections;
	_Atomic uint64_t hits;
	_Atomic uint64_t misses;
	_Atomic uint64_t published;
	_Atomic uint64_t expired;
	_Atomic uint64_t expired_fields;
};

#endif

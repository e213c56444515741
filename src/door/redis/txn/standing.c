#include "door/redis/txn/standing.h"

#include "door/redis/txn/redis_int.h"
#include "kv/log.h"

enum {
	LINKED_S = 5, /* a standby asks at least once a second */
	NS_PER_S = 1000 * 1000 * 1000,
};

struct standing
standing_of(const struct redis *r)
{
	struct kv_store *store = r->config.store;
	uint64_t seconds = kv_log_behind(store).ns / NS_PER_S;

	return (struct standing){
		.replica = kv_follows(store),
		.linked = seconds < LINKED_S,
		.seconds = seconds,
		.version = kv_log_published(store),
	};
}

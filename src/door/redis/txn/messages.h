/*
 * The log of messages, where several processes serve one store: what one of them publishes, the
 * others read there. A transaction that publishes writes its messages into one of MESSAGES_SHARDS
 * parts of the log, by the channel, and a key that readers of this part watch:
 *
 *     (ROOT, 13, shard, versionstamp) → (format, origin, kind, n), n bytes of the channel, message
 *     (ROOT, 13, shard)               → versionstamp of the latest message
 *     (ROOT, 13)                      → versionstamp up to which messages have been cleared
 *
 * A reader goes through all parts at once, in the order of versionstamps, which is that of the
 * commits. So nothing is stored for a subscriber but what a process keeps in memory: how far it has
 * read. A chore clears messages after some seconds.
 *
 * Threading: that of the transaction.
 */
#ifndef FROND_DOOR_REDIS_TXN_MESSAGES_H
#define FROND_DOOR_REDIS_TXN_MESSAGES_H

#include "base/arena.h"
#include "kv/kv.h"

enum {
	MESSAGES_SHARDS = 8,              /* stored messages depend on it: never change */
	MESSAGES_BYTES = 90000,           /* of a channel and a message together */
	MESSAGES_COUNT = 60000,           /* that one transaction publishes */
	MESSAGES_KEPT_MS = 10000,         /* at least */
	MESSAGES_READ_BYTES = 256 * 1024, /* of each shard at once */
};

/* How far a reader has read: the versionstamp of the last message that it has seen. */
struct messages_place {
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];
};

struct messages_message {
	struct messages_place place;
	uint64_t origin; /* of the process that has published it */
	bool shard;      /* SPUBLISH */
	struct str channel;
	struct str message;
};

/* What a transaction has written to the log. */
struct messages_writer {
	unsigned count;
	unsigned shards; /* bits: whose readers have been told */
};

/*
 * Publishes a message with the commit. STATUS_LIMIT, explained, past MESSAGES_BYTES or
 * MESSAGES_COUNT.
 */
MUST_USE enum status messages_put(struct kv_tx *tx, struct messages_writer *w,
				  const struct messages_message *message, struct err *err);

/* Where the log ends as the transaction sees it. */
MUST_USE enum status messages_end(struct kv_tx *tx, struct messages_place *ret);

struct messages_page {
	struct messages_message *messages; /* in the order of their commits; in the arena */
	size_t count;
	struct messages_place end; /* where the next page begins */
	bool more;
	bool lost; /* some that come after the place have been cleared unread */
};

/* Messages behind a place. STATUS_CORRUPT, STATUS_NEWER, explained. */
MUST_USE enum status messages_read(struct kv_tx *tx, const struct messages_place *after,
				   struct arena *arena, struct messages_page *ret, struct err *err);

/* Completes when a message has come to the shard. */
MUST_USE enum status messages_watch(struct kv_tx *tx, unsigned shard, struct kv_future **ret);

/* Clears messages up to the place, which is no later than the end of the log. */
MUST_USE enum status messages_clear(struct kv_tx *tx, const struct messages_place *until);

int messages_place_cmp(const struct messages_place *a, const struct messages_place *b);

/* Has `frond verify` know the log. Again is fine. */
void messages_register(void);

#endif

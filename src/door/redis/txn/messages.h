/*
 * The log of messages, where several processes serve one store: what one of them publishes, the
 * others read there; and, while clients anywhere keep what they read (trackers.h), which keys a
 * transaction has changed. A transaction writes its messages into one of MESSAGES_SHARDS parts of
 * the log, by the channel or the process, and a key that readers of this part watch:
 *
 *     (ROOT, 13, shard, versionstamp) → (format, origin, kind, n), n bytes of the channel, message
 *     (ROOT, 13, shard)               → versionstamp of the latest message
 *     (ROOT, 13)                      → versionstamp up to which messages have been cleared
 *
 * A reader goes through all parts at once, in the order of versionstamps, which is that of the
 * commits. So nothing is stored for a subscriber but what a process keeps in memory: how far it has
 * read. A chore clears messages after some seconds.
 *
 * Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_DOOR_REDIS_TXN_MESSAGES_H
#define FROND_DOOR_REDIS_TXN_MESSAGES_H

#include "base/arena.h"
#include "base/buf.h"
#include "kv/kv.h"

enum {
	MESSAGES_SHARDS = 8,              /* stored messages depend on it: never change */
	MESSAGES_BYTES = 90000,           /* of a channel and a message together, and of keys */
	MESSAGES_COUNT = 30000,           /* that one transaction publishes */
	MESSAGES_KEPT_MS = 10000,         /* at least */
	MESSAGES_NOBODY = 0,              /* instead of a process: all of them tell their clients */
	MESSAGES_READ_BYTES = 256 * 1024, /* of each shard at once */
};

/* How far a reader has read: the versionstamp of the last message that it has seen. */
struct messages_place {
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];
};

/* Stored: never renumber. */
enum messages_kind {
	MESSAGES_PUBLISH,
	MESSAGES_SPUBLISH,
	MESSAGES_KEYS, /* that a transaction has changed: see struct messages_keys; of no channel */
};

struct messages_message {
	struct messages_place place;
	uint64_t origin; /* of the process that has published it */
	enum messages_kind kind;
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

/*
 * Keys that a transaction changes. One that changes more than MESSAGES_BYTES of them, or whose keys
 * cannot be counted, such as those of FLUSHALL, tells of all keys.
 */
struct messages_keys {
	struct buf bytes;
	bool any;
	bool all;
};

void messages_keys_init(struct messages_keys *keys);
void messages_keys_release(struct messages_keys *keys);
void messages_keys_add(struct messages_keys *keys, struct str key);
void messages_keys_add_all(struct messages_keys *keys);
/* Tells of them with the commit, if there are any. */
MUST_USE enum status messages_put_keys(struct kv_tx *tx, struct messages_writer *w, uint64_t origin,
				       const struct messages_keys *keys);

/* The keys of a message of that kind; `*ret_count` 0: all keys. In the arena. STATUS_CORRUPT. */
MUST_USE enum status messages_read_keys(const struct messages_message *message, struct arena *arena,
					struct str **ret, size_t *ret_count);

/* Where the log ends as the transaction sees it. */
MUST_USE enum status messages_end(struct kv_tx *tx, struct messages_place *ret);

struct messages_page {
	/* In the order of their commits; in the arena, their texts the transaction's. */
	struct messages_message *messages;
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

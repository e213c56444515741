/*
 * What happens in the process when a transaction has taken place: clients that wait for its keys
 * look again, messages go out, and a client watches what it has read.
 *
 * Any thread; what is about WATCH on the fiber of the client or that of its group.
 */
#ifndef FROND_DOOR_REDIS_TXN_EFFECTS_H
#define FROND_DOOR_REDIS_TXN_EFFECTS_H

#include "door/redis/txn/client.h"
#include "door/redis/txn/txn.h"

enum {
	EFFECTS_EMPTY = 8, /* groups of consumers of one stream that are known to find nothing */
};

/* True if what a client may wait for can have come to the effect's key. */
bool effects_brings(const struct effect *e);

/* After the commit. */
void effects_happen(struct redis *r, const struct txn *x);

/*
 * Keys have expired and were removed in the background, or fields of them: tells those who want to
 * know. The groups that have changed these keys before have ended (run_hold()). Any thread.
 */
void effects_expired(struct redis *r, const struct timed_expired *first);
/* True if somebody may want to be told soon after a key has expired. Any thread. */
bool effects_wait_for_expiry(const struct redis *r);

/* ---- WATCH (effects_watch.c) ---- */

/* After the commit of a WATCH, which has read that version of the key. */
void effects_watch(struct client *c, unsigned db, struct str key, struct str version);
void effects_unwatch_all(struct client *c);
/* Whether nothing that the client watches has changed, in the transaction of its EXEC. */
MUST_USE enum status effects_watches_hold(struct redis *r, struct client *c, struct txn *x,
					  bool *ret);

/* ---- Blocking (effects_block.c) ---- */

/*
 * The client waits for something at these keys, in the order in which clients came. `*ret_first` is
 * true if it is the first one at one of them: it then looks once more, since something may have
 * come before it was in the list. Whoever stands behind others must not: what is there is theirs.
 */
MUST_USE enum status effects_block(struct client *c, unsigned db, const struct str *argv,
				   const size_t *places, size_t count, bool *ret_first);
/*
 * Takes the client off the lists of those who wait. Returns true if something may have come to its
 * keys and no other client was told: then the caller tells the next one, by effects_ready().
 */
bool effects_unblock(struct client *c);
/*
 * The client's fiber calls this before it waits. From then on, a group whose commands bring
 * something to one of the client's keys may run the client's job, in the group's transaction. The
 * fiber must not touch the job, nor the buffer of its answer, until it has called
 * effects_withdraw().
 */
void effects_offer(struct client *c, struct job *job);
/*
 * The fiber takes its job back. If a group has claimed it, this waits until that group has ended.
 * True: a group has run the job, and the answer is in the job's buffer.
 */
bool effects_withdraw(struct client *c);
/*
 * Groups of consumers that have found nothing at the key of an effect. Of those beyond the first
 * ones all clients are run.
 */
struct effects_empty {
	uint64_t groups[EFFECTS_EMPTY];
	size_t count;
};
/*
 * Claims for a group the job of the next client that waits for the effect's key, and is of none of
 * the groups of consumers that are `empty`. `group` is any pointer that is the group's alone. The
 * caller sets `*at` to NULL for the first call of an attempt and passes it on to the next ones: it
 * is the client whose job the last call has claimed. Returns NULL and sets `e->served` when no
 * further client waits. Returns NULL and leaves `e->served` false when a group cannot serve the
 * next client: that one and those behind it are signalled after the commit.
 */
struct job *effects_claim(struct redis *r, struct effect *e, const void *group,
			  const struct effects_empty *empty, struct blocked **at);
/* A group that has claimed jobs begins anew: these clients wait again, in their order. */
void effects_claim_anew(struct redis *r, struct job *claimed);
/* The group has ended: gives back the jobs that it has claimed, by their `next_claimed`. */
void effects_release(struct redis *r, struct job *claimed);
/* Something may be at the key: the first who waits for it looks. */
void effects_ready(struct redis *r, unsigned db, struct str key);
/*
 * After the commit of an effect that brings something: of the clients that wait for its key, the
 * first one looks that the effect's group has not served.
 */
void effects_ready_left(struct redis *r, const struct effect *e);
/* Something may be at any key of the database: at each, the first who waits for it looks. */
void effects_ready_all(struct redis *r, unsigned db);
/*
 * The key is another one or gone; `key` NULL: all those of the database. Those who read its stream
 * in a group wait in vain, so all of them look.
 */
void effects_ready_groups(struct redis *r, unsigned db, const struct str *key);
/*
 * `c` has found something that it cannot use: those behind it look. Of those who read a stream in
 * its group none finds more than it has.
 */
void effects_pass_on(struct client *c);

/* ---- Messages (pubsub.c) ---- */

/* To all who have subscribed to the channel; how many they were. */
size_t effects_publish(struct redis *r, bool shard, struct str channel, struct str message);

#endif

/*
 * What happens in the process when a transaction has taken place: clients that wait for its keys
 * look again, messages go out, and a client watches what it has read.
 *
 * Any thread; what is about WATCH on the fiber of the client or that of its group.
 */
#ifndef FROND_DOOR_REDIS_EFFECTS_H
#define FROND_DOOR_REDIS_EFFECTS_H

#include "door/redis/client.h"
#include "door/redis/txn.h"

/* After the commit. */
void effects_happen(struct redis *r, const struct txn *x);

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
void effects_unblock(struct client *c);
/* Something may be at the key: the first who waits for it looks. */
void effects_ready(struct redis *r, unsigned db, struct str key);
/* The same of all keys of a database. */
void effects_ready_all(struct redis *r, unsigned db);
/* `c` has found something that it cannot use: those behind it look. */
void effects_pass_on(struct client *c);

/* ---- Messages (pubsub.c) ---- */

/* To all who have subscribed to the channel; how many they were. */
size_t effects_publish(struct redis *r, bool shard, struct str channel, struct str message);

#endif

/*
 * Subscriptions of the connections of this process: to channels, to patterns of channels' names,
 * and to shard channels. In memory: a message goes to those who have subscribed when it is sent.
 * Where several processes serve one store, what the others publish comes by others.h.
 */
#ifndef FROND_DOOR_REDIS_TXN_PUBSUB_H
#define FROND_DOOR_REDIS_TXN_PUBSUB_H

#include "door/redis/txn/client.h"

enum pubsub_kind {
	PUBSUB_CHANNEL,
	PUBSUB_PATTERN,
	PUBSUB_SHARD,
	PUBSUB_KINDS,
};

enum {
	PUBSUB_SUBSCRIPTIONS = 100000, /* of one client */
	PUBSUB_STEPS = 8,              /* that one costs which begins or ends */
};

/* Of the client's fiber. Again is fine. STATUS_NOMEM; STATUS_LIMIT, explained. */
MUST_USE enum status pubsub_subscribe(struct client *c, enum pubsub_kind kind, struct str name,
				      struct err *err);
void pubsub_unsubscribe(struct client *c, enum pubsub_kind kind, struct str name);
/* The name of one of the client's subscriptions; false if there is none. */
bool pubsub_any(struct client *c, enum pubsub_kind kind, struct str *ret);
/* True if `fine` says so of the names of all of the client's subscriptions of that kind. */
bool pubsub_all(struct client *c, enum pubsub_kind kind, bool (*fine)(void *arg, struct str name),
		void *arg);
void pubsub_unsubscribe_all(struct client *c);

/* True if any client of the process has a subscription. */
bool pubsub_has_subscribers(struct redis *r);
/* Closes all clients with subscriptions: they have missed messages. */
void pubsub_close_all(struct redis *r);

/* How many would get a message. */
size_t pubsub_receivers(struct redis *r, bool shard, struct str channel);
/* How many subscribe to that channel, patterns aside. */
size_t pubsub_subscribers(struct redis *r, enum pubsub_kind kind, struct str name);
/* Calls for the name of each channel that has subscribers; any order. The lock is held. */
void pubsub_each(struct redis *r, enum pubsub_kind kind, void (*take)(void *arg, struct str name),
		 void *arg);

#endif

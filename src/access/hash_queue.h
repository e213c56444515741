/*
 * The queue for hashing passwords, which is slow on purpose.
 *
 * The process has one queue. At most `threads` fibers hash at a time, on the pool's threads for
 * work that computes (wait_compute()). The others wait, at most `limit` of them; beyond that a
 * fiber is told to come again. Clients from different addresses take turns: when somebody tries
 * many passwords, another client waits for one of them and not for all. If the queue is full, the
 * address with the most waiting fibers gives up its last one for a client of an address with fewer.
 *
 * Fibers that want the same hash share one: the first one hashes, and the others are given what it
 * has found out. They take no place in the queue.
 *
 * Thread-safe. A turn belongs to its fiber and stays where it is until hash_queue_leave(), or until
 * hash_queue_enter() has returned anything but HASH_QUEUE_TURN.
 */
#ifndef FROND_ACCESS_HASH_QUEUE_H
#define FROND_ACCESS_HASH_QUEUE_H

#include "base/address.h"
#include "loop/wait.h"

enum {
	HASH_QUEUE_KEY_BYTES = 48,
};

struct hash_queue_limits {
	size_t threads; /* that hash at a time */
	size_t waiting; /* beside them */
};

enum hash_queue_answer {
	HASH_QUEUE_TURN,   /* the caller hashes, and then calls hash_queue_leave() */
	HASH_QUEUE_SHARED, /* another fiber has hashed the same: `turn->outcome` is its */
	HASH_QUEUE_FULL,
	HASH_QUEUE_GONE, /* `gone` was set meanwhile, or the fiber's work ends (loop/asking.h) */
};

struct hash_turn {
	struct address_block address;
	uint8_t key[HASH_QUEUE_KEY_BYTES]; /* what is to be hashed: equal keys share a hash */
	int outcome;                       /* the caller's, at hash_queue_leave() */
	/* Why, after HASH_QUEUE_GONE: STATUS_CANCELLED if `gone` was set, or what asking said. */
	enum status ended;

	/* Private to hash_queue.c. */
	struct event come;
	enum hash_queue_answer answer; /* once `come` is set */
	struct hash_turn *next;        /* of the same address */
	struct hash_turn *next_address;
	struct hash_turn *next_active; /* of those that wait or hash */
	struct hash_turn *followers;   /* that want the same hash */
	struct hash_turn *next_follower;
	size_t count; /* of an address's first turn: how many the address has waiting */
};

/* `turn` has its address and key. `gone` may be NULL. */
enum hash_queue_answer hash_queue_enter(struct hash_turn *turn,
					const struct hash_queue_limits *limits, struct event *gone);

/* The caller has hashed: `outcome` is for those who wanted the same. */
void hash_queue_leave(struct hash_turn *turn, const struct hash_queue_limits *limits, int outcome);

#endif

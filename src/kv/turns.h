/*
 * Turns at keys that the clients of a process fight over. At a store that others use, too, a
 * transaction takes a few round trips, and of many that change one key together one succeeds: the
 * others have done their work for nothing, and again. So kv_run() has those that have conflicted at
 * a key go one after the other, and those that come to it meanwhile go behind them. Between
 * processes they still conflict. It makes nothing right that would be wrong without it: whoever
 * has waited KV_TURN_WAIT_MS goes on.
 *
 * Keys are known by a hash; two that share a place wait for each other: that costs time alone.
 *
 * Threading: from any thread; a struct kv_turn is its transaction's.
 */
#ifndef FROND_KV_TURNS_H
#define FROND_KV_TURNS_H

#include <stdatomic.h>

#include "base/status.h"
#include "base/str.h"
#include "loop/wait.h"

enum {
	KV_TURN_PLACES = 1024,
	KV_TURN_WAIT_MS = 5000,
};

struct kv_turns;

/* Zeroed it is none, and has to stay where it is while it is waited for or held. */
struct kv_turn {
	struct kv_turn *next; /* behind it in the queue; the lock's */
	struct event given;
	uint32_t place;
	bool held;
};

struct kv_turns *kv_turns_new(void);        /* NULL when out of memory */
void kv_turns_free(struct kv_turns *turns); /* nobody has one any more; NULL is fine */

/* True if somebody has a turn at the key. Nearly free while nobody has any. */
bool kv_turns_is_taken(const struct kv_turns *turns, struct str key);

/*
 * Waits until it is this one's turn at the key. False if that was not so in time. What was given
 * has to be ended.
 */
bool kv_turn_take(struct kv_turns *turns, struct str key, struct kv_turn *turn);

/* The next one's turn begins. Of one that is not held: nothing. */
void kv_turn_end(struct kv_turns *turns, struct kv_turn *turn);

#endif

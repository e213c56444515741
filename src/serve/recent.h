/*
 * The newest of what has happened, for operators to ask for: commands that were slow, calls that
 * were refused. Each log keeps as many entries as whoever adds says; older ones go.
 *
 * Threading: any thread. The lock owns the list and its entries. It is held while entries are
 * compared and shown, which needs memory and nothing else; none is freed under it.
 */
#ifndef FROND_SERVE_RECENT_H
#define FROND_SERVE_RECENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first member of every entry, which is memory of mem_alloc(). */
struct recent_entry {
	struct recent_entry *older;
	uint64_t number; /* how many were added before it since the process has started */
};

struct recent {
	pthread_mutex_t lock;
	struct recent_entry *newest;
	size_t count;
	uint64_t next; /* number */
};

#define RECENT_INIT                                                                                \
	{                                                                                          \
		.lock = PTHREAD_MUTEX_INITIALIZER                                                  \
	}

void recent_init(struct recent *r);
void recent_fini(struct recent *r);

/* Tells, with the lock, whether `older` is the same as `e`, which then stands for both. */
typedef bool recent_join(struct recent_entry *e, const struct recent_entry *older);

/*
 * Adds an entry, which is the log's from then on. The log keeps `most` entries, this one included;
 * `most` is at least 1. `join` is asked about each of the `looks` newest entries until it says that
 * one is the same: that one goes. Where `join` is NULL, none is the same.
 */
void recent_add(struct recent *r, struct recent_entry *e, size_t most, recent_join *join,
		size_t looks);

void recent_clear(struct recent *r);
size_t recent_count(struct recent *r);

/*
 * Shows the `most` newest entries, the newest first: `begin` is told how many they are, then `see`
 * gets each. Both are called with the lock.
 */
void recent_show(struct recent *r, uint64_t most, void (*begin)(void *arg, size_t count),
		 void (*see)(void *arg, const struct recent_entry *e), void *arg);

#endif

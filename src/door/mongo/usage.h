/*
 * How often and how long commands have worked on each collection, in the memory of this process
 * since it has started: what `top` tells, and serverStatus in all.
 *
 * Threading: any thread.
 */
#ifndef FROND_DOOR_MONGO_USAGE_H
#define FROND_DOOR_MONGO_USAGE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct call;

enum {
	USAGE_STRIPES = 16,
	USAGE_COLLECTIONS = 8 * 1024, /* that are counted; of further ones nothing is known */
};

enum usage_kind {
	USAGE_COMMAND, /* any other, that reads */
	USAGE_CHANGE,  /* any other, that writes */
	USAGE_QUERY,
	USAGE_GET_MORE,
	USAGE_INSERT,
	USAGE_UPDATE,
	USAGE_DELETE,
	USAGE_KINDS,
};

/* Those that read, and those that write, as bits of usage_sum(). */
enum {
	USAGE_READS = 1 << USAGE_QUERY | 1 << USAGE_GET_MORE | 1 << USAGE_COMMAND,
	USAGE_WRITES = 1 << USAGE_INSERT | 1 << USAGE_UPDATE | 1 << USAGE_DELETE |
		       1 << USAGE_CHANGE,
};

struct usage_figure {
	uint64_t count;
	uint64_t us;
};

/* A collection by its whole name; name NULL: an empty slot. */
struct usage_row {
	char *name;
	size_t name_len;
	struct usage_figure of[USAGE_KINDS];
};

struct usages {
	struct usage_stripe {
		pthread_mutex_t lock;
		struct usage_row *rows; /* open addressing; at least half of them are empty */
		size_t size, count;
	} stripes[USAGE_STRIPES];
	_Atomic uint64_t statements[USAGE_KINDS]; /* of all commands, on collections or not */
};

void usages_init(struct usages *u);
void usages_fini(struct usages *u);

/* One command more on a collection, by its whole name. */
void usage_add(struct usages *u, struct str name, enum usage_kind kind, uint64_t us);
/* The collection is gone, or all whose names begin so if `begins`. */
void usage_forget(struct usages *u, struct str name, bool begins);
/* The figures of a collection, all 0 if nothing is known of it; without a name. */
void usage_read(struct usages *u, struct str name, struct usage_row *ret);
/* Those of several kinds together: `kinds` has bits. */
struct usage_figure usage_sum(const struct usage_row *row, unsigned kinds);

/* Calls `take` for each collection that was counted, in no order, with a lock held. */
typedef void usage_take(void *arg, struct usage_row *row);
void usage_each(struct usages *u, usage_take *take, void *arg);

/* ---- usage_call.c ---- */

/*
 * Counts a command that has run: its statements, and if it `succeeded` its collection's figures,
 * which are forgotten if it has dropped that. `us` is what it has taken without waiting for
 * something to happen.
 */
void usage_count(struct usages *u, const struct call *c, uint64_t us, bool succeeded);

#endif

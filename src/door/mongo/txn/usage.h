/*
 * How often and how long commands have worked on each collection, in the memory of this process
 * since it has started: what `top` tells, and serverStatus in all.
 *
 * Threading: any thread.
 */
#ifndef FROND_DOOR_MONGO_TXN_USAGE_H
#define FROND_DOOR_MONGO_TXN_USAGE_H

#include <stdatomic.h>

#include "serve/counts.h"

struct call;

enum {
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

/* Of one collection. */
struct usage {
	struct usage_figure of[USAGE_KINDS];
};

struct usages {
	struct counts collections;                /* by their whole names */
	_Atomic uint64_t statements[USAGE_KINDS]; /* of all commands, on collections or not */
};

void usages_init(struct usages *u);
void usages_fini(struct usages *u);

/* One command more on a collection, by its whole name. */
void usage_add(struct usages *u, struct str name, enum usage_kind kind, uint64_t us);
/* The figures of a collection, all 0 if nothing is known of it. */
void usage_read(struct usages *u, struct str name, struct usage *ret);
/* Those of a row of `collections`. */
struct usage usage_of(const uint64_t *figures);
/* Those of several kinds together: `kinds` has bits. */
struct usage_figure usage_sum(const struct usage *usage, unsigned kinds);

/* ---- usage_call.c ---- */

/*
 * Counts a command that has run: its statements, and if it `succeeded` its collection's figures,
 * which are forgotten if it has dropped that. `us` is what it has taken without waiting for
 * something to happen.
 */
void usage_count(struct usages *u, const struct call *c, uint64_t us, bool succeeded);

#endif

/*
 * The history of writes: which keys have been written lately, and at which version. The committer
 * asks it whether anything that a transaction read has been written since.
 *
 * The writes of one batch are a run: sorted, in one piece of memory, and never changed, so adding
 * a batch costs a copy of its keys, and forgetting it costs nothing. A question is put to the runs
 * that are newer than the version it is about; for a transaction of milliseconds these are one or
 * two. Runs that are kept for long are merged, so there are never many, and a key that is written
 * again and again is kept once.
 *
 * Ownership: a resolver owns its runs, and copies all that it is given. Threads: it belongs to the
 * thread that owns the committer (committer.c).
 */
#ifndef FROND_KV_EMBEDDED_RESOLVER_H
#define FROND_KV_EMBEDDED_RESOLVER_H

#include <stdint.h>

#include "kv/embedded/tree.h"

enum {
	/*
	 * The committer makes a resolver forget long before it has so much. But one batch of very
	 * small keys can need more than that; then the whole history is forgotten at once.
	 */
	RESOLVER_MAX_BYTES = 64 * 1024 * 1024,
	RESOLVER_RUNS = 16,
};

struct resolver_run;

struct resolver {
	struct resolver_run *runs[RESOLVER_RUNS]; /* the oldest first */
	size_t run_count;
	uint64_t oldest; /* nothing is known about changes up to this version */
	uint64_t newest; /* of the writes added */
	size_t bytes;    /* of all runs */
};

void resolver_init(struct resolver *r, uint64_t oldest);
void resolver_fini(struct resolver *r);

/*
 * True if a key in [begin, end) has been written after `version`, and when that is no longer known
 * (version < oldest).
 */
bool resolver_written_since(const struct resolver *r, struct str begin, struct str end,
			    uint64_t version);

/*
 * Adds the writes of one batch: the nodes of `keys`, and the spans (span.h) of `spans`, which may
 * have keys in common. `version` must be above any added before. Copies what it needs. When memory
 * is short, or too much of it in use, everything up to `version` is forgotten instead.
 */
void resolver_add(struct resolver *r, const struct tree *keys, const struct tree *spans,
		  uint64_t version);

/* Forgets writes up to `version`. What was read at an earlier version cannot be judged any more. */
void resolver_forget(struct resolver *r, uint64_t version);

/* Merges all runs into one, without what has been forgotten. Out of memory it does nothing. */
void resolver_compact(struct resolver *r);

#endif

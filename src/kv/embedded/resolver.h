/*
 * What has been written lately, and at which version: the committer asks it whether anything that a
 * transaction read has changed since. The writes of a batch are a run: sorted, laid out in one
 * piece, never changed, so that adding one costs a copy of its keys and forgetting it nothing. A
 * question goes through the runs that are newer than the version that it is about, which for a
 * transaction of milliseconds are one or two. Runs that are kept for long are merged, so that
 * there are never many, and a key that is written over and over is kept once.
 *
 * Used by the committer's thread alone.
 */
#ifndef FROND_KV_EMBEDDED_RESOLVER_H
#define FROND_KV_EMBEDDED_RESOLVER_H

#include <stdint.h>

#include "kv/embedded/tree.h"

enum {
	/*
	 * Whoever owns a resolver makes it forget long before. One batch can write more than that,
	 * though, in the smallest of keys: then all is forgotten at once.
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

/* Forgets writes up to `version`; nobody who read before it can be judged any more. */
void resolver_forget(struct resolver *r, uint64_t version);

/* Makes one run of all, without what has been forgotten. Short of memory it does nothing. */
void resolver_compact(struct resolver *r);

/* True if `end` is the very next key after `key`. */
static inline bool
resolver_is_next_key(struct str key, struct str end)
{
	return end.len == key.len + 1 && end.ptr[key.len] == '\0' && str_starts_with(end, key);
}

#endif

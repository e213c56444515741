/*
 * What has been written lately, and at which version: the committer asks it whether anything that a
 * transaction read has changed since. It keeps the newest version of every key as a function with
 * steps, so that neither a question nor an answer grows with the number of transactions.
 *
 * Used by the committer's thread alone.
 */
#ifndef FROND_KV_EMBEDDED_RESOLVER_H
#define FROND_KV_EMBEDDED_RESOLVER_H

#include "kv/embedded/tree.h"

enum {
	/*
	 * Whoever owns a resolver makes it forget long before. One batch can write more than that,
	 * though, in the smallest of keys: then all is forgotten at once.
	 */
	RESOLVER_MAX_BYTES = 64 * 1024 * 1024,
};

struct resolver {
	struct tree tree;
	uint64_t oldest; /* nothing is known about changes up to this version */
	uint64_t newest; /* of the writes added */
	size_t count;
	size_t bytes; /* of all steps */
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
 * Adds a write of [begin, end) at `version`, which must not be below any added before. When memory
 * is short, or too much of it in use, everything up to `version` is forgotten instead.
 */
void resolver_add(struct resolver *r, struct str begin, struct str end, uint64_t version);

/* Forgets writes up to `version`; nobody who read before it can be judged any more. */
void resolver_forget(struct resolver *r, uint64_t version);

#endif

/*
 * A set of keys, kept as spans [begin, end) that have no key in common. Nodes come from the
 * caller's arena, and so do the bytes that they borrow. Not thread-safe.
 */
#ifndef FROND_KV_EMBEDDED_SPAN_H
#define FROND_KV_EMBEDDED_SPAN_H

#include "base/arena.h"
#include "kv/embedded/tree.h"

struct span {
	struct tree_node node; /* its key is where the span begins */
	struct str end;
};

/* The span that `key` lies in, or NULL. */
const struct span *span_around(const struct tree *spans, struct str key);

/* The first (or last) span that has a key in common with [begin, end), or NULL. */
const struct span *span_first_in(const struct tree *spans, struct str begin, struct str end);
const struct span *span_last_in(const struct tree *spans, struct str begin, struct str end);

/*
 * Joins [begin, end) to the set, or takes it out. Bytes are borrowed and must last as long as the
 * arena. STATUS_NOMEM when it has no more room; the set is then unchanged.
 */
MUST_USE enum status span_add(struct tree *spans, struct arena *a, struct str begin,
			      struct str end);
MUST_USE enum status span_subtract(struct tree *spans, struct arena *a, struct str begin,
				   struct str end);

#endif

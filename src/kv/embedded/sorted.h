/*
 * The writes of a transaction in the order of their keys. A batch enters them in that order, so
 * that each finds its place right behind the one before, and reads the memory of a large
 * transaction from one end to the other.
 *
 * Ownership: everything lies in the arena that is given. Threads: none of its own.
 */
#ifndef FROND_KV_EMBEDDED_SORTED_H
#define FROND_KV_EMBEDDED_SORTED_H

#include "base/arena.h"
#include "kv/embedded/overlay.h"

/* A write, and the bytes of its key by which most keys of a transaction differ. */
struct sorted_write {
	uint64_t prefix;
	const struct mutation *mutation;
};

/*
 * Sorts the writes of a log, none of which clears a range, by their keys. Those of one key stay in
 * the order in which they were made. STATUS_NOMEM.
 */
MUST_USE enum status sorted_writes(const struct mutation *log, struct arena *a,
				   const struct sorted_write **ret, size_t *ret_count);

#endif

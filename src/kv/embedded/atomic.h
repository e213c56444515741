/* What the atomic operations make of a value. */
#ifndef FROND_KV_EMBEDDED_ATOMIC_H
#define FROND_KV_EMBEDDED_ATOMIC_H

#include "base/arena.h"
#include "kv/kv.h"

/* A key's value, or its absence. */
struct cell {
	bool present;
	struct str value;
};

/*
 * Applies `op` to `old`. The result borrows from `old`, from `operand`, or lies in the arena;
 * STATUS_NOMEM when that has no more room.
 */
MUST_USE enum status atomic_apply(enum kv_atomic op, struct cell old, struct str operand,
				  struct arena *a, struct cell *ret);

#endif

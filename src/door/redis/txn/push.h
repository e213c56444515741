/*
 * A message that clients are sent without having asked for it now. It is held once, however many
 * clients get it: each that has yet to read it has a reference. The bytes do not change once it is
 * sent.
 *
 * What messages take is part of the memory of all connections (base/budget.h). References may be
 * taken and given up on any thread.
 */
#ifndef FROND_DOOR_REDIS_TXN_PUSH_H
#define FROND_DOOR_REDIS_TXN_PUSH_H

#include <stdatomic.h>

#include "base/budget.h"
#include "base/buf.h"

struct push {
	_Atomic size_t refs;
	struct budget_part part; /* of the last reference's thread */
	struct buf bytes;        /* behind the struct: a buffer that does not grow */
};

/*
 * An empty message with room for `most` bytes, which its maker appends to `bytes` before others see
 * it, and with one reference. It is of the memory that `of` is a part of. NULL: there is none,
 * neither what messages may take nor, if `insists` is true, what is left for short requests.
 */
struct push *push_new(const struct budget_part *of, size_t most, bool insists);

struct push *push_ref(struct push *p);
void push_unref(struct push *p); /* NULL is fine */

#endif

/*
 * Values that are stored as they were written, and compared otherwise: 1.0 and 1.00 are equal
 * numerics, a month and 30 days equal intervals, -0 and 0 equal floats. A column of an index that
 * is of their order (INDEX_TYPED_ORDER) has the value that stands for all equal ones.
 *
 * Plain functions. Threading: none.
 */
#ifndef FROND_INDEX_TYPED_ORDER_H
#define FROND_INDEX_TYPED_ORDER_H

#include "base/arena.h"
#include "doc/scalar.h"

/* Whether there is an order of that name, which definitions of indexes have as a path. */
bool index_typed_order_is_known(struct str order);
/*
 * What entries have of a value: in the arena where it has bytes. *ret_there is false for a value
 * that has no place in the order.
 */
MUST_USE enum status index_typed_order(struct str order, const struct doc_scalar *value,
				       struct arena *arena, struct doc_scalar *ret,
				       bool *ret_there);

#endif

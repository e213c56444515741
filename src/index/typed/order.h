/*
 * Values that are equal though they are written differently: the numerics 1.0 and 1.00, the
 * intervals of a month and of 30 days, the floats -0 and 0. Rows keep each as it was written. In
 * a column of an index that has an order (INDEX_TYPED_ORDER) all values that are equal are stored
 * as the same one, so that a search for one finds the others.
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
 * Gives the value that entries of an index have in place of this one; its bytes, if it has any, are
 * in the arena. *ret_there is false if it is no value of the order's type.
 */
MUST_USE enum status index_typed_order(struct str order, const struct doc_scalar *value,
				       struct arena *arena, struct doc_scalar *ret,
				       bool *ret_there);

#endif

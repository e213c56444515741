/* Sorting pointers in the arena (loop/sort.h). */
#ifndef FROND_MQL_SORT_VALUES_H
#define FROND_MQL_SORT_VALUES_H

#include "mql/mql.h"

/* `compare` has less than 0, 0, more than 0. Needs room for another `count` pointers meanwhile. */
MUST_USE enum status mql_sort(struct mql *q, const void **items, size_t count,
			      int (*compare)(const void *a, const void *b, const void *arg),
			      const void *arg);

#endif

/*
 * Incarnations of a whole store, for a copy of it that was restored more than once. Raising each by
 * one is in catalog.h.
 */
#ifndef FROND_CATALOG_INCARNATION_H
#define FROND_CATALOG_INCARNATION_H

#include "kv/kv.h"

/*
 * Raises the store's Incarnation and that of every database in it to `least` where they are below:
 * a database with that one is coming, and events of all databases are in one order; or a copy was
 * restored that had been restored before. Others may use the store meanwhile. A call that fails has
 * done a part of it, and another call does the rest.
 */
MUST_USE enum status catalog_incarnations_raise_to(struct kv_store *store, uint8_t least,
						   struct err *err);

#endif

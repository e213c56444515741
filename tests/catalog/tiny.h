/*
 * A tiny kind of databases, keys and values, beside the revisioned one: what a model has to bring
 * for the catalog. Its names are digits, in a name space of its own.
 *
 *     (P, 1, key)             → value
 *     (P, 2, 1, lo, hi)       → the counters of ranges of (P, 1, …)
 *     (P, 3, "keys")          → how many keys there are
 *     (P, 3, "changed")       → the versionstamp of the newest change
 *
 * Threading: that of the transaction.
 */
#ifndef FROND_TESTS_CATALOG_TINY_H
#define FROND_TESTS_CATALOG_TINY_H

#include "catalog/catalog.h"

enum {
	TINY_KIND = 77,
	TINY_SPACE = 9,
};

const struct catalog_kind *tiny_kind(void);
void tiny_register(void);

MUST_USE enum status tiny_create(struct kv_tx *tx, struct str name, struct err *err);

/* Sets the key, which must not be there yet, and counts it. */
MUST_USE enum status tiny_put(struct kv_tx *tx, const struct catalog_db *db, struct arena *arena,
			      struct str key, struct str value, struct err *err);

/* In the arena. STATUS_NOT_FOUND. */
MUST_USE enum status tiny_get(struct kv_tx *tx, const struct catalog_db *db, struct str key,
			      struct arena *arena, struct str *ret);

#endif

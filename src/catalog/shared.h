/*
 * What all caches of descriptions in a process, and those who open databases without one, know
 * together of counters by range (tally.h).
 *
 * Threading: catalog_tallies_share() before any other thread uses the catalog, or after all others
 * have ended; the rest from any thread.
 */
#ifndef FROND_CATALOG_SHARED_H
#define FROND_CATALOG_SHARED_H

#include "catalog/tally.h"

/*
 * From here on all caches that are taken from struct catalog_caches share these, which outlive
 * them. What is written through such a cache is noted there, so that ranges of its counters are
 * split (catalog_tallies_tend()). NULL: no longer; each description has its own, as in tests.
 */
void catalog_tallies_share(struct catalog_tallies *tallies);
/* Those that are shared, or NULL. */
struct catalog_tallies *catalog_tallies_shared(void);

/*
 * As catalog_open() without a cache: by what the store says alone. Only the counters by range are
 * those that the process shares.
 */
MUST_USE enum status catalog_open_stored(struct kv_tx *tx, enum catalog_space space,
					 struct str name, struct catalog_db **ret, struct err *err);

#endif

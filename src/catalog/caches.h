/*
 * Caches of descriptions for fibers that come and go: one takes a cache for a transaction and gives
 * it back, so that the next transaction of any client finds what this one has read. Code that has a
 * loop for itself keeps a cache with its loop instead, and needs none of this.
 *
 * Threading: any thread takes and gives; a cache that was taken belongs to its taker.
 */
#ifndef FROND_CATALOG_CACHES_H
#define FROND_CATALOG_CACHES_H

#include <pthread.h>

#include "catalog/catalog.h"

enum {
	CATALOG_CACHES = 64, /* that are kept while nobody has them; further ones are freed */
};

struct catalog_caches {
	/* Owns the list. It is held for a few instructions, and never while a cache is freed. */
	pthread_mutex_t lock;
	struct catalog_cache *idle[CATALOG_CACHES];
	size_t count;
};

void catalog_caches_init(struct catalog_caches *c);
/* Every cache has been given back. */
void catalog_caches_fini(struct catalog_caches *c);

/* The one that was given last. NULL: memory is short, and the transaction goes without. */
struct catalog_cache *catalog_caches_take(struct catalog_caches *c);
void catalog_caches_give(struct catalog_caches *c, struct catalog_cache *cache); /* NULL is fine */

#endif

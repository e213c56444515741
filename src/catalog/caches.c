#include "catalog/caches.h"

#include "catalog/shared.h"

static struct catalog_tallies *shared;

void
catalog_tallies_share(struct catalog_tallies *tallies)
{
	shared = tallies;
}

struct catalog_tallies *
catalog_tallies_shared(void)
{
	return shared;
}

void
catalog_caches_init(struct catalog_caches *c)
{
	*c = (struct catalog_caches){ .count = 0 };
	pthread_mutex_init(&c->lock, NULL);
}

void
catalog_caches_fini(struct catalog_caches *c)
{
	while (c->count)
		catalog_cache_free(c->idle[--c->count]);
	pthread_mutex_destroy(&c->lock);
}

struct catalog_cache *
catalog_caches_take(struct catalog_caches *c)
{
	struct catalog_cache *cache = NULL;

	pthread_mutex_lock(&c->lock);
	if (c->count)
		cache = c->idle[--c->count];
	pthread_mutex_unlock(&c->lock);
	if (cache)
		return cache;
	cache = catalog_cache_new();
	if (cache)
		catalog_cache_share(cache, shared);
	return cache;
}

void
catalog_caches_give(struct catalog_caches *c, struct catalog_cache *cache)
{
	pthread_mutex_lock(&c->lock);
	if (cache && c->count < CATALOG_CACHES) {
		c->idle[c->count++] = cache;
		cache = NULL;
	}
	pthread_mutex_unlock(&c->lock);
	catalog_cache_free(cache);
}

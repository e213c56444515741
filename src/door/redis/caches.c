/*
 * Caches of databases' descriptions. One belongs to one fiber at a time; they are kept between
 * transactions, since most of those find what they need.
 */
#include "door/redis/redis_int.h"

struct catalog_cache *
redis_cache_take(struct redis *r)
{
	struct catalog_cache *cache = NULL;

	pthread_mutex_lock(&r->caches_lock);
	if (r->cache_count)
		cache = r->caches[--r->cache_count];
	pthread_mutex_unlock(&r->caches_lock);
	return cache ? cache : catalog_cache_new();
}

void
redis_cache_give(struct redis *r, struct catalog_cache *cache)
{
	pthread_mutex_lock(&r->caches_lock);
	if (cache && r->cache_count < REDIS_CACHES) {
		r->caches[r->cache_count++] = cache;
		cache = NULL;
	}
	pthread_mutex_unlock(&r->caches_lock);
	catalog_cache_free(cache);
}

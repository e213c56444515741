#include <assert.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/metric.h"
#include "catalog/catalog_int.h"

/* Direct-mapped: a name has one slot, and takes it from whoever had it before. */
struct catalog_cache {
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES]; /* at which all of them are valid */
	struct catalog_db *slots[CATALOG_CACHE_SLOTS];
	struct catalog_tallies *tallies; /* the process's; NULL: each description has its own */
};

struct catalog_cache *
catalog_cache_new(void)
{
	return mem_zalloc(sizeof(struct catalog_cache));
}

void
catalog_cache_share(struct catalog_cache *cache, struct catalog_tallies *tallies)
{
	cache->tallies = tallies;
}

struct catalog_tallies *
catalog_cache_tallies(const struct catalog_cache *cache)
{
	return cache->tallies;
}

static void
cache_clear(struct catalog_cache *cache)
{
	for (size_t i = 0; i < CATALOG_CACHE_SLOTS; i++) {
		catalog_db_unref(cache->slots[i]);
		cache->slots[i] = NULL;
	}
}

void
catalog_cache_free(struct catalog_cache *cache)
{
	if (!cache)
		return;
	cache_clear(cache);
	mem_free(cache);
}

static size_t
cache_slot_number(struct str name)
{
	return (hash_quick(name) >> 32) % CATALOG_CACHE_SLOTS;
}

static struct catalog_db **
cache_slot(struct catalog_cache *cache, struct str name)
{
	return &cache->slots[cache_slot_number(name)];
}

static const char *const cache_outcomes[] = { "hit", "miss" };

METRIC_COUNTERS(cache_lookups, "frond_catalog_lookups_total", METRIC_NUMBER,
		"Databases that were looked up in a loop's cache of descriptions, by outcome.",
		"outcome", cache_outcomes);
METRIC_COUNTER(cache_clears, "frond_catalog_cache_clears_total", METRIC_NUMBER,
	       "How often a loop's cache was cleared because the catalog had changed.");

struct catalog_db *
catalog_cache_find(struct catalog_cache *cache, const uint8_t version[KV_VERSIONSTAMP_TX_BYTES],
		   enum catalog_space space, struct str name)
{
	struct catalog_db *db;

	if (memcmp(cache->version, version, sizeof(cache->version)) != 0) {
		cache_clear(cache);
		memcpy(cache->version, version, sizeof(cache->version));
		metric_add(&cache_clears, 1);
		metric_add_at(&cache_lookups, 1, 1);
		return NULL;
	}
	db = *cache_slot(cache, name);
	if (!db || db->kind->space != space || !str_eq(db->name, name))
		db = NULL;
	metric_add_at(&cache_lookups, !db, 1);
	return db ? catalog_db_ref(db) : NULL;
}

const struct catalog_db *
catalog_cache_peek(const struct catalog_cache *cache, enum catalog_space space, struct str name)
{
	const struct catalog_db *db = cache->slots[cache_slot_number(name)];

	return db && db->kind->space == space && str_eq(db->name, name) ? db : NULL;
}

void
catalog_cache_add(struct catalog_cache *cache, const uint8_t version[KV_VERSIONSTAMP_TX_BYTES],
		  struct catalog_db *db)
{
	struct catalog_db **slot = cache_slot(cache, db->name);

	assert(db->kind);
	/* The read may have waited while another fiber moved the cache on. */
	if (memcmp(cache->version, version, sizeof(cache->version)) != 0)
		return;
	catalog_db_unref(*slot);
	*slot = catalog_db_ref(db);
}

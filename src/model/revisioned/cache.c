#include "base/mem.h"
#include "model/revisioned/revisioned_int.h"

/* Direct-mapped: a name has one slot, and takes it from whoever had it before. */
struct rev_cache {
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES]; /* at which all of them are valid */
	struct rev_db *slots[REV_CACHE_SLOTS];
	struct rev_tallies *tallies; /* the process's; NULL: each description has its own */
};

struct rev_cache *
rev_cache_new(void)
{
	return mem_zalloc(sizeof(struct rev_cache));
}

void
rev_cache_share(struct rev_cache *cache, struct rev_tallies *tallies)
{
	cache->tallies = tallies;
}

struct rev_tallies *
rev_cache_tallies(const struct rev_cache *cache)
{
	return cache->tallies;
}

static void
cache_clear(struct rev_cache *cache)
{
	for (size_t i = 0; i < REV_CACHE_SLOTS; i++) {
		rev_db_unref(cache->slots[i]);
		cache->slots[i] = NULL;
	}
}

void
rev_cache_free(struct rev_cache *cache)
{
	if (!cache)
		return;
	cache_clear(cache);
	mem_free(cache);
}

static struct rev_db **
cache_slot(struct rev_cache *cache, struct str name)
{
	return &cache->slots[str_hash(name) % REV_CACHE_SLOTS];
}

struct rev_db *
rev_cache_find(struct rev_cache *cache, const uint8_t version[KV_VERSIONSTAMP_TX_BYTES],
	       struct str name)
{
	struct rev_db *db;

	if (memcmp(cache->version, version, sizeof(cache->version)) != 0) {
		cache_clear(cache);
		memcpy(cache->version, version, sizeof(cache->version));
		return NULL;
	}
	db = *cache_slot(cache, name);
	return db && str_eq(db->name, name) ? rev_db_ref(db) : NULL;
}

enum rev_scheme
rev_cache_scheme(const struct rev_cache *cache, struct str name, enum rev_scheme unknown)
{
	const struct rev_db *db = cache->slots[str_hash(name) % REV_CACHE_SLOTS];

	return db && str_eq(db->name, name) ? db->scheme : unknown;
}

void
rev_cache_add(struct rev_cache *cache, const uint8_t version[KV_VERSIONSTAMP_TX_BYTES],
	      struct rev_db *db)
{
	struct rev_db **slot = cache_slot(cache, db->name);

	/* The read may have waited while another fiber moved the cache on. */
	if (memcmp(cache->version, version, sizeof(cache->version)) != 0)
		return;
	rev_db_unref(*slot);
	*slot = rev_db_ref(db);
}

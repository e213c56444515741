#include <openssl/sha.h>
#include <pthread.h>

#include "base/mem.h"
#include "door/redis/script.h"

enum {
	CACHE_SLOTS = 1024,
};

/* In a list of its slot, and in the list of all by when they were last used. */
struct cached {
	struct cached *next_same;
	struct cached *older;
	struct cached *newer;
	char sha[SCRIPT_SHA_CHARS];
	struct str text; /* behind the struct */
};

struct script_cache {
	pthread_mutex_t lock;
	struct cached *slots[CACHE_SLOTS];
	struct cached *newest;
	struct cached *oldest;
	size_t count;
	size_t bytes;
};

struct script_cache *
script_cache_new(void)
{
	struct script_cache *cache = mem_zalloc(sizeof(*cache));

	if (cache)
		pthread_mutex_init(&cache->lock, NULL);
	return cache;
}

void
script_sha(struct str text, char ret[static SCRIPT_SHA_CHARS + 1])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char sha[SHA_DIGEST_LENGTH];

	SHA1((const unsigned char *)text.ptr, text.len, sha);
	for (size_t i = 0; i < sizeof(sha); i++) {
		ret[2 * i] = digits[sha[i] >> 4];
		ret[2 * i + 1] = digits[sha[i] & 15];
	}
	ret[SCRIPT_SHA_CHARS] = '\0';
}

/* ---- The lock is held ---- */

static struct cached **
cached_slot(struct script_cache *cache, struct str sha)
{
	return &cache->slots[str_hash(sha) % CACHE_SLOTS];
}

static struct str
cached_sha(const struct cached *c)
{
	return str_of(c->sha, SCRIPT_SHA_CHARS);
}

static void
cached_unlink(struct script_cache *cache, struct cached *c)
{
	*(c->newer ? &c->newer->older : &cache->newest) = c->older;
	*(c->older ? &c->older->newer : &cache->oldest) = c->newer;
}

static void
cached_make_newest(struct script_cache *cache, struct cached *c)
{
	c->newer = NULL;
	c->older = cache->newest;
	*(c->older ? &c->older->newer : &cache->oldest) = c;
	cache->newest = c;
}

static struct cached *
cached_find(struct script_cache *cache, struct str sha)
{
	struct cached *c = *cached_slot(cache, sha);

	while (c && !str_eq(cached_sha(c), sha))
		c = c->next_same;
	return c;
}

static void
cached_remove(struct script_cache *cache, struct cached *c)
{
	struct cached **at = cached_slot(cache, cached_sha(c));

	while (*at != c)
		at = &(*at)->next_same;
	*at = c->next_same;
	cached_unlink(cache, c);
	cache->count--;
	cache->bytes -= c->text.len;
	mem_free(c);
}

/* ---- Any thread ---- */

struct str
script_cache_find(struct script_cache *cache, struct str sha, struct arena *arena)
{
	struct str text = { 0 };
	struct cached *c;

	pthread_mutex_lock(&cache->lock);
	c = cached_find(cache, sha);
	if (c) {
		cached_unlink(cache, c);
		cached_make_newest(cache, c);
		text = arena_dup(arena, c->text);
	}
	pthread_mutex_unlock(&cache->lock);
	return text;
}

bool
script_cache_has(struct script_cache *cache, struct str sha)
{
	bool has;

	pthread_mutex_lock(&cache->lock);
	has = cached_find(cache, sha);
	pthread_mutex_unlock(&cache->lock);
	return has;
}

enum status
script_cache_add(struct script_cache *cache, const char *sha, struct str text)
{
	struct str name = str_of(sha, SCRIPT_SHA_CHARS);
	struct cached *c;

	if (script_cache_has(cache, name))
		return STATUS_OK;
	c = mem_alloc(sizeof(*c) + text.len);
	if (!c)
		return STATUS_NOMEM;
	memcpy(c->sha, sha, SCRIPT_SHA_CHARS);
	c->text = str_of(c + 1, text.len);
	if (text.len)
		memcpy(c + 1, text.ptr, text.len);
	pthread_mutex_lock(&cache->lock);
	if (cached_find(cache, name)) {
		mem_free(c);
	} else {
		struct cached **slot = cached_slot(cache, name);

		while (cache->count && (cache->count >= SCRIPT_CACHE_ENTRIES ||
					cache->bytes + text.len > SCRIPT_CACHE_BYTES))
			cached_remove(cache, cache->oldest);
		c->next_same = *slot;
		*slot = c;
		cached_make_newest(cache, c);
		cache->count++;
		cache->bytes += text.len;
	}
	pthread_mutex_unlock(&cache->lock);
	return STATUS_OK;
}

void
script_cache_clear(struct script_cache *cache)
{
	pthread_mutex_lock(&cache->lock);
	while (cache->oldest)
		cached_remove(cache, cache->oldest);
	pthread_mutex_unlock(&cache->lock);
}

size_t
script_cache_count(struct script_cache *cache)
{
	size_t count;

	pthread_mutex_lock(&cache->lock);
	count = cache->count;
	pthread_mutex_unlock(&cache->lock);
	return count;
}

void
script_cache_free(struct script_cache *cache)
{
	if (!cache)
		return;
	script_cache_clear(cache);
	pthread_mutex_destroy(&cache->lock);
	mem_free(cache);
}

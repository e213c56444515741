#include "access/jwt_cache.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>

#include "base/rand.h"

enum {
	CACHE_WAYS = 2, /* places that a token can have */
	CACHE_SETS = JWT_CACHE_ENTRIES / CACHE_WAYS,
	CACHE_KEY_BYTES = 32,
	LENGTH_BYTES = 2, /* before each text */
};

/* `text` has the name, then the roles, each behind its length. */
struct cache_entry {
	uint8_t digest[JWT_CACHE_DIGEST_BYTES];
	uint64_t until_s; /* 0: the entry is free */
	uint8_t key[JWT_ID_BYTES];
	uint16_t roles_count;
	uint16_t text_len;
	char text[JWT_CACHE_TEXT_BYTES];
};

static struct {
	pthread_once_t once;
	uint8_t key[CACHE_KEY_BYTES];
	pthread_mutex_t lock; /* guards what follows */
	struct cache_entry entries[CACHE_SETS][CACHE_WAYS];
	uint8_t turns[CACHE_SETS]; /* which of the ways goes next */
} cache = { .once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER };

static void
cache_make_key(void)
{
	rand_bytes(cache.key, sizeof(cache.key));
}

enum status
jwt_cache_key_of(const struct jwt_rules *rules, struct str token, struct jwt_cache_key *ret)
{
	uint8_t text[JWT_ID_BYTES + JWT_TOKEN_BYTES];
	unsigned len = sizeof(ret->digest);

	assert(token.len <= JWT_TOKEN_BYTES);
	pthread_once(&cache.once, cache_make_key);
	memcpy(text, jwt_rules_id(rules), JWT_ID_BYTES);
	if (token.len)
		memcpy(text + JWT_ID_BYTES, token.ptr, token.len);
	if (!HMAC(EVP_sha256(), cache.key, sizeof(cache.key), text, JWT_ID_BYTES + token.len,
		  ret->digest, &len))
		return STATUS_NOMEM;
	assert(len == sizeof(ret->digest));
	return STATUS_OK;
}

static size_t
key_set(const struct jwt_cache_key *key)
{
	size_t n = (size_t)key->digest[0] << 16 | (size_t)key->digest[1] << 8 | key->digest[2];

	return n % CACHE_SETS;
}

static struct str
text_next(struct str *rest)
{
	uint16_t len;
	struct str text;

	assert(rest->len >= LENGTH_BYTES);
	memcpy(&len, rest->ptr, LENGTH_BYTES);
	assert(rest->len >= (size_t)LENGTH_BYTES + len);
	text = str_of(rest->ptr + LENGTH_BYTES, len);
	*rest = str_skip(*rest, (size_t)LENGTH_BYTES + len);
	return text;
}

static enum status
claims_read(const struct cache_entry *e, struct arena *arena, struct jwt_claims *ret)
{
	struct str rest = arena_dup(arena, str_of(e->text, e->text_len));
	struct jwt_claims claims = { .until_s = e->until_s, .roles_count = e->roles_count };

	claims.roles = arena_alloc(arena, (claims.roles_count + 1) * sizeof(*claims.roles));
	if (!rest.ptr || !claims.roles)
		return STATUS_LIMIT;
	claims.name = text_next(&rest);
	for (size_t i = 0; i < claims.roles_count; i++)
		claims.roles[i] = text_next(&rest);
	assert(!rest.len);
	memcpy(claims.key, e->key, sizeof(claims.key));
	*ret = claims;
	return STATUS_OK;
}

enum status
jwt_cache_find(const struct jwt_cache_key *key, uint64_t now_s, struct arena *arena,
	       struct jwt_claims *ret)
{
	struct cache_entry *set = cache.entries[key_set(key)];
	enum status status = STATUS_NOT_FOUND;

	pthread_mutex_lock(&cache.lock);
	for (size_t i = 0; i < CACHE_WAYS; i++)
		if (set[i].until_s > now_s &&
		    CRYPTO_memcmp(set[i].digest, key->digest, sizeof(key->digest)) == 0)
			status = claims_read(&set[i], arena, ret);
	pthread_mutex_unlock(&cache.lock);
	return status;
}

static bool
text_add(struct cache_entry *e, struct str text)
{
	uint16_t len = (uint16_t)text.len;

	assert(e->text_len <= sizeof(e->text));
	if (text.len + LENGTH_BYTES > sizeof(e->text) - e->text_len)
		return false;
	memcpy(e->text + e->text_len, &len, LENGTH_BYTES);
	if (text.len)
		memcpy(e->text + e->text_len + LENGTH_BYTES, text.ptr, text.len);
	e->text_len = (uint16_t)(e->text_len + LENGTH_BYTES + len);
	return true;
}

void
jwt_cache_add(const struct jwt_cache_key *key, const struct jwt_claims *claims)
{
	struct cache_entry e = { .until_s = claims->until_s,
				 .roles_count = (uint16_t)claims->roles_count };
	size_t set = key_set(key);
	size_t way;

	/* A token is shorter than what would make this wrong (JWT_TOKEN_BYTES). */
	assert(claims->roles_count == e.roles_count);
	memcpy(e.digest, key->digest, sizeof(e.digest));
	memcpy(e.key, claims->key, sizeof(e.key));
	if (!text_add(&e, claims->name))
		return;
	for (size_t i = 0; i < claims->roles_count; i++)
		if (!text_add(&e, claims->roles[i]))
			return;
	pthread_mutex_lock(&cache.lock);
	way = cache.turns[set]++ % CACHE_WAYS;
	/* Another fiber may have checked the same token meanwhile. */
	for (size_t i = 0; i < CACHE_WAYS; i++)
		if (memcmp(cache.entries[set][i].digest, e.digest, sizeof(e.digest)) == 0)
			way = i;
	cache.entries[set][way] = e;
	pthread_mutex_unlock(&cache.lock);
}

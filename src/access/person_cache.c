#include "access/person_cache.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>

#include "access/auth.h"
#include "base/rand.h"

enum {
	CACHE_WAYS = 2, /* slots that a proof can be in */
	CACHE_KEY_BYTES = 32,
	CACHE_TEXT_BYTES = AUTH_NAME_BYTES + 1 + AUTH_PASSWORD_BYTES,
};

static struct {
	pthread_once_t once;
	uint8_t key[CACHE_KEY_BYTES];
	pthread_mutex_t lock; /* guards what follows */
	struct person_proof entries[PERSON_CACHE_ENTRIES / CACHE_WAYS][CACHE_WAYS];
	uint8_t turns[PERSON_CACHE_ENTRIES / CACHE_WAYS]; /* which of the slots is replaced next */
} cache = { .once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER };

static void
cache_make_key(void)
{
	rand_bytes(cache.key, sizeof(cache.key));
}

enum status
person_proof_digest(struct str name, struct str password, struct person_proof *ret)
{
	uint8_t text[CACHE_TEXT_BYTES];
	unsigned len = sizeof(ret->digest);
	const void *done;

	if (name.len > AUTH_NAME_BYTES || password.len > AUTH_PASSWORD_BYTES)
		return STATUS_INVALID;
	pthread_once(&cache.once, cache_make_key);
	/* No name has a ':' in it. */
	if (name.len)
		memcpy(text, name.ptr, name.len);
	text[name.len] = ':';
	if (password.len)
		memcpy(text + name.len + 1, password.ptr, password.len);
	done = HMAC(EVP_sha256(), cache.key, sizeof(cache.key), text, name.len + 1 + password.len,
		    ret->digest, &len);
	assert(!done || len == sizeof(ret->digest));
	OPENSSL_cleanse(text, name.len + 1 + password.len);
	return done ? STATUS_OK : STATUS_NOMEM;
}

static size_t
proof_slot(const struct person_proof *proof)
{
	size_t n = (size_t)proof->digest[0] << 16 | (size_t)proof->digest[1] << 8 |
		   proof->digest[2];

	return n % (PERSON_CACHE_ENTRIES / CACHE_WAYS);
}

bool
person_cache_has(const struct person_proof *proof)
{
	size_t slot = proof_slot(proof);
	bool same = false;

	pthread_mutex_lock(&cache.lock);
	for (size_t i = 0; i < CACHE_WAYS; i++)
		same |= CRYPTO_memcmp(&cache.entries[slot][i], proof, sizeof(*proof)) == 0;
	pthread_mutex_unlock(&cache.lock);
	return same;
}

void
person_cache_add(const struct person_proof *proof)
{
	size_t slot = proof_slot(proof);
	size_t way;

	pthread_mutex_lock(&cache.lock);
	way = cache.turns[slot]++ % CACHE_WAYS;
	/* Another fiber may have checked the same password meanwhile. */
	for (size_t i = 0; i < CACHE_WAYS; i++)
		if (memcmp(cache.entries[slot][i].digest, proof->digest, sizeof(proof->digest)) ==
		    0)
			way = i;
	cache.entries[slot][way] = *proof;
	pthread_mutex_unlock(&cache.lock);
}

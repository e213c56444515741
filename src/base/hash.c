#include "base/hash.h"

#include <endian.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/rand.h"

enum {
	HASH_FINAL_ROUNDS = 3,
};

struct hash_state {
	uint64_t v[4];
};

static pthread_once_t secret_once = PTHREAD_ONCE_INIT;
static uint64_t secret[2];

static void
hash_draw_secret(void)
{
	rand_bytes(secret, sizeof(secret));
}

static uint64_t
hash_rotate(uint64_t n, unsigned bits)
{
	return n << bits | n >> (64 - bits);
}

static inline void
hash_round(struct hash_state *h)
{
	uint64_t *v = h->v;

	v[0] += v[1];
	v[2] += v[3];
	v[1] = hash_rotate(v[1], 13) ^ v[0];
	v[3] = hash_rotate(v[3], 16) ^ v[2];
	v[0] = hash_rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = hash_rotate(v[1], 17) ^ v[2];
	v[3] = hash_rotate(v[3], 21) ^ v[0];
	v[2] = hash_rotate(v[2], 32);
}

static inline void
hash_word(struct hash_state *h, uint64_t word)
{
	h->v[3] ^= word;
	hash_round(h);
	h->v[0] ^= word;
}

/* SipHash-1-3 of the number and the bytes, under these two words. */
static uint64_t
hash_under(const uint64_t key[2], uint64_t n, struct str s)
{
	uint64_t last = (uint64_t)s.len << 56;
	bool has_word = s.len >= sizeof(last);
	struct hash_state h;
	uint64_t word;

	/* The four constants of SipHash: they only have to differ from each other. */
	h.v[0] = key[0] ^ UINT64_C(0x736f6d6570736575);
	h.v[1] = key[1] ^ UINT64_C(0x646f72616e646f6d);
	h.v[2] = key[0] ^ UINT64_C(0x6c7967656e657261);
	h.v[3] = key[1] ^ UINT64_C(0x7465646279746573);
	hash_word(&h, n);
	while (s.len >= sizeof(word)) {
		memcpy(&word, s.ptr, sizeof(word));
		hash_word(&h, le64toh(word));
		s = str_skip(s, sizeof(word));
	}
	if (s.len && has_word) {
		/* The rest, as the end of the eight bytes that it ends. */
		memcpy(&word, s.ptr + s.len - sizeof(word), sizeof(word));
		last |= le64toh(word) >> 8 * (sizeof(word) - s.len);
	} else {
		for (size_t i = 0; i < s.len; i++)
			last |= (uint64_t)(uint8_t)s.ptr[i] << (8 * i);
	}
	hash_word(&h, last);
	h.v[2] ^= 0xff;
	for (int i = 0; i < HASH_FINAL_ROUNDS; i++)
		hash_round(&h);
	return h.v[0] ^ h.v[1] ^ h.v[2] ^ h.v[3];
}

uint64_t
hash_keyed(uint64_t n, struct str s)
{
	(void)pthread_once(&secret_once, hash_draw_secret);
	return hash_under(secret, n, s);
}

uint64_t
hash_seeded(const uint8_t seed[HASH_SEED_BYTES], struct str s)
{
	uint64_t key[2];

	memcpy(key, seed, sizeof(key));
	key[0] = le64toh(key[0]);
	key[1] = le64toh(key[1]);
	return hash_under(key, 0, s);
}

uint64_t
hash_quick(struct str s)
{
	const uint64_t factor = 0x9e3779b97f4a7c15u;
	uint64_t h = s.len * factor, word = 0;
	size_t at = 0;

	for (; s.len - at > sizeof(word); at += sizeof(word)) {
		memcpy(&word, s.ptr + at, sizeof(word));
		h = (h ^ word) * factor;
		h ^= h >> 32;
	}
	if (s.len >= sizeof(word))
		memcpy(&word, s.ptr + s.len - sizeof(word), sizeof(word));
	else if (s.len)
		word = str_few_bytes(s.ptr, s.len);
	h = (h ^ word) * factor;
	h ^= h >> 32;
	return h * factor;
}

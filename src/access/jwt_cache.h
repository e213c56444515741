/*
 * Tokens that were right lately, with what they say, so that each is read and verified once.
 *
 * The process keeps keyed digests of tokens and of the rules that they were checked by. Other
 * rules, such as another key, have another id, so what was kept under those of before is never
 * found again. The table has a fixed size; a token that says more than JWT_CACHE_TEXT_BYTES is
 * not kept.
 *
 * Thread-safe.
 */
#ifndef FROND_ACCESS_JWT_CACHE_H
#define FROND_ACCESS_JWT_CACHE_H

#include "access/jwt.h"

enum {
	JWT_CACHE_ENTRIES = 4096,
	JWT_CACHE_TEXT_BYTES = 440, /* name and roles, each with its length */
	JWT_CACHE_DIGEST_BYTES = 32,
};

struct jwt_cache_key {
	uint8_t digest[JWT_CACHE_DIGEST_BYTES];
};

/* STATUS_NOMEM. */
MUST_USE enum status jwt_cache_key_of(const struct jwt_rules *rules, struct str token,
				      struct jwt_cache_key *ret);

/* STATUS_NOT_FOUND: not there, or over at that moment; STATUS_LIMIT when the arena is full. */
MUST_USE enum status jwt_cache_find(const struct jwt_cache_key *key, uint64_t now_s,
				    struct arena *arena, struct jwt_claims *ret);
void jwt_cache_add(const struct jwt_cache_key *key, const struct jwt_claims *claims);

#endif

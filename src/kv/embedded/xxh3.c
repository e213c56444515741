#include "kv/embedded/xxh3.h"

#include <assert.h>
#include <string.h>

#include "base/little_endian.h"

enum {
	SECRET_BYTES = 192,
	SECRET_LEAST_BYTES = 136, /* how much of it short inputs use */
	STRIPE_BYTES = 64,
	LANES = 8,
	SECRET_STEP = 8, /* from one stripe to the next */
	STRIPES = (SECRET_BYTES - STRIPE_BYTES) / SECRET_STEP,
	LAST_STRIPE_BACK = 7, /* where the secret of the last stripe is, before its last 64 bytes */
	MERGE_AT = 11,
	SHORT_BYTES = 16,
	MIDDLE_BYTES = 128,
	LONG_BYTES = 240, /* longer inputs go through stripes */
	LONG_ROUND_AT = 3,
	LONG_LAST_BACK = 17,
};

static const uint64_t prime32_1 = 0x9E3779B1;
static const uint64_t prime32_2 = 0x85EBCA77;
static const uint64_t prime32_3 = 0xC2B2AE3D;
static const uint64_t prime64_1 = 0x9E3779B185EBCA87;
static const uint64_t prime64_2 = 0xC2B2AE3D27D4EB4F;
static const uint64_t prime64_3 = 0x165667B19E3779F9;
static const uint64_t prime64_4 = 0x85EBCA77C2B2AE63;
static const uint64_t prime64_5 = 0x27D4EB2F165667C5;
static const uint64_t prime_mx1 = 0x165667919E3779F9;

static const uint8_t secret[SECRET_BYTES] = {
	0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad,
	0x1c, 0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3,
	0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc,
	0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6,
	0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65,
	0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19,
	0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9,
	0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31,
	0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb,
	0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb, 0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0,
	0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16, 0xbe, 0x58, 0x7d,
	0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f,
	0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};

static uint64_t
fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t
avalanche(uint64_t hash)
{
	hash ^= hash >> 37;
	hash *= prime_mx1;
	return hash ^ hash >> 32;
}

/* 16 bytes of the input with 16 of the secret. */
static uint64_t
mix(const uint8_t *bytes, const uint8_t *with)
{
	return fold(little_endian_64(bytes) ^ little_endian_64(with),
		    little_endian_64(bytes + 8) ^ little_endian_64(with + 8));
}

static uint64_t
hash_short(const uint8_t *bytes, size_t len)
{
	uint64_t low = little_endian_64(bytes) ^ little_endian_64(secret + 24) ^
		       little_endian_64(secret + 32);
	uint64_t high = little_endian_64(bytes + len - 8) ^ little_endian_64(secret + 40) ^
			little_endian_64(secret + 48);

	return avalanche(len + __builtin_bswap64(low) + high + fold(low, high));
}

/* Pairs of 16 bytes from both ends, the innermost first. */
static uint64_t
hash_middle(const uint8_t *bytes, size_t len)
{
	uint64_t acc = len * prime64_1;

	for (size_t i = (len - 1) / 32 + 1; i-- > 0;) {
		acc += mix(bytes + 16 * i, secret + 32 * i);
		acc += mix(bytes + len - 16 * (i + 1), secret + 32 * i + 16);
	}
	return avalanche(acc);
}

static uint64_t
hash_long(const uint8_t *bytes, size_t len)
{
	uint64_t acc = len * prime64_1;
	uint64_t end = mix(bytes + len - 16, secret + SECRET_LEAST_BYTES - LONG_LAST_BACK);
	size_t rounds = len / 16;

	for (size_t i = 0; i < 8; i++)
		acc += mix(bytes + 16 * i, secret + 16 * i);
	acc = avalanche(acc);
	for (size_t i = 8; i < rounds; i++)
		end += mix(bytes + 16 * i, secret + 16 * (i - 8) + LONG_ROUND_AT);
	return avalanche(acc + end);
}

static void
stripe_add(uint64_t acc[LANES], const uint8_t *bytes, const uint8_t *with)
{
	for (size_t i = 0; i < LANES; i++) {
		uint64_t value = little_endian_64(bytes + 8 * i);
		uint64_t key = value ^ little_endian_64(with + 8 * i);

		acc[i ^ 1] += value;
		acc[i] += (key & UINT32_MAX) * (key >> 32);
	}
}

static void
lanes_scramble(uint64_t acc[LANES])
{
	for (size_t i = 0; i < LANES; i++) {
		acc[i] ^= acc[i] >> 47;
		acc[i] ^= little_endian_64(secret + SECRET_BYTES - STRIPE_BYTES + 8 * i);
		acc[i] *= prime32_1;
	}
}

static uint64_t
hash_stripes(const uint8_t *bytes, size_t len)
{
	uint64_t acc[LANES] = { prime32_3, prime64_1, prime64_2, prime64_3,
				prime64_4, prime32_2, prime64_5, prime32_1 };
	size_t stripes = (len - 1) / STRIPE_BYTES;
	uint64_t hash = len * prime64_1;

	for (size_t i = 0; i < stripes; i++) {
		stripe_add(acc, bytes + i * STRIPE_BYTES, secret + i % STRIPES * SECRET_STEP);
		if (i % STRIPES == STRIPES - 1)
			lanes_scramble(acc);
	}
	stripe_add(acc, bytes + len - STRIPE_BYTES,
		   secret + SECRET_BYTES - STRIPE_BYTES - LAST_STRIPE_BACK);
	for (size_t i = 0; i < LANES / 2; i++)
		hash += fold(acc[2 * i] ^ little_endian_64(secret + MERGE_AT + 16 * i),
			     acc[2 * i + 1] ^ little_endian_64(secret + MERGE_AT + 16 * i + 8));
	return avalanche(hash);
}

uint64_t
xxh3(const uint8_t *bytes, size_t len)
{
	assert(len >= XXH3_LEAST_BYTES);
	if (len <= SHORT_BYTES)
		return hash_short(bytes, len);
	if (len <= MIDDLE_BYTES)
		return hash_middle(bytes, len);
	return len <= LONG_BYTES ? hash_long(bytes, len) : hash_stripes(bytes, len);
}

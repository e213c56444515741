#include "base/md5.h"

#include <endian.h>
#include <string.h>

enum {
	BLOCK_BYTES = 64,
	BLOCK_WORDS = 16,
	LENGTH_BYTES = 8,
	STATE_WORDS = 4,
	VECTOR_LANES = 8,
	VECTORS = 2, /* beside each other: one alone would wait for itself, too */
	LANES = VECTORS * VECTOR_LANES,
};

typedef uint32_t vector __attribute__((vector_size(VECTOR_LANES * sizeof(uint32_t))));

/* The states of all lanes, word by word. */
struct lanes {
	uint32_t state[STATE_WORDS][LANES];
};

static const uint32_t first_state[STATE_WORDS] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476 };

static const uint32_t sines[] = {
	0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613,
	0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193,
	0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
	0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
	0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122,
	0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
	0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
	0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
	0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
	0xeb86d391,
};

/* ---- The function, of a block in each lane ---- */

#define MIX_F(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define MIX_G(x, y, z) ((y) ^ ((z) & ((x) ^ (y))))
#define MIX_H(x, y, z) ((x) ^ (y) ^ (z))
#define MIX_I(x, y, z) ((y) ^ ((x) | ~(z)))

#define STEP_OF(mix, a, b, c, d, word, i, shift)                                                   \
	(a) += mix(b, c, d) + (word) + sines[i];                                                   \
	(a) = ((a) << (shift) | (a) >> (32 - (shift))) + (b)

#define STEP(mix, a, b, c, d, w, i, shift)                                                         \
	STEP_OF(mix, a[0], b[0], c[0], d[0], words[0][(w) % BLOCK_WORDS], i, shift);               \
	STEP_OF(mix, a[1], b[1], c[1], d[1], words[1][(w) % BLOCK_WORDS], i, shift)

/* A round's sixteen steps; step i takes the word `from` + i * `by`. */
#define ROUND(mix, from, by, first, s0, s1, s2, s3)                                                \
	for (unsigned i = 0; i < BLOCK_WORDS; i += 4) {                                            \
		STEP(mix, a, b, c, d, (from) + (by)*i, (first) + i, s0);                           \
		STEP(mix, d, a, b, c, (from) + (by) * (i + 1), (first) + i + 1, s1);               \
		STEP(mix, c, d, a, b, (from) + (by) * (i + 2), (first) + i + 2, s2);               \
		STEP(mix, b, c, d, a, (from) + (by) * (i + 3), (first) + i + 3, s3);               \
	}

static inline uint32_t
word_at(const char *block, size_t w)
{
	uint32_t word;

	memcpy(&word, block + w * sizeof(word), sizeof(word));
	return le32toh(word);
}

static inline __attribute__((always_inline)) void
hash_blocks(struct lanes *lanes, const char *const blocks[LANES])
{
	vector words[VECTORS][BLOCK_WORDS];
	vector state[STATE_WORDS][VECTORS];
	vector a[VECTORS], b[VECTORS], c[VECTORS], d[VECTORS];

	for (size_t v = 0; v < VECTORS; v++) {
		const char *const *block = blocks + v * VECTOR_LANES;

		for (size_t w = 0; w < BLOCK_WORDS; w++)
			words[v][w] = (vector){ word_at(block[0], w), word_at(block[1], w),
						word_at(block[2], w), word_at(block[3], w),
						word_at(block[4], w), word_at(block[5], w),
						word_at(block[6], w), word_at(block[7], w) };
	}
	memcpy(state, lanes->state, sizeof(state));
	memcpy(a, state[0], sizeof(a));
	memcpy(b, state[1], sizeof(b));
	memcpy(c, state[2], sizeof(c));
	memcpy(d, state[3], sizeof(d));
	ROUND(MIX_F, 0U, 1U, 0, 7, 12, 17, 22)
	ROUND(MIX_G, 1U, 5U, 16, 5, 9, 14, 20)
	ROUND(MIX_H, 5U, 3U, 32, 4, 11, 16, 23)
	ROUND(MIX_I, 0U, 7U, 48, 6, 10, 15, 21)
	for (size_t v = 0; v < VECTORS; v++) {
		state[0][v] += a[v];
		state[1][v] += b[v];
		state[2][v] += c[v];
		state[3][v] += d[v];
	}
	memcpy(lanes->state, state, sizeof(state));
}

static void
hash_blocks_plain(struct lanes *lanes, const char *const blocks[LANES])
{
	hash_blocks(lanes, blocks);
}

#ifdef __x86_64__

__attribute__((target("avx2"))) static void
hash_blocks_avx2(struct lanes *lanes, const char *const blocks[LANES])
{
	hash_blocks(lanes, blocks);
}

/* It has an instruction for rotating. */
__attribute__((target("avx512f,avx512vl"))) static void
hash_blocks_avx512(struct lanes *lanes, const char *const blocks[LANES])
{
	hash_blocks(lanes, blocks);
}

#endif

typedef void hash_blocks_fn(struct lanes *lanes, const char *const blocks[LANES]);

static hash_blocks_fn *
choose(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512vl"))
		return hash_blocks_avx512;
	if (__builtin_cpu_supports("avx2"))
		return hash_blocks_avx2;
#endif
	return hash_blocks_plain;
}

/* ---- A message, block by block ---- */

struct lane {
	const struct md5_message *message; /* NULL: none is left */
	uint64_t len;
	uint64_t at;            /* where its next block begins */
	uint64_t end;           /* behind its last one */
	char edge[BLOCK_BYTES]; /* a block that lies across parts, or at the end */
};

static void
lane_begin(struct lane *lane, const struct md5_message *message)
{
	lane->message = message;
	lane->len = 0;
	for (size_t i = 0; i < MD5_PARTS; i++)
		lane->len += message->parts[i].len;
	lane->at = 0;
	/* A one bit and the length follow, and zeros between them fill the last block. */
	lane->end = ((lane->len + LENGTH_BYTES) / BLOCK_BYTES + 1) * BLOCK_BYTES;
}

/* Puts together what lies across parts, and what ends a message. */
static const char *
compose(struct lane *lane)
{
	uint64_t bits = htole64(lane->len * 8);
	uint64_t skip = lane->at;
	size_t n = 0;

	for (size_t i = 0; i < MD5_PARTS && n < BLOCK_BYTES; i++) {
		struct str part = lane->message->parts[i];
		size_t rest;

		if (skip >= part.len) {
			skip -= part.len;
			continue;
		}
		rest = part.len - (size_t)skip;
		if (rest > BLOCK_BYTES - n)
			rest = BLOCK_BYTES - n;
		memcpy(lane->edge + n, part.ptr + skip, rest);
		n += rest;
		skip = 0;
	}
	if (n == BLOCK_BYTES)
		return lane->edge;
	memset(lane->edge + n, 0, BLOCK_BYTES - n);
	if (lane->at <= lane->len)
		lane->edge[n] = (char)0x80;
	if (lane->at + BLOCK_BYTES == lane->end)
		memcpy(lane->edge + BLOCK_BYTES - LENGTH_BYTES, &bits, sizeof(bits));
	return lane->edge;
}

/* The next block, where it lies if it can be used there. */
static const char *
lane_block(struct lane *lane)
{
	static const char nothing[BLOCK_BYTES];
	uint64_t skip = lane->at;

	if (!lane->message)
		return nothing;
	for (size_t i = 0; i < MD5_PARTS; i++) {
		struct str part = lane->message->parts[i];

		if (skip >= part.len) {
			skip -= part.len;
			continue;
		}
		if (part.len - skip >= BLOCK_BYTES)
			return part.ptr + skip;
		break;
	}
	return compose(lane);
}

static void
lane_end(const struct lanes *lanes, size_t i, uint8_t *ret)
{
	for (size_t w = 0; w < STATE_WORDS; w++) {
		uint32_t word = htole32(lanes->state[w][i]);

		memcpy(ret + w * sizeof(word), &word, sizeof(word));
	}
}

void
md5_many(const struct md5_message *messages, size_t count)
{
	hash_blocks_fn *const hash = choose();
	const char *blocks[LANES];
	struct lane work[LANES] = { 0 };
	struct lanes lanes = { 0 };
	size_t begun = 0;
	size_t ended = 0;

	while (ended < count) {
		for (size_t i = 0; i < LANES; i++) {
			if (!work[i].message && begun < count) {
				lane_begin(&work[i], &messages[begun++]);
				for (size_t w = 0; w < STATE_WORDS; w++)
					lanes.state[w][i] = first_state[w];
			}
			blocks[i] = lane_block(&work[i]);
		}
		hash(&lanes, blocks);
		for (size_t i = 0; i < LANES; i++) {
			if (!work[i].message)
				continue;
			work[i].at += BLOCK_BYTES;
			if (work[i].at < work[i].end)
				continue;
			lane_end(&lanes, i, work[i].message->ret);
			work[i].message = NULL;
			ended++;
		}
	}
}

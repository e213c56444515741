#include "door/redis/wire/hyperloglog.h"

#include <endian.h>
#include <math.h>
#include <string.h>

/*
 * The runs of a sparse one, which cover all registers in their order:
 *
 *     00nnnnnn           n + 1 registers are 0
 *     01nnnnnn nnnnnnnn  n + 1 registers are 0
 *     1vvvvvnn           n + 1 registers are v + 1
 */

enum {
	REGISTER_BITS = 14, /* of a hash, that choose the register */
	VALUE_BITS = 64 - REGISTER_BITS,
	DENSE_BITS = 6,
	DENSE_MASK = (1 << DENSE_BITS) - 1,
	ENCODING_AT = 4,
	DENSE = 0,
	SPARSE = 1,
	COUNT_AT = 8,       /* of the number that is known */
	UNKNOWN_BIT = 0x80, /* in its last byte */
	ZEROS_MOST = 64,    /* in a byte */
	SPARSE_VALUE_MOST = 32,
	SPARSE_RUN_MOST = 4, /* of registers that are not 0 */
	SPLIT_BYTES = 5,     /* of a run that is divided into three, at most */
	JOINED_RUNS = 5,     /* from the one before on, that may be joined after a change */
};

static const uint64_t hash_seed = 0xadc83b19;

/* ---- Hashing ---- */

/* MurmurHash2 of 64 bits. */
static uint64_t
murmur(struct str s)
{
	const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);
	uint64_t h = hash_seed ^ s.len * m, k;
	size_t at = 0;

	for (; s.len - at >= sizeof(k); at += sizeof(k)) {
		memcpy(&k, s.ptr + at, sizeof(k));
		k = le64toh(k) * m;
		k ^= k >> 47;
		h = (h ^ k * m) * m;
	}
	for (size_t i = s.len; i > at; i--)
		h ^= (uint64_t)(uint8_t)s.ptr[i - 1] << 8 * (i - 1 - at);
	if (at < s.len)
		h *= m;
	h ^= h >> 47;
	h *= m;
	return h ^ h >> 47;
}

/* ---- Registers of a dense one ---- */

static uint8_t
dense_get(const uint8_t *registers, unsigned n)
{
	unsigned at = n * DENSE_BITS / 8, shift = n * DENSE_BITS % 8;

	return (uint8_t)((registers[at] >> shift | registers[at + 1] << (8 - shift)) & DENSE_MASK);
}

static void
dense_set(uint8_t *registers, unsigned n, uint8_t value)
{
	unsigned at = n * DENSE_BITS / 8, shift = n * DENSE_BITS % 8;
	unsigned pair = registers[at] | (unsigned)registers[at + 1] << 8;

	pair = (pair & ~((unsigned)DENSE_MASK << shift)) | (unsigned)value << shift;
	registers[at] = (uint8_t)pair;
	registers[at + 1] = (uint8_t)(pair >> 8);
}

/* ---- Runs of a sparse one ---- */

struct run {
	uint8_t value;
	unsigned length;
	unsigned bytes;
};

static struct run
run_read(const uint8_t *at)
{
	if (*at & 0x80)
		return (struct run){ (uint8_t)((*at >> 2 & 0x1f) + 1), (*at & 3u) + 1, 1 };
	if (*at & 0x40)
		return (struct run){ 0, ((*at & 0x3fu) << 8 | at[1]) + 1, 2 };
	return (struct run){ 0, *at + 1u, 1 };
}

/* Writes a run; none where it would be empty. Returns how many bytes it has. */
static unsigned
run_write(uint8_t *at, uint8_t value, unsigned length)
{
	unsigned n = length - 1;

	if (!length)
		return 0;
	if (value) {
		at[0] = (uint8_t)(0x80 | (value - 1u) << 2 | n);
		return 1;
	}
	if (length <= ZEROS_MOST) {
		at[0] = (uint8_t)n;
		return 1;
	}
	at[0] = (uint8_t)(0x40 | n >> 8);
	at[1] = (uint8_t)n;
	return 2;
}

/* ---- The header ---- */

void
hll_init(struct hll *h)
{
	memset(h->bytes, 0, h->room);
	memcpy(h->bytes, "HYLL", 4);
	h->bytes[ENCODING_AT] = SPARSE;
	h->len = HLL_HEADER_BYTES + run_write(h->bytes + HLL_HEADER_BYTES, 0, HLL_REGISTERS);
}

bool
hll_is_sound(struct str s)
{
	if (s.len < HLL_HEADER_BYTES || memcmp(s.ptr, "HYLL", 4) != 0)
		return false;
	return s.ptr[ENCODING_AT] == SPARSE ||
	       (s.ptr[ENCODING_AT] == DENSE && s.len == HLL_DENSE_BYTES);
}

bool
hll_is_dense(const struct hll *h)
{
	return h->bytes[ENCODING_AT] == DENSE;
}

bool
hll_known_count(const struct hll *h, uint64_t *ret)
{
	memcpy(ret, h->bytes + COUNT_AT, sizeof(*ret));
	*ret = le64toh(*ret);
	return !(h->bytes[COUNT_AT + sizeof(*ret) - 1] & UNKNOWN_BIT);
}

void
hll_forget_count(struct hll *h)
{
	h->bytes[COUNT_AT + sizeof(uint64_t) - 1] |= UNKNOWN_BIT;
}

/* ---- Merging ---- */

bool
hll_merge(const struct hll *h, uint8_t registers[static HLL_REGISTERS])
{
	const uint8_t *at = h->bytes + HLL_HEADER_BYTES, *end = h->bytes + h->len;
	unsigned n = 0;

	if (hll_is_dense(h)) {
		for (; n < HLL_REGISTERS; n++) {
			uint8_t value = dense_get(at, n);

			registers[n] = value > registers[n] ? value : registers[n];
		}
		return true;
	}
	while (at < end) {
		struct run run = run_read(at);

		if (run.length > HLL_REGISTERS - n)
			return false;
		for (unsigned i = n; i < n + run.length; i++)
			registers[i] = run.value > registers[i] ? run.value : registers[i];
		n += run.length;
		at += run.bytes;
	}
	/* The last run may lack its second byte. */
	return n == HLL_REGISTERS && at == end;
}

bool
hll_make_dense(struct hll *h)
{
	if (hll_is_dense(h))
		return true;
	memset(h->scratch, 0, HLL_REGISTERS);
	if (!hll_merge(h, h->scratch))
		return false;
	memset(h->bytes + HLL_HEADER_BYTES, 0, h->room - HLL_HEADER_BYTES);
	h->bytes[ENCODING_AT] = DENSE;
	h->len = HLL_DENSE_BYTES;
	for (unsigned n = 0; n < HLL_REGISTERS; n++)
		dense_set(h->bytes + HLL_HEADER_BYTES, n, h->scratch[n]);
	return true;
}

/* ---- Adding ---- */

static enum hll_change
dense_raise(struct hll *h, unsigned reg, uint8_t value)
{
	if (value <= dense_get(h->bytes + HLL_HEADER_BYTES, reg))
		return HLL_SAME;
	dense_set(h->bytes + HLL_HEADER_BYTES, reg, value);
	return HLL_CHANGED;
}

static enum hll_change
raise_as_dense(struct hll *h, unsigned reg, uint8_t value)
{
	return hll_make_dense(h) ? dense_raise(h, reg, value) : HLL_UNSOUND;
}

/* Joins runs of the same value beside each other, in those from `at` on. */
static void
sparse_join(struct hll *h, size_t at)
{
	for (unsigned left = JOINED_RUNS; left && at < h->len; left--) {
		struct run run = run_read(h->bytes + at), next = { 0 };

		if (run.value && at + 1 < h->len)
			next = run_read(h->bytes + at + 1);
		if (!next.value || next.value != run.value ||
		    run.length + next.length > SPARSE_RUN_MOST) {
			at += run.bytes;
			continue;
		}
		/* The joined run may be joined again. */
		(void)run_write(h->bytes + at + 1, run.value, run.length + next.length);
		memmove(h->bytes + at, h->bytes + at + 1, h->len - at);
		h->len--;
	}
}

static enum hll_change
sparse_raise(struct hll *h, unsigned reg, uint8_t value, size_t sparse_most)
{
	size_t at = HLL_HEADER_BYTES, before = at;
	uint8_t split[SPLIT_BYTES];
	unsigned first = 0, bytes;
	struct run run = { 0 };

	if (value > SPARSE_VALUE_MOST)
		return raise_as_dense(h, reg, value);
	while (at < h->len) {
		run = run_read(h->bytes + at);
		if (reg < first + run.length)
			break;
		before = at;
		at += run.bytes;
		first += run.length;
	}
	if (at >= h->len)
		return HLL_UNSOUND;
	if (run.value >= value)
		return HLL_SAME;
	bytes = run_write(split, run.value, reg - first);
	bytes += run_write(split + bytes, value, 1);
	bytes += run_write(split + bytes, run.value, first + run.length - 1 - reg);
	if (bytes > run.bytes && h->len + bytes - run.bytes > sparse_most)
		return raise_as_dense(h, reg, value);
	if (at + run.bytes > h->len || h->len + bytes + HLL_SPARE_BYTES > h->room)
		return HLL_UNSOUND;
	memmove(h->bytes + at + bytes, h->bytes + at + run.bytes, h->len - at - run.bytes);
	memcpy(h->bytes + at, split, bytes);
	h->len += bytes;
	h->len -= run.bytes;
	sparse_join(h, before);
	memset(h->bytes + h->len, 0, HLL_SPARE_BYTES);
	hll_forget_count(h);
	return HLL_CHANGED;
}

enum hll_change
hll_raise(struct hll *h, unsigned reg, uint8_t value, size_t sparse_most)
{
	return hll_is_dense(h) ? dense_raise(h, reg, value)
			       : sparse_raise(h, reg, value, sparse_most);
}

enum hll_change
hll_add(struct hll *h, struct str element, size_t sparse_most)
{
	uint64_t hash = murmur(element);
	uint64_t rest = hash >> REGISTER_BITS | UINT64_C(1) << VALUE_BITS;
	uint8_t value = (uint8_t)(__builtin_ctzll(rest) + 1);

	return hll_raise(h, (unsigned)(hash & (HLL_REGISTERS - 1)), value, sparse_most);
}

/* ---- Counting: O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" ---- */

static double
sigma(double x)
{
	double y = 1, z = x, before;

	if (x == 1.)
		return (double)INFINITY;
	do {
		x *= x;
		before = z;
		z += x * y;
		y += y;
	} while (before != z);
	return z;
}

static double
tau(double x)
{
	double y = 1, z = 1 - x, before;

	if (x == 0. || x == 1.)
		return 0.;
	do {
		x = sqrt(x);
		before = z;
		y *= 0.5;
		z -= pow(1 - x, 2) * y;
	} while (before != z);
	return z / 3;
}

uint64_t
hll_count(const uint8_t registers[static HLL_REGISTERS])
{
	const double half_over_ln2 = 0.721347520444481703680, m = HLL_REGISTERS;
	unsigned of_value[DENSE_MASK + 1] = { 0 };
	double z;

	for (unsigned n = 0; n < HLL_REGISTERS; n++)
		of_value[registers[n] & DENSE_MASK]++;
	z = m * tau((m - of_value[VALUE_BITS + 1]) / m);
	for (unsigned value = VALUE_BITS; value; value--) {
		z += of_value[value];
		z *= 0.5;
	}
	z += m * sigma(of_value[0] / m);
	return (uint64_t)llroundl((long double)(half_over_ln2 * m * m / z));
}

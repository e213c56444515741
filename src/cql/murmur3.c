#include "cql/murmur3.h"

#include "base/little_endian.h"

static const uint64_t murmur3_c1 = UINT64_C(0x87c37b91114253d5);
static const uint64_t murmur3_c2 = UINT64_C(0x4cf5ad432745937f);

static uint64_t
rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static uint64_t
mix_first(uint64_t k)
{
	return rotate(k * murmur3_c1, 31) * murmur3_c2;
}

static uint64_t
mix_second(uint64_t k)
{
	return rotate(k * murmur3_c2, 33) * murmur3_c1;
}

static uint64_t
avalanche(uint64_t k)
{
	k = (k ^ k >> 33) * UINT64_C(0xff51afd7ed558ccd);
	k = (k ^ k >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return k ^ k >> 33;
}

/* Up to eight bytes of the tail, each with its sign, which plain Murmur3 does not extend. */
static uint64_t
tail(const char *from, size_t count)
{
	uint64_t k = 0;

	for (size_t i = 0; i < count; i++)
		k ^= (uint64_t)(int64_t)(int8_t)from[i] << (8 * i);
	return k;
}

int64_t
cql_token(struct str key)
{
	uint64_t h1 = 0, h2 = 0;
	size_t blocks = key.len / 16, rest = key.len % 16;
	const char *end;

	if (key.len == 0)
		return INT64_MIN;
	end = key.ptr + blocks * 16;
	for (const char *at = key.ptr; at < end; at += 16) {
		h1 = rotate(h1 ^ mix_first(little_endian_64(at)), 27) + h2;
		h1 = h1 * 5 + 0x52dce729;
		h2 = rotate(h2 ^ mix_second(little_endian_64(at + 8)), 31) + h1;
		h2 = h2 * 5 + 0x38495ab5;
	}
	if (rest > 8)
		h2 ^= mix_second(tail(end + 8, rest - 8));
	if (rest > 0)
		h1 ^= mix_first(tail(end, rest < 8 ? rest : 8));
	h1 ^= key.len;
	h2 ^= key.len;
	h1 += h2;
	h2 += h1;
	h1 = avalanche(h1);
	h2 = avalanche(h2);
	h1 += h2;
	return (int64_t)h1 == INT64_MIN ? INT64_MAX : (int64_t)h1;
}

enum status
cql_partition_key_put(struct buf *out, const struct str *columns, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (columns[i].len > CQL_KEY_PART_BYTES)
			return STATUS_INVALID;
	if (count == 1) {
		buf_append_str(out, columns[0]);
		return buf_status(out);
	}
	for (size_t i = 0; i < count; i++) {
		buf_append_byte(out, (uint8_t)(columns[i].len >> 8));
		buf_append_byte(out, (uint8_t)columns[i].len);
		buf_append_str(out, columns[i]);
		buf_append_byte(out, 0);
	}
	return buf_status(out);
}

enum status
cql_partition_token(struct buf *key, const struct str *columns, size_t count, int64_t *ret)
{
	/* The bytes of a single column are the key, so nothing is put together. */
	if (count == 1 && columns[0].len <= CQL_KEY_PART_BYTES) {
		*ret = cql_token(columns[0]);
		return STATUS_OK;
	}
	TRY(cql_partition_key_put(key, columns, count));
	*ret = cql_token(buf_str(key));
	return STATUS_OK;
}

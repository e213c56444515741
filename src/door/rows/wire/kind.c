#include "door/rows/wire/kind.h"

#include <string.h>

#include "base/big_endian.h"
#include "base/utf8.h"

#define TIMESTAMP_LEAST  INT64_C(-211813488000000000) /* 4714-11-24 BC */
#define TIMESTAMP_BEYOND INT64_C(9223371331200000000) /* the year 294277 */

enum {
	DATE_LEAST = -2451545,    /* days since 2000: 4714-11-24 BC */
	DATE_BEYOND = 2145031949, /* the year 5874898 */
	ZONE_BEYOND_S = 16 * 3600,
	INET_HEAD_BYTES = 2,
	INET4_BYTES = 4,
	INET6_BYTES = 16,
	TIMETZ_BYTES = 12,
	BITS_HEAD_BYTES = 4,
};

static const struct {
	const char *name;
	size_t bytes; /* of each value; 0: they differ */
} kinds[ROWS_KINDS] = {
	[ROWS_NONE] = { "none", 0 },
	[ROWS_BOOL] = { "bool", 1 },
	[ROWS_INT2] = { "int2", 2 },
	[ROWS_INT4] = { "int4", 4 },
	[ROWS_INT8] = { "int8", 8 },
	[ROWS_FLOAT4] = { "float4", 4 },
	[ROWS_FLOAT8] = { "float8", 8 },
	[ROWS_NUMERIC] = { "numeric", 0 },
	[ROWS_TEXT] = { "text", 0 },
	[ROWS_BYTES] = { "bytes", 0 },
	[ROWS_DATE] = { "date", 4 },
	[ROWS_TIME] = { "time", 8 },
	[ROWS_TIMETZ] = { "timetz", TIMETZ_BYTES },
	[ROWS_TIMESTAMP] = { "timestamp", 8 },
	[ROWS_TIMESTAMPTZ] = { "timestamptz", 8 },
	[ROWS_INTERVAL] = { "interval", DOC_INTERVAL_BYTES },
	[ROWS_UUID] = { "uuid", 16 },
	[ROWS_INET] = { "inet", 0 },
	[ROWS_MACADDR] = { "macaddr", 6 },
	[ROWS_MACADDR8] = { "macaddr8", 8 },
	[ROWS_BITS] = { "bits", 0 },
	[ROWS_OTHER] = { "other", 0 },
};

const char *
rows_kind_name(enum rows_kind kind)
{
	return kinds[kind < ROWS_KINDS ? kind : ROWS_NONE].name;
}

bool
rows_kind_named(struct str name, enum rows_kind *ret)
{
	for (unsigned i = ROWS_NONE + 1; i < ROWS_KINDS; i++) {
		if (str_eq(name, str_from_cstr(kinds[i].name))) {
			*ret = (enum rows_kind)i;
			return true;
		}
	}
	return false;
}

bool
rows_kind_is_key(enum rows_kind kind)
{
	return kind > ROWS_NONE && kind < ROWS_OTHER;
}

/* ---- Checking ---- */

static int64_t
int64_at(struct str value, size_t at)
{
	return (int64_t)big_endian_64(value.ptr + at);
}

static int32_t
int32_at(struct str value, size_t at)
{
	return (int32_t)big_endian_32(value.ptr + at);
}

static bool
timestamp_check(int64_t us)
{
	return us == INT64_MIN || us == INT64_MAX ||
	       (us >= TIMESTAMP_LEAST && us < TIMESTAMP_BEYOND);
}

static bool
date_check(int32_t days)
{
	return days == INT32_MIN || days == INT32_MAX || (days >= DATE_LEAST && days < DATE_BEYOND);
}

/* The length of an address; 0 for what is no family. */
static size_t
address_bytes(uint8_t family)
{
	return family == 4 ? INET4_BYTES : family == 6 ? INET6_BYTES : 0;
}

static bool
inet_check(struct str value)
{
	size_t bytes = value.len ? address_bytes((uint8_t)value.ptr[0]) : 0;

	return bytes && value.len == INET_HEAD_BYTES + bytes && (uint8_t)value.ptr[1] <= 8 * bytes;
}

static bool
bits_check(struct str value)
{
	int32_t count;
	size_t bytes;

	if (value.len < BITS_HEAD_BYTES)
		return false;
	count = int32_at(value, 0);
	bytes = value.len - BITS_HEAD_BYTES;
	if (count < 0 || bytes != ((size_t)count + 7) / 8)
		return false;
	/* What is beyond the last bit is 0. */
	return count % 8 == 0 || !((uint8_t)value.ptr[value.len - 1] & (0xff >> (count % 8)));
}

bool
rows_value_check(enum rows_kind kind, struct str value)
{
	int64_t us;

	if (kind <= ROWS_NONE || kind >= ROWS_KINDS ||
	    (kinds[kind].bytes && value.len != kinds[kind].bytes))
		return false;
	switch ((int)kind) {
	case ROWS_BOOL:
		return (uint8_t)value.ptr[0] <= 1;
	case ROWS_NUMERIC:
		return doc_numeric_check(value);
	case ROWS_TEXT:
	case ROWS_OTHER:
		return utf8_valid_prefix(value) == value.len;
	case ROWS_DATE:
		return date_check(int32_at(value, 0));
	case ROWS_TIME:
	case ROWS_TIMETZ:
		us = int64_at(value, 0);
		return us >= 0 && us <= DOC_US_PER_DAY &&
		       (kind == ROWS_TIME || (int32_at(value, 8) > -ZONE_BEYOND_S &&
					      int32_at(value, 8) < ZONE_BEYOND_S));
	case ROWS_TIMESTAMP:
	case ROWS_TIMESTAMPTZ:
		return timestamp_check(int64_at(value, 0));
	case ROWS_INET:
		return inet_check(value);
	case ROWS_BITS:
		return bits_check(value);
	default:
		return true;
	}
}

/* ---- Ordered ---- */

static void
put_u32(struct buf *out, uint32_t n)
{
	uint8_t bytes[4];

	big_endian_put_32(bytes, n);
	buf_append(out, bytes, sizeof(bytes));
}

static void
put_u64(struct buf *out, uint64_t n)
{
	uint8_t bytes[8];

	big_endian_put_64(bytes, n);
	buf_append(out, bytes, sizeof(bytes));
}

/* A number with its sign inverted, and back. */
static void
put_signed(struct str value, struct buf *out)
{
	buf_append_byte(out, (uint8_t)((uint8_t)value.ptr[0] ^ 0x80));
	buf_append_str(out, str_skip(value, 1));
}

static uint32_t
float4_ordered(uint32_t bits)
{
	if ((bits & 0x7fffffff) > 0x7f800000)
		bits = 0x7fc00000;
	if (bits == UINT32_C(1) << 31)
		bits = 0;
	return bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
}

static uint64_t
float8_ordered(uint64_t bits)
{
	if ((bits & (UINT64_MAX >> 1)) > UINT64_C(0x7ff0000000000000))
		bits = UINT64_C(0x7ff8000000000000);
	if (bits == UINT64_C(1) << 63)
		bits = 0;
	return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static void
timetz_put(struct str value, struct buf *out)
{
	int32_t zone = int32_at(value, 8);

	put_u64(out, (uint64_t)(int64_at(value, 0) + zone * INT64_C(1000000)) ^ UINT64_C(1) << 63);
	put_u32(out, (uint32_t)zone ^ UINT32_C(1) << 31);
}

/* The address without what is behind its first `bits` bits. */
static void
network_put(struct str address, unsigned bits, struct buf *out)
{
	for (unsigned i = 0; i < address.len; i++) {
		unsigned kept = bits > 8 * i ? bits - 8 * i : 0;
		unsigned mask = kept >= 8 ? 0xff : 0xffu << (8 - kept) & 0xff;

		buf_append_byte(out, (uint8_t)((uint8_t)address.ptr[i] & mask));
	}
}

static void
inet_put(struct str value, struct buf *out)
{
	struct str address = str_skip(value, INET_HEAD_BYTES);

	buf_append_byte(out, (uint8_t)value.ptr[0]);
	network_put(address, (uint8_t)value.ptr[1], out);
	buf_append_byte(out, (uint8_t)value.ptr[1]);
	buf_append_str(out, address);
}

static void
bits_put(struct str value, struct buf *out)
{
	for (size_t i = BITS_HEAD_BYTES; i < value.len; i++) {
		buf_append_byte(out, (uint8_t)value.ptr[i]);
		if (!value.ptr[i])
			buf_append_byte(out, 0xff);
	}
	buf_append(out, "\0\0", 2);
	buf_append(out, value.ptr, BITS_HEAD_BYTES);
}

enum status
rows_ordered_put(enum rows_kind kind, struct str value, struct buf *out)
{
	switch (kind) {
	case ROWS_BOOL:
	case ROWS_TEXT:
	case ROWS_BYTES:
	case ROWS_UUID:
	case ROWS_MACADDR:
	case ROWS_MACADDR8:
		buf_append_str(out, value);
		break;
	case ROWS_INT2:
	case ROWS_INT4:
	case ROWS_INT8:
	case ROWS_DATE:
	case ROWS_TIME:
	case ROWS_TIMESTAMP:
	case ROWS_TIMESTAMPTZ:
		put_signed(value, out);
		break;
	case ROWS_FLOAT4:
		put_u32(out, float4_ordered(big_endian_32(value.ptr)));
		break;
	case ROWS_FLOAT8:
		put_u64(out, float8_ordered(big_endian_64(value.ptr)));
		break;
	case ROWS_NUMERIC:
		doc_numeric_put(value, out);
		break;
	case ROWS_TIMETZ:
		timetz_put(value, out);
		break;
	case ROWS_INTERVAL:
		(void)doc_interval_put(value, out);
		break;
	case ROWS_INET:
		inet_put(value, out);
		break;
	case ROWS_BITS:
		bits_put(value, out);
		break;
	case ROWS_NONE:
	case ROWS_OTHER:
	case ROWS_KINDS:
		return STATUS_INVALID;
	}
	return buf_status(out);
}

/* ---- Read back ---- */

static void
float4_read(struct str ordered, struct buf *out)
{
	uint32_t bits = big_endian_32(ordered.ptr);

	put_u32(out, bits >> 31 ? bits ^ UINT32_C(1) << 31 : ~bits);
}

static void
float8_read(struct str ordered, struct buf *out)
{
	uint64_t bits = big_endian_64(ordered.ptr);

	put_u64(out, bits >> 63 ? bits ^ UINT64_C(1) << 63 : ~bits);
}

static void
timetz_read(struct str ordered, struct buf *out)
{
	int32_t zone = (int32_t)(big_endian_32(ordered.ptr + 8) ^ UINT32_C(1) << 31);
	uint64_t utc = big_endian_64(ordered.ptr) ^ UINT64_C(1) << 63;

	put_u64(out, utc - (uint64_t)(zone * INT64_C(1000000)));
	put_u32(out, (uint32_t)zone);
}

static __int128
clamp(__int128 number, __int128 least, __int128 most)
{
	return number < least ? least : number > most ? most : number;
}

static enum status
interval_read(struct str ordered, struct buf *out)
{
	uint64_t high = big_endian_64(ordered.ptr) ^ UINT64_C(1) << 63;
	__int128 us = (__int128)((unsigned __int128)high << 64 | big_endian_64(ordered.ptr + 8));
	__int128 days = us / DOC_US_PER_DAY, months = 0, time = us % DOC_US_PER_DAY, fit;

	if (days > INT32_MAX || days < INT32_MIN) {
		months = clamp(days / DOC_DAYS_PER_MONTH, INT32_MIN, INT32_MAX);
		days -= months * DOC_DAYS_PER_MONTH;
		/* What the most months leave lies in days, and the rest in time: 292,000 years. */
		fit = clamp(days, INT32_MIN, INT32_MAX);
		time += (days - fit) * DOC_US_PER_DAY;
		days = fit;
	}
	if (time > INT64_MAX || time < INT64_MIN)
		return STATUS_CORRUPT;
	put_u64(out, (uint64_t)(int64_t)time);
	put_u32(out, (uint32_t)(int32_t)days);
	put_u32(out, (uint32_t)(int32_t)months);
	return buf_status(out);
}

static enum status
inet_read(struct str ordered, struct buf *out)
{
	size_t bytes = ordered.len ? address_bytes((uint8_t)ordered.ptr[0]) : 0;

	if (!bytes || ordered.len != INET_HEAD_BYTES + 2 * bytes)
		return STATUS_CORRUPT;
	buf_append_byte(out, (uint8_t)ordered.ptr[0]);
	buf_append_byte(out, (uint8_t)ordered.ptr[1 + bytes]);
	buf_append(out, ordered.ptr + INET_HEAD_BYTES + bytes, bytes);
	return buf_status(out);
}

static enum status
bits_read(struct str ordered, struct buf *out)
{
	size_t at = 0;

	/* How many come first in a value, and last here. */
	if (ordered.len < 2 + BITS_HEAD_BYTES)
		return STATUS_CORRUPT;
	buf_append(out, ordered.ptr + ordered.len - BITS_HEAD_BYTES, BITS_HEAD_BYTES);
	ordered.len -= 2 + BITS_HEAD_BYTES;
	while (at < ordered.len) {
		buf_append_byte(out, (uint8_t)ordered.ptr[at]);
		at += ordered.ptr[at] ? 1 : 2;
	}
	return buf_status(out);
}

static enum status
read_kind(enum rows_kind kind, struct str ordered, struct buf *out)
{
	if (kinds[kind].bytes && ordered.len != kinds[kind].bytes)
		return STATUS_CORRUPT;
	switch ((int)kind) {
	case ROWS_INT2:
	case ROWS_INT4:
	case ROWS_INT8:
	case ROWS_DATE:
	case ROWS_TIME:
	case ROWS_TIMESTAMP:
	case ROWS_TIMESTAMPTZ:
		put_signed(ordered, out);
		break;
	case ROWS_FLOAT4:
		float4_read(ordered, out);
		break;
	case ROWS_FLOAT8:
		float8_read(ordered, out);
		break;
	case ROWS_NUMERIC:
		return doc_numeric_read(ordered, out);
	case ROWS_TIMETZ:
		timetz_read(ordered, out);
		break;
	case ROWS_INTERVAL:
		return interval_read(ordered, out);
	case ROWS_INET:
		return inet_read(ordered, out);
	case ROWS_BITS:
		return bits_read(ordered, out);
	default:
		buf_append_str(out, ordered);
		break;
	}
	return buf_status(out);
}

enum status
rows_ordered_read(enum rows_kind kind, struct str ordered, struct buf *out)
{
	AUTO(buf_release) struct buf again = BUF_SHORT(ROWS_ORDERED_BYTES);
	size_t from = out->len;
	struct str value;

	if (!rows_kind_is_key(kind))
		return STATUS_CORRUPT;
	TRY(read_kind(kind, ordered, out));
	value = out->len ? str_skip(buf_str(out), from) : STR("");
	/* Each value has one form: what gives other bytes when it is written was not written so. */
	if (!rows_value_check(kind, value))
		return STATUS_CORRUPT;
	TRY(rows_ordered_put(kind, value, &again));
	return str_eq(buf_str(&again), ordered) ? STATUS_OK : STATUS_CORRUPT;
}

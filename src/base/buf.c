#include "base/buf.h"

#include <endian.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include <stdarg.h>
#include <stdio.h>

#include "base/budget.h"
#include "base/mem.h"

enum {
	BUF_FIRST_BYTES = 64,
};

void
buf_init(struct buf *b, size_t max_bytes)
{
	*b = BUF_INIT(max_bytes);
}

void
buf_release(struct buf *b)
{
	if (!b)
		return;
	mem_free(b->ptr);
	if (b->part)
		budget_unuse(b->part, b->cap);
	*b = BUF_INIT_OF(b->max_bytes, b->part);
}

bool
buf_grow(struct buf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : BUF_FIRST_BYTES;
	char *ptr;

	if (b->failed != STATUS_OK)
		return false;
	if (n > b->max_bytes || b->len > b->max_bytes - n) {
		b->failed = STATUS_LIMIT;
		return false;
	}
	while (cap < b->len + n)
		cap = cap > b->max_bytes / 2 ? b->max_bytes : cap * 2;
	if (cap > b->max_bytes)
		cap = b->max_bytes;
	if (b->part && !budget_use(b->part, cap - b->cap)) {
		b->failed = STATUS_LIMIT;
		return false;
	}
	ptr = mem_realloc(b->ptr, cap);
	if (!ptr) {
		if (b->part)
			budget_unuse(b->part, cap - b->cap);
		b->failed = STATUS_NOMEM;
		return false;
	}
	b->ptr = ptr;
	b->cap = cap;
	return true;
}

void
buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (n < 0 || !buf_reserve(b, (size_t)n + 1))
		return;
	va_start(args, fmt);
	vsnprintf(b->ptr + b->len, (size_t)n + 1, fmt, args);
	va_end(args);
	b->len += (size_t)n;
}

/* Apart, because a single digit needs no memory on the stack. */
__attribute__((noinline)) static void
buf_append_digits(struct buf *b, uint64_t n)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	buf_append(b, digits + at, sizeof(digits) - at);
}

void
buf_append_u64(struct buf *b, uint64_t n)
{
	if (n < 10)
		buf_append_byte(b, (uint8_t)('0' + n));
	else
		buf_append_digits(b, n);
}

/*
 * Returns the eight hexadecimal digits of four bytes, computed together. The bytes and the digits
 * are in the order in which they lie in memory.
 */
static uint64_t
buf_hex_digits(uint32_t bytes)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t n = le32toh(bytes);

	n = (n | n << 16) & UINT64_C(0x0000ffff0000ffff);
	n = (n | n << 8) & UINT64_C(0x00ff00ff00ff00ff);
	n = (n >> 4 | n << 8) & ones * 0x0f;
	/*
	 * Adding six sets bit 4 of exactly those bytes whose value is ten or more; they become
	 * letters.
	 */
	return htole64(n + ones * '0' + ((n + ones * 6) >> 4 & ones) * ('a' - '0' - 10));
}

#ifdef __SSE2__
/* The digits of sixteen values from 0 to 15. */
static inline __m128i
buf_hex_of_values(__m128i values)
{
	const __m128i letters = _mm_cmpgt_epi8(values, _mm_set1_epi8(9));

	return _mm_add_epi8(_mm_add_epi8(values, _mm_set1_epi8('0')),
			    _mm_and_si128(letters, _mm_set1_epi8('a' - '0' - 10)));
}

/* Writes the digits of eight bytes. */
static inline void
buf_put_hex_of_eight(const char *at, char *to)
{
	const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)at);
	const __m128i halves = _mm_unpacklo_epi8(_mm_srli_epi16(bytes, 4), bytes);
	const __m128i values = _mm_and_si128(halves, _mm_set1_epi8(15));

	_mm_storeu_si128((__m128i *)(void *)to, buf_hex_of_values(values));
}
#endif

void
buf_append_hex(struct buf *b, struct str s)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = s.ptr;
	const char *end;
	char *to;

	if (!s.len || !buf_reserve(b, s.len * 2))
		return;
	end = at + s.len;
	to = b->ptr + b->len;
	b->len += s.len * 2;
#ifdef __SSE2__
	for (; end - at >= 8; at += 8, to += 16)
		buf_put_hex_of_eight(at, to);
#endif
	for (; end - at >= 4; at += 4, to += 8) {
		uint32_t bytes;
		uint64_t eight;

		memcpy(&bytes, at, sizeof(bytes));
		eight = buf_hex_digits(bytes);
		memcpy(to, &eight, sizeof(eight));
	}
	for (; at < end; at++) {
		*to++ = digits[(uint8_t)*at >> 4];
		*to++ = digits[(uint8_t)*at & 15];
	}
}

void
buf_consume(struct buf *b, size_t n)
{
	b->len -= n;
	if (b->len)
		memmove(b->ptr, b->ptr + n, b->len);
}

void
buf_set(struct buf *b, struct str s)
{
	buf_clear(b);
	buf_append_str(b, s);
}

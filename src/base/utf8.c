#include "base/utf8.h"

#include <endian.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/*
 * Returns the length of the valid sequence at the start of `s`, or 0 if there is none (RFC 3629,
 * section 4).
 */
static size_t
utf8_sequence_len(struct str s)
{
	const uint8_t *p = (const uint8_t *)s.ptr;
	uint8_t low = 0x80;
	uint8_t high = 0xbf;
	size_t n;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		n = 2;
	} else if (p[0] >= 0xe0 && p[0] <= 0xef) {
		n = 3;
		if (p[0] == 0xe0)
			low = 0xa0;
		if (p[0] == 0xed)
			high = 0x9f;
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		n = 4;
		if (p[0] == 0xf0)
			low = 0x90;
		if (p[0] == 0xf4)
			high = 0x8f;
	} else {
		return 0;
	}
	if (s.len < n || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* The first byte at or behind `at` that is not ASCII, or the end. */
static size_t
utf8_skip_ascii(struct str s, size_t at)
{
	const uint64_t highs = UINT64_C(0x8080808080808080);
	uint32_t first, last;
	uint64_t word;

#ifdef __SSE2__
	for (; s.len - at >= 16; at += 16) {
		const void *bytes = s.ptr + at;
		int high = _mm_movemask_epi8(_mm_loadu_si128(bytes));

		if (high)
			return at + (unsigned)__builtin_ctz((unsigned)high);
	}
#endif
	for (; s.len - at >= sizeof(word); at += sizeof(word)) {
		memcpy(&word, s.ptr + at, sizeof(word));
		word = le64toh(word) & highs;
		if (word)
			return at + (unsigned)__builtin_ctzll(word) / 8;
	}
	/* The rest is less than a word: mostly the word that ends with it, or two halves, tell. */
	if (at < s.len && s.len >= sizeof(word)) {
		memcpy(&word, s.ptr + s.len - sizeof(word), sizeof(word));
		if (!(word & highs))
			return s.len;
	} else if (s.len >= sizeof(first)) {
		memcpy(&first, s.ptr, sizeof(first));
		memcpy(&last, s.ptr + s.len - sizeof(last), sizeof(last));
		if (!((first | last) & (uint32_t)highs))
			return s.len;
	}
	while (at < s.len && !((uint8_t)s.ptr[at] & 0x80))
		at++;
	return at;
}

size_t
utf8_valid_prefix(struct str s)
{
	size_t at = 0;

	while ((at = utf8_skip_ascii(s, at)) < s.len) {
		size_t n = utf8_sequence_len(str_skip(s, at));

		if (!n)
			break;
		at += n;
	}
	return at;
}

size_t
utf8_encode(uint32_t code, char ret[4])
{
	if (code < 0x80) {
		ret[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		ret[0] = (char)(0xc0 | code >> 6);
		ret[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		ret[0] = (char)(0xe0 | code >> 12);
		ret[1] = (char)(0x80 | (code >> 6 & 0x3f));
		ret[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	ret[0] = (char)(0xf0 | code >> 18);
	ret[1] = (char)(0x80 | (code >> 12 & 0x3f));
	ret[2] = (char)(0x80 | (code >> 6 & 0x3f));
	ret[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

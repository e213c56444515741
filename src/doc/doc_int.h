/* What the files of doc/ share. */
#ifndef FROND_DOC_DOC_INT_H
#define FROND_DOC_DOC_INT_H

#include <endian.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/buf.h"
#include "base/str.h"
#include "kv/tuple.h"

enum {
	/*
	 * Integers of more digits enter the revision hash as their text. (Turning digits into
	 * binary takes time that grows with their square.)
	 */
	DOC_TERM_INT_DIGITS = 10000,
};

/*
 * The first byte in [at, end) that cannot stand for itself in a JSON string: a quote, a backslash
 * or a control character; `end` if there is none. `*ret_high` becomes non-zero when a byte before
 * it is not ASCII.
 */
static inline const char *
json_scan_plain(const char *at, const char *end, uint64_t *ret_high)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	const uint64_t highs = UINT64_C(0x8080808080808080);

#ifdef __SSE2__
	while (end - at >= 16) {
		const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
		const __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
		const __m128i backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
		const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)),
						       bytes);
		unsigned special = (unsigned)_mm_movemask_epi8(
			_mm_or_si128(_mm_or_si128(quote, backslash), control));
		unsigned high = (unsigned)_mm_movemask_epi8(bytes);

		if (special) {
			unsigned before = (unsigned)__builtin_ctz(special);

			*ret_high |= high & ((1U << before) - 1);
			return at + before;
		}
		*ret_high |= high;
		at += 16;
	}
#endif
	while (end - at >= 8) {
		uint64_t word;
		uint64_t quote;
		uint64_t backslash;
		uint64_t special;

		memcpy(&word, at, sizeof(word));
		word = le64toh(word);
		quote = word ^ ones * '"';
		backslash = word ^ ones * '\\';
		/* In each term the lowest bit set marks a true match. */
		special = (((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) |
			   ((word - ones * 0x20) & ~word)) &
			  highs;
		if (special) {
			unsigned before = (unsigned)__builtin_ctzll(special) - 7;

			*ret_high |= word & highs & ((UINT64_C(1) << before) - 1);
			return at + before / 8;
		}
		*ret_high |= word & highs;
		at += 8;
	}
	for (; at < end; at++) {
		uint8_t c = (uint8_t)*at;

		if (c == '"' || c == '\\' || c < 0x20)
			break;
		*ret_high |= c & 0x80;
	}
	return at;
}

/* As json_write_str(), without the quotes. */
void json_write_chars(struct buf *b, struct str s);

/* The length of the JSON number that `s` starts with; 0 if it starts with none. */
size_t json_number_len(struct str s, bool *ret_is_integer);

/* ---- Numbers ---- */

/*
 * The double nearest to a JSON number's text; beyond the greatest one, that one: no value, no index
 * and no revision hash ever meets an infinity.
 */
double doc_number_double(struct str text);

/*
 * Appends a leaf's value for a JSON number (see doc.h) and, to `term`, its Erlang term. `value`
 * NULL: the term alone.
 */
void doc_number_put(struct buf *value, struct buf *term, struct str text, bool is_integer);

/* Appends the decimal digits of an INT or BIGINT element, with its sign. */
void doc_number_write_int(struct buf *out, const struct tuple_elem *e);

/* ---- Erlang's external term format, as far as JSON needs it ---- */

enum {
	TERM_NEW_FLOAT = 70,
	TERM_SMALL_INTEGER = 97,
	TERM_INTEGER = 98,
	TERM_ATOM = 100,
	TERM_SMALL_TUPLE = 104,
	TERM_NIL = 106,
	TERM_STRING = 107, /* a list of integers from 0 to 255 */
	TERM_LIST = 108,
	TERM_BINARY = 109,
	TERM_SMALL_BIG = 110,
	TERM_LARGE_BIG = 111,

	TERM_STRING_MAX = 65535,
	TERM_LIST_HEADER_BYTES = 5,
};

void doc_term_u32(struct buf *term, uint32_t n);
void doc_term_binary(struct buf *term, struct str s);
void doc_term_atom(struct buf *term, struct str name);

/* ---- Paths ---- */

/* Whether a pointer's token may be an array's position: digits without leading zeros (RFC 6901). */
bool doc_pointer_position(struct str token, uint64_t *ret);

/* Appends an encoded path as a JSON Pointer, cut to a readable length. */
void doc_path_draw(struct str path, struct buf *ret);

#endif

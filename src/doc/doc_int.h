/* What the files of doc/ share: scanning strings, JSON's numbers, paths in messages. */
#ifndef FROND_DOC_DOC_INT_H
#define FROND_DOC_DOC_INT_H

#include <endian.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/buf.h"
#include "base/str.h"
#include "doc/scalar.h"
#include "kv/tuple.h"

enum {
	/*
	 * Longer integers enter the revision hash as their text, because the time for turning
	 * digits into binary grows with the square of their number.
	 */
	DOC_TERM_INT_DIGITS = 10000,
};

/* True for the bytes that cannot stand for themselves in a JSON string. */
extern const bool json_is_special[256];

#define JSON_ONES  UINT64_C(0x0101010101010101)
#define JSON_HIGHS UINT64_C(0x8080808080808080)

/*
 * Marks the bytes of a word, the text's first one lowest, that cannot stand for themselves in a
 * JSON string, each by its highest bit. A borrow may mark bytes above a match, but the lowest mark
 * is a match.
 */
static inline uint64_t
json_mark_specials(uint64_t word)
{
	uint64_t quote = word ^ JSON_ONES * '"';
	uint64_t backslash = word ^ JSON_ONES * '\\';

	return (((quote - JSON_ONES) & ~quote) | ((backslash - JSON_ONES) & ~backslash) |
		((word - JSON_ONES * 0x20) & ~word)) &
	       JSON_HIGHS;
}

/*
 * json_scan_plain() for eight bytes. Returns how many of them come before a special one: all eight
 * if none is.
 */
static inline unsigned
json_scan_word(const char *at, uint64_t *ret_high)
{
	uint64_t specials;
	uint64_t word;
	unsigned before;

	memcpy(&word, at, sizeof(word));
	word = le64toh(word);
	specials = json_mark_specials(word);
	if (!specials) {
		*ret_high |= word & JSON_HIGHS;
		return sizeof(word);
	}
	before = (unsigned)__builtin_ctzll(specials) - 7;
	*ret_high |= word & JSON_HIGHS & ((UINT64_C(1) << before) - 1);
	return before / 8;
}

/*
 * json_scan_plain() as far as there are sixteen bytes more: `*at` goes on from there. True: it is
 * at a special byte.
 */
__attribute__((always_inline)) static inline bool
json_scan_blocks(const char **at, const char *end, uint64_t *ret_high)
{
#ifdef __SSE2__
	for (; end - *at >= 16; *at += 16) {
		const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)*at);
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
			*at += before;
			return true;
		}
		*ret_high |= high;
	}
#else
	(void)at;
	(void)end;
	(void)ret_high;
#endif
	return false;
}

/* What json_scan_blocks() leaves of json_scan_plain(): from `at` on. */
__attribute__((always_inline)) static inline const char *
json_scan_rest(const char *begin, const char *at, const char *end, uint64_t *ret_high)
{
	while (end - at >= 8) {
		unsigned before = json_scan_word(at, ret_high);

		at += before;
		if (before < 8)
			return at;
	}
	/* The rest is the end of eight bytes, of which those before it are known to be plain. */
	if (at < end && end - begin >= 8)
		return end - 8 + json_scan_word(end - 8, ret_high);
	for (; at < end; at++) {
		uint8_t c = (uint8_t)*at;

		if (json_is_special[c])
			break;
		*ret_high |= c & 0x80;
	}
	return at;
}

/*
 * The first byte in [begin, end) that cannot stand for itself in a JSON string: a quote, a
 * backslash or a control character; `end` if there is none. `*ret_high` becomes non-zero when a
 * byte before it is not ASCII.
 */
__attribute__((always_inline)) static inline const char *
json_scan_plain(const char *begin, const char *end, uint64_t *ret_high)
{
	const char *at = begin;

	if (json_scan_blocks(&at, end, ret_high))
		return at;
	return json_scan_rest(begin, at, end, ret_high);
}

/* As json_write_str(), without the quotes. */
void json_write_chars(struct buf *b, struct str s);

/* Appends the JSON text of a leaf's value. STATUS_CORRUPT for a kind that JSON does not have. */
MUST_USE enum status json_write_scalar(struct buf *b, const struct doc_scalar *s);

/* The length of the JSON number that `s` starts with; 0 if it starts with none. */
size_t json_number_len(struct str s, bool *ret_is_integer);

/* ---- Numbers ---- */

enum json_number_form {
	JSON_NUMBER_SHORT,  /* an integer of at most 18 digits: n */
	JSON_NUMBER_LONG,   /* any other integer */
	JSON_NUMBER_DOUBLE, /* with a fraction or an exponent: d, significant */
};

/* A JSON number that has been read. */
struct json_number {
	enum json_number_form form;
	struct str text; /* borrowed */
	int64_t n;
	double d;           /* the nearest; never an infinity (doc_number_double()) */
	size_t significant; /* digits, without zeros at the beginning and the end */
};

void json_number_read(struct str text, bool is_integer, struct json_number *ret);

/* The scalar that a leaf holds for it; its text lies in `n->text` or in `magnitude`. */
void json_number_scalar(const struct json_number *n, uint8_t magnitude[TUPLE_INT_MAX_BYTES],
			struct doc_scalar *ret);

/*
 * The double nearest to a JSON number's text. For numbers beyond the greatest double it is that
 * one, so that no value, no index and no revision hash holds an infinity.
 */
double doc_number_double(struct str text);

enum {
	DOC_INTEGER_LIMBS = DOC_TERM_INT_DIGITS / 19 + 1, /* a limb holds 19.27 digits */
};

/* A magnitude, least significant limb first, the last one not 0. */
struct doc_integer {
	size_t count;
	uint64_t limbs[DOC_INTEGER_LIMBS];
};

/* At most DOC_TERM_INT_DIGITS decimal digits. */
void doc_integer_read(struct str digits, struct doc_integer *ret);

size_t doc_integer_bytes(const struct doc_integer *n);

/* Byte `at` of the magnitude, the least significant first. */
static inline uint8_t
doc_integer_byte(const struct doc_integer *n, size_t at)
{
	return (uint8_t)(n->limbs[at / 8] >> at % 8 * 8);
}

/* Appends the decimal digits of a big-endian magnitude of at most TUPLE_INT_MAX_BYTES. */
void doc_integer_write(struct buf *out, bool negative, struct str magnitude);

/* ---- Paths ---- */

/* True if a pointer's token may be an array's position: digits without leading zeros. */
bool doc_pointer_position(struct str token, uint64_t *ret);

/* Appends an encoded path as a JSON Pointer, shortened to a readable length. */
void doc_path_draw(struct str path, struct buf *ret);

#endif

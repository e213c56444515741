/*
 * MongoDB's order of values, twice: as a comparison, and as keys whose bytes have that order.
 *
 * MinKey, undefined, null, numbers, strings and symbols, documents, arrays, binary data, ObjectIds,
 * booleans, dates, timestamps, regular expressions, DBPointers, code, code with scope, MaxKey.
 * Numbers of all types are compared exactly, by value: 1, 1.0 and Decimal128 1.00 are equal, -0 is
 * 0, and NaN is equal to itself and lower than any other number. Strings go by their bytes.
 * Documents go element by element: the type, then the name, then the value. Binary data goes by
 * length, subtype, bytes. Of an array only the values count.
 *
 * Plain functions on the caller's memory.
 */
#ifndef FROND_BSON_ORDER_H
#define FROND_BSON_ORDER_H

#include "bson/bson.h"

/* How strings and symbols are compared, where not by their bytes: a collation. */
struct bson_texts {
	int (*compare)(void *of, struct str a, struct str b);
	/* Appends a key whose bytes have that order. */
	enum status (*put_key)(void *of, struct str text, struct buf *key);
	void *of;
};

/* Less than 0, 0, more than 0. `texts` may be NULL. */
int bson_compare_values(const struct bson_value *a, const struct bson_value *b,
			const struct bson_texts *texts);
/* Two documents, likewise. */
int bson_compare_documents(struct str a, struct str b, const struct bson_texts *texts);
/* Numbers only. */
int bson_compare_numbers(const struct bson_value *a, const struct bson_value *b);

static inline bool
bson_equals(const struct bson_value *a, const struct bson_value *b)
{
	return bson_compare_values(a, b, NULL) == 0;
}

/* Values of different ranks are ordered by these alone; all numbers have one rank. */
int bson_type_rank(enum bson_type type);

enum {
	BSON_KEY_TEXT_BYTES = 32 << 20, /* of the key of a string in a collation */
};
/* What has to be free in a buffer for a key of `most` bytes, while the key is made. */
#define BSON_KEY_ROOM(most) (6 * (size_t)(most) + 256)

/*
 * Appends the key of a value: one component of DOC_KEY_BSON (doc/key.h), which ends by itself.
 * Two keys compare as their values do, and are equal if and only if the values are. Descending keys
 * are the same ones, inverted (doc_key_invert()).
 *
 * Of a key that would be longer than `most` bytes, the first `most` are appended, and `*ret_cut` is
 * set to true, which it is not otherwise set to: cut keys are in order, but values that are not
 * equal may have the same. No component is the beginning of another one, so a cut key never equals
 * a whole one. The buffer's maximum must leave BSON_KEY_ROOM(most), else STATUS_LIMIT.
 * Fails with STATUS_NOMEM, or as texts->put_key() does.
 */
MUST_USE enum status bson_key_put(struct buf *key, const struct bson_value *v, size_t most,
				  const struct bson_texts *texts, bool *ret_cut);

#endif

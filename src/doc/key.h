/*
 * Keys of values: bytes whose order is the order of the values, for entries of indexes and for
 * primary keys. README.md has the format, byte by byte; it is stored, and never changes.
 *
 * A key consists of components. A component ends by itself: no component is the beginning of
 * another one, so keys of several components sort component by component, and each of them may be
 * descending, which is to say inverted.
 *
 * Numbers of all kinds share one exact encoding: two numbers have equal bytes if and only if they
 * are equal in value, whatever their types; -0 is 0, and NaN is equal to itself and lower than any
 * other number. What a key does not tell (the type, trailing zeros, which text) the entry's value
 * keeps as a scalar (scalar.h).
 *
 * Plain functions on the caller's buffers.
 */
#ifndef FROND_DOC_KEY_H
#define FROND_DOC_KEY_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "doc/builder.h"
#include "doc/scalar.h"

enum {
	/* Significant digits of a number; of one with more there is no key. */
	DOC_KEY_DIGITS = 10000,
	DOC_KEY_DEPTH = 512, /* containers inside each other */
};

enum doc_key_order {
	/* MinKey, undefined, null, numbers, texts, objects, arrays, bytes, object ids, booleans,
	 * dates, timestamps, regular expressions, …, MaxKey. Bytes by length, then by content. */
	DOC_KEY_BSON,
	/* null, false, true, numbers, texts, arrays, objects. Texts are compared byte by byte: for
	 * another collation the caller passes sort keys in their place. */
	DOC_KEY_COUCH,
	/* Each type by itself, where all values of a component are of one type: as BSON's, but that
	 * bytes are compared by content, and a double's order is the one of its bits: -0 is less
	 * than 0, and NaN is greater than infinity. */
	DOC_KEY_TYPED,
	/*
	 * CouchDB's "raw" collation, which is the order of Erlang's terms. JSON values only:
	 * numbers, false, null, true, objects, arrays, texts; texts byte by byte.
	 */
	DOC_KEY_RAW,
};

/*
 * Appends a component. STATUS_LIMIT for a number of more than DOC_KEY_DIGITS digits, after which
 * the buffer is as it was, and when the buffer is full; STATUS_NOMEM. Empty containers are
 * doc_key_begin() and doc_key_end().
 */
MUST_USE enum status doc_key_put(struct buf *key, enum doc_key_order order,
				 const struct doc_scalar *s);

/*
 * A container is a component: doc_key_begin(), its elements, doc_key_end(). Each member of an
 * object is doc_key_member() and then its value, whose kind has to be known before (DOC_EMPTY_ARRAY
 * and DOC_EMPTY_OBJECT stand for any container), since BSON orders members by the types of their
 * values first. A shorter container comes before one that it is the beginning of.
 */
void doc_key_begin(struct buf *key, enum doc_key_order order, enum doc_container container);
void doc_key_member(struct buf *key, enum doc_key_order order, struct str name,
		    enum doc_kind value);
void doc_key_end(struct buf *key);

/* Makes the components from `from` to the end descending. */
void doc_key_invert(struct buf *key, size_t from);

/*
 * The length of the component that `key` begins with. STATUS_CORRUPT for bytes that begin with none
 * and for a component that is not whole.
 */
MUST_USE enum status doc_key_skip(struct str key, bool descending, size_t *ret_len);

/* A number as its key tells it. */
enum doc_key_form {
	DOC_KEY_NAN,
	DOC_KEY_INFINITE, /* negative */
	DOC_KEY_ZERO,
	DOC_KEY_BINARY, /* negative; significand (its highest bit is set) times 2^(exponent - 63) */
	DOC_KEY_DECIMAL, /* negative; 0.digits times 10^exponent, no zeros around the digits */
};

struct doc_key_number {
	enum doc_key_form form;
	bool negative;
	uint64_t significand;
	int64_t exponent;
	struct str digits; /* in the scratch buffer */
};

/*
 * Reads a component that is a number. STATUS_INVALID for another component; STATUS_CORRUPT for
 * bytes that doc_key_put() does not write; STATUS_NOMEM. Loses what was in `scratch`.
 */
MUST_USE enum status doc_key_read_number(struct str key, bool descending, struct buf *scratch,
					 struct doc_key_number *ret);

#endif

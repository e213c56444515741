/*
 * Values as the protocol has them: their bytes, texts, order, and the store's scalars.
 *
 * A value is null, not set, or bytes in the serialized form of its type (big-endian, protocol 3
 * and later). Bytes of length zero are a value: the empty text, or "empty" of other types. All is
 * borrowed. Any thread.
 */
#ifndef FROND_CQL_VALUE_H
#define FROND_CQL_VALUE_H

#include "cql/type.h"
#include "doc/scalar.h"

enum cql_presence {
	CQL_NULL,
	CQL_UNSET,
	CQL_SET,
};

struct cql_value {
	enum cql_presence presence;
	struct str bytes; /* SET */
};

#define CQL_VALUE_NULL  ((struct cql_value){ .presence = CQL_NULL })
#define CQL_VALUE_UNSET ((struct cql_value){ .presence = CQL_UNSET })
#define CQL_VALUE(b)    ((struct cql_value){ .presence = CQL_SET, .bytes = (b) })

/* ---- Checking ---- */

/*
 * Checks bytes from a client: lengths, UTF-8, counts, elements, all the way down.
 * Errors: Cassandra's MarshalException texts (CQL_E_LENGTH and its neighbours), code invalid.
 */
MUST_USE enum status cql_value_check(struct cql *q, const struct cql_type *type, struct str bytes);

/*
 * The form that is stored: sets and maps sorted by key in Cassandra's order with each key once (the
 * last one wins), booleans 0 or 1, varints and durations as short as they can be, one NaN, jsonb as
 * compact text; all the way down. Returns `bytes` itself where it is so already. The bytes were
 * checked.
 */
MUST_USE enum status cql_value_normalize(struct cql *q, const struct cql_type *type,
					 struct str bytes, struct str *ret);

/* ---- Order ---- */

/*
 * Compares in Cassandra's order of the type: <0, 0, >0. Empty values come first. Bytes that were
 * not checked are compared as far as they go, without reading past them.
 */
int cql_value_compare(const struct cql_type *type, struct str a, struct str b);

/* ---- Native values ---- */

/* Reads integers of 1, 2, 4, 8 bytes (by the length) with their sign. */
int64_t cql_int_read(struct str bytes);
/* Integers as bytes in the arena: `width` 1, 2, 4 or 8. */
MUST_USE enum status cql_int_put(struct cql *q, int64_t n, size_t width, struct str *ret);
MUST_USE enum status cql_double_put(struct cql *q, double d, struct str *ret);
MUST_USE enum status cql_float_put(struct cql *q, float f, struct str *ret);
double cql_double_read(struct str bytes); /* 8 bytes */
float cql_float_read(struct str bytes);   /* 4 bytes */

struct cql_duration {
	int32_t months, days;
	int64_t nanoseconds;
};

/* Months, days and nanoseconds as they were sent; false for bytes that are not three vints. */
bool cql_duration_parts(struct str bytes, int64_t ret[static 3]);
/* False for bytes that are no duration (three zig-zag vints, signs alike). */
bool cql_duration_read(struct str bytes, struct cql_duration *ret);
MUST_USE enum status cql_duration_put(struct cql *q, struct cql_duration d, struct str *ret);

/* ---- Collections, tuples, user types ---- */

/*
 * Goes through the elements of a list or set, keys and values of a map (2 × n elements), or fields
 * of a tuple or user type. `bytes` must have passed cql_value_check(). An element that is NULL is
 * given with the presence CQL_NULL.
 */
struct cql_elements {
	struct str rest;
	size_t left; /* elements: of tuples and UDTs at most, as many as there are bytes */
};

void cql_elements_init(struct cql_elements *e, const struct cql_type *type, struct str bytes);
bool cql_elements_next(struct cql_elements *e, struct cql_value *ret);
/* Elements of a list or set, pairs of a map; 0 for an empty value. */
size_t cql_elements_count(struct str bytes);

/* Appends i32 count; then each element by cql_element_put(). Tuples have no count. */
void cql_count_put(struct buf *out, size_t count);
/* Appends [bytes]: null is -1, unset -2. */
void cql_element_put(struct buf *out, struct cql_value v);

/* ---- Texts ---- */

/*
 * The value of a native type from a text, as constants in statements and strings of JSON have it:
 * numbers, dates in all of Cassandra's forms, UUIDs, addresses, durations; a blob by its
 * hexadecimal digits, without "0x" before them. A text that is none is refused with the error of
 * its type.
 */
MUST_USE enum status cql_value_from_text(struct cql *q, const struct cql_type *type,
					 struct str text, struct str *ret);

enum cql_text_form {
	CQL_FORM_LITERAL, /* as a statement writes it: 'text', 0xab, {'a': 1}, null */
	CQL_FORM_PLAIN,   /* as cqlsh shows it: text without quotes at the top */
	CQL_FORM_CAST,    /* as CAST(x AS text) gives it */
};

/* Appends the value. The bytes were checked. */
void cql_value_print(struct buf *out, const struct cql_type *type, struct cql_value v,
		     enum cql_text_form form);

/* ---- The store's scalars ---- */

/*
 * The scalar of a native type's value. Of another type, and of an empty value that is no text, it
 * is the bytes (DOC_BYTES). Counters are DOC_INT64. Texts are borrowed from the bytes, but for
 * varints and decimals, which are in the arena.
 */
MUST_USE enum status cql_value_to_scalar(struct cql *q, const struct cql_type *type,
					 struct str bytes, struct doc_scalar *ret);
/* The bytes of a scalar, in the arena or borrowed. STATUS_CORRUPT for a scalar of another kind. */
MUST_USE enum status cql_value_of_scalar(struct cql *q, const struct cql_type *type,
					 const struct doc_scalar *s, struct str *ret);

/*
 * How values of a type are keys: cql_value_put_key() makes one component of DOC_KEY_TYPED of each
 * (doc/key.h), whose order is Cassandra's. EXACT: what is read back has the same bytes, if they
 * were normalized. VALUE: a decimal lies in it, whose zeros at the end are lost: the row keeps the
 * bytes beside. NEVER: cql_type_can_be_key() is false.
 */
enum cql_key_use {
	CQL_KEY_EXACT,
	CQL_KEY_VALUE,
	CQL_KEY_NEVER,
};

enum cql_key_use cql_type_key_use(const struct cql_type *type);

/*
 * Appends the component of a value of any type that can be a key: of a native type the one of its
 * scalar; of another type an array's. An empty value that is no text or blob is a null's, and a
 * null inside a tuple an undefined's. STATUS_LIMIT for numbers of more than DOC_KEY_DIGITS digits.
 */
MUST_USE enum status cql_value_put_key(struct cql *q, struct buf *key, const struct cql_type *type,
				       struct str bytes);
/*
 * Reads the component that `key` begins with, and gives its length and the value's bytes. Tuples
 * come back with all of their elements. STATUS_CORRUPT for bytes that cql_value_put_key() does not
 * write.
 */
MUST_USE enum status cql_value_of_key(struct cql *q, const struct cql_type *type, struct str key,
				      bool descending, struct str *ret, size_t *ret_len);
/*
 * The same of a component of a native type that doc_key_read() has read as a scalar, or that
 * cql_value_to_scalar() gave. Texts are borrowed from the scalar; else the bytes are in the arena.
 */
MUST_USE enum status cql_value_of_part(struct cql *q, const struct cql_type *type,
				       const struct doc_scalar *s, struct str *ret);

#endif

/*
 * Values as texts in the files of cqlsh's COPY, both ways.
 *
 * A text, a number, a date or a UUID is its plain text, a boolean True or False, a blob 0x and
 * hexadecimal digits, a moment "2011-02-03 04:05:00.000+0000", or milliseconds since 1970 outside
 * of the years 1 to 9999. Collections, tuples and user types are [a, b], {a, b}, {k: v}, (a, b) and
 * {field: v}; what is inside of one is in single quotes where it is a text, a time or an address,
 * and a null is nothing at all. Numbers have all of their digits, so that they come back as they
 * were. Any thread.
 */
#ifndef FROND_CQL_COPY_H
#define FROND_CQL_COPY_H

#include "cql/value.h"

/*
 * Appends the text of a value, which was checked. An empty value of a type whose values have a
 * length is the empty text, as an empty text is; null is for the caller to write.
 */
void cql_copy_print(struct buf *out, const struct cql_type *type, struct str bytes);

/*
 * Reads such a text as a value of the type, checked and normalized. The empty text is an empty
 * value, where the type has one: null is for the caller to read. Elements of collections are
 * taken with or without quotes, fields of user types in any order. Errors: those of the types'
 * texts, CQL_E_BAD_COPY for brackets, quotes and elements.
 */
MUST_USE enum status cql_copy_read(struct cql *q, const struct cql_type *type, struct str text,
				   struct str *ret);

#endif

/*
 * Sorting documents: {a: 1, "b.c": -1}.
 *
 * A document's key has a value for each path; a missing value is null. An array is sorted by its
 * least element, or by its greatest one where the path is descending. If several paths lead into
 * the same array, each of its elements makes one key, and the document has the first of these keys;
 * paths that lead into different arrays are MongoDB's error.
 */
#ifndef FROND_MQL_SORT_H
#define FROND_MQL_SORT_H

#include "mql/mql.h"

enum {
	MQL_SORT_PATHS = 32, /* of one sort */
};

struct mql_sort_by;
struct mql_sort_key;

/* Fails for a document without paths. */
MUST_USE enum status mql_sort_by_compile(struct mql *q, struct str spec, struct mql_sort_by **ret);

/* The paths, in their order, for planners. */
size_t mql_sort_by_count(const struct mql_sort_by *s);
struct str mql_sort_by_path(const struct mql_sort_by *s, size_t i, bool *ret_descending);

/* The key lies in the arena of `q`, and its values are borrowed from the document. */
MUST_USE enum status mql_sort_key_of(const struct mql_sort_by *s, struct mql *q, struct str doc,
				     struct mql_sort_key **ret);

/* Less than 0 if `a` comes first, 0, more than 0. */
int mql_sort_key_compare(const struct mql_sort_by *s, const struct mql_sort_key *a,
			 const struct mql_sort_key *b, const struct bson_texts *texts);

/* The value of a path. */
const struct bson_value *mql_sort_key_value(const struct mql_sort_key *key, size_t i);

#endif

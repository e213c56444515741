/* The different values of an array, in order, to be looked up by halves. */
#ifndef FROND_MQL_VALUE_SET_H
#define FROND_MQL_VALUE_SET_H

#include "mql/mql.h"

/* Plain; its memory is the arena's. Values are borrowed from the array. */
struct mql_value_set {
	const struct bson_value *all; /* the array's elements */
	size_t all_count;
	const struct bson_value **values; /* of equal ones the first, in order */
	size_t count;
};

/* `texts` orders texts, as in all lookups; NULL: by their bytes. */
MUST_USE enum status mql_value_set_of(struct mql *q, struct str array,
				      const struct bson_texts *texts, struct mql_value_set *ret);

/* By the collation of `q`: where an equal value is in `values`; false if there is none. */
bool mql_value_set_find(const struct mql_value_set *s, const struct mql *q,
			const struct bson_value *v, size_t *ret);

#endif

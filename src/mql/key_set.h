/* Sets of values: of equal ones, the first counts. In an arena, by the keys of the values. */
#ifndef FROND_MQL_KEY_SET_H
#define FROND_MQL_KEY_SET_H

#include "mql/mql.h"

/* All zero is an empty set. */
struct mql_key_set {
	struct str *table;
	size_t slots;
	size_t count;
};

/* `*ret_added` is false if the value was there. STATUS_LIMIT: `keep` is full. */
MUST_USE enum status mql_key_set_add(struct mql_key_set *s, struct mql *q, struct arena *keep,
				     const struct bson_value *v, bool *ret_added);

#endif

/*
 * Whether an index alone has what a question looks at, so that its entries stand for documents.
 *
 * That a column has a field's name is not all of it: where documents have arrays, an entry has an
 * element and not the value, so languages whose entries do ask this only of other indexes. An entry
 * whose values are too long to stand in it has none, and its document is read.
 *
 * Plain values, borrowed; any thread.
 */
#ifndef FROND_INDEX_PLAN_COVER_H
#define FROND_INDEX_PLAN_COVER_H

#include <stddef.h>

#include "base/str.h"

struct cover {
	const struct str *columns; /* their names, as the language has them */
	size_t count;
	struct str id; /* what the language calls the id, if an entry's is as good; or empty */
};

bool cover_has(const struct cover *c, struct str field);
bool cover_has_all(const struct cover *c, const struct str *fields, size_t count);

#endif

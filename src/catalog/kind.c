#include "catalog/kind.h"

#include <assert.h>

static const struct catalog_kind *kinds[CATALOG_KINDS];

void
catalog_kind_register(const struct catalog_kind *kind)
{
	size_t at = 0;

	while (at < CATALOG_KINDS && kinds[at] && kinds[at] != kind) {
		assert(kinds[at]->number != kind->number);
		at++;
	}
	assert(at < CATALOG_KINDS);
	/* Not written again by a repeated call, because other threads may be reading it by then. */
	if (kinds[at] != kind)
		kinds[at] = kind;
}

const struct catalog_kind *
catalog_kind_find(uint64_t number)
{
	for (size_t i = 0; i < CATALOG_KINDS && kinds[i]; i++)
		if (kinds[i]->number == number)
			return kinds[i];
	return NULL;
}

const struct catalog_kind *
catalog_kind_at(size_t at)
{
	return at < CATALOG_KINDS ? kinds[at] : NULL;
}

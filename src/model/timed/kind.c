/* The kinds of databases in time: which there are, and what they share for the catalog. */
#include <assert.h>

#include "kv/tuple.h"
#include "model/timed/timed_int.h"

static const struct timed_kind *kinds[TIMED_KINDS];

void
timed_kind_register(const struct timed_kind *kind)
{
	size_t at = 0;

	while (at < TIMED_KINDS && kinds[at] && kinds[at] != kind)
		at++;
	assert(at < TIMED_KINDS);
	/* Not written again by a repeated call, because other threads may be reading it by then. */
	if (kinds[at] != kind)
		kinds[at] = kind;
	catalog_kind_register(kind->catalog);
}

const struct timed_kind *
timed_kind_at(size_t at)
{
	return at < TIMED_KINDS ? kinds[at] : NULL;
}

const struct timed_kind *
timed_kind_of(const struct catalog_db *db)
{
	for (size_t at = 0;; at++) {
		assert(at < TIMED_KINDS && kinds[at]);
		if (kinds[at]->catalog == db->kind)
			return kinds[at];
	}
}

/* A row of a table has a cell of its own only if it was inserted, so rows are not counted here. */
bool
timed_is_document(struct str key)
{
	struct tuple_reader r = tuple_reader(key);
	struct tuple_elem e;
	uint64_t space;

	return tuple_next_u64(&r, &space) == STATUS_OK && space == TIMED_SPACE_ROWS &&
	       tuple_next(&r, &e) == STATUS_OK && tuple_next(&r, &e) == STATUS_OK && !r.rest.len;
}

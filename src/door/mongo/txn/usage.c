#include "door/mongo/txn/usage.h"

#include <string.h>

/* A row of the counters is read and written as an array of figures. */
_Static_assert(sizeof(struct usage) == 2 * USAGE_KINDS * sizeof(uint64_t),
	       "a figure is two counts");

void
usages_init(struct usages *u)
{
	counts_init(&u->collections, 2 * USAGE_KINDS, USAGE_COLLECTIONS);
}

void
usages_fini(struct usages *u)
{
	counts_fini(&u->collections);
}

void
usage_add(struct usages *u, struct str name, enum usage_kind kind, uint64_t us)
{
	const struct usage_figure figure = { .count = 1, .us = us };

	counts_add(&u->collections, name, 2 * kind, &figure.count, 2);
}

void
usage_read(struct usages *u, struct str name, struct usage *ret)
{
	uint64_t figures[2 * USAGE_KINDS];

	(void)counts_read(&u->collections, name, figures);
	*ret = usage_of(figures);
}

struct usage
usage_of(const uint64_t *figures)
{
	struct usage usage;

	memcpy(&usage, figures, sizeof(usage));
	return usage;
}

struct usage_figure
usage_sum(const struct usage *usage, unsigned kinds)
{
	struct usage_figure all = { 0 };

	for (size_t i = 0; i < USAGE_KINDS; i++) {
		if (!(kinds & 1u << i))
			continue;
		all.count += usage->of[i].count;
		all.us += usage->of[i].us;
	}
	return all;
}

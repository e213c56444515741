/* The branches of a filter's $or, for who plans a query. */
#ifndef FROND_MQL_MATCH_BRANCHES_H
#define FROND_MQL_MATCH_BRANCHES_H

#include "mql/match/match.h"

/* What one branch demands. */
struct mql_branch {
	const struct mql_demand *demands;
	size_t count;
};

/*
 * The branches of a $or of which every matching document fulfils one, beside the demands of the
 * filter; none: 0. Of several such $or it is the first one.
 */
void mql_match_branches(const struct mql_match *m, const struct mql_branch **ret,
			size_t *ret_count);

#endif

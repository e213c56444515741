/*
 * Rounding to series of preferred numbers, as the granularity of $bucketAuto asks for: R5, E12,
 * 1-2-5, POWERSOF2 and their kin. Plain functions on numbers.
 */
#ifndef FROND_MQL_ROUNDER_H
#define FROND_MQL_ROUNDER_H

#include "mql/mql.h"

struct mql_rounder;

/* Fails with MongoDB's 40257 for a name that is none. */
MUST_USE enum status mql_rounder_of(struct mql *q, struct str name, const struct mql_rounder **ret);

/* The series' next number that is greater, or less; zeros and infinities stay. Fails for others. */
MUST_USE enum status mql_round_up(const struct mql_rounder *r, struct mql *q,
				  const struct bson_value *v, struct bson_value *ret);
MUST_USE enum status mql_round_down(const struct mql_rounder *r, struct mql *q,
				    const struct bson_value *v, struct bson_value *ret);

#endif

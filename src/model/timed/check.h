/*
 * What the check of a database in time is made of (catalog/check.h), for all kinds of them:
 * verify.c has what they share, each kind's folder the rest.
 */
#ifndef FROND_MODEL_TIMED_CHECK_H
#define FROND_MODEL_TIMED_CHECK_H

#include "model/timed/timed_int.h"

/* Checks a database of any kind: what all have, and the rest by its kind. */
MUST_USE enum status timed_verify(struct catalog_verify *v);
/*
 * catalog_verify_ranges(), and catalog_verify_once(), of v->db with the schema that it has at the
 * range's moment. Without one that can be read, which another check tells, nothing is called.
 */
MUST_USE enum status timed_verify_ranges(struct catalog_verify *v, catalog_verify_range_body *body,
					 void *arg);
MUST_USE enum status timed_verify_once(struct catalog_verify *v, catalog_verify_part *part,
				       const char *what);
/* Checks the pairs of a subspace one by one, in ranges, with such a schema. */
MUST_USE enum status timed_verify_pairs(struct catalog_verify *v,
					const struct catalog_verify_walk *walk);
/* The `unit` of a walk through rows: a row, with all its cells. */
size_t timed_verify_row(const struct catalog_verify *v, const struct catalog_verify_cursor *c);
/*
 * Checks a subspace that is one key at most, whose value is good by `is_good`. NULL: the subspace
 * is to be empty.
 */
MUST_USE enum status timed_verify_single(struct catalog_verify *v, enum timed_space space,
					 bool (*is_good)(struct str value));
/*
 * Checks that EXPIRY has an entry for what lies at the key of ROWS and expires at `ms` (0: never).
 * Without an entry the sweep would never remove it. `finding` is the kind of the finding then.
 */
MUST_USE enum status timed_verify_entry(struct catalog_verify *v, const char *finding,
					struct str key, uint64_t ms);

#endif

/*
 * Aggregates that frond computes (sums.c): their plans, and what pages of them give.
 *
 * Errors, memory and threading as in frond_pg.h.
 */
#ifndef FROND_PG_FROND_SUMS_H
#define FROND_PG_FROND_SUMS_H

#include "frond_pg.h"

/* Those of one scan: what is asked of frond, and what came. Values are of the memory context in
 * which they are added. */
struct frond_sums;

void frond_plan_upper(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *scanned,
		      RelOptInfo *rel, void *extra);
ForeignScan *frond_plan_sums(PlannerInfo *root, RelOptInfo *rel, List *tlist, Plan *outer);

/* `plans`: FROND_PRIVATE_SUMS; `groups`: FROND_PRIVATE_GROUPS, of the index; NULL: of the key. */
struct frond_sums *frond_sums_new(List *plans, List *groups, const struct frond_table *t,
				  const struct frond_index *index);
void frond_sums_ask(const struct frond_sums *s, struct frows_scan *scan);
void frond_sums_clear(struct frond_sums *s);
/* The page that the connection has. */
void frond_sums_add(struct frond_sums *s, struct frows *c);
/*
 * Of groups: how many values a page has of each (0: there are no groups). One is begun with its
 * values, which are then added as those of every further page that has it.
 */
int frond_sums_group_values(const struct frond_sums *s);
void frond_sums_begin_group(struct frond_sums *s, const struct frows_value *values);
bool frond_sums_is_group(const struct frond_sums *s, const struct frows_value *values);
void frond_sums_add_group(struct frond_sums *s, const struct frows_value *values);
void frond_sums_store(const struct frond_sums *s, TupleTableSlot *slot);

#endif

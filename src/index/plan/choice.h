/*
 * The choice among indexes that can answer a question.
 *
 * First by what is known without reading: a language lists the merits of a candidate in the order
 * in which they decide. This is its rule, and clients are told of it. Then, where a rule cannot
 * tell, by the entries that candidates read: these are counted only where they decide, since
 * counting reads.
 */
#ifndef FROND_INDEX_PLAN_CHOICE_H
#define FROND_INDEX_PLAN_CHOICE_H

#include "index/plan/key_ranges.h"

struct kv_tx;

enum {
	CHOICE_MERITS = 7, /* the longest rule */
};

/*
 * The one that decides first comes first; more is better, so what there should be little of is
 * negative. Those that a rule does not have are 0.
 */
struct choice_merits {
	int64_t items[CHOICE_MERITS];
};

/* True if `a` goes before `b`. Neither goes before the other if they are alike. */
bool choice_prefers(const struct choice_merits *a, const struct choice_merits *b);

/*
 * About how many entries lie in the ranges, as index_ranges_count() knows it: of many ranges some
 * are counted that lie evenly among them.
 */
MUST_USE enum status choice_count_rows(const struct key_ranges *ranges, struct kv_tx *tx,
				       const struct catalog_db *db, size_t few, uint64_t *ret);

/*
 * What is left of a cost, such as the rows that are read, if reading ends when as many documents as
 * are wanted have been found, and the `found` that match lie evenly in the rows.
 */
double choice_cost_until(double cost, uint64_t wanted, uint64_t found);

#endif

#include "index/plan/choice.h"

#include "index/engine/scan.h"

bool
choice_prefers(const struct choice_merits *a, const struct choice_merits *b)
{
	for (size_t i = 0; i < CHOICE_MERITS; i++)
		if (a->items[i] != b->items[i])
			return a->items[i] > b->items[i];
	return false;
}

enum status
choice_count_rows(const struct key_ranges *ranges, struct kv_tx *tx, const struct catalog_db *db,
		  size_t few, uint64_t *ret)
{
	struct index_range samples[INDEX_COUNT_RANGES] = { 0 };
	size_t count = ranges->count;
	size_t taken = count < INDEX_COUNT_RANGES ? count : INDEX_COUNT_RANGES;

	for (size_t i = 0; i < taken; i++)
		samples[i] = ranges->items[i * count / taken];
	TRY(index_ranges_count(tx, db, samples, taken, few, ret));
	if (taken)
		*ret = *ret * count / taken;
	return STATUS_OK;
}

double
choice_cost_until(double cost, uint64_t wanted, uint64_t found)
{
	return wanted < found ? cost * (double)wanted / (double)found : cost;
}

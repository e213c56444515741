#include "histogram.h"

#include <stddef.h>

/* Below HISTOGRAM_STEPS each value has a bin of its own. */
static size_t
bin_of(uint64_t ns)
{
	unsigned power = ns < HISTOGRAM_STEPS
				 ? 0
				 : 63 - (unsigned)__builtin_clzll(ns) - HISTOGRAM_STEP_BITS + 1;

	if (power >= HISTOGRAM_POWERS)
		return (size_t)HISTOGRAM_POWERS * HISTOGRAM_STEPS - 1;
	if (power == 0)
		return (size_t)ns;
	return (size_t)power * HISTOGRAM_STEPS + ((ns >> (power - 1)) & (HISTOGRAM_STEPS - 1));
}

static uint64_t
start_of(size_t bin)
{
	uint64_t power = bin / HISTOGRAM_STEPS;
	uint64_t step = bin % HISTOGRAM_STEPS;

	return power ? (HISTOGRAM_STEPS + step) << (power - 1) : step;
}

void
histogram_add(struct histogram *h, uint64_t ns)
{
	h->counts[bin_of(ns)]++;
	h->count++;
	if (ns > h->max_ns)
		h->max_ns = ns;
}

void
histogram_merge(struct histogram *h, const struct histogram *from)
{
	for (size_t i = 0; i < sizeof(h->counts) / sizeof(h->counts[0]); i++)
		h->counts[i] += from->counts[i];
	h->count += from->count;
	if (from->max_ns > h->max_ns)
		h->max_ns = from->max_ns;
}

uint64_t
histogram_at(const struct histogram *h, double share)
{
	uint64_t wanted = (uint64_t)((double)h->count * share);
	uint64_t seen = 0;

	for (size_t i = 0; i < sizeof(h->counts) / sizeof(h->counts[0]); i++) {
		seen += h->counts[i];
		if (seen > wanted)
			return start_of(i) < h->max_ns ? start_of(i) : h->max_ns;
	}
	return h->max_ns;
}

#include "base/log_rate.h"

#include <stdatomic.h>

#include "base/clock.h"

bool
log_rate_allows(struct log_rate *rate, uint32_t lines_per_s)
{
	uint64_t now = clock_mono_ns() / (1000 * CLOCK_NS_PER_MS);

	/* Two threads that enter a new second at once may both reset the count: a line more. */
	if (atomic_exchange(&rate->second, now) != now)
		atomic_store(&rate->lines, 0);
	if (atomic_fetch_add(&rate->lines, 1) < lines_per_s)
		return true;
	atomic_fetch_add(&rate->left_out, 1);
	return false;
}

uint64_t
log_rate_left_out(struct log_rate *rate)
{
	return atomic_exchange(&rate->left_out, 0);
}

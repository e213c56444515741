#include "base/clock.h"

#include <time.h>

uint64_t
clock_mono_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 * CLOCK_NS_PER_MS + (uint64_t)t.tv_nsec;
}

uint64_t
clock_wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / CLOCK_NS_PER_MS;
}

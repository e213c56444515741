#include "base/clock.h"

#include <time.h>

static uint64_t
clock_read_ns(clockid_t which)
{
	struct timespec t;

	clock_gettime(which, &t);
	return (uint64_t)t.tv_sec * 1000 * CLOCK_NS_PER_MS + (uint64_t)t.tv_nsec;
}

uint64_t
clock_mono_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

uint64_t
clock_cpu_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t
clock_wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / CLOCK_NS_PER_MS;
}

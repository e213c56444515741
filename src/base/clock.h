/* Time. Nothing else in frond reads a clock. Thread-safe. */
#ifndef FROND_BASE_CLOCK_H
#define FROND_BASE_CLOCK_H

#include <stdint.h>

/* Returns the nanoseconds since some fixed moment. The value never goes back. */
uint64_t clock_mono_ns(void);

/*
 * Returns the nanoseconds that the processor has worked for the calling thread. Reading this clock
 * costs a call of the system, some ten times as much as the others.
 */
uint64_t clock_cpu_ns(void);

/* Returns the milliseconds since 1970-01-01 UTC. The value may jump. */
uint64_t clock_wall_ms(void);

#define CLOCK_NS_PER_MS UINT64_C(1000000)

/* Returns the monotonic time that is `ms` milliseconds from now. */
static inline uint64_t
clock_after_ms(uint64_t ms)
{
	return clock_mono_ns() + ms * CLOCK_NS_PER_MS;
}

#endif

/*
 * The machine's clocks as they are. Nothing else in frond reads one. Lifetimes, and dates that
 * something depends on, ask base/steady.h instead, which a wrong clock does not lead astray.
 * Thread-safe.
 */
#ifndef FROND_BASE_CLOCK_H
#define FROND_BASE_CLOCK_H

#include <stdint.h>

enum {
	CLOCK_BOOT_ID_BYTES = 16,
};

/*
 * Returns the nanoseconds since some fixed moment. The value never goes back, and stands still
 * while the machine is suspended: the system's timers and waits go by it.
 */
uint64_t clock_mono_ns(void);

/*
 * Returns the nanoseconds that the processor has worked for the calling thread. Reading this clock
 * costs a call of the system, some ten times as much as the others.
 */
uint64_t clock_cpu_ns(void);

/*
 * Returns the microseconds since the machine was started, those in which it was suspended
 * included. The value never goes back. Only clock_boot_id() tells whether two values of different
 * processes can be compared.
 */
uint64_t clock_boot_us(void);

/* Gives the id that the machine drew when it was started; all 0: unknown. */
void clock_boot_id(uint8_t ret[CLOCK_BOOT_ID_BYTES]);

/* Returns the micro- or milliseconds since 1970-01-01 UTC. The value may jump. */
uint64_t clock_wall_us(void);
uint64_t clock_wall_ms(void);

#define CLOCK_NS_PER_MS UINT64_C(1000000)

/* Returns the monotonic time that is `ms` milliseconds from now. */
static inline uint64_t
clock_after_ms(uint64_t ms)
{
	return clock_mono_ns() + ms * CLOCK_NS_PER_MS;
}

#endif

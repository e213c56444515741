/*
 * Times of clock_mono_ns() as the system's waits take them: those of semaphores, conditions and
 * mutexes that were told to go by CLOCK_MONOTONIC. Threading: none.
 */
#ifndef FROND_BASE_TIMESPEC_H
#define FROND_BASE_TIMESPEC_H

#include <stdint.h>
#include <time.h>

#include "base/clock.h"

/* Also of a duration. Not of WAIT_FOREVER, for which there are other calls. */
static inline struct timespec
timespec_of_ns(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / (1000 * CLOCK_NS_PER_MS)),
		.tv_nsec = (long)(ns % (1000 * CLOCK_NS_PER_MS)),
	};
}

#endif

/* How the system shares its processors among threads. */
#ifndef FROND_BASE_THREAD_H
#define FROND_BASE_THREAD_H

#include <stdint.h>

/*
 * Asks that the calling thread gets a processor as soon as it wakes, before threads that compute
 * without a pause: by turns of `ns` (100,000 to 100,000,000), after which others have theirs. Its
 * share of the processors stays what it is. Threads and processes that it starts inherit that.
 * Linux before 6.12 knows no such turns, and nothing changes.
 */
void thread_set_turn(uint64_t ns);

/*
 * The opposite: the calling thread computes in the background. It has the nice value, and turns of
 * the usual length. A failure is harmless, so none is reported.
 */
void thread_set_nice(int nice);

#endif

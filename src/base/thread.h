/* How the system shares its processors among threads. */
#ifndef FROND_BASE_THREAD_H
#define FROND_BASE_THREAD_H

#include <stdint.h>

enum {
	THREAD_NAME_BYTES = 16, /* the limit of Linux, with the NUL */
};

/*
 * Asks that the calling thread gets a processor as soon as it wakes, before threads that compute
 * without a pause: by turns of `ns` (100,000 to 100,000,000), after which others have theirs. Its
 * share of the processors stays what it is. Threads and processes that it starts inherit that.
 * Linux before 6.12 knows no such turns, and nothing changes.
 */
void thread_set_turn(uint64_t ns);

/*
 * The calling thread has turns of the usual length, whatever it has inherited: for work that
 * computes at the priority of the thread that waits for it. Threads of short turns still take the
 * processor from it as soon as they wake.
 */
void thread_clear_turn(void);

/*
 * The opposite: the calling thread computes in the background. It has the nice value, and turns of
 * the usual length. A failure is harmless, so none is reported.
 */
void thread_set_nice(int nice);

/*
 * Names the calling thread for `top -H` and /proc, in THREAD_NAME_BYTES - 1 bytes at most. Not for
 * the first thread of a program, whose name is also the process's.
 */
void thread_set_name(const char *name);

#endif

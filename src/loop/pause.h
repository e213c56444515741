/*
 * A pause: a wait for nothing but time. A plain thread sleeps; a fiber parks, and others of its
 * loop run (loop/wait.h). Whoever can be told to end waits for an event with a deadline instead.
 */
#ifndef FROND_LOOP_PAUSE_H
#define FROND_LOOP_PAUSE_H

#include <stdint.h>

void wait_pause(uint64_t ms);
/* Until the monotonic clock passes `until_ns`; returns at once if it has. */
void wait_pause_until(uint64_t until_ns);

#endif

/*
 * A worker that computes for long lets other threads have its processor now and then.
 *
 * Where a worker computes and a thread of the server wakes on the same processor, the kernel lets
 * the server's thread go first, although the worker is nicer, only if that thread has not just used
 * up its share. If it has, the kernel looks again when its clock ticks, up to 4 ms later. A loop of
 * the server that answers many small requests often is in that case. So a worker calls
 * sched_yield() every half millisecond, which costs next to nothing where no thread waits.
 */
#ifndef FROND_JS_WORKER_TURNS_H
#define FROND_JS_WORKER_TURNS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	TURN_NS = 500000,
	TURN_LEAST_NS = TURN_NS / 2, /* of processor time, between two times of giving way */
};

/*
 * Makes a timer for the calling thread, which alone may call the functions below, and asks the
 * kernel for turns of TURN_NS (base/thread.h). It uses SIGALRM. Each time a turn ends while the
 * thread computes, the signal's handler calls `on_end(arg)`; `on_end` may be NULL. Call this before
 * the sandbox is entered. Returns false if there is no timer, so that turns never end.
 */
bool turns_prepare(void (*on_end)(void *arg), void *arg);

/*
 * Until turns_end() the thread gives way every TURN_NS, also in the engine's code, but only after
 * it has computed for TURN_LEAST_NS since the last time.
 */
void turns_begin(void);
void turns_end(void);

/* How often it has given way. For tests. */
uint64_t turns_given(void);

#endif

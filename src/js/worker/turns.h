/*
 * Turns of a function that computes for long.
 *
 * The kernel gives a thread that has just had its share no processor when it wakes, also where a
 * nicer one computes: it looks again when its clock ticks, up to 4 ms later. A loop of the server
 * that answers many small requests is such a thread again and again. So a worker that computes
 * offers its processor every half millisecond. That costs nothing where nobody wants it.
 */
#ifndef FROND_JS_WORKER_TURNS_H
#define FROND_JS_WORKER_TURNS_H

#include <stdint.h>

enum {
	TURN_NS = 500000,
};

/*
 * Prepares the calling thread, the only one that may call the others, and makes the kernel's turns
 * for it as long. Takes SIGALRM. Without it a worker works too, so no failure is reported. Call it
 * before the sandbox is entered.
 */
void turns_prepare(void);

/* From here to turns_end() the thread gives way each TURN_NS, also while it runs foreign code. */
void turns_begin(void);
void turns_end(void);

/* How often it has given way. For tests. */
uint64_t turns_given(void);

#endif

/*
 * A fiber is a stack of its own: the function on it can stop in the middle and go on later, on the
 * same thread. A loop runs each request on one, so that the code of a request reads from top to
 * bottom and still never blocks the loop.
 *
 * The caller owns a fiber. From the moment that a thread first enters it until its function has
 * returned, only that thread may enter it; an idle fiber may be started by another thread. There is
 * no lock, so never two threads at a time. The switch is Boost.Context's; the sanitizers are told
 * of it.
 */
#ifndef FROND_LOOP_FIBER_H
#define FROND_LOOP_FIBER_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#if __has_feature(thread_sanitizer) && !defined(__SANITIZE_THREAD__)
#define __SANITIZE_THREAD__ 1
#endif
#endif

struct fiber;

/* The stack is reserved address space behind a guard page; memory is used as it is touched. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FIBER_STACK_BYTES ((size_t)1024 * 1024)
#else
#define FIBER_STACK_BYTES ((size_t)256 * 1024)
#endif

/* NULL when out of memory or address space. */
struct fiber *fiber_new(void);
/* The same with a stack of another size: whole pages. */
struct fiber *fiber_new_of(size_t stack_bytes);

/* Not while its function has begun and not returned. NULL is fine. */
void fiber_free(struct fiber *f);

/*
 * The same for a fiber that has left in the middle of its function and is never entered again. What
 * its frames own is the caller's to free. NULL is fine.
 */
void fiber_abandon(struct fiber *f);

/* Gives an idle fiber something to do; it starts with the next fiber_enter(). */
void fiber_start(struct fiber *f, void (*fn)(void *arg), void *arg);

/*
 * Runs the fiber until it leaves or its function returns. True if the function has returned: the
 * fiber is idle and can be started again. From inside another fiber it is a coroutine of that one:
 * on its own stack it must not wait, but leave, and have the other one wait.
 */
bool fiber_enter(struct fiber *f);

/*
 * From inside the running fiber, on its own stack: how many bytes of that are left below the
 * caller. On the stack of a coroutine inside of it, SIZE_MAX.
 */
size_t fiber_stack_left(const struct fiber *f);

/*
 * From inside the running fiber: gives the system back the pages of its stack below what is in use.
 */
void fiber_trim(struct fiber *f);

/*
 * For an idle fiber that is kept to be started again: keeps so many bytes from the beginning of its
 * stack, and gives the system back the pages behind these.
 */
void fiber_trim_idle(struct fiber *f, size_t keep_bytes);

/* From inside the running fiber: goes back to fiber_enter(), and returns when entered again. */
void fiber_leave(struct fiber *f);

#endif

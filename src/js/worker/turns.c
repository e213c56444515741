#include "js/worker/turns.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

/* The thread and its own signal handler share these. */
static volatile bool computes;
static volatile bool runs; /* the timer */
static volatile uint64_t given;
static volatile uint64_t given_at_ns; /* by the thread's processor time */

static bool prepared;
static void (*turn_ended)(void *arg);
static void *turn_ended_arg;
static timer_t timer;

static void
timer_set(long ns)
{
	const struct itimerspec every = { { 0, ns }, { 0, ns } };

	runs = ns;
	(void)timer_settime(timer, 0, &every, NULL);
}

/*
 * The timer goes on while the thread waits for a processor, so when the thread gets one, a signal
 * waits for it. It must not give that turn away unused: beside other processes it would never
 * compute.
 */
static void
give_way(void)
{
	uint64_t now = clock_cpu_ns();

	if (now - given_at_ns < TURN_LEAST_NS)
		return;
	given_at_ns = now;
	given++;
	(void)sched_yield();
}

static void
on_turn_end(int number)
{
	int code = errno;

	(void)number;
	if (computes) {
		if (turn_ended)
			turn_ended(turn_ended_arg);
		give_way();
	} else {
		timer_set(0);
	}
	errno = code;
}

bool
turns_prepare(void (*on_end)(void *arg), void *arg)
{
	struct sigaction action = { .sa_handler = on_turn_end, .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM };

	/* glibc 2.36, of Debian 12, has no other name for this member. */
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	turn_ended = on_end;
	turn_ended_arg = arg;
	prepared = sigaction(SIGALRM, &action, NULL) == 0 &&
		   timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
	thread_set_turn(TURN_NS);
	return prepared;
}

void
turns_begin(void)
{
	/* What the handler looks at has been written before. */
	atomic_signal_fence(memory_order_seq_cst);
	computes = true;
	if (prepared && !runs)
		timer_set(TURN_NS);
}

void
turns_end(void)
{
	/* The timer runs on for a turn: many calls are short, and each would start it again. */
	computes = false;
	atomic_signal_fence(memory_order_seq_cst);
}

uint64_t
turns_given(void)
{
	return given;
}

#include "base/thread.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What sched_setattr(2) takes. The kernel's own header of it cannot be included beside sched.h. */
struct thread_attributes {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns;
	uint64_t deadline_ns;
	uint64_t period_ns;
};

/* glibc has no functions for these. A kernel that refuses leaves everything as it is. */
static void
thread_set(uint64_t runtime_ns, const int *nice)
{
	struct thread_attributes attr = { .size = sizeof(attr) };

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) != 0)
		return;
	attr.runtime_ns = runtime_ns;
	if (nice)
		attr.nice = *nice;
	(void)syscall(SYS_sched_setattr, 0, &attr, 0);
}

void
thread_set_turn(uint64_t ns)
{
	thread_set(ns, NULL);
}

void
thread_clear_turn(void)
{
	thread_set(0, NULL);
}

void
thread_set_nice(int nice)
{
	thread_set(0, &nice);
}

void
thread_set_name(const char *name)
{
	assert(strlen(name) < THREAD_NAME_BYTES);
	(void)pthread_setname_np(pthread_self(), name);
}

/*
 * What the system says about this process: memory, open files, threads, time on processors. Each
 * value is also a metric (base/metric.h), by the names that Prometheus's client libraries use. All
 * functions read /proc or ask the kernel, take microseconds, and are thread-safe. -1: unknown.
 */
#ifndef FROND_BASE_PROCESS_H
#define FROND_BASE_PROCESS_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

int64_t process_resident_bytes(void);
int64_t process_virtual_bytes(void);
int64_t process_open_files(void);
int64_t process_most_open_files(void); /* the limit; 0: there is none */
int64_t process_threads(void);
int64_t process_cpu_ns(void);           /* on all processors together, since the start */
int64_t process_start_ns(void);         /* wall time since 1970-01-01 UTC */
int64_t process_context_switches(void); /* of all threads that have ended or run */

/*
 * Returns the processor time, in nanoseconds, of the thread or process that `clock` belongs to;
 * pthread_getcpuclockid() and clock_getcpuclockid() give such clocks. Returns -1 if the thread or
 * process has ended. Costs a system call.
 */
int64_t process_clock_ns(clockid_t clock);

/*
 * The processor time of one thread. The thread itself begins and ends it, and any thread may ask
 * at any time, also before and after. Zeroed: it has not begun. -1: it does not run.
 */
struct process_thread {
	_Atomic int64_t clock; /* the system's number of the thread's clock, plus one; 0: none */
};

void process_thread_begin(struct process_thread *t);
void process_thread_end(struct process_thread *t);
int64_t process_thread_cpu_ns(const struct process_thread *t);

/*
 * The path of a program that is installed with this one: beside it, or in libexec beside its
 * folder. If it is nowhere, the path beside this one; empty if that cannot be told.
 */
void process_find_beside(const char *program, char ret[PATH_MAX]);

/*
 * True if a thread of this machine is ready and has no processor, at this moment: more threads run
 * or are ready than there are processors for this process. Also true where the system does not
 * tell. Two microseconds.
 */
bool process_processors_are_short(void);

#endif

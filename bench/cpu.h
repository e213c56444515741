/* Processor time that processes have used, from /proc. */
#ifndef FROND_BENCH_CPU_H
#define FROND_BENCH_CPU_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Of one process with all its threads, in microseconds; to the clock tick where the kernel does not
 * tell more. 0 if it is gone.
 */
uint64_t cpu_of_process_us(int pid);

#endif

/* Processor time that processes have used, from /proc. */
#ifndef FROND_BENCH_CPU_H
#define FROND_BENCH_CPU_H

#include <stddef.h>
#include <stdint.h>

/* Of one process with all its threads, in microseconds, to the kernel's clock tick; 0 if gone. */
uint64_t cpu_of_process_us(int pid);

#endif

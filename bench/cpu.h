/* Processor time that processes have used. */
#ifndef FROND_BENCH_CPU_H
#define FROND_BENCH_CPU_H

#include <stdbool.h>
#include <stdint.h>

/* Of one process with all its threads, also those that have ended. 0 if it is gone. */
uint64_t cpu_of_process_us(int pid);
/* Of several together, whose numbers are decimal, as on a command line. */
uint64_t cpu_of_processes_us(char **pids, int count);
/* Of this process, in microseconds whatever the kernel tells of others. */
uint64_t cpu_of_self_us(void);

#endif

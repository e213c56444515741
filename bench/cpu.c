#include "cpu.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

uint64_t
cpu_of_process_us(int pid)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
		return 0;
	return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

uint64_t
cpu_of_processes_us(char **pids, int count)
{
	uint64_t us = 0;

	for (int i = 0; i < count; i++)
		us += cpu_of_process_us(atoi(pids[i]));
	return us;
}

uint64_t
cpu_of_self_us(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

#include "cpu.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	NS_PER_US = 1000,
	PATH_BYTES = 320,
};

/* What the scheduler has counted for one thread, in nanoseconds. False: it does not count. */
static bool
read_thread(int pid, const char *thread, uint64_t *ret_ns)
{
	char path[PATH_BYTES];
	bool found;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", pid, thread);
	f = fopen(path, "r");
	if (!f)
		return false;
	found = fscanf(f, "%" SCNu64, ret_ns) == 1;
	fclose(f);
	return found;
}

/* Exact, but blind for threads that have ended; servers keep theirs. */
static uint64_t
sum_of_threads_ns(int pid)
{
	char path[PATH_BYTES];
	struct dirent *entry;
	uint64_t sum = 0;
	uint64_t ns;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.' && read_thread(pid, entry->d_name, &ns))
			sum += ns;
	if (dir)
		closedir(dir);
	return sum;
}

/* To the kernel's clock tick. */
static uint64_t
ticks_us(int pid)
{
	char path[PATH_BYTES];
	char text[1024];
	const char *fields;
	unsigned long long user;
	unsigned long long system;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	/* The second field is the program's name, in parentheses and with whatever is in it. */
	fields = strrchr(text, ')');
	if (!fields || sscanf(fields + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
			      &user, &system) != 2)
		return 0;
	return (uint64_t)(user + system) * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

uint64_t
cpu_of_process_us(int pid)
{
	uint64_t ns = sum_of_threads_ns(pid);

	return ns ? ns / NS_PER_US : ticks_us(pid);
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

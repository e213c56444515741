#include "base/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/metric.h"

enum {
	STAT_THREADS = 20,     /* fields of /proc/self/stat, counted from 1, */
	STAT_START_TICKS = 22, /* as proc(5) lists them */
};

#define NS_PER_S INT64_C(1000000000)

/* A number of /proc/self/statm, counted from 0, in bytes. */
static int64_t
process_read_pages(int field)
{
	FILE *file = fopen("/proc/self/statm", "re");
	int64_t pages[2];
	int n;

	if (!file)
		return -1;
	n = fscanf(file, "%" SCNd64 " %" SCNd64, &pages[0], &pages[1]);
	fclose(file);
	return n == 2 ? pages[field] * sysconf(_SC_PAGESIZE) : -1;
}

/* A number of /proc/self/stat. The name of the program, field 2, may have spaces and brackets. */
static int64_t
process_read_stat(int field)
{
	char text[1024];
	FILE *file = fopen("/proc/self/stat", "re");
	size_t n;
	char *at;

	if (!file)
		return -1;
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	at = strrchr(text, ')');
	for (int i = 2; at && i < field; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoll(at, NULL, 10) : -1;
}

void
process_find_beside(const char *program, char ret[PATH_MAX])
{
	static const char *const places[] = { "../libexec/", "" };
	char self[PATH_MAX] = "";
	char *slash;

	ret[0] = '\0';
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return;
	slash = strrchr(self, '/');
	if (!slash)
		return;
	slash[1] = '\0';
	/* The last place is the one that is named if the program is nowhere. */
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int n = snprintf(ret, PATH_MAX, "%s%s%s", self, places[i], program);

		if (n < 0 || n >= PATH_MAX)
			ret[0] = '\0';
		else if (access(ret, X_OK) == 0)
			return;
	}
}

int64_t
process_resident_bytes(void)
{
	return process_read_pages(1);
}

int64_t
process_virtual_bytes(void)
{
	return process_read_pages(0);
}

int64_t
process_open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int64_t n = -1; /* the directory itself is open, too */

	if (!dir)
		return -1;
	for (struct dirent *entry; (entry = readdir(dir));)
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

int64_t
process_most_open_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return -1;
	return limit.rlim_cur == RLIM_INFINITY ? 0 : (int64_t)limit.rlim_cur;
}

int64_t
process_threads(void)
{
	return process_read_stat(STAT_THREADS);
}

int64_t
process_cpu_ns(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) != 0)
		return -1;
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

/*
 * The kernel has the start in ticks since the machine's start. So it is the difference of two of
 * the system's clocks, which virtual time cannot stand in for.
 */
int64_t
process_start_ns(void)
{
	int64_t ticks = process_read_stat(STAT_START_TICKS);
	int64_t per_s = sysconf(_SC_CLK_TCK);
	struct timespec wall, boot;

	if (ticks < 0 || per_s <= 0 || clock_gettime(CLOCK_REALTIME, &wall) != 0 ||
	    clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
		return -1;
	return (wall.tv_sec - boot.tv_sec) * NS_PER_S + wall.tv_nsec - boot.tv_nsec +
	       ticks * (NS_PER_S / per_s);
}

int64_t
process_context_switches(void)
{
	struct rusage u;

	return getrusage(RUSAGE_SELF, &u) == 0 ? u.ru_nvcsw + u.ru_nivcsw : -1;
}

/* ---- The heap ---- */

static int64_t
process_heap_used(void)
{
	struct mallinfo2 info = mallinfo2();

	return (int64_t)(info.uordblks + info.hblkhd);
}

static int64_t
process_heap_free(void)
{
	return (int64_t)mallinfo2().fordblks;
}

METRIC_READ(heap_used, METRIC_KIND_GAUGE, "frond_memory_heap_used_bytes", METRIC_BYTES,
	    "Memory that malloc has given out, of all kinds, RocksDB's included.",
	    process_heap_used);
METRIC_READ(heap_free, METRIC_KIND_GAUGE, "frond_memory_heap_free_bytes", METRIC_BYTES,
	    "Memory that was freed and that malloc keeps for what comes next.", process_heap_free);

int64_t
process_clock_ns(clockid_t clock)
{
	struct timespec t;

	return clock_gettime(clock, &t) == 0 ? t.tv_sec * NS_PER_S + t.tv_nsec : -1;
}

/* ---- Threads ---- */

void
process_thread_begin(struct process_thread *t)
{
	clockid_t clock;

	if (pthread_getcpuclockid(pthread_self(), &clock) == 0)
		atomic_store(&t->clock, (int64_t)clock + INT64_C(1) + INT32_MAX);
}

void
process_thread_end(struct process_thread *t)
{
	atomic_store(&t->clock, 0);
}

int64_t
process_thread_cpu_ns(const struct process_thread *t)
{
	int64_t clock = atomic_load(&t->clock);

	/* A thread may end meanwhile, and takes its clock with it. */
	return clock ? process_clock_ns((clockid_t)(clock - 1 - INT32_MAX)) : -1;
}

METRIC_READ(resident, METRIC_KIND_GAUGE, "process_resident_memory_bytes", METRIC_BYTES,
	    "Memory of the process that is in RAM.", process_resident_bytes);
METRIC_READ(virtual, METRIC_KIND_GAUGE, "process_virtual_memory_bytes", METRIC_BYTES,
	    "Addresses that the process has mapped.", process_virtual_bytes);
METRIC_READ(files, METRIC_KIND_GAUGE, "process_open_fds", METRIC_NUMBER,
	    "Open file descriptors, connections among them.", process_open_files);
METRIC_READ(most_files, METRIC_KIND_GAUGE, "process_max_fds", METRIC_NUMBER,
	    "The limit of open file descriptors; 0: none.", process_most_open_files);
METRIC_READ(threads, METRIC_KIND_GAUGE, "process_threads", METRIC_NUMBER, "Threads of the process.",
	    process_threads);
METRIC_READ(cpu, METRIC_KIND_COUNTER, "process_cpu_seconds_total", METRIC_SECONDS,
	    "Time that the process has spent on processors.", process_cpu_ns);
METRIC_READ(start, METRIC_KIND_GAUGE, "process_start_time_seconds", METRIC_SECONDS,
	    "When the process started, since 1970-01-01 UTC.", process_start_ns);
METRIC_READ(switches, METRIC_KIND_COUNTER, "process_context_switches_total", METRIC_NUMBER,
	    "How often the system has switched between threads of the process and others.",
	    process_context_switches);

/* ---- The machine ---- */

/* What is asked often stays open: opening the file would cost more than reading it. */
static pthread_once_t machine_once = PTHREAD_ONCE_INIT;
static int machine_load = -1; /* /proc/loadavg */
static long machine_processors;

static void
machine_open(void)
{
	cpu_set_t set;

	machine_load = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	machine_processors = sched_getaffinity(0, sizeof(set), &set) == 0
				     ? CPU_COUNT(&set)
				     : sysconf(_SC_NPROCESSORS_ONLN);
}

bool
process_processors_are_short(void)
{
	char text[128];
	const char *at = text;
	ssize_t n;

	pthread_once(&machine_once, machine_open);
	n = machine_load < 0 ? -1 : pread(machine_load, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return true;
	text[n] = '\0';
	/* Three averages, then how many threads run or are ready, a slash, and how many exist. */
	for (int i = 0; at && i < 3; i++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return !at || strtol(at, NULL, 10) > machine_processors;
}

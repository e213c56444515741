/*
 * Clocks that a test sets, for a program under test: preloaded, it takes the place of the system's
 * clock_gettime(), gettimeofday() and time(). The file $FROND_TEST_CLOCK has two numbers of eight
 * bytes each, in milliseconds: how far the wall clock is off, and how much time has passed beyond
 * what the system says. The second one moves the wall clock and CLOCK_BOOTTIME, and no other clock.
 * Timers go by those, so whatever waits is not ended by it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS 1000000
#define NS_PER_S  INT64_C(1000000000)

/* The file, which the test changes in place; both numbers 0 until there is one. */
static const volatile int64_t none[2];
static const volatile int64_t *set = none;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
map_file(void)
{
	const char *path = getenv("FROND_TEST_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *map;

	if (fd < 0)
		return;
	map = mmap(NULL, sizeof(none), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (map != MAP_FAILED)
		set = map;
}

static int
read_clock(clockid_t id, struct timespec *ret)
{
	int status = (int)syscall(SYS_clock_gettime, id, ret);
	int64_t off_ms = 0, ns;

	pthread_once(&once, map_file);
	if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
		off_ms = set[0] + set[1];
	else if (id == CLOCK_BOOTTIME)
		off_ms = set[1];
	if (status != 0 || off_ms == 0)
		return status;
	ns = ret->tv_sec * NS_PER_S + ret->tv_nsec + off_ms * NS_PER_MS;
	ret->tv_sec = ns / NS_PER_S;
	ret->tv_nsec = ns % NS_PER_S;
	return 0;
}

__attribute__((visibility("default"))) int
clock_gettime(clockid_t id, struct timespec *ret)
{
	return read_clock(id, ret);
}

__attribute__((visibility("default"))) int
gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	struct timespec t;
	int status = read_clock(CLOCK_REALTIME, &t);

	(void)zone;
	ret->tv_sec = t.tv_sec;
	ret->tv_usec = t.tv_nsec / 1000;
	return status;
}

__attribute__((visibility("default"))) time_t
time(time_t *ret)
{
	struct timespec t;

	(void)read_clock(CLOCK_REALTIME, &t);
	if (ret)
		*ret = t.tv_sec;
	return t.tv_sec;
}

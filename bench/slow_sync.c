/*
 * A shared object for LD_PRELOAD: fdatasync() and fsync() take SLOW_SYNC_US microseconds longer, so
 * that servers can be compared as if they ran on a disk whose syncs take that long. bench/redis.py
 * builds it. The time is slept after the real sync, in the thread that has called.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

static long
slow_sync_us(void)
{
	const char *text = getenv("SLOW_SYNC_US");
	long us = text ? strtol(text, NULL, 10) : 0;

	return us > 0 ? us : 0;
}

static int
slow_sync(const char *name, int fd)
{
	static long us = -1;
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
	struct timespec rest;
	int ret;

	if (us < 0)
		us = slow_sync_us();
	ret = real(fd);
	if (ret != 0)
		return ret;
	rest = (struct timespec){ us / 1000000, us % 1000000 * 1000 };
	while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
		;
	return 0;
}

int
fdatasync(int fd)
{
	return slow_sync("fdatasync", fd);
}

int
fsync(int fd)
{
	return slow_sync("fsync", fd);
}

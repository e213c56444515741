#include "file_faults.h"

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>

enum {
	SHORT_READ = 1000,
};

ssize_t __real_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n);
ssize_t __real_pread64(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *to, size_t n, off_t at);

static bool interrupts, met;
static unsigned reads, fails;
static uint64_t spoilt_begin, spoilt_end;
static uint64_t cut = UINT64_MAX;

void
file_faults_interrupt(void)
{
	interrupts = true;
}

void
file_faults_fail(unsigned nth)
{
	fails = nth;
}

void
file_faults_spoil(uint64_t begin, uint64_t end)
{
	spoilt_begin = begin;
	spoilt_end = end;
}

void
file_faults_cut(uint64_t end)
{
	cut = end;
}

bool
file_faults_end(void)
{
	const bool any = met;

	interrupts = met = false;
	reads = fails = 0;
	spoilt_begin = spoilt_end = 0;
	cut = UINT64_MAX;
	return any;
}

/* 0, or the errno of this read. */
static int
fault_of_read(void)
{
	if (interrupts && ++reads % 2)
		return EINTR;
	if (fails && --fails == 0)
		return EIO;
	return 0;
}

static ssize_t
read_fails(int error)
{
	met = true;
	errno = error;
	return -1;
}

static size_t
read_bytes(size_t n)
{
	return interrupts && n > SHORT_READ ? SHORT_READ : n;
}

ssize_t
__wrap_read(int fd, void *to, size_t n)
{
	const int error = fault_of_read();

	return error ? read_fails(error) : __real_read(fd, to, read_bytes(n));
}

ssize_t
__wrap_pread64(int fd, void *to, size_t n, off_t at)
{
	const int error = fault_of_read();

	if (error)
		return read_fails(error);
	if ((uint64_t)at < spoilt_end && (uint64_t)at + n > spoilt_begin)
		return read_fails(EIO);
	if ((uint64_t)at + n > cut) {
		met = true;
		n = (uint64_t)at < cut ? (size_t)(cut - (uint64_t)at) : 0;
	}
	return __real_pread64(fd, to, read_bytes(n), at);
}

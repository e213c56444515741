#include "base/clock.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"

#define NS_PER_US    1000
#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"

static uint64_t
clock_read_ns(clockid_t which)
{
	struct timespec t;

	clock_gettime(which, &t);
	return (uint64_t)t.tv_sec * 1000 * CLOCK_NS_PER_MS + (uint64_t)t.tv_nsec;
}

uint64_t
clock_mono_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

uint64_t
clock_cpu_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t
clock_boot_us(void)
{
	return clock_read_ns(CLOCK_BOOTTIME) / NS_PER_US;
}

void
clock_boot_id(uint8_t ret[CLOCK_BOOT_ID_BYTES])
{
	char text[64]; /* 32 digits with dashes in between, and a newline */
	int fd = open(BOOT_ID_FILE, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text)) : 0;
	size_t digits = 0;

	if (fd >= 0)
		close(fd);
	memset(ret, 0, CLOCK_BOOT_ID_BYTES);
	for (ssize_t i = 0; i < n && digits < 2 * CLOCK_BOOT_ID_BYTES; i++) {
		int value = str_hex_digit(text[i]);

		if (value < 0)
			continue;
		ret[digits / 2] = (uint8_t)(ret[digits / 2] << 4 | value);
		digits++;
	}
}

uint64_t
clock_wall_us(void)
{
	return clock_read_ns(CLOCK_REALTIME) / NS_PER_US;
}

uint64_t
clock_wall_ms(void)
{
	return clock_wall_us() / 1000;
}

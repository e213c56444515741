/* Time and chance as the twin has them, in place of base/clock.c and base/rand.c. */
#include <string.h>

#include "base/clock.h"
#include "base/rand.h"
#include "twin.h"

#define TWIN_WALL_MS UINT64_C(1700000000000)

uint64_t
clock_mono_ns(void)
{
	return twin_now_ns();
}

uint64_t
clock_cpu_ns(void)
{
	return twin_now_ns();
}

uint64_t
clock_boot_us(void)
{
	return twin_now_ns() / 1000;
}

void
clock_boot_id(uint8_t ret[CLOCK_BOOT_ID_BYTES])
{
	memset(ret, 0, CLOCK_BOOT_ID_BYTES);
}

uint64_t
clock_wall_us(void)
{
	return TWIN_WALL_MS * 1000 + clock_boot_us();
}

uint64_t
clock_wall_ms(void)
{
	return clock_wall_us() / 1000;
}

void
rand_bytes(void *ret, size_t n)
{
	unsigned char *to = ret;

	for (size_t i = 0; i < n; i++)
		to[i] = (unsigned char)twin_draw(256);
}

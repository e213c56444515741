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
clock_wall_ms(void)
{
	return TWIN_WALL_MS + twin_now_ms();
}

void
rand_bytes(void *ret, size_t n)
{
	unsigned char *to = ret;

	for (size_t i = 0; i < n; i++)
		to[i] = (unsigned char)twin_draw(256);
}

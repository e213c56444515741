#include "base/rand.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

void
rand_bytes(void *ret, size_t n)
{
	char *p = ret;

	while (n) {
		ssize_t got = getrandom(p, n, 0);

		if (got < 0) {
			/* Only a kernel without the call fails otherwise; guessable ids would
			 * follow. */
			if (errno != EINTR)
				abort();
			continue;
		}
		p += got;
		n -= (size_t)got;
	}
}

uint64_t
rand_seq_next(struct rand_seq *r)
{
	uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint64_t
rand_seq_below(struct rand_seq *r, uint64_t below)
{
	return (uint64_t)(((unsigned __int128)rand_seq_next(r) * below) >> 64);
}

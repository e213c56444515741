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
			/*
			 * Any other failure means that the kernel has no getrandom(). Without it
			 * ids could be guessed, so the process ends.
			 */
			if (errno != EINTR)
				abort();
			continue;
		}
		p += got;
		n -= (size_t)got;
	}
}

#include "base/rand.h"

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

/* Latencies as a histogram: 64 steps in each power of two, so a percentile is true to 1.6 %. */
#ifndef FROND_BENCH_HISTOGRAM_H
#define FROND_BENCH_HISTOGRAM_H

#include <stdint.h>

enum {
	HISTOGRAM_STEP_BITS = 6,
	HISTOGRAM_STEPS = 1 << HISTOGRAM_STEP_BITS,
	HISTOGRAM_POWERS = 40, /* up to 2^40 ns, some 18 minutes; what is longer counts as that */
};

struct histogram {
	uint64_t counts[HISTOGRAM_POWERS * HISTOGRAM_STEPS];
	uint64_t count;
	uint64_t max_ns;
};

void histogram_add(struct histogram *h, uint64_t ns);

/* Adds all that `from` has. */
void histogram_merge(struct histogram *h, const struct histogram *from);

/* The latency that `share` (0 to 1) of all stay within; 0 when there are none. */
uint64_t histogram_at(const struct histogram *h, double share);

#endif

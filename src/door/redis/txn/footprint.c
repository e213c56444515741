#include "door/redis/txn/footprint.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/metric.h"
#include "base/process.h"
#include "door/redis/txn/redis_int.h"

enum {
	KIB = 1024, /* in which the system tells the most that was resident */
};

uint64_t
footprint_used(void)
{
	struct mallinfo2 heap = mallinfo2();

	return heap.uordblks + heap.hblkhd;
}

/* 0: nobody reports it. */
static uint64_t
reported(const char *name, const char *label)
{
	int64_t n = 0;

	return metric_sum(name, label, &n) && n > 0 ? (uint64_t)n : 0;
}

static uint64_t
at_least(uint64_t n, uint64_t least)
{
	return n > least ? n : least;
}

struct footprint
footprint_of(const struct redis *r)
{
	struct mallinfo2 heap = mallinfo2();
	int64_t resident = process_resident_bytes();
	struct rusage usage = { 0 };
	struct footprint f = {
		.used = heap.uordblks + heap.hblkhd,
		.active = heap.arena + heap.hblkhd,
		.startup = r->started_bytes,
		.system = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
	};

	getrusage(RUSAGE_SELF, &usage);
	/* What was given out and never touched is not resident. */
	f.resident = at_least(resident > 0 ? (uint64_t)resident : 0, f.used);
	f.active = at_least(f.active, f.used);
	f.peak = at_least((uint64_t)usage.ru_maxrss * KIB, f.used);
	metric_hold();
	f.clients = reported("frond_memory_requests_bytes", NULL);
	f.received = reported("frond_net_received_bytes_total", NULL);
	f.sent = reported("frond_net_sent_bytes_total", NULL);
	f.refused = reported(METRIC_REFUSALS_NAME, "max_connections") +
		    reported(METRIC_REFUSALS_NAME, "max_connections_per_address");
	metric_release();
	f.overhead = f.startup + f.clients < f.used ? f.startup + f.clients : f.used;
	return f;
}

#include "door/redis/txn/footprint.h"

#include <malloc.h>
#include <sys/resource.h>

#include "base/budget.h"
#include "base/machine.h"
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

/* Of a counter; 0: nothing of the kind has happened. */
static uint64_t
counted(const char *name, const char *label)
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
footprint_of(const struct redis *r, const struct budget *memory)
{
	struct mallinfo2 heap = mallinfo2();
	int64_t resident = process_resident_bytes();
	struct rusage usage = { 0 };
	struct footprint f = {
		.used = heap.uordblks + heap.hblkhd,
		.active = heap.arena + heap.hblkhd,
		.startup = r->started_bytes,
		.system = machine_installed_bytes(),
	};

	getrusage(RUSAGE_SELF, &usage);
	/* What was given out and never touched is not resident. */
	f.resident = at_least(resident > 0 ? (uint64_t)resident : 0, f.used);
	f.active = at_least(f.active, f.used);
	f.peak = at_least((uint64_t)usage.ru_maxrss * KIB, f.used);
	f.clients = budget_held(memory);
	f.overhead = f.startup + f.clients < f.used ? f.startup + f.clients : f.used;
	return f;
}

struct traffic
traffic_of_process(void)
{
	return (struct traffic){
		.received = counted("frond_net_received_bytes_total", NULL),
		.sent = counted("frond_net_sent_bytes_total", NULL),
		.refused = counted(METRIC_REFUSALS_NAME, "max_connections") +
			   counted(METRIC_REFUSALS_NAME, "max_connections_per_address"),
	};
}

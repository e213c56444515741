#include "net/pace.h"

#include "base/clock.h"

uint64_t
net_pace_left_ns(const struct net_pace *p, const struct net_pace_limits *limits)
{
	uint64_t stall_ns = limits->stall_ms * CLOCK_NS_PER_MS;
	uint64_t window_ns = limits->window_ms * CLOCK_NS_PER_MS;
	uint64_t stall_left = stall_ns > p->silent_ns ? stall_ns - p->silent_ns : 1;
	uint64_t window_left = window_ns > p->waited_ns ? window_ns - p->waited_ns : 1;

	return stall_left < window_left ? stall_left : window_left;
}

enum net_verdict
net_pace_count(struct net_pace *p, const struct net_pace_limits *limits, uint64_t waited_ns,
	       uint64_t bytes)
{
	uint64_t waited_ms;
	bool slow;

	p->silent_ns = bytes ? 0 : p->silent_ns + waited_ns;
	p->waited_ns += waited_ns;
	p->bytes += bytes;
	if (p->silent_ns >= limits->stall_ms * CLOCK_NS_PER_MS)
		return NET_STALLS;
	waited_ms = p->waited_ns / CLOCK_NS_PER_MS;
	if (waited_ms < limits->window_ms)
		return NET_KEEPS_UP;
	slow = p->bytes < limits->min_rate_bytes * waited_ms / 1000;
	p->waited_ns = p->bytes = 0;
	return slow ? NET_IS_SLOW : NET_KEEPS_UP;
}

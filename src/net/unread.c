#include "net/unread.h"

#include "base/clock.h"

size_t
net_unread_bytes(const struct net_unread *u)
{
	return u->waiting_bytes + u->flying_bytes + u->answer_bytes;
}

uint64_t
net_unread_until_ns(const struct net_unread *u, const struct net_unread_limit *limit)
{
	uint64_t soft_s = atomic_load_explicit(&limit->soft_s, memory_order_relaxed);

	return u->over_ns ? u->over_ns + soft_s * 1000 * CLOCK_NS_PER_MS : UINT64_MAX;
}

bool
net_unread_keeps(struct net_unread *u, const struct net_unread_limit *limit, size_t most_bytes)
{
	uint64_t hard = atomic_load_explicit(&limit->hard_bytes, memory_order_relaxed);
	uint64_t soft = atomic_load_explicit(&limit->soft_bytes, memory_order_relaxed);
	size_t bytes = net_unread_bytes(u);

	if (u->waiting_bytes + u->flying_bytes > most_bytes)
		return false;
	bytes = bytes > NET_UNREAD_FREE_BYTES ? bytes - NET_UNREAD_FREE_BYTES : 0;
	if (hard && bytes > hard)
		return false;
	if (!soft || bytes <= soft) {
		u->over_ns = 0;
		return true;
	}
	if (!u->over_ns)
		u->over_ns = clock_mono_ns();
	return clock_mono_ns() <= net_unread_until_ns(u, limit);
}

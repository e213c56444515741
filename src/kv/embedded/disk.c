#include "kv/embedded/disk.h"

#include <sys/resource.h>

bool
emb_disk_is_quick(struct emb_disk *d, uint64_t now_ns)
{
	return now_ns >= atomic_load_explicit(&d->slow_until_ns, memory_order_relaxed);
}

/*
 * Whether this thread has fetched blocks from a disk since it was last asked. A busy processor
 * makes reads long, too, and that is no reason to hand them to others.
 */
static bool
has_waited(void)
{
	static _Thread_local long known_blocks;
	struct rusage usage;
	bool waited;

	if (getrusage(RUSAGE_THREAD, &usage) != 0)
		return true;
	waited = usage.ru_inblock != known_blocks;
	known_blocks = usage.ru_inblock;
	return waited;
}

bool
emb_disk_was_slow(const struct emb_disk *d, uint64_t took_ns, size_t pairs, size_t bytes)
{
	if (d->suspicious)
		return true;
	if (took_ns <= DISK_QUICK_NS + (uint64_t)pairs * DISK_QUICK_PAIR_NS +
			       (uint64_t)bytes * DISK_QUICK_BYTE_NS)
		return false;
	return has_waited() || took_ns > DISK_SLOW_NS;
}

bool
emb_disk_sync_was_slow(const struct emb_disk *d, uint64_t took_ns)
{
	return d->suspicious || took_ns > DISK_QUICK_SYNC_NS;
}

void
emb_disk_pause(struct emb_disk *d, uint64_t now_ns, uint64_t took_ns)
{
	atomic_store_explicit(&d->slow_until_ns, now_ns + took_ns * DISK_PAUSE,
			      memory_order_relaxed);
}

#include "kv/embedded/disk.h"

#include <assert.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "loop/wait.h"
#include "kv/embedded/embedded_int.h"

/* ---- What is quick ---- */

bool
emb_disk_is_quick(struct emb_disk *d, uint64_t now_ns)
{
	return now_ns >= atomic_load_explicit(&d->slow_until_ns, memory_order_relaxed);
}

void
emb_disk_pause(struct emb_disk *d, uint64_t now_ns, uint64_t took_ns)
{
	atomic_store_explicit(&d->slow_until_ns, now_ns + took_ns * EMB_DISK_PAUSE,
			      memory_order_relaxed);
}

/*
 * True if this thread has fetched blocks from a disk since it was last asked. A busy processor
 * makes reads long, too, and that is no reason to hand them to others.
 */
static bool
thread_has_fetched_blocks(void)
{
	static _Thread_local long known_blocks;
	struct rusage usage;
	bool fetched;

	if (getrusage(RUSAGE_THREAD, &usage) != 0)
		return true;
	fetched = usage.ru_inblock != known_blocks;
	known_blocks = usage.ru_inblock;
	return fetched;
}

bool
emb_disk_was_slow(const struct emb_disk *d, uint64_t took_ns, size_t pairs, size_t bytes)
{
	if (d->suspicious)
		return true;
	if (took_ns <= EMB_DISK_QUICK_NS + (uint64_t)pairs * EMB_DISK_QUICK_PAIR_NS +
			       (uint64_t)bytes * EMB_DISK_QUICK_BYTE_NS)
		return false;
	return thread_has_fetched_blocks() || took_ns > EMB_DISK_SLOW_NS;
}

/* ---- Reads ---- */

void
emb_disk_read_here(struct emb_disk_read *read)
{
	read->tier = EMB_DISK_FILES;
	read->run(read);
	assert(!read->incomplete);
}

static void
read_on_pool(void *arg)
{
	emb_disk_read_here(arg);
}

void
emb_disk_read_elsewhere(struct emb_disk_read *read)
{
	wait_offload(read_on_pool, read);
}

bool
emb_disk_read_is_slow(const struct emb_store *store, const struct emb_disk_read *read)
{
	return read->tier == EMB_DISK_FILES_WHILE_QUICK &&
	       emb_disk_was_slow(&store->disk, clock_mono_ns() - read->began_ns, read->pairs,
				 read->bytes);
}

static void
read_while_quick(struct emb_store *store, struct emb_disk_read *read, uint64_t now_ns)
{
	assert(wait_on_fiber());
	read->tier = EMB_DISK_FILES_WHILE_QUICK;
	read->began_ns = now_ns;
	read->run(read);
	if (read->incomplete || emb_disk_read_is_slow(store, read)) {
		uint64_t end_ns = clock_mono_ns();

		emb_disk_pause(&store->disk, end_ns, end_ns - now_ns);
	}
}

/*
 * A range is not read this way. An iterator of RocksDB 7.8.3 that is confined to memory may end,
 * and report no error, where the next pair lies in a file: it does so within one entity, and in
 * stores with deleted ranges before 8.5.2. A single key that is in a file is reported.
 */
static void
read_from_memory(struct emb_disk_read *read)
{
	read->incomplete = read->is_range;
	if (read->incomplete)
		return;
	read->tier = EMB_DISK_MEMORY;
	read->run(read);
}

void
emb_disk_read(struct emb_store *store, struct emb_disk_read *read)
{
	uint64_t now_ns;

	assert(read->run);
	if (!wait_on_fiber()) {
		emb_disk_read_here(read);
		return;
	}
	now_ns = clock_mono_ns();
	if (emb_disk_is_quick(&store->disk, now_ns))
		read_while_quick(store, read, now_ns);
	else
		read_from_memory(read);
	if (read->incomplete)
		emb_disk_read_elsewhere(read);
}

bool
emb_disk_may_read_ahead(const struct emb_tx *tx, size_t bytes)
{
	/* A plain thread has no pool, and nothing to do meanwhile. */
	return tx->base.kind == KV_TX_READ_ONLY && bytes >= EMB_DISK_AHEAD_BYTES && wait_on_fiber();
}

void
emb_disk_run_on_pool(void (*fn)(void *arg), void *arg)
{
	wait_offload(fn, arg);
}

/* ---- Commits ---- */

bool
emb_disk_may_commit_here(struct emb_store *store, size_t bytes)
{
	return bytes <= EMB_DISK_INLINE_COMMIT_BYTES && wait_is_alone() &&
	       emb_disk_is_quick(&store->log, clock_mono_ns());
}

void
emb_disk_has_committed_here(struct emb_store *store, uint64_t began_ns, bool done)
{
	uint64_t now_ns = clock_mono_ns(), took_ns = now_ns - began_ns;

	assert(now_ns >= began_ns);

	/* RocksDB refuses to write at once when its own writing is behind: the disk is busy. */
	if (!done || store->log.suspicious || took_ns > EMB_DISK_QUICK_SYNC_NS)
		emb_disk_pause(&store->log, now_ns, took_ns);
}

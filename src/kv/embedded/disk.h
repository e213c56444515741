/*
 * Whether a loop's thread may itself make a read that might need a file.
 *
 * What misses the block cache mostly lies in the kernel's cache, and reading it there takes less
 * time than handing the read to the pool and back, which is two wake-ups. Nobody can tell before;
 * so the thread reads, and looks how long that took. After a read that had to wait for the disk all
 * of them go to the pool for DISK_PAUSE times as long as it took: whatever the disk is like, loops
 * lose no more than that share of their time to it. A lone writer's commits are treated alike, with
 * a struct of their own.
 *
 * From any thread.
 */
#ifndef FROND_KV_EMBEDDED_DISK_H
#define FROND_KV_EMBEDDED_DISK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	DISK_PAUSE = 20,
	/* Within this nobody asks whether the disk was waited for. */
	DISK_QUICK_NS = 100 * 1000,           /* of a read that gives nothing */
	DISK_QUICK_PAIR_NS = 5000,            /* more for each pair that it gives */
	DISK_QUICK_BYTE_NS = 10,              /* and for each byte */
	DISK_QUICK_SYNC_NS = 5 * 1000 * 1000, /* of writing and syncing a small batch */
	/* Beyond this it counts as slow without asking: not every kernel keeps count. */
	DISK_SLOW_NS = 50 * 1000 * 1000,
};

struct emb_disk {
	_Atomic uint64_t slow_until_ns; /* on the monotonic clock; 0 is never */
	bool suspicious;                /* counts everything as slow: for tests, before any use */
};

/* True if a loop's thread may use the disk now. */
bool emb_disk_is_quick(struct emb_disk *d, uint64_t now_ns);

/* True if the calling thread's read, which took so long and has given so much, was slow. */
bool emb_disk_was_slow(const struct emb_disk *d, uint64_t took_ns, size_t pairs, size_t bytes);

/* The same of a write that was synced. */
bool emb_disk_sync_was_slow(const struct emb_disk *d, uint64_t took_ns);

/* A slow read, or write, has taken so long. */
void emb_disk_pause(struct emb_disk *d, uint64_t now_ns, uint64_t took_ns);

#endif

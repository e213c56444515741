/*
 * Which thread may touch the disk. Every decision of that kind is made here: the files that read
 * and write ask, and say how it went.
 *
 * A thread that runs no fibers (a command's, the pool's, the committer's) may always wait for the
 * disk. A loop's thread serves many connections, and while it waits all of them stand still. It
 * could hand everything to the loop's pool; but a hand-over and back is two wake-ups, which take
 * longer than a read out of the kernel's cache, where most of what misses RocksDB's cache lies. So:
 *
 *   single keys, ranges    read on the loop's thread as long as the disk has proved quick; for a
 *                          while after a slow read out of memory only, and by the pool if that
 *                          is not enough: emb_disk_read()
 *   ranges, half way       given up when they prove slow, and read again by the pool:
 *                          emb_disk_read_is_slow()
 *   the next part of a     begun by the pool beforehand, in transactions that cannot write,
 *   long scan              unless the part is small: emb_disk_may_read_ahead()
 *   keys in a range that   read on the loop's thread up to EMB_DISK_INLINE_KEYS, then by the pool
 *   is cleared
 *   estimates of a size    always by the pool: emb_disk_run_on_pool()
 *   commits                by the committer's thread; by the loop's own for a lone writer whose
 *                          transaction is small, as long as syncs have proved quick:
 *                          emb_disk_may_commit_here()
 *
 * Nobody can tell beforehand how long the disk will take. The thread looks how long it took. After
 * a slow read, all reads leave the disk to the pool for EMB_DISK_PAUSE times as long as that one
 * took; after a slow sync, lone writers leave it to the committer in the same way. Whatever the
 * disk is like, loops lose no more than that share of their time to it.
 *
 * Threads: everything may be called from any thread.
 */
#ifndef FROND_KV_EMBEDDED_DISK_H
#define FROND_KV_EMBEDDED_DISK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	EMB_DISK_PAUSE = 20,
	/* Within this nobody asks whether the disk was waited for. */
	EMB_DISK_QUICK_NS = 100 * 1000,           /* of a read that gives nothing */
	EMB_DISK_QUICK_PAIR_NS = 5000,            /* more for each pair that it gives */
	EMB_DISK_QUICK_BYTE_NS = 10,              /* and for each byte */
	EMB_DISK_QUICK_SYNC_NS = 5 * 1000 * 1000, /* of writing and syncing a small batch */
	/* Beyond this it counts as slow without asking: not every kernel keeps count. */
	EMB_DISK_SLOW_NS = 50 * 1000 * 1000,
	/* Keys in a range to be cleared: more are not looked up on a loop's thread. */
	EMB_DISK_INLINE_KEYS = 1024,
	/* Less than this is not read ahead: two wake-ups would take longer than the read. */
	EMB_DISK_AHEAD_BYTES = 16 * 1024,
	/* A lone writer's transaction of more is the committer's: it would hold up its loop. */
	EMB_DISK_INLINE_COMMIT_BYTES = 64 * 1024,
};

struct emb_store;
struct emb_tx;

/* How one kind of use of the disk has done lately. A store has one for reads and one for syncs. */
struct emb_disk {
	_Atomic uint64_t slow_until_ns; /* on the monotonic clock; 0 is never */
	bool suspicious;                /* counts everything as slow: for tests, before any use */
};

/* True if a loop's thread may use the disk now. */
bool emb_disk_is_quick(struct emb_disk *d, uint64_t now_ns);
/* A slow use has taken so long: others follow when it is over. */
void emb_disk_pause(struct emb_disk *d, uint64_t now_ns, uint64_t took_ns);
/* True if the calling thread's read, which took so long and has given so much, was slow. */
bool emb_disk_was_slow(const struct emb_disk *d, uint64_t took_ns, size_t pairs, size_t bytes);

/* ---- Reads ---- */

enum emb_disk_tier {
	EMB_DISK_FILES,             /* whatever it takes */
	EMB_DISK_FILES_WHILE_QUICK, /* may be given up, if emb_disk_read_is_slow() */
	EMB_DISK_MEMORY,            /* touches no file */
};

/*
 * A read that may need the disk: the first member of a struct that knows what is to be read. `run`
 * does it from the beginning each time it is called, out of what `tier` allows.
 */
struct emb_disk_read {
	void (*run)(struct emb_disk_read *read);
	enum emb_disk_tier tier;
	bool is_range;     /* it is of more than one key, and never confined to memory: disk.c */
	uint64_t began_ns; /* of EMB_DISK_FILES_WHILE_QUICK */
	/* By `run`: */
	bool incomplete; /* memory did not have all of it, or it was given up */
	size_t pairs;    /* that it has given so far */
	size_t bytes;
};

/* Reads it where that suits; on return it is done. */
void emb_disk_read(struct emb_store *store, struct emb_disk_read *read);

/* By the pool, or here if this thread may wait: for what is certain to take long. */
void emb_disk_read_elsewhere(struct emb_disk_read *read);

/* On this thread, whatever it takes: for the pool's threads. */
void emb_disk_read_here(struct emb_disk_read *read);

/* Asked by `run` now and then: true if a loop's thread should give up. */
bool emb_disk_read_is_slow(const struct emb_store *store, const struct emb_disk_read *read);

/*
 * True if the pool may begin a read of up to `bytes` bytes that the transaction is expected to want
 * later. Not for a transaction that writes: its reads also look at its overlay, which belongs to
 * the transaction's own thread.
 */
bool emb_disk_may_read_ahead(const struct emb_tx *tx, size_t bytes);

/* Runs what may take long and is no read of the kinds above. */
void emb_disk_run_on_pool(void (*fn)(void *arg), void *arg);

/* ---- Commits ---- */

/*
 * True if a transaction of so many bytes may be committed on the calling thread. It is then a
 * loop's that serves nobody else. Handing over to the committer's thread and back would cost it two
 * wake-ups, which is a sixth of a lone writer's time.
 */
bool emb_disk_may_commit_here(struct emb_store *store, size_t bytes);

/* Such a commit, begun at that moment, has returned. `done`: RocksDB has written it. */
void emb_disk_has_committed_here(struct emb_store *store, uint64_t began_ns, bool done);

#endif

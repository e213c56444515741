/*
 * What was read and written lately: single pairs, and keys that are known to be absent, in front of
 * RocksDB. A point lookup in RocksDB goes through a skip list or a table's blocks and compares keys
 * twenty times; here it is a hash, a lock that hardly anybody else wants, and one comparison.
 *
 * == What an entry says ==
 *
 * An entry has a key, its value or that there is none, and the version from which on that holds. It
 * holds until the key is written again. So an entry is the key's newest state, and a reader at a
 * version below the entry's has to ask RocksDB.
 *
 * == Why a reader never gets a value that is wrong for its version ==
 *
 * The versions are those of the store (versions.c). One thread at a time, the one that owns the
 * committer, writes a batch: to RocksDB first, then to this cache by recent_write() and
 * recent_forget(), and only then it publishes the batch's version, which readers take from there
 * under a lock. Each shard has a lock of its own.
 *
 * A reader at S is given an entry of version V only if V <= S. Could the key have been written by a
 * version W with V < W <= S? W was published before the reader took S, and entered here before it
 * was published: so the entry, if it was there, has been W's or has been dropped since.
 *
 * A reader at S that has asked RocksDB may leave the answer here, by recent_keep(), and it must be
 * the newest one. A bucket of the index has the version at which any key of it was last written,
 * and a shard has the one below which nothing is known any more (`floor`). If both are at or below
 * S, nobody has entered a write of the key above S, and whoever does so later finds the entry. The
 * answer then holds from the later of the two versions on, which may be long before S. If either is
 * above S, the answer is not kept. That may be so for no reason, as the keys of a bucket share one
 * version; it costs a cache miss.
 *
 * A batch that fails is never entered. If nobody knows what the disk has of it, the store is opened
 * again before anything else is written (reopen.c), and if the batch turns out to be there, its
 * version becomes the floor: nothing that was known before counts, nor what a reader brings that
 * began before. Readers come here inside the gate (gate.h) only, so none of them brings what it has
 * read from one handle while another one is in use.
 *
 * == What it costs and keeps ==
 *
 * Entries lie in rings, one for each shard: a new one overwrites the oldest. One that has been read
 * since it was put there is put in front again instead, at most RECENT_CHANCES of them for one new
 * entry. Nothing is allocated after recent_new(). A ring that has come round once takes a pair only
 * when it is asked for a second time within a while, so reading very many keys once each neither
 * pushes out what others use nor costs copies. A write changes or drops the entry of its key, and
 * makes none: loading data which nobody reads costs a look into the index.
 *
 * Of a value of which readers want the beginning only (kv/head.h), only that is kept, until one of
 * them reads all of it. So far more long rows are known to be there than would fit in.
 *
 * Threads: recent_write() and recent_forget() belong to the thread that owns the committer; all
 * else but recent_free() may be called by any thread. `r` may be NULL everywhere: then nothing is
 * known, nothing is kept.
 */
#ifndef FROND_KV_EMBEDDED_RECENT_H
#define FROND_KV_EMBEDDED_RECENT_H

#include <stdint.h>

#include "kv/embedded/atomic.h"
#include "kv/head.h"

enum {
	RECENT_SHARDS = 64,
	RECENT_PAIR_BYTES = 4096, /* of a key and its value; larger ones are not kept */
	RECENT_RING_BYTES = 8192, /* of a ring, at least */
	RECENT_RING_PAIRS = 8,    /* a ring has room for so many pairs of the largest size */
	RECENT_CHANCES = 8,
	RECENT_WRITES = 16,   /* that are entered together */
	RECENT_EXPECTED = 16, /* keys that are looked up one after the other */
};

struct recent;

/*
 * Makes a cache of about `bytes` bytes, more than 0, of which the index takes a quarter. The memory
 * is touched when it is first used. NULL: out of memory.
 */
struct recent *recent_new(size_t bytes);
void recent_free(struct recent *r);

/*
 * To be called before several keys, at most RECENT_EXPECTED, are looked up. The index and the
 * entries are megabytes, of which the processor's cache has little. This has the processor fetch
 * what belongs to all of the keys at once, which takes hardly longer than for one key.
 */
void recent_expect(struct recent *r, const struct str *keys, size_t count);

/* What was found: a copy. */
struct recent_answer {
	bool present;
	size_t len; /* of the value */
	char value[RECENT_PAIR_BYTES];
};

static inline struct cell
recent_cell(const struct recent_answer *a)
{
	return (struct cell){ a->present, { a->value, a->len } };
}

/*
 * Looks the key up for a reader at `version`. False: it is not known here, ask RocksDB. `head`: the
 * reader wants the first KV_HEAD_BYTES bytes of the value only, and is given no more.
 */
MUST_USE bool recent_find(struct recent *r, struct str key, uint64_t version, bool head,
			  struct recent_answer *ret);

/*
 * A reader at `version` has found the cell in RocksDB. May keep a copy; `head`: of the first
 * KV_HEAD_BYTES bytes of the value.
 */
void recent_keep(struct recent *r, struct str key, struct cell cell, uint64_t version, bool head);

/* A key and what has been written there; both are borrowed. */
struct recent_pair {
	struct str key;
	struct cell cell;
};

/*
 * The keys, RECENT_WRITES of them at most, have been written by `version`, which is not published
 * yet.
 */
void recent_write(struct recent *r, const struct recent_pair *pairs, size_t count,
		  uint64_t version);

/* `version` may have written any keys: entries from before it are void. */
void recent_forget(struct recent *r, uint64_t version);

struct recent_stats {
	uint64_t hits;
	uint64_t misses;
	uint64_t bytes;      /* of memory that has been used so far, with the whole index */
	uint64_t most_bytes; /* that it may use */
};

struct recent_stats recent_stats(struct recent *r);

#endif

/*
 * A store of what can be read out of a damaged one, by the engine's own means. (The embedded
 * engine's; a cluster has copies of everything, so this is STATUS_UNSUPPORTED for its stores.)
 *
 * The damaged store is only read, and needs neither to open nor to be complete: each block of a
 * table and each record of a log is taken that matches its checksum. What a transaction has written
 * may come back in part then; what has to hold between keys is for the caller's `finish` to mend.
 *
 * Threading: from any thread; everything blocks for as long as the disk takes.
 */
#ifndef FROND_KV_SALVAGE_H
#define FROND_KV_SALVAGE_H

#include "kv/kv.h"

/* Something that is damaged. Borrowed for the call. */
struct kv_loss {
	const char *text; /* what, with the file and the place in it */
	bool has_keys;    /* the rest says between which keys something is missing */
	struct str after; /* the last key in front of it; empty: it may begin with any */
	struct str until; /* the first key behind it; ptr NULL: it may go on to the last */
	/* Keys of other files between them: of each, a later write or a deletion may be missing. */
	uint64_t elsewhere;
};
typedef void kv_salvage_lost(void *arg, const struct kv_loss *loss);

struct kv_salvage_sum {
	uint64_t tables; /* that were read */
	uint64_t logs;
	uint64_t keys; /* that are in the new store */
	uint64_t bytes;
};

/*
 * What is to be done to the new store before it is at its place. It is closed; `url` names it where
 * it is put together. `has_format`: the key that says which format the store has was found.
 */
typedef enum status kv_salvage_finish(const char *url, bool has_format, void *arg, struct err *err);

/* How far it is: bytes of files that were read, of all; keys that are in the new store. */
typedef void kv_salvage_told(void *arg, uint64_t bytes, uint64_t total_bytes, uint64_t keys);

struct kv_salvage_how {
	const struct kv_shape *shape;
	kv_salvage_lost *lost;
	kv_salvage_finish *finish;
	kv_salvage_told *told; /* NULL: nobody is told */
	void *arg;             /* of all three */
};

/*
 * Makes the store that `target` names of what is whole in the store that `source` names. Nothing
 * may be at the target yet but an empty directory: STATUS_EXISTS. It is put together beside it, in
 * a directory of its name and ".salvaging", and moved to its place when all is done and on disk; a
 * crash before leaves that directory behind, which must be removed before another attempt
 * (STATUS_EXISTS, too). The new store's version is that of the clock, in microseconds, or above the
 * one that was found. `lost` is called before `finish`.
 *
 * STATUS_NOT_FOUND: there are no files of a store; STATUS_LOCKED: another process has the source
 * open; STATUS_INVALID: the target lies in the source; STATUS_IO, STATUS_NOMEM.
 */
MUST_USE enum status kv_salvage(const char *source, const char *target,
				const struct kv_salvage_how *how, struct kv_salvage_sum *ret,
				struct err *err);

#endif

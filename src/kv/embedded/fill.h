/*
 * Fills the store's log in front of RocksDB's writes, so that they overwrite bytes of the file.
 *
 * A sync of a file that has grown has to bring the file's new size to the disk as well, by a commit
 * of the file system's journal, which takes about as long again as the data. So every FILL_BYTES or
 * so the file is made that much longer, by the thread that is about to write, and the sync of that
 * write pays for it. The writes that follow find their blocks in the file, allocated and
 * written. Large batches are left alone: they take long themselves, and filling would double what
 * is written.
 *
 * What the filling looks like, and why, is told in filling.h. When RocksDB closes a log, it cuts
 * the filling off.
 *
 * == Safety ==
 *
 * Filling is appended to the file as it is, so nothing that is in a log can be overwritten, even if
 * RocksDB has begun another log meanwhile. Nobody but RocksDB's writer writes to a log at the same
 * time: all is called by the thread that owns the committer. If filling fails, nothing is lost but
 * time. Nothing here knows the engine's structs.
 */
#ifndef FROND_KV_EMBEDDED_FILL_H
#define FROND_KV_EMBEDDED_FILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kv/embedded/filling.h"

enum {
	FILL_BYTES = 64 * 1024,
	FILL_BATCH_BYTES = 16 * 1024,   /* in front of larger batches nothing is filled */
	FILL_RETRY_BYTES = 1024 * 1024, /* that are written first after a failure */
};

struct fill {
	uint64_t number;  /* of the log that was filled last; 0: the newest is to be looked for */
	uint64_t at;      /* where the next record begins, as far as is known */
	uint64_t end;     /* of the filling, which is the file's */
	uint64_t entries; /* RocksDB's write buffer had, which begins anew with each log */
	uint8_t page[FILL_PAGE_BYTES];
};

void fill_init(struct fill *f);
/* Forgets the log: RocksDB begins another one. */
void fill_reset(struct fill *f);

/*
 * Before a batch of so many bytes is written: true if the log should be filled by fill_append().
 * Otherwise the batch counts as written.
 */
bool fill_is_short(struct fill *f, size_t batch_bytes);

/*
 * Fills the newest log of the store at `path` for a batch that is then written. `entries`: how many
 * RocksDB's write buffer has.
 */
void fill_append(struct fill *f, const char *path, uint64_t entries, size_t batch_bytes);

#endif

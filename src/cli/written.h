/* Which keys the newest commits of a store have written, by the log that it keeps (kv/log.h). */
#ifndef FROND_CLI_WRITTEN_H
#define FROND_CLI_WRITTEN_H

#include "base/arena.h"
#include "base/str.h"

struct kv_store;

enum {
	WRITTEN_BYTES = 256 * 1024 * 1024, /* of the arena of written_read() */
};

struct written_key {
	struct str key;
	struct str end; /* of a range that was cleared; ptr NULL: it is one key */
};

/*
 * The keys that commits behind the version `after` have written or cleared, in order, each once.
 * `*ret` is in the arena. STATUS_NOT_FOUND if the log does not reach back so far; STATUS_LIMIT if
 * there are more than the arena takes.
 */
MUST_USE enum status written_read(struct kv_store *store, uint64_t after, struct arena *arena,
				  struct written_key **ret, size_t *ret_count, struct err *err);

#endif

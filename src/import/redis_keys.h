/* Copies keys from one server of Redis's protocol to another. */
#ifndef FROND_IMPORT_REDIS_KEYS_H
#define FROND_IMPORT_REDIS_KEYS_H

#include "import/import.h"
#include "import/link.h"

#define REDIS_PAGE_TEXT "100"

enum {
	REDIS_PAGE_KEYS = 100,
};

struct redis_keys {
	struct import *import;
	struct link *source;
	struct link *target;
};

/* Both go to that database. */
MUST_USE enum status redis_keys_select(struct redis_keys *k, unsigned database, struct err *err);

/*
 * Copies keys, REDIS_PAGE_KEYS at most, over what the target has. A key that the source has no more
 * is removed from the target if it was `changed`, and otherwise left to the event that tells of it.
 */
MUST_USE enum status redis_keys_copy(struct redis_keys *k, const struct str *keys, size_t count,
				     bool changed, struct err *err);

/* Leaves those that were used within so many seconds, or of which the source cannot tell. */
MUST_USE enum status redis_keys_used(struct redis_keys *k, struct str *keys, size_t *count,
				     long seconds, struct err *err);

/* Removes keys of the target's database that the source has no more. */
MUST_USE enum status redis_keys_prune(struct redis_keys *k, struct err *err);

#endif

/*
 * What the catalog and the models share for making keys and reading values: buffers of the right
 * size, elements of tuples, counters.
 *
 * Threading: that of the transaction.
 */
#ifndef FROND_CATALOG_KEYS_H
#define FROND_CATALOG_KEYS_H

#include "base/arena.h"
#include "base/buf.h"
#include "kv/kv.h"
#include "kv/tuple.h"

enum {
	CATALOG_KEY_BYTES = 2 * (KV_LIMIT_KEY_BYTES + 1), /* a buffer for both bounds of a range */
	CATALOG_PAGE_BYTES = 256 * 1024, /* keys and values read for one page of a list */
	CATALOG_COUNTER_BYTES = 8,       /* little-endian */
};

/* A key, or both bounds of a range; a longer one fails the buffer: catalog_key_status(). */
#define CATALOG_KEY_INIT BUF_INIT(CATALOG_KEY_BYTES)

/* STATUS_KEY_TOO_LARGE for a key past the store's limit. */
MUST_USE enum status catalog_key_status(const struct buf *key);

/* What follows every key below `key`: type codes are all less than FF, and so are escaped NULs. */
#define CATALOG_KEY_LAST ((uint8_t)0xff)

/* What follows every string below `key`, and comes before every number. */
#define CATALOG_KEY_STRINGS_END ((uint8_t)0x03)
/* What comes before every string, and follows null and bytes. */
#define CATALOG_KEY_STRINGS ((uint8_t)0x02)

/* The next key after `key` itself. */
#define CATALOG_KEY_NEXT ((uint8_t)0x00)

/*
 * The next element, of `kind` TUPLE_STRING or TUPLE_BYTES. In the arena if `copy` or if it has
 * NULs.
 */
MUST_USE enum status catalog_next_text(struct tuple_reader *r, enum tuple_kind kind,
				       struct arena *arena, bool copy, struct str *ret);

/* Told of one pair of the root; `key` is at what follows the space. */
typedef enum status catalog_take_root(void *arg, struct tuple_reader key, struct str value);

/* Every pair from `lo` to `hi`; the keys told of begin behind the first `prefix_len` bytes. */
MUST_USE enum status catalog_scan(struct kv_tx *tx, struct str lo, struct str hi, size_t prefix_len,
				  catalog_take_root *take, void *arg);

/* Every (ROOT, space, …), by snapshot reads, until a call fails; returns that failure. */
MUST_USE enum status catalog_root_scan(struct kv_tx *tx, uint64_t space, catalog_take_root *take,
				       void *arg);

/* Adds to the counter of that key, which is then there, also for 0. */
MUST_USE enum status catalog_counter_add(struct kv_tx *tx, const struct buf *key, int64_t change);

/* A counter that was asked for; absent: 0. */
MUST_USE enum status catalog_counter_wait(struct kv_future *f, uint64_t *ret);

/*
 * Room for one more element in an array in the arena, which doubles: `*array` has `count` elements
 * of `size` bytes and room for `*cap`. STATUS_LIMIT.
 */
MUST_USE enum status catalog_array_grow(struct arena *arena, void **array, size_t size,
					size_t count, size_t *cap);

/* The bytes of `a` and of `b`, one behind the other in the arena: a copy of a pair. */
MUST_USE enum status catalog_pair_copy(struct arena *arena, struct str key, struct str value,
				       struct kv_pair *ret);

#endif

/*
 * An arena holds everything that a request allocates and frees it at once. It has a byte limit; an
 * allocation past the limit returns NULL (the caller then answers STATUS_LIMIT). An arena is not
 * thread-safe. An address stays valid until the arena is reset to a mark that was set before the
 * allocation, or until the arena is freed.
 */
#ifndef FROND_BASE_ARENA_H
#define FROND_BASE_ARENA_H

#include <stdbool.h>

#include "base/status.h"
#include "base/str.h"

struct arena;
struct budget_part;

struct arena_mark {
	void *block;
	size_t used;
	size_t total;
};

/* Returns NULL when memory is short. `limit_bytes` limits the bytes that the arena hands out. */
struct arena *arena_new(size_t limit_bytes);
void arena_free(struct arena *a); /* NULL is fine */

/*
 * Counts all blocks but the first as used by this part of a budget from now on; an allocation that
 * the budget has no memory for returns NULL. With a NULL part nothing is counted any more. The
 * arena must hold nothing beyond its first block.
 */
void arena_set_part(struct arena *a, struct budget_part *part);

/* The part that was set last, or NULL: for memory beside the arena that is to count there, too. */
struct budget_part *arena_part(const struct arena *a);

/*
 * The memory is aligned for any type, and `n` may be 0. Returns NULL past the limit, past the
 * budget or when memory is short. arena_zalloc() also clears the memory.
 */
void *arena_alloc(struct arena *a, size_t n);
void *arena_zalloc(struct arena *a, size_t n);

/* Allocates bytes without alignment, for text and keys. */
char *arena_bytes(struct arena *a, size_t n);

/* Copies `s` and adds a NUL that the length does not count. `ptr` is NULL on failure. */
struct str arena_dup(struct arena *a, struct str s);

/* The same into `*ret`. STATUS_LIMIT on failure. */
MUST_USE enum status arena_copy(struct arena *a, struct str s, struct str *ret);

/*
 * arena_dup() for what has to be said about a limit that was reached: may pass the arena's own
 * limit by `beyond` bytes.
 */
struct str arena_dup_beyond(struct arena *a, struct str s, size_t beyond);

/* Formats into the arena, as printf does. `ptr` is NULL on failure. */
struct str arena_printf(struct arena *a, const char *fmt, ...) PRINTF(2, 3);

/*
 * Makes room for one more element behind the `count` elements of an array in the arena, and returns
 * the array, which may have moved. The array starts as NULL with *cap 0. Returns NULL when the
 * arena is full.
 */
void *arena_grow(struct arena *a, void *array, size_t count, size_t *cap, size_t elem_bytes);
/* The same for the array that `array` points to. STATUS_LIMIT when the arena is full. */
MUST_USE enum status arena_room(struct arena *a, void *array, size_t count, size_t *cap,
				size_t elem_bytes);

/* arena_reset() frees everything that was allocated after the mark. */
struct arena_mark arena_mark(const struct arena *a);
void arena_reset(struct arena *a, struct arena_mark mark);

/* Frees everything, but keeps the first block for later allocations. */
void arena_clear(struct arena *a);

/*
 * Gives the system back the pages of the newest block that nothing has been allocated from. They
 * stay the arena's, and are empty when they are next used. For an arena that is not used for long.
 */
void arena_trim(struct arena *a);

size_t arena_used_bytes(const struct arena *a);
size_t arena_limit_bytes(const struct arena *a);

/* True if the system had no memory for an allocation since the arena was last cleared. */
bool arena_is_starved(const struct arena *a);

/* True if an allocation has failed because of the arena's own limit, since it was last cleared. */
bool arena_is_full(const struct arena *a);

#endif

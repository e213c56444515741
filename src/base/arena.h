/*
 * Memory by lifetime: everything a request allocates, freed at once. Has a byte limit, past which
 * allocations return NULL (callers answer STATUS_LIMIT). Not thread-safe. Addresses stay valid
 * until the arena is reset to a mark before them, or freed.
 */
#ifndef FROND_BASE_ARENA_H
#define FROND_BASE_ARENA_H

#include "base/status.h"
#include "base/str.h"

struct arena;
struct budget_part;

struct arena_mark {
	void *block;
	size_t used;
	size_t total;
};

/* NULL when out of memory. `limit_bytes` counts what is handed out. */
struct arena *arena_new(size_t limit_bytes);
void arena_free(struct arena *a); /* NULL is fine */

/*
 * What the arena takes beyond its first block counts as used of the part from now on; past what the
 * budget has, allocations return NULL. NULL: no longer. With nothing allocated.
 */
void arena_set_part(struct arena *a, struct budget_part *part);

/* Aligned for any type; NULL past the limit or out of memory. arena_zalloc() clears it. */
void *arena_alloc(struct arena *a, size_t n);
void *arena_zalloc(struct arena *a, size_t n);

/* Bytes without alignment, for text and keys. */
char *arena_bytes(struct arena *a, size_t n);

/* Copies `s`, with a NUL behind it that is not counted; ptr is NULL on failure. */
struct str arena_dup(struct arena *a, struct str s);

/* Copies the format's result; ptr is NULL on failure. */
struct str arena_printf(struct arena *a, const char *fmt, ...) PRINTF(2, 3);

/*
 * Room for one more element behind `count` in an array of the arena, which starts as NULL with *cap
 * 0. NULL when the arena is full.
 */
void *arena_grow(struct arena *a, void *array, size_t count, size_t *cap, size_t elem_bytes);

/* Everything allocated after the mark is freed by the reset. */
struct arena_mark arena_mark(const struct arena *a);
void arena_reset(struct arena *a, struct arena_mark mark);

/* Frees everything, keeping one block for the next use. */
void arena_clear(struct arena *a);

size_t arena_used_bytes(const struct arena *a);

#endif

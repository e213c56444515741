/*
 * For tests of what happens without memory. An arena takes blocks from the system and serves many
 * allocations from each, so few of them can be made to fail (mem_fail_only() in base/mem.h).
 */
#ifndef FROND_BASE_ARENA_APART_H
#define FROND_BASE_ARENA_APART_H

#include <stdbool.h>

/* While this is on, each allocation of the calling thread's arenas gets a block of its own. */
void arena_set_apart(bool on);

#endif

/*
 * For tests of what happens without memory: while it is on, arenas of the calling thread take each
 * allocation from the system by itself, so that each can be made to fail (base/mem.h). Otherwise
 * most of them are served from a block that is there.
 */
#ifndef FROND_BASE_ARENA_APART_H
#define FROND_BASE_ARENA_APART_H

#include <stdbool.h>

void arena_set_apart(bool on);

#endif

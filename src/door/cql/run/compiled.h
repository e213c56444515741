/*
 * Statements that are compiled once and run many times: prepared ones, and those that are compiled
 * before their transaction, for their lane. context.h says what a struct compiled is.
 */
#ifndef FROND_DOOR_CQL_RUN_COMPILED_H
#define FROND_DOOR_CQL_RUN_COMPILED_H

#include "door/cql/run/context.h"

/*
 * Compiles the statement of `run`, whose table is open and is not compiled itself, in an arena that
 * outlives the transaction, as the statement does. The arena may be the request's.
 *
 * Returns NULL, and leaves nothing in the arena, if the statement has a mistake (which is told when
 * it is compiled for the transaction), if its table is one of those that the door computes, or if
 * memory is short. `run` and its request stay as they are.
 */
const struct compiled *compiled_new(const struct run *run, struct arena *arena);

#endif

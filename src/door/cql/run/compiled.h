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
 * NULL: it cannot be kept. It has a mistake, which compiling it for the transaction tells; its
 * table is made up; memory is short. Then nothing is left in the arena. Nothing of `run` or of its
 * request changes.
 */
const struct compiled *compiled_new(const struct run *run, struct arena *arena);

#endif

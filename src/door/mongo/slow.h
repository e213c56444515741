/*
 * Commands that have taken longer than `slow_ms` are logged: what they were and what they have
 * cost, without the values that clients have sent.
 *
 * Threading: any thread.
 */
#ifndef FROND_DOOR_MONGO_SLOW_H
#define FROND_DOOR_MONGO_SLOW_H

#include "door/mongo/txn/command.h"

enum {
	SLOW_LINES_PER_S = 10, /* of the process; further ones are counted in a later line */
	SLOW_NAME_BYTES = 300, /* of a name in a line */
};

/* Logs the command, which has run, if it was slow. `computed_ns`: how long it has not waited. */
void slow_look(struct call *c, uint64_t took_ns, uint64_t computed_ns, enum status status);

#endif

/*
 * Functions in JavaScript that clients send, run by the workers of js/.
 *
 * A call to a worker ends when the command does: by killOp, a closed connection, maxTimeMS.
 */
#ifndef FROND_DOOR_MONGO_TXN_SCRIPTS_H
#define FROND_DOOR_MONGO_TXN_SCRIPTS_H

#include "mql/expr/script.h"

struct call;

/* What expressions of a command call; one of each call. */
struct call_scripts {
	struct mql_scripts scripts; /* first: it is what the callbacks are given */
	struct call *call;
};

void scripts_init(struct call_scripts *s, struct call *c);

#endif

/*
 * How a command runs the bodies of its transactions. All go through here, so that the time of the
 * answer is known.
 */
#ifndef FROND_DOOR_MONGO_TXN_RUN_H
#define FROND_DOOR_MONGO_TXN_RUN_H

#include "door/mongo/txn/command.h"
#include "kv/kv.h"

/*
 * kv_run_versioned() and kv_run_read() for a command; a failure is explained in the call. A command
 * of a transaction (txn.h) runs the body in that, once; its end is for all of its commands.
 */
MUST_USE enum status call_run(struct call *c, kv_body *body, void *arg);
MUST_USE enum status call_read(struct call *c, kv_body *body, void *arg);

/*
 * True if a command that gathers much, and only reads, should fail with STATUS_LIMIT now: it is run
 * again when it has memory of its own (net_memory_should_ask()). Never of a transaction's command,
 * which cannot read the same again.
 */
bool call_gives_way(const struct call *c);

#endif

/*
 * Operations of one connection that run beside each other, each on a fiber of its own, where an
 * entry (serve/clients.h) has one at a time. They are in the registry as all others are
 * (serve/ops.h), with the entry's peer and person. An operation is all zero before its first use.
 * The caller ends it by visit_op_end(), ops_leave() and beside_leave() before the entry of the
 * connection leaves the list.
 *
 * Threading: on the connection's loop.
 */
#ifndef FROND_SERVE_BESIDE_H
#define FROND_SERVE_BESIDE_H

#include "serve/clients.h"

/*
 * On the connection's fiber, before as many operations get a fiber: from now on the person stays,
 * whom they use without a lock. False: people have changed, so none may begin. The door lets those
 * under way end, and serves the command by the entry's own operation, whose visit_admit() looks the
 * person up.
 */
MUST_USE bool beside_enter(struct clients_entry *e, size_t count);
/* On the same fiber, when one of them has ended. */
void beside_leave(struct clients_entry *e);

/* As visit_admit(), for an operation that beside_enter() has let in. */
MUST_USE enum status beside_admit(struct clients_entry *e, struct ops_op *op,
				  const struct visit_command *command, struct err *err);

/* As clients_op_begin(). */
void beside_op_begin(struct clients_entry *e, struct ops_op *op, struct ops_door *door,
		     const char *name, uint64_t began_ns);

#endif

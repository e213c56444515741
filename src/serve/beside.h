/*
 * Operations of one connection that run beside each other, each on a fiber of its own, where an
 * entry (serve/clients.h) has one at a time. They are in the registry as all others are
 * (serve/ops.h), with the entry's peer and person. An operation is all zero before its first use.
 * The caller ends it by ops_end() and ops_leave() before the connection's entry leaves the list.
 *
 * Threading: on the connection's loop.
 */
#ifndef FROND_SERVE_BESIDE_H
#define FROND_SERVE_BESIDE_H

#include "serve/clients.h"

/* As clients_admit(), for such an operation. */
MUST_USE enum status beside_admit(struct clients_entry *e, struct ops_op *op, struct err *err);

/* As clients_op_begin(). */
void beside_op_begin(struct clients_entry *e, struct ops_op *op, struct ops_door *door,
		     const char *name, uint64_t began_ns);

#endif

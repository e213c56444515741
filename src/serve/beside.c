#include "serve/beside.h"

/* The connection, its peer and its session are the entry's. */
static void
beside_bind(const struct clients_entry *e, struct ops_op *op)
{
	op->peer = e->op.peer;
	op->client = e->op.client;
	op->session = e->op.session;
}

enum status
beside_admit(struct clients_entry *e, struct ops_op *op, struct err *err)
{
	beside_bind(e, op);
	return clients_admit_as(e, op, err);
}

void
beside_op_begin(struct clients_entry *e, struct ops_op *op, struct ops_door *door, const char *name,
		uint64_t began_ns)
{
	op->door = door;
	op->name = str_from_cstr(name);
	beside_bind(e, op);
	op->began_ns = began_ns;
	ops_begin(op);
}

#include "serve/beside.h"

enum status
beside_admit(struct clients_entry *e, struct ops_op *op, struct err *err)
{
	op->peer = e->peer;
	op->client = e;
	op->session = e->op.session;
	return clients_admit_as(e, op, err);
}

void
beside_op_begin(struct clients_entry *e, struct ops_op *op, struct ops_door *door, const char *name,
		uint64_t began_ns)
{
	op->door = door;
	op->name = str_from_cstr(name);
	op->client = e;
	op->peer = e->peer;
	op->session = e->op.session;
	op->began_ns = began_ns;
	ops_begin(op);
}

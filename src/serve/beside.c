#include "serve/beside.h"

#include "net/session.h"

enum status
beside_admit(struct clients_entry *e, struct ops_op *op, struct err *err)
{
	op->peer = e->peer;
	op->client = e;
	op->session = e->op.session;
	if (e->op.session && !net_session_may_begin(e->op.session))
		return err_set(err, STATUS_CANCELLED, "the server stops");
	return ops_admit(op, e->limited ? str_from_cstr(e->user) : STR(""), err);
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

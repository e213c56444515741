#include "serve/beside.h"

#include <assert.h>

bool
beside_enter(struct clients_entry *e, size_t count)
{
	if (!visit_is_current(e))
		return false;
	e->beside += count;
	return true;
}

void
beside_leave(struct clients_entry *e)
{
	assert(e->beside);
	e->beside--;
}

/* The connection, its peer and its session are the entry's. */
static void
beside_bind(const struct clients_entry *e, struct ops_op *op)
{
	assert(e->beside);
	op->peer = e->op.peer;
	op->client = e->op.client;
	op->session = e->op.session;
}

enum status
beside_admit(struct clients_entry *e, struct ops_op *op, const struct visit_command *command,
	     struct err *err)
{
	beside_bind(e, op);
	return visit_admit_beside(e, op, command, err);
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

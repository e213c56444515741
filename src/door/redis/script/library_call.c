/* The libraries that a call sees in its transaction. */
#include "door/redis/script/library.h"
#include "door/redis/txn/redis_int.h"

static struct libraries
libraries_in(const struct call *c, struct timed *t)
{
	return (struct libraries){ .t = t, .arena = c->arena, .err = c->x->err };
}

enum status
libraries_of_call(struct call *c, struct libraries *ret)
{
	struct timed *t;

	TRY(txn_db_there(c, TXN_FUNCTIONS, &t));
	*ret = libraries_in(c, t);
	return STATUS_OK;
}

enum status
libraries_to_write(struct call *c, struct libraries *ret)
{
	struct timed *t;

	TRY(txn_db(c, TXN_FUNCTIONS, &t));
	*ret = libraries_in(c, t);
	return STATUS_OK;
}

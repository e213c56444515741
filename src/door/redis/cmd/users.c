#include "door/redis/cmd/users.h"

#include "door/redis/txn/acl_log.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/txn/user_change.h"
#include "door/redis/wire/error.h"

enum status
users_failed(struct call *c, enum status status, const struct err *err)
{
	if (status == STATUS_OK)
		return STATUS_OK;
	if (status == STATUS_INVALID || status == STATUS_FORBIDDEN)
		return call_errorf(c, "ERR %s", err->text);
	error_reply_status(c->reply, status, err);
	return STATUS_ANSWERED;
}

enum status
users_may_change(struct call *c, const char *what)
{
	if (c->in_exec)
		return call_errorf(c,
				   "ERR %s cannot be part of a transaction: people are written in "
				   "one of their own",
				   what);
	if (user_may_change(c->client))
		return STATUS_OK;
	acl_log_add(c->client, &(struct acl_refusal){ .denial = ACL_DENIED_COMMAND,
						      .context = "toplevel",
						      .object = str_from_cstr(what) });
	return call_errorf(
		c, "NOPERM people are those of every door: administrators alone may use %s", what);
}

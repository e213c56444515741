/* What commands about users share (txn/user.h). */
#ifndef FROND_DOOR_REDIS_CMD_USERS_H
#define FROND_DOOR_REDIS_CMD_USERS_H

#include "door/redis/acl/command.h"

/*
 * Answers why something about users cannot be done, or a failure of the store. STATUS_OK stays
 * what it is; else STATUS_ANSWERED.
 */
MUST_USE enum status users_failed(struct call *c, enum status status, const struct err *err);

/*
 * People are changed by administrators, and in transactions of their own. STATUS_ANSWERED: not
 * here. `what` is the command.
 */
MUST_USE enum status users_may_change(struct call *c, const char *what);

#endif

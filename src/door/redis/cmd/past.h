/* Commands that read keys as they were at a moment (cmd_past.c). */
#ifndef FROND_DOOR_REDIS_CMD_PAST_H
#define FROND_DOOR_REDIS_CMD_PAST_H

#include "door/redis/txn/txn.h"

/* Called with the call as of a moment: its transaction is a view of that, with the call's arena. */
typedef enum status past_read(struct call *c, void *arg);

/*
 * Has the database read as it was at the moment that argument `i` names (docs/REDIS.md).
 * STATUS_ANSWERED: it names none, or there is no history at that time; an EXEC goes on.
 */
MUST_USE enum status past_view(struct call *c, size_t i, past_read *read, void *arg);

#endif

/* Redis's texts of errors, and what becomes of a status. */
#ifndef FROND_DOOR_REDIS_WIRE_ERROR_H
#define FROND_DOOR_REDIS_WIRE_ERROR_H

#include "base/status.h"
#include "door/redis/wire/reply.h"

#define ERROR_SYNTAX      "ERR syntax error"
#define ERROR_WRONG_TYPE  "WRONGTYPE Operation against a key holding the wrong kind of value"
#define ERROR_NOT_INTEGER "ERR value is not an integer or out of range"
#define ERROR_NOT_FLOAT   "ERR value is not a valid float"
#define ERROR_NO_KEY      "ERR no such key"
#define ERROR_RANGE       "ERR index out of range"
#define ERROR_TOO_LONG    "ERR string exceeds maximum allowed size (proto-max-bulk-len)"

/* What the store could not do. The one table from a status to Redis's protocol. */
void error_reply_status(struct reply *r, enum status status, const struct err *err);

#endif

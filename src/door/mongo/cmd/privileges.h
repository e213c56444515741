/*
 * Rights as MongoDB's clients are told them: actions on resources. Plain functions, for any thread.
 */
#ifndef FROND_DOOR_MONGO_CMD_PRIVILEGES_H
#define FROND_DOOR_MONGO_CMD_PRIVILEGES_H

#include "bson/bson.h"
#include "door/mongo/txn/rights.h"

/* Appends an array of them. Each right is told by the actions that it is best known by. */
void privileges_put(struct bson_builder *b, struct str name, const struct rights *r);

#endif

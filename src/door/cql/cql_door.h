/*
 * Cassandra's door: its native protocol on connections of net/, statements in CQL on tables.
 * docs/CQL.md has what clients are promised, README.md how it is made.
 *
 * A struct cql_door is shared by all loops of a process.
 */
#ifndef FROND_DOOR_CQL_CQL_DOOR_H
#define FROND_DOOR_CQL_CQL_DOOR_H

#include "door/door.h"

/* The door, as the program opens it. */
extern const struct door_type cql_door_type;

#endif

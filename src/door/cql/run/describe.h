/* DESCRIBE: the schema as statements, as cqlsh asks for it. On the connection's fiber. */
#ifndef FROND_DOOR_CQL_RUN_DESCRIBE_H
#define FROND_DOOR_CQL_RUN_DESCRIBE_H

#include "door/cql/run/context.h"

/* Appends the RESULT. */
MUST_USE enum status describe_run(struct run *run);

#endif

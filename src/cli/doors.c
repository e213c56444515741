/* Nothing but the table, so that a test links another one in place of this file. */
#include "cli/doors.h"

#include "door/cql/cql_door.h"
#include "door/mongo/mongo.h"
#include "door/redis/redis.h"
#include "door/rows/rows_door.h"

const struct door_type *const cli_doors[] = {
	&redis_door_type,
	&mongo_door_type,
	&cql_door_type,
	&rows_door_type,
};

const size_t cli_doors_count = sizeof(cli_doors) / sizeof(cli_doors[0]);

_Static_assert(sizeof(cli_doors) / sizeof(cli_doors[0]) <= CLI_DOORS, "too many doors");

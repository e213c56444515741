/*
 * MongoDB's door of `frond serve`.
 *
 * For the main thread; a process serves once.
 */
#ifndef FROND_CLI_MONGO_DOOR_H
#define FROND_CLI_MONGO_DOOR_H

#include "cli/door.h"

struct js;
struct mongo;
struct user_place;

struct mongo_door {
	bool test_commands; /* by an option of the command line */
	struct mongo *mongo;
	struct user_place *people; /* of the store, for its commands */
};

/*
 * STATUS_INVALID for settings that the door could not work with, such as a directory that it may
 * not write to: a server would tell so only when a pipeline needs it.
 */
MUST_USE enum status mongo_door_check(const struct settings *settings, struct err *err);

/*
 * Makes the door, if it is wanted, and listens. `js` outlives it. STATUS_INVALID, STATUS_IO,
 * STATUS_NOMEM.
 */
MUST_USE enum status mongo_door_listen(struct mongo_door *d, struct door *door,
				       const struct door_ground *ground, struct js *js,
				       struct err *err);

/* After the server has run to its end, before it is freed: see mongo_stop(). */
void mongo_door_stop(struct mongo_door *d);
/* After the server was freed, before the store is closed. */
void mongo_door_fini(struct mongo_door *d);

#endif

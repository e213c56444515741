/*
 * MongoDB's door of `frond serve`.
 *
 * For the main thread; a process serves once.
 */
#ifndef FROND_CLI_MONGO_DOOR_H
#define FROND_CLI_MONGO_DOOR_H

#include "cli/door.h"
#include "kv/kv.h"
#include "settings/live.h"

struct js;
struct mongo;
struct server;
struct user_place;

struct mongo_door {
	struct door door;   /* found by door_find(), freed by door_fini() */
	bool test_commands; /* by an option of the command line */
	struct mongo *mongo;
	struct user_place *people; /* of the store, for its commands */
};

/*
 * Makes the door, if it is wanted, and listens. `settings` and `js` outlive it. STATUS_INVALID,
 * STATUS_IO, STATUS_NOMEM.
 */
MUST_USE enum status mongo_door_listen(struct mongo_door *d, struct kv_store *store,
				       const struct settings *settings, struct settings_live *live,
				       struct js *js, struct server *server, struct err *err);

/* After the server was freed, before the store is closed. */
void mongo_door_fini(struct mongo_door *d);

#endif

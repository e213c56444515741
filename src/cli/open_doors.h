/*
 * The doors of the table (cli/doors.h) that `frond serve` has open.
 *
 * For the main thread; a process serves once.
 */
#ifndef FROND_CLI_OPEN_DOORS_H
#define FROND_CLI_OPEN_DOORS_H

#include "cli/listening.h"
#include "door/people.h"

struct user_place;

struct open_doors {
	void *doors[CLI_DOORS]; /* NULL: it is not wanted */
	struct user_place *place;
	struct door_people people; /* of the store, for commands */
};

/*
 * Makes each door that is wanted, and listens. `ground` is complete but for the people, and is
 * borrowed. `flags[i]`: the command line has the option `flag` of door i. STATUS_INVALID,
 * STATUS_IO, STATUS_NOMEM.
 */
MUST_USE enum status open_doors_listen(struct open_doors *o, struct listening *l,
				       const struct door_ground *ground,
				       const bool flags[CLI_DOORS], struct err *err);

void open_doors_chores_add(const struct open_doors *o, struct chores *chores);

/* After the server has run to its end, before it is freed. */
void open_doors_stop(const struct open_doors *o);
/* After the server was freed, before the store is closed. */
void open_doors_fini(struct open_doors *o);

#endif

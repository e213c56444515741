/*
 * The people of a store, for doors whose commands change them: documents of _users, as `frond user`
 * writes them.
 */
#ifndef FROND_CLI_DOOR_PEOPLE_H
#define FROND_CLI_DOOR_PEOPLE_H

#include "cli/user.h"
#include "door/people.h"

/* Functions on a place, which outlives them. */
struct door_people door_people_of(struct user_place *place);

#endif

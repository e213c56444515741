/* The people of a store for MongoDB's door: documents of _users, as frond user writes them. */
#ifndef FROND_CLI_MONGO_PEOPLE_H
#define FROND_CLI_MONGO_PEOPLE_H

#include "cli/user.h"
#include "door/mongo/people.h"

/* Functions on a place, which outlives them. */
struct mongo_people mongo_people_of(struct user_place *place);

#endif

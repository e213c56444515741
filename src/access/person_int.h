/* Private to access/: the keys of people's records. */
#ifndef FROND_ACCESS_PERSON_INT_H
#define FROND_ACCESS_PERSON_INT_H

#include "access/person.h"

/* Appends the key of a person's record. */
MUST_USE enum status person_key(struct str name, struct buf *key);
/*
 * Appends the key of a person at a door. If `door` is empty, this is the prefix of the person's
 * keys at all doors; if `name` is empty as well, it is the prefix of everybody's.
 */
MUST_USE enum status person_door_key(struct str name, struct str door, struct buf *key);

#endif

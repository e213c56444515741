/* Private to access/: the keys of people's records. */
#ifndef FROND_ACCESS_PERSON_INT_H
#define FROND_ACCESS_PERSON_INT_H

#include "access/person.h"

/* Appends the key of a person's record. */
MUST_USE enum status person_key(struct str name, struct buf *key);
/*
 * Appends the key of a person at a door. Without a door: what the keys of the person at all doors
 * begin with; without a name, too: what all such keys begin with.
 */
MUST_USE enum status person_door_key(struct str name, struct str door, struct buf *key);
/* A person has changed: writes the versionstamp that is watched. */
MUST_USE enum status people_touch(struct kv_tx *tx);

#endif

/* Redis's glob patterns: *, ?, [a-z], [^a], and \ in front of any of them. Threading: none. */
#ifndef FROND_DOOR_REDIS_WIRE_GLOB_H
#define FROND_DOOR_REDIS_WIRE_GLOB_H

#include "base/str.h"

/* True if all of `text` matches. Its time is bounded by the product of both lengths. */
bool glob_matches(struct str pattern, struct str text, bool nocase);

#endif

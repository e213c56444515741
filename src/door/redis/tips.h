/* What COMMAND tells proxies and clients of clusters about a command: Redis 7.0.15's tips. */
#ifndef FROND_DOOR_REDIS_TIPS_H
#define FROND_DOOR_REDIS_TIPS_H

#include "base/str.h"

/* Of a command, or of "config|set": words with spaces between them, or nothing. */
struct str tips_of(const char *name);

#endif

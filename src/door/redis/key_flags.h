/* What COMMAND tells beside the table of commands: flags of keys. */
#ifndef FROND_DOOR_REDIS_KEY_FLAGS_H
#define FROND_DOOR_REDIS_KEY_FLAGS_H

#include "door/redis/command.h"

/* What the call does with its key of that number, in Redis's words with spaces between them. */
struct str key_flags_of(const struct command *command, const struct str *argv, size_t argc,
			size_t key);

#endif

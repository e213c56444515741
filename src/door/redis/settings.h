/* The settings of Redis's door (base/setting.h): the section [redis]. */
#ifndef FROND_DOOR_REDIS_SETTINGS_H
#define FROND_DOOR_REDIS_SETTINGS_H

#include "door/door.h"

enum {
	REDIS_PORT = 6379,
	REDIS_TLS_PORT = 6380,
};

/* clang-format off */
#define REDIS_SETTINGS(S, NUMBER, FLAG, TEXT)                                                      \
	DOOR_SETTINGS(S, NUMBER, FLAG, TEXT, "redis", "Redis", REDIS_PORT, REDIS_TLS_PORT)         \
	NUMBER(S, loops, "redis", "loops", "", 1, 1024, 0, SETTING_AT_START,                       \
	       "How many of the threads that serve connections serve those of Redis's clients. "   \
	       "By default half of them: commands that write are run in groups, and the fewer "    \
	       "threads a group comes from, the less it costs.")
/* clang-format on */

SETTING_STRUCT(redis_settings, REDIS_SETTINGS);
DOOR_SETTINGS_ARE_FIRST(redis_settings);

extern const struct setting_group redis_setting_group;

#endif

/* The settings of Redis's door (base/setting.h): the section [redis]. */
#ifndef FROND_DOOR_REDIS_SETTINGS_H
#define FROND_DOOR_REDIS_SETTINGS_H

#include "base/setting.h"

/* clang-format off */
#define REDIS_SETTINGS(S, NUMBER, FLAG, TEXT)                                                      \
	NUMBER(S, loops, "redis", "loops", "", 1, 1024, 0, SETTING_AT_START,                       \
	       "How many of the threads that serve connections serve those of Redis's clients. "   \
	       "By default half of them: commands that write are run in groups, and the fewer "    \
	       "threads a group comes from, the less it costs.")
/* clang-format on */

SETTING_STRUCT(redis_settings, REDIS_SETTINGS);

extern const struct setting_group redis_setting_group;

#endif

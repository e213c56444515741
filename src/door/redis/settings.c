#include "door/redis/settings.h"

SETTING_GROUP(redis_setting_group, redis_settings, REDIS_SETTINGS);

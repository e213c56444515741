#include "kv/settings.h"

SETTING_GROUP(kv_setting_group, kv_settings, KV_SETTINGS);

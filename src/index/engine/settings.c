#include "index/engine/settings.h"

SETTING_GROUP(index_setting_group, index_settings, INDEX_SETTINGS);

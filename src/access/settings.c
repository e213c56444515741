#include "access/settings.h"

SETTING_GROUP(access_setting_group, access_settings, ACCESS_SETTINGS);

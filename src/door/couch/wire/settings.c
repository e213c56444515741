#include "door/couch/wire/settings.h"

SETTING_GROUP(couch_setting_group, couch_settings, COUCH_SETTINGS);

#include "door/mongo/txn/settings.h"

SETTING_GROUP(mongo_setting_group, mongo_settings, MONGO_SETTINGS);

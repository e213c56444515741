#include "catalog/settings.h"

SETTING_GROUP(lease_setting_group, lease_settings, LEASE_SETTINGS);

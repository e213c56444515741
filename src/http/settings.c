#include "http/settings.h"

SETTING_GROUP(server_setting_group, server_settings, SERVER_SETTINGS);

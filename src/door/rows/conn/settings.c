#include "door/rows/conn/settings.h"

SETTING_GROUP(rows_setting_group, rows_settings, ROWS_SETTINGS);

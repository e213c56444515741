#include "door/cql/conn/settings.h"

SETTING_GROUP(cql_setting_group, cql_settings, CQL_SETTINGS);

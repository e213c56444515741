/* Which modules of the program have settings: the groups that settings/ reads. */
#ifndef FROND_CLI_SETTINGS_H
#define FROND_CLI_SETTINGS_H

#include "settings/settings.h"

extern const struct setting_group *const cli_setting_groups[];
extern const size_t cli_setting_groups_count;

#endif

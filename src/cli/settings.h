/* Which modules of the program have settings: the groups that settings/ reads. */
#ifndef FROND_CLI_SETTINGS_H
#define FROND_CLI_SETTINGS_H

#include "kv/kv.h"
#include "settings/settings.h"

/* All groups, those of the doors (cli/doors.h) behind the others. */
const struct setting_group *const *cli_setting_groups(size_t *ret_count);

/* Settings of all of them with their defaults. NULL when out of memory. */
struct settings *cli_settings_new(void);

/*
 * The settings that a server without a file would have in front of the store. The caller frees
 * them. Errors of settings_read_stored().
 */
MUST_USE enum status cli_settings_of_store(struct kv_store *store, struct settings **ret,
					   struct err *err);

#endif

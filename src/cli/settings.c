#include "cli/settings.h"

#include "access/settings.h"
#include "base/log.h"
#include "catalog/settings.h"
#include "cli/doors.h"
#include "door/couch/couch.h"
#include "js/settings.h"
#include "kv/settings.h"
#include "replicator/settings.h"
#include "http/settings.h"
#include "index/engine/settings.h"
#include "net/settings.h"

static const struct setting_group *const own_groups[] = {
	&couch_setting_group, &server_setting_group, &access_setting_group,
	&log_setting_group,   &kv_setting_group,     &replicator_setting_group,
	&js_setting_group,    &index_setting_group,  &tls_setting_group,
	&lease_setting_group,
};

enum {
	OWN_GROUPS = sizeof(own_groups) / sizeof(own_groups[0]),
};

const struct setting_group *const *
cli_setting_groups(size_t *ret_count)
{
	static const struct setting_group *groups[OWN_GROUPS + CLI_DOORS];

	for (size_t i = 0; i < OWN_GROUPS; i++)
		groups[i] = own_groups[i];
	for (size_t i = 0; i < cli_doors_count; i++)
		groups[OWN_GROUPS + i] = cli_doors[i]->settings;
	*ret_count = OWN_GROUPS + cli_doors_count;
	return groups;
}

struct settings *
cli_settings_new(void)
{
	size_t count;
	const struct setting_group *const *groups = cli_setting_groups(&count);

	return settings_new(groups, count);
}

enum status
cli_settings_of_store(struct kv_store *store, struct settings **ret, struct err *err)
{
	struct settings *settings = cli_settings_new();
	enum status status;

	if (!settings)
		return err_set(err, STATUS_NOMEM, "out of memory");
	status = settings_read_stored(settings, store, err);
	if (status != STATUS_OK) {
		settings_free(settings);
		return status;
	}
	*ret = settings;
	return STATUS_OK;
}

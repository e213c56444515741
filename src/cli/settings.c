#include "cli/settings.h"

#include "access/settings.h"
#include "base/log.h"
#include "door/couch/couch.h"
#include "door/mongo/settings.h"
#include "door/redis/settings.h"
#include "js/settings.h"
#include "kv/settings.h"
#include "replicator/settings.h"
#include "http/settings.h"
#include "index/engine/settings.h"
#include "net/settings.h"

const struct setting_group *const cli_setting_groups[] = {
	&couch_setting_group, &server_setting_group, &access_setting_group,
	&log_setting_group,   &kv_setting_group,     &replicator_setting_group,
	&js_setting_group,    &index_setting_group,  &tls_setting_group,
	&mongo_setting_group, &redis_setting_group,
};

const size_t cli_setting_groups_count = sizeof(cli_setting_groups) / sizeof(cli_setting_groups[0]);

enum status
cli_settings_of_store(struct kv_store *store, struct settings **ret, struct err *err)
{
	struct settings *settings = settings_new(cli_setting_groups, cli_setting_groups_count);
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

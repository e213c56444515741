#include "cli/settings.h"

#include "access/settings.h"
#include "base/log.h"
#include "door/couch/couch.h"
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
};

const size_t cli_setting_groups_count = sizeof(cli_setting_groups) / sizeof(cli_setting_groups[0]);

/* What the catalog declares of settings (base/setting.h). */
#ifndef FROND_CATALOG_SETTINGS_H
#define FROND_CATALOG_SETTINGS_H

#include "base/setting.h"
#include "catalog/lease.h"

/* clang-format off */
#define LEASE_SETTINGS(S, NUMBER, FLAG, TEXT)                                                      \
	NUMBER(S, lease_ms, "frond", "lease_ms", "ms", LEASE_LEAST_MS, LEASE_MS, LEASE_MS,         \
	       SETTING_AT_START,                                                                   \
	       "On a cluster: how long this process may give no sign of life before another one "  \
	       "takes over its background work and replications. It gives six in that time.")
/* clang-format on */

SETTING_STRUCT(lease_settings, LEASE_SETTINGS);

extern const struct setting_group lease_setting_group;

#endif

/*
 * Settings that all servers of a store share, kept in the store itself.
 *
 *     (ROOT, 9, section, name)  → format, text or null
 *
 * Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_CATALOG_STORED_SETTINGS_H
#define FROND_CATALOG_STORED_SETTINGS_H

#include "base/arena.h"
#include "kv/kv.h"

enum {
	CATALOG_SETTING_NAME_BYTES = 256, /* of a section's name, and of a setting's */
	CATALOG_SETTING_TEXT_BYTES = 8192,
};

struct catalog_setting {
	struct str section;
	struct str name;
	struct str text; /* ptr NULL: it is not set, whatever a server's own settings say */
};

/* True as long as the metadata version is this one. */
struct catalog_settings {
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	struct catalog_setting *items; /* by section, then name */
	size_t count;
};

/* In the arena; STATUS_LIMIT when it is full. */
MUST_USE enum status catalog_settings_read(struct kv_tx *tx, struct arena *arena,
					   struct catalog_settings *ret, struct err *err);

/*
 * UTF-8. STATUS_INVALID for an empty name or what is longer than the limits. Touches the metadata
 * version.
 */
MUST_USE enum status catalog_setting_put(struct kv_tx *tx, const struct catalog_setting *setting,
					 struct err *err);

#endif

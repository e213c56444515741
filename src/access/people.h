/*
 * The people that the settings name: administrators, with their passwords, and the secret that
 * signs cookies. settings/live.h keeps what is made of them here beside the settings that hold.
 */
#ifndef FROND_ACCESS_PEOPLE_H
#define FROND_ACCESS_PEOPLE_H

#include "access/auth.h"
#include "access/settings.h"
#include "settings/live.h"

/*
 * For settings_live_new(), whose `arg` is the address that others can reach the process at (a
 * const char *), or NULL when only this machine can. Refuses with STATUS_INVALID settings without
 * any administrator while others can reach the process: everybody could do everything.
 */
extern const struct settings_live_ops people_live_ops;

/* The people of settings that were derived by people_live_ops; they live as long as `held`. */
struct auth *people_of(const struct settings_held *held);

/* Credentials as the settings have them; the caller frees them. STATUS_INVALID, STATUS_NOMEM. */
MUST_USE enum status people_auth(const struct settings *settings, struct auth **ret,
				 struct err *err);

/* How much is hashed at a time, as the settings say. */
struct hash_queue_limits people_hash_limits(const struct settings *settings);

/* STATUS_INVALID for a plain password that cannot be one. */
MUST_USE enum status people_check(const struct settings *settings, struct err *err);

/*
 * Makes settings ready for settings_live_new(): sees to it that there is a secret, in `settings` or
 * in the store, and replaces the plain passwords of `settings` by their hashes. Slow.
 *
 * A secret in the store makes cookies outlive the process, and valid on every server of the store.
 * For this, servers that were given the same password in plain must also have the same salt, so the
 * salts are derived from the secret. Errors of the store; STATUS_INVALID, STATUS_NOMEM.
 */
MUST_USE enum status people_prepare(struct kv_store *store, struct settings *settings,
				    struct err *err);

#endif

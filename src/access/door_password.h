/*
 * Passwords of one door (person_door.h) as commands of its clients set them: what the settings want
 * of them, and their hashes, made in turn. Threading: on a fiber, in no transaction: both wait.
 */
#ifndef FROND_ACCESS_DOOR_PASSWORD_H
#define FROND_ACCESS_DOOR_PASSWORD_H

#include "access/auth.h"
#include "access/person_door.h"
#include "settings/live.h"

/* STATUS_INVALID, explained, for a password that the settings do not want (password_regexp). */
MUST_USE enum status door_password_check(const struct settings_held *held, struct str password,
					 struct err *err);

/*
 * The hash of a password under the salt of `at`, into PERSON_DOOR_HASH_BYTES. `text` is the
 * password, or, without `is_plain`, the digits of its SHA-256. Errors of auth_hash_at_door().
 */
MUST_USE enum status door_password_hash(const struct settings_held *held,
					const struct auth_client *client,
					const struct person_door *at, struct str text,
					bool is_plain, uint8_t *ret, struct err *err);

#endif

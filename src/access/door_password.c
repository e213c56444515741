#include "access/door_password.h"

#include <openssl/crypto.h>

#include "access/people.h"
#include "access/settings.h"
#include "settings/rules.h"

enum status
door_password_check(const struct settings_held *held, struct str password, struct err *err)
{
	const struct access_settings *access = settings_of(held->settings, &access_setting_group);
	struct rule broken;
	bool kept = true;

	if (password.len > AUTH_PASSWORD_BYTES)
		return err_set(err, STATUS_INVALID,
			       "a password has at most %d bytes (AUTH_PASSWORD_BYTES)",
			       AUTH_PASSWORD_BYTES);
	if (access->password_rules)
		TRY(rules_apply(str_from_cstr(access->password_rules), password, &broken, &kept,
				err));
	if (kept)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID, "the password does not conform to password_regexp%s%s",
		       broken.reason[0] ? ": " : "", broken.reason);
}

enum status
door_password_hash(const struct settings_held *held, const struct auth_client *client,
		   const struct person_door *at, struct str text, bool is_plain, uint8_t *ret,
		   struct err *err)
{
	const struct auth_hashing how = { .client = client,
					  .limits = people_hash_limits(held->settings) };
	char digest[PERSON_DOOR_DIGEST_BYTES];
	enum status status;

	if (is_plain && !person_door_digest(text, digest))
		return err_set(err, STATUS_NOMEM, "out of memory");
	if (is_plain)
		text = str_of(digest, sizeof(digest));
	status = auth_hash_at_door(at, text, &how, ret, err);
	OPENSSL_cleanse(digest, sizeof(digest));
	return status;
}

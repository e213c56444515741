#include "access/people.h"

#include "base/buf.h"
#include "base/rand.h"

enum {
	PEOPLE_ARENA_BYTES = 4 << 20, /* all settings of a store, while the secret is looked for */
	PEOPLE_SECRET_BYTES = 16,     /* of a new secret; its text has twice as many digits */
};

_Static_assert((int)SETTINGS_KEYS_LIMIT == (int)JWT_KEYS_LIMIT,
	       "settings must not take keys that access cannot keep");
_Static_assert((int)SETTINGS_PEOPLE_LIMIT == (int)AUTH_ADMINS_LIMIT,
	       "settings must not take administrators that access cannot keep");

static struct str
secret_of(const struct settings *settings)
{
	const struct access_settings *access = settings_of(settings, &access_setting_group);

	return access->secret ? str_from_cstr(access->secret) : (struct str){ 0 };
}

struct hash_queue_limits
people_hash_limits(const struct settings *settings)
{
	const struct access_settings *access = settings_of(settings, &access_setting_group);

	return (struct hash_queue_limits){ access->hash_threads, access->hash_queue };
}

/* The hash of a person's password, made in the arena unless it is hashed already. */
static enum status
person_hashed(const struct settings *settings, const struct settings_entry *person,
	      struct str secret, struct arena *arena, struct str *ret, struct err *err)
{
	const struct access_settings *access = settings_of(settings, &access_setting_group);
	const struct auth_hashing how = { .rounds = access->iterations, .secret = secret };

	*ret = person->text;
	if (auth_is_hashed(person->text))
		return STATUS_OK;
	return auth_hash_password(person->name, person->text, &how, arena, ret, err);
}

static enum status
add_people(struct auth *auth, const struct settings *settings, struct arena *arena, struct err *err)
{
	const struct settings_entry *people;
	size_t count = settings_people(settings, &people);
	struct str hashed;

	for (size_t i = 0; i < count; i++) {
		TRY(person_hashed(settings, &people[i], secret_of(settings), arena, &hashed, err));
		TRY(auth_add_admin_hashed(auth, people[i].name, hashed, err));
	}
	return STATUS_OK;
}

static enum status
add_tokens(struct auth *auth, const struct settings *settings, struct err *err)
{
	const struct access_settings *access = settings_of(settings, &access_setting_group);
	const struct jwt_choices choices = { .required_claims = access->jwt_required,
					     .roles_name = access->jwt_roles_name,
					     .roles_path = access->jwt_roles_path,
					     .algorithms = access->jwt_algorithms };
	struct jwt_key_text keys[JWT_KEYS_LIMIT];
	const struct settings_entry *entries;
	size_t count = settings_keys(settings, &entries);
	struct jwt_rules *rules;

	for (size_t i = 0; i < count; i++)
		keys[i] = (struct jwt_key_text){ entries[i].name, entries[i].text };
	if (access->handlers)
		TRY(auth_set_handlers(auth, str_from_cstr(access->handlers), err));
	TRY(auth_set_proxy(auth, access->proxy_use_secret, secret_of(settings),
			   str_from_cstr(access->proxy_algorithms), err));
	/* Also where no handler takes tokens: what makes no sense is refused where it is set. */
	TRY(jwt_rules_new(&choices, keys, count, &rules, err));
	auth_set_tokens(auth, rules);
	return STATUS_OK;
}

static struct lockout_rules
lockout_rules_of(const struct access_settings *access)
{
	enum lockout_mode mode = LOCKOUT_ENFORCE;

	if (strcmp(access->lockout_mode, "enforce") != 0)
		mode = strcmp(access->lockout_mode, "warn") == 0 ? LOCKOUT_WARN : LOCKOUT_OFF;
	return (struct lockout_rules){
		.mode = mode,
		.threshold = access->lockout_threshold,
		.lifetime_ms = access->lockout_lifetime_ms,
		.objects = access->lockout_objects,
	};
}

enum status
people_auth(const struct settings *settings, struct auth **ret, struct err *err)
{
	const struct access_settings *access = settings_of(settings, &access_setting_group);
	const struct hash_queue_limits limits = people_hash_limits(settings);
	const struct lockout_rules lockout = lockout_rules_of(access);
	struct str secret = secret_of(settings);
	struct arena *arena = arena_new(PEOPLE_ARENA_BYTES);
	struct auth *auth = auth_new();
	enum status status = STATUS_OK;

	if (!auth || !arena)
		status = err_set(err, STATUS_NOMEM, "out of memory");
	if (status == STATUS_OK) {
		auth_set_hash_limits(auth, &limits);
		auth_set_rounds(auth, access->iterations);
		auth_set_upgrades(auth, access->upgrade_hashes);
		auth_set_session(auth, access->timeout_s);
		auth_set_overlap(auth, access->secret_overlap_s);
		auth_set_lockout(auth, &lockout);
		status = add_people(auth, settings, arena, err);
	}
	if (status == STATUS_OK)
		status = add_tokens(auth, settings, err);
	if (status == STATUS_OK && secret.len)
		status = auth_set_secret(auth, secret, err);
	arena_free(arena);
	if (status != STATUS_OK) {
		auth_free(auth);
		return status;
	}
	*ret = auth;
	return STATUS_OK;
}

enum status
people_check(const struct settings *settings, struct err *err)
{
	const struct settings_entry *people;
	size_t count = settings_people(settings, &people);

	for (size_t i = 0; i < count; i++)
		if (!auth_is_hashed(people[i].text))
			TRY(auth_check_plain(people[i].name, people[i].text, err));
	return STATUS_OK;
}

static enum status
hash_people(struct settings *settings, struct str secret, struct arena *arena, struct err *err)
{
	const struct settings_entry *people;
	size_t count = settings_people(settings, &people);
	struct str hashed;

	for (size_t i = 0; i < count; i++) {
		if (auth_is_hashed(people[i].text))
			continue;
		TRY(person_hashed(settings, &people[i], secret, arena, &hashed, err));
		TRY(settings_set_person(settings, people[i].name, hashed, people[i].fixed, err));
	}
	return STATUS_OK;
}

/* ---- For settings that change ---- */

static enum status
people_derive(void *arg, const struct settings *settings, void **ret, struct err *err)
{
	const char *exposed_at = arg;
	struct auth *auth;

	TRY(people_auth(settings, &auth, err));
	if (exposed_at && !auth_has_admins(auth)) {
		auth_free(auth);
		return err_set(err, STATUS_INVALID,
			       "without an administrator everybody could do everything, and this "
			       "server listens on %s",
			       exposed_at);
	}
	*ret = auth;
	return STATUS_OK;
}

static void
people_drop(void *derived)
{
	auth_free(derived);
}

static void
people_succeed(void *made, const void *former)
{
	auth_succeed(made, former);
}

const struct settings_live_ops people_live_ops = {
	.derive = people_derive,
	.drop = people_drop,
	.succeed = people_succeed,
};

struct auth *
people_of(const struct settings_held *held)
{
	return held->derived;
}

/* ---- The secret ---- */

/* The secret that the store has; ptr NULL: none. */
static struct str
stored_secret(const struct catalog_settings *stored)
{
	for (size_t i = 0; i < stored->count; i++)
		if (str_eq(stored->items[i].section, STR(ACCESS_SECRET_SECTION)) &&
		    str_eq(stored->items[i].name, STR(ACCESS_SECRET_NAME)))
			return stored->items[i].text;
	return (struct str){ 0 };
}

struct secret_call {
	struct arena *arena;
	bool make;         /* one if there is none */
	struct str secret; /* that the store has at the end; ptr NULL: none */
};

static enum status
secret_attempt(struct kv_tx *tx, void *arg)
{
	struct secret_call *c = arg;
	struct catalog_setting made = { STR(ACCESS_SECRET_SECTION), STR(ACCESS_SECRET_NAME),
					STR("") };
	struct buf AUTO(buf_release) digits = BUF_INIT(2 * PEOPLE_SECRET_BYTES);
	uint8_t noise[PEOPLE_SECRET_BYTES];
	struct catalog_settings stored;

	arena_clear(c->arena);
	TRY(catalog_settings_read(tx, c->arena, &stored, NULL));
	c->secret = stored_secret(&stored);
	if (c->secret.ptr || !c->make)
		return STATUS_OK;
	rand_bytes(noise, sizeof(noise));
	buf_append_hex(&digits, str_of(noise, sizeof(noise)));
	TRY(buf_status(&digits));
	made.text = buf_dup(&digits, c->arena);
	if (!made.text.ptr)
		return STATUS_NOMEM;
	c->secret = made.text;
	return catalog_setting_put(tx, &made, NULL);
}

enum status
people_prepare(struct kv_store *store, struct settings *settings, struct err *err)
{
	struct str given = secret_of(settings);
	struct secret_call call = { .arena = arena_new(PEOPLE_ARENA_BYTES), .make = !given.len };
	struct arena *hashes = arena_new(PEOPLE_ARENA_BYTES);
	enum status status;

	if (call.arena && hashes)
		status = kv_run(store, secret_attempt, &call, NULL, err);
	else
		status = err_set(err, STATUS_NOMEM, "out of memory");
	/*
	 * A store that is only read for now has no secret to keep: this process has one until then.
	 */
	if ((status == STATUS_FULL || status == STATUS_UNAVAILABLE || status == STATUS_STANDBY) &&
	    call.secret.ptr && kv_store_stats(store).state != KV_STORE_OPEN)
		status = STATUS_OK;
	if (status == STATUS_OK)
		status = hash_people(settings, call.secret.ptr ? call.secret : given, hashes, err);
	arena_free(hashes);
	arena_free(call.arena);
	return status;
}

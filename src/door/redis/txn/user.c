#include "door/redis/txn/user.h"

#include "access/people.h"
#include "access/settings.h"
#include "door/redis/acl/rules.h"
#include "door/redis/txn/redis_int.h"
#include "loop/step.h"

#define HASH_TEXT "pbkdf2:sha256:"

/* ---- Reading ---- */

bool
users_are_open(struct redis *r)
{
	struct settings_held *held = settings_live_hold(r->config.live);
	bool open = !auth_has_admins(people_of(held));

	settings_held_unref(held);
	return open;
}

/* The entry of an administrator; NULL: nobody in the settings has the name. */
static const struct settings_entry *
find_admin(const struct settings_held *held, struct str name)
{
	const struct settings_entry *entries;
	size_t count = settings_people(held->settings, &entries);

	for (size_t i = 0; i < count; i++)
		if (str_eq(entries[i].name, name))
			return &entries[i];
	return NULL;
}

bool
user_is_admin(struct redis *r, struct str name)
{
	struct settings_held *held = settings_live_hold(r->config.live);
	bool is_admin = find_admin(held, name) != NULL;

	settings_held_unref(held);
	return is_admin;
}

static void
user_of_admin(struct str name, struct user *ret)
{
	*ret = (struct user){ .name = name, .known = true, .admin = true, .has_account = true };
	acl_allow_all(&ret->acl);
}

static bool
has_rules(const struct person *person)
{
	for (size_t i = 0; i < person->roles_count; i++)
		if (str_starts_with(person->roles[i], STR(ACL_ROLE)))
			return true;
	return false;
}

static void
user_of_person(const struct person *person, const struct person_door *at, struct arena *arena,
	       struct user *ret)
{
	*ret = (struct user){ .name = person->name,
			      .is_person = true,
			      .has_account = person->has_verifier,
			      .at = *at };
	ret->known = has_rules(person) || !person_door_is_plain(at);
	acl_of_roles(&ret->acl, person->roles, person->roles_count, arena);
}

/* What `default` is as long as nobody has said anything of it. */
static void
user_become_default(const struct settings_held *held, bool open, struct user *user)
{
	const struct access_settings *access = settings_of(held->settings, &access_setting_group);

	user->known = user->is_initial = true;
	person_door_init(&user->at, access->iterations);
	user->at.off = !open;
	if (open)
		user->at.by = PERSON_DOOR_BY_ANY;
	acl_allow_all(&user->acl);
}

struct user_reading {
	struct str name;
	struct arena *arena;
	struct arena_mark mark;
	struct person person;
	struct person_door at;
	bool found;
	struct err *err;
};

static enum status
user_read_body(struct kv_tx *tx, void *arg)
{
	struct user_reading *u = arg;
	enum status status;

	arena_reset(u->arena, u->mark);
	status = person_get(tx, u->name, u->arena, &u->person, u->err);
	u->found = status == STATUS_OK;
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	return person_door_get(tx, u->name, USER_DOOR, &u->at, u->err);
}

static enum status
user_read_stored(struct redis *r, struct settings_held *held, struct str name, struct arena *arena,
		 struct user *ret, struct err *err)
{
	struct user_reading u = {
		.name = name, .arena = arena, .mark = arena_mark(arena), .err = err
	};

	*ret = (struct user){ .name = name };
	TRY(kv_run_read(r->config.store, user_read_body, &u, err));
	if (u.found)
		user_of_person(&u.person, &u.at, arena, ret);
	if (!ret->known && str_eq(name, USER_DEFAULT))
		user_become_default(held, !auth_has_admins(people_of(held)), ret);
	return STATUS_OK;
}

enum status
user_read(struct redis *r, struct str name, struct arena *arena, struct user *ret, struct err *err)
{
	struct settings_held *held = settings_live_hold(r->config.live);
	enum status status = STATUS_OK;

	name = arena_dup(arena, name);
	if (!name.ptr)
		status = STATUS_LIMIT;
	else if (find_admin(held, name))
		user_of_admin(name, ret);
	else
		status = user_read_stored(r, held, name, arena, ret, err);
	settings_held_unref(held);
	return status;
}

/* ---- Everybody ---- */

struct user_listing {
	const struct settings_held *held;
	bool open;
	bool told_default;
	struct arena *rules; /* of one user at a time */
	user_take *take;
	void *arg;
};

static enum status
listing_tell(struct user_listing *l, const struct user *user)
{
	enum status status;

	l->told_default |= str_eq(user->name, USER_DEFAULT);
	step_unit();
	status = step_count(USER_STEPS);
	if (status == STATUS_OK)
		status = l->take(l->arg, user);
	arena_clear(l->rules);
	return status;
}

static enum status
listing_take_person(void *arg, const struct person *person, const struct person_door *at)
{
	struct user_listing *l = arg;
	struct user user;

	if (find_admin(l->held, person->name))
		return STATUS_OK;
	user_of_person(person, at, l->rules, &user);
	if (!user.known && str_eq(person->name, USER_DEFAULT))
		user_become_default(l->held, l->open, &user);
	return user.known ? listing_tell(l, &user) : STATUS_OK;
}

static enum status
listing_tell_admins(struct user_listing *l)
{
	const struct settings_entry *entries;
	size_t count = settings_people(l->held->settings, &entries);

	for (size_t i = 0; i < count; i++) {
		struct user user;

		user_of_admin(entries[i].name, &user);
		TRY(listing_tell(l, &user));
	}
	return STATUS_OK;
}

static enum status
listing_run(struct user_listing *l, struct kv_tx *tx, struct arena *arena, struct err *err)
{
	struct user user = { .name = USER_DEFAULT };

	TRY(listing_tell_admins(l));
	TRY(person_at_door_each(tx, USER_DOOR, arena, listing_take_person, l, err));
	if (l->told_default)
		return STATUS_OK;
	user_become_default(l->held, l->open, &user);
	return listing_tell(l, &user);
}

enum status
user_each(struct redis *r, struct budget_part *part, user_take *take, void *arg, struct err *err)
{
	struct settings_held *held = settings_live_hold(r->config.live);
	struct arena *people = arena_new((size_t)PERSON_DOOR_PAGE * USER_ARENA_BYTES);
	struct user_listing l = { .held = held,
				  .open = !auth_has_admins(people_of(held)),
				  .rules = arena_new(USER_ARENA_BYTES),
				  .take = take,
				  .arg = arg };
	struct kv_tx *tx = NULL;
	enum status status = STATUS_NOMEM;

	if (people && l.rules) {
		arena_set_part(people, part);
		arena_set_part(l.rules, part);
		status = kv_begin(r->config.store, KV_TX_READ_ONLY, &tx);
	}
	if (status == STATUS_OK)
		status = listing_run(&l, tx, people, err);
	kv_tx_free(tx);
	arena_free(l.rules);
	arena_free(people);
	settings_held_unref(held);
	return status;
}

/* ---- Passwords ---- */

bool
user_needs_no_password(const struct user *user, bool open)
{
	return open && !user->admin && user->at.by == PERSON_DOOR_BY_ANY;
}

void
user_password_text(const struct person_door *at, size_t i, struct buf *ret)
{
	buf_printf(ret, HASH_TEXT "%llu:", (unsigned long long)at->rounds);
	buf_append_hex(ret, str_of(at->salt, sizeof(at->salt)));
	buf_append_byte(ret, ':');
	buf_append_hex(ret, str_of(at->hashes[i], sizeof(at->hashes[i])));
}

bool
user_password_read(struct str text, struct person_door *ret)
{
	struct str salt;

	*ret = (struct person_door){ .by = PERSON_DOOR_BY_LIST, .count = 1 };
	if (!str_starts_with(text, STR(HASH_TEXT)))
		return false;
	text = str_skip(text, sizeof(HASH_TEXT) - 1);
	if (!str_to_u64(str_cut(&text, ':'), &ret->rounds) || !ret->rounds ||
	    ret->rounds > VERIFIER_ROUNDS)
		return false;
	salt = str_cut(&text, ':');
	return salt.len == 2 * sizeof(ret->salt) && text.len == 2 * sizeof(ret->hashes[0]) &&
	       str_from_hex(salt, ret->salt) && str_from_hex(text, ret->hashes[0]);
}

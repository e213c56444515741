/* CREATE, ALTER and DROP of roles and users. */
#include "door/cql/run/role.h"

#include "access/door_password.h"
#include "access/settings.h"
#include "door/cql/run/metadata.h"
#include "settings/settings.h"

bool
role_is(const struct cql_statement *s)
{
	return s->kind >= CQL_CREATE_ROLE && s->kind <= CQL_LIST_PERMISSIONS;
}

static enum status
role_done(struct cql_request *r)
{
	frame_put_i32(r->out, RESULT_VOID);
	return STATUS_OK;
}

static enum status
fail_missing(struct cql_request *r, struct str name)
{
	return request_fail(r, CQL_CODE_INVALID, "%.*s doesn't exist", STR_ARG(name));
}

/* ---- CREATE and ALTER ---- */

struct role_setting {
	const struct cql_role *role;
	struct person_door password; /* with the hash of the new one, where there is one */
	uint64_t rounds;
};

static bool
is_superuser(const struct grants_text *t, void *arg)
{
	(void)arg;
	return t->kind == GRANTS_SUPERUSER;
}

static bool
is_dropped(const struct grants_text *t, void *arg)
{
	(void)arg;
	return t->kind == GRANTS_DROPPED;
}

static bool
change_is_superuser(const struct role_change *ch)
{
	for (size_t i = 0; i < ch->doc.role_count; i++)
		if (grants_text_read(ch->doc.roles[i]).kind == GRANTS_SUPERUSER)
			return true;
	return false;
}

/* A record that says nothing has neither rounds nor a salt. */
static void
door_ready(struct person_door *door, uint64_t rounds)
{
	if (!door->rounds)
		person_door_init(door, rounds);
}

static enum status
set_options(struct role_change *ch, const struct role_setting *set)
{
	const struct cql_role *role = set->role;

	if (role->superuser != CQL_UNSAID)
		role_change_remove(ch, is_superuser, NULL);
	if (role->superuser == CQL_TRUE)
		TRY(role_change_add(ch, STR(GRANTS_ROLE "superuser")));
	if (role->has_password) {
		bool off = ch->door.off;

		ch->door = set->password;
		ch->door.off = off;
	}
	if (role->login == CQL_UNSAID)
		return STATUS_OK;
	if (!ch->door.rounds) {
		person_door_init(&ch->door, set->rounds);
		/* Who has a password of every door goes on logging in by that. */
		ch->door.by = ch->has_account ? PERSON_DOOR_BY_OWN : PERSON_DOOR_BY_LIST;
	}
	ch->door.off = role->login == CQL_FALSE;
	return STATUS_OK;
}

static enum status
create_attempt(struct role_change *ch, void *arg)
{
	const struct role_setting *set = arg;

	if (ch->known && set->role->if_not_exists)
		return STATUS_OK;
	if (ch->known)
		return request_fail(ch->r, CQL_CODE_INVALID, "%.*s already exists",
				    STR_ARG(ch->name));
	role_change_remove(ch, is_dropped, NULL);
	person_door_init(&ch->door, set->rounds);
	ch->door.by = PERSON_DOOR_BY_LIST;
	ch->door.off = true; /* unless LOGIN is said */
	TRY(set_options(ch, set));
	return role_change_write(ch);
}

/* What somebody may change of a role that is no superuser. */
static enum status
check_alter(struct role_change *ch, const struct cql_role *role)
{
	const struct cql_client *c = ch->r->client;
	bool self = str_eq(c->entry.who.user.name, ch->name);
	bool has = false;

	if (role->superuser != CQL_UNSAID)
		TRY(role_has(ch->r, c->entry.who.user.name, ch->name, &has));
	if (has)
		return request_fail(ch->r, CQL_CODE_UNAUTHORIZED,
				    "You aren't allowed to alter your own superuser status or that "
				    "of a role granted to you");
	if (c->grants.everything)
		return STATUS_OK;
	if (role->superuser != CQL_UNSAID || change_is_superuser(ch))
		return request_fail(ch->r, CQL_CODE_UNAUTHORIZED,
				    role->superuser != CQL_UNSAID
					    ? "Only superusers are allowed to alter superuser "
					      "status"
					    : "Only superusers can alter a role with superuser "
					      "status");
	if (self && role->login == CQL_UNSAID)
		return STATUS_OK;
	return request_allow_on(ch->r, GRANT_ALTER,
				&(struct grant_resource){ .of_roles = true, .role = ch->name });
}

static enum status
alter_attempt(struct role_change *ch, void *arg)
{
	const struct role_setting *set = arg;
	struct cql_client *c = ch->r->client;

	TRY(check_alter(ch, set->role));
	if (!ch->known)
		return set->role->if_exists ? STATUS_OK : fail_missing(ch->r, ch->name);
	TRY(set_options(ch, set));
	TRY(role_change_write(ch));
	/* Its other connections are to log in anew. */
	if (set->role->has_password && str_eq(c->entry.who.user.name, ch->name))
		memcpy(c->entry.who.user.key, ch->door.salt, sizeof(c->entry.who.user.key));
	return STATUS_OK;
}

/* Checks the options, and hashes the password. */
static enum status
setting_begin(struct cql_request *r, const struct cql_role *role, struct role_setting *ret)
{
	const struct cql_config *config = &r->door->config;
	const struct auth_client client = visit_auth(&r->client->entry);
	const struct access_settings *access;
	struct settings_held *held;
	enum status status;

	*ret = (struct role_setting){ .role = role };
	if (role->password_is_hashed)
		return request_fail(r, CQL_CODE_INVALID, "HASHED PASSWORD is not supported");
	if (role->has_options)
		return request_fail(r, CQL_CODE_INVALID, "OPTIONS of a role is not supported");
	if (role->has_datacenters)
		return request_fail(r, CQL_CODE_INVALID, "ACCESS TO DATACENTERS is not supported");
	held = settings_live_hold(config->live);
	access = settings_of(held->settings, &access_setting_group);
	ret->rounds = access->iterations;
	status = STATUS_OK;
	if (role->has_password) {
		person_door_init(&ret->password, ret->rounds);
		ret->password.by = PERSON_DOOR_BY_LIST;
		ret->password.count = 1;
		status = door_password_check(held, role->password, &r->err);
		if (status == STATUS_OK)
			status = door_password_hash(held, &client, &ret->password, role->password,
						    true, ret->password.hashes[0], &r->err);
	}
	settings_held_unref(held);
	return status;
}

static enum status
create_role(struct cql_request *r, const struct cql_role *role)
{
	struct role_setting set;

	TRY(request_allow_on(r, GRANT_CREATE, &(struct grant_resource){ .of_roles = true }));
	if (role->superuser == CQL_TRUE && !r->client->grants.everything)
		return request_fail(r, CQL_CODE_UNAUTHORIZED,
				    "Only superusers can create a role with superuser status");
	TRY(setting_begin(r, role, &set));
	TRY(role_change_run(r, role->name, create_attempt, &set));
	return role_done(r);
}

/* Whether somebody may alter anybody: who may not is told so before a password is hashed. */
static enum status
check_alter_at_all(struct cql_request *r, const struct cql_role *role)
{
	if (str_eq(r->client->entry.who.user.name, role->name) || r->client->grants.everything)
		return STATUS_OK;
	return request_allow_on(r, GRANT_ALTER,
				&(struct grant_resource){ .of_roles = true, .role = role->name });
}

static enum status
alter_role(struct cql_request *r, const struct cql_role *role)
{
	struct role_setting set;

	TRY(check_alter_at_all(r, role));
	TRY(setting_begin(r, role, &set));
	TRY(role_change_run(r, role->name, alter_attempt, &set));
	return role_done(r);
}

/* ---- DROP ---- */

static bool
is_of_this_door(const struct grants_text *t, void *arg)
{
	(void)arg;
	return t->kind != GRANTS_OTHER;
}

static enum status
drop_attempt(struct role_change *ch, void *arg)
{
	const struct cql_drop *drop = arg;

	if (!ch->known)
		return drop->if_exists ? STATUS_OK : fail_missing(ch->r, ch->name);
	if (change_is_superuser(ch) && !ch->r->client->grants.everything)
		return request_fail(ch->r, CQL_CODE_UNAUTHORIZED,
				    "Only superusers can drop a role with superuser status");
	role_change_remove(ch, is_of_this_door, NULL);
	/* Whom other doors know stays a person, to whom this door is shut. */
	if (!ch->doc.bare || ch->doc.role_count || ch->has_account) {
		door_ready(&ch->door, 1);
		ch->door.by = PERSON_DOOR_BY_OWN;
		ch->door.count = 0;
		ch->door.off = true;
		TRY(role_change_add(ch, STR(GRANTS_ROLE "dropped")));
	}
	return role_change_remove_person(ch);
}

/* Those that have something to do with a role that is dropped. */
struct having {
	struct cql_request *r;
	struct arena_mark mark;
	struct str role;
	struct str *names;
	size_t count, cap;
};

static bool
is_about_role(const struct grants_text *t, void *arg)
{
	const struct str *role = arg;

	return (t->kind == GRANTS_MEMBER && str_eq(t->member, *role)) ||
	       (t->kind == GRANTS_GRANT && t->on.of_roles && str_eq(t->on.role, *role));
}

static enum status
having_take(void *arg, const struct role *role)
{
	struct having *h = arg;
	bool has = false;

	for (size_t i = 0; i < role->text_count && !has; i++) {
		const struct grants_text t = grants_text_read(role->texts[i]);

		has = is_about_role(&t, &h->role);
	}
	if (!has)
		return STATUS_OK;
	TRY(arena_room(h->r->arena, &h->names, h->count, &h->cap, sizeof(*h->names)));
	TRY(arena_copy(h->r->arena, role->name, &h->names[h->count]));
	h->count++;
	return STATUS_OK;
}

static enum status
having_body(struct kv_tx *tx, void *arg)
{
	struct having *h = arg;

	arena_reset(h->r->arena, h->mark);
	h->names = NULL;
	h->count = h->cap = 0;
	return role_each(tx, h->r->door->config.live, h->r->out->part, having_take, h, &h->r->err);
}

static enum status
forget_attempt(struct role_change *ch, void *arg)
{
	size_t before = ch->doc.role_count;

	role_change_remove(ch, is_about_role, arg);
	return ch->doc.role_count == before ? STATUS_OK : role_change_write(ch);
}

/* Nobody has it any more, nor permissions on it: a later role of its name begins anew. */
static enum status
forget_role(struct cql_request *r, struct str role)
{
	struct having h = { .r = r, .mark = arena_mark(r->arena), .role = role };

	TRY(kv_run_read(r->door->config.store, having_body, &h, &r->err));
	for (size_t i = 0; i < h.count; i++)
		TRY(role_change_run(r, h.names[i], forget_attempt, &role));
	return STATUS_OK;
}

static enum status
drop_role(struct cql_request *r, const struct cql_drop *drop)
{
	struct cql_drop what = *drop;
	struct str name = drop->name.name;

	TRY(request_allow_on(r, GRANT_DROP,
			     &(struct grant_resource){ .of_roles = true, .role = name }));
	if (str_eq(r->client->entry.who.user.name, name))
		return request_fail(r, CQL_CODE_INVALID,
				    "Cannot DROP primary role for current login");
	TRY(role_change_run(r, name, drop_attempt, &what));
	TRY(forget_role(r, name));
	return role_done(r);
}

/* ---- All of them ---- */

enum status
role_run(struct cql_request *r, const struct cql_statement *s, struct str keyspace)
{
	switch ((int)s->kind) {
	case CQL_CREATE_ROLE:
		return create_role(r, &s->role);
	case CQL_ALTER_ROLE:
		return alter_role(r, &s->role);
	case CQL_DROP_ROLE:
		return drop_role(r, &s->drop);
	case CQL_GRANT:
	case CQL_REVOKE:
		TRY(role_grant_run(r, s, keyspace));
		return role_done(r);
	default:
		return role_list_run(r, s, keyspace);
	}
}

/* People and their roles. People are those of all doors; what MongoDB calls a user's database is
 * the one that its commands made the person in, and `admin` for those that others have made. */
#include <stdio.h>

#include "bson/json.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/cmd/privileges.h"
#include "door/mongo/txn/client.h"
#include "door/people.h"

enum {
	PEOPLE_CUSTOM_BYTES = 64 * 1024, /* of customData */
	PEOPLE_ROLES = 100,              /* that one command names */
};

#define ARGS_USER(ARG)                                                                             \
	ARG(USER_PASSWORD, "pwd", ARG_STRING)                                                      \
	ARG(USER_CUSTOM, "customData", ARG_OBJECT)                                                 \
	ARG(USER_ROLES, "roles", ARG_ARRAY)                                                        \
	ARG(USER_DIGEST, "digestPassword", ARG_BOOL)                                               \
	ARG(USER_RESTRICTIONS, "authenticationRestrictions", ARG_ARRAY)                            \
	ARG(USER_MECHANISMS, "mechanisms", ARG_ARRAY)                                              \
	ARG(USER_DIGESTOR, "passwordDigestor", ARG_STRING)
ARGS_DEFINE(args_user, ARGS_USER);

#define ARGS_USER_ROLES(ARG) ARG(ROLES_ROLES, "roles", ARG_ARRAY | ARG_REQUIRED)
ARGS_DEFINE(args_user_roles, ARGS_USER_ROLES);

#define ARGS_USERS_INFO(ARG)                                                                       \
	ARG(INFO_CREDENTIALS, "showCredentials", ARG_BOOL)                                         \
	ARG(INFO_CUSTOM, "showCustomData", ARG_BOOL)                                               \
	ARG(INFO_PRIVILEGES, "showPrivileges", ARG_BOOL)                                           \
	ARG(INFO_RESTRICTIONS, "showAuthenticationRestrictions", ARG_BOOL)                         \
	ARG(INFO_FILTER, "filter", ARG_OBJECT)
ARGS_DEFINE(args_users_info, ARGS_USERS_INFO);

#define ARGS_ROLES_INFO(ARG)                                                                       \
	ARG(ROLES_INFO_BUILTIN, "showBuiltinRoles", ARG_BOOL)                                      \
	ARG(ROLES_INFO_PRIVILEGES, "showPrivileges", ARG_ANY)                                      \
	ARG(ROLES_INFO_RESTRICTIONS, "showAuthenticationRestrictions", ARG_BOOL)
ARGS_DEFINE(args_roles_info, ARGS_ROLES_INFO);

static const struct str admin_db = { "admin", 5 };

/* ---- What is asked for ---- */

static struct str
person_db(const struct door_person *p)
{
	return p->db.len ? p->db : admin_db;
}

static enum status
people_failed(struct call *c, enum status status)
{
	struct err why = c->err;

	if (status == STATUS_DOC_CONFLICT)
		return call_fail(c, MONGO_WRITE_CONFLICT,
				 "somebody else has changed this user meanwhile");
	if (status == STATUS_INVALID || status == STATUS_FORBIDDEN)
		return call_fail(c, MONGO_BAD_VALUE, "%s", why.text);
	return status;
}

/* The name that a command is about. */
static enum status
user_read_name(struct call *c, struct str *ret)
{
	if (c->first.type != BSON_STRING)
		return call_type_mismatch(c, &c->first, "type 'string'", "%s.%s", c->command->name,
					  c->command->name);
	if (!bson_text(&c->first).len)
		return call_fail(c, MONGO_BAD_VALUE,
				 "User document needs 'user' field to be non-empty");
	*ret = bson_text(&c->first);
	return STATUS_OK;
}

/* Reads the person of the command's database. */
static enum status
person_find(struct call *c, struct str name, struct door_person *ret)
{
	const struct door_people *people = &c->mongo->config.people;
	enum status status = people->get(people->arg, name, c->arena, ret, &c->err);

	if (status == STATUS_NOT_FOUND || (status == STATUS_OK && !str_eq(person_db(ret), c->db)))
		return call_fail(c, MONGO_USER_NOT_FOUND,
				 "Could not find user \"%.*s\" for db \"%.*s\"", STR_ARG(name),
				 STR_ARG(c->db));
	return status;
}

/* One role: its name, of the command's database, or {role, db}. */
static enum status
read_role(struct call *c, const struct bson_value *v, struct rights_role *ret)
{
	struct bson_value name = *v, db = BSON_OF_STRING(c->db);

	if (v->type == BSON_DOCUMENT && (!bson_find(bson_text(v), STR("role"), &name) ||
					 !bson_find(bson_text(v), STR("db"), &db)))
		return call_fail(c, MONGO_NO_SUCH_KEY, "a role is a name, or has a role and a db");
	if (name.type != BSON_STRING || db.type != BSON_STRING)
		return call_fail(c, MONGO_BAD_VALUE,
				 "Role names must be either strings or objects");
	*ret = (struct rights_role){ bson_text(&name), bson_text(&db) };
	if (!rights_role_exists(ret))
		return call_fail(c, MONGO_ROLE_NOT_FOUND, "Could not find role: %.*s@%.*s",
				 STR_ARG(bson_text(&name)), STR_ARG(bson_text(&db)));
	/* Nobody gives more than a database that is theirs. */
	if (!(rights_on(&c->client->rights, bson_text(&db)) & RIGHT_USERS))
		return call_fail(c, MONGO_UNAUTHORIZED, "not authorized to grant role: %.*s@%.*s",
				 STR_ARG(bson_text(&name)), STR_ARG(bson_text(&db)));
	return STATUS_OK;
}

/* The roles of an argument, in the form that a person has them. */
static enum status
read_roles(struct call *c, size_t arg, struct str **ret, size_t *ret_count)
{
	struct str *roles = arena_alloc(c->arena, PEOPLE_ROLES * sizeof(*roles));
	struct bson_element e;
	struct bson_iter i;
	size_t count = 0;

	if (!roles)
		return STATUS_LIMIT;
	for (bson_iter_begin(&i, bson_text(&c->args[arg].value)); bson_iter_read(&i, &e);) {
		struct rights_role role;

		if (count == PEOPLE_ROLES)
			return call_fail(c, MONGO_BAD_VALUE, "at most %d roles (PEOPLE_ROLES)",
					 PEOPLE_ROLES);
		TRY(read_role(c, &e.value, &role));
		roles[count] = arena_printf(c->arena, RIGHTS_ROLE "%.*s@%.*s", STR_ARG(role.name),
					    STR_ARG(role.db));
		if (!roles[count++].ptr)
			return STATUS_LIMIT;
	}
	*ret = roles;
	*ret_count = count;
	return STATUS_OK;
}

/* The same role: on admin it may be written without the database. */
static bool
role_is(struct str a, struct str b)
{
	static const struct str suffix = { "@admin", 6 };
	struct str *const both[] = { &a, &b };

	for (size_t i = 0; i < 2; i++)
		if (both[i]->len > suffix.len &&
		    str_eq(str_skip(*both[i], both[i]->len - suffix.len), suffix))
			both[i]->len -= suffix.len;
	return str_eq(a, b);
}

static bool
has_role(const struct str *roles, size_t count, struct str role)
{
	for (size_t i = 0; i < count; i++)
		if (role_is(roles[i], role))
			return true;
	return false;
}

/*
 * Gives a person these roles: those that it has and that are in `taken` go, or all of this door if
 * that is NULL; those of other doors stay.
 */
static enum status
change_roles(struct call *c, struct door_person *p, const struct str *taken, size_t taken_count,
	     const struct str *given, size_t given_count)
{
	struct str *roles = arena_alloc(c->arena,
					(p->role_count + given_count + 1) * sizeof(*roles));
	size_t count = 0;

	if (!roles)
		return STATUS_LIMIT;
	for (size_t i = 0; i < p->role_count; i++) {
		bool own = str_starts_with(p->roles[i], STR(RIGHTS_ROLE));

		if (!own || (taken && !has_role(taken, taken_count, p->roles[i])))
			roles[count++] = p->roles[i];
	}
	for (size_t i = 0; i < given_count; i++)
		if (!has_role(roles, count, given[i]))
			roles[count++] = given[i];
	p->roles = roles;
	p->role_count = count;
	return STATUS_OK;
}

static enum status
read_custom(struct call *c, struct door_person *p)
{
	struct buf AUTO(buf_release) text = BUF_SHORT(PEOPLE_CUSTOM_BYTES);

	if (!call_has(c, USER_CUSTOM))
		return STATUS_OK;
	bson_json_write(&text, bson_text(&c->args[USER_CUSTOM].value), BSON_JSON_CANONICAL);
	if (buf_status(&text) == STATUS_LIMIT)
		return call_fail(c, MONGO_BAD_VALUE,
				 "customData is too long (PEOPLE_CUSTOM_BYTES)");
	return buf_copy(&text, c->arena, &p->custom);
}

/* What is about the password. */
static enum status
read_password(struct call *c, struct door_person *p)
{
	bool sha256 = !call_has(c, USER_MECHANISMS);
	struct bson_element e;
	struct bson_iter i;

	if (call_has(c, USER_MECHANISMS))
		bson_iter_begin(&i, bson_text(&c->args[USER_MECHANISMS].value));
	while (call_has(c, USER_MECHANISMS) && bson_iter_read(&i, &e)) {
		bool known = e.value.type == BSON_STRING &&
			     (str_eq(bson_text(&e.value), STR("SCRAM-SHA-1")) ||
			      str_eq(bson_text(&e.value), STR("SCRAM-SHA-256")));

		if (!known)
			return call_fail(
				c, MONGO_BAD_VALUE, "Unknown auth mechanism '%.*s'",
				e.value.type == BSON_STRING ? (int)bson_text(&e.value).len : 0,
				e.value.type == BSON_STRING ? bson_text(&e.value).ptr : "");
		sha256 = sha256 || str_eq(bson_text(&e.value), STR("SCRAM-SHA-256"));
	}
	if (!sha256)
		return call_fail(c, MONGO_BAD_VALUE,
				 "mechanisms needs SCRAM-SHA-256: SCRAM-SHA-1 is not there");
	if (!call_bool(c, USER_DIGEST, true) ||
	    (call_has(c, USER_DIGESTOR) && !str_eq(call_text(c, USER_DIGESTOR), STR("server"))))
		return call_fail(c, MONGO_BAD_VALUE,
				 "Use of SCRAM-SHA-256 requires undigested passwords");
	if (call_has(c, USER_RESTRICTIONS) &&
	    !bson_is_empty(bson_text(&c->args[USER_RESTRICTIONS].value)))
		return call_fail(c, MONGO_NOT_IMPLEMENTED,
				 "authenticationRestrictions are not there");
	if (call_has(c, USER_PASSWORD))
		p->password = call_text(c, USER_PASSWORD);
	if (call_has(c, USER_PASSWORD) && !p->password.len)
		return call_fail(c, MONGO_PASSWORD_EMPTY, "Password cannot be empty");
	return STATUS_OK;
}

/* ---- Changing ---- */

/* Changes a person by what the program gives for that. */
static enum status
person_change(struct call *c, const struct door_person *p,
	      enum status (*change)(void *, const struct audit_by *, const struct door_person *,
				    struct arena *, struct err *))
{
	const struct audit_by by = visit_audit_by(&c->client->entry);
	enum status status = change(c->mongo->config.people.arg, &by, p, c->arena, &c->err);

	return status == STATUS_OK ? STATUS_OK : people_failed(c, status);
}

static enum status
person_put(struct call *c, const struct door_person *p)
{
	return person_change(c, p, c->mongo->config.people.put);
}

enum status
mongo_run_create_user(struct call *c)
{
	const struct door_people *people = &c->mongo->config.people;
	struct door_person p = { .db = c->db }, old;
	enum status status;

	TRY(user_read_name(c, &p.name));
	if (str_eq(c->db, STR("$external")))
		return call_fail(c, MONGO_NOT_IMPLEMENTED,
				 "users of $external are not there: people log in with passwords");
	if (str_eq(c->db, STR("local")))
		return call_fail(c, MONGO_BAD_VALUE, "Cannot create users in the local database");
	if (!call_has(c, USER_PASSWORD))
		return call_fail(c, MONGO_BAD_VALUE,
				 "Must provide a 'pwd' field for all user documents, except those "
				 "with '$external' as the user's source db");
	if (!call_has(c, USER_ROLES))
		return call_fail(c, MONGO_FIELD_MISSING,
				 "BSON field 'createUser.roles' is missing but a required field");
	TRY(read_password(c, &p));
	TRY(read_roles(c, USER_ROLES, &p.roles, &p.role_count));
	TRY(read_custom(c, &p));
	status = people->get(people->arg, p.name, c->arena, &old, &c->err);
	if (status == STATUS_OK)
		return call_fail(c, MONGO_USER_EXISTS, "User \"%.*s@%.*s\" already exists",
				 STR_ARG(p.name), STR_ARG(person_db(&old)));
	if (status != STATUS_NOT_FOUND)
		return status;
	c->err = (struct err){ 0 };
	return person_put(c, &p);
}

enum status
mongo_run_update_user(struct call *c)
{
	struct door_person p;
	struct str name, *roles;
	size_t count;

	TRY(user_read_name(c, &name));
	if (!call_has(c, USER_PASSWORD) && !call_has(c, USER_CUSTOM) && !call_has(c, USER_ROLES) &&
	    !call_has(c, USER_RESTRICTIONS) && !call_has(c, USER_MECHANISMS))
		return call_fail(c, MONGO_BAD_VALUE,
				 "Must specify at least one field to update in updateUser");
	TRY(person_find(c, name, &p));
	TRY(read_password(c, &p));
	TRY(read_custom(c, &p));
	if (call_has(c, USER_ROLES)) {
		TRY(read_roles(c, USER_ROLES, &roles, &count));
		TRY(change_roles(c, &p, NULL, 0, roles, count));
	}
	return person_put(c, &p);
}

static enum status
run_roles(struct call *c, bool gives)
{
	struct door_person p;
	struct str name, *roles;
	size_t count;

	TRY(user_read_name(c, &name));
	TRY(person_find(c, name, &p));
	TRY(read_roles(c, ROLES_ROLES, &roles, &count));
	TRY(change_roles(c, &p, roles, gives ? 0 : count, roles, gives ? count : 0));
	return person_put(c, &p);
}

enum status
mongo_run_grant_roles(struct call *c)
{
	return run_roles(c, true);
}

enum status
mongo_run_revoke_roles(struct call *c)
{
	return run_roles(c, false);
}

enum status
mongo_run_drop_user(struct call *c)
{
	struct door_person p;
	struct str name = { 0 };

	TRY(user_read_name(c, &name));
	TRY(person_find(c, name, &p));
	return person_change(c, &p, c->mongo->config.people.remove);
}

/* Asked before each person is removed, since the right to remove people may be lost meanwhile. */
static enum status
removal_goes_on(struct call *c, bool removed_self)
{
	TRY(visit_goes_on(&c->client->entry, removed_self));
	return removed_self ? STATUS_OK : call_check_rights(c, c->db, c->command->needs);
}

enum status
mongo_run_drop_all_users(struct call *c)
{
	const struct door_people *people = &c->mongo->config.people;
	bool removed_self = false;
	struct str *names;
	size_t count;
	int32_t n = 0;

	TRY(people->names(people->arg, c->arena, &names, &count, &c->err));
	for (size_t i = 0; i < count; i++) {
		struct arena_mark mark = arena_mark(c->arena);
		struct door_person p;
		enum status status;

		TRY(removal_goes_on(c, removed_self));
		status = people->get(people->arg, names[i], c->arena, &p, &c->err);
		if (status != STATUS_OK && status != STATUS_NOT_FOUND)
			return status;
		/* Not those that another door has made. */
		if (status == STATUS_OK && str_eq(p.db, c->db)) {
			TRY(person_change(c, &p, c->mongo->config.people.remove));
			removed_self |= str_eq(names[i], c->client->entry.who.user.name);
			n++;
		}
		arena_reset(c->arena, mark);
	}
	bson_put_int32(c->reply, STR("n"), n);
	return STATUS_OK;
}

/* ---- Telling ---- */

static void
put_roles(struct call *c, struct str name, const struct rights *rights)
{
	bson_begin_array(c->reply, name);
	for (size_t i = 0; i < rights->role_count; i++) {
		bson_begin_document(c->reply, STR(""));
		bson_put_string(c->reply, STR("role"), rights->roles[i].name);
		bson_put_string(c->reply, STR("db"), rights->roles[i].db);
		bson_end(c->reply);
	}
	bson_end(c->reply);
}

static enum status
put_person(struct call *c, const struct door_person *p)
{
	struct buf AUTO(buf_release) custom = BUF_SHORT(PEOPLE_CUSTOM_BYTES);
	struct str db = person_db(p);
	struct str id = arena_printf(c->arena, "%.*s.%.*s", STR_ARG(db), STR_ARG(p->name));
	struct rights rights;

	if (!id.ptr)
		return STATUS_LIMIT;
	bson_begin_document(c->reply, STR(""));
	bson_put_string(c->reply, STR("_id"), id);
	bson_put_string(c->reply, STR("user"), p->name);
	bson_put_string(c->reply, STR("db"), db);
	if (p->custom.ptr && call_bool(c, INFO_CUSTOM, true)) {
		TRY(bson_json_read(p->custom, &custom, &c->err));
		bson_put_document(c->reply, STR("customData"), buf_str(&custom));
	}
	rights_of_roles(&rights, p->roles, p->role_count, false, c->arena);
	put_roles(c, STR("roles"), &rights);
	if (call_bool(c, INFO_PRIVILEGES, false)) {
		/* Built-in roles have none below them. */
		put_roles(c, STR("inheritedRoles"), &rights);
		privileges_put(c->reply, STR("inheritedPrivileges"), &rights);
	}
	bson_begin_array(c->reply, STR("mechanisms"));
	bson_put_string(c->reply, STR(""), STR("SCRAM-SHA-256"));
	bson_end(c->reply);
	bson_end(c->reply);
	return STATUS_OK;
}

/* True if the client may know of the people of a database. */
static bool
may_see(const struct call *c, struct str db)
{
	return rights_on(&c->client->rights, db) & RIGHT_USERS;
}

/* The person of a name and a database, if there is one. */
static enum status
tell_person(struct call *c, struct str name, struct str db)
{
	const struct door_people *people = &c->mongo->config.people;
	struct arena_mark mark = arena_mark(c->arena);
	struct door_person p;
	enum status status;

	if (!may_see(c, db) && !str_eq(name, c->client->entry.who.user.name))
		return call_fail(c, MONGO_UNAUTHORIZED,
				 "not authorized on %.*s to execute command usersInfo",
				 STR_ARG(db));
	status = people->get(people->arg, name, c->arena, &p, &c->err);
	if (status == STATUS_OK && str_eq(person_db(&p), db))
		status = put_person(c, &p);
	arena_reset(c->arena, mark);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* "name", or {user, db}. */
static enum status
tell_one(struct call *c, const struct bson_value *v)
{
	struct bson_value name = *v, db = BSON_OF_STRING(c->db);

	if (v->type == BSON_DOCUMENT && (!bson_find(bson_text(v), STR("user"), &name) ||
					 !bson_find(bson_text(v), STR("db"), &db)))
		return call_fail(c, MONGO_BAD_VALUE,
				 "UserName must contain fields named: user, db");
	if (name.type != BSON_STRING || db.type != BSON_STRING)
		return call_fail(c, MONGO_BAD_VALUE,
				 "User and role names must be either strings or objects");
	return tell_person(c, bson_text(&name), bson_text(&db));
}

/* Those of one database; `db` empty: of all. */
static enum status
tell_all(struct call *c, struct str db)
{
	const struct door_people *people = &c->mongo->config.people;
	struct str *names;
	size_t count;

	if (!may_see(c, db.len ? db : admin_db))
		return call_fail(c, MONGO_UNAUTHORIZED,
				 "not authorized on %.*s to execute command usersInfo",
				 STR_ARG(c->db));
	TRY(people->names(people->arg, c->arena, &names, &count, &c->err));
	for (size_t i = 0; i < count; i++) {
		struct arena_mark mark = arena_mark(c->arena);
		struct door_person p;
		enum status status = people->get(people->arg, names[i], c->arena, &p, &c->err);

		if (status == STATUS_OK && (!db.len || str_eq(person_db(&p), db)))
			status = put_person(c, &p);
		if (status != STATUS_OK && status != STATUS_NOT_FOUND)
			return status;
		arena_reset(c->arena, mark);
	}
	return STATUS_OK;
}

static enum status
tell_users(struct call *c)
{
	struct bson_element e;
	struct bson_iter i;

	bool all = c->first.type == BSON_DOCUMENT &&
		   bson_find(bson_text(&c->first), STR("forAllDBs"), NULL);

	if ((all || bson_is_number(&c->first)) && call_bool(c, INFO_PRIVILEGES, false))
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "Privilege or restriction details require exact-match usersInfo "
				 "queries");
	if (all)
		return tell_all(c, STR(""));
	if (bson_is_number(&c->first))
		return tell_all(c, c->db);
	if (c->first.type != BSON_ARRAY)
		return tell_one(c, &c->first);
	for (bson_iter_begin(&i, bson_text(&c->first)); bson_iter_read(&i, &e);)
		TRY(tell_one(c, &e.value));
	return STATUS_OK;
}

enum status
mongo_run_users_info(struct call *c)
{
	if (call_bool(c, INFO_CREDENTIALS, false) || call_bool(c, INFO_RESTRICTIONS, false) ||
	    (call_has(c, INFO_FILTER) && !bson_is_empty(bson_text(&c->args[INFO_FILTER].value))))
		return call_fail(c, MONGO_NOT_IMPLEMENTED,
				 "usersInfo has no showCredentials, "
				 "showAuthenticationRestrictions and filter");
	bson_begin_array(c->reply, STR("users"));
	TRY(tell_users(c));
	bson_end(c->reply);
	return STATUS_OK;
}

/* What a role gives, as its own and, since roles have none below them, as all that it gives. */
static enum status
put_role_privileges(struct call *c, const struct rights_role *role)
{
	struct str text = arena_printf(c->arena, RIGHTS_ROLE "%.*s@%.*s", STR_ARG(role->name),
				       STR_ARG(role->db));
	struct rights rights;

	if (!text.ptr)
		return STATUS_LIMIT;
	rights_of_roles(&rights, &text, 1, false, c->arena);
	privileges_put(c->reply, STR("privileges"), &rights);
	privileges_put(c->reply, STR("inheritedPrivileges"), &rights);
	return STATUS_OK;
}

static enum status
put_builtin(struct call *c, const struct rights_role *role)
{
	struct str id = arena_printf(c->arena, "%.*s.%.*s", STR_ARG(role->db), STR_ARG(role->name));

	if (!id.ptr)
		return STATUS_LIMIT;
	bson_begin_document(c->reply, STR(""));
	bson_put_string(c->reply, STR("_id"), id);
	bson_put_string(c->reply, STR("role"), role->name);
	bson_put_string(c->reply, STR("db"), role->db);
	bson_put_bool(c->reply, STR("isBuiltin"), true);
	bson_begin_array(c->reply, STR("roles"));
	bson_end(c->reply);
	bson_begin_array(c->reply, STR("inheritedRoles"));
	bson_end(c->reply);
	if (call_has(c, ROLES_INFO_PRIVILEGES) &&
	    bson_is_true(&c->args[ROLES_INFO_PRIVILEGES].value))
		TRY(put_role_privileges(c, role));
	bson_end(c->reply);
	return STATUS_OK;
}

/* "name", or {role, db}. A role that there is not is left out. */
static enum status
tell_role(struct call *c, const struct bson_value *v)
{
	struct bson_value name = *v, db = BSON_OF_STRING(c->db);
	struct rights_role role;

	if (v->type == BSON_DOCUMENT && (!bson_find(bson_text(v), STR("role"), &name) ||
					 !bson_find(bson_text(v), STR("db"), &db)))
		return call_fail(c, MONGO_BAD_VALUE,
				 "RoleName must contain fields named: role, db");
	if (name.type != BSON_STRING || db.type != BSON_STRING)
		return call_fail(c, MONGO_BAD_VALUE,
				 "User and role names must be either strings or objects");
	role = (struct rights_role){ bson_text(&name), bson_text(&db) };
	return rights_role_exists(&role) ? put_builtin(c, &role) : STATUS_OK;
}

static enum status
tell_roles(struct call *c)
{
	struct rights_role role = { .db = c->db };
	struct bson_element e;
	struct bson_iter i;

	if (c->first.type == BSON_ARRAY) {
		for (bson_iter_begin(&i, bson_text(&c->first)); bson_iter_read(&i, &e);)
			TRY(tell_role(c, &e.value));
		return STATUS_OK;
	}
	if (!bson_is_number(&c->first))
		return tell_role(c, &c->first);
	for (size_t k = 0; call_bool(c, ROLES_INFO_BUILTIN, false) && rights_role_at(k, &role.name);
	     k++)
		if (rights_role_exists(&role))
			TRY(put_builtin(c, &role));
	return STATUS_OK;
}

enum status
mongo_run_roles_info(struct call *c)
{
	if ((call_has(c, ROLES_INFO_PRIVILEGES) &&
	     c->args[ROLES_INFO_PRIVILEGES].value.type == BSON_STRING) ||
	    call_bool(c, ROLES_INFO_RESTRICTIONS, false))
		return call_fail(c, MONGO_NOT_IMPLEMENTED,
				 "rolesInfo has no showAuthenticationRestrictions, and "
				 "showPrivileges has to be a boolean");
	bson_begin_array(c->reply, STR("roles"));
	TRY(tell_roles(c));
	bson_end(c->reply);
	return STATUS_OK;
}

enum status
mongo_run_own_roles(struct call *c)
{
	return call_fail(c, MONGO_COMMAND_NOT_SUPPORTED,
			 "%s: there are MongoDB's built-in roles, and none of one's own",
			 c->command->name);
}

/* There are none, so all of them go. */
enum status
mongo_run_drop_all_roles(struct call *c)
{
	bson_put_int32(c->reply, STR("n"), 0);
	return STATUS_OK;
}

/* Databases, and who may use them. */
#include <assert.h>

#include "access/person.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/access.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/request.h"
#include "kv/kv.h"

/*
 * The security object of a database that has none, as in CouchDB 3: only server administrators may
 * use it.
 */
#define SECURITY_DEFAULT                                                                           \
	"{\"members\":{\"roles\":[\"_admin\"]},\"admins\":{\"roles\":[\"_admin\"]}}"

enum status
couch_require_admin(struct couch_req *r)
{
	if (r->user.admin)
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_UNAUTHORIZED, "You are not a server admin.");
}

static bool
couch_is_replicator_db(struct str name)
{
	const struct str last = STR("/_replicator");

	return str_eq(name, str_skip(last, 1)) ||
	       (name.len > last.len && str_eq(str_skip(name, name.len - last.len), last));
}

bool
couch_in_replicator_db(const struct couch_req *r)
{
	return r->parts_count && couch_is_replicator_db(r->parts[0]);
}

bool
couch_starts_no_replication(const struct auth_user *user)
{
	return user->method == AUTH_METHOD_JWT || user->method == AUTH_METHOD_PROXY;
}

static enum status
security_or_default(enum status status, struct str *text)
{
	if (status != STATUS_NOT_FOUND)
		return status;
	*text = STR(SECURITY_DEFAULT);
	return STATUS_OK;
}

enum status
couch_security_set(struct kv_tx *tx, const struct catalog_db *db, struct str text, struct err *err)
{
	TRY(rev_config_set(tx, db, STR(COUCH_SECURITY), text, err));
	return people_touch(tx);
}

enum status
couch_security_of(struct kv_tx *tx, const struct catalog_db *db, struct arena *arena,
		  struct str *ret)
{
	return security_or_default(rev_config_get(tx, db, STR(COUCH_SECURITY), arena, ret), ret);
}

enum status
couch_security_read(struct couch_req *r, struct kv_tx *tx, struct str *ret)
{
	return couch_security_of(tx, r->db, r->arena, ret);
}

/* What one group of a security object says about the user. */
struct standing {
	bool listed;
	bool empty; /* nobody is in the group */
};

static enum status
list_standing(struct couch_req *r, const struct json_value *list, bool of_names,
	      struct standing *standing)
{
	struct json_value *items;
	size_t count;

	if (!list || list->kind != JSON_ARRAY_BEGIN)
		return STATUS_OK;
	TRY(json_value_items(list, r->arena, &items, &count, &r->fail.err));
	if (count)
		standing->empty = false;
	for (size_t i = 0; i < count; i++) {
		if (items[i].kind != JSON_STRING)
			continue;
		if (of_names && r->user.name.len && str_eq(items[i].string, r->user.name))
			standing->listed = true;
		if (!of_names && couch_has_role(&r->user, items[i].string))
			standing->listed = true;
	}
	return STATUS_OK;
}

static enum status
group_standing(struct couch_req *r, struct str security, const char *group, struct standing *ret)
{
	struct json_member *members;
	const struct json_value *found;
	size_t count;

	*ret = (struct standing){ .empty = true };
	TRY(json_read_members(security, r->arena, &members, &count, &r->fail.err));
	found = json_value_find(members, count, group);
	if (!found || found->kind != JSON_OBJECT_BEGIN)
		return STATUS_OK;
	TRY(json_value_members(found, r->arena, &members, &count, &r->fail.err));
	TRY(list_standing(r, json_value_find(members, count, "names"), true, ret));
	return list_standing(r, json_value_find(members, count, "roles"), false, ret);
}

enum status
couch_db_is_admin(struct couch_req *r, struct kv_tx *tx, bool *ret)
{
	struct standing admins;
	struct str security;

	assert(r->db);
	*ret = r->user.admin;
	if (*ret)
		return STATUS_OK;
	TRY(couch_security_read(r, tx, &security));
	TRY(group_standing(r, security, "admins", &admins));
	*ret = admins.listed;
	return STATUS_OK;
}

enum couch_error
couch_not_db_admin_error(const struct couch_req *r)
{
	return r->user.name.len ? COUCH_ERROR_FORBIDDEN : COUCH_ERROR_UNAUTHORIZED;
}

static enum status
access_refuse_not_db_admin(struct couch_req *r)
{
	return couch_fail_set(&r->fail, couch_not_db_admin_error(r), COUCH_NOT_DB_ADMIN);
}

/* Checks a user who is no administrator of the server against the text of a security object. */
static enum status
access_check_user(struct couch_req *r, struct str security, enum couch_access access)
{
	struct standing admins, members;

	TRY(group_standing(r, security, "admins", &admins));
	if (admins.listed)
		return STATUS_OK;
	TRY(group_standing(r, security, "members", &members));
	if (members.empty || members.listed)
		return access == COUCH_ACCESS_MEMBER ? STATUS_OK : access_refuse_not_db_admin(r);
	if (r->user.name.len == 0)
		return couch_fail_set(&r->fail, COUCH_ERROR_UNAUTHORIZED,
				      "You are not authorized to access this db.");
	return couch_fail_set(&r->fail, COUCH_ERROR_FORBIDDEN,
			      "You are not allowed to access this db.");
}

/* Waits for the security object that couch_security_ahead() has asked for, or reads it. */
static enum status
access_security(struct couch_req *r, struct kv_tx *tx, struct str *ret)
{
	struct couch_ahead ahead = r->ahead;

	r->ahead = (struct couch_ahead){ .tx = NULL };
	if (ahead.tx != tx || ahead.number != r->db->number)
		return couch_security_read(r, tx, ret);
	return security_or_default(rev_config_wait(ahead.security, r->arena, ret), ret);
}

static enum status
access_check(struct couch_req *r, struct kv_tx *tx, enum couch_access access)
{
	struct str security;

	if (r->user.admin)
		return STATUS_OK;
	TRY(access_security(r, tx, &security));
	return access_check_user(r, security, access);
}

enum status
couch_db_open(struct couch_req *r, struct kv_tx *tx, enum couch_access access)
{
	struct catalog_db *db;

	TRY(rev_db_open(tx, r->loop->cache, r->parts[0], &db, &r->fail.err));
	catalog_db_unref(r->db);
	r->db = db;
	return access_check(r, tx, access);
}

enum status
couch_db_open_bare(struct couch_req *r, struct kv_tx *tx)
{
	struct catalog_db *db;

	TRY(rev_db_open_bare(tx, r->loop->cache, r->parts[0], &db, &r->fail.err));
	catalog_db_unref(r->db);
	r->db = db;
	return access_check(r, tx, COUCH_ACCESS_MEMBER);
}

void
couch_security_ahead(void *req)
{
	struct couch_req *r = req;
	struct catalog_db *db;

	if (!r->begun || !r->parts_count || r->ahead.tx || !rev_db_name_valid(r->parts[0]))
		return;
	db = rev_db_cached(r->begun, r->loop->cache, r->parts[0]);
	if (!db)
		return;
	if (rev_config_ask(r->begun, db, STR(COUCH_SECURITY), &r->ahead.security) == STATUS_OK) {
		r->ahead.tx = r->begun;
		r->ahead.number = db->number;
	}
	catalog_db_unref(db);
}

void
couch_security_keep(struct couch_req *r)
{
	struct couch_ahead ahead = r->ahead;
	struct str security;

	if (!ahead.tx || ahead.tx != r->begun)
		return;
	r->ahead = (struct couch_ahead){ .tx = NULL };
	/* Whatever fails here is found again by the transaction that reads it anew. */
	if (security_or_default(rev_config_wait(ahead.security, r->arena, &security), &security) ==
	    STATUS_OK)
		r->judged = (struct couch_judged){ true, ahead.number, security };
}

enum status
couch_judge(struct couch_req *r)
{
	assert(r->judged.known && !r->user.admin);
	return access_check_user(r, r->judged.security, COUCH_ACCESS_MEMBER);
}

enum status
couch_db_open_judging(struct couch_req *r, struct kv_tx *tx, struct couch_judged *ret)
{
	struct catalog_db *db;

	TRY(rev_db_open(tx, r->loop->cache, r->parts[0], &db, &r->fail.err));
	catalog_db_unref(r->db);
	r->db = db;
	*ret = (struct couch_judged){ .known = true, .number = db->number };
	TRY(access_security(r, tx, &ret->security));
	return access_check_user(r, ret->security, COUCH_ACCESS_MEMBER);
}

enum status
couch_db_open_to_write(struct couch_req *r, struct kv_tx *tx, struct kv_future **ret)
{
	struct catalog_db *db;

	*ret = NULL;
	TRY(rev_db_open(tx, r->loop->cache, r->parts[0], &db, &r->fail.err));
	catalog_db_unref(r->db);
	r->db = db;
	if (r->user.admin || !r->judged.known || r->judged.number != db->number)
		return access_check(r, tx, COUCH_ACCESS_MEMBER);
	TRY(couch_judge(r));
	return rev_config_ask(tx, db, STR(COUCH_SECURITY), ret);
}

enum status
couch_security_confirm(struct couch_req *r, struct kv_future *asked, enum status status)
{
	const struct couch_fail fail = r->fail;
	struct str security;
	enum status read = security_or_default(rev_config_wait(asked, r->arena, &security),
					       &security);

	if (read == STATUS_OK && str_eq(security, r->judged.security))
		return status;
	/*
	 * The security object has changed, or could not be read. A person who has no right to
	 * write by now must not learn how the write would have ended. If the object could not be
	 * read, the next attempt may read it.
	 */
	r->fail = (struct couch_fail){ .error = COUCH_ERROR_NONE };
	TRY(read);
	TRY(access_check_user(r, security, COUCH_ACCESS_MEMBER));
	r->fail = fail;
	return status;
}

enum status
couch_design_check(struct couch_req *r, struct kv_tx *tx, struct str id)
{
	bool admin;

	if (!couch_is_design(id))
		return STATUS_OK;
	TRY(couch_db_is_admin(r, tx, &admin));
	return admin ? STATUS_OK : access_refuse_not_db_admin(r);
}

/* Databases, who may use them, and views of them that last. */
#include "door/couch/couch_int.h"

#define SECURITY "security"

/* As a new CouchDB 3 has it: nobody but server administrators, until somebody says otherwise. */
#define SECURITY_DEFAULT                                                                           \
	"{\"members\":{\"roles\":[\"_admin\"]},\"admins\":{\"roles\":[\"_admin\"]}}"

enum status
couch_require_admin(struct couch_req *r)
{
	if (r->user.admin)
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_UNAUTHORIZED, "You are not a server admin.");
}

static enum status
security_read(struct couch_req *r, struct kv_tx *tx, struct str *ret)
{
	enum status status = rev_config_get(tx, r->db, STR(SECURITY), r->arena, ret);

	if (status == STATUS_NOT_FOUND) {
		*ret = STR(SECURITY_DEFAULT);
		return STATUS_OK;
	}
	return status;
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
		if (!of_names && r->user.admin && str_eq(items[i].string, STR("_admin")))
			standing->listed = true;
	}
	return STATUS_OK;
}

static enum status
group_standing(struct couch_req *r, struct str security, const char *group, struct standing *ret)
{
	struct json_value object;
	struct json_member *members;
	const struct json_value *found;
	size_t count;

	*ret = (struct standing){ .empty = true };
	TRY(json_value_read(security, r->arena, &object, &r->fail.err));
	TRY(json_value_members(&object, r->arena, &members, &count, &r->fail.err));
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

	*ret = r->user.admin;
	if (*ret)
		return STATUS_OK;
	TRY(security_read(r, tx, &security));
	TRY(group_standing(r, security, "admins", &admins));
	*ret = admins.listed;
	return STATUS_OK;
}

static enum status
check_member(struct couch_req *r, struct kv_tx *tx)
{
	struct standing members;
	struct str security;
	bool admin;

	TRY(couch_db_is_admin(r, tx, &admin));
	if (admin)
		return STATUS_OK;
	TRY(security_read(r, tx, &security));
	TRY(group_standing(r, security, "members", &members));
	if (members.empty || members.listed)
		return STATUS_OK;
	if (r->user.name.len == 0)
		return couch_fail_set(&r->fail, COUCH_ERROR_UNAUTHORIZED,
				      "You are not authorized to access this db.");
	return couch_fail_set(&r->fail, COUCH_ERROR_FORBIDDEN,
			      "You are not allowed to access this db.");
}

enum status
couch_db_open(struct couch_req *r, struct kv_tx *tx, enum couch_access access)
{
	struct rev_db *db;
	bool admin;

	TRY(rev_db_open(tx, r->loop->cache, r->parts[0], &db, &r->fail.err));
	rev_db_unref(r->db);
	r->db = db;
	if (r->user.admin)
		return STATUS_OK;
	/* It holds credentials, whatever its _security says. */
	if (str_eq(db->name, STR("_replicator")))
		return couch_require_admin(r);
	TRY(check_member(r, tx));
	if (access == COUCH_ACCESS_MEMBER)
		return STATUS_OK;
	TRY(couch_db_is_admin(r, tx, &admin));
	if (!admin)
		return couch_fail_set(&r->fail, COUCH_ERROR_UNAUTHORIZED,
				      "You are not a db or server admin.");
	return STATUS_OK;
}

static enum status
precheck(struct kv_tx *tx, void *arg)
{
	return couch_db_open(arg, tx, COUCH_ACCESS_MEMBER);
}

enum status
couch_db_precheck(struct couch_req *r)
{
	if (r->user.admin)
		return STATUS_OK;
	return kv_run_read(r->couch->config.store, precheck, r, &r->fail.err);
}

enum status
couch_db_ensure(struct couch_req *r)
{
	if (r->db)
		return STATUS_OK;
	return kv_run_read(r->couch->config.store, precheck, r, &r->fail.err);
}

enum status
couch_design_check(struct couch_req *r, struct kv_tx *tx, struct str id)
{
	bool admin;

	if (!couch_is_design(id))
		return STATUS_OK;
	TRY(couch_db_is_admin(r, tx, &admin));
	if (admin)
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_UNAUTHORIZED,
			      "You are not a db or server admin.");
}

/* ---- GET and PUT /{db}/_security ---- */

struct security_call {
	struct couch_req *r;
	struct str text;
};

static enum status
security_get(struct kv_tx *tx, void *arg)
{
	struct security_call *call = arg;

	TRY(couch_db_open(call->r, tx, COUCH_ACCESS_MEMBER));
	return security_read(call->r, tx, &call->text);
}

enum status
couch_security_get(struct couch_req *r)
{
	struct security_call call = { .r = r };
	struct buf AUTO(buf_release) body = couch_buf(r, COUCH_ANSWER_BYTES);

	TRY(kv_run_read(r->couch->config.store, security_get, &call, &r->fail.err));
	buf_append_str(&body, call.text);
	return couch_reply(r, 200, &body);
}

static enum status
security_put(struct kv_tx *tx, void *arg)
{
	struct security_call *call = arg;

	TRY(couch_db_open(call->r, tx, COUCH_ACCESS_ADMIN));
	return rev_config_set(tx, call->r->db, STR(SECURITY), call->text, &call->r->fail.err);
}

static enum status
check_strings(struct couch_req *r, const struct json_value *list, const char *name)
{
	struct json_value *items;
	size_t count;
	bool good = !list || list->kind == JSON_ARRAY_BEGIN;

	if (list && good) {
		TRY(json_value_items(list, r->arena, &items, &count, &r->fail.err));
		for (size_t i = 0; i < count; i++)
			good = good && items[i].kind == JSON_STRING;
	}
	if (!good)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "%s must be a JSON list of strings", name);
	return STATUS_OK;
}

static enum status
check_group(struct couch_req *r, const struct json_value *group)
{
	struct json_member *members;
	size_t count;

	if (!group)
		return STATUS_OK;
	if (group->kind != JSON_OBJECT_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "admins or members must be a JSON list of strings");
	TRY(json_value_members(group, r->arena, &members, &count, &r->fail.err));
	TRY(check_strings(r, json_value_find(members, count, "names"), "names"));
	return check_strings(r, json_value_find(members, count, "roles"), "roles");
}

enum status
couch_security_put(struct couch_req *r)
{
	struct security_call call = { .r = r };
	struct json_member *members;
	struct json_value body;
	struct str text;
	size_t count;

	TRY(couch_db_precheck(r));
	TRY(couch_read_body(r, COUCH_SMALL_BODY_BYTES, &text));
	TRY(json_value_read(text, r->arena, &body, &r->fail.err));
	if (body.kind != JSON_OBJECT_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Request body must be a JSON object");
	TRY(json_value_members(&body, r->arena, &members, &count, &r->fail.err));
	TRY(check_group(r, json_value_find(members, count, "admins")));
	TRY(check_group(r, json_value_find(members, count, "members")));
	call.text = body.text;
	TRY(kv_run(r->couch->config.store, security_put, &call, NULL, &r->fail.err));
	return couch_reply_ok(r, 200);
}

/* ---- Snapshots ---- */

/* Opens the database in the fresh transaction, over and over where that can help. */
static enum status
snapshot_open(struct couch_snapshot *s)
{
	for (;;) {
		enum status status = couch_db_open(s->r, s->tx, COUCH_ACCESS_MEMBER);

		if (status == STATUS_OK || ++s->failures > KV_RETRY_LIMIT)
			return status;
		TRY(kv_on_error(s->tx, status));
	}
}

enum status
couch_snapshot_begin(struct couch_snapshot *s, struct couch_req *r)
{
	*s = (struct couch_snapshot){ .r = r };
	TRY(kv_begin(r->couch->config.store, KV_TX_READ_ONLY, &s->tx));
	return snapshot_open(s);
}

enum status
couch_snapshot_renew(struct couch_snapshot *s, enum status status)
{
	uint64_t number = s->r->db->number;

	if (++s->failures > KV_RETRY_LIMIT)
		return status;
	TRY(kv_on_error(s->tx, status));
	TRY(snapshot_open(s));
	/* Deleted and made again: what has been sent belongs to another database. */
	if (s->r->db->number != number)
		return couch_fail_set(&s->r->fail, COUCH_ERROR_NOT_FOUND,
				      "Database does not exist.");
	return STATUS_OK;
}

void
couch_snapshot_end(struct couch_snapshot *s)
{
	kv_tx_free(s->tx);
	s->tx = NULL;
}

/* GET and PUT /{db}/_security: who may use a database. */
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/endpoints.h"
#include "door/couch/admin/tx.h"
#include "door/couch/admin/user_doc.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "kv/kv.h"

struct security_call {
	struct couch_req *r;
	struct str text;
};

static enum status
security_get_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct security_call *call = arg;

	return couch_security_read(r, tx, &call->text);
}

enum status
couch_security_get(struct couch_req *r)
{
	struct security_call call = { .r = r };
	struct buf AUTO(buf_release) body = couch_buf(r, COUCH_ANSWER_BYTES);

	TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, security_get_attempt, &call));
	buf_append_str(&body, call.text);
	return couch_reply(r, 200, &body);
}

static enum status
security_put_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct security_call *call = arg;

	return couch_security_set(tx, r->db, call->text, &r->fail.err);
}

static enum status
security_check_strings(struct couch_req *r, const struct json_value *list, const char *name)
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
security_check_group(struct couch_req *r, const struct json_value *group)
{
	struct json_member *members;
	size_t count;

	if (!group)
		return STATUS_OK;
	if (group->kind != JSON_OBJECT_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "admins or members must be a JSON list of strings");
	TRY(json_value_members(group, r->arena, &members, &count, &r->fail.err));
	TRY(security_check_strings(r, json_value_find(members, count, "names"), "names"));
	return security_check_strings(r, json_value_find(members, count, "roles"), "roles");
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
	if (couch_in_users_db(r) && !r->settings->users_security)
		return couch_fail_set(&r->fail, COUCH_ERROR_FORBIDDEN,
				      "You can't edit the security object of the user database.");
	TRY(couch_read_body(r, COUCH_SMALL_BODY_BYTES, &text));
	TRY(json_value_read(text, r->arena, &body, &r->fail.err));
	if (body.kind != JSON_OBJECT_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Request body must be a JSON object");
	TRY(json_value_members(&body, r->arena, &members, &count, &r->fail.err));
	TRY(security_check_group(r, json_value_find(members, count, "admins")));
	TRY(security_check_group(r, json_value_find(members, count, "members")));
	call.text = body.text;
	TRY(couch_db_write(r, COUCH_ACCESS_ADMIN, security_put_attempt, &call));
	couch_audit_changed(r, "rights_changed", "database", r->db->name);
	return couch_reply_ok(r, 200);
}

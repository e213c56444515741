/* GET /_users/{docid} by a user who is not an administrator. */
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/tx.h"
#include "door/couch/admin/user_doc.h"
#include "door/couch/doc/endpoints.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "model/revisioned/read.h"

struct user_get {
	struct str id;
	bool own;
	bool has_rev;
	struct rev_id rev;
	struct str text; /* the members of the body */
};

static enum status
user_get_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct buf AUTO(buf_release) text = couch_buf(r, COUCH_ANSWER_BYTES);
	struct user_get *g = arg;
	struct rev_doc doc;

	if (g->has_rev)
		TRY(rev_doc_read_head(tx, r->db, g->id, g->rev, false, r->arena, &doc));
	else
		TRY(rev_doc_read(tx, r->db, g->id, r->arena, &doc));
	g->rev = doc.rev;
	buf_append_byte(&text, '{');
	TRY(rev_body_write(&doc, false, &text));
	TRY(buf_status(&text));
	g->text = arena_dup(r->arena, buf_str(&text));
	return g->text.ptr ? STATUS_OK : STATUS_LIMIT;
}

/*
 * Writes the user's own document without the members of its password, or the public fields of
 * another user's document.
 */
static bool
user_get_shows(const struct couch_req *r, const struct user_get *g, struct str member)
{
	const struct access_settings *access = settings_of(r->held->settings,
							   &access_setting_group);
	struct str fields = str_from_cstr(access->public_fields ? access->public_fields : "");
	struct str field;

	if (couch_is_password_member(member))
		return false;
	if (g->own)
		return true;
	while (str_list_next(&fields, &field))
		if (str_eq(field, member))
			return true;
	return false;
}

static enum status
user_get_missing(struct couch_req *r)
{
	r->fail = (struct couch_fail){ .error = COUCH_ERROR_NONE };
	return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing");
}

static enum status
user_get_answer(struct couch_req *r, const struct user_get *g)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct json_member *members;
	struct json_value value;
	bool any = g->own;
	size_t count;

	TRY(json_value_read(g->text, r->arena, &value, &r->fail.err));
	TRY(json_value_members(&value, r->arena, &members, &count, &r->fail.err));
	buf_append_cstr(&out, "{\"_id\":");
	json_write_str(&out, g->id);
	buf_append_cstr(&out, ",\"_rev\":");
	couch_rev_write(g->rev, &out);
	for (size_t i = 0; i < count; i++) {
		if (!user_get_shows(r, g, members[i].name))
			continue;
		any = true;
		buf_append_byte(&out, ',');
		json_write_str(&out, members[i].name);
		buf_append_byte(&out, ':');
		buf_append_str(&out, members[i].value.text);
	}
	buf_append_byte(&out, '}');
	if (!any)
		return user_get_missing(r);
	couch_set_etag(r, g->rev);
	return couch_reply(r, 200, &out);
}

enum status
couch_user_doc_get(struct couch_req *r, struct str id)
{
	struct user_get g = { .id = id };
	enum status status;
	struct str rev;

	g.own = r->user.name.len && str_eq(couch_user_of_id(id), r->user.name);
	g.has_rev = couch_param_last(r, "rev", &rev);
	if (g.has_rev)
		TRY(couch_rev_parse(rev, r->arena, &g.rev, &r->fail));
	status = couch_db_read(r, COUCH_ACCESS_MEMBER, user_get_attempt, &g);
	/* The answer must not tell whether another user's document was deleted or never existed. */
	if (status == STATUS_NOT_FOUND || (status == STATUS_DELETED && !g.own))
		return r->db ? user_get_missing(r) : status;
	TRY(status);
	return user_get_answer(r, &g);
}

/*
 * GET of a document in _users or _replicator by a user who is not an administrator: what the user
 * may see of it.
 */
#include "base/words.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/tx.h"
#include "door/couch/admin/user_doc.h"
#include "door/couch/doc/endpoints.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "model/revisioned/read.h"

struct limited_get {
	struct str id;
	bool own;
	bool has_rev;
	struct rev_id rev;
	struct str text; /* the members of the body */
	struct json_member *members;
	size_t count;
};

static enum status
limited_get_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct buf AUTO(buf_release) text = couch_buf(r, COUCH_ANSWER_BYTES);
	struct limited_get *g = arg;
	struct rev_doc doc;

	if (g->has_rev)
		TRY(rev_doc_read_head(tx, r->db, g->id, g->rev, false, r->arena, &doc));
	else
		TRY(rev_doc_read(tx, r->db, g->id, r->arena, &doc));
	g->rev = doc.rev;
	buf_append_byte(&text, '{');
	TRY(rev_body_write(&doc, false, &text));
	return buf_copy(&text, r->arena, &g->text);
}

static enum status
limited_get_read_members(struct couch_req *r, struct limited_get *g)
{
	struct json_value value;

	TRY(json_value_read(g->text, r->arena, &value, &r->fail.err));
	return json_value_members(&value, r->arena, &g->members, &g->count, &r->fail.err);
}

/* Begins the answer with the members that every document has. */
static void
limited_get_write_head(const struct limited_get *g, struct buf *out)
{
	buf_append_cstr(out, "{\"_id\":");
	json_write_str(out, g->id);
	buf_append_cstr(out, ",\"_rev\":");
	couch_rev_write(g->rev, out);
}

static void
limited_get_write_member(struct str name, struct str text, struct buf *out)
{
	buf_append_byte(out, ',');
	json_write_str(out, name);
	buf_append_byte(out, ':');
	buf_append_str(out, text);
}

/* Reads which revision the client wants, if the query says that. */
static enum status
limited_get_take_rev(struct couch_req *r, struct limited_get *g)
{
	struct str rev;

	g->has_rev = couch_param_last(r, "rev", &rev);
	return g->has_rev ? couch_rev_parse(rev, r->arena, &g->rev, &r->fail) : STATUS_OK;
}

/* ---- _users ---- */

/*
 * Writes the user's own document without the members of its password, or the public fields of
 * another user's document.
 */
static bool
user_get_shows(const struct couch_req *r, const struct limited_get *g, struct str member)
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
user_get_answer(struct couch_req *r, struct limited_get *g)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	bool any = g->own;

	TRY(limited_get_read_members(r, g));
	limited_get_write_head(g, &out);
	for (size_t i = 0; i < g->count; i++) {
		if (!user_get_shows(r, g, g->members[i].name))
			continue;
		any = true;
		limited_get_write_member(g->members[i].name, g->members[i].value.text, &out);
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
	struct limited_get g = { .id = id };
	enum status status;

	g.own = r->user.name.len && str_eq(couch_user_of_id(id), r->user.name);
	TRY(limited_get_take_rev(r, &g));
	status = couch_db_read(r, COUCH_ACCESS_MEMBER, limited_get_attempt, &g);
	/* The answer must not tell whether another user's document was deleted or never existed. */
	if (status == STATUS_NOT_FOUND || (status == STATUS_DELETED && !g.own))
		return r->db ? user_get_missing(r) : status;
	TRY(status);
	return user_get_answer(r, &g);
}

/* ---- _replicator ---- */

/* Writes a URL without the name and password in it. */
static void
replication_get_write_url(struct couch_req *r, struct str url, struct buf *out)
{
	const char *scheme = url.len ? memmem(url.ptr, url.len, "://", 3) : NULL;
	size_t begin = scheme ? (size_t)(scheme - url.ptr) + 3 : 0;
	size_t host = begin;

	for (size_t i = begin; i < url.len; i++) {
		if (url.ptr[i] == '/' || url.ptr[i] == '?' || url.ptr[i] == '#')
			break;
		if (url.ptr[i] == '@')
			host = i + 1;
	}
	json_write_str(out, arena_printf(r->arena, "%.*s%.*s", STR_ARG(str_of(url.ptr, begin)),
					 STR_ARG(str_skip(url, host))));
}

/* Of an end that is given as an object only the URL is shown, not its headers and the like. */
static enum status
replication_get_write_end(struct couch_req *r, const struct json_member *member, struct buf *out)
{
	const struct json_value *url = &member->value;
	struct json_member *inner;
	size_t count;

	if (url->kind == JSON_OBJECT_BEGIN) {
		TRY(json_value_members(url, r->arena, &inner, &count, &r->fail.err));
		url = json_value_find(inner, count, "url");
	}
	if (!url || url->kind != JSON_STRING)
		return STATUS_OK;
	buf_append_byte(out, ',');
	json_write_str(out, member->name);
	buf_append_byte(out, ':');
	if (url != &member->value)
		buf_append_cstr(out, "{\"url\":");
	replication_get_write_url(r, url->string, out);
	if (url != &member->value)
		buf_append_byte(out, '}');
	return STATUS_OK;
}

/* True for members of a replication that may have a name and a password in them. */
static bool
replication_get_is_secret(struct str name)
{
	static const char *const ends[] = { "source", "target", "proxy", "source_proxy",
					    "target_proxy" };

	return WORDS_HAVE(ends, name);
}

enum status
couch_replication_doc_get(struct couch_req *r, struct str id)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct limited_get g = { .id = id };
	const struct json_value *owner;

	TRY(limited_get_take_rev(r, &g));
	TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, limited_get_attempt, &g));
	TRY(limited_get_read_members(r, &g));
	owner = json_value_find(g.members, g.count, "owner");
	g.own = r->user.name.len && owner && owner->kind == JSON_STRING &&
		str_eq(owner->string, r->user.name);
	limited_get_write_head(&g, &out);
	for (size_t i = 0; i < g.count; i++)
		if (g.own || !replication_get_is_secret(g.members[i].name))
			limited_get_write_member(g.members[i].name, g.members[i].value.text, &out);
		else
			TRY(replication_get_write_end(r, &g.members[i], &out));
	buf_append_byte(&out, '}');
	couch_set_etag(r, g.rev);
	return couch_reply(r, 200, &out);
}

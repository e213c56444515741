/* What functions of design documents are called with, and how their failures are told. */
#include "door/couch/doc/functions.h"

#include "base/clock.h"
#include "base/hash.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/wire/reply.h"

enum {
	KEY_BYTES = 16 * 1024, /* of an id, as it is in a key */
};

enum status
couch_function_version(const struct catalog_db *db, struct str id, struct str text,
		       struct arena *arena, struct js_design *ret)
{
	AUTO(buf_release) struct buf key = BUF_SHORT(KEY_BYTES);
	const struct json_value *language;
	struct json_member *members;
	size_t count;

	*ret = (struct js_design){ .owner = db->number, .language = STR("javascript") };
	TRY(json_read_members(text, arena, &members, &count, NULL));
	language = json_value_find(members, count, "language");
	if (language && language->kind == JSON_STRING)
		ret->language = language->string;
	/* After a purge, replication can bring a revision with another body: the text counts. */
	buf_printf(&key, "%llu/%.*s/%016llx%016llx", (unsigned long long)db->number, STR_ARG(id),
		   (unsigned long long)hash_keyed(1, text),
		   (unsigned long long)hash_keyed(2, text));
	TRY(buf_status(&key));
	ret->key = buf_dup(&key, arena);
	ret->name = arena_printf(arena, "%.*s/%.*s", STR_ARG(db->name), STR_ARG(id));
	ret->text = text;
	return ret->key.ptr && ret->name.ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
couch_function_design(struct couch_req *r, struct kv_tx *tx, struct str id, struct js_design *ret)
{
	AUTO(buf_release) struct buf text = couch_buf(r, COUCH_ROW_BYTES);
	struct rev_doc doc;
	struct couch_doc_out d = { .id = id, .doc = &doc };
	struct str kept;

	TRY(rev_doc_read(tx, r->db, id, r->arena, &doc));
	TRY(couch_doc_write(&d, &text));
	TRY(buf_copy(&text, r->arena, &kept));
	return couch_function_version(r->db, id, kept, r->arena, ret);
}

enum status
couch_function_call_of(struct js *js, struct event *gone, struct arena *arena,
		       const struct js_design *design, struct js_call *ret, struct couch_fail *fail)
{
	if (!js)
		return couch_fail_set(fail, COUCH_ERROR_NOT_IMPLEMENTED,
				      "this server cannot run functions: it has no frond-js");
	*ret = (struct js_call){
		.js = js,
		.design = design,
		.lane = JS_LANE_REQUEST,
		.deadline_ns = clock_after_ms(COUCH_FUNCTION_WAIT_MS),
		.stop = gone,
		.arena = arena,
	};
	return STATUS_OK;
}

enum status
couch_function_call(struct couch_req *r, const struct js_design *design, struct js_call *ret)
{
	return couch_function_call_of(r->couch->config.js, http_closed_event(r->x), r->arena,
				      design, ret, &r->fail);
}

enum status
couch_function_end(struct couch_req *r, enum status status, const struct js_call *call)
{
	if (status != STATUS_FUNCTION)
		return status;
	return couch_fail_function(&r->fail, call->error.name, call->error.reason, r->arena);
}

void
couch_user_ctx_write(const struct catalog_db *db, const struct auth_user *user, struct buf *out)
{
	buf_append_cstr(out, "{\"db\":");
	json_write_str(out, db->name);
	buf_append_cstr(out, ",\"name\":");
	if (user->name.len)
		json_write_str(out, user->name);
	else
		buf_append_cstr(out, "null");
	buf_append_cstr(out, ",\"roles\":");
	couch_roles_write(user, out);
	buf_append_byte(out, '}');
}

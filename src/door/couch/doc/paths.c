/* GET /{db}/{docid}?paths=["/a","/b/0"]: the values at several JSON Pointers, read at once. */
#include "base/quote.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/tx.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/doc/edit.h"
#include "door/couch/doc/endpoints.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "kv/kv.h"
#include "model/revisioned/read.h"

enum {
	PATHS_MAX = 256,
};

struct paths_call {
	struct couch_req *r;
	struct str id;
	struct rev_id rev; /* that the client named, with has_rev */
	bool has_rev;
	struct rev_id shown; /* whose values are in the answer */
	struct str *texts;
	struct doc_pointer *pointers;
	size_t count;
	struct doc_pointer_value *values;
};

static bool
paths_has(const struct paths_call *c, struct str text)
{
	for (size_t i = 0; i < c->count; i++)
		if (str_eq(c->texts[i], text))
			return true;
	return false;
}

static enum status
paths_parse_one(struct paths_call *c, const struct json_value *item)
{
	struct couch_req *r = c->r;
	enum status status;

	if (item->kind != JSON_STRING)
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "`paths` must be an array of JSON Pointers.");
	if (paths_has(c, item->string))
		return STATUS_OK;
	status = doc_pointer_parse(item->string, r->arena, &c->pointers[c->count], &r->fail.err);
	if (status == STATUS_INVALID)
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "`paths` must be JSON Pointers (RFC 6901): \"%s\" is none.",
				      QUOTE_SHOW(item->string));
	if (status == STATUS_LIMIT && !arena_is_full(r->arena))
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "`paths` has a JSON Pointer of more than %d tokens.",
				      JSON_DEPTH_LIMIT);
	TRY(status);
	c->texts[c->count++] = item->string;
	return STATUS_OK;
}

static enum status
paths_parse(struct paths_call *c, struct str text)
{
	struct couch_req *r = c->r;
	struct json_value value;
	struct json_value *items;
	size_t count;

	TRY(json_value_read(text, r->arena, &value, &r->fail.err));
	if (value.kind != JSON_ARRAY_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "`paths` must be an array of JSON Pointers.");
	TRY(json_value_items(&value, r->arena, &items, &count, &r->fail.err));
	if (count > PATHS_MAX)
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "`paths` has more than %d JSON Pointers.", PATHS_MAX);
	c->texts = arena_alloc(r->arena, count * sizeof(*c->texts));
	c->pointers = arena_alloc(r->arena, count * sizeof(*c->pointers));
	if (!c->texts || !c->pointers)
		return STATUS_NOMEM;
	for (size_t i = 0; i < count; i++)
		TRY(paths_parse_one(c, &items[i]));
	return STATUS_OK;
}

/* Reads the values in the body of a revision; *ret_any tells whether any is there. */
static enum status
paths_read(struct paths_call *c, struct kv_tx *tx, struct rev_id rev, bool deleted, bool *ret_any)
{
	struct couch_req *r = c->r;
	struct doc_place place;

	*ret_any = false;
	c->shown = rev;
	TRY(rev_doc_place(r->db, c->id, rev, deleted, r->arena, &place));
	TRY(doc_read_pointers(tx, place, c->pointers, c->count, KV_READ, COUCH_ROW_BYTES, r->arena,
			      c->values, &r->fail.err));
	for (size_t i = 0; i < c->count; i++)
		*ret_any = *ret_any || c->values[i].found;
	return STATUS_OK;
}

/*
 * Nearly always the revision is a live head. Only where that has nothing at any path does the tree
 * tell whether the revision that the client named is a tombstone, or is not there.
 */
static enum status
paths_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct paths_call *c = arg;
	struct rev_branch branch;
	struct rev_id rev = c->rev;
	bool any;

	TRY(couch_look_up_check_id(r, c->id, &r->fail));
	c->values = arena_alloc(r->arena, c->count * sizeof(*c->values));
	if (!c->values)
		return STATUS_LIMIT;
	if (!c->has_rev)
		TRY(rev_winner_read(tx, r->db, c->id, r->arena, &rev));
	TRY(paths_read(c, tx, rev, false, &any));
	if (any || !c->has_rev)
		return STATUS_OK;
	TRY(couch_head_look_up(r, tx, c->id, rev, couch_param_true(r, "latest"), &branch));
	if (!branch.deleted && rev_id_eq(branch.rev, rev))
		return STATUS_OK;
	return paths_read(c, tx, branch.rev, branch.deleted, &any);
}

static enum status
paths_answer(struct paths_call *c)
{
	struct buf AUTO(buf_release) out = couch_buf(c->r, COUCH_ANSWER_BYTES);
	struct couch_req *r = c->r;
	bool any = false;
	bool sent;

	buf_append_byte(&out, '{');
	for (size_t i = 0; i < c->count; i++) {
		if (!c->values[i].found)
			continue;
		if (any)
			buf_append_byte(&out, ',');
		any = true;
		json_write_str(&out, c->texts[i]);
		buf_append_byte(&out, ':');
		buf_append_str(&out, c->values[i].text);
	}
	buf_append_byte(&out, '}');
	if (!any)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND,
				      "The document has nothing at any of these paths.");
	TRY(couch_reply_etag_of_rev(r, c->shown, &sent));
	return sent ? STATUS_OK : couch_reply(r, 200, &out);
}

enum status
couch_doc_get_paths(struct couch_req *r, struct str id)
{
	struct paths_call c = { .r = r, .id = id };
	struct str value;

	TRY(couch_docid_check(id, &r->fail));
	c.has_rev = couch_param_last(r, "rev", &value);
	if (c.has_rev)
		TRY(couch_rev_parse(value, r->arena, &c.rev, &r->fail));
	if (couch_param(r, "paths", &value))
		TRY(paths_parse(&c, value));
	TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, paths_attempt, &c));
	return paths_answer(&c);
}

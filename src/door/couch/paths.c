/* GET /{db}/{docid}?paths=["/a","/b/0"]: the values at several JSON Pointers, read at once. */
#include "door/couch/couch_int.h"

enum {
	PATHS_MAX = 256,
};

struct paths_call {
	struct couch_req *r;
	struct str id;
	struct rev_id rev; /* pos 0: the winner */
	bool has_rev;
	struct str *texts;
	struct doc_pointer *pointers;
	size_t count;
	struct arena_mark mark;
	struct doc_pointer_value *values;
};

static bool
is_there(const struct paths_call *c, struct str text)
{
	for (size_t i = 0; i < c->count; i++)
		if (str_eq(c->texts[i], text))
			return true;
	return false;
}

static enum status
parse_path(struct paths_call *c, const struct json_value *item)
{
	struct couch_req *r = c->r;
	enum status status;

	if (item->kind != JSON_STRING)
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "`paths` must be an array of JSON Pointers.");
	if (is_there(c, item->string))
		return STATUS_OK;
	status = doc_pointer_parse(item->string, r->arena, &c->pointers[c->count], &r->fail.err);
	if (status == STATUS_INVALID)
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "`paths` must be JSON Pointers (RFC 6901): \"%.*s\" is none.",
				      STR_ARG(item->string));
	TRY(status);
	c->texts[c->count++] = item->string;
	return STATUS_OK;
}

static enum status
parse_paths(struct paths_call *c, struct str text)
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
		TRY(parse_path(c, &items[i]));
	return STATUS_OK;
}

static enum status
paths_body(struct kv_tx *tx, void *arg)
{
	struct paths_call *c = arg;
	struct couch_req *r = c->r;
	struct str prefix;

	arena_reset(r->arena, c->mark);
	TRY(couch_db_open(r, tx, COUCH_ACCESS_MEMBER));
	if (!c->has_rev)
		TRY(rev_winner_read(tx, r->db, c->id, r->arena, &c->rev));
	TRY(rev_doc_prefix(r->db, c->id, c->rev, false, r->arena, &prefix));
	c->values = arena_alloc(r->arena, c->count * sizeof(*c->values));
	if (!c->values)
		return STATUS_LIMIT;
	return doc_read_pointers(tx, prefix, c->pointers, c->count, KV_READ, COUCH_ROW_BYTES,
				 r->arena, c->values, &r->fail.err);
}

static enum status
answer(struct paths_call *c)
{
	struct buf AUTO(buf_release) tag = BUF_INIT((size_t)2 * REV_HASH_LIMIT_BYTES);
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
	buf_append_byte(&tag, '"');
	rev_id_write(c->rev, &tag);
	buf_append_byte(&tag, '"');
	TRY(buf_status(&tag));
	TRY(couch_reply_etag(r, buf_str(&tag), &sent));
	return sent ? STATUS_OK : couch_reply(r, 200, &out);
}

enum status
couch_doc_get_paths(struct couch_req *r, struct str id)
{
	struct paths_call c = { .r = r, .id = id };
	struct str value;

	TRY(couch_docid_check(id, &r->fail));
	c.has_rev = couch_param(r, "rev", &value);
	if (c.has_rev)
		TRY(couch_rev_parse(value, r->arena, &c.rev, &r->fail));
	if (couch_param(r, "paths", &value))
		TRY(parse_paths(&c, value));
	c.mark = arena_mark(r->arena);
	TRY(kv_run_read(r->couch->config.store, paths_body, &c, &r->fail.err));
	return answer(&c);
}

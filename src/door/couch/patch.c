/*
 * PATCH /{db}/{docid}: RFC 5789 with JSON Patch (RFC 6902) or JSON Merge Patch (RFC 7396).
 *
 * Reading, changing and writing are one transaction. Without a revision the patch is for the
 * winner, whichever that is when the transaction commits: nobody's edit is lost, and no client has
 * to try again.
 */
#include "doc/patch.h"
#include "door/couch/couch_int.h"

#define PATCH_TYPES "application/json-patch+json, application/merge-patch+json"

struct patch_call {
	struct couch_req *r;
	struct str id;
	struct doc_patch patch;
	struct rev_id rev; /* pos 0: the winner */
	struct arena_mark mark;
	struct rev_result result;
};

static enum status
read_kind(struct couch_req *r, enum doc_patch_kind *ret)
{
	struct str type = http_request_header(r->x, STR("Content-Type"));
	const char *semicolon = type.len ? memchr(type.ptr, ';', type.len) : NULL;

	if (semicolon)
		type.len = (size_t)(semicolon - type.ptr);
	type = type.ptr ? str_trim(type) : STR("");
	*ret = DOC_PATCH_JSON;
	if (str_eq_nocase(type, STR("application/json-patch+json")))
		return STATUS_OK;
	*ret = DOC_PATCH_MERGE;
	if (str_eq_nocase(type, STR("application/merge-patch+json")))
		return STATUS_OK;
	http_set_header(r->x, STR("Accept-Patch"), STR(PATCH_TYPES));
	return couch_fail_set(&r->fail, COUCH_ERROR_CONTENT_TYPE,
			      "Content-Type must be one of " PATCH_TYPES);
}

/* Of the query or If-Match, which must not contradict each other. */
static enum status
read_rev(struct couch_req *r, struct rev_id *ret)
{
	struct rev_id query = { 0 };
	struct rev_id tag = { 0 };
	struct str value;
	bool has_query = couch_param(r, "rev", &value);
	bool has_tag;

	if (has_query)
		TRY(couch_rev_parse(value, r->arena, &query, &r->fail));
	TRY(couch_if_match(r, &tag, &has_tag));
	if (has_query && has_tag && !rev_id_eq(query, tag))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Document rev and etag have different values");
	*ret = has_query ? query : tag;
	if ((has_query || has_tag) && ret->pos == 0)
		return STATUS_DOC_CONFLICT; /* "0-…" is no document's */
	return STATUS_OK;
}

/* The revision to be patched: a live leaf. */
static enum status
read_target(struct patch_call *c, struct kv_tx *tx, struct rev_doc *ret)
{
	struct couch_req *r = c->r;
	struct rev_id winner;
	enum status status;

	if (c->rev.pos == 0)
		return rev_doc_read(tx, r->db, c->id, r->arena, ret);
	status = rev_doc_read_leaf(tx, r->db, c->id, c->rev, false, r->arena, ret);
	if (status != STATUS_NOT_FOUND)
		return status;
	/* Is there a document, of which this is no leaf? */
	TRY(rev_winner_read(tx, r->db, c->id, r->arena, &winner));
	return STATUS_DOC_CONFLICT;
}

/* A patch says nothing about attachments: they stay. */
static enum status
keep_attachments(struct patch_call *c, const struct rev_doc *doc, struct rev_edit *edit)
{
	struct rev_att_edit *atts;

	atts = arena_zalloc(c->r->arena, doc->atts_count * sizeof(*atts));
	if (!atts)
		return STATUS_LIMIT;
	for (size_t i = 0; i < doc->atts_count; i++)
		atts[i] = (struct rev_att_edit){ .source = REV_ATT_STUB, .att = doc->atts[i] };
	edit->atts = atts;
	edit->atts_count = doc->atts_count;
	return STATUS_OK;
}

static enum status
patch_body(struct kv_tx *tx, void *arg)
{
	struct patch_call *c = arg;
	struct couch_req *r = c->r;
	struct doc_limits limits = {
		.doc_bytes = r->settings->door.doc_bytes,
		.path_bytes = KV_LIMIT_KEY_BYTES,
	};
	struct rev_edit edit = { .kind = REV_EDIT_INTERACTIVE, .id = c->id };
	struct rev_doc doc;
	enum status status;

	arena_reset(r->arena, c->mark);
	TRY(couch_db_open(r, tx, COUCH_ACCESS_MEMBER));
	TRY(couch_design_check(r, tx, c->id));
	TRY(read_target(c, tx, &doc));
	TRY(rev_body_explode(&doc, r->arena));
	limits.packed_bytes = rev_scheme_packed_bytes(r->db->scheme);
	status = doc_patch_apply(&c->patch, doc.leaves, doc.count, &limits,
				 rev_doc_prefix_bytes(r->db, c->id), r->arena, &edit.doc,
				 &r->fail.err);
	if (status == STATUS_LIMIT)
		return couch_fail_set(&r->fail, COUCH_ERROR_TOO_LARGE, "%s",
				      "applying the patch takes too much time or memory");
	TRY(status);
	TRY(couch_doc_check_password(r, &edit.doc, &r->fail));
	TRY(couch_design_validate(r, c->id, &edit.doc, &r->fail));
	edit.parent = doc.rev;
	TRY(keep_attachments(c, &doc, &edit));
	TRY(rev_write(tx, r->db, &edit, 1, 0, r->arena, &c->result, &r->fail.err));
	return c->result.status;
}

static enum status
reply(struct patch_call *c)
{
	struct buf AUTO(buf_release) out = couch_buf(c->r, COUCH_ANSWER_BYTES);
	struct couch_req *r = c->r;

	couch_set_etag(r, c->result.rev);
	buf_append_cstr(&out, "{\"ok\":true,\"id\":");
	json_write_str(&out, c->id);
	buf_append_cstr(&out, ",\"rev\":");
	couch_rev_write(c->result.rev, &out);
	buf_append_byte(&out, '}');
	return couch_reply(r, 200, &out);
}

enum status
couch_doc_patch(struct couch_req *r, struct str id)
{
	struct patch_call c = { .r = r, .id = id };
	enum doc_patch_kind kind;
	struct str body;
	enum status status;

	TRY(couch_docid_check(id, &r->fail));
	TRY(read_kind(r, &kind));
	TRY(couch_db_precheck(r));
	TRY(read_rev(r, &c.rev));
	TRY(couch_read_body(r, DOC_PATCH_BYTES, &body));
	status = doc_patch_read(kind, body, r->arena, &c.patch, &r->fail.err);
	if (status == STATUS_LIMIT)
		return couch_fail_set(&r->fail, COUCH_ERROR_TOO_LARGE,
				      "reading the patch takes too much memory");
	TRY(status);
	c.mark = arena_mark(r->arena);
	TRY(kv_run(r->couch->config.store, patch_body, &c, NULL, &r->fail.err));
	return reply(&c);
}

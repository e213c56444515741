/*
 * PATCH /{db}/{docid} (RFC 5789) with a JSON Patch (RFC 6902) or a JSON Merge Patch (RFC 7396).
 *
 * Reading, changing and writing happen in one transaction. A patch without a revision applies to
 * the winner at the time of the commit, so no other edit is lost and no client has to try again.
 */
#include "doc/json.h"
#include "doc/patch.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/tx.h"
#include "door/couch/admin/user_doc.h"
#include "door/couch/doc/design.h"
#include "door/couch/doc/doc_in.h"
#include "door/couch/doc/edit.h"
#include "door/couch/doc/endpoints.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "kv/kv.h"

#define PATCH_TYPES "application/json-patch+json, application/merge-patch+json"

struct patch_call {
	struct couch_req *r;
	struct str id;
	struct doc_patch patch;
	struct rev_id rev; /* pos 0: the winner */
	struct rev_result result;
};

static enum status
patch_read_kind(struct couch_req *r, enum doc_patch_kind *ret)
{
	struct str type = http_request_header(r->x, STR("Content-Type"));

	*ret = DOC_PATCH_JSON;
	if (couch_type_is(type, STR("application/json-patch+json")))
		return STATUS_OK;
	*ret = DOC_PATCH_MERGE;
	if (couch_type_is(type, STR("application/merge-patch+json")))
		return STATUS_OK;
	http_set_header(r->x, STR("Accept-Patch"), STR(PATCH_TYPES));
	return couch_fail_set(&r->fail, COUCH_ERROR_CONTENT_TYPE,
			      "Content-Type must be one of " PATCH_TYPES);
}

/* Of the query or If-Match, which must not contradict each other. */
static enum status
patch_read_rev(struct couch_req *r, struct rev_id *ret)
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

/* The revision to be patched, which must be a head that is no tombstone. */
static enum status
patch_read_target(struct patch_call *c, struct kv_tx *tx, struct rev_doc *ret)
{
	struct couch_req *r = c->r;
	struct rev_id winner;
	enum status status;

	if (c->rev.pos == 0)
		return rev_doc_read(tx, r->db, c->id, r->arena, ret);
	status = rev_doc_read_head(tx, r->db, c->id, c->rev, false, r->arena, ret);
	if (status != STATUS_NOT_FOUND)
		return status;
	/* If the document is there, the revision named is none of its heads. */
	TRY(rev_winner_read(tx, r->db, c->id, r->arena, &winner));
	return STATUS_DOC_CONFLICT;
}

/* A patch cannot name attachments, so they all stay. */
static enum status
patch_keep_attachments(struct patch_call *c, const struct rev_doc *doc, struct rev_edit *edit)
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

/* A patch that takes too many steps or too much memory, as the layer below explains it. */
static enum status
patch_fail_limit(struct couch_req *r)
{
	const struct err err = r->fail.err;

	if (err.status != STATUS_LIMIT)
		return couch_fail_entity_memory(&r->fail, r->arena);
	return couch_fail_set(&r->fail, COUCH_ERROR_TOO_LARGE, "%s", err.text);
}

static enum status
patch_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct patch_call *c = arg;
	struct doc_limits limits = {
		.doc_bytes = r->settings->doc_bytes,
		.path_bytes = KV_LIMIT_KEY_BYTES,
	};
	struct rev_edit edit = { .kind = REV_EDIT_INTERACTIVE, .id = c->id };
	struct rev_doc doc;
	enum status status;

	TRY(couch_edit_check_id(r, c->id, &r->fail));
	TRY(couch_design_check(r, tx, c->id));
	TRY(patch_read_target(c, tx, &doc));
	TRY(rev_body_explode(&doc, r->arena));
	limits.packed_bytes = rev_scheme_packed_bytes(rev_db_scheme(r->db));
	status = doc_patch_apply(&c->patch, doc.leaves, doc.count, &limits,
				 rev_doc_prefix_bytes(r->db, c->id), r->arena, &edit.doc,
				 &r->fail.err);
	if (status == STATUS_LIMIT)
		return patch_fail_limit(r);
	TRY(status);
	TRY(couch_doc_check_password(r, &edit.doc, &r->fail));
	TRY(couch_design_validate(r, c->id, &edit.doc, &r->fail));
	edit.parent = doc.rev;
	TRY(patch_keep_attachments(c, &doc, &edit));
	return couch_edit_write(r, tx, &edit, &c->result);
}

static enum status
patch_reply(struct patch_call *c)
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
	TRY(patch_read_kind(r, &kind));
	TRY(couch_db_precheck(r));
	TRY(patch_read_rev(r, &c.rev));
	TRY(couch_read_body(r, DOC_PATCH_BYTES, &body));
	status = doc_patch_read(kind, body, r->arena, &c.patch, &r->fail.err);
	if (status == STATUS_LIMIT)
		return patch_fail_limit(r);
	TRY(status);
	TRY(couch_db_write(r, COUCH_ACCESS_MEMBER, patch_attempt, &c));
	couch_user_doc_audit(r, c.id);
	return patch_reply(&c);
}

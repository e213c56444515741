/* PUT and DELETE of an attachment. Both make a new revision of its document with the same body. */
#include "base/base64.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/tx.h"
#include "door/couch/admin/user_doc.h"
#include "door/couch/doc/att_in.h"
#include "door/couch/doc/att_put.h"
#include "door/couch/doc/doc_in.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/doc/edit.h"
#include "door/couch/doc/endpoints.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "kv/kv.h"
#include "loop/step.h"

enum {
	NAMES_A_STEP = 8, /* compared in a step */
};

/* ---- The edit ---- */

struct change_call {
	struct couch_req *r;
	const struct couch_att_change *change;
	struct buf text; /* of the document's body */
	struct rev_result result;
};

static enum status
att_put_missing_rev(struct couch_req *r)
{
	return couch_fail_set(&r->fail, COUCH_ERROR_MISSING_REV, "missing_rev");
}

/*
 * Explains why a revision has no body. A revision that was replaced is a conflict, one that never
 * was is missing. CouchDB can tell them apart until it compacts; here the tree still knows.
 */
static enum status
att_put_tell_missing(struct couch_req *r, struct kv_tx *tx, struct str id, struct rev_id rev)
{
	struct rev_branch branch;
	enum status status = couch_head_look_up(r, tx, id, rev, true, &branch);

	if (status == STATUS_NOT_FOUND)
		return att_put_missing_rev(r);
	return status == STATUS_OK ? STATUS_DOC_CONFLICT : status;
}

static bool
att_change_has(const struct couch_att_change *change, struct str name)
{
	for (size_t i = 0; i < change->news_count; i++)
		if (str_eq(change->news[i].att.name, name))
			return true;
	return false;
}

/* Lists the new revision's attachments: the new ones, then the others in their order. */
static enum status
att_change_list(struct change_call *c, const struct rev_doc *old, struct rev_edit *edit)
{
	const struct couch_att_change *change = c->change;
	size_t most = change->news_count + old->atts_count + edit->atts_count;
	struct rev_att_edit *atts = arena_alloc(c->r->arena, (most + 1) * sizeof(*atts));
	bool found = false;
	size_t n = 0;

	if (!atts)
		return STATUS_LIMIT;
	for (size_t i = 0; i < change->news_count; i++)
		atts[n++] = change->news[i];
	for (size_t i = 0; change->doc && i < edit->atts_count; i++) {
		TRY(step_count((uint32_t)(1 + change->news_count / NAMES_A_STEP)));
		if (!att_change_has(change, edit->atts[i].att.name))
			atts[n++] = edit->atts[i];
	}
	for (size_t i = 0; !change->doc && i < old->atts_count; i++) {
		TRY(step_count((uint32_t)(1 + change->news_count / NAMES_A_STEP)));
		if (change->removed.ptr && str_eq(old->atts[i].name, change->removed))
			found = true;
		else if (!att_change_has(change, old->atts[i].name))
			atts[n++] = (struct rev_att_edit){ .source = REV_ATT_STUB,
							   .att = old->atts[i] };
	}
	if (change->removed.ptr && !found)
		return couch_fail_set(&c->r->fail, COUCH_ERROR_NOT_FOUND,
				      "Document is missing attachment");
	edit->atts = atts;
	edit->atts_count = n;
	return STATUS_OK;
}

static enum status
att_change_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct change_call *c = arg;
	const struct couch_att_change *change = c->change;
	struct rev_doc old = { 0 };
	struct couch_doc doc;
	struct rev_edit edit;
	enum status status;

	TRY(couch_edit_check_id(r, change->id, &r->fail));
	TRY(couch_design_check(r, tx, change->id));
	if (change->rev.pos && !change->doc) {
		status = rev_doc_read_head(tx, r->db, change->id, change->rev, false, r->arena,
					   &old);
		if (status == STATUS_NOT_FOUND)
			return att_put_tell_missing(r, tx, change->id, change->rev);
		TRY(status);
	}
	if (!change->doc)
		TRY(couch_doc_reparse(r, &old, change->id, &c->text, &doc));
	edit = couch_doc_edit(change->doc ? change->doc : &doc, change->id, true);
	edit.parent = change->rev;
	TRY(att_change_list(c, &old, &edit));
	return couch_edit_write(r, tx, &edit, &c->result);
}

enum status
couch_att_change_run(struct couch_req *r, const struct couch_att_change *change,
		     struct rev_id *ret_rev)
{
	struct change_call c = {
		.r = r,
		.change = change,
		.text = couch_buf(r, COUCH_ROW_BYTES),
	};
	enum status status = couch_db_write(r, COUCH_ACCESS_MEMBER, att_change_attempt, &c);

	if (status == STATUS_OK)
		couch_user_doc_audit(r, change->id);
	buf_release(&c.text);
	*ret_rev = c.result.rev;
	return status;
}

/* ---- What is asked ---- */

struct att_call {
	struct couch_req *r;
	struct str id;
	struct str name;
	struct rev_id rev; /* pos 0: none was named */
};

enum status
couch_att_name_check(struct couch_req *r, struct str name)
{
	if (utf8_valid_prefix(name) != name.len)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Attachment name is not UTF-8 encoded");
	return rev_att_name_check(name, &r->fail.err);
}

/* The revision of the query or of If-Match, which must not contradict each other. */
static enum status
att_put_read_rev(struct att_call *c)
{
	struct couch_req *r = c->r;
	struct rev_id tag = { 0 };
	struct str value;
	bool has_tag;

	TRY(couch_if_match(r, &tag, &has_tag));
	if (!couch_param(r, "rev", &value)) {
		c->rev = tag;
	} else {
		TRY(couch_rev_parse(value, r->arena, &c->rev, &r->fail));
		if (has_tag && !rev_id_eq(tag, c->rev))
			return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
					      "Document rev and etag have different values");
	}
	if (c->rev.hash.ptr && c->rev.pos == 0)
		return att_put_missing_rev(r);
	return STATUS_OK;
}

static enum status
att_put_read_names(struct att_call *c)
{
	struct couch_req *r = c->r;

	TRY(couch_docid_check(c->id, &r->fail));
	TRY(couch_att_name_check(r, c->name));
	return att_put_read_rev(c);
}

/* Checks, before any bytes are read, that there is a revision to attach them to. */
static enum status
att_put_check_target(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct att_call *c = arg;
	struct rev_id winner;
	struct rev_att att;
	enum status status;

	TRY(couch_edit_check_id(r, c->id, &r->fail));
	TRY(couch_design_check(r, tx, c->id));
	if (c->rev.pos) {
		status = rev_att_read(tx, r->db, c->id, c->rev, false, c->name, r->arena, &att);
		if (status == STATUS_NOT_FOUND)
			return att_put_tell_missing(r, tx, c->id, c->rev);
		return status == STATUS_DELETED ? STATUS_OK : status;
	}
	status = rev_winner_read(tx, r->db, c->id, r->arena, &winner);
	if (status == STATUS_OK)
		return STATUS_DOC_CONFLICT;
	return status == STATUS_NOT_FOUND || status == STATUS_DELETED ? STATUS_OK : status;
}

static enum status
att_put_read_coding(struct couch_req *r, bool *ret_gzip)
{
	struct str coding = str_trim(http_request_header(r->x, STR("Content-Encoding")));

	*ret_gzip = str_eq_nocase(coding, STR("gzip"));
	if (coding.len && !*ret_gzip && !str_eq_nocase(coding, STR("identity")))
		return couch_fail_set(&r->fail, COUCH_ERROR_CONTENT_TYPE,
				      "Only gzip and identity content-encodings are supported");
	return STATUS_OK;
}

/* Content-MD5 is the digest of the bytes as they were sent. */
static enum status
att_put_check_md5(struct couch_req *r, const uint8_t md5[REV_ATT_DIGEST_BYTES])
{
	struct str given = http_request_header(r->x, STR("Content-MD5"));
	struct buf AUTO(buf_release) raw = BUF_SHORT(64);

	if (!given.ptr)
		return STATUS_OK;
	if (base64_decode(&raw, str_trim(given), BASE64_STANDARD) == STATUS_OK &&
	    str_eq(buf_str(&raw), str_of(md5, REV_ATT_DIGEST_BYTES)))
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_MD5, "Possible message corruption.");
}

/* ---- The bytes ---- */

static enum status
att_put_check_length(struct couch_req *r, struct str name)
{
	uint64_t most = r->settings->att_bytes;
	uint64_t length;

	if (most && str_to_u64(http_request_header(r->x, STR("Content-Length")), &length) &&
	    length > most)
		return couch_fail_set(&r->fail, COUCH_ERROR_ATT_TOO_LARGE,
				      "%s: the limit is %llu bytes", QUOTE_SHOW(name),
				      (unsigned long long)r->settings->att_bytes);
	return STATUS_OK;
}

static enum status
att_put_read_bytes(struct couch_uploads *u, bool gzip, struct rev_att_edit *ret)
{
	struct couch_req *r = u->r;
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	struct rev_upload *upload;
	struct str piece;
	enum status status;

	TRY(http_ask_memory(r->x, COUCH_UPLOAD_BYTES));
	TRY(couch_upload_begin(u, &ret->att, gzip, &upload));
	while ((status = http_read(r->x, &piece)) == STATUS_OK)
		TRY(couch_upload_write(u, upload, &ret->att, piece));
	if (status == STATUS_INVALID)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "The body of the request is broken.");
	if (status != STATUS_NOT_FOUND)
		return status;
	TRY(couch_upload_end(u, upload, ret, md5));
	return att_put_check_md5(r, md5);
}

static enum status
att_put_body(struct att_call *c, struct couch_uploads *u)
{
	struct couch_req *r = c->r;
	struct str type = http_request_header(r->x, STR("Content-Type"));
	struct rev_att_edit att = {
		.att = { .name = c->name,
			 .type = type.len ? type : STR("application/octet-stream") },
	};
	struct couch_att_change change = { .id = c->id, .news = &att, .news_count = 1 };
	struct rev_id rev;
	bool gzip;

	TRY(att_put_read_names(c));
	change.rev = c->rev;
	TRY(att_put_read_coding(r, &gzip));
	TRY(att_put_check_length(r, c->name));
	TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, att_put_check_target, c));
	TRY(att_put_read_bytes(u, gzip, &att));
	TRY(couch_att_change_run(r, &change, &rev));
	u->taken = true;
	couch_set_location(r, r->parts[0], c->id, c->name);
	couch_set_etag(r, rev);
	return couch_reply_written(r, 201, c->id, rev);
}

enum status
couch_att_put(struct couch_req *r, struct str id, struct str name)
{
	struct att_call c = { .r = r, .id = id, .name = name };
	AUTO(couch_uploads_release) struct couch_uploads uploads;

	couch_uploads_init(&uploads, r);
	return att_put_body(&c, &uploads);
}

/* ---- DELETE ---- */

/* Refuses a deletion that names no revision: 404 if the attachment is not there, 409 if it is. */
static enum status
att_delete_unnamed(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct att_call *c = arg;
	struct rev_id winner;
	struct rev_att att;
	enum status status;

	TRY(couch_look_up_check_id(r, c->id, &r->fail));
	TRY(rev_winner_read(tx, r->db, c->id, r->arena, &winner));
	status = rev_att_read(tx, r->db, c->id, winner, false, c->name, r->arena, &att);
	if (status == STATUS_DELETED)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND,
				      "Document is missing attachment");
	return status == STATUS_OK ? STATUS_DOC_CONFLICT : status;
}

enum status
couch_att_delete(struct couch_req *r, struct str id, struct str name)
{
	struct couch_att_change change = { .id = id, .removed = name };
	struct att_call c = { .r = r, .id = id, .name = name };
	struct rev_id rev;

	TRY(att_put_read_names(&c));
	if (c.rev.pos == 0)
		return couch_db_read(r, COUCH_ACCESS_MEMBER, att_delete_unnamed, &c);
	change.rev = c.rev;
	TRY(couch_att_change_run(r, &change, &rev));
	couch_set_etag(r, rev);
	return couch_reply_written(r, 200, id, rev);
}

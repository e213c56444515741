/* PUT, DELETE and COPY of a document, and POST /{db}. */
#include "door/couch/admin/access.h"
#include "door/couch/admin/tx.h"
#include "door/couch/admin/user_doc.h"
#include "door/couch/doc/att_in.h"
#include "door/couch/doc/design.h"
#include "door/couch/doc/doc_in.h"
#include "door/couch/doc/doc_put.h"
#include "door/couch/doc/edit.h"
#include "door/couch/doc/endpoints.h"
#include "door/couch/doc/local.h"
#include "door/couch/doc/replication_doc.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/multipart.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "door/couch/wire/uuid.h"
#include "http/escape.h"
#include "kv/kv.h"

struct put_call {
	struct couch_req *r;
	struct rev_edit edit;
	struct rev_result result;
	const struct couch_doc *local; /* of a local document that is saved */
};

static enum status
doc_put_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct put_call *c = arg;

	TRY(couch_edit_check_id(r, c->edit.id, &r->fail));
	TRY(couch_design_check(r, tx, c->edit.id));
	if (couch_edit_of_nothing(&c->edit))
		return STATUS_DOC_CONFLICT;
	return couch_edit_write(r, tx, &c->edit, &c->result);
}

static enum status
doc_put_write(struct put_call *c)
{
	TRY(couch_db_write(c->r, COUCH_ACCESS_MEMBER, doc_put_attempt, c));
	couch_user_doc_audit(c->r, c->edit.id);
	return STATUS_OK;
}

static enum status
doc_put_take_rev(struct couch_req *r, struct couch_doc *doc, struct rev_id rev)
{
	doc->rev = rev;
	doc->start = rev.pos;
	doc->history = arena_alloc(r->arena, sizeof(*doc->history));
	if (!doc->history)
		return STATUS_NOMEM;
	doc->history[0] = rev.hash;
	doc->history_count = 1;
	return STATUS_OK;
}

/*
 * Finds the revision to extend in the body, the query or If-Match, which must not contradict each
 * other.
 */
static enum status
doc_put_resolve_rev(struct couch_req *r, struct couch_doc *doc)
{
	struct rev_id query = { 0 };
	struct rev_id tag = { 0 };
	bool has_tag;
	struct str value;
	bool has_query = couch_param(r, "rev", &value);

	if (has_query)
		TRY(couch_rev_parse(value, r->arena, &query, &r->fail));
	TRY(couch_if_match(r, &tag, &has_tag));
	if (doc->history_count && has_query && !rev_id_eq(doc->rev, query))
		return couch_fail_set(
			&r->fail, COUCH_ERROR_BAD_REQUEST,
			"Document rev from request body and query string have different values");
	if (has_tag && ((doc->history_count && !rev_id_eq(doc->rev, tag)) ||
			(has_query && !rev_id_eq(query, tag))))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Document rev and etag have different values");
	if (doc->history_count)
		return STATUS_OK;
	if (has_query)
		return doc_put_take_rev(r, doc, query);
	return has_tag ? doc_put_take_rev(r, doc, tag) : STATUS_OK;
}

/* What a write has read of its request, and holds until it is done. */
struct input {
	struct couch_doc doc;
	struct buf json; /* of a multipart body's first part: the document refers to it */
	bool multipart;
	struct http_multipart parts;
	struct couch_uploads uploads;
};

static void
input_init(struct input *in, struct couch_req *r)
{
	*in = (struct input){ .json = couch_buf(r, r->settings->body_bytes) };
	couch_uploads_init(&in->uploads, r);
}

static void
input_release(struct input *in)
{
	couch_uploads_release(&in->uploads);
	if (in->multipart)
		http_multipart_fini(&in->parts);
	buf_release(&in->json);
}

/* The first part of a multipart/related body is the document. */
static enum status
doc_put_read_first_part(struct couch_req *r, struct input *in)
{
	struct str piece;
	enum status status;

	TRY(http_ask_memory(r->x, COUCH_UPLOAD_BYTES));
	in->multipart = true;
	TRY(couch_multipart_open(&in->parts, r));
	status = http_multipart_next(&in->parts, &r->fail.err);
	if (status == STATUS_NOT_FOUND)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "The multipart body has no parts.");
	TRY(status);
	if (!couch_type_is(http_multipart_header(&in->parts, STR("Content-Type")),
			   STR("application/json")))
		return couch_fail_set(&r->fail, COUCH_ERROR_CONTENT_TYPE,
				      "Content-Type must be application/json");
	while ((status = http_multipart_read(&in->parts, &piece, &r->fail.err)) == STATUS_OK) {
		buf_append_str(&in->json, piece);
		if (buf_status(&in->json) == STATUS_LIMIT)
			return couch_fail_body_bytes(&r->fail, in->json.max_bytes,
						     r->settings->body_bytes);
		TRY(buf_status(&in->json));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Reads a document to be written from the body; its attachments may still be to come. */
static enum status
doc_put_read_doc(struct couch_req *r, struct str id, struct input *in)
{
	struct str body;

	TRY(couch_db_precheck(r));
	if (couch_type_is(http_request_header(r->x, STR("Content-Type")),
			  STR("multipart/related"))) {
		TRY(doc_put_read_first_part(r, in));
		body = buf_str(&in->json);
	} else {
		TRY(couch_read_body(r, r->settings->body_bytes, &body));
	}
	return couch_doc_parse_text(r, body, id, &in->doc);
}

/* Checks that hold for any document, before anything of it is written. */
static enum status
doc_put_check_doc(struct couch_req *r, struct str id, struct couch_doc *doc, bool new_edits)
{
	TRY(couch_doc_hash_password(r, id, doc, &r->fail));
	TRY(couch_replication_doc(r, id, doc, new_edits, &r->fail));
	return doc->deleted ? STATUS_OK : couch_design_validate(r, id, &doc->doc, &r->fail);
}

static enum status
doc_put_load_atts(struct input *in)
{
	return couch_atts_load(&in->uploads, &in->doc, in->multipart ? &in->parts : NULL);
}

static enum status
doc_put_from_input(struct couch_req *r, struct str id, struct input *in)
{
	struct put_call c = { .r = r };
	struct couch_doc *doc = &in->doc;
	struct str value;
	bool new_edits = !couch_param_last(r, "new_edits", &value) || !str_eq(value, STR("false"));
	enum status status;

	TRY(couch_docid_check(id, &r->fail));
	TRY(doc_put_read_doc(r, id, in));
	TRY(doc_put_check_doc(r, id, doc, new_edits));
	TRY(doc_put_resolve_rev(r, doc));
	if (!new_edits && doc->history_count == 0)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "When `new_edits: false`, the document needs `_rev` or "
				      "`_revisions` specified");
	if (!new_edits && doc->rev.pos == 0)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "Invalid rev format");
	TRY(doc_put_load_atts(in));
	c.edit = couch_doc_edit(doc, id, new_edits);
	status = doc_put_write(&c);
	in->uploads.taken = status == STATUS_OK && !c.result.unchanged;
	if (couch_wants_batch(r))
		return couch_reply_batched(r, id, status);
	if (status != STATUS_OK)
		return status;
	couch_set_location(r, r->parts[0], id, (struct str){ NULL, 0 });
	couch_set_etag(r, c.result.rev);
	return couch_reply_written(r, doc->deleted ? 200 : 201, id, c.result.rev);
}

enum status
couch_doc_put(struct couch_req *r, struct str id)
{
	AUTO(input_release) struct input in;

	input_init(&in, r);
	return doc_put_from_input(r, id, &in);
}

static enum status
doc_post_from_input(struct couch_req *r, struct input *in)
{
	struct put_call c = { .r = r };
	struct couch_doc *doc = &in->doc;
	enum status status;

	TRY(couch_db_require_json(r));
	TRY(doc_put_read_doc(r, (struct str){ NULL, 0 }, in));
	if (doc->id.ptr && couch_is_local(doc->id))
		return couch_local_save(r, doc->id, doc);
	if (!doc->id.ptr) {
		/* A document with a new id has no revision to extend. */
		doc->rev = (struct rev_id){ 0 };
		doc->history_count = 0;
		doc->id = couch_docid_new(r->settings, r->arena);
		if (!doc->id.ptr)
			return STATUS_NOMEM;
	}
	TRY(doc_put_check_doc(r, doc->id, doc, true));
	TRY(doc_put_load_atts(in));
	c.edit = couch_doc_edit(doc, doc->id, true);
	status = doc_put_write(&c);
	in->uploads.taken = status == STATUS_OK;
	if (couch_wants_batch(r))
		return couch_reply_batched(r, doc->id, status);
	if (status != STATUS_OK)
		return status;
	couch_set_location(r, r->parts[0], doc->id, (struct str){ NULL, 0 });
	return couch_reply_written(r, 201, doc->id, c.result.rev);
}

/* ---- A document that the server has made ---- */

static enum status
doc_save_local_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct put_call *c = arg;

	return couch_local_write(r, tx, c->edit.id, c->local, &c->result.rev);
}

enum status
couch_doc_save(struct couch_req *r, struct couch_doc *doc, struct rev_id *ret_rev)
{
	struct put_call c = { .r = r, .edit = { .id = doc->id }, .local = doc };
	struct couch_uploads uploads;
	enum status status;

	if (couch_is_local(doc->id)) {
		status = couch_db_write(r, COUCH_ACCESS_MEMBER, doc_save_local_attempt, &c);
		*ret_rev = c.result.rev;
		return status;
	}
	TRY(doc_put_check_doc(r, doc->id, doc, true));
	couch_uploads_init(&uploads, r);
	status = couch_atts_load(&uploads, doc, NULL);
	if (status == STATUS_OK) {
		c.edit = couch_doc_edit(doc, doc->id, true);
		status = doc_put_write(&c);
	}
	uploads.taken = status == STATUS_OK;
	couch_uploads_release(&uploads);
	*ret_rev = c.result.rev;
	return status;
}

enum status
couch_db_post(struct couch_req *r)
{
	AUTO(input_release) struct input in;

	input_init(&in, r);
	return doc_post_from_input(r, &in);
}

/* ---- DELETE ---- */

/*
 * Deletes, and explains a refusal: 404 for a document that is unknown or deleted, 409 for a live
 * one.
 */
static enum status
doc_delete_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct put_call *c = arg;
	struct rev_id winner;
	enum status status = STATUS_DOC_CONFLICT;

	TRY(couch_edit_check_id(r, c->edit.id, &r->fail));
	if (c->edit.parent.pos)
		status = doc_put_attempt(r, tx, c);
	if (status != STATUS_DOC_CONFLICT)
		return status;
	TRY(rev_winner_read(tx, r->db, c->edit.id, r->arena, &winner));
	return status;
}

enum status
couch_doc_delete(struct couch_req *r, struct str id)
{
	struct put_call c = { .r = r };
	struct couch_doc doc;
	enum status status;

	TRY(couch_docid_check(id, &r->fail));
	TRY(couch_doc_parse_text(r, STR("{\"_deleted\":true}"), id, &doc));
	TRY(doc_put_resolve_rev(r, &doc));
	c.edit = couch_doc_edit(&doc, id, true);
	status = couch_db_write(r, COUCH_ACCESS_MEMBER, doc_delete_attempt, &c);
	if (status != STATUS_OK)
		return status;
	couch_user_doc_audit(r, id);
	couch_set_etag(r, c.result.rev);
	return couch_reply_written(r, 200, id, c.result.rev);
}

/* ---- COPY ---- */

struct copy_call {
	struct couch_req *r;
	struct str source;
	bool has_source_rev; /* else the winner is copied */
	struct rev_id source_rev;
	struct str target;
	bool has_target_rev;
	struct rev_id target_rev; /* pos 0: a new document, or a local one */
	struct buf text;
	struct rev_result result;
};

/* Reads the source. Its attachments are shared: both documents point to the same data. */
static enum status
doc_copy_read(struct copy_call *c, struct kv_tx *tx, struct couch_doc *ret)
{
	struct couch_req *r = c->r;
	struct rev_doc doc;
	uint64_t n;

	if (couch_is_local(c->source))
		TRY(rev_local_get(tx, r->db, c->source, r->arena, &n, &doc));
	else if (c->has_source_rev)
		TRY(rev_doc_read_head(tx, r->db, c->source, c->source_rev, false, r->arena, &doc));
	else
		TRY(rev_doc_read(tx, r->db, c->source, r->arena, &doc));
	TRY(couch_doc_reparse(r, &doc, c->target, &c->text, ret));
	ret->att_edits = arena_alloc(r->arena, (doc.atts_count + 1) * sizeof(*ret->att_edits));
	if (!ret->att_edits)
		return STATUS_LIMIT;
	for (size_t i = 0; i < doc.atts_count; i++)
		ret->att_edits[i] = (struct rev_att_edit){ .source = REV_ATT_SHARED,
							   .att = doc.atts[i] };
	ret->atts_count = doc.atts_count;
	return STATUS_OK;
}

static enum status
doc_copy_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct copy_call *c = arg;
	struct couch_doc doc;
	struct rev_edit edit;

	TRY(couch_edit_check_id(r, c->target, &r->fail));
	TRY(couch_look_up_check_id(r, c->source, &r->fail));
	TRY(couch_design_check(r, tx, c->target));
	TRY(doc_copy_read(c, tx, &doc));
	if (couch_is_local(c->target)) {
		doc.rev = c->target_rev;
		doc.history_count = c->has_target_rev;
		return couch_local_write(r, tx, c->target, &doc, &c->result.rev);
	}
	TRY(doc_put_check_doc(r, c->target, &doc, true));
	edit = couch_doc_edit(&doc, c->target, true);
	edit.parent = c->target_rev;
	return couch_edit_write(r, tx, &edit, &c->result);
}

/* The Destination header: a relative id, perhaps with ?rev= behind it. */
static enum status
doc_copy_parse_destination(struct copy_call *c)
{
	struct couch_req *r = c->r;
	struct str value = http_request_header(r->x, STR("Destination"));
	const char *question;

	if (!value.ptr)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Destination header is mandatory for COPY.");
	if (str_starts_with(value, STR("http://")) || str_starts_with(value, STR("https://")))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Destination URL must be relative.");
	question = value.len ? memchr(value.ptr, '?', value.len) : NULL;
	if (question) {
		struct str query = str_skip(value, (size_t)(question - value.ptr) + 1);

		value.len = (size_t)(question - value.ptr);
		if (!str_starts_with(query, STR("rev=")))
			return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
					      "Destination may be followed by ?rev= only.");
		TRY(couch_rev_parse(str_skip(query, 4), r->arena, &c->target_rev, &r->fail));
		c->has_target_rev = true;
	}
	if (http_unescape(value, true, r->arena, &c->target) != STATUS_OK)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Destination has a broken %%-escape.");
	return couch_docid_check(c->target, &r->fail);
}

enum status
couch_doc_copy(struct couch_req *r, struct str id)
{
	struct copy_call c = { .r = r, .source = id };
	struct couch_doc source = { .id = { NULL, 0 } };
	enum status status;

	TRY(couch_docid_check(id, &r->fail));
	TRY(doc_put_resolve_rev(r, &source));
	c.has_source_rev = source.history_count > 0;
	c.source_rev = source.rev;
	TRY(doc_copy_parse_destination(&c));
	c.text = couch_buf(r, COUCH_ROW_BYTES);
	status = couch_db_write(r, COUCH_ACCESS_MEMBER, doc_copy_attempt, &c);
	buf_release(&c.text);
	if (status != STATUS_OK)
		return status;
	couch_user_doc_audit(r, c.target);
	couch_set_location(r, r->parts[0], c.target, (struct str){ NULL, 0 });
	couch_set_etag(r, c.result.rev);
	return couch_reply_written(r, 201, c.target, c.result.rev);
}

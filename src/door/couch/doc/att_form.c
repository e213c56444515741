/*
 * POST of a form (multipart/form-data, RFC 7578) to a document, as browsers send files: fields _rev
 * and _doc, and each file in a field _attachments.
 */
#include "door/couch/admin/tx.h"
#include "door/couch/doc/att_in.h"
#include "door/couch/doc/att_put.h"
#include "door/couch/doc/design.h"
#include "door/couch/doc/doc_in.h"
#include "door/couch/doc/endpoints.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/multipart.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "http/field.h"

enum {
	FORM_FILES = 1000,
};

struct form {
	struct couch_req *r;
	struct http_multipart parts;
	struct couch_uploads uploads;
	struct couch_att_change change;
	struct rev_att_edit *files;
	size_t files_cap;
	struct str rev; /* ptr NULL: none */
	struct str doc;
	struct couch_doc parsed;
};

/* A field that is text, in the arena. */
static enum status
form_read_text(struct form *f, struct str *ret)
{
	struct couch_req *r = f->r;
	struct buf AUTO(buf_release) text = couch_buf(r, r->settings->body_bytes);
	struct str piece;
	enum status status;

	while ((status = http_multipart_read(&f->parts, &piece, &r->fail.err)) == STATUS_OK) {
		buf_append_str(&text, piece);
		if (buf_status(&text) == STATUS_LIMIT)
			return couch_fail_body_bytes(&r->fail, text.max_bytes,
						     r->settings->body_bytes);
		TRY(buf_status(&text));
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	return arena_copy(r->arena, buf_str(&text), ret);
}

static enum status
form_read_file(struct form *f, struct str name, struct str type)
{
	struct couch_req *r = f->r;
	struct rev_att_edit file = { 0 };
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	struct rev_upload *upload;
	struct str piece;
	enum status status;

	if (f->change.news_count == FORM_FILES)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "A form has at most %d files.", FORM_FILES);
	file.att.name = name;
	TRY(arena_copy(r->arena, type.len ? type : STR("application/octet-stream"),
		       &file.att.type));
	TRY(couch_att_name_check(r, file.att.name));
	TRY(couch_upload_begin(&f->uploads, &file.att, false, &upload));
	while ((status = http_multipart_read(&f->parts, &piece, &r->fail.err)) == STATUS_OK)
		TRY(couch_upload_write(&f->uploads, upload, &file.att, piece));
	if (status != STATUS_NOT_FOUND)
		return status;
	TRY(couch_upload_end(&f->uploads, upload, &file, md5));
	TRY(arena_room(r->arena, &f->files, f->change.news_count, &f->files_cap,
		       sizeof(*f->files)));
	f->files[f->change.news_count++] = file;
	return STATUS_OK;
}

/* A parameter of the field's Content-Disposition, in the arena; empty if there is none. */
static enum status
form_read_param(struct form *f, struct str name, struct str *ret)
{
	struct str disposition = http_multipart_header(&f->parts, STR("Content-Disposition"));
	struct buf AUTO(buf_release) plain = BUF_SHORT(HTTP_PART_HEAD_BYTES);
	struct str written = { "", 0 };

	(void)http_field_param(disposition, name, &written);
	http_unquote(written, &plain);
	return buf_copy(&plain, f->r->arena, ret);
}

static enum status
form_read_field(struct form *f)
{
	struct str field;
	struct str file;

	TRY(form_read_param(f, STR("name"), &field));
	TRY(form_read_param(f, STR("filename"), &file));
	if (str_eq(field, STR("_rev")))
		return form_read_text(f, &f->rev);
	if (str_eq(field, STR("_doc")))
		return form_read_text(f, &f->doc);
	/* A browser sends an empty name if no file was chosen. */
	if (str_eq(field, STR("_attachments")) && file.len)
		return form_read_file(f, file,
				      http_multipart_header(&f->parts, STR("Content-Type")));
	return STATUS_OK;
}

static enum status
form_read_fields(struct form *f)
{
	enum status status;

	while ((status = http_multipart_next(&f->parts, &f->r->fail.err)) == STATUS_OK)
		TRY(form_read_field(f));
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Reads which revision the files are for, and which body it gets: the form's, or the stored one. */
static enum status
form_read_target(struct form *f)
{
	struct couch_req *r = f->r;

	if (f->doc.ptr) {
		TRY(couch_doc_parse_text(r, f->doc, f->change.id, &f->parsed));
		TRY(couch_doc_check_password(r, &f->parsed.doc, &r->fail));
		if (!f->parsed.deleted)
			TRY(couch_design_validate(r, f->change.id, &f->parsed.doc, &r->fail));
		TRY(couch_atts_load(&f->uploads, &f->parsed, NULL));
		f->change.doc = &f->parsed;
		f->change.rev = f->parsed.rev;
	}
	if (f->rev.len)
		TRY(couch_rev_parse(f->rev, r->arena, &f->change.rev, &r->fail));
	return STATUS_OK;
}

/*
 * A page of any server can make a browser send a form here, with the user's cookies. So only a form
 * of this server's own pages is taken, as in CouchDB.
 */
static enum status
form_check_referer(struct couch_req *r)
{
	struct str referer = http_request_header(r->x, STR("Referer"));
	struct str host = couch_host(r);
	const char *slash;

	if (!referer.ptr)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Referer header required.");
	if (str_starts_with(referer, STR("https://")))
		referer = str_skip(referer, 8);
	else if (str_starts_with(referer, STR("http://")))
		referer = str_skip(referer, 7);
	else
		referer.len = 0;
	slash = referer.len ? memchr(referer.ptr, '/', referer.len) : NULL;
	if (slash)
		referer.len = (size_t)(slash - referer.ptr);
	if (referer.len == 0 || !str_eq_nocase(referer, host))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Referer header must match host.");
	return STATUS_OK;
}

static enum status
form_post(struct form *f)
{
	struct couch_req *r = f->r;
	struct rev_id rev;

	TRY(couch_docid_check(f->change.id, &r->fail));
	TRY(form_check_referer(r));
	if (!couch_type_is(http_request_header(r->x, STR("Content-Type")),
			   STR("multipart/form-data")))
		return couch_fail_set(&r->fail, COUCH_ERROR_CONTENT_TYPE,
				      "Content-Type must be multipart/form-data");
	TRY(couch_db_ensure(r));
	TRY(couch_multipart_open(&f->parts, r));
	TRY(form_read_fields(f));
	TRY(form_read_target(f));
	f->change.news = f->files;
	TRY(couch_att_change_run(r, &f->change, &rev));
	f->uploads.taken = true;
	couch_set_etag(r, rev);
	return couch_reply_written(r, 201, f->change.id, rev);
}

enum status
couch_doc_form(struct couch_req *r, struct str id)
{
	struct form f = { .r = r, .change.id = id };
	enum status status;

	couch_uploads_init(&f.uploads, r);
	status = form_post(&f);
	http_multipart_fini(&f.parts);
	couch_uploads_release(&f.uploads);
	return status;
}

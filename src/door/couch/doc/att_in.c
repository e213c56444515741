/* Attachments that come in: the members of _attachments, and the bytes that belong to them. */
#include <assert.h>

#include "base/clock.h"
#include "base/quote.h"
#include "door/couch/admin/tx.h"
#include "door/couch/doc/att_in.h"
#include "door/couch/doc/doc_in.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/multipart.h"
#include "door/couch/wire/request.h"
#include "model/revisioned/att_json.h"
#include "model/revisioned/body.h"

enum {
	TOUCH_MS = 60 * 1000, /* between two times that waiting uploads are touched */
};

enum status
couch_missing_stub(struct str id, struct str name, struct couch_fail *fail)
{
	return couch_fail_set(fail, COUCH_ERROR_MISSING_STUB,
			      "Invalid attachment stub in %s for %s", QUOTE_SHOW(id),
			      QUOTE_SHOW(name));
}

/* ---- Uploads ---- */

void
couch_uploads_init(struct couch_uploads *u, struct couch_req *r)
{
	*u = (struct couch_uploads){ .r = r, .touched_ns = clock_mono_ns() };
}

void
couch_uploads_release(struct couch_uploads *u)
{
	for (size_t i = 0; i < u->count; i++)
		rev_upload_free(u->items[i], u->taken);
	u->count = 0;
}

enum status
couch_upload_begin(struct couch_uploads *u, const struct rev_att *att, bool gzip,
		   struct rev_upload **ret)
{
	struct couch_req *r = u->r;
	const struct couch_settings *settings = r->settings;
	bool compress = !gzip && settings->gzip_level > 0 &&
			rev_att_type_in(att->type, str_from_cstr(settings->gzip_types));
	const struct rev_upload_options options = {
		.store = r->couch->config.store,
		.db = r->db,
		.gzip_level = compress ? (int)settings->gzip_level : 0,
		.max_bytes = settings->att_bytes,
		.memory_bytes = COUCH_ATTS_MEMORY_BYTES - u->memory,
		.stored_gzip = gzip,
		.part = http_memory(r->x),
	};

	/* Uploads are stored beside the database's documents, so it must be open. */
	assert(r->db);
	TRY(arena_room(r->arena, &u->items, u->count, &u->cap, sizeof(struct rev_upload *)));
	TRY(rev_att_type_check(att->type, &r->fail.err));
	TRY(rev_upload_new(&options, ret));
	u->items[u->count++] = *ret;
	return STATUS_OK;
}

/*
 * Touches all uploads now and then. While one attachment comes in slowly, the sweep must not take
 * those before it for abandoned ones.
 */
static enum status
uploads_touch(struct couch_uploads *u)
{
	if (clock_mono_ns() - u->touched_ns < TOUCH_MS * CLOCK_NS_PER_MS)
		return STATUS_OK;
	u->touched_ns = clock_mono_ns();
	for (size_t i = 0; i < u->count; i++)
		TRY(rev_upload_touch(u->items[i], &u->r->fail.err));
	return STATUS_OK;
}

static enum status
att_in_too_large(struct couch_req *r, const struct rev_att *att)
{
	return couch_fail_set(&r->fail, COUCH_ERROR_ATT_TOO_LARGE, "%s: the limit is %llu bytes",
			      QUOTE_SHOW(att->name), (unsigned long long)r->settings->att_bytes);
}

enum status
couch_upload_write(struct couch_uploads *u, struct rev_upload *upload, const struct rev_att *att,
		   struct str data)
{
	enum status status;

	TRY(uploads_touch(u));
	status = rev_upload_write(upload, data, &u->r->fail.err);
	return status == STATUS_LIMIT ? att_in_too_large(u->r, att) : status;
}

enum status
couch_upload_end(struct couch_uploads *u, struct rev_upload *upload, struct rev_att_edit *ret,
		 uint8_t ret_md5[REV_ATT_DIGEST_BYTES])
{
	TRY(rev_upload_finish(upload, ret, ret_md5, &u->r->fail.err));
	u->memory += ret->data.len;
	return STATUS_OK;
}

static enum status
att_in_load_inline(struct couch_uploads *u, struct rev_att_json *att)
{
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	struct rev_upload *upload;
	enum status status;

	TRY(couch_upload_begin(u, &att->edit.att, false, &upload));
	status = rev_att_inline(att, upload, &u->r->fail.err);
	if (status == STATUS_LIMIT)
		return att_in_too_large(u->r, &att->edit.att);
	TRY(status);
	TRY(uploads_touch(u));
	return couch_upload_end(u, upload, &att->edit, md5);
}

/* ---- What follows ---- */

static enum status
att_in_wrong_length(struct couch_req *r, const char *how)
{
	return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "attachment %s than expected",
			      how);
}

static enum status
att_in_load_part(struct couch_uploads *u, struct rev_att_json *att, struct http_multipart *parts)
{
	const struct rev_att said = att->edit.att;
	struct couch_req *r = u->r;
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	struct rev_upload *upload;
	struct str piece;
	uint64_t bytes = 0;
	enum status status = http_multipart_next(parts, &r->fail.err);

	if (status == STATUS_NOT_FOUND)
		return att_in_wrong_length(r, "shorter");
	TRY(status);
	if (att->has_length && r->settings->att_bytes &&
	    said.encoded_length > r->settings->att_bytes)
		return att_in_too_large(r, &said);
	TRY(couch_upload_begin(u, &said, said.encoding == REV_ATT_GZIP, &upload));
	while ((status = http_multipart_read(parts, &piece, &r->fail.err)) == STATUS_OK) {
		bytes += piece.len;
		if (att->has_length && bytes > said.encoded_length)
			return att_in_wrong_length(r, "longer");
		TRY(couch_upload_write(u, upload, &said, piece));
	}
	if (status != STATUS_NOT_FOUND)
		return parts->cut_off && att->has_length ? att_in_wrong_length(r, "shorter")
							 : status;
	if (att->has_length && bytes < said.encoded_length)
		return att_in_wrong_length(r, "shorter");
	TRY(couch_upload_end(u, upload, &att->edit, md5));
	if (att->has_digest && memcmp(md5, said.digest, sizeof(md5)) != 0)
		return couch_fail_set(&r->fail, COUCH_ERROR_MD5, "Possible message corruption.");
	/* Only the client knows how long it is when it is inflated. */
	if (said.encoding == REV_ATT_GZIP)
		att->edit.att.length = said.length;
	return STATUS_OK;
}

static enum status
att_in_load(struct couch_uploads *u, struct rev_att_json *att, struct http_multipart *parts)
{
	switch (att->kind) {
	case REV_ATT_KIND_STUB:
		return STATUS_OK;
	case REV_ATT_KIND_INLINE:
		return att_in_load_inline(u, att);
	case REV_ATT_KIND_FOLLOWS:
		break;
	}
	if (!parts)
		return couch_fail_set(&u->r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Attachment %s is said to follow, and nothing does.",
				      QUOTE_SHOW(att->edit.att.name));
	return att_in_load_part(u, att, parts);
}

/*
 * Stores a long body ahead, beside which its revision's transaction would not have room for
 * attachments or other documents. A local document's is written by its transaction alone.
 */
static enum status
att_in_stage_body(struct couch_uploads *u, struct couch_doc *doc)
{
	struct couch_req *r = u->r;
	struct rev_upload *upload;
	struct rev_text *text;

	if (doc->doc.json_bytes <= REV_TEXT_AHEAD_BYTES || (doc->id.ptr && couch_is_local(doc->id)))
		return STATUS_OK;
	TRY(couch_db_ensure(r));
	TRY(arena_room(r->arena, &u->items, u->count, &u->cap, sizeof(struct rev_upload *)));
	text = arena_alloc(r->arena, sizeof(*text));
	if (!text)
		return STATUS_LIMIT;
	TRY(rev_text_stage(r->couch->config.store, r->db, doc->id.ptr ? doc->id : STR(""),
			   &doc->doc, r->arena, text, &upload, &r->fail.err));
	if (!upload)
		return STATUS_OK;
	u->items[u->count++] = upload;
	doc->stored = text;
	return STATUS_OK;
}

enum status
couch_atts_load(struct couch_uploads *u, struct couch_doc *doc, struct http_multipart *parts)
{
	struct couch_req *r = u->r;

	TRY(att_in_stage_body(u, doc));
	if (doc->atts_count == 0)
		return STATUS_OK;
	TRY(couch_db_ensure(r));
	u->memory = 0;
	doc->att_edits = arena_alloc(r->arena, doc->atts_count * sizeof(*doc->att_edits));
	if (!doc->att_edits)
		return STATUS_LIMIT;
	for (size_t i = 0; i < doc->atts_count; i++) {
		TRY(att_in_load(u, &doc->atts[i], parts));
		doc->att_edits[i] = doc->atts[i].edit;
	}
	return STATUS_OK;
}

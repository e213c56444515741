/* Attachments on their way in: the members of _attachments, and the bytes that they promise. */
#include "base/clock.h"
#include "door/couch/att.h"

enum {
	TOUCH_MS = 60 * 1000, /* between two looks at whether uploads need a sign of life */
};

enum status
couch_missing_stub(struct str id, struct str name, struct couch_fail *fail)
{
	return couch_fail_set(fail, COUCH_ERROR_MISSING_STUB,
			      "Invalid attachment stub in %.*s for %.*s", STR_ARG(id),
			      STR_ARG(name));
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
	const struct couch_config *config = &r->settings->door;
	bool compress = !gzip && config->gzip_level > 0 &&
			rev_att_type_in(att->type, str_from_cstr(config->gzip_types));
	const struct rev_upload_options options = {
		.store = config->store,
		.db = r->db,
		.gzip_level = compress ? config->gzip_level : 0,
		.max_bytes = config->att_bytes,
		.memory_bytes = COUCH_ATTS_MEMORY_BYTES - u->memory,
		.stored_gzip = gzip,
	};
	struct rev_upload **grown = arena_grow(r->arena, u->items, u->count, &u->cap,
					       sizeof(struct rev_upload *));

	if (!grown)
		return STATUS_LIMIT;
	u->items = grown;
	TRY(rev_att_type_check(att->type, &r->fail.err));
	TRY(rev_upload_new(&options, ret));
	u->items[u->count++] = *ret;
	return STATUS_OK;
}

/* While one attachment comes slowly, those before it must not seem to be forgotten. */
static enum status
touch_all(struct couch_uploads *u)
{
	if (clock_mono_ns() - u->touched_ns < TOUCH_MS * CLOCK_NS_PER_MS)
		return STATUS_OK;
	u->touched_ns = clock_mono_ns();
	for (size_t i = 0; i < u->count; i++)
		TRY(rev_upload_touch(u->items[i], &u->r->fail.err));
	return STATUS_OK;
}

static enum status
too_large(struct couch_req *r, const struct rev_att *att)
{
	return couch_fail_set(&r->fail, COUCH_ERROR_ATT_TOO_LARGE, "%.*s: the limit is %llu bytes",
			      STR_ARG(att->name), (unsigned long long)r->settings->door.att_bytes);
}

enum status
couch_upload_write(struct couch_uploads *u, struct rev_upload *upload, const struct rev_att *att,
		   struct str data)
{
	enum status status;

	TRY(touch_all(u));
	status = rev_upload_write(upload, data, &u->r->fail.err);
	return status == STATUS_LIMIT ? too_large(u->r, att) : status;
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
load_inline(struct couch_uploads *u, struct rev_att_json *att)
{
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	struct rev_upload *upload;
	enum status status;

	TRY(couch_upload_begin(u, &att->edit.att, false, &upload));
	status = rev_att_inline(att, upload, &u->r->fail.err);
	if (status == STATUS_LIMIT)
		return too_large(u->r, &att->edit.att);
	TRY(status);
	TRY(touch_all(u));
	return couch_upload_end(u, upload, &att->edit, md5);
}

/* ---- What follows ---- */

static enum status
wrong_length(struct couch_req *r, const char *how)
{
	return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "attachment %s than expected",
			      how);
}

static enum status
load_part(struct couch_uploads *u, struct rev_att_json *att, struct couch_multipart *parts)
{
	const struct rev_att said = att->edit.att;
	struct couch_req *r = u->r;
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	struct rev_upload *upload;
	struct str piece;
	uint64_t bytes = 0;
	enum status status = couch_multipart_next(parts, &piece);

	if (status == STATUS_NOT_FOUND)
		return wrong_length(r, "shorter");
	TRY(status);
	if (att->has_length && r->settings->door.att_bytes &&
	    said.encoded_length > r->settings->door.att_bytes)
		return too_large(r, &said);
	TRY(couch_upload_begin(u, &said, said.encoding == REV_ATT_GZIP, &upload));
	while ((status = couch_multipart_read(parts, &piece)) == STATUS_OK) {
		bytes += piece.len;
		if (att->has_length && bytes > said.encoded_length)
			return wrong_length(r, "longer");
		TRY(couch_upload_write(u, upload, &said, piece));
	}
	if (status != STATUS_NOT_FOUND)
		return parts->broken && att->has_length ? wrong_length(r, "shorter") : status;
	if (att->has_length && bytes < said.encoded_length)
		return wrong_length(r, "shorter");
	TRY(couch_upload_end(u, upload, &att->edit, md5));
	if (att->has_digest && memcmp(md5, said.digest, sizeof(md5)) != 0)
		return couch_fail_set(&r->fail, COUCH_ERROR_MD5, "Possible message corruption.");
	/* How long it is when it is unpacked only its sender knows. */
	if (said.encoding == REV_ATT_GZIP)
		att->edit.att.length = said.length;
	return STATUS_OK;
}

static enum status
load_one(struct couch_uploads *u, struct rev_att_json *att, struct couch_multipart *parts)
{
	switch (att->kind) {
	case REV_ATT_KIND_STUB:
		return STATUS_OK;
	case REV_ATT_KIND_INLINE:
		return load_inline(u, att);
	case REV_ATT_KIND_FOLLOWS:
		break;
	}
	if (!parts)
		return couch_fail_set(&u->r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Attachment %.*s is said to follow, and nothing does.",
				      STR_ARG(att->edit.att.name));
	return load_part(u, att, parts);
}

enum status
couch_atts_load(struct couch_uploads *u, struct couch_doc *doc, struct couch_multipart *parts)
{
	struct couch_req *r = u->r;

	if (doc->atts_count == 0)
		return STATUS_OK;
	TRY(couch_db_ensure(r));
	u->memory = 0;
	doc->att_edits = arena_alloc(r->arena, doc->atts_count * sizeof(*doc->att_edits));
	if (!doc->att_edits)
		return STATUS_LIMIT;
	for (size_t i = 0; i < doc->atts_count; i++) {
		TRY(load_one(u, &doc->atts[i], parts));
		doc->att_edits[i] = doc->atts[i].edit;
	}
	return STATUS_OK;
}

/* Attachments on their way in: the members of _attachments, and the bytes that they promise. */
#include <fnmatch.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/wait.h"
#include "door/couch/att.h"

enum {
	TOUCH_MS = 60 * 1000, /* between two looks at whether uploads need a sign of life */
};

/* ---- _attachments ---- */

enum status
couch_att_name_check(struct str name, struct couch_fail *fail)
{
	if (name.len && name.ptr[0] == '_')
		return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST,
				      "Attachment name '%.*s' starts with prohibited character '_'",
				      STR_ARG(name));
	return STATUS_OK;
}

enum status
couch_missing_stub(struct str id, struct str name, struct couch_fail *fail)
{
	return couch_fail_set(fail, COUCH_ERROR_MISSING_STUB,
			      "Invalid attachment stub in %.*s for %.*s", STR_ARG(id),
			      STR_ARG(name));
}

/* A type becomes a header: nothing that would end it there. */
static enum status
check_type(struct str type, struct couch_fail *fail)
{
	if (type.len > REV_ATT_TYPE_BYTES)
		return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST,
				      "An attachment's content type is longer than %d bytes.",
				      REV_ATT_TYPE_BYTES);
	for (size_t i = 0; i < type.len; i++)
		if ((uint8_t)type.ptr[i] < ' ' || type.ptr[i] == 0x7f)
			return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST,
					      "An attachment's content type has control "
					      "characters.");
	return STATUS_OK;
}

static enum status
bad_member(const struct couch_att *att, const char *name, struct couch_fail *fail)
{
	return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST,
			      "Attachment %.*s: \"%s\" makes no sense.",
			      STR_ARG(att->edit.att.name), name);
}

/* "md5-…" with 16 bytes; another digest is not looked at, as in CouchDB. */
static void
take_digest(struct str text, struct couch_att *att)
{
	struct buf AUTO(buf_release) raw = BUF_INIT(64);

	if (!str_starts_with(text, STR("md5-")) ||
	    base64_decode(&raw, str_skip(text, 4), BASE64_STANDARD) != STATUS_OK ||
	    raw.len != REV_ATT_DIGEST_BYTES)
		return;
	memcpy(att->edit.att.digest, raw.ptr, REV_ATT_DIGEST_BYTES);
	att->has_digest = true;
}

/* What the members of one attachment say before it is known what they are for. */
struct described {
	bool stub;
	bool follows;
	bool has_length;
	bool has_encoded_length;
	bool gzip;
	uint64_t length;
	uint64_t encoded_length;
};

static enum status
take_number(struct json_reader *r, enum json_token token, const struct couch_att *att,
	    const char *name, bool *ret_has, uint64_t *ret, struct couch_fail *fail)
{
	if (token != JSON_NUMBER || !r->is_integer || !str_to_u64(r->text, ret) || *ret > INT64_MAX)
		return bad_member(att, name, fail);
	*ret_has = true;
	return STATUS_OK;
}

static enum status
take_text(struct couch_req *r, struct json_reader *reader, const struct couch_att *att,
	  const char *name, struct str *ret, struct couch_fail *fail)
{
	*ret = arena_dup(r->arena, reader->text);
	if (!ret->ptr)
		return STATUS_LIMIT;
	return memchr(ret->ptr, '\0', ret->len) ? bad_member(att, name, fail) : STATUS_OK;
}

/* One member; its value's first token has been read, and is the last if it is no container. */
static enum status
take_member(struct couch_req *r, struct json_reader *reader, struct str name, enum json_token token,
	    struct couch_att *att, struct described *d, struct couch_fail *fail)
{
	struct rev_att *a = &att->edit.att;

	if (str_eq(name, STR("stub")))
		d->stub = token == JSON_TRUE;
	else if (str_eq(name, STR("follows")))
		d->follows = token == JSON_TRUE;
	else if (str_eq(name, STR("revpos")))
		return take_number(reader, token, att, "revpos", &att->edit.has_revpos, &a->revpos,
				   fail);
	else if (str_eq(name, STR("length")))
		return take_number(reader, token, att, "length", &d->has_length, &d->length, fail);
	else if (str_eq(name, STR("encoded_length")))
		return take_number(reader, token, att, "encoded_length", &d->has_encoded_length,
				   &d->encoded_length, fail);
	else if (token != JSON_STRING)
		return STATUS_OK;
	else if (str_eq(name, STR("content_type")))
		return take_text(r, reader, att, "content_type", &a->type, fail);
	else if (str_eq(name, STR("digest")))
		take_digest(reader->text, att);
	else if (str_eq(name, STR("encoding")) && !str_eq(reader->text, STR("identity"))) {
		if (!str_eq(reader->text, STR("gzip")))
			return bad_member(att, "encoding", fail);
		d->gzip = true;
	}
	return STATUS_OK;
}

static enum status
take_described(struct couch_att *att, const struct described *d, struct couch_fail *fail)
{
	struct rev_att *a = &att->edit.att;

	TRY(couch_att_name_check(a->name, fail));
	TRY(check_type(a->type, fail));
	if (d->stub) {
		att->kind = COUCH_ATT_STUB;
		att->edit.source = REV_ATT_STUB;
		return STATUS_OK;
	}
	if (!d->follows) {
		att->kind = COUCH_ATT_INLINE;
		if (!att->data.ptr)
			return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST,
					      "Invalid attachment data for %.*s", STR_ARG(a->name));
		return STATUS_OK;
	}
	att->kind = COUCH_ATT_FOLLOWS;
	a->encoding = d->gzip ? REV_ATT_GZIP : REV_ATT_IDENTITY;
	a->length = d->length;
	a->encoded_length = d->gzip && d->has_encoded_length ? d->encoded_length : d->length;
	att->has_length = d->has_length || (d->gzip && d->has_encoded_length);
	return STATUS_OK;
}

/* The object of one attachment, whose opening brace has been read. */
static enum status
parse_att(struct couch_req *r, struct json_reader *reader, struct couch_att *att,
	  struct couch_fail *fail)
{
	struct described d = { 0 };

	for (;;) {
		char name[32];
		size_t name_len;
		enum json_token token;
		struct str text;

		TRY(json_next(reader, &token));
		if (token == JSON_OBJECT_END)
			return take_described(att, &d, fail);
		name_len = reader->text.len < sizeof(name) ? reader->text.len : 0;
		memcpy(name, reader->text.ptr, name_len);
		TRY(json_next(reader, &token));
		TRY(take_member(r, reader, str_of(name, name_len), token, att, &d, fail));
		TRY(json_skip(reader, token, &text));
		if (token == JSON_STRING && str_eq(str_of(name, name_len), STR("data")))
			att->data = text;
	}
}

static enum status
check_distinct(const struct couch_doc *doc, struct couch_fail *fail)
{
	/* Few as a rule; the model refuses doubles among thousands. */
	for (size_t i = 1; i < doc->atts_count && i < 100; i++)
		for (size_t j = 0; j < i; j++)
			if (str_eq(doc->atts[i].edit.att.name, doc->atts[j].edit.att.name))
				return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST,
						      "Duplicate attachments");
	return STATUS_OK;
}

enum status
couch_atts_parse(struct couch_req *r, struct str text, struct couch_doc *ret,
		 struct couch_fail *fail)
{
	struct json_reader AUTO(json_reader_release) reader;
	enum json_token token;
	size_t cap = 0;

	ret->atts = NULL;
	ret->atts_count = 0;
	json_reader_init(&reader, text, &fail->err);
	TRY(json_next(&reader, &token));
	for (;;) {
		struct couch_att *att;

		TRY(json_next(&reader, &token));
		if (token == JSON_OBJECT_END)
			return check_distinct(ret, fail);
		if (ret->atts_count == REV_ATTS_MAX)
			return couch_fail_set(fail, COUCH_ERROR_DOC_TOO_LARGE,
					      "A document has at most %d attachments.",
					      REV_ATTS_MAX);
		att = couch_grow(r->arena, ret->atts, ret->atts_count, &cap, sizeof(*ret->atts));
		if (!att)
			return STATUS_LIMIT;
		ret->atts = att;
		att += ret->atts_count++;
		*att = (struct couch_att){
			.edit.att = { .name = arena_dup(r->arena, reader.text),
				      .type = STR("application/octet-stream") },
		};
		if (!att->edit.att.name.ptr)
			return STATUS_LIMIT;
		TRY(json_next(&reader, &token));
		if (token != JSON_OBJECT_BEGIN)
			return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST,
					      "Attachment %.*s must be described by an object.",
					      STR_ARG(att->edit.att.name));
		TRY(parse_att(r, &reader, att, fail));
	}
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

/* Whether the type is among those that are compressed, its parameters left aside. */
static bool
is_compressed(const struct couch_req *r, struct str type)
{
	struct str patterns = str_from_cstr(r->couch->config.gzip_types);
	const char *semicolon = type.len ? memchr(type.ptr, ';', type.len) : NULL;
	char plain[REV_ATT_TYPE_BYTES + 1];

	if (semicolon)
		type.len = (size_t)(semicolon - type.ptr);
	type = str_trim(type);
	memcpy(plain, type.ptr, type.len);
	plain[type.len] = '\0';
	while (patterns.len) {
		const char *comma = memchr(patterns.ptr, ',', patterns.len);
		size_t len = comma ? (size_t)(comma - patterns.ptr) : patterns.len;
		struct str one = str_trim(str_of(patterns.ptr, len));
		char pattern[128];

		patterns = str_skip(patterns, comma ? len + 1 : len);
		if (one.len == 0 || one.len >= sizeof(pattern))
			continue;
		memcpy(pattern, one.ptr, one.len);
		pattern[one.len] = '\0';
		if (fnmatch(pattern, plain, FNM_CASEFOLD | FNM_NOESCAPE) == 0)
			return true;
	}
	return false;
}

enum status
couch_upload_begin(struct couch_uploads *u, const struct rev_att *att, bool gzip,
		   struct rev_upload **ret)
{
	struct couch_req *r = u->r;
	const struct couch_config *config = &r->couch->config;
	bool compress = !gzip && config->gzip_level > 0 && is_compressed(r, att->type);
	const struct rev_upload_options options = {
		.store = config->store,
		.db = r->db,
		.gzip_level = compress ? config->gzip_level : 0,
		.max_bytes = config->att_bytes,
		.memory_bytes = COUCH_ATTS_MEMORY_BYTES - u->memory,
		.stored_gzip = gzip,
	};
	struct rev_upload **grown = couch_grow(r->arena, u->items, u->count, &u->cap,
					       sizeof(struct rev_upload *));

	if (!grown)
		return STATUS_LIMIT;
	u->items = grown;
	TRY(check_type(att->type, &r->fail));
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

enum status
couch_upload_write(struct couch_uploads *u, struct rev_upload *upload, const struct rev_att *att,
		   struct str data)
{
	struct couch_fail *fail = &u->r->fail;
	enum status status;

	TRY(touch_all(u));
	status = rev_upload_write(upload, data, &fail->err);
	if (status == STATUS_LIMIT)
		return couch_fail_set(fail, COUCH_ERROR_ATT_TOO_LARGE, "%.*s", STR_ARG(att->name));
	return status;
}

enum status
couch_upload_end(struct couch_uploads *u, struct rev_upload *upload, struct rev_att_edit *ret,
		 uint8_t ret_md5[REV_ATT_DIGEST_BYTES])
{
	TRY(rev_upload_finish(upload, ret, ret_md5, &u->r->fail.err));
	u->memory += ret->data.len;
	return STATUS_OK;
}

/* ---- Inline data ---- */

/* Base64 comes with white space at times; what is left of a piece waits for the next. */
struct inline_decoder {
	struct couch_uploads *uploads;
	struct rev_upload *upload;
	const struct rev_att *att;
	struct buf text; /* characters, no white space */
	struct buf plain;
	bool padded; /* nothing may follow */
};

static enum status
bad_data(struct couch_uploads *u, const struct rev_att *att)
{
	return couch_fail_set(&u->r->fail, COUCH_ERROR_BAD_REQUEST,
			      "Invalid attachment data for %.*s", STR_ARG(att->name));
}

static enum status
decode_held(struct inline_decoder *d, bool last)
{
	size_t n = last ? d->text.len : d->text.len - d->text.len % 4;

	TRY(buf_status(&d->text));
	if (n == 0)
		return STATUS_OK;
	buf_clear(&d->plain);
	if (d->padded ||
	    base64_decode(&d->plain, str_of(d->text.ptr, n), BASE64_STANDARD) == STATUS_INVALID)
		return bad_data(d->uploads, d->att);
	TRY(buf_status(&d->plain));
	d->padded = d->text.ptr[n - 1] == '=';
	buf_consume(&d->text, n);
	return couch_upload_write(d->uploads, d->upload, d->att, buf_str(&d->plain));
}

static enum status
decode_text(struct inline_decoder *d, struct str text)
{
	while (text.len) {
		size_t n = text.len < COUCH_INLINE_STEP ? text.len : COUCH_INLINE_STEP;

		for (size_t i = 0; i < n; i++)
			if (!strchr(" \t\r\n", text.ptr[i]) || text.ptr[i] == '\0')
				buf_append_byte(&d->text, (uint8_t)text.ptr[i]);
		text = str_skip(text, n);
		TRY(decode_held(d, text.len == 0));
		wait_yield();
	}
	return STATUS_OK;
}

static enum status
load_inline(struct couch_uploads *u, struct couch_att *att)
{
	struct json_reader AUTO(json_reader_release) reader;
	struct inline_decoder d = {
		.uploads = u,
		.att = &att->edit.att,
		.text = BUF_INIT(2 * COUCH_INLINE_STEP),
		.plain = BUF_INIT(2 * COUCH_INLINE_STEP),
	};
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	enum json_token token;
	enum status status;

	TRY(couch_upload_begin(u, &att->edit.att, false, &d.upload));
	json_reader_init(&reader, att->data, &u->r->fail.err);
	TRY(json_next(&reader, &token));
	status = decode_text(&d, reader.text);
	buf_release(&d.text);
	buf_release(&d.plain);
	TRY(status);
	return couch_upload_end(u, d.upload, &att->edit, md5);
}

/* ---- What follows ---- */

static enum status
wrong_length(struct couch_req *r, const char *how)
{
	return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "attachment %s than expected",
			      how);
}

static enum status
load_part(struct couch_uploads *u, struct couch_att *att, struct couch_multipart *parts)
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
	if (att->has_length && r->couch->config.att_bytes &&
	    said.encoded_length > r->couch->config.att_bytes)
		return couch_fail_set(&r->fail, COUCH_ERROR_ATT_TOO_LARGE, "%.*s",
				      STR_ARG(said.name));
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
load_one(struct couch_uploads *u, struct couch_att *att, struct couch_multipart *parts)
{
	switch (att->kind) {
	case COUCH_ATT_STUB:
		return STATUS_OK;
	case COUCH_ATT_INLINE:
		return load_inline(u, att);
	case COUCH_ATT_FOLLOWS:
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

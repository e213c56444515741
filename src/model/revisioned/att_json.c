#include "model/revisioned/att_json.h"

#include <fnmatch.h>

#include "base/base64.h"
#include "base/quote.h"
#include "loop/wait.h"
#include "doc/json.h"
#include "model/revisioned/revisioned_int.h"

enum {
	INLINE_STEP = 48 * 1024, /* base64 characters decoded at once; divides by 4 */
	PATTERN_BYTES = 128,     /* a content type with wildcards */
	DISTINCT_CHECKED = 100,  /* names compared with each other */
};

bool
rev_att_type_in(struct str type, struct str patterns)
{
	char plain[REV_ATT_TYPE_BYTES + 1];
	struct str one;

	type = str_trim(str_cut(&type, ';'));
	if (type.len > REV_ATT_TYPE_BYTES)
		return false;
	memcpy(plain, type.ptr, type.len);
	plain[type.len] = '\0';
	while (str_list_next(&patterns, &one)) {
		char pattern[PATTERN_BYTES];

		if (one.len >= sizeof(pattern))
			continue;
		memcpy(pattern, one.ptr, one.len);
		pattern[one.len] = '\0';
		if (fnmatch(pattern, plain, FNM_CASEFOLD | FNM_NOESCAPE) == 0)
			return true;
	}
	return false;
}

enum status
rev_att_name_check(struct str name, struct err *err)
{
	if (name.len && name.ptr[0] == '_')
		return err_set(err, STATUS_INVALID,
			       "Attachment name '%s' starts with prohibited character '_'",
			       QUOTE_SHOW(name));
	return STATUS_OK;
}

/* A type becomes a header, so it must not have characters that end one. */
enum status
rev_att_type_check(struct str type, struct err *err)
{
	if (type.len > REV_ATT_TYPE_BYTES)
		return err_set(err, STATUS_INVALID,
			       "An attachment's content type is longer than %d bytes.",
			       REV_ATT_TYPE_BYTES);
	for (size_t i = 0; i < type.len; i++)
		if ((uint8_t)type.ptr[i] < ' ' || type.ptr[i] == 0x7f)
			return err_set(err, STATUS_INVALID,
				       "An attachment's content type has control "
				       "characters.");
	return STATUS_OK;
}

static enum status
att_json_refuse_member(const struct rev_att_json *att, const char *name, struct err *err)
{
	return err_set(err, STATUS_INVALID, "Attachment %s: \"%s\" makes no sense.",
		       QUOTE_SHOW(att->edit.att.name), name);
}

/* "md5-…" with 16 bytes; another digest is not looked at, as in CouchDB. */
static void
att_json_read_digest(struct str text, struct rev_att_json *att)
{
	struct buf AUTO(buf_release) raw = BUF_INIT(64);

	if (!str_starts_with(text, STR("md5-")) ||
	    base64_decode(&raw, str_skip(text, 4), BASE64_STANDARD) != STATUS_OK ||
	    raw.len != REV_ATT_DIGEST_BYTES)
		return;
	memcpy(att->edit.att.digest, raw.ptr, REV_ATT_DIGEST_BYTES);
	att->has_digest = true;
}

/* The members of one attachment, before it is known which kind of attachment they describe. */
struct att_json_members {
	bool stub;
	bool follows;
	bool has_length;
	bool has_encoded_length;
	bool gzip;
	uint64_t length;
	uint64_t encoded_length;
};

static enum status
att_json_read_number(struct json_reader *r, enum json_token token, const struct rev_att_json *att,
		     const char *name, bool *ret_has, uint64_t *ret, struct err *err)
{
	if (token != JSON_NUMBER || !r->is_integer || !str_to_u64(r->text, ret) || *ret > INT64_MAX)
		return att_json_refuse_member(att, name, err);
	*ret_has = true;
	return STATUS_OK;
}

static enum status
att_json_read_text(struct arena *arena, struct json_reader *reader, const struct rev_att_json *att,
		   const char *name, struct str *ret, struct err *err)
{
	*ret = arena_dup(arena, reader->text);
	if (!ret->ptr)
		return STATUS_LIMIT;
	return memchr(ret->ptr, '\0', ret->len) ? att_json_refuse_member(att, name, err)
						: STATUS_OK;
}

/* Reads one member, whose value's first token has been read already. */
static enum status
att_json_read_member(struct arena *arena, struct json_reader *reader, struct str name,
		     enum json_token token, struct rev_att_json *att, struct att_json_members *d,
		     struct err *err)
{
	struct rev_att *a = &att->edit.att;

	if (str_eq(name, STR("stub")))
		d->stub = token == JSON_TRUE;
	else if (str_eq(name, STR("follows")))
		d->follows = token == JSON_TRUE;
	else if (str_eq(name, STR("revpos")))
		return att_json_read_number(reader, token, att, "revpos", &att->edit.has_revpos,
					    &a->revpos, err);
	else if (str_eq(name, STR("length")))
		return att_json_read_number(reader, token, att, "length", &d->has_length,
					    &d->length, err);
	else if (str_eq(name, STR("encoded_length")))
		return att_json_read_number(reader, token, att, "encoded_length",
					    &d->has_encoded_length, &d->encoded_length, err);
	else if (token != JSON_STRING)
		return STATUS_OK;
	else if (str_eq(name, STR("content_type")))
		return att_json_read_text(arena, reader, att, "content_type", &a->type, err);
	else if (str_eq(name, STR("digest")))
		att_json_read_digest(reader->text, att);
	else if (str_eq(name, STR("encoding")) && !str_eq(reader->text, STR("identity"))) {
		if (!str_eq(reader->text, STR("gzip")))
			return att_json_refuse_member(att, "encoding", err);
		d->gzip = true;
	}
	return STATUS_OK;
}

static enum status
att_json_apply_members(struct rev_att_json *att, const struct att_json_members *d, struct err *err)
{
	struct rev_att *a = &att->edit.att;

	TRY(rev_att_name_check(a->name, err));
	TRY(rev_att_type_check(a->type, err));
	if (d->stub) {
		att->kind = REV_ATT_KIND_STUB;
		att->edit.source = REV_ATT_STUB;
		return STATUS_OK;
	}
	if (!d->follows) {
		att->kind = REV_ATT_KIND_INLINE;
		if (!att->data.ptr)
			return err_set(err, STATUS_INVALID, "Invalid attachment data for %s",
				       QUOTE_SHOW(a->name));
		return STATUS_OK;
	}
	att->kind = REV_ATT_KIND_FOLLOWS;
	a->encoding = d->gzip ? REV_ATT_GZIP : REV_ATT_IDENTITY;
	a->length = d->length;
	a->encoded_length = d->gzip && d->has_encoded_length ? d->encoded_length : d->length;
	att->has_length = d->has_length || (d->gzip && d->has_encoded_length);
	return STATUS_OK;
}

/* The object of one attachment, whose opening brace has been read. */
static enum status
att_json_parse_object(struct arena *arena, struct json_reader *reader, struct rev_att_json *att,
		      struct err *err)
{
	struct att_json_members d = { 0 };

	for (;;) {
		char name[32];
		size_t name_len;
		enum json_token token;
		struct str text;

		TRY(json_next(reader, &token));
		if (token == JSON_OBJECT_END)
			return att_json_apply_members(att, &d, err);
		name_len = reader->text.len < sizeof(name) ? reader->text.len : 0;
		memcpy(name, reader->text.ptr, name_len);
		TRY(json_next(reader, &token));
		TRY(att_json_read_member(arena, reader, str_of(name, name_len), token, att, &d,
					 err));
		TRY(json_skip(reader, token, &text));
		if (token == JSON_STRING && str_eq(str_of(name, name_len), STR("data")))
			att->data = text;
	}
}

static enum status
att_json_check_names_distinct(const struct rev_att_json *atts, size_t count, struct err *err)
{
	/* There are few as a rule. rev_write() finds equal names among thousands. */
	for (size_t i = 1; i < count && i < DISTINCT_CHECKED; i++)
		for (size_t j = 0; j < i; j++)
			if (str_eq(atts[i].edit.att.name, atts[j].edit.att.name))
				return err_set(err, STATUS_INVALID, "Duplicate attachments");
	return STATUS_OK;
}

/* Reads one attachment, whose name has been read already. */
static enum status
att_json_parse_att(struct arena *arena, struct json_reader *reader, struct rev_att_json *att,
		   struct err *err)
{
	enum json_token token;

	*att = (struct rev_att_json){
		.edit.att = { .name = arena_dup(arena, reader->text),
			      .type = STR("application/octet-stream") },
	};
	if (!att->edit.att.name.ptr)
		return STATUS_LIMIT;
	TRY(json_next(reader, &token));
	if (token != JSON_OBJECT_BEGIN)
		return err_set(err, STATUS_INVALID, "Attachment %s must be described by an object.",
			       QUOTE_SHOW(att->edit.att.name));
	return att_json_parse_object(arena, reader, att, err);
}

enum status
rev_atts_parse(struct str text, struct arena *arena, struct rev_att_json **ret, size_t *ret_count,
	       struct err *err)
{
	struct json_reader AUTO(json_reader_release) reader;
	struct rev_att_json *atts = NULL;
	size_t count = 0, cap = 0;
	enum json_token token;

	json_reader_init(&reader, text, err);
	reader.scratch.part = arena_part(arena);
	TRY(json_next(&reader, &token));
	if (token != JSON_OBJECT_BEGIN)
		return err_set(err, STATUS_INVALID, "_attachments must be an object");
	for (;;) {
		TRY(json_next(&reader, &token));
		if (token == JSON_OBJECT_END)
			break;
		if (count == REV_ATTS_MAX)
			return err_set(err, STATUS_DOC_TOO_LARGE,
				       "A document has at most %d attachments.", (int)REV_ATTS_MAX);
		TRY(catalog_array_grow(arena, (void **)&atts, sizeof(*atts), count, &cap));
		TRY(att_json_parse_att(arena, &reader, &atts[count++], err));
	}
	*ret = atts;
	*ret_count = count;
	return att_json_check_names_distinct(atts, count, err);
}

/* ---- Inline data ---- */

/* Base64 may have white space in it. Characters of an unfinished group wait for the next piece. */
struct inline_decoder {
	const struct rev_att *att;
	struct rev_upload *upload;
	struct err *err;
	struct buf text; /* characters, no white space */
	struct buf plain;
	bool padded; /* nothing may follow */
};

static enum status
inline_upload_decoded(struct inline_decoder *d, bool last)
{
	size_t n = last ? d->text.len : d->text.len - d->text.len % 4;

	TRY(buf_status(&d->text));
	if (n == 0)
		return STATUS_OK;
	buf_clear(&d->plain);
	if (d->padded ||
	    base64_decode(&d->plain, str_of(d->text.ptr, n), BASE64_STANDARD) == STATUS_INVALID)
		return err_set(d->err, STATUS_INVALID, "Invalid attachment data for %s",
			       QUOTE_SHOW(d->att->name));
	TRY(buf_status(&d->plain));
	d->padded = d->text.ptr[n - 1] == '=';
	buf_consume(&d->text, n);
	return rev_upload_write(d->upload, buf_str(&d->plain), d->err);
}

static bool
inline_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static enum status
inline_decode_text(struct inline_decoder *d, struct str text)
{
	while (text.len) {
		size_t n = text.len < INLINE_STEP ? text.len : INLINE_STEP;

		for (size_t i = 0; i < n; i++)
			if (!inline_is_space(text.ptr[i]))
				buf_append_byte(&d->text, (uint8_t)text.ptr[i]);
		text = str_skip(text, n);
		TRY(inline_upload_decoded(d, text.len == 0));
		wait_yield();
	}
	return STATUS_OK;
}

enum status
rev_att_inline(const struct rev_att_json *att, struct rev_upload *upload, struct err *err)
{
	struct json_reader AUTO(json_reader_release) reader;
	struct inline_decoder d = {
		.att = &att->edit.att,
		.upload = upload,
		.err = err,
		.text = BUF_INIT(2 * INLINE_STEP),
		.plain = BUF_INIT(2 * INLINE_STEP),
	};
	enum json_token token;
	enum status status;

	json_reader_init(&reader, att->data, err);
	reader.scratch.part = rev_upload_part(upload);
	TRY(json_next(&reader, &token));
	status = inline_decode_text(&d, reader.text);
	buf_release(&d.text);
	buf_release(&d.plain);
	return status;
}

enum status
rev_att_base64_next(struct rev_att_reader *reader, struct kv_tx *tx, struct buf *carry,
		    struct buf *text, struct str *ret)
{
	size_t n = 0;

	while (n == 0) {
		struct str piece;
		enum status status = rev_att_reader_next(reader, tx, &piece);

		if (status == STATUS_NOT_FOUND) {
			n = carry->len;
			if (n == 0)
				return STATUS_NOT_FOUND;
			break;
		}
		TRY(status);
		buf_append_str(carry, piece);
		TRY(buf_status(carry));
		n = carry->len - carry->len % 3;
	}
	buf_clear(text);
	base64_encode(text, str_of(carry->ptr, n), BASE64_STANDARD);
	TRY(buf_status(text));
	buf_consume(carry, n);
	*ret = buf_str(text);
	return STATUS_OK;
}

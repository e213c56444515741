/* GET and HEAD of an attachment: whole, in part, compressed or not. */
#include "base/base64.h"
#include "door/couch/admin/snapshot.h"
#include "door/couch/doc/att_out.h"
#include "door/couch/doc/att_range.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/doc/edit.h"
#include "door/couch/doc/endpoints.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "door/couch/wire/uuid.h"
#include "http/field.h"

enum {
	/* A longer one may take as long as its client likes: the kernel takes no more at once. */
	ATT_LASTING_BYTES = 128 * 1024,
};

struct att_call {
	struct couch_req *r;
	struct str id;
	struct str name;
	bool has_rev;
	struct rev_id rev;
	struct rev_att att;
};

/* ---- Finding it ---- */

static enum status
att_missing(struct couch_req *r)
{
	return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "Document is missing attachment");
}

static enum status
att_find(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct att_call *c = arg;
	struct rev_branch branch;
	enum status status;

	TRY(couch_look_up_check_id(r, c->id, &r->fail));
	if (!c->has_rev)
		TRY(rev_winner_read(tx, r->db, c->id, r->arena, &c->rev));
	status = rev_att_read(tx, r->db, c->id, c->rev, false, c->name, r->arena, &c->att);
	if (status == STATUS_DELETED)
		return att_missing(r);
	if (status != STATUS_NOT_FOUND || !c->has_rev)
		return status;
	/* The revision may be a tombstone, or one that a newer one has replaced. */
	TRY(couch_head_look_up(r, tx, c->id, c->rev, couch_param_true(r, "latest"), &branch));
	status = rev_att_read(tx, r->db, c->id, branch.rev, branch.deleted, c->name, r->arena,
			      &c->att);
	return status == STATUS_DELETED || status == STATUS_NOT_FOUND ? att_missing(r) : status;
}

/* ---- What the client takes ---- */

static enum status
att_choose_coding(const struct att_call *c, bool *ret_stored)
{
	struct str accept = http_request_header(c->r->x, STR("Accept-Encoding"));
	struct http_preference identity = http_preference_of(accept, STR("identity"));

	*ret_stored = c->att.encoding == REV_ATT_IDENTITY ||
		      http_preference_of(accept, STR("gzip")).quality > 0;
	/* The identity is acceptable unless the list says that it is not. */
	if (!*ret_stored && identity.match != HTTP_MATCH_NONE && identity.quality == 0)
		return couch_fail_set(&c->r->fail, COUCH_ERROR_NOT_ACCEPTABLE,
				      "The attachment can be sent as gzip or identity.");
	return STATUS_OK;
}

/* ---- Sending it ---- */

/* What the attachment's ETag is made of: base64(md5). */
static void
att_write_tag(const struct att_call *c, struct buf *out)
{
	base64_encode(out, str_of(c->att.digest, sizeof(c->att.digest)), BASE64_STANDARD);
}

static enum status
att_set_headers(struct att_call *c, bool stored, bool *ret_sent)
{
	struct couch_req *r = c->r;
	struct buf AUTO(buf_release) tag = BUF_SHORT(64);

	att_write_tag(c, &tag);
	TRY(buf_status(&tag));
	http_set_header(r->x, STR("Cache-Control"), STR("must-revalidate"));
	/*
	 * An attachment may be a page with scripts that anybody stored. It must not run with this
	 * server's origin.
	 */
	http_set_header(r->x, STR("Content-Security-Policy"), STR("sandbox"));
	TRY(couch_reply_etag(r, buf_str(&tag), ret_sent));
	if (*ret_sent)
		return STATUS_OK;
	http_set_header(r->x, STR("Content-Type"), c->att.type);
	http_set_header(r->x, STR("Accept-Ranges"),
			c->att.encoding == REV_ATT_IDENTITY ? STR("bytes") : STR("none"));
	if (c->att.encoding != REV_ATT_IDENTITY) {
		http_set_header(r->x, STR("Vary"), STR("Accept-Encoding"));
		if (stored)
			http_set_header(r->x, STR("Content-Encoding"), STR("gzip"));
	}
	return STATUS_OK;
}

static enum status
att_send_stored(struct att_call *c, struct couch_snapshot *s)
{
	struct couch_req *r = c->r;
	struct buf AUTO(buf_release) digest = BUF_SHORT(64);

	base64_encode(&digest, str_of(c->att.digest, sizeof(c->att.digest)), BASE64_STANDARD);
	TRY(buf_status(&digest));
	http_set_header(r->x, STR("Content-MD5"), buf_str(&digest));
	TRY(http_start(r->x, c->att.encoded_length));
	if (!r->head)
		TRY(couch_att_send(s, &c->att, 0, c->att.encoded_length));
	return http_finish(r->x);
}

static enum status
att_send_decoded(struct att_call *c, struct couch_snapshot *s)
{
	struct couch_req *r = c->r;
	uint64_t length = c->att.length;
	struct couch_att_decoded decoded;
	enum status status;

	/* The client that compressed it did not say how long it was before. */
	if (c->att.length == c->att.encoded_length)
		length = HTTP_LENGTH_UNKNOWN;
	if (r->head) {
		TRY(http_start(r->x, length));
		return http_finish(r->x);
	}
	TRY(couch_att_open_decoded(s, &c->att, &decoded));
	status = http_start(r->x, length);
	if (status != STATUS_OK) {
		rev_att_reader_free(decoded.reader);
		return status;
	}
	TRY(couch_att_send_decoded(s, &decoded));
	return http_finish(r->x);
}

static enum status
att_set_content_range(struct att_call *c, const struct couch_range *range)
{
	struct str value = arena_printf(
		c->r->arena, "bytes %llu-%llu/%llu", (unsigned long long)range->begin,
		(unsigned long long)range->end - 1, (unsigned long long)c->att.encoded_length);

	if (!value.ptr)
		return STATUS_LIMIT;
	http_set_header(c->r->x, STR("Content-Range"), value);
	return STATUS_OK;
}

static enum status
att_send_range(struct att_call *c, struct couch_snapshot *s, const struct couch_range *range)
{
	struct couch_req *r = c->r;

	TRY(att_set_content_range(c, range));
	http_set_status(r->x, 206);
	TRY(http_start(r->x, range->end - range->begin));
	if (!r->head)
		TRY(couch_att_send(s, &c->att, range->begin, range->end));
	return http_finish(r->x);
}

static enum status
att_send_one_of_ranges(struct att_call *c, struct couch_snapshot *s,
		       const struct couch_range *range, struct str boundary)
{
	struct buf AUTO(buf_release) text = BUF_SHORT(4096);

	buf_append_cstr(&text, "\r\nContent-Type: ");
	buf_append_str(&text, c->att.type);
	buf_printf(&text, "\r\nContent-Range: bytes %llu-%llu/%llu\r\n\r\n",
		   (unsigned long long)range->begin, (unsigned long long)range->end - 1,
		   (unsigned long long)c->att.encoded_length);
	TRY(buf_status(&text));
	TRY(http_write(c->r->x, buf_str(&text)));
	TRY(couch_att_send(s, &c->att, range->begin, range->end));
	buf_clear(&text);
	buf_append_cstr(&text, "\r\n--");
	buf_append_str(&text, boundary);
	TRY(buf_status(&text));
	return http_write(c->r->x, buf_str(&text));
}

static enum status
att_send_ranges(struct att_call *c, struct couch_snapshot *s, const struct couch_range *ranges,
		size_t count)
{
	struct couch_req *r = c->r;
	struct str boundary = couch_uuid_new(r->arena);
	struct str type;

	if (!boundary.ptr)
		return STATUS_LIMIT;
	type = arena_printf(r->arena, "multipart/byteranges; boundary=\"%.*s\"", STR_ARG(boundary));
	if (!type.ptr)
		return STATUS_LIMIT;
	http_set_header(r->x, STR("Content-Type"), type);
	http_set_status(r->x, 206);
	TRY(http_start(r->x, HTTP_LENGTH_UNKNOWN));
	if (!r->head) {
		TRY(http_write(r->x, STR("--")));
		TRY(http_write(r->x, boundary));
		for (size_t i = 0; i < count; i++)
			TRY(att_send_one_of_ranges(c, s, &ranges[i], boundary));
		TRY(http_write(r->x, STR("--")));
	}
	return http_finish(r->x);
}

/*
 * True if the range counts. If-Range names the version that a client has a part of; if the
 * attachment has changed since, the client wants all of it.
 */
static bool
att_range_applies(const struct att_call *c)
{
	struct str wanted = http_request_header(c->r->x, STR("If-Range"));
	struct buf AUTO(buf_release) tag = BUF_SHORT(64);

	if (c->att.encoding != REV_ATT_IDENTITY)
		return false;
	if (!wanted.ptr)
		return true;
	att_write_tag(c, &tag);
	return buf_status(&tag) == STATUS_OK && couch_etag_is(str_trim(wanted), buf_str(&tag));
}

static enum status
att_not_satisfiable(struct att_call *c)
{
	struct couch_req *r = c->r;
	struct str value = arena_printf(r->arena, "bytes */%llu",
					(unsigned long long)c->att.encoded_length);

	if (!value.ptr)
		return STATUS_LIMIT;
	http_set_header(r->x, STR("Content-Range"), value);
	return couch_fail_set(&r->fail, COUCH_ERROR_RANGE, "Requested range not satisfiable");
}

static enum status
att_send_wanted(struct att_call *c, struct couch_snapshot *s)
{
	struct couch_range ranges[COUCH_RANGES];
	size_t count = 0;
	bool stored;
	bool sent;

	TRY(att_choose_coding(c, &stored));
	TRY(att_set_headers(c, stored, &sent));
	if (sent)
		return STATUS_OK;
	if (c->att.encoded_length > ATT_LASTING_BYTES && !c->r->head)
		TRY(couch_snapshot_last(s));
	if (att_range_applies(c) && !couch_ranges_parse(http_request_header(c->r->x, STR("Range")),
							c->att.encoded_length, ranges, &count))
		return att_not_satisfiable(c);
	if (count == 1)
		return att_send_range(c, s, &ranges[0]);
	if (count)
		return att_send_ranges(c, s, ranges, count);
	return stored ? att_send_stored(c, s) : att_send_decoded(c, s);
}

enum status
couch_att_get(struct couch_req *r, struct str id, struct str name)
{
	struct att_call c = { .r = r, .id = id, .name = name };
	AUTO(couch_snapshot_end) struct couch_snapshot snapshot = { 0 };
	struct str value;

	if (couch_param_last(r, "rev", &value)) {
		c.has_rev = true;
		TRY(couch_rev_parse(value, r->arena, &c.rev, &r->fail));
	}
	TRY(couch_snapshot_begin(&snapshot, r));
	TRY(couch_snapshot_run(&snapshot, att_find, &c));
	return att_send_wanted(&c, &snapshot);
}

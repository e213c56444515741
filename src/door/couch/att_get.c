/* GET and HEAD of an attachment: whole, in part, compressed or not. */
#include "base/base64.h"
#include "door/couch/att.h"

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
missing(struct couch_req *r)
{
	return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "Document is missing attachment");
}

static enum status
find_att(struct att_call *c, struct kv_tx *tx)
{
	struct couch_req *r = c->r;
	const struct rev_branch *branch;
	struct rev_tree tree;
	enum status status;

	if (!c->has_rev)
		TRY(rev_winner_read(tx, r->db, c->id, r->arena, &c->rev));
	status = rev_att_read(tx, r->db, c->id, c->rev, false, c->name, r->arena, &c->att);
	if (status == STATUS_DELETED)
		return missing(r);
	if (status != STATUS_NOT_FOUND || !c->has_rev)
		return status;
	/* A tombstone's, or a revision that a newer one has replaced. */
	TRY(rev_tree_read(tx, r->db, c->id, r->arena, &tree));
	branch = couch_leaf_find(&tree, c->rev, couch_param_true(r, "latest"));
	if (!branch)
		return STATUS_NOT_FOUND;
	status = rev_att_read(tx, r->db, c->id, branch->rev, branch->deleted, c->name, r->arena,
			      &c->att);
	return status == STATUS_DELETED || status == STATUS_NOT_FOUND ? missing(r) : status;
}

/* ---- What the client takes ---- */

/* The quality of a coding in Accept-Encoding: 1 wanted, 0 refused, -1 not named. */
static int
coding_wanted(struct str accept, struct str coding)
{
	while (accept.len) {
		const char *comma = memchr(accept.ptr, ',', accept.len);
		size_t len = comma ? (size_t)(comma - accept.ptr) : accept.len;
		struct str one = str_of(accept.ptr, len);
		const char *semicolon = len ? memchr(one.ptr, ';', len) : NULL;
		size_t name = semicolon ? (size_t)(semicolon - one.ptr) : len;

		accept = str_skip(accept, comma ? len + 1 : len);
		if (!str_eq_nocase(str_trim(str_of(one.ptr, name)), coding))
			continue;
		for (size_t i = name; i < len; i++)
			if (one.ptr[i] >= '1' && one.ptr[i] <= '9')
				return 1;
		return semicolon && memchr(semicolon, '0', len - name) ? 0 : 1;
	}
	return -1;
}

static enum status
choose_coding(const struct att_call *c, bool *ret_stored)
{
	struct str accept = http_request_header(c->r->x, STR("Accept-Encoding"));
	int gzip = coding_wanted(accept, STR("gzip"));
	int identity = coding_wanted(accept, STR("identity"));
	int any = coding_wanted(accept, STR("*"));

	*ret_stored = c->att.encoding == REV_ATT_IDENTITY || (gzip < 0 ? any == 1 : gzip == 1);
	if (!*ret_stored && (identity < 0 ? any == 0 : identity == 0))
		return couch_fail_set(&c->r->fail, COUCH_ERROR_NOT_ACCEPTABLE,
				      "The attachment can be sent as gzip or identity.");
	return STATUS_OK;
}

/* ---- Sending it ---- */

/* "base64(md5)" */
static void
write_tag(const struct att_call *c, struct buf *out)
{
	buf_append_byte(out, '"');
	base64_encode(out, str_of(c->att.digest, sizeof(c->att.digest)), BASE64_STANDARD);
	buf_append_byte(out, '"');
}

static enum status
set_headers(struct att_call *c, bool stored, bool *ret_sent)
{
	struct couch_req *r = c->r;
	struct buf AUTO(buf_release) tag = BUF_INIT(64);

	write_tag(c, &tag);
	TRY(buf_status(&tag));
	http_set_header(r->x, STR("Cache-Control"), STR("must-revalidate"));
	/* What a stranger has stored here must not run as if this server had written it. */
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
send_whole(struct att_call *c, struct couch_snapshot *s, bool stored)
{
	struct couch_req *r = c->r;
	uint64_t length = stored ? c->att.encoded_length : c->att.length;

	/* Whoever compressed it has not told how long it was. */
	if (!stored && c->att.length == c->att.encoded_length)
		length = HTTP_LENGTH_UNKNOWN;
	if (stored) {
		struct buf AUTO(buf_release) digest = BUF_INIT(64);

		base64_encode(&digest, str_of(c->att.digest, sizeof(c->att.digest)),
			      BASE64_STANDARD);
		TRY(buf_status(&digest));
		http_set_header(r->x, STR("Content-MD5"), buf_str(&digest));
	}
	TRY(http_start(r->x, length));
	if (!r->head)
		TRY(couch_att_send(s, &c->att, !stored, 0, c->att.encoded_length));
	return http_finish(r->x);
}

static enum status
set_content_range(struct att_call *c, const struct couch_range *range)
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
send_range(struct att_call *c, struct couch_snapshot *s, const struct couch_range *range)
{
	struct couch_req *r = c->r;

	TRY(set_content_range(c, range));
	http_set_status(r->x, 206);
	TRY(http_start(r->x, range->end - range->begin));
	if (!r->head)
		TRY(couch_att_send(s, &c->att, false, range->begin, range->end));
	return http_finish(r->x);
}

static enum status
send_one_of(struct att_call *c, struct couch_snapshot *s, const struct couch_range *range,
	    struct str boundary)
{
	struct buf AUTO(buf_release) text = BUF_INIT(4096);

	buf_append_cstr(&text, "\r\nContent-Type: ");
	buf_append_str(&text, c->att.type);
	buf_printf(&text, "\r\nContent-Range: bytes %llu-%llu/%llu\r\n\r\n",
		   (unsigned long long)range->begin, (unsigned long long)range->end - 1,
		   (unsigned long long)c->att.encoded_length);
	TRY(buf_status(&text));
	TRY(http_write(c->r->x, buf_str(&text)));
	TRY(couch_att_send(s, &c->att, false, range->begin, range->end));
	buf_clear(&text);
	buf_append_cstr(&text, "\r\n--");
	buf_append_str(&text, boundary);
	TRY(buf_status(&text));
	return http_write(c->r->x, buf_str(&text));
}

static enum status
send_ranges(struct att_call *c, struct couch_snapshot *s, const struct couch_range *ranges,
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
			TRY(send_one_of(c, s, &ranges[i], boundary));
		TRY(http_write(r->x, STR("--")));
	}
	return http_finish(r->x);
}

/* If-Range: a client that goes on with what it has wants all of what has changed. */
static bool
range_applies(const struct att_call *c)
{
	struct str wanted = http_request_header(c->r->x, STR("If-Range"));
	struct buf AUTO(buf_release) tag = BUF_INIT(64);

	if (c->att.encoding != REV_ATT_IDENTITY)
		return false;
	if (!wanted.ptr)
		return true;
	write_tag(c, &tag);
	return buf_status(&tag) == STATUS_OK && str_eq(str_trim(wanted), buf_str(&tag));
}

static enum status
not_satisfiable(struct att_call *c)
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
send_att(struct att_call *c, struct couch_snapshot *s)
{
	struct couch_range ranges[COUCH_RANGES];
	size_t count = 0;
	bool stored;
	bool sent;

	TRY(choose_coding(c, &stored));
	TRY(set_headers(c, stored, &sent));
	if (sent)
		return STATUS_OK;
	if (range_applies(c) && !couch_ranges_parse(http_request_header(c->r->x, STR("Range")),
						    c->att.encoded_length, ranges, &count))
		return not_satisfiable(c);
	if (count == 1)
		return send_range(c, s, &ranges[0]);
	return count ? send_ranges(c, s, ranges, count) : send_whole(c, s, stored);
}

enum status
couch_att_get(struct couch_req *r, struct str id, struct str name)
{
	struct att_call c = { .r = r, .id = id, .name = name };
	struct couch_snapshot snapshot;
	struct str value;
	enum status status;

	if (couch_param(r, "rev", &value)) {
		c.has_rev = true;
		TRY(couch_rev_parse(value, r->arena, &c.rev, &r->fail));
	}
	status = couch_snapshot_begin(&snapshot, r);
	while (status == STATUS_OK) {
		status = find_att(&c, snapshot.tx);
		if (status == STATUS_OK) {
			status = send_att(&c, &snapshot);
			break;
		}
		status = couch_snapshot_renew(&snapshot, status);
	}
	couch_snapshot_end(&snapshot);
	return status;
}

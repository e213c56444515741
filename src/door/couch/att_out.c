/* Attachments of documents on their way out: what is told of them, and their bytes. */
#include "base/base64.h"
#include "base/wait.h"
#include "door/couch/att.h"

/* ---- Holes ---- */

struct hole {
	size_t at;
	enum couch_hole_kind kind;
	struct rev_att att; /* its strings are not used */
};

static size_t
holes_count(const struct couch_holes *h)
{
	return h->list.len / sizeof(struct hole);
}

static const struct hole *
hole_at(const struct couch_holes *h, size_t i)
{
	return (const struct hole *)(const void *)h->list.ptr + i;
}

static void
append_hole(struct couch_holes *h, enum couch_hole_kind kind, const struct rev_att *att, size_t at)
{
	struct hole hole = { .at = at, .kind = kind, .att = *att };

	hole.att.name = hole.att.type = (struct str){ NULL, 0 };
	buf_append(&h->list, &hole, sizeof(hole));
}

bool
couch_holes_any(const struct couch_holes *h)
{
	return h->list.len > 0;
}

void
couch_holes_release(struct couch_holes *h)
{
	buf_release(&h->list);
}

void
couch_holes_cut(struct couch_holes *h, size_t len)
{
	size_t count = holes_count(h);

	while (count && hole_at(h, count - 1)->at >= len)
		count--;
	h->list.len = count * sizeof(struct hole);
}

bool
couch_holes_length(const struct couch_holes *h, uint64_t text_bytes, uint64_t *ret)
{
	*ret = text_bytes;
	for (size_t i = 0; i < holes_count(h); i++) {
		if (hole_at(h, i)->kind != COUCH_HOLE_STORED)
			return false;
		*ret += hole_at(h, i)->att.encoded_length;
	}
	return true;
}

enum status
couch_holes_append(struct couch_holes *h, const struct couch_holes *from, size_t shift)
{
	for (size_t i = 0; i < holes_count(from); i++) {
		struct hole hole = *hole_at(from, i);

		hole.at += shift;
		buf_append(&h->list, &hole, sizeof(hole));
	}
	return buf_status(&h->list);
}

/* ---- What is told ---- */

/* The newest revision of the branch that the client says it has; 0: none. */
static uint64_t
since_pos(const struct couch_doc_opts *opts, const struct rev_branch *branch)
{
	for (uint64_t back = 0; back <= branch->ancestors_count; back++) {
		struct rev_id rev = {
			branch->rev.pos - back,
			back ? branch->ancestors[back - 1] : branch->rev.hash,
		};

		for (size_t i = 0; i < opts->since_count; i++)
			if (rev_id_eq(opts->since[i], rev))
				return rev.pos;
	}
	return 0;
}

bool
couch_att_whole(const struct couch_doc_opts *opts, const struct rev_doc *doc,
		const struct rev_branch *branch, size_t i)
{
	if (!opts || !opts->holes || !(opts->flags & COUCH_DOC_ATTS))
		return false;
	if (!opts->has_since || !branch)
		return true;
	return doc->atts[i].revpos > since_pos(opts, branch);
}

bool
couch_atts_any_whole(const struct couch_doc_opts *opts, const struct rev_doc *doc,
		     const struct rev_branch *branch)
{
	for (size_t i = 0; i < doc->atts_count; i++)
		if (couch_att_whole(opts, doc, branch, i))
			return true;
	return false;
}

static void
write_att(const struct rev_att *att, const struct couch_doc_opts *opts, bool whole, struct buf *out)
{
	unsigned flags = opts ? opts->flags : 0;

	json_write_str(out, att->name);
	buf_append_cstr(out, ":{\"content_type\":");
	json_write_str(out, att->type);
	buf_append_cstr(out, ",\"revpos\":");
	buf_append_u64(out, att->revpos);
	buf_append_cstr(out, ",\"digest\":\"md5-");
	base64_encode(out, str_of(att->digest, sizeof(att->digest)), BASE64_STANDARD);
	buf_append_byte(out, '"');
	if (whole && !(flags & COUCH_DOC_FOLLOWS)) {
		buf_append_cstr(out, ",\"data\":\"");
		append_hole(opts->holes, COUCH_HOLE_BASE64, att, out->len);
		buf_append_byte(out, '"');
	} else {
		buf_append_cstr(out, ",\"length\":");
		buf_append_u64(out, att->length);
		buf_append_cstr(out, whole ? ",\"follows\":true" : ",\"stub\":true");
	}
	if ((flags & COUCH_DOC_ATT_ENCODING) && att->encoding == REV_ATT_GZIP) {
		buf_append_cstr(out, ",\"encoding\":\"gzip\",\"encoded_length\":");
		buf_append_u64(out, att->encoded_length);
	}
	buf_append_byte(out, '}');
}

enum status
couch_atts_write(const struct couch_doc_out *d, struct buf *out)
{
	if (d->doc->atts_count == 0)
		return STATUS_OK;
	buf_append_cstr(out, ",\"_attachments\":{");
	for (size_t i = 0; i < d->doc->atts_count; i++) {
		if (i)
			buf_append_byte(out, ',');
		write_att(&d->doc->atts[i], d->opts, couch_att_whole(d->opts, d->doc, d->branch, i),
			  out);
	}
	buf_append_byte(out, '}');
	if (d->opts && d->opts->holes)
		TRY(buf_status(&d->opts->holes->list));
	return buf_status(out);
}

void
couch_header_write(struct str name, struct buf *out)
{
	for (size_t i = 0; i < name.len; i++) {
		uint8_t c = (uint8_t)name.ptr[i];

		if (c == '"' || c < ' ')
			buf_printf(out, "%%%02X", c);
		else
			buf_append_byte(out, c);
	}
}

enum status
couch_related_write(const struct couch_doc_out *d, struct str boundary, struct buf *out)
{
	buf_append_cstr(out, "--");
	buf_append_str(out, boundary);
	buf_append_cstr(out, "\r\nContent-Type: application/json\r\n\r\n");
	TRY(couch_doc_write(d, out));
	buf_append_cstr(out, "\r\n--");
	buf_append_str(out, boundary);
	for (size_t i = 0; i < d->doc->atts_count; i++) {
		const struct rev_att *att = &d->doc->atts[i];

		if (!couch_att_whole(d->opts, d->doc, d->branch, i))
			continue;
		buf_append_cstr(out, "\r\nContent-Disposition: attachment; filename=\"");
		couch_header_write(att->name, out);
		buf_append_cstr(out, "\"\r\nContent-Type: ");
		buf_append_str(out, att->type);
		buf_append_cstr(out, "\r\nContent-Length: ");
		buf_append_u64(out, att->encoded_length);
		if (att->encoding == REV_ATT_GZIP)
			buf_append_cstr(out, "\r\nContent-Encoding: gzip");
		buf_append_cstr(out, "\r\n\r\n");
		append_hole(d->opts->holes, COUCH_HOLE_STORED, att, out->len);
		buf_append_cstr(out, "\r\n--");
		buf_append_str(out, boundary);
	}
	buf_append_cstr(out, "--");
	TRY(buf_status(&d->opts->holes->list));
	return buf_status(out);
}

/* ---- Bytes ---- */

/* What the next piece comes to, also where the view it was asked of is no longer kept: the data
 * never changes. STATUS_OK: ask again. */
static enum status
go_on(struct couch_snapshot *s, enum status status)
{
	if (status == STATUS_NOT_FOUND || status == STATUS_CORRUPT)
		return status;
	return couch_snapshot_renew(s, status);
}

/* Sends what a reader gives to its end, also when the snapshot becomes too old, and frees it. */
static enum status
send_pieces(struct couch_snapshot *s, struct rev_att_reader *reader, bool base64)
{
	struct buf AUTO(buf_release) carry = BUF_INIT(REV_ATT_BASE64_BYTES);
	struct buf AUTO(buf_release) text = BUF_INIT(REV_ATT_BASE64_BYTES);
	enum status status = STATUS_OK;

	while (status == STATUS_OK) {
		struct str piece;

		status = base64 ? rev_att_base64_next(reader, s->tx, &carry, &text, &piece)
				: rev_att_reader_next(reader, s->tx, &piece);
		if (status != STATUS_OK) {
			status = go_on(s, status);
			continue;
		}
		s->failures = 0;
		status = http_write(s->r->x, piece);
		wait_yield();
	}
	rev_att_reader_free(reader);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
couch_att_send(struct couch_snapshot *s, const struct rev_att *att, bool decode, uint64_t begin,
	       uint64_t end)
{
	struct rev_att_reader *reader;

	TRY(rev_att_reader_new(s->r->db, att, decode, begin, end, &reader));
	return send_pieces(s, reader, false);
}

static enum status
send_base64(struct couch_snapshot *s, const struct rev_att *att)
{
	struct rev_att_reader *reader;

	TRY(rev_att_reader_new(s->r->db, att, true, 0, att->encoded_length, &reader));
	return send_pieces(s, reader, true);
}

enum status
couch_holes_send(const struct couch_holes *h, struct couch_req *r, struct couch_snapshot *s,
		 struct str text)
{
	size_t sent = 0;

	for (size_t i = 0; i < holes_count(h); i++) {
		const struct hole *hole = hole_at(h, i);

		TRY(http_write(r->x, str_of(text.ptr + sent, hole->at - sent)));
		sent = hole->at;
		if (hole->kind == COUCH_HOLE_BASE64)
			TRY(send_base64(s, &hole->att));
		else
			TRY(couch_att_send(s, &hole->att, false, 0, hole->att.encoded_length));
	}
	return http_write(r->x, str_skip(text, sent));
}

/* Attachments that go out: their descriptions in a document, and their bytes. */
#include "base/base64.h"
#include "base/quote.h"
#include "doc/json.h"
#include "door/couch/admin/snapshot.h"
#include "door/couch/doc/att_out.h"
#include "door/couch/doc/doc_opts.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/holes.h"
#include "loop/step.h"
#include "loop/wait.h"
#include "model/revisioned/att_json.h"

/*
 * Tells whether a gzipped attachment is valid, as far as COUCH_ATT_CHECK_STORED_BYTES and
 * COUCH_ATT_CHECK_BYTES let it be read. What was read for that is freed.
 */
static enum status
att_out_inflates(struct couch_req *r, struct kv_tx *tx, const struct rev_att *att, bool *ret)
{
	bool whole = att->encoded_length <= COUCH_ATT_CHECK_STORED_BYTES;
	uint64_t most = whole ? COUCH_ATT_CHECK_BYTES : 1;
	uint64_t reads = kv_reads_mark(tx);
	struct rev_att_reader *reader;
	enum status status = STATUS_OK;
	struct str piece;

	TRY(rev_att_reader_new(r->db, att, true, 0, att->encoded_length, &reader));
	budget_count(http_memory(r->x), REV_ATT_DECODE_BYTES);
	rev_att_reader_limit(reader, REV_ATT_CHUNK_BYTES, REV_ATT_CHUNK_BYTES);
	for (uint64_t n = 0; status == STATUS_OK && n < most; n += piece.len)
		status = rev_att_reader_next(reader, tx, &piece);
	*ret = !rev_att_reader_is_invalid(reader);
	rev_att_reader_free(reader);
	budget_unuse(http_memory(r->x), REV_ATT_DECODE_BYTES);
	kv_reads_forget(tx, reads);
	return !*ret || status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- What is told ---- */

static bool
branch_has(const struct rev_branch *branch, struct rev_id rev)
{
	uint64_t back;

	if (rev.pos > branch->rev.pos)
		return false;
	back = branch->rev.pos - rev.pos;
	if (back == 0)
		return str_eq(branch->rev.hash, rev.hash);
	return back <= branch->ancestors_count && str_eq(branch->ancestors[back - 1], rev.hash);
}

/* The position of the branch's newest revision that the client says it has; 0 if it has none. */
static uint64_t
att_out_since_pos(const struct couch_doc_opts *opts, const struct rev_branch *branch)
{
	uint64_t newest = 0;

	for (size_t i = 0; i < opts->since_count; i++) {
		if (opts->since[i].pos > newest && branch_has(branch, opts->since[i]))
			newest = opts->since[i].pos;
		step_pause(1);
	}
	return newest;
}

struct couch_att_choice
couch_att_choose(const struct couch_doc_opts *opts, const struct rev_branch *branch)
{
	struct couch_att_choice choice = { .none = !opts || !opts->holes ||
						   !(opts->flags & COUCH_DOC_ATTS) };

	choice.all = !choice.none && (!opts->has_since || !branch);
	if (!choice.none && !choice.all)
		choice.since_pos = att_out_since_pos(opts, branch);
	return choice;
}

bool
couch_att_whole(const struct couch_att_choice *choice, const struct rev_att *att)
{
	return !choice->none && (choice->all || att->revpos > choice->since_pos);
}

bool
couch_atts_any_whole(const struct couch_doc_opts *opts, const struct rev_doc *doc,
		     const struct rev_branch *branch)
{
	struct couch_att_choice choice;

	if (doc->atts_count == 0)
		return false;
	choice = couch_att_choose(opts, branch);
	for (size_t i = 0; i < doc->atts_count; i++)
		if (couch_att_whole(&choice, &doc->atts[i]))
			return true;
	return false;
}

static void
att_out_write(const struct rev_att *att, const struct couch_doc_opts *opts, bool whole,
	      struct buf *out)
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
		couch_holes_add(opts->holes, COUCH_HOLE_BASE64, att, out->len);
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

/*
 * Whether the attachment's bytes belong in the answer: not those of a gzip that is broken, if the
 * options say what to read them with.
 */
static enum status
att_out_choose(const struct couch_doc_opts *opts, const struct couch_att_choice *choice,
	       const struct rev_att *att, bool *ret_whole)
{
	*ret_whole = couch_att_whole(choice, att);
	if (!*ret_whole || att->encoding != REV_ATT_GZIP || (opts->flags & COUCH_DOC_FOLLOWS) ||
	    !opts->check_tx)
		return STATUS_OK;
	return att_out_inflates(opts->check_req, opts->check_tx, att, ret_whole);
}

enum status
couch_atts_write(const struct couch_doc_out *d, struct buf *out)
{
	struct couch_att_choice choice;
	bool whole;

	if (d->doc->atts_count == 0)
		return STATUS_OK;
	choice = couch_att_choose(d->opts, d->branch);
	buf_append_cstr(out, ",\"_attachments\":{");
	for (size_t i = 0; i < d->doc->atts_count; i++) {
		if (i)
			buf_append_byte(out, ',');
		TRY(att_out_choose(d->opts, &choice, &d->doc->atts[i], &whole));
		att_out_write(&d->doc->atts[i], d->opts, whole, out);
	}
	buf_append_byte(out, '}');
	if (d->opts && d->opts->holes)
		TRY(buf_status(&d->opts->holes->list));
	return buf_status(out);
}

/* ---- Bytes ---- */

enum {
	ATT_COPY_BYTES = 16 *
			 1024, /* of a piece, copied before the fiber may wait for its client */
	ATT_TEXT_BYTES = 24 * 1024, /* of what is encoded at once in base64 */
};

/* An attachment that is being sent, piece by piece. */
struct att_sending {
	struct couch_snapshot *s;
	struct rev_att_reader *reader;
	bool base64;
	bool owned; /* the pieces are the reader's, and not bytes of a read */
	bool rested;
	bool renewed;      /* the view is a later one than that which had the pointer */
	size_t read_bytes; /* of the next range: more and more, while the client takes it all */
	struct net_wait_hook before;
	struct buf carry;
	struct buf text; /* in base64, or the copy of a piece's bytes */
};

/*
 * The client does not read: frees the chunks that were read, and what belongs to the answer around
 * the attachment. Nothing that is being written lies in them.
 */
static void
att_out_let_go(void *arg)
{
	struct att_sending *a = arg;

	rev_att_reader_rest(a->reader);
	if (a->before.let_go)
		a->before.let_go(a->before.arg);
	couch_snapshot_rest(a->s);
	a->rested = a->renewed = true;
	a->read_bytes = REV_ATT_CHUNK_BYTES;
}

static enum status
att_out_database_gone(struct couch_req *r)
{
	return err_set(&r->fail.err, STATUS_DELETED,
		       "the database was deleted while an attachment of it was sent");
}

/*
 * A chunk is not there, or not as it was written. In a later view that is no damage if the last
 * revision that had the attachment has gone.
 */
static enum status
att_out_explain_missing(struct att_sending *a)
{
	bool kept;

	if (!a->renewed || rev_att_reader_is_invalid(a->reader))
		return STATUS_CORRUPT;
	TRY(rev_att_reader_is_kept(a->reader, a->s->tx, &kept));
	if (kept)
		return STATUS_CORRUPT;
	return err_set(&a->s->r->fail.err, STATUS_DELETED,
		       "an attachment was deleted while it was sent");
}

/*
 * Renews the snapshot after a failure, since an attachment's data never changes. STATUS_OK: read
 * the piece again. The end, corrupt and deleted data are returned as they are.
 */
static enum status
att_out_renew(struct att_sending *a, enum status status)
{
	if (status == STATUS_CORRUPT)
		status = att_out_explain_missing(a);
	if (status == STATUS_NOT_FOUND || status == STATUS_CORRUPT || status == STATUS_DELETED)
		return status;
	a->renewed = true;
	status = couch_snapshot_renew(a->s, status);
	/* Not the end of the attachment. */
	return status == STATUS_NOT_FOUND ? att_out_database_gone(a->s->r) : status;
}

static enum status
att_out_not_gzip(struct couch_req *r, struct str name)
{
	return couch_fail_set(
		&r->fail, COUCH_ERROR_NOT_ACCEPTABLE,
		"The attachment %s is stored as gzip and is not valid gzip. It can be "
		"read as it is stored: by itself with Accept-Encoding: gzip, or with its "
		"document as multipart/related.",
		QUOTE_SHOW(name));
}

enum status
couch_att_check(struct couch_req *r, struct kv_tx *tx, const struct rev_att *att)
{
	bool valid;

	if (att->encoding != REV_ATT_GZIP)
		return STATUS_OK;
	TRY(att_out_inflates(r, tx, att, &valid));
	return valid ? STATUS_OK : att_out_not_gzip(r, att->name);
}

/* Reads the next piece; in a fresh view if the client did not read for a while. */
static enum status
att_out_read(struct att_sending *a, struct str *ret)
{
	const struct budget *b = http_memory(a->s->r->x)->budget;
	size_t n = REV_ATT_READ_BYTES;
	size_t most = a->read_bytes;
	enum status status = couch_snapshot_resume(a->s);

	/* Not the end of the attachment. */
	if (status == STATUS_NOT_FOUND)
		return att_out_database_gone(a->s->r);
	TRY(status);
	if (b)
		n = budget_portion(b, REV_ATT_READ_BYTES, REV_ATT_CHUNK_BYTES);
	rev_att_reader_limit(a->reader, n < most ? n : most,
			     a->base64 ? ATT_TEXT_BYTES : REV_ATT_CHUNK_BYTES);
	if (a->base64)
		return rev_att_base64_next(a->reader, a->s->tx, &a->carry, &a->text, ret);
	return rev_att_reader_next(a->reader, a->s->tx, ret);
}

/*
 * Sends a piece that lies in what was read. What the kernel does not take at once is copied, little
 * by little, because the wait for the client may free it. Then the rest of it is read again.
 */
static enum status
att_out_write_read(struct att_sending *a, struct str piece)
{
	struct http_exchange *x = a->s->r->x;

	piece = str_skip(piece, http_write_now(x, piece));
	while (piece.len) {
		struct str part = str_of(piece.ptr,
					 piece.len < ATT_COPY_BYTES ? piece.len : ATT_COPY_BYTES);

		buf_set(&a->text, part);
		TRY(buf_status(&a->text));
		TRY(http_write(x, buf_str(&a->text)));
		piece.len -= part.len;
		if (a->s->resting) {
			rev_att_reader_back(a->reader, piece.len);
			return STATUS_OK;
		}
		piece.ptr += part.len;
	}
	return STATUS_OK;
}

static enum status
att_out_send_pieces(struct att_sending *a, struct str first)
{
	enum status status = first.len ? http_write(a->s->r->x, first) : STATUS_OK;

	while (status == STATUS_OK) {
		struct str piece;

		status = att_out_read(a, &piece);
		if (status != STATUS_OK) {
			status = att_out_renew(a, status);
			continue;
		}
		a->s->failures = 0;
		if (a->read_bytes < REV_ATT_READ_BYTES)
			a->read_bytes += REV_ATT_CHUNK_BYTES;
		if (a->base64 || a->owned)
			status = http_write(a->s->r->x, piece);
		else
			status = att_out_write_read(a, piece);
		wait_yield();
	}
	if (rev_att_reader_is_invalid(a->reader))
		return err_set(&a->s->r->fail.err, STATUS_CORRUPT,
			       "an attachment is stored as gzip and is not valid gzip");
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/*
 * Sends `first`, and then all that the reader yields, even if the snapshot becomes too old
 * meanwhile or the client does not read. Frees the reader.
 */
static enum status
att_out_send(struct couch_snapshot *s, struct rev_att_reader *reader, struct str first, bool base64,
	     bool decodes)
{
	struct budget_part *part = http_memory(s->r->x);
	struct att_sending a = {
		.s = s,
		.reader = reader,
		.base64 = base64,
		.owned = decodes,
		.rested = s->resting,
		.renewed = s->resting,
		.read_bytes = REV_ATT_CHUNK_BYTES,
		.carry = BUF_SHORT(REV_ATT_BASE64_BYTES),
		.text = BUF_SHORT(REV_ATT_BASE64_BYTES),
	};
	size_t held = (base64 ? 4 * ATT_TEXT_BYTES : ATT_COPY_BYTES) +
		      (decodes ? REV_ATT_DECODE_BYTES : 0);
	enum status status;

	budget_count(part, held);
	a.before = http_on_wait(s->r->x, (struct net_wait_hook){ att_out_let_go, &a });
	status = att_out_send_pieces(&a, first);
	(void)http_on_wait(s->r->x, a.before);
	rev_att_reader_free(reader);
	/*
	 * If the view was let go of, then so was the page of a listing around the attachment. The
	 * listing finds that out by the view, which must not seem to be the one of before.
	 */
	if (a.rested)
		couch_snapshot_rest(s);
	buf_release(&a.carry);
	buf_release(&a.text);
	budget_unuse(part, held);
	return status;
}

enum status
couch_att_send(struct couch_snapshot *s, const struct rev_att *att, uint64_t begin, uint64_t end)
{
	struct rev_att_reader *reader;

	TRY(rev_att_reader_new(s->r->db, att, false, begin, end, &reader));
	return att_out_send(s, reader, STR(""), false, false);
}

/*
 * Checks an attachment of which `reader` has given the first piece, beside that reader. The piece
 * stays valid.
 */
static enum status
att_out_check_rest(struct couch_snapshot *s, const struct rev_att *att,
		   struct rev_att_reader *reader)
{
	enum status status;

	/* A new view frees what the reader has read of the one before. */
	rev_att_reader_rest(reader);
	while ((status = couch_att_check(s->r, s->tx, att)) != STATUS_OK)
		TRY(couch_snapshot_renew(s, status));
	return STATUS_OK;
}

enum status
couch_att_open_decoded(struct couch_snapshot *s, const struct rev_att *att,
		       struct couch_att_decoded *ret)
{
	enum status status;

	*ret = (struct couch_att_decoded){ .first = STR("") };
	TRY(couch_snapshot_resume(s));
	TRY(rev_att_reader_new(s->r->db, att, true, 0, att->encoded_length, &ret->reader));
	rev_att_reader_limit(ret->reader, REV_ATT_CHUNK_BYTES, REV_ATT_CHUNK_BYTES);
	do {
		status = rev_att_reader_next(ret->reader, s->tx, &ret->first);
		if (status == STATUS_NOT_FOUND)
			return STATUS_OK; /* it is empty */
		if (status == STATUS_OK)
			break;
		if (rev_att_reader_is_invalid(ret->reader))
			status = att_out_not_gzip(s->r, att->name);
		else
			status = couch_snapshot_renew(s, status);
	} while (status == STATUS_OK);
	if (status == STATUS_OK && ret->first.len == REV_ATT_PIECE_BYTES)
		status = att_out_check_rest(s, att, ret->reader);
	if (status != STATUS_OK)
		rev_att_reader_free(ret->reader);
	return status;
}

enum status
couch_att_send_decoded(struct couch_snapshot *s, const struct couch_att_decoded *d)
{
	return att_out_send(s, d->reader, d->first, false, true);
}

static enum status
att_out_send_base64(struct couch_snapshot *s, const struct rev_att *att)
{
	struct rev_att_reader *reader;

	TRY(rev_att_reader_new(s->r->db, att, true, 0, att->encoded_length, &reader));
	return att_out_send(s, reader, STR(""), true, att->encoding == REV_ATT_GZIP);
}

enum status
couch_att_fill(void *arg, const struct couch_hole *hole)
{
	struct couch_snapshot *s = arg;

	if (hole->kind == COUCH_HOLE_BASE64)
		return att_out_send_base64(s, &hole->att);
	return couch_att_send(s, &hole->att, 0, hole->att.encoded_length);
}

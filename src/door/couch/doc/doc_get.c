/* GET /{db}/{docid}: one revision, several, or the value at a path. */
#include "base/quote.h"
#include "door/couch/admin/snapshot.h"
#include "door/couch/doc/att_out.h"
#include "door/couch/doc/doc_in.h"
#include "door/couch/doc/doc_opts.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/doc/endpoints.h"
#include "door/couch/doc/related.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/holes.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "loop/step.h"
#include "model/revisioned/read.h"

enum {
	OPEN_REVS_STEP_BYTES = 64, /* of the answer, in a step */
};

struct get_call {
	struct couch_req *r;
	struct str id;
	unsigned flags;
	bool has_rev;
	struct rev_id rev;
	struct str path; /* ptr NULL: the whole document */

	/* open_revs */
	bool open_revs;
	bool all;
	struct rev_id *revs;
	size_t revs_count;
	struct str boundary; /* multipart/mixed, or ptr NULL for JSON */

	struct couch_doc_opts opts;
	bool related;     /* multipart/related is wanted, if there are attachments to send */
	struct str inner; /* the boundary of documents with their attachments */
	struct str type;  /* of the answer, where it is not JSON */
	struct couch_holes holes;
	struct buf out;
	struct rev_id shown; /* for the ETag */
	bool has_meta;
};

/*
 * Checks the attachments that the document shows inflated, as long as their failure can still be
 * the answer.
 */
static enum status
doc_get_check_atts(struct get_call *c, struct kv_tx *tx, const struct couch_doc_out *d)
{
	struct couch_att_choice choice;

	if (d->doc->atts_count == 0 || c->r->head)
		return STATUS_OK;
	choice = couch_att_choose(&c->opts, d->branch);
	for (size_t i = 0; i < d->doc->atts_count; i++)
		if (couch_att_whole(&choice, &d->doc->atts[i]))
			TRY(couch_att_check(c->r, tx, &d->doc->atts[i]));
	return STATUS_OK;
}

/*
 * Writes the document; as multipart/related, with a part for each attachment, if the client accepts
 * that and there are any.
 */
static enum status
doc_get_write_doc(struct get_call *c, struct kv_tx *tx, const struct couch_doc_out *d)
{
	if (!c->related || !couch_atts_any_whole(&c->opts, d->doc, d->branch)) {
		/* No parts follow then, so the document must not promise any. */
		c->opts.flags &= ~(unsigned)COUCH_DOC_FOLLOWS;
		TRY(doc_get_check_atts(c, tx, d));
		return couch_doc_write(d, &c->out);
	}
	c->type = arena_printf(c->r->arena, "multipart/related; boundary=\"%.*s\"",
			       STR_ARG(c->inner));
	if (!c->type.ptr)
		return STATUS_LIMIT;
	return couch_related_write(d, c->inner, &c->out);
}

static enum status
doc_get_write_head(struct get_call *c, struct kv_tx *tx, const struct rev_tree *tree,
		   const struct rev_branch *branch)
{
	struct rev_doc doc;
	struct couch_doc_out d = { c->id, &doc, tree, branch, &c->opts };

	TRY(couch_head_read(c->r, tx, c->id, branch, &doc));
	c->shown = branch->rev;
	return doc_get_write_doc(c, tx, &d);
}

/*
 * Writes a revision that is no live head: a tombstone or, with `latest`, the head that replaced it.
 */
static enum status
doc_get_other_rev(struct get_call *c, struct kv_tx *tx)
{
	struct rev_branch branch;
	const struct rev_tree tree = { .branches = &branch, .count = 1 };

	TRY(couch_head_look_up(c->r, tx, c->id, c->rev, c->flags & COUCH_DOC_LATEST, &branch));
	c->opts.flags = c->flags & COUCH_DOC_OF_A_HEAD;
	return doc_get_write_head(c, tx, &tree, &branch);
}

static enum status
doc_get_rev(struct get_call *c, struct kv_tx *tx)
{
	struct rev_doc doc;
	struct couch_doc_out d = { .id = c->id, .doc = &doc, .opts = &c->opts };
	enum status status;

	if ((c->flags & (COUCH_DOC_REVS | COUCH_DOC_LATEST)) || c->opts.has_since)
		return doc_get_other_rev(c, tx);
	status = rev_doc_read_head(tx, c->r->db, c->id, c->rev, false, c->r->arena, &doc);
	if (status == STATUS_NOT_FOUND)
		return doc_get_other_rev(c, tx);
	if (status != STATUS_OK)
		return status;
	c->shown = doc.rev;
	return doc_get_write_doc(c, tx, &d);
}

static enum status
doc_get_winner(struct get_call *c, struct kv_tx *tx)
{
	struct rev_tree tree;
	struct rev_doc doc;
	struct couch_doc_out d = { .id = c->id, .doc = &doc, .opts = &c->opts };

	if (!(c->flags & COUCH_DOC_OF_THE_TREE) && !c->opts.has_since) {
		TRY(rev_doc_read(tx, c->r->db, c->id, c->r->arena, &doc));
		c->shown = doc.rev;
		return doc_get_write_doc(c, tx, &d);
	}
	TRY(rev_tree_read(tx, c->r->db, c->id, REV_TREE_WINNER, c->r->arena, &tree));
	if (tree.branches[0].deleted)
		return STATUS_DELETED;
	for (size_t i = 1; i < tree.count; i++) {
		unsigned flag = tree.branches[i].deleted ? COUCH_DOC_DELETED_CONFLICTS
							 : COUCH_DOC_CONFLICTS;

		c->has_meta = c->has_meta || (c->flags & flag);
	}
	if (c->flags & (COUCH_DOC_REVS_INFO | COUCH_DOC_LOCAL_SEQ))
		c->has_meta = true;
	return doc_get_write_head(c, tx, &tree, &tree.branches[0]);
}

/* A document's own members, and no others. A tombstone may have none. */
static enum status
doc_get_members(struct get_call *c, struct kv_tx *tx, const struct rev_branch *branch)
{
	struct rev_doc doc;

	TRY(couch_head_read(c->r, tx, c->id, branch, &doc));
	buf_append_byte(&c->out, '{');
	return rev_body_write(&doc, false, &c->out);
}

/* Appends the value in one revision's body: reads the leaves that it returns and no others. */
static enum status
doc_get_value(struct get_call *c, struct kv_tx *tx, const struct doc_pointer *pointer,
	      const struct rev_branch *branch)
{
	struct couch_req *r = c->r;
	struct doc_place place;

	buf_clear(&c->out);
	c->shown = branch->rev;
	/* The whole document has attachments beside its members. */
	if (pointer->count == 0)
		return doc_get_members(c, tx, branch);
	TRY(rev_doc_place(r->db, c->id, branch->rev, branch->deleted, r->arena, &place));
	return doc_read_pointer(tx, place, pointer, KV_READ, r->arena, &c->out, &r->fail.err);
}

static enum status
doc_get_nothing_at_path(struct get_call *c)
{
	return couch_fail_set(&c->r->fail, COUCH_ERROR_NOT_FOUND,
			      "The document has nothing at path %s", QUOTE_SHOW(c->path));
}

/*
 * The value in the revision that the client named. Nearly always that is a live head, whose place
 * is known without its tree. Otherwise the tree tells whether it is a tombstone, or is to be
 * replaced by the latest one.
 */
static enum status
doc_get_value_of_rev(struct get_call *c, struct kv_tx *tx, const struct doc_pointer *pointer)
{
	const struct rev_branch live = { .rev = c->rev };
	struct rev_branch branch;
	enum status status = doc_get_value(c, tx, pointer, &live);

	if (status != STATUS_NOT_FOUND)
		return status;
	status = couch_head_look_up(c->r, tx, c->id, c->rev, c->flags & COUCH_DOC_LATEST, &branch);
	if (status == STATUS_NOT_FOUND)
		return couch_fail_set(&c->r->fail, COUCH_ERROR_NOT_FOUND, "missing");
	TRY(status);
	if (!branch.deleted && rev_id_eq(branch.rev, c->rev))
		return doc_get_nothing_at_path(c);
	status = doc_get_value(c, tx, pointer, &branch);
	return status == STATUS_NOT_FOUND ? doc_get_nothing_at_path(c) : status;
}

static enum status
doc_get_path(struct get_call *c, struct kv_tx *tx)
{
	struct couch_req *r = c->r;
	struct rev_branch winner = { .winner = true };
	struct doc_pointer pointer;
	enum status status;

	status = doc_pointer_parse(c->path, r->arena, &pointer, &r->fail.err);
	if (status == STATUS_INVALID)
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "`path` must be a JSON Pointer (RFC 6901): \"%s\" is none.",
				      QUOTE_SHOW(c->path));
	if (status == STATUS_LIMIT && !arena_is_full(r->arena))
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "`path` has a JSON Pointer of more than %d tokens.",
				      JSON_DEPTH_LIMIT);
	TRY(status);
	if (c->has_rev)
		return doc_get_value_of_rev(c, tx, &pointer);
	TRY(rev_winner_read(tx, r->db, c->id, r->arena, &winner.rev));
	status = doc_get_value(c, tx, &pointer, &winner);
	return status == STATUS_NOT_FOUND ? doc_get_nothing_at_path(c) : status;
}

/* ---- open_revs ---- */

static enum status
open_revs_missing(struct get_call *c, struct rev_id rev, bool first)
{
	if (c->boundary.ptr)
		buf_append_cstr(&c->out,
				"\r\nContent-Type: application/json; error=\"true\"\r\n\r\n");
	else if (!first)
		buf_append_byte(&c->out, ',');
	buf_append_cstr(&c->out, "{\"missing\":");
	couch_rev_write(rev, &c->out);
	buf_append_byte(&c->out, '}');
	return buf_status(&c->out);
}

/* A part of multipart/mixed: the document, or a multipart/related body with its attachments. */
static enum status
open_revs_part(struct get_call *c, const struct couch_doc_out *d)
{
	if (!couch_atts_any_whole(&c->opts, d->doc, d->branch)) {
		buf_append_cstr(&c->out, "\r\nContent-Type: application/json\r\n\r\n");
		return couch_doc_write(d, &c->out);
	}
	buf_append_cstr(&c->out, "\r\nContent-Type: multipart/related; boundary=\"");
	buf_append_str(&c->out, c->inner);
	buf_append_cstr(&c->out, "\"\r\n\r\n");
	return couch_related_write(d, c->inner, &c->out);
}

/* Writes one revision that is there. `head` may lack its ancestors. */
static enum status
open_revs_found(struct get_call *c, struct kv_tx *tx, const struct rev_branch *head, bool first)
{
	struct rev_branch branch;
	const struct rev_tree tree = { .branches = &branch, .count = 1 };
	struct rev_doc doc;
	struct couch_doc_out d = { c->id, &doc, &tree, &branch, &c->opts };

	TRY(couch_head_complete(c->r, tx, c->id, head, &c->opts, &branch));
	if (c->boundary.ptr) {
		TRY(couch_head_read(c->r, tx, c->id, &branch, &doc));
		return open_revs_part(c, &d);
	}
	buf_append_cstr(&c->out, first ? "{\"ok\":" : ",{\"ok\":");
	TRY(couch_head_write(c->r, tx, c->id, &tree, &branch, &c->opts, &c->out));
	buf_append_byte(&c->out, '}');
	return buf_status(&c->out);
}

static void
open_revs_end(struct get_call *c)
{
	if (!c->boundary.ptr)
		return;
	buf_append_cstr(&c->out, "\r\n--");
	buf_append_str(&c->out, c->boundary);
}

/*
 * Writes one revision that is there, and forgets what was read for it: there may be thousands.
 * Attachments that the answer shows are kept, since their bytes are read later.
 */
static enum status
open_revs_next(struct get_call *c, struct kv_tx *tx, const struct rev_branch *head, bool first)
{
	struct arena_mark mark = arena_mark(c->r->arena);
	uint64_t reads = kv_reads_mark(tx);
	size_t before = c->out.len;

	TRY(open_revs_found(c, tx, head, first));
	open_revs_end(c);
	TRY(step_count((uint32_t)(1 + (c->out.len - before) / OPEN_REVS_STEP_BYTES)));
	if (couch_holes_any(&c->holes))
		return STATUS_OK;
	kv_reads_forget(tx, reads);
	arena_reset(c->r->arena, mark);
	return STATUS_OK;
}

/* Writes the revisions that are there, then those that are missing. */
static enum status
open_revs_listed(struct get_call *c, struct kv_tx *tx)
{
	unsigned flags = c->flags & COUCH_DOC_LATEST ? 0 : REV_DESCENT_ITSELF;
	struct couch_wanted w;

	TRY(couch_heads_wanted(c->r, tx, c->id, c->revs, c->revs_count, flags, &w));
	for (size_t i = 0; i < w.heads_count; i++)
		TRY(open_revs_next(c, tx, w.heads[i], i == 0));
	for (size_t i = 0; i < w.missing_count; i++) {
		TRY(open_revs_missing(c, w.missing[i], w.heads_count + i == 0));
		open_revs_end(c);
	}
	return STATUS_OK;
}

static enum status
open_revs_all(struct get_call *c, struct kv_tx *tx)
{
	struct rev_tree tree;

	TRY(rev_tree_read(tx, c->r->db, c->id, REV_TREE_WINNER, c->r->arena, &tree));
	for (size_t i = 0; i < tree.count; i++)
		TRY(open_revs_next(c, tx, &tree.branches[i], i == 0));
	return STATUS_OK;
}

static enum status
doc_get_open_revs(struct get_call *c, struct kv_tx *tx)
{
	c->opts.flags = c->flags & COUCH_DOC_OF_A_HEAD;
	c->opts.check_tx = tx;
	c->opts.check_req = c->r;
	if (c->boundary.ptr)
		c->opts.flags |= COUCH_DOC_ATTS | COUCH_DOC_ATT_ENCODING | COUCH_DOC_FOLLOWS;
	if (c->boundary.ptr) {
		buf_append_cstr(&c->out, "--");
		buf_append_str(&c->out, c->boundary);
	} else {
		buf_append_byte(&c->out, '[');
	}
	TRY(c->all ? open_revs_all(c, tx) : open_revs_listed(c, tx));
	buf_append_cstr(&c->out, c->boundary.ptr ? "--" : "]");
	return buf_status(&c->out);
}

static enum status
open_revs_parse(struct get_call *c, struct str text)
{
	struct couch_req *r = c->r;

	c->open_revs = true;
	/*
	 * CouchDB prefers multipart to JSON whatever the qualities are. A client that wants JSON
	 * must not accept multipart.
	 */
	if (couch_accepts(r, "multipart/mixed", true)) {
		c->boundary = couch_uuid_new(r->arena);
		if (!c->boundary.ptr)
			return STATUS_NOMEM;
		c->type = arena_printf(r->arena, "multipart/mixed; boundary=\"%.*s\"",
				       STR_ARG(c->boundary));
		if (!c->type.ptr)
			return STATUS_NOMEM;
	}
	if (str_eq(text, STR("all"))) {
		c->all = true;
		return STATUS_OK;
	}
	TRY(couch_revs_read(r, text, &c->revs, &c->revs_count, &r->fail));
	/* For CouchDB an empty list is the same as no list. */
	c->open_revs = c->revs_count > 0;
	return STATUS_OK;
}

static enum status
doc_get_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct get_call *c = arg;

	buf_clear(&c->out);
	couch_holes_cut(&c->holes, 0);
	c->has_meta = false;
	if (!c->open_revs)
		c->type = (struct str){ NULL, 0 };
	c->opts.flags = c->flags;
	c->opts.revs_limit = rev_db_revs_limit(r->db);
	if (c->related)
		c->opts.flags |= COUCH_DOC_ATT_ENCODING | COUCH_DOC_FOLLOWS;
	if (c->open_revs)
		return doc_get_open_revs(c, tx);
	if (c->path.ptr)
		return doc_get_path(c, tx);
	return c->has_rev ? doc_get_rev(c, tx) : doc_get_winner(c, tx);
}

/* Sends the answer with its attachments, which are read from the store on the way. */
static enum status
doc_get_send_with_atts(struct get_call *c, struct couch_snapshot *s)
{
	struct couch_req *r = c->r;
	uint64_t length;

	if (!c->type.ptr || !couch_holes_length(&c->holes, c->out.len, &length))
		length = HTTP_LENGTH_UNKNOWN;
	TRY(http_start(r->x, length));
	if (!r->head)
		TRY(couch_holes_send(&c->holes, r, couch_att_fill, s, buf_str(&c->out)));
	return http_finish(r->x);
}

static enum status
doc_get_answer(struct get_call *c, struct couch_snapshot *s)
{
	struct couch_req *r = c->r;
	bool sent;

	/* Like CouchDB, this sets an ETag only if the answer is the document and nothing else. */
	if (!c->open_revs && !c->has_meta && !c->path.ptr) {
		TRY(couch_reply_etag_of_rev(r, c->shown, &sent));
		if (sent)
			return STATUS_OK;
	}
	if (!c->type.ptr && !couch_holes_any(&c->holes))
		return couch_reply(r, 200, &c->out);
	couch_json_headers(r);
	if (c->type.ptr) {
		/*
		 * Attachments that compress well are stored compressed, so compressing the whole
		 * gains nothing.
		 */
		http_set_header(r->x, STR("Content-Type"), c->type);
		http_allow_gzip(r->x, 0);
	} else {
		buf_append_byte(&c->out, '\n');
	}
	TRY(buf_status(&c->out));
	if (!couch_holes_any(&c->holes))
		return http_send(r->x, buf_str(&c->out));
	return doc_get_send_with_atts(c, s);
}

static enum status
doc_get_read_and_answer(struct get_call *c, struct couch_snapshot *s)
{
	TRY(couch_snapshot_begin(s, c->r));
	TRY(couch_snapshot_run(s, doc_get_attempt, c));
	return doc_get_answer(c, s);
}

static enum status
doc_get_read_query(struct get_call *c)
{
	struct couch_req *r = c->r;
	struct str value;

	if (couch_param_last(r, "rev", &value)) {
		c->has_rev = true;
		TRY(couch_rev_parse(value, r->arena, &c->rev, &r->fail));
	}
	if (couch_param_last(r, "open_revs", &value))
		TRY(open_revs_parse(c, value));
	if (couch_param_last(r, "atts_since", &value)) {
		TRY(couch_revs_read(r, value, &c->opts.since, &c->opts.since_count, &r->fail));
		c->opts.has_since = true;
		c->flags |= COUCH_DOC_ATTS;
	}
	if (!couch_param(r, "path", &c->path))
		c->path.ptr = NULL;
	c->related = !c->open_revs && (c->flags & COUCH_DOC_ATTS) &&
		     couch_accepts(r, "multipart/related", true);
	if (!c->related && !c->boundary.ptr)
		return STATUS_OK;
	c->inner = couch_uuid_new(r->arena);
	return c->inner.ptr ? STATUS_OK : STATUS_NOMEM;
}

enum status
couch_doc_get(struct couch_req *r, struct str id)
{
	struct get_call c = { .r = r, .id = id, .flags = couch_doc_flags(r) };
	struct couch_snapshot snapshot = { 0 };
	enum status status;

	c.holes = COUCH_HOLES_INIT;
	c.opts.holes = &c.holes;
	c.out = couch_buf(r, COUCH_ANSWER_BYTES);
	status = doc_get_read_query(&c);
	if (status == STATUS_OK)
		status = doc_get_read_and_answer(&c, &snapshot);
	couch_snapshot_end(&snapshot);
	couch_holes_release(&c.holes);
	buf_release(&c.out);
	return status;
}

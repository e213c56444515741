/* GET /{db}/{docid}: one revision, several, or the value at a path. */
#include "base/quote.h"
#include "door/couch/admin/snapshot.h"
#include "door/couch/doc/att_out.h"
#include "door/couch/doc/doc_in.h"
#include "door/couch/doc/doc_opts.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/doc/edit.h"
#include "door/couch/doc/endpoints.h"
#include "door/couch/doc/open_revs.h"
#include "door/couch/doc/related.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/holes.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "door/couch/wire/uuid.h"
#include "loop/step.h"
#include "model/revisioned/read.h"

struct get_call {
	struct couch_req *r;
	struct str id;
	unsigned flags;
	bool has_rev;
	struct rev_id rev;
	struct str path; /* ptr NULL: the whole document */

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

/* ---- The whole ---- */

static enum status
doc_get_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct get_call *c = arg;

	TRY(couch_look_up_check_id(r, c->id, &r->fail));
	buf_clear(&c->out);
	couch_holes_cut(&c->holes, 0);
	c->has_meta = false;
	c->type = (struct str){ NULL, 0 };
	c->opts.flags = c->flags;
	c->opts.revs_limit = rev_db_revs_limit(r->db);
	if (c->related)
		c->opts.flags |= COUCH_DOC_ATT_ENCODING | COUCH_DOC_FOLLOWS;
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
	if (!c->has_meta && !c->path.ptr) {
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
	if (couch_param_last(r, "atts_since", &value)) {
		TRY(couch_revs_read(r, value, &c->opts.since, &c->opts.since_count, &r->fail));
		c->opts.has_since = true;
		c->flags |= COUCH_DOC_ATTS;
	}
	if (!couch_param(r, "path", &c->path))
		c->path.ptr = NULL;
	c->related = (c->flags & COUCH_DOC_ATTS) && couch_accepts(r, "multipart/related", true);
	if (!c->related)
		return STATUS_OK;
	c->inner = couch_uuid_new(r->arena);
	return c->inner.ptr ? STATUS_OK : STATUS_NOMEM;
}

enum status
couch_doc_get(struct couch_req *r, struct str id)
{
	struct get_call c = { .r = r, .id = id, .flags = couch_doc_flags(r) };
	struct couch_snapshot snapshot = { 0 };
	struct couch_open_revs wanted = { 0 };
	enum status status;

	TRY(doc_get_read_query(&c));
	TRY(couch_open_revs_read(r, &wanted));
	if (wanted.given)
		return couch_open_revs_send(r, id, c.flags, &c.opts, &wanted);
	c.holes = COUCH_HOLES_INIT(r);
	c.opts.holes = &c.holes;
	c.out = couch_buf(r, COUCH_ANSWER_BYTES);
	status = doc_get_read_and_answer(&c, &snapshot);
	couch_snapshot_end(&snapshot);
	couch_holes_release(&c.holes);
	buf_release(&c.out);
	return status;
}

/* GET /{db}/{docid}: one revision, several, or the value at a path. */
#include "door/couch/att.h"

struct get_call {
	struct couch_req *r;
	struct str id;
	unsigned flags;
	bool has_rev;
	struct rev_id rev;
	struct str path; /* ptr NULL: the whole document */
	struct arena_mark mark;

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

/* The document, or, where the client takes it so and it has some, one part for each attachment. */
static enum status
write_doc(struct get_call *c, const struct couch_doc_out *d)
{
	if (!c->related || !couch_atts_any_whole(&c->opts, d->doc, d->branch)) {
		/* Nothing follows then. */
		c->opts.flags &= ~(unsigned)COUCH_DOC_FOLLOWS;
		return couch_doc_write(d, &c->out);
	}
	c->type = arena_printf(c->r->arena, "multipart/related; boundary=\"%.*s\"",
			       STR_ARG(c->inner));
	if (!c->type.ptr)
		return STATUS_LIMIT;
	return couch_related_write(d, c->inner, &c->out);
}

static enum status
write_leaf(struct get_call *c, struct kv_tx *tx, const struct rev_tree *tree,
	   const struct rev_branch *branch)
{
	struct rev_doc doc;
	struct couch_doc_out d = { c->id, &doc, tree, branch, &c->opts };

	TRY(couch_leaf_read(c->r, tx, c->id, branch, &doc));
	c->shown = branch->rev;
	return write_doc(c, &d);
}

/* Where a body is not stored: is it a tombstone, or a revision that a newer one replaced? */
static enum status
get_other_rev(struct get_call *c, struct kv_tx *tx)
{
	const struct rev_branch *branch;
	struct rev_tree tree;

	TRY(rev_tree_read(tx, c->r->db, c->id, c->r->arena, &tree));
	branch = couch_leaf_find(&tree, c->rev, c->flags & COUCH_DOC_LATEST);
	if (!branch)
		return STATUS_NOT_FOUND;
	c->opts.flags = c->flags & COUCH_DOC_OF_A_LEAF;
	return write_leaf(c, tx, &tree, branch);
}

static enum status
get_rev(struct get_call *c, struct kv_tx *tx)
{
	struct rev_doc doc;
	struct couch_doc_out d = { .id = c->id, .doc = &doc, .opts = &c->opts };
	enum status status;

	if ((c->flags & (COUCH_DOC_REVS | COUCH_DOC_LATEST)) || c->opts.has_since)
		return get_other_rev(c, tx);
	status = rev_doc_read_leaf(tx, c->r->db, c->id, c->rev, false, c->r->arena, &doc);
	if (status == STATUS_NOT_FOUND)
		return get_other_rev(c, tx);
	if (status != STATUS_OK)
		return status;
	c->shown = doc.rev;
	return write_doc(c, &d);
}

static enum status
get_winner(struct get_call *c, struct kv_tx *tx)
{
	struct rev_tree tree;
	struct rev_doc doc;
	struct couch_doc_out d = { .id = c->id, .doc = &doc, .opts = &c->opts };

	if (!(c->flags & COUCH_DOC_OF_THE_TREE) && !c->opts.has_since) {
		TRY(rev_doc_read(tx, c->r->db, c->id, c->r->arena, &doc));
		c->shown = doc.rev;
		return write_doc(c, &d);
	}
	TRY(rev_tree_read(tx, c->r->db, c->id, c->r->arena, &tree));
	if (tree.branches[0].deleted)
		return STATUS_DELETED;
	for (size_t i = 1; i < tree.count; i++) {
		unsigned flag = tree.branches[i].deleted ? COUCH_DOC_DELETED_CONFLICTS
							 : COUCH_DOC_CONFLICTS;

		c->has_meta = c->has_meta || (c->flags & flag);
	}
	if (c->flags & (COUCH_DOC_REVS_INFO | COUCH_DOC_LOCAL_SEQ))
		c->has_meta = true;
	return write_leaf(c, tx, &tree, &tree.branches[0]);
}

/* A document's own members, and no others. */
static enum status
get_members(struct get_call *c, struct kv_tx *tx)
{
	struct rev_doc doc;

	TRY(rev_doc_read_leaf(tx, c->r->db, c->id, c->rev, false, c->r->arena, &doc));
	buf_append_byte(&c->out, '{');
	return rev_body_write(&doc, false, &c->out);
}

/* The value at a JSON Pointer: reads the leaves that it returns and none else. */
static enum status
get_path(struct get_call *c, struct kv_tx *tx)
{
	struct doc_pointer pointer;
	struct str prefix;
	enum status status;

	status = doc_pointer_parse(c->path, c->r->arena, &pointer, &c->r->fail.err);
	if (status == STATUS_INVALID)
		return couch_fail_set(&c->r->fail, COUCH_ERROR_QUERY_PARSE,
				      "`path` must be a JSON Pointer (RFC 6901): \"%.*s\" is none.",
				      STR_ARG(c->path));
	if (status != STATUS_OK)
		return status;
	if (!c->has_rev)
		TRY(rev_winner_read(tx, c->r->db, c->id, c->r->arena, &c->rev));
	c->shown = c->rev;
	/* The whole document has attachments beside its members. */
	if (pointer.count == 0)
		return get_members(c, tx);
	TRY(rev_doc_prefix(c->r->db, c->id, c->rev, false, c->r->arena, &prefix));
	status = doc_read_pointer(tx, prefix, &pointer, KV_READ, c->r->arena, &c->out,
				  &c->r->fail.err);
	if (status == STATUS_NOT_FOUND)
		return couch_fail_set(&c->r->fail, COUCH_ERROR_NOT_FOUND,
				      "The document has nothing at path %.*s", STR_ARG(c->path));
	return status;
}

/* ---- open_revs ---- */

static enum status
open_missing(struct get_call *c, struct rev_id rev, bool first)
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
open_part(struct get_call *c, const struct couch_doc_out *d)
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

static enum status
open_found(struct get_call *c, struct kv_tx *tx, const struct rev_tree *tree,
	   const struct rev_branch *branch, bool first)
{
	struct rev_doc doc;
	struct couch_doc_out d = { c->id, &doc, tree, branch, &c->opts };

	if (c->boundary.ptr) {
		TRY(couch_leaf_read(c->r, tx, c->id, branch, &doc));
		return open_part(c, &d);
	}
	buf_append_cstr(&c->out, first ? "{\"ok\":" : ",{\"ok\":");
	TRY(couch_leaf_write(c->r, tx, c->id, tree, branch, &c->opts, &c->out));
	buf_append_byte(&c->out, '}');
	return buf_status(&c->out);
}

static void
open_end(struct get_call *c)
{
	if (!c->boundary.ptr)
		return;
	buf_append_cstr(&c->out, "\r\n--");
	buf_append_str(&c->out, c->boundary);
}

/* What is there, then what is not. */
static enum status
open_listed(struct get_call *c, struct kv_tx *tx, const struct rev_tree *tree)
{
	struct couch_wanted w;

	TRY(couch_leaves_wanted(tree, c->revs, c->revs_count, c->flags & COUCH_DOC_LATEST,
				c->r->arena, &w));
	for (size_t i = 0; i < w.leaves_count; i++) {
		TRY(open_found(c, tx, tree, w.leaves[i], i == 0));
		open_end(c);
	}
	for (size_t i = 0; i < w.missing_count; i++) {
		TRY(open_missing(c, w.missing[i], w.leaves_count + i == 0));
		open_end(c);
	}
	return STATUS_OK;
}

static enum status
get_open_revs(struct get_call *c, struct kv_tx *tx)
{
	struct rev_tree tree = { 0 };
	enum status status = rev_tree_read(tx, c->r->db, c->id, c->r->arena, &tree);

	c->opts.flags = c->flags & COUCH_DOC_OF_A_LEAF;
	if (c->boundary.ptr)
		c->opts.flags |= COUCH_DOC_ATTS | COUCH_DOC_ATT_ENCODING | COUCH_DOC_FOLLOWS;
	if (status == STATUS_NOT_FOUND && !c->all)
		tree.count = 0;
	else if (status != STATUS_OK)
		return status;

	if (c->boundary.ptr) {
		buf_append_cstr(&c->out, "--");
		buf_append_str(&c->out, c->boundary);
	} else {
		buf_append_byte(&c->out, '[');
	}
	for (size_t i = 0; c->all && i < tree.count; i++) {
		TRY(open_found(c, tx, &tree, &tree.branches[i], i == 0));
		open_end(c);
	}
	TRY(open_listed(c, tx, &tree));
	buf_append_cstr(&c->out, c->boundary.ptr ? "--" : "]");
	return buf_status(&c->out);
}

static enum status
parse_open_revs(struct get_call *c, struct str text)
{
	struct couch_req *r = c->r;

	c->open_revs = true;
	/* CouchDB prefers it to JSON, whatever the qualities: who wants JSON takes JSON only. */
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
	/* CouchDB takes an empty list for no list. */
	c->open_revs = c->revs_count > 0;
	return STATUS_OK;
}

static enum status
get_body(struct get_call *c, struct kv_tx *tx)
{
	arena_reset(c->r->arena, c->mark);
	buf_clear(&c->out);
	couch_holes_cut(&c->holes, 0);
	c->has_meta = false;
	if (!c->open_revs)
		c->type = (struct str){ NULL, 0 };
	c->opts.flags = c->flags;
	c->opts.revs_limit = c->r->db->revs_limit;
	if (c->related)
		c->opts.flags |= COUCH_DOC_ATT_ENCODING | COUCH_DOC_FOLLOWS;
	if (c->open_revs)
		return get_open_revs(c, tx);
	if (c->path.ptr)
		return get_path(c, tx);
	return c->has_rev ? get_rev(c, tx) : get_winner(c, tx);
}

/* As it comes out of the store, after everything else of the answer is settled. */
static enum status
send_with_atts(struct get_call *c, struct couch_snapshot *s)
{
	struct couch_req *r = c->r;
	uint64_t length;

	if (!c->type.ptr || !couch_holes_length(&c->holes, c->out.len, &length))
		length = HTTP_LENGTH_UNKNOWN;
	TRY(http_start(r->x, length));
	if (!r->head)
		TRY(couch_holes_send(&c->holes, r, s, buf_str(&c->out)));
	return http_finish(r->x);
}

static enum status
get_answer(struct get_call *c, struct couch_snapshot *s)
{
	struct couch_req *r = c->r;
	struct buf AUTO(buf_release) tag = BUF_INIT(2 * REV_HASH_LIMIT_BYTES);
	bool sent;

	/* CouchDB tags a document only when nothing but the document is in the answer. */
	if (!c->open_revs && !c->has_meta && !c->path.ptr) {
		buf_append_byte(&tag, '"');
		rev_id_write(c->shown, &tag);
		buf_append_byte(&tag, '"');
		TRY(buf_status(&tag));
		TRY(couch_reply_etag(r, buf_str(&tag), &sent));
		if (sent)
			return STATUS_OK;
	}
	if (!c->type.ptr && !couch_holes_any(&c->holes))
		return couch_reply(r, 200, &c->out);
	couch_json_headers(r);
	if (c->type.ptr) {
		/* Attachments that compress well are stored so. */
		http_set_header(r->x, STR("Content-Type"), c->type);
		http_allow_gzip(r->x, 0);
	} else {
		buf_append_byte(&c->out, '\n');
	}
	TRY(buf_status(&c->out));
	if (!couch_holes_any(&c->holes))
		return http_send(r->x, buf_str(&c->out));
	return send_with_atts(c, s);
}

static enum status
get(struct get_call *c, struct couch_snapshot *s)
{
	TRY(couch_snapshot_begin(s, c->r));
	c->mark = arena_mark(c->r->arena);
	for (;;) {
		enum status status = get_body(c, s->tx);

		if (status == STATUS_OK)
			return get_answer(c, s);
		TRY(couch_snapshot_renew(s, status));
	}
}

static enum status
read_query(struct get_call *c)
{
	struct couch_req *r = c->r;
	struct str value;

	if (couch_param(r, "rev", &value)) {
		c->has_rev = true;
		TRY(couch_rev_parse(value, r->arena, &c->rev, &r->fail));
	}
	if (couch_param(r, "open_revs", &value))
		TRY(parse_open_revs(c, value));
	if (couch_param(r, "atts_since", &value)) {
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
	status = read_query(&c);
	if (status == STATUS_OK)
		status = get(&c, &snapshot);
	couch_snapshot_end(&snapshot);
	couch_holes_release(&c.holes);
	buf_release(&c.out);
	return status;
}

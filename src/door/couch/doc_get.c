/* GET /{db}/{docid}: one revision, several, or the value at a path. */
#include "door/couch/couch_int.h"

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

	struct buf out;
	struct rev_id shown; /* for the ETag */
	bool has_meta;
};

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
	c->shown = branch->rev;
	return couch_leaf_write(c->r, tx, c->id, &tree, branch, c->flags & COUCH_DOC_REVS, &c->out);
}

static enum status
get_rev(struct get_call *c, struct kv_tx *tx)
{
	struct rev_doc doc;
	struct couch_doc_out d = { .id = c->id, .doc = &doc };
	enum status status;

	if (c->flags & (COUCH_DOC_REVS | COUCH_DOC_LATEST))
		return get_other_rev(c, tx);
	status = rev_doc_read_leaf(tx, c->r->db, c->id, c->rev, false, c->r->arena, &doc);
	if (status == STATUS_NOT_FOUND)
		return get_other_rev(c, tx);
	if (status != STATUS_OK)
		return status;
	c->shown = doc.rev;
	return couch_doc_write(&d, &c->out);
}

static enum status
get_winner(struct get_call *c, struct kv_tx *tx)
{
	struct rev_tree tree;
	struct rev_doc doc;
	struct couch_doc_out d = { .id = c->id, .doc = &doc };

	if (!(c->flags & ~(unsigned)COUCH_DOC_LATEST)) {
		TRY(rev_doc_read(tx, c->r->db, c->id, c->r->arena, &doc));
		c->shown = doc.rev;
		return couch_doc_write(&d, &c->out);
	}
	TRY(rev_tree_read(tx, c->r->db, c->id, c->r->arena, &tree));
	if (tree.branches[0].deleted)
		return STATUS_DELETED;
	c->shown = tree.branches[0].rev;
	for (size_t i = 1; i < tree.count; i++) {
		unsigned flag = tree.branches[i].deleted ? COUCH_DOC_DELETED_CONFLICTS
							 : COUCH_DOC_CONFLICTS;

		c->has_meta = c->has_meta || (c->flags & flag);
	}
	if (c->flags & (COUCH_DOC_REVS_INFO | COUCH_DOC_LOCAL_SEQ))
		c->has_meta = true;
	return couch_leaf_write(c->r, tx, c->id, &tree, &tree.branches[0], c->flags, &c->out);
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
	TRY(rev_doc_prefix(c->r->db, c->id, c->rev, false, c->r->arena, &prefix));
	status = doc_read_pointer(tx, prefix, &pointer, KV_READ, c->r->arena, &c->out,
				  &c->r->fail.err);
	if (status == STATUS_NOT_FOUND)
		return couch_fail_set(&c->r->fail, COUCH_ERROR_NOT_FOUND,
				      "The document has nothing at path %.*s", STR_ARG(c->path));
	c->shown = c->rev;
	return status;
}

/* ---- open_revs ---- */

static void
begin_part(struct get_call *c, bool missing, bool first)
{
	if (!c->boundary.ptr) {
		if (!first)
			buf_append_byte(&c->out, ',');
		buf_append_cstr(&c->out, missing ? "{\"missing\":" : "{\"ok\":");
		return;
	}
	buf_append_cstr(&c->out,
			missing ? "\r\nContent-Type: application/json; error=\"true\"\r\n\r\n"
				  "{\"missing\":"
				: "\r\nContent-Type: application/json\r\n\r\n");
}

static void
end_part(struct get_call *c, bool missing)
{
	if (!c->boundary.ptr || missing)
		buf_append_byte(&c->out, '}');
	if (c->boundary.ptr) {
		buf_append_cstr(&c->out, "\r\n--");
		buf_append_str(&c->out, c->boundary);
	}
}

static enum status
open_one(struct get_call *c, struct kv_tx *tx, const struct rev_tree *tree, struct rev_id rev,
	 const struct rev_branch *branch, bool first)
{
	begin_part(c, !branch, first);
	if (branch)
		TRY(couch_leaf_write(c->r, tx, c->id, tree, branch, c->flags & COUCH_DOC_REVS,
				     &c->out));
	else
		couch_rev_write(rev, &c->out);
	end_part(c, !branch);
	return STATUS_OK;
}

static enum status
get_open_revs(struct get_call *c, struct kv_tx *tx)
{
	struct rev_tree tree = { 0 };
	enum status status = rev_tree_read(tx, c->r->db, c->id, c->r->arena, &tree);

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
	for (size_t i = 0; c->all && i < tree.count; i++)
		TRY(open_one(c, tx, &tree, tree.branches[i].rev, &tree.branches[i], i == 0));
	for (size_t i = 0; i < c->revs_count; i++) {
		const struct rev_branch *branch = couch_leaf_find(&tree, c->revs[i],
								  c->flags & COUCH_DOC_LATEST);

		TRY(open_one(c, tx, &tree, c->revs[i], branch, i == 0));
	}
	buf_append_cstr(&c->out, c->boundary.ptr ? "--" : "]");
	return buf_status(&c->out);
}

static enum status
parse_open_revs(struct get_call *c, struct str text)
{
	struct couch_req *r = c->r;
	struct couch_json value;
	struct couch_json *items;

	c->open_revs = true;
	if (!couch_accepts(r, "application/json", true) &&
	    couch_accepts(r, "multipart/mixed", true)) {
		c->boundary = couch_uuid_new(r->arena);
		if (!c->boundary.ptr)
			return STATUS_NOMEM;
	}
	if (str_eq(text, STR("all"))) {
		c->all = true;
		return STATUS_OK;
	}
	TRY(couch_json_read(text, r->arena, &value, &r->fail.err));
	if (value.kind != JSON_ARRAY_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Invalid list of revisions");
	TRY(couch_json_items(&value, r->arena, &items, &c->revs_count, &r->fail.err));
	c->revs = arena_alloc(r->arena, (c->revs_count + 1) * sizeof(*c->revs));
	if (!c->revs)
		return STATUS_NOMEM;
	for (size_t i = 0; i < c->revs_count; i++) {
		if (items[i].kind != JSON_STRING)
			return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
					      "Invalid rev format");
		TRY(couch_rev_parse(items[i].string, r->arena, &c->revs[i], &r->fail));
	}
	/* CouchDB takes an empty list for no list. */
	c->open_revs = c->revs_count > 0;
	return STATUS_OK;
}

static enum status
get_body(struct kv_tx *tx, void *arg)
{
	struct get_call *c = arg;

	arena_reset(c->r->arena, c->mark);
	buf_clear(&c->out);
	c->has_meta = false;
	TRY(couch_db_open(c->r, tx, COUCH_ACCESS_MEMBER));
	if (c->open_revs)
		return get_open_revs(c, tx);
	if (c->path.ptr)
		return get_path(c, tx);
	return c->has_rev ? get_rev(c, tx) : get_winner(c, tx);
}

static enum status
get_answer(struct get_call *c)
{
	struct couch_req *r = c->r;
	struct buf AUTO(buf_release) tag = BUF_INIT(2 * REV_HASH_LIMIT_BYTES);
	bool sent;

	if (c->boundary.ptr) {
		struct str type = arena_printf(r->arena, "multipart/mixed; boundary=\"%.*s\"",
					       STR_ARG(c->boundary));

		if (!type.ptr)
			return STATUS_NOMEM;
		http_set_header(r->x, STR("Content-Type"), type);
		return http_send(r->x, buf_str(&c->out));
	}
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
	return couch_reply(r, 200, &c->out);
}

enum status
couch_doc_get(struct couch_req *r, struct str id)
{
	struct get_call c = { .r = r, .id = id, .flags = couch_doc_flags(r) };
	struct str value;
	enum status status;

	if (couch_param(r, "rev", &value)) {
		c.has_rev = true;
		TRY(couch_rev_parse(value, r->arena, &c.rev, &r->fail));
	}
	if (couch_param(r, "open_revs", &value))
		TRY(parse_open_revs(&c, value));
	if (!couch_param(r, "path", &c.path))
		c.path.ptr = NULL;

	buf_init(&c.out, COUCH_ANSWER_BYTES);
	c.mark = arena_mark(r->arena);
	status = kv_run_read(r->couch->config.store, get_body, &c, &r->fail.err);
	if (status == STATUS_OK)
		status = get_answer(&c);
	buf_release(&c.out);
	return status;
}

/*
 * GET /{db}/{docid}?open_revs=: many revisions of one document, as JSON or as multipart/mixed.
 *
 * Which revisions the answer has is looked up once. Then each is read, written and forgotten, so
 * that the answer takes the memory of one revision and of what the client has yet to read. If the
 * client does not read, or the snapshot becomes too old, the rest is read from a later one. A
 * revision that is gone by then is told to be missing.
 */
#include "door/couch/doc/open_revs.h"

#include "door/couch/admin/snapshot.h"
#include "door/couch/doc/att_out.h"
#include "door/couch/doc/doc_in.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/doc/edit.h"
#include "door/couch/doc/related.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/stream.h"
#include "door/couch/wire/uuid.h"
#include "loop/step.h"
#include "model/revisioned/read.h"

struct open_revs {
	struct couch_req *r;
	struct str id;
	unsigned flags;
	const struct couch_open_revs *asked;
	struct couch_wanted found;
	struct couch_doc_opts opts;
	struct str boundary; /* multipart/mixed, or ptr NULL for JSON */
	struct str inner;    /* the boundary of documents with their attachments */
	struct couch_snapshot snapshot;
	struct couch_stream stream;
	bool any;
};

/* ---- One revision ---- */

static void
open_revs_begin(struct open_revs *o, const char *member)
{
	struct buf *out = &o->stream.out;

	if (o->any)
		buf_append_byte(out, ',');
	buf_append_cstr(out, member);
}

static void
open_revs_end(struct open_revs *o)
{
	if (!o->boundary.ptr)
		return;
	buf_append_cstr(&o->stream.out, "\r\n--");
	buf_append_str(&o->stream.out, o->boundary);
}

static enum status
open_revs_write_missing(struct open_revs *o, struct rev_id rev)
{
	struct buf *out = &o->stream.out;

	if (o->boundary.ptr)
		buf_append_cstr(out, "\r\nContent-Type: application/json; error=\"true\"\r\n\r\n"
				     "{\"missing\":");
	else
		open_revs_begin(o, "{\"missing\":");
	couch_rev_write(rev, out);
	buf_append_byte(out, '}');
	open_revs_end(o);
	return buf_status(out);
}

/* A part of multipart/mixed: the document, or a multipart/related body with its attachments. */
static enum status
open_revs_write_part(struct open_revs *o, const struct couch_doc_out *d)
{
	struct buf *out = &o->stream.out;

	if (!couch_atts_any_whole(&o->opts, d->doc, d->branch)) {
		buf_append_cstr(out, "\r\nContent-Type: application/json\r\n\r\n");
		return couch_doc_write(d, out);
	}
	buf_append_cstr(out, "\r\nContent-Type: multipart/related; boundary=\"");
	buf_append_str(out, o->inner);
	buf_append_cstr(out, "\"\r\n\r\n");
	return couch_related_write(d, o->inner, out);
}

/* Writes one revision. `head` may lack its ancestors. STATUS_NOT_FOUND: it is gone. */
static enum status
open_revs_write_head(struct open_revs *o, struct kv_tx *tx, const struct rev_branch *head)
{
	struct rev_branch branch;
	const struct rev_tree tree = { .branches = &branch, .count = 1 };
	struct rev_doc doc;
	struct couch_doc_out d = { o->id, &doc, &tree, &branch, &o->opts };

	o->opts.check_tx = tx;
	o->opts.check_req = o->r;
	o->opts.revs_limit = rev_db_revs_limit(o->r->db);
	TRY(couch_head_complete(o->r, tx, o->id, head, &o->opts, &branch));
	TRY(couch_head_read(o->r, tx, o->id, &branch, &doc));
	if (o->boundary.ptr) {
		TRY(open_revs_write_part(o, &d));
	} else {
		open_revs_begin(o, "{\"ok\":");
		TRY(couch_doc_write(&d, &o->stream.out));
		buf_append_byte(&o->stream.out, '}');
	}
	open_revs_end(o);
	return buf_status(&o->stream.out);
}

struct head_call {
	struct open_revs *o;
	const struct rev_branch *head;
	size_t before; /* the length of the output before it */
};

static enum status
open_revs_head_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct head_call *c = arg;
	enum status status;

	(void)r;
	couch_stream_cut(&c->o->stream, c->before);
	status = open_revs_write_head(c->o, tx, c->head);
	if (status != STATUS_NOT_FOUND && status != STATUS_DELETED)
		return status;
	couch_stream_cut(&c->o->stream, c->before);
	return open_revs_write_missing(c->o, c->head->rev);
}

/* ---- The answer ---- */

/* Sends one revision, and forgets what was read for it: there may be thousands. */
static enum status
open_revs_send_head(struct open_revs *o, const struct rev_branch *head)
{
	struct arena_mark mark = arena_mark(o->r->arena);
	uint64_t reads = kv_reads_mark(o->snapshot.tx);
	struct head_call c = { o, head, o->stream.out.len };

	TRY(couch_snapshot_run(&o->snapshot, open_revs_head_attempt, &c));
	TRY(step_count_bytes(o->stream.out.len - c.before));
	o->any = true;
	TRY(couch_stream_push(&o->stream, false));
	kv_reads_forget(o->snapshot.tx, reads);
	arena_reset(o->r->arena, mark);
	return STATUS_OK;
}

static enum status
open_revs_send_missing(struct open_revs *o, struct rev_id rev)
{
	TRY(open_revs_write_missing(o, rev));
	o->any = true;
	return couch_stream_push(&o->stream, false);
}

/* Looks up which revisions the answer has. */
static enum status
open_revs_find_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct open_revs *o = arg;
	struct rev_tree tree;

	TRY(couch_look_up_check_id(r, o->id, &r->fail));
	if (!o->asked->all)
		return couch_heads_wanted(r, tx, o->id, o->asked->revs, o->asked->count,
					  o->flags & COUCH_DOC_LATEST ? 0 : REV_DESCENT_ITSELF,
					  &o->found);
	TRY(rev_tree_read(tx, r->db, o->id, REV_TREE_WINNER, r->arena, &tree));
	o->found = (struct couch_wanted){ .heads_count = tree.count };
	o->found.heads = arena_alloc(r->arena, tree.count * sizeof(struct rev_branch *));
	if (!o->found.heads)
		return STATUS_LIMIT;
	for (size_t i = 0; i < tree.count; i++)
		o->found.heads[i] = &tree.branches[i];
	return STATUS_OK;
}

/* Sends the revisions that are there, then those that are missing. */
static enum status
open_revs_send_all(struct open_revs *o)
{
	TRY(couch_snapshot_begin(&o->snapshot, o->r));
	TRY(couch_snapshot_run(&o->snapshot, open_revs_find_attempt, o));
	if (o->boundary.ptr) {
		buf_append_cstr(&o->stream.out, "--");
		buf_append_str(&o->stream.out, o->boundary);
	} else {
		buf_append_byte(&o->stream.out, '[');
	}
	for (size_t i = 0; i < o->found.heads_count; i++)
		TRY(open_revs_send_head(o, o->found.heads[i]));
	for (size_t i = 0; i < o->found.missing_count; i++)
		TRY(open_revs_send_missing(o, o->found.missing[i]));
	if (o->boundary.ptr) {
		buf_append_cstr(&o->stream.out, "--");
		return couch_stream_end(&o->stream);
	}
	buf_append_byte(&o->stream.out, ']');
	return couch_stream_end_json(&o->stream, 200);
}

/* The client does not read: the next revision is read from a new snapshot. */
static void
open_revs_let_go(void *arg)
{
	struct open_revs *o = arg;

	couch_snapshot_rest(&o->snapshot);
}

/*
 * CouchDB prefers multipart to JSON whatever the qualities are. A client that wants JSON must not
 * accept multipart.
 */
static enum status
open_revs_choose_form(struct open_revs *o)
{
	struct couch_req *r = o->r;
	struct str type;

	o->opts.flags = o->flags & COUCH_DOC_OF_A_HEAD;
	if (!couch_accepts(r, "multipart/mixed", true))
		return STATUS_OK;
	o->opts.flags |= COUCH_DOC_ATTS | COUCH_DOC_ATT_ENCODING | COUCH_DOC_FOLLOWS;
	o->boundary = couch_uuid_new(r->arena);
	o->inner = couch_uuid_new(r->arena);
	if (!o->boundary.ptr || !o->inner.ptr)
		return STATUS_NOMEM;
	type = arena_printf(r->arena, "multipart/mixed; boundary=\"%.*s\"", STR_ARG(o->boundary));
	o->stream.content_type = type.ptr;
	http_set_header(r->x, STR("Cache-Control"), STR("must-revalidate"));
	return type.ptr ? STATUS_OK : STATUS_NOMEM;
}

enum status
couch_open_revs_read(struct couch_req *r, struct couch_open_revs *ret)
{
	struct str value;

	*ret = (struct couch_open_revs){ 0 };
	if (!couch_param_last(r, "open_revs", &value))
		return STATUS_OK;
	ret->all = str_eq(value, STR("all"));
	if (!ret->all)
		TRY(couch_revs_read(r, value, &ret->revs, &ret->count, &r->fail));
	ret->given = ret->all || ret->count > 0;
	return STATUS_OK;
}

enum status
couch_open_revs_send(struct couch_req *r, struct str id, unsigned flags,
		     const struct couch_doc_opts *opts, const struct couch_open_revs *wanted)
{
	struct open_revs o = { .r = r, .id = id, .flags = flags, .asked = wanted, .opts = *opts };
	enum status status;

	couch_stream_init(&o.stream, r);
	(void)http_on_wait(r->x, (struct net_wait_hook){ open_revs_let_go, &o });
	o.opts.holes = &o.stream.holes;
	o.stream.fill = couch_att_fill;
	o.stream.fill_arg = &o.snapshot;
	status = open_revs_choose_form(&o);
	if (status == STATUS_OK)
		status = open_revs_send_all(&o);
	(void)http_on_wait(r->x, (struct net_wait_hook){ 0 });
	couch_snapshot_end(&o.snapshot);
	couch_stream_release(&o.stream);
	return status;
}

/*
 * Local documents: /{db}/_local/{id}, with revisions "0-N". Replicators keep checkpoints in them.
 */
#include "door/couch/admin/tx.h"
#include "door/couch/doc/doc_in.h"
#include "door/couch/doc/doc_opts.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/doc/endpoints.h"
#include "door/couch/doc/local.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "kv/kv.h"

struct local_call {
	struct couch_req *r;
	struct str id;
	struct couch_doc doc;
	struct rev_id rev;
	struct buf out;
};

/* Makes a struct rev_id of a local revision "0-N", so that answers write it like any other. */
static enum status
local_rev(struct arena *arena, uint64_t n, struct rev_id *ret)
{
	*ret = (struct rev_id){ 0, arena_printf(arena, "%llu", (unsigned long long)n) };
	return ret->hash.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
local_parent_of(struct couch_req *r, const struct couch_doc *doc, uint64_t *ret)
{
	*ret = 0;
	if (doc->history_count == 0)
		return STATUS_OK;
	if (doc->rev.pos != 0 || !str_to_u64(doc->rev.hash, ret))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "Invalid rev format");
	return STATUS_OK;
}

enum status
couch_local_write(struct couch_req *r, struct kv_tx *tx, struct str id, const struct couch_doc *doc,
		  struct rev_id *ret_rev)
{
	uint64_t parent;
	uint64_t n = 0;

	TRY(local_parent_of(r, doc, &parent));
	if (doc->deleted) {
		enum status status = rev_local_delete(tx, r->db, id, &r->fail.err);

		/* Only DELETE is refused if there is no such document. */
		if (status != STATUS_NOT_FOUND || r->method == COUCH_DELETE)
			TRY(status);
	} else {
		TRY(rev_local_put(tx, r->db, id, parent, &doc->doc, r->arena, &n, &r->fail.err));
	}
	return local_rev(r->arena, n, ret_rev);
}

static enum status
local_get_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct local_call *c = arg;
	struct rev_doc doc;
	struct couch_doc_out d = { .id = c->id, .doc = &doc };
	uint64_t n;

	buf_clear(&c->out);
	TRY(rev_local_get(tx, r->db, c->id, r->arena, &n, &doc));
	TRY(local_rev(r->arena, n, &doc.rev));
	doc.deleted = false;
	c->rev = doc.rev;
	return couch_doc_write(&d, &c->out);
}

/*
 * A local document has one revision, which is shown whatever the query asks for. What asks for
 * others is refused if it is broken.
 */
static enum status
local_check_query(struct couch_req *r)
{
	struct rev_id rev;
	struct rev_id *revs;
	struct str value;
	size_t count;

	if (couch_param_last(r, "rev", &value))
		TRY(couch_rev_parse(value, r->arena, &rev, &r->fail));
	if (couch_param_last(r, "open_revs", &value) && !str_eq(value, STR("all")))
		TRY(couch_revs_read(r, value, &revs, &count, &r->fail));
	if (couch_param_last(r, "atts_since", &value))
		TRY(couch_revs_read(r, value, &revs, &count, &r->fail));
	return STATUS_OK;
}

enum status
couch_local_get(struct couch_req *r, struct str id)
{
	struct local_call c = { .r = r, .id = id };
	enum status status;

	TRY(couch_docid_check(id, &r->fail));
	TRY(local_check_query(r));
	c.out = couch_buf(r, COUCH_ANSWER_BYTES);
	status = couch_db_read(r, COUCH_ACCESS_MEMBER, local_get_attempt, &c);
	if (status == STATUS_OK)
		status = couch_reply(r, 200, &c.out);
	buf_release(&c.out);
	return status;
}

static enum status
local_put_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct local_call *c = arg;

	return couch_local_write(r, tx, c->id, &c->doc, &c->rev);
}

static enum status
local_save_and_answer(struct local_call *c)
{
	struct couch_req *r = c->r;

	TRY(couch_db_write(r, COUCH_ACCESS_MEMBER, local_put_attempt, c));
	if (!c->doc.deleted && couch_wants_batch(r))
		return couch_reply_batched(r, c->id, STATUS_OK);
	if (!c->doc.deleted)
		couch_set_location(r, r->parts[0], c->id, (struct str){ NULL, 0 });
	return couch_reply_written(r, c->doc.deleted ? 200 : 201, c->id, c->rev);
}

/* The revision of the query, if the body has none. */
static enum status
local_take_query_rev(struct local_call *c)
{
	struct couch_req *r = c->r;
	struct str value;

	if (c->doc.history_count || !couch_param(r, "rev", &value))
		return STATUS_OK;
	TRY(couch_rev_parse(value, r->arena, &c->doc.rev, &r->fail));
	c->doc.history_count = 1;
	return STATUS_OK;
}

enum status
couch_local_save(struct couch_req *r, struct str id, const struct couch_doc *doc)
{
	struct local_call c = { .r = r, .id = id, .doc = *doc };

	TRY(local_take_query_rev(&c));
	return local_save_and_answer(&c);
}

enum status
couch_local_put(struct couch_req *r, struct str id)
{
	struct couch_doc doc;
	struct str body;

	TRY(couch_docid_check(id, &r->fail));
	TRY(couch_db_precheck(r));
	TRY(couch_read_body(r, r->settings->body_bytes, &body));
	TRY(couch_doc_parse_text(r, body, id, &doc));
	return couch_local_save(r, id, &doc);
}

enum status
couch_local_delete(struct couch_req *r, struct str id)
{
	struct local_call c = { .r = r, .id = id };

	TRY(couch_docid_check(id, &r->fail));
	c.doc.deleted = true;
	TRY(local_take_query_rev(&c));
	return local_save_and_answer(&c);
}

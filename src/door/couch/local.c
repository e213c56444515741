/*
 * Local documents: /{db}/_local/{id}, with revisions "0-N". Replicators keep checkpoints in them.
 */
#include "door/couch/couch_int.h"

struct local_call {
	struct couch_req *r;
	struct str id;
	struct couch_doc doc;
	struct rev_id rev;
	struct arena_mark mark;
	struct buf out;
};

/* A local revision as one of the others, so that it is written the same way. */
static enum status
local_rev(struct arena *arena, uint64_t n, struct rev_id *ret)
{
	*ret = (struct rev_id){ 0, arena_printf(arena, "%llu", (unsigned long long)n) };
	return ret->hash.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
parent_of(struct couch_req *r, const struct couch_doc *doc, uint64_t *ret)
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

	TRY(parent_of(r, doc, &parent));
	if (doc->deleted) {
		enum status status = rev_local_delete(tx, r->db, id, &r->fail.err);

		/* Only DELETE minds that there is none. */
		if (status != STATUS_NOT_FOUND || r->method == COUCH_DELETE)
			TRY(status);
	} else {
		TRY(rev_local_put(tx, r->db, id, parent, &doc->doc, r->arena, &n, &r->fail.err));
	}
	return local_rev(r->arena, n, ret_rev);
}

static enum status
local_get(struct kv_tx *tx, void *arg)
{
	struct local_call *c = arg;
	struct couch_req *r = c->r;
	struct rev_doc doc;
	struct couch_doc_out d = { .id = c->id, .doc = &doc };
	uint64_t n;

	arena_reset(r->arena, c->mark);
	buf_clear(&c->out);
	TRY(couch_db_open(r, tx, COUCH_ACCESS_MEMBER));
	TRY(rev_local_get(tx, r->db, c->id, r->arena, &n, &doc));
	TRY(local_rev(r->arena, n, &doc.rev));
	doc.deleted = false;
	c->rev = doc.rev;
	return couch_doc_write(&d, &c->out);
}

enum status
couch_local_get(struct couch_req *r, struct str id)
{
	struct local_call c = { .r = r, .id = id };
	enum status status;

	TRY(couch_docid_check(id, &r->fail));
	c.out = couch_buf(r, COUCH_ANSWER_BYTES);
	c.mark = arena_mark(r->arena);
	status = kv_run_read(r->couch->config.store, local_get, &c, &r->fail.err);
	if (status == STATUS_OK)
		status = couch_reply(r, 200, &c.out);
	buf_release(&c.out);
	return status;
}

static enum status
local_put(struct kv_tx *tx, void *arg)
{
	struct local_call *c = arg;

	arena_reset(c->r->arena, c->mark);
	TRY(couch_db_open(c->r, tx, COUCH_ACCESS_MEMBER));
	return couch_local_write(c->r, tx, c->id, &c->doc, &c->rev);
}

static enum status
local_run(struct local_call *c)
{
	struct couch_req *r = c->r;

	c->mark = arena_mark(r->arena);
	TRY(kv_run(r->couch->config.store, local_put, c, NULL, &r->fail.err));
	if (!c->doc.deleted && couch_wants_batch(r))
		return couch_reply_batched(r, c->id, STATUS_OK);
	if (!c->doc.deleted)
		couch_set_location(r, r->parts[0], c->id, (struct str){ NULL, 0 });
	return couch_reply_written(r, c->doc.deleted ? 200 : 201, c->id, c->rev);
}

/* The revision of the query, if the body has none. */
static enum status
take_query_rev(struct local_call *c)
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

	TRY(take_query_rev(&c));
	return local_run(&c);
}

enum status
couch_local_put(struct couch_req *r, struct str id)
{
	struct couch_doc doc;
	struct str body;

	TRY(couch_docid_check(id, &r->fail));
	TRY(couch_db_precheck(r));
	TRY(couch_read_body(r, r->settings->door.body_bytes, &body));
	TRY(couch_doc_parse_text(r, body, id, &doc));
	return couch_local_save(r, id, &doc);
}

enum status
couch_local_delete(struct couch_req *r, struct str id)
{
	struct local_call c = { .r = r, .id = id };

	TRY(couch_docid_check(id, &r->fail));
	c.doc.deleted = true;
	TRY(take_query_rev(&c));
	return local_run(&c);
}

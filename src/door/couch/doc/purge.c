/* POST /{db}/_purge. */
#include <assert.h>

#include "doc/json.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/purges.h"
#include "door/couch/admin/tx.h"
#include "door/couch/admin/user_doc.h"
#include "door/couch/doc/edit.h"
#include "door/couch/doc/endpoints.h"
#include "door/couch/doc/rev_lists.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "door/couch/wire/stream.h"
#include "kv/kv.h"
#include "loop/step.h"

enum {
	/* Of one transaction. A head takes about eight times its document's id. */
	PURGE_PORTION_REVS = 1000,
	PURGE_PORTION_BYTES = 500 * 1000,
};

struct purge_call {
	struct couch_req *r;
	struct couch_rev_lists lists;
	struct couch_stream stream;
	bool any;     /* document in the answer */
	bool any_rev; /* of the document */

	/* The portion, which is a transaction. */
	struct rev_purge_query queries[REV_PURGE_DOCS];
	struct rev_purge_result results[REV_PURGE_DOCS];
	size_t count;
};

/* ---- Purging ---- */

static enum status
purge_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct purge_call *c = arg;

	for (size_t i = 0; i < c->count; i++)
		TRY(couch_look_up_check_id(r, c->queries[i].id, &r->fail));
	return rev_purge(tx, r->db, c->queries, c->count, r->arena, c->results, &r->fail.err);
}

/* Writes what has gone of one list, or of the part of it that the portion has. */
static enum status
purge_write_list(struct purge_call *c, const struct couch_rev_list *list,
		 const struct rev_purge_result *result)
{
	struct buf *out = &c->stream.out;

	if (!list->continues) {
		if (c->any)
			buf_append_byte(out, ',');
		c->any = true;
		json_write_str(out, list->id);
		buf_append_cstr(out, ":[");
		c->any_rev = false;
	}
	for (size_t i = 0; i < result->count; i++) {
		if (c->any_rev)
			buf_append_byte(out, ',');
		c->any_rev = true;
		couch_rev_write(result->revs[i], out);
		TRY(step_count(1));
	}
	if (!list->goes_on)
		buf_append_byte(out, ']');
	return couch_stream_push(&c->stream, false);
}

static enum status
purge_portion(void *arg, const struct couch_rev_list *lists, size_t count)
{
	struct purge_call *c = arg;

	assert(count <= REV_PURGE_DOCS);
	c->count = count;
	for (size_t i = 0; i < count; i++)
		c->queries[i] = (struct rev_purge_query){ lists[i].id, lists[i].revs,
							  lists[i].count };
	TRY(couch_db_write(c->r, COUCH_ACCESS_ADMIN, purge_attempt, c));
	for (size_t i = 0; i < count; i++)
		if (c->results[i].count)
			couch_user_doc_audit(c->r, lists[i].id);
	for (size_t i = 0; i < count; i++)
		TRY(purge_write_list(c, &lists[i], &c->results[i]));
	return STATUS_OK;
}

static enum status
purge_all(struct purge_call *c)
{
	struct couch_req *r = c->r;

	TRY(couch_rev_lists_begin(&c->lists, r));
	/* purge_seq is null, as in CouchDB since its databases have shards. */
	buf_append_cstr(&c->stream.out, "{\"purge_seq\":null,\"purged\":{");
	http_set_status(r->x, 201);
	TRY(couch_rev_lists_each(&c->lists, purge_portion, c));
	/*
	 * Clearing old records is no part of what was asked for: if it fails, the next purge does
	 * it, and the answer stays that of this one.
	 */
	if (couch_purges_trim(r) != STATUS_OK)
		r->fail = (struct couch_fail){ 0 };
	buf_append_cstr(&c->stream.out, "}}");
	return couch_stream_end_json(&c->stream, 201);
}

/*
 * Each portion of the request is purged in its own transaction, and what it has removed is told
 * as the answer goes on.
 */
enum status
couch_purge(struct couch_req *r)
{
	struct purge_call *c;
	enum status status;

	TRY(couch_require_admin(r));
	TRY(couch_db_require_json(r));
	c = arena_zalloc(r->arena, sizeof(*c));
	if (!c)
		return STATUS_NOMEM;
	c->r = r;
	c->lists.most_lists = REV_PURGE_DOCS;
	c->lists.most_revs = PURGE_PORTION_REVS;
	c->lists.most_bytes = PURGE_PORTION_BYTES;
	c->lists.cuts = true;
	couch_stream_init(&c->stream, r);
	status = purge_all(c);
	couch_rev_lists_release(&c->lists);
	couch_stream_release(&c->stream);
	return status;
}

/*
 * POST /{db}/_revs_diff and _missing_revs: which of the named revisions this database lacks. The
 * request is read, and the answer sent, portion by portion: nothing is promised about the documents
 * together.
 */
#include "doc/json.h"
#include "door/couch/admin/tx.h"
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
	DIFF_PORTION_DOCS = 1000,
	DIFF_PORTION_REVS = 20000,
	DIFF_PORTION_BYTES = 4 << 20, /* of ids */
};

struct diff_call {
	struct couch_req *r;
	struct couch_rev_lists lists;
	struct couch_stream stream;
	bool ancestors; /* are told: _revs_diff */
	bool any;       /* document in the answer */

	/* The portion. */
	struct rev_diff_query *queries;
	struct rev_diff *diffs;
	size_t count;
	size_t known; /* the first so many have ids that a document here can have */
};

static enum status
diff_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct diff_call *c = arg;

	return rev_diff(tx, r->db, c->queries, c->known, r->arena, c->diffs);
}

/*
 * A document whose id is not allowed here lacks all revisions. If that refused the request, a
 * replicator could not ask about the other documents.
 */
static enum status
diff_take_portion(struct diff_call *c, const struct couch_rev_list *lists, size_t count)
{
	struct couch_fail unfit = { .error = COUCH_ERROR_NONE };
	struct arena *arena = c->r->arena;
	size_t unknown = count;

	c->count = count;
	c->known = 0;
	c->queries = arena_alloc(arena, (count + 1) * sizeof(*c->queries));
	c->diffs = arena_zalloc(arena, (count + 1) * sizeof(*c->diffs));
	if (!c->queries || !c->diffs)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		bool fits = couch_docid_check(lists[i].id, &unfit) == STATUS_OK;
		size_t at = fits ? c->known++ : --unknown;

		c->queries[at] = (struct rev_diff_query){ .id = lists[i].id,
							  .revs = lists[i].revs,
							  .count = lists[i].count };
	}
	return STATUS_OK;
}

/* ---- The answer ---- */

static enum status
diff_write_revs(struct diff_call *c, const struct rev_id *revs, size_t count)
{
	struct buf *out = &c->stream.out;

	buf_append_byte(out, '[');
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_append_byte(out, ',');
		couch_rev_write(revs[i], out);
		TRY(step_count(1));
		if (out->len > COUCH_PIECE_BYTES)
			TRY(couch_stream_push(&c->stream, false));
	}
	buf_append_byte(out, ']');
	return buf_status(out);
}

static enum status
diff_write_document(struct diff_call *c, struct str id, const struct rev_diff *d)
{
	struct buf *out = &c->stream.out;

	if (d->missing_count == 0)
		return STATUS_OK;
	if (c->any)
		buf_append_byte(out, ',');
	c->any = true;
	json_write_str(out, id);
	buf_append_cstr(out, c->ancestors ? ":{\"missing\":" : ":");
	TRY(diff_write_revs(c, d->missing, d->missing_count));
	if (!c->ancestors)
		return STATUS_OK;
	if (d->possible_ancestors_count) {
		buf_append_cstr(out, ",\"possible_ancestors\":");
		TRY(diff_write_revs(c, d->possible_ancestors, d->possible_ancestors_count));
	}
	buf_append_byte(out, '}');
	return couch_stream_push(&c->stream, false);
}

static enum status
diff_serve_portion(void *arg, const struct couch_rev_list *lists, size_t count)
{
	struct diff_call *c = arg;

	TRY(diff_take_portion(c, lists, count));
	TRY(couch_db_read(c->r, COUCH_ACCESS_MEMBER, diff_attempt, c));
	for (size_t i = c->known; i < c->count; i++) {
		c->diffs[i].missing = c->queries[i].revs;
		c->diffs[i].missing_count = c->queries[i].count;
	}
	for (size_t i = 0; i < c->count; i++)
		TRY(diff_write_document(c, c->queries[i].id, &c->diffs[i]));
	return STATUS_OK;
}

static enum status
diff_serve(struct diff_call *c)
{
	struct couch_req *r = c->r;

	TRY(couch_db_require_json(r));
	TRY(couch_db_precheck(r));
	TRY(couch_rev_lists_begin(&c->lists, r));
	buf_append_cstr(&c->stream.out, c->ancestors ? "{" : "{\"missing_revs\":{");
	TRY(couch_rev_lists_each(&c->lists, diff_serve_portion, c));
	buf_append_cstr(&c->stream.out, c->ancestors ? "}" : "}}");
	return couch_stream_end_json(&c->stream, 200);
}

static enum status
diff_run(struct couch_req *r, bool ancestors)
{
	struct diff_call c = {
		.r = r,
		.ancestors = ancestors,
		.lists = { .most_lists = DIFF_PORTION_DOCS,
			   .most_revs = DIFF_PORTION_REVS,
			   .most_bytes = DIFF_PORTION_BYTES },
	};
	enum status status;

	couch_stream_init(&c.stream, r);
	status = diff_serve(&c);
	couch_rev_lists_release(&c.lists);
	couch_stream_release(&c.stream);
	return status;
}

enum status
couch_revs_diff(struct couch_req *r)
{
	return diff_run(r, true);
}

enum status
couch_missing_revs(struct couch_req *r)
{
	return diff_run(r, false);
}

/* Filters of _changes that are functions of design documents. */
#include "door/couch/list/filter_function.h"

#include <assert.h>

#include "base/quote.h"
#include "doc/json_value.h"
#include "door/couch/admin/tx.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/doc/function_request.h"
#include "door/couch/doc/functions.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/reply.h"
#include "loop/step.h"

/* ---- Finding the function ---- */

struct find_call {
	struct couch_filter_function *function;
	struct str id; /* of the design document */
	struct str body;
};

/* Refuses a function that the design document does not have with 404, as CouchDB does. */
static enum status
function_check_name(struct couch_req *r, const struct couch_filter_function *f)
{
	const char *kind = f->is_view ? "views" : "filters";
	const struct json_value *found = NULL;
	struct json_member *members;
	size_t count;

	TRY(json_read_members(f->design.text, r->arena, &members, &count, &r->fail.err));
	found = json_value_find(members, count, kind);
	if (!found || found->kind != JSON_OBJECT_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing json key: %s",
				      kind);
	TRY(json_value_members(found, r->arena, &members, &count, &r->fail.err));
	for (size_t i = 0; i < count; i++)
		if (str_eq(members[i].name, f->name))
			return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing json key: %s",
			      QUOTE_SHOW(f->name));
}

static enum status
function_find_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct find_call *c = arg;

	TRY(couch_function_design(r, tx, c->id, &c->function->design));
	TRY(function_check_name(r, c->function));
	return couch_function_request(r, tx, (struct str){ NULL, 0 }, c->body,
				      &c->function->request);
}

enum status
couch_filter_function_find(struct couch_req *r, struct str text, bool is_view, struct str body,
			   const struct couch_filter_function **ret)
{
	const char *slash = text.len ? memchr(text.ptr, '/', text.len) : NULL;
	size_t len = slash ? (size_t)(slash - text.ptr) : 0;
	struct couch_filter_function *function = arena_zalloc(r->arena, sizeof(*function));
	struct find_call c = { .function = function, .body = body };
	struct js_call call;

	if (len == 0 || len == text.len - 1 || memchr(slash + 1, '/', text.len - len - 1))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      is_view ? "`view` must be of the form `designname/viewname`"
					      : "`filter` must be of the form "
						"`designname/filtername`");
	c.id = arena_printf(r->arena, "_design/%.*s", (int)len, text.ptr);
	if (!function || !c.id.ptr)
		return STATUS_LIMIT;
	function->is_view = is_view;
	function->name = str_skip(text, len + 1);
	TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, function_find_attempt, &c));
	/* A server without workers says so at once, and not when there is something to filter. */
	TRY(couch_function_call(r, &function->design, &call));
	TRY(js_check(call.js, &r->fail.err));
	*ret = function;
	return STATUS_OK;
}

/* ---- Filtering ---- */

struct batch {
	struct couch_req *r;
	struct kv_tx *tx;
	const struct couch_filter_function *function;
	struct rev_want *heads; /* of all changes, in order */
	bool *passed;
	size_t count;
};

static enum status
batch_add_head(struct batch *b, size_t *cap, struct str id, const struct rev_branch *branch)
{
	if (b->count == *cap) {
		struct rev_want *more = arena_alloc(b->r->arena, 2 * *cap * sizeof(*more));

		if (!more)
			return STATUS_LIMIT;
		memcpy(more, b->heads, b->count * sizeof(*more));
		b->heads = more;
		*cap *= 2;
	}
	b->heads[b->count++] = (struct rev_want){ id, branch->rev, branch->deleted };
	return STATUS_OK;
}

/* The heads that are to be filtered. `ret[i].count` is how many each change has. */
static enum status
batch_collect(struct batch *b, const struct couch_changes_args *args,
	      const struct rev_change *changes, size_t count, struct couch_change_heads *ret)
{
	size_t cap = COUCH_FILTER_BATCH;

	b->heads = arena_alloc(b->r->arena, cap * sizeof(*b->heads));
	if (!b->heads)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		const struct rev_change *c = &changes[i];
		const struct rev_branch winner = { .rev = c->rev, .deleted = c->deleted };

		TRY(step_count(1));
		ret[i] = (struct couch_change_heads){ .count = 1 };
		if (!args->all_heads || c->branch_count <= 1) {
			TRY(batch_add_head(b, &cap, c->id, &winner));
			continue;
		}
		TRY(rev_tree_read(b->tx, b->r->db, c->id, REV_TREE_HEADS, b->r->arena,
				  &ret[i].tree));
		ret[i].count = ret[i].tree.count;
		for (size_t k = 0; k < ret[i].count; k++)
			TRY(batch_add_head(b, &cap, c->id, &ret[i].tree.branches[k]));
	}
	return STATUS_OK;
}

/* Calls the function for the documents from `from` on, of which `count` texts have been read. */
static enum status
batch_call(struct batch *b, const struct str *texts, size_t from, size_t count)
{
	const struct couch_filter_function *f = b->function;
	struct js_call call;

	TRY(couch_function_call(b->r, &f->design, &call));
	return couch_function_end(b->r,
				  js_filter(&call, f->is_view, f->name, f->request, texts, count,
					    b->passed + from, &b->r->fail.err),
				  &call);
}

static enum status
batch_read_text(struct batch *b, size_t i, struct rev_ahead *ahead, struct str *ret)
{
	AUTO(buf_release) struct buf text = couch_buf(b->r, COUCH_ROW_BYTES);
	const struct rev_branch branch = { .rev = b->heads[i].rev, .deleted = b->heads[i].deleted };
	struct rev_doc doc;
	const struct couch_doc_out d = { .id = b->heads[i].id, .doc = &doc, .branch = &branch };

	TRY(couch_head_finish_read(rev_ahead_take(ahead, b->r->arena, &doc), &branch, &doc));
	TRY(couch_doc_write(&d, &text));
	return arena_copy(b->r->arena, buf_str(&text), ret);
}

/* Reads the documents and has them filtered, COUCH_FILTER_BYTES of them at a time. */
static enum status
batch_run(struct batch *b, struct rev_ahead *ahead)
{
	struct str *texts = arena_alloc(b->r->arena, (b->count + 1) * sizeof(*texts));
	struct arena_mark mark = arena_mark(b->r->arena);
	size_t from = 0, bytes = 0;

	b->passed = NULL;
	if (!texts)
		return STATUS_LIMIT;
	b->passed = arena_zalloc(b->r->arena, b->count + 1);
	if (!b->passed)
		return STATUS_LIMIT;
	mark = arena_mark(b->r->arena);
	TRY(rev_ahead_begin(ahead, b->tx, b->r->db, http_memory(b->r->x), b->heads, b->count,
			    false));
	for (size_t i = 0; i < b->count; i++) {
		TRY(batch_read_text(b, i, ahead, &texts[i]));
		bytes += texts[i].len;
		if (bytes < COUCH_FILTER_BYTES && i + 1 < b->count)
			continue;
		TRY(batch_call(b, texts + from, from, i + 1 - from));
		arena_reset(b->r->arena, mark);
		from = i + 1;
		bytes = 0;
	}
	return STATUS_OK;
}

enum status
couch_filter_function_heads(struct couch_req *r, struct kv_tx *tx,
			    const struct couch_changes_args *args, const struct rev_change *changes,
			    size_t count, struct couch_change_heads *ret)
{
	struct batch b = { .r = r, .tx = tx, .function = args->function };
	struct rev_ahead ahead = { 0 };
	enum status status;
	size_t at = 0;

	assert(count <= COUCH_FILTER_BATCH);
	TRY(batch_collect(&b, args, changes, count, ret));
	status = batch_run(&b, &ahead);
	rev_ahead_release(&ahead);
	TRY(status);
	for (size_t i = 0; i < count; i++) {
		size_t heads = ret[i].count;

		ret[i].count = 0;
		ret[i].revs = arena_alloc(r->arena, (heads + 1) * sizeof(*ret[i].revs));
		if (!ret[i].revs)
			return STATUS_LIMIT;
		for (size_t k = 0; k < heads; k++, at++)
			if (b.passed[at])
				ret[i].revs[ret[i].count++] = b.heads[at].rev;
	}
	return STATUS_OK;
}

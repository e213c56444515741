/* GET and POST /{db}/_design/{ddoc}/_view/{view}, and …/queries. */
#include "door/couch/admin/partition.h"
#include "door/couch/admin/tx.h"
#include "door/couch/doc/att_out.h"
#include "door/couch/list/queries.h"
#include "door/couch/view/endpoints.h"
#include "door/couch/view/run.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/reply.h"
#include "index/view/documents.h"
#include "loop/step.h"

enum {
	VIEW_PLACE_BYTES = 16 * 1024, /* the place of a row */
	VIEW_KEY_STEPS = 8,           /* steps (loop/step.h) of one key or query */
	SETTLE_TRIES = 20,
};

/* ---- The view ---- */

static void
view_on_wait(void *arg)
{
	view_run_let_go(arg);
}

static void
view_init(struct view_run *v, struct couch_req *r)
{
	*v = (struct view_run){ .r = r };
	couch_stream_init(&v->stream, r);
	v->stream.fill = couch_att_fill;
	v->stream.fill_arg = &v->snapshot;
	couch_view_args_init(&v->args);
	v->args.of_view = true;
	v->place = BUF_SHORT(VIEW_PLACE_BYTES);
	v->next = BUF_SHORT(VIEW_PLACE_BYTES);
	(void)http_on_wait(r->x, (struct net_wait_hook){ view_on_wait, v });
}

static void
view_release(struct view_run *v)
{
	(void)http_on_wait(v->r->x, (struct net_wait_hook){ 0 });
	view_run_end_reads(v);
	couch_snapshot_end(&v->snapshot);
	couch_stream_release(&v->stream);
	couch_view_functions_release(v->functions);
	couch_view_known_unref(v->known);
	buf_release(&v->place);
	buf_release(&v->next);
}

static enum status
view_read_named(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct view_run *v = arg;

	couch_view_known_unref(v->known);
	v->known = NULL;
	TRY(couch_partition_check_db(r));
	TRY(couch_view_known_find(r, tx, &v->known));
	if (!v->known)
		return couch_view_named_read(r, tx, r->parts[4], &v->named);
	v->named = v->known->named;
	return couch_view_named_choose(r, r->parts[4], &v->named);
}

/* Finds the view, once the parameters have been read. */
static enum status
view_find(struct view_run *v)
{
	TRY(couch_db_read(v->r, COUCH_ACCESS_MEMBER, view_read_named, v));
	return v->known ? STATUS_OK : couch_view_require_worker(v->r);
}

/* ---- The question ---- */

static enum status
view_check_partition(struct view_run *v)
{
	bool wanted = v->named.design.partitioned;

	if (wanted == (v->args.partition.ptr != NULL))
		return STATUS_OK;
	return couch_fail_set(
		&v->r->fail, COUCH_ERROR_QUERY_PARSE, "%s",
		wanted ? "`partition` parameter is mandatory for queries to this view."
		       : "`partition` parameter is not supported in this design doc");
}

/* Refuses a range whose end lies before its beginning. */
static enum status
view_check_range(struct view_run *v)
{
	struct view_question question = view_run_question(v);
	struct view_range range;

	if (v->args.has_keys || !v->args.start.given || !v->args.end.given ||
	    str_eq(v->args.start.text, v->args.end.text))
		return STATUS_OK;
	TRY(view_run_range(v, &question, &range));
	if (!range.inverted)
		return STATUS_OK;
	return couch_fail_set(
		&v->r->fail, COUCH_ERROR_QUERY_PARSE,
		"No rows can match your key range, reverse your start_key and end_key "
		"or set descending=%s",
		v->args.descending ? "false" : "true");
}

/* Checks the question in v->args. */
static enum status
view_check_question(struct view_run *v)
{
	bool reduces = v->named.reduce && v->args.reduce != COUCH_VIEW_FLAG_OFF;

	v->kind = reduces ? COUCH_VIEW_REDUCE : COUCH_VIEW_MAP;
	TRY(couch_view_args_check(v->r, v->kind, &v->args));
	TRY(view_check_partition(v));
	TRY(view_check_range(v));
	if (v->args.update == COUCH_VIEW_UPDATE_FIRST)
		v->waits = true;
	else if (v->args.update == COUCH_VIEW_UPDATE_LAZY)
		v->lazy = true;
	if (v->r->head)
		v->args.limit = 0;
	return STATUS_OK;
}

/* ---- The head of an answer ---- */

static void
view_write_head(struct view_run *v, const struct view_counts *counts)
{
	struct buf *out = &v->stream.out;
	bool any = counts != NULL;

	buf_append_byte(out, '{');
	if (counts) {
		uint64_t offset = counts->before + v->args.skip;

		buf_append_cstr(out, "\"total_rows\":");
		buf_append_u64(out, counts->total);
		buf_append_cstr(out, ",\"offset\":");
		buf_append_u64(out, offset < counts->total ? offset : counts->total);
	}
	if (v->args.update_seq) {
		buf_append_cstr(out, any ? ",\"update_seq\":\"" : "\"update_seq\":\"");
		catalog_seq_write(&v->group.covers, out);
		buf_append_byte(out, '"');
		any = true;
	}
	buf_append_cstr(out, any ? ",\"rows\":[\r\n" : "\"rows\":[\r\n");
	v->at = (struct view_at){ .skip = v->args.skip, .limit = v->args.limit };
}

/* A step that reads nothing, but finds the view. */
static enum status
view_touch(struct view_run *v, struct kv_tx *tx, void *arg)
{
	(void)v;
	(void)tx;
	(void)arg;
	return STATUS_OK;
}

/* ---- A range ---- */

static enum status
view_send_range(struct view_run *v)
{
	const struct view_question question = view_run_question(v);
	struct view_range range;
	struct view_counts counts = { .range = &range };

	TRY(view_run_range(v, &question, &range));
	if (v->kind == COUCH_VIEW_REDUCE) {
		TRY(view_run_step(v, view_touch, NULL));
		view_write_head(v, NULL);
		return view_send_results(v, &range);
	}
	TRY(view_run_step(v, view_count_rows, &counts));
	view_write_head(v, &counts);
	return view_send_rows(v, &range);
}

/* ---- Keys ---- */

/* The answer to a question that names keys. */
struct view_by_keys {
	struct couch_key_page page;
	bool headed; /* the head has been written */
};

/*
 * As in CouchDB, `offset` tells of the first row that there is, and where there is none, of where
 * the last key would be. So the head follows the keys that no row has.
 */
static enum status
view_head_keys(struct view_run *v, struct view_by_keys *k, const struct view_counts *counts,
	       bool last)
{
	bool reduces = v->kind == COUCH_VIEW_REDUCE;

	if (k->headed || (!reduces && !counts->within && !last))
		return STATUS_OK;
	view_write_head(v, reduces ? NULL : counts);
	k->headed = true;
	return buf_status(&v->stream.out);
}

/* The rows of one key. */
static enum status
view_send_key(struct view_run *v, struct view_by_keys *k, struct str key, bool last)
{
	const struct view_question question = view_run_question_of_key(v, key);
	bool reduces = v->kind == COUCH_VIEW_REDUCE;
	struct view_range range;
	struct view_counts counts = { .range = &range };
	uint64_t passed;

	TRY(view_run_range(v, &question, &range));
	if (!k->headed || v->at.skip)
		TRY(view_run_step(v, view_count_rows, &counts));
	TRY(view_head_keys(v, k, &counts, last));
	if (!k->headed)
		return STATUS_OK;
	/* All rows of a key are one group. */
	passed = reduces && counts.within ? 1 : counts.within;
	if (v->at.skip && v->at.skip >= passed) {
		v->at.skip -= passed;
		return STATUS_OK;
	}
	return reduces ? view_send_results(v, &range) : view_send_rows(v, &range);
}

/* Sends one key, and frees what it took: a request may name more keys than there is memory for. */
static enum status
view_send_next_key(struct view_run *v, struct view_by_keys *k, size_t i)
{
	const struct json_list *keys = &v->args.keys;
	/*
	 * As in CouchDB, `descending` reverses the rows of a map, but not the results of reduces
	 * for `keys`.
	 */
	bool backwards = v->args.descending && v->kind == COUCH_VIEW_MAP;
	size_t at = backwards ? keys->count - 1 - i : i;
	struct json_value *key;
	struct arena_mark mark;

	TRY(couch_key_page_turn(&k->page, keys, at, v->r->arena, &key));
	mark = arena_mark(v->r->arena);
	step_unit();
	TRY(step_count(VIEW_KEY_STEPS));
	TRY(view_send_key(v, k, key->text, i + 1 == keys->count));
	arena_reset(v->r->arena, mark);
	return view_run_push(v);
}

static enum status
view_send_keys(struct view_run *v)
{
	struct view_by_keys k = { .headed = false };
	struct view_counts none = { .range = NULL };

	couch_key_page_init(&k.page, v->r->arena);
	for (size_t i = 0; i < v->args.keys.count && (!k.headed || v->at.limit); i++)
		TRY(view_send_next_key(v, &k, i));
	arena_reset(v->r->arena, k.page.mark);
	if (k.headed)
		return STATUS_OK;
	TRY(view_run_step(v, view_count_rows, &none));
	return view_head_keys(v, &k, &none, true);
}

/* Writes the answer to the question in v->args. */
static enum status
view_send_question(struct view_run *v)
{
	if (v->args.has_keys)
		TRY(view_send_keys(v));
	else
		TRY(view_send_range(v));
	buf_append_cstr(&v->stream.out, "\r\n]");
	TRY(view_send_lacking(v));
	buf_append_byte(&v->stream.out, '}');
	return buf_status(&v->stream.out);
}

/* ---- Reading ---- */

/* Looking for a document that is half written. */
struct view_settling {
	struct view_run *v;
	struct view_group group;
	bool half;
};

/* A step: whether a document is half written. */
static enum status
view_read_halves(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct view_settling *s = arg;
	enum status status;

	s->half = false;
	status = view_group_open(tx, r->db, &s->v->named.design, r->arena, &s->group, &r->fail.err);
	if (status != STATUS_OK)
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	s->half = s->group.phase == VIEW_PHASE_READY && s->group.halves;
	return s->half ? view_documents_of(r->db)->newest(tx, r->db, &s->v->named.newest)
		       : STATUS_OK;
}

/*
 * A document of more rows than a transaction takes is written in several. An answer does not begin
 * in between: it waits for the update that writes it, or completes one that was left. Where such
 * documents are written all the time, it begins after SETTLE_TRIES of them.
 */
static enum status
view_settle(struct view_run *v)
{
	struct view_settling s = { .v = v, .half = true };

	for (int i = 0; i < SETTLE_TRIES && s.half; i++) {
		struct arena_mark mark = arena_mark(v->r->arena);

		TRY(couch_db_read(v->r, COUCH_ACCESS_MEMBER, view_read_halves, &s));
		arena_reset(v->r->arena, mark);
		if (s.half)
			TRY(couch_view_bring_up(v->r, &v->named, true));
	}
	return STATUS_OK;
}

/* Brings the view up to date, as the questions want it, and begins to read it. */
static enum status
view_begin(struct view_run *v)
{
	struct couch_req *r = v->r;
	const struct view_reduce *reduce = v->named.reduce;

	if ((v->waits || v->lazy) && !v->known)
		TRY(couch_view_bring_up(r, &v->named, v->waits));
	if (v->waits && !v->known)
		TRY(view_settle(v));
	if (reduce && reduce->kind == VIEW_REDUCE_FUNCTION) {
		TRY(couch_view_functions_of(r, &v->named, JS_LANE_REQUEST, &v->functions));
		couch_view_functions_set_stop(v->functions, http_closed_event(r->x));
		couch_view_functions_set_slow(v->functions, view_on_wait, v);
	}
	return couch_snapshot_begin_list(&v->snapshot, r);
}

/*
 * The name of an answer: whose rows it has, how far they have come and, where documents are shown,
 * how far the database has. It belongs to one URL, which says the rest.
 */
static enum status
view_reply_etag(struct view_run *v, bool *ret_sent)
{
	AUTO(buf_release) struct buf name = BUF_SHORT(1024);

	*ret_sent = false;
	if (v->r->method != COUCH_GET)
		return STATUS_OK;
	for (size_t i = 0; i < VIEW_SIGNATURE_BYTES; i++)
		buf_printf(&name, "%02x", v->named.design.signature[i]);
	buf_append_byte(&name, '-');
	catalog_seq_write(&v->group.covers, &name);
	if (v->args.include_docs) {
		buf_append_byte(&name, '-');
		catalog_seq_write(&v->named.newest, &name);
	}
	TRY(buf_status(&name));
	return couch_reply_etag(v->r, buf_str(&name), ret_sent);
}

static enum status
view_read_args(struct view_run *v)
{
	struct couch_req *r = v->r;
	const struct json_value *keys;
	struct json_member *members;
	size_t count;

	if (r->method == COUCH_POST) {
		TRY(couch_db_require_json(r));
		TRY(couch_db_precheck(r));
		TRY(couch_read_object(r, r->settings->body_bytes, &members, &count));
		if (json_value_find(members, count, "queries"))
			return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
					      "The `queries` parameter is no longer supported at "
					      "this endpoint");
		keys = json_value_find(members, count, "keys");
		if (keys && keys->kind != JSON_ARRAY_BEGIN)
			return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
					      "`keys` member must be an array.");
		TRY(couch_view_args_members(r, members, count, &v->args));
	}
	/* A parameter in the query overrides the same one in the body. */
	return couch_view_args_query(r, &v->args);
}

static enum status
view_serve(struct view_run *v)
{
	bool sent;

	TRY(view_read_args(v));
	TRY(view_find(v));
	TRY(view_check_question(v));
	TRY(view_begin(v));
	TRY(view_run_step(v, view_touch, NULL));
	TRY(view_reply_etag(v, &sent));
	if (sent)
		return STATUS_OK;
	TRY(view_send_question(v));
	buf_append_byte(&v->stream.out, '\n');
	return couch_stream_end(&v->stream);
}

enum status
couch_view(struct couch_req *r)
{
	AUTO(view_release) struct view_run v;

	view_init(&v, r);
	return view_serve(&v);
}

/* ---- POST …/queries ---- */

static enum status
view_check_query(void *arg, size_t at)
{
	(void)at;
	return view_check_question(arg);
}

/* Sends the answer to one query, which is the one at the position `at`. */
static enum status
view_send_query(void *arg, size_t at)
{
	struct view_run *v = arg;

	step_unit();
	TRY(step_count(VIEW_KEY_STEPS));
	TRY(view_check_question(v));
	buf_append_cstr(&v->stream.out, at ? ",\r\n" : "\r\n");
	TRY(view_send_question(v));
	return view_run_push(v);
}

/* Every query is checked before the answer begins, so that a mistake in the last one is a 400. */
static enum status
view_serve_queries(struct view_run *v)
{
	struct couch_req *r = v->r;
	struct couch_queries queries = { .common = v->args };

	TRY(couch_db_require_json(r));
	TRY(couch_queries_read(r, &queries));
	/* As in CouchDB, keys and groups of the URL are not those of the queries. */
	queries.common.has_keys = false;
	queries.common.group = COUCH_VIEW_FLAG_ABSENT;
	queries.common.has_group_level = false;
	TRY(view_find(v));
	TRY(couch_queries_visit(r, &queries, &v->args, view_check_query, v));
	TRY(view_begin(v));
	TRY(view_run_step(v, view_touch, NULL));
	buf_append_cstr(&v->stream.out, "{\"results\":[");
	TRY(couch_queries_visit(r, &queries, &v->args, view_send_query, v));
	buf_append_cstr(&v->stream.out, "\r\n]}\n");
	return couch_stream_end(&v->stream);
}

enum status
couch_view_queries(struct couch_req *r)
{
	AUTO(view_release) struct view_run v;

	view_init(&v, r);
	return view_serve_queries(&v);
}

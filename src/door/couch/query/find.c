/* POST /{db}/_find */
#include <limits.h>

#include "base/clock.h"
#include "base/metric.h"
#include "base/quote.h"
#include "doc/json.h"
#include "door/couch/query/build_help.h"
#include "door/couch/query/endpoints.h"
#include "door/couch/query/find.h"
#include "door/couch/query/find_aggregate.h"
#include "door/couch/query/indexes.h"
#include "door/couch/wire/error.h"

METRIC_COUNTER(find_unindexed, "frond_find_unindexed_total", METRIC_NUMBER,
	       "Queries of _find that read documents one by one, without an index.");
METRIC_COUNTER(find_docs, "frond_find_docs_total", METRIC_NUMBER,
	       "Documents that _find has read to match them.");

enum {
	FIND_BUILD_MS = 5000, /* that a query helps to build the index which it needs */
};

/* ---- The tail of an answer ---- */

static void
find_write_bookmark(struct find *f, struct buf *out)
{
	AUTO(buf_release) struct buf index = BUF_SHORT(BOOKMARK_BYTES);
	struct bookmark b = { .id = buf_str(&f->id), .place = buf_str(&f->place) };

	plan_write_name(f->plan.chosen, &index);
	b.index = buf_str(&index);
	buf_append_cstr(out, ",\r\n\"bookmark\": \"");
	if (f->has_id)
		bookmark_write(&b, out);
	else if (f->args.bookmark.ptr)
		buf_append_str(out, f->args.bookmark);
	else
		buf_append_cstr(out, "nil");
	buf_append_byte(out, '"');
}

static void
find_write_stats(const struct find *f, struct buf *out)
{
	bool quorum = f->args.r > 1;

	buf_printf(out,
		   ",\r\n\"execution_stats\": {\"total_keys_examined\":%llu,"
		   "\"total_docs_examined\":%llu,\"total_quorum_docs_examined\":%llu,"
		   "\"results_returned\":%llu,\"execution_time_ms\":%.3f}",
		   (unsigned long long)f->keys, (unsigned long long)(quorum ? 0 : f->docs),
		   (unsigned long long)(quorum ? f->docs : 0), (unsigned long long)f->results,
		   (double)(clock_mono_ns() - f->began_ns) / CLOCK_NS_PER_MS);
}

/* Says that the index that the client named was not used. */
static void
find_warn_of_index(const struct find *f, struct buf *out)
{
	buf_append_cstr(out, "_design/");
	buf_append_str(out, plan_named_design(&f->args));
	if (f->args.use_index_count == 1) {
		buf_append_cstr(out, " was not used because it does not contain a valid index for "
				     "this query.");
		return;
	}
	buf_append_cstr(out, ", ");
	buf_append_str(out, f->args.use_index[1]);
	buf_append_cstr(out, " was not used because it is not a valid index for this query.");
}

/* Says that the index has not been read, although the answer follows it. */
static void
find_warn_of_build(const struct find *f, struct buf *out)
{
	buf_append_cstr(out, out->len ? "\n" : "");
	buf_append_str(out, f->plan.chosen->ddoc);
	buf_append_cstr(out, ", ");
	buf_append_str(out, f->plan.chosen->name);
	buf_append_cstr(out, " was not read because not all documents are in it. Documents were "
			     "read and sorted instead.");
}

static enum status
find_write_warnings(const struct find *f, struct buf *out)
{
	AUTO(buf_release) struct buf text = couch_buf(f->r, COUCH_ROW_BYTES);
	uint64_t threshold = f->r->settings->scan_warning;

	if (plan_ignores_use_index(&f->args, f->plan.chosen))
		find_warn_of_index(f, &text);
	if (f->plan.incomplete)
		find_warn_of_build(f, &text);
	if (!f->plan.chosen->ddoc.ptr && !f->listed && f->way != FIND_WAY_COUNTED) {
		buf_append_cstr(&text, text.len ? "\n" : "");
		buf_append_cstr(&text, "No matching index found, create an index to optimize query "
				       "time.");
	}
	if (threshold && !f->args.aggregate &&
	    f->docs > threshold * (f->results ? f->results : 1)) {
		buf_append_cstr(&text, text.len ? "\n" : "");
		buf_append_cstr(&text,
				"The number of documents examined is high in proportion to the "
				"number of results returned. Consider adding a more specific index "
				"to improve this.");
	}
	if (!text.len)
		return buf_status(&text);
	buf_append_cstr(out, ",\r\n\"warning\": ");
	json_write_str(out, buf_str(&text));
	return buf_status(&text);
}

/* ---- The query ---- */

static enum status
find_refuse_bookmark(struct find *f)
{
	AUTO(buf_release) struct buf shown = couch_buf(f->r, COUCH_ROW_BYTES);

	quote_json(&shown, f->args.bookmark);
	return couch_fail_set(&f->r->fail, COUCH_ERROR_INVALID_BOOKMARK,
			      "Invalid bookmark value: %s", QUOTE_SHOW(buf_str(&shown)));
}

static enum status
find_read_bookmark(struct find *f)
{
	enum status status;

	if (!f->args.bookmark.ptr || str_eq(f->args.bookmark, STR("nil")))
		return STATUS_OK;
	status = bookmark_read(f->args.bookmark, f->r->arena, &f->after);
	if (status == STATUS_INVALID)
		return find_refuse_bookmark(f);
	f->has_after = true;
	return status;
}

/* Makes the range begin behind the last document of the page before. */
static void
find_pass_page(const struct find *f, struct name_range *range)
{
	int c = range->has_begin ? str_cmp(f->after.id, range->begin) : 0;

	if (!f->has_after || (range->has_begin && (range->descending ? c > 0 : c < 0)))
		return;
	range->begin = f->after.id;
	range->has_begin = true;
	range->exclusive_begin = true;
}

static enum status
find_make_plan(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct find *f = arg;
	const struct plan_terms terms = { .after = f->has_after ? &f->after : NULL };
	enum status status;

	TRY(find_args_check_partition(r, &f->args));
	TRY(query_indexes_load(r, tx, &f->indexes));
	if (f->args.aggregate) {
		struct find_aggregate_plan p;

		TRY(find_aggregate_plan(r, tx, &f->args, &f->indexes, false, &p));
		f->plan = p.plan;
		f->way = p.way;
		f->ends = p.ends;
		return STATUS_OK;
	}
	status = plan_make(r, tx, &f->args, &f->indexes, &terms, &f->plan);
	return status == STATUS_INVALID && r->fail.error == COUCH_ERROR_NONE
		       ? find_refuse_bookmark(f)
		       : status;
}

/* Reads the documents that may match, in the order that is asked for. */
static enum status
find_run(struct find *f)
{
	bool sorts = plan_sorts(&f->plan);
	struct name_range range = f->plan.ids;
	struct couch_fail fail;
	enum status status;

	f->take = find_doc_take;
	TRY(find_doc_init(f));
	if (f->args.aggregate) {
		if (f->plan.way == PLAN_IDS && f->way != FIND_WAY_COUNTED)
			metric_add(&find_unindexed, 1);
		return find_aggregate(f, range, f->plan.no_ids || f->plan.nothing);
	}
	if (f->plan.no_ids || !f->limit)
		return STATUS_OK;
	if (f->plan.way == PLAN_INDEX)
		return find_indexed(f);
	if (!sorts) {
		range = name_range_turn(range, f->args.sort.descending);
		find_pass_page(f, &range);
		status = f->plan.way == PLAN_SETS ? find_by_sets(f, range) : find_by_ids(f, range);
		metric_add(&find_unindexed, !f->listed);
		return status;
	}
	fail = f->r->fail;
	status = find_sorted(f, range);
	metric_add(&find_unindexed, !f->listed);
	/* Nothing has been sent yet, so the plan may change. */
	if (f->sort_is_full && plan_follow_index(&f->plan)) {
		bool known = true;

		if (f->has_after)
			TRY(find_turn_place(f, &known));
		if (known) {
			f->r->fail = fail;
			f->listed = false;
			f->take = find_doc_take;
			return find_indexed(f);
		}
	}
	if (f->sort_is_full)
		METRIC_REFUSED("sort_bytes");
	return status == STATUS_INVALID && f->r->fail.error == COUCH_ERROR_NONE
		       ? find_refuse_bookmark(f)
		       : status;
}

static enum status
find_plan(struct find *f)
{
	TRY(couch_snapshot_begin_list(&f->snapshot, f->r));
	return couch_snapshot_run(&f->snapshot, find_make_plan, f);
}

/* True if the client has named the index, or it is the one to sort by, and it is not complete. */
static bool
find_needs_build(const struct find *f)
{
	return f->plan.incomplete && !f->has_after && (f->plan.any_named || f->args.sort.count);
}

static enum status
find_send(struct find *f)
{
	struct buf *out = &f->stream.out;

	TRY(find_read_bookmark(f));
	TRY(find_plan(f));
	if (find_needs_build(f)) {
		couch_snapshot_end(&f->snapshot);
		query_build_help(f->r, f->plan.chosen, UINT_MAX,
				 clock_mono_ns() + FIND_BUILD_MS * CLOCK_NS_PER_MS);
		TRY(find_plan(f));
	}
	buf_append_cstr(out, f->args.aggregate ? "{\"groups\":[" : "{\"docs\":[");
	if (f->plan.nothing && !f->args.aggregate) {
		/* CouchDB answers an empty list of conditions alone with nothing at all. */
		buf_append_cstr(out, "\r\n]}\r\n");
		return couch_stream_end(&f->stream);
	}
	f->began_ns = clock_mono_ns();
	TRY(find_run(f));
	metric_add(&find_docs, f->docs);
	buf_append_cstr(out, "\r\n]");
	if (!f->args.aggregate)
		find_write_bookmark(f, out);
	if (f->args.execution_stats)
		find_write_stats(f, out);
	TRY(find_write_warnings(f, out));
	buf_append_cstr(out, "}\r\n");
	return couch_stream_end(&f->stream);
}

enum status
couch_find(struct couch_req *r)
{
	struct find f = { .r = r, .began_ns = clock_mono_ns() };
	enum status status;

	TRY(couch_db_precheck(r));
	TRY(find_args_read(r, &f.args));
	f.skip = f.args.skip;
	f.limit = f.args.limit;
	f.id = BUF_SHORT(REV_DOC_ID_BYTES);
	f.place = BUF_SHORT(BOOKMARK_BYTES);
	couch_stream_init(&f.stream, r);
	status = find_send(&f);
	couch_snapshot_end(&f.snapshot);
	couch_stream_release(&f.stream);
	buf_release(&f.id);
	buf_release(&f.place);
	arena_free(f.list_arena);
	return status;
}

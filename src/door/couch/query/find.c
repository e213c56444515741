/* POST /{db}/_find */
#include "base/clock.h"
#include "base/metric.h"
#include "base/quote.h"
#include "doc/json.h"
#include "door/couch/query/endpoints.h"
#include "door/couch/query/find.h"
#include "door/couch/query/indexes.h"
#include "door/couch/wire/error.h"
#include "index/engine/def.h"

METRIC_COUNTER(find_unindexed, "frond_find_unindexed_total", METRIC_NUMBER,
	       "Queries of _find that read documents one by one, without an index.");
METRIC_COUNTER(find_docs, "frond_find_docs_total", METRIC_NUMBER,
	       "Documents that _find has read to match them.");

/* ---- The tail of an answer ---- */

static void
find_write_bookmark(struct find *f, struct buf *out)
{
	AUTO(buf_release) struct buf index = BUF_INIT(BOOKMARK_BYTES);
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

static enum status
find_write_warnings(const struct find *f, struct buf *out)
{
	AUTO(buf_release) struct buf text = couch_buf(f->r, COUCH_ROW_BYTES);
	uint64_t threshold = f->r->settings->scan_warning;

	if (plan_ignores_use_index(&f->args, f->plan.chosen))
		find_warn_of_index(f, &text);
	if (!f->plan.chosen->ddoc.ptr) {
		buf_append_cstr(&text, text.len ? "\n" : "");
		buf_append_cstr(&text, "No matching index found, create an index to optimize query "
				       "time.");
	}
	if (threshold && f->docs > threshold * (f->results ? f->results : 1)) {
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
find_load_indexes(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	return query_indexes_load(r, tx, arg);
}

/* True if the chosen index can be read, and the page before has not been sorted in memory. */
static bool
find_is_indexed(struct find *f)
{
	const struct index_set *set = index_set_of(f->r->db);

	for (size_t i = 0; set && i < set->count; i++) {
		const struct index_def *def = &set->defs[i];

		if (!index_is_readable(def) || !str_eq(def->owner, f->plan.chosen->ddoc) ||
		    !str_eq(def->name, f->plan.chosen->name))
			continue;
		f->index_number = def->number;
		return !f->has_after || !str_starts_with(f->after.place, STR("["));
	}
	return false;
}

/* Reads the documents that may match, in the order that is asked for. */
static enum status
find_run(struct find *f)
{
	bool sorts = f->plan.chosen->ddoc.ptr != NULL;
	struct id_range ids = { 0 };
	struct name_range range;
	enum status status;

	f->take = find_doc_take;
	TRY(find_doc_init(f));
	TRY(id_range_narrow(f->args.normal, f->r->arena, &ids));
	range = id_range_names(&ids, !sorts && f->args.sort.descending);
	if (ids.empty || !f->limit)
		return STATUS_OK;
	if (!sorts) {
		metric_add(&find_unindexed, 1);
		find_pass_page(f, &range);
		return find_by_ids(f, range);
	}
	if (find_is_indexed(f))
		return find_indexed(f);
	if (f->has_after && !str_starts_with(f->after.place, STR("[")))
		return find_refuse_bookmark(f);
	metric_add(&find_unindexed, 1);
	status = find_sorted(f, range);
	return status == STATUS_INVALID && f->r->fail.error == COUCH_ERROR_NONE
		       ? find_refuse_bookmark(f)
		       : status;
}

static enum status
find_send(struct find *f)
{
	struct buf *out = &f->stream.out;

	TRY(find_read_bookmark(f));
	TRY(couch_snapshot_begin_list(&f->snapshot, f->r));
	TRY(couch_snapshot_run(&f->snapshot, find_load_indexes, &f->indexes));
	TRY(plan_make(f->r, &f->args, &f->indexes, false, &f->plan));
	if (f->has_after && !plan_pin(&f->plan, f->after.index))
		return find_refuse_bookmark(f);
	buf_append_cstr(out, "{\"docs\":[");
	if (f->plan.nothing) {
		/* CouchDB answers an empty list of conditions alone with nothing at all. */
		buf_append_cstr(out, "\r\n]}\r\n");
		return couch_stream_end(&f->stream);
	}
	f->began_ns = clock_mono_ns();
	TRY(find_run(f));
	metric_add(&find_docs, f->docs);
	buf_append_cstr(out, "\r\n]");
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
	buf_init(&f.id, REV_DOC_ID_BYTES);
	buf_init(&f.place, BOOKMARK_BYTES);
	couch_stream_init(&f.stream, r);
	status = find_send(&f);
	couch_snapshot_end(&f.snapshot);
	couch_stream_release(&f.stream);
	buf_release(&f.id);
	buf_release(&f.place);
	return status;
}

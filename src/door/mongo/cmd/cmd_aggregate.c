/* aggregate: documents through a pipeline. */
#include "door/mongo/cmd/aggregate.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/cursor.h"
#include "door/mongo/txn/data.h"
#include "door/mongo/txn/snapshot.h"
#include "door/mongo/watch/watch.h"

enum {
	FIRST_BATCH_DOCS = 101,
};

#define ARGS_AGGREGATE(ARG)                                                                        \
	ARG(AGGREGATE_PIPELINE, "pipeline", ARG_ARRAY | ARG_REQUIRED)                              \
	ARG(AGGREGATE_CURSOR, "cursor", ARG_OBJECT)                                                \
	ARG(AGGREGATE_EXPLAIN, "explain", ARG_BOOL)                                                \
	ARG(AGGREGATE_DISK, "allowDiskUse", ARG_BOOL)                                              \
	ARG(AGGREGATE_HINT, "hint", ARG_OBJECT | ARG_STRING)                                       \
	ARG(AGGREGATE_COLLATION, "collation", ARG_OBJECT)                                          \
	ARG(AGGREGATE_LET, "let", ARG_OBJECT)                                                      \
	ARG(AGGREGATE_BYPASS, "bypassDocumentValidation", ARG_BOOL)
ARGS_DEFINE(args_aggregate, ARGS_AGGREGATE);

/* Appends documents to the answer; `*ret_ended`: there are no more. */
static enum status
put_documents(struct call *c, struct aggregate *a, uint64_t want, bool *ret_ended)
{
	const struct buf *out = c->reply->out;
	size_t from = out->len;
	struct str doc;

	*ret_ended = false;
	for (uint64_t count = 0; count < want; count++) {
		enum status status = mongo_aggregate_next(a, &doc);

		if (status == STATUS_NOT_FOUND) {
			*ret_ended = true;
			return STATUS_OK;
		}
		TRY(status);
		if (count && !cursor_batch_has_room(c, out->len - from + doc.len))
			return mongo_aggregate_back(a, doc);
		bson_put_document(c->reply, STR(""), doc);
		TRY(buf_status(out));
	}
	return STATUS_OK;
}

static enum status
put_batch(struct call *c, struct aggregate *a, struct str name, uint64_t want, bool *ret_ended)
{
	bson_begin_document(c->reply, STR("cursor"));
	bson_begin_array(c->reply, name);
	TRY(put_documents(c, a, want, ret_ended));
	bson_end(c->reply);
	return STATUS_OK;
}

static void
put_cursor(struct call *c, int64_t id, struct str ns)
{
	bson_put_int64(c->reply, STR("id"), id);
	bson_put_string(c->reply, STR("ns"), ns);
	snapshot_put(c);
	bson_end(c->reply);
}

/* ---- aggregate ---- */

static enum status
aggregate_batch(struct call *c, uint64_t *ret)
{
	const struct arg_value *cursor = &c->args[AGGREGATE_CURSOR];
	struct bson_value size;
	int64_t n;

	*ret = FIRST_BATCH_DOCS;
	if (!cursor->given)
		return call_fail(c, MONGO_FAILED_TO_PARSE,
				 "The 'cursor' option is required, except for aggregate with the "
				 "explain argument");
	if (!bson_find(bson_text(&cursor->value), STR("batchSize"), &size))
		return STATUS_OK;
	if (!bson_to_int64(&size, &n))
		return call_type_mismatch(c, &size, "types '[long, int, decimal, double]'",
					  "aggregate.cursor.batchSize");
	if (n < 0)
		return call_fail(c, MONGO_BAD_VALUE,
				 "BSON field 'batchSize' value must be >= 0, actual value '%lld'",
				 (long long)n);
	*ret = (uint64_t)n;
	return STATUS_OK;
}

static enum status
aggregate_ask_of(struct call *c, struct aggregate_ask *ask)
{
	bool number = bson_is_number(&c->first);
	int64_t n;

	if (number && (!bson_to_int64(&c->first, &n) || n != 1))
		return call_fail(c, MONGO_FAILED_TO_PARSE,
				 "Invalid command format: the 'aggregate' field must specify a "
				 "collection name or 1");
	if (number)
		c->collection = STR("$cmd.aggregate");
	else
		TRY(call_read_collection(c));
	TRY(data_ns(c, &ask->ns));
	ask->db = c->db;
	ask->no_collection = number;
	ask->pipeline = bson_text(&c->args[AGGREGATE_PIPELINE].value);
	ask->let = call_has(c, AGGREGATE_LET) ? bson_text(&c->args[AGGREGATE_LET].value)
					      : BSON_EMPTY;
	ask->collation = call_has(c, AGGREGATE_COLLATION)
				 ? bson_text(&c->args[AGGREGATE_COLLATION].value)
				 : BSON_EMPTY;
	ask->hint = call_has(c, AGGREGATE_HINT) ? &c->args[AGGREGATE_HINT].value : NULL;
	ask->disk = call_bool(c, AGGREGATE_DISK, true);
	return STATUS_OK;
}

static void
free_live(void *live)
{
	mongo_aggregate_free(live);
}

/*
 * Puts all documents that are left into the cursor of an aggregation that reads a snapshot. The
 * cursor cannot read on later, because a kept version serves one command at a time.
 */
static enum status
aggregate_keep_rows(struct call *c, struct aggregate *a, struct str ns, int64_t *ret)
{
	struct buf AUTO(buf_release) rows = BUF_INIT_OF(CURSOR_ROWS_BYTES, arena_part(c->arena));
	struct bson_builder b;
	struct cursor *cursor;
	enum status status;
	bool any = false;
	struct str doc;

	bson_builder_init(&b, &rows);
	bson_begin_outer_array(&b);
	while ((status = mongo_aggregate_next(a, &doc)) == STATUS_OK) {
		any = true;
		bson_put_document(&b, STR(""), doc);
		TRY(buf_status(&rows));
	}
	bson_end(&b);
	if (status != STATUS_NOT_FOUND)
		return status;
	TRY(buf_status(&rows));
	if (!any)
		return STATUS_OK;
	TRY(cursor_begin(c, ns, &cursor));
	cursor->max_ns = call_time_left(c);
	return cursor_keep(c, cursor, cursor_set_rows(cursor, &rows), ret);
}

/* A cursor takes the pipeline over. */
static enum status
aggregate_keep(struct call *c, struct aggregate **a, struct str ns, int64_t *ret)
{
	struct cursor *cursor;

	TRY(cursor_begin(c, ns, &cursor));
	cursor->max_ns = call_time_left(c);
	cursor->live = *a;
	cursor->live_free = free_live;
	cursor->kept = mongo_aggregate_part(*a);
	mongo_aggregate_rest(*a);
	*a = NULL;
	return cursor_keep(c, cursor, STATUS_OK, ret);
}

static enum status
refuse_in_transaction(struct call *c, const char *stage)
{
	return call_fail(c, MONGO_NOT_IN_TRANSACTION,
			 "An aggregation stage %s cannot run within a multi-document transaction",
			 stage);
}

/* Stages about the server see what is there now, and no transaction. */
static enum status
check_stages_in_transaction(struct call *c, struct str pipeline)
{
	static const char *const refused[] = { "$changeStream", "$collStats", "$currentOp",
					       "$indexStats", "$listLocalSessions" };
	struct bson_element first, stage;
	struct bson_iter i;

	bson_iter_begin(&i, pipeline);
	if (!bson_iter_read(&i, &first) || first.value.type != BSON_DOCUMENT)
		return STATUS_OK;
	bson_iter_begin(&i, bson_text(&first.value));
	if (!bson_iter_read(&i, &stage))
		return STATUS_OK;
	for (size_t n = 0; n < sizeof(refused) / sizeof(refused[0]); n++)
		if (str_eq(stage.name, str_from_cstr(refused[n])))
			return refuse_in_transaction(c, refused[n]);
	return STATUS_OK;
}

enum status
mongo_answer_aggregate(struct call *c, const struct aggregate_ask *ask, uint64_t want, bool single)
{
	struct aggregate *a = NULL;
	bool ended = false;
	int64_t id = 0;
	enum status status = mongo_aggregate_new(c, ask, &a);

	if (single)
		c->batch_bytes = CURSOR_BATCH_BYTES;
	if (status == STATUS_OK)
		status = put_batch(c, a, STR("firstBatch"), want, &ended);
	if (status == STATUS_OK && !ended && !single)
		status = aggregate_keep(c, &a, ask->ns, &id);
	if (status == STATUS_OK)
		put_cursor(c, id, ask->ns);
	mongo_aggregate_free(a);
	return status;
}

static enum status
aggregate_run(struct call *c, struct aggregate **a)
{
	struct aggregate_ask ask = { .disk = true };
	struct bson_value v;
	bool ended = false;
	int64_t id = 0;
	uint64_t want;

	if (call_bool(c, AGGREGATE_EXPLAIN, false))
		return mongo_explain_aggregate(c);
	TRY(aggregate_batch(c, &want));
	TRY(aggregate_ask_of(c, &ask));
	if (c->in_transaction)
		TRY(check_stages_in_transaction(c, ask.pipeline));
	c->is_watch = watch_is_wanted(ask.pipeline, &v);
	if (c->is_watch) {
		if (c->snapshot)
			return call_fail(c, MONGO_INVALID_OPTIONS,
					 "$changeStream cannot be used with a 'snapshot' read "
					 "concern level");
		return watch_open(c, ask.no_collection ? STR("") : c->collection,
				  &(struct watch_ask){ ask.pipeline, ask.let, ask.collation },
				  (int64_t)want);
	}
	TRY(mongo_aggregate_new(c, &ask, a));
	if (c->in_transaction && mongo_aggregate_writes(*a))
		return refuse_in_transaction(c, "that writes");
	if (mongo_aggregate_writes(*a) && (c->linearizable || c->snapshot))
		return call_fail(
			c, MONGO_INVALID_OPTIONS,
			"a stage that writes cannot be used with a '%s' read concern level",
			c->snapshot ? "snapshot" : "linearizable");
	if (mongo_aggregate_writes(*a)) {
		TRY(data_check_concern(c));
		want = want ? want : 1;
	}
	TRY(put_batch(c, *a, STR("firstBatch"), want, &ended));
	if (!ended && c->snapshot)
		TRY(aggregate_keep_rows(c, *a, ask.ns, &id));
	else if (!ended)
		TRY(aggregate_keep(c, a, ask.ns, &id));
	put_cursor(c, id, ask.ns);
	if (*a && mongo_aggregate_writes(*a))
		data_put_concern(c);
	return STATUS_OK;
}

enum status
mongo_run_aggregate(struct call *c)
{
	struct aggregate *a = NULL;
	enum status status = aggregate_run(c, &a);

	mongo_aggregate_free(a);
	return status;
}

/* ---- getMore ---- */

enum status
mongo_more_aggregate(struct call *c, struct cursor *cursor, struct str ns, uint64_t want,
		     bool *ret_ended)
{
	struct aggregate *a = cursor->live;
	enum status status;

	status = mongo_aggregate_resume(a, c);
	if (status == STATUS_OK)
		status = put_batch(c, a, STR("nextBatch"), want, ret_ended);
	mongo_aggregate_rest(a);
	TRY(status);
	c->again = !*ret_ended;
	put_cursor(c, *ret_ended ? 0 : cursor->id, ns);
	return STATUS_OK;
}

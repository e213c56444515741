/* Figures of collections and of databases: count, collStats, dbStats. */
#include "door/mongo/cmd/commands.h"
#include "door/mongo/cmd/storage.h"
#include "door/mongo/cmd/view.h"
#include "door/mongo/cmd/walk.h"
#include "door/mongo/index/index.h"
#include "door/mongo/plan/query.h"
#include "door/mongo/txn/mongo_int.h"
#include "door/mongo/txn/run.h"

#define ARGS_COUNT(ARG)                                                                            \
	ARG(COUNT_QUERY, "query", ARG_OBJECT)                                                      \
	ARG(COUNT_LIMIT, "limit", ARG_NUMBER)                                                      \
	ARG(COUNT_SKIP, "skip", ARG_NUMBER)                                                        \
	ARG(COUNT_HINT, "hint", ARG_OBJECT | ARG_STRING)                                           \
	ARG(COUNT_COLLATION, "collation", ARG_OBJECT)
ARGS_DEFINE(args_count, ARGS_COUNT);

#define ARGS_STATS(ARG)                                                                            \
	ARG(STATS_SCALE, "scale", ARG_NUMBER)                                                      \
	ARG(STATS_FREE, "freeStorage", ARG_NUMBER)
ARGS_DEFINE(args_stats, ARGS_STATS);

/* ---- One collection ---- */

struct figures {
	struct data data;
	bool measures; /* indexes, too */
	struct storage storage;
};

static enum status
figures_body(struct kv_tx *tx, void *arg)
{
	struct figures *f = arg;

	TRY(data_begin(&f->data, tx));
	return storage_read(tx, &f->data, f->measures, f->data.call->arena, &f->storage);
}

static enum status
figures_read(struct call *c, struct figures *f)
{
	struct str ns;
	enum status status;

	TRY(data_ns(c, &ns));
	data_init(&f->data, c, ns, false);
	status = call_read(c, figures_body, f);
	data_fini(&f->data);
	return status;
}

/* Counts the documents that match, at most `most`. */
static enum status
count_matches(struct call *c, struct query *q, uint64_t most, uint64_t *ret)
{
	struct plan_cover cover = { .count = 0 };
	struct query_ask ask = { .filter = BSON_EMPTY, .cover = &cover, .takes_where = true };
	enum status status = STATUS_OK;
	struct str ns, doc;

	if (call_has(c, COUNT_QUERY))
		ask.filter = bson_text(&c->args[COUNT_QUERY].value);
	if (call_has(c, COUNT_HINT))
		ask.hint = &c->args[COUNT_HINT].value;
	query_choose_collation(c, call_text(c, COUNT_COLLATION), &ask);
	TRY(data_ns(c, &ns));
	cover.filter = ask.filter;
	TRY(query_open(q, c, ns, &ask));
	for (*ret = 0; status == STATUS_OK && *ret < most; *ret += status == STATUS_OK)
		status = query_next(q, &doc);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Counts all documents, by the counter, or those of the query or hint, at most `most`. */
static enum status
count_run(struct call *c, uint64_t most, uint64_t *ret)
{
	bool all = !call_has(c, COUNT_QUERY) ||
		   bson_is_empty(bson_text(&c->args[COUNT_QUERY].value));
	struct figures f = { 0 };
	struct query q = { 0 };
	enum status status;

	if (all && !call_has(c, COUNT_HINT)) {
		status = figures_read(c, &f);
		*ret = f.storage.documents;
		return status;
	}
	status = count_matches(c, &q, most, ret);
	query_close(&q);
	return status;
}

enum status
mongo_run_count(struct call *c)
{
	struct call_mark mark = call_mark(c);
	int64_t skip = call_i64(c, COUNT_SKIP, 0);
	int64_t limit = call_i64(c, COUNT_LIMIT, 0);
	uint64_t most, n, count = 0;
	enum status status;
	struct str ns;

	if (skip < 0)
		return call_fail(c, MONGO_BAD_VALUE,
				 "BSON field 'skip' value must be >= 0, actual value '%lld'",
				 (long long)skip);
	most = limit == INT64_MIN ? INT64_MAX : (uint64_t)(limit < 0 ? -limit : limit);
	status = count_run(c, most ? most + (uint64_t)skip : UINT64_MAX, &count);
	if (status != STATUS_OK && c->code == MONGO_NOT_ON_VIEW) {
		call_go_back(c, mark);
		TRY(data_ns(c, &ns));
		status = view_count(c, ns, &count);
	}
	TRY(status);
	n = count > (uint64_t)skip ? count - (uint64_t)skip : 0;
	if (most && n > most)
		n = most;
	if (n <= INT32_MAX)
		bson_put_int32(c->reply, STR("n"), (int32_t)n);
	else
		bson_put_int64(c->reply, STR("n"), (int64_t)n);
	return STATUS_OK;
}

enum status
mongo_run_coll_stats(struct call *c)
{
	int64_t scale = call_i64(c, STATS_SCALE, 1);
	struct figures f = { .measures = true };

	if (scale <= 0)
		return call_fail(c, MONGO_BAD_VALUE, "scale has to be a number greater than 0");
	TRY(figures_read(c, &f));
	bson_put_string(c->reply, STR("ns"), f.data.ns);
	storage_put(c->reply, &f.storage, scale);
	return STATUS_OK;
}

/* ---- One database ---- */

struct totals {
	uint64_t collections, views, documents, bytes, indexes, index_bytes;
};

static enum status
total_collection(struct call *c, void *arg, struct kv_tx *tx, struct str name)
{
	struct totals *t = arg;
	struct catalog_db *db;
	struct plain plain;
	uint64_t bytes, count, index_bytes;
	enum status status;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, name, &db, &c->err));
	if (plain_options_are_view(plain_options_of(db))) {
		t->views++;
		catalog_db_unref(db);
		return STATUS_OK;
	}
	plain_init(&plain, tx, db, 0, &c->err);
	status = catalog_db_bytes(tx, db, &bytes);
	if (status == STATUS_OK)
		status = plain_count(&plain, &count);
	if (status == STATUS_OK)
		status = storage_measure_indexes(tx, db, &index_bytes);
	if (status == STATUS_OK)
		t->indexes += index_count_told(db);
	catalog_db_unref(db);
	TRY(status);
	t->collections++;
	t->documents += count;
	t->bytes += bytes;
	t->index_bytes += index_bytes;
	return STATUS_OK;
}

enum status
mongo_run_db_stats(struct call *c)
{
	struct str prefix = arena_printf(c->arena, "%.*s.", STR_ARG(c->db));
	int64_t scale = call_i64(c, STATS_SCALE, 1);
	struct totals t = { 0 };

	if (!prefix.ptr)
		return STATUS_LIMIT;
	if (scale <= 0)
		return call_fail(c, MONGO_BAD_VALUE, "scale has to be a number greater than 0");
	TRY(walk_collections(c, prefix, total_collection, &t));
	bson_put_string(c->reply, STR("db"), c->db);
	bson_put_int64(c->reply, STR("collections"), (int64_t)t.collections);
	bson_put_int64(c->reply, STR("views"), (int64_t)t.views);
	bson_put_int64(c->reply, STR("objects"), (int64_t)t.documents);
	bson_put_double(c->reply, STR("avgObjSize"),
			t.documents ? (double)t.bytes / (double)t.documents : 0);
	bson_put_int64(c->reply, STR("dataSize"), (int64_t)t.bytes / scale);
	bson_put_int64(c->reply, STR("storageSize"), (int64_t)t.bytes / scale);
	bson_put_int64(c->reply, STR("indexes"), (int64_t)t.indexes);
	bson_put_int64(c->reply, STR("indexSize"), (int64_t)t.index_bytes / scale);
	bson_put_int64(c->reply, STR("totalSize"), (int64_t)t.bytes / scale);
	bson_put_int64(c->reply, STR("scaleFactor"), scale);
	return STATUS_OK;
}

/* $collStats: figures of a collection. */
#include "door/mongo/aggregate.h"
#include "door/mongo/commands.h"
#include "door/mongo/data.h"
#include "door/mongo/index.h"
#include "door/mongo/mongo_int.h"
#include "door/mongo/run.h"
#include "index/engine/scan.h"

enum {
	STATS_BYTES = 1024 * 1024, /* of the document */
};

struct stats {
	struct data data;
	bool storage, latency, count; /* what is wanted */
	int64_t scale;
	uint64_t documents;
	uint64_t bytes;
	uint64_t index_bytes;
	uint64_t indexes;    /* with that of `_id` */
	struct buf sizes;    /* of the indexes: a document */
	struct buf document; /* the answer, in an array */
};

/* ---- What is asked for ---- */

/* True for a member that says no more than what is done anyway. */
static bool
is_usual(const struct bson_element *e)
{
	return (e->value.type == BSON_BOOL && !e->value.truth) ||
	       (str_eq(e->name, STR("waitForLock")) && e->value.type == BSON_BOOL);
}

static enum status
read_storage(struct call *c, struct str spec, struct stats *s)
{
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, spec); bson_iter_read(&i, &e);) {
		if (is_usual(&e))
			continue;
		if (!str_eq(e.name, STR("scale")))
			return call_fail(c, MONGO_NOT_IMPLEMENTED,
					 "'%.*s' of $collStats' storageStats is not there",
					 (int)(e.name.len < 100 ? e.name.len : 100), e.name.ptr);
		if (!bson_is_number(&e.value) || !bson_to_int64(&e.value, &s->scale) ||
		    s->scale < 1)
			return call_fail(c, MONGO_BAD_VALUE,
					 "scale of $collStats has to be a whole number of at least "
					 "1");
	}
	s->storage = true;
	return STATUS_OK;
}

static enum status
read_latency(struct call *c, struct str spec, struct stats *s)
{
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, spec); bson_iter_read(&i, &e);)
		if (!is_usual(&e))
			return call_fail(c, MONGO_NOT_IMPLEMENTED,
					 "'%.*s' of $collStats' latencyStats is not there",
					 (int)(e.name.len < 100 ? e.name.len : 100), e.name.ptr);
	s->latency = true;
	return STATUS_OK;
}

static enum status
read_spec(struct call *c, struct str spec, struct stats *s)
{
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, spec); bson_iter_read(&i, &e);) {
		if (str_eq(e.name, STR("targetAllNodes")) && is_usual(&e))
			continue;
		if (str_eq(e.name, STR("queryExecStats")) ||
		    str_eq(e.name, STR("operationStats")) || str_eq(e.name, STR("targetAllNodes")))
			return call_fail(c, MONGO_NOT_IMPLEMENTED,
					 "%.*s of $collStats is not there", STR_ARG(e.name));
		if (!str_eq(e.name, STR("storageStats")) && !str_eq(e.name, STR("latencyStats")) &&
		    !str_eq(e.name, STR("count")))
			return call_fail(c, MONGO_FIELD_UNKNOWN,
					 "BSON field '$collStats.%.*s' is an unknown field.",
					 (int)(e.name.len < 100 ? e.name.len : 100), e.name.ptr);
		if (e.value.type != BSON_DOCUMENT)
			return call_type_mismatch(c, &e.value, "type 'object'", "$collStats.%.*s",
						  STR_ARG(e.name));
		if (str_eq(e.name, STR("storageStats")))
			TRY(read_storage(c, e.value.text, s));
		else if (str_eq(e.name, STR("latencyStats")))
			TRY(read_latency(c, e.value.text, s));
		else
			s->count = true;
	}
	return STATUS_OK;
}

/* ---- What there is ---- */

static enum status
measure_indexes(struct kv_tx *tx, struct stats *s)
{
	const struct index_def *def;
	uint64_t entries, bytes;
	struct bson_builder b;
	struct bson_value name;
	size_t i;

	buf_clear(&s->sizes);
	bson_builder_init(&b, &s->sizes);
	bson_begin(&b);
	bson_put_int64(&b, STR("_id_"), 0); /* the documents themselves are in its order */
	for (i = 0; (def = index_at(s->data.db, i)) != NULL; i++) {
		TRY(index_measure(tx, s->data.db, def, &entries, &bytes));
		s->index_bytes += bytes;
		if (bson_find(def->spec, STR("name"), &name) && name.type == BSON_STRING)
			bson_put_int64(&b, name.text, (int64_t)bytes / s->scale);
	}
	bson_end(&b);
	s->indexes = i + 1;
	return buf_status(&s->sizes);
}

static enum status
stats_body(struct kv_tx *tx, void *arg)
{
	struct stats *s = arg;

	s->index_bytes = 0;
	TRY(data_open(&s->data, tx));
	if (!s->data.is_there)
		return STATUS_OK;
	TRY(catalog_db_bytes(tx, s->data.db, &s->bytes));
	if (s->storage)
		TRY(measure_indexes(tx, s));
	return plain_count(&s->data.plain, &s->documents);
}

static void
put_storage(struct bson_builder *b, const struct stats *s)
{
	int64_t scale = s->scale;

	bson_begin_document(b, STR("storageStats"));
	bson_put_int64(b, STR("size"), (int64_t)s->bytes / scale);
	bson_put_int64(b, STR("count"), (int64_t)s->documents);
	bson_put_int64(b, STR("avgObjSize"), s->documents ? (int64_t)(s->bytes / s->documents) : 0);
	bson_put_int64(b, STR("storageSize"), (int64_t)s->bytes / scale);
	bson_put_int64(b, STR("freeStorageSize"), 0);
	bson_put_bool(b, STR("capped"), false);
	bson_put_int32(b, STR("nindexes"), (int32_t)s->indexes);
	bson_put_int64(b, STR("totalIndexSize"), (int64_t)s->index_bytes / scale);
	bson_put_int64(b, STR("totalSize"), (int64_t)(s->bytes + s->index_bytes) / scale);
	bson_put_document(b, STR("indexSizes"), buf_str(&s->sizes));
	bson_put_int64(b, STR("scaleFactor"), scale);
	bson_end(b);
}

static void
put_latency(struct bson_builder *b, const struct usage_row *row, const char *name, unsigned kinds)
{
	struct usage_figure all = usage_sum(row, kinds);

	bson_begin_document(b, str_from_cstr(name));
	bson_put_int64(b, STR("latency"), (int64_t)all.us);
	bson_put_int64(b, STR("ops"), (int64_t)all.count);
	bson_end(b);
}

static void
put_stats(struct call *c, struct stats *s, int64_t now_ms, struct bson_builder *b)
{
	struct usage_row row;

	bson_begin_document(b, STR(""));
	bson_put_string(b, STR("ns"), s->data.ns);
	bson_put_string(b, STR("host"), str_from_cstr(c->mongo->host));
	bson_put_date(b, STR("localTime"), now_ms);
	if (s->latency) {
		usage_read(&c->mongo->usages, s->data.ns, &row);
		bson_begin_document(b, STR("latencyStats"));
		put_latency(b, &row, "reads", USAGE_READS);
		put_latency(b, &row, "writes", USAGE_WRITES);
		bson_end(b);
	}
	if (s->storage)
		put_storage(b, s);
	if (s->count)
		bson_put_int64(b, STR("count"), (int64_t)s->documents);
	bson_end(b);
}

static enum status
stats_run(struct call *c, struct stats *s, struct str ns, struct str spec, int64_t now_ms)
{
	struct bson_builder b;
	enum status status;

	TRY(read_spec(c, spec, s));
	data_init(&s->data, c, ns, false);
	status = call_read(c, stats_body, s);
	if (status == STATUS_OK && !s->data.is_there)
		status = call_fail(c, MONGO_NAMESPACE_NOT_FOUND,
				   "Unable to retrieve count in $collStats stage :: caused by :: "
				   "Collection [%.*s] not found.",
				   STR_ARG(ns));
	data_fini(&s->data);
	TRY(status);
	bson_builder_init(&b, &s->document);
	bson_begin_outer_array(&b);
	put_stats(c, s, now_ms, &b);
	bson_end(&b);
	return buf_status(&s->document);
}

enum status
mongo_aggregate_stats(struct call *c, struct str ns, struct arena *arena, struct str spec,
		      int64_t now_ms, struct mql_source **ret)
{
	struct stats s = { .scale = 1,
			   .sizes = BUF_INIT(STATS_BYTES),
			   .document = BUF_INIT(STATS_BYTES) };
	enum status status = stats_run(c, &s, ns, spec, now_ms);
	struct str array = arena_dup(arena, buf_str(&s.document));

	buf_release(&s.sizes);
	buf_release(&s.document);
	TRY(status);
	return array.ptr ? mql_source_of_array(array, ret) : STATUS_LIMIT;
}

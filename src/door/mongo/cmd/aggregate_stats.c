/* $collStats: figures of a collection. */
#include "door/mongo/cmd/aggregate.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/cmd/storage.h"
#include "door/mongo/txn/data.h"
#include "door/mongo/txn/mongo_int.h"
#include "door/mongo/txn/run.h"

enum {
	STATS_BYTES = 1024 * 1024, /* of the document */
};

struct stats {
	struct data data;
	bool measures, latency, count; /* what is wanted */
	int64_t scale;
	struct storage storage;
	struct buf document; /* the answer, in an array */
};

/* ---- What is asked for ---- */

/* True for a member that says no more than what is done anyway. */
static bool
is_usual(const struct bson_element *e)
{
	return (e->value.type == BSON_BOOL && !bson_truth(&e->value)) ||
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
		if (!bson_to_int64(&e.value, &s->scale) || s->scale < 1)
			return call_fail(c, MONGO_BAD_VALUE,
					 "scale of $collStats has to be a whole number of at least "
					 "1");
	}
	s->measures = true;
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
			TRY(read_storage(c, bson_text(&e.value), s));
		else if (str_eq(e.name, STR("latencyStats")))
			TRY(read_latency(c, bson_text(&e.value), s));
		else
			s->count = true;
	}
	return STATUS_OK;
}

/* ---- What there is ---- */

static enum status
stats_body(struct kv_tx *tx, void *arg)
{
	struct stats *s = arg;

	TRY(data_open(&s->data, tx));
	return storage_read(tx, &s->data, s->measures, s->data.call->arena, &s->storage);
}

static void
put_latency(struct bson_builder *b, const struct usage *usage, const char *name, unsigned kinds)
{
	struct usage_figure all = usage_sum(usage, kinds);

	bson_begin_document(b, str_from_cstr(name));
	bson_put_int64(b, STR("latency"), (int64_t)all.us);
	bson_put_int64(b, STR("ops"), (int64_t)all.count);
	bson_end(b);
}

static void
put_stats(struct call *c, struct stats *s, int64_t now_ms, struct bson_builder *b)
{
	struct usage usage;

	bson_begin_document(b, STR(""));
	bson_put_string(b, STR("ns"), s->data.ns);
	bson_put_string(b, STR("host"), str_from_cstr(c->mongo->host));
	bson_put_date(b, STR("localTime"), now_ms);
	if (s->latency) {
		usage_read(&c->mongo->usages, s->data.ns, &usage);
		bson_begin_document(b, STR("latencyStats"));
		put_latency(b, &usage, "reads", USAGE_READS);
		put_latency(b, &usage, "writes", USAGE_WRITES);
		bson_end(b);
	}
	if (s->measures) {
		bson_begin_document(b, STR("storageStats"));
		storage_put(b, &s->storage, s->scale);
		bson_end(b);
	}
	if (s->count)
		bson_put_int64(b, STR("count"), (int64_t)s->storage.documents);
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
	struct stats s = { .scale = 1, .document = BUF_INIT_OF(STATS_BYTES, arena_part(c->arena)) };
	enum status status = stats_run(c, &s, ns, spec, now_ms);
	struct str array = buf_dup(&s.document, arena);

	buf_release(&s.document);
	TRY(status);
	return array.ptr ? mql_source_of_array(array, ret) : STATUS_LIMIT;
}

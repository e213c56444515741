/* dataSize: what the documents of a collection, or of a range of an index, have in bytes. */
#include "base/clock.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/plan/query.h"
#include "door/mongo/txn/mongo_int.h"
#include "door/mongo/txn/run.h"

#define ARGS_DATA_SIZE(ARG)                                                                        \
	ARG(MEASURE_KEY, "keyPattern", ARG_OBJECT)                                                 \
	ARG(MEASURE_MIN, "min", ARG_OBJECT)                                                        \
	ARG(MEASURE_MAX, "max", ARG_OBJECT)                                                        \
	ARG(MEASURE_ESTIMATE, "estimate", ARG_BOOL)                                                \
	ARG(MEASURE_MAX_BYTES, "maxSize", ARG_NUMBER)                                              \
	ARG(MEASURE_MAX_DOCS, "maxObjects", ARG_NUMBER)
ARGS_DEFINE(args_data_size, ARGS_DATA_SIZE);

struct size {
	struct data data;
	uint64_t bytes, docs;
	bool reached; /* maxSize or maxObjects */
};

/* Reads the documents, those of the range if there is one, and adds up their bytes. */
static enum status
size_count(struct call *c, struct str ns, struct size *s)
{
	int64_t most_bytes = call_i64(c, MEASURE_MAX_BYTES, 0);
	int64_t most_docs = call_i64(c, MEASURE_MAX_DOCS, 0);
	struct query_ask ask = { .filter = BSON_EMPTY };
	struct query q = { 0 };
	enum status status;
	struct str doc = { 0 };

	if (call_has(c, MEASURE_MIN)) {
		ask.hint = &c->args[MEASURE_KEY].value;
		ask.min = &c->args[MEASURE_MIN].value;
		ask.max = &c->args[MEASURE_MAX].value;
	}
	status = query_open(&q, c, ns, &ask);
	while (status == STATUS_OK && !s->reached && (status = query_next(&q, &doc)) == STATUS_OK) {
		s->bytes += doc.len;
		s->docs++;
		s->reached = (most_bytes > 0 && s->bytes > (uint64_t)most_bytes) ||
			     (most_docs > 0 && s->docs > (uint64_t)most_docs);
	}
	query_close(&q);
	/* Nothing lies between keys in the wrong order. Only find takes that for a mistake. */
	if (status != STATUS_OK && c->code == MONGO_RANGE_NO_ORDER) {
		c->code = 0;
		c->err = (struct err){ 0 };
		return STATUS_OK;
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* What the collection's counters say: they are kept with each write. */
static enum status
size_read(struct kv_tx *tx, void *arg)
{
	struct size *s = arg;

	s->bytes = s->docs = 0;
	TRY(data_begin(&s->data, tx));
	if (!s->data.is_there)
		return STATUS_OK;
	TRY(catalog_db_bytes(tx, s->data.db, &s->bytes));
	return plain_count(&s->data.plain, &s->docs);
}

static enum status
size_estimate(struct call *c, struct str ns, struct size *s)
{
	enum status status;

	data_init(&s->data, c, ns, false);
	status = call_read(c, size_read, s);
	data_fini(&s->data);
	return status;
}

static enum status
check_range(struct call *c)
{
	if (call_has(c, MEASURE_MIN) != call_has(c, MEASURE_MAX))
		return call_fail(c, MONGO_BAD_VALUE, "dataSize needs both 'min' and 'max'");
	if (call_has(c, MEASURE_MIN) && !call_has(c, MEASURE_KEY))
		return call_fail(c, MONGO_OPERATION_FAILED,
				 "dataSize needs 'keyPattern' for 'min' and 'max'");
	return STATUS_OK;
}

/* The name is a whole one, and the right is one on its database. */
static enum status
check_name(struct call *c, struct str *ret)
{
	struct str rest;

	if (c->first.type == BSON_NULL || c->first.type == BSON_UNDEFINED)
		return call_fail(c, MONGO_FIELD_MISSING,
				 "BSON field 'dataSize.dataSize' is missing but a required field");
	if (c->first.type != BSON_STRING)
		return call_type_mismatch(c, &c->first, "type 'string'", "dataSize.dataSize");
	rest = bson_text(&c->first);
	TRY(call_check_ns(c, rest));
	*ret = rest;
	return call_check_rights(c, str_cut(&rest, '.'), RIGHT_READ);
}

enum status
mongo_run_data_size(struct call *c)
{
	bool estimate = call_bool(c, MEASURE_ESTIMATE, false);
	struct size s = { .bytes = 0 };
	struct str ns = { 0 };

	TRY(check_name(c, &ns));
	TRY(check_range(c));
	if (estimate && !call_has(c, MEASURE_MIN))
		TRY(size_estimate(c, ns, &s));
	else
		TRY(size_count(c, ns, &s));
	bson_put_bool(c->reply, STR("estimate"), estimate);
	bson_put_int64(c->reply, STR("size"), (int64_t)s.bytes);
	bson_put_int64(c->reply, STR("numObjects"), (int64_t)s.docs);
	bson_put_int32(c->reply, STR("millis"),
		       (int32_t)((clock_mono_ns() - c->began_ns) / CLOCK_NS_PER_MS));
	if (s.reached)
		bson_put_bool(c->reply, STR("maxReached"), true);
	return STATUS_OK;
}

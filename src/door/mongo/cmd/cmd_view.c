/* find and count of a view: its pipeline, and stages that do what the command asks for. */
#include "door/mongo/cmd/aggregate.h"
#include "door/mongo/cmd/view.h"
#include "door/mongo/txn/data.h"

enum {
	FIRST_BATCH_DOCS = 101,
};

/* A member of the command of that type; NULL: it is not there, or is an empty document. */
static const struct bson_value *
member(struct call *c, const char *name, enum bson_type type, struct bson_value *v)
{
	if (!bson_find(c->body, str_from_cstr(name), v) || v->type != type ||
	    (type == BSON_DOCUMENT && bson_is_empty(bson_text(v))))
		return NULL;
	return v;
}

static int64_t
number(struct call *c, const char *name, int64_t otherwise)
{
	struct bson_value v;
	int64_t n;

	return bson_find(c->body, str_from_cstr(name), &v) && bson_is_number(&v) &&
			       bson_to_int64(&v, &n)
		       ? n
		       : otherwise;
}

static void
put_stage(struct bson_builder *b, const char *stage, const struct bson_value *v)
{
	if (!v)
		return;
	bson_begin_document(b, STR(""));
	bson_put(b, str_from_cstr(stage), v);
	bson_end(b);
}

static void
put_number(struct bson_builder *b, const char *stage, int64_t n)
{
	const struct bson_value v = { .type = BSON_INT64, .as_n = n };

	put_stage(b, stage, n > 0 ? &v : NULL);
}

/* What stages cannot do. */
static enum status
check_options(struct call *c)
{
	static const char *const others[] = {
		"min",      "max",       "returnKey",      "showRecordId",
		"tailable", "awaitData", "noCursorTimeout"
	};
	struct bson_value v;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (bson_find(c->body, str_from_cstr(others[i]), &v) &&
		    (v.type == BSON_DOCUMENT ? !bson_is_empty(bson_text(&v)) : bson_is_true(&v)))
			return call_fail(c, MONGO_PIPELINE_OPERATOR,
					 "Option %s not supported in aggregation.", others[i]);
	if (member(c, "sort", BSON_DOCUMENT, &v) && bson_find(bson_text(&v), STR("$natural"), NULL))
		return call_fail(c, MONGO_PIPELINE_OPERATOR,
				 "Sort option $natural not supported in aggregation.");
	return STATUS_OK;
}

/* What a command has beside its stages. `hint` outlives the result. */
static void
ask_of(struct call *c, struct str ns, struct str pipeline, struct bson_value *hint,
       struct aggregate_ask *ret)
{
	struct bson_value v;

	*ret = (struct aggregate_ask){
		.ns = ns, .db = c->db, .pipeline = pipeline, .let = BSON_EMPTY, .disk = true
	};
	ret->collation = member(c, "collation", BSON_DOCUMENT, &v) ? bson_text(&v) : BSON_EMPTY;
	if (member(c, "let", BSON_DOCUMENT, &v))
		ret->let = bson_text(&v);
	if (member(c, "hint", BSON_DOCUMENT, hint) || member(c, "hint", BSON_STRING, hint))
		ret->hint = hint;
}

static enum status
finish(struct call *c, struct buf *made, struct bson_builder *b, struct str *ret)
{
	bson_end(b);
	return buf_copy(made, c->arena, ret);
}

enum status
view_find(struct call *c, struct str ns)
{
	struct buf AUTO(buf_release) made = BUF_INIT_OF(2 * BSON_MOST_BYTES, arena_part(c->arena));
	struct aggregate_ask ask;
	struct bson_builder b;
	struct bson_value v, hint;
	struct str pipeline;

	TRY(check_options(c));
	if (c->snapshot)
		return call_fail(c, MONGO_SNAPSHOT_TOO_OLD,
				 "a view reads more than one version of the data: use a "
				 "transaction for readConcern 'snapshot'");
	bson_builder_init(&b, &made);
	bson_begin_outer_array(&b);
	put_stage(&b, "$match", member(c, "filter", BSON_DOCUMENT, &v));
	put_stage(&b, "$sort", member(c, "sort", BSON_DOCUMENT, &v));
	put_number(&b, "$skip", number(c, "skip", 0));
	put_number(&b, "$limit", number(c, "limit", 0));
	put_stage(&b, "$project", member(c, "projection", BSON_DOCUMENT, &v));
	TRY(finish(c, &made, &b, &pipeline));
	ask_of(c, ns, pipeline, &hint, &ask);
	return mongo_answer_aggregate(c, &ask, (uint64_t)number(c, "batchSize", FIRST_BATCH_DOCS),
				      bson_find_true(c->body, STR("singleBatch")));
}

enum status
view_query(struct call *c, struct str ns, struct aggregate **ret)
{
	struct buf AUTO(buf_release) made = BUF_INIT_OF(2 * BSON_MOST_BYTES, arena_part(c->arena));
	struct aggregate_ask ask;
	struct bson_builder b;
	struct bson_value v, hint;
	struct str pipeline;

	bson_builder_init(&b, &made);
	bson_begin_outer_array(&b);
	put_stage(&b, "$match", member(c, "query", BSON_DOCUMENT, &v));
	TRY(finish(c, &made, &b, &pipeline));
	ask_of(c, ns, pipeline, &hint, &ask);
	return mongo_aggregate_new(c, &ask, ret);
}

enum status
view_count(struct call *c, struct str ns, uint64_t *ret)
{
	struct aggregate *a = NULL;
	enum status status = view_query(c, ns, &a);
	struct str doc;

	for (*ret = 0; status == STATUS_OK; *ret += status == STATUS_OK)
		status = mongo_aggregate_next(a, &doc);
	mongo_aggregate_free(a);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* distinct: the values that documents have at a path, each of them once. */
#include "door/mongo/cmd/aggregate.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/cmd/view.h"
#include "door/mongo/plan/query.h"
#include "door/mongo/txn/snapshot.h"
#include "mql/key_set.h"

enum {
	DISTINCT_BYTES = 16 * 1024 * 1024, /* of the answer, as MongoDB has it */
	DISTINCT_TOO_LARGE = 17217,
	DISTINCT_DIGITS = 9, /* of a position in an array */
};

#define ARGS_DISTINCT(ARG)                                                                         \
	ARG(DISTINCT_KEY, "key", ARG_STRING | ARG_REQUIRED)                                        \
	ARG(DISTINCT_QUERY, "query", ARG_OBJECT)                                                   \
	ARG(DISTINCT_HINT, "hint", ARG_OBJECT | ARG_STRING)                                        \
	ARG(DISTINCT_COLLATION, "collation", ARG_OBJECT)
ARGS_DEFINE(args_distinct, ARGS_DISTINCT);

struct distinct {
	struct call *call;
	struct query query;
	struct mql *mql; /* the query's; of a view: */
	struct mql own;
	struct mql_key_set set;
	size_t from;             /* of the values in the answer */
	struct plan_cover cover; /* what the query looks at */
	struct str key;
};

static enum status
distinct_add(struct distinct *d, const struct bson_value *v)
{
	struct call *c = d->call;
	struct mql *q = d->mql;
	bool added;

	TRY(data_mql_status(c, q, mql_key_set_add(&d->set, q, c->arena, v, &added)));
	if (!added)
		return STATUS_OK;
	bson_put(c->reply, STR(""), v);
	if (c->reply->out->len - d->from > DISTINCT_BYTES)
		return call_fail(c, DISTINCT_TOO_LARGE, "distinct too big, 16mb cap");
	return buf_status(c->reply->out);
}

/* True if the element of that name in an array is what the step names. */
static bool
is_position(struct str step, struct str name)
{
	return step.len && step.len <= DISTINCT_DIGITS && str_eq(step, name);
}

/* Adds what is at the path. As deep as the document is, which is BSON_DEPTH at most. */
static enum status
distinct_walk(struct distinct *d, const struct bson_value *v, struct str path)
{
	struct bson_element e;
	struct bson_iter i;
	struct str rest = path, step;

	if (!path.len && v->type != BSON_ARRAY)
		return distinct_add(d, v);
	if (!bson_is_container(v))
		return STATUS_OK;
	step = str_cut(&rest, '.');
	if (v->type == BSON_DOCUMENT) {
		struct bson_value member;

		return bson_find(bson_text(v), step, &member) ? distinct_walk(d, &member, rest)
							      : STATUS_OK;
	}
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);) {
		if (!path.len)
			TRY(distinct_add(d, &e.value));
		else if (e.value.type == BSON_DOCUMENT)
			TRY(distinct_walk(d, &e.value, path));
		if (path.len && is_position(step, e.name))
			TRY(distinct_walk(d, &e.value, rest));
	}
	return STATUS_OK;
}

static enum status
distinct_run(struct call *c, struct distinct *d)
{
	struct query_ask ask = { .filter = BSON_EMPTY, .takes_where = true };
	enum status status;
	struct str ns, doc;

	if (call_has(c, DISTINCT_QUERY))
		ask.filter = call_text(c, DISTINCT_QUERY);
	if (call_has(c, DISTINCT_HINT))
		ask.hint = &c->args[DISTINCT_HINT].value;
	query_choose_collation(c, call_text(c, DISTINCT_COLLATION), &ask);
	d->key = call_text(c, DISTINCT_KEY);
	plan_cover_distinct(&d->cover, &d->key, ask.filter);
	ask.cover = &d->cover;
	TRY(data_ns(c, &ns));
	d->mql = &d->query.mql;
	TRY(query_open(&d->query, c, ns, &ask));
	bson_begin_array(c->reply, STR("values"));
	d->from = c->reply->out->len;
	while ((status = query_next(&d->query, &doc)) == STATUS_OK) {
		const struct bson_value v = BSON_OF_DOCUMENT(doc);

		TRY(distinct_walk(d, &v, d->key));
		/* Null and nothing at all lie together in an index. */
		if (bson_find(doc, d->key, NULL))
			TRY(query_pass(&d->query));
	}
	bson_end(c->reply);
	snapshot_put(c);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
distinct_of_view(struct call *c, struct distinct *d, struct aggregate **a)
{
	enum status status;
	struct str ns, doc;

	TRY(data_ns(c, &ns));
	TRY(view_query(c, ns, a));
	data_mql(c, c->arena, mongo_aggregate_texts(*a), &d->own);
	d->mql = &d->own;
	bson_begin_array(c->reply, STR("values"));
	d->from = c->reply->out->len;
	while ((status = mongo_aggregate_next(*a, &doc)) == STATUS_OK) {
		const struct bson_value v = BSON_OF_DOCUMENT(doc);

		TRY(distinct_walk(d, &v, call_text(c, DISTINCT_KEY)));
	}
	bson_end(c->reply);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
mongo_run_distinct(struct call *c)
{
	struct call_mark mark = call_mark(c);
	struct distinct d = { .call = c };
	struct aggregate *a = NULL;
	enum status status = distinct_run(c, &d);

	query_close(&d.query);
	if (status != STATUS_OK && c->code == MONGO_NOT_ON_VIEW) {
		call_go_back(c, mark);
		status = distinct_of_view(c, &d, &a);
	}
	mongo_aggregate_free(a);
	return status;
}

#include "door/mongo/plan/query.h"

#include <assert.h>

#include "door/mongo/txn/client.h"
#include "door/mongo/txn/cluster_time.h"
#include "door/mongo/txn/txn.h"
#include "loop/step.h"

enum status
query_read_value(struct call *c, struct str from, struct str name, const struct bson_value **ret)
{
	struct bson_value *v = arena_alloc(c->arena, sizeof(*v));

	if (!v)
		return STATUS_LIMIT;
	*ret = bson_find(from, name, v) && v->type != BSON_NULL && v->type != BSON_UNDEFINED &&
			       (v->type != BSON_DOCUMENT || !bson_is_empty(bson_text(v)))
		       ? v
		       : NULL;
	return STATUS_OK;
}

void
query_choose_collation(const struct call *c, struct str given, struct query_ask *ask)
{
	ask->collation = data_choose_collation(given, STR(""));
	ask->takes_collation = !ask->collation.len;
	if (ask->takes_collation)
		ask->collation = c->collation;
}

bool
query_order(const struct query_ask *ask, struct str sort, int *ret)
{
	struct bson_element e;
	struct bson_iter i;
	int64_t n;

	*ret = 0;
	bson_iter_begin(&i, sort);
	if (!bson_iter_read(&i, &e))
		return true;
	if (!bson_to_int64(&e.value, &n) || (n != 1 && n != -1))
		return false;
	*ret = (int)n;
	if (str_eq(e.name, STR("$natural")))
		return bson_count(sort) == 1;
	/* A collation has an order of its own. */
	return str_eq(e.name, STR("_id")) && bson_count(sort) == 1 && !ask->collation.len &&
	       (!ask->hint || plan_hint_is_id(ask->hint));
}

static enum status
query_compile(struct query *q)
{
	if (q->ask.collation.len) {
		TRY(mql_collation_new(&q->mql, q->ask.collation, &q->collation));
		q->ask.texts = mql_collation_texts(q->collation);
		q->mql.texts = q->ask.texts;
	}
	if (q->ask.let.len)
		TRY(data_let(&q->mql, q->ask.let, &q->scope, &q->bound));
	q->mql.takes_where = q->ask.takes_where;
	TRY(mql_match_compile_scoped(&q->mql, q->ask.filter, q->scope, &q->match));
	q->mql.takes_where = false;
	return q->ask.sort.len ? mql_sort_by_compile(&q->mql, q->ask.sort, &q->sort) : STATUS_OK;
}

static enum status
query_ahead_begin(struct query *q)
{
	q->ahead.place = BUF_SHORT(QUERY_PLACE_BYTES);
	buf_append_str(&q->ahead.place, q->ask.place);
	TRY(mql_batch_init(&q->ahead.batch, QUERY_BYTES, arena_part(q->call->arena)));
	return buf_status(&q->ahead.place);
}

enum status
query_open(struct query *q, struct call *c, struct str ns, const struct query_ask *ask)
{
	*q = (struct query){ .call = c, .ask = *ask, .place = BUF_SHORT(QUERY_PLACE_BYTES) };
	q->arena = arena_new(QUERY_BYTES);
	if (!q->arena)
		return STATUS_NOMEM;
	arena_set_part(q->arena, arena_part(c->arena));
	data_mql(c, q->arena, ask->texts, &q->mql);
	TRY(data_mql_status(c, &q->mql, query_compile(q)));
	if (q->mql.script_count)
		TRY(query_ahead_begin(q));
	q->compiled = arena_mark(q->arena);
	buf_append_str(&q->place, ask->place);
	data_init(&q->data, c, ns, false);
	return buf_status(&q->place);
}

struct str
query_place(const struct query *q)
{
	struct str walked = plan_walk_place(&q->walk);

	if (q->ahead.batch.arena)
		return buf_str(&q->ahead.place);
	return walked.len ? walked : buf_str(&q->place);
}

/* Keeps the place, and closes the walk. */
static void
query_stop(struct query *q)
{
	struct str place = plan_walk_place(&q->walk);

	/* Before the walk is closed, whose memory it is. Without one, the query's own stays. */
	if (place.len) {
		buf_set(&q->place, place);
	}
	plan_walk_close(&q->walk);
	q->walks = false;
	arena_reset(q->arena, q->compiled);
}

/* The parts of documents that the filter and the user look at. */
static enum status
query_choose_parts(struct query *q, const struct plain_part **ret, size_t *ret_count)
{
	struct plain_part *parts;
	struct mql_paths looks;

	if (!q->ask.looks)
		return STATUS_OK;
	looks = *q->ask.looks;
	mql_match_paths(q->match, &looks);
	if (looks.all)
		return STATUS_OK;
	parts = arena_zalloc(q->arena, (looks.count + 1) * sizeof(*parts));
	if (!parts)
		return STATUS_LIMIT;
	for (size_t i = 0; i < looks.count; i++)
		parts[i].path = looks.paths[i];
	*ret = parts;
	*ret_count = looks.count;
	return STATUS_OK;
}

/*
 * In a transaction that has just begun, or was reset. STATUS_NOT_FOUND: no such collection. If it
 * has gone while the query was read, that is a failure: its reader would take a part for all of it.
 */
static enum status
query_start(struct query *q)
{
	struct plan_ask ask = {
		.match = q->match,
		.hint = q->ask.hint,
		.texts = q->ask.texts,
		.min = q->ask.min,
		.max = q->ask.max,
		.order = q->ask.order,
		.sort = q->sort,
		.most = q->ask.most,
		.keys = q->ask.keys,
		.changes = q->ask.changes,
		.cover = q->ask.cover,
		.figures = q->ask.figures,
		.place = buf_str(&q->place),
	};
	uint64_t version;

	/* The arena has only what was compiled: a new attempt plans as the first one. */
	assert(q->tx && !q->walks);
	TRY(buf_status(&q->place));
	TRY(query_choose_parts(q, &ask.parts, &ask.part_count));

	/* A cluster's engine knows the version then, where others have opened theirs with it. */
	TRY(data_open(&q->data, q->tx));
	TRY(kv_get_read_version(q->tx, &version));
	time_note(q->call, version);
	if (!q->data.is_there)
		return ask.place.len ? plan_fail_dropped(q->call) : STATUS_NOT_FOUND;
	if (q->ask.takes_collation)
		TRY(data_check_collation(&q->data));
	TRY(plan_choose(q->call, &q->data.plain, &ask, &q->mql, &q->plan));
	if (q->ask.sorted && !q->plan.sorted)
		return call_fail(q->call, MONGO_QUERY_PLAN_KILLED,
				 "query plan killed :: the index that sorts it was dropped");
	/* What is sorted in memory is read as a whole. */
	q->plan.first = q->sort && !q->plan.sorted ? 0 : q->ask.first;
	TRY(plan_walk_open(&q->walk, &q->plan, &q->data.plain, KV_SNAPSHOT, buf_str(&q->place),
			   &q->mql));
	q->walks = true;
	/* An operation counts once, however many batches and transactions it takes. */
	if (!q->counted && !q->ask.place.len && !q->ask.figures)
		plan_count_use(&q->plan, q->call, &q->data.plain);
	q->counted = true;
	q->planned = arena_mark(q->arena);
	return STATUS_OK;
}

/* In a transaction of several commands the query is read in that. */
static enum status
query_begin(struct query *q)
{
	struct call *c = q->call;

	assert(!q->tx);
	if (!c->txn) {
		TRY(kv_begin(c->mongo->config.store, KV_TX_READ_ONLY, &q->tx));
		/* It ends before its command does, and so before the part. */
		kv_tx_set_memory(q->tx, arena_part(c->arena), 0);
		return STATUS_OK;
	}
	TRY(txn_check(c));
	/* Borrowed: it is the client's transaction, which goes on when this query is closed. */
	q->tx = c->txn->open.tx;
	q->shared = true;
	q->reads = kv_reads_mark(q->tx);
	return STATUS_OK;
}

/* Reads the next document; an empty one is none. */
static enum status
query_read(struct query *q, struct str *ret)
{
	TRY(mongo_client_check(q->call->client));
	TRY(step_count(1));
	if (!q->tx)
		TRY(query_begin(q));
	if (!q->walks)
		TRY(query_start(q));
	/* The last document ends here; its reader has copied what it keeps. */
	arena_reset(q->arena, q->planned);
	TRY(plan_walk_next(&q->walk, q->arena, ret));
	q->found = true;
	return STATUS_OK;
}

/* Reads one document; STATUS_OK with `*ret_matches` false: it is none of those wanted. */
static enum status
query_step(struct query *q, struct str *ret, bool *ret_matches)
{
	TRY(query_read(q, ret));
	if (!ret->len)
		return STATUS_OK;
	return data_mql_status(
		q->call, &q->mql,
		mql_match_run_scoped(q->match, &q->mql, *ret, q->bound, ret_matches, &q->position));
}

/* After a failure: STATUS_OK if going on behind the last document can help. */
static enum status
query_again(struct query *q, enum status status)
{
	assert(status != STATUS_OK && status != STATUS_NOT_FOUND);
	/* What the client's transaction has read cannot be read again in another one. */
	if (q->shared)
		return txn_explain(q->call, status);
	if (!q->tx || q->call->code || q->tries == QUERY_TRIES)
		return status;
	query_stop(q);
	TRY(kv_on_error(q->tx, status));
	q->call->err = (struct err){ 0 };
	q->tries++;
	if (q->found) {
		/* The transaction was of use: the next one is no further attempt of it. */
		kv_tx_free(q->tx);
		q->tx = NULL;
		q->tries = 0;
		q->found = false;
	}
	return STATUS_OK;
}

enum status
query_is_sorted(struct query *q, bool *ret)
{
	*ret = true;
	/* The plan must not have changed what was answered already. */
	assert(!q->found);
	while (!q->walks) {
		enum status status = q->tx ? STATUS_OK : query_begin(q);

		if (status == STATUS_OK)
			status = query_start(q);
		/* There is no collection, and so no document. */
		if (status == STATUS_NOT_FOUND)
			return STATUS_OK;
		if (status != STATUS_OK)
			TRY(query_again(q, status));
	}
	*ret = q->plan.sorted;
	q->ask.sorted = *ret;
	/* From now on any plan will do. */
	if (!*ret) {
		q->sort = NULL;
		q->ask.first = 0;
	}
	return STATUS_OK;
}

/* ---- Documents that are read ahead ---- */

static enum status
query_row_read(void *arg, size_t *ret_bytes)
{
	struct query *q = arg;
	struct mql_batch *b = &q->ahead.batch;
	struct query_row *row = &q->ahead.rows[b->count];
	struct str doc = { 0 };

	while (!doc.len) {
		enum status status = query_read(q, &doc);

		if (status == STATUS_NOT_FOUND)
			return status;
		if (status != STATUS_OK) {
			TRY(query_again(q, status));
			doc.len = 0;
		}
	}
	*ret_bytes = doc.len;
	*row = (struct query_row){ .doc = arena_dup(b->arena, doc),
				   .place = arena_dup(b->arena, plan_walk_place(&q->walk)) };
	return row->doc.ptr && row->place.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
row_match(void *arg, struct mql *mql, size_t i)
{
	struct query *q = arg;
	struct query_row *row = &q->ahead.rows[i];
	struct arena_mark mark = arena_mark(mql->arena);
	enum status status = mql_match_run_scoped(q->match, mql, row->doc, q->bound, &row->matches,
						  &row->position);

	arena_reset(mql->arena, mark);
	return status;
}

/* Reads the next batch and evaluates it. */
static enum status
query_rows_fill(struct query *q)
{
	q->ahead.rows = mql_batch_begin(&q->ahead.batch, sizeof(*q->ahead.rows));
	if (!q->ahead.rows)
		return STATUS_LIMIT;
	mql_batch_read(&q->ahead.batch, query_row_read, q);
	TRY(q->ahead.batch.failed);
	mql_batch_run(&q->ahead.batch, &q->mql, row_match, q);
	return STATUS_OK;
}

/* The next row that matches. */
static enum status
rows_next(struct query *q, struct str *ret)
{
	struct query_ahead *a = &q->ahead;
	struct mql_batch *b = &a->batch;

	assert(b->at <= b->count);
	for (;;) {
		while (b->at < b->count) {
			const struct query_row *row = &a->rows[b->at++];

			buf_set(&a->place, row->place);
			if (!row->matches)
				continue;
			*ret = row->doc;
			q->position = row->position;
			return buf_status(&a->place);
		}
		if (b->failed != STATUS_OK)
			return data_mql_status(q->call, &q->mql, mql_batch_failure(b, &q->mql));
		if (b->ended)
			return STATUS_NOT_FOUND;
		TRY(query_rows_fill(q));
	}
}

enum status
query_next(struct query *q, struct str *ret)
{
	if (q->ahead.batch.arena) {
		enum status status = rows_next(q, ret);

		if (status == STATUS_OK && q->ask.figures)
			q->ask.figures->found++;
		return status;
	}
	for (;;) {
		bool matches = false;
		enum status status = query_step(q, ret, &matches);

		if (status == STATUS_OK && matches && q->ask.figures)
			q->ask.figures->found++;
		if (status == STATUS_NOT_FOUND || (status == STATUS_OK && matches))
			return status;
		if (status != STATUS_OK)
			TRY(query_again(q, status));
	}
}

enum status
query_pass(struct query *q)
{
	return q->walks && q->plan.distinct ? plan_walk_pass(&q->walk) : STATUS_OK;
}

struct str
query_key(const struct query *q)
{
	return q->walks ? plan_walk_key(&q->walk) : STR("");
}

int64_t
query_position(const struct query *q)
{
	return q->position;
}

const struct bson_texts *
query_texts(const struct query *q)
{
	return q->ask.texts;
}

void
query_close(struct query *q)
{
	if (!q->call)
		return;
	plan_walk_close(&q->walk);
	data_fini(&q->data);
	if (q->shared)
		kv_reads_forget(q->tx, q->reads);
	else
		kv_tx_free(q->tx);
	mql_collation_free(q->collation);
	buf_release(&q->place);
	buf_release(&q->ahead.place);
	mql_batch_fini(&q->ahead.batch);
	arena_free(q->arena);
	q->walks = false;
	q->call = NULL;
}

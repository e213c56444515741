/* explain: how a command comes by its documents, and what it reads to do so. */
#include <stdlib.h>

#include "base/clock.h"
#include "door/mongo/cmd/aggregate.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/plan/explain.h"
#include "door/mongo/plan/sorted.h"
#include "door/mongo/txn/client.h"

#define ARGS_EXPLAIN(ARG) ARG(EXPLAIN_VERBOSITY, "verbosity", ARG_STRING)
ARGS_DEFINE(args_explain, ARGS_EXPLAIN);

enum verbosity {
	VERBOSITY_PLANNER,
	VERBOSITY_STATS,
	VERBOSITY_ALL,
};

struct explaining {
	struct call *call;
	enum verbosity verbosity;
	struct str command; /* that is explained */
	struct str ns;
	struct query query;
	struct query_ask ask;
	struct plan_cover cover; /* what the command looks at */
	struct str covered[INDEX_COLUMNS];
	struct plan_figures figures;
	struct explain_tree tree;
	size_t reads; /* stages of the tree that read */
	struct str sort, projection;
	uint64_t skip;
	uint64_t limit; /* 0: none */
	bool sorts;     /* in memory */
	bool by_id_order;
	const char *counter; /* of a stage around all: what it counts; NULL: there is none */
	uint64_t returned;
	uint64_t ms;
};

/* ---- What is explained ---- */

static enum status
read_verbosity(struct call *c, enum verbosity *ret)
{
	static const char *const names[] = { "queryPlanner", "executionStats",
					     "allPlansExecution" };

	*ret = VERBOSITY_ALL;
	if (!call_has(c, EXPLAIN_VERBOSITY))
		return STATUS_OK;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!str_eq(call_text(c, EXPLAIN_VERBOSITY), str_from_cstr(names[i])))
			continue;
		*ret = (enum verbosity)i;
		return STATUS_OK;
	}
	return call_fail(c, MONGO_BAD_VALUE,
			 "Enumeration value '%.*s' for field 'explain.verbosity' is not a valid "
			 "value.",
			 STR_ARG(call_text(c, EXPLAIN_VERBOSITY)));
}

static uint64_t
member_number(struct str from, const char *name)
{
	struct bson_value v;
	int64_t n;

	if (!bson_find(from, str_from_cstr(name), &v) || !bson_to_int64(&v, &n) || n == INT64_MIN)
		return 0;
	return (uint64_t)(n < 0 ? -n : n);
}

/* What queries of all commands have. `filter` is the name of that member. */
static enum status
read_query(struct explaining *x, struct str from, const char *filter)
{
	struct query_ask *ask = &x->ask;

	ask->filter = bson_find_document(from, str_from_cstr(filter));
	ask->takes_where = true;
	ask->let = bson_find_document(x->command, STR("let"));
	query_choose_collation(x->call, bson_find_document(from, STR("collation")), ask);
	TRY(query_read_value(x->call, from, STR("hint"), &ask->hint));
	x->sort = bson_find_document(from, STR("sort"));
	if (query_order(ask, x->sort, &ask->order)) {
		x->by_id_order = ask->order && bson_find(x->sort, STR("_id"), NULL);
		return STATUS_OK;
	}
	ask->order = 0;
	ask->sort = x->sort;
	return STATUS_OK;
}

/* An update or a deletion; MongoDB explains one statement at a time. */
static enum status
read_statement(struct explaining *x, bool removes)
{
	struct call *c = x->call;
	const char *const name = removes ? "deletes" : "updates";
	const char *const members[] = { "q", removes ? "limit" : "u" };
	struct bson_value list, one;
	bool many;

	if (!bson_find(x->command, str_from_cstr(name), &list) || list.type != BSON_ARRAY ||
	    bson_count(bson_text(&list)) != 1 || !bson_find(bson_text(&list), STR("0"), &one) ||
	    one.type != BSON_DOCUMENT)
		return call_fail(c, MONGO_INVALID_LENGTH,
				 "explained write batches must be of size 1");
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (!bson_find(bson_text(&one), str_from_cstr(members[i]), NULL))
			return call_fail(c, MONGO_FIELD_MISSING,
					 "BSON field '%s.%s.%s' is missing but a required field",
					 removes ? "delete" : "update", name, members[i]);
	many = removes ? !member_number(bson_text(&one), "limit")
		       : bson_find_true(bson_text(&one), STR("multi"));
	TRY(read_query(x, bson_text(&one), "q"));
	x->ask.changes = many;
	x->limit = many ? 0 : 1;
	x->counter = removes ? "nWouldDelete" : "nMatched";
	return STATUS_OK;
}

static enum status
read_command(struct explaining *x, const char *name)
{
	struct str from = x->command;

	if (strcmp(name, "update") == 0 || strcmp(name, "delete") == 0)
		return read_statement(x, *name == 'd');
	if (strcmp(name, "findAndModify") == 0) {
		x->limit = 1;
		x->counter = bson_find_true(from, STR("remove")) ? "nWouldDelete" : "nMatched";
		return read_query(x, from, "query");
	}
	if (strcmp(name, "find") == 0) {
		x->projection = bson_find_document(from, STR("projection"));
		TRY(query_read_value(x->call, from, STR("min"), &x->ask.min));
		TRY(query_read_value(x->call, from, STR("max"), &x->ask.max));
	}
	if (strcmp(name, "count") == 0)
		x->counter = "nCounted";
	if (strcmp(name, "distinct") != 0) {
		x->skip = member_number(from, "skip");
		x->limit = member_number(from, "limit");
	}
	return read_query(x, from, strcmp(name, "find") == 0 ? "filter" : "query");
}

/* ---- Drawing ---- */

static bool
projection_is_simple(struct str projection)
{
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, projection); bson_iter_read(&i, &e);)
		if (memchr(e.name.ptr, '.', e.name.len) ||
		    (!bson_is_number(&e.value) && e.value.type != BSON_BOOL))
			return false;
	return true;
}

static enum status
draw_amount(struct explain_tree *t, const char *stage, const char *name, uint64_t n)
{
	explain_begin(t, stage);
	bson_put_int64(&t->b, str_from_cstr(name), (int64_t)n);
	return explain_end(t);
}

static enum status
draw_sort(struct explaining *x)
{
	struct explain_tree *t = &x->tree;

	explain_begin(t, "SORT");
	bson_put_document(&t->b, STR("sortPattern"), x->sort);
	bson_put_int64(&t->b, STR("memLimit"), SORTED_BYTES);
	if (x->limit)
		bson_put_int64(&t->b, STR("limitAmount"), (int64_t)(x->limit + x->skip));
	bson_put_string(&t->b, STR("type"), STR("simple"));
	return explain_end(t);
}

/* The stages around those that read, the innermost one first. */
static enum status
draw_around(struct explaining *x, const char *name)
{
	struct explain_tree *t = &x->tree;

	if (x->sorts)
		TRY(draw_sort(x));
	if (x->skip && !x->counter)
		TRY(draw_amount(t, "SKIP", "skipAmount", x->skip));
	if (!bson_is_empty(x->projection) && !x->query.plan.covered) {
		explain_begin(t, projection_is_simple(x->projection) ? "PROJECTION_SIMPLE"
								     : "PROJECTION_DEFAULT");
		bson_put_document(&t->b, STR("transformBy"), x->projection);
		TRY(explain_end(t));
	}
	if (x->limit && !x->sorts && !x->counter)
		TRY(draw_amount(t, "LIMIT", "limitAmount", x->limit));
	if (!x->counter)
		return STATUS_OK;
	explain_begin(t, strcmp(name, "count") == 0            ? "COUNT"
			 : strcmp(x->counter, "nMatched") == 0 ? "UPDATE"
							       : "DELETE");
	return explain_end(t);
}

/* Tells the planner what the command looks at of documents, for indexes that have it. */
static void
explain_cover(struct explaining *x, const char *name)
{
	struct str from = x->command;
	struct bson_value key;
	bool covers = false;

	x->cover = (struct plan_cover){ .filter = x->ask.filter, .fields = x->covered };
	if (strcmp(name, "count") == 0) {
		covers = true;
	} else if (strcmp(name, "find") == 0) {
		x->cover.keeps_order = true;
		covers = !bson_find_true(from, STR("returnKey")) &&
			 !bson_find_true(from, STR("showRecordId")) &&
			 plan_cover_projection(&x->cover, x->projection, x->sort);
	} else if (strcmp(name, "distinct") == 0 && bson_find(from, STR("key"), &key)) {
		covers = key.type == BSON_STRING;
		x->covered[0] = bson_text(&key);
		plan_cover_distinct(&x->cover, x->covered, x->ask.filter);
	}
	if (covers)
		x->ask.cover = &x->cover;
}

static enum status
explain_plan(struct explaining *x, const char *name)
{
	const struct query_ask *ask = &x->ask;
	bool sorted, fast = strcmp(name, "find") == 0 && !ask->hint && !ask->collation.len &&
			    !x->skip && bson_is_empty(x->sort) && bson_count(ask->filter) == 1;

	explain_cover(x, name);
	if (x->limit)
		x->ask.most = x->limit + x->skip;
	x->ask.figures = &x->figures;
	TRY(query_open(&x->query, x->call, x->ns, &x->ask));
	TRY(query_is_sorted(&x->query, &sorted));
	x->sorts = x->ask.sort.len && !sorted;
	if (strcmp(name, "count") == 0 && bson_is_empty(ask->filter) && !ask->hint) {
		x->counter = NULL;
		x->limit = x->skip = 0;
		explain_begin(&x->tree, "RECORD_STORE_FAST_COUNT");
		return explain_end(&x->tree);
	}
	x->tree.projection = x->projection;
	TRY(explain_query(&x->tree, &x->query, x->by_id_order, fast));
	x->reads = x->tree.count;
	return draw_around(x, name);
}

/* ---- Running ---- */

static enum status
run_query(struct explaining *x)
{
	struct sorted sorted = { 0 };
	enum status status = STATUS_OK;
	uint64_t most = x->ask.most ? x->ask.most : UINT64_MAX;
	struct str doc;

	if (x->sorts) {
		status = sorted_read(&sorted, x->call, &x->query, x->sort, most);
		sorted_fini(&sorted);
		return status;
	}
	while (status == STATUS_OK && x->figures.found < most) {
		status = query_next(&x->query, &doc);
		if (status == STATUS_OK && x->cover.distinct.ptr &&
		    bson_find(doc, x->cover.distinct, NULL))
			status = query_pass(&x->query);
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* What each stage has given to the one around it. */
static void
count_stages(struct explaining *x)
{
	struct explain_tree *t = &x->tree;
	uint64_t n = x->figures.found;

	if (t->by_id)
		x->figures.keys = x->figures.docs;
	explain_count(t, &x->figures);
	for (size_t i = x->reads; i < t->count; i++) {
		struct explain_stage *s = &t->stages[i];
		struct bson_value stage = BSON_OF_NULL;

		(void)bson_find(s->fixed, STR("stage"), &stage);
		if (str_eq(bson_text(&stage), STR("SORT")) && x->ask.most && n > x->ask.most)
			n = x->ask.most;
		else if (str_eq(bson_text(&stage), STR("SKIP")))
			n = n > x->skip ? n - x->skip : 0;
		else if (x->counter && i + 1 == t->count)
			break;
		s->returned = n;
	}
	if (x->counter && strcmp(x->counter, "nCounted") == 0)
		n = n > x->skip ? n - x->skip : 0;
	if (x->counter)
		t->stages[t->count - 1].counter = x->counter;
	t->stages[t->count - 1].counted = n;
	x->returned = x->counter ? 0 : n;
}

static enum status
explain_run(struct explaining *x)
{
	uint64_t began = clock_mono_ns();

	if (x->verbosity == VERBOSITY_PLANNER)
		return STATUS_OK;
	if (x->reads)
		TRY(run_query(x));
	x->ms = (clock_mono_ns() - began) / CLOCK_NS_PER_MS;
	count_stages(x);
	return STATUS_OK;
}

/* ---- The answer ---- */

static void
put_planner(const struct explaining *x, struct bson_builder *b)
{
	bson_begin_document(b, STR("queryPlanner"));
	bson_put_string(b, STR("namespace"), x->ns);
	bson_put_document(b, STR("parsedQuery"), x->ask.filter);
	bson_put_bool(b, STR("indexFilterSet"), false);
	bson_put_bool(b, STR("maxIndexedOrSolutionsReached"), false);
	bson_put_bool(b, STR("maxIndexedAndSolutionsReached"), false);
	bson_put_bool(b, STR("maxScansToExplodeReached"), false);
	explain_put(&x->tree, b, STR("winningPlan"), false);
	bson_begin_array(b, STR("rejectedPlans"));
	bson_end(b);
	bson_end(b);
}

static void
put_stats(const struct explaining *x, struct bson_builder *b)
{
	if (x->verbosity == VERBOSITY_PLANNER)
		return;
	bson_begin_document(b, STR("executionStats"));
	bson_put_bool(b, STR("executionSuccess"), true);
	bson_put_int64(b, STR("nReturned"), (int64_t)x->returned);
	bson_put_int64(b, STR("executionTimeMillis"), (int64_t)x->ms);
	bson_put_int64(b, STR("totalKeysExamined"), (int64_t)x->figures.keys);
	bson_put_int64(b, STR("totalDocsExamined"), (int64_t)x->figures.docs);
	explain_put(&x->tree, b, STR("executionStages"), true);
	if (x->verbosity == VERBOSITY_ALL) {
		bson_begin_array(b, STR("allPlansExecution"));
		bson_end(b);
	}
	bson_end(b);
}

static void
put_server(const struct explaining *x, struct bson_builder *b)
{
	struct str address = str_from_cstr(x->call->mongo->host), host = address;
	size_t at = address.len;

	while (at && address.ptr[at - 1] != ':')
		at--;
	if (at)
		host.len = at - 1;
	bson_begin_document(b, STR("command"));
	bson_put_elements(b, x->command);
	if (!bson_find(x->command, STR("$db"), NULL))
		bson_put_string(b, STR("$db"), x->call->db);
	bson_end(b);
	bson_begin_document(b, STR("serverInfo"));
	bson_put_string(b, STR("host"), host);
	bson_put_int32(b, STR("port"), at ? atoi(address.ptr + at) : 0);
	bson_put_string(b, STR("version"), STR(MONGO_VERSION));
	bson_put_string(b, STR("gitVersion"), STR("frond"));
	bson_end(b);
}

static enum status
explain_queries(struct explaining *x, const char *name)
{
	struct bson_builder *b = x->call->reply;

	TRY(data_ns(x->call, &x->ns));
	TRY(read_command(x, name));
	TRY(explain_plan(x, name));
	TRY(explain_run(x));
	bson_put_string(b, STR("explainVersion"), STR("1"));
	put_planner(x, b);
	put_stats(x, b);
	put_server(x, b);
	return STATUS_OK;
}

/* ---- Pipelines ---- */

static enum status
run_pipeline(struct explaining *x, struct aggregate *a, uint64_t *ret_count)
{
	uint64_t began = clock_mono_ns();
	enum status status;
	struct str doc;

	*ret_count = 0;
	if (x->verbosity == VERBOSITY_PLANNER)
		return STATUS_OK;
	if (mongo_aggregate_writes(a))
		return call_fail(x->call, MONGO_INVALID_OPTIONS,
				 "a pipeline that writes can only be explained with the verbosity "
				 "'queryPlanner'");
	while ((status = mongo_aggregate_next(a, &doc)) == STATUS_OK)
		++*ret_count;
	if (status != STATUS_NOT_FOUND)
		return status;
	x->ms = (clock_mono_ns() - began) / CLOCK_NS_PER_MS;
	if (x->tree.count)
		count_stages(x);
	return STATUS_OK;
}

static void
put_stages(const struct explaining *x, const struct aggregate *a, uint64_t count)
{
	struct bson_builder *b = x->call->reply;
	struct bson_value spec, next_spec;
	struct str name, next;

	bson_begin_array(b, STR("stages"));
	if (x->tree.count) {
		bson_begin_document(b, STR(""));
		bson_begin_document(b, STR("$cursor"));
		put_planner(x, b);
		put_stats(x, b);
		bson_end(b);
		if (x->verbosity != VERBOSITY_PLANNER)
			bson_put_int64(b, STR("nReturned"), (int64_t)x->returned);
		bson_end(b);
	}
	for (size_t i = 0; mongo_aggregate_stage(a, i, &name, &spec); i++) {
		bson_begin_document(b, STR(""));
		bson_put(b, name, &spec);
		if (x->verbosity != VERBOSITY_PLANNER &&
		    !mongo_aggregate_stage(a, i + 1, &next, &next_spec))
			bson_put_int64(b, STR("nReturned"), (int64_t)count);
		bson_end(b);
	}
	bson_end(b);
}

static enum status
explain_pipeline(struct explaining *x, struct str pipeline, struct aggregate **a)
{
	struct call *c = x->call;
	struct bson_value spec;
	struct aggregate_ask ask = { .db = c->db,
				     .disk = true,
				     .pipeline = pipeline,
				     .let = bson_find_document(x->command, STR("let")),
				     .collation = bson_find_document(x->command, STR("collation")),
				     .figures = &x->figures };
	struct query *q;
	struct str name;
	uint64_t count;
	bool sorted;

	ask.no_collection = bson_is_number(&c->first);
	if (ask.no_collection)
		c->collection = STR("$cmd.aggregate");
	else
		TRY(call_read_collection(c));
	TRY(data_ns(c, &x->ns));
	ask.ns = x->ns;
	TRY(query_read_value(c, x->command, STR("hint"), &ask.hint));
	TRY(mongo_aggregate_new(c, &ask, a));
	TRY(mongo_aggregate_check_write(*a));
	TRY(mongo_aggregate_query(*a, &q, &sorted));
	x->ask.filter = q ? q->ask.filter : BSON_EMPTY;
	if (q)
		TRY(explain_query(&x->tree, q, sorted && q->ask.order, false));
	if (mongo_aggregate_counts(*a)) {
		explain_begin(&x->tree, "RECORD_STORE_FAST_COUNT");
		TRY(explain_end(&x->tree));
	}
	x->reads = x->tree.count;
	TRY(run_pipeline(x, *a, &count));
	bson_put_string(c->reply, STR("explainVersion"), STR("1"));
	if (x->tree.count && !mongo_aggregate_stage(*a, 0, &name, &spec)) {
		put_planner(x, c->reply);
		put_stats(x, c->reply);
	} else {
		put_stages(x, *a, count);
	}
	put_server(x, c->reply);
	return STATUS_OK;
}

static void
explaining_init(struct explaining *x, struct call *c, enum verbosity verbosity)
{
	*x = (struct explaining){ .call = c,
				  .verbosity = verbosity,
				  .command = c->body,
				  .sort = BSON_EMPTY,
				  .projection = BSON_EMPTY };
	explain_init(&x->tree, c);
}

static enum status
explain_aggregate(struct call *c, enum verbosity verbosity, struct str pipeline)
{
	struct aggregate *a = NULL;
	struct explaining x;
	enum status status;

	explaining_init(&x, c, verbosity);
	status = explain_pipeline(&x, pipeline, &a);
	mongo_aggregate_free(a);
	explain_fini(&x.tree);
	return status;
}

enum status
mongo_explain_aggregate(struct call *c)
{
	struct bson_value pipeline = BSON_OF_NULL;

	(void)bson_find(c->body, STR("pipeline"), &pipeline);
	return explain_aggregate(c, VERBOSITY_PLANNER, bson_text(&pipeline));
}

static void
put_stage(struct bson_builder *b, struct str stage, struct str spec)
{
	if (bson_is_empty(spec))
		return;
	bson_begin_document(b, STR(""));
	bson_put_document(b, stage, spec);
	bson_end(b);
}

static void
put_amount(struct bson_builder *b, struct str stage, uint64_t n)
{
	if (!n)
		return;
	bson_begin_document(b, STR(""));
	bson_put_int64(b, stage, (int64_t)n);
	bson_end(b);
}

/* A query of a view: stages behind those of the view. */
static enum status
explain_view(struct call *c, enum verbosity verbosity)
{
	struct buf AUTO(buf_release) made = BUF_INIT_OF(2 * BSON_MOST_BYTES, arena_part(c->arena));
	struct str filter = bson_find_document(c->body, STR("filter"));
	struct bson_builder b;

	if (strcmp(c->command->name, "find") != 0)
		filter = bson_find_document(c->body, STR("query"));
	bson_builder_init(&b, &made);
	bson_begin_outer_array(&b);
	put_stage(&b, STR("$match"), filter);
	put_stage(&b, STR("$sort"), bson_find_document(c->body, STR("sort")));
	put_amount(&b, STR("$skip"), member_number(c->body, "skip"));
	put_amount(&b, STR("$limit"), member_number(c->body, "limit"));
	put_stage(&b, STR("$project"), bson_find_document(c->body, STR("projection")));
	bson_end(&b);
	TRY(buf_status(&made));
	return explain_aggregate(c, verbosity, buf_str(&made));
}

/* ---- explain ---- */

/* The command inside, with its own members in place of those of explain. */
static enum status
explain_inner(struct call *c, const struct command *command, enum verbosity verbosity)
{
	struct str db = c->db;
	struct bson_value pipeline;
	struct call_mark mark;
	struct explaining x;
	enum status status;
	unsigned runs = 0;

	c->command = command;
	c->body = bson_text(&c->first);
	memset(c->args, 0, sizeof(c->args));
	TRY(call_read_args(c));
	if (!str_eq(c->db, db))
		return call_fail(c, MONGO_INVALID_NAMESPACE,
				 "Mismatched $db in explain command. Expected %.*s but got %.*s",
				 STR_ARG(db), STR_ARG(c->db));
	if (command->needs && !(rights_on(&c->client->rights, c->db) & command->needs))
		return call_fail(c, MONGO_UNAUTHORIZED,
				 "not authorized on %.*s to execute command %s", STR_ARG(c->db),
				 command->name);
	if (strcmp(command->name, "aggregate") == 0 &&
	    bson_find(c->body, STR("pipeline"), &pipeline))
		return explain_aggregate(c, verbosity, bson_text(&pipeline));
	mark = call_mark(c);
	do {
		explaining_init(&x, c, verbosity);
		status = explain_queries(&x, command->name);
		query_close(&x.query);
		explain_fini(&x.tree);
	} while (call_runs_again(c, mark, &runs));
	if (status == STATUS_OK || c->code != MONGO_NOT_ON_VIEW || command->flags & COMMAND_WRITES)
		return status;
	call_go_back(c, mark);
	return explain_view(c, verbosity);
}

enum status
mongo_run_explain(struct call *c)
{
	const struct command *outer = c->command, *command;
	enum verbosity verbosity;
	struct bson_element e = { .name = STR("") };
	struct bson_iter i;
	enum status status;

	if (c->first.type != BSON_DOCUMENT)
		return call_type_mismatch(c, &c->first, "type 'object'", "explain.explain");
	TRY(read_verbosity(c, &verbosity));
	bson_iter_begin(&i, bson_text(&c->first));
	command = bson_iter_read(&i, &e) ? mongo_command_find(e.name) : NULL;
	if (!command)
		return call_fail(c, MONGO_COMMAND_NOT_FOUND,
				 "Explain failed due to unknown command: %.*s",
				 (int)(e.name.len < 100 ? e.name.len : 100), e.name.ptr);
	if (!(command->flags & COMMAND_EXPLAINED))
		return call_fail(c, MONGO_ILLEGAL_OPERATION, "Cannot explain cmd: %s",
				 command->name);
	status = explain_inner(c, command, verbosity);
	c->command = outer;
	return status;
}

/*
 * $graphLookup: from the values of an expression on, documents are looked up round by round; what
 * they connect from is what the next round looks up. Each document is found once.
 */
#include "mql/stage/accum.h"
#include "mql/field_path.h"
#include "mql/key_set.h"
#include "mql/stage/join.h"

struct graph_stage {
	struct mql_join join;
	struct mql_expr *start;
	struct str from, to, as;
	struct str depth; /* ptr NULL: none */
	int64_t most;     /* rounds; -1: any number */
	struct str restricts;
};

/* One document's search; all memory is the stage's scratch. */
struct graph {
	struct mql_stage_run *r;
	const struct graph_stage *stage;
	struct arena *arena;
	struct mql_key_set seen;   /* `_id`s of what was found */
	struct mql_key_set looked; /* values that were looked up, or will be */
	struct bson_value *values; /* of the next round */
	size_t count, cap;
	struct buf found;
	struct bson_builder out;
};

static enum status
graph_full(struct graph *g)
{
	if (arena_is_starved(g->arena))
		return STATUS_NOMEM;
	return mql_fail(&g->r->run->q, 40099,
			"$graphLookup reached maximum memory consumption (MQL_SCRATCH_BYTES, %d "
			"bytes)",
			MQL_SCRATCH_BYTES);
}

static enum status
graph_add_one(struct graph *g, const struct bson_value *v)
{
	struct bson_value *values;
	bool added;
	enum status status = mql_key_set_add(&g->looked, mql_stage_mql(g->r), g->arena, v, &added);

	if (status != STATUS_OK || !added)
		return status == STATUS_LIMIT ? graph_full(g) : status;
	values = arena_grow(g->arena, g->values, g->count, &g->cap, sizeof(*values));
	if (!values)
		return graph_full(g);
	g->values = values;
	status = mql_value_keep(g->arena, v, &values[g->count]);
	if (status != STATUS_OK)
		return status == STATUS_LIMIT ? graph_full(g) : status;
	g->count++;
	return STATUS_OK;
}

/* A value to look up, or each one of an array. */
static enum status
graph_add(struct graph *g, const struct bson_value *v)
{
	struct bson_element e;
	struct bson_iter i;

	if ((int)v->type == MQL_MISSING)
		return STATUS_OK;
	if (v->type != BSON_ARRAY)
		return graph_add_one(g, v);
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);)
		TRY(graph_add_one(g, &e.value));
	return STATUS_OK;
}

static enum status
graph_found(struct graph *g, struct str doc, int64_t round)
{
	struct mql *q = mql_stage_mql(g->r);
	const struct bson_value root = BSON_OF_DOCUMENT(doc);
	struct bson_value id = BSON_OF_NULL, from;
	enum status status;
	bool added;

	if (!bson_find(doc, STR("_id"), &id))
		id = BSON_OF_NULL;
	status = mql_key_set_add(&g->seen, q, g->arena, &id, &added);
	if (status != STATUS_OK || !added)
		return status == STATUS_LIMIT ? graph_full(g) : status;
	bson_begin_document(&g->out, STR(""));
	bson_put_elements(&g->out, doc);
	if (g->stage->depth.ptr)
		bson_put_int64(&g->out, g->stage->depth, round);
	bson_end(&g->out);
	TRY(buf_status(&g->found));
	TRY(mql_path_value(q, &root, g->stage->from, &from));
	return graph_add(g, &from);
}

static enum status
graph_filter(struct graph *g, struct str *ret)
{
	struct budget_part *part = g->r->run->options.part;
	struct buf out = BUF_INIT_OF(4 * BSON_MOST_BYTES, part);
	struct buf both = BUF_INIT_OF(4 * BSON_MOST_BYTES, part);
	struct mql *q = mql_stage_mql(g->r);
	struct bson_builder b;
	struct str values;
	bool regex = false;

	bson_builder_init(&b, &out);
	bson_begin_outer_array(&b);
	for (size_t i = 0; i < g->count; i++) {
		bson_put(&b, STR(""), &g->values[i]);
		regex |= g->values[i].type == BSON_REGEX;
		step_pause(1);
	}
	bson_end(&b);
	TRY(mql_keep(q, &out, &values));
	TRY(mql_join_filter(q, g->stage->to, values, regex, ret));
	if (!g->stage->restricts.ptr)
		return STATUS_OK;
	bson_builder_init(&b, &both);
	bson_begin(&b);
	bson_begin_array(&b, STR("$and"));
	bson_put_document(&b, STR(""), *ret);
	bson_put_document(&b, STR(""), g->stage->restricts);
	bson_end(&b);
	bson_end(&b);
	return mql_keep(q, &both, ret);
}

static enum status
graph_round(struct graph *g, int64_t round)
{
	struct mql_source *source;
	enum status status;
	struct str filter, doc;

	assert(g->count > 0);
	TRY(graph_filter(g, &filter));
	/* The filter has copied the values: those found from here on are the next round's. */
	g->values = NULL;
	g->count = g->cap = 0;
	TRY(mql_join_open(g->r, &g->stage->join, filter, g->r->bound, &source));
	while ((status = source->next(source, &doc)) == STATUS_OK) {
		status = graph_found(g, doc, round);
		if (status != STATUS_OK)
			break;
	}
	source->close(source);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
graph_search(struct graph *g, struct str doc)
{
	struct mql_env env = mql_stage_env(g->r, doc);
	struct bson_value v;

	bson_builder_init(&g->out, &g->found);
	bson_begin_outer_array(&g->out);
	TRY(mql_expr_run(g->stage->start, mql_stage_mql(g->r), &env, &v));
	TRY(graph_add(g, &v));
	for (int64_t round = 0; g->count && (g->stage->most < 0 || round <= g->stage->most);
	     round++)
		TRY(graph_round(g, round));
	bson_end(&g->out);
	return buf_status(&g->found);
}

/* Not a part of graph_next(), whose frame is on the stack while all stages before it run. */
__attribute__((noinline)) static enum status
graph_join(struct mql_stage_run *r, struct str doc, struct str *ret)
{
	struct graph g = { .r = r,
			   .stage = r->stage->more,
			   .found = BUF_INIT_OF(BSON_MOST_BYTES, r->run->options.part) };
	struct bson_value array;
	enum status status;

	mql_stage_begin(r);
	g.arena = r->scratch;
	status = graph_search(&g, doc);
	if (status == STATUS_OK) {
		array = BSON_OF_ARRAY(buf_str(&g.found));
		status = mql_set_path(mql_stage_mql(r), doc, g.stage->as, &array, ret);
	}
	buf_release(&g.found);
	return status;
}

static enum status
graph_next(struct mql_stage_run *r, struct str *ret)
{
	struct str doc;

	TRY(r->from->next(r->from, &doc));
	return graph_join(r, doc, ret);
}

static const struct mql_stage_ops graph_ops = { .next = graph_next };

static enum status
graph_most(struct mql *q, struct graph_stage *g, const struct bson_value *v)
{
	if (!bson_is_number(v))
		return mql_fail(q, 40100, "maxDepth must be numeric, found type: %s",
				bson_type_name(v->type));
	if (!bson_to_int64(v, &g->most))
		return mql_fail(q, 40102, "maxDepth could not be represented as a long long: %s",
				mql_text(q, STR(""), v));
	if (g->most < 0)
		return mql_fail(q, 40101, "maxDepth requires a nonnegative argument, found: %lld",
				(long long)g->most);
	return STATUS_OK;
}

static enum status
graph_option(struct mql_stages *c, struct graph_stage *g, struct str stage,
	     const struct bson_element *e)
{
	const struct {
		const char *name;
		struct str *path;
	} paths[] = { { "as", &g->as },
		      { "connectFromField", &g->from },
		      { "connectToField", &g->to },
		      { "depthField", &g->depth } };

	if (mql_is(e->name, "startWith"))
		return mql_expr_compile(c->q, &e->value, c->scope, &g->start);
	if (mql_is(e->name, "maxDepth"))
		return graph_most(c->q, g, &e->value);
	if (mql_is(e->name, "from"))
		return mql_join_from(c, &g->join, stage, &e->value);
	if (mql_is(e->name, "restrictSearchWithMatch")) {
		struct mql_match *checked;

		if (e->value.type != BSON_DOCUMENT)
			return mql_fail(c->q, 40185,
					"restrictSearchWithMatch must be an object, found %s",
					bson_type_name(e->value.type));
		g->restricts = bson_text(&e->value);
		return mql_match_compile(c->q, bson_text(&e->value), &checked);
	}
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (!mql_is(e->name, paths[i].name))
			continue;
		if (e->value.type != BSON_STRING)
			return mql_fail(c->q, 40103,
					"expected string as argument for %s, found: %s",
					paths[i].name, bson_type_name(e->value.type));
		*paths[i].path = bson_text(&e->value);
		return mql_field_path_check(c->q, bson_text(&e->value));
	}
	return mql_fail(c->q, 40104, "Unknown argument to $graphLookup: %.*s", STR_ARG(e->name));
}

MQL_STAGE_COMPILE(graph_lookup)
{
	struct graph_stage *g = mql_stage_alloc(c, sizeof(*g));
	struct bson_element e;
	struct bson_iter i;

	if (!g)
		return mql_full(c->q);
	if (v->type != BSON_DOCUMENT)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"the $graphLookup stage specification must be an object, but "
				"found %s",
				bson_type_name(v->type));
	g->most = -1;
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);)
		TRY(graph_option(c, g, stage, &e));
	if (!g->join.collection.len)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"missing 'from' option to $graphLookup stage specification");
	if (!g->as.ptr || !g->start || !g->from.ptr || !g->to.ptr)
		return mql_fail(c->q, 40105,
				"$graphLookup requires 'as', 'startWith', 'connectFromField', and "
				"'connectToField' to be specified.");
	return mql_stage_add(c, stage, v, &graph_ops, g);
}

/* Pipelines: compiling their stages, and running them. */
#include "mql/stage/stages.h"

#include <assert.h>

#include "base/mem.h"
#include "mql/stage/stages_int.h"

/* ---- The table ---- */

#define STAGE_ROW(name, function, flags) { name, mql_stage_##function, flags },
static const struct mql_stage_type stage_types[] = { MQL_STAGES_ALL(STAGE_ROW) };

/* What MongoDB has, and frond has not. */
static const char *const stages_absent[] = {
	"$changeStream",
	"$changeStreamSplitLargeEvent",
	"$geoNear",
	"$listClusterCatalog",
	"$listSampledQueries",
	"$listSessions",
	"$planCacheStats",
	"$queryStats",
	"$querySettings",
	"$rankFusion",
	"$scoreFusion",
	"$shardedDataDistribution",
};

/* What MongoDB has in its own service. */
static const char *const stages_search[] = {
	"$listSearchIndexes",
	"$search",
	"$searchMeta",
	"$vectorSearch",
};

const struct mql_stage_type *
mql_stage_type_of(struct str name)
{
	for (size_t i = 0; i < sizeof(stage_types) / sizeof(stage_types[0]); i++)
		if (mql_is(name, stage_types[i].name))
			return &stage_types[i];
	return NULL;
}

static enum status
fail_unknown(struct mql *q, struct str name)
{
	for (size_t i = 0; i < sizeof(stages_search) / sizeof(stages_search[0]); i++)
		if (mql_is(name, stages_search[i]))
			return mql_fail(q, MQL_NO_SEARCH,
					"%.*s is not supported: MongoDB has search indexes in "
					"Atlas only",
					STR_ARG(name));
	for (size_t i = 0; i < sizeof(stages_absent) / sizeof(stages_absent[0]); i++)
		if (mql_is(name, stages_absent[i]))
			return mql_refuse(q, name);
	return mql_fail(q, 40324, "Unrecognized pipeline stage name: '%.*s'", STR_ARG(name));
}

/* ---- Compiling ---- */

enum status
mql_stage_compile(struct mql_stages *c, struct str name, const struct bson_value *spec)
{
	const struct mql_stage_type *t = mql_stage_type_of(name);
	size_t count = c->p->count, scripts = c->q->script_count;

	if (!t)
		return fail_unknown(c->q, name);
	TRY(t->compile(c, name, spec));
	for (size_t i = count; i < c->p->count; i++)
		c->p->stages[i].calls |= c->q->script_count > scripts;
	return STATUS_OK;
}

static enum status
check_place(struct mql_stages *c, const struct mql_stage_type *t, size_t at, size_t count)
{
	if (c->update && !(t->flags & MQL_STAGE_UPDATE))
		return mql_fail(c->q, MQL_BAD_VALUE,
				"%s is not allowed to be used within an update", t->name);
	if ((t->flags & MQL_STAGE_NO_FACET) && c->facet)
		return mql_fail(c->q, 40600, "%s is not allowed to be used within a $facet stage",
				t->name);
	if ((t->flags & MQL_STAGE_LAST) && c->outer)
		return mql_fail(c->q, c->lookup ? 51047 : 31441,
				"%s is not allowed within a pipeline of another stage", t->name);
	if ((t->flags & MQL_STAGE_LAST) && at + 1 != count)
		return mql_fail(c->q, 40601, "%s can only be the final stage in the pipeline",
				t->name);
	if ((t->flags & MQL_STAGE_FIRST) && at)
		return mql_fail(c->q, 40602, "%s is only valid as the first stage in a pipeline.",
				t->name);
	return STATUS_OK;
}

/* The only member of a stage, whose name is known. */
static enum status
read_stage(struct mql *q, const struct bson_value *v, struct bson_element *ret,
	   const struct mql_stage_type **ret_type)
{
	struct bson_iter i;

	if (v->type != BSON_DOCUMENT)
		return mql_fail(q, MQL_TYPE_MISMATCH,
				"Each element of the 'pipeline' array must be an object");
	bson_iter_begin(&i, bson_text(v));
	if (!bson_iter_read(&i, ret) || bson_count(bson_text(v)) != 1)
		return mql_fail(q, 40323,
				"A pipeline stage specification object must contain exactly one "
				"field.");
	*ret_type = mql_stage_type_of(ret->name);
	return *ret_type ? STATUS_OK : fail_unknown(q, ret->name);
}

enum status
mql_pipeline_check_names(struct mql *q, struct str array)
{
	const struct mql_stage_type *ignored;
	struct bson_element e, stage;
	struct bson_iter i;

	for (bson_iter_begin(&i, array); bson_iter_read(&i, &e);) {
		TRY(step_count_bytes(e.bytes.len));
		TRY(read_stage(q, &e.value, &stage, &ignored));
	}
	return STATUS_OK;
}

static enum status
compile_stage(struct mql_stages *c, const struct bson_value *v, size_t at, size_t count)
{
	const struct mql_stage_type *t;
	struct bson_element e;

	TRY(read_stage(c->q, v, &e, &t));
	TRY(check_place(c, t, at, count));
	if (!at)
		c->p->has_source = t->flags & MQL_STAGE_FIRST;
	return mql_stage_compile(c, e.name, &e.value);
}

static enum status
compile_stages(struct mql_stages *c, struct str array)
{
	size_t count = bson_count(array), at = 0;
	struct bson_element e;
	struct bson_iter i;

	if (count > MQL_STAGES)
		return mql_fail(c->q, 7749501, "Pipeline length must be no longer than %d stages.",
				MQL_STAGES);
	if (c->nesting > MQL_PIPELINE_NESTING)
		return mql_fail(c->q, 232,
				"Maximum number of nested sub-pipelines exceeded. Limit is %d",
				MQL_PIPELINE_NESTING);
	for (bson_iter_begin(&i, array); bson_iter_read(&i, &e); at++) {
		TRY(step_count_bytes(e.bytes.len));
		TRY(compile_stage(c, &e.value, at, count));
	}
	return mql_stages_order(c);
}

enum status
mql_stage_pipeline(struct mql_stages *c, const struct bson_value *array,
		   const struct mql_scope *scope, bool facet, bool lookup,
		   struct mql_pipeline **ret)
{
	struct mql_stages inner = { .q = c->q,
				    .scope = scope,
				    .outer = c,
				    .nesting = c->nesting + 1,
				    .facet = facet || c->facet,
				    .lookup = lookup };

	if (array->type != BSON_ARRAY)
		return mql_fail(c->q, MQL_TYPE_MISMATCH, "A pipeline must be an array, but is %s",
				bson_type_name(array->type));
	inner.p = mql_stage_alloc(c, sizeof(*inner.p));
	if (!inner.p)
		return mql_full(c->q);
	TRY(compile_stages(&inner, bson_text(array)));
	*ret = inner.p;
	return STATUS_OK;
}

enum status
mql_pipeline_compile(struct mql *q, struct str array, const struct mql_pipeline_options *options,
		     struct mql_pipeline **ret)
{
	struct mql_stages c = { .q = q, .scope = options->scope, .update = options->update };

	c.p = arena_zalloc(q->arena, sizeof(*c.p));
	if (!c.p)
		return mql_full(q);
	TRY(compile_stages(&c, array));
	c.p->reads = c.reads;
	c.p->reads_count = c.reads_count;
	*ret = c.p;
	return STATUS_OK;
}

bool
mql_pipeline_stage(const struct mql_pipeline *p, size_t i, struct str *ret_name,
		   struct bson_value *ret_spec)
{
	if (i >= p->count)
		return false;
	*ret_name = p->stages[i].name;
	*ret_spec = p->stages[i].spec;
	return true;
}

bool
mql_pipeline_has_source(const struct mql_pipeline *p)
{
	return p->has_source;
}

const struct mql_write *
mql_pipeline_write(const struct mql_pipeline *p)
{
	return p->write;
}

bool
mql_pipeline_reads(const struct mql_pipeline *p, size_t i, struct str *ret_db,
		   struct str *ret_collection)
{
	if (2 * i >= p->reads_count)
		return false;
	*ret_db = p->reads[2 * i];
	*ret_collection = p->reads[2 * i + 1];
	return true;
}

void
mql_pipeline_front(const struct mql_pipeline *p, struct mql_pipeline_front *ret)
{
	*ret = p->front;
}

/* ---- Runs ---- */

enum status
mql_run_new(const struct mql_pipeline *p, const struct mql *q,
	    const struct mql_run_options *options, struct mql_source *input, struct mql_run **ret)
{
	struct mql_run *run = mem_zalloc(sizeof(*run));
	enum status status;

	if (!run) {
		if (input)
			input->close(input);
		return STATUS_NOMEM;
	}
	run->q = *q;
	run->options = *options;
	if (!run->options.stage_bytes)
		run->options.stage_bytes = MQL_STAGE_BYTES;
	status = mql_stages_open(run, p, options->skip_stages, options->let, input, &run->top);
	if (status != STATUS_OK) {
		mem_free(run);
		return status;
	}
	*ret = run;
	return STATUS_OK;
}

enum status
mql_run_next(struct mql_run *r, struct mql *q, struct str *ret)
{
	enum status status;

	/* A run outlives the command that has made it: a failure is told to the one of now. */
	assert(r->top && q->err);
	r->q.err = q->err;
	r->q.scripts = q->scripts;
	r->q.code = 0;
	status = r->top->next(r->top, ret);
	q->code = r->q.code;
	return status;
}

void
mql_run_free(struct mql_run *r)
{
	if (!r)
		return;
	if (r->top)
		r->top->close(r->top);
	mem_free(r);
}

/* ---- Updates ---- */

enum status
mql_pipeline_apply(const struct mql_pipeline *p, struct mql *q, struct str document,
		   const struct mql_bound *let, struct str *ret)
{
	/* Whoever has many documents sets q->ahead, and applies it to all of them. */
	const struct mql_run_options options = { .let = let, .one_by_one = true };
	struct buf array = mql_buf(q, BSON_MOST_BYTES + 64);
	struct mql_source *source;
	struct bson_builder b;
	struct mql_run *run;
	enum status status;
	struct str doc;

	bson_builder_init(&b, &array);
	bson_begin_outer_array(&b);
	bson_put_document(&b, STR(""), document);
	bson_end(&b);
	status = buf_status(&array);
	if (status == STATUS_OK)
		status = mql_source_of_array(buf_str(&array), &source);
	if (status == STATUS_OK)
		status = mql_run_new(p, q, &options, source, &run);
	if (status == STATUS_OK) {
		status = mql_run_next(run, q, &doc);
		if (status == STATUS_OK) {
			*ret = arena_dup(q->arena, doc);
			status = ret->ptr ? STATUS_OK : mql_full(q);
		}
		mql_run_free(run);
	}
	buf_release(&array);
	return status;
}

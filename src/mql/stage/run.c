/* What all stages are made with, and their runs: a chain of sources, one on top of the other. */
#include "base/mem.h"
#include "loop/fiber.h"
#include "loop/task.h"
#include "mql/stage/stages_int.h"

/* What a stage needs for itself, of what there is on a fiber: most for expressions and filters. */
#define STAGE_STACK_BYTES (FIBER_STACK_BYTES / 2)

enum status
mql_stage_add(struct mql_stages *c, struct str name, const struct bson_value *spec,
	      const struct mql_stage_ops *ops, const void *more)
{
	struct mql_pipeline *p = c->p;
	struct mql_stage *stages;

	assert(ops->next && name.len);
	stages = arena_grow(c->q->arena, p->stages, p->count, &p->cap, sizeof(*stages));

	if (!stages)
		return mql_full(c->q);
	p->stages = stages;
	stages[p->count++] = (struct mql_stage){
		.ops = ops, .name = name, .spec = *spec, .more = more
	};
	return STATUS_OK;
}

enum status
mql_stage_reads(struct mql_stages *c, struct str db, struct str collection)
{
	struct str *reads;

	while (c->outer)
		c = c->outer;
	for (int i = 0; i < 2; i++) {
		reads = arena_grow(c->q->arena, c->reads, c->reads_count, &c->reads_cap,
				   sizeof(*reads));
		if (!reads)
			return mql_full(c->q);
		c->reads = reads;
		reads[c->reads_count++] = i ? collection : db;
	}
	return STATUS_OK;
}

/* ---- Runs ---- */

struct arena *
mql_run_arena(struct mql_run *run, size_t bytes)
{
	struct arena *a = arena_new(bytes);

	if (a)
		arena_set_part(a, run->options.part);
	return a;
}

/*
 * Each stage calls the one before it, and a stage that has pipelines of its own also calls their
 * stages. The depth of these calls does not depend on the documents, so one check is enough.
 */
static enum status
stage_check_stack(struct mql_stage_run *r)
{
	if (task_stack_left() < STAGE_STACK_BYTES)
		return mql_fail(&r->run->q, MQL_MEMORY_LIMIT,
				"The stages of the pipeline, with those of the pipelines inside of "
				"them, are too many: %.*s has no stack left",
				STR_ARG(r->stage->name));
	r->has_stack = true;
	return STATUS_OK;
}

static enum status
stage_next(struct mql_source *s, struct str *ret)
{
	struct mql_stage_run *r = (struct mql_stage_run *)s;

	if (!r->has_stack)
		TRY(stage_check_stack(r));
	return r->stage->ops->next(r, ret);
}

static void
stage_close(struct mql_source *s)
{
	struct mql_stage_run *r = (struct mql_stage_run *)s;

	/* The stage first: what it keeps may point into what the sources in front of it have. */
	if (r->stage->ops->fini)
		r->stage->ops->fini(r);
	if (r->from)
		r->from->close(r->from);
	arena_free(r->scratch);
	mem_free(r->state);
	mem_free(r);
}

/* One stage on top of a source. On failure the source is the caller's as before. */
static enum status
stage_open(struct mql_run *run, const struct mql_stage *stage, const struct mql_bound *bound,
	   struct mql_source *from, struct mql_source **ret)
{
	struct mql_stage_run *r = mem_zalloc(sizeof(*r));
	enum status status;

	if (!r)
		return STATUS_NOMEM;
	r->source = (struct mql_source){ stage_next, stage_close };
	r->stage = stage;
	r->run = run;
	r->bound = bound;
	r->scratch = mql_run_arena(run, MQL_SCRATCH_BYTES);
	r->state = mem_zalloc(stage->ops->state_bytes + 1);
	if (!r->scratch || !r->state) {
		arena_free(r->scratch);
		mem_free(r->state);
		mem_free(r);
		return STATUS_NOMEM;
	}
	r->from = from;
	if (!stage->calls || run->options.one_by_one ||
	    (stage->ops != &mql_match_ops && stage->ops != &mql_project_ops &&
	     stage->ops != &mql_replace_ops && stage->ops != &mql_redact_ops)) {
		*ret = &r->source;
		return STATUS_OK;
	}
	status = mql_stage_ahead(r, ret);
	if (status != STATUS_OK) {
		/* So that closing the stage leaves the source to the caller. */
		r->from = NULL;
		stage_close(&r->source);
	}
	return status;
}

enum status
mql_stages_open(struct mql_run *run, const struct mql_pipeline *p, size_t skip,
		const struct mql_bound *bound, struct mql_source *from, struct mql_source **ret)
{
	enum status status = STATUS_OK;

	assert(skip <= p->count);
	/* `from` is the chain so far, and owns all that is in front of it. */
	for (size_t i = skip; i < p->count && status == STATUS_OK; i++)
		status = stage_open(run, &p->stages[i], bound, from, &from);
	if (status != STATUS_OK) {
		if (from)
			from->close(from);
		return status;
	}
	*ret = from;
	return STATUS_OK;
}

enum status
mql_stage_no_disk(struct mql_stage_run *r, const struct arena *full)
{
	if (mql_stage_is_starved(r, full))
		return STATUS_NOMEM;
	return mql_fail(&r->run->q, MQL_NO_DISK_USE,
			"Exceeded memory limit for %.*s (MQL_STAGE_BYTES, %zu bytes), but didn't "
			"allow external %s. Pass allowDiskUse:true to opt in.",
			STR_ARG(r->stage->name), r->run->options.stage_bytes,
			mql_is(r->stage->name, "$sort") ? "sort" : "spilling");
}

/* ---- Sources of what is there ---- */

struct array_source {
	struct mql_source source;
	struct bson_iter iter;
};

static enum status
array_next(struct mql_source *s, struct str *ret)
{
	struct array_source *a = (struct array_source *)s;
	struct bson_element e;

	if (!bson_iter_read(&a->iter, &e))
		return STATUS_NOT_FOUND;
	*ret = bson_text(&e.value);
	return STATUS_OK;
}

static void
array_close(struct mql_source *s)
{
	mem_free(s);
}

enum status
mql_source_of_array(struct str array, struct mql_source **ret)
{
	struct array_source *a = mem_zalloc(sizeof(*a));

	if (!a)
		return STATUS_NOMEM;
	a->source = (struct mql_source){ array_next, array_close };
	bson_iter_begin(&a->iter, array);
	*ret = &a->source;
	return STATUS_OK;
}

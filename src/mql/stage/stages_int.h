/* Compiled stages, and their runs. */
#ifndef FROND_MQL_STAGES_INT_H
#define FROND_MQL_STAGES_INT_H

#include "mql/mql_int.h"
#include "mql/stage/project.h"
#include "mql/sort.h"
#include "mql/stage/stages.h"

struct mql_stage;
struct mql_stage_run;
struct mql_stages;

enum {
	MQL_DENSIFY_DOCUMENTS = 500000, /* that one $densify makes */
};

enum mql_stage_flags {
	MQL_STAGE_FIRST = 1 << 0,    /* it brings documents by itself */
	MQL_STAGE_LAST = 1 << 1,     /* it writes */
	MQL_STAGE_UPDATE = 1 << 2,   /* also in updates */
	MQL_STAGE_NO_FACET = 1 << 3, /* not inside $facet */
};

/* What a run of a stage does. */
struct mql_stage_ops {
	enum status (*next)(struct mql_stage_run *r, struct str *ret);
	void (*fini)(struct mql_stage_run *r); /* may be NULL */
	size_t state_bytes;
};

struct mql_stage {
	const struct mql_stage_ops *ops;
	struct str name;
	struct bson_value spec;
	const void *more; /* of the stage */
	bool calls;       /* its expressions call functions in JavaScript */
};

struct mql_pipeline {
	struct mql_stage *stages;
	size_t count;
	size_t cap;
	const struct mql_write *write;
	struct mql_stages *shared; /* only while it is compiled */
	struct str *reads;         /* names of databases and collections in turn */
	size_t reads_count;
	struct mql_pipeline_front front;
	bool has_source;
};

/* The compilation of a pipeline. */
struct mql_stages {
	struct mql *q;
	struct mql_pipeline *p;
	const struct mql_scope *scope;
	struct mql_stages *outer; /* of a pipeline around it; NULL: none */
	size_t nesting;
	bool facet;
	bool update;
	bool lookup;
	struct str *reads; /* of the outermost one */
	size_t reads_count;
	size_t reads_cap;
};

/* A row of the table of stages. */
struct mql_stage_type {
	const char *name;
	enum status (*compile)(struct mql_stages *c, struct str name, const struct bson_value *v);
	unsigned flags;
};

const struct mql_stage_type *mql_stage_type_of(struct str name);

/* Adds a stage. */
MUST_USE enum status mql_stage_add(struct mql_stages *c, struct str name,
				   const struct bson_value *spec, const struct mql_stage_ops *ops,
				   const void *more);
/* A stage by its name; for stages that are written as others. */
MUST_USE enum status mql_stage_compile(struct mql_stages *c, struct str name,
				       const struct bson_value *spec);
/* A pipeline inside a stage. */
MUST_USE enum status mql_stage_pipeline(struct mql_stages *c, const struct bson_value *array,
					const struct mql_scope *scope, bool facet, bool lookup,
					struct mql_pipeline **ret);
MUST_USE enum status mql_stage_reads(struct mql_stages *c, struct str db, struct str collection);

/* Memory of the compilation, cleared; NULL: mql_full(). */
static inline void *
mql_stage_alloc(struct mql_stages *c, size_t n)
{
	return arena_zalloc(c->q->arena, n);
}

/* ---- Runs ---- */

struct mql_run {
	struct mql q; /* its arena is that of whoever works */
	struct mql_run_options options;
	struct mql_source *top;
};

struct mql_stage_run {
	struct mql_source source;
	const struct mql_stage *stage;
	struct mql_run *run;
	const struct mql_bound *bound;
	struct mql_source *from; /* NULL: none */
	struct arena *scratch;   /* of one document */
	void *state;
	bool has_stack; /* it was looked whether its first call has enough of it */
};

/* The stages of a pipeline on top of a source, which is closed if this fails. */
MUST_USE enum status mql_stages_open(struct mql_run *run, const struct mql_pipeline *p, size_t skip,
				     const struct mql_bound *bound, struct mql_source *from,
				     struct mql_source **ret);

/* An arena whose memory counts as the run's. NULL: no memory. */
struct arena *mql_run_arena(struct mql_run *run, size_t bytes);

/* Begins work on a document in a stage's scratch memory, which is cleared. */
static inline struct mql *
mql_stage_begin(struct mql_stage_run *r)
{
	arena_clear(r->scratch);
	r->run->q.arena = r->scratch;
	return &r->run->q;
}

/* Goes on with what is there, after other stages have worked. */
static inline struct mql *
mql_stage_mql(struct mql_stage_run *r)
{
	r->run->q.arena = r->scratch;
	return &r->run->q;
}

static inline struct mql_env
mql_stage_env(const struct mql_stage_run *r, struct str doc)
{
	return (struct mql_env){ .root = doc, .current = MQL_NO_VALUE, .bound = r->bound };
}

/*
 * True if an allocation of this stage has failed because the system had no memory, and not because
 * the stage has reached its own limit. Looks at `keep`, the arena with the stage's documents, and
 * at the arena in which the stage computes.
 */
static inline bool
mql_stage_is_starved(const struct mql_stage_run *r, const struct arena *keep)
{
	return arena_is_starved(keep) || arena_is_starved(r->scratch);
}

/*
 * Call this when an allocation in `full`, an arena of the stage, has failed, and the stage cannot
 * put documents on disk. Always fails: with STATUS_NOMEM if the system had no memory, otherwise
 * with MongoDB's error for a stage that reaches its memory limit and may not use the disk.
 */
MUST_USE enum status mql_stage_no_disk(struct mql_stage_run *r, const struct arena *full);

/* A document with `v` at a path of documents, or without what is there if `v` is NULL. */
MUST_USE enum status mql_set_path(struct mql *q, struct str doc, struct str path,
				  const struct bson_value *v, struct str *ret);

/*
 * Stages that make of each document {k: {v: value of `by`}, d: the document}, and sort these by the
 * value as a whole, then by what `sort` says of the document. A value that is missing is null;
 * `by` NULL: all have null.
 */
MUST_USE enum status mql_stage_ordered(struct mql_stages *c, const struct bson_value *by,
				       struct str sort);

/* An expression for `by`: the values at some paths together. */
MUST_USE enum status mql_stage_paths(struct mql_stages *c, const struct str *paths, size_t count,
				     struct bson_value *ret);

/* The two parts of such a document. */
void mql_ordered_parts(struct str ordered, struct str *ret_key, struct str *ret_doc);

/* A field of $group and its kin: {name: {$sum: "$a"}}. */
struct mql_accumulator;
MUST_USE enum status mql_stage_accumulator(struct mql_stages *c, const struct bson_element *e,
					   struct mql_accumulator **ret);

/*
 * A source of what a stage gives that looks at one document at a time: its documents are read ahead
 * (ahead.c). Takes the stage on success.
 */
MUST_USE enum status mql_stage_ahead(struct mql_stage_run *stage, struct mql_source **ret);

/* ---- All stages ---- */

/* Each by its name, with what compiles it, mql_stage_…(), and its flags. */
/* clang-format off */
#define MQL_STAGES_ALL(STAGE)                                                    \
	STAGE("$addFields", set, MQL_STAGE_UPDATE)                               \
	STAGE("$bucket", bucket, 0)                                              \
	STAGE("$bucketAuto", bucket_auto, 0)                                     \
	STAGE("$collStats", stats, MQL_STAGE_FIRST | MQL_STAGE_NO_FACET)         \
	STAGE("$count", count, 0)                                                \
	STAGE("$currentOp", stats, MQL_STAGE_FIRST | MQL_STAGE_NO_FACET)         \
	STAGE("$densify", densify, 0)                                            \
	STAGE("$documents", documents, MQL_STAGE_FIRST | MQL_STAGE_NO_FACET)     \
	STAGE("$facet", facet, MQL_STAGE_NO_FACET)                               \
	STAGE("$fill", fill, 0)                                                  \
	STAGE("$graphLookup", graph_lookup, 0)                                   \
	STAGE("$group", group, 0)                                                \
	STAGE("$indexStats", stats, MQL_STAGE_FIRST | MQL_STAGE_NO_FACET)        \
	STAGE("$limit", limit, 0)                                                \
	STAGE("$listLocalSessions", stats, MQL_STAGE_FIRST | MQL_STAGE_NO_FACET) \
	STAGE("$lookup", lookup, 0)                                              \
	STAGE("$match", match, 0)                                                \
	STAGE("$merge", merge, MQL_STAGE_LAST | MQL_STAGE_NO_FACET)              \
	STAGE("$out", out, MQL_STAGE_LAST | MQL_STAGE_NO_FACET)                  \
	STAGE("$project", project, MQL_STAGE_UPDATE)                             \
	STAGE("$redact", redact, 0)                                              \
	STAGE("$replaceRoot", replace_root, MQL_STAGE_UPDATE)                    \
	STAGE("$replaceWith", replace_with, MQL_STAGE_UPDATE)                    \
	STAGE("$sample", sample, 0)                                              \
	STAGE("$set", set, MQL_STAGE_UPDATE)                                     \
	STAGE("$setWindowFields", window, 0)                                     \
	STAGE("$skip", skip, 0)                                                  \
	STAGE("$sort", sort, 0)                                                  \
	STAGE("$sortByCount", sort_by_count, 0)                                  \
	STAGE("$unionWith", union_with, 0)                                       \
	STAGE("$unset", unset, MQL_STAGE_UPDATE)                                 \
	STAGE("$unwind", unwind, 0)
/* clang-format on */

#define MQL_STAGE_COMPILE(function)                                                                \
	enum status mql_stage_##function(struct mql_stages *c, struct str stage,                   \
					 const struct bson_value *v)
#define MQL_STAGE_DECLARE(name, function, flags) MQL_STAGE_COMPILE(function);
MQL_STAGES_ALL(MQL_STAGE_DECLARE)

extern const struct mql_stage_ops mql_match_ops, mql_project_ops, mql_limit_ops, mql_skip_ops,
	mql_sort_ops, mql_unwind_ops, mql_replace_ops, mql_redact_ops;

/* $match, $limit and $sort, for the optimiser. */
MUST_USE enum status mql_match_stage_of(struct mql_stages *c, struct str filter,
					struct mql_stage *ret);
int64_t mql_stage_number(const struct mql_stage *s);
const struct mql_projection *mql_stage_projection(const struct mql_stage *s);
struct str mql_unwind_path(const struct mql_stage *s, struct str *ret_index);
void mql_sort_stage_limit(struct mql_stage *s, int64_t limit);

/* order.c: moves stages where they cost less, and tells what a source can do. */
MUST_USE enum status mql_stages_order(struct mql_stages *c);

#endif

/*
 * Pipelines of aggregation: documents come from a source, are pulled through stages one by one, and
 * come out of the run.
 *
 * A pipeline is compiled once, and never changes. What is outside of it, other collections and all
 * writing, comes by the callbacks of a struct mql_store.
 */
#ifndef FROND_MQL_STAGES_H
#define FROND_MQL_STAGES_H

#include "mql/expr/expr.h"
#include "mql/match/match.h"

struct budget_part;

enum {
	MQL_STAGES = 1000,            /* of a pipeline */
	MQL_PIPELINE_NESTING = 20,    /* pipelines inside each other */
	MQL_STAGE_BYTES = 32 << 20,   /* that a stage keeps before it uses the disk */
	MQL_SCRATCH_BYTES = 96 << 20, /* of one document and what is made of it */
	MQL_SORT_NAME_BYTES = 2048,   /* of a path that $setWindowFields and $fill sort by */
	MQL_SPILL_BYTES = 1 << 20,    /* that are written to a file, or read from it, at once */
};

/* Failures of a stage's memory. */
enum {
	MQL_NO_DISK_USE = 292,
	MQL_MEMORY_LIMIT = 146,
};

/* Where documents come from. A source runs its own transactions, page by page. */
struct mql_source {
	/* The next document, valid until the next call; STATUS_NOT_FOUND at the end. */
	enum status (*next)(struct mql_source *s, struct str *ret);
	void (*close)(struct mql_source *s);
};

/* A source of the documents of an array, which has to live as long. */
MUST_USE enum status mql_source_of_array(struct str array, struct mql_source **ret);

struct mql_pipeline;

/* What $merge does with a document whose like is there. */
enum mql_merge_mode {
	MQL_MERGE_REPLACE,
	MQL_MERGE_KEEP,
	MQL_MERGE_MERGE,
	MQL_MERGE_FAIL,
	MQL_MERGE_PIPELINE,
	MQL_MERGE_INSERT, /* one that is new */
	MQL_MERGE_DISCARD,
};

/* $out and $merge. */
struct mql_write {
	bool replaces; /* $out: the collection becomes what the pipeline gives, at once */
	struct str db; /* empty: that of the command */
	struct str collection;
	const struct str *on; /* names that tell documents apart; none: `_id` */
	size_t on_count;
	enum mql_merge_mode matched;
	enum mql_merge_mode not_matched;
	const struct mql_pipeline *pipeline; /* of MQL_MERGE_PIPELINE */
	const struct mql_expr *const *let;   /* the values of its variables */
	size_t let_count;
};

/* What a pipeline asks of its surroundings. All may be called between any two documents. */
struct mql_store {
	/*
	 * The documents of a collection that match the filter. An empty `db` is that of the
	 * command. `filter` is a document that lives as long as the source.
	 */
	enum status (*open)(const struct mql_store *s, struct mql *q, struct str db,
			    struct str collection, struct str filter, struct mql_source **ret);
	/* Writes all documents of the source. */
	enum status (*write)(const struct mql_store *s, struct mql *q, const struct mql_write *w,
			     struct mql_source *from);
	/* $collStats, $indexStats, $currentOp, $listLocalSessions: `spec` is the stage's. */
	enum status (*stats)(const struct mql_store *s, struct mql *q, struct str stage,
			     struct str spec, struct mql_source **ret);
};

/* ---- Compiling ---- */

struct mql_pipeline_options {
	const struct mql_scope *scope;
	bool update; /* of an update: only stages that change a document */
};

/* Fails, as compiling does, unless each element is one stage whose name is known. */
MUST_USE enum status mql_pipeline_check_names(struct mql *q, struct str array);

MUST_USE enum status mql_pipeline_compile(struct mql *q, struct str array,
					  const struct mql_pipeline_options *options,
					  struct mql_pipeline **ret);

/*
 * What a source can do in place of the first stages: find by a filter, in an order, up to a limit.
 * `stages` of them are then left out of a run.
 */
struct mql_pipeline_front {
	struct str filter; /* empty document: all */
	size_t filter_stages;
	struct str sort; /* ptr NULL: none */
	int64_t limit;   /* 0: none; holds for what is sorted */
};

void mql_pipeline_front(const struct mql_pipeline *p, struct mql_pipeline_front *ret);

/* A stage, in the order in which they run; false behind the last one. */
bool mql_pipeline_stage(const struct mql_pipeline *p, size_t i, struct str *ret_name,
			struct bson_value *ret_spec);
/*
 * The members of documents that a $group at place `i` looks at, each once or more, at most `most`.
 * False: it may look at all of a document, or another stage is there.
 */
bool mql_pipeline_needs(const struct mql_pipeline *p, size_t i, struct str *ret, size_t most,
			size_t *ret_count);
/* True if the first stage brings documents by itself, as $documents does. */
bool mql_pipeline_has_source(const struct mql_pipeline *p);
/* $out or $merge at the end; NULL: none. */
const struct mql_write *mql_pipeline_write(const struct mql_pipeline *p);
/* Names of all collections that it reads beside its own, for rights: false at the end. */
bool mql_pipeline_reads(const struct mql_pipeline *p, size_t i, struct str *ret_db,
			struct str *ret_collection);

/* ---- Running ---- */

struct mql_run;

struct mql_run_options {
	const struct mql_store *store;
	const struct mql_bound *let;
	struct budget_part *part; /* counts the memory of stages; may be NULL */
	bool disk;                /* stages may use files */
	bool one_by_one;          /* the input is read no further than results are asked for */
	const char *directory;    /* for these */
	size_t skip_stages;       /* that the source has done */
	size_t stage_bytes;       /* 0: MQL_STAGE_BYTES */
};

/*
 * The input is closed with the run, or when this fails; NULL where the pipeline brings documents by
 * itself. `q` is copied, its arena is not used.
 */
MUST_USE enum status mql_run_new(const struct mql_pipeline *p, const struct mql *q,
				 const struct mql_run_options *options, struct mql_source *input,
				 struct mql_run **ret);

/* The next document, valid until the next call. STATUS_NOT_FOUND at the end; `q` has failures. */
MUST_USE enum status mql_run_next(struct mql_run *r, struct mql *q, struct str *ret);
void mql_run_free(struct mql_run *r);

/*
 * What $merge writes where `old` is there and `doc` has come, in the arena of `q` or one of the
 * two. Fails where it may not be there.
 */
MUST_USE enum status mql_write_merge(const struct mql_write *w, struct mql *q, struct str old,
				     struct str doc, struct str *ret);

/* One document through a pipeline of an update; the result lies in the arena of `q`. */
MUST_USE enum status mql_pipeline_apply(const struct mql_pipeline *p, struct mql *q,
					struct str document, const struct mql_bound *let,
					struct str *ret);

#endif

/*
 * What the files of one run share. Everything here belongs to the replicator's thread. A struct
 * repl_run lives on the stack of the fiber that called run_replication(), which outlives the run's
 * other fibers.
 */
#ifndef FROND_REPLICATOR_RUN_INT_H
#define FROND_REPLICATOR_RUN_INT_H

#include "base/budget.h"
#include "doc/json_value.h"
#include "replicator/rows.h"
#include "replicator/run.h"

/* A changed document, with the revisions that its row of _changes names. */
struct change {
	struct str id;
	struct str *revs;
	size_t revs_count;
};

/* A page of changes on its way to the target. Everything in it lives in its arena. */
struct copy_batch {
	struct copy_batch *next;
	struct arena *arena;
	struct change *changes;
	size_t count;
	size_t cap;
	uint64_t revs;
	struct str seq; /* JSON: where the page ends, also if a filter left no change on it */
	bool has_pending;
	uint64_t pending;
	bool taken; /* a worker has it */
	bool done;  /* everything in it is copied */
};

struct repl_run {
	const struct run_config *config;
	const struct repl_spec *spec;
	struct net_scope *scope;
	/*
	 * All memory that the run takes by what its ends send: arenas, buffers, calls. The budget
	 * is the run's own, and its limit is job_memory.
	 */
	struct budget budget;
	struct budget_part part;
	struct peer source;
	struct peer target;

	struct copy_batch *first; /* the oldest batch that is under way */
	struct copy_batch *last;
	unsigned batches;
	unsigned batches_max;
	bool read_all;           /* the reader has come to the end */
	struct str filter_query; /* what a filter adds to the query of _changes: "&filter=…" */
	struct str filter_body;  /* and the body of its POST; ptr NULL: it is a GET */
	unsigned fibers;         /* besides the one that called run_replication() */

	bool since_refused; /* the latest request for changes was answered 400 */
	struct str through; /* JSON, owned: everything up to it is copied */
	struct str committed;
	bool changed;         /* the run has got through a batch with changes since it began */
	uint64_t recorded_ms; /* when it has left its newest checkpoint; 0: it has left none */

	enum status failed; /* the first failure, with which the scope was cancelled */
	struct err err;

	struct arena *arena; /* of the checkpoints found at the beginning */
	struct checkpoint_found found;
	struct checkpoint_session session;
	struct str log_id;         /* of the checkpoints: _local/ID */
	struct str old_log;        /* the body of the source's checkpoint, as it was found */
	struct str source_log_rev; /* the _rev of that checkpoint: JSON, owned; ptr NULL: none */
	struct str target_log_rev;
	struct str source_start; /* the database's instance_start_time: JSON, owned */
	struct str target_start;
};

/* A document of a batch and the revisions of it that the target does not have. */
struct missing {
	struct str id;
	struct str *revs;
	size_t revs_count;
	struct str *ancestors;
	size_t ancestors_count;
	bool *brought; /* by revision: _bulk_get has brought it, for _bulk_docs */
	size_t rows;   /* of _bulk_get's answer that were about this document */
};

/* What a worker has gathered for the target. */
struct copier {
	struct repl_run *run;
	struct buf docs; /* the elements of the next _bulk_docs, with commas between */
	size_t count;
	struct arena *arena; /* for one document at a time: reset behind each */
	struct buf answer;
};

/* ---- Memory (run_progress.c) ---- */

/* An arena whose memory counts towards the run's limit. NULL when memory is short. */
struct arena *run_arena_new(struct repl_run *r, size_t limit_bytes);

/* ---- Copying (copy.c) ---- */

/* Copies to the target what it does not have of a batch. */
MUST_USE enum status copy_batch_copy(struct repl_run *r, struct copy_batch *b, struct err *err);

/* ---- Gathering documents for the target (copier.c) ---- */

/*
 * Adds a document to those that go with the next _bulk_docs. STATUS_INVALID if its _id is not `id`.
 */
MUST_USE enum status copier_add(struct copier *c, struct str id, struct str doc, struct err *err);
MUST_USE enum status copier_flush(struct copier *c, struct err *err);

/* ---- Progress (run_progress.c) ---- */

void run_add_counts(struct repl_run *r, struct checkpoint_counts more);

/*
 * Goes on counting where the last session ended that both ends remember, as CouchDB does: figures
 * of a checkpoint are of all runs together. A job that has counted more already stays with that.
 */
void run_go_on_counting(struct repl_run *r, const struct checkpoint_counts *before);

/* ---- One document by itself, with its attachments (copy_doc.c) ---- */

/* Copies the missing revisions of one document; attachments go along. */
MUST_USE enum status missing_copy_alone(struct copier *c, struct missing *m, struct err *err);

/* *ret: the document has attachments. */
MUST_USE enum status doc_has_attachments(struct str doc, struct arena *arena, bool *ret,
					 struct err *err);

/* ---- Beginning and checkpoints (run_log.c) ---- */

/* Opens the source and reads the function of the filter, if it is one. */
MUST_USE enum status run_find_filter(struct repl_run *r, struct err *err);

/* Opens both ends, creates the target if the spec says so, and reads the checkpoints. */
MUST_USE enum status run_open_ends(struct repl_run *r, struct err *err);

/* Writes a checkpoint if there is something new to say. */
MUST_USE enum status run_checkpoint(struct repl_run *r, struct err *err);

/* Replaces an owned text by a copy. False when out of memory: then the old text stays. */
bool run_keep_text(struct str *kept, struct str text);
void run_publish(struct repl_run *r, char **shown, struct str text);

#endif

/* What the files of a run share. */
#ifndef FROND_REPLICATOR_RUN_INT_H
#define FROND_REPLICATOR_RUN_INT_H

#include "doc/json_value.h"
#include "replicator/rows.h"
#include "replicator/run.h"

struct change {
	struct str id;
	struct str *revs;
	size_t revs_count;
};

struct batch {
	struct batch *next;
	struct arena *arena;
	struct change *changes;
	size_t count;
	size_t cap;
	uint64_t revs;
	struct str seq; /* JSON: of its last change, or of what a filter passed over */
	bool has_pending;
	uint64_t pending;
	bool taken;
	bool done;
};

struct run {
	const struct run_config *config;
	const struct repl_spec *spec;
	struct net_scope *scope;
	struct peer source;
	struct peer target;

	struct batch *first; /* oldest that is under way */
	struct batch *last;
	unsigned batches;
	unsigned batches_max;
	bool read_all;
	struct str filter_query; /* what a filter adds to the query of _changes: "&filter=…" */
	struct str filter_body;  /* and the body of its POST; ptr NULL: it is a GET */
	unsigned fibers;         /* besides the first */

	struct str through; /* JSON, owned: everything up to it is copied */
	struct str committed;
	bool changed; /* something was read: `through` is more than where it began */

	enum status failed; /* the first failure; the scope is cancelled with it */
	struct err err;

	struct arena *arena; /* of the checkpoints that were found */
	struct checkpoint_found found;
	struct checkpoint_session session;
	struct str old_log;        /* the source's checkpoint's body, as it was found */
	struct str source_log_rev; /* JSON string of _rev, owned; ptr NULL: none yet */
	struct str target_log_rev;
	struct str source_start; /* instance_start_time, owned */
	struct str target_start;
};

/* A document of a batch with what the target does not have of it. */
struct missing {
	struct str id;
	struct str *revs;
	size_t revs_count;
	struct str *ancestors;
	size_t ancestors_count;
	bool copied;
	bool alone; /* it has attachments, or _bulk_get did not bring it */
};

/* What a worker gathers for the target. */
struct copier {
	struct run *run;
	struct buf docs; /* the elements of _bulk_docs' list */
	size_t count;
	struct arena *arena; /* for one document at a time */
	struct buf answer;
};

/* ---- Copying (copy.c) ---- */

/* Copies what the target does not have of a batch. */
MUST_USE enum status batch_copy(struct run *r, struct batch *b, struct err *err);

/* Adds a document to those that go with the next _bulk_docs. */
MUST_USE enum status copier_add(struct copier *c, struct str doc, struct err *err);
MUST_USE enum status copier_flush(struct copier *c, struct err *err);

void run_count(struct run *r, struct checkpoint_counts more);

/* ---- One document by itself, with its attachments (copy_doc.c) ---- */

MUST_USE enum status missing_copy_alone(struct copier *c, struct missing *m, struct err *err);

/* Whether a document's text has attachments. */
MUST_USE enum status doc_has_attachments(struct str doc, struct arena *arena, bool *ret,
					 struct err *err);

/* ---- Beginning and checkpoints (run_log.c) ---- */

/* Asks both ends who they are, makes the target if it should, and finds where to go on. */
MUST_USE enum status run_open_ends(struct run *r, struct err *err);

/* Writes a checkpoint if there is something new to say. */
MUST_USE enum status run_checkpoint(struct run *r, struct err *err);

/* Replaces an owned text. False when out of memory; it is as before then. */
bool run_keep(struct str *kept, struct str text);
void run_show(struct run *r, char **shown, struct str text);

/* Told of one row of an answer, whose text goes with the next piece. */
typedef enum status run_take_row(void *arg, struct str row, struct err *err);

/*
 * Reads a long answer row by row, until a row is refused; returns that refusal. `*ret_rest` is the
 * object without its rows, and lies in `rows`, which the caller makes and releases.
 * STATUS_JSON_SYNTAX, unexplained: the answer is cut off.
 */
MUST_USE enum status run_read_rows(struct rows *rows, struct net_call *call, run_take_row *take,
				   void *arg, struct str *ret_rest, struct err *err);

#endif

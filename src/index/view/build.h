/*
 * Building a group: its record, batches of mapped documents, and the steps that write them.
 *
 * A step is one transaction. It checks that the group is still at the place for which the batch was
 * made. If two builders are at the same place, the slower one finds the group further on
 * (STATUS_BUSY) and looks again. No function is called in a step's transaction. Maps are called
 * when a batch is made. Reduces need the stored sums, so a step asks a memo for their answers. If
 * one is missing, the step notes the question, goes on to the end of that level of sums, and ends
 * without a commit (STATUS_BUSY). The functions are called then, and the next attempt finds the
 * answers in the memo. An answer in the memo is used only for exactly the same input.
 *
 * Threading: a build belongs to one thread or fiber; a batch may be made on another one.
 */
#ifndef FROND_INDEX_VIEW_BUILD_H
#define FROND_INDEX_VIEW_BUILD_H

#include "index/view/documents.h"
#include "index/view/record.h"
#include "index/view/reduce.h"
#include "index/view/view.h"

enum {
	VIEW_BATCH_DOCS = 1000,
	VIEW_BATCH_BYTES = 4 * 1024 * 1024, /* of the texts of a batch's documents */
	VIEW_BATCH_PURGES = 500,
	VIEW_BATCH_ARENA_BYTES = 256 * 1024 * 1024,
	VIEW_STEP_ARENA_BYTES = 256 * 1024 * 1024,
	VIEW_MEMO_BYTES = 128 * 1024 * 1024, /* answers of reduces for one step */
	VIEW_STEP_BYTES = 4000000,           /* bytes of one transaction, without sums */
	VIEW_STEP_BYTES_LEAST = 64000,       /* likewise, where transactions were too large */
	VIEW_STEP_ROWS = 20000,              /* rows or sums that one step reduces */
	VIEW_BUILD_TRIES = 100,              /* steps in a row that may find the group further on */
};

/* Which group, and by whose functions; the texts are the builder's. */
struct view_build {
	struct kv_store *store;
	enum catalog_space space;
	struct str db_name;
	uint64_t db_number;
	const struct view_design *design;
	const struct view_functions *functions;
	void *arg;
	/* Answers of reduces for the present step; belongs to the thread that writes steps. */
	struct reduce_memo *memo;
	struct reduce_asked *asked; /* questions of the last attempt; likewise */
};

/* The reduces of a build. `error` is set with STATUS_FUNCTION. */
static inline struct reduce_run
view_build_reduces(const struct view_build *b, struct index_work *w, struct view_error *error,
		   struct err *err)
{
	return (struct reduce_run){ .design = b->design,
				    .functions = b->functions,
				    .arg = b->arg,
				    .memo = b->memo,
				    .asked = b->asked,
				    .w = w,
				    .error = error,
				    .err = err };
}

/* A row that has been mapped. */
struct view_mapped {
	size_t map;
	uint64_t ordinal;
	struct str component;
	struct str key;
	struct str value;
};

struct view_mapped_doc {
	struct view_doc doc;
	bool purged;  /* it comes from a purge: `seq` is the purge's */
	bool dropped; /* its rows are more than a document may have: it has none */
	size_t first; /* of its rows */
	size_t count;
	size_t bytes;          /* of its rows, as they are stored */
	size_t left_out_first; /* what limits keep out of it, in the batch */
	size_t left_out_count;
};

/* What a limit has kept out, with the number of the map; VIEW_VIEWS_MOST: the whole document. */
struct view_left_out {
	struct str id;
	size_t map;
	const char *limit; /* of the first such row */
	uint64_t rows;     /* at least 1 */
};

/* Documents, mapped. All in the arena, which is the batch's own. */
struct view_batch {
	struct arena *arena;
	/* What it was made for. */
	uint64_t number;
	struct catalog_seq from;
	struct catalog_seq purges_from;
	/* How far the group is behind it. */
	struct catalog_seq to;
	struct catalog_seq purges_to;
	bool more;
	struct view_mapped_doc *docs;
	size_t count;
	struct view_mapped *rows;
	size_t row_count;
	size_t row_cap;
	struct view_left_out *left_out;
	size_t left_out_count;
	size_t left_out_cap;
	struct view_error error; /* with STATUS_FUNCTION */
};

/* ---- The record (group.c) ---- */

/* Opens the database, if it still is the one. STATUS_NOT_FOUND; the reference is the caller's. */
MUST_USE enum status view_build_open_db(const struct view_build *build, struct kv_tx *tx,
					struct catalog_db **ret, struct err *err);

/* For AUTO(). */
static inline void
view_db_unref(struct catalog_db **db)
{
	catalog_db_unref(*db);
}

/* The record as the transaction sees it. STATUS_NOT_FOUND: there is no such group. */
MUST_USE enum status view_build_read(struct kv_tx *tx, const struct catalog_db *db,
				     const struct view_design *design, enum kv_read mode,
				     struct arena *arena, struct view_record *ret, struct err *err);

/* Writes the record. */
MUST_USE enum status view_build_write(struct kv_tx *tx, const struct catalog_db *db,
				      const struct view_record *record);

/* Reads the record in a transaction of its own, and makes the group if it is not there. */
MUST_USE enum status view_build_state(const struct view_build *build, struct arena *arena,
				      struct view_record *ret, struct err *err);

/* The name of a group's reader of purges; in the arena. */
MUST_USE enum status view_purge_reader(uint64_t number, struct arena *arena, struct str *ret);

/* ---- Batches (batch.c) ---- */

/* STATUS_NOMEM. */
MUST_USE enum status view_batch_new(struct view_batch **ret);
void view_batch_free(struct view_batch *batch); /* NULL is fine */

/* Reads and maps what comes behind these Sequences. STATUS_FUNCTION: see batch->error. */
MUST_USE enum status view_batch_make(const struct view_build *build, uint64_t number,
				     const struct catalog_seq *from,
				     const struct catalog_seq *purges_from,
				     struct view_batch *batch, struct err *err);

/* ---- Steps ---- */

/* What a step has done. */
struct view_step {
	struct catalog_seq covers; /* how far the group is now */
	enum view_phase phase;
	size_t docs; /* the first so many of the batch are written */
	bool whole;  /* all of the batch is written */
	uint64_t done;
	uint64_t total;
	struct view_error error; /* with STATUS_FUNCTION; in the arena */
};

/* How much one step does: halved where its transaction was too large or too old. */
struct view_step_size {
	size_t most;  /* documents or rows, at least 1 */
	size_t bytes; /* of the rows that are written, when `most` is 1; 0: does not count */
};

/*
 * Writes a batch, or as much of it as one transaction takes (write.c): some documents, or a part of
 * the rows of one that has too many. STATUS_BUSY also means that the group is further on by now,
 * or, with questions in build->asked, that these have to be answered; look again.
 */
MUST_USE enum status view_step_write(const struct view_build *build, const struct view_batch *batch,
				     struct view_step_size *size, struct arena *arena,
				     struct view_step *ret, struct err *err);

/*
 * Sums up the next rows of a group in VIEW_PHASE_SUMS (first_sums.c), size->most of them or a few
 * more. STATUS_BUSY likewise.
 */
MUST_USE enum status view_step_sums(const struct view_build *build, struct view_step_size *size,
				    struct arena *arena, struct view_step *ret, struct err *err);

/*
 * One attempt of a step: begins a transaction, runs the body, commits. `*size` is how much the body
 * does. Failures that another attempt may not have are STATUS_BUSY. So are STATUS_TX_TOO_LARGE and
 * STATUS_TX_TOO_OLD while `*size` can be halved, which is done then.
 */
typedef enum status view_step_body(struct kv_tx *tx, void *arg);
MUST_USE enum status view_step_run(struct kv_store *store, view_step_body *body, void *arg,
				   struct view_step_size *size, struct err *err);

#endif

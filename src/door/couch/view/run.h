/*
 * An answer to questions to one view, while it is made.
 *
 * It is made of steps. Each is one body of the snapshot, which reads, and writes into the stream;
 * what a step has changed of the answer is put back before another attempt. Between steps the
 * answer may be sent, the snapshot let go of, and the view found anew in another one: rows go on
 * behind the last one that was written.
 *
 * Threading: the request's fiber.
 */
#ifndef FROND_DOOR_COUCH_VIEW_RUN_H
#define FROND_DOOR_COUCH_VIEW_RUN_H

#include "door/couch/admin/snapshot.h"
#include "door/couch/list/view_args.h"
#include "door/couch/view/known.h"
#include "door/couch/view/named.h"
#include "door/couch/wire/stream.h"
#include "index/view/read.h"

/* How far the answer to one question is. */
struct view_at {
	uint64_t skip; /* what is left of the question's */
	uint64_t limit;
	bool any_row;
	bool more; /* of the range */
};

struct view_run {
	struct couch_req *r;
	struct couch_snapshot snapshot;
	struct couch_stream stream;
	struct couch_view_named named;
	struct couch_view_known *known; /* owns `named`; NULL: `named` was read by this request */
	struct couch_view_args args;    /* of the question */
	enum couch_view_kind kind;      /* of the question */
	bool waits;                     /* a query must see all earlier writes */
	bool lazy;                      /* a query wants the view updated after the answer */

	/* Of the snapshot, once a step has found it. */
	bool found;
	bool built; /* there are rows to read */
	struct view_group group;
	bool ever_built; /* in an earlier snapshot */

	struct view_at at;
	struct buf place; /* of the last row; empty: none yet */
	struct buf next;  /* likewise, in this attempt */
	struct view_rows rows;
	struct couch_view_functions *functions; /* of a reduce that is a function; else NULL */
};

typedef enum status view_step(struct view_run *v, struct kv_tx *tx, void *arg);

/* Runs a step until it succeeds. v->group is found before it, unless there is none. */
MUST_USE enum status view_run_step(struct view_run *v, view_step *step, void *arg);

/*
 * Sends the answer to one question page by page: `step` writes a page with `page`, and says in
 * `*at`, which is a part of that, how far it is. What a page has taken of the request's arena is
 * given back after it.
 */
MUST_USE enum status view_run_pages(struct view_run *v, view_step *step, void *page,
				    const struct view_at *at);

/*
 * Lets go of the snapshot, because the client does not read or others want memory. Only the place
 * of the last row is kept, behind which the answer goes on in a new snapshot.
 */
void view_run_let_go(struct view_run *v);
/* Between steps: sends what has been written if it is enough, and gives way to others. */
MUST_USE enum status view_run_push(struct view_run *v);

/* Ends the cursor, before the snapshot's transaction ends or the range changes. */
void view_run_end_reads(struct view_run *v);

/* Notes in v->next where the step is. */
void view_run_note_place(struct view_run *v, struct str place);

/* The question for a range, of the bounds that the parameters have. */
struct view_question view_run_question(const struct view_run *v);
/* The one for a single key. */
struct view_question view_run_question_of_key(const struct view_run *v, struct str key);

/* Makes the range. It is in the request's arena. */
MUST_USE enum status view_run_range(struct view_run *v, const struct view_question *question,
				    struct view_range *ret);

/* Begins a row: its separator. */
void view_run_begin_row(struct view_run *v);

/* Appends a row up to its value; the row is still open. */
void view_write_row(struct view_run *v, struct str id, struct str key, struct str value);

/* Sends all rows of a range that skip and limit leave (rows.c, reduced.c). */
MUST_USE enum status view_send_rows(struct view_run *v, const struct view_range *range);
MUST_USE enum status view_send_results(struct view_run *v, const struct view_range *range);

/* Counts in a step what comes before a range; 0 rows if the view was not built (rows.c). */
struct view_counts {
	const struct view_range *range; /* NULL: `total` alone */
	uint64_t total;
	uint64_t before; /* the range */
	uint64_t within;
};
view_step view_count_rows;

/* ---- What the view lacks (lacking.c) ---- */

/* Writes the members of an answer that tell of it, with a comma in front; nothing if it has all. */
MUST_USE enum status view_send_lacking(struct view_run *v);

/* ---- Documents of rows (docs.c) ---- */

/* A row of a page whose documents are read together. In the request's arena. */
struct view_doc_row {
	struct str id; /* of the row */
	struct str key;
	struct str value;
	struct str doc_id; /* of the document that is shown; ptr NULL: there cannot be one */
	struct str rev;    /* of that; ptr NULL: the winner */
};

/* Finds in the value which document is shown. */
MUST_USE enum status view_doc_row_link(struct view_run *v, struct view_doc_row *row);

/* Writes the rows, with their documents. */
MUST_USE enum status view_write_doc_rows(struct view_run *v, struct kv_tx *tx,
					 struct view_doc_row *rows, size_t count);

#endif

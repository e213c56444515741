/*
 * Reducing: an accumulator takes rows, and partial results of other rows, and gives the partial
 * result of them all.
 *
 *     reduce_acc_init(&acc, reduce, &work);
 *     reduce_acc_row(&acc, key, id, value);    // in the order of the rows, and
 *     reduce_acc_partial(&acc, partial);       // of the sums between them
 *     reduce_run(&run, &acc, 1);               // calls the function, if it is one
 *     reduce_acc_result(&acc, &partial);
 *     reduce_finalize(reduce, partial, arena, &value, &error);
 *
 * A partial result is a letter and bytes: 'r' and the result; 'e', an error's name, a NUL and its
 * reason as JSON. It is what is stored. An error of some rows is the error of all sums over them.
 *
 * Everything is in the arena of the work. Threading: that of the work.
 */
#ifndef FROND_INDEX_VIEW_REDUCE_H
#define FROND_INDEX_VIEW_REDUCE_H

#include "base/buf.h"
#include "index/leaf.h"
#include "index/view/functions.h"
#include "index/view/reduce_memo.h"
#include "index/view/sum.h"
#include "index/work.h"

enum {
	REDUCE_RUN_ROWS = 1000,         /* that a function is called with at once */
	REDUCE_RUN_BYTES = 1024 * 1024, /* of their keys or values, about */
	REDUCE_CALL_GROUPS = 512,       /* of one call */
	REDUCE_BUF_BYTES = 16 * 1024 * 1024,
	REDUCE_REGISTERS = 2048, /* of HyperLogLog: precision 11, as in CouchDB */
};

/* The statistics of numbers; of arrays, each element's. */
struct reduce_stats {
	bool is_array;
	struct sum_number sum, count, min, max, sumsqr;
	struct reduce_stats *items;
	size_t item_count;
};

struct reduce_top {
	struct str text;
	struct leaf_value leaf;
};

/* Rows that a function is called with, or a partial result. */
struct reduce_segment {
	bool is_partial;
	struct str partial; /* with its letter */
	struct buf keys;    /* without their last bracket until the segment ends */
	struct buf values;
	size_t rows;
};

/* All fields are private. */
struct reduce_acc {
	const struct view_reduce *reduce;
	struct index_work *w;
	uint64_t rows;
	struct str failed; /* a partial result that is an error; ptr NULL: none */
	struct sum_value sum;
	struct str sum_error; /* what _sum gives instead of a sum; ptr NULL */
	struct reduce_stats stats;
	uint8_t *registers;
	struct str pick; /* of _first and _last */
	struct reduce_top *top;
	size_t top_count;
	struct reduce_segment *segments;
	size_t segment_count;
	size_t segment_cap;
};

void reduce_acc_init(struct reduce_acc *acc, const struct view_reduce *reduce,
		     struct index_work *w);
void reduce_acc_release(struct reduce_acc *acc); /* fine on a zeroed one */
/* What is kept of the texts is copied. */
MUST_USE enum status reduce_acc_row(struct reduce_acc *acc, struct str key, struct str id,
				    struct str value);
MUST_USE enum status reduce_acc_partial(struct reduce_acc *acc, struct str partial);
MUST_USE enum status reduce_acc_result(struct reduce_acc *acc, struct str *ret_partial);

/* Whose functions are called. */
struct reduce_run {
	const struct view_design *design;
	const struct view_functions *functions;
	void *arg;
	/*
	 * Keeps the answers of functions for further attempts. NULL: each attempt calls the
	 * functions.
	 */
	struct reduce_memo *memo;
	/*
	 * Takes the questions that the memo has no answer to, and no function is called: with any
	 * question in it, results mean nothing, and reduce_answer() comes when the transaction is
	 * over. With a memo; NULL: functions are called at once.
	 */
	struct reduce_asked *asked;
	struct index_work *w;
	struct view_error *error; /* set with STATUS_FUNCTION */
	struct err *err;
};

/* Calls functions until each accumulator has one result. Those of built-in reduces are passed. */
MUST_USE enum status reduce_run(const struct reduce_run *run, struct reduce_acc *accs,
				size_t count);

/* True if an attempt has asked what has to be answered before another one. */
static inline bool
reduce_run_waits(const struct reduce_run *run)
{
	return run->asked && run->asked->count;
}

/* Puts the questions to the functions, keeps the answers in the memo, and forgets the questions. */
MUST_USE enum status reduce_answer(const struct reduce_run *run);

/* What a reader is told. A failure is `*ret_error`, and the value then is "null". */
MUST_USE enum status reduce_finalize(const struct view_reduce *reduce, struct str partial,
				     struct arena *arena, struct str *ret_value,
				     struct view_error *ret_error);

#endif

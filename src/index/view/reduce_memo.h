/*
 * What functions have answered, kept between attempts of a transaction: an attempt that is made
 * anew finds there what it would ask again. An answer is found by a hash of the reduce's name and
 * of all that the function is given, so it is never one to something else.
 *
 * Threading: one at a time.
 */
#ifndef FROND_INDEX_VIEW_REDUCE_MEMO_H
#define FROND_INDEX_VIEW_REDUCE_MEMO_H

#include "base/status.h"
#include "base/str.h"

struct reduce_memo;

/* It keeps up to `limit_bytes` of answers. STATUS_NOMEM. */
MUST_USE enum status reduce_memo_new(size_t limit_bytes, struct reduce_memo **ret);
void reduce_memo_free(struct reduce_memo *memo); /* NULL is fine */

/* Forgets all answers: what they were for is done. NULL is fine. */
void reduce_memo_clear(struct reduce_memo *memo);

/* How many answers have been kept since the beginning, forgotten ones included. */
uint64_t reduce_memo_kept(const struct reduce_memo *memo);

/* What a function is given. */
struct reduce_question {
	struct str name; /* of the reduce */
	bool rereduce;
	struct str keys;
	struct str values;
};

/* The answer, valid until it is forgotten. ptr NULL: none is kept. */
struct str reduce_memo_find(const struct reduce_memo *memo, const struct reduce_question *q);

/* Keeps an answer, unless there is no room for it. */
void reduce_memo_keep(struct reduce_memo *memo, const struct reduce_question *q, struct str answer);

#endif

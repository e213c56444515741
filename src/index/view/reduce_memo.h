/*
 * Answers of reduce functions, kept between the attempts of a transaction, so that a repeated
 * attempt does not call the functions again. An answer is found by a hash of 128 bits of the
 * reduce's name and of all arguments, so it never belongs to another question.
 *
 * Threading: one thread at a time.
 */
#ifndef FROND_INDEX_VIEW_REDUCE_MEMO_H
#define FROND_INDEX_VIEW_REDUCE_MEMO_H

#include "base/status.h"
#include "base/str.h"

struct reduce_memo;

/* Makes a memo for up to `limit_bytes` of answers. STATUS_NOMEM. */
MUST_USE enum status reduce_memo_new(size_t limit_bytes, struct reduce_memo **ret);
void reduce_memo_free(struct reduce_memo *memo); /* NULL is fine */

/* Forgets all answers. To be called when the work that needed them is committed. NULL is fine. */
void reduce_memo_clear(struct reduce_memo *memo);

/* The number of answers ever kept, including forgotten ones. */
uint64_t reduce_memo_kept(const struct reduce_memo *memo);

/* The arguments of a reduce function. */
struct reduce_question {
	struct str name; /* of the reduce */
	bool rereduce;
	struct str keys;
	struct str values;
};

/* Finds the answer, which is valid until it is forgotten. ptr NULL: there is none. */
struct str reduce_memo_find(const struct reduce_memo *memo, const struct reduce_question *q);

/* Keeps an answer, unless there is no room for it. */
void reduce_memo_keep(struct reduce_memo *memo, const struct reduce_question *q, struct str answer);

#endif

/*
 * Answers of reduce functions, kept between the attempts of a transaction, so that a repeated
 * attempt does not call the functions again. An answer is found by a hash of 128 bits of the
 * reduce's name and of all arguments, so it never belongs to another question. Beside them the
 * questions that an attempt could not answer: they are put to the functions when the attempt's
 * transaction has ended, so that no transaction waits for a worker.
 *
 * Threading: one thread at a time.
 */
#ifndef FROND_INDEX_VIEW_REDUCE_MEMO_H
#define FROND_INDEX_VIEW_REDUCE_MEMO_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

/* The partial result instead of results that are too long together. */
#define REDUCE_OVERFLOW "ereduce_overflow_error\0\"Results are too long.\""

struct reduce_memo;

/* Makes a memo for up to `limit_bytes` of answers. STATUS_NOMEM. */
MUST_USE enum status reduce_memo_new(size_t limit_bytes, struct reduce_memo **ret);
void reduce_memo_free(struct reduce_memo *memo); /* NULL is fine */

/* Forgets all answers. To be called when the work that needed them is committed. NULL is fine. */
void reduce_memo_clear(struct reduce_memo *memo);

/* The arguments of a reduce function. */
struct reduce_question {
	struct str name; /* of the reduce */
	bool rereduce;
	struct str keys;
	struct str values;
};

/* Finds the answer, which is valid until it is forgotten. ptr NULL: there is none. */
struct str reduce_memo_find(const struct reduce_memo *memo, const struct reduce_question *q);

/*
 * Keeps an answer. If there is no room for it, an error that results are too long is kept instead,
 * so that no question is asked for ever. STATUS_NOMEM.
 */
MUST_USE enum status reduce_memo_keep(struct reduce_memo *memo, const struct reduce_question *q,
				      struct str answer);

/* ---- Questions that wait for the end of a transaction ---- */

enum {
	REDUCE_ASKED_BYTES = 32 * 1024 * 1024, /* of questions, before no more are taken */
	REDUCE_ASKED_MOST = 20000,
};

struct reduce_asked {
	struct arena *arena;
	struct reduce_question *questions;
	size_t count;
	size_t cap;
	size_t bytes; /* of their arguments */
};

MUST_USE enum status reduce_asked_init(struct reduce_asked *asked); /* STATUS_NOMEM */
void reduce_asked_release(struct reduce_asked *asked);              /* fine on a zeroed one */
void reduce_asked_clear(struct reduce_asked *asked);

/*
 * Takes a question, whose arguments are copied; the name is borrowed. Past the limits it takes
 * none, but there are some then: the next attempt asks for the others. STATUS_LIMIT.
 */
MUST_USE enum status reduce_asked_add(struct reduce_asked *asked, const struct reduce_question *q);

#endif

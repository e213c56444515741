/*
 * MongoDB's query language, as functions on BSON: what the headers of mql/ share.
 *
 * A filter, an expression, a projection, an update is compiled once, into the arena of the struct
 * mql that it was compiled with, and run many times. What was compiled borrows from the documents
 * that it was compiled from, and it never changes: it may be run with another struct mql, by
 * another thread, too. Running takes memory from the arena of the struct mql that it runs with.
 *
 * Failures. STATUS_INVALID: the client's mistake, or its data's; `code` is MongoDB's number for it,
 * and `err` has MongoDB's text. STATUS_UNSUPPORTED: MongoDB has this, frond has not; `code` and
 * `err` likewise. STATUS_LIMIT: the arena is full. STATUS_NOMEM. And those of step_count(), since
 * whatever a client can make long counts its steps and lets other fibers run (loop/step.h). After
 * a failure nothing that was to be returned is set.
 *
 * Documents that are passed were checked by bson_check().
 */
#ifndef FROND_MQL_MQL_H
#define FROND_MQL_MQL_H

#include "base/arena.h"
#include "bson/bson.h"
#include "bson/order.h"

enum {
	MQL_DEPTH = 100,                 /* of operators inside each other */
	MQL_TEXT_BYTES = 150,            /* of a value that an error's text shows */
	MQL_REGEX_BYTES = 16384,         /* of a pattern */
	MQL_REGEX_STEPS = 1000000,       /* of one match */
	MQL_REGEX_BYTE_STEPS = 10,       /* more, for each byte of the string */
	MQL_REGEX_KIBIBYTES = 20 * 1024, /* of PCRE2's memory for one match */
	MQL_REGEX_NESTING = 100,         /* of groups in a pattern */
	MQL_PATHS_MOST = 32,             /* of struct mql_paths */
};

/* MongoDB's numbers for failures that have names. All others have a number only. */
enum mql_code {
	MQL_BAD_VALUE = 2,
	MQL_FAILED_TO_PARSE = 9,
	MQL_NO_SEARCH = 31082,
	MQL_TYPE_MISMATCH = 14,
	MQL_OVERFLOW = 15,
	MQL_PATH_NOT_VIABLE = 28,
	MQL_CONFLICTING_UPDATE = 40,
	MQL_DOLLAR_PREFIXED = 52,
	MQL_NOT_SINGLE_VALUE = 54,
	MQL_EMPTY_FIELD_NAME = 56,
	MQL_IMMUTABLE_FIELD = 66,
	MQL_NOT_SUPPORTED = 115,
	MQL_UNKNOWN_EXPRESSION = 168,
	MQL_CONVERSION_FAILURE = 241,
	MQL_TOO_LARGE = 10334,
};

struct mql_ahead;
struct mql_scripts;

struct mql {
	struct arena *arena;
	struct err *err;                /* may be NULL */
	const struct bson_texts *texts; /* the collation; NULL: by bytes */
	int64_t now_ms;        /* $$NOW and $currentDate: since 1970, one for all documents */
	uint64_t cluster_time; /* $currentDate's timestamps */
	int code;              /* of the failure; 0 where MongoDB has none */
	unsigned depth;        /* of the expression that is being compiled: 0 outside of one */
	/* Who runs functions in JavaScript (expr/script.h); NULL: they are not allowed here. */
	const struct mql_scripts *scripts;
	struct mql_ahead *ahead; /* NULL: nothing is known ahead of an evaluation */
	size_t script_count;     /* functions that were compiled so far, but for accumulators */
	bool takes_where;        /* filters that are compiled may have $where */
	bool is_validator;       /* what is compiled is a validator's */
};

/* A buffer for the time of one call, whose memory counts where that of the arena does. */
static inline struct buf
mql_buf(const struct mql *q, size_t max_bytes)
{
	return BUF_INIT_OF(max_bytes, arena_part(q->arena));
}

/*
 * The paths at which an expression, a filter or a stage looks in documents: what lies elsewhere
 * makes no difference to it. `all` is set if there are more than MQL_PATHS_MOST, or if it looks at
 * documents as a whole.
 */
struct mql_paths {
	struct str paths[MQL_PATHS_MOST];
	size_t count;
	bool all;
};

static inline void
mql_paths_add(struct mql_paths *p, struct str path)
{
	p->all = p->all || p->count == MQL_PATHS_MOST;
	if (!p->all)
		p->paths[p->count++] = path;
}

#endif

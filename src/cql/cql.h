/*
 * CQL, the language of Cassandra's clients, as functions: what the headers of cql/ share.
 *
 * A statement is parsed once, into the arena of the struct cql that it was parsed with, and typed
 * and run many times. What was parsed or compiled borrows the statement's text, and never changes:
 * it may be used with another struct cql, by another thread, too. Results take memory from the
 * arena of the struct cql that they were made with.
 *
 * Failures. STATUS_INVALID: the client's mistake; `code` is the protocol's number for it, and `err`
 * has Cassandra's text (error.h). STATUS_LIMIT: the arena is full. STATUS_NOMEM. And those of
 * step_count(), since whatever a client can make long counts its steps (loop/step.h). After a
 * failure nothing that was to be returned is set.
 */
#ifndef FROND_CQL_CQL_H
#define FROND_CQL_CQL_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "cql/error.h"

enum {
	CQL_STATEMENT_BYTES = 16 << 20, /* of a statement's text */
	CQL_DEPTH = 64,                 /* of terms, types, values, conditions inside each other */
	CQL_TYPE_PARTS = 10000,         /* types in a type, those in its user types included */
	CQL_NAME_BYTES = 48,            /* of a keyspace, a table, an index */
	CQL_COLUMN_BYTES = 65535,       /* of a column's or a field's name */
	CQL_MARKERS = 65535,            /* of a statement: their number goes in 16 bits */
	CQL_ELEMENTS = 1 << 20,         /* of a literal, a list in parentheses, a batch */
	CQL_DIGITS = 10000,    /* of a varint or a decimal that is computed with or printed */
	CQL_SHOWN_BYTES = 100, /* of a token that an error's text shows */
};

struct cql {
	struct arena *arena;
	struct err *err;    /* may be NULL */
	enum cql_code code; /* of the failure */
};

/* A buffer for the time of one call, whose memory counts where that of the arena does. */
static inline struct buf
cql_buf(const struct cql *q, size_t max_bytes)
{
	return BUF_INIT_OF(max_bytes, arena_part(q->arena));
}

/*
 * Records the failure `e` with its row of the table, in whose text each {} is replaced by the next
 * of the arguments (struct str). The value of the expression is STATUS_INVALID.
 */
#define cql_fail(q, e, ...)                                                                        \
	({                                                                                         \
		const struct str cql_fail_args_[] = { { NULL, 0 }, ##__VA_ARGS__ };                \
		cql_fail_with((q), (e), cql_fail_args_ + 1,                                        \
			      sizeof(cql_fail_args_) / sizeof(cql_fail_args_[0]) - 1);             \
		STATUS_INVALID;                                                                    \
	})

void cql_fail_with(struct cql *q, enum cql_error e, const struct str *args, size_t count);

/* The protocol's number and the text, with {} for what is put in, of a row of the table. */
enum cql_code cql_error_code(enum cql_error e);
struct str cql_error_text(enum cql_error e);

#endif

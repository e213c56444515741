/*
 * Fail points, by which tests of drivers have commands fail on purpose. Only a process that was
 * told so has them.
 *
 * Threading: the fail points have a lock; the rest is the command's.
 */
#ifndef FROND_DOOR_MONGO_TXN_FAIL_H
#define FROND_DOOR_MONGO_TXN_FAIL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

struct call;

enum {
	FAIL_DATA_BYTES = 16 * 1024,
	FAIL_BLOCK_MS = 60 * 1000, /* that a command waits at most */
};

enum fail_kind {
	FAIL_COMMAND,
	FAIL_RETRYABLE_WRITE, /* "onPrimaryTransactionalWrite" */
	FAIL_MAX_TIME,        /* "maxTimeAlwaysTimeOut" */
	FAIL_NO_TIME,         /* "maxTimeNeverTimeOut" */
	FAIL_GET_MORE,        /* "failGetMoreAfterCursorCheckout" */
	FAIL_KINDS,
};

struct fail_point {
	bool on;
	int64_t skips;   /* hits that are let through first */
	int64_t times;   /* hits that are left; -1: any number */
	int64_t entered; /* hits so far */
	struct buf data; /* the document of the command */
};

struct fail_points {
	/* Owns the points, with their data. */
	pthread_mutex_t lock;
	struct fail_point points[FAIL_KINDS];
};

void fail_points_init(struct fail_points *f);
void fail_points_fini(struct fail_points *f);

/* What fail points do to a command. All zero: nothing. */
struct fail_effect {
	bool closes;        /* the connection ends, and nothing is answered */
	struct str labels;  /* an array; ptr NULL: those that the failure has anyway */
	struct str concern; /* a writeConcernError; ptr NULL: none */
	int commit;         /* the code that a retryable write fails with, uncommitted; 0: none */
};

/*
 * Before the command is run: waits, or fails it. What else the fail point does to it is in
 * `c->failing`.
 */
MUST_USE enum status fail_begin(struct call *c);

/* A getMore has its cursor. */
MUST_USE enum status fail_more(struct call *c);

/*
 * A statement of a retryable write has changed something. The transaction that it is part of has
 * to ask fail_commit() before it commits.
 */
MUST_USE enum status fail_statement(struct call *c);
MUST_USE enum status fail_commit(struct call *c);

/* Appends what is left to the answer. */
void fail_put(struct call *c);

#endif

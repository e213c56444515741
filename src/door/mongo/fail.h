/*
 * The fail point `failCommand`, by which tests of drivers have commands fail on purpose. Only a
 * process that was told so has it.
 *
 * Threading: the fail point has a lock; the rest is the command's.
 */
#ifndef FROND_DOOR_MONGO_FAIL_H
#define FROND_DOOR_MONGO_FAIL_H

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

struct fail_point {
	pthread_mutex_t lock;
	bool on;
	int64_t skips;   /* hits that are let through first */
	int64_t times;   /* hits that are left; -1: any number */
	int64_t entered; /* hits so far */
	struct buf data; /* the document of the command */
};

void fail_point_init(struct fail_point *f);
void fail_point_fini(struct fail_point *f);

/* What the fail point does to a command. All zero: nothing. */
struct fail_effect {
	bool closes;        /* the connection ends, and nothing is answered */
	struct str labels;  /* an array; ptr NULL: those that the failure has anyway */
	struct str concern; /* a writeConcernError; ptr NULL: none */
};

/*
 * Before the command is run: waits, or fails it. What else the fail point does to it is in
 * `c->failing`.
 */
MUST_USE enum status fail_begin(struct call *c);

/* Appends what is left to the answer. */
void fail_put(struct call *c);

#endif

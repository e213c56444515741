/*
 * Memory that many share: what all requests of a server may take together.
 *
 * Each of them has a part. Before it begins something large it asks for what that is going to take,
 * and waits for its turn, oldest first. What it takes beyond that is given at once or not at all:
 * whoever holds memory never waits for more, so that nobody can wait for each other. A quarter of
 * the whole is kept back from those who ask beforehand, so that they do not starve the others.
 *
 * The budget is thread-safe; a part belongs to one thread at a time.
 */
#ifndef FROND_BASE_BUDGET_H
#define FROND_BASE_BUDGET_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/wait.h"

enum {
	/* What a part has for nothing: small requests never touch what is shared. */
	BUDGET_FREE_BYTES = 64 * 1024,
	BUDGET_WAITERS = 1024, /* that wait at a time; more are refused at once */
};

struct budget_waiter;

struct budget {
	pthread_mutex_t lock;
	size_t limit_bytes;
	size_t taken_bytes;
	size_t peak_bytes; /* the most that was ever taken since budget_take_peak() */
	struct budget_waiter *first;
	struct budget_waiter **last;
	size_t waiting;
};

struct budget_part {
	struct budget *budget; /* NULL: without a limit */
	size_t asked_bytes;    /* by budget_ask() */
	size_t used_bytes;
	size_t taken_bytes; /* of the budget, for this part */
	bool refused;       /* others have what was not given; but for them there is enough */
	bool exceeded;      /* it wanted more than there is for all */
};

void budget_init(struct budget *b, size_t limit_bytes);
void budget_fini(struct budget *b); /* every part has been released */

/* What is taken now; and the most that was taken since the last such call. */
size_t budget_taken(struct budget *b);
size_t budget_take_peak(struct budget *b);

void budget_part_init(struct budget_part *p, struct budget *b);

/*
 * Sets `n` bytes aside, on top of what was asked before, and waits for them until the deadline, or
 * `stop` is set (may be NULL). More than three quarters of the budget counts as that much: whoever
 * wants it all gets it alone. STATUS_LIMIT when they were not free in time, or too many wait
 * already; STATUS_CANCELLED.
 */
MUST_USE enum status budget_ask(struct budget_part *p, size_t n, uint64_t deadline_ns,
				struct event *stop);

/* Counts `n` bytes as used; false, and nothing is counted, when the budget does not have them. */
bool budget_use(struct budget_part *p, size_t n);
void budget_unuse(struct budget_part *p, size_t n);

/* Gives back what was asked for and is not used. */
void budget_settle(struct budget_part *p);

/* Gives everything back. Fine on a part that was never used, and again. */
void budget_part_release(struct budget_part *p);

#endif

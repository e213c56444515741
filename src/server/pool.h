/* Threads for work that blocks. Thread-safe. */
#ifndef FROND_SERVER_POOL_H
#define FROND_SERVER_POOL_H

#include "base/status.h"

struct pool;
struct wait_work;

/* STATUS_NOMEM, STATUS_IO when a thread cannot be made. */
MUST_USE enum status pool_new(unsigned threads, struct pool **ret, struct err *err);

/* Waits for the work under way; none may be waiting. NULL is fine. */
void pool_free(struct pool *p);

/* Runs `fn(arg)` on one of the threads; the caller waits (base/wait.h) until it has returned. */
void pool_run(struct pool *p, void (*fn)(void *arg), void *arg);

/* Gives `work` to the threads, of which `fn`, `arg` and `done` are set; see wait_begin(). */
void pool_begin(struct pool *p, struct wait_work *work);

#endif

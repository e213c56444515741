/*
 * Threads for work that blocks, such as a read that misses the block cache. Thread-safe. A piece of
 * work is its caller's and stays where it is until its `done` is set or it has been taken back.
 */
#ifndef FROND_LOOP_POOL_H
#define FROND_LOOP_POOL_H

#include "base/status.h"

struct pool;
struct wait_work;

/*
 * At most `threads` pieces of work that block are under way at a time, and as many that compute
 * (wait_compute()). STATUS_NOMEM, STATUS_IO when a thread cannot be made.
 */
MUST_USE enum status pool_new(unsigned threads, struct pool **ret, struct err *err);

/* Waits for the work under way; none may be waiting. NULL is fine. */
void pool_free(struct pool *p);

/* Gives `work` to the threads, of which `fn`, `arg` and `done` are set; see wait_begin(). */
void pool_begin(struct pool *p, struct wait_work *work);

#endif

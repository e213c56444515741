/*
 * The pool of workers: which call goes to which worker, and the thread that keeps them (pool.c
 * tells how they play together). js.h has what others see of it.
 */
#ifndef FROND_JS_POOL_H
#define FROND_JS_POOL_H

#include "js/run.h"

/*
 * Has a call done, and waits for it. `*run` is freed and set to NULL if nobody may touch it any
 * more. Returns what js.h says of calls; after STATUS_OK the answer is in the run, and after
 * STATUS_FUNCTION the error.
 */
MUST_USE enum status js_pool_run(struct js_call *call, struct js_run **run, struct err *err);

#endif

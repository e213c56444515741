/* The loop on libuv. Threading as in loop/loop.h. */
#ifndef FROND_LOOP_LIBUV_H
#define FROND_LOOP_LIBUV_H

#include <uv.h>

#include "loop/loop.h"

extern const struct loop_ops loop_uv_ops;

/*
 * libuv's loop under one that was made with these ops, for handles of its user's own (sockets, a
 * library's timers). They are closed by their user, or else by loop_fini() without a callback.
 */
uv_loop_t *loop_uv(struct loop *l);

#endif

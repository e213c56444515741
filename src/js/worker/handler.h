/*
 * The worker's side of the protocol (js/wire.h): reads frames, has the engine do what they ask, and
 * writes the answers. It knows no sockets. One thread uses it.
 */
#ifndef FROND_JS_WORKER_HANDLER_H
#define FROND_JS_WORKER_HANDLER_H

#include "base/buf.h"
#include "js/wire.h"
#include "js/worker/engine.h"

struct handler;

/*
 * The engine and `ready` are the caller's. `ready(arg)` is called once the server's HELLO has been
 * read and before it is answered: the moment to give up rights. NULL when out of memory.
 */
struct handler *handler_new(const struct engine *engine, bool (*ready)(void *arg), void *arg);
void handler_free(struct handler *h); /* NULL is fine */

/*
 * Has a whole frame handled, whose payload begins at `payload`, and appends what is to be sent to
 * `out`. False: the frame is not one that a server sends, and the worker has to end.
 */
MUST_USE bool handler_handle(struct handler *h, const struct wire_head *head, struct str payload,
			     struct buf *out);

#endif

/*
 * The functions of views, run by workers (js/js.h), as the engine of views calls them.
 *
 * Reference counted: an update of views goes on when the request that has begun it is over.
 * Threading: any thread.
 */
#ifndef FROND_DOOR_COUCH_VIEW_FUNCTIONS_H
#define FROND_DOOR_COUCH_VIEW_FUNCTIONS_H

#include "door/couch/wire/settings.h"
#include "index/view/functions.h"
#include "js/js.h"

/*
 * What the engine's functions are called with; its `arg`. Borrows nothing but the pool, which
 * outlives it.
 */
struct couch_view_functions;

/* The version of the design document is copied. NULL when out of memory. */
struct couch_view_functions *couch_view_functions_new(struct js *js, const struct js_design *design,
						      enum js_lane lane,
						      enum js_reduce_limit limit);
/* The setting for reduces whose results do not shrink. */
enum js_reduce_limit couch_view_reduce_limit(const struct couch_settings *settings);
void couch_view_functions_release(struct couch_view_functions *f); /* NULL is fine */

/*
 * Calls on behalf of a request, from its fiber, end when the client has gone, which is when `stop`
 * is set. Before the first call.
 */
void couch_view_functions_set_stop(struct couch_view_functions *f, struct event *stop);

/*
 * Calls that take long call this on the request's fiber, so that the request can let go of its
 * snapshot. Before the first call.
 */
void couch_view_functions_set_slow(struct couch_view_functions *f, void (*on_slow)(void *arg),
				   void *arg);

extern const struct view_functions couch_view_functions;

#endif

/*
 * A call under way, from its request to its answer. It belongs to the code that waits for it. If
 * that gives up while a worker has the call, it is abandoned, and the pool frees it.
 */
#ifndef FROND_JS_RUN_H
#define FROND_JS_RUN_H

#include "js/answer.h"
#include "js/js.h"

enum {
	JS_NAME_BYTES = 160, /* of a design document's name, for logs; a longer one is cut */
};

struct js_run {
	struct js_run *next;            /* in the queue */
	const struct js_design *design; /* the caller's: not after the call was abandoned */
	enum js_lane lane;
	uint64_t owner;
	char name[JS_NAME_BYTES];
	struct answer_shape shape;
	struct buf request; /* one frame; its payload begins with room for the context */
	uint32_t number;    /* that the frame has got */
	uint64_t ends_at;   /* where it ends among all bytes that its worker is sent */
	bool queued;
	bool followed;  /* it was sent behind another call */
	bool alone;     /* no other call is to be sent in front of it, or behind it */
	bool stands_in; /* js_run_stand_in() has made it */
	bool abandoned;
	uint64_t abandoned_ns; /* when it was */
	uint64_t queued_ns;
	uint64_t began_ns; /* when a worker got it */
	uint64_t took_ns;
	struct event done;

	/* Set when `done` is. */
	enum status status; /* STATUS_OK: `answer`; STATUS_FUNCTION: `name` and `reason` */
	struct err err;
	struct buf answer; /* the payload of DONE, or of ERROR */
	struct str error_name;
	struct str error_reason;
};

/* NULL when out of memory. */
struct js_run *js_run_new(const struct js_call *call, const struct answer_shape *shape);
void js_run_free(struct js_run *run); /* NULL is fine */

/*
 * Makes an abandoned run that takes the place of `run` at a worker. The worker has been sent the
 * call and will answer it, but the answer is no longer wanted. NULL when out of memory.
 */
struct js_run *js_run_stand_in(const struct js_run *run);

/* The call ends with an error that the server itself gives. Both texts are literals. */
void js_run_fail(struct js_run *run, struct str name, struct str reason_json);

#endif

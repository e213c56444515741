/*
 * How a feed waits for changes and keeps its client's connection alive meanwhile, by heartbeats.
 * Everything here runs on the request's fiber.
 */
#ifndef FROND_DOOR_COUCH_LIST_FEED_WAIT_H
#define FROND_DOOR_COUCH_LIST_FEED_WAIT_H

#include "door/couch/list/feed.h"
#include "door/couch/wire/stream.h"
#include "loop/wait.h"

enum {
	COUCH_FEED_EVENTS = 3, /* that a feed waits for besides its own */
};

enum couch_wake {
	COUCH_WAKE_CHANGED,
	COUCH_WAKE_OVER, /* nothing happened in time, or the server stops */
};

/* The times that decide when a feed sends a heartbeat, and when it ends. */
struct couch_feed_wait {
	struct couch_stream *stream;
	const struct couch_changes_args *args;
	/*
	 * On the monotonic clock: when something was last sent, and when something last happened.
	 */
	uint64_t sent_ns;
	uint64_t idle_ns;
	uint64_t looked_ns; /* when the user's rights were last checked */
	/* Its place among the feeds of its loop, while it waits in a process without others. */
	struct couch_feed_wait *next;
	struct couch_feed_wait *prev;
	struct event
		nudged; /* set by another feed of the loop: there may be something to look at */
};

void couch_feed_wait_init(struct couch_feed_wait *w, struct couch_stream *stream,
			  const struct couch_changes_args *args);
/* To be called when something has been sent: the next heartbeat is due later. */
void couch_feed_sent(struct couch_feed_wait *w);
/* To be called when something has happened: the timeout begins anew. */
void couch_feed_stirred(struct couch_feed_wait *w);
/* Sends a heartbeat if one is due. */
MUST_USE enum status couch_feed_beat(struct couch_feed_wait *w);

/*
 * Waits for one of `n` events and sends heartbeats meanwhile. The array has room for
 * COUCH_FEED_EVENTS more. After `at_most_ms` (or WAIT_FOREVER) *ret is COUCH_WAKE_CHANGED, too.
 * STATUS_CANCELLED if the client has gone.
 */
MUST_USE enum status couch_feed_park(struct couch_feed_wait *w, struct event **events, size_t n,
				     uint64_t at_most_ms, enum couch_wake *ret);

/* Waits for `ms`, or until the client goes or the server stops. */
MUST_USE enum status couch_feed_pause(struct couch_feed_wait *w, uint64_t ms, enum couch_wake *ret);

/* Appends a Sequence as a JSON string. */
void couch_seq_write(const struct catalog_seq *seq, struct buf *out);

#endif

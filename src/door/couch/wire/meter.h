/*
 * What is counted of each request, how others see and end it (serve/ops.h), and the log of slow
 * ones. Each function works on one request, on its fiber.
 */
#ifndef FROND_DOOR_COUCH_WIRE_METER_H
#define FROND_DOOR_COUCH_WIRE_METER_H

#include "door/couch/wire/request.h"

/* The kinds of feeds: requests that stay open and wait for something to happen. */
enum couch_meter_feed {
	COUCH_METER_FEED_NONE,
	COUCH_METER_FEED_LONGPOLL,
	COUCH_METER_FEED_CONTINUOUS,
	COUCH_METER_FEED_EVENTSOURCE,
	COUCH_METER_FEED_COUNT,
};

/* Around everything that is done for a request. The answer may still be on its way at the end. */
void couch_meter_begin(struct couch_req *r);
void couch_meter_end(struct couch_req *r);

/*
 * The request is a feed: it takes as long as its client wants, so its duration is not counted
 * among those of other requests and never makes it a slow one. Call it once, with a kind that is
 * not COUCH_METER_FEED_NONE.
 */
void couch_meter_feed(struct couch_req *r, enum couch_meter_feed kind);

#endif

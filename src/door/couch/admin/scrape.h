/*
 * The metrics of the process (base/metric.h), read on a thread that may block. Everything runs on a
 * request's fiber.
 */
#ifndef FROND_DOOR_COUCH_ADMIN_SCRAPE_H
#define FROND_DOOR_COUCH_ADMIN_SCRAPE_H

#include "door/couch/wire/request.h"

enum {
	SCRAPE_WAIT_MS = 2000,
	SCRAPE_BYTES = 4 << 20, /* of an answer of metrics; they have some 100 KB */
};

/*
 * Asks all collectors, calls `write` while their answers hold, and waits for both. `write` runs on
 * a thread of the pool, so it uses neither the request's exchange nor its arena.
 *
 * An operator has to see something when the disk hangs, too. If no thread of the pool is free, or
 * another one is stuck asking, `write` is called after SCRAPE_WAIT_MS with `all` false: values of
 * collectors are then old or missing, and it must not wait.
 */
typedef void couch_scrape_write(struct buf *out, bool all);

MUST_USE enum status couch_scrape(couch_scrape_write *write, struct buf *out);

/*
 * Answers an exchange of a port that has the metrics alone, without users: GET and HEAD of
 * /_node/{name}/_prometheus, and anything else with a 404 or 405.
 */
MUST_USE enum status couch_scrape_apart(struct http_exchange *x);

#endif

/*
 * The log of slow requests: one line for each request that took longer than the setting
 * slow_request_ms. A feed waits by design: it is slow only if it has computed for that long for one
 * of its rows.
 *
 * The line has nothing that could be a secret: of the query only the values of parameters that are
 * known to hold none, never a header, never a body. At most SLOW_LINES_PER_S lines are written in a
 * second; the next line then says how many were left out.
 */
#ifndef FROND_DOOR_COUCH_WIRE_SLOW_H
#define FROND_DOOR_COUCH_WIRE_SLOW_H

#include "door/couch/wire/request.h"
#include "loop/step.h"
#include "base/clock.h"

enum {
	SLOW_LINES_PER_S = 10,
	SLOW_PATH_BYTES = 256,  /* of a path, as it is written */
	SLOW_QUERY_BYTES = 256, /* of a query, as it is written */
};

/* Of a request whose handler has returned after `took_ns`, on its fiber. */
void couch_slow_log(struct couch_req *r, uint64_t took_ns);

static inline void
couch_slow_check(struct couch_req *r, uint64_t took_ns)
{
	const struct step_meter *steps;
	uint64_t slow_ns;

	/* A request that failed before it had settings has not done anything slow. */
	if (!r->settings)
		return;
	slow_ns = r->settings->slow_ms * CLOCK_NS_PER_MS;
	if (__builtin_expect(took_ns < slow_ns, 1))
		return;
	steps = step_current();
	if (!r->feed || (steps && steps->longest_ns >= slow_ns))
		couch_slow_log(r, took_ns);
}

#endif

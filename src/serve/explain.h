/*
 * What a request has failed by, in words for its client, where whoever failed has said nothing:
 * limits that all doors have, with their names. The status's code is each protocol's own.
 */
#ifndef FROND_SERVE_EXPLAIN_H
#define FROND_SERVE_EXPLAIN_H

#include "base/budget.h"
#include "base/status.h"

struct net_session;

/*
 * On the request's fiber. Puts the text into `err`, unless it has one that is more than the
 * status's name. `part` is what has counted the request's memory: where that was refused, the
 * refusal is counted and named.
 */
void explain_failure(const struct net_session *session, const struct budget_part *part,
		     enum status status, struct err *err);

#endif
